//! Function holes: bodies of 3 to 30 lines (RepoCoder, section 3.3 "Function Body Completion"), or bodies of functions of 3 to
//! 30 lines (Repoformer, appendix D, algorithm 2).

use std::ops::{Range, RangeInclusive};

use repoformer_text::language::syntax::{Body, Function};
use repoformer_text::language::{BlockMarks, Language};
use repoformer_text::named;

use super::source::{self, LineClass, SampleSource};
use crate::repository::corpus::Repository;

/// Minimum and maximum number of lines of a body or function, including blank ones.
pub(crate) const FUNCTION_LINES: RangeInclusive<usize> = 3..=30;

/// Lines that count towards the length of a function, including blank ones between the first and the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CountedLines {
    /// Lines from the function's signature to its end, with the docstring and without decorators.
    #[default]
    Function,
    /// Lines that are cut out.
    Body,
}

named! {
    CountedLines, "choice of counted lines":
    Function = "function",
    Body = "body",
}

/// Part of a function that is cut out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyCut {
    /// Statements after the docstring, which stays in the prompt. Bodies without anything to write, such as `pass`, and bodies
    /// in generated files are left out.
    Written,
    /// Statements after the docstring, whatever they are.
    Statements,
    /// All rows after the function's first row, including the rest of a long signature and the docstring, as in Repoformer's
    /// released program.
    BehindFirstRow,
}

/// Selection of functions whose bodies are cut out, and of the part to cut out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FunctionHoles {
    /// Minimum and maximum number of lines.
    pub(crate) lines: RangeInclusive<usize>,
    /// Lines that are counted.
    pub(crate) counted: CountedLines,
    /// Part that is cut out.
    pub(crate) cut: BodyCut,
}

impl FunctionHoles {
    /// Returns the holes of RepoCoder's function tasks.
    pub(super) fn repocoder() -> Self {
        Self { lines: FUNCTION_LINES, counted: CountedLines::Body, cut: BodyCut::Written }
    }

    /// Returns true if a file may have holes.
    pub(super) fn may_be_in(&self, source: &SampleSource) -> bool {
        self.cut != BodyCut::Written || !source.is_generated
    }

    /// Returns the rows of a function to cut out; `None` if there is nothing to cut out, or if the length is outside the
    /// limits.
    fn cut_rows(
        &self,
        source: &SampleSource,
        layout: BlockMarks,
        function: Function<'_>,
    ) -> Option<Range<usize>> {
        let hole = match self.cut {
            BodyCut::Written | BodyCut::Statements if function.is_broken => return None,
            BodyCut::Written if function.body.as_ref()?.is_stub => return None,
            BodyCut::Written | BodyCut::Statements => statements(source, layout, function.body?)?,
            BodyCut::BehindFirstRow => function.lines.start + 1..function.lines.end,
        };
        let counted = match self.counted {
            CountedLines::Function => &function.lines,
            CountedLines::Body => &hole,
        };
        let has_text =
            |row: usize| source.classes.get(row).is_some_and(|class| *class != LineClass::Blank);
        (self.lines.contains(&counted.len()) && hole.clone().any(has_text)).then_some(hole)
    }
}

/// Reads a repository's files and the rows to cut out of their functions, in the order of the signatures. Functions may be
/// nested.
pub(super) fn read_all(
    repository: &Repository,
    language: Language,
    wanted: &FunctionHoles,
) -> (Vec<Option<SampleSource>>, Vec<Vec<Range<usize>>>) {
    source::read_all(repository, language, |_, source, syntax| {
        let layout = syntax.spec().layout;
        let functions = syntax.functions().into_iter();
        functions.filter_map(|function| wanted.cut_rows(source, layout, function)).collect()
    })
}

/// Returns the rows of a body's statements.
fn statements(source: &SampleSource, layout: BlockMarks, body: Body) -> Option<Range<usize>> {
    // A statement on the same line as the signature, the docstring or a brace cannot be cut out in whole lines.
    if !body.is_whole_lines {
        return None;
    }
    let mut lines = body.span.lines;
    // Between braces, the last statement ends the body. With indentation, a last line that begins with `#` is removed, although
    // it may be the end of a string: otherwise, existing benchmarks would change.
    let ends_in_comment = |end: usize| {
        layout == BlockMarks::Indentation
            && matches!(source.classes[end - 1], LineClass::Blank | LineClass::Comment)
    };
    while !lines.is_empty() && ends_in_comment(lines.end) {
        lines.end -= 1;
    }
    Some(lines)
}
