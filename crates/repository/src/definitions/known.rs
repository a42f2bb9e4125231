//! Names of files that were read before.

use std::mem;
use std::sync::{Mutex, PoisonError};

use foldhash::HashMap;
use repoformer_text::language::syntax::{ParseExtent, Syntax};
use repoformer_text::language::{Grammar, Language, NameVisibility, Resolution};
use repoformer_text::lines::Lines;

use super::rows::{SourcePaths, folder};
use super::{Names, RepositoryNames};
use crate::corpus::Repository;
use crate::parallel;

/// Bytes of the texts whose names are kept; up to the same number of bytes of older texts is also kept.
const MOST_BYTES: usize = if cfg!(test) { 32 << 10 } else { 32 << 20 };

/// Names of files by their texts: versions of one repository share most files, and each is parsed only once.
///
/// The number of kept names is limited: the most recently used stay.
#[derive(Debug, Default)]
pub struct KnownNames(Mutex<NameCache>);

#[derive(Debug, Default)]
struct NameCache {
    recent: HashMap<Key, (Names, ParseExtent)>,
    older: HashMap<Key, (Names, ParseExtent)>,
    /// Bytes of the recent texts.
    bytes: usize,
}

/// All inputs of the names: the file's grammar, its folder if that is its package, and the digest of its lines.
type Key = (Grammar, String, [u8; 32]);

impl KnownNames {
    /// Returns the names of a file, and the extent to which the file was parsed. `path` begins with its repository's name, and
    /// `digest` is the digest of the lines.
    pub fn read(
        &self,
        language: Language,
        path: &str,
        lines: &Lines,
        digest: [u8; 32],
    ) -> (Names, ParseExtent) {
        let grammar = Grammar::for_path(language, path);
        let in_folder = match language.spec().resolution {
            Resolution::Types(rules) if matches!(rules.visibility, NameVisibility::Folders) => {
                folder(path)
            }
            _ => String::new(),
        };
        let (key, bytes) = ((grammar, in_folder, digest), lines.text().len());
        if let Some(names) = self.with(|known| known.find(&key, bytes)) {
            return names;
        }
        let syntax = Syntax::of_lines(lines, grammar);
        let parsed = ParseExtent::from_syntax(syntax.as_ref());
        let names = syntax.map_or(Names::Unread, |syntax| Names::read(path, &syntax));
        self.with(|known| known.keep(key, (names.clone(), parsed), bytes));
        (names, parsed)
    }

    /// Returns the paths of a repository's files, and the names in them.
    pub fn of_repository<'a>(
        &self,
        repository: &'a Repository,
        language: Language,
    ) -> (SourcePaths<'a>, RepositoryNames) {
        let files = &repository.files;
        let names = parallel::map(files.iter().enumerate(), |(number, file)| {
            // A link to a file that was already read adds no names.
            if (file.same_as as usize) < number {
                return Names::Unread;
            }
            let lines = file.lines();
            let digest = blake3::hash(lines.text().as_bytes());
            self.read(language, &file.path, &lines, digest.into()).0
        });
        let paths = files.iter().map(|file| (file.path.as_str(), file.same_as));
        (SourcePaths::new(&repository.name, paths), RepositoryNames::new(language, names))
    }

    fn with<T>(&self, of: impl FnOnce(&mut NameCache) -> T) -> T {
        of(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl NameCache {
    fn find(&mut self, key: &Key, bytes: usize) -> Option<(Names, ParseExtent)> {
        if let Some(names) = self.recent.get(key) {
            return Some(names.clone());
        }
        let names = self.older.remove(key)?;
        self.keep(key.clone(), names.clone(), bytes);
        Some(names)
    }

    fn keep(&mut self, key: Key, names: (Names, ParseExtent), bytes: usize) {
        if self.bytes > MOST_BYTES {
            self.older = mem::take(&mut self.recent);
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.recent.insert(key, names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(known: &KnownNames, path: &str, text: &str) -> Names {
        let lines = Lines::new(text);
        let digest = *blake3::hash(lines.text().as_bytes()).as_bytes();
        let language = if path.ends_with(".go") { Language::Go } else { Language::Python };
        known.read(language, path, &lines, digest).0
    }

    fn is_same(one: &Names, other: &Names) -> bool {
        match (one, other) {
            (Names::Module(one), Names::Module(other)) => std::sync::Arc::ptr_eq(one, other),
            (Names::Unit(one), Names::Unit(other)) => std::sync::Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    #[test]
    fn files_of_one_text_are_read_once() {
        let known = KnownNames::default();
        let first = read(&known, "one/a.py", "def f(): pass\n");
        assert!(is_same(&first, &read(&known, "two/a.py", "def f(): pass\n")));
        let other = read(&known, "two/a.py", "def g(): pass\n");
        assert!(!is_same(&first, &other));
        assert_eq!((first.row_of(&["f"]), other.row_of(&["f"])), (Some(0), None));
    }

    #[test]
    fn packages_that_are_folders_are_told_apart() {
        let known = KnownNames::default();
        let first = read(&known, "one/a/f.go", "package a\nfunc F() {}\n");
        assert!(is_same(&first, &read(&known, "two/a/f.go", "package a\nfunc F() {}\n")));
        assert!(!is_same(&first, &read(&known, "two/b/f.go", "package a\nfunc F() {}\n")));
    }

    #[test]
    fn what_was_not_used_for_long_is_forgotten() {
        let known = KnownNames::default();
        let large = |number: usize| format!("x = {number}\n{}", "# a comment\n".repeat(100));
        let first = read(&known, "r/a.py", "def f(): pass\n");
        for number in 0..200 {
            read(&known, "r/b.py", &large(number));
            assert!(is_same(&first, &read(&known, "r/a.py", "def f(): pass\n")));
            assert!(known.0.lock().unwrap().bytes <= MOST_BYTES + 2_000);
        }
        let kept = known.0.lock().unwrap();
        assert!(kept.recent.len() + kept.older.len() < 80);
    }
}
