//! A retrieved window as a block of comment lines, and how many tokens it takes.

use std::fmt::Write;
use std::sync::OnceLock;

use crate::retrieve::Hole;
use crate::tokenize::{P50k, PieceCache};
use crate::window::{Place, RepoWindows};

const HEAD: &str = "# Here are some relevant code fragments from other files of the repo:";
const FOUND_IN: &str = "# the below code fragment can be found in:";
const SEPARATOR: &str = "# --------------------------------------------------";

/// What stands before the first block.
pub(super) fn head() -> String {
    format!("{HEAD}\n{SEPARATOR}\n")
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
        let lines = &windows.files[self.file as usize].lines;
        out.push_str(FOUND_IN);
        for place in &self.places {
            let _ = write!(out, "\n# {}", path_in_repository(windows, place.file));
        }
        let _ = write!(out, "\n{SEPARATOR}");
        for number in self.start..self.end {
            let _ = write!(out, "\n# {}", lines.line(number as usize));
        }
        let _ = writeln!(out, "\n{SEPARATOR}");
    }
}

fn path_in_repository(windows: &RepoWindows, file: u32) -> &str {
    let path = &windows.files[file as usize].path;
    path.split_once('/').map_or(path, |(_, rest)| rest)
}

/// Token counts of blocks, from counts of their lines.
///
/// Every line of a block starts with `#`, and a `\n` before a `#` is always a token of its own, so a block's count
/// is the sum of its lines' counts; these are summed up once a file, on its first use.
#[derive(Debug)]
pub struct BlockCounts<'a> {
    windows: &'a RepoWindows,
    tokenizer: &'a P50k,
    /// For each file the running sums of its lines' counts as block lines.
    lines: Vec<OnceLock<Vec<u32>>>,
    /// For each file the count of the line that names it.
    names: Vec<OnceLock<u32>>,
    /// The lines that all blocks share.
    frame: u32,
}

impl<'a> BlockCounts<'a> {
    /// Counts nothing yet.
    pub fn new(windows: &'a RepoWindows, tokenizer: &'a P50k) -> Self {
        let files = windows.files.len();
        Self {
            windows,
            tokenizer,
            lines: (0..files).map(|_| OnceLock::new()).collect(),
            names: (0..files).map(|_| OnceLock::new()).collect(),
            frame: line_tokens(tokenizer, FOUND_IN) + 2 * line_tokens(tokenizer, SEPARATOR),
        }
    }

    /// Tokens of a block's text.
    pub fn tokens(&self, block: &Block) -> usize {
        let names: u32 = block.places.iter().map(|place| self.name(place.file)).sum();
        let sums = self.lines[block.file as usize].get_or_init(|| self.sums(block.file));
        let lines = if block.end > block.start {
            sums[block.end as usize] - sums[block.start as usize]
        } else {
            0
        };
        (self.frame + names + lines) as usize
    }

    fn name(&self, file: u32) -> u32 {
        *self.names[file as usize].get_or_init(|| {
            line_tokens(
                self.tokenizer,
                &format!("# {}", path_in_repository(self.windows, file)),
            )
        })
    }

    fn sums(&self, file: u32) -> Vec<u32> {
        let lines = &self.windows.files[file as usize].lines;
        let mut sums = Vec::with_capacity(lines.count() + 1);
        let (mut sum, mut text, mut cache) = (0, String::new(), PieceCache::new());
        sums.push(0);
        for line in lines.iter() {
            text.clear();
            text.push_str("# ");
            text.push_str(line);
            text.push_str("\n#");
            sum += self.tokenizer.count_with(&text, &mut cache) as u32 - 1;
            sums.push(sum);
        }
        sums
    }

    /// Tokens of the head and of what follows the blocks. The last separator is counted with the prompt, since
    /// its newline joins the prompt's first blank lines, and taken off again as the block's.
    pub(super) fn head_and_prompt(&self, prompt: &str) -> usize {
        let end = self.tokenizer.count(&format!("{SEPARATOR}\n\n{prompt}"));
        (line_tokens(self.tokenizer, HEAD) as usize) + end
    }
}

/// Tokens of a comment line and its newline, when another comment line follows.
fn line_tokens(tokenizer: &P50k, line: &str) -> u32 {
    tokenizer.count(&format!("{line}\n#")) as u32 - 1
}
