//! `replay`: types the lines of tasks into a server of completions and measures what an editor would see.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use repoformer_core::completion::Api;
use repoformer_core::metrics::repocoder;
use repoformer_core::repository::corpus;
use repoformer_core::task::{Task, TaskSet};
use repoformer_models::endpoint::{ConnectionSettings, Endpoint};
use repoformer_models::server::read_whole;
use repoformer_store::error::Error;
use repoformer_store::files;
use repoformer_study::checkout::one_repository;
use serde_json::{Value, json};

use crate::output::{self, Screen, fail, group, print_text, write_data};
use crate::table::{ReportFormat, json_text};

/// Failures in a row after which nothing more is typed.
const MOST_FAILURES: usize = 5;
/// Lines before and behind the cursor that a request holds, as llama.vim's.
const LINES: [usize; 2] = [256, 64];

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Task file: JSONL, plain, gzip or zstd
    #[arg(long, value_name = "FILE", required = true)]
    tasks: PathBuf,
    /// Folder that holds one folder per repository, or one repository
    #[arg(long, value_name = "DIR")]
    repos_dir: PathBuf,
    /// Use only the tasks of this repository
    #[arg(long, value_name = "NAME")]
    repo: Option<String>,
    /// Server of completions, from `repoformer serve`
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8012")]
    server: String,
    /// Number of tasks, the first of the file [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Number of lines that are typed, from the target on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    lines: u32,
    /// Number of characters of each line that are typed, each with a request
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=90))]
    keystrokes: u32,
    /// Characters per second; a request that is not answered by the next character is cancelled. 0: each is awaited
    #[arg(long, value_name = "N", default_value_t = 0.0)]
    speed: f64,
    /// Maximum tokens of a completion
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: u64,
    /// Format of the results
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: ReportFormat,
}

pub(crate) fn run(args: &ReplayArgs) -> Result<()> {
    if !(0.0..=1e4).contains(&args.speed) {
        return fail(
            format!("--speed {}: not a number of characters per second", args.speed),
            "give one from 0 to 10000",
        );
    }
    let reading = TaskSet::read(&args.tasks)?;
    output::problems(&reading.problems);
    let mut tasks = reading.set;
    let dir = one_repository(&args.repos_dir, args.repo.as_slice(), &[&args.tasks], &Screen)
        .map_or_else(|| args.repos_dir.clone(), |found| found.dir);
    tasks.name_folders(&corpus::folder_names(&dir)?);
    let is_wanted = |task: &&Task| args.repo.as_ref().is_none_or(|name| task.repository == *name);
    let endpoint = Endpoint::new(
        &args.server,
        ConnectionSettings { retries: 0, ..ConnectionSettings::default() },
    )?;
    let mut measured = Measured::default();
    let mut last = latest(&endpoint)?;
    let most = args.limit.map_or(usize::MAX, |limit| limit as usize);
    let chosen: Vec<&Task> = tasks.tasks().iter().filter(is_wanted).take(most).collect();
    check_repository(&endpoint, &chosen)?;
    'all: for task in chosen {
        match Typing::of(task, &dir, args.lines as usize) {
            Ok(lines) => {
                for typing in lines {
                    let goes_on = typing.replay(args, &endpoint, &mut measured);
                    match measured.take(&endpoint, last) {
                        Ok(latest) if goes_on => last = latest,
                        Ok(_) => break 'all,
                        Err(error) => {
                            measured.errors.push(error);
                            break 'all;
                        }
                    }
                }
            }
            Err(reason) => output::problems(&[tasks.error(task, reason)]),
        }
    }
    output::problems(&measured.errors);
    if measured.requests.is_empty() {
        return fail(
            "no task was replayed",
            "choose others with --tasks and --repo, or see the problems above",
        );
    }
    let results = measured.results(args);
    match args.format {
        ReportFormat::Text => print_text(&text(&results)),
        ReportFormat::Json => write_data(Path::new("-"), json_text(&results)),
    }
}

/// Number of the latest decision of a server.
fn latest(endpoint: &Endpoint) -> Result<u64> {
    let decisions = endpoint.get_json("/debug/decisions")?;
    Ok(decisions[0]["number"].as_u64().unwrap_or(0))
}

/// Refuses tasks of another repository than the server's: their files would be found by chance, or not at all.
fn check_repository(endpoint: &Endpoint, tasks: &[&Task]) -> Result<()> {
    let health = endpoint.get_json("/health")?;
    let Some(served) = health["repository"].as_str() else { return Ok(()) };
    match tasks.iter().find(|task| task.repository != served) {
        None => Ok(()),
        Some(other) => fail(
            format!(
                "task '{}' is of repository {}, and the server has {served}",
                other.id, other.repository
            ),
            format!(
                "choose its tasks with --repo {served}, or start the server with the other one"
            ),
        ),
    }
}

/// The text around a target, and the target.
struct Typing {
    file: String,
    prefix: String,
    suffix: String,
    target: String,
}

impl Typing {
    /// The lines of a task, one after the other: what is behind the last of them is there from the first on.
    fn of(task: &Task, dir: &Path, lines: usize) -> Result<Vec<Self>, String> {
        let path = dir.join(&task.path);
        let text = files::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let text = text.replace("\r\n", "\n");
        let hole = task.hole(&text)?;
        let file = task.path.split_once('/').map_or(&*task.path, |(_, file)| file);
        let mut targets: Vec<std::ops::Range<usize>> = Vec::new();
        targets.push(hole.start..hole.end);
        let rest = &text[hole.end..];
        let mut start = hole.end + rest.find('\n').map_or(rest.len(), |at| at + 1);
        for line in text[start..].split_inclusive('\n').take(lines - 1) {
            targets.push(start..start + line.trim_end_matches('\n').len());
            start += line.len();
        }
        let [before, after] = LINES;
        let end = targets.last().map_or(hole.end, |last| last.end);
        let behind = &text[end..];
        let last = behind.match_indices('\n').nth(after).map_or(behind.len(), |(at, _)| at + 1);
        let of_line = |target: std::ops::Range<usize>| {
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

    /// Asks at the beginning of the target, and with each character that is typed. Returns whether to go on: no longer where the server
    /// fails time after time.
    fn replay(&self, args: &ReplayArgs, endpoint: &Endpoint, measured: &mut Measured) -> bool {
        let first = measured.note(self.ask(args, endpoint, ""));
        let pause = (args.speed > 0.0).then(|| Duration::from_secs_f64(1.0 / args.speed));
        for (at, typed) in self.target.char_indices().take(args.keystrokes as usize) {
            if measured.in_a_row >= MOST_FAILURES {
                return false;
            }
            let typed_so_far = &self.target[..at + typed.len_utf8()];
            match pause {
                None => drop(measured.note(self.ask(args, endpoint, typed_so_far))),
                Some(pause) => {
                    if let Some(done) = self.ask_for(args, endpoint, typed_so_far, pause) {
                        drop(measured.note(done));
                    }
                }
            }
        }
        // As many lines as the target has; a blank line says nothing.
        if let Some(first) = first.filter(|_| !self.target.trim().is_empty()) {
            measured.es.push(repocoder::score(&self.target, &first).es);
        }
        measured.in_a_row < MOST_FAILURES
    }

    fn body(&self, args: &ReplayArgs, typed: &str) -> Value {
        let prefix = format!("{}{typed}", self.prefix);
        json!({
            "prompt": prefix, "suffix": self.suffix, "filepath": self.file,
            "max_tokens": args.max_tokens,
        })
    }

    fn ask(&self, args: &ReplayArgs, endpoint: &Endpoint, typed: &str) -> Result<String, Error> {
        complete(endpoint, &self.body(args, typed))
    }

    /// Asks until the next character is typed; `None` where there is no answer by then.
    fn ask_for(
        &self,
        args: &ReplayArgs,
        endpoint: &Endpoint,
        typed: &str,
        pause: Duration,
    ) -> Option<Result<String, Error>> {
        let (begin, own) = (Instant::now(), endpoint.with_own_connections());
        let (asked, body) = (own.clone(), self.body(args, typed));
        let (sender, answered) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = sender.send(complete(&asked, &body));
        });
        let done = answered.recv_timeout(pause).ok();
        own.close();
        std::thread::sleep(pause.saturating_sub(begin.elapsed()));
        done
    }
}

fn complete(endpoint: &Endpoint, body: &Value) -> Result<String, Error> {
    let (samples, _) = read_whole(endpoint, Api::Completions, body)?;
    Ok(samples.into_iter().next().map(|sample| sample.text).unwrap_or_default())
}

/// Decisions and scores of the requests.
#[derive(Default)]
struct Measured {
    requests: Vec<Value>,
    es: Vec<f64>,
    /// Of requests that failed.
    errors: Vec<Error>,
    /// Number of the last ones that failed.
    in_a_row: usize,
}

impl Measured {
    /// Notes whether a request failed; returns its completion.
    fn note(&mut self, done: Result<String, Error>) -> Option<String> {
        match done {
            Ok(text) => {
                self.in_a_row = 0;
                Some(text)
            }
            Err(error) => {
                self.in_a_row += 1;
                self.errors.push(error);
                None
            }
        }
    }

    /// Takes the decisions after that of a number, which the server keeps for a while; returns the latest number.
    fn take(&mut self, endpoint: &Endpoint, last: u64) -> Result<u64, Error> {
        let mut latest = last;
        // What was cancelled is kept once its connection is gone.
        std::thread::sleep(Duration::from_millis(5));
        let decisions = endpoint.get_json(&format!("/debug/decisions?after={last}"))?;
        for one in decisions.as_array().into_iter().flatten() {
            let number = one["number"].as_u64().unwrap_or(0);
            if number > last {
                self.requests.push(one.clone());
                latest = latest.max(number);
            }
        }
        Ok(latest)
    }

    fn results(&self, args: &ReplayArgs) -> Value {
        let of = |name: &str| -> Vec<f64> {
            self.requests.iter().filter_map(|one| one["ms"][name].as_f64()).collect()
        };
        let preparing = self.requests.iter().map(|one| {
            ["index", "search", "decide"].iter().filter_map(|step| one["ms"][*step].as_f64()).sum()
        });
        let tokens = |name: &str| -> Option<u64> {
            let all = self.requests.iter().filter(|one| one["outcome"] == "done");
            let mut counts = all.map(|one| one["tokens"][name].as_u64());
            counts.try_fold(0u64, |sum, count| Some(sum.saturating_add(count?)))
        };
        let count = |field: &str, value: &Value| {
            self.requests.iter().filter(|one| one[field] == *value).count()
        };
        let evaluated = tokens("prompt").zip(tokens("cached"));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        json!({
            "server": args.server, "speed": args.speed, "lines": self.es.len(),
            "requests": self.requests.len(), "cancelled": count("outcome", &"cancelled".into()),
            "failed": self.errors.len(),
            "retrieved_share": count("retrieved", &true.into()) as f64 / self.requests.len() as f64,
            "preparing_ms": percentiles(preparing.collect()), "locate_ms": percentiles(of("locate")),
            "prompt_ms": percentiles(of("prompt")),
            "first_text_ms": percentiles(of("first_token")), "whole_ms": percentiles(of("whole")),
            "prompt_tokens": tokens("prompt"), "cached_tokens": tokens("cached"),
            "evaluated_tokens": evaluated.map(|(all, cached)| all.saturating_sub(cached)),
            "es": mean(&self.es),
        })
    }
}

/// The value that so many in a hundred are at most.
fn percentiles(mut values: Vec<f64>) -> Value {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let rank = (share * values.len() as f64).ceil() as usize;
        values.get(rank.max(1) - 1)
    };
    json!({"p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": values.last(), "n": values.len()})
}

fn text(results: &Value) -> String {
    let whole = |name: &str| results[name].as_u64().map_or("-".into(), |n| group(n as usize));
    let times = |name: &str| {
        let time = |rank: &str| match results[name][rank].as_f64() {
            Some(ms) => format!("{ms:10.2}"),
            None => format!("{:>10}", "-"),
        };
        format!("{}{}{}{}", time("p50"), time("p95"), time("p99"), time("max"))
    };
    format!(
        "{} lines, {} requests, {} cancelled, {} failed, retrieved for {:.1} %, ES {:.2}\n\
         prompt tokens {}, of them {} evaluated (answered requests)\n\n\
         ms                          p50       p95       p99       max\n\
         decision and retrieval{}\n\
         finding the file      {}\n\
         laying out the prompt {}\n\
         first text            {}\n\
         whole completion      {}\n",
        whole("lines"),
        whole("requests"),
        whole("cancelled"),
        whole("failed"),
        100.0 * results["retrieved_share"].as_f64().unwrap_or(0.0),
        100.0 * results["es"].as_f64().unwrap_or(0.0),
        whole("prompt_tokens"),
        whole("evaluated_tokens"),
        times("preparing_ms"),
        times("locate_ms"),
        times("prompt_ms"),
        times("first_text_ms"),
        times("whole_ms"),
    )
}
