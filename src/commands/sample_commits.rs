//! `sample --from-commits`

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use repoformer_core::repository::history::History;
use repoformer_core::task::Task;
use repoformer_core::task::sample::{NameSource, Sampling};
use repoformer_formats::draw::{CommitSampling, CommitTasks, NEAR};

use super::exclusions::warn_of_unmatched;
use super::unparsed::{DrawnCode, tell_unparsed};
use crate::commands::session::{DrawnFrom, check_drawing};
use crate::output::{self, add_hint, fail, format_count, group, write_data};
use crate::settings::Settings;
use crate::table::json_lines;

/// Tasks from commits.
#[derive(Debug, Args)]
#[command(next_help_heading = "Commits")]
pub(crate) struct CommitFlags {
    /// Draw from lines that commits of this Git repository added; a task's repository is the parent commit's tree (repeatable)
    #[arg(long, value_name = "REPO.git", requires_all = ["since", "trees"])]
    from_commits: Vec<PathBuf>,
    /// Use only commits since this day (UTC), such as 2024-01-31, by both author date and commit date
    #[arg(long, value_name = "DATE", requires = "from_commits")]
    since: Option<String>,
    /// Folder for the repositories, one per task; pass it to later stages as --repos-dir
    #[arg(long, value_name = "DIR", requires = "from_commits")]
    trees: Option<PathBuf>,
}

/// Request for tasks from commits, as flags describe it.
pub(super) struct Commits<'a> {
    histories: &'a [PathBuf],
    since: &'a str,
    trees: &'a Path,
}

impl CommitFlags {
    pub(super) fn wanted_commits(&self) -> Option<Commits<'_>> {
        let (since, trees) = (self.since.as_deref()?, self.trees.as_deref()?);
        Some(Commits { histories: &self.from_commits, since, trees })
    }
}

pub(super) fn run(
    commits: &Commits<'_>,
    settings: &Settings,
    sampling: &Sampling,
    output: &Path,
) -> Result<()> {
    check_drawing(settings, "sample", DrawnFrom::Commits)?;
    let open = |path: &PathBuf| {
        History::open(path).map_err(|error| {
            add_hint(error, "give --from-commits a clone with its history, bare or not")
        })
    };
    let histories: Vec<History> = commits.histories.iter().map(open).collect::<Result<_>>()?;
    let mut names: Vec<&str> = histories.iter().map(History::name).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return fail(
            format!("two repositories of --from-commits are named '{}'", pair[0]),
            "rename one of the folders, since tasks name their repository after it",
        );
    }
    let mut drawing = CommitSampling::new(commits.trees, commits.since, sampling)?;
    for (history, path) in histories.iter().zip(commits.histories) {
        if history.is_shallow() {
            output::note(format!(
                "{}: a shallow clone, without older commits; run `git fetch --unshallow` to get them",
                history.name()
            ));
        }
        let drawn = drawing.draw(history, path)?;
        output::problems(&drawn.problems);
        if drawn.tasks < sampling.per_repository {
            output::note(format!(
                "{}: only {} of {} {} tasks, since no other of its {} since {} yields one",
                history.name(),
                drawn.tasks,
                sampling.per_repository,
                sampling.kind,
                format_count(drawn.commits as u64, "commit"),
                commits.since,
            ));
        }
        output::problems(drawn.unread.as_slice());
    }
    let CommitTasks { tasks, matched, unparsed, .. } = drawing.tasks();
    warn_of_unmatched(&sampling.exclusions, matched);
    tell_unparsed("sample", sampling.language, DrawnCode::from_kind(sampling.kind), unparsed);
    if tasks.is_empty() {
        return fail(
            format!("no commit since {} yields {} tasks", commits.since, sampling.kind),
            "choose an earlier --since, another --kind or --language, or more --context-tokens",
        );
    }
    drawing.describe_left_out().for_each(output::warning);
    let (drawn, files) = drawing.finish()?;
    write_data(output, json_lines(drawn.tasks.iter().map(Task::to_record)))?;
    report(commits, sampling, &drawn, files);
    Ok(())
}

/// Prints the numbers of tasks, files and near duplicates.
fn report(commits: &Commits<'_>, sampling: &Sampling, drawn: &CommitTasks, files: usize) {
    let total = drawn.tasks.len();
    output::note(format!(
        "sample: {} {} tasks, each from a commit of {} since {}, with {} in {}",
        group(total),
        sampling.kind,
        format_count(commits.histories.len() as u64, "repository"),
        commits.since,
        format_count(files as u64, "file"),
        commits.trees.display()
    ));
    let sources = NameSource::ALL.iter().zip(drawn.sources);
    let sources: Vec<String> = sources.map(|(source, count)| format!("{source} {count}")).collect();
    output::note(format!("tasks by the farthest source of a name: {}", sources.join(", ")));
    output::note(format!(
        "near duplicates among {total}: {} are in the parent's tree, {} nearly (edit similarity {NEAR} or more), {} in an earlier version of a file",
        drawn.verbatim, drawn.near, drawn.in_history
    ));
}
