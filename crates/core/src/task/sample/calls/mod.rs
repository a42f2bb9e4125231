//! API holes: the lines of calls to functions that the same repository defines in another file (RepoCoder, section 3.2 "API
//! Invocation Completion").

use std::ops::Range;

use foldhash::HashMap;
use repoformer_text::language::Language;

use super::source::{self, SampleSource};
use crate::repository::corpus::Repository;
use crate::repository::definitions::{
    Definitions, FoundDefinitions, Names, RepositoryNames, SourcePaths,
};
use crate::repository::parallel;

/// Definitions of the functions that the calls in a hole call, by the hole's file and first line. Calls of the same function
/// share its definition.
pub(super) type CallDefinitions = HashMap<(usize, usize), Vec<FoundDefinitions>>;

/// Lines of each file.
type Lines = Vec<Vec<Range<usize>>>;

/// Returns the files; for each file, the lines of its calls, ordered (of several calls that begin on the same line, the
/// longest); and the definitions of what they call.
pub(super) fn read_all(
    repository: &Repository,
    language: Language,
) -> (Vec<Option<SampleSource>>, Lines, CallDefinitions) {
    let (sources, paths, names) = names(repository, language);
    let definitions = Definitions::new(language, &paths, &names);
    let of_files = parallel::map(sources.iter().enumerate(), |(file, source)| {
        let Some(source) = source else { return (Vec::new(), Vec::new()) };
        let calls = definitions.calls(file).into_iter();
        let calls = calls.map(|(rows, definitions)| (rows.range(), definitions));
        let calls: Vec<_> = calls.filter(|(lines, _)| source.can_cut_call(lines)).collect();
        let holes = holes(calls.iter().map(|(lines, _)| lines.clone()).collect());
        let called = holes.iter().map(|hole| ((file, hole.start), find_called(hole, &calls)));
        (called.collect(), holes)
    });
    let (called, holes): (Vec<Vec<_>>, _) = of_files.into_iter().unzip();
    (sources, holes, called.into_iter().flatten().collect())
}

/// Returns the files of a repository, their paths, and the names in them.
fn names(
    repository: &Repository,
    language: Language,
) -> (Vec<Option<SampleSource>>, SourcePaths<'_>, RepositoryNames) {
    let (sources, names) =
        source::read_all(repository, language, |file, _, syntax| Names::read(&file.path, syntax));
    let files = repository.files.iter().map(|file| (file.path.as_str(), file.same_as));
    (sources, SourcePaths::new(&repository.name, files), RepositoryNames::new(language, names))
}

/// Returns the definitions of all calls within a hole.
fn find_called(
    hole: &Range<usize>,
    calls: &[(Range<usize>, FoundDefinitions)],
) -> Vec<FoundDefinitions> {
    let first = calls.partition_point(|(lines, _)| lines.start < hole.start);
    let within = calls[first..].iter().take_while(|(lines, _)| lines.start < hole.end);
    let within = within.filter(|(lines, _)| lines.end <= hole.end);
    let lists = within.map(|(_, found)| (found.clone(), ()));
    FoundDefinitions::distinct(lists, |(), ()| ()).map(|(found, ())| found).collect()
}

/// Returns the lines of calls, which must be ordered by their first line, without overlaps at the same first line.
fn holes(calls: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut holes: Vec<Range<usize>> = Vec::new();
    for lines in calls {
        match holes.last_mut() {
            Some(last) if last.start == lines.start => last.end = last.end.max(lines.end),
            _ => holes.push(lines),
        }
    }
    holes
}

#[cfg(test)]
mod tests;
