//! Retrieval quality without a model: overlap of the retrieved fragments with the target.
//!
//! A model's edit similarity shows whether a retriever helped *that model*. The measures here describe the retrieved fragments:
//! whether they contain the target, its lines or its names, and whether the ground-truth query finds the same fragments. They
//! need no prediction, so rankers and queries can be compared in seconds.
//!
//! - [`RetrievalTarget`] is one task's target, parsed once; [`RetrievalTarget::measure`] compares a list of fragments with it.
//! - [`Measures`] defines the values; [`Measures::values`] names them.
//! - [`recall_at`] compares the documents of a query with the documents of the ground-truth query.
//! - [`RetrievalQuality`] has the means over a benchmark, by repository and over all tasks, and the rows they are computed
//!   from.
//!
//! An upper bound for any ranker and any k is the same measure over *all* fragments of the repository.

mod lines;
mod measure;
mod names;
mod similar;
mod summary;

pub use measure::{DEPTHS, Measures, Share, recall_at};
pub use summary::{MeasureMean, QualityMeans, RetrievalQuality, TaskQuality};

use lines::StrippedLines;
use names::Names;

/// Target of one task, ready to be compared with fragments; `F` returns the identifiers of a text in order, as slices of the
/// text.
#[derive(Debug, Clone)]
pub struct RetrievalTarget<'a, F> {
    identifiers: F,
    names: Names<'a>,
    lines: StrippedLines,
}

impl<'a, F: Fn(&str) -> Vec<&str>> RetrievalTarget<'a, F> {
    /// Parses a target. `in_file` contains the parts of the hole's own file that the model sees (left and right context): names
    /// in them are not *new*.
    pub fn new(target: &'a str, in_file: &[&str], identifiers: F) -> Self {
        Self {
            names: Names::from_target(target, in_file, &identifiers),
            lines: StrippedLines::new(target),
            identifiers,
        }
    }

    /// Compares fragments with the target: best first, as the prompt would show them, not commented out. [`Measures::beside`]
    /// adds the values for the ground-truth query.
    ///
    /// ```
    /// use repoformer_evaluate::quality::RetrievalTarget;
    /// # fn identifiers(text: &str) -> Vec<&str> {
    /// #     text.split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|name| !name.is_empty()).collect()
    /// # }
    /// let wanted = RetrievalTarget::new("x = load(path)\n", &["def f(path):\n", ""], identifiers);
    /// let measures = wanted.measure(&["y = 1\nz = load(file)", "path"]);
    /// assert_eq!(measures.get("id_recall"), Some(2.0 / 3.0)); // load and path of x, load, path
    /// assert_eq!(measures.get("new_id_recall"), Some(0.5)); // load of x, load
    /// assert_eq!(measures.get("api_containment"), Some(1.0)); // load(
    /// assert_eq!(measures.get("verbatim"), Some(0.0));
    /// // "z = load(file)" becomes the target by five substitutions in 14 characters: z, f, i, l and e.
    /// assert_eq!(measures.get("es"), Some(1.0 - 5.0 / 14.0));
    /// assert_eq!(measures.get("gt_recall@5"), None);
    /// ```
    pub fn measure(&self, fragments: &[&str]) -> Measures {
        let seen = fragments.iter().flat_map(|text| (self.identifiers)(text));
        let [identifiers, new_identifiers, apis, new_apis] = self.names.shares(seen);
        let fragments: Vec<StrippedLines> =
            fragments.iter().map(|text| StrippedLines::new(text)).collect();
        let lines = self.lines.share_among(&fragments);
        let rank = fragments.iter().position(|f| f.holds(&self.lines));
        let rank = rank.filter(|_| lines.of > 0).map(|place| place + 1);
        let best = || similar::best(&self.lines, &fragments);
        let edit_similarity = (lines.of > 0).then(|| rank.map_or_else(best, |_| 1.0));
        Measures {
            identifiers,
            new_identifiers,
            apis,
            new_apis,
            lines,
            rank,
            edit_similarity,
            definitions: Share::default(),
            ground_truth_recall: [None; DEPTHS.len()],
        }
    }
}

#[cfg(test)]
mod tests;
