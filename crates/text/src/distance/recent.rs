//! Memory of the last comparison. Metrics that are computed together mostly compare the same two texts: three use the
//! Levenshtein distance and three the InDel distance.

use std::cell::RefCell;

/// Largest size in bytes of a remembered pair; longer pairs are rarely compared again.
const LONGEST: usize = 4096;

/// Comparison of two texts that remembers the last result.
#[derive(Default)]
pub(super) struct RecentComparison {
    /// Both texts, concatenated.
    pair: String,
    first: usize,
    value: Option<f64>,
}

impl RecentComparison {
    /// Returns the value of `compare` for these texts, from memory if they were compared last.
    pub(super) fn compare(
        this: &RefCell<Self>,
        a: &str,
        b: &str,
        compare: impl FnOnce(&str, &str) -> f64,
    ) -> f64 {
        if a.len() + b.len() > LONGEST {
            return compare(a, b);
        }
        let mut recent = this.borrow_mut();
        if let Some(value) = recent.value
            && recent.pair.split_at(recent.first) == (a, b)
        {
            return value;
        }
        let value = compare(a, b);
        recent.pair.clear();
        recent.pair.push_str(a);
        recent.pair.push_str(b);
        (recent.first, recent.value) = (a.len(), Some(value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_pair_is_remembered() {
        let recent = RefCell::default();
        let calls = RefCell::new(0);
        let of = |a: &str, b: &str| {
            RecentComparison::compare(&recent, a, b, |a, b| {
                *calls.borrow_mut() += 1;
                (a.len() * 10 + b.len()) as f64
            })
        };
        let long = "x".repeat(LONGEST);
        let found = [
            of("", ""),
            of("ab", "c"),
            of("ab", "c"),
            of("a", "bc"),
            of(&long, "c"),
            of("a", "bc"),
        ];
        assert_eq!(found, [0.0, 21.0, 21.0, 12.0, 40961.0, 12.0]);
        assert_eq!(calls.take(), 4);
    }
}
