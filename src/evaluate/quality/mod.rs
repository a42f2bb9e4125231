//! Retrieval quality without a model: how near what was retrieved comes to what stood in the hole.
//!
//! A model's edit similarity says whether a retriever helped *that model*. The measures here say what the retriever brought:
//! whether the target itself, its lines or its names are among the fragments, and whether they are the fragments that the
//! ground truth would have found. They need no prediction, so rankers and queries can be compared in seconds.
//!
//! - [`Wanted`] is one task's target, taken apart once; [`Wanted::measure`] holds a list of fragments against it.
//! - [`Measure`] names the values and says how each is defined; [`Measures::get`] gives them.
//! - [`recall_at`] compares the documents of a query with those of the ground-truth query.
//! - [`Quality`] is the means over a benchmark, by repository and over all, and the rows they come from.
//!
//! An upper bound for any ranker and any k is the same measure over *all* fragments of the repository.

mod lines;
mod measure;
mod names;
mod similar;
mod summary;

pub use measure::{DEPTHS, Measure, Measures, Share, recall_at};
pub use summary::{Mean, Quality, Summary, TaskQuality};

use lines::Stripped;
use names::Names;

/// One task's target, ready to be held against fragments; `F` gives a text's identifiers in order, as slices of it.
#[derive(Debug, Clone)]
pub struct Wanted<'a, F> {
    identifiers: F,
    names: Names<'a>,
    lines: Stripped,
}

impl<'a, F: Fn(&str) -> Vec<&str>> Wanted<'a, F> {
    /// Takes a target apart. `in_file` is what the model sees of the hole's own file, in as many parts as it has (left and
    /// right context): names in it are not *new*.
    pub fn new(target: &'a str, in_file: &[&str], identifiers: F) -> Self {
        Self {
            names: Names::of(target, in_file, &identifiers),
            lines: Stripped::new(target),
            identifiers,
        }
    }

    /// Holds fragments against the target: best first, as the prompt would show them, not commented.
    /// The values that compare with the ground-truth query are not known here: see [`Measures::beside`].
    ///
    /// ```
    /// use repoformer::evaluate::quality::{Measure, Wanted};
    /// # fn identifiers(text: &str) -> Vec<&str> {
    /// #     text.split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|name| !name.is_empty()).collect()
    /// # }
    /// let wanted = Wanted::new("x = load(path)\n", &["def f(path):\n", ""], identifiers);
    /// let measures = wanted.measure(&["y = 1\nz = load(file)", "path"]);
    /// assert_eq!(measures.get(Measure::IdentifierRecall), Some(2.0 / 3.0)); // load and path of x, load, path
    /// assert_eq!(measures.get(Measure::NewIdentifierRecall), Some(0.5)); // load of x, load
    /// assert_eq!(measures.get(Measure::ApiContainment), Some(1.0)); // load(
    /// assert_eq!(measures.get(Measure::Verbatim), Some(0.0));
    /// // "z = load(file)" becomes the target by five substitutions in 14 characters: z, f, i, l and e.
    /// assert_eq!(measures.get(Measure::EditSimilarity), Some(1.0 - 5.0 / 14.0));
    /// assert_eq!(measures.get(Measure::GroundTruthRecall(5)), None);
    /// ```
    pub fn measure(&self, fragments: &[&str]) -> Measures {
        let mut names = self.names.finder();
        for fragment in fragments {
            names.see(&(self.identifiers)(fragment));
        }
        let fragments: Vec<Stripped> = fragments.iter().map(|text| Stripped::new(text)).collect();
        let lines = self.lines.share_among(&fragments);
        let rank = fragments.iter().position(|f| f.holds(&self.lines));
        let rank = rank.filter(|_| lines.of > 0).map(|place| place + 1);
        let edit_similarity = (lines.of > 0).then(|| match rank {
            Some(_) => 1.0,
            None => similar::best(&self.lines, &fragments),
        });
        Measures {
            identifiers: names.identifiers(),
            new_identifiers: names.new_identifiers(),
            apis: names.apis(),
            new_apis: names.new_apis(),
            lines,
            rank,
            edit_similarity,
            ground_truth_recall: [None; DEPTHS.len()],
        }
    }
}

/// [`Wanted::new`] and [`Wanted::measure`] in one, for a target that is held against one list of fragments.
///
/// ```
/// use repoformer::evaluate::quality::{Measure, measure};
/// # fn identifiers(text: &str) -> Vec<&str> {
/// #     text.split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|name| !name.is_empty()).collect()
/// # }
/// let measures = measure("return x\n", &["def f(x):"], &["y", "if x:\n\n    return x"], identifiers);
/// assert_eq!(measures.get(Measure::ReciprocalRank), Some(0.5)); // the second fragment holds it
/// assert_eq!(measures.get(Measure::EditSimilarity), Some(1.0));
/// ```
pub fn measure<F: Fn(&str) -> Vec<&str>>(
    target: &str,
    in_file: &[&str],
    fragments: &[&str],
    identifiers: F,
) -> Measures {
    Wanted::new(target, in_file, identifiers).measure(fragments)
}

#[cfg(test)]
mod tests;
