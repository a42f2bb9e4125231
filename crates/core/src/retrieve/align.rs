//! Alignment: the lines that are shown for a fragment that was found. Where the query is what stands before the hole, what
//! follows the chunk is what resembles the hole (Lu et al. 2022, ReACC).

use repoformer_text::named;
use serde::{Deserialize, Serialize};

use super::form::QueryForm;
use super::mode::Mode;
use super::visibility::HoleView;
use crate::repository::fragment::{Cut, FragmentPlace, RepoFragments};

/// Lines that are shown for a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Align {
    /// As the query asks: the next fragment where it ends at the hole, the one before where it begins behind it, the
    /// fragment itself where it reaches over the hole.
    #[default]
    Auto,
    /// The fragment itself.
    None,
    /// The next fragment of its file, or itself where it is the last.
    Next,
    /// The fragment before it, or itself where it is the first.
    Previous,
    /// The fragment moved down by a stride, as RepoCoder moves a window, and no further than its file reaches.
    Extend,
    /// The smallest function or class that holds the whole fragment, else the function around its middle line; the
    /// fragment itself where there is none or where it is larger than what a prompt can show. Of a definition that
    /// [`Ranker::Definitions`](super::rank::Ranker::Definitions) found, all of it.
    Enclosing,
    /// The signature of a definition that [`Ranker::Definitions`](super::rank::Ranker::Definitions) found, and the head of its
    /// documentation or, of a class, of its body; any other fragment itself.
    Signature,
}

named! {
    Align, "alignment":
    Auto = "auto",
    None = "none",
    Next = "next",
    Previous = "previous",
    Extend = "extend",
    Enclosing = "enclosing",
    Signature = "signature",
}

impl Align {
    /// Alignment that `auto` stands for with queries of this form in this mode, as in the reference programs.
    #[must_use]
    pub fn resolve(self, form: QueryForm, mode: Mode) -> Self {
        match (self, form) {
            (Self::Auto, QueryForm::Window) if mode == Mode::LeftContext => Self::Extend,
            (Self::Auto, QueryForm::LastLines) => Self::Next,
            (Self::Auto, QueryForm::FirstLines) => Self::Previous,
            (Self::Auto, _) => Self::None,
            (chosen, _) => chosen,
        }
    }
}

/// Some lines of a file, which are shown for a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileLines {
    /// Index in [`RepoFragments::files`].
    pub file: u32,
    /// First line.
    pub start: u32,
    /// Line after the last.
    pub end: u32,
}

impl FileLines {
    /// Lines shown for a fragment at one of its places. They never leave the place's file, nor reach behind the start of the
    /// prompt in the hole's own file.
    pub fn from_place(
        place: FragmentPlace,
        align: Align,
        hole: &HoleView<'_>,
        enclosing: impl FnOnce(Self) -> Option<Self>,
    ) -> Self {
        let fragments = hole.fragments;
        let itself = Self::at(place);
        let aligned = match align {
            Align::Auto | Align::None | Align::Signature => None,
            Align::Next => neighbour(fragments, place, 1),
            Align::Previous => neighbour(fragments, place, -1),
            Align::Extend => Some(itself.move_down(fragments, hole.last_line(place))),
            Align::Enclosing => enclosing(itself),
        };
        let is_hidden = |piece: &Self| piece.end > hole.last_line(place) && align != Align::Extend;
        aligned.filter(|piece| !is_hidden(piece)).unwrap_or(itself)
    }

    pub(super) fn at(place: FragmentPlace) -> Self {
        Self { file: place.file, start: place.start, end: place.end }
    }

    fn move_down(self, fragments: &RepoFragments, last_line: u32) -> Self {
        let stride = match fragments.cut {
            // In the reference a slice of less than a line moves nothing.
            Cut::Windows(shape) => shape.window_size / shape.slice_size,
            Cut::Chunks(shape) => shape.stride,
        };
        let end = last_line.min(self.end + stride as u32);
        Self { start: end.saturating_sub(fragments.cut.size() as u32), end, ..self }
    }

    /// Its lines joined by `\n`.
    pub fn text(self, fragments: &RepoFragments) -> &str {
        fragments.files[self.file as usize].text(self.start, self.end)
    }
}

/// The fragment cut from a file after this one, or before it.
fn neighbour(fragments: &RepoFragments, place: FragmentPlace, step: i64) -> Option<FileLines> {
    match fragments.cut {
        Cut::Chunks(_) => {
            let number = u32::try_from(i64::from(place.number) + step).ok()?;
            let chunk = fragments.find_chunk(place.file, number)?;
            Some(FileLines::at(fragments.first_place(chunk as usize)))
        }
        Cut::Windows(shape) => {
            let count = fragments.files[place.file as usize].lines.count();
            let line_no = i64::from(place.number) + step * shape.step() as i64;
            let line_no = usize::try_from(line_no).ok().filter(|line| *line < count)?;
            let lines = shape.around(line_no, count);
            Some(FileLines { file: place.file, start: lines.start as u32, end: lines.end as u32 })
        }
    }
}
