//! Ranks the files of a repository by how much a file builds on them: personalised PageRank over references.
//!
//! A file refers to another if it calls functions that the other file defines. The weight of a reference is the square root of
//! the number of such calls, as in aider's map of a repository. A walk begins in the hole's own file, follows references with
//! probability 0.85, and otherwise begins again (Page et al. 1999; Haveliwala 2002). The own file refers to the files that
//! define the names in it, without the lines of the target; lines after the hole count only if the query includes any.

use super::definitions::DefinitionIndex;
use super::query::Query;
use crate::repository::fragment::RepoFragments;
use crate::task::Task;

/// Probability of following a reference.
const FOLLOWED: f64 = 0.85;
/// Number of steps of the walk; the remainder after them is below 0.85⁵⁰ ≈ 0.03 %.
const STEPS: usize = 50;
/// Amount by which the most visited file's prior exceeds 1. For other files, it is multiplied by the square root of their
/// visits relative to the most visited file's. The value was chosen on packages that no result in this project uses.
const WEIGHT: f64 = 0.2;

/// Files, and how strongly each refers to others.
#[derive(Debug)]
pub struct FileGraph<'a> {
    fragments: &'a RepoFragments,
    /// References of each file, by its number: the other files to which it refers, by number, each with its fraction of the
    /// references.
    references: Vec<Vec<(u32, f64)>>,
}

impl<'a> FileGraph<'a> {
    /// Computes the references from a repository's definitions.
    pub fn new(definitions: &DefinitionIndex<'_>, fragments: &'a RepoFragments) -> Self {
        let references = |file| shares(definitions.called_files(file));
        Self { fragments, references: (0..fragments.files.len()).map(references).collect() }
    }

    /// Returns the factors, at least 1, by which the scores of fragments are multiplied for a task.
    pub fn prior(&self, definitions: &DefinitionIndex<'_>, query: &Query, task: &Task) -> Vec<f64> {
        let Some(own) = definitions.file_of(task) else { return vec![1.0; self.fragments.len()] };
        let of_file = self.walk(own, &shares(definitions.named_files(query, task)));
        let others = of_file.iter().enumerate().filter(|(file, _)| *file != own);
        let most = others.map(|(_, time)| *time).fold(0.0, f64::max);
        let of_fragment = |fragment| {
            let files = self.fragments.places(fragment).map(|place| place.file as usize);
            let times = files.filter(|file| *file != own);
            let time = times.map(|file| of_file[file]).fold(0.0, f64::max);
            1.0 + if most > 0.0 { WEIGHT * (time / most).sqrt() } else { 0.0 }
        };
        (0..self.fragments.len()).map(of_fragment).collect()
    }

    /// Returns the fraction of time that a walk from a file spends in each file, if the starting file has these references.
    fn walk(&self, own: usize, own_references: &[(u32, f64)]) -> Vec<f64> {
        let mut time = vec![0.0; self.references.len()];
        time[own] = 1.0;
        for _ in 0..STEPS {
            let mut next = vec![0.0; time.len()];
            // A file without references leads back to the start.
            let mut back = 1.0;
            for (file, here) in time.iter().enumerate().filter(|(_, here)| **here > 0.0) {
                let references = if file == own { own_references } else { &self.references[file] };
                for (to, share) in references {
                    next[*to as usize] += FOLLOWED * here * share;
                    back -= FOLLOWED * here * share;
                }
            }
            next[own] += back;
            time = next;
        }
        time
    }
}

/// Converts numbers of references to fractions.
fn shares(counts: Vec<(u32, u32)>) -> Vec<(u32, f64)> {
    let weighted = counts.into_iter().map(|(file, count)| (file, f64::from(count).sqrt()));
    let weighted: Vec<(u32, f64)> = weighted.collect();
    let all: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    weighted.into_iter().map(|(file, weight)| (file, weight / all)).collect()
}

#[cfg(test)]
mod tests;
