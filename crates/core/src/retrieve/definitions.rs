//! Definitions as a ranker: fragments of other files that define the names used near a hole.
//!
//! A *mention* is a name in the query, a name in the head of a function or class around the hole, or a name that the hole's
//! file imports. Mentions are looked up by the rules of the language, in the file without the lines of the target. The score of
//! a fragment is a sum over definitions: the largest weight of the definition's mentions, times the fraction of the
//! definition's first lines that the fragment shows. A class counts for less if only its methods are shown.
//!
//! Searching by a file's imports follows DraCo (Cheng et al. 2024); weights and constants are our own.

use std::collections::BTreeMap;
use std::ops::Range;

use foldhash::{HashMap, HashSet};

use super::align::FileLines;
use super::query::Query;
use super::rank::distance;
pub use crate::repository::definitions::KnownNames;
use repoformer_store::progress::Work;
use repoformer_text::language::syntax::{ParseGap, Syntax};
use repoformer_text::language::{BlockMarks, Grammar, Language, chains, identifiers};
use repoformer_text::lines::{Lines, strip};

use crate::repository::definitions::{
    Definition, Definitions, FoundDefinitions, LookUp, Names, RepositoryNames, Rows, SourcePaths,
};
use crate::repository::fragment::{Cut, FragmentFile, RepoFragments};
use crate::repository::parallel;
use crate::task::Task;

/// Maximum number of a definition's lines that count: its signature, and the head of its documentation or body.
pub(super) const HEAD: u32 = 10;
/// Number of lines that are read of a function or class around the hole.
const HEAD_AROUND: usize = 3;
/// Weight of a name in these lines; a name in the query has weight 1/√(1 + distance).
const AROUND: f64 = 0.3;
/// Weight of a name that the file imports but does not use before the hole: it is likely to be used soon.
const UNUSED: f64 = 0.25;
/// Weight of any other name that the file imports.
const IMPORTED: f64 = 0.05;
/// Factor for the methods of a class that was mentioned.
const METHODS: f64 = 0.3;
/// Number of lines before the hole by which a chunk's hole is located in its file.
const LINES_TO_FIND: usize = 20;

/// A fragment that shows definitions of names used near a hole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DefiningFragment {
    /// Number of the fragment.
    pub fragment: u32,
    /// Score of the fragment.
    pub score: f64,
    /// The definition that adds most to the score, or the first of several. Its lines are the lines from its name to its end.
    pub definition: FileLines,
}

/// Names that a repository's files define, import and call.
pub struct FileNames<'a> {
    fragments: &'a RepoFragments,
    paths: SourcePaths<'a>,
    names: RepositoryNames,
    gaps: Vec<ParseGap>,
}

/// Definitions of a repository, and the fragments that show them.
pub struct DefinitionIndex<'a> {
    fragments: &'a RepoFragments,
    definitions: Definitions<'a>,
    /// Methods of each type.
    methods: HashMap<Definition, Vec<Rows>>,
    /// Fragments of each file, by the number of the file.
    places: Vec<Places>,
}

/// Fragments of one file.
#[derive(Debug, Clone, Default)]
struct Places {
    /// Rows and number of each fragment, ordered by first row.
    fragments: Vec<(Rows, u32)>,
    /// Number of rows of the longest fragment.
    longest: u32,
}

impl<'a> FileNames<'a> {
    /// Parses all files, except those whose names are already known. The files' texts must be present.
    pub fn read(fragments: &'a RepoFragments, known: &KnownNames) -> Self {
        let files = &fragments.files;
        let work = Work::new(format!("parse {}", fragments.repository), "files", files.len());
        let read = parallel::map(files.iter().enumerate(), |(number, file)| {
            work.advance(1);
            // A link to a file that was already read adds no names.
            if (file.same_as as usize) < number {
                return (Names::Unread, None);
            }
            let language = fragments.language;
            let (names, parsed) = known.read(language, &file.path, &file.lines, file.digest);
            (names, ParseGap::find(language, &file.path, parsed))
        });
        let (names, gaps): (Vec<Names>, Vec<Option<ParseGap>>) = read.into_iter().unzip();
        let paths = files.iter().map(|file| (file.path.as_str(), file.same_as));
        Self {
            fragments,
            paths: SourcePaths::new(&fragments.repository, paths),
            names: RepositoryNames::new(fragments.language, names),
            gaps: gaps.into_iter().flatten().collect(),
        }
    }

    /// Returns the files that were not fully parsed.
    pub fn gaps(&self) -> &[ParseGap] {
        &self.gaps
    }

    /// Indexes the files' definitions.
    pub fn index(&'a self) -> DefinitionIndex<'a> {
        let fragments = self.fragments;
        let mut places = vec![Places::default(); fragments.files.len()];
        for fragment in 0..fragments.len() {
            for place in fragments.places(fragment) {
                let rows = Rows { start: place.start, end: place.end };
                let of_file = &mut places[place.file as usize];
                of_file.fragments.push((rows, fragment as u32));
                of_file.longest = of_file.longest.max(rows.end - rows.start);
            }
        }
        for of_file in &mut places {
            of_file.fragments.sort_unstable();
        }
        let definitions = Definitions::new(fragments.language, &self.paths, &self.names);
        let types = (0..fragments.files.len()).flat_map(|file| definitions.types(file));
        let in_order = |(found, mut methods): (Definition, Vec<Rows>)| {
            methods.sort_unstable();
            (found, methods)
        };
        DefinitionIndex { fragments, methods: types.map(in_order).collect(), definitions, places }
    }
}

impl DefinitionIndex<'_> {
    /// Returns the fragments that show definitions of names used near a task's hole, by number.
    pub fn search(&self, query: &Query, task: &Task) -> Vec<DefiningFragment> {
        let weights = self.with_look_up(task, |own, look_up| {
            let mentions = mentions(query, own).into_iter();
            let found = mentions.map(|(chain, weight)| (look_up(&chain), weight));
            let mut weights: HashMap<Definition, f64> = HashMap::default();
            for (found, weight) in
                FoundDefinitions::distinct(found, |known, weight| *known = known.max(weight))
            {
                for definition in found.iter() {
                    let known = weights.entry(*definition).or_default();
                    *known = known.max(weight);
                }
            }
            weights
        });
        self.scores(weights.unwrap_or_default())
    }

    /// Returns the file of a task's hole: the first copy of the file on disk.
    pub(super) fn file_of(&self, task: &Task) -> Option<usize> {
        let file = self.fragments.file_index(&task.path)?;
        Some(file.min(self.fragments.files[file].same_as as usize))
    }

    /// Returns the other files that define functions called in a file, by number, with the number of calls.
    pub(super) fn called_files(&self, file: usize) -> Vec<(u32, u32)> {
        let calls = self.definitions.calls(file).into_iter();
        count_files(calls.map(|(_, definitions)| definitions))
    }

    /// Returns the other files that define names used in a task's file without its target, by number, with the number of uses.
    /// Lines after the hole count only if the query has any of them.
    pub(super) fn named_files(&self, query: &Query, task: &Task) -> Vec<(u32, u32)> {
        let is_behind = query.lines().count() > query.hole as usize;
        let named = self.with_look_up(task, |own, look_up| {
            let language = self.fragments.language;
            let mut known: HashMap<Vec<&str>, FoundDefinitions> = HashMap::default();
            let mut found = Vec::new();
            let end = if is_behind { own.lines.count() } else { own.row };
            let lines = own.lines.iter().take(end);
            for chain in lines.flat_map(|line| chains(line, language)) {
                let definitions = known.entry(chain).or_insert_with_key(|chain| {
                    let parts = (1..=chain.len()).rev().map(|length| look_up(&chain[..length]));
                    parts.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
                });
                found.push(definitions.clone());
            }
            count_files(found.into_iter())
        });
        named.unwrap_or_default()
    }

    /// Calls a function with a task's file and its name look-up; `None` if the file does not exist.
    fn with_look_up<T>(
        &self,
        task: &Task,
        with: impl FnOnce(&OwnFile<'_>, &LookUp<'_>) -> T,
    ) -> Option<T> {
        let own = &self.fragments.files[self.fragments.file_index(&task.path)?];
        let (text, row) = without_target(own, task, self.fragments.cut);
        let lines = Lines::with_line_feeds(text);
        let row = row.min(lines.count());
        let syntax = parse(own, &lines, self.fragments.language)?;
        let names = Names::read_before(&own.path, &syntax, row);
        let look_up = self.definitions.within(self.file_of(task)?, &names, row as u32);
        Some(with(&OwnFile { lines: &lines, row, syntax: &syntax, names: &names }, &look_up))
    }

    /// Returns the scores of fragments for weighted definitions. They are summed in a fixed order, so that results are
    /// reproducible.
    fn scores(&self, weights: HashMap<Definition, f64>) -> Vec<DefiningFragment> {
        let mut weights: Vec<(Definition, f64)> = weights.into_iter().collect();
        weights.sort_unstable_by_key(|(definition, _)| *definition);
        let mut found: HashMap<u32, Sum> = HashMap::default();
        for (definition, weight) in weights {
            let file = definition.file;
            let places = &self.places[file as usize];
            let mut add = |fragment, score, rows: Rows| {
                let piece = FileLines { file, start: rows.start, end: rows.end };
                found.entry(fragment).or_default().add(score, piece);
            };
            for (fragment, share) in places.shares(definition.rows) {
                add(fragment, weight * share, definition.rows);
            }
            let methods = self.methods.get(&definition).into_iter().flatten();
            let mut best: BTreeMap<u32, (f64, Rows)> = BTreeMap::new();
            for &rows in methods {
                for (fragment, share) in places.shares(rows) {
                    let known = best.entry(fragment).or_insert((share, rows));
                    if share > known.0 {
                        *known = (share, rows);
                    }
                }
            }
            for (fragment, (share, rows)) in best {
                add(fragment, weight * METHODS * share, rows);
            }
        }
        let defining = |(fragment, sum): (u32, Sum)| {
            let (_, definition) = sum.best?;
            Some(DefiningFragment { fragment, score: sum.score, definition })
        };
        let mut found: Vec<DefiningFragment> = found.into_iter().filter_map(defining).collect();
        found.sort_unstable_by_key(|found| found.fragment);
        found
    }
}

/// Score of a fragment during summation.
#[derive(Default)]
struct Sum {
    score: f64,
    /// Largest part of the score, and its definition.
    best: Option<(f64, FileLines)>,
}

impl Sum {
    fn add(&mut self, part: f64, definition: FileLines) {
        self.score += part;
        if self.best.is_none_or(|(best, _)| part > best) {
            self.best = Some((part, definition));
        }
    }
}

impl Places {
    /// Returns the fragments in which a definition begins, with the fraction of the definition's first lines in each.
    fn shares(&self, definition: Rows) -> impl Iterator<Item = (u32, f64)> {
        let start = definition.start;
        let end = definition.end.min(start + HEAD).max(start + 1);
        let first = self.fragments.partition_point(|(rows, _)| rows.start + self.longest <= start);
        let near = self.fragments[first..].iter().take_while(move |(rows, _)| rows.start <= start);
        near.filter(move |(rows, _)| start < rows.end).map(move |(rows, fragment)| {
            let shown = rows.end.min(end) - start;
            (*fragment, f64::from(shown) / f64::from(end - start))
        })
    }
}

fn parse<'l>(file: &FragmentFile, lines: &'l Lines, language: Language) -> Option<Syntax<'l>> {
    Syntax::of_lines(lines, Grammar::for_path(language, &file.path))
}

/// Returns the files of definitions, by number, each with its number of definitions.
fn count_files(found: impl Iterator<Item = FoundDefinitions>) -> Vec<(u32, u32)> {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for (found, times) in
        FoundDefinitions::distinct(found.map(|found| (found, 1)), |all, one| *all += one)
    {
        for definition in found.iter() {
            *counts.entry(definition.file).or_default() += times;
        }
    }
    counts.into_iter().collect()
}

/// File of a hole, without the lines of its target.
struct OwnFile<'a> {
    lines: &'a Lines,
    /// Row after the hole.
    row: usize,
    syntax: &'a Syntax<'a>,
    names: &'a Names,
}

/// Returns the chains of names to look up, each once, with the largest of their weights.
fn mentions<'a>(query: &'a Query, own: &OwnFile<'a>) -> Vec<(Vec<&'a str>, f64)> {
    let OwnFile { lines, row, syntax, names } = *own;
    let language = syntax.language();
    let mut mentions: HashMap<Vec<&str>, f64> = HashMap::default();
    let mut add = |line: &'a str, weight: f64| {
        for chain in chains(line, language) {
            for length in 1..=chain.len() {
                let known = mentions.entry(chain[..length].to_vec()).or_default();
                *known = known.max(weight);
            }
        }
    };
    for (number, line) in query.lines().enumerate() {
        add(line, 1.0 / (1.0 + distance(number, query.hole as usize) as f64).sqrt());
    }
    // A block of indented lines may continue after its last line.
    let end = usize::from(syntax.spec().layout == BlockMarks::Indentation);
    let around = |lines: &Range<usize>| lines.start < row && row < lines.end + end;
    let scopes = syntax.scopes().into_iter().map(|scope| scope.span.lines).filter(around);
    // Many scopes may begin in one line.
    let heads: HashSet<usize> =
        scopes.flat_map(|scope| scope.start..row.min(scope.start + HEAD_AROUND)).collect();
    heads.into_iter().for_each(|row| add(lines.line(row), AROUND));
    let (mut seen, mut used) = (HashSet::default(), HashSet::default());
    for name in (0..row).flat_map(|row| identifiers(lines.line(row), language)) {
        if !seen.insert(name) {
            used.insert(name);
        }
    }
    for name in names.imported_names() {
        let weight = if used.contains(name) { IMPORTED } else { UNUSED };
        mentions.entry(vec![name]).or_insert(weight);
    }
    mentions.into_iter().collect()
}

/// Returns the text of a task's file without the lines of its target, and the row at which the target began. If the file does
/// not contain the task's text, or contains it in several places, only the task's text before its hole is known.
fn without_target(file: &FragmentFile, task: &Task, cut: Cut) -> (String, usize) {
    let lines: Vec<&str> = file.lines.iter().collect();
    let Some(target) = target_rows(&lines, task, cut) else {
        // The prompt's lines may end with characters other than `\n`, at which the tree's rows end.
        let lines = Lines::new(&task.prompt);
        let end = if task.prompt.ends_with('\n') { "\n" } else { "" };
        return (format!("{}{end}", lines.text()), lines.count());
    };
    let kept = [&lines[..target.start], &lines[target.end..]].concat();
    (kept.join("\n"), target.start)
}

/// Returns the rows of a task's target in the lines of its file: the non-blank rows that follow the prompt's last rows and are
/// equal to the target's. If there are several such places, the task's line number decides for windows; for chunks there is no
/// result.
fn target_rows(lines: &[&str], task: &Task, cut: Cut) -> Option<Range<usize>> {
    let rows: Vec<usize> = (0..lines.len()).filter(|row| !strip(lines[*row]).is_empty()).collect();
    let code = |text: &str| -> Vec<String> {
        let lines = text.split('\n').map(strip).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    };
    let (before, begun) = task.prompt.rsplit_once('\n').unwrap_or(("", &task.prompt));
    // A prompt that lacks its last newline ends before the target's line; any other may end within it.
    let continued = (code(before), code(&format!("{begun}{}", task.ground_truth)));
    let behind = (code(&task.prompt), code(&task.ground_truth));
    [continued, behind].into_iter().find_map(|(before, target)| {
        let (last, whole) = target.split_last()?;
        let before = &before[before.len().saturating_sub(LINES_TO_FIND)..];
        let is_here = |at: &usize| {
            let line = |place: usize| strip(lines[rows[place]]);
            let is_before = (0..before.len()).all(|n| line(at - before.len() + n) == before[n]);
            let is_whole = (0..whole.len()).all(|n| line(at + n) == whole[n]);
            is_before && is_whole && line(at + whole.len()).starts_with(last.as_str())
        };
        let places = before.len()..(rows.len() + 1).saturating_sub(target.len());
        let found: Vec<Range<usize>> =
            places.filter(is_here).map(|at| rows[at]..rows[at + whole.len()] + 1).collect();
        match (cut, &found[..]) {
            (_, [only]) => Some(only.clone()),
            (Cut::Windows(_), several) => {
                several.iter().find(|rows| rows.start == task.line_no).cloned()
            }
            (Cut::Chunks(_), _) => None,
        }
    })
}

#[cfg(test)]
mod tests;
