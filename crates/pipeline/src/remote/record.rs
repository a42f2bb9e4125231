//! Prompts' records on their way to a server, and back with its answers.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use repoformer_core::completion::{CompletionRequest, Confidence, entropy};
use repoformer_core::postprocess::{HoleContext, Recipe};
use repoformer_core::prompt::style::stops_of;
use repoformer_core::repository::parallel;
use repoformer_core::retrieve::Mode;
use repoformer_models::server::{Journal, JournalEntry, SendSettings};
use repoformer_store::artifact::{self, Header, digest_parts};
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{self, Fields, LONGEST_LINE, Object};
use repoformer_text::language::Language;
use repoformer_text::lines::strip;
use repoformer_text::message::Message;
use serde_json::json;

use super::super::completion::{
    Completion, CompletionBound, Server, parse_prompt, record_line, target_lines,
};
use super::super::experiment::Experiment;
use super::super::prompt_artifact::{for_each_prompts, require_prompts};
use super::latency::Latency;

/// Prompts to complete, read from their source whenever they are needed: all prompts of a data set would take too much memory.
#[derive(Debug, Clone)]
pub struct PromptText {
    /// Path of the source.
    pub(super) path: PathBuf,
    held: RecordPlace,
}

/// Location of the records.
#[derive(Debug, Clone)]
enum RecordPlace {
    /// Cached prompts of a mode, with this header.
    Cached(Mode, Box<Header>),
    /// A file.
    File,
    /// Memory: stdin and pipes are read once.
    Here(Vec<u8>),
}

impl PromptText {
    /// Returns the prompts of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_file(path: &Path) -> Result<Self> {
        let held =
            if path.is_file() { RecordPlace::File } else { RecordPlace::Here(jsonl::read(path)?) };
        Ok(Self { path: path.to_owned(), held })
    }

    /// Returns the cached prompts of a mode.
    ///
    /// # Errors
    /// The prompts are missing, cut off, or were built differently.
    pub fn of_mode(experiment: &Experiment, mode: Mode) -> Result<Self> {
        Ok(Self::of_header(experiment, mode, require_prompts(experiment, mode)?))
    }

    /// Returns the prompts of a mode with this header.
    pub(crate) fn of_header(experiment: &Experiment, mode: Mode, header: Header) -> Self {
        let path = experiment.paths().prompts(mode);
        Self { path, held: RecordPlace::Cached(mode, Box::new(header)) }
    }

    /// Returns the mode of the prompts, if they are cached.
    pub(super) fn mode(&self) -> Option<Mode> {
        match self.held {
            RecordPlace::Cached(mode, _) => Some(mode),
            RecordPlace::File | RecordPlace::Here(_) => None,
        }
    }

    /// Returns the path of the source.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `take` with whole lines, a few megabytes at a time. Damage to cached prompts is noticed only at the end.
    ///
    /// # Errors
    /// The prompts cannot be read, are damaged, or have changed; or `take` returns an error.
    pub(crate) fn for_each_piece(&self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match &self.held {
            RecordPlace::Cached(mode, header) => for_each_prompts(&self.path, *mode, header, take),
            RecordPlace::File => artifact::whole_lines(&self.path, jsonl::open(&self.path)?, take),
            RecordPlace::Here(text) => take(text),
        }
    }

    /// Opens the lines, from the first.
    fn lines(&self) -> Result<Box<dyn BufRead + Send + '_>> {
        match &self.held {
            RecordPlace::Here(text) => Ok(Box::new(&text[..])),
            RecordPlace::Cached(..) | RecordPlace::File => Ok(jsonl::open(&self.path)?),
        }
    }
}

/// Records of some prompts, each read on request.
pub(super) struct RecordQueue<'a> {
    server: &'a Server,
    prompts: &'a PromptText,
    completion: &'a Completion,
    /// Line of each record that can be requested.
    lines: &'a [usize],
    input: Option<Box<dyn BufRead + Send + 'a>>,
    /// Number and text of the last line read.
    last: usize,
    bytes: Vec<u8>,
}

impl<'a> RecordQueue<'a> {
    pub(super) fn new(
        server: &'a Server,
        prompts: &'a PromptText,
        completion: &'a Completion,
        askable: &'a RequestableRecords,
    ) -> Self {
        Self {
            server,
            prompts,
            completion,
            lines: &askable.lines,
            input: None,
            last: 0,
            bytes: Vec::new(),
        }
    }

    /// Returns the record at this index of `lines`; fastest in order.
    ///
    /// # Errors
    /// The record cannot be read.
    pub(crate) fn record(&mut self, place: usize) -> Result<OpenRecord> {
        let (path, line) = (self.prompts.path.as_path(), self.lines[place]);
        let mut input = match self.input.take().filter(|_| self.last < line) {
            Some(input) => input,
            None => {
                self.last = 0;
                self.prompts.lines()?
            }
        };
        while self.last < line {
            self.bytes.clear();
            let read = jsonl::read_line(&mut input, || LONGEST_LINE, &mut self.bytes);
            self.last += 1;
            if read.map_err(|e| Error::reading(path, "read this file", e))? == 0 {
                return Err(change_error(path));
            }
        }
        self.input = Some(input);
        self.server.record(path, line, &self.bytes, self.completion)
    }
}

/// Records that can be requested.
#[derive(Default)]
pub(super) struct RequestableRecords {
    /// Line of each record.
    pub(super) lines: Vec<usize>,
    /// Key of each record's request.
    pub(super) keys: Vec<String>,
}

/// Returns the error for prompts that have changed since they were requested.
pub(super) fn change_error(path: &Path) -> Error {
    let reason = "was changed while its prompts were being completed";
    Error::artifact(path, reason, "run the same command again to continue with the current prompts")
}

/// A prompt's record between the file and the server.
pub(super) struct OpenRecord {
    pub(super) line: usize,
    pub(super) task_id: String,
    pub(super) asking: CompletionRequest,
    /// Number of non-blank lines in the completion; `None` if the completion ends with the last token.
    lines: Option<usize>,
    /// The record without its retrieved parts; its prompt is a text.
    pub(super) object: Object,
}

impl OpenRecord {
    pub(super) fn prompt(&self) -> &str {
        self.object["prompt"].as_str().unwrap_or_default()
    }

    /// Returns the key of the request for all tokens.
    pub(super) fn whole_key(&self) -> String {
        self.asking.key(self.prompt())
    }

    /// True if a [key](Self::key) belongs to this record, whichever answers exist.
    pub(super) fn has_key(&self, key: &str) -> bool {
        let whole = self.whole_key();
        whole == key || self.lines.is_some_and(|lines| ended_key(&whole, lines) == key)
    }

    /// Returns the key of the request to use or to send. This is the request that ends after the lines, unless the journal has the
    /// answer to the request for all tokens, or only the failure of that request. `sending` is `None` for a batch, which does not
    /// stream and so requests all tokens.
    pub(super) fn key(&self, journal: Option<&Journal>, sending: Option<SendSettings>) -> String {
        let whole = self.whole_key();
        let Some(lines) = self.lines else {
            return whole;
        };
        let ended = ended_key(&whole, lines);
        let has_answer = |key: &str| journal.is_some_and(|journal| journal.has_answer(key));
        let is_failed = |SendSettings { retry_failed, .. }: SendSettings| {
            journal.is_some_and(|journal| !journal.is_open(&whole, retry_failed))
        };
        let is_whole = has_answer(&whole) || (!has_answer(&ended) && sending.is_none_or(is_failed));
        if is_whole { whole } else { ended }
    }

    /// Returns a function that is true if a server has written all lines of a completion, or a stop text. Its number is the length
    /// of a prefix known to be too short.
    pub(super) fn is_enough(&self) -> Option<impl Fn(&str, usize) -> bool + '_> {
        let lines = self.lines?;
        Some(move |written: &str, not_enough: usize| {
            let span = self.asking.span(self.prompt(), written);
            let from = not_enough.saturating_sub(span.start);
            span.end < written.len()
                || end_of_lines(self.prompt(), &written[span], lines, from).is_some()
        })
    }

    /// Returns a number in the record's metadata.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.object.get("metadata")?.get(name)?.as_u64()
    }

    pub(super) fn failure_error(&self, path: &Path, reason: impl Into<Message>) -> Error {
        Error::Task {
            path: path.to_owned(),
            line: self.line,
            task_id: self.task_id.clone(),
            reason: reason.into(),
        }
    }

    /// True if an answer continues after the lines of the completion, so that its time is not the completion's.
    fn is_longer(&self, entry: &JournalEntry) -> bool {
        let has_end = |lines: usize, written: &str| {
            end_of_lines(self.prompt(), self.asking.completion(self.prompt(), written), lines, 0)
                .is_some()
        };
        entry.key == self.whole_key()
            && self.lines.is_some_and(|lines| {
                entry.samples.iter().any(|sample| has_end(lines, &sample.text))
            })
    }

    /// Returns the times of an answer to the record.
    pub(super) fn latency(&self, entry: &JournalEntry) -> Latency {
        let seconds = entry.seconds.filter(|_| !self.is_longer(entry));
        Latency {
            task_id: self.task_id.clone(),
            row: self.number("row"),
            sample: self.number("sample").unwrap_or(0),
            retrieval_ms: None,
            without_embedding: false,
            generation_ms: seconds.map(|seconds| 1e3 * seconds),
            decision_ms: None,
            at_once: entry.at_once,
        }
    }

    /// Returns the record with the answers: each as it continues the whole prompt, and as written if that differs.
    pub(super) fn with_answers(self, entry: &JournalEntry) -> Vec<u8> {
        let (mut choices, mut all) = (Vec::new(), Vec::new());
        for (index, sample) in entry.samples.iter().enumerate() {
            let mut span = self.asking.span(self.prompt(), &sample.text);
            let (mut written, mut finish) = (&*sample.text, sample.finish_reason.as_deref());
            let mut tokens = &sample.tokens[..];
            let is_cut = self.lines.is_some() && span.end < sample.text.len();
            let text = &sample.text[span.clone()];
            let end = self.lines.and_then(|lines| end_of_lines(self.prompt(), text, lines, 0));
            if let Some(end) = end.or(is_cut.then_some(text.len())) {
                // How much text arrives before the server stops depends on timing.
                span.end = span.start + end;
                written = &written[..span.end];
                tokens = sample.tokens_before(span.end);
                finish = Some("stop");
            }
            let text = &sample.text[span.clone()];
            let mut choice = json!({"text": text, "index": index, "finish_reason": finish});
            if !tokens.is_empty() {
                let (tokens, logprobs): (Vec<&str>, Vec<f64>) =
                    tokens.iter().map(|token| (token.text.as_str(), token.logprob)).unzip();
                choice["logprobs"] = json!({"tokens": tokens, "token_logprobs": logprobs});
            }
            // The confidence in the completion without other text; omitted if unknown.
            let logprobs = sample.logprobs(span);
            if let Some(sure) = Confidence::from_logprobs(&logprobs) {
                choice["mean_logprob"] = sure.mean_logprob.into();
                choice["min_logprob"] = sure.min_logprob.into();
            }
            if written != text {
                choice["written"] = written.into();
            }
            choices.push(choice);
            all.push(logprobs);
        }
        let mut asked = self.asking.to_record();
        let until =
            if self.lines.is_some() { CompletionBound::Lines } else { CompletionBound::Tokens };
        asked["until"] = until.name().into();
        let is_drawn = self.asking.temperature == 1.0 && self.asking.top_p.is_none();
        let mut object = self.object;
        object.insert("asked".into(), asked);
        object.remove("entropy");
        if let Some(entropy) = entropy(&all).filter(|_| is_drawn) {
            object.insert("entropy".into(), entropy.into());
        }
        record_line(object, choices.into())
    }
}

/// Returns the key of a request for this number of lines, from the key for all tokens.
fn ended_key(whole: &str, lines: usize) -> String {
    digest_parts(["until lines 1", whole, &lines.to_string()])
}

impl Server {
    /// Calls `take` with each record in order, or with the reason why it cannot be requested.
    ///
    /// # Errors
    /// The prompts cannot be read, are damaged, or have changed; or `take` returns an error.
    pub(super) fn for_each_record(
        &self,
        prompts: &PromptText,
        completion: &Completion,
        take: &mut dyn FnMut(Result<OpenRecord>) -> Result<()>,
    ) -> Result<()> {
        let mut before = 0;
        prompts.for_each_piece(&mut |piece| {
            let records = parallel::map(jsonl::records(piece), |(at, bytes)| {
                self.record(&prompts.path, before + at.line, bytes, completion)
            });
            before += memchr::memchr_iter(b'\n', piece).count();
            records.into_iter().try_for_each(&mut *take)
        })
    }

    fn record(
        &self,
        path: &Path,
        line: usize,
        bytes: &[u8],
        completion: &Completion,
    ) -> Result<OpenRecord> {
        let object = parse_prompt(path, line, bytes)?;
        let fields = Fields::new(path, line, "", &object);
        let id = object.get("metadata").and_then(|metadata| jsonl::id(metadata.get("task_id")?));
        let mut asking = CompletionRequest {
            model: completion.model.clone(),
            max_tokens: completion.max_tokens,
            ..self.asking.clone()
        };
        asking.add_stops(stops_of(&object));
        let lines = match self.until {
            CompletionBound::Lines => Some(target_lines(&fields, &object)?),
            CompletionBound::Tokens => None,
        };
        Ok(OpenRecord {
            line,
            task_id: id.unwrap_or_else(|| "without id".to_owned()),
            asking,
            lines,
            object,
        })
    }
}

/// Returns the end of the lines in a completion, before the newline; `None` if more may follow. Lines are counted as they are
/// written, and again without the text that chat models write around code. The caller knows that the lines do not end before
/// `from`.
fn end_of_lines(left_context: &str, text: &str, lines: usize, from: usize) -> Option<usize> {
    let chat = Recipe::chat();
    let language = Language::default();
    let hole = HoleContext { left_context, whole_left_context: None, target: "", language };
    let code_lines =
        |text: &str| text.split('\n').filter(|line| !strip(line).is_empty()).take(lines).count();
    let (mut begin, mut written, mut last_interval) = (0, 0, 0);
    memchr::memchr_iter(b'\n', text.as_bytes()).find(|&end| {
        written += usize::from(!strip(&text[begin..end]).is_empty());
        begin = end + 1;
        if written < lines || interval_of(end) == last_interval {
            return false;
        }
        last_interval = interval_of(end);
        end >= from && code_lines(&chat.apply(hole, &text[..end]).prediction) == lines
    })
}

/// Returns the number, from 1, of the interval that contains a line end; code is extracted at the first line end of each interval.
/// Up to 4 KiB each byte is an interval; after that, each doubling of the text has 64 intervals, so that the work grows with the
/// text: a chat model may think for thousands of lines.
fn interval_of(end: usize) -> usize {
    let doublings = (end >> 12).checked_ilog2().map_or(0, |doublings| doublings as usize + 1);
    let width = doublings.saturating_sub(1) + 6;
    1 + if doublings == 0 { end } else { (doublings << 12) + (end >> width) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_the_same_place_in_a_stream() {
        let thoughts = format!("<think>\n{}</think>\n", "a thought\n".repeat(900));
        let code = format!("\n\n    x = 1\n    \n    y = 2\n{}", "    z = 3\n".repeat(30));
        for text in [code.clone(), format!("```python\n{code}```\n"), thoughts + &code] {
            let whole = end_of_lines("def f():\n", &text, 2, 0).unwrap();
            assert!(text[..whole].ends_with("y = 2") || whole > 4096, "{:?}", &text[..whole]);
            let pieces = (0..=text.len()).step_by(7).scan(0, |from, length| {
                let end = end_of_lines("def f():\n", &text[..length], 2, *from);
                *from = length;
                Some(end)
            });
            assert_eq!(pieces.flatten().next(), Some(whole));
        }
        assert_eq!(end_of_lines("", "x = 1\ny", 2, 0), None);
    }

    /// Work that grows with the square of the text would take hours.
    #[test]
    fn long_texts_without_lines_of_code_end() {
        assert_eq!(end_of_lines("", &"\n".repeat(1 << 20), 1, 0), None);
        let thoughts = format!("<think>\n{}", "a\n".repeat(1 << 17));
        assert_eq!(end_of_lines("", &thoughts, 1, 0), None);
    }

    #[test]
    fn intervals_grow_with_the_text() {
        assert!((0..4096).is_sorted_by_key(interval_of));
        let numbers: Vec<usize> = (0..1 << 16).map(interval_of).collect();
        assert!(numbers.is_sorted());
        let different = numbers.chunk_by(|a, b| a == b).count();
        assert_eq!(different, 4096 + 4 * 64);
    }
}
