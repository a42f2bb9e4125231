//! A retrieved window as a block of comment lines.

use crate::repository::window::{Place, RepoWindows};
use crate::retrieve::Hole;

const HEAD: &str = "Here are some relevant code fragments from other files of the repo:";
const FOUND_IN: &str = "the below code fragment can be found in:";
const SEPARATOR: &str = "--------------------------------------------------";

/// The lines that stand in every block, as comments of a language.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// What begins a comment.
    pub(super) comment: &'static str,
    /// Before the first block.
    pub(super) head: String,
    /// Before the names of files.
    pub(super) found_in: String,
    /// Around a block's code.
    pub(super) separator: String,
}

impl Frame {
    /// Of a repository's blocks.
    pub(super) fn of(windows: &RepoWindows) -> Self {
        let comment = windows.language().comment();
        let line = |text| format!("{comment} {text}");
        Self {
            comment,
            head: line(HEAD),
            found_in: line(FOUND_IN),
            separator: line(SEPARATOR),
        }
    }

    /// What stands before the first block.
    pub(super) fn opening(&self) -> String {
        format!("{}\n{}\n", self.head, self.separator)
    }
}

/// A run of lines of one file, and the files it is said to be found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Named in this order, one line each.
    pub places: Vec<Place>,
    /// Index of the file that the lines are taken from.
    pub file: u32,
    /// First line.
    pub start: u32,
    /// Line after the last.
    pub end: u32,
}

impl Block {
    /// The window itself; one blank line at its end falls away, as in the reference.
    pub fn plain(windows: &RepoWindows, window: u32, hole: &Hole<'_>) -> Self {
        let places = hole.named_places(window);
        let place = places
            .first()
            .copied()
            .unwrap_or_else(|| windows.first_place(window as usize));
        let lines = &windows.files[place.file as usize].lines;
        let blank_end = lines.line(place.end as usize - 1).is_empty();
        Self {
            file: place.file,
            start: place.start,
            end: place.end - u32::from(blank_end),
            places,
        }
    }

    /// The window moved down in its file, to show what follows the lines that resemble the query.
    pub fn extended(windows: &RepoWindows, window: u32, hole: &Hole<'_>) -> Self {
        let places = hole.named_places(window);
        let place = places
            .first()
            .copied()
            .unwrap_or_else(|| windows.first_place(window as usize));
        let shape = windows.shape;
        let end =
            (place.end + (shape.window_size / shape.slice_size) as u32).min(hole.last_line(place));
        Self {
            file: place.file,
            start: end.saturating_sub(shape.window_size as u32),
            end,
            places,
        }
    }

    /// Appends the block's text: every line a comment, a newline at the end.
    pub fn render(&self, windows: &RepoWindows, out: &mut String) {
        self.render_in(&Frame::of(windows), windows, out);
    }

    pub(super) fn render_in(&self, frame: &Frame, windows: &RepoWindows, out: &mut String) {
        let Frame {
            comment,
            found_in,
            separator,
            ..
        } = frame;
        let lines = &windows.files[self.file as usize].lines;
        out.push_str(found_in);
        for place in &self.places {
            out.extend(["\n", comment, " ", path_in_repository(windows, place.file)]);
        }
        out.extend(["\n", separator]);
        for number in self.start..self.end {
            out.extend(["\n", comment, " ", lines.line(number as usize)]);
        }
        out.extend(["\n", separator, "\n"]);
    }
}

pub(super) fn path_in_repository(windows: &RepoWindows, file: u32) -> &str {
    let path = &windows.files[file as usize].path;
    path.split_once('/').map_or(path, |(_, rest)| rest)
}
