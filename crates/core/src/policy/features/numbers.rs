//! Conversions of counts to features.

/// Returns `part / all`; 0 if `all` is 0.
pub(super) fn share(part: usize, all: usize) -> f32 {
    if all == 0 {
        return 0.0;
    }
    part as f32 / all as f32
}

/// Returns `ln(1 + count)`.
pub(super) fn log(count: usize) -> f32 {
    libm::log1pf(count as f32)
}

/// Returns 1 for true, 0 for false.
pub(super) fn flag(is: bool) -> f32 {
    f32::from(is)
}
