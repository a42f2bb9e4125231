//! Near duplicates, as datatrove finds them.
//!
//! A [`Signature`] holds what `MinhashDedupSignature` of datatrove 0.10.1 writes for a document, with its default
//! `MinhashConfig`: n-grams of 5 words, hashed by xxHash64; of each of 112 permutations (seed 1) the smallest value; 14 buckets
//! of 8 values. Documents that agree in all 8 values of a bucket are duplicates. Of two that share a part `s` of their n-grams
//! (Jaccard), a share of `1 - (1 - s^8)^14` is found: half of them at 0.68, nine in ten at 0.79.
//!
//! Words are those of the text as `simplify_text` leaves it, split at spaces. datatrove's own default cuts them with
//! spaCy's English rules, which takes longer; its step takes any other `WordTokenizer` in that place.

mod clusters;
mod permutations;
mod signature;
mod signer;
mod simplify;
#[cfg(test)]
mod tests;

pub use clusters::clusters;
pub use signature::Signature;
pub use signer::Signer;
