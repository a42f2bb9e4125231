//! Distinct names of a target: whether they are new to its file, called, and in some fragment.

use foldhash::{HashMap, HashSet};

use super::measure::Share;

/// Distinct identifiers of a target.
#[derive(Debug, Clone)]
pub(super) struct Names<'a>(HashMap<&'a str, Name>);

#[derive(Debug, Clone, Copy)]
struct Name {
    /// True if the file's own context lacks the name.
    is_new: bool,
    /// True if an opening parenthesis follows the name somewhere.
    is_called: bool,
}

impl<'a> Names<'a> {
    pub(super) fn from_target(
        target: &'a str,
        in_file: &[&str],
        identifiers: &impl Fn(&str) -> Vec<&str>,
    ) -> Self {
        let mut names = HashMap::default();
        for name in identifiers(target) {
            let known = names.entry(name).or_insert(Name { is_new: true, is_called: false });
            known.is_called |= is_called(target, name);
        }
        for name in in_file.iter().flat_map(|text| identifiers(text)) {
            if let Some(known) = names.get_mut(name) {
                known.is_new = false;
            }
        }
        Self(names)
    }

    /// Counts how many of the names, the new ones, the called ones and the new called ones are among the fragments'
    /// identifiers.
    pub(super) fn shares<'f>(&self, identifiers: impl Iterator<Item = &'f str>) -> [Share; 4] {
        let found: HashSet<&str> = identifiers.filter(|name| self.0.contains_key(name)).collect();
        let share = |counts: fn(&Name) -> bool| {
            let names = self.0.iter().filter(|(_, name)| counts(name));
            let held = names.clone().filter(|(name, _)| found.contains(*name));
            Share { found: held.count(), of: names.count() }
        };
        [
            share(|_| true),
            share(|name| name.is_new),
            share(|name| name.is_called),
            share(|name| name.is_new && name.is_called),
        ]
    }
}

/// Returns true if an opening parenthesis follows this slice of the text on the same line.
fn is_called(text: &str, name: &str) -> bool {
    let end = (name.as_ptr().addr() + name.len()).checked_sub(text.as_ptr().addr());
    let rest = end.and_then(|end| text.get(end..)).unwrap_or("");
    rest.trim_start_matches([' ', '\t']).starts_with('(')
}
