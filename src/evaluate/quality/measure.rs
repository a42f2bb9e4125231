//! Measures: names, definitions, and the values of one task.

use std::fmt;

/// Depths k at which a query's documents are compared with those of the ground-truth query.
pub const DEPTHS: [usize; 3] = [1, 5, 10];

/// One value of a task's retrieval, between 0 and 1, higher being better, or undefined.
///
/// *Identifiers* are those of the caller's function (CrossCodeEval's identifier match: words outside string literals, without
/// keywords), each counted once. An *API name* is an identifier followed by `(` on its line, so the name of a definition is one
/// too. A *new* name is not in what the model sees of the hole's own file. *Lines* are stripped and not blank, as in RepoCoder's
/// scores.
///
/// ```
/// use repoformer::evaluate::quality::Measure;
/// assert_eq!(Measure::GroundTruthRecall(5).to_string(), "gt_recall@5");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Measure {
    /// Share of the target's identifiers that are in some fragment. Undefined for a target without identifiers.
    IdentifierRecall,
    /// Whether all identifiers are in the fragments.
    IdentifierContainment,
    /// Share of the target's new identifiers, which only retrieval can show. Undefined if none is new.
    NewIdentifierRecall,
    /// Whether all new identifiers are in the fragments.
    NewIdentifierContainment,
    /// Share of the target's API names that are among the fragments' identifiers. Undefined for a target without a call.
    ApiRecall,
    /// Whether all API names are in the fragments.
    ApiContainment,
    /// Share of the target's new API names. Undefined if none is new.
    NewApiRecall,
    /// Whether all new API names are in the fragments.
    NewApiContainment,
    /// Share of the target's lines, repeated lines counted each time, that are a line of some fragment.
    /// Undefined for a target without a line, as are the next three.
    LineRecall,
    /// Whether one fragment has the target's lines one after the other.
    Verbatim,
    /// 1 / rank of the first fragment that has the target verbatim, 0 if none has: its mean is the mean reciprocal rank (E. M. Voorhees, *The TREC-8 question answering track report*, 1999).
    ReciprocalRank,
    /// The highest edit similarity (RepoCoder's: `1 − lev / max`) between the target and a run of as many lines of one
    /// fragment; a fragment of fewer lines is compared whole.
    EditSimilarity,
    /// Share of the ground-truth query's first k documents that are among this query's first k: [`recall_at`]. Undefined
    /// if there is no ground-truth query, or it found nothing. k is one of [`DEPTHS`].
    GroundTruthRecall(usize),
}

impl Measure {
    /// Every measure, in the order of tables.
    pub const ALL: [Self; 15] = [
        Self::IdentifierRecall,
        Self::IdentifierContainment,
        Self::NewIdentifierRecall,
        Self::NewIdentifierContainment,
        Self::ApiRecall,
        Self::ApiContainment,
        Self::NewApiRecall,
        Self::NewApiContainment,
        Self::LineRecall,
        Self::Verbatim,
        Self::ReciprocalRank,
        Self::EditSimilarity,
        Self::GroundTruthRecall(DEPTHS[0]),
        Self::GroundTruthRecall(DEPTHS[1]),
        Self::GroundTruthRecall(DEPTHS[2]),
    ];
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::IdentifierRecall => "id_recall",
            Self::IdentifierContainment => "id_containment",
            Self::NewIdentifierRecall => "new_id_recall",
            Self::NewIdentifierContainment => "new_id_containment",
            Self::ApiRecall => "api_recall",
            Self::ApiContainment => "api_containment",
            Self::NewApiRecall => "new_api_recall",
            Self::NewApiContainment => "new_api_containment",
            Self::LineRecall => "line_recall",
            Self::Verbatim => "verbatim",
            Self::ReciprocalRank => "rr",
            Self::EditSimilarity => "es",
            Self::GroundTruthRecall(k) => return f.pad(&format!("gt_recall@{k}")),
        })
    }
}

/// Number of wanted items that were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// Number found.
    pub found: usize,
    /// Number wanted.
    pub of: usize,
}

impl Share {
    /// Share found; `None` if nothing was wanted.
    ///
    /// ```
    /// use repoformer::evaluate::quality::Share;
    /// assert_eq!(Share { found: 1, of: 4 }.recall(), Some(0.25));
    /// assert_eq!(Share { found: 0, of: 0 }.recall(), None);
    /// ```
    pub fn recall(self) -> Option<f64> {
        (self.of > 0).then(|| self.found as f64 / self.of as f64)
    }

    /// 1 if all were found, else 0; `None` if nothing was wanted.
    pub fn containment(self) -> Option<f64> {
        self.recall().map(|_| f64::from(self.found == self.of))
    }
}

/// Values of one task's fragments; by default, those of a target for which all are undefined.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Measures {
    /// The target's identifiers among the fragments'.
    pub identifiers: Share,
    /// The target's new identifiers among the fragments'.
    pub new_identifiers: Share,
    /// The target's API names among the fragments' identifiers.
    pub apis: Share,
    /// The target's new API names among the fragments' identifiers.
    pub new_apis: Share,
    /// The target's lines among the fragments'.
    pub lines: Share,
    /// 1-based rank of the first fragment that has the target verbatim.
    pub rank: Option<usize>,
    /// Best edit similarity; `None` for a target without a line.
    pub edit_similarity: Option<f64>,
    /// [`recall_at`] each of [`DEPTHS`]; `None` without ground-truth documents.
    pub ground_truth_recall: [Option<f64>; DEPTHS.len()],
}

impl Measures {
    /// Adds the comparison of the documents found, best first, with those that the ground-truth query found.
    ///
    /// ```
    /// use repoformer::evaluate::quality::{Measure, Measures};
    /// let measures = Measures::default().beside(&["a", "b", "c"], &["a", "c", "d"]);
    /// assert_eq!(measures.get(Measure::GroundTruthRecall(1)), Some(1.0)); // a
    /// assert_eq!(measures.get(Measure::GroundTruthRecall(5)), Some(2.0 / 3.0)); // a and c of a, c, d
    /// ```
    #[must_use]
    pub fn beside<D: PartialEq>(self, found: &[D], ground_truth: &[D]) -> Self {
        Self { ground_truth_recall: DEPTHS.map(|k| recall_at(k, found, ground_truth)), ..self }
    }

    /// Returns a value between 0 and 1; `None` if it is undefined.
    pub fn get(&self, measure: Measure) -> Option<f64> {
        let of_lines = |value| (self.lines.of > 0).then_some(value);
        match measure {
            Measure::IdentifierRecall => self.identifiers.recall(),
            Measure::IdentifierContainment => self.identifiers.containment(),
            Measure::NewIdentifierRecall => self.new_identifiers.recall(),
            Measure::NewIdentifierContainment => self.new_identifiers.containment(),
            Measure::ApiRecall => self.apis.recall(),
            Measure::ApiContainment => self.apis.containment(),
            Measure::NewApiRecall => self.new_apis.recall(),
            Measure::NewApiContainment => self.new_apis.containment(),
            Measure::LineRecall => self.lines.recall(),
            Measure::Verbatim => of_lines(f64::from(self.rank.is_some())),
            Measure::ReciprocalRank => of_lines(self.rank.map_or(0.0, |rank| 1.0 / rank as f64)),
            Measure::EditSimilarity => self.edit_similarity,
            Measure::GroundTruthRecall(k) => {
                let place = DEPTHS.iter().position(|&depth| depth == k);
                place.and_then(|place| self.ground_truth_recall[place])
            }
        }
    }
}

/// Recall at k, where the relevant documents are the first k of the ground-truth query: the share of them among the first k
/// found. `None` without relevant documents (or if k is 0). Both lists are best first and without duplicates.
///
/// ```
/// use repoformer::evaluate::quality::recall_at;
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
