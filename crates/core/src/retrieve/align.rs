//! Alignment: the lines that are shown for a retrieved fragment. If the query is the text before the hole, the code that
//! resembles the hole is the code after the retrieved chunk (Lu et al. 2022, ReACC).

use repoformer_text::named;
use serde::{Deserialize, Serialize};

use super::form::QueryForm;
use super::mode::Mode;
use super::visibility::HoleView;
use crate::repository::fragment::{Cut, FragmentPlace, RepoFragments};

/// Lines to show for a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Align {
    /// Depends on the query: the next fragment if the query ends at the hole, the previous one if it begins after the hole, and
    /// the fragment itself if it spans the hole.
    #[default]
    Auto,
    /// The fragment itself.
    None,
    /// The next fragment of the file, or the fragment itself if it is the last.
    Next,
    /// The previous fragment of the file, or the fragment itself if it is the first.
    Previous,
    /// The fragment moved down by a stride, as RepoCoder moves a window, but not past the end of its file.
    Extend,
    /// The smallest function or class that contains the whole fragment, otherwise the function around its middle line. The
    /// fragment itself if there is none, or if a prompt cannot show one so large. For a definition that
    /// [`Ranker::Definitions`](super::rank::Ranker::Definitions) retrieved, the whole definition.
    Enclosing,
    /// For a definition that [`Ranker::Definitions`](super::rank::Ranker::Definitions) retrieved, its signature, and the head
    /// of its documentation or, for a class, of its body; for other fragments, the fragment itself.
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
    /// Returns the alignment that `auto` stands for with queries of this form in this mode, as in the reference programs.
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

/// Lines of a file that are shown for a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileLines {
    /// Index in [`RepoFragments::files`].
    pub file: u32,
    /// First line.
    pub start: u32,
    /// Line after the last line.
    pub end: u32,
}

impl FileLines {
    /// Returns the lines shown for a fragment at one of its places. They are always in the place's file and, in the hole's own
    /// file, end before the start of the prompt.
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
            // As in the reference program, a slice of less than a line moves nothing.
            Cut::Windows(shape) => shape.window_size / shape.slice_size,
            Cut::Chunks(shape) => shape.stride,
        };
        let end = last_line.min(self.end + stride as u32);
        Self { start: end.saturating_sub(fragments.cut.size() as u32), end, ..self }
    }

    /// Returns the lines, joined by `\n`.
    pub fn text(self, fragments: &RepoFragments) -> &str {
        fragments.files[self.file as usize].text(self.start, self.end)
    }
}

/// Returns the fragment cut from a file after this one (`step` 1) or before it (−1).
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
