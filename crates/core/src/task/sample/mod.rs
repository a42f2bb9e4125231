//! Sampling: turns repositories of any one language into a benchmark in RepoEval's format.
//!
//! The holes follow RepoEval (RepoCoder, section 3 "Benchmark Construction"): random lines that are not comments, have at least
//! five tokens and do not repeat; invocations of APIs that the same repository defines in another file; and function bodies of
//! 3 to 30 lines. [`Kind::Chunk`] is Repoformer's fourth kind (appendix D, algorithm 1): a run of lines whose length follows a
//! Poisson distribution with mean 3.
//!
//! An API is a function that another file of the repository defines. In Python, imports show such definitions; in the other
//! languages, declared types do. `repository::definitions` has the rules. Documentation (docstrings, Javadoc, `///`) stays in
//! the prompt, because it describes what to write.
//!
//! The record of an API task has the places of the definitions that its target calls ([`TargetDefinition`]).
//!
//! [`sample_commits`] draws tasks from lines that commits added, each in the tree of the commit's parent.
//!
//! No hole is drawn from code that [`Exclusions`] exclude. The exclusions apply while holes are drawn, so the other holes keep
//! their order.
//!
//! A repository's tasks depend only on its files and the [`Sampling`], not on its folder's name, the other repositories or the
//! number of threads. Tasks are in the order in which they were drawn. The first n tasks are therefore also a random sample,
//! and equal the result of a smaller `per_repository`.

mod calls;
mod commits;
mod context;
mod cursor;
mod draw;
mod exclude;
mod functions;
mod kind;
mod names;
mod source;
mod table;

use std::ops::Range;

use calls::CallDefinitions;
use repoformer_store::content::ContentDigest;
use repoformer_text::language::Language;
use repoformer_text::language::syntax::Syntax;
use repoformer_text::lines::strip;

use crate::repository::corpus::{Repository, SourceFile};
use crate::repository::definitions::{Definition, FoundDefinitions};
use crate::repository::parallel;
use crate::task::{TargetDefinition, Task};
pub use commits::{CommitDraw, CommitTask, sample_commits};
pub(crate) use draw::{POISSON_MEAN, Stream};
pub use exclude::{Exclusions, PathPattern};
pub use functions::CountedLines;
pub(crate) use functions::{BodyCut, FUNCTION_LINES, FunctionHoles};
use kind::Hole;
pub use kind::{HoleStart, Kind, Sampling};
pub use names::{NameSource, SourcesOfNames};
use source::SampleSource;
pub use source::{UnparsedFile, UnparsedLines};

/// Draws tasks from one repository; fewer than requested if it does not have enough holes of the kind.
///
/// No two tasks share a line or have the same ground truth (apart from surrounding white space), and every prompt has at least
/// one line. Prompts start as early in their file as `context_tokens` allows. `count_tokens` returns the number of tokens of a
/// text and must be a pure function.
///
/// ```
/// use repoformer_core::repository::corpus::{Repository, SourceFile};
/// use repoformer_core::task::sample::{Kind, Sampling, sample};
///
/// let text = "import math\n\ndef area(radius):\n    square = radius * radius\n    return math.pi * square\n";
/// let file = SourceFile { path: "shapes/area.py".into(), text: text.into(), same_as: 0 };
/// let repository = Repository { name: "shapes".into(), files: vec![file] };
/// let sampling = Sampling { context_tokens: 7, ..Sampling::new(Kind::Line) };
/// let words = |text: &str| text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).count();
/// let tasks = sample(&repository, &Sampling { min_tokens: 4, ..sampling }, &words).tasks;
/// assert_eq!(tasks.len(), 1);
/// assert!(tasks[0].id.starts_with("shapes/line-"));
/// assert_eq!(tasks[0].ground_truth, "    return math.pi * square");
/// assert_eq!((tasks[0].context_start, tasks[0].line_no), (1, 4));
/// assert_eq!(tasks[0].prompt, "\ndef area(radius):\n    square = radius * radius\n");
/// ```
pub fn sample(
    repository: &Repository,
    sampling: &Sampling,
    count_tokens: &(dyn Fn(&str) -> usize + Sync),
) -> TaskSample {
    let Candidates { sources, holes, defined } =
        candidates(repository, sampling.kind, sampling.language);
    let drawn = draw::draw(repository, &sources, sampling, count_tokens, holes);
    let task = |hole: Hole| {
        let lines = &sources[hole.file].as_ref()?.lines;
        let context_start =
            context::start(lines, hole.start, sampling.context_tokens, count_tokens);
        let mut task = Task::new(
            String::new(),
            &repository.files[hole.file].path,
            context_start,
            hole.start,
            lines.range(hole.start, hole.end),
            context::prompt(lines, context_start, hole.start),
        );
        if let Some(called) = defined.get(&(hole.file, hole.start)) {
            set_definitions(&mut task, called, repository, &sources);
        }
        sampling.move_cursor(&mut task);
        task.name_by_hole(sampling.kind);
        Some(task)
    };
    let tasks = parallel::map(drawn, task).into_iter().flatten().collect();
    TaskSample { tasks, unparsed: source::unparsed_files(repository, &sources) }
}

/// Tasks drawn from a repository.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSample {
    /// Tasks, in the order in which they were drawn.
    pub tasks: Vec<Task>,
    /// Files of the repository that could not be parsed completely.
    pub unparsed: Vec<UnparsedFile>,
}

/// Number of hexadecimal digits of a hole's digest in an id.
const DIGITS: usize = 12;

impl Task {
    /// Names the task after its kind and its hole: `repository/line-1f3a9c20b4d7`. The same hole of the same file has the same
    /// id in every task file, and every other hole has another id.
    pub(super) fn name_by_hole(&mut self, kind: Kind) {
        let hole = self.hole_digest().to_string();
        let line = self.line_no.to_string();
        let digest = ContentDigest::from_texts([&hole, self.file_in_repository(), &line]);
        self.id = format!("{}/{kind}-{digest:.DIGITS$}", self.repository);
        self.metadata.insert("task_id", self.id.clone().into());
    }
}

/// Stores the definitions that a task's target calls in the task, each once.
fn set_definitions(
    task: &mut Task,
    called: &[FoundDefinitions],
    repository: &Repository,
    sources: &[Option<SampleSource>],
) {
    let mut called: Vec<Definition> =
        called.iter().flat_map(|found| found.iter().copied()).collect();
    called.sort_unstable();
    called.dedup();
    // Definitions in a file are ordered by line, so the file's lines are counted once.
    let (mut counted, mut code_line) = ((0, 0), 0);
    task.set_definitions(called.iter().filter_map(|definition| {
        let (file, line) = (definition.file as usize, definition.rows.start as usize);
        let lines = &sources[file].as_ref()?.lines;
        if counted.0 != file {
            (counted, code_line) = ((file, 0), 0);
        }
        let is_code = |row: &usize| !strip(lines.line(*row)).is_empty();
        code_line += (counted.1..line).filter(is_code).count();
        counted.1 = line;
        Some(TargetDefinition {
            path: repository.files[file].path.clone(),
            line,
            code_line,
            text: lines.line(line).to_owned(),
        })
    }));
}

/// Returns the rows to cut out of each function, by file, and the files that could not be parsed completely. Files with line
/// ends other than `\n` have no rows, because their rows are not lines.
pub(crate) fn function_holes(
    repository: &Repository,
    language: Language,
    wanted: &FunctionHoles,
) -> (Vec<Vec<Range<usize>>>, Vec<UnparsedFile>) {
    let (sources, holes) = functions::read_all(repository, language, wanted);
    let unparsed = source::unparsed_files(repository, &sources);
    let files = repository.files.iter().zip(sources).zip(holes);
    let holes = files
        .map(|((file, source), holes)| match source {
            Some(source) if wanted.may_be_in(&source) && source.is_plain(file) => holes,
            _ => Vec::new(),
        })
        .collect();
    (holes, unparsed)
}

/// Returns, for each row of every file, whether it is a row of a data table; `None` for rows without words. Files with line
/// ends other than `\n` have no rows.
pub(crate) fn tables(repository: &Repository, language: Language) -> Vec<Vec<Option<bool>>> {
    let read = |file: &SourceFile, source: &SampleSource, _: &Syntax<'_>| {
        if source.is_plain(file) {
            let row = |(row, is_table): (usize, &bool)| source.has_words(row).then_some(*is_table);
            source.is_table.iter().enumerate().map(row).collect()
        } else {
            Vec::new()
        }
    };
    source::read_all(repository, language, read).1
}

/// Possible holes of a repository.
struct Candidates {
    /// Files; `None` for files that could not be read.
    sources: Vec<Option<SampleSource>>,
    /// Every place at which a hole can begin, by file and line.
    holes: Vec<Hole>,
    /// Definitions that the calls in the holes call.
    defined: CallDefinitions,
}

fn candidates(repository: &Repository, kind: Kind, language: Language) -> Candidates {
    let alone = |(sources, holes)| (sources, holes, CallDefinitions::default());
    let (sources, holes, defined) = match kind {
        Kind::Line | Kind::Chunk => {
            alone(source::read_all(repository, language, |_, source, _| source.lines_of_code()))
        }
        Kind::Function => {
            alone(functions::read_all(repository, language, &FunctionHoles::repocoder()))
        }
        Kind::Api => calls::read_all(repository, language),
    };
    let holes = holes.into_iter().enumerate().flat_map(|(file, spans)| {
        spans.into_iter().map(move |span| Hole { file, start: span.start, end: span.end })
    });
    let written = |file: usize| {
        sources[file].as_ref().is_some_and(|source: &SampleSource| !source.is_generated)
    };
    // The first line of a file has no left context for a model to continue.
    let holes = holes.filter(|hole| hole.start > 0 && written(hole.file)).collect();
    Candidates { sources, holes, defined }
}

#[cfg(test)]
mod tests;
