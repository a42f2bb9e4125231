//! Near duplicates, as datatrove finds them.
//!
//! A [`Signature`] is the output of datatrove 0.10.1's `MinhashDedupSignature` for a document, with its default `MinhashConfig`:
//! n-grams of 5 words, hashed with xxHash64; the smallest value of each of 112 permutations (seed 1); 14 buckets of 8 values.
//! Documents that agree in all 8 values of a bucket are duplicates. Two documents that share a fraction `s` of their n-grams
//! (Jaccard) are found with probability `1 - (1 - s^8)^14`: half of them at 0.68, nine of ten at 0.79.
//!
//! Words are the space-separated words of the text after `simplify_text`. By default, datatrove splits words with spaCy's
//! English rules instead, which takes longer; its step accepts any other `WordTokenizer` as well.

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
