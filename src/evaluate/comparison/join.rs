//! Which task of one system is which of the other.
//!
//! A task is its id and its row in the task file. Where either side does not know the row, the id alone decides, and must
//! be the only one of its kind on both sides.

use std::collections::BTreeMap;

use super::PerTask;
use crate::error::Error;

/// What joining found.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Joined {
    /// Places in A and B, in the order of rows and ids: whatever the order of the files, the same.
    pub(super) pairs: Vec<(usize, usize)>,
    /// Places in A of tasks that B lacks, in the same order.
    pub(super) only_a: Vec<usize>,
    /// The other way around.
    pub(super) only_b: Vec<usize>,
    /// Ids that both have, at other rows.
    pub(super) moved: usize,
}

/// The records of one id on both sides, as places.
#[derive(Default)]
struct SameId {
    a: Vec<usize>,
    b: Vec<usize>,
}

/// Joins the two; tasks that cannot be told apart are named in `problems`.
pub(super) fn join(a: &PerTask, b: &PerTask, problems: &mut Vec<Error>) -> Joined {
    let mut ids: BTreeMap<&str, SameId> = BTreeMap::new();
    for (place, task) in a.tasks.iter().enumerate() {
        ids.entry(&task.task_id).or_default().a.push(place);
    }
    for (place, task) in b.tasks.iter().enumerate() {
        ids.entry(&task.task_id).or_default().b.push(place);
    }
    let mut joined = Joined::default();
    for (id, same) in ids {
        let rows = rows(a, &same.a).zip(rows(b, &same.b));
        match rows {
            Some((a_rows, b_rows)) => joined.by_row((a, a_rows), (b, b_rows), id, problems),
            None => joined.by_id((a, &same.a), (b, &same.b), id, problems),
        }
    }
    let a_key = |place: &usize| (a.tasks[*place].row, &a.tasks[*place].task_id);
    let b_key = |place: &usize| (b.tasks[*place].row, &b.tasks[*place].task_id);
    joined.pairs.sort_by_key(|(one, other)| {
        let (row, id) = a_key(one);
        (row.or(b_key(other).0), id)
    });
    joined.only_a.sort_by_key(a_key);
    joined.only_b.sort_by_key(b_key);
    joined
}

/// The rows of some records, where all have one.
fn rows(side: &PerTask, places: &[usize]) -> Option<BTreeMap<usize, Vec<usize>>> {
    let mut rows: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &place in places {
        rows.entry(side.tasks[place].row?).or_default().push(place);
    }
    Some(rows)
}

type Rows<'a> = (&'a PerTask, BTreeMap<usize, Vec<usize>>);

impl Joined {
    fn by_row(&mut self, a: Rows<'_>, b: Rows<'_>, id: &str, problems: &mut Vec<Error>) {
        let ((a, a_rows), (b, mut b_rows)) = (a, b);
        let (only_a, only_b) = (self.only_a.len(), self.only_b.len());
        for (row, a_places) in a_rows {
            let b_places = b_rows.remove(&row).unwrap_or_default();
            let sides = [(a, &a_places), (b, &b_places)];
            if sides.iter().any(|(_, places)| places.len() > 1) {
                repeated(&sides, id, &format!(" and row {row}"), problems);
                continue;
            }
            match b_places.first() {
                Some(&place) => self.pairs.push((a_places[0], place)),
                None => self.only_a.extend(a_places),
            }
        }
        for (row, places) in b_rows {
            if places.len() > 1 {
                repeated(&[(b, &places)], id, &format!(" and row {row}"), problems);
            } else {
                self.only_b.extend(places);
            }
        }
        if self.only_a.len() > only_a && self.only_b.len() > only_b {
            self.moved += 1;
        }
    }

    fn by_id(
        &mut self,
        a: (&PerTask, &[usize]),
        b: (&PerTask, &[usize]),
        id: &str,
        problems: &mut Vec<Error>,
    ) {
        match (a.1, b.1) {
            (&[one], &[other]) => self.pairs.push((one, other)),
            (&[one], []) => self.only_a.push(one),
            ([], &[other]) => self.only_b.push(other),
            (a_places, b_places) => {
                let sides = [(a.0, a_places), (b.0, b_places)];
                repeated(
                    &sides,
                    id,
                    ", and not all have a row to tell them by",
                    problems,
                );
            }
        }
    }
}

/// That a side has a task more than once.
fn repeated<P: AsRef<[usize]>>(
    sides: &[(&PerTask, P)],
    id: &str,
    by: &str,
    problems: &mut Vec<Error>,
) {
    let several = sides.iter().filter(|(_, places)| places.as_ref().len() > 1);
    problems.extend(several.map(|(side, places)| Error::Artifact {
        path: (&*side.name).into(),
        reason: format!(
            "{} records have the task_id {id:?}{by}; none of them is compared",
            places.as_ref().len()
        ),
        hint: "score each task once, and several samples of it as one prediction".into(),
    }));
}
