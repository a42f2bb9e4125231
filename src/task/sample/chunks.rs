//! Chunk holes: runs of lines of random length (Repoformer, appendix D, algorithm 1).
//!
//! The algorithm draws clusters of 10-line chunks, one chunk of each, and a run of Poisson(3) lines
//! within it, to have varied training data. A benchmark wants the lines as they are distributed, so
//! the run begins at any line of code with the same probability.

use super::source::{LineClass, Source};

/// The longest run, as long as the chunks that algorithm 1 cuts from.
pub(super) const LONGEST: usize = 10;

/// End of the run that begins at `start` and has `length` lines that are not blank; comments and
/// docstrings count as in algorithm 1, but the run ends behind its last line of code.
pub(super) fn end(source: &Source, start: usize, length: usize) -> usize {
    let mut end = start + 1;
    let mut left = length;
    for (line, class) in source.classes.iter().enumerate().skip(start) {
        match class {
            LineClass::Broken => break,
            LineClass::Blank => continue,
            LineClass::Code => end = line + 1,
            LineClass::Comment | LineClass::Prose => {}
        }
        left -= 1;
        if left == 0 {
            break;
        }
    }
    end
}
