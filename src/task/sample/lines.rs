//! Line holes (RepoCoder, section 3.1 "Line Completion").

use std::ops::Range;

use super::source::{LineClass, Source};

/// Every line of code, each alone. How many tokens it has, and whether it repeats, is looked at when it is drawn.
pub(super) fn holes(source: &Source) -> Vec<Range<usize>> {
    let classes = source.classes.iter().enumerate();
    classes
        .filter(|&(_, &class)| class == LineClass::Code)
        .map(|(line, _)| line..line + 1)
        .collect()
}
