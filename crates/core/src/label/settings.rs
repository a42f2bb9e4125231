//! Settings for drawing instances: limits, checks, and differences from the defaults.

use std::ops::RangeInclusive;

use repoformer_store::error::{Error, Result};
use repoformer_text::language::Language;
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use super::collect::Repositories;
use super::draw::{CHUNK_LINES, Drawing};
use super::filter::Filter;

/// Setting that differs from its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawingDifference {
    /// Name of the setting.
    pub name: &'static str,
    /// Value of the setting.
    pub value: String,
    /// Default value.
    pub usual: String,
}

/// Returns the settings whose values differ from the defaults. Both lists must have the same names.
fn differences<const N: usize>(
    settings: [(&'static str, String); N],
    usual: [(&'static str, String); N],
) -> Vec<DrawingDifference> {
    let pairs = settings.into_iter().zip(usual);
    let differences = pairs.filter(|((_, value), (_, usual))| value != usual);
    differences
        .map(|((name, value), (_, usual))| DrawingDifference { name, value, usual })
        .collect()
}

impl Drawing {
    /// Checks that all numbers are within their ranges.
    ///
    /// # Errors
    /// A number is outside its range.
    pub fn check(&self) -> Result<()> {
        let refused = |choice: UserChoice, range: String, hint: &str| {
            Err(Error::from_refusal(message!["the ", choice, " must be ", range], hint))
        };
        if !(self.ratio > 0.0 && self.ratio <= 1.0) {
            let range = "more than 0 and at most 1".to_owned();
            return refused(UserChoice::InstanceRatio, range, "the paper uses 0.2");
        }
        if self.max_candidates == Some(0) {
            let hint = "omit it to cluster all candidates";
            return refused(UserChoice::CandidateLimit, "at least 1".to_owned(), hint);
        }
        if !(self.poisson_mean > 0.0 && self.poisson_mean <= CHUNK_LINES as f64) {
            let hint =
                format!("chunks have at most {CHUNK_LINES} lines; the paper uses a mean of 3");
            let range = format!("more than 0 and at most {CHUNK_LINES}");
            return refused(UserChoice::PoissonMean, range, &hint);
        }
        if self.fragments == 0 {
            let hint = "the paper uses 3";
            return refused(UserChoice::FragmentCount, "at least 1".to_owned(), hint);
        }
        Ok(())
    }

    /// Returns the settings that differ from the defaults. Only settings that profiles can set are compared.
    pub fn differences(&self, usual: &Self) -> Vec<DrawingDifference> {
        differences(self.parameters(), usual.parameters())
    }

    fn parameters(&self) -> [(&'static str, String); 6] {
        let lines = &self.function_lines;
        [
            ("ratio", self.ratio.to_string()),
            ("max-candidates", self.max_candidates.map_or("all".into(), |n| n.to_string())),
            ("poisson-mean", self.poisson_mean.to_string()),
            ("function-lines", format!("{}-{}", lines.start(), lines.end())),
            ("counted-lines", self.counted.to_string()),
            ("fragments", self.fragments.to_string()),
        ]
    }
}

impl Filter {
    /// Returns the limits that differ from the defaults.
    pub fn differences(&self, usual: &Self) -> Vec<DrawingDifference> {
        differences(self.parameters(), usual.parameters())
    }

    fn parameters(&self) -> [(&'static str, String); 4] {
        [
            ("min-files", self.files.to_string()),
            ("min-lines", self.lines.to_string()),
            ("min-imports", self.imports.to_string()),
            ("min-local-imports", self.local_imports.to_string()),
        ]
    }
}

/// Limits of a [`Filter`] that replace the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FilterLimits {
    /// Number of files of the language.
    pub files: Option<usize>,
    /// Total number of lines of these files.
    pub lines: Option<usize>,
    /// Mean number of modules that a file imports.
    pub imports: Option<f64>,
    /// Mean number of the repository's own modules that a file imports.
    pub local_imports: Option<f64>,
}

impl FilterLimits {
    /// Returns the paper's filter with these limits.
    ///
    /// # Errors
    /// Imports are limited but not counted (they are counted in Python files, and in raw records of any language), or a limit
    /// is less than 0.
    pub fn filter(&self, language: Language, from: &Repositories) -> Result<Filter> {
        let imports = [self.imports, self.local_imports];
        let may_count = language == Language::Python || matches!(from, Repositories::Raw(..));
        if !may_count && imports.iter().any(Option::is_some) {
            return Err(Error::from_refusal(
                format!("imports can be counted only in Python, not in {language}"),
                message![
                    "leave out the ",
                    UserChoice::ImportLimits,
                    "; the ",
                    UserChoice::SizeLimits,
                    " work for all languages"
                ],
            ));
        }
        if !imports.iter().flatten().all(|least| *least >= 0.0 && least.is_finite()) {
            return Err(Error::from_refusal(
                message!["the ", UserChoice::ImportLimits, " must be at least 0"],
                "the paper uses 3 and 2",
            ));
        }
        let usual = Filter::paper(language);
        Ok(Filter {
            files: self.files.unwrap_or(usual.files),
            lines: self.lines.unwrap_or(usual.lines),
            imports: self.imports.unwrap_or(usual.imports),
            local_imports: self.local_imports.unwrap_or(usual.local_imports),
        })
    }
}

/// Parses a range such as `3-30`: from 3 to 30 lines of a function.
///
/// # Errors
/// The text is not a range, or the range is empty or begins below 1.
pub fn parse_function_lines(text: &str) -> Result<RangeInclusive<usize>> {
    let ends = text.split_once('-');
    let numbers = ends.and_then(|(least, most)| Some((least.parse().ok()?, most.parse().ok()?)));
    match numbers {
        Some((least @ 1.., most)) if least <= most => Ok(least..=most),
        _ => Err(Error::from_refusal(
            message!["the ", UserChoice::FunctionLines, format!(" cannot be '{text}'")],
            "write a range such as 3-30 (from 3 to 30 lines)",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::InstanceKind;
    use crate::repository::corpus::Walk;

    #[test]
    fn numbers_outside_of_their_range_are_refused() {
        let usual = Drawing::paper(InstanceKind::Chunk);
        usual.check().unwrap();
        Drawing { ratio: 1.0, poisson_mean: 10.0, max_candidates: Some(1), ..usual.clone() }
            .check()
            .unwrap();
        for (wrong, words) in [
            (Drawing { ratio: 0.0, ..usual.clone() }, "ratio of instances"),
            (Drawing { ratio: 1.1, ..usual.clone() }, "ratio of instances"),
            (Drawing { ratio: f64::NAN, ..usual.clone() }, "ratio of instances"),
            (Drawing { max_candidates: Some(0), ..usual.clone() }, "limit of candidates"),
            (Drawing { poisson_mean: 10.5, ..usual.clone() }, "more than 0 and at most 10"),
            (Drawing { fragments: 0, ..usual.clone() }, "number of fragments"),
        ] {
            let error = wrong.check().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn only_what_differs_is_named() {
        let paper = Drawing::paper(InstanceKind::Function);
        assert_eq!(paper.differences(&paper), []);
        let named = |differences: Vec<DrawingDifference>| {
            let each = differences.into_iter();
            each.map(|one| format!("{} {} {}", one.name, one.value, one.usual)).collect::<Vec<_>>()
        };
        assert_eq!(
            named(Drawing::release(InstanceKind::Function).differences(&paper)),
            ["ratio 0.1 0.2", "max-candidates 1000 all", "counted-lines body function"]
        );
        let lines = Drawing { function_lines: 1..=9, ..paper.clone() };
        assert_eq!(named(lines.differences(&paper)), ["function-lines 1-9 3-30"]);
        let python = Filter::paper(Language::Python);
        let filter = Filter { local_imports: 0.5, ..python };
        assert_eq!(named(filter.differences(&python)), ["min-local-imports 0.5 2"]);
    }

    #[test]
    fn limits_replace_those_of_the_paper() {
        let folders = Repositories::Folders("r".into(), Vec::new(), Walk::default());
        let raw = Repositories::Raw("r.jsonl".into(), Vec::new());
        let (python, java) = (Language::Python, Language::Java);
        let limits = FilterLimits { files: Some(7), imports: Some(0.5), ..Default::default() };
        let filter = limits.filter(python, &folders).unwrap();
        assert_eq!(filter, Filter { files: 7, imports: 0.5, ..Filter::paper(python) });
        // Imports are counted in Python files and stated in raw records only.
        assert!(limits.filter(java, &folders).is_err());
        assert_eq!(limits.filter(java, &raw).unwrap().imports, 0.5);
        let sizes = FilterLimits { lines: Some(9), ..Default::default() };
        assert_eq!(sizes.filter(java, &folders).unwrap().lines, 9);
        for imports in [-1.0, f64::NAN, f64::INFINITY] {
            let wrong = FilterLimits { local_imports: Some(imports), ..Default::default() };
            assert!(wrong.filter(python, &folders).is_err(), "{imports}");
        }
    }

    #[test]
    fn lines_of_a_function_are_a_range_from_one() {
        assert_eq!(parse_function_lines("3-30").unwrap(), 3..=30);
        assert_eq!(parse_function_lines("4-4").unwrap(), 4..=4);
        for wrong in ["", "3", "30-3", "0-3", "3-", "a-b", "3-30-40"] {
            assert!(parse_function_lines(wrong).is_err(), "{wrong}");
        }
    }
}
