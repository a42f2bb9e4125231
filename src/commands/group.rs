//! `group`

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use repoformer_formats::group::{Dedup, GroupRecord, Grouping, group as group_rows};
use repoformer_study::experiments::read_tasks;
use repoformer_text::language::Language;

use crate::commands::session::open;
use crate::output::{self, Screen, fail, format_count, list_first};
use crate::settings::{DECLARED, Setting, SettingFlags, ValueList};

#[derive(Debug, Args)]
pub(crate) struct GroupArgs {
    /// Files of rows, folders of them, and patterns ('data/*.parquet'): Parquet, JSONL (plain, gzip or zstd), tar archives. A
    /// row is a file (The Stack, StarCoderData) or a repository with its `files` (The Stack v2 with texts, raw.jsonl)
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Folder for the shards, shard-00001-of-N.jsonl.zst and so on; group.json, written last, lists them. An interrupted
    /// command resumes there
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Number of shards; file I of N has the repositories that `--shard I/N` draws from
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=99_999))]
    shards: u64,
    /// Duplicate repositories to drop, except the one with the most stars: none, exact (same paths and texts) or near (also
    /// nearly the same texts, by MinHash as in datatrove)
    #[arg(long, value_name = "KIND", default_value = "near", value_parser = ValueList::new(Dedup::ALL))]
    dedup: String,
    /// Leave out the repositories of these tasks, and files with their targets (repeatable, or separated by commas)
    #[arg(long, value_name = "TASKS", value_delimiter = ',')]
    decontaminate: Vec<PathBuf>,
    /// Leave out repositories with more than this many MiB of text, and report them
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    max_repository: u64,
    #[command(flatten)]
    settings: SettingFlags,
}

/// Settings that grouping uses.
static SETTINGS: [&Setting; 3] = [&DECLARED.language, &DECLARED.threads, &DECLARED.config];

pub(crate) fn run(args: &GroupArgs) -> Result<()> {
    let settings = open(&args.settings)?;
    if let Some(Setting { key, .. }) = settings.unused_flag(|setting| SETTINGS.contains(&setting)) {
        return fail(
            format!("--{key} is not used by group"),
            "leave it out; only later stages use it",
        );
    }
    let language: Option<Language> = *settings.language;
    let grouping = Grouping {
        inputs: args.inputs.clone(),
        output: args.output.clone(),
        shards: args.shards,
        language,
        dedup: args.dedup.parse().context("--dedup")?,
        benchmarks: args
            .decontaminate
            .iter()
            .map(|file| read_tasks(file, &Screen))
            .collect::<Result<_>>()?,
        max_repository: args.max_repository << 20,
    };
    let summary = group_rows(&grouping)?;
    if let Some((count, first)) = &summary.unchecked {
        output::note(format!(
            "group: the targets of {} have too few words to search files for, such as {first}; only their repositories are left out",
            format_count(*count as u64, "task"),
        ));
    }
    if !summary.others.is_empty() {
        let names = summary.others.iter().map(|path| path.to_string_lossy());
        output::note(format!(
            "group: {} skipped, since the name is not that of a data file: {}",
            format_count(summary.others.len() as u64, "file"),
            list_first(names, 1),
        ));
    }
    if let Some(first) = summary.links.first() {
        let count = format_count(summary.links.len() as u64, "file");
        let first = first.display();
        output::count_failure(format!(
            "group: {count} left out, since links lead out of the input: {first}; name the files themselves"
        ));
    }
    if summary.resumed > 0 {
        output::note(format!(
            "group: resuming after {}",
            format_count(summary.resumed as u64, "input"),
        ));
    }
    summary.notes.iter().for_each(output::note);
    output::problems(&summary.problems);
    let Some(record) = summary.record else {
        let of = language.map_or("a known language".to_owned(), |one| one.title().to_owned());
        return fail(
            format!("the inputs contain no usable file of {of}"),
            "see `repoformer group --help` for the formats, or choose another language with --language",
        );
    };
    if summary.is_known {
        let shards = record.shards.len();
        let output = args.output.display();
        output::note(format!(
            "group: {output} is up to date: {} from the same inputs and settings",
            format_count(shards as u64, "shard")
        ));
    }
    say(&record);
    // Count the problems that are not listed with their texts, or that an earlier run reported.
    let listed = summary.problems.len() as u64;
    if record.counts.broken > listed {
        output::failures((record.counts.broken - listed) as usize);
    }
    Ok(())
}

/// Reports the numbers of rows that were used and left out.
fn say(record: &GroupRecord) {
    let counts = &record.counts;
    for (count, noun, reason) in [
        (counts.other_languages, "file", "left out: in other languages"),
        (counts.repeated, "file", "left out: repeated with the same path and text"),
        (counts.conflicting, "file", "left out: repeated with the same path and a different text"),
        (counts.exact_duplicates, "repository", "left out: same files as another repository"),
        (
            counts.near_duplicates,
            "repository",
            "left out: nearly the same texts as another repository",
        ),
        (counts.contaminated_repositories, "repository", "left out: used by tasks"),
        (counts.contaminated_files, "file", "left out: with the text of a task's target"),
        (counts.broken, "row", "or part of an input left out: broken or too large"),
        (counts.marked, "file", "stripped of its first line, a StarCoderData mark"),
    ] {
        if count > 0 {
            output::note(format!("group: {} {reason}", format_count(count, noun)));
        }
    }
    output::note(format!(
        "group: {} with {} in {}, from {}",
        format_count(counts.repositories, "repository"),
        format_count(counts.files, "file"),
        format_count(record.shards.len() as u64, "shard"),
        format_count(counts.rows, "row"),
    ));
}
