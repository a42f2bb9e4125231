//! Learns labels from the lines that the user writes: for each completion shown, the text accepted or typed in its place is the truth, and
//! the model writes the completion that was not shown while the user pauses.

use std::collections::VecDeque;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use repoformer_core::label::Signals;
use repoformer_core::prompt::shown::ShownFragment;
use repoformer_core::task::Task;
use repoformer_core::task::cross_file::{self, CrossFile};
use repoformer_evaluate::label::judge_one;
use repoformer_models::endpoint::Endpoint;
use repoformer_models::server::{StreamPart, StreamRequest, stream};
use repoformer_pipeline::{Messages, TaskPrompt};
use repoformer_store::error::Error;
use repoformer_store::files;
use repoformer_text::lines::line_ends;
use serde_json::Value;

use crate::error::{Result, ServeError};

/// Idle time before the other completion is requested.
const PAUSE: Duration = Duration::from_secs(1);
/// Delay before a request that the model's server did not answer is repeated, and the maximum number of repetitions.
const LATER: Duration = Duration::from_secs(5);
const TRIES: usize = 60;
/// Maximum number of lines that wait for a pause.
const WAITING: usize = 256;
/// Number of files whose last completion is kept.
const FILES: usize = 16;
/// Approximate number of bytes of the lines that wait, and of the completions that are kept; the last one may exceed it.
const MOST_BYTES: usize = 64 << 20;

/// Request whose completion may be shown.
#[derive(Debug)]
pub(crate) struct LearnRequest {
    /// Hole at the cursor.
    pub(crate) task: Task,
    /// Whole text of the file, and the number of bytes before the cursor.
    pub(crate) text: String,
    pub(crate) offset: usize,
    /// Fragments retrieved for the request, whether shown or not.
    pub(crate) found: PromptContext,
    /// The model's signals, if it was asked.
    pub(crate) signals: Signals,
    pub(crate) retrieved: bool,
    /// Request for the completion of the prompt that was not used.
    pub(crate) other: StreamRequest,
}

impl LearnRequest {
    /// Returns about the number of bytes in memory: the task and the other prompt contain parts of the text again.
    fn bytes(&self) -> usize {
        let fragments: usize = self.found.fragments.iter().map(|one| one.text.len()).sum();
        4 * self.text.len() + 2 * fragments
    }
}

/// Fragments of a prompt, and its right context.
#[derive(Debug)]
pub(crate) struct PromptContext {
    fragments: Vec<cross_file::CrossFileFragment>,
    right: String,
}

impl PromptContext {
    pub(crate) fn new(prompt: &TaskPrompt) -> Self {
        let fragments = prompt.fragments.iter().map(ShownFragment::to_cross_file).collect();
        Self { fragments, right: prompt.right.clone() }
    }
}

/// Completion that was shown.
#[derive(Debug)]
struct ShownCompletion {
    asked: LearnRequest,
    completion: String,
    model: String,
}

/// Line that the user wrote in place of a completion.
#[derive(Debug)]
struct LineOutcome {
    shown: ShownCompletion,
    truth: String,
    accepted: bool,
    /// Approximate number of bytes in memory.
    bytes: usize,
}

/// Number of lines that wait for the model, and of their bytes.
#[derive(Debug, Default)]
struct WaitingLines {
    lines: usize,
    bytes: usize,
}

/// Log of labels.
#[derive(Debug)]
pub struct Learner {
    /// At most one completion per file, the latest last.
    shown: Mutex<VecDeque<ShownCompletion>>,
    written: Sender<LineOutcome>,
    state: Arc<LearnerState>,
}

/// State shared by requests and the thread that writes labels.
#[derive(Debug)]
struct LearnerState {
    /// Kind of fragments.
    fragments: String,
    last_request: Mutex<Instant>,
    /// Connection of a completion that no editor waits for.
    asking: Mutex<Option<Endpoint>>,
    waiting: Mutex<WaitingLines>,
    messages: Arc<dyn Messages>,
}

impl LearnerState {
    fn warn(&self, text: &str) {
        self.messages.warning(text.into());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Learner {
    /// Opens a log of labels for appending. `fragments` is the kind of fragments of this server.
    ///
    /// # Errors
    /// The log cannot be opened, or has labels for another kind of fragments.
    pub fn open(
        path: &Path,
        endpoint: &Endpoint,
        fragments: String,
        messages: Arc<dyn Messages>,
    ) -> Result<Self> {
        let log = Log::open(path)?;
        check_fragments(path, &fragments)?;
        let (written, jobs) = mpsc::channel();
        let state = Arc::new(LearnerState {
            fragments,
            last_request: Mutex::new(Instant::now()),
            asking: Mutex::default(),
            waiting: Mutex::default(),
            messages,
        });
        let (shared, endpoint) = (Arc::clone(&state), endpoint.clone());
        std::thread::Builder::new()
            .name("labels".into())
            .spawn(move || write_labels(&shared, &endpoint, log, &jobs))
            .map_err(ServeError::system("cannot start a thread"))?;
        Ok(Self { shown: Mutex::default(), written, state })
    }

    /// Looks in a file's text, with its cursor, for the line written in place of a completion, and queues its label. `held` is the range of
    /// the text that is known to be current.
    pub(crate) fn see(&self, path: &str, (text, offset): (&str, usize), held: &Range<usize>) {
        *lock(&self.state.last_request) = Instant::now();
        if let Some(asking) = lock(&self.state.asking).take() {
            asking.close();
        }
        let mut all = lock(&self.shown);
        let Some(at) = all.iter().position(|shown| shown.asked.task.path == path) else { return };
        let seen = find_fate(&all[at], (text, offset), held);
        if matches!(seen, CompletionFate::Typing) {
            return;
        }
        if let (Some(mut shown), CompletionFate::Written { truth, accepted }) =
            (all.remove(at), seen)
        {
            let bytes = shown.asked.bytes();
            shown.asked.text = String::new();
            let mut waiting = lock(&self.state.waiting);
            let count = waiting.lines;
            if count == WAITING || count > 0 && waiting.bytes + bytes > MOST_BYTES {
                drop(waiting);
                self.state.warn(&format!(
                    "{path}: a line was not labelled, because {count} labels wait for the model"
                ));
                return;
            }
            *waiting = WaitingLines { lines: count + 1, bytes: waiting.bytes + bytes };
            drop(waiting);
            if self.written.send(LineOutcome { shown, truth, accepted, bytes }).is_err() {
                self.state
                    .warn(&format!("{path}: a line was not labelled, because the log was closed"));
            }
        }
    }

    /// Returns whether the completion shown last in a file is still kept.
    pub(crate) fn has(&self, path: &str) -> bool {
        is_kept(&lock(&self.shown), path)
    }

    /// Keeps a completion that was shown, unless an earlier one is kept for the file.
    pub(crate) fn keep(&self, asked: LearnRequest, completion: String, model: String) {
        *lock(&self.state.last_request) = Instant::now();
        let mut all = lock(&self.shown);
        if is_kept(&all, &asked.task.path) {
            return;
        }
        let mut bytes: usize =
            asked.bytes() + all.iter().map(|shown| shown.asked.bytes()).sum::<usize>();
        while all.len() >= FILES || bytes > MOST_BYTES {
            let Some(oldest) = all.pop_front() else { break };
            bytes -= oldest.asked.bytes();
        }
        all.push_back(ShownCompletion { asked, completion, model });
    }
}

/// Rejects a log with labels for another kind of fragments: no policy could be trained on it.
fn check_fragments(path: &Path, here: &str) -> Result<()> {
    #[derive(serde::Deserialize)]
    struct FragmentsOfLabels {
        fragments: String,
    }
    let failed = ServeError::system(format!("{}: cannot be read", path.display()));
    let text = files::read_regular(path).map_err(failed)?;
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        // A truncated line is reported when the labels are read.
        if let Ok(there) = serde_json::from_slice::<FragmentsOfLabels>(line)
            && there.fragments != here
        {
            return Err(ServeError::OtherFragments {
                path: path.to_owned(),
                line: number,
                found: there.fragments,
                here: here.to_owned(),
            });
        }
    }
    Ok(())
}

fn is_kept(all: &VecDeque<ShownCompletion>, path: &str) -> bool {
    all.iter().any(|shown| shown.asked.task.path == path)
}

/// Outcome of a completion that was shown.
#[derive(Debug, PartialEq)]
enum CompletionFate {
    /// The line is still being written.
    Typing,
    /// Nothing was written in its place, or the text around it changed.
    Nothing,
    Written {
        truth: String,
        accepted: bool,
    },
}

fn find_fate(
    shown: &ShownCompletion,
    (text, offset): (&str, usize),
    held: &Range<usize>,
) -> CompletionFate {
    let LearnRequest { text: before, offset: at, .. } = &shown.asked;
    let seen = of_text((&before[..*at], &before[*at..]), &shown.completion, (text, offset));
    match &seen {
        // Outside `held`, the text is the last saved text and may be outdated.
        CompletionFate::Written { truth, .. }
            if *at < held.start || at + truth.len() > held.end =>
        {
            CompletionFate::Nothing
        }
        _ => seen,
    }
}

/// Returns the outcome of a completion: the lines between the texts before and after the cursor at which it was shown, as many as the
/// completion has.
fn of_text(
    (left, right): (&str, &str),
    completion: &str,
    (text, offset): (&str, usize),
) -> CompletionFate {
    let rest = text.strip_prefix(left).and_then(|rest| rest.strip_suffix(right));
    let Some(between) = rest else { return CompletionFate::Nothing };
    let inside = offset.checked_sub(left.len()).filter(|at| *at <= between.len());
    // The cursor's line is unfinished.
    let whole = match inside {
        Some(at) => match between[..at].rfind('\n') {
            Some(end) => &between[..=end],
            None => return CompletionFate::Typing,
        },
        None => between,
    };
    let count = completion.trim_end().split_inclusive('\n').count().max(1);
    // The cursor is in the last line of an accepted completion of several lines.
    let lines = whole.split_inclusive('\n').count();
    if inside.is_some() && lines < count && completion.starts_with(whole) {
        return CompletionFate::Typing;
    }
    let end = whole.split_inclusive('\n').take(count).map(str::len).sum();
    let truth = &whole[..end];
    if truth.trim().is_empty() {
        return CompletionFate::Nothing;
    }
    let accepted = !completion.trim().is_empty() && truth.trim_end() == completion.trim_end();
    CompletionFate::Written { truth: truth.to_owned(), accepted }
}

/// Requests the completions that were not shown, one at a time, and writes the labels.
fn write_labels(
    state: &LearnerState,
    endpoint: &Endpoint,
    mut log: Log,
    jobs: &Receiver<LineOutcome>,
) {
    while let Ok(written) = jobs.recv() {
        let (path, bytes) = (written.shown.asked.task.path.clone(), written.bytes);
        let done = patient_completion(state, endpoint, &written.shown.asked)
            .and_then(|other| label(written, other, &state.fragments))
            .map_err(ServeError::from)
            .and_then(|label| log.add(&label));
        if let Err(error) = done {
            state.warn(&format!("{path}: a line was not labelled: {}", error.with_causes()));
        }
        let mut waiting = lock(&state.waiting);
        (waiting.lines, waiting.bytes) = (waiting.lines - 1, waiting.bytes - bytes);
    }
}

/// Returns the completion of the other prompt, retrying in case the server must be restarted.
fn patient_completion(
    state: &LearnerState,
    endpoint: &Endpoint,
    asked: &LearnRequest,
) -> Result<String, Error> {
    let mut tries = 0;
    loop {
        match other_completion(state, endpoint, asked) {
            Err(Error::Endpoint { status: None | Some(429 | 500..), .. }) if tries < TRIES => {
                tries += 1;
                std::thread::sleep(LATER);
            }
            done => return done,
        }
    }
}

/// Returns the completion of the other prompt. A request of the editor cancels it, and it is requested again afterwards.
fn other_completion(
    state: &LearnerState,
    endpoint: &Endpoint,
    asked: &LearnRequest,
) -> Result<String, Error> {
    loop {
        loop {
            let since = lock(&state.last_request).elapsed();
            let Some(left) = PAUSE.checked_sub(since).filter(|left| !left.is_zero()) else { break };
            std::thread::sleep(left);
        }
        let own = endpoint.with_own_connections();
        *lock(&state.asking) = Some(own.clone());
        // An editor request that arrived just before could not close this connection yet.
        if lock(&state.last_request).elapsed() < PAUSE {
            continue;
        }
        let mut text = String::new();
        let done = stream(&own, asked.other.clone(), &mut |part| {
            if let StreamPart::Text(more) = part {
                text += &more;
            }
            false
        });
        let was_closed = lock(&state.asking).take().is_none();
        match done {
            Ok(()) => return Ok(text),
            Err(_) if was_closed => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the label of a line, from the completions with and without retrieval.
fn label(written: LineOutcome, other: String, fragments: &str) -> Result<Value, Error> {
    let LineOutcome {
        shown: ShownCompletion { asked, completion, model }, truth, accepted, ..
    } = written;
    let LearnRequest { mut task, found, signals, retrieved, .. } = asked;
    let completions = if retrieved { [other, completion] } else { [completion, other] };
    let end = task.line_no + line_ends(&truth).max(1);
    task.id = format!("{}/{}_{end}", task.path, task.line_no);
    task.cross_file = Some(CrossFile::new(found.fragments, task.language()));
    task.right_context = Some(found.right.into());
    task.ground_truth = truth;
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut metadata = task.metadata.to_object();
    metadata.insert("kind".into(), "line".into());
    metadata.insert("completions".into(), completions.to_vec().into());
    metadata.insert("accepted".into(), accepted.into());
    metadata.insert("retrieved".into(), retrieved.into());
    metadata.insert("time".into(), time.into());
    task.metadata = metadata.into();
    let model = Some(model).filter(|model| !model.is_empty());
    let mut label = judge_one(task, completions, model.as_deref(), 0.0)?;
    label.signals = signals;
    label.fragments = Some(fragments.to_owned());
    Ok(label.to_record())
}

/// File to which lines are appended.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: files::File,
    /// Whether the last line may be truncated.
    is_cut: bool,
}

impl Log {
    fn open(path: &Path) -> Result<Self> {
        let mut options = std::fs::File::options();
        options.read(true).append(true).create(true);
        // The log contains the user's code.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let open = || -> std::io::Result<files::File> {
            let mut file = files::File::open_with(&options, path)?;
            // Keep a truncated line separate from the next one.
            if file.metadata()?.len() > 0 {
                let mut last = [0];
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
                if last != *b"\n" {
                    file.write_all(b"\n")?;
                }
            }
            Ok(file)
        };
        let failed = ServeError::system(format!("{}: cannot be opened", path.display()));
        let file = open().map_err(failed)?;
        Ok(Self { path: path.to_owned(), file, is_cut: false })
    }

    fn add(&mut self, record: &Value) -> Result<()> {
        let line = format!("{}{record}\n", if self.is_cut { "\n" } else { "" });
        let written = self.file.write_all(line.as_bytes());
        self.is_cut = written.is_err();
        written.map_err(ServeError::system(format!("{}: cannot be written", self.path.display())))
    }
}

#[cfg(test)]
mod tests {
    use repoformer_core::completion::CompletionRequest;

    use super::*;
    use crate::tests::{MessageLog, endpoint};

    #[test]
    fn what_was_written_is_what_stands_between_the_texts_around_the_cursor() {
        let around = ("a\nx = ", "\nb\n");
        let seen = |completion: &str, between: &str, offset: usize| {
            let text = format!("{}{between}{}", around.0, around.1);
            of_text(around, completion, (&text, offset))
        };
        let at = around.0.len();
        let of = |truth: &str, accepted| CompletionFate::Written { truth: truth.into(), accepted };
        assert_eq!(seen("f(1)", "f(", at + 2), CompletionFate::Typing);
        assert_eq!(seen("f(1)", "f(1)\ny", at + 6), of("f(1)\n", true));
        assert_eq!(seen("f(1)", "g(2)\ny", at + 6), of("g(2)\n", false));
        assert_eq!(seen("f(1)\nh()", "f(1)\nh()", at + 8), CompletionFate::Typing);
        assert_eq!(seen("f(1)\nh()", "f(1)\nh()\n", at + 9), of("f(1)\nh()\n", true));
        assert_eq!(seen("f(1)\nh()", "g(2)\ny", at + 6), of("g(2)\n", false));
        // The cursor is elsewhere.
        assert_eq!(seen("f(1)", "g(2)", 0), of("g(2)", false));
        assert_eq!(seen("f(1)\nh()", "f(1)\nh()\nmore\n", 0), of("f(1)\nh()\n", true));
        assert_eq!(seen("", "g(2)", 0), of("g(2)", false));
        assert_eq!(seen("f(1)", "", 0), CompletionFate::Nothing);
        assert_eq!(seen("f(1)", " \n", 0), CompletionFate::Nothing);
        // The surrounding text differs.
        assert_eq!(of_text(around, "f(1)", ("c\nx = f(1)\nb\n", 0)), CompletionFate::Nothing);
        assert_eq!(of_text(("aa", "aa"), "", ("aaa", 0)), CompletionFate::Nothing);
    }

    /// Returns a learner whose model writes `other` for each prompt, the path of its log, and the endpoint.
    fn learner(dir: &tempfile::TempDir, other: &'static str) -> (Learner, PathBuf, Endpoint) {
        let path = dir.path().join("labels.jsonl");
        let endpoint = endpoint(
            move |_| serde_json::json!({"choices": [{"index": 0, "text": other, "finish_reason": "stop"}]}),
        );
        let kind = "chunks ranked by jaccard".to_owned();
        let learner = Learner::open(&path, &endpoint, kind, Arc::<MessageLog>::default()).unwrap();
        (learner, path, endpoint)
    }

    fn asked(text: &str, offset: usize) -> LearnRequest {
        let task = Task::new("cursor".into(), "shop/a.py", 0, 1, "", &text[..offset]);
        let request = CompletionRequest::new("m", 16);
        LearnRequest {
            task,
            text: text.to_owned(),
            offset,
            found: PromptContext { fragments: Vec::new(), right: text[offset..].to_owned() },
            signals: Signals::default(),
            retrieved: false,
            other: StreamRequest::new(&request, text, &serde_json::Map::new()),
        }
    }

    #[test]
    fn an_accepted_line_becomes_a_label_after_a_pause() {
        let dir = tempfile::tempdir().unwrap();
        let (learner, path, _endpoint) = learner(&dir, "g(2)");
        let before = "a = 1\nb = ";
        learner.keep(asked(before, before.len()), "f(1)".into(), "m".into());
        assert!(learner.has("shop/a.py") && !learner.has("shop/b.py"));
        let typing = format!("{before}f(");
        learner.see("shop/a.py", (&typing, typing.len()), &(0..typing.len()));
        assert!(learner.has("shop/a.py"), "the line is still typed");
        let after = format!("{before}f(1)\n");
        learner.see("shop/a.py", (&after, after.len()), &(0..after.len()));
        assert!(!learner.has("shop/a.py"));
        let begin = Instant::now();
        let label = loop {
            let text = String::from_utf8(files::read(&path).unwrap()).unwrap();
            if text.ends_with('\n') {
                break serde_json::from_str::<Value>(&text).unwrap();
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "no label");
            std::thread::sleep(Duration::from_millis(20));
        };
        let metadata = &label["metadata"];
        assert_eq!(label["groundtruth"], "f(1)\n");
        assert_eq!(metadata["completions"], serde_json::json!(["f(1)", "g(2)"]));
        assert_eq!((&metadata["accepted"], &metadata["retrieved"]), (&true.into(), &false.into()));
        assert_eq!(label["fragments"], "chunks ranked by jaccard");
        assert!(begin.elapsed() >= PAUSE / 2, "the model was asked while the user typed");
    }

    #[test]
    fn large_texts_wait_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let (learner, ..) = learner(&dir, "g(2)");
        let before = format!("{}\nb = ", "x".repeat(10 << 20));
        let mut other = asked(&before, before.len());
        other.task.path = "shop/b.py".into();
        learner.keep(other, "f(1)".into(), "m".into());
        for lines in [1, 1] {
            learner.keep(asked(&before, before.len()), "f(1)".into(), "m".into());
            assert!(learner.has("shop/a.py") && !learner.has("shop/b.py"));
            let after = format!("{before}f(1)\n");
            learner.see("shop/a.py", (&after, after.len()), &(0..after.len()));
            assert_eq!(lock(&learner.state.waiting).lines, lines);
        }
    }

    #[test]
    fn text_that_no_request_held_is_no_truth() {
        let shown = |text: &str, offset| ShownCompletion {
            asked: asked(text, offset),
            completion: "f(1)".into(),
            model: String::new(),
        };
        let (before, after) = ("b = \nc = 2\n", "b = f(1)\nc = 2\n");
        let seen = |held| find_fate(&shown(before, 4), (after, after.len()), &held);
        let truth = CompletionFate::Written { truth: "f(1)".into(), accepted: true };
        assert_eq!(seen(0..after.len()), truth);
        assert_eq!(seen(0..6), CompletionFate::Nothing, "the rest is as it was saved");
        assert_eq!(seen(5..after.len()), CompletionFate::Nothing);
    }

    #[test]
    fn a_log_of_other_fragments_is_refused_and_half_a_line_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("labels.jsonl");
        std::fs::write(&path, "{\"fragments\": \"a\"}\n{\"fragments\": \"b\"}\n{\"fragm").unwrap();
        let error = check_fragments(&path, "a").unwrap_err();
        assert!(
            error.to_string().ends_with(":2: this label is of b, but this server uses a"),
            "{error}"
        );
        Log::open(&path).unwrap().add(&serde_json::json!({"fragments": "a"})).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("{\"fragm\n{\"fragments\":\"a\"}\n"), "{text}");
    }
}
