//! Definitions found by a look-up.

use std::ops::Deref;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use super::rows::Definition;

/// Greatest number of definitions joined from several lists: each look-up copies them to a list of its own.
const MOST_JOINED: usize = 256;

/// Definitions found by a look-up. Cheap to clone: all calls of the same thing share one list, whatever its length.
#[derive(Debug, Clone, Default)]
pub struct FoundDefinitions {
    list: Arc<[Definition]>,
    /// Whether they are ordered by file.
    is_ordered: bool,
}

impl FromIterator<Definition> for FoundDefinitions {
    fn from_iter<I: IntoIterator<Item = Definition>>(definitions: I) -> Self {
        let list: Arc<[Definition]> = definitions.into_iter().collect();
        Self { is_ordered: list.is_sorted_by_key(|found| found.file), list }
    }
}

impl Deref for FoundDefinitions {
    type Target = [Definition];

    fn deref(&self) -> &[Definition] {
        &self.list
    }
}

impl FoundDefinitions {
    /// Joins the definitions of several lists, one after another: all of a single list, or else up to a limit.
    pub(super) fn from_lists(lists: impl Iterator<Item = Self>) -> Self {
        let mut lists = lists.filter(|list| !list.is_empty());
        let first = lists.next().unwrap_or_default();
        match lists.next() {
            None => first,
            Some(second) => {
                let lists: Vec<Self> = [first, second].into_iter().chain(lists).collect();
                lists.iter().flat_map(|list| list.iter().copied()).take(MOST_JOINED).collect()
            }
        }
    }

    /// Returns true if one of them is in a file.
    pub(super) fn is_in(&self, file: usize) -> bool {
        if !self.is_ordered {
            return self.iter().any(|found| found.file as usize == file);
        }
        self.binary_search_by_key(&file, |found| found.file as usize).is_ok()
    }

    /// Returns the numbers of their files.
    pub fn files(&self) -> HashSet<usize> {
        self.iter().map(|found| found.file as usize).collect()
    }

    /// Returns the lists that are not empty, without duplicates and with their values merged, in no particular order.
    pub fn distinct<T>(
        lists: impl IntoIterator<Item = (Self, T)>,
        merge: impl Fn(&mut T, T),
    ) -> impl Iterator<Item = (Self, T)> {
        let mut known: HashMap<*const Definition, (Self, T)> = HashMap::default();
        for (list, said) in lists.into_iter().filter(|(list, _)| !list.is_empty()) {
            match known.entry(list.as_ptr()) {
                std::collections::hash_map::Entry::Occupied(mut entry) => {
                    merge(&mut entry.get_mut().1, said);
                }
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert((list, said));
                }
            }
        }
        known.into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::rows::{DefinitionKind, Rows};

    fn found(files: &[usize]) -> FoundDefinitions {
        let one = |file: &usize| Definition::new(*file, Rows::default(), DefinitionKind::Function);
        files.iter().map(one).collect()
    }

    #[test]
    fn files_are_found_in_any_order() {
        for (files, is_ordered) in [(&[][..], true), (&[1, 3, 3, 7], true), (&[3, 1, 7, 3], false)]
        {
            let found = found(files);
            assert_eq!(found.is_ordered, is_ordered);
            let of: Vec<usize> = (0..9).filter(|file| found.is_in(*file)).collect();
            assert_eq!(of, (0..9).filter(|file| files.contains(file)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn lists_are_shared() {
        let (one, other) = (found(&[1, 2]), found(&[1, 2]));
        let alone = FoundDefinitions::from_lists([found(&[]), one.clone()].into_iter());
        assert!(std::ptr::eq(&*alone, &*one));
        let joined =
            FoundDefinitions::from_lists([one.clone(), found(&[]), other.clone()].into_iter());
        assert_eq!(joined.iter().map(|one| one.file).collect::<Vec<_>>(), [1, 2, 1, 2]);
        let lists = [(one.clone(), 1), (other, 10), (found(&[]), 100), (one, 1000)];
        let mut said: Vec<i32> =
            FoundDefinitions::distinct(lists, |all, one| *all += one).map(|it| it.1).collect();
        said.sort_unstable();
        assert_eq!(said, [10, 1001]);
    }
}
