//! Unbiased pass@k (Chen et al., *Evaluating Large Language Models Trained on Code*, 2021, equation 1).

/// Returns the probability that at least one of `k` samples passes, drawn from `n` samples of which `passed` pass: 1 − C(n−c,
/// k) / C(n, k). `None` if there are fewer samples than `k`, or `k` is 0.
///
/// ```
/// use repoformer_execute::pass_at_k;
/// // By hand: of the 10 pairs out of 5, C(3, 2) = 3 hold neither of the 2 that pass.
/// assert!((pass_at_k(5, 2, 2).unwrap() - 0.7).abs() < 1e-12);
/// assert_eq!(pass_at_k(4, 1, 1), Some(0.25));
/// assert_eq!(pass_at_k(4, 3, 2), Some(1.0)); // every pair holds one
/// assert_eq!(pass_at_k(4, 1, 5), None);
/// ```
pub fn pass_at_k(n: usize, passed: usize, k: usize) -> Option<f64> {
    if k == 0 || k > n || passed > n {
        return None;
    }
    if k == 1 {
        return Some(passed as f64 / n as f64);
    }
    if n - passed < k {
        return Some(1.0);
    }
    // C(n−c, k) / C(n, k) as a product with factors near 1, for any number of samples.
    let none = (n - passed + 1..=n).map(|i| 1.0 - k as f64 / i as f64);
    Some(1.0 - none.product::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts every way to draw, one by one.
    fn counted(n: usize, passed: usize, k: usize) -> f64 {
        let draws = (0_u32..1 << n).filter(|draw| draw.count_ones() as usize == k);
        let (mut all, mut some) = (0_u32, 0_u32);
        for draw in draws {
            all += 1;
            some += u32::from(draw & ((1 << passed) - 1) != 0);
        }
        f64::from(some) / f64::from(all)
    }

    #[test]
    fn equals_counting_every_draw() {
        for n in 1..=9 {
            for passed in 0..=n {
                for k in 1..=n {
                    let (fast, slow) = (pass_at_k(n, passed, k).unwrap(), counted(n, passed, k));
                    assert!((fast - slow).abs() < 1e-12, "{n} {passed} {k}: {fast} {slow}");
                }
            }
        }
        assert_eq!((pass_at_k(3, 1, 0), pass_at_k(0, 0, 1)), (None, None));
        let many = pass_at_k(2000, 1, 1000).unwrap();
        assert!((many - 0.5).abs() < 1e-9, "{many}"); // by hand: k / n for one that passes
    }
}
