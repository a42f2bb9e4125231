//! The measures: their names, their definitions, and one task's values.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The depths k at which a query's documents are compared with those of the ground-truth query.
pub const DEPTHS: [usize; 3] = [1, 5, 10];

/// One value of a task's retrieval, between 0 and 1 where more is better, or undefined.
///
/// *Identifiers* are what the caller's function gives (CrossCodeEval's identifier match: word runs outside string literals that
/// are no keyword), each counted once; an *API name* is an identifier that `(` follows on its line, so a definition's
/// name is one too. A *new* name is one that the hole's own file does not show the model. *Lines* are stripped and blank
/// ones dropped, as RepoCoder's scores have them.
///
/// ```
/// use repoformer::evaluate::quality::Measure;
/// let measure: Measure = "gt_recall@5".parse()?;
/// assert_eq!(measure, Measure::GroundTruthRecall(5));
/// assert_eq!(measure.to_string(), "gt_recall@5");
/// # Ok::<(), repoformer::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Measure {
    /// Share of the target's identifiers that some fragment holds. Undefined for a target without one.
    IdentifierRecall,
    /// Whether the fragments hold all of them.
    IdentifierContainment,
    /// The same share of the target's new identifiers: what only retrieval can bring. Undefined where none is new.
    NewIdentifierRecall,
    /// Whether the fragments hold all new identifiers.
    NewIdentifierContainment,
    /// Share of the target's API names that are among the fragments' identifiers. Undefined for a target without a call.
    ApiRecall,
    /// Whether all API names are.
    ApiContainment,
    /// The same share of the target's new API names. Undefined where none is new.
    NewApiRecall,
    /// Whether all new API names are.
    NewApiContainment,
    /// Share of the target's lines, each counted as often as it stands there, that are a line of some fragment.
    /// Undefined for a target without a line, as are the three that follow.
    LineRecall,
    /// Whether the target's lines stand in one fragment, one after the other.
    Verbatim,
    /// 1 / rank of the first fragment that holds the target verbatim, 0 where none does: its mean is the mean reciprocal
    /// rank (E. M. Voorhees, *The TREC-8 question answering track report*, 1999).
    ReciprocalRank,
    /// The highest edit similarity (RepoCoder's: `1 − lev / max`) between the target and a run of as many lines of one
    /// fragment; a fragment of fewer lines is compared whole.
    EditSimilarity,
    /// Share of the ground-truth query's first k documents that are among this query's first k: [`recall_at`]. Undefined
    /// where there is no ground-truth query, or it found nothing. k is one of [`DEPTHS`].
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

impl FromStr for Measure {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let named = |measure: &Self| measure.to_string() == name;
        Self::ALL.into_iter().find(named).ok_or_else(|| {
            let names = Self::ALL.map(|measure| measure.to_string()).join(", ");
            Error::Parameter {
                name: "measure",
                reason: format!("'{name}' is not one of {names}"),
            }
        })
    }
}

/// How many of some wanted things were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// How many were found.
    pub found: usize,
    /// How many were wanted.
    pub of: usize,
}

impl Share {
    /// The share found; none where nothing was wanted.
    ///
    /// ```
    /// use repoformer::evaluate::quality::Share;
    /// assert_eq!(Share { found: 1, of: 4 }.recall(), Some(0.25));
    /// assert_eq!(Share { found: 0, of: 0 }.recall(), None);
    /// ```
    pub fn recall(self) -> Option<f64> {
        (self.of > 0).then(|| self.found as f64 / self.of as f64)
    }

    /// 1 where all was found, else 0; none where nothing was wanted.
    pub fn containment(self) -> Option<f64> {
        self.recall().map(|_| yes_or_no(self.found == self.of))
    }
}

fn yes_or_no(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// What one task's fragments bring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measures {
    /// The target's identifiers among the fragments'.
    pub identifiers: Share,
    /// Those of them that the hole's own file does not show.
    pub new_identifiers: Share,
    /// The target's API names among the fragments' identifiers.
    pub apis: Share,
    /// Those of them that the hole's own file does not show.
    pub new_apis: Share,
    /// The target's lines among the fragments'.
    pub lines: Share,
    /// Which fragment, counted from 1, is the first to hold the target verbatim.
    pub rank: Option<usize>,
    /// The best edit similarity; none for a target without a line.
    pub edit_similarity: Option<f64>,
    /// [`recall_at`] each of [`DEPTHS`]; none where there is nothing to compare with.
    pub ground_truth_recall: [Option<f64>; DEPTHS.len()],
}

impl Measures {
    /// With the comparison of the documents that were found, best first, with those that the ground-truth query found.
    ///
    /// ```
    /// use repoformer::evaluate::quality::{Measure, Measures};
    /// let measures = Measures::default().beside(&["a", "b", "c"], &["a", "c", "d"]);
    /// assert_eq!(measures.get(Measure::GroundTruthRecall(1)), Some(1.0)); // a
    /// assert_eq!(measures.get(Measure::GroundTruthRecall(5)), Some(2.0 / 3.0)); // a and c of a, c, d
    /// ```
    #[must_use]
    pub fn beside<D: PartialEq>(self, found: &[D], ground_truth: &[D]) -> Self {
        Self {
            ground_truth_recall: DEPTHS.map(|k| recall_at(k, found, ground_truth)),
            ..self
        }
    }

    /// One value between 0 and 1; none where it is undefined.
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
            Measure::Verbatim => of_lines(yes_or_no(self.rank.is_some())),
            Measure::ReciprocalRank => of_lines(self.rank.map_or(0.0, |rank| 1.0 / rank as f64)),
            Measure::EditSimilarity => self.edit_similarity,
            Measure::GroundTruthRecall(k) => {
                let place = DEPTHS.iter().position(|&depth| depth == k);
                place.and_then(|place| self.ground_truth_recall[place])
            }
        }
    }
}

impl Default for Measures {
    /// Of a target that wants nothing: every value is undefined.
    fn default() -> Self {
        Self {
            identifiers: Share::default(),
            new_identifiers: Share::default(),
            apis: Share::default(),
            new_apis: Share::default(),
            lines: Share::default(),
            rank: None,
            edit_similarity: None,
            ground_truth_recall: [None; DEPTHS.len()],
        }
    }
}

/// Recall at k with the ground-truth query's first k documents as the relevant ones: how many of them are among the first k
/// found. Where the ground-truth query has fewer, the share is of these; none where it has none (or k is 0).
/// Documents are named alike in both lists, best first, each once.
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
    // At most ten of each: a look through the list is quicker than a set.
    let held = wanted.iter().filter(|document| found.contains(document));
    let (found, of) = (held.count(), wanted.len());
    Share { found, of }.recall()
}
