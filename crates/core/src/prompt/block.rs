//! A retrieved fragment as a block of comment lines.

use crate::repository::fragment::{self, FragmentPlace, RepoFragments};
use crate::retrieve::{Align, FragmentText, Hit, HoleView};

const HEAD: &str = "Here are some relevant code fragments from other files of the repo:";
const FOUND_IN: &str = "the below code fragment can be found in:";
const SEPARATOR: &str = "--------------------------------------------------";

/// The lines that stand in every block, as comments of a language.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// Beginning of a comment.
    pub(super) comment: &'static str,
    /// Before the first block.
    pub(super) head: String,
    /// Before the names of files.
    pub(super) found_in: String,
    /// Around a block's code.
    pub(super) separator: String,
}

impl Frame {
    /// Frame of a repository's blocks.
    pub(super) fn for_fragments(fragments: &RepoFragments) -> Self {
        let comment = fragments.language.comment();
        let line = |text| format!("{comment} {text}");
        Self { comment, head: line(HEAD), found_in: line(FOUND_IN), separator: line(SEPARATOR) }
    }

    /// Text before the first block.
    pub(super) fn opening(&self) -> String {
        format!("{}\n{}\n", self.head, self.separator)
    }
}

/// A run of lines of one file, and the files it is said to be found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Named in this order, one line each.
    pub places: Vec<FragmentPlace>,
    /// Index of the file that the lines are taken from.
    pub file: u32,
    /// First line.
    pub start: u32,
    /// Line after the last.
    pub end: u32,
}

impl Block {
    /// True if its lines are those of a place.
    pub(super) fn has_lines_of(&self, place: FragmentPlace) -> bool {
        (self.start, self.end) == (place.start, place.end)
    }

    /// Block of a fragment. A fragment that is shown as it is loses one blank line at its end, as in the reference.
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

    /// Whether it shows the lines of another.
    pub(super) fn shows(&self, other: &Self) -> bool {
        let lines = |block: &Self| (block.file, block.start, block.end);
        lines(self) == lines(other)
    }

    /// The lines of code that it shows.
    pub(super) fn text<'f>(&self, fragments: &'f RepoFragments) -> &'f str {
        fragments.files[self.file as usize].text(self.start, self.end)
    }

    /// Appends the block's text: every line a comment, a newline at the end.
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
