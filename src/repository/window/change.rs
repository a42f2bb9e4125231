//! What two cuts of a repository have in common, so that what was worked out for the windows of the first need not be
//! worked out again for the second.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{Place, RepoWindows};

/// The windows that a repository kept from one cut to the next. A window is the same where its text and all its places
/// are, so that its tokens and who may retrieve it are too; what follows it in its file need not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Checksum of the windows before.
    pub from: String,
    /// Checksum of the windows after.
    pub to: String,
    /// Runs of windows that are the same, ascending on both sides.
    pub same: Vec<Run>,
}

/// `count` windows that are the same, from these on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The first of them before.
    pub old: u32,
    /// The first of them after.
    pub new: u32,
    /// How many.
    pub count: u32,
}

impl Change {
    /// Compares two cuts of one repository in one shape.
    pub fn between((from, old): (&str, &RepoWindows), (to, new): (&str, &RepoWindows)) -> Self {
        let mut change = Self {
            from: from.into(),
            to: to.into(),
            same: Vec::new(),
        };
        if old.shape != new.shape {
            return change;
        }
        let Some(files) = Files::compare(old, new) else {
            return change;
        };
        // Both sides are ordered by the file and line of the first place, and the order of the files that both have is
        // the same: one walk meets every pair.
        let (mut i, mut j) = (0, 0);
        while i < old.len() && j < new.len() {
            let (one, other) = (old.first_place(i), new.first_place(j));
            let Some(file) = files.after[one.file as usize] else {
                i += 1;
                continue;
            };
            match (file, one.line_no).cmp(&(other.file, other.line_no)) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => {
                    if files.is_same((old, i), (new, j)) {
                        change.push(i as u32, j as u32);
                    }
                    (i, j) = (i + 1, j + 1);
                }
            }
        }
        change
    }

    fn push(&mut self, old: u32, new: u32) {
        match self.same.last_mut() {
            Some(run) if run.old + run.count == old && run.new + run.count == new => run.count += 1,
            _ => self.same.push(Run { old, new, count: 1 }),
        }
    }

    /// The number after of a window before, if it is still there.
    pub fn kept(&self, old: u32) -> Option<u32> {
        let run = self.same.partition_point(|run| run.old <= old);
        let run = self.same[..run].last()?;
        (old - run.old < run.count).then(|| run.new + (old - run.old))
    }

    /// The windows after that were not there before, ascending; `count` is the number of all windows after.
    pub fn new_windows(&self, count: usize) -> impl Iterator<Item = u32> + '_ {
        let ends = self.same.iter().map(|run| run.new + run.count);
        let starts = self.same.iter().map(|run| run.new);
        let gaps = std::iter::once(0)
            .chain(ends)
            .zip(starts.chain([count as u32]));
        gaps.flat_map(|(from, to)| from..to)
    }

    /// Whether the runs fit numbers of windows before and after.
    pub fn fits(&self, old: usize, new: usize) -> bool {
        let (mut i, mut j) = (0, 0);
        self.same.iter().all(|run| {
            let in_order = run.old >= i && run.new >= j && run.count > 0;
            (i, j) = (
                run.old.saturating_add(run.count),
                run.new.saturating_add(run.count),
            );
            in_order && i as usize <= old && j as usize <= new
        })
    }
}

/// The files that two cuts have in common.
struct Files {
    /// For each file before its number after, if it is still there.
    after: Vec<Option<u32>>,
    /// For each file before whether its content is the same.
    unchanged: Vec<bool>,
}

impl Files {
    /// `None` where files that are in both became the same on disk, or ceased to be: then a hole's own file may be
    /// another.
    fn compare(old: &RepoWindows, new: &RepoWindows) -> Option<Self> {
        let number: FxHashMap<&str, u32> = new
            .files
            .iter()
            .zip(0..)
            .map(|(file, n)| (file.path.as_str(), n))
            .collect();
        let after: Vec<Option<u32>> = old
            .files
            .iter()
            .map(|file| number.get(file.path.as_str()).copied())
            .collect();
        let mut unchanged = vec![false; after.len()];
        for ((file, n), unchanged) in old.files.iter().zip(&after).zip(&mut unchanged) {
            let Some(other) = n.map(|n| &new.files[n as usize]) else {
                continue;
            };
            if after[file.same_as as usize] != Some(other.same_as) {
                return None;
            }
            *unchanged = (file.digest, file.lines.count()) == (other.digest, other.lines.count());
        }
        Some(Self { after, unchanged })
    }

    fn is_same(&self, (old, i): (&RepoWindows, usize), (new, j): (&RepoWindows, usize)) -> bool {
        let moved =
            |place: Place| self.after[place.file as usize].map(|file| Place { file, ..place });
        let (before, after) = (old.places(i), new.places(j));
        let same_places = before.len() == after.len()
            && before
                .zip(after)
                .all(|(one, other)| moved(one) == Some(other));
        // One unchanged file among its places vouches for the text of all.
        same_places
            && (old
                .places(i)
                .any(|place| self.unchanged[place.file as usize])
                || old.text(i) == new.text(j))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::window::{WindowFile, WindowShape};
    use proptest::prelude::*;

    type Source = (u8, u8, String);

    /// Files named by a letter, the last of each name; a second letter names the file that it is a link to.
    fn cut(sources: &[Source], w: usize) -> RepoWindows {
        let by_name: std::collections::BTreeMap<u8, &Source> =
            sources.iter().map(|source| (source.0, source)).collect();
        let names: Vec<u8> = by_name.keys().copied().collect();
        let file = |source: &&Source| {
            let own = names.iter().position(|name| *name == source.0).unwrap();
            let linked = names.iter().position(|name| *name == source.1);
            let same_as = linked.filter(|linked| *linked < own).unwrap_or(own);
            WindowFile::new(
                format!("r/{}.py", source.0),
                same_as as u32,
                source.2.clone(),
            )
        };
        let files = by_name.values().map(file).collect();
        let shape = WindowShape {
            window_size: w,
            ..WindowShape::default()
        };
        RepoWindows::cut_files("r".into(), files, shape)
    }

    fn sources() -> impl Strategy<Value = Vec<Source>> {
        prop::collection::vec((0_u8..6, 0_u8..40, "[ab\n]{0,30}"), 0..6)
    }

    /// What a window is to everyone who uses it, by names instead of numbers.
    fn meaning(windows: &RepoWindows, w: u32) -> (String, Vec<(String, u32, u32, u32)>) {
        let places = windows.places(w as usize).map(|place| {
            let file = &windows.files[place.file as usize];
            (file.path.clone(), place.line_no, place.start, place.end)
        });
        (windows.text(w as usize).to_owned(), places.collect())
    }

    proptest! {
        #[test]
        fn windows_said_to_be_the_same_are(
            mut before in sources(), more in sources(), dropped in 0_usize..8, w in 1_usize..6,
        ) {
            let old = cut(&before, w);
            if dropped < before.len() {
                before.remove(dropped);
            }
            before.extend(more);
            let new = cut(&before, w);
            let kept: Vec<Option<u32>> = new.files.iter().map(|file| {
                let number = old.file_index(&file.path)?;
                (old.files[number].digest == file.digest && old.files[number].lines.count() == file.lines.count())
                    .then_some(number as u32)
            }).collect();
            // Only the texts that are said to be needed are there.
            let needed = old.texts_to_cut_again(&new.files, &kept);
            let mut files = new.files.clone();
            for (file, kept) in files.iter_mut().zip(&kept) {
                if kept.is_some_and(|old| !needed.contains(&old)) {
                    file.lines = crate::text::lines::Lines::unread(file.lines.count());
                }
            }
            let mut again = old.cut_again(files, &kept);
            again.files.clone_from(&new.files);
            prop_assert_eq!(&again, &new);
            let change = Change::between(("a", &old), ("b", &new));
            prop_assert!(change.fits(old.len(), new.len()));
            let mut kept = Vec::new();
            for window in 0..old.len() as u32 {
                if let Some(after) = change.kept(window) {
                    prop_assert_eq!(meaning(&old, window), meaning(&new, after));
                    kept.push(after);
                }
            }
            prop_assert!(kept.is_sorted());
            let mut all: Vec<u32> = kept.into_iter().chain(change.new_windows(new.len())).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..new.len() as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_line_more_in_one_file_costs_its_last_windows() {
        let file = |name: u8, count: usize| {
            let text = (0..count).map(|n| format!("line {n} of {name}\n"));
            (name, 40, text.collect::<String>())
        };
        let old = cut(&[file(1, 45), file(2, 60), file(3, 20)], 20);
        let new = cut(&[file(1, 45), file(2, 61), file(3, 20)], 20);
        let change = Change::between(("a", &old), ("b", &new));
        // A window around every tenth line: 5 of file 1, 6 of file 2 (the last of lines 40 to 60), 2 of file 3. One more
        // line in file 2 adds one around line 60 (50 to 61).
        let run = |old, new, count| Run { old, new, count };
        assert_eq!(change.same, [run(0, 0, 11), run(11, 12, 2)]);
        assert_eq!(change.new_windows(new.len()).collect::<Vec<_>>(), [11]);
        let kept = [10, 11, 12, 13].map(|old| change.kept(old));
        assert_eq!(kept, [Some(10), Some(12), Some(13), None]);
    }
}
