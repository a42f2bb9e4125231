//! A target's distinct names: whether they are new to its file, called, and in some fragment.

use rustc_hash::FxHashMap;

use super::measure::Share;

/// A target's distinct identifiers.
#[derive(Debug, Clone)]
pub(super) struct Names<'a> {
    places: FxHashMap<&'a str, usize>,
    /// Names in the order of their first occurrence in the target.
    names: Vec<Name>,
}

#[derive(Debug, Clone, Copy)]
struct Name {
    /// Whether the file's own context lacks it.
    is_new: bool,
    /// Whether an opening parenthesis follows it somewhere.
    is_called: bool,
}

impl<'a> Names<'a> {
    pub(super) fn of(
        target: &'a str,
        in_file: &[&str],
        identifiers: &impl Fn(&str) -> Vec<&str>,
    ) -> Self {
        let (mut places, mut names) = (FxHashMap::default(), Vec::new());
        for name in identifiers(target) {
            let place = *places.entry(name).or_insert_with(|| {
                names.push(Name { is_new: true, is_called: false });
                names.len() - 1
            });
            names[place].is_called |= is_called(target, name);
        }
        for text in in_file {
            for name in identifiers(text) {
                if let Some(&place) = places.get(name) {
                    names[place].is_new = false;
                }
            }
        }
        Self { places, names }
    }

    /// Returns a finder that has seen nothing yet.
    pub(super) fn finder(&self) -> Finder<'_, 'a> {
        Finder { names: self, found: vec![false; self.names.len()] }
    }
}

/// Tracks which of a target's names have been seen.
pub(super) struct Finder<'n, 'a> {
    names: &'n Names<'a>,
    found: Vec<bool>,
}

impl Finder<'_, '_> {
    /// Marks a fragment's identifiers as seen.
    pub(super) fn see(&mut self, identifiers: &[&str]) {
        for name in identifiers {
            if let Some(&place) = self.names.places.get(name) {
                self.found[place] = true;
            }
        }
    }

    pub(super) fn identifiers(&self) -> Share {
        self.share(|_| true)
    }

    pub(super) fn new_identifiers(&self) -> Share {
        self.share(|name| name.is_new)
    }

    pub(super) fn apis(&self) -> Share {
        self.share(|name| name.is_called)
    }

    pub(super) fn new_apis(&self) -> Share {
        self.share(|name| name.is_new && name.is_called)
    }

    fn share(&self, counts: impl Fn(&Name) -> bool) -> Share {
        let mut share = Share::default();
        for (name, &found) in self.names.names.iter().zip(&self.found) {
            share.of += usize::from(counts(name));
            share.found += usize::from(counts(name) && found);
        }
        share
    }
}

/// Whether an opening parenthesis follows this slice of the text on the same line.
fn is_called(text: &str, name: &str) -> bool {
    let end = (name.as_ptr().addr() + name.len()).checked_sub(text.as_ptr().addr());
    let rest = end.and_then(|end| text.get(end..)).unwrap_or("");
    rest.trim_start_matches([' ', '\t']).starts_with('(')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_name_before_a_parenthesis_on_its_line() {
        let text = "f(g (h), i\n(j))";
        let called: Vec<&str> = text
            .split(|c: char| !c.is_alphabetic())
            .filter(|name| !name.is_empty() && is_called(text, name))
            .collect();
        assert_eq!(called, ["f", "g"]);
    }
}
