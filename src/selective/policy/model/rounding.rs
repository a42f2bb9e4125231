//! Rounding of trained numbers.

/// Rounds to eight decimals: further ones differ between processors.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e8).round() / 1e8
}
