use foldhash::HashSet;
use proptest::prelude::*;
use repoformer_store::jsonl::{self, Object};
use repoformer_text::language::Language;
use repoformer_text::tokenize::model::Tokenizer;
use serde_json::{Value, json};

use super::*;
use crate::repository::corpus::{Repository, SourceFile};
use crate::repository::fragment::{Cut, WindowShape};
use crate::retrieve::rank::{Ranker, Vocabulary};
use crate::retrieve::records;
use crate::retrieve::vector::TokenSets;
use crate::retrieve::{
    Align, FragmentVectors, HoleGuard, Queries, QueryForm, QuerySettings, QueryVectors,
    RepositoryIndex, Score, SearchSettings, Visibility,
};
use crate::task::TaskSet;

fn windows(files: &[(&str, String)], shape: WindowShape) -> RepoFragments {
    let file = |(i, (name, text)): (usize, &(&str, String))| SourceFile {
        path: format!("r/{name}"),
        text: text.clone(),
        same_as: i as u32,
    };
    let mut files: Vec<SourceFile> = files.iter().enumerate().map(file).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    (0..files.len()).for_each(|i| files[i].same_as = i as u32);
    let repository = Repository { name: "r".into(), files };
    RepoFragments::cut(repository, Language::Python, Cut::Windows(shape))
}

fn hit(fragment: u32) -> Hit {
    let score = Score::Jaccard { overlap: 1, union: 2 };
    Hit { fragment, text_of: fragment, score, definition: None }
}

fn found(hits: Vec<Hit>) -> RankedFragments {
    RankedFragments { row: 0, sample: 0, seen: None, hits }
}

fn shown(align: Align, guard: HoleGuard) -> FragmentTextSettings {
    FragmentTextSettings {
        align,
        most: usize::MAX,
        full_paths: false,
        visibility: Visibility::Guarded(guard),
    }
}

/// Returns the settings of RepoCoder's prompts in a mode.
fn settings(mode: Mode, guard: HoleGuard, budget: RepoCoderBudget) -> BuilderSettings {
    BuilderSettings {
        mode,
        form: QueryForm::Window,
        shown: shown(Align::Auto.resolve(QueryForm::Window, mode), guard),
        budget,
    }
}

fn numbered(name: &str, count: usize) -> String {
    (0..count).map(|n| format!("{name} = {n}\n")).collect()
}

#[test]
fn the_head_is_twenty_tokens() {
    let frame = Frame::for_fragments(&windows(&[], WindowShape::default()));
    assert_eq!(P50k.count(&frame.opening()), HEAD_TOKENS);
}

#[test]
fn a_block_that_does_not_fit_is_passed_over_and_the_next_tried() {
    let long = format!("s = '{}'\n", "word ".repeat(400));
    let windows = windows(&[("a.py", long), ("b.py", numbered("x", 3))], WindowShape::default());
    let task = Task::new("r/0".into(), "r/b.py", 3, 3, "", "own\n");
    let p50k = P50k;
    let hits = (0..windows.len() as u32).map(hit).collect();
    let within = |tokens| {
        let budget = RepoCoderBudget { tokens, blocks: 10 };
        let settings = settings(Mode::LeftContext, HoleGuard::Strict, budget);
        Builder::new(&windows, &p50k, settings)
    };
    let prompt = within(200).build(&task, Some(&found(hits)));
    let chosen: Vec<u32> = prompt.chosen.iter().map(|hit| hit.fragment).collect();
    assert_eq!(chosen, [1]);
    let prompt = within(30).build(&task, Some(&found(prompt.chosen)));
    assert!(prompt.chosen.is_empty() && prompt.text.ends_with("\n\nown\n"));
}

#[test]
fn threads_that_count_the_same_lines_at_once_agree() {
    use rayon::prelude::*;
    let shape = WindowShape { window_size: 40, slice_size: 40, ..WindowShape::default() };
    let windows = windows(&[("a.py", numbered("some_name", 400))], shape);
    let task = Task::new("r/0".into(), "r/none.py", 0, 0, "", "");
    let (p50k, hole) = (P50k, HoleView::for_task(&task, &windows, HoleGuard::Strict));
    let texts = FragmentText::new(&windows, shown(Align::None, HoleGuard::Strict), |_| true);
    let numbers = 0..windows.len() as u32;
    let blocks: Vec<Block> = numbers.map(|n| Block::new(&hit(n), &texts, &hole)).collect();
    let plain = |block: &Block| Some(p50k.count(&rendered(block, &windows)));
    let expected: Vec<Option<usize>> = blocks.iter().map(plain).collect();
    for _ in 0..3000 {
        let counts = BlockCounts::new(&windows, &p50k);
        let count = |block: &Block| {
            counts.tokens_below(usize::MAX, &windows, &p50k, block, &mut CountScratch::default())
        };
        let counted: Vec<_> = blocks.par_iter().with_max_len(1).map(count).collect();
        assert_eq!(counted, expected);
    }
}

fn rendered(block: &Block, windows: &RepoFragments) -> String {
    let mut text = String::new();
    block.render(&Frame::for_fragments(windows), windows, &mut text);
    text
}

fn source() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just(String::new()),
        "[a-c]{1,2}",
        " {1,4}[a-c] = [xy]( #|\t)?",
        "[é\u{a0}'s\"-]{0,6}"
    ];
    prop::collection::vec(line, 0..25).prop_map(|lines| lines.join("\n") + "\n")
}

fn window(mode: Mode) -> QuerySettings {
    QuerySettings { mode, form: QueryForm::Window, length: 0 }
}

/// Searches and builds prompts in the same way as the stages.
fn prompts(
    windows: &RepoFragments,
    tasks: &TaskSet,
    mode: Mode,
    guard: HoleGuard,
    budget: RepoCoderBudget,
) -> Vec<(Prompt, RankedFragments)> {
    let p50k = P50k;
    let targets = tasks.tasks().iter().map(|task| vec![task.ground_truth.clone()]);
    let predictions: Vec<Vec<String>> = targets.collect();
    let predictions = (mode == Mode::Prediction).then_some(&predictions[..]);
    let queries = Queries::make(window(mode), tasks, windows, |_| None, predictions).queries;
    let search = SearchSettings {
        ranker: Ranker::Jaccard,
        vocabulary: Vocabulary::Tokens(Tokenizer::p50k_base()),
        visibility: Visibility::Guarded(guard),
        top_k: 20,
    };
    let vectors = FragmentVectors::Sets(TokenSets::of_fragments(windows, &p50k));
    let query_sets = TokenSets::of_queries(&queries, &p50k);
    let query_vectors = QueryVectors { sets: Some(&query_sets), ..QueryVectors::default() };
    let retrieval = RepositoryIndex::new(windows, vectors, &search).search(&queries, query_vectors);
    let builder = Builder::new(windows, &p50k, settings(mode, guard, budget));
    let of = |found: RankedFragments| {
        (builder.build(&tasks.tasks()[found.row as usize], Some(&found)), found)
    };
    retrieval.found.into_iter().map(of).collect()
}

/// Returns the record of a prompt, written by `serde`: the plain twin of [`Builder::line`].
fn plain_line(
    windows: &RepoFragments,
    guard: HoleGuard,
    queries: &Queries,
    task: &Task,
    query: Option<&Query>,
    prompt: &Prompt,
) -> String {
    let hole = HoleView::for_task(task, windows, guard);
    let shape = windows.cut.windows().unwrap();
    let hit = |hit| records::hit(windows, hit, &hole, true);
    let mut metadata = task.metadata.to_object();
    metadata.retain(|name, _| !record::WRITTEN_ANEW.contains(&name.as_str()));
    let mut add = |name: &str, value: Value| metadata.insert(name.into(), value);
    if let Some(query) = query {
        add("query_window", records::query(queries, query, true));
        add("top_k_context", prompt.chosen.iter().map(hit).collect());
        let shown = prompt.chosen.iter().zip(&prompt.blocks).map(|(hit, block)| {
            let lines = &windows.files[block.file as usize].lines;
            let text = lines.range(block.start as usize, block.end as usize);
            let record =
                json!({"context": text, "start_line_no": block.start, "end_line_no": block.end});
            let place = hole.first_named_place(hit.fragment);
            ((block.start, block.end) != (place.start, place.end)).then_some(record)
        });
        let shown: Vec<Option<Value>> = shown.collect();
        if shown.iter().any(Option::is_some) {
            add("shown_context", json!(shown));
        }
        add("window_size", json!(shape.window_size));
        add("slice_size", json!((!prompt.chosen.is_empty()).then_some(shape.slice_size)));
        add("sample", json!(query.sample));
    }
    add("row", json!(task.row));
    add("mode", json!(queries.mode.name()));
    add("prompt_tokens", json!(prompt.tokens));
    let mut record = Object::new();
    record.insert("prompt".into(), json!(prompt.text));
    record.insert("metadata".into(), metadata.into());
    record.extend(task.extra.to_object());
    format!("{}\n", Value::from(record))
}

fn odd_object() -> impl Strategy<Value = Object> {
    let value = prop_oneof![
        Just(json!(null)),
        any::<f64>().prop_map(|number| json!(number)),
        any::<i64>().prop_map(|number| json!({"n": [number, {}]})),
        "[a\"\\\\\n\u{1}é]{0,9}".prop_map(Value::from),
    ];
    let name = prop_oneof!["[a\"\n]{0,2}", Just("mode".to_owned()), Just("union".to_owned())];
    prop::collection::vec((name, value), 0..4).prop_map(|fields| fields.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Tests the guarantee of the default guard. Every line of the hole's file is made unique, so that its text shows from
    /// which line of the file a line of a prompt was taken.
    #[test]
    fn no_prompt_holds_a_line_at_or_after_its_hole(
        count in 2_usize..60, others in prop::collection::vec(source(), 1..4), linked in any::<bool>(),
        window_size in 1_usize..12, slice_size in 1_usize..5, context in 0_usize..60, at in 1_usize..60,
        mode in prop_oneof![Just(Mode::LeftContext), Just(Mode::GroundTruth), Just(Mode::Prediction)],
    ) {
        let line_no = at % count;
        let context_start = context.min(line_no);
        let own: String = (0..count).map(|n| format!("own_{n}_ = a\n")).collect();
        let mut files = vec![("own.py", own.clone())];
        let names = ["a.py", "b.py", "z.py"];
        files.extend(others.iter().enumerate().map(|(i, text)| (names[i], text.clone())));
        if linked {
            files.push(("link.py", own));
        }
        let mut windows = windows(&files, WindowShape { window_size, slice_size, ..WindowShape::default() });
        if linked {
            let (link, own) = (windows.file_index("r/link.py").unwrap(), windows.file_index("r/own.py").unwrap());
            windows.files[own].same_as = link as u32;
        }
        let prompt = (context_start..line_no).map(|n| format!("own_{n}_ = a\n")).collect::<String>();
        let task = Task::new("r/0".into(), "r/own.py", context_start, line_no, "own_x = a", &prompt);
        let tasks = TaskSet::new("t".into(), vec![task]);
        for (built, _) in prompts(&windows, &tasks, mode, HoleGuard::Strict, RepoCoderBudget::default()) {
            for n in line_no..count {
                let line = format!("own_{n}_ ");
                prop_assert!(!built.text.contains(&line), "line {} of hole {} in\n{}", n, line_no, built.text);
            }
            for n in context_start..line_no {
                let line = format!("own_{n}_ ");
                prop_assert_eq!(built.text.matches(&line).count(), 1, "line {} is shown twice", n);
            }
        }
    }

    #[test]
    fn counts_equal_the_tokenizers(
        texts in prop::collection::vec(source(), 1..4), window_size in 1_usize..9, prompt in source(),
        limit in prop_oneof![0_usize..300, Just(usize::MAX)],
        mode in prop_oneof![Just(Mode::LeftContext), Just(Mode::GroundTruth)],
        guard in prop_oneof![Just(HoleGuard::Strict), Just(HoleGuard::Reference)],
    ) {
        let names = ["a.py", "b/c d.py", "é.py"];
        let files: Vec<_> = texts.iter().enumerate().map(|(i, text)| (names[i], text.clone())).collect();
        let windows = windows(&files, WindowShape { window_size, ..WindowShape::default() });
        let p50k = P50k;
        let (counts, mut scratch) = (BlockCounts::new(&windows, &p50k), CountScratch::default());
        let task = Task::new("r/0".into(), "r/a.py", 0, 0, "", &prompt);
        let hole = HoleView::for_task(&Task { path: "r/none.py".into(), ..task.clone() }, &windows, guard);
        for window in 0..windows.len() as u32 {
            for align in [Align::None, Align::Extend] {
                let texts = FragmentText::new(&windows, shown(align, guard), |_| true);
                let block = Block::new(&hit(window), &texts, &hole);
                let text = rendered(&block, &windows);
                let count = p50k.count(&text);
                let below = counts.tokens_below(limit, &windows, &p50k, &block, &mut scratch);
                prop_assert_eq!(below, (count < limit).then_some(count), "{:?}", text);
                if window % 3 == 0 {
                    let all = counts.tokens_below(usize::MAX, &windows, &p50k, &block, &mut scratch);
                    prop_assert_eq!(all, Some(count), "{:?}", text);
                }
            }
        }
        let tasks = TaskSet::new("t".into(), vec![task]);
        for tokens in [25, 60, 150, 2000] {
            for (built, _) in prompts(&windows, &tasks, mode, guard, RepoCoderBudget { tokens, blocks: 3 }) {
                prop_assert_eq!(built.tokens, p50k.count(&built.text), "{:?}", built.text);
            }
        }
    }

    /// Caches shared between modes and threads do not change any prompt.
    #[test]
    fn lines_are_the_plain_records(
        texts in prop::collection::vec(source(), 1..4), window_size in 1_usize..9, prompt in source(),
        (metadata, extra) in (odd_object(), odd_object()), tokens in 20_usize..400,
        guard in prop_oneof![Just(HoleGuard::Strict), Just(HoleGuard::Reference)],
    ) {
        let names = ["a.py", "b/c d.py", "é\"\\.py"];
        let files: Vec<_> = texts.iter().enumerate().map(|(i, text)| (names[i], text.clone())).collect();
        let windows = windows(&files, WindowShape { window_size, ..WindowShape::default() });
        let mut task = Task::new("r/0".into(), "r/a.py", 0, 0, "\"", &prompt);
        let own = task.metadata.to_object().into_iter();
        task.metadata = own.chain(metadata).collect::<Object>().into();
        task.extra = extra.into();
        let (p50k, own_tokens, mut scratch) = (P50k, OnceLock::new(), CountScratch::default());
        let (tasks, budget) = (TaskSet::new("t".into(), vec![task]), RepoCoderBudget { tokens, blocks: 3 });
        let shared = Builder::new(&windows, &p50k, settings(Mode::Without, guard, budget)).counts();
        for mode in [Mode::LeftContext, Mode::GroundTruth, Mode::Prediction] {
            let settings = settings(mode, guard, budget);
            let builder = Builder::new(&windows, &p50k, settings).with_counts(shared.clone());
            let of_target = Queries::of_tasks(window(Mode::GroundTruth), &tasks, &windows).queries;
            let queries = Queries { mode, ..of_target };
            let task = &tasks.tasks()[0];
            for (built, found) in prompts(&windows, &tasks, mode, guard, budget) {
                let again = builder.build_with(task, Some(&found), &own_tokens, &mut scratch);
                prop_assert_eq!(&again, &built);
                let query = queries.queries.first();
                let line = String::from_utf8(builder.line(task, query, &built)).unwrap();
                prop_assert_eq!(&line, &plain_line(&windows, guard, &queries, task, query, &built));
                let record = jsonl::parse(&tasks.path, 1, line.as_bytes()).unwrap();
                let read = query.and_then(|_| shown::read_shown_fragments(&record, &mut HashSet::default()));
                if let Some((_, read)) = read {
                    prop_assert_eq!(read.fragments, builder.shown_fragments(task, &built));
                }
            }
            let alone = builder.build_with(task, None, &own_tokens, &mut scratch);
            prop_assert_eq!(alone.tokens, p50k.count(&task.prompt));
            let line = String::from_utf8(builder.line(task, None, &alone)).unwrap();
            prop_assert_eq!(line, plain_line(&windows, guard, &queries, task, None, &alone));
        }
    }
}
