//! Replays typing the lines of tasks against a completion server, to measure what an editor would show and how long it would wait.

use std::ops::Range;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use repoformer_core::completion::Api;
use repoformer_core::metrics::repocoder;
use repoformer_core::task::Task;
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::server::read_whole;

/// Number of consecutive failures after which the replay stops.
const MOST_FAILURES: usize = 5;
/// Number of lines before and after the cursor in a request, as in llama.vim.
const LINES: [usize; 2] = [256, 64];

/// Settings for typing lines.
#[derive(Debug, Clone)]
pub struct TypingSettings {
    /// Number of lines typed per task, beginning with its target; at least 1.
    pub lines: usize,
    /// Number of characters typed per line, each with a request.
    pub keystrokes: usize,
    /// Time between two characters, after which an unanswered request is cancelled; if `None`, every request is awaited.
    pub pause: Option<Duration>,
    /// Maximum number of tokens in a completion.
    pub max_tokens: u64,
}

/// Decision of the server, as `/debug/decisions` lists it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ServedDecision {
    number: u64,
    retrieved: Option<bool>,
    outcome: String,
    ms: ServedTimes,
    tokens: ServedTokens,
}

/// Milliseconds of the steps of a decision; steps that were not reached have none.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ServedTimes {
    locate: Option<f64>,
    index: Option<f64>,
    search: Option<f64>,
    decide: Option<f64>,
    prompt: Option<f64>,
    first_token: Option<f64>,
    whole: Option<f64>,
}

/// Token counts of a decision, if the model server reports them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ServedTokens {
    prompt: Option<u64>,
    cached: Option<u64>,
}

/// Health report of the server.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Health {
    repository: Option<String>,
}

/// Percentiles of measured times in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimeSummary {
    /// The median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
    /// Number of values.
    pub n: usize,
}

impl TimeSummary {
    fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (share * values.len() as f64).ceil() as usize;
            values.get(rank.max(1) - 1).copied()
        };
        Self {
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            max: values.last().copied(),
            n: values.len(),
        }
    }
}

/// Results of a replay.
#[derive(Debug, Clone, Serialize)]
pub struct ReplayResults {
    /// Number of lines whose completion was compared with the true line.
    pub lines: usize,
    /// Number of requests that the server decided on.
    pub requests: usize,
    /// Number of requests that were cancelled by the next character.
    pub cancelled: usize,
    /// Number of requests that failed.
    pub failed: usize,
    /// Share of the requests for which the server retrieved context.
    pub retrieved_share: f64,
    /// Milliseconds of indexing, search and decision.
    pub preparing_ms: TimeSummary,
    /// Milliseconds to find the file.
    pub locate_ms: TimeSummary,
    /// Milliseconds to lay out the prompt.
    pub prompt_ms: TimeSummary,
    /// Milliseconds to the first text.
    pub first_text_ms: TimeSummary,
    /// Milliseconds to the end of the completion.
    pub whole_ms: TimeSummary,
    /// Number of prompt tokens of completed requests, if the model server reports it.
    pub prompt_tokens: Option<u64>,
    /// Number of these tokens that the model server had cached.
    pub cached_tokens: Option<u64>,
    /// Number of these tokens that the model server evaluated.
    pub evaluated_tokens: Option<u64>,
    /// Mean edit similarity, between 0 and 1.
    pub es: f64,
}

/// Replay against a completion server.
#[derive(Debug)]
pub struct Replay<'a> {
    endpoint: &'a Endpoint,
    settings: TypingSettings,
    /// Number of the latest decision that was read.
    last: u64,
    decisions: Vec<ServedDecision>,
    es: Vec<f64>,
    errors: Vec<Error>,
    /// Number of requests that failed.
    failed: usize,
    /// Number of consecutive failed requests, up to the last request.
    in_a_row: usize,
}

impl<'a> Replay<'a> {
    /// Starts a replay after the latest decision of the server.
    ///
    /// # Errors
    /// The server does not answer, or it serves a different repository from a task's: the task's file would be found by chance or not at
    /// all.
    pub fn begin(
        endpoint: &'a Endpoint,
        tasks: &[&Task],
        settings: TypingSettings,
    ) -> Result<Self> {
        let kept: Vec<ServedDecision> = read(endpoint, "/debug/decisions")?;
        check_repository(endpoint, tasks)?;
        Ok(Self {
            endpoint,
            settings,
            last: kept.iter().map(|decision| decision.number).max().unwrap_or(0),
            decisions: Vec::new(),
            es: Vec::new(),
            errors: Vec::new(),
            failed: 0,
            in_a_row: 0,
        })
    }

    /// Types the lines of a task whose repository is in a folder. Returns false if the replay must stop, because requests fail repeatedly
    /// or the decisions cannot be read.
    ///
    /// # Errors
    /// The task's file cannot be read or does not contain the task's hole.
    pub fn task(&mut self, task: &Task, dir: &Path) -> Result<bool, String> {
        for line in TypedLine::lines(task, dir, self.settings.lines)? {
            self.type_line(&line);
            if let Err(error) = self.take() {
                self.errors.push(error);
                return Ok(false);
            }
            if self.in_a_row >= MOST_FAILURES {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the results, or `None` if the server made no decisions, and the errors of requests and of unreadable decisions.
    pub fn finish(self) -> (Option<ReplayResults>, Vec<Error>) {
        let results = (!self.decisions.is_empty()).then(|| self.results());
        (results, self.errors)
    }

    /// Requests a completion at the beginning of a line and after each typed character.
    fn type_line(&mut self, line: &TypedLine) {
        let first = self.ask(line, "");
        let first = self.note(first);
        for (at, typed) in line.target.char_indices().take(self.settings.keystrokes) {
            if self.in_a_row >= MOST_FAILURES {
                return;
            }
            let typed_so_far = &line.target[..at + typed.len_utf8()];
            let answered = match self.settings.pause {
                None => Some(self.ask(line, typed_so_far)),
                Some(pause) => self.ask_for(line, typed_so_far, pause),
            };
            if let Some(answered) = answered {
                self.note(answered);
            }
        }
        // The score uses as many lines as the target has; a blank target is not scored.
        if let Some(first) = first.filter(|_| !line.target.trim().is_empty()) {
            self.es.push(repocoder::score(&line.target, &first).es);
        }
    }

    fn ask(&self, line: &TypedLine, typed: &str) -> Result<String> {
        complete(self.endpoint, &line.body(typed, self.settings.max_tokens))
    }

    /// Requests a completion until the next character is typed; `None` if there is no answer by then.
    fn ask_for(&self, line: &TypedLine, typed: &str, pause: Duration) -> Option<Result<String>> {
        let (begin, own) = (Instant::now(), self.endpoint.with_own_connections());
        let (asked, body) = (own.clone(), line.body(typed, self.settings.max_tokens));
        let (sender, answered) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = sender.send(complete(&asked, &body));
        });
        let answer = answered.recv_timeout(pause).ok();
        own.close();
        std::thread::sleep(pause.saturating_sub(begin.elapsed()));
        answer
    }

    /// Counts a failed request; returns the completion of a successful one.
    fn note(&mut self, answer: Result<String>) -> Option<String> {
        match answer {
            Ok(text) => {
                self.in_a_row = 0;
                Some(text)
            }
            Err(error) => {
                self.failed += 1;
                self.in_a_row += 1;
                self.errors.push(error);
                None
            }
        }
    }

    /// Reads the decisions after the last one; the server keeps them only for a while.
    fn take(&mut self) -> Result<()> {
        // The server records a cancelled request only after its connection is closed.
        std::thread::sleep(Duration::from_millis(5));
        let path = format!("/debug/decisions?after={}", self.last);
        let decisions: Vec<ServedDecision> = read(self.endpoint, &path)?;
        let last = self.last;
        for decision in decisions.into_iter().filter(|decision| decision.number > last) {
            self.last = self.last.max(decision.number);
            self.decisions.push(decision);
        }
        Ok(())
    }

    fn results(&self) -> ReplayResults {
        let times = |of: fn(&ServedTimes) -> Option<f64>| {
            TimeSummary::new(self.decisions.iter().filter_map(|one| of(&one.ms)).collect())
        };
        let preparing = self.decisions.iter().map(|ServedDecision { ms, .. }| {
            [ms.index, ms.search, ms.decide].into_iter().flatten().sum()
        });
        let tokens = |of: fn(&ServedTokens) -> Option<u64>| -> Option<u64> {
            let mut all = self.decisions.iter().filter(|one| one.outcome == "done");
            all.try_fold(0u64, |sum, one| Some(sum.saturating_add(of(&one.tokens)?)))
        };
        let count = |is_it: fn(&ServedDecision) -> bool| {
            self.decisions.iter().filter(|one| is_it(one)).count()
        };
        let (prompt, cached) = (tokens(|of| of.prompt), tokens(|of| of.cached));
        let retrieved = count(|one| one.retrieved == Some(true));
        ReplayResults {
            lines: self.es.len(),
            requests: self.decisions.len(),
            cancelled: count(|one| one.outcome == "cancelled"),
            failed: self.failed,
            retrieved_share: retrieved as f64 / self.decisions.len().max(1) as f64,
            preparing_ms: TimeSummary::new(preparing.collect()),
            locate_ms: times(|ms| ms.locate),
            prompt_ms: times(|ms| ms.prompt),
            first_text_ms: times(|ms| ms.first_token),
            whole_ms: times(|ms| ms.whole),
            prompt_tokens: prompt,
            cached_tokens: cached,
            evaluated_tokens: prompt.zip(cached).map(|(all, cached)| all.saturating_sub(cached)),
            es: self.es.iter().sum::<f64>() / self.es.len().max(1) as f64,
        }
    }
}

/// Reads the server's answer at a path.
fn read<T: for<'de> Deserialize<'de>>(endpoint: &Endpoint, path: &str) -> Result<T> {
    let answer = endpoint.get_json(path)?;
    T::deserialize(answer).map_err(|error| Error::FailedAnswer {
        url: endpoint.url(path),
        reason: format!("unexpected answer: {error}"),
        hint: "is the server at this URL `repoformer serve`?".into(),
    })
}

fn check_repository(endpoint: &Endpoint, tasks: &[&Task]) -> Result<()> {
    let Health { repository: Some(served) } = read(endpoint, "/health")? else { return Ok(()) };
    match tasks.iter().find(|task| task.repository != served) {
        None => Ok(()),
        Some(other) => Err(Error::from_refusal(
            format!(
                "task '{}' belongs to repository {}, but the server serves {served}",
                other.id, other.repository
            ),
            message![
                format!("choose the tasks of {served} among the "),
                UserChoice::Repositories,
                ", or start the server with the other repository"
            ],
        )),
    }
}

fn complete(endpoint: &Endpoint, body: &Value) -> Result<String> {
    let (samples, _) = read_whole(endpoint, Api::Completions, body)?;
    Ok(samples.into_iter().next().map(|sample| sample.text).unwrap_or_default())
}

/// Line to type, and the text around it.
#[derive(Debug, PartialEq, Eq)]
struct TypedLine {
    file: String,
    prefix: String,
    suffix: String,
    target: String,
}

impl TypedLine {
    /// Returns the lines of a task, in order. The text after the last of them is present from the start.
    fn lines(task: &Task, dir: &Path, lines: usize) -> Result<Vec<Self>, String> {
        let path = dir.join(&task.path);
        let text = files::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let text = text.replace("\r\n", "\n");
        let hole = task.hole(&text)?;
        let file = task.path.split_once('/').map_or(&*task.path, |(_, file)| file);
        let mut targets: Vec<Range<usize>> = Vec::new();
        targets.push(hole.start..hole.end);
        let rest = &text[hole.end..];
        let mut start = hole.end + rest.find('\n').map_or(rest.len(), |at| at + 1);
        for line in text[start..].split_inclusive('\n').take(lines.saturating_sub(1)) {
            targets.push(start..start + line.trim_end_matches('\n').len());
            start += line.len();
        }
        let [before, after] = LINES;
        let end = targets.last().map_or(hole.end, |last| last.end);
        let behind = &text[end..];
        let last = behind.match_indices('\n').nth(after).map_or(behind.len(), |(at, _)| at + 1);
        let of_line = |target: Range<usize>| {
            let start = &text[..target.start];
            let first = start.rmatch_indices('\n').nth(before).map_or(0, |(at, _)| at + 1);
            Self {
                file: file.to_owned(),
                prefix: start[first..].to_owned(),
                suffix: behind[..last].to_owned(),
                target: text[target].to_owned(),
            }
        };
        Ok(targets.into_iter().map(of_line).collect())
    }

    /// Returns the request for the line typed so far.
    fn body(&self, typed: &str, max_tokens: u64) -> Value {
        let prefix = format!("{}{typed}", self.prefix);
        json!({
            "prompt": prefix, "suffix": self.suffix, "filepath": self.file, "max_tokens": max_tokens,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summed_up_by_their_ranks() {
        let summary = TimeSummary::new((1..=100).rev().map(f64::from).collect());
        assert_eq!((summary.p50, summary.p95, summary.p99), (Some(50.0), Some(95.0), Some(99.0)));
        assert_eq!((summary.max, summary.n), (Some(100.0), 100));
        let none = TimeSummary::new(Vec::new());
        assert_eq!((none.p50, none.max, none.n), (None, None, 0));
    }

    #[test]
    fn the_lines_behind_a_target_are_typed_after_it() {
        let dir = tempfile::tempdir().unwrap();
        files::create_dir(dir.path().join("shop")).unwrap();
        let text = "import a\r\nx = a.b(1)\r\ny = 2\r\n\r\nz = 3\r\n";
        files::write(dir.path().join("shop/cart.py"), text).unwrap();
        let task = Task::new("shop/0".into(), "shop/cart.py", 1, 1, "x = a.b(1)", "import a\n");
        let lines = TypedLine::lines(&task, dir.path(), 3).unwrap();
        let targets: Vec<_> = lines.iter().map(|line| line.target.trim_end()).collect();
        assert_eq!(targets, ["x = a.b(1)", "y = 2", ""]);
        assert!(lines.iter().all(|line| line.file == "cart.py" && line.suffix.contains("z = 3")));
        assert!(lines[1].prefix.ends_with("x = a.b(1)\n"), "{:?}", lines[1].prefix);
        assert_eq!(lines[0].body("x =", 7)["prompt"], "import a\nx =");
        let missing = Task::new("shop/1".into(), "shop/none.py", 0, 0, "x", "");
        assert!(TypedLine::lines(&missing, dir.path(), 1).unwrap_err().contains("none.py"));
    }

    #[test]
    fn a_decision_has_the_times_of_the_steps_that_it_came_to() {
        let text = r#"[{"number": 7, "outcome": "done", "retrieved": null, "ms": {"locate": 1.5, "whole": 9.0},
            "tokens": {"prompt": 12, "cached": null}, "score": 0.4}]"#;
        let decisions: Vec<ServedDecision> = serde_json::from_str(text).unwrap();
        let [one] = &decisions[..] else { panic!("{decisions:?}") };
        assert_eq!((one.number, one.ms.locate, one.ms.search), (7, Some(1.5), None));
        assert_eq!((one.retrieved, one.tokens.prompt, one.tokens.cached), (None, Some(12), None));
    }
}
