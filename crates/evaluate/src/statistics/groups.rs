//! Groups of tasks that are drawn, or flipped, together.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use super::interval::IntervalKind;

/// Units that are considered independent of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResamplingUnit {
    /// All tasks of a repository together.
    Repositories,
    /// Each task separately.
    Tasks,
}

/// Number of repositories below which intervals over them are noticeably too short: with 20, a 95 % interval contains the mean
/// in 93 of 100 cases.
pub const FEW_REPOSITORIES: usize = 20;

/// Number of repositories below which an interval over them is only the range between the lowest and the highest.
const LEAST_REPOSITORIES: usize = 6;

impl ResamplingUnit {
    /// Returns the kind of the interval that results from resampling this many units.
    pub fn interval_kind(self, units: usize) -> IntervalKind {
        match self {
            Self::Repositories if units < LEAST_REPOSITORIES => IntervalKind::Range,
            _ => IntervalKind::Confidence,
        }
    }

    /// Returns the name in JSON and in notes: `repositories` or `tasks`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Repositories => "repositories",
            Self::Tasks => "tasks",
        }
    }
}

impl fmt::Display for ResamplingUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Group of each task.
///
/// ```
/// use repoformer_evaluate::statistics::{Groups, ResamplingUnit};
/// let by_repository = Groups::new([Some("b"), Some("a"), Some("b")]);
/// assert_eq!((by_repository.unit(), by_repository.len()), (ResamplingUnit::Repositories, 2));
/// // Groups need two repositories at least, and a repository for every task.
/// assert_eq!(Groups::new([Some("a"), Some("a")]).unit(), ResamplingUnit::Tasks);
/// assert_eq!(Groups::new([Some("a"), Some("b"), None]).unit(), ResamplingUnit::Tasks);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    unit: ResamplingUnit,
    /// Group number of each task.
    of: Vec<u32>,
    number: usize,
}

impl Groups {
    /// Returns a group for each of `number` tasks.
    pub fn tasks(number: usize) -> Self {
        Self { unit: ResamplingUnit::Tasks, of: (0..number as u32).collect(), number }
    }

    /// Groups tasks by repository, in the order of the names; `None` if a task has no repository, or if all have the same.
    pub fn repositories<'a>(tasks: impl IntoIterator<Item = Option<&'a str>>) -> Option<Self> {
        let names: Vec<&str> = tasks.into_iter().collect::<Option<_>>()?;
        let mut numbers: BTreeMap<&str, u32> = names.iter().map(|&name| (name, 0)).collect();
        if numbers.len() < 2 {
            return None;
        }
        for (number, next) in numbers.values_mut().zip(0..) {
            *number = next;
        }
        Some(Self {
            unit: ResamplingUnit::Repositories,
            of: names.iter().map(|name| numbers[name]).collect(),
            number: numbers.len(),
        })
    }

    /// Groups tasks by repository if possible, otherwise each task separately; [`unit`](Self::unit) returns which.
    pub fn new<'a>(repositories: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let repositories: Vec<Option<&str>> = repositories.into_iter().collect();
        let number = repositories.len();
        Self::repositories(repositories).unwrap_or_else(|| Self::tasks(number))
    }

    /// Returns the unit that forms a group.
    pub fn unit(&self) -> ResamplingUnit {
        self.unit
    }

    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.number
    }

    /// Returns true if there are no groups.
    pub fn is_empty(&self) -> bool {
        self.number == 0
    }

    /// Sums and counts the values of each group; tasks without a value are skipped. The groups are ordered by their counts and
    /// sums, so that resampling does not depend on their names or on the order of the tasks.
    pub(super) fn totals(&self, values: impl Iterator<Item = Option<f64>>) -> Totals {
        let zeros = || vec![0.0; self.number];
        let mut totals = Totals { sums: zeros(), counts: zeros(), empty: self.number };
        for (&group, value) in self.of.iter().zip(values) {
            if let (group, Some(value)) = (group as usize, value) {
                totals.sums[group] += value;
                totals.counts[group] += 1.0;
            }
        }
        totals.into_sorted()
    }
}

/// Sum and count of a measure's values by group.
pub(super) struct Totals {
    pub(super) sums: Vec<f64>,
    /// Whole numbers, as `f64` for the arithmetic.
    pub(super) counts: Vec<f64>,
    /// Number of groups without a value, which come first.
    pub(super) empty: usize,
}

impl Totals {
    /// Orders the groups by their values. Negated values get the same order, so that the interval of B − A is the negated
    /// interval of A − B, unless the values are the same with either sign.
    fn into_sorted(self) -> Self {
        // Zeros have no sign: a sum without gains is the same in both directions.
        let signed = |sum: f64, sign: f64| sum * sign + 0.0;
        let sorted = |sign: f64| {
            let groups = self.counts.iter().zip(&self.sums);
            let mut groups: Vec<[f64; 2]> =
                groups.map(|(n, sum)| [*n, signed(*sum, sign)]).collect();
            groups.sort_unstable_by(compare);
            groups
        };
        let [up, down] = [1.0, -1.0].map(sorted);
        let is_down = up.iter().zip(&down).map(|(up, down)| compare(up, down)).find(|o| o.is_ne())
            == Some(Ordering::Less);
        let (groups, sign) = if is_down { (down, -1.0) } else { (up, 1.0) };
        let (counts, sums) =
            groups.into_iter().map(|[count, sum]| (count, signed(sum, sign))).unzip();
        let empty = self.counts.iter().filter(|count| **count == 0.0).count();
        Self { sums, counts, empty }
    }
}

fn compare(one: &[f64; 2], other: &[f64; 2]) -> Ordering {
    one[0].total_cmp(&other[0]).then(one[1].total_cmp(&other[1]))
}
