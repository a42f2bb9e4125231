//! Cutting a repository into windows, merged by text.

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use repoformer_core::repository::fragment::{Cut, RepoFragments, WindowShape};
use repoformer_text::language::Language;

use crate::support::corpus::{REPOSITORY, WINDOWS, bytes};

#[divan::bench]
fn cut(bencher: Bencher<'_, '_>) {
    bencher
        .counter(ItemsCount::new(WINDOWS.len()))
        .counter(BytesCount::new(bytes(&REPOSITORY)))
        .with_inputs(|| REPOSITORY.clone())
        .bench_values(|repository| {
            let cut = Cut::Windows(WindowShape::default());
            RepoFragments::cut(repository, Language::Python, cut)
        });
}
