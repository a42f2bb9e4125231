//! Tasks sampled from lines that commits added, each with a folder for its parent's tree.

use std::path::Path;

use repoformer_core::repository::corpus::{Repository, SourceFile};
use repoformer_core::repository::history::{History, SkippedCommit};
use repoformer_core::repository::record::{Folders, WriteOutcome};
use repoformer_core::task::Task;
use repoformer_core::task::sample::{
    CommitDraw, CommitTask, Exclusions, NameSource, Sampling, UnparsedFile, sample_commits,
};
use repoformer_evaluate::quality::RetrievalTarget;
use repoformer_store::error::{Error, Result};
use repoformer_text::counts::format_count;
use repoformer_text::language::{Language, identifiers};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use repoformer_text::tokenize::P50k;

/// Smallest edit similarity of a near duplicate.
pub const NEAR: f64 = 0.9;

/// Greatest number of files that are written for the tasks of one repository, and their greatest total size in bytes: each task
/// has a whole tree.
const MOST_WRITTEN_FILES: usize = 2_000_000;
const MOST_WRITTEN_BYTES: u64 = 20 << 30;

/// Sampler of the commits of Git repositories, one repository after another.
pub struct CommitSampling<'a> {
    /// Folder of the tasks' repositories.
    trees: &'a Path,
    /// First day of the commits, as `2024-01-31`.
    since: &'a str,
    sampling: &'a Sampling,
    folders: Folders,
    drawn: CommitTasks,
}

/// Tasks from the commits of all Git repositories.
#[derive(Debug, Default)]
pub struct CommitTasks {
    /// Tasks, in the order in which they were sampled.
    pub tasks: Vec<Task>,
    /// Whether each pattern of excluded paths matches a file.
    pub matched: Vec<bool>,
    /// Files that could not be parsed completely.
    pub unparsed: Vec<UnparsedFile>,
    /// Number of tasks by the most distant source of a name, in the order of [`NameSource::ALL`].
    pub sources: [usize; NameSource::ALL.len()],
    /// Number of tasks whose lines also occur in the parent's tree.
    pub verbatim: usize,
    /// Number of tasks whose lines almost occur there: their edit similarity is [`NEAR`] or more.
    pub near: usize,
    /// Number of tasks whose lines an earlier commit added.
    pub in_history: usize,
}

/// Tasks from one Git repository.
#[derive(Debug)]
pub struct HistoryTasks {
    /// Number of commits that tasks could be sampled from.
    pub commits: usize,
    /// Number of tasks.
    pub tasks: usize,
    /// Files that could not be written, and skipped commits.
    pub problems: Vec<Error>,
    /// Reason why the history is not read for earlier versions of the tasks' lines.
    pub unread: Option<Error>,
}

/// Lines of a task, compared with the history after all tasks are sampled.
struct AddedLines {
    text: String,
    date: String,
    is_in_tree: bool,
}

impl<'a> CommitSampling<'a> {
    /// Starts sampling into a folder of trees, which is created.
    ///
    /// # Errors
    /// The folder cannot be created or written.
    pub fn new(trees: &'a Path, since: &'a str, sampling: &'a Sampling) -> Result<Self> {
        let folders = Folders::create(trees)?;
        Ok(Self { trees, since, sampling, folders, drawn: CommitTasks::default() })
    }

    /// Samples tasks from the commits of a Git repository at `path`, and writes their trees.
    ///
    /// # Errors
    /// The first day is invalid, the history cannot be read, or a tree cannot be written.
    pub fn draw(&mut self, history: &History, path: &Path) -> Result<HistoryTasks> {
        let Self { since, sampling, .. } = *self;
        let begin = self.drawn.tasks.len();
        let (mut lines, mut room, mut problems) = (Vec::new(), TreeBudget::default(), Vec::new());
        let take = |found: CommitTask| {
            if !room.take(&found.repository) {
                // The task counts, so that sampling ends even if every tree is too large.
                return Ok(true);
            }
            let skipped = write(&found, &mut self.folders)?;
            problems.extend(skipped.files);
            if !skipped.has_target {
                lines.push(self.drawn.add(found, sampling));
            }
            Ok(!skipped.has_target)
        };
        let count = |text: &str| P50k.count(text);
        let drawn = sample_commits(history, since, sampling, &count, take);
        let CommitDraw { commits, unparsed, skipped, left_out, .. } = drawn?;
        self.drawn.unparsed.extend(unparsed);
        problems.extend(
            left_out
                .into_iter()
                .map(|file| problem(&path.join(file.path), format!("left out: {}", file.reason))),
        );
        problems.extend(commit_problems(path, &skipped, &room));
        let unread = if lines.is_empty() {
            None
        } else {
            self.drawn.note_history(begin, &lines, history, sampling.language)?
        };
        let unread = unread.map(|skipped| {
            problem(path, format!("its history cannot be read for `in_history`: {skipped}"))
        });
        Ok(HistoryTasks { commits, tasks: lines.len(), problems, unread })
    }

    /// Describes the files that are left out of the trees, and the reasons.
    pub fn describe_left_out(&self) -> impl Iterator<Item = String> {
        self.folders.describe_left_out()
    }

    /// Moves the trees into place, and returns the tasks with the number of the trees' files.
    ///
    /// # Errors
    /// The folder of a task's repository exists with other files, or a file cannot be written.
    pub fn finish(self) -> Result<(CommitTasks, usize)> {
        let Self { trees, folders, drawn, .. } = self;
        let placed = folders.finish()?;
        let Some(name) = placed.refused.first() else {
            return Ok((drawn, placed.files));
        };
        Err(Error::from_refusal(
            format!(
                "{} of the tasks' folders already exist, with other files, such as {}",
                placed.refused.len(),
                trees.join(name).display()
            ),
            message!["remove them, or choose another ", UserChoice::TreesFolder],
        ))
    }

    /// Returns the tasks so far.
    pub fn tasks(&self) -> &CommitTasks {
        &self.drawn
    }
}

impl CommitTasks {
    /// Adds a task, and records how similar its lines are to the lines of its parent's tree. Returns the lines.
    fn add(&mut self, found: CommitTask, sampling: &Sampling) -> AddedLines {
        Exclusions::also_matched(
            &mut self.matched,
            &sampling.exclusions.match_files(&found.repository),
        );
        let similar = similar(&found, sampling.language);
        self.sources[found.names.farthest() as usize] += 1;
        match similar {
            Some(1.0) => self.verbatim += 1,
            Some(similar) if similar >= NEAR => self.near += 1,
            _ => {}
        }
        let CommitTask { mut task, lines, commit, .. } = found;
        if let Some(similar) = similar {
            CommitTask::note(&mut task, "similar", (similar * 1e4).round() / 1e4);
        }
        self.tasks.push(task);
        AddedLines { text: lines, date: commit.date, is_in_tree: similar == Some(1.0) }
    }

    /// Records for the tasks from `begin` on whether their lines are in an earlier version of a file. If the history is too
    /// large to read, returns the reason.
    fn note_history(
        &mut self,
        begin: usize,
        lines: &[AddedLines],
        history: &History,
        language: Language,
    ) -> Result<Option<SkippedCommit>> {
        let earlier = match history.lines(language)? {
            Ok(earlier) => earlier,
            Err(skipped) => return Ok(Some(skipped)),
        };
        for (task, lines) in self.tasks[begin..].iter_mut().zip(lines) {
            let is_old = lines.is_in_tree || earlier.hold(&lines.text, &lines.date);
            self.in_history += usize::from(is_old);
            CommitTask::note(task, "in_history", is_old);
        }
        Ok(None)
    }
}

/// Limit on the trees that are written for the tasks of one repository.
#[derive(Debug)]
struct TreeBudget {
    files: usize,
    bytes: u64,
    /// Number of tasks that were refused.
    refused: usize,
}

impl Default for TreeBudget {
    fn default() -> Self {
        Self { files: MOST_WRITTEN_FILES, bytes: MOST_WRITTEN_BYTES, refused: 0 }
    }
}

impl TreeBudget {
    /// Returns true if there is room for a task's tree, and reserves it.
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

fn problem(path: &Path, reason: impl Into<Message>) -> Error {
    Error::Repository { path: path.to_owned(), reason: reason.into() }
}

/// Returns the problems of skipped commits in a repository.
fn commit_problems(path: &Path, skipped: &[SkippedCommit], room: &TreeBudget) -> Vec<Error> {
    let of_commit = |commit: &SkippedCommit| problem(path, format!("left out: {commit}"));
    let mut problems: Vec<Error> = skipped.iter().map(of_commit).collect();
    if room.refused > 0 {
        let commits = format_count(room.refused as u64, "commit");
        problems.push(problem(
            path,
            message![
                format!(
                    "left out: {commits} whose trees would exceed 2,000,000 files or 20 GiB in the "
                ),
                UserChoice::TreesFolder
            ],
        ));
    }
    problems
}

/// Files of a task's repository that could not be written.
#[derive(Default)]
struct SkippedFiles {
    files: Vec<Error>,
    /// True if the task's own file is one of these files. In this case, no other file was written.
    has_target: bool,
}

/// Writes the repository of a task, starting with the task's own file.
fn write(found: &CommitTask, folders: &mut Folders) -> Result<SkippedFiles> {
    let mut skipped = SkippedFiles::default();
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

/// Returns the edit similarity of the hole's lines to the most similar lines of the parent's tree.
fn similar(found: &CommitTask, language: Language) -> Option<f64> {
    let others = found.repository.files.iter().filter(|file| file.path != found.task.path);
    let texts = others.map(|file| file.text.as_str()).chain(found.before.as_deref());
    let target = RetrievalTarget::new(&found.lines, &[], |text| identifiers(text, language));
    target.measure(&texts.collect::<Vec<_>>()).get("es")
}

#[cfg(test)]
mod tests {
    use repoformer_core::task::sample::Kind;

    use super::*;

    fn git(dir: &Path, date: &str, arguments: &[&str]) {
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(dir).args(["-c", "commit.gpgSign=false"]).args(arguments);
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "n");
            command.env(format!("GIT_{who}_EMAIL"), "n@example.org");
            command.env(format!("GIT_{who}_DATE"), date);
        }
        assert!(command.output().unwrap().status.success());
    }

    /// A commit of 2025 adds lines to a file of 2024.
    #[test]
    fn tasks_of_commits_have_their_trees() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("made");
        std::fs::create_dir(&dir).unwrap();
        git(&dir, "", &["init", "-q"]);
        let mut text = String::new();
        for (year, numbers) in [("2024", 0..9), ("2025", 9..12)] {
            numbers.for_each(|n| text += &format!("value_{n} = call({n}, len('{}'))\n", n * n));
            std::fs::write(dir.join("a.py"), &text).unwrap();
            let date = format!("{year}-02-01T10:00:00Z");
            git(&dir, &date, &["add", "-A"]);
            git(&dir, &date, &["commit", "-q", "-m", "x"]);
        }
        let history = History::open(&dir).unwrap();
        let sampling = Sampling { per_repository: 5, ..Sampling::new(Kind::Line) };
        let trees = place.path().join("trees");
        let mut drawing = CommitSampling::new(&trees, "2025-01-01", &sampling).unwrap();
        let drawn = drawing.draw(&history, &dir).unwrap();
        assert_eq!((drawn.commits, drawn.tasks, drawn.problems.len()), (1, 1, 0));
        assert!(drawn.unread.is_none() && drawing.describe_left_out().next().is_none());
        let (drawn, files) = drawing.finish().unwrap();
        assert_eq!((drawn.tasks.len(), drawn.sources.iter().sum::<usize>(), files), (1, 1, 1));
        assert_eq!((drawn.verbatim, drawn.in_history), (0, 0));
        let task = &drawn.tasks[0];
        let tree = std::fs::read_to_string(trees.join(&task.path)).unwrap();
        assert!(tree.contains("value_8") && tree.contains(&task.ground_truth), "{tree}");

        // Other files are not overwritten.
        std::fs::write(trees.join(&task.path), "x = 1\n").unwrap();
        let mut again = CommitSampling::new(&trees, "2025-01-01", &sampling).unwrap();
        again.draw(&history, &dir).unwrap();
        let error = again.finish().map(drop).unwrap_err().to_string();
        assert!(error.starts_with("1 of the tasks' folders already exist"), "{error}");
        let mut wrong = CommitSampling::new(&trees, "2025", &sampling).unwrap();
        let error = wrong.draw(&history, &dir).map(drop).unwrap_err().to_string();
        assert!(error.starts_with("the first day: "), "{error}");
    }

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
        let mut room = TreeBudget { files: 3, bytes: 10, refused: 0 };
        let taken = [&[4, 5][..], &[1, 0], &[2], &[1]].map(|sizes| room.take(&tree(sizes)));
        assert_eq!((taken, room.refused), ([true, false, false, true], 2));
        let problems = commit_problems(Path::new("r"), &[], &room);
        assert!(problems[0].to_string().contains("2 commits"), "{}", problems[0]);
    }
}
