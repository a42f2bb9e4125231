//! Edit distances between texts, counted in characters.

pub mod indel;
pub mod levenshtein;
mod recent;
mod symbols;
