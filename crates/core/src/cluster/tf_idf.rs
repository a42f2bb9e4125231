//! Texts as sparse vectors of unit length.

use crate::retrieve::rank::Words;

/// TF-IDF vectors of documents. The weight of a term is `tf · (1 + ln((1 + n) / (1 + df)))`, and each vector is scaled to
/// length 1, as in scikit-learn's `TfidfVectorizer`. A document without terms has an empty vector.
#[derive(Debug, Clone, PartialEq)]
pub struct TfIdfVectors {
    /// `first[d]..first[d + 1]` are the entries of document d.
    first: Vec<usize>,
    /// Terms and weights, by ascending term.
    entries: Vec<(u32, f32)>,
    /// Number of terms.
    terms: usize,
}

impl TfIdfVectors {
    /// Computes the vectors of documents. Terms in fewer than `min_df` documents are left out, unless no term would remain.
    ///
    /// ```
    /// use repoformer_core::cluster::TfIdfVectors;
    /// use repoformer_core::retrieve::rank::Words;
    /// let vectors = TfIdfVectors::new(&Words::new(&["a b", "a b", "c"]), 2);
    /// assert_eq!((vectors.terms(), vectors.row(0).len(), vectors.row(2).len()), (2, 2, 0));
    /// assert!((vectors.row(0)[0].1 - 0.5_f32.sqrt()).abs() < 1e-6);
    /// ```
    pub fn new(words: &Words, min_df: u32) -> Self {
        let documents = words.documents();
        let mut frequency = vec![0_u32; words.dictionary().len()];
        for document in 0..documents {
            for (term, _) in words.row(document) {
                frequency[term as usize] += 1;
            }
        }
        // In a repository with only a few chunks, no term may be in `min_df` of them.
        let most = frequency.iter().copied().max().unwrap_or(0);
        let least = min_df.min(most);
        let mut number = vec![u32::MAX; frequency.len()];
        let mut weights = Vec::new();
        for (term, &df) in frequency.iter().enumerate() {
            if df >= least {
                number[term] = weights.len() as u32;
                weights.push(1.0 + libm::log(f64::from(1 + documents as u32) / f64::from(1 + df)));
            }
        }
        let mut vectors = Self { first: vec![0], entries: Vec::new(), terms: weights.len() };
        let mut row: Vec<(u32, f64)> = Vec::new();
        for document in 0..documents {
            row.clear();
            row.extend(words.row(document).filter_map(|(term, count)| {
                let term = number[term as usize];
                let weight = weights.get(term as usize)?;
                Some((term, f64::from(count) * weight))
            }));
            let length = row.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt();
            let unit = row.iter().map(|(term, weight)| (*term, (weight / length) as f32));
            vectors.entries.extend(unit);
            vectors.first.push(vectors.entries.len());
        }
        vectors
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.first.len() - 1
    }

    /// Returns true if there are no documents.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of terms.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// Returns a document's terms and weights, by ascending term.
    ///
    /// # Panics
    /// The document does not exist.
    pub fn row(&self, document: usize) -> &[(u32, f32)] {
        &self.entries[self.first[document]..self.first[document + 1]]
    }
}
