//! Length of a prompt: as many whole lines as the tokens allow.

use repoformer_text::lines::Lines;

/// Returns the file's lines `start..hole`, each with its newline.
pub(super) fn prompt(lines: &Lines, start: usize, hole: usize) -> &str {
    let range = lines.byte_range(start, hole);
    // The hole is a line of the file, so a newline follows the last line of the prompt.
    &lines.text()[range.start..range.end + 1]
}

/// Returns the first line of the longest prompt for a hole at line `hole` (at least 1) that has at most `limit` tokens; the
/// line before the hole if not even that line fits.
///
/// A prompt is counted as a whole, because tokens can span lines. The search assumes that adding a line never lowers the count.
/// If a tokenizer violates this, the prompt still fits, and one more line would not.
pub(super) fn start(
    lines: &Lines,
    hole: usize,
    limit: usize,
    count_tokens: &(dyn Fn(&str) -> usize + Sync),
) -> usize {
    let fits = |start: usize| count_tokens(prompt(lines, start, hole)) <= limit;
    let guess = guess(lines, hole, limit, count_tokens);
    // Widen the interval around the guess until it is between a start that fits and a start that does not.
    let (mut fitting, mut too_early);
    let mut step = 1;
    if fits(guess) {
        fitting = guess;
        loop {
            if fitting == 0 {
                return 0;
            }
            let earlier = fitting.saturating_sub(step);
            if !fits(earlier) {
                too_early = earlier;
                break;
            }
            fitting = earlier;
            step *= 2;
        }
    } else {
        too_early = guess;
        loop {
            let later = (too_early + step).min(hole - 1);
            if later == hole - 1 || fits(later) {
                fitting = later;
                break;
            }
            too_early = later;
            step *= 2;
        }
    }
    while too_early + 1 < fitting {
        let middle = too_early + (fitting - too_early) / 2;
        if fits(middle) {
            fitting = middle;
        } else {
            too_early = middle;
        }
    }
    fitting
}

/// Returns the start according to the sum of the single lines' counts: it is nearly right, and each line is counted once.
fn guess(
    lines: &Lines,
    hole: usize,
    limit: usize,
    count_tokens: &(dyn Fn(&str) -> usize + Sync),
) -> usize {
    let mut sum = 0;
    for line in (0..hole).rev() {
        sum += count_tokens(prompt(lines, line, line + 1));
        if sum > limit {
            return (line + 1).min(hole - 1);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Finds the start line by line: the slow twin of [`start`].
    fn naive(lines: &Lines, hole: usize, limit: usize, count: &dyn Fn(&str) -> usize) -> usize {
        (0..hole).find(|&start| count(prompt(lines, start, hole)) <= limit).unwrap_or(hole - 1)
    }

    proptest! {
        #[test]
        fn equals_the_definition(text in "[a \n]{2,60}", limit in 0usize..40, runs in any::<bool>()) {
            let lines = Lines::new(&text);
            let bytes = |text: &str| text.len();
            // Counts that are not the sum of the lines' counts: runs of equal characters, also across newlines.
            let equal_runs = |text: &str| {
                let bytes = text.as_bytes();
                usize::from(!bytes.is_empty()) + bytes.windows(2).filter(|pair| pair[0] != pair[1]).count()
            };
            let count: &(dyn Fn(&str) -> usize + Sync) = if runs { &equal_runs } else { &bytes };
            for hole in 1..lines.count() {
                prop_assert_eq!(start(&lines, hole, limit, count), naive(&lines, hole, limit, count));
            }
        }
    }

    #[test]
    fn counts_little_text() {
        let lines = Lines::new(&"word word word\n".repeat(100_000));
        let counted = std::sync::atomic::AtomicUsize::new(0);
        let count = |text: &str| {
            counted.fetch_add(text.len(), std::sync::atomic::Ordering::Relaxed);
            text.split_whitespace().count()
        };
        assert_eq!(start(&lines, 90_000, 2000, &count), 90_000 - 666);
        // 666 lines of 15 bytes, counted once line by line and a few times as a whole.
        assert!(counted.into_inner() < 5 * 666 * 15);
    }
}
