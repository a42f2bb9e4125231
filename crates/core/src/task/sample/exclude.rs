//! Files and lines that no hole is drawn from. They stay in their repository: retrieval finds them, and prompts show them.

use glob::{MatchOptions, Pattern};
use repoformer_store::error::{Error, Result};

use crate::repository::corpus::{Repository, is_test_file};
use crate::repository::fragment::path_in_repository;

/// Where no hole is drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exclusions {
    /// Files and folders.
    pub paths: Vec<PathPattern>,
    /// Test files, by the names that runners look for.
    pub tests: bool,
    /// Rows of data tables: lines of nothing but literals in a list, map or array of more than ten lines.
    pub tables: bool,
}

impl Exclusions {
    /// Whether a file of a repository is excluded; its path begins with the repository.
    pub fn hold(&self, path: &str) -> bool {
        let path = path_in_repository(path);
        (self.tests && is_test_file(path)) || self.paths.iter().any(|pattern| pattern.matches(path))
    }

    /// Says of each pattern whether it matches a file of a repository.
    pub fn match_files(&self, repository: &Repository) -> Vec<bool> {
        let paths = || repository.files.iter().map(|file| path_in_repository(&file.path));
        self.paths.iter().map(|pattern| paths().any(|path| pattern.matches(path))).collect()
    }

    /// Adds what another repository's files match.
    pub fn also_matched(matched: &mut Vec<bool>, more: &[bool]) {
        matched.resize(more.len().max(matched.len()), false);
        matched.iter_mut().zip(more).for_each(|(all, one)| *all |= one);
    }
}

/// Files and folders by their names, as in `*_pb2.py` and `docs/**/conf.py`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    pattern: Pattern,
    /// Whether it is compared with the name alone of each file and folder.
    is_name: bool,
}

impl PathPattern {
    /// Parses a pattern. Without `/` it is the name of files and folders anywhere in a repository; with `/` it is a path from the
    /// repository's root. `*` stands for any text without `/`, `?` for one character, `[ab]` for one of these, and `**` for any
    /// folders. A folder stands for all that it holds.
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
    /// It is empty, or is not a pattern.
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

    /// Pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches a file, or a folder that holds it, by its path in the repository.
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
