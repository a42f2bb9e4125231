//! Token counts of blocks. Each line of a repository is counted at most once, and only when a block needs it.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use repoformer_text::tokenize::{P50k, PieceCache};

use super::block::{Block, Frame, path_in_repository};
use crate::repository::fragment::RepoFragments;

/// Buffers for counting, which a thread reuses from prompt to prompt. They never change a result.
#[derive(Debug, Default)]
pub struct CountScratch {
    pub(super) cache: PieceCache,
    text: String,
    /// End of each line of `text`, including its newline.
    ends: Vec<usize>,
    /// Counts of a block's lines that were known when counting the block began; 0 if unknown.
    known: Vec<u32>,
}

/// Token counts of one repository's blocks, computed from the counts of their lines.
///
/// Every line of a block starts with `#` or `//`, each of which is one token, and a blank; a `\n` before such a line is always
/// a token of its own. So a block's count is the sum of its lines' counts. Blocks overlap and are retrieved for many tasks and
/// in every mode, but most lines of a large repository are in no block at all. So lines are counted on first use, and the
/// counts are kept for all threads and modes.
#[derive(Debug)]
pub struct BlockCounts {
    /// For each file from which a block was cut, token counts of its lines as block lines.
    lines: Vec<OnceLock<Box<[Count]>>>,
    /// For each file, token count of the line that names it.
    names: Vec<Count>,
    /// Token count of the lines that all blocks share.
    frame: u32,
    /// Beginning of a comment.
    comment: &'static str,
}

/// Token count; 0 if it is not known yet. Threads that count the same line at the same time write the same number, so the order
/// of their writes does not matter.
type Count = AtomicU32;

/// Minimum number of tokens of a line of a block: its `#` and its newline.
const FEWEST: u32 = 2;
/// Number of lines that are counted together.
const SECTION: usize = 4;

fn unknown(count: usize) -> Box<[Count]> {
    std::iter::repeat_with(Count::default).take(count).collect()
}

impl BlockCounts {
    /// Creates counts of which only the lines shared by all blocks are known.
    pub fn new(fragments: &RepoFragments, tokenizer: &P50k) -> Self {
        let mut scratch = CountScratch::default();
        let Frame { comment, found_in, separator, .. } = Frame::for_fragments(fragments);
        let mut frame_line = |line: &str| line_tokens(tokenizer, comment, line, &mut scratch);
        Self {
            lines: fragments.files.iter().map(|_| OnceLock::new()).collect(),
            names: unknown(fragments.files.len()).into(),
            frame: frame_line(&found_in) + 2 * frame_line(&separator),
            comment,
        }
    }

    /// Returns the tokens of a block's text if they are fewer than `limit`. The fragments must be the ones given to
    /// [`new`](Self::new). Most retrieved windows are checked when a prompt is nearly full, so their lines are counted only
    /// until it is clear that the window does not fit.
    pub fn tokens_below(
        &self,
        limit: usize,
        fragments: &RepoFragments,
        tokenizer: &P50k,
        block: &Block,
        scratch: &mut CountScratch,
    ) -> Option<usize> {
        let mut tokens = self.frame as usize;
        for place in &block.places {
            tokens += self.name(fragments, tokenizer, place.file, scratch) as usize;
        }
        let (start, end) = (block.start as usize, block.end as usize);
        if start < end {
            let lines = &fragments.files[block.file as usize].lines;
            let counts = self.lines[block.file as usize].get_or_init(|| unknown(lines.count()));
            let counts = &counts[start..end];
            // Other threads count as well. Counts that are unknown here stay unknown for the rest of this function.
            let mut known = std::mem::take(&mut scratch.known);
            known.clear();
            known.extend(counts.iter().map(|count| count.load(Relaxed)));
            tokens += known.iter().map(|&n| n.max(FEWEST) as usize).sum::<usize>();
            for unknown in sections_of_unknown(&known) {
                if tokens >= limit {
                    break;
                }
                tokens -= unknown.len() * FEWEST as usize;
                let texts = unknown.clone().map(|line| lines.line(start + line));
                tokens += self.count_lines(tokenizer, texts, &counts[unknown], scratch);
            }
            scratch.known = known;
        }
        (tokens < limit).then_some(tokens)
    }

    fn name(
        &self,
        fragments: &RepoFragments,
        tokenizer: &P50k,
        file: u32,
        scratch: &mut CountScratch,
    ) -> u32 {
        let count = &self.names[file as usize];
        if count.load(Relaxed) == 0 {
            let name = format!("{} {}", self.comment, path_in_repository(fragments, file));
            let tokens = line_tokens(tokenizer, self.comment, &name, scratch);
            count.store(tokens, Relaxed);
        }
        count.load(Relaxed)
    }

    /// Counts lines as block lines, all in one text, and returns the sum of their tokens. A line's tokens are the tokens of the
    /// pieces between its comment marker and the next one.
    fn count_lines<'l>(
        &self,
        tokenizer: &P50k,
        lines: impl Iterator<Item = &'l str>,
        counts: &[Count],
        scratch: &mut CountScratch,
    ) -> usize {
        let CountScratch { cache, text, ends, .. } = scratch;
        text.clear();
        ends.clear();
        for line in lines {
            text.extend([self.comment, " ", line, "\n"]);
            ends.push(text.len());
        }
        let end = text.len();
        // The next line's marker, repeated so often that no earlier piece is near the end of the text, where the tokenizer is
        // slower.
        (0..16).for_each(|_| text.push_str(self.comment));
        let mut lines = ends.iter().zip(counts);
        let (mut line, mut tokens, mut sum) = (lines.next(), 0, 0);
        tokenizer.each_count(text, end, cache, |end, count| {
            (tokens, sum) = (tokens + count as u32, sum + count);
            if let Some((_, count)) = line.filter(|(line_end, _)| end >= **line_end) {
                count.store(std::mem::take(&mut tokens), Relaxed);
                line = lines.next();
            }
        });
        sum
    }
}

/// Returns ranges of consecutive lines without a count, a section at a time.
fn sections_of_unknown(known: &[u32]) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + known[from..].iter().position(|&count| count == 0)?;
        let longest = &known[start..known.len().min(start + SECTION)];
        from = start + longest.iter().take_while(|&&count| count == 0).count();
        Some(start..from)
    })
}

/// Returns the tokens of a comment line and its newline, if another comment line follows.
fn line_tokens(
    tokenizer: &P50k,
    comment: &str,
    line: &str,
    CountScratch { cache, text, .. }: &mut CountScratch,
) -> u32 {
    text.clear();
    text.extend([line, "\n", comment]);
    tokenizer.count_with(text, cache) as u32 - 1
}

/// Returns the tokens of the head and of the text from the last separator to the end of a task's prompt. The separator is
/// counted together with the prompt, because its newline joins the prompt's first blank lines.
pub(super) fn head_and_prompt(
    frame: &Frame,
    tokenizer: &P50k,
    prompt: &str,
    scratch: &mut CountScratch,
) -> usize {
    let head = line_tokens(tokenizer, frame.comment, &frame.head, scratch) as usize;
    let CountScratch { cache, text, .. } = scratch;
    text.clear();
    text.extend([frame.separator.as_str(), "\n\n", prompt]);
    head + tokenizer.count_with(text, cache)
}
