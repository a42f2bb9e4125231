use std::path::PathBuf;

use proptest::prelude::*;
use repoformer_store::artifact::Payload;
use repoformer_text::language::Language;
use repoformer_text::lines::strip;
use repoformer_text::tokenize::P50k;
use repoformer_text::tokenize::model::Tokenizer;

use super::definitions::DefiningFragment;
use super::rank::{self, Ranker, Vocabulary, Words};
use super::vector::TokenSets;
use super::visibility::VisibleFragments;
use super::*;
use crate::repository::corpus::{Repository, SourceFile};
use crate::repository::fragment::{ChunkShape, Cut, RepoFragments, WindowShape};
use crate::task::{Task, TaskSet};

fn file(path: &str, text: &str, same_as: u32) -> SourceFile {
    SourceFile { path: path.into(), text: text.into(), same_as }
}

fn repository(files: Vec<SourceFile>) -> Repository {
    Repository { name: "r".into(), files }
}

fn cut(files: Vec<SourceFile>, size: usize, stride: usize) -> RepoFragments {
    let cut = Cut::Chunks(ChunkShape { size, stride });
    RepoFragments::cut(repository(files), Language::Python, cut)
}

fn windows(files: Vec<SourceFile>, window_size: usize, slice_size: usize) -> RepoFragments {
    let shape = WindowShape { window_size, slice_size, ..WindowShape::default() };
    RepoFragments::cut(repository(files), Language::Python, Cut::Windows(shape))
}

/// Returns the visibility of other files' fragments, within limits.
fn other_files(files: usize, chunks: usize) -> Visibility {
    Visibility::OtherFiles { limits: RankLimits { files, chunks }, ties: Ties::Nearest }
}

fn p50k() -> Vocabulary {
    Vocabulary::Tokens(Tokenizer::p50k_base())
}

/// Indexes the fragments' terms, and searches.
fn search(fragments: &RepoFragments, queries: &Queries, settings: &SearchSettings) -> Retrieval {
    let words = Words::of_terms(&fragments.texts(), &settings.vocabulary);
    RepositoryIndex::new(fragments, FragmentVectors::Terms(words), settings)
        .search(queries, QueryVectors::default())
}

/// Searches with sets of `p50k_base` tokens.
fn search_sets(
    fragments: &RepoFragments,
    queries: &Queries,
    settings: &SearchSettings,
) -> Retrieval {
    let vectors = FragmentVectors::Sets(TokenSets::of_fragments(fragments, &P50k));
    let sets = TokenSets::of_queries(queries, &P50k);
    let query_vectors = QueryVectors { sets: Some(&sets), ..QueryVectors::default() };
    RepositoryIndex::new(fragments, vectors, settings).search(queries, query_vectors)
}

/// Makes the queries of a mode, each with this right context; mode rg-rg searches with the prediction.
fn queries(
    form: QueryForm,
    mode: Mode,
    length: usize,
    tasks: &TaskSet,
    fragments: &RepoFragments,
    right: &str,
    prediction: &str,
) -> Queries {
    let settings = QuerySettings { mode, form, length };
    let predictions: Vec<Vec<String>> =
        tasks.tasks().iter().map(|_| vec![prediction.into()]).collect();
    let predictions = (mode == Mode::Prediction).then_some(&predictions[..]);
    let made = Queries::make(settings, tasks, fragments, |_| Some(right), predictions);
    assert!(made.skipped.is_empty(), "{:?}", made.skipped);
    made.queries
}

fn tasks(tasks: Vec<Task>) -> TaskSet {
    TaskSet::new(PathBuf::from("t.jsonl"), tasks)
}

/// Returns the query of a task in this file.
fn query_of(fragments: &RepoFragments, path: &str) -> Query {
    let tasks = tasks(vec![Task::new("r/0".into(), path, 0, 0, "x", "")]);
    let (form, mode) = (QueryForm::LastLines, Mode::LeftContext);
    queries(form, mode, 1, &tasks, fragments, "", "").queries.remove(0)
}

/// Returns the fragments that the query of a file sees.
fn seen(fragments: &RepoFragments, visibility: Visibility, path: &str) -> VisibleFragments {
    View::new(fragments, visibility).of_query(&query_of(fragments, path))
}

/// Returns the lines of generated files: each non-blank line names its file and its number in the file, and some begin
/// functions.
fn numbered_lines(lines: &[(usize, usize, String)]) -> Vec<String> {
    let mut texts = vec![Vec::new(); 4];
    for (file, kind, word) in lines {
        let number = texts[*file].len();
        texts[*file].push(match kind {
            0 => format!("def {word}(): # f{file}_{number}_\n"),
            1 => format!("    {word}() # f{file}_{number}_\n"),
            2 => format!("{word} = 1 # f{file}_{number}_\n"),
            _ => "\n".to_owned(),
        });
    }
    texts.iter().map(|lines| lines.concat()).collect()
}

/// Returns repository files with these texts, and a link to one of them.
fn files_with_link(texts: &[String], linked: usize) -> Vec<SourceFile> {
    let numbered = texts.iter().enumerate();
    let mut files: Vec<SourceFile> =
        numbered.map(|(n, text)| file(&format!("r/{n}.py"), text, n as u32)).collect();
    files.push(file("r/link.py", &texts[linked], linked as u32));
    files
}

/// Returns the fragments shown for the first query, with any alignment.
fn shown(
    fragments: &RepoFragments,
    queries: &Queries,
    ranker: Ranker,
    vocabulary: Vocabulary,
    visibility: Visibility,
) -> Vec<(Align, String)> {
    let settings = SearchSettings { ranker, vocabulary, visibility, top_k: 100 };
    let found = &search(fragments, queries, &settings).found[0];
    let of = |align: Align| {
        let settled = align.resolve(queries.form, queries.mode);
        let shown =
            FragmentTextSettings { align: settled, most: 100, full_paths: false, visibility };
        let texts = FragmentText::new(fragments, shown, |_| true);
        texts.collect(&queries.queries[0], found).into_iter().map(move |shown| (align, shown.text))
    };
    Align::ALL.into_iter().flat_map(of).collect()
}

/// Runs the reference program's loop: lines end with `\n`, blank ones are dropped, and a chunk without a word gets no number.
fn slow(text: &str, size: usize, stride: usize) -> Vec<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let lines: Vec<&str> = lines.into_iter().filter(|l| !strip(l).is_empty()).collect();
    let mut chunks = Vec::new();
    let mut start = 0;
    while start < lines.len() {
        let chunk = lines[start..lines.len().min(start + size)].join("\n");
        if chunk.chars().any(|c| c.is_alphanumeric() || c == '_') {
            chunks.push(chunk);
        }
        start += stride;
    }
    chunks
}

proptest! {
    #[test]
    fn equals_the_reference_loop(
        texts in prop::collection::vec("[ab( \n\u{c}]{0,60}", 0..5), size in 1_usize..6, stride in 1_usize..6,
    ) {
        let numbered = texts.iter().enumerate();
        let files = numbered.map(|(n, text)| file(&format!("r/{n}.py"), text, n as u32)).collect();
        let chunks = cut(files, size, stride);
        prop_assert!(chunks.check().is_ok());
        let all: Vec<String> = texts.iter().flat_map(|text| slow(text, size, stride)).collect();
        let fast: Vec<&str> = (0..chunks.len()).map(|chunk| chunks.text(chunk)).collect();
        prop_assert_eq!(fast, all);
    }

    /// For any results and any alignment, no part of the task's own file is shown under any of its names.
    #[test]
    fn no_alignment_shows_the_own_file(
        lines in prop::collection::vec((0_usize..4, 0_usize..4, "[a-d]{1,3}"), 1..60),
        own in 0_usize..4, size in 1_usize..5, stride in 1_usize..4, form in 1_usize..9, limit in 1_usize..30,
    ) {
        let texts = numbered_lines(&lines);
        let chunks = cut(files_with_link(&texts, own), size, stride);
        let task = Task::new("r/0".into(), &format!("r/{own}.py"), 0, 0, "a()", &texts[own]);
        let form = QueryForm::ALL[form];
        let queries = queries(form, form.mode(), 3, &tasks(vec![task]), &chunks, "b\nc\n", "c\nd");
        let visibility = other_files(limit, limit);
        for (align, text) in shown(&chunks, &queries, Ranker::Jaccard, Vocabulary::Words, visibility) {
            prop_assert!(!text.contains(&format!("f{own}_")), "{} shows {}", align, text);
        }
    }

    /// Windows of the own file may be shown if they end before the prompt begins. No line at or after the start of the prompt
    /// is shown, for any ranker and any alignment.
    #[test]
    fn no_alignment_of_windows_shows_the_prompt_or_the_hole(
        lines in prop::collection::vec((0_usize..4, 0_usize..3, "[a-d]{1,3}"), 4..60), own in 0_usize..4,
        window_size in 1_usize..9, slice_size in 1_usize..5, (at, context) in (0_usize..60, 0_usize..60),
        ranker in prop_oneof![Just(Ranker::Jaccard), Just(Ranker::Bm25), Just(Ranker::TfIdf)],
        vocabulary in prop_oneof![Just(Vocabulary::Words), Just(p50k())],
        form in 0_usize..9, mode in prop_oneof![Just(Mode::LeftContext), Just(Mode::GroundTruth), Just(Mode::Prediction)],
    ) {
        let texts = numbered_lines(&lines);
        let count = texts[own].lines().count();
        prop_assume!(count > 0);
        let windows = windows(files_with_link(&texts, own), window_size, slice_size);
        let line_no = at % count;
        let context_start = context.min(line_no);
        let own_lines: Vec<&str> = texts[own].split_inclusive('\n').collect();
        let prompt = own_lines[context_start..line_no].concat();
        let target = own_lines[line_no].trim_end();
        let task = Task::new("r/0".into(), &format!("r/{own}.py"), context_start, line_no, target, &prompt);
        let form = QueryForm::ALL[form].of_mode(mode);
        let right = own_lines[line_no + 1..].concat();
        let queries = queries(form, mode, 3, &tasks(vec![task]), &windows, &right, target);
        let visibility = Visibility::Guarded(HoleGuard::Strict);
        for (align, text) in shown(&windows, &queries, ranker, vocabulary, visibility) {
            for line in context_start..count {
                prop_assert!(!text.contains(&format!("f{own}_{line}_")), "{} shows {}", align, text);
            }
        }
    }

    /// The exact index of sets and the ranking of every window separately give the same windows, scores and order.
    #[test]
    fn sets_find_what_ranking_every_window_finds(
        lines in prop::collection::vec((0_usize..4, 0_usize..3, "[a-c]{1,2}"), 4..60), own in 0_usize..4,
        window_size in 1_usize..7, slice_size in 1_usize..4, (at, context) in (0_usize..60, 0_usize..60),
        top_k in 0_usize..30, guard in prop_oneof![Just(HoleGuard::Strict), Just(HoleGuard::Reference)],
    ) {
        // Lines repeat, so that windows merge and scores are equal.
        let mut texts = vec![String::new(); 4];
        for (file, kind, word) in &lines {
            texts[*file].push_str(&[format!("def {word}():\n"), format!("    {word}()\n"), "\n".to_owned()][*kind]);
        }
        let count = texts[own].lines().count();
        prop_assume!(count > 0);
        let windows = windows(files_with_link(&texts, own), window_size, slice_size);
        let line_no = at % count;
        let task = Task::new("r/0".into(), &format!("r/{own}.py"), context.min(line_no), line_no, "a", "");
        let other = Task { row: 1, path: "r/link.py".into(), ..task.clone() };
        let tasks = tasks(vec![task, other]);
        let visibility = Visibility::Guarded(guard);
        let view = View::new(&windows, visibility);
        for mode in [Mode::LeftContext, Mode::GroundTruth] {
            let queries = queries(QueryForm::Window, mode, 0, &tasks, &windows, "", "");
            for vocabulary in [Vocabulary::Words, p50k()] {
                let ranker = Ranker::Jaccard;
                let settings = SearchSettings { ranker, vocabulary: vocabulary.clone(), visibility, top_k };
                prop_assert!(settings.by_sets());
                let fast = search(&windows, &queries, &settings);
                if settings.by_p50k_sets() {
                    prop_assert_eq!(&search_sets(&windows, &queries, &settings), &fast);
                }
                let (texts, ranker) = (windows.texts(), [Ranker::Jaccard]);
                let words = Words::of_terms(&texts, &vocabulary);
                let slow = rank::DocumentIndex::new(words, &texts, &ranker, Language::Python, vocabulary);
                for (query, fast) in queries.queries.iter().zip(&fast.found) {
                    let seen = view.of_query(query);
                    let wanted = rank::RankQuery { lines: query.lines().collect(), ..rank::RankQuery::default() };
                    let slow = slow.rank(&ranker[0], &wanted, &seen.priority, top_k, &mut Default::default());
                    let slow: Vec<(u32, f64)> = slow.iter().map(|hit| (hit.document, hit.score)).collect();
                    let fast: Vec<(u32, f64)> = fast.hits.iter().map(|hit| (hit.fragment, hit.score.value())).collect();
                    prop_assert_eq!(fast, slow);
                }
            }
        }
    }
}

#[test]
fn near_files_come_first_and_the_own_one_not_at_all() {
    // Computed by hand: from r/x/own.py, the distance to r/x/… is 0, to r/… 1, and to r/y/… 2.
    let names = ["r/a.py", "r/x/m.py", "r/x/own.py", "r/x/s.py", "r/y/a.py"];
    let numbered = (0..).zip(names);
    let files = numbered.map(|(n, name)| file(name, "one\ntwo\n", n)).collect();
    let chunks = cut(files, 1, 1);
    let all = Visibility::OtherFiles { limits: RankLimits::default(), ties: Ties::Nearest };
    let sight = seen(&chunks, all, "r/x/own.py");
    let unseen = u32::MAX;
    assert_eq!(sight.priority, [4, 5, 0, 1, unseen, unseen, 2, 3, 6, 7]);
    assert_eq!(sight.count, 8);
    let sight = seen(&chunks, other_files(3, 5), "r/x/own.py");
    let few = [4, unseen, 0, 1, unseen, unseen, 2, 3, unseen, unseen];
    assert_eq!(sight.priority, few, "the fourth file and the sixth chunk are not ranked");
}

#[test]
fn the_reference_sorts_names_and_texts_apart() {
    let lines: String = (0..11).map(|n| format!("w{}\n", n % 3)).collect();
    let chunks = cut(vec![file("r/a.py", &lines, 0), file("r/own.py", "x\n", 1)], 1, 1);
    let visibility =
        Visibility::OtherFiles { limits: RankLimits::default(), ties: Ties::Reference };
    let sight = seen(&chunks, visibility, "r/own.py");
    // `r/a.py|9` is the greatest name; `r/a.py|10` comes after `r/a.py|2` and before `r/a.py|1`.
    let mut names: Vec<usize> = (0..11).collect();
    names.sort_by_key(|chunk| sight.priority[*chunk]);
    assert_eq!(names, [9, 8, 7, 6, 5, 4, 3, 2, 10, 1, 0]);
    let texts = sight.text_priority.unwrap();
    let mut by_text: Vec<usize> = (0..11).collect();
    by_text.sort_by_key(|chunk| texts[*chunk]);
    let of_text = |n: &usize| chunks.text(*n).to_owned();
    assert_eq!(of_text(&by_text[0]), "w2");
    assert_eq!(of_text(&by_text[10]), "w0");
}

fn made(form: QueryForm, length: usize, filled: Option<&str>) -> (Vec<String>, u32) {
    let task = Task::new("r/0".into(), "r/a.py", 0, 0, "t1\n\nt2", "l1\n \nl2\nl3\nl4\n");
    let chunks = cut(vec![file("r/a.py", "x\n", 0)], 1, 1);
    let (mode, right) = (form.mode(), "\nr1\n\nr2\nr3\nr4\n");
    assert_eq!(mode == Mode::Prediction, filled.is_some());
    let tasks = tasks(vec![task]);
    let made = queries(form, mode, length, &tasks, &chunks, right, filled.unwrap_or_default());
    let query = &made.queries[0];
    (query.lines().map(str::to_owned).collect(), query.hole)
}

#[test]
fn queries_are_the_lines_that_their_form_says() {
    // Computed by hand from the definitions, with n = 4; blank lines never count.
    let check = |form, filled, lines: &str, hole| {
        let lines: Vec<String> = lines.split(' ').map(str::to_owned).collect();
        assert_eq!(made(form, 4, filled), (lines, hole), "{form}");
    };
    check(QueryForm::LastLines, None, "l1 l2 l3 l4", 4);
    check(QueryForm::FirstLines, None, "r1 r2 r3 r4", 0);
    check(QueryForm::LeftRight, None, "l3 l4 r1 r2", 2);
    check(QueryForm::GroundTruth, None, "l3 l4 t1 t2", 4);
    check(QueryForm::Prediction, Some("p1\n\np2"), "l3 l4 p1 p2", 4);
    let six = Some("p1\np2\np3\np4\np5\np6");
    check(QueryForm::Prediction, six, "p1 p2 p3 p4", 4);
    check(QueryForm::PredictionLeftRight, Some("p1\np2"), "l3 l4 p1 r1", 3);
    check(QueryForm::PredictionLeftRight, Some(""), "l3 l4 r1 r2", 2);
    // k = 2 target lines: 10 lines of either context.
    check(QueryForm::Surrounding, None, "l1 l2 l3 l4 t1 t2 r1 r2 r3 r4", 6);
    check(QueryForm::SurroundingOnly, None, "l1 l2 l3 l4 r1 r2 r3 r4", 4);
    let (odd, hole) = made(QueryForm::LeftRight, 5, None);
    assert_eq!((odd.join(" ").as_str(), hole), ("l3 l4 r1 r2 r3", 2));
}

#[test]
fn alignment_stays_in_the_file() {
    let chunks = cut(vec![file("r/a.py", "a\nb\nc\nd\ne\n", 0), file("r/b.py", "x\n", 1)], 2, 2);
    // Chunks of a.py: ab, cd, e. Chunk of b.py: x.
    let task = Task::new("r/0".into(), "r/none.py", 0, 0, "", "");
    let hole = HoleView::for_task(&task, &chunks, HoleGuard::Strict);
    let shown = |chunk, align| {
        FileLines::from_place(chunks.first_place(chunk), align, &hole, |_| None).text(&chunks)
    };
    assert_eq!(shown(0, Align::Next), "c\nd");
    assert_eq!(shown(2, Align::Next), "e", "the last is shown itself, not the next file");
    assert_eq!(shown(1, Align::Previous), "a\nb");
    assert_eq!(shown(3, Align::Previous), "x");
    assert_eq!(shown(1, Align::Extend), "d\ne", "no further than the file reaches");
    assert_eq!(shown(1, Align::None), "c\nd");
}

#[test]
fn hits_name_the_definitions_that_they_were_found_for() {
    let files = ["a\nq", "b\nq x", "q x y", "c"];
    let files =
        files.iter().enumerate().map(|(n, text)| file(&format!("r/{n}.py"), text, n as u32));
    let mut files: Vec<SourceFile> = files.collect();
    files.push(file("r/own.py", "q x y z", 4));
    let chunks = cut(files, 5, 5);
    let tasks = tasks(vec![Task::new("r/0".into(), "r/own.py", 0, 0, "w", "q x y z\n")]);
    let (form, mode) = (QueryForm::LastLines, Mode::LeftContext);
    let queries = queries(form, mode, 1, &tasks, &chunks, "", "");
    let at = |fragment: u32| FileLines { file: fragment, start: 0, end: 1 };
    let defining = |fragment, score| DefiningFragment { fragment, score, definition: at(fragment) };
    let found = |ranker: &str, defining: Vec<DefiningFragment>| {
        let settings = SearchSettings {
            ranker: ranker.parse().unwrap(),
            vocabulary: p50k(),
            visibility: other_files(usize::MAX, usize::MAX),
            top_k: 9,
        };
        let words = Words::of_terms(&chunks.texts(), &settings.vocabulary);
        let definitions = move |_: usize| defining.clone();
        let vectors = QueryVectors { definitions: Some(&definitions), ..QueryVectors::default() };
        let index = RepositoryIndex::new(&chunks, FragmentVectors::Terms(words), &settings);
        let found = index.search(&queries, vectors).found.remove(0);
        let hits = found.hits.iter();
        hits.map(|hit| (hit.fragment, hit.definition)).collect::<Vec<_>>()
    };
    let all = vec![defining(4, 9.0), defining(3, 2.0), defining(1, 1.0)];
    assert_eq!(found("definitions", all.clone()), [(3, Some(at(3))), (1, Some(at(1)))]);
    // By similarity: 2, 1, 0, 3. The own file is not ranked, so that 3 is first by definitions and last by similarity, and 1 is
    // second by both.
    let fused = found("rrf:definitions,jaccard", all);
    let of = |wanted: u32| fused.iter().find(|(fragment, _)| *fragment == wanted).unwrap().1;
    assert_eq!([0, 1, 2, 3].map(of), [None, None, None, Some(at(3))]);
}

#[test]
fn definitions_are_shown_by_their_signature_or_whole() {
    let text = concat!(
        "LIMITS = {\n    'a': 1,\n}\n\n@cached\ndef read(\n    path,\n):\n    \"\"\"Reads a file.\n\n    All.\n",
        "    \"\"\"\n    return open(path)\n\nclass Store:\n    \"\"\"Keeps.\"\"\"\n    size: int\n\n",
        "    def write(self): pass\n\n    def last(self):\n        x = 1\n        x += 2\n        x += 3\n",
        "        x += 4\n        x += 5\n        x += 6\n        return 1\n",
    );
    let windows = WindowShape { window_size: 4, slice_size: 1, ..WindowShape::default() };
    let cut =
        |cut| RepoFragments::cut(repository(vec![file("r/a.py", text, 0)]), Language::Python, cut);
    let query = |fragments: &RepoFragments| Query {
        path: "r/none.py".into(),
        ..query_of(fragments, "r/a.py")
    };
    for (cut, has_blank_lines) in [
        (cut(Cut::Windows(windows)), true),
        (cut(Cut::Chunks(ChunkShape { size: 4, stride: 1 })), false),
    ] {
        let lines: Vec<&str> = cut.files[0].lines.iter().collect();
        let row =
            |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap() as u32;
        let shown = |first: &str, end: u32, align, fits: bool| {
            let start = row(first);
            let definition = Some(FileLines { file: 0, start, end });
            let hits = vec![Hit { fragment: 0, text_of: 0, score: Score::Value(1.0), definition }];
            let found = RankedFragments { row: 0, sample: 0, seen: Some(1), hits };
            let settings = FragmentTextSettings {
                align,
                most: 10,
                full_paths: false,
                visibility: other_files(usize::MAX, usize::MAX),
            };
            let texts = FragmentText::new(&cut, settings, move |_| fits);
            let all = texts.collect_with_places(&query(&cut), &found);
            let piece = all[0].0;
            (lines[piece.start as usize], lines[piece.end as usize - 1])
        };
        let end = lines.len() as u32;
        let all = [Align::Signature, Align::Enclosing, Align::None];
        let of = |first, end| all.map(|align| shown(first, end, align, true));
        let first = cut.first_place(0);
        let itself = (lines[first.start as usize], lines[first.end as usize - 1]);
        let head = if has_blank_lines { "    \"\"\"Reads a file." } else { "    \"\"\"" };
        assert_eq!(
            of("def read", row("class")),
            [("@cached", head), ("@cached", "    return open(path)"), itself]
        );
        // For a class, the first ten lines.
        let tenth = lines[row("class") as usize + 9];
        assert_eq!(
            of("class", end),
            [("class Store:", tenth), ("class Store:", "        return 1"), itself]
        );
        assert_eq!(of("    def last", end)[0], ("    def last(self):", "    def last(self):"));
        // A definition that is neither a function nor a class: its first lines, or else the fragment.
        assert_eq!(of("LIMITS", 3), [("LIMITS = {", "}"), itself, itself]);
        assert_eq!(shown("class", end, Align::Enclosing, false), itself, "it does not fit");
    }
}

#[test]
fn fragments_snap_to_the_function_that_holds_them() {
    let text = concat!(
        "import os\n\nclass Store:\n    def read(self, path):\n        with open(path) as stream:\n",
        "            return stream\n\n    def write(self):\n        pass\n",
    );
    let chunks = cut(vec![file("r/a.py", text, 0)], 2, 1);
    // Non-blank lines: 0 import, 1 class, 2-4 read, 5-6 write.
    let found = |chunk: u32| RankedFragments {
        row: 0,
        sample: 0,
        seen: Some(1),
        hits: vec![Hit {
            fragment: chunk,
            text_of: chunk,
            score: Score::Value(1.0),
            definition: None,
        }],
    };
    let query = Query { path: "r/none.py".into(), ..query_of(&chunks, "r/a.py") };
    let shown = |chunk, most: usize| {
        let settings = FragmentTextSettings {
            align: Align::Enclosing,
            most: 10,
            full_paths: false,
            visibility: other_files(usize::MAX, usize::MAX),
        };
        let fits = move |text: &str| text.lines().count() <= most;
        let texts = FragmentText::new(&chunks, settings, fits);
        texts.collect(&query, &found(chunk))[0].text.clone()
    };
    assert!(shown(2, 10).starts_with("    def read") && shown(2, 10).ends_with("return stream"));
    assert_eq!(shown(4, 10).lines().count(), 6, "the class holds both functions");
    assert!(
        shown(4, 3).starts_with("    def write"),
        "the class is too long: the function around the middle"
    );
    assert_eq!(shown(2, 2), chunks.text(2), "nothing fits: the chunk itself");
    assert_eq!(
        shown(0, 5),
        chunks.text(0),
        "no function around an import, and the class is too long"
    );
}
