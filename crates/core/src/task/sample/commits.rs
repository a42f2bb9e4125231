//! Tasks from commits: a hole consists of lines that a commit added, and the repository is the parent's tree.
//!
//! The repository is in the state just before these lines were typed. All files are the parent's, except the hole's own file.
//! In this file, the commit's changes above the hole are applied, and its changes below the hole are not. The prompt begins at
//! the first of these changes or earlier. Queries see nothing of their own file after the start of their prompt, so no
//! retrieved text is younger than the parent.

use std::collections::BTreeSet;
use std::ops::Range;

use repoformer_store::error::Result;
use repoformer_store::progress::Work;
use serde_json::{Value, json};

use super::context;
use super::draw::{CountTokens, Draw, POISSON_MEAN, Stream, end_of_chunk};
use super::kind::{Hole, Kind, Sampling};
use super::names::SourcesOfNames;
use super::source::{self, UnparsedFile};
use super::{Candidates, candidates, set_definitions};
use crate::repository::corpus::{Repository, SourceFile};
use crate::repository::definitions::KnownNames;
use crate::repository::history::{
    Bound, Commit, Edit, FileChange, History, LeftOutFile, LeftOutReason, SkippedCommit,
};
use crate::task::Task;

/// Number of digits of a commit's id in the name of its repository.
const DIGITS: usize = 12;
/// Maximum number of a commit's files that are tried.
const MOST_FILES: usize = 8;

/// Task from a commit.
#[derive(Debug)]
pub struct CommitTask {
    /// The task; its repository is named after the history and the commit.
    pub task: Task,
    /// Commit that added the lines of the hole.
    pub commit: Commit,
    /// The repository as the task's stages read it: the hole's file is in the state in which it was typed so far, with the hole
    /// filled.
    pub repository: Repository,
    /// Text of the hole's file in the parent; `None` for a new file.
    pub before: Option<String>,
    /// Whole lines of the hole. The task's target is shorter if its cursor is within the first line.
    pub lines: String,
    /// Sources of the names in the target.
    pub names: SourcesOfNames,
}

impl CommitTask {
    /// Adds a field to the note on the commit in the task's record.
    pub fn note(task: &mut Task, name: &str, value: impl Into<Value>) {
        if let Some(Value::Object(mut note)) = task.metadata.get("commit") {
            note.insert(name.to_owned(), value.into());
            task.metadata.insert("commit", note.into());
        }
    }
}

/// Counts of a drawing from commits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommitDraw {
    /// Number of commits that could be drawn from.
    pub commits: usize,
    /// Number of tasks drawn.
    pub tasks: usize,
    /// Added or changed files that could not be parsed completely.
    pub unparsed: Vec<UnparsedFile>,
    /// Commits that are damaged, or too large to be drawn from.
    pub skipped: Vec<SkippedCommit>,
    /// Source files that trees lack, or that no task is drawn from.
    pub left_out: BTreeSet<LeftOutFile>,
}

/// Draws at most one task from each commit since a date (`2024-01-31`), until there are enough. `take` receives each task, and
/// returns whether it counts.
///
/// First a commit is drawn, then one of the files that it added or changed, then a place in the file. Lines are drawn only
/// where the commit added lines without removing any: lines that replace others are an edit, not a completion.
///
/// # Errors
/// The date is invalid, the history cannot be read, or `take` fails.
pub fn sample_commits(
    history: &History,
    since: &str,
    sampling: &Sampling,
    count_tokens: &CountTokens<'_>,
    mut take: impl FnMut(CommitTask) -> Result<bool>,
) -> Result<CommitDraw> {
    let mut commits = history.commits(since)?;
    let stream = Stream::for_commits(sampling.seed, sampling.kind, &commits);
    let draw = Draw::new(sampling, count_tokens);
    let work =
        Work::new(format!("commits of {}", history.name()), "tasks", sampling.per_repository);
    let known = KnownNames::default();
    let mut drawing = Drawing {
        history,
        sampling,
        count_tokens,
        stream,
        draw,
        known,
        unparsed: Vec::new(),
        skipped: Vec::new(),
        left_out: BTreeSet::new(),
    };
    let mut drawn = CommitDraw { commits: commits.len(), ..CommitDraw::default() };
    for at in 0..commits.len() {
        if drawn.tasks == sampling.per_repository {
            break;
        }
        let other = at + drawing.stream.below(commits.len() - at);
        commits.swap(at, other);
        if let Some(task) = drawing.of_commit(&commits[at], at)?
            && take(task)?
        {
            drawn.tasks += 1;
            work.advance(1);
        }
    }
    let Drawing { unparsed, skipped, left_out, .. } = drawing;
    Ok(CommitDraw { unparsed, skipped, left_out, ..drawn })
}

struct Drawing<'a> {
    history: &'a History,
    sampling: &'a Sampling,
    count_tokens: &'a CountTokens<'a>,
    stream: Stream,
    draw: Draw<'a>,
    /// Names of files that are already known: most files of one parent are also files of another.
    known: KnownNames,
    unparsed: Vec<UnparsedFile>,
    skipped: Vec<SkippedCommit>,
    left_out: BTreeSet<LeftOutFile>,
}

impl Drawing<'_> {
    /// Draws a task from a commit; `number` is the commit's position among the commits.
    fn of_commit(&mut self, commit: &Commit, number: usize) -> Result<Option<CommitTask>> {
        let Sampling { language, exclusions, .. } = self.sampling;
        let digits = commit.id.get(..DIGITS).unwrap_or(&commit.id);
        let name = format!("{}-{digits}", self.history.name());
        if let Err(skipped) = self.history.check(commit)? {
            self.skipped.push(skipped);
            return Ok(None);
        }
        let mut changes = match self.history.changes(commit, *language)? {
            Ok(changes) => changes,
            Err(bound) => return Ok(self.skip(&commit.id, bound)),
        };
        changes.retain(|change| !exclusions.hold(&format!("{name}/{}", change.path)));
        let mut parent: Option<Repository> = None;
        for at in 0..changes.len().min(MOST_FILES) {
            let other = at + self.stream.below(changes.len() - at);
            changes.swap(at, other);
            let change = &changes[at];
            let edit = match self.history.edit(change)? {
                Ok(Some(edit)) => edit,
                Ok(None) => {
                    let (path, reason) = (change.path.clone(), LeftOutReason::Change);
                    self.left_out.insert(LeftOutFile { path, reason });
                    continue;
                }
                Err(bound) => return Ok(self.skip(&commit.id, bound)),
            };
            if !edit.hunks.iter().any(|hunk| hunk.removed.is_empty() && !hunk.added.is_empty()) {
                continue;
            }
            let path = format!("{name}/{}", change.path);
            if self.sampling.kind == Kind::Api && parent.is_none() {
                parent = self.parent(commit, &name)?;
                if parent.is_none() {
                    return Ok(None);
                }
            }
            // The function that is called may be defined in any file; everything else is in the hole's own file.
            let alone = || Repository { name: name.clone(), files: Vec::new() };
            let after = with_file(parent.clone().unwrap_or_else(alone), &path, edit.after.clone());
            let Some(place) = self.place(&after, &path, &edit, number) else { continue };
            let parent = match parent {
                Some(parent) => parent,
                None => match self.parent(commit, &name)? {
                    Some(parent) => parent,
                    None => return Ok(None),
                },
            };
            // A folder has become a file, or a file has become a folder.
            if change.is_new() && lies_across(&parent, &path) {
                return Ok(None);
            }
            return Ok(Some(self.task(commit, change, edit, place, parent)));
        }
        Ok(None)
    }

    /// Returns the files of a commit's parent; `None`, with a note, if they are too large.
    fn parent(&mut self, commit: &Commit, name: &str) -> Result<Option<Repository>> {
        let files = self.history.files(&commit.parent, name, self.sampling.language)?;
        Ok(match files {
            Ok((repository, left_out)) => {
                self.left_out.extend(left_out);
                Some(repository)
            }
            Err(bound) => self.skip(&commit.parent, bound),
        })
    }

    /// Notes that a commit is skipped, and returns `None`.
    fn skip<T>(&mut self, id: &str, bound: Bound) -> Option<T> {
        self.skipped.push(SkippedCommit { id: id.to_owned(), bound });
        None
    }

    /// Draws a hole from a changed file of a repository.
    fn place(
        &mut self,
        after: &Repository,
        path: &str,
        edit: &Edit,
        number: usize,
    ) -> Option<CommitHole> {
        let Sampling { kind, language, .. } = *self.sampling;
        let file = after.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        let Candidates { sources, mut holes, defined } = candidates(after, kind, language);
        self.unparsed.extend(source::unparsed_file(path, sources[file].as_ref()));
        let source = sources[file].as_ref().filter(|source| source.is_plain(&after.files[file]))?;
        holes.retain(|hole| hole.file == file && added_run(edit, hole.start).is_some());
        for at in 0..holes.len() {
            let other = at + self.stream.below(holes.len() - at);
            holes.swap(at, other);
            let hole = holes[at];
            let (run, behind) = added_run(edit, hole.start)?;
            let end = match kind {
                Kind::Chunk => {
                    let length = self.stream.length(POISSON_MEAN);
                    let ends = (1..=length).rev();
                    let mut ends = ends.map(|length| end_of_chunk(source, hole.start, length));
                    ends.find(|end| *end <= run.end).unwrap_or(hole.end)
                }
                _ => hole.end,
            };
            if end > run.end {
                continue;
            }
            let context_start = context::start(
                &source.lines,
                hole.start,
                self.sampling.context_tokens,
                self.count_tokens,
            );
            // Lines that were only removed also count as a change: the lines after them moved.
            let first = edit.hunks.iter().map(|hunk| hunk.added.start).min()?;
            let is_shown = first >= hole.start || context_start <= first;
            // Holes of different commits never overlap.
            if is_shown && self.draw.accepts(source, Hole { file: number, start: hole.start, end })
            {
                let mut task = Task::new(
                    String::new(),
                    path,
                    context_start,
                    hole.start,
                    source.lines.range(hole.start, end),
                    context::prompt(&source.lines, context_start, hole.start),
                );
                if let Some(called) = defined.get(&(file, hole.start)) {
                    set_definitions(&mut task, called, after, &sources);
                }
                return Some(CommitHole { task, rows: hole.start..end, behind });
            }
        }
        None
    }

    /// Builds a task from its place and the files of the parent.
    fn task(
        &self,
        commit: &Commit,
        change: &FileChange,
        edit: Edit,
        place: CommitHole,
        parent: Repository,
    ) -> CommitTask {
        let CommitHole { mut task, rows, behind } = place;
        let after = edit.after.split_inclusive('\n').take(rows.end);
        let mut text: String = after.collect();
        let rest = edit.before.split_inclusive('\n').skip(behind);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.extend(rest);
        let lines = task.ground_truth.clone();
        self.sampling.move_cursor(&mut task);
        task.name_by_hole(self.sampling.kind);
        let repository = with_file(parent, &task.path, text);
        let names =
            SourcesOfNames::new(&repository, &task, rows, self.sampling.language, &self.known);
        let note = json!({
            "id": commit.id, "parent": commit.parent, "date": commit.date,
            "stratum": names.farthest().name(), "names": names.counts(),
        });
        task.metadata.insert("commit", note);
        let before = (!change.is_new()).then_some(edit.before);
        CommitTask { task, commit: commit.clone(), repository, before, lines, names }
    }
}

/// Hole in a file of a commit.
struct CommitHole {
    /// Task of the hole; its target has all lines of the hole.
    task: Task,
    /// Lines of the hole in the commit's file.
    rows: Range<usize>,
    /// First line after the hole in the parent's file.
    behind: usize,
}

/// Returns the run of lines around a line that the commit added without removing any, and the line after the run in the
/// parent's file.
fn added_run(edit: &Edit, line: usize) -> Option<(Range<usize>, usize)> {
    let mut hunks = edit.hunks.iter();
    let hunk = hunks.find(|hunk| hunk.added.contains(&line))?;
    hunk.removed.is_empty().then(|| (hunk.added.clone(), hunk.removed.start))
}

/// Returns true if a path is below a file of a repository, or is a folder in it.
fn lies_across(repository: &Repository, path: &str) -> bool {
    let is_below = |path: &str, folder: &str| {
        path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    };
    let mut files = repository.files.iter();
    files.any(|file| is_below(&file.path, path) || is_below(path, &file.path))
}

/// Returns a repository with a text in a file, which may be new.
fn with_file(mut repository: Repository, path: &str, text: String) -> Repository {
    match repository.files.binary_search_by(|file| file.path.as_str().cmp(path)) {
        Ok(at) => repository.files[at].text = text,
        Err(at) => {
            let file = SourceFile { path: path.to_owned(), text, same_as: 0 };
            repository.files.insert(at, file);
            for (number, file) in (0..).zip(&mut repository.files) {
                file.same_as = number;
            }
        }
    }
    repository
}
