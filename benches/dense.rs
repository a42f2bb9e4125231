//! Cosines of a query's vector with the vectors of a repository: 5,000 windows of 768 numbers.

use divan::{Bencher, black_box};
use repoformer_core::retrieve::dense::Matrix;

const ROWS: usize = 5_000;
const DIM: usize = 768;

/// Returns numbers between −0.5 and 0.5, the same in every run.
fn vectors() -> (Matrix, Vec<f32>) {
    let mut state = 1_u32;
    let mut row = || -> Vec<f32> {
        let mut number = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 16_777_216.0 - 0.5
        };
        (0..DIM).map(|_| number()).collect()
    };
    let mut matrix = Matrix::with_capacity(DIM, ROWS);
    for _ in 0..ROWS {
        matrix.push(&row()).unwrap();
    }
    (matrix, row())
}

#[divan::bench]
fn cosines(bencher: Bencher) {
    let (matrix, query) = vectors();
    let mut out = Vec::new();
    bencher.bench_local(|| {
        matrix.cosines(black_box(&query), &mut out).unwrap();
        black_box(&out);
    });
}

/// Measures the definition with a single sum, to compare with the parallel sums.
#[divan::bench]
fn plain_cosines(bencher: Bencher) {
    let (matrix, query) = vectors();
    let product = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    bencher.bench_local(|| -> Vec<f64> {
        let query = black_box(&query);
        let own = product(query, query);
        let cosine = |row| product(query, row) / (own * product(row, row)).sqrt();
        matrix.iter().map(cosine).collect()
    });
}
