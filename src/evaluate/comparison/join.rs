//! Joins the tasks of two systems.
//!
//! A task is identified by its id and its row in the task file. If either side does not know the row, the id alone decides, and
//! must be unique on both sides.

use std::collections::{BTreeMap, BTreeSet};

use super::PerTask;
use crate::error::Error;

/// Indices of one task in A and in B.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TaskPair {
    pub(super) a: usize,
    pub(super) b: usize,
}

/// Result of joining.
#[derive(Debug, Default, PartialEq)]
pub(super) struct JoinedTasks {
    /// Tasks of both, by row and id, independent of the order of the files.
    pub(super) pairs: Vec<TaskPair>,
    /// Indices in A of tasks that B lacks, in the same order.
    pub(super) only_a: Vec<usize>,
    /// Indices in B of tasks that A lacks, in the same order.
    pub(super) only_b: Vec<usize>,
    /// Number of ids that both have at different rows.
    pub(super) moved: usize,
}

/// Joins two systems; tasks that cannot be told apart are reported in `problems`.
pub(super) fn join(a: &PerTask, b: &PerTask, problems: &mut Vec<Error>) -> JoinedTasks {
    let mut ids: BTreeMap<&str, [Vec<usize>; 2]> = BTreeMap::new();
    for (number, side) in [a, b].into_iter().enumerate() {
        for (place, task) in side.tasks.iter().enumerate() {
            ids.entry(&task.task_id).or_default()[number].push(place);
        }
    }
    let mut joined = JoinedTasks::default();
    for (id, [of_a, of_b]) in &ids {
        let a = Records::new(a, id, of_a);
        let b = Records::new(b, id, of_b);
        let Some((a_rows, b_rows)) = a.rows().zip(b.rows()) else {
            joined.add(a, b, ", and not all have a row to tell them by", problems);
            continue;
        };
        let (only_a, only_b) = (joined.only_a.len(), joined.only_b.len());
        let rows: BTreeSet<&usize> = a_rows.keys().chain(b_rows.keys()).collect();
        for row in rows {
            let places = |rows: &'_ Rows| rows.get(row).cloned().unwrap_or_default();
            let (of_a, of_b) = (places(&a_rows), places(&b_rows));
            let (a, b) = (a.only(&of_a), b.only(&of_b));
            joined.add(a, b, &format!(" and row {row}"), problems);
        }
        let both_alone = joined.only_a.len() > only_a && joined.only_b.len() > only_b;
        joined.moved += usize::from(both_alone);
    }
    let key = |side: &'_ PerTask, place: usize| {
        let task = &side.tasks[place];
        (task.row, task.task_id.clone())
    };
    joined.pairs.sort_by_cached_key(|pair| {
        let (row, id) = key(a, pair.a);
        (row.or(b.tasks[pair.b].row), id)
    });
    joined.only_a.sort_by_cached_key(|place| key(a, *place));
    joined.only_b.sort_by_cached_key(|place| key(b, *place));
    joined
}

/// Indices of records by their rows.
type Rows = BTreeMap<usize, Vec<usize>>;

/// Records of one id on one side.
#[derive(Clone, Copy)]
struct Records<'a> {
    side: &'a PerTask,
    id: &'a str,
    places: &'a [usize],
}

impl<'a> Records<'a> {
    fn new(side: &'a PerTask, id: &'a str, places: &'a [usize]) -> Self {
        Self { side, id, places }
    }

    fn only<'b>(self, places: &'b [usize]) -> Records<'b>
    where
        'a: 'b,
    {
        Records { places, ..self }
    }

    /// Groups the records by row; `None` if one has no row.
    fn rows(self) -> Option<Rows> {
        let mut rows = Rows::new();
        for &place in self.places {
            let row = self.side.tasks[place].row?;
            rows.entry(row).or_default().push(place);
        }
        Some(rows)
    }
}

impl JoinedTasks {
    /// Adds one task. Records of it that occur more than once on a side are reported, with what they have in common besides the id.
    fn add(&mut self, a: Records<'_>, b: Records<'_>, common: &str, problems: &mut Vec<Error>) {
        match (a.places, b.places) {
            (&[a], &[b]) => self.pairs.push(TaskPair { a, b }),
            (&[place], []) => self.only_a.push(place),
            ([], &[place]) => self.only_b.push(place),
            _ => {
                let repeated = [a, b].into_iter().filter(|side| side.places.len() > 1);
                problems.extend(repeated.map(|Records { side, id, places }| {
                    let reason = format!(
                        "{} records have the task_id {id:?}{common}; none of them is compared",
                        places.len()
                    );
                    let hint = "score each task once, and several samples of it as one prediction";
                    Error::artifact(side.name.as_ref(), reason, hint)
                }));
            }
        }
    }
}
