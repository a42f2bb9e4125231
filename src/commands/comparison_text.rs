//! Output of a comparison in every format; as text, a table, the gains by size, and notes on both, with values × 100.

use std::fmt::Write;

use repoformer_evaluate::comparison::{Comparison, MeasureComparison};
use repoformer_evaluate::statistics::{
    Bucket, Estimate, FEW_REPOSITORIES, IntervalKind, Resampling, ResamplingUnit, SignFlips,
};
use repoformer_evaluate::table::{NamedColumn, Printable, Table, columns, percent};
use repoformer_store::frame::ColumnType::{Flag, Integer, Number, Text};
use repoformer_study::mixed;
use repoformer_text::visible::visible_in_line;
use serde_json::Value;

use crate::output::{group, list_first, plural};

/// Maximum number of ids shown of tasks that are left out.
const SHOWN: usize = 3;

/// Comparison to print.
pub(super) struct PrintedComparison<'a> {
    pub(super) comparison: &'a Comparison,
    /// True if the values of each task are printed.
    pub(super) per_task: bool,
}

impl Printable for PrintedComparison<'_> {
    fn table(&self) -> Table {
        if self.per_task { task_table(self.comparison) } else { wide_table(self.comparison) }
    }

    fn text(&self) -> String {
        text(self.comparison, self.per_task)
    }

    fn json(&self) -> Value {
        self.comparison.to_record(self.per_task)
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let Self { comparison, per_task } = self;
        let records =
            if *per_task { comparison.task_records() } else { comparison.measure_records() };
        Box::new(records.into_iter())
    }

    fn columns(&self) -> Vec<NamedColumn> {
        if self.per_task {
            let of = |MeasureComparison { measure, .. }: &MeasureComparison| {
                ["a", "b", "difference"].map(|side| format!("{measure}.{side}"))
            };
            return columns(Text, ["task_id"])
                .chain(columns(Integer, ["row"]))
                .chain(columns(Text, ["repository"]))
                .chain(columns(Number, self.comparison.all.iter().flat_map(of)))
                .collect();
        }
        let mut all: Vec<NamedColumn> =
            columns(Text, ["names.a", "names.b", "repository", "interval", "measure"]).collect();
        all.extend(columns(Integer, ["n"]));
        for side in ["a", "b", "difference"] {
            all.extend(columns(Number, ["mean", "low", "high"].map(|end| format!("{side}.{end}"))));
            let samples = (side != "difference").then(|| format!("{side}.samples"));
            all.extend(columns(Integer, samples));
        }
        for unit in ["tasks", "repositories"] {
            all.extend(columns(Number, [format!("p.{unit}.p")]));
            all.extend(columns(Flag, [format!("p.{unit}.exact")]));
            all.extend(columns(Integer, [format!("p.{unit}.units")]));
        }
        let buckets = Bucket::all().map(|bucket| format!("buckets.{}", bucket.label()));
        all.extend(columns(Integer, ["better", "same", "worse"]));
        all.extend(columns(Integer, buckets));
        all.extend(columns(Text, ["mixed"]));
        all
    }
}

/// Returns the text that `compare` prints.
fn text(comparison: &Comparison, per_task: bool) -> String {
    let Comparison { a, b, .. } = comparison;
    let [a, b] = [&a.name, &b.name].map(|name| visible_in_line(name));
    let mut text = format!("A  {a}\nB  {b}\n\n{}", table(comparison).text());
    for difference in &comparison.all {
        if let Some(buckets) = &difference.buckets {
            let MeasureComparison { measure, n, .. } = difference;
            let measure = comparison.title(measure);
            let measure = visible_in_line(&measure);
            let _ = write!(text, "\n{measure}: gain × 100 of {}\n", tasks(*n));
            text += &buckets.histogram();
        }
    }
    if per_task {
        text += "\n";
        text += &task_table(comparison).text();
    }
    text += "\n";
    for note in notes(comparison) {
        text += &(visible_in_line(&note) + "\n");
    }
    text
}

/// Returns a row per measure; with `--by-repository`, the rows of each repository come first.
fn rows(comparison: &Comparison) -> Vec<(&str, &MeasureComparison)> {
    let within = comparison.repositories.iter();
    let within = within.flat_map(|(name, here)| here.iter().map(|d| (name.as_str(), d)));
    let all = comparison.all.iter().map(|difference| ("all", difference));
    within.chain(all).collect()
}

fn table(comparison: &Comparison) -> Table {
    let by_repository = !comparison.repositories.is_empty();
    let p_by_repository = comparison.all.iter().any(|d| d.by_repository.is_some());
    let mut head = vec!["measure"];
    head.extend(by_repository.then_some("repository"));
    let interval =
        format!("B - A [{}]", comparison.interval_kind().head(comparison.resampling.level));
    head.extend(["n", "A", "B", &interval, "p (tasks)"]);
    head.extend(p_by_repository.then_some("p (repositories)"));
    head.extend(["better", "same", "worse"]);
    let mut table = Table::new(head);
    for (repository, d) in rows(comparison) {
        let mut cells = vec![comparison.title(&d.measure)];
        cells.extend(by_repository.then(|| repository.to_owned()));
        cells.extend([
            d.n.to_string(),
            percent(d.a.mean),
            percent(d.b.mean),
            with_interval(&d.difference),
            p(d.by_task.p),
        ]);
        if p_by_repository {
            cells.push(d.by_repository.map_or("-".into(), |test| p(test.p)));
        }
        cells.extend(changes(d));
        table.row(cells);
    }
    table
}

/// Returns the numbers of tasks that are better, the same and worse.
fn changes(difference: &MeasureComparison) -> [String; 3] {
    let changes = &difference.changes;
    [changes.better, changes.same, changes.worse].map(|count| count.to_string())
}

/// Returns the table for output with tabs: one number per column, the buckets of the gain last.
fn wide_table(comparison: &Comparison) -> Table {
    let mut head: Vec<String> = ["measure", "repository", "n", "interval"].map(Into::into).into();
    for name in ["a", "b", "difference"] {
        head.extend([name.into(), format!("{name}_low"), format!("{name}_high")]);
    }
    let counts = ["p_tasks", "p_repositories", "better", "same", "worse"];
    head.extend(counts.map(Into::into));
    head.extend(Bucket::all().map(|bucket| format!("gain {}", bucket.signed_label())));
    head.extend((!comparison.mixed.is_empty()).then(|| "mixed".to_owned()));
    let mut table = Table::new(head);
    let of_all = comparison.all.len();
    let of_repositories = rows(comparison).len() - of_all;
    for (place, (repository, d)) in rows(comparison).into_iter().enumerate() {
        // Within a repository, tasks are resampled.
        let kind = if place < of_repositories {
            ResamplingUnit::Tasks.interval_kind(d.n)
        } else {
            comparison.interval_kind()
        };
        let mut cells = vec![comparison.title(&d.measure), repository.to_owned(), d.n.to_string()];
        cells.push(d.difference.interval.map_or("", |_| kind.name()).into());
        for Estimate { mean, interval } in [d.a, d.b, d.difference] {
            let ends = [interval.map(|i| i.low), interval.map(|i| i.high)];
            cells.push(percent(mean));
            cells.extend(ends.map(|end| end.map(percent).unwrap_or_default()));
        }
        let by_repository = d.by_repository.map(|test| test.p.to_string());
        cells.extend([d.by_task.p.to_string(), by_repository.unwrap_or_default()]);
        cells.extend(changes(d));
        match &d.buckets {
            Some(buckets) => cells.extend(buckets.counts.map(|count| count.to_string())),
            None => cells.extend(Bucket::all().map(|_| String::new())),
        }
        cells.extend((!comparison.mixed.is_empty()).then(|| comparison.mixed.join("; ")));
        table.row(cells);
    }
    table
}

/// Returns a row per task, with A, B and their difference for each measure.
fn task_table(comparison: &Comparison) -> Table {
    let mut head: Vec<String> = ["task_id", "row", "repository"].map(Into::into).into();
    for MeasureComparison { measure, .. } in &comparison.all {
        let measure = comparison.title(measure);
        head.extend(["A", "B", "B - A"].map(|side| format!("{measure} {side}")));
    }
    let mut table = Table::new(head);
    for task in &comparison.tasks {
        let row = task.row.map(|row| row.to_string());
        let repository = task.repository.clone();
        let mut cells = vec![task.task_id.clone()];
        cells.extend([row, repository].map(Option::unwrap_or_default));
        for values in &task.values {
            cells.extend(match values {
                Some((a, b)) => [percent(*a), percent(*b), format_signed(b - a)],
                None => Default::default(),
            });
        }
        table.row(cells);
    }
    table
}

/// Returns notes on the resampling, the tests, and the tasks left out.
fn notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = vec![resampling_text(comparison)];
    let (by_repository, units) =
        (comparison.unit == ResamplingUnit::Repositories, comparison.units);
    if comparison.interval_kind() == IntervalKind::Range {
        notes.push(format!(
            "  {units} repositories are too few for confidence intervals: these are ranges of their means"
        ));
    } else if by_repository && units < FEW_REPOSITORIES {
        notes.push(format!(
            "  {units} repositories are few: with fewer than {FEW_REPOSITORIES}, intervals are too short"
        ));
    }
    if by_repository && !comparison.repositories.is_empty() {
        notes.push("  within a repository, tasks are resampled for 95 % intervals".into());
    }
    notes.push(flips_text(comparison));
    for (side, name) in [(&comparison.a, "A"), (&comparison.b, "B")] {
        if !side.alone.is_empty() {
            notes.push(format!("left out: {} only in {name}", list_ids(&side.alone)));
        }
    }
    if !comparison.mixed.is_empty() {
        notes.push(mixed::join_differences(&comparison.mixed));
    }
    let left_out = comparison.left_out.iter();
    notes.extend(left_out.map(|(measure, reason)| format!("left out: {measure} {reason}")));
    notes
}

fn resampling_text(comparison: &Comparison) -> String {
    let Resampling { resamples, seed, .. } = comparison.resampling;
    let times = group(resamples);
    match (comparison.unit, comparison.units) {
        (ResamplingUnit::Tasks, 0 | 1) => "intervals: none, since there is only one task".into(),
        (ResamplingUnit::Tasks, units) => format!(
            "intervals: {units} tasks resampled {times} times (seed {seed}), as if tasks of a repository were independent"
        ),
        (ResamplingUnit::Repositories, units) => format!(
            "intervals: {units} repositories resampled {times} times, each with all its tasks (seed {seed})"
        ),
    }
}

fn flips_text(comparison: &Comparison) -> String {
    let SignFlips { flips, seed } = comparison.flips;
    let random = group(flips);
    let rows = rows(comparison);
    let tests = || rows.iter().flat_map(|(_, d)| d.by_repository.into_iter().chain([d.by_task]));
    let how = match (tests().any(|test| test.exact), tests().all(|test| test.exact)) {
        (_, true) => "in every combination".to_owned(),
        (false, _) => format!("at random {random} times (seed {seed})"),
        (true, _) => format!(
            "in every combination if up to {} differ, otherwise at random {random} times (seed {seed})",
            SignFlips::EXACT
        ),
    };
    format!("p: two-sided sign-flip test, with signs flipped {how}")
}

/// Formats the number and first ids of some tasks: `2 tasks (a, b)`.
pub(super) fn list_ids(ids: &[String]) -> String {
    format!("{} ({})", tasks(ids.len()), list_first(ids, SHOWN))
}

fn tasks(number: usize) -> String {
    format!("{} {}", group(number), plural(number, "task"))
}

/// Formats a value × 100, with two digits and its sign.
fn format_signed(value: f64) -> String {
    repoformer_evaluate::table::format_signed(100.0 * value, 2)
}

fn with_interval(mean: &Estimate) -> String {
    let ends = mean
        .interval
        .map(|ends| format!(" [{}, {}]", format_signed(ends.low), format_signed(ends.high)));
    format_signed(mean.mean) + &ends.unwrap_or_default()
}

fn p(p: f64) -> String {
    if p < 0.0001 { "<0.0001".into() } else { format!("{p:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_they_are_shown() {
        assert_eq!(
            [format_signed(0.0541), format_signed(-0.2), format_signed(-1e-9)],
            ["+5.41", "-20.00", "+0.00"]
        );
        assert_eq!([p(1.0), p(0.0001), p(0.00002)], ["1.0000", "0.0001", "<0.0001"]);
        let ids = ["a", "b", "c", "d"].map(String::from);
        assert_eq!(list_ids(&ids[..1]), "1 task (a)");
        assert_eq!(list_ids(&ids), "4 tasks (a, b, c, …)");
    }
}
