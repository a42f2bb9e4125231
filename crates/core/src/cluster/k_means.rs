//! Lloyd's k-means on sparse vectors of unit length.
//!
//! The distance to a centroid is |x|² − 2 x·c + |c|², so the nearest centroid has the greatest *closeness* 2 x·c − |c|². Most
//! centroids are excluded by an upper bound. The document's terms are divided into frequent ones, which many centroids have, and
//! the others. By the inequality of Cauchy and Schwarz, the frequent terms f add at most 2 |x_f| |c| to a centroid's closeness,
//! and a centroid with no other term is at most |x_f|² close. As many terms count as frequent as this bound allows, and only the
//! lists of centroids that have one of the other terms are read. All sums are computed in a fixed order, so the result does not
//! depend on scheduling.

use rayon::prelude::*;
use repoformer_store::progress::Work;

use super::TfIdfVectors;

/// Maximum number of rounds; clusters of a repository's chunks converge in about ten.
const ROUNDS: usize = 100;
/// Minimum number of documents per thread at a time.
const AT_ONCE: usize = 256;

/// Returns the cluster of each document; clusters are numbered from 0 in the order of their first documents. There are at most
/// `k` clusters, and no more than there are distinct documents. `draw(n)` returns a number below n and is the only source of
/// randomness.
///
/// The first centroids are chosen as in k-means++. A cluster that loses all its documents gets the document that is farthest
/// from its centroid.
///
/// ```
/// use repoformer_core::cluster::{TfIdfVectors, k_means};
/// use repoformer_core::retrieve::rank::Words;
/// let texts = ["import os", "import os", "return x", "return x"];
/// let vectors = TfIdfVectors::new(&Words::new(&texts), 1);
/// assert_eq!(k_means(&vectors, 2, &mut |n| n / 2), [0, 0, 1, 1]);
/// ```
pub fn k_means(vectors: &TfIdfVectors, k: usize, draw: &mut dyn FnMut(u64) -> u64) -> Vec<usize> {
    let k = k.clamp(1, vectors.len().max(1));
    let Seeds { documents: seeds, nearest: mut guesses } = seeds(vectors, k, draw);
    let mut clusters = vec![usize::MAX; vectors.len()];
    for (cluster, seed) in seeds.iter().enumerate() {
        clusters[*seed] = cluster;
    }
    let mut centroids = Centroids::means(vectors, &clusters, vec![true; seeds.len()]);
    for round in 1..=ROUNDS {
        // The clusters converge long before the last round.
        let work = Work::new(format!("cluster, round {round}"), "texts", vectors.len());
        let documents = (0..vectors.len()).into_par_iter().with_min_len(AT_ONCE);
        let mut nearest: Vec<NearestCentroid> = documents
            .map_init(Scratch::default, |scratch, document| {
                work.advance(1);
                centroids.nearest(vectors.row(document), guesses[document], scratch)
            })
            .collect();
        let found = nearest.iter().map(|nearest| nearest.cluster);
        if found.clone().eq(clusters.iter().copied()) {
            break;
        }
        let before = std::mem::replace(&mut clusters, found.collect());
        fill_empty(centroids.count(), &mut clusters, &mut nearest);
        let mut are_changed = vec![false; centroids.count()];
        for (old, new) in before.iter().zip(&clusters).filter(|(old, new)| old != new) {
            are_changed[*new] = true;
            if let Some(old) = are_changed.get_mut(*old) {
                *old = true;
            }
        }
        guesses.copy_from_slice(&clusters);
        centroids = Centroids::means(vectors, &clusters, are_changed);
    }
    in_order(clusters)
}

/// Distance between vectors of length 1 that is larger than rounding errors.
const MARGIN: f64 = 1e-5;
/// Difference of closeness that is larger than rounding errors.
const CLOSE: f64 = 1e-9;

/// First centroids.
struct Seeds {
    /// Document of each centroid.
    documents: Vec<usize>,
    /// For each document, a centroid that is near.
    nearest: Vec<usize>,
}

/// Draws the first centroids: each a document, with probability proportional to its squared distance from the earlier ones.
fn seeds(vectors: &TfIdfVectors, k: usize, draw: &mut dyn FnMut(u64) -> u64) -> Seeds {
    let mut seeds = Vec::with_capacity(k);
    let mut nearest = vec![0; vectors.len()];
    if vectors.is_empty() {
        return Seeds { documents: seeds, nearest };
    }
    let by_term = Postings::new(vectors);
    let squares: Vec<f64> =
        (0..vectors.len()).map(|document| square(vectors.row(document))).collect();
    let mut distances = vec![f64::INFINITY; vectors.len()];
    let mut next = draw(vectors.len() as u64) as usize;
    let mut products = vec![0.0_f64; vectors.len()];
    let work = Work::new("cluster, first centroids", "clusters", k);
    loop {
        work.advance(1);
        seeds.push(next);
        by_term.products(vectors.row(next), &mut products);
        for (document, distance) in distances.iter_mut().enumerate() {
            let apart = squares[document] + squares[next] - 2.0 * products[document];
            if apart < *distance {
                nearest[document] = seeds.len() - 1;
            }
            *distance = distance.min(apart.max(0.0));
            // Rounding error: the documents are equal.
            if *distance < 1e-9 {
                *distance = 0.0;
            }
        }
        let total: f64 = distances.iter().sum();
        if seeds.len() == k || total <= 0.0 {
            return Seeds { documents: seeds, nearest };
        }
        let mut left = total * (draw(1 << 53) as f64 / (1_u64 << 53) as f64);
        let is_it = |distance: &f64| {
            left -= distance;
            left < 0.0
        };
        let found = distances.iter().position(is_it);
        // If rounding left a remainder, take the last document that differs.
        let last = distances.iter().rposition(|distance| *distance > 0.0);
        next = found.or(last).unwrap_or(0);
    }
}

fn square(row: &[(u32, f32)]) -> f64 {
    row.iter().map(|(_, weight)| f64::from(*weight).powi(2)).sum()
}

/// Inverted index: the documents that have each term, with the term's weights.
struct Postings {
    of_term: Vec<Vec<(u32, f32)>>,
}

impl Postings {
    fn new(vectors: &TfIdfVectors) -> Self {
        let mut of_term = vec![Vec::new(); vectors.terms()];
        for document in 0..vectors.len() {
            for (term, weight) in vectors.row(document) {
                of_term[*term as usize].push((document as u32, *weight));
            }
        }
        Self { of_term }
    }

    /// Computes the products of a vector with all documents.
    fn products(&self, row: &[(u32, f32)], products: &mut [f64]) {
        products.fill(0.0);
        for (term, weight) in row {
            for (document, other) in &self.of_term[*term as usize] {
                products[*document as usize] += f64::from(*weight) * f64::from(*other);
            }
        }
    }
}

/// Means of clusters.
struct Centroids {
    /// Terms of each centroid, ascending, with their weights.
    rows: Vec<Vec<(u32, f64)>>,
    /// Centroids that have each term, ascending, with their weights.
    of_term: Vec<Vec<(u32, f64)>>,
    /// Whether the members of each cluster changed in the last round. The others are as far from each document as before.
    are_changed: Vec<bool>,
    /// Changed centroids that have each term.
    changed_of_term: Vec<Vec<(u32, f64)>>,
    /// Squared length of each centroid.
    squares: Vec<f64>,
    /// Length of each centroid.
    lengths: Vec<f64>,
    /// Centroid of least length.
    shortest: usize,
}

/// Products of one document with centroids, and the centroids with a nonzero product.
#[derive(Default)]
struct Scratch {
    products: Vec<f64>,
    touched: Vec<u32>,
    /// The document's terms, the most frequent first.
    terms: Vec<(u32, f32)>,
    /// Length of the vector of the last frequent terms, by their number.
    bounds: Vec<f64>,
}

/// Centroid nearest to a document.
struct NearestCentroid {
    cluster: usize,
    distance: f64,
}

impl Centroids {
    /// Computes the means of clusters, given which of them changed. Documents with a greater cluster number belong to no cluster.
    fn means(vectors: &TfIdfVectors, clusters: &[usize], are_changed: Vec<bool>) -> Self {
        let count = are_changed.len();
        let mut members = vec![Vec::new(); count];
        for (document, cluster) in clusters.iter().enumerate() {
            if let Some(members) = members.get_mut(*cluster) {
                members.push(document);
            }
        }
        let mut of_term: Vec<Vec<(u32, f64)>> = vec![Vec::new(); vectors.terms()];
        let mut changed_of_term = of_term.clone();
        let mut rows = Vec::with_capacity(count);
        let mut squares = vec![0.0; count];
        let mut sums = vec![0.0_f64; vectors.terms()];
        for (cluster, members) in members.iter().enumerate() {
            let mut row: Vec<(u32, f64)> = Vec::new();
            for document in members {
                for (term, weight) in vectors.row(*document) {
                    let sum = &mut sums[*term as usize];
                    if *sum == 0.0 {
                        row.push((*term, 0.0));
                    }
                    *sum += f64::from(*weight);
                }
            }
            for (term, mean) in &mut row {
                *mean = std::mem::take(&mut sums[*term as usize]) / members.len() as f64;
                squares[cluster] += *mean * *mean;
                of_term[*term as usize].push((cluster as u32, *mean));
                if are_changed[cluster] {
                    changed_of_term[*term as usize].push((cluster as u32, *mean));
                }
            }
            row.sort_unstable_by_key(|(term, _)| *term);
            rows.push(row);
        }
        let shorter = |a: &usize, b: &usize| squares[*a].total_cmp(&squares[*b]);
        let shortest = (0..count).min_by(shorter).unwrap_or(0);
        let lengths = squares.iter().map(|square| square.sqrt()).collect();
        Self { rows, of_term, are_changed, changed_of_term, squares, lengths, shortest }
    }

    fn count(&self) -> usize {
        self.squares.len()
    }

    /// Returns the weight of a term in a centroid.
    fn weight(&self, cluster: usize, term: u32) -> f64 {
        let row = &self.rows[cluster];
        row.binary_search_by_key(&term, |(other, _)| *other).map_or(0.0, |at| row[at].1)
    }

    /// Returns the closeness of a centroid to a document.
    fn closeness(&self, row: &[(u32, f32)], cluster: usize) -> f64 {
        let mut rest = &self.rows[cluster][..];
        let mut product = 0.0;
        for (term, weight) in row {
            let at = rest.partition_point(|(other, _)| other < term);
            rest = &rest[at..];
            match rest.first() {
                Some((other, mean)) if other == term => product += f64::from(*weight) * mean,
                Some(_) => {}
                None => break,
            }
        }
        2.0 * product - self.squares[cluster]
    }

    /// Finds the centroid nearest to a document; among equally near ones, the first. `guess` is the centroid that was nearest in the
    /// last round, or is probably near if all changed. If it did not change, only changed centroids can be nearer.
    fn nearest(&self, row: &[(u32, f32)], guess: usize, scratch: &mut Scratch) -> NearestCentroid {
        let Scratch { products, touched, terms, bounds } = scratch;
        let mut best = (self.closeness(row, self.shortest), self.shortest);
        let mut compete = |cluster: usize| {
            let closeness = self.closeness(row, cluster);
            if closeness > best.0 || closeness == best.0 && cluster < best.1 {
                best = (closeness, cluster);
            }
            best.0
        };
        let mut to_beat = compete(guess);
        let of_term = if self.are_changed[guess] { &self.of_term } else { &self.changed_of_term };
        terms.clear();
        terms.extend_from_slice(row);
        let frequency = |term: u32| of_term[term as usize].len();
        terms.sort_unstable_by_key(|(term, _)| (std::cmp::Reverse(frequency(*term)), *term));
        let (mut frequent, mut square_left) = (0, 0.0);
        for (_, weight) in &*terms {
            let more = square_left + f64::from(*weight).powi(2);
            if more + CLOSE >= to_beat {
                break;
            }
            (frequent, square_left) = (frequent + 1, more);
        }
        products.resize(self.count(), 0.0);
        let products = &mut products[..];
        for (term, weight) in &terms[frequent..] {
            let weight = f64::from(*weight);
            for &(cluster, mean) in &of_term[*term as usize] {
                let product = &mut products[cluster as usize];
                if *product == 0.0 {
                    touched.push(cluster);
                }
                *product += weight * mean;
            }
        }
        // The heaviest of the frequent terms first: they lower the bound most.
        let (frequent, _) = terms.split_at_mut(frequent);
        frequent.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
        bounds.clear();
        bounds.push(0.0);
        bounds.extend(frequent.iter().rev().scan(0.0, |square, (_, weight)| {
            *square += f64::from(*weight).powi(2);
            Some(square.sqrt())
        }));
        for cluster in touched.drain(..) {
            let cluster = cluster as usize;
            let (length, square) = (self.lengths[cluster], self.squares[cluster]);
            let mut product = std::mem::take(&mut products[cluster]);
            let is_excluded = |product: f64, left: f64| {
                2.0 * (product + left * length) - square + CLOSE < to_beat
            };
            let mut lefts = bounds.iter().rev();
            let mut excluded = lefts.next().is_some_and(|left| is_excluded(product, *left));
            for ((term, weight), left) in frequent.iter().zip(lefts) {
                if excluded {
                    break;
                }
                product += f64::from(*weight) * self.weight(cluster, *term);
                excluded = is_excluded(product, *left);
            }
            if !excluded {
                to_beat = compete(cluster);
            }
        }
        let distance = (square(row) - best.0).max(0.0).sqrt();
        NearestCentroid { cluster: best.1, distance }
    }
}

/// Gives each empty cluster the document that is farthest from its own centroid, unless every document is at its centroid.
fn fill_empty(count: usize, clusters: &mut [usize], nearest: &mut [NearestCentroid]) {
    let mut sizes = vec![0_usize; count];
    clusters.iter().for_each(|cluster| sizes[*cluster] += 1);
    for empty in 0..count {
        if sizes[empty] > 0 {
            continue;
        }
        let distance = |document: usize| nearest[document].distance;
        let farthest = (0..clusters.len())
            .filter(|&document| sizes[clusters[document]] > 1 && distance(document) > MARGIN)
            .max_by(|&a, &b| distance(a).total_cmp(&distance(b)).then(b.cmp(&a)));
        if let Some(document) = farthest {
            sizes[clusters[document]] -= 1;
            sizes[empty] += 1;
            clusters[document] = empty;
            nearest[document].distance = 0.0;
        }
    }
}

/// Renumbers clusters in the order of their first documents.
fn in_order(clusters: Vec<usize>) -> Vec<usize> {
    let most = clusters.iter().copied().max().map_or(0, |most| most + 1);
    let (mut numbers, mut next) = (vec![usize::MAX; most], 0);
    let number = |cluster: usize| {
        if numbers[cluster] == usize::MAX {
            numbers[cluster] = next;
            next += 1;
        }
        numbers[cluster]
    };
    clusters.into_iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::retrieve::rank::Words;

    fn vectors(texts: &[String]) -> TfIdfVectors {
        TfIdfVectors::new(&Words::new(texts), 1)
    }

    /// Returns a random generator that is good enough for tests.
    fn chance(mut state: u64) -> impl FnMut(u64) -> u64 {
        move |n| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) % n
        }
    }

    /// Clusters in the obvious way: dense vectors, and distances to every centroid in every round, from the same seeds.
    fn plainly(vectors: &TfIdfVectors, k: usize, seed: u64) -> Vec<usize> {
        let dense: Vec<Vec<f64>> = (0..vectors.len())
            .map(|document| {
                let mut dense = vec![0.0; vectors.terms()];
                for (term, weight) in vectors.row(document) {
                    dense[*term as usize] = f64::from(*weight);
                }
                dense
            })
            .collect();
        let distance =
            |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum() };
        let mut draw = chance(seed);
        let first = seeds(vectors, k.clamp(1, vectors.len().max(1)), &mut draw).documents;
        let mut centroids: Vec<Vec<f64>> = first.iter().map(|seed| dense[*seed].clone()).collect();
        let mut clusters = vec![usize::MAX; dense.len()];
        for _ in 0..ROUNDS {
            let before = clusters.clone();
            let mut nearest = Vec::new();
            for vector in &dense {
                let of = |cluster: &usize| distance(vector, &centroids[*cluster]);
                // Among distances that rounding cannot tell apart, choose the document's current cluster or the first.
                let least = (0..centroids.len()).map(|c| of(&c)).fold(f64::INFINITY, f64::min);
                let near = |cluster: &usize| of(cluster) < least + 1e-9;
                let cluster = (0..centroids.len()).find(near).unwrap();
                nearest.push(NearestCentroid { cluster, distance: least.sqrt() });
            }
            clusters = nearest.iter().map(|nearest| nearest.cluster).collect();
            if clusters == before {
                break;
            }
            fill_empty(centroids.len(), &mut clusters, &mut nearest);
            for (cluster, centroid) in centroids.iter_mut().enumerate() {
                let members = dense.iter().zip(&clusters).filter(|(_, of)| **of == cluster);
                let members: Vec<&Vec<f64>> = members.map(|(vector, _)| vector).collect();
                if !members.is_empty() {
                    for (term, value) in centroid.iter_mut().enumerate() {
                        let sum: f64 = members.iter().map(|member| member[term]).sum();
                        *value = sum / members.len() as f64;
                    }
                }
            }
        }
        in_order(clusters)
    }

    /// Returns the squared distance of a document from a cluster's mean.
    fn distance(vectors: &TfIdfVectors, means: &Centroids, document: usize, cluster: usize) -> f64 {
        let row = vectors.row(document);
        let product = |(term, weight): &(u32, f32)| {
            let of_term = means.of_term[*term as usize].iter();
            let mean =
                of_term.filter(|(other, _)| *other as usize == cluster).map(|(_, mean)| mean);
            f64::from(*weight) * mean.sum::<f64>()
        };
        square(row) - 2.0 * row.iter().map(product).sum::<f64>() + means.squares[cluster]
    }

    proptest! {
        #[test]
        fn sparse_rounds_end_as_well_as_plain_ones(
            texts in prop::collection::vec("[a-f]( [a-h]){0,5}", 1..40), k in 1_usize..12, seed: u64,
        ) {
            let vectors = vectors(&texts);
            let fast = k_means(&vectors, k, &mut chance(seed));
            let means_of = |clusters: &[usize]| {
                let count = clusters.iter().max().map_or(0, |most| most + 1);
                Centroids::means(&vectors, clusters, vec![true; count])
            };
            // After convergence, no document is nearer to another cluster's mean.
            let means = means_of(&fast);
            let root = |document, cluster| {
                distance(&vectors, &means, document, cluster).max(0.0).sqrt()
            };
            for (document, own) in fast.iter().enumerate() {
                for cluster in 0..means.count() {
                    prop_assert!(root(document, *own) <= root(document, cluster) + 1e-4);
                }
            }
            // The two may break ties differently, but the results are equally good.
            let inertia = |clusters: &[usize]| -> f64 {
                let means = means_of(clusters);
                let documents = clusters.iter().enumerate();
                documents.map(|(document, own)| distance(&vectors, &means, document, *own)).sum()
            };
            let (fast_sum, slow_sum) = (inertia(&fast), inertia(&plainly(&vectors, k, seed)));
            prop_assert!(fast_sum <= slow_sum * 1.25 + 1e-6, "{} {}", fast_sum, slow_sum);
            let distinct: std::collections::BTreeSet<&String> = texts.iter().collect();
            let clusters: std::collections::BTreeSet<&usize> = fast.iter().collect();
            prop_assert!(clusters.len() <= k.min(texts.len()));
            prop_assert_eq!(clusters.len(), clusters.last().map_or(0, |last| **last + 1));
            prop_assert!(distinct.len() > 1 || clusters.len() == 1);
        }
    }

    #[test]
    fn no_text_has_no_cluster_and_two_have_two_at_most() {
        assert!(k_means(&vectors(&[]), 3, &mut chance(0)).is_empty());
        assert_eq!(k_means(&vectors(&["a".into(), "b".into()]), 9, &mut chance(0)).len(), 2);
    }
}
