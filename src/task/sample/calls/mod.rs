//! API holes: the lines of calls of what the same repository defines in another file
//! (RepoCoder, section 3.2 "API Invocation Completion").

use std::ops::Range;

use super::names::Names;
use super::resolve::Modules;
use super::source::{self, Source};
use super::typed::{self, Unit};
use crate::repository::corpus::Repository;
use crate::repository::parallel;
use crate::text::language::{Language, Resolution};

/// The files, and per file the calls' lines, ordered; of calls that begin on one line the longest.
pub(super) fn read_all(
    repository: &Repository,
    language: Language,
) -> (Vec<Option<Source>>, Vec<Vec<Range<usize>>>) {
    let (sources, calls) = match language.spec().resolution {
        Resolution::Modules => {
            let (sources, names) = source::read_all(repository, language, Names::read);
            let calls = of_modules(&Modules::new(repository, language.spec(), &names), &names);
            (sources, calls)
        }
        Resolution::Types(rules) => {
            let (sources, units) =
                source::read_all(repository, language, |file, source, syntax| {
                    Unit::read(rules, file, source, syntax)
                });
            let calls = typed::calls_of_others(repository, language, rules, &units);
            (sources, calls)
        }
    };
    (sources, calls.into_iter().map(holes).collect())
}

fn of_modules(modules: &Modules<'_>, names: &[Names]) -> Vec<Vec<Range<usize>>> {
    let of_file = |(file, names): (usize, &Names)| {
        let counts = |callee: &String| modules.is_in_another_file(file, callee);
        let counts = parallel::map(&names.callees, counts);
        let calls = names.calls.iter().filter(|call| counts[call.callee]);
        calls.map(|call| call.lines.clone()).collect()
    };
    parallel::map(names.iter().enumerate(), of_file)
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
