//! Conversion of signatures to clusters of near duplicates.

use super::signature::{BUCKETS, Signature};

/// Returns the clusters of at least two signatures. Two signatures are in one cluster if they share a bucket, directly or
/// through a chain of other signatures. Members are indices into `signatures`, in ascending order; clusters are in the order of
/// their first members.
///
/// Takes `O(n log n)` time, and 24 bytes per signature in addition to the result.
///
/// ```
/// use repoformer_formats::group::min_hash::{Signature, clusters};
///
/// let texts = ["def f(x): return x + 1", "class C: number = 1, 2, 3", "def f(x):\n    return x + 2\n"];
/// let signatures: Vec<Signature> = texts.into_iter().filter_map(Signature::from_text).collect();
/// assert_eq!(clusters(&signatures), [[0, 2]]);
/// ```
pub fn clusters(signatures: &[Signature]) -> Vec<Vec<usize>> {
    let mut parents: Vec<usize> = (0..signatures.len()).collect();
    let mut order = parents.clone();
    for bucket in 0..BUCKETS {
        let key = |&place: &usize| signatures[place].keys[bucket];
        order.sort_unstable_by_key(key);
        for pair in order.windows(2).filter(|pair| key(&pair[0]) == key(&pair[1])) {
            let (one, other) = (root(&mut parents, pair[0]), root(&mut parents, pair[1]));
            // The smaller index is the root, whatever the order.
            parents[one.max(other)] = one.min(other);
        }
    }
    let mut sizes = vec![0_usize; signatures.len()];
    for place in 0..signatures.len() {
        let root = root(&mut parents, place);
        sizes[root] += 1;
    }
    let (mut clusters, mut numbers) = (Vec::new(), order);
    for place in 0..signatures.len() {
        let root = root(&mut parents, place);
        if sizes[root] < 2 {
            continue;
        }
        if root == place {
            numbers[root] = clusters.len();
            clusters.push(Vec::with_capacity(sizes[root]));
        }
        clusters[numbers[root]].push(place);
    }
    clusters
}

/// Returns the smallest known index in an index's cluster, and halves the path to it.
fn root(parents: &mut [usize], mut place: usize) -> usize {
    while parents[place] != place {
        parents[place] = parents[parents[place]];
        place = parents[place];
    }
    place
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a signature with these shared buckets; its other buckets are unique.
    fn signature(number: usize, shared: &[(usize, u64)]) -> Signature {
        let mut keys = [[number as u64, 1]; BUCKETS];
        for &(bucket, key) in shared {
            keys[bucket] = [key, 0];
        }
        Signature { keys }
    }

    #[test]
    fn equal_keys_join_within_their_bucket_alone() {
        let all = [
            signature(0, &[(0, 7)]),
            signature(1, &[(1, 7)]),
            signature(2, &[(0, 7), (13, 9)]),
            signature(3, &[]),
            signature(4, &[(13, 9)]),
            signature(5, &[(1, 7)]),
        ];
        assert_eq!(clusters(&all), vec![vec![0, 2, 4], vec![1, 5]]);
        assert!(clusters(&[]).is_empty());
    }

    proptest! {
        /// Plain twin: signatures that share a key take the smaller of their two numbers, until nothing changes.
        #[test]
        fn clusters_are_what_sharing_reaches(
            shared in prop::collection::vec(prop::collection::vec((0..BUCKETS, 0..9_u64), 0..3), 0..30),
        ) {
            let all: Vec<Signature> =
                shared.iter().enumerate().map(|(number, keys)| signature(number, keys)).collect();
            let mut numbers: Vec<usize> = (0..all.len()).collect();
            for _ in 0..all.len() {
                for one in 0..all.len() {
                    for other in 0..all.len() {
                        if (0..BUCKETS).any(|at| all[one].keys[at] == all[other].keys[at]) {
                            let least = numbers[one].min(numbers[other]);
                            (numbers[one], numbers[other]) = (least, least);
                        }
                    }
                }
            }
            let members = |number| (0..all.len()).filter(|&at| numbers[at] == number).collect();
            let expected: Vec<Vec<usize>> =
                (0..all.len()).map(members).filter(|found: &Vec<usize>| found.len() > 1).collect();
            prop_assert_eq!(clusters(&all), expected);
        }
    }
}
