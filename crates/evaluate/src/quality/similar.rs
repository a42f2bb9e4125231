//! Edit similarity of the run of lines that is most similar to a target, over all runs of all fragments.

use foldhash::HashSet;
use repoformer_text::distance::levenshtein;

use super::lines::StrippedLines;

/// Run of lines and an upper bound of its similarity.
struct Run<'f> {
    bound: f64,
    fragment: &'f StrippedLines,
    lines: (usize, usize),
}

/// Returns the highest edit similarity between the target and a run of the same number of lines in one fragment (the whole
/// fragment if it has fewer); 0 without a line.
///
/// One pass over a fragment gives upper bounds for all its runs. The runs are then compared in the order of their bounds, until
/// no bound is above the best similarity. Fragments overlap; a text that is in several fragments is compared once.
pub(super) fn best(target: &StrippedLines, fragments: &[StrippedLines]) -> f64 {
    best_of_batches(target, fragments, MOST_RUNS)
}

/// Greatest number of runs that are kept to be compared in order; when it is reached, they are compared and removed.
const MOST_RUNS: usize = 1 << 20;

fn best_of_batches(target: &StrippedLines, fragments: &[StrippedLines], most: usize) -> f64 {
    let mut batch = Batch { best: 0.0, compared: HashSet::default(), runs: Vec::new() };
    for fragment in fragments {
        for_each_run(target, fragment, &mut |run| {
            if run.bound > batch.best {
                batch.runs.push(run);
            }
            if batch.runs.len() == most {
                batch.compare(target);
            }
        });
    }
    batch.compare(target);
    batch.best
}

/// Runs that are not compared yet, and the best similarity so far.
struct Batch<'f> {
    best: f64,
    compared: HashSet<&'f str>,
    runs: Vec<Run<'f>>,
}

impl Batch<'_> {
    fn compare(&mut self, target: &StrippedLines) {
        self.runs.sort_by(|a, b| b.bound.total_cmp(&a.bound));
        for run in self.runs.drain(..) {
            if run.bound <= self.best {
                break;
            }
            let text = run.fragment.run(run.lines);
            if self.compared.insert(text) {
                self.best = levenshtein::similarity(target.text(), text).max(self.best);
            }
        }
    }
}

/// Calls `take` with a fragment's runs and their bounds. A run is at best as similar as the nearest of all texts with the same
/// end, and a difference in length needs as many insertions.
fn for_each_run<'f>(
    target: &StrippedLines,
    fragment: &'f StrippedLines,
    take: &mut dyn FnMut(Run<'f>),
) {
    let nearest = levenshtein::nearest_ends(target.text(), fragment.text());
    let length = target.text().chars().count();
    // Ends of the lines, in characters.
    let mut next = 0;
    let ends = (0..fragment.count()).map(|line| {
        let end = next + fragment.line(line).chars().count();
        next = end + 1;
        end
    });
    let ends: Vec<usize> = ends.collect();
    fragment.runs(target).for_each(|lines| {
        let start = lines.0.checked_sub(1).map_or(0, |before| ends[before] + 1);
        let end = ends[lines.1];
        let (shorter, longer) = (length.min(end - start), length.max(end - start));
        let distance = (nearest[end] as usize).max(longer - shorter);
        // Uses the same formula as the similarity, so that rounding preserves the order of distances.
        let bound = 1.0 - distance as f64 / longer as f64;
        take(Run { bound, fragment, lines });
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes the similarity by its definition: over every run of every fragment.
    fn naive(target: &str, fragments: &[&str]) -> f64 {
        let lines = |text: &str| -> Vec<String> {
            let lines = text.split('\n').map(|line| line.trim().to_owned());
            lines.filter(|line| !line.is_empty()).collect()
        };
        let target = lines(target);
        let mut best = 0.0f64;
        for fragment in fragments {
            let fragment = lines(fragment);
            let length = target.len().min(fragment.len());
            if length == 0 {
                continue;
            }
            for run in fragment.windows(length) {
                best = best.max(levenshtein::similarity(&target.join("\n"), &run.join("\n")));
            }
        }
        best
    }

    fn fast(target: &str, fragments: &[&str]) -> f64 {
        let fragments: Vec<StrippedLines> =
            fragments.iter().map(|text| StrippedLines::new(text)).collect();
        best(&StrippedLines::new(target), &fragments)
    }

    #[test]
    fn by_hand() {
        for (target, fragments, wanted) in [
            // The second line is 1 substitution of 4 away; the run must have one line, like the target.
            ("abcd", &["zzzz\n  abce\n"][..], 0.75),
            // "ab\ncd" compared with "ab\nxd" (1 of 5) and "xd\nef" (4 of 5: both lines except d).
            ("ab\n\ncd", &["ab\nxd\nef"], 0.8),
            // A fragment of fewer lines is compared as a whole: "ab" is 3 characters short of 5.
            ("ab\ncd", &["ab"], 0.4),
            ("abcd", &["", "\n \n"], 0.0),
            ("abcd", &[], 0.0),
            ("é語", &["ab", "x\né\n"], 0.5),
        ] {
            assert_eq!(fast(target, fragments), wanted, "{target:?}");
            assert_eq!(naive(target, fragments), wanted, "{target:?}");
        }
    }

    proptest! {
        #[test]
        fn equals_every_run(
            target in "([abcé ]{0,12}\n?){0,4}",
            fragments in prop::collection::vec("([abcdé ]{0,12}\n?){0,8}", 0..5),
        ) {
            let fragments: Vec<&str> = fragments.iter().map(String::as_str).collect();
            let wanted = naive(&target, &fragments);
            prop_assert_eq!(fast(&target, &fragments), wanted);
            let fragments: Vec<StrippedLines> =
                fragments.iter().map(|text| StrippedLines::new(text)).collect();
            let target = StrippedLines::new(&target);
            prop_assert_eq!(best_of_batches(&target, &fragments, 2), wanted);
        }
    }
}
