//! Groups of tasks by the length of the target and by retrieved identifiers, and a system's mean in each.

use super::ReportContents;
use crate::statistics::{Estimate, Interval};

/// Unit of a target's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LengthUnit {
    /// Non-blank lines.
    Lines,
    /// Words and punctuation marks.
    Tokens,
}

impl LengthUnit {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Tokens => "tokens",
        }
    }

    fn count(self, target: &str) -> usize {
        match self {
            Self::Lines => target.lines().filter(|line| !line.trim().is_empty()).count(),
            Self::Tokens => count_tokens(target),
        }
    }
}

/// Counts runs of letters, digits and `_`, and other single characters except white space.
fn count_tokens(text: &str) -> usize {
    let (mut count, mut in_word) = (0, false);
    for c in text.chars() {
        let is_word = c == '_' || c.is_alphanumeric();
        count += usize::from(if is_word { !in_word } else { !c.is_whitespace() });
        in_word = is_word;
    }
    count
}

/// Length of every target, and the groups of lengths in figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) unit: LengthUnit,
    /// Length by task.
    pub(super) lengths: Vec<usize>,
    /// Greatest length of each group except the last. Groups are (0, bound], (bound, next bound], …
    bounds: Vec<usize>,
}

impl Lengths {
    /// Counts lines if at least a quarter of the targets have several, and tokens otherwise. Bounds are powers of two times 1
    /// (lines) or 4 (tokens); a group at either end with at most a fiftieth of the tasks is merged with its neighbour.
    pub(super) fn new(report: &ReportContents) -> Self {
        let targets = || report.tasks.iter().map(|task| &*task.target);
        let several = targets().filter(|target| LengthUnit::Lines.count(target) > 1);
        let (unit, first) = if several.count() * 4 >= report.tasks.len().max(1) {
            (LengthUnit::Lines, 1)
        } else {
            (LengthUnit::Tokens, 4)
        };
        let lengths: Vec<usize> = targets().map(|target| unit.count(target)).collect();
        let mut bounds: Vec<usize> = (0..7).map(|power| first << power).collect();
        let few = lengths.len() / 50;
        while let Some(&bound) = bounds.last()
            && lengths.iter().filter(|&&length| length > bound).count() <= few
        {
            bounds.pop();
        }
        while let Some(&bound) = bounds.first()
            && lengths.iter().filter(|&&length| length <= bound).count() <= few
        {
            bounds.remove(0);
        }
        Self { unit, lengths, bounds }
    }

    pub(super) fn groups(&self) -> usize {
        self.bounds.len() + 1
    }

    /// Returns the group of a task.
    pub(super) fn group(&self, task: usize) -> usize {
        let length = self.lengths.get(task).copied().unwrap_or(0);
        self.bounds.partition_point(|&bound| bound < length)
    }

    /// Formats the range of a group: `5–8`, `≥ 33`.
    pub(super) fn label(&self, group: usize) -> String {
        let above = group.checked_sub(1).and_then(|below| self.bounds.get(below));
        match (above, self.bounds.get(group)) {
            (None, None) => "all".into(),
            (None, Some(1)) => "1".into(),
            (None, Some(bound)) => format!("≤ {bound}"),
            (Some(above), Some(bound)) if above + 1 == *bound => bound.to_string(),
            (Some(above), Some(bound)) => format!("{}–{bound}", above + 1),
            (Some(above), None) => format!("≥ {}", above + 1),
        }
    }
}

/// Share of a target's identifiers in the fragments of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetShare {
    /// None of them.
    None,
    /// Some, not all.
    Some,
    /// All of them.
    All,
    /// The target has no identifier, though there are fragments.
    Nameless,
    /// Nothing was retrieved or predicted.
    Unknown,
}

impl TargetShare {
    /// Groups shown in figures.
    pub(super) const SHOWN: [Self; 4] = [Self::None, Self::Some, Self::All, Self::Nameless];

    pub(super) fn from_report(report: &ReportContents, system: usize, task: usize) -> Self {
        let Some(outcome) = report.outcome(system, task) else {
            return Self::Unknown;
        };
        match outcome.identifiers_retrieved {
            Some(share) if share <= 0.0 => Self::None,
            Some(share) if share < 1.0 => Self::Some,
            Some(_) => Self::All,
            None if outcome.fragments.is_empty() => Self::Unknown,
            None => Self::Nameless,
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::None => "none retrieved",
            Self::Some => "some retrieved",
            Self::All => "all retrieved",
            Self::Nameless => "target has none",
            Self::Unknown => "nothing retrieved",
        }
    }

    /// Returns the letter used in the page's data.
    pub(super) fn letter(self) -> char {
        match self {
            Self::None => 'n',
            Self::Some => 's',
            Self::All => 'a',
            Self::Nameless => 'x',
            Self::Unknown => '-',
        }
    }
}

/// Returns the mean of values with a 95 % interval by Student's t: mean ± t(0.975, n − 1) · s / √n, clamped to 0 and 1. Fewer
/// than five values have no interval. Returns `None` without any value.
pub(super) fn mean(values: &[f64]) -> Option<Estimate> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let interval = (n >= 5).then(|| {
        let squares = values.iter().map(|value| (value - mean).powi(2));
        let error = (squares.sum::<f64>() / (n - 1) as f64 / n as f64).sqrt();
        let half = student_975((n - 1) as f64) * error;
        Interval { low: (mean - half).max(0.0), high: (mean + half).min(1.0) }
    });
    Some(Estimate { mean, interval })
}

/// Returns the quantile 0.975 of Student's t for four degrees of freedom or more: the normal quantile and the first three terms
/// of its asymptotic expansion (Abramowitz and Stegun 26.7.5), with an error below 0.01.
fn student_975(freedom: f64) -> f64 {
    let z = 1.959_963_984_540_054_f64;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

#[cfg(test)]
mod tests {
    use super::super::ReportTask;
    use super::*;

    fn report(targets: &[&'static str]) -> ReportContents<'static> {
        let task = |target: &&'static str| ReportTask {
            target: (*target).into(),
            ..ReportTask::default()
        };
        ReportContents { tasks: targets.iter().map(task).collect(), ..ReportContents::default() }
    }

    #[test]
    fn tokens_are_words_and_signs() {
        assert_eq!(count_tokens("self.x_1 = f( é2 )\n"), 8); // Tokens: self . x_1 = f ( é2 )
        assert_eq!(count_tokens(" \n"), 0);
    }

    #[test]
    fn lines_are_counted_where_targets_have_several() {
        let one = Lengths::new(&report(&["a", "b", "c", "d", "e\nf"]));
        assert_eq!((one.unit, one.lengths[4]), (LengthUnit::Tokens, 2));
        let several = Lengths::new(&report(&["a", "b", "c", "d\n\ne\n"]));
        assert_eq!((several.unit, several.lengths[3]), (LengthUnit::Lines, 2));
        // Bounds 1, 2, 4, …: no length is above 2, so 2 is not a bound and the last group contains all lengths above 1.
        assert_eq!(several.groups(), 2);
        assert_eq!([several.label(0), several.label(1)], ["1", "≥ 2"]);
        assert_eq!([several.group(0), several.group(3)], [0, 1]);
    }

    #[test]
    fn groups_are_named_by_their_ranges() {
        let lengths =
            Lengths { unit: LengthUnit::Tokens, lengths: vec![4, 5, 8, 9], bounds: vec![4, 8] };
        let labels: Vec<String> = (0..3).map(|group| lengths.label(group)).collect();
        assert_eq!(labels, ["≤ 4", "5–8", "≥ 9"]);
        let groups: Vec<usize> = (0..4).map(|task| lengths.group(task)).collect();
        assert_eq!(groups, [0, 1, 1, 2]);
        assert_eq!(Lengths::new(&report(&[])).label(0), "all");
    }

    /// From a table of Student's t.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, wanted) in [(4.0, 2.776), (9.0, 2.262), (29.0, 2.045), (1000.0, 1.962)] {
            let found = student_975(freedom);
            assert!((found - wanted).abs() < 0.01, "{freedom}: {found}");
        }
    }

    /// By hand: 0.2, 0.4, 0.4, 0.4, 0.6 have mean 0.4 and s² = 0.08 / 4, so that s / √5 = √0.004 = 0.0632.
    #[test]
    fn a_mean_has_an_interval_from_five_values_on() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[0.5, 1.0]).unwrap().interval, None);
        let found = mean(&[0.2, 0.4, 0.4, 0.4, 0.6]).unwrap();
        let Interval { low, high } = found.interval.unwrap();
        assert!((found.mean - 0.4).abs() < 1e-12);
        assert!((low - (0.4 - 2.776 * 0.063_246)).abs() < 1e-3, "{low}");
        assert!((high - (0.4 + 2.776 * 0.063_246)).abs() < 1e-3, "{high}");
    }
}
