//! Two ways to cut a file: overlapping windows of all its lines, and chunks of its non-blank lines.

use std::fmt;

use repoformer_store::error::{Error, Result};
use repoformer_text::named;
use serde::{Deserialize, Serialize};

/// Size larger than any file, and small enough that sums do not overflow.
const LARGEST: usize = u32::MAX as usize / 4;

/// Way in which the files of a repository are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cut {
    /// Overlapping windows of all lines, with windows of equal text merged (RepoCoder).
    Windows(WindowShape),
    /// Runs of non-blank lines (Repoformer, CrossCodeEval).
    Chunks(ChunkShape),
}

impl Cut {
    /// # Errors
    /// A size is 0, or larger than the length of any file.
    pub fn check(self) -> Result<()> {
        for (name, value) in self.sizes() {
            if value == 0 || value > LARGEST {
                let reason = format!("must be between 1 and {LARGEST}, not {value}");
                return Err(Error::parameter(name, reason));
            }
        }
        Ok(())
    }

    /// Returns the names and values of its sizes.
    pub fn sizes(self) -> [(&'static str, usize); 2] {
        match self {
            Self::Windows(shape) => {
                [("window-size", shape.window_size), ("slice-size", shape.slice_size)]
            }
            Self::Chunks(shape) => [("chunk-size", shape.size), ("chunk-stride", shape.stride)],
        }
    }

    /// Returns the fields of its sizes in JSON records, and their values.
    pub fn fields(self) -> [(&'static str, usize); 2] {
        let [(_, size), (_, overlap)] = self.sizes();
        match self {
            Self::Windows(_) => [("window_size", size), ("slice_size", overlap)],
            Self::Chunks(_) => [("chunk_size", size), ("chunk_stride", overlap)],
        }
    }

    /// Returns the field of a place's [number](super::FragmentPlace::number) in JSON records.
    pub fn number_field(self) -> &'static str {
        match self {
            Self::Windows(_) => "line_no",
            Self::Chunks(_) => "chunk",
        }
    }

    /// Returns the number of lines of a full fragment.
    pub fn size(self) -> usize {
        self.sizes()[0].1
    }

    /// Returns the number of lines between the starts of two adjacent fragments.
    pub fn stride(self) -> usize {
        match self {
            Self::Windows(shape) => shape.step(),
            Self::Chunks(shape) => shape.stride,
        }
    }

    /// Returns true if files are cut into windows.
    pub fn is_windows(self) -> bool {
        matches!(self, Self::Windows(_))
    }

    /// Returns the shape of its windows, if it cuts windows.
    pub fn windows(self) -> Option<WindowShape> {
        match self {
            Self::Windows(shape) => Some(shape),
            Self::Chunks(_) => None,
        }
    }
}

/// Displays the cut as file names contain it: `ws20_slice2`, `chunk20_stride10`.
impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Windows(shape) => write!(f, "ws{}_slice{}", shape.window_size, shape.slice_size),
            Self::Chunks(shape) => write!(f, "chunk{}_stride{}", shape.size, shape.stride),
        }
    }
}

/// Number of lines in a window before the line that it is cut around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Center {
    /// Half the window, as in the reference program.
    #[default]
    Half,
    /// One step, as in the extended pipeline's document; the same as half the window at slice size 2.
    Step,
}

named! {
    Center, "center":
    Half = "half",
    Step = "step",
}

/// Size and overlap of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowShape {
    /// Number of lines of a window.
    pub window_size: usize,
    /// Overlap: a new window starts every `window_size / slice_size` lines.
    pub slice_size: usize,
    /// Position in the window of the line that it is cut around.
    pub center: Center,
}

impl Default for WindowShape {
    fn default() -> Self {
        Self { window_size: 20, slice_size: 2, center: Center::Half }
    }
}

impl WindowShape {
    /// Returns the number of lines between the starts of two windows.
    pub fn step(&self) -> usize {
        (self.window_size / self.slice_size).max(1)
    }

    /// Returns half a window: the number of lines before a query's hole (`delta` in the reference).
    pub fn half(&self) -> usize {
        self.window_size / 2
    }

    /// Returns the lines of the window cut around `line_no` in a file of `count` lines.
    pub fn around(&self, line_no: usize, count: usize) -> std::ops::Range<usize> {
        let before = match self.center {
            Center::Half => self.half(),
            Center::Step => self.step().min(self.window_size),
        };
        line_no.saturating_sub(before)..count.min(line_no + self.window_size - before)
    }
}

/// Size and overlap of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkShape {
    /// Number of non-blank lines of a chunk.
    pub size: usize,
    /// Number of lines between the starts of two chunks.
    pub stride: usize,
}

impl Default for ChunkShape {
    /// Returns the paper's shape for lines, API calls and chunks (appendix A).
    fn default() -> Self {
        Self { size: 20, stride: 10 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_centers_agree_at_slice_size_2() {
        let cut = |center, slice_size| {
            WindowShape { window_size: 20, slice_size, center }.around(30, 100)
        };
        assert_eq!(cut(Center::Half, 2), cut(Center::Step, 2));
        assert_eq!(cut(Center::Half, 5), 20..40);
        assert_eq!(cut(Center::Step, 5), 26..46);
    }

    #[test]
    fn sizes_of_zero_are_refused() {
        let windows = Cut::Windows(WindowShape { window_size: 0, ..WindowShape::default() });
        let chunks = Cut::Chunks(ChunkShape { size: 1, stride: 0 });
        for (cut, name) in [(windows, "window-size"), (chunks, "chunk-stride")] {
            let error = cut.check().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}: must be between")), "{error}");
        }
    }
}
