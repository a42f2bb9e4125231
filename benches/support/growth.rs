//! Collections of growing size with the same queries: windows of the corpus, whose files are always shuffled in the same way.
//!
//! The queries come from files that are in no collection: the twenty lines before a line, as rg1 searches.

use std::sync::LazyLock;

use repoformer_core::repository::corpus::{Repository, SourceFile};
use repoformer_core::repository::fragment::{Cut, RepoFragments, WindowShape};
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{Mode, Queries, Query, QueryForm};
use repoformer_text::language::Language;
use repoformer_text::tokenize::P50k;

use super::corpus::REPOSITORY;
use super::sets::Sets;

/// Number of queries, and of tasks, in a run.
pub const QUERIES: usize = 200;

/// Numbers of windows in the collections, if the corpus has as many.
const SIZES: [usize; 4] = [2_000, 5_000, 50_000, 500_000];

/// Token sets of the windows, in the order of the shuffled files, and of the queries.
pub struct Growth {
    pub windows: RepoFragments,
    pub sets: Sets,
    pub queries: TokenSets,
}

pub static GROWTH: LazyLock<Growth> = LazyLock::new(|| {
    let files = shuffled(&REPOSITORY.files);
    // At most one file in eight, so that a small corpus keeps enough files.
    let held_out = QUERIES.min(files.len() / 8).max(1);
    let long_enough = |file: &&SourceFile| file.lines().count() >= 40;
    let held_out: Vec<_> = files.iter().copied().filter(long_enough).take(held_out).collect();
    let queries = TokenSets::of_queries(&queries(&held_out), &P50k);
    let kept = files.into_iter().filter(|file| !held_out.iter().any(|held| held.path == file.path));
    let repository = Repository { name: "all".into(), files: kept.cloned().collect() };
    let cut = Cut::Windows(WindowShape::default());
    let windows = RepoFragments::cut(repository, Language::Python, cut);
    let sets = Sets::of(&TokenSets::of_fragments(&windows, &P50k));
    Growth { windows, sets, queries }
});

/// Returns the sizes for which the corpus has enough windows; for a smaller corpus, the number of all its windows.
pub fn sizes() -> Vec<usize> {
    static FITTING: LazyLock<Vec<usize>> = LazyLock::new(|| {
        let all = GROWTH.sets.len();
        let (fitting, rest): (Vec<_>, Vec<_>) = SIZES.into_iter().partition(|size| *size <= all);
        if !rest.is_empty() {
            eprintln!(
                "{rest:?} windows are left out: the corpus has {all} (REPOFORMER_CORPUS=DIR takes another)"
            );
        }
        if fitting.is_empty() { vec![all] } else { fitting }
    });
    FITTING.clone()
}

/// Returns the files in an order that depends only on their paths and separates neighbours.
pub fn shuffled(files: &[SourceFile]) -> Vec<&SourceFile> {
    let mut files: Vec<_> = files.iter().collect();
    files.sort_by_key(|file| *blake3::hash(file.path.as_bytes()).as_bytes());
    files
}

/// Returns queries at even distances, the same number from each file.
fn queries(files: &[&SourceFile]) -> Queries {
    let shape = WindowShape::default();
    let query = |row: usize| {
        let file = files[row % files.len()];
        let lines = file.lines();
        let (turn, turns) = (row / files.len() + 1, QUERIES.div_ceil(files.len()) + 1);
        let end = shape.window_size + (lines.count() - shape.window_size) * turn / turns;
        let start = end - shape.window_size;
        Query {
            row: row as u32,
            sample: 0,
            task_id: row.to_string(),
            path: file.path.clone(),
            line_no: end as u32,
            context_start: 0,
            start: start as u32,
            end: end as u32,
            hole: shape.window_size as u32,
            text: lines.range(start, end).to_owned(),
        }
    };
    Queries {
        repository: "all".into(),
        mode: Mode::LeftContext,
        form: QueryForm::Window,
        length: shape.window_size as u32,
        shape: Some(shape),
        queries: (0..QUERIES).map(query).collect(),
    }
}
