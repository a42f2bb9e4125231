//! `sample --from-commits`

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use repoformer_core::repository::corpus::{Repository, SourceFile};
use repoformer_core::repository::history::{History, LineHistory, OversizeCommit};
use repoformer_core::repository::record::{Folders, WriteOutcome};
use repoformer_core::task::Task;
use repoformer_core::task::sample::{CommitTask, Exclusions, NameSource, Sampling, sample_commits};
use repoformer_evaluate::quality::RetrievalTarget;
use repoformer_store::error::Error;
use repoformer_text::language::{Language, identifiers};
use repoformer_text::tokenize::P50k;

use super::exclusions::warn_of_unmatched;
use super::unparsed::{DrawnCode, tell_unparsed};
use crate::commands::session::{DrawnFrom, check_drawing};
use crate::output::{self, counted, fail, group, hinted, write_data};
use crate::settings::Settings;
use crate::table::json_lines;

/// Tasks from commits.
#[derive(Debug, Args)]
#[command(next_help_heading = "Commits")]
pub(crate) struct CommitFlags {
    /// Draw from lines that commits of this Git repository added, each task with its parent's tree as repository (repeatable)
    #[arg(long, value_name = "REPO.git", requires_all = ["since", "trees"])]
    from_commits: Vec<PathBuf>,
    /// Take only commits written and committed on this day (UTC) or later, as 2024-01-31
    #[arg(long, value_name = "DATE", requires = "from_commits")]
    since: Option<String>,
    /// Folder for the tasks' repositories, one for each task: the --repos-dir of later stages
    #[arg(long, value_name = "DIR", requires = "from_commits")]
    trees: Option<PathBuf>,
}

/// Tasks from commits, as flags describe them.
pub(super) struct Commits<'a> {
    histories: &'a [PathBuf],
    since: &'a str,
    trees: &'a Path,
}

impl CommitFlags {
    pub(super) fn wanted(&self) -> Option<Commits<'_>> {
        let (since, trees) = (self.since.as_deref()?, self.trees.as_deref()?);
        Some(Commits { histories: &self.from_commits, since, trees })
    }
}

/// Targets that are at least so similar to some lines are near duplicates of them.
const NEAR: f64 = 0.9;

/// Most files that are written for the tasks of one repository, and most of their bytes: each task has a whole tree.
const MOST_WRITTEN_FILES: usize = 2_000_000;
const MOST_WRITTEN_BYTES: u64 = 20 << 30;

pub(super) fn run(
    commits: &Commits<'_>,
    settings: &Settings,
    sampling: &Sampling,
    output: &Path,
) -> Result<()> {
    check_drawing(settings, "sample", DrawnFrom::Commits)?;
    let histories: Vec<History> = commits
        .histories
        .iter()
        .map(|path| {
            History::open(path).map_err(|error| {
                hinted(error, "--from-commits takes a clone with its history, plain or bare")
            })
        })
        .collect::<Result<_>>()?;
    let mut names: Vec<&str> = histories.iter().map(History::name).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return fail(
            format!("two repositories of --from-commits are named '{}'", pair[0]),
            "rename one of their folders: repositories of tasks are named after them",
        );
    }
    let mut folders = Folders::create(commits.trees)?;
    let (mut tasks, mut matched, mut counts) = (Vec::new(), Vec::new(), Counts::default());
    let mut unparsed = Vec::new();
    for (history, path) in histories.iter().zip(commits.histories) {
        if history.is_shallow()? {
            output::note(format!(
                "{}: a shallow clone; commits before its depth are not there (`git fetch --unshallow` gets them)",
                history.name()
            ));
        }
        let begin = tasks.len();
        let (mut dates, mut room) = (Vec::new(), Room::default());
        let found = |found: CommitTask| {
            if !room.take(&found.repository) {
                return Ok(());
            }
            let skipped = write(&found, &mut folders)?;
            output::problems(&skipped.files);
            if skipped.has_target {
                return Ok(());
            }
            let here = sampling.exclusions.matched(&found.repository);
            Exclusions::also_matched(&mut matched, &here);
            let similar = similar(&found, sampling.language);
            let CommitTask { mut task, names, lines, commit, .. } = found;
            counts.add(names.farthest(), similar);
            if let Some(similar) = similar {
                let rounded = (similar * 1e4).round() / 1e4;
                CommitTask::note(&mut task, "similar", rounded);
            }
            dates.push((lines, commit.date, similar == Some(1.0)));
            tasks.push(task);
            Ok(())
        };
        let count = |text: &str| P50k.count(text);
        let drawn =
            sample_commits(history, commits.since, sampling, &count, found).map_err(|error| {
                match error {
                    Error::Parameter { reason, .. } => {
                        hinted(anyhow::anyhow!("--since: {reason}"), "write the day as 2024-01-31")
                    }
                    other => other.into(),
                }
            })?;
        unparsed.extend(drawn.unparsed);
        output::problems(&left_out(path, &drawn.oversize, &room));
        let written = tasks.len() - begin;
        if written < sampling.per_repository {
            output::note(format!(
                "{}: only {} of {} {} tasks: of its {} since {} no other gives one",
                history.name(),
                written,
                sampling.per_repository,
                sampling.kind,
                counted(drawn.commits as u64, "commit"),
                commits.since,
            ));
        }
        let lines = match written {
            0 => None,
            _ => lines_of(history, path, sampling.language)?,
        };
        if let Some(lines) = lines {
            for (task, (text, date, is_there)) in tasks[begin..].iter_mut().zip(&dates) {
                let is_old = *is_there || lines.hold(text, date);
                counts.in_history += usize::from(is_old);
                CommitTask::note(task, "in_history", is_old);
            }
        }
    }
    warn_of_unmatched(&sampling.exclusions, &matched);
    tell_unparsed("sample", sampling.language, DrawnCode::of(sampling.kind), &unparsed);
    if tasks.is_empty() {
        return fail(
            format!("no commit since {} adds {} tasks", commits.since, sampling.kind),
            "choose an earlier --since, another --kind or --language, or more --context-tokens",
        );
    }
    folders.left_out().for_each(output::warning);
    let placed = folders.finish()?;
    if let Some(name) = placed.refused.first() {
        return fail(
            format!(
                "{} of the tasks' folders are there already, with other files, as {}",
                placed.refused.len(),
                commits.trees.join(name).display()
            ),
            "remove them, or choose other --trees",
        );
    }
    write_data(output, json_lines(tasks.iter().map(Task::to_record)))?;
    let (total, kind) = (tasks.len(), sampling.kind);
    output::note(format!(
        "sample: {} {kind} tasks, each from a commit of {} since {}, with {} in {}",
        group(total),
        counted(histories.len() as u64, "repository"),
        commits.since,
        counted(placed.files as u64, "file"),
        commits.trees.display()
    ));
    counts.tell(total);
    Ok(())
}

/// Room for what is written for the tasks of one repository.
#[derive(Debug)]
struct Room {
    files: usize,
    bytes: u64,
    /// Number of tasks that were refused.
    refused: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { files: MOST_WRITTEN_FILES, bytes: MOST_WRITTEN_BYTES, refused: 0 }
    }
}

impl Room {
    /// Whether there is room for a task's tree, which is then taken.
    fn take(&mut self, tree: &Repository) -> bool {
        let bytes = tree.files.iter().map(|file| file.text.len() as u64).sum();
        let left = self.files.checked_sub(tree.files.len()).zip(self.bytes.checked_sub(bytes));
        match left {
            Some((files, bytes)) => (self.files, self.bytes) = (files, bytes),
            None => self.refused += 1,
        }
        left.is_some()
    }
}

fn problem(path: &Path, reason: &str) -> Error {
    Error::Repository { path: path.to_owned(), reason: reason.into() }
}

/// Problems of the commits of a repository that are left out.
fn left_out(path: &Path, oversize: &[OversizeCommit], room: &Room) -> Vec<Error> {
    let of_commit = |commit: &OversizeCommit| problem(path, &format!("left out: {commit}"));
    let mut problems: Vec<Error> = oversize.iter().map(of_commit).collect();
    if room.refused > 0 {
        let commits = counted(room.refused as u64, "commit");
        let reason = format!(
            "left out: {commits} whose trees would exceed 2,000,000 files or 20 GiB below --trees"
        );
        problems.push(problem(path, &reason));
    }
    problems
}

/// Lines of a history; `None` if it is too large to read, which is reported.
fn lines_of(history: &History, path: &Path, language: Language) -> Result<Option<LineHistory>> {
    let lines = history.lines(language)?;
    if let Err(oversize) = &lines {
        let reason = format!("its history is not read for `in_history`: {oversize}");
        output::problems(&[problem(path, &reason)]);
    }
    Ok(lines.ok())
}

/// Files of a task's repository that could not be written.
#[derive(Default)]
struct Skipped {
    files: Vec<Error>,
    /// True if the task's own file is one of them. Then no other file was written.
    has_target: bool,
}

/// Writes the repository of a task, the task's own file first.
fn write(found: &CommitTask, folders: &mut Folders) -> Result<Skipped, Error> {
    let mut skipped = Skipped::default();
    let name = &found.repository.name;
    let is_own = |file: &&SourceFile| file.path == found.task.path;
    let files = &found.repository.files;
    let (own, others) = (files.iter().filter(is_own), files.iter().filter(|file| !is_own(file)));
    for file in own.chain(others) {
        let path = file.path.strip_prefix(&format!("{name}/")).unwrap_or(&file.path);
        let written = folders.write(name, path, file.text.as_bytes())?;
        if written != WriteOutcome::Whole && is_own(&file) {
            skipped.has_target = true;
        }
        if let WriteOutcome::Refused(reason) = written {
            skipped.files.push(Error::Repository { path: name.into(), reason: reason.into() });
        }
        if skipped.has_target {
            break;
        }
    }
    Ok(skipped)
}

/// Edit similarity of the hole's lines to the most similar ones of the parent's tree.
fn similar(found: &CommitTask, language: Language) -> Option<f64> {
    let others = found.repository.files.iter().filter(|file| file.path != found.task.path);
    let texts = others.map(|file| file.text.as_str()).chain(found.before.as_deref());
    let target = RetrievalTarget::new(&found.lines, &[], |text| identifiers(text, language));
    target.measure(&texts.collect::<Vec<_>>()).get("es")
}

/// Numbers of tasks.
#[derive(Debug, Default)]
struct Counts {
    /// By the farthest source of a name.
    sources: [usize; NameSource::ALL.len()],
    /// Those whose lines stand in the parent's tree.
    verbatim: usize,
    /// Those whose lines nearly do.
    near: usize,
    /// Those whose lines an earlier commit added.
    in_history: usize,
}

impl Counts {
    fn add(&mut self, farthest: NameSource, similar: Option<f64>) {
        self.sources[farthest as usize] += 1;
        match similar {
            Some(1.0) => self.verbatim += 1,
            Some(similar) if similar >= NEAR => self.near += 1,
            _ => {}
        }
    }

    fn tell(&self, total: usize) {
        let sources =
            NameSource::ALL.map(|source| format!("{source} {}", self.sources[source as usize]));
        output::note(format!("farthest source of a name: {}", sources.join(", ")));
        output::note(format!(
            "near duplicates of {total}: {} stand in the parent's tree, {} nearly (edit similarity {NEAR} or more), {} in an earlier version of some file",
            self.verbatim, self.near, self.in_history
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_written_while_there_is_room() {
        let tree = |sizes: &[usize]| {
            let file = |size: &usize| SourceFile {
                path: String::new(),
                text: "x".repeat(*size),
                same_as: 0,
            };
            Repository { name: String::new(), files: sizes.iter().map(file).collect() }
        };
        let mut room = Room { files: 3, bytes: 10, refused: 0 };
        let taken = [&[4, 5][..], &[1, 0], &[2], &[1]].map(|sizes| room.take(&tree(sizes)));
        assert_eq!((taken, room.refused), ([true, false, false, true], 2));
        let problems = left_out(Path::new("r"), &[], &room);
        assert!(problems[0].to_string().contains("2 commits"), "{}", problems[0]);
    }
}
