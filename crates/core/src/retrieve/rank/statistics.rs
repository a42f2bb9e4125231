//! Statistics of a query's candidates for BM25 and TF-IDF: their number, and the number of candidates that have each word.

use super::inverted::InvertedIndex;

/// Counts over the candidates only, which are the whole corpus in the reference program.
#[derive(Debug, PartialEq)]
pub(super) struct Statistics {
    /// Number of candidates.
    pub(super) candidates: usize,
    /// Number of candidates that have each word.
    pub(super) frequencies: Vec<u32>,
    /// Number of the candidates' words, including repeats.
    pub(super) length: u64,
}

impl Statistics {
    /// Computes the statistics of the documents that `is_candidate` marks. Usually the candidates are all documents except one
    /// file's, so the other documents are subtracted; if these are more than half, the candidates are counted instead.
    pub(super) fn new(inverted: &InvertedIndex, is_candidate: &[bool]) -> Self {
        let mut candidates = 0;
        for is in is_candidate {
            candidates += usize::from(*is);
        }
        let subtract = 2 * candidates >= is_candidate.len();
        let words = &inverted.words;
        let counted = (0..words.documents()).filter(|document| is_candidate[*document] != subtract);
        let mut frequencies =
            if subtract { inverted.frequencies() } else { vec![0; words.dictionary().len()] };
        let mut length: u64 = 0;
        for document in counted {
            length += u64::from(words.length(document));
            for (number, _) in words.row(document) {
                let frequency: &mut u32 = &mut frequencies[number as usize];
                *frequency = if subtract { *frequency - 1 } else { *frequency + 1 };
            }
        }
        if subtract {
            length = words.total_length() - length;
        }
        Self { candidates, frequencies, length }
    }
}

/// Returns the natural logarithms of n + `offset` for n from 0 to `end`.
pub(super) fn logarithms(offset: f64, end: usize) -> Vec<f64> {
    (0..=end).map(|n| libm::log(n as f64 + offset)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retrieve::rank::Words;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn subtracting_is_counting(documents in prop::collection::vec(("[abc ]{0,9}", any::<bool>()), 0..12)) {
            let (texts, is_candidate): (Vec<_>, Vec<_>) = documents.into_iter().unzip();
            let inverted = InvertedIndex::new(Words::new(&texts));
            let found = Statistics::new(&inverted, &is_candidate);
            let kept: Vec<_> = texts.iter().zip(&is_candidate).filter(|(_, is)| **is).map(|(text, _)| text).collect();
            let alone = Words::new(&kept);
            prop_assert_eq!(found.candidates, kept.len());
            prop_assert_eq!(found.length, (0..kept.len()).map(|d| u64::from(alone.length(d))).sum::<u64>());
            for (number, word) in (0..).zip(inverted.words.dictionary().iter()) {
                let wanted = alone.dictionary().get(word).map_or(0, |own| {
                    (0..kept.len()).filter(|d| alone.row(*d).any(|(n, _)| n == own)).count()
                });
                let number: usize = number;
                prop_assert_eq!(found.frequencies[number] as usize, wanted);
            }
        }
    }
}
