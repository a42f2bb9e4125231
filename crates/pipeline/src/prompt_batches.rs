//! Groups repositories whose prompts are made together, so that not all texts are in memory at once.

use repoformer_core::task::TaskSet;

/// Number of repositories that are read together, or more if their tasks alternate.
const BATCH: usize = 256;

/// Groups the positions of repositories in batches whose tasks follow one another: no task of a batch comes before a task of an
/// earlier batch.
pub(super) fn batches<'r>(
    tasks: &TaskSet,
    repositories: impl Iterator<Item = &'r str>,
) -> Vec<Vec<usize>> {
    let mut ranges: Vec<(usize, usize, usize)> = repositories
        .enumerate()
        .map(|(place, repository)| {
            let mut numbers = tasks.numbers_of(repository);
            let first = numbers.next();
            // Repositories without tasks come last.
            let first_or_end = first.unwrap_or(tasks.tasks().len());
            (first_or_end, numbers.last().unwrap_or(first_or_end), place)
        })
        .collect();
    ranges.sort_unstable();
    let (mut batches, mut end): (Vec<Vec<usize>>, usize) = (Vec::new(), 0);
    for (first, last, place) in ranges {
        match batches.last_mut() {
            Some(batch) if batch.len() < BATCH || first < end => batch.push(place),
            _ => batches.push(vec![place]),
        }
        end = end.max(last);
    }
    batches.iter_mut().for_each(|batch| batch.sort_unstable());
    batches
}

#[cfg(test)]
mod tests {
    use repoformer_core::task::Task;

    use super::*;

    fn set(repositories: &[&str]) -> TaskSet {
        let task = |(row, name): (usize, &&str)| Task {
            row,
            ..Task::new(row.to_string(), &format!("{name}/a.py"), 0, 0, "", "")
        };
        TaskSet::new("t.jsonl".into(), repositories.iter().enumerate().map(task).collect())
    }

    fn of(tasks: &[String], repositories: &[String]) -> Vec<Vec<usize>> {
        let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
        batches(&set(&tasks), repositories.iter().map(String::as_str))
    }

    #[test]
    fn repositories_are_together_that_tasks_alternate_between_or_that_are_few() {
        let names: Vec<String> = (0..2 * BATCH + 3).map(|at| format!("r{at:04}")).collect();
        // Tasks of one repository after another, starting with the last repository.
        let mut tasks: Vec<String> =
            names.iter().rev().flat_map(|name| [name.clone(), name.clone()]).collect();
        let found = of(&tasks, &names);
        let sizes: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(sizes, [BATCH, BATCH, 3]);
        assert_eq!((found[0][0], found[2][2]), (BATCH + 3, 2));
        // A task of the first repository at the end joins all batches.
        tasks.push(names.last().unwrap().clone());
        assert_eq!(of(&tasks, &names), [(0..names.len()).collect::<Vec<_>>()]);
        // Without tasks there is no order to keep.
        assert_eq!(of(&[], &names).len(), 3);
        assert_eq!(of(&tasks[..4], &names[..1]), [[0]]);
    }
}
