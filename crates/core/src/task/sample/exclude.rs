//! Files and lines from which no hole is drawn. They stay in their repository: retrieval finds them, and prompts show them.

use glob::{MatchOptions, Pattern};
use repoformer_store::error::{Error, Result};

use crate::repository::corpus::{Repository, is_test_file};
use crate::repository::fragment::path_in_repository;

/// Code from which no hole is drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exclusions {
    /// Patterns of files and folders.
    pub paths: Vec<PathPattern>,
    /// Whether to exclude test files, recognized by the names that test runners look for.
    pub tests: bool,
    /// Whether to exclude rows of data tables: lines of only literals in a list, map or array of more than ten lines.
    pub tables: bool,
}

impl Exclusions {
    /// Returns true if a file is excluded; its path begins with the repository.
    pub fn hold(&self, path: &str) -> bool {
        let path = path_in_repository(path);
        (self.tests && is_test_file(path)) || self.paths.iter().any(|pattern| pattern.matches(path))
    }

    /// Returns, for each pattern, whether it matches a file of a repository.
    pub fn match_files(&self, repository: &Repository) -> Vec<bool> {
        let paths = || repository.files.iter().map(|file| path_in_repository(&file.path));
        self.paths.iter().map(|pattern| paths().any(|path| pattern.matches(path))).collect()
    }

    /// Adds the matches in another repository's files.
    pub fn also_matched(matched: &mut Vec<bool>, more: &[bool]) {
        matched.resize(more.len().max(matched.len()), false);
        matched.iter_mut().zip(more).for_each(|(all, one)| *all |= one);
    }
}

/// Pattern of files and folders, such as `*_pb2.py` and `docs/**/conf.py`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    pattern: Pattern,
    /// Whether the pattern is compared only with the name of each file and folder.
    is_name: bool,
}

impl PathPattern {
    /// Parses a pattern. A pattern without `/` is the name of files and folders anywhere in a repository; one with `/` is a
    /// path from the repository's root. `*` stands for any text without `/`, `?` for one character, `[ab]` for one of these
    /// characters, and `**` for any folders. A folder stands for everything in it.
    ///
    /// ```
    /// use repoformer_core::task::sample::PathPattern;
    /// let matches = |pattern: &str, path: &str| PathPattern::parse(pattern).unwrap().matches(path);
    /// assert!(matches("*_pb2.py", "a/b/x_pb2.py") && matches("docs", "a/docs/conf.py"));
    /// assert!(matches("docs/", "docs/conf.py") && !matches("/docs", "a/docs/conf.py"));
    /// assert!(matches("a/**/c.py", "a/b/b/c.py") && !matches("a/*.py", "a/b/c.py"));
    /// ```
    ///
    /// # Errors
    /// The pattern is empty or invalid.
    pub fn parse(text: &str) -> Result<Self> {
        let refused = |reason: String| Error::parameter("pattern", format!("'{text}': {reason}"));
        let path = text.trim_matches('/');
        if path.is_empty() {
            return Err(refused("names no file".into()));
        }
        let pattern = Pattern::new(path).map_err(|error| refused(error.to_string()))?;
        Ok(Self {
            text: text.to_owned(),
            pattern,
            is_name: !text.trim_end_matches('/').contains('/'),
        })
    }

    /// Returns the pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the pattern matches a file, or a folder that contains it, by the file's path in the repository.
    pub fn matches(&self, path: &str) -> bool {
        const OPTIONS: MatchOptions = MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        let matches = |text: &str| self.pattern.matches_with(text, OPTIONS);
        if self.is_name {
            return path.split('/').any(matches);
        }
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.map(|end| &path[..end]).any(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_excluded_by_name_by_path_and_as_tests() {
        let exclusions = |paths: &[&str], tests| Exclusions {
            paths: paths.iter().map(|path| PathPattern::parse(path).unwrap()).collect(),
            tests,
            tables: false,
        };
        for (paths, tests, path, wanted) in [
            (&[][..], false, "r/tests/a.py", false),
            (&[][..], true, "r/tests/a.py", true),
            (&[][..], true, "tests/a.py", false),
            (&["tests"][..], false, "r/src/tests/a.py", true),
            (&["tests/"][..], false, "r/src/tests/a.py", true),
            (&["/tests"][..], false, "r/src/tests/a.py", false),
            (&["src/tests"][..], false, "r/src/tests/b/a.py", true),
            (&["src/tests/*.py"][..], false, "r/src/tests/b/a.py", false),
            (&["src/**/a.py"][..], false, "r/src/a.py", true),
            (&["test"][..], false, "r/tests/a.py", false),
            (&["r"][..], false, "r/a.py", false),
            (&["x.py", "[ab].py"][..], false, "r/b.py", true),
            (&["A.py"][..], false, "r/a.py", false),
        ] {
            assert_eq!(exclusions(paths, tests).hold(path), wanted, "{paths:?} {tests} {path}");
        }
        for text in ["", "/", "a**", "[a"] {
            let error = PathPattern::parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("'{text}'")), "{error}");
        }
    }
}
