//! Files in which names, functions and classes were looked for, and that their grammar cannot parse whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use repoformer_text::language::Language;
use repoformer_text::language::syntax::Parsed;

/// The files by their language, each once however often it is parsed.
type Files = BTreeMap<&'static str, (Language, BTreeSet<(String, Parsed)>)>;

static FILES: Mutex<Files> = Mutex::new(BTreeMap::new());

/// Remembers a file that was not parsed whole. `path` begins with the name of its repository.
pub fn remember(language: Language, path: &str, parsed: Parsed) {
    if parsed != Parsed::Whole {
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, of_language) = files.entry(language.title()).or_insert((language, BTreeSet::new()));
        of_language.insert((path.to_owned(), parsed));
    }
}

/// Takes the files that were not parsed whole, by language.
pub fn take_unparsed() -> Vec<(Language, BTreeSet<(String, Parsed)>)> {
    let files = std::mem::take(&mut *FILES.lock().unwrap_or_else(PoisonError::into_inner));
    files.into_values().collect()
}
