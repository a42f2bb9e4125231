//! API holes: the lines of calls of what the same repository defines in another file
//! (RepoCoder, section 3.2 "API Invocation Completion").

use std::ops::Range;

use super::source::{self, Source};
use crate::repository::corpus::Repository;
use crate::repository::definitions::{Definitions, Names, Paths, RepositoryNames};
use crate::repository::parallel;
use crate::text::language::Language;

/// The files, and per file the calls' lines, ordered; of calls that begin on one line the longest.
pub(super) fn read_all(
    repository: &Repository,
    language: Language,
) -> (Vec<Option<Source>>, Vec<Vec<Range<usize>>>) {
    let (sources, names) =
        source::read_all(repository, language, |file, _, syntax| Names::read(&file.path, syntax));
    let files = repository.files.iter().map(|file| (file.path.as_str(), file.same_as));
    let (paths, names) =
        (Paths::new(&repository.name, files), RepositoryNames::new(language, names));
    let definitions = Definitions::new(language, &paths, &names);
    let holes = parallel::map(sources.iter().enumerate(), |(file, source)| {
        let Some(source) = source else { return Vec::new() };
        let calls = definitions.calls(file).into_iter().map(|(rows, _)| rows.range());
        holes(calls.filter(|lines| source.can_cut_call(lines)).collect())
    });
    (sources, holes)
}

/// The lines of calls that are ordered by their first line.
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
