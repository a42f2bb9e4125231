//! Groups of readers: each takes the bytes of a file from elsewhere, and none may panic, hang, or fill the memory.
//!
//! A group gives the bytes to all of its readers, so that any file is a seed as it is. Errors are expected and dropped.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use repoformer_core::completion::{Api, CompletionRequest, Ending, samples};
use repoformer_core::label;
use repoformer_core::label::{
    CollectSettings, Drawing, Filter, InstanceKind, RecordFormat, Repositories, Shard, Signals,
    draw,
};
use repoformer_core::metrics::Metric;
use repoformer_core::policy::features::Request;
use repoformer_core::policy::model::PolicyModel;
use repoformer_core::policy::sweep::LatencyModel;
use repoformer_core::policy::{Examples, Policy, Threshold};
use repoformer_core::postprocess::{FunctionBodies, HoleContext, Postprocess, Recipe, Step};
use repoformer_core::prompt::shown::{read_fragments, read_shown};
use repoformer_core::prompt::style::{self, Parts, Style};
use repoformer_core::prompt::{Builder, BuilderSettings, RepoCoderBudget};
use repoformer_core::repository::corpus::{Repository, SourceFile, Walk};
use repoformer_core::repository::fragment::{ChunkShape, Cut, RepoFragments, WindowShape};
use repoformer_core::repository::record::PythonFile;
use repoformer_core::retrieve::definitions::{FileNames, KnownNames};
use repoformer_core::retrieve::dense::{self, EmbeddingTimes, Matrix, VectorStore};
use repoformer_core::retrieve::graph::FileGraph;
use repoformer_core::retrieve::rank::{Ranker, Vocabulary, Words};
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{
    Align, FragmentTextSettings, FragmentVectors, HoleGuard, Mode, Queries, QueryForm,
    QuerySettings, QueryVectors, RepositoryIndex, Retrieval, SearchSettings, Visibility,
};
use repoformer_core::task::kind::RecordKind;
use repoformer_core::task::sample::{Kind, PathPattern, Sampling, sample};
use repoformer_core::task::{Format, TaskSet};
use repoformer_evaluate::conditions::read_parameters;
use repoformer_evaluate::label::{JudgeSettings, LabelCriterion};
use repoformer_evaluate::score::Scoring;
use repoformer_evaluate::{comparison, executed, pairs, predictions};
use repoformer_execute::guard::RunOutcome;
use repoformer_execute::{Log, Runner, TestMap, default_test_command, judge};
use repoformer_formats::convert::lm_eval::{LmEvalSettings, lm_eval};
use repoformer_formats::convert::{self, TargetFormat};
use repoformer_formats::group::{Dedup, Grouping, group};
use repoformer_formats::label::sequences::{Proportions, VerbalizeSettings, verbalize};
use repoformer_formats::{lengths, validate};
use repoformer_models::batch::BatchSettings as Requested;
use repoformer_models::embed::Embedder;
use repoformer_models::endpoint::{ConnectionSettings, Endpoint};
use repoformer_models::in_context::{CompletionLimits, complete};
use repoformer_models::server::{Completer, IsEnough, Journal, NextToken, Prober};
use repoformer_pipeline::{
    BatchOf, CacheSources, Completion, CompletionBound, Experiment, Layout, NoMessages,
    PromptLayout, PromptSettings, PromptText, RetrievalSettings, RightContexts, Server,
    cache_files, decision_latencies, latencies, read_batch, search_time, write_batch,
};
use repoformer_store::{artifact, jsonl, manifest};
use repoformer_study::settings::{DECLARED, Invocation, Settings};
use repoformer_text::language::Language;
use repoformer_text::language::syntax::Syntax;
use repoformer_text::tokenize::P50k;
use repoformer_text::tokenize::model::{Encoder, TextPart, Tokenizer};

/// A group: its name, which is that of its folder in the corpus, and its readers.
pub(crate) struct Group {
    /// Name.
    pub(crate) name: &'static str,
    /// Longest input that the fuzzer tries; `scripts/fuzz.sh` reads it here.
    pub(crate) longest: usize,
    /// Most processor time for each byte in a debug build, which is five to ten times what the corpus takes.
    pub(crate) time: Duration,
    /// Gives bytes to the readers.
    pub(crate) read: fn(&[u8]),
}

/// Every group.
pub(crate) const GROUPS: [Group; 12] = [
    Group { name: "tasks", longest: 1 << 16, time: Duration::from_micros(80), read: tasks },
    Group {
        name: "predictions",
        longest: 1 << 16,
        time: Duration::from_micros(120),
        read: of_predictions,
    },
    Group { name: "labels", longest: 1 << 16, time: Duration::from_micros(40), read: labels },
    Group {
        name: "repositories",
        longest: 1 << 18,
        time: Duration::from_micros(40),
        read: repositories,
    },
    Group {
        name: "tokenizers",
        longest: 1 << 15,
        time: Duration::from_micros(15),
        read: tokenizers,
    },
    Group { name: "vectors", longest: 1 << 14, time: Duration::from_micros(15), read: vectors },
    Group { name: "settings", longest: 1 << 12, time: Duration::from_micros(10), read: settings },
    Group { name: "answers", longest: 1 << 14, time: Duration::from_micros(30), read: answers },
    Group {
        name: "compressed",
        longest: 1 << 11,
        time: Duration::from_micros(150),
        read: compressed,
    },
    Group { name: "artifacts", longest: 1 << 16, time: Duration::from_micros(10), read: artifacts },
    Group { name: "rankings", longest: 1 << 12, time: Duration::from_micros(300), read: rankings },
    Group { name: "sources", longest: 1 << 14, time: Duration::from_micros(300), read: sources },
];

/// Packages that panic on odd input, where the library catches it: one that it does not catch ends the process all the same.
const CAUGHT: [&str; 2] = ["/tokenizers-", "/parquet-"];

/// Ends the process at any panic, but for those that the library catches.
pub(crate) fn end_at_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let file = panic.location().map_or("", |place| place.file());
        if !CAUGHT.iter().any(|package| file.contains(package)) {
            eprintln!("{panic}\n{}", std::backtrace::Backtrace::force_capture());
            std::process::abort();
        }
    }));
}

/// Folder of a process, in memory where there is such a file system, for readers that take paths.
pub(crate) fn folder_of(process: u32) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let root = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    root.join(format!("repoformer-fuzz-{process}"))
}

/// Folder of this process.
pub(crate) static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = folder_of(std::process::id());
    std::fs::create_dir_all(&folder).expect("a folder in memory can be written");
    folder
});

/// Writes the bytes to a file of this name.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = FOLDER.join(name);
    std::fs::write(&path, bytes).expect("a file in memory can be written");
    path
}

/// Three tasks, to which predictions and other records belong.
static TASKS: LazyLock<TaskSet> = LazyLock::new(|| {
    let lines = include_bytes!("../corpus/tasks/three.jsonl");
    TaskSet::read(&file("three.jsonl", lines)).expect("three tasks").set
});

/// Requests of a batch.
static SAMPLING: Requested =
    Requested { model: String::new(), max_tokens: 8, temperature: 0.0, stop: Vec::new() };

fn tasks(bytes: &[u8]) {
    let path = file("input.jsonl", bytes);
    if let Ok(reading) = TaskSet::read(&path) {
        for task in reading.set.tasks().iter().take(8) {
            for format in Format::ALL {
                let _ = task.to_format(format);
            }
            let _ = (task.language(), task.file_in_repository(), task.has_whole_left());
        }
        let _ = (reading.set.digest(), reading.set.repositories());
    }
    if let Ok(found) = validate::validate(&path, None) {
        found.findings.iter().for_each(|finding| drop(found.message(finding)));
        let _ = found.to_record();
    }
    let _ = lengths::lengths(&path, None, &Tokenizer::words());
    let _ = convert::requests(&path, &SAMPLING, &mut |_| Ok(()));
    for to in Format::ALL {
        let _ = convert::tasks(&path, to, None, &mut |_| Ok(()));
    }
}

fn of_predictions(bytes: &[u8]) {
    let (path, tasks) = (file("input.jsonl", bytes), &*TASKS);
    if let Ok(read) = predictions::read(&path, tasks) {
        for (task, samples) in tasks.tasks().iter().zip(&read.predictions) {
            let samples: Vec<String> = samples.iter().take(2).cloned().collect();
            for metric in Metric::ALL {
                let _ = metric.score(&task.ground_truth, &samples, task.language());
            }
        }
    }
    // The file as one prediction. The two steps that are left out may take seconds, as SECURITY.md says.
    let text = String::from_utf8_lossy(bytes);
    let is_short = |step: &Step| !matches!(step, Step::Statement | Step::FunctionBody);
    for recipe in Step::ALL.iter().filter(|step| is_short(step)).map(|step| step.name()) {
        let recipe: Recipe = recipe.parse().expect("the name of a step");
        let _ = recipe.apply(HoleContext::new(&tasks.tasks()[0]), &text);
    }
    let _ = pairs::read(&path);
    let _ = comparison::read(&path.to_string_lossy());
    let _ = executed::read_executed(&path, "input");
    let _ = TestMap::read(&path, tasks);
    let _ = (read_fragments(&path), read_shown(&path));
    if let Ok(mut signals) = repoformer_evaluate::label::signals(&path, tasks) {
        let _ = repoformer_evaluate::label::entropies(&path, tasks, &mut signals);
        let _ = repoformer_evaluate::label::probabilities(&path, tasks, &mut signals);
    }
    let settings = LmEvalSettings {
        tasks,
        bodies: FunctionBodies::default(),
        metrics: &[Metric::RepoCoder],
        name: None,
        max_tokens: 8,
        stop: &[],
        ending: Ending::AsIs,
    };
    let _ = (lm_eval(&path, &settings), read_parameters(&path));
    let described = file("described.jsonl", bytes);
    let _ = std::fs::write(manifest::beside(&described), bytes);
    let _ = (manifest::read_beside(&described), manifest::check_beside(&described));
    let _ = executed::is_of(&described, &path);
    for to in TargetFormat::ALL {
        if let TargetFormat::Records(kind) = to {
            let _ = convert::predictions(&path, kind, Some(tasks), &mut |_| Ok(()));
        }
    }
}

fn labels(bytes: &[u8]) {
    let path = file("input.jsonl", bytes);
    if let Ok(examples) = Examples::read(std::slice::from_ref(&path), None) {
        for example in examples.all.iter().take(8) {
            for policy in Policy::ALL {
                let _ = policy.score(example, 0);
            }
        }
    }
    if let Ok(policy) = PolicyModel::read(&path) {
        let (left, right, path) = ("x = 1\ny = ", "\n", "a/x.py");
        let request = Request { left, right, path, language: Language::Python, fragments: &[] };
        let asked = Signals { cc_probability: Some(0.5), ..Signals::default() };
        let _ = policy.decide(request, asked);
    }
    let _ = LatencyModel::read(&path, Some(&path), None);
    let _ = convert::labels(&path, &mut |_| Ok(()));
    let [base, augmented] = &*PREDICTED;
    let postprocess = Postprocess::own(false);
    let judging = JudgeSettings {
        trials: &[],
        instances: &path,
        base,
        augmented,
        prompts: None,
        probabilities: None,
        samples: None,
        model: Some("m"),
        by: LabelCriterion::Usual,
        postprocess: &postprocess,
        threshold: 0.0,
        shard: Shard::WHOLE,
    };
    let _ = repoformer_evaluate::label::judge(&judging, &mut |_, _| Ok(()));
    let (settings, encoder) = &*VERBALIZING;
    let _ = verbalize(&[&path], encoder, settings, &FOLDER.join("sequences"));
    let journal = file("journal.jsonl", bytes);
    let _ = label::collect(&drawn_from(&RAW, Some(&journal)), &mut |_, _| Ok(()));
}

/// Drawing from raw repositories.
fn drawn_from<'a>(from: &'a Repositories, journal: Option<&'a Path>) -> CollectSettings<'a> {
    static DRAWN: LazyLock<(Filter, Drawing)> =
        LazyLock::new(|| (Filter::none(), Drawing::paper(InstanceKind::Function)));
    let (filter, drawing) = &*DRAWN;
    let format = RecordFormat::Labels;
    CollectSettings { from, shard: Shard::WHOLE, filter, drawing, format, journal }
}

/// Predictions without and with retrieval of a label.
static PREDICTED: LazyLock<[PathBuf; 2]> = LazyLock::new(|| {
    [("base.jsonl", "    return y"), ("augmented.jsonl", "    return x")].map(|(name, text)| {
        let line = format!("{{\"task_id\": \"a/1\", \"pred\": [\"{text}\"]}}\n");
        file(name, line.as_bytes())
    })
});

/// A raw repository, which a journal may know.
static RAW: LazyLock<Repositories> = LazyLock::new(|| {
    let raw = include_bytes!("../corpus/repositories/drawn.jsonl");
    Repositories::Raw(file("drawn.jsonl", raw), Vec::new())
});

/// Training sequences of a model whose tokenizer has the tokens of its style.
static VERBALIZING: LazyLock<(VerbalizeSettings, Encoder)> = LazyLock::new(|| {
    let style: Style = "starcoder".parse().expect("a style");
    let frame = style::DecisionFrame::new(&style, None, None).expect("its frame");
    let tokenizer = include_bytes!("../../tests/fixtures/tokenizers/starcoder.json");
    let path = file("starcoder.json", tokenizer);
    let encoder = Encoder::open(&path, &frame.specials()).expect("a tokenizer");
    let settings = VerbalizeSettings {
        frame,
        max_tokens: 64,
        max_cross_file_tokens: 16,
        end: None,
        lambda: 1.0,
        held_out: Proportions { validation: 0.0, test: 0.5 },
        seed: 0,
        shard: None,
    };
    (settings, encoder)
});

fn repositories(bytes: &[u8]) {
    let (path, out) = (file("input.tar", bytes), FOLDER.join("out"));
    let _ = convert::to_folders(&path, &out);
    let _ = std::fs::remove_dir_all(&out);
    let raw = Repositories::Raw(path.clone(), Vec::new());
    let _ = label::fingerprint(&drawn_from(&raw, None));
    for to in [RecordKind::Package, RecordKind::RawRepository] {
        let _ = convert::records(&path, to, &mut |_| Ok(()));
    }
    let _ = group(&Grouping {
        inputs: vec![path],
        output: out.clone(),
        shards: 1,
        language: None,
        dedup: Dedup::Exact,
        benchmarks: Vec::new(),
        max_repository: 1 << 20,
    });
    let _ = std::fs::remove_dir_all(&out);
}

fn tokenizers(bytes: &[u8]) {
    let path = file("tokenizer.json", bytes);
    if let Ok(tokenizer) = Tokenizer::open(&path) {
        let text = "def f(x):\n    return x + 1  # \u{e9}\u{1f600}\n";
        let _ = tokenizer.count(text);
        tokenizer.each_term(text, |_| ());
    }
    if let Ok(encoder) = Encoder::open(&path, &["<eof>", "<cc>"])
        && let Ok(encoded) = encoder.encode(&[TextPart::Special("<cc>"), TextPart::Plain("x = 1")])
    {
        let _ = encoder.decode(&encoded.ids);
    }
}

fn vectors(bytes: &[u8]) {
    let text = |id: &str, text: &str| dense::Text { id: id.into(), text: text.into() };
    let texts = [text("0", "a"), text("1", "b"), text("2", "c")];
    let path = file("input.vectors", bytes);
    let _ = dense::import(&path, &texts);
    let _ = (dense::read_texts(&path), dense::read_stored(&path));
    let _ = EmbeddingTimes::read(&file("input.times.jsonl", bytes));
    let _ = EmbeddingTimes::open(&path);
    if let Ok(store) = VectorStore::open(&path, "m") {
        let _ = store.notes();
    }
}

fn settings(bytes: &[u8]) {
    let path = file("input.toml", bytes);
    let flags = [(&DECLARED.config, vec![path.to_string_lossy().into_owned()])];
    if let Ok(settings) = Settings::resolve(&Invocation::giving(flags), Arc::new(NoMessages)) {
        let _ = (settings.lines(), settings.of_functions().lines());
    }
    if let Ok(style) = Style::open(&path) {
        let context = repoformer_core::task::cross_file::CrossFile {
            text: "# b = 2\n".into(),
            fragments: Vec::new(),
        };
        let (left, right, cross_file) = ("x = 1\ny =", "\nz = 3\n", &context);
        let (repository, path, language) = ("demo", "a.py", Language::Python);
        let parts = Parts { repository, path, left, right, cross_file, language };
        let budget = style::Budget { total: 17, left: None, right: Some(2), cross_file: Some(16) };
        if let Ok(filled) = style.fill(&parts, &budget, &Tokenizer::words()) {
            let _ = style.split(&filled.text);
        }
        let _ = style::DecisionFrame::new(&style, None, None);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for text in text.split('\n').take(8) {
        let _ = (text.parse::<Ranker>(), text.parse::<Recipe>(), text.parse::<Threshold>());
        let _ = (text.parse::<Language>(), PathPattern::parse(text));
        let _ = repoformer_execute::Template::parse("test-command", text);
        let _ = Endpoint::new(text, ConnectionSettings::default());
        let _ = repoformer_models::batch::parse_custom_id(text);
    }
}

/// Next answer of this process's server: a response, from its head.
static RESPONSE: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// A server on this machine that answers every request with [`RESPONSE`].
static SERVER: LazyLock<Endpoint> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let answer = |mut stream: TcpStream| -> std::io::Result<()> {
        let mut request = [0; 1 << 13];
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        let mut seen = Vec::new();
        // Head and body come together or one after the other; a body ends with its object.
        while !seen.ends_with(b"}") {
            let read = stream.read(&mut request)?;
            if read == 0 {
                break;
            }
            seen.extend_from_slice(&request[..read]);
        }
        let response = RESPONSE.lock().map(|response| response.clone()).unwrap_or_default();
        stream.write_all(&response)
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(stream);
        }
    });
    let settings = ConnectionSettings {
        retries: 0,
        // Waits that a server asks for are no hang: by default, they may take minutes.
        longest_retry_after: Duration::ZERO,
        timeout: Duration::from_secs(2),
        ..ConnectionSettings::default()
    };
    Endpoint::new(&url, settings).expect("an address")
});

fn answers(bytes: &[u8]) {
    if let Ok(answer) = serde_json::from_slice(bytes) {
        for api in [Api::Completions, Api::Chat] {
            let found = samples(&answer, api).unwrap_or_default();
            for sample in found {
                let _ = sample.logprobs(0..3);
            }
        }
    }
    if let Ok(journal) = Journal::open(&file("journal.jsonl", bytes)) {
        let _ = journal.get("a");
    }
    let _ = Log::open(&file("results.jsonl", bytes), &[]);
    let output = String::from_utf8_lossy(bytes).into_owned();
    for runner in Runner::ALL {
        let exit_code = Some(0);
        let outcome = RunOutcome { output: output.clone(), exit_code, ..RunOutcome::default() };
        let _ = judge(runner, &outcome);
    }
    for (at, bytes) in jsonl::records(bytes).take(8) {
        if let Ok(object) = jsonl::parse(Path::new("batch.jsonl"), at.line, bytes) {
            let _ = repoformer_models::batch::Response::read(Path::new("b"), at.line, &object);
        }
    }
    let (completion, prompts) = &*BATCH;
    if let Some(server) = &completion.server {
        file("batch-journal.jsonl", b"");
        for of in [BatchOf::Completions, BatchOf::Likelihoods] {
            let _ = read_batch(&[file("batch.jsonl", bytes)], prompts, completion, of);
        }
        let _ = std::fs::write(&server.journal, bytes);
        let _ = write_batch(prompts, completion, BatchOf::Completions, &mut |_| Ok(()));
    }
    let head = |kind: &str| {
        let length = bytes.len();
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        )
    };
    let asking = CompletionRequest::new("m", 4);
    let is_enough: &IsEnough<'_> = &|text, _| text.len() > 8;
    // One in fifty inputs: a connection takes a thousand times as long as the readers above.
    if !bytes.starts_with(b"data:")
        && !bytes.starts_with(b"HTTP/")
        && !bytes.len().is_multiple_of(50)
    {
        return;
    }
    let (kind, enough) = if bytes.starts_with(b"data:") {
        ("text/event-stream", Some(is_enough))
    } else {
        ("application/json", None)
    };
    let mut response = if bytes.starts_with(b"HTTP/") { Vec::new() } else { head(kind).into() };
    response.extend_from_slice(bytes);
    if let Ok(mut next) = RESPONSE.lock() {
        *next = response;
    }
    let _ = Completer::new(&SERVER).ask(&asking, "x", enough);
    if bytes.starts_with(b"data:") {
        return;
    }
    let _ = NextToken::find(&SERVER, "m", "<cc>");
    let token = NextToken { text: "<cc>".into(), id: 3 };
    let _ = Prober::new(&SERVER, "m", &token).ask("x");
    let vectors = FOLDER.join("m.vectors");
    let _ = std::fs::remove_file(&vectors);
    if let Ok(mut store) = VectorStore::open(&vectors, "m") {
        let _ = Embedder::new(SERVER.clone(), "m").embed(["a", "b"], &mut store);
    }
}

/// A prompt whose answer a batch may hold.
static BATCH: LazyLock<(Completion, Vec<PromptText>)> = LazyLock::new(|| {
    let server = Server {
        asking: CompletionRequest::new("m", 4),
        until: CompletionBound::Tokens,
        journal: FOLDER.join("batch-journal.jsonl"),
        has_own_journal: true,
        asked: None,
    };
    let server = Some(server);
    let completion = Completion { model: "m".into(), max_tokens: 4, max_lines: None, server };
    let prompt =
        br#"{"prompt": "x = ", "metadata": {"task_id": "a/0", "ground_truth": "1", "row": 0}}"#;
    let prompts = PromptText::of_file(&file("prompts.jsonl", prompt)).expect("a prompt");
    (completion, vec![prompts])
});

fn compressed(bytes: &[u8]) {
    let path = file("input.gz", bytes);
    let _ = (jsonl::read(&path), jsonl::for_each(&path, |_, _| Ok(())));
}

/// Where a cache has files without a header of their own.
const PLACES: [(&str, &str); 4] = [
    ("journal", "m.jsonl"),
    ("exec/bench", "results.jsonl"),
    ("exec/bench", "results.manifest.json"),
    ("report/bench", "manifest.json"),
];

/// A cache with the times of one repository.
static EXPERIMENT: LazyLock<Experiment> = LazyLock::new(|| {
    let (form, query_lines) = (QueryForm::Window, 20);
    let visibility = Visibility::Guarded(HoleGuard::Strict);
    let (ranker, vocabulary) = (Ranker::Jaccard, Vocabulary::Words);
    let search = SearchSettings { ranker, vocabulary, visibility, top_k: 20 };
    let (align, layout) = (Align::default(), PromptLayout::RepoCoder);
    let (budget, tokenizer) = (
        style::Budget { total: 2000, left: None, right: None, cross_file: None },
        Tokenizer::words(),
    );
    Experiment {
        name: "bench".into(),
        repos_dir: PathBuf::new(),
        repositories: vec!["r".into()],
        tasks: None,
        of_all_shards: None,
        layout: Layout {
            cache: FOLDER.join("cache"),
            benchmark: "bench".into(),
            language: Language::Python,
            cut: Cut::Windows(WindowShape::default()),
            iteration: 1,
            shard: None,
        },
        walk: Walk::default(),
        retrieval: RetrievalSettings { form, query_lines, search, dense: None },
        prompts: PromptSettings { align, most: 10, full_paths: false, layout, budget, tokenizer },
        scoring: Scoring::new(&[], &[]),
        plan: None,
        messages: Arc::new(NoMessages),
    }
});

fn artifacts(bytes: &[u8]) {
    let cache = FOLDER.join("cache");
    let folder = cache.join("window/bench/rg1");
    let _ = std::fs::create_dir_all(&folder);
    let path = file("cache/window/bench/rg1/input.bin", bytes);
    if let Ok((header, columns)) = artifact::open(&path) {
        let _ = (header.identity.kind.len(), columns.check_all(None));
    }
    // Whatever kind the header names, which mutations would seldom change.
    let _ = artifact::read::<RepoFragments>(&path).map(|(_, fragments)| drop(fragments.texts()));
    let _ = artifact::read::<Retrieval>(&path);
    let _ = artifact::read::<Queries>(&path);
    let _ = artifact::read::<TokenSets>(&path);
    let _ = artifact::read::<Words>(&path);
    let _ = artifact::read::<Matrix>(&path);
    let _ = artifact::read::<RightContexts>(&path);
    let beside = artifact::header_path(&path.with_extension("jsonl"));
    let lines = path.with_extension("jsonl");
    let _ = (std::fs::write(&beside, bytes), std::fs::write(&lines, bytes));
    let _ = (artifact::read_jsonl(&lines), artifact::parameters(&lines));
    for (place, name) in PLACES {
        let folder = cache.join(place);
        let _ = std::fs::create_dir_all(&folder);
        let _ = std::fs::write(folder.join(name), bytes);
    }
    let (paths, mode) = (EXPERIMENT.paths(), Mode::LeftContext);
    for path in [
        paths.latency(mode, "m"),
        paths.decision_latency(Mode::Without, "m"),
        paths.search_time(mode, "r"),
    ] {
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = std::fs::write(path, bytes);
    }
    let _ = (latencies(&EXPERIMENT, mode, "m"), decision_latencies(&EXPERIMENT, "m"));
    let _ = search_time(&EXPERIMENT, mode);
    let _ = cache_files(&cache, &CacheSources::default());
    let rows = repoformer_store::parquet::ParquetRows::open(&path);
    let _ = rows.map(|rows| rows.for_each(|_| Ok::<(), repoformer_store::error::Error>(())));
}

/// Rankings that parse: by what names mean, by imports between files, and by data flow. The first byte chooses the language; a zero
/// byte divides two files, or else the middle.
fn rankings(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let language = Language::ALL[usize::from(*first) % Language::ALL.len()];
    let extension = language.extensions()[0];
    let file = |name: &str, bytes: &[u8], same_as| SourceFile {
        path: format!("r/{name}{extension}"),
        text: repoformer_text::lines::universal_newlines(String::from_utf8_lossy(bytes).into()),
        same_as,
    };
    let zero = bytes.iter().position(|byte| *byte == 0);
    let (one, other) = bytes.split_at(zero.unwrap_or(bytes.len() / 2));
    let files = vec![file("a", one, 0), file("b", other, 1)];
    let repository = Repository { name: "r".into(), files };
    let sampling = Sampling { language, per_repository: 2, ..Sampling::new(Kind::Line) };
    let tasks = sample(&repository, &sampling, &|text| P50k.count(text)).tasks;
    let set = TaskSet::new("tasks.jsonl".into(), tasks);
    let fragments = RepoFragments::cut(repository, language, Cut::Windows(WindowShape::default()));
    let ranker = match Ranker::CodeBleu.refusal(language) {
        None => Ranker::Fusion(vec![Ranker::Definitions, Ranker::CodeBleu]),
        Some(_) => Ranker::Definitions,
    };
    let search = SearchSettings {
        ranker: Ranker::Graph(Box::new(ranker)),
        vocabulary: Vocabulary::Words,
        visibility: Visibility::Guarded(HoleGuard::Strict),
        top_k: 5,
    };
    let asked = QuerySettings { mode: Mode::LeftContext, form: QueryForm::Window, length: 20 };
    let queries = Queries::of_tasks(asked, &set, &fragments).queries;
    let names = FileNames::read(&fragments, &KnownNames::default());
    let definitions = names.index();
    let graph = FileGraph::new(&definitions, &fragments);
    let task = |number: usize| {
        let query = &queries.queries[number];
        set.of_row(query.row as usize).map(|task| (query, task))
    };
    let found = |number: usize| {
        task(number).map_or_else(Vec::new, |(query, task)| definitions.search(query, task))
    };
    let prior = |number: usize| {
        task(number).map_or_else(Vec::new, |(query, task)| graph.prior(&definitions, query, task))
    };
    let vectors =
        QueryVectors { definitions: Some(&found), priors: Some(&prior), ..QueryVectors::default() };
    let terms = FragmentVectors::Terms(Words::new(&fragments.texts()));
    let _ = RepositoryIndex::new(&fragments, terms, &search).search(&queries, vectors);
}

fn sources(bytes: &[u8]) {
    // The first byte chooses the language; the fixtures' first letters choose their own.
    let Some(first) = bytes.first() else { return };
    let language = Language::ALL[usize::from(*first) % Language::ALL.len()];
    let text =
        repoformer_text::lines::universal_newlines(String::from_utf8_lossy(bytes).into_owned());
    let extension = language.extensions()[0].trim_start_matches('.');
    let name = format!("r/a.{extension}");
    let source = |path: &str, text: &str, same_as| SourceFile {
        path: path.into(),
        text: text.into(),
        same_as,
    };
    let other = format!("r/b.{extension}");
    let files = vec![source(&name, &text, 0), source(&other, "x = 1\ny = 2\n", 1)];
    let repository = Repository { name: "r".into(), files };
    let folder = FOLDER.join("repos/r");
    let _ = std::fs::create_dir_all(&folder);
    let (own, project) = (folder.join(format!("a.{extension}")), folder.join("pyproject.toml"));
    let _ = (std::fs::write(&own, bytes), std::fs::write(&project, bytes));
    let _ = Repository::read(&FOLDER.join("repos"), "r", language);
    let _ = (default_test_command(&folder), std::fs::remove_file(&own));
    for syntax in Language::ALL.into_iter().filter_map(|each| Syntax::parse(&text, each)) {
        let _ = (syntax.imports(), syntax.comments(), syntax.functions(), syntax.scopes());
    }
    let _ = (PythonFile::read(&text), P50k.count(&text));
    let tasks: Vec<_> = [Kind::Line, Kind::Api, Kind::Function, Kind::Chunk]
        .into_iter()
        .flat_map(|kind| {
            let sampling = Sampling { language, per_repository: 2, ..Sampling::new(kind) };
            sample(&repository, &sampling, &|text| P50k.count(text)).tasks
        })
        .collect();
    for kind in [InstanceKind::Chunk, InstanceKind::Function] {
        let _ = draw(repository.clone(), &Drawing { language, ..Drawing::paper(kind) });
    }
    let set = TaskSet::new("tasks.jsonl".into(), tasks);
    for cut in [Cut::Windows(WindowShape::default()), Cut::Chunks(ChunkShape::default())] {
        let fragments = RepoFragments::cut(repository.clone(), language, cut);
        let mode = Mode::LeftContext;
        let asked = QuerySettings { mode, form: QueryForm::Window, length: 20 };
        let queries = Queries::of_tasks(asked, &set, &fragments).queries;
        let visibility = Visibility::Guarded(HoleGuard::Strict);
        let vocabulary = Vocabulary::Words;
        let search = SearchSettings { ranker: Ranker::Jaccard, vocabulary, visibility, top_k: 20 };
        let vectors = FragmentVectors::Terms(Words::new(&fragments.texts()));
        let found = RepositoryIndex::new(&fragments, vectors, &search)
            .search(&queries, QueryVectors::default());
        let shown =
            FragmentTextSettings { align: Align::Extend, most: 10, full_paths: false, visibility };
        let budget = RepoCoderBudget::default();
        let settings = BuilderSettings { mode, form: QueryForm::Window, shown, budget };
        let builder = Builder::new(&fragments, &P50k, settings);
        for (task, found) in set.tasks().iter().zip(&found.found) {
            let prompt = builder.build(task, Some(found));
            let _ = complete(&prompt.text, &CompletionLimits { max_lines: 2, max_tokens: 20 });
        }
    }
}
