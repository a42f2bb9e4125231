//! Compares the results after each of several edits with an index of all files that is built again each time.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use repoformer_text::language::Language;
use repoformer_text::tokenize::P50k;

use super::{Layer, LiveFile, LiveScratch, Snapshot};
use crate::repository::corpus::{Repository, SourceFile};
use crate::repository::fragment::{ChunkShape, Cut, FragmentFile, RepoFragments, WindowShape};
use crate::retrieve::query::Query;
use crate::retrieve::rank::{Ranker, Vocabulary, Words};
use crate::retrieve::search::{
    FragmentVectors, QueryVectors, RepositoryIndex, Score, SearchSettings,
};
use crate::retrieve::vector::TokenSets;
use crate::retrieve::visibility::{HoleGuard, HoleView, RankLimits, Ties, Visibility};
use crate::retrieve::{Mode, Queries, QueryForm};

/// Contents of a repository by path, and the identity of each file on disk.
type Files = BTreeMap<String, (String, u64)>;

/// The parts of a hit that a prompt shows: path, number and lines of its places, its text and its score.
type Shown = (Vec<(String, u32, u32, u32)>, String, Score);

fn fragments(files: &Files, cut: Cut) -> (RepoFragments, Vec<u64>) {
    let same: Vec<u64> = files.values().map(|(_, same)| *same).collect();
    let first = |one: u64| same.iter().position(|same| *same == one).unwrap() as u32;
    let sources = files.iter().map(|(path, (text, same))| SourceFile {
        path: path.clone(),
        text: text.clone(),
        same_as: first(*same),
    });
    let repository = Repository { name: "r".into(), files: sources.collect() };
    (RepoFragments::cut(repository, Language::Python, cut), same)
}

fn vectors(fragments: &RepoFragments, settings: &SearchSettings) -> FragmentVectors {
    if settings.by_p50k_sets() {
        FragmentVectors::Sets(TokenSets::of_fragments(fragments, &P50k))
    } else {
        FragmentVectors::Terms(Words::of_terms(&fragments.texts(), &settings.vocabulary))
    }
}

fn live(path: &str, (text, same): (&str, u64), cut: Cut) -> LiveFile {
    let source = SourceFile { path: path.into(), text: text.into(), same_as: 0 };
    LiveFile { file: FragmentFile::new(source, cut), same }
}

fn shown(
    fragments: &RepoFragments,
    query: &Query,
    settings: &SearchSettings,
    found: &crate::retrieve::RankedFragments,
) -> Vec<Shown> {
    let hole = HoleView::of_query(query, fragments, settings.visibility.guard());
    let of_hit = |hit: &crate::retrieve::Hit| {
        let places = hole.named_places(hit.fragment);
        let place = |p: &crate::repository::fragment::FragmentPlace| {
            (fragments.files[p.file as usize].path.clone(), p.number, p.start, p.end)
        };
        let text = fragments.text(hit.fragment as usize).to_owned();
        (places.iter().map(place).collect(), text, hit.score)
    };
    found.hits.iter().map(of_hit).collect()
}

/// Returns the hits of a new index of all files.
fn anew(files: &Files, query: &Query, settings: &SearchSettings, cut: Cut) -> Vec<Shown> {
    let (fragments, _) = fragments(files, cut);
    let queries = Queries {
        repository: "r".into(),
        mode: Mode::LeftContext,
        form: QueryForm::LastLines,
        length: 20,
        shape: None,
        queries: vec![query.clone()],
    };
    let index = RepositoryIndex::new(&fragments, vectors(&fragments, settings), settings);
    let sets = TokenSets::of_queries(&queries, &P50k);
    let found =
        index.search(&queries, QueryVectors { sets: Some(&sets), ..QueryVectors::default() });
    shown(&fragments, query, settings, &found.found[0])
}

#[derive(Debug, Clone)]
enum Edit {
    Save(usize, String),
    Remove(usize),
    Clear,
    Open(usize, String),
    Close,
}

const PATHS: [&str; 7] =
    ["r/a.py", "r/b/a.py", "r/b/c.py", "r/b/d/e.py", "r/b.py", "r/m.py", "r/z.py"];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof!["[ab]{1}", "x = [abc]{1}\\([ab]\\)", Just(String::new())],
        0..14,
    )
    .prop_map(|lines| lines.join("\n"))
}

fn edit() -> impl Strategy<Value = Edit> {
    let path = 0..PATHS.len();
    prop_oneof![
        4 => (path.clone(), text()).prop_map(|(path, text)| Edit::Save(path, text)),
        1 => path.clone().prop_map(Edit::Remove),
        1 => Just(Edit::Clear),
        2 => (path, text()).prop_map(|(path, text)| Edit::Open(path, text)),
        1 => Just(Edit::Close),
    ]
}

fn settings(kind: usize, top_k: usize) -> (SearchSettings, Cut) {
    let other_files = Visibility::OtherFiles { limits: RankLimits::default(), ties: Ties::Nearest };
    let windows =
        Cut::Windows(WindowShape { window_size: 4, slice_size: 2, ..WindowShape::default() });
    let chunks = Cut::Chunks(ChunkShape { size: 3, stride: 2 });
    let p50k = Vocabulary::Tokens(repoformer_text::tokenize::model::Tokenizer::p50k_base());
    let (visibility, vocabulary, cut) = match kind {
        0 => (Visibility::Guarded(HoleGuard::Strict), p50k, windows),
        1 => (Visibility::Guarded(HoleGuard::Reference), Vocabulary::Words, windows),
        2 => (other_files, Vocabulary::Words, chunks),
        3 => (other_files, p50k, windows),
        _ => (Visibility::Guarded(HoleGuard::Strict), Vocabulary::Words, chunks),
    };
    (SearchSettings { ranker: Ranker::Jaccard, vocabulary, visibility, top_k }, cut)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn equals_an_index_made_anew_after_each_edit(
        first in prop::collection::vec(text(), PATHS.len()),
        linked in any::<bool>(),
        edits in prop::collection::vec((edit(), 0..PATHS.len(), "x = [abc]{1}\\([ab]\\)|", 0_u32..9), 1..8),
        kind in 0_usize..5,
        top_k in prop_oneof![Just(1_usize), Just(3), Just(50)],
    ) {
        let (settings, cut) = settings(kind, top_k);
        // One file has two names, and the last path does not exist yet.
        let same = |at: usize| if linked && at == 1 { 0 } else { at as u64 };
        let mut files: Files = PATHS.iter().zip(&first).enumerate().take(PATHS.len() - 1)
            .map(|(at, (path, text))| ((*path).to_owned(), (text.clone(), same(at))))
            .collect();
        let (base, ids) = fragments(&files, cut);
        let base_vectors = vectors(&base, &settings);
        let mut settled = Snapshot::new(Layer::new(base, ids, base_vectors), settings.clone());
        let mut open: Option<(usize, String, Snapshot)> = None;
        for (edit, of_file, text, context_start) in edits {
            match edit {
                Edit::Save(at, text) => {
                    settled = settled.with(vec![live(PATHS[at], (&text, same(at)), cut)], &[]);
                    files.insert(PATHS[at].into(), (text, same(at)));
                }
                Edit::Remove(at) => {
                    settled = settled.with(Vec::new(), &[PATHS[at].into()]);
                    files.remove(PATHS[at]);
                }
                Edit::Clear => {
                    settled = settled.with(Vec::new(), &PATHS.map(str::to_owned));
                    files.clear();
                }
                Edit::Open(at, text) => {
                    let snapshot = settled.with_open(live(PATHS[at], (&text, same(at)), cut), None);
                    open = Some((at, text, snapshot));
                }
                Edit::Close => open = None,
            }
            let mut now = files.clone();
            let mut snapshot = settled.clone();
            if let Some((at, text, before)) = &mut open {
                let file = live(PATHS[*at], (text, same(*at)), cut);
                *before = settled.with_open(file, Some(before));
                snapshot = before.clone();
                now.insert(PATHS[*at].into(), (text.clone(), same(*at)));
            }
            let query = Query {
                row: 0, sample: 0, task_id: String::new(), path: PATHS[of_file].into(), line_no: 0,
                context_start, start: 0, end: 0, hole: 0, text: text.to_owned(),
            };
            let live = Arc::new(snapshot).search(&query, &mut LiveScratch::default());
            let found = shown(&live.excerpt, &query, &settings, &live.found);
            prop_assert_eq!(found, anew(&now, &query, &settings, cut));
        }
    }
}
