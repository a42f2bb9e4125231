//! Settings that are numbers.

use anyhow::{Result, anyhow};

use crate::config::Settings;
use crate::output::hinted;

/// Larger than any file, and small enough to be added to.
pub(super) const MOST: usize = u32::MAX as usize / 4;

/// A whole number within bounds.
pub(super) fn number(
    settings: &Settings,
    key: &str,
    bounds: std::ops::RangeInclusive<usize>,
) -> Result<usize> {
    let number: usize = settings.parsed(key)?;
    if bounds.contains(&number) {
        return Ok(number);
    }
    let (least, most) = (bounds.start(), bounds.end());
    Err(hinted(
        anyhow!("--{key} cannot be {number}"),
        format!("choose a number from {least} to {most}"),
    ))
}
