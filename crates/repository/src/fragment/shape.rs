//! Two ways to cut a file: overlapping windows of all its lines, and chunks of its non-blank lines.

use std::fmt;

use repoformer_store::error::{Error, Result};
use repoformer_text::named;
use serde::{Deserialize, Serialize};

/// Larger than any file, and small enough to be added to.
const LARGEST: usize = u32::MAX as usize / 4;

/// How the files of a repository are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cut {
    /// Overlapping windows of all lines, those with equal text merged (RepoCoder).
    Windows(WindowShape),
    /// Runs of non-blank lines (Repoformer, CrossCodeEval).
    Chunks(ChunkShape),
}

impl Cut {
    /// # Errors
    /// A size of 0, or one past any file's length.
    pub fn check(self) -> Result<()> {
        for (name, value) in self.sizes() {
            if value == 0 || value > LARGEST {
                let reason = format!("must lie between 1 and {LARGEST}, not {value}");
                return Err(Error::parameter(name, reason));
            }
        }
        Ok(())
    }

    /// Names and values of its numbers.
    pub fn sizes(self) -> [(&'static str, usize); 2] {
        match self {
            Self::Windows(shape) => {
                [("window-size", shape.window_size), ("slice-size", shape.slice_size)]
            }
            Self::Chunks(shape) => [("chunk-size", shape.size), ("chunk-stride", shape.stride)],
        }
    }

    /// Fields of its numbers in JSON records, and their values.
    pub fn fields(self) -> [(&'static str, usize); 2] {
        let [(_, size), (_, overlap)] = self.sizes();
        match self {
            Self::Windows(_) => [("window_size", size), ("slice_size", overlap)],
            Self::Chunks(_) => [("chunk_size", size), ("chunk_stride", overlap)],
        }
    }

    /// Field of a place's [number](super::FragmentPlace::number) in JSON records.
    pub fn number_field(self) -> &'static str {
        match self {
            Self::Windows(_) => "line_no",
            Self::Chunks(_) => "chunk",
        }
    }

    /// Lines of a whole fragment.
    pub fn size(self) -> usize {
        self.sizes()[0].1
    }

    /// Lines between the starts of two neighbouring fragments.
    pub fn stride(self) -> usize {
        match self {
            Self::Windows(shape) => shape.step(),
            Self::Chunks(shape) => shape.stride,
        }
    }

    /// Whether files are cut into windows.
    pub fn is_windows(self) -> bool {
        matches!(self, Self::Windows(_))
    }

    /// Shape of its windows, if it cuts windows.
    pub fn windows(self) -> Option<WindowShape> {
        match self {
            Self::Windows(shape) => Some(shape),
            Self::Chunks(_) => None,
        }
    }
}

/// Prints what file names say of it: `ws20_slice2`, `chunk20_stride10`.
impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Windows(shape) => write!(f, "ws{}_slice{}", shape.window_size, shape.slice_size),
            Self::Chunks(shape) => write!(f, "chunk{}_stride{}", shape.size, shape.stride),
        }
    }
}

/// How many lines of a window lie before the line that it is cut around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Center {
    /// Half the window, as the reference program does.
    #[default]
    Half,
    /// One step, as the extended pipeline's document says; the same at slice size 2.
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
    /// Lines of a window.
    pub window_size: usize,
    /// Windows overlap so that a new one starts every `window_size / slice_size` lines.
    pub slice_size: usize,
    /// Where the line that a window is cut around lies in it.
    pub center: Center,
}

impl Default for WindowShape {
    fn default() -> Self {
        Self { window_size: 20, slice_size: 2, center: Center::Half }
    }
}

impl WindowShape {
    /// Lines between the starts of two windows.
    pub fn step(&self) -> usize {
        (self.window_size / self.slice_size).max(1)
    }

    /// Half a window: the lines before a query's hole (`delta` in the reference).
    pub fn half(&self) -> usize {
        self.window_size / 2
    }

    /// The lines of the window cut around `line_no` in a file of `count` lines.
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
    /// Non-blank lines of a chunk.
    pub size: usize,
    /// Lines between the starts of two chunks.
    pub stride: usize,
}

impl Default for ChunkShape {
    /// The paper's for lines, API calls and chunks (appendix A).
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
            assert!(error.starts_with(&format!("{name}: must lie between")), "{error}");
        }
    }
}
