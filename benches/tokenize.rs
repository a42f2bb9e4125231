//! Tokenizing whole files, counting the tokens of prompts, and the token sets of windows, each next to tiktoken-rs.

use crate::support::corpus::{PROMPTS, SAMPLE, SAMPLE_WINDOWS, bytes};
use crate::support::{twins, work};
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};

/// Ids of every file.
mod files {
    use super::*;

    #[divan::bench]
    fn ours(bencher: Bencher<'_, '_>) {
        bencher.counter(BytesCount::new(bytes(&SAMPLE))).bench(work::tokenize_files);
    }

    #[divan::bench(sample_count = 3, sample_size = 1)]
    fn tiktoken(bencher: Bencher<'_, '_>) {
        let tiktoken = tiktoken_rs::p50k_base().unwrap();
        let count = |text: &str| tiktoken.encode_ordinary(text).len();
        let files = SAMPLE.files.iter();
        bencher
            .counter(BytesCount::new(bytes(&SAMPLE)))
            .bench(|| files.clone().map(|file| count(&file.text)).sum::<usize>());
    }
}

/// Number of ids in every prompt.
mod counts {
    use super::*;

    fn size() -> BytesCount {
        BytesCount::new(PROMPTS.iter().map(String::len).sum::<usize>())
    }

    #[divan::bench]
    fn ours(bencher: Bencher<'_, '_>) {
        bencher.counter(size()).bench(work::count_prompts);
    }

    #[divan::bench(sample_count = 5, sample_size = 1)]
    fn tiktoken(bencher: Bencher<'_, '_>) {
        let tiktoken = tiktoken_rs::p50k_base().unwrap();
        let count = |prompt: &String| tiktoken.encode_ordinary(prompt).len();
        bencher.counter(size()).bench(|| PROMPTS.iter().map(count).sum::<usize>());
    }
}

/// Set of ids in every window.
mod window_sets {
    use super::*;

    #[divan::bench]
    fn ours(bencher: Bencher<'_, '_>) {
        bencher.counter(ItemsCount::new(SAMPLE_WINDOWS.len())).bench(work::window_sets);
    }

    #[divan::bench(sample_count = 3, sample_size = 1)]
    fn tiktoken(bencher: Bencher<'_, '_>) {
        let tiktoken = tiktoken_rs::p50k_base().unwrap();
        bencher
            .counter(ItemsCount::new(SAMPLE_WINDOWS.len()))
            .bench(|| twins::window_sets(&SAMPLE_WINDOWS, &tiktoken));
    }
}
