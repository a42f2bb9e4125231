//! `replay`: types the lines of tasks into a completion server, and measures the completions that an editor would get.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use repoformer_core::repository::corpus;
use repoformer_core::task::{Task, TaskSet};
use repoformer_models::endpoint::{ConnectionSettings, Endpoint, SERVE_TOKEN_VARIABLE};
use repoformer_models::replay::{Replay, ReplayResults, TimeSummary, TypingSettings};
use repoformer_study::checkout::one_repository;
use serde::Serialize;

use crate::output::{self, Screen, fail, group, print_text, write_data};
use crate::table::{ReportFormat, json_text};

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
    /// Number of tasks, from the start of the file [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Number of lines to type, starting at the target
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    lines: u32,
    /// Number of characters to type on each line, each with a request
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=90))]
    keystrokes: u32,
    /// Typing speed in characters per second; the next character cancels an unanswered request; 0 waits for each answer
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
            format!("invalid --speed {}: expected a number of characters per second", args.speed),
            "give a number from 0 to 10000",
        );
    }
    let reading = TaskSet::read(&args.tasks)?;
    output::problems(&reading.problems);
    let mut tasks = reading.set;
    let dir = one_repository(&args.repos_dir, args.repo.as_slice(), &[&args.tasks], &Screen)
        .map_or_else(|| args.repos_dir.clone(), |found| found.dir);
    tasks.name_folders(&corpus::folder_names(&dir)?);
    let is_wanted = |task: &&Task| args.repo.as_ref().is_none_or(|name| task.repository == *name);
    // The key of the model's server is not for this one.
    let key_variable = SERVE_TOKEN_VARIABLE;
    let endpoint = Endpoint::new(
        &args.server,
        ConnectionSettings { retries: 0, key_variable, ..ConnectionSettings::default() },
    )?;
    let most = args.limit.map_or(usize::MAX, |limit| limit as usize);
    let chosen: Vec<&Task> = tasks.tasks().iter().filter(is_wanted).take(most).collect();
    let settings = TypingSettings {
        lines: args.lines as usize,
        keystrokes: args.keystrokes as usize,
        pause: (args.speed > 0.0).then(|| Duration::from_secs_f64(1.0 / args.speed)),
        max_tokens: args.max_tokens,
    };
    let mut replay = Replay::begin(&endpoint, &chosen, settings)?;
    for task in chosen {
        match replay.task(task, &dir) {
            Ok(true) => {}
            Ok(false) => break,
            Err(reason) => output::problems(&[tasks.error(task, reason)]),
        }
    }
    let (results, errors) = replay.finish();
    output::problems(&errors);
    let Some(results) = results else {
        return fail(
            "no task was replayed",
            "see the problems above, or choose other tasks with --tasks and --repo",
        );
    };
    match args.format {
        ReportFormat::Text => print_text(&text(&results)),
        ReportFormat::Json => {
            let printed =
                PrintedResults { server: endpoint.url(""), speed: args.speed, results: &results };
            write_data(Path::new("-"), json_text(&serde_json::to_value(printed)?))
        }
    }
}

/// Results in the form of JSON.
#[derive(Serialize)]
struct PrintedResults<'a> {
    /// With keys masked.
    server: String,
    speed: f64,
    #[serde(flatten)]
    results: &'a ReplayResults,
}

fn text(results: &ReplayResults) -> String {
    let whole = |tokens: Option<u64>| tokens.map_or("-".into(), |n| group(n as usize));
    let times = |times: &TimeSummary| {
        let time = |of: Option<f64>| match of {
            Some(ms) => format!("{ms:10.2}"),
            None => format!("{:>10}", "-"),
        };
        format!("{}{}{}{}", time(times.p50), time(times.p95), time(times.p99), time(times.max))
    };
    format!(
        "{} lines, {} requests, {} cancelled, {} failed, retrieved for {:.1} %, ES {:.2}\n\
         prompt tokens {}, {} of them evaluated (answered requests)\n\n\
         ms                          p50       p95       p99       max\n\
         decision and retrieval{}\n\
         finding the file      {}\n\
         laying out the prompt {}\n\
         first text            {}\n\
         whole completion      {}\n",
        group(results.lines),
        group(results.requests),
        group(results.cancelled),
        group(results.failed),
        100.0 * results.retrieved_share,
        100.0 * results.es,
        whole(results.prompt_tokens),
        whole(results.evaluated_tokens),
        times(&results.preparing_ms),
        times(&results.locate_ms),
        times(&results.prompt_ms),
        times(&results.first_text_ms),
        times(&results.whole_ms),
    )
}
