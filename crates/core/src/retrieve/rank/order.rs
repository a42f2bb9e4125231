//! Order of a ranking: by decreasing score, then by increasing priority.

/// Key of a document in a ranking: documents with smaller keys rank first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u128);

impl Key {
    /// Creates a key. A score that is NaN counts as the lowest; both zeros are equal.
    pub(super) fn new(score: f64, priority: u32, document: u32) -> Self {
        let score = if score.is_nan() { f64::NEG_INFINITY } else { score + 0.0 };
        let bits = score.to_bits();
        // IEEE 754: as integers, positive numbers rise with their bits, and negative ones fall.
        let rising = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
        Self(u128::from(!rising) << 64 | u128::from(priority) << 32 | u128::from(document))
    }

    pub(super) fn document(self) -> u32 {
        self.0 as u32
    }
}

/// Moves the first `top_k` keys to the front, in order, and drops the rest.
pub(super) fn select(keys: &mut Vec<Key>, top_k: usize) {
    if top_k == 0 {
        keys.clear();
    } else if top_k < keys.len() {
        keys.select_nth_unstable(top_k - 1);
        keys.truncate(top_k);
    }
    keys.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn score() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<f64>(),
            Just(0.0),
            Just(-0.0),
            Just(0.5),
            Just(f64::NAN),
            Just(f64::NEG_INFINITY)
        ]
    }

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_scores_and_priorities(scores in prop::collection::vec(score(), 0..20), k in 0_usize..25) {
            let priority = |document: u32| document.wrapping_mul(7) % 23;
            let mut wanted: Vec<u32> = (0..scores.len() as u32).collect();
            let number = |document: &u32| {
                let score = scores[*document as usize];
                if score.is_nan() { f64::NEG_INFINITY } else { score }
            };
            wanted.sort_by(|a, b| number(b).partial_cmp(&number(a)).unwrap().then(priority(*a).cmp(&priority(*b))));
            wanted.truncate(k);
            let mut keys: Vec<Key> = (0..).zip(&scores).map(|(d, score)| Key::new(*score, priority(d), d)).collect();
            select(&mut keys, k);
            prop_assert_eq!(keys.into_iter().map(Key::document).collect::<Vec<_>>(), wanted);
        }
    }
}
