//! The embedded model: fits to a prompt and writes one line.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use repoformer_models::in_context::{self, CompletionLimits};

use crate::support::corpus::PROMPTS;

#[divan::bench(sample_count = 10)]
fn ten_lines(bencher: Bencher<'_, '_>) {
    let limits = CompletionLimits { max_lines: 1, max_tokens: 500 };
    let complete = |prompt: &String| in_context::complete(black_box(prompt), &limits).text.len();
    bencher
        .counter(ItemsCount::new(10_usize))
        .bench(|| PROMPTS.iter().take(10).map(complete).sum::<usize>());
}
