//! Joining of the tasks of two systems.
//!
//! A task is identified by its id and its row in the task file. If either side does not know the row, only the id is used, and
//! must be unique on both sides.

use std::collections::BTreeMap;

use repoformer_store::error::Error;

use super::{PerTask, TaskValues};

/// Indices of one task in A and in B.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TaskPair {
    pub(super) a: usize,
    pub(super) b: usize,
}

/// Result of joining.
#[derive(Debug, Default, PartialEq)]
pub(super) struct JoinedTasks {
    /// Tasks of both systems, by row and id, independent of the order of the files.
    pub(super) pairs: Vec<TaskPair>,
    /// Indices in A of tasks that B lacks, in the same order.
    pub(super) only_a: Vec<usize>,
    /// Indices in B of tasks that A lacks, in the same order.
    pub(super) only_b: Vec<usize>,
    /// Number of ids that both systems have at different rows.
    pub(super) moved: usize,
}

/// Joins two systems; tasks that cannot be distinguished are reported in `problems`.
pub(super) fn join(a: &PerTask, b: &PerTask, problems: &mut Vec<Error>) -> JoinedTasks {
    let sides = [a, b];
    let all = sides.map(|side| (0..side.tasks.len()).collect());
    let ids = group(sides, &all, |task| Some(task.task_id.as_str())).unwrap_or_default();
    let mut joined = JoinedTasks::default();
    for (id, places) in &ids {
        let Some(rows) = group(sides, places, |task| task.row) else {
            let common = ", and not all have a row that tells them apart";
            joined.add(sides, id, places, common, problems);
            continue;
        };
        let (only_a, only_b) = (joined.only_a.len(), joined.only_b.len());
        for (row, places) in &rows {
            joined.add(sides, id, places, &format!(" and row {row}"), problems);
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

/// Indices of records in A and in B.
type Places = [Vec<usize>; 2];

/// Groups records of both sides by a key; `None` if a record has no key.
fn group<'a, K: Ord>(
    sides: [&'a PerTask; 2],
    places: &Places,
    key: impl Fn(&'a TaskValues) -> Option<K>,
) -> Option<BTreeMap<K, Places>> {
    let mut groups: BTreeMap<K, Places> = BTreeMap::new();
    for (number, side) in sides.into_iter().enumerate() {
        for &place in &places[number] {
            groups.entry(key(&side.tasks[place])?).or_default()[number].push(place);
        }
    }
    Some(groups)
}

impl JoinedTasks {
    /// Adds one task. If it has more than one record on a side, the records are reported, with the properties that they share
    /// in addition to the id.
    fn add(
        &mut self,
        sides: [&PerTask; 2],
        id: &str,
        places: &Places,
        common: &str,
        problems: &mut Vec<Error>,
    ) {
        match places.each_ref().map(Vec::as_slice) {
            [&[a], &[b]] => self.pairs.push(TaskPair { a, b }),
            [&[place], []] => self.only_a.push(place),
            [[], &[place]] => self.only_b.push(place),
            _ => {
                let repeated = sides.iter().zip(places).filter(|(_, places)| places.len() > 1);
                problems.extend(repeated.map(|(side, places)| {
                    let reason = format!(
                        "{} records have the task_id {id:?}{common}; none of them is compared",
                        places.len()
                    );
                    let hint = "score each task once, and pass several samples of a task as one prediction";
                    Error::artifact(side.name.as_ref(), reason, hint)
                }));
            }
        }
    }
}
