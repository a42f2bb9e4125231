//! Function holes: bodies of 3 to 30 lines (RepoCoder, section 3.3 "Function Body Completion";
//! Repoformer, appendix D, algorithm 2).

use std::ops::{Range, RangeInclusive};

use super::source::{self, LineClass, Source};
use crate::repository::corpus::Repository;
use crate::text::language::syntax::Body;
use crate::text::language::{Language, Layout};

/// Lines of a body, blank ones between its first and its last included.
pub(crate) const BODY_LINES: RangeInclusive<usize> = 3..=30;

/// Reads a repository's files and their functions' bodies of so many lines, in the order of the signatures; a nested function's
/// body lies within another.
pub(super) fn read_all(
    repository: &Repository,
    language: Language,
    wanted: &RangeInclusive<usize>,
) -> (Vec<Option<Source>>, Vec<Vec<Range<usize>>>) {
    source::read_all(repository, language, |_, source, syntax| {
        let functions = syntax.functions().into_iter();
        let bodies =
            functions.filter(|function| !function.is_broken).filter_map(|function| function.body);
        bodies
            .filter_map(|body| lines(source, syntax.spec().layout, body))
            .filter(|hole| wanted.contains(&hole.len()))
            .collect()
    })
}

/// The lines of a body that has something to complete. Its docstring tells what to write and stays in the prompt.
fn lines(source: &Source, layout: Layout, body: Body) -> Option<Range<usize>> {
    // A statement on the line of the signature, of the docstring or of a brace cannot be cut out in whole lines.
    if body.is_stub || !body.is_whole_lines {
        return None;
    }
    let mut lines = body.span.lines;
    // Between braces the last statement ends the body. With indentation a last line that begins with `#` goes, though it
    // may be the end of a string: benchmarks drawn so far would change otherwise.
    let ends_in_comment = |end: usize| {
        layout == Layout::Indentation
            && matches!(source.classes[end - 1], LineClass::Blank | LineClass::Comment)
    };
    while !lines.is_empty() && ends_in_comment(lines.end) {
        lines.end -= 1;
    }
    Some(lines)
}
