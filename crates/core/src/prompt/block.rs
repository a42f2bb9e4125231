//! A retrieved fragment as a block of comment lines.

use crate::repository::fragment::{self, FragmentPlace, RepoFragments};
use crate::retrieve::{Align, FragmentText, Hit, HoleView};

const HEAD: &str = "Here are some relevant code fragments from other files of the repo:";
const FOUND_IN: &str = "the below code fragment can be found in:";
const SEPARATOR: &str = "--------------------------------------------------";

/// Lines that every block has, as comments of a language.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// Beginning of a comment.
    pub(super) comment: &'static str,
    /// Line before the first block.
    pub(super) head: String,
    /// Line before the names of files.
    pub(super) found_in: String,
    /// Line before and after a block's code.
    pub(super) separator: String,
}

impl Frame {
    /// Returns the frame of a repository's blocks.
    pub(super) fn for_fragments(fragments: &RepoFragments) -> Self {
        let comment = fragments.language.comment();
        let line = |text| format!("{comment} {text}");
        Self { comment, head: line(HEAD), found_in: line(FOUND_IN), separator: line(SEPARATOR) }
    }

    /// Returns the text before the first block.
    pub(super) fn opening(&self) -> String {
        format!("{}\n{}\n", self.head, self.separator)
    }
}

/// Run of lines of one file, and the files that the prompt names for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Places named in the block, one line each, in this order.
    pub places: Vec<FragmentPlace>,
    /// Index of the file from which the lines are taken.
    pub file: u32,
    /// First line.
    pub start: u32,
    /// Line after the last line.
    pub end: u32,
}

impl Block {
    /// Returns true if the block's lines are the lines of a place.
    pub(super) fn has_lines_of(&self, place: FragmentPlace) -> bool {
        (self.start, self.end) == (place.start, place.end)
    }

    /// Creates the block of a fragment. A fragment that is shown unchanged loses one blank line at its end, as in the reference
    /// program.
    pub fn new(hit: &Hit, texts: &FragmentText<'_>, hole: &HoleView<'_>) -> Self {
        let piece = texts.piece(hit, hole);
        let lines = &texts.fragments().files[piece.file as usize].lines;
        let is_itself = match texts.settings().align {
            Align::Auto | Align::None => true,
            Align::Signature => hit.definition.is_none(),
            _ => false,
        };
        let blank_end = is_itself && lines.line(piece.end as usize - 1).is_empty();
        Self {
            file: piece.file,
            start: piece.start,
            end: piece.end - u32::from(blank_end),
            places: hole.named_places(hit.fragment),
        }
    }

    /// Returns true if the block shows the same lines as another one.
    pub(super) fn shows(&self, other: &Self) -> bool {
        let lines = |block: &Self| (block.file, block.start, block.end);
        lines(self) == lines(other)
    }

    /// Returns the lines of code that the block shows.
    pub(super) fn text<'f>(&self, fragments: &'f RepoFragments) -> &'f str {
        fragments.files[self.file as usize].text(self.start, self.end)
    }

    /// Appends the block's text: every line is a comment, with a newline at the end.
    pub(super) fn render(&self, frame: &Frame, fragments: &RepoFragments, out: &mut String) {
        let Frame { comment, found_in, separator, .. } = frame;
        let lines = &fragments.files[self.file as usize].lines;
        out.push_str(found_in);
        for place in &self.places {
            out.extend(["\n", comment, " ", path_in_repository(fragments, place.file)]);
        }
        out.extend(["\n", separator]);
        for number in self.start..self.end {
            out.extend(["\n", comment, " ", lines.line(number as usize)]);
        }
        out.extend(["\n", separator, "\n"]);
    }
}

pub(super) fn path_in_repository(fragments: &RepoFragments, file: u32) -> &str {
    fragment::path_in_repository(&fragments.files[file as usize].path)
}
