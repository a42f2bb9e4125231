//! API holes: the lines of calls of what the same repository defines in another file
//! (RepoCoder, section 3.2 "API Invocation Completion").

use std::ops::Range;

use rayon::prelude::*;

use super::names::Names;
use super::resolve::Modules;
use crate::corpus::Repository;

/// Per file the calls' lines, ordered; of calls that begin on one line the longest.
pub(super) fn holes(
    repository: &Repository,
    names: &[Option<Names>],
) -> Vec<Option<Vec<Range<usize>>>> {
    let modules = Modules::new(repository, names);
    let holes = |(file, names): (usize, &Option<Names>)| {
        let names = names.as_ref()?;
        let counts: Vec<bool> = names
            .callees
            .par_iter()
            .map(|callee| modules.is_in_another_file(file, callee))
            .collect();
        let mut holes: Vec<Range<usize>> = Vec::new();
        for call in names.calls.iter().filter(|call| counts[call.callee]) {
            match holes.last_mut() {
                Some(last) if last.start == call.lines.start => {
                    last.end = last.end.max(call.lines.end);
                }
                _ => holes.push(call.lines.clone()),
            }
        }
        Some(holes)
    };
    names.par_iter().enumerate().map(holes).collect()
}
