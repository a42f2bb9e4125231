//! Measures: names, definitions, and the values of one task.

/// Depths k at which the documents of a query are compared with the documents of the ground-truth query.
pub const DEPTHS: [usize; 3] = [1, 5, 10];

/// Number of wanted items that were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// Number found.
    pub found: usize,
    /// Number wanted.
    pub of: usize,
}

impl Share {
    /// Returns the fraction found; `None` if nothing was wanted.
    ///
    /// ```
    /// use repoformer_evaluate::quality::Share;
    /// assert_eq!(Share { found: 1, of: 4 }.recall(), Some(0.25));
    /// assert_eq!(Share { found: 0, of: 0 }.recall(), None);
    /// ```
    pub fn recall(self) -> Option<f64> {
        (self.of > 0).then(|| self.found as f64 / self.of as f64)
    }

    /// Returns 1 if all were found, else 0; `None` if nothing was wanted.
    pub fn containment(self) -> Option<f64> {
        self.recall().map(|_| f64::from(self.found == self.of))
    }
}

/// Values of one task's fragments; by default, the values for a target for which all are undefined.
///
/// *Identifiers* are found by the caller's function (CrossCodeEval's identifier match: words outside string literals, without
/// keywords), and each is counted once. An *API name* is an identifier followed by `(` on its line, so the name of a definition
/// is one too. A *new* name is not in the part of the hole's own file that the model sees: only retrieval can show it. *Lines*
/// are stripped and not blank, as in RepoCoder's scores.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Measures {
    /// Target's identifiers that are identifiers of the fragments.
    pub identifiers: Share,
    /// Target's new identifiers that are identifiers of the fragments.
    pub new_identifiers: Share,
    /// Target's API names that are identifiers of the fragments.
    pub apis: Share,
    /// Target's new API names that are identifiers of the fragments.
    pub new_apis: Share,
    /// Target's lines that are a line of some fragment; repeated lines count each time.
    pub lines: Share,
    /// 1-based rank of the first fragment that contains the target's lines one after another.
    pub rank: Option<usize>,
    /// Highest edit similarity (RepoCoder's: `1 − lev / max`) between the target and a run of the same number of lines in one
    /// fragment; a fragment of fewer lines is compared as a whole. `None` for a target without a line.
    pub edit_similarity: Option<f64>,
    /// Definitions that the target calls whose first line is shown.
    pub definitions: Share,
    /// [`recall_at`] for each of [`DEPTHS`]; `None` without ground-truth documents.
    pub ground_truth_recall: [Option<f64>; DEPTHS.len()],
}

impl Measures {
    /// Adds the comparison of the retrieved documents, best first, with the documents that the ground-truth query retrieves.
    ///
    /// ```
    /// use repoformer_evaluate::quality::Measures;
    /// let measures = Measures::default().beside(&["a", "b", "c"], &["a", "c", "d"]);
    /// assert_eq!(measures.get("gt_recall@1"), Some(1.0)); // a
    /// assert_eq!(measures.get("gt_recall@5"), Some(2.0 / 3.0)); // a and c of a, c, d
    /// ```
    #[must_use]
    pub fn beside<D: PartialEq>(self, found: &[D], ground_truth: &[D]) -> Self {
        Self { ground_truth_recall: DEPTHS.map(|k| recall_at(k, found, ground_truth)), ..self }
    }

    /// Returns every measure by name, in the order of tables: between 0 and 1, higher being better; `None` if it is undefined.
    ///
    /// A *recall* is undefined if nothing is wanted, and so is a *containment*, which is 1 if all wanted items were found.
    /// `verbatim` is 1 if some fragment contains the target verbatim. `rr` is 1 / rank of the first such fragment, or 0 without
    /// one: its mean is the mean reciprocal rank (E. M. Voorhees, *The TREC-8 question answering track report*, 1999).
    pub fn values(&self) -> [(&'static str, Option<f64>); 16] {
        let of_lines = |value| (self.lines.of > 0).then_some(value);
        let [at_1, at_5, at_10] = self.ground_truth_recall;
        [
            ("id_recall", self.identifiers.recall()),
            ("id_containment", self.identifiers.containment()),
            ("new_id_recall", self.new_identifiers.recall()),
            ("new_id_containment", self.new_identifiers.containment()),
            ("api_recall", self.apis.recall()),
            ("api_containment", self.apis.containment()),
            ("new_api_recall", self.new_apis.recall()),
            ("new_api_containment", self.new_apis.containment()),
            ("line_recall", self.lines.recall()),
            ("verbatim", of_lines(f64::from(self.rank.is_some()))),
            ("rr", of_lines(self.rank.map_or(0.0, |rank| 1.0 / rank as f64))),
            ("es", self.edit_similarity),
            ("definition_recall", self.definitions.recall()),
            ("gt_recall@1", at_1),
            ("gt_recall@5", at_5),
            ("gt_recall@10", at_10),
        ]
    }

    /// Returns the value of a measure by its name in [`values`](Self::values), unless it is undefined.
    pub fn get(&self, measure: &str) -> Option<f64> {
        self.values().into_iter().find(|(name, _)| *name == measure)?.1
    }
}

/// Returns the recall at k. The relevant documents are the first k of the ground-truth query; the recall is the fraction of
/// them among the first k retrieved. Returns `None` without relevant documents (or if k is 0). Both lists are best first and
/// without duplicates.
///
/// ```
/// use repoformer_evaluate::quality::recall_at;
/// assert_eq!(recall_at(2, &[7, 1, 2], &[1, 2, 7]), Some(0.5)); // 1 of 1, 2
/// assert_eq!(recall_at(10, &[7, 1], &[1, 2, 7]), Some(2.0 / 3.0));
/// assert_eq!(recall_at(10, &[7], &[]), None);
/// ```
pub fn recall_at<D: PartialEq>(k: usize, found: &[D], ground_truth: &[D]) -> Option<f64> {
    let first = |documents: &[D]| documents.len().min(k);
    let (found, wanted) = (&found[..first(found)], &ground_truth[..first(ground_truth)]);
    // At most ten of each: searching the list is faster than a set.
    let held = wanted.iter().filter(|document| found.contains(document));
    let (found, of) = (held.count(), wanted.len());
    Share { found, of }.recall()
}
