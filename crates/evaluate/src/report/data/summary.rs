//! Columns by which the list of tasks is displayed, filtered and sorted, with one entry per task.

use std::borrow::Cow;

use foldhash::HashMap;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::gain::range;
use super::super::group::{Lengths, TargetShare};
use super::super::text::shorten;
use super::super::{ReportContents, ReportMeasure, System};
use super::pool::Pool;
use super::records::Records;
use crate::statistics::{Bucket, GainSign};

/// Number of characters of a target that the list searches.
const SEARCHED: usize = 2000;

#[derive(Serialize)]
struct Summary<'a> {
    baseline: Option<usize>,
    /// Index of the system selected initially.
    selected: usize,
    main: usize,
    exact: Option<usize>,
    measures: Vec<Value>,
    systems: Vec<SystemColumns<'a>>,
    tasks: TaskColumns<'a>,
    length_unit: &'static str,
    length_groups: Vec<String>,
    buckets: Vec<String>,
    found: Vec<(char, &'static str)>,
    statuses: Vec<&'a str>,
    /// Number of the first line of each block of lines.
    line_blocks: &'a [u32],
}

#[derive(Serialize)]
struct SystemColumns<'a> {
    name: &'a str,
    /// By measure and task: value × 10,000, or null.
    values: Vec<Vec<Option<i32>>>,
    /// By task: gain in the main measure × 10,000, or null.
    gains: Vec<Option<i32>>,
    /// One letter per task: better, same, worse, missing.
    verdicts: String,
    /// One letter per task: `a` for the bucket of the greatest loss, `-` if there is no gain.
    buckets: String,
    /// One letter per task, see [`TargetShare::letter`].
    found: String,
    /// By task: number of its status, or -1; empty if no task has one.
    statuses: Vec<i32>,
}

#[derive(Serialize)]
struct TaskColumns<'a> {
    id: Vec<&'a str>,
    row: Vec<usize>,
    repositories: Vec<&'a str>,
    repository: Vec<usize>,
    paths: Vec<&'a str>,
    path: Vec<usize>,
    languages: Vec<&'a str>,
    language: Vec<usize>,
    line_no: Vec<usize>,
    length: &'a [usize],
    length_group: Vec<usize>,
    target: Vec<Cow<'a, str>>,
    block: Vec<usize>,
    start: Vec<usize>,
}

/// Returns the summary as JSON. It is compressed in the page, so nothing in it can be mistaken for markup.
pub(super) fn json(
    report: &ReportContents,
    lengths: &Lengths,
    records: &Records,
    pool: &Pool,
) -> String {
    let statuses = statuses(report);
    let systems = report.systems.iter().enumerate();
    let measure = |measure: &ReportMeasure| json!({"metric": measure.metric, "label": measure.label(), "title": measure.title});
    let summary = Summary {
        baseline: report.baseline().map(|(baseline, _)| baseline),
        selected: report.best().unwrap_or(0),
        main: report.main,
        exact: report.exact.filter(|&exact| exact < report.measures.len()),
        measures: report.measures.iter().map(measure).collect(),
        systems: systems
            .map(|(at, system)| system_columns(report, at, system, &statuses))
            .collect(),
        tasks: task_columns(report, lengths, records),
        length_unit: lengths.unit.name(),
        length_groups: (0..lengths.groups()).map(|at| lengths.label(at)).collect(),
        buckets: Bucket::all().map(range).collect(),
        found: TargetShare::SHOWN.map(|found| (found.letter(), found.title())).to_vec(),
        statuses,
        line_blocks: &pool.firsts,
    };
    // Serialization cannot fail: keys are field names, and numbers are integers.
    serde_json::to_string(&summary).unwrap_or_default()
}

/// Returns every status of an outcome, sorted.
fn statuses<'a>(report: &'a ReportContents<'_>) -> Vec<&'a str> {
    let outcomes = report.systems.iter().flat_map(|system| system.outcomes.iter().flatten());
    let mut statuses: Vec<&str> = outcomes.filter_map(|o| o.status.as_deref()).collect();
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

fn system_columns<'a>(
    report: &'a ReportContents,
    at: usize,
    system: &'a System,
    statuses: &[&str],
) -> SystemColumns<'a> {
    let tasks = || 0..report.tasks.len();
    let gains = || tasks().map(|task| report.gain(at, task));
    let values =
        |measure| tasks().map(move |task| report.value(at, task, measure).map(ten_thousandths));
    let status = |task| {
        let status = report.outcome(at, task)?.status.as_deref()?;
        statuses.binary_search(&status).ok().map(|number| number as i32)
    };
    let numbers: Vec<i32> = tasks().map(|task| status(task).unwrap_or(-1)).collect();
    SystemColumns {
        name: &system.name,
        values: (0..report.measures.len()).map(|measure| values(measure).collect()).collect(),
        gains: gains().map(|gain| gain.map(ten_thousandths)).collect(),
        verdicts: tasks().map(|task| verdict_letter(report, at, task)).collect(),
        buckets: gains().map(|gain| gain.map_or('-', bucket_letter)).collect(),
        found: tasks().map(|task| TargetShare::from_report(report, at, task).letter()).collect(),
        statuses: if numbers.iter().any(|&number| number >= 0) { numbers } else { Vec::new() },
    }
}

fn ten_thousandths(value: f64) -> i32 {
    (value * 10_000.0).round() as i32
}

/// Returns the letter of a task's verdict; for the baseline, the letter shows whether it has a prediction.
fn verdict_letter(report: &ReportContents, system: usize, task: usize) -> char {
    let alone = report.baseline().is_none_or(|(baseline, _)| baseline == system);
    match report.gain(system, task).map(GainSign::from_gain) {
        _ if alone => match report.value(system, task, report.main) {
            Some(_) => '-',
            None => 'm',
        },
        Some(GainSign::Better) => 'b',
        Some(GainSign::Same) => 's',
        Some(GainSign::Worse) => 'w',
        None => 'm',
    }
}

fn bucket_letter(gain: f64) -> char {
    char::from(b'a' + Bucket::new(gain).index() as u8)
}

fn task_columns<'a>(
    report: &'a ReportContents,
    lengths: &'a Lengths,
    records: &Records,
) -> TaskColumns<'a> {
    let tasks = &report.tasks;
    let (repositories, repository) = distinct(tasks.iter().map(|task| task.repository.as_ref()));
    let (paths, path) = distinct(tasks.iter().map(|task| task.path.as_ref()));
    let (languages, language) = distinct(tasks.iter().map(|task| task.language.as_ref()));
    TaskColumns {
        id: tasks.iter().map(|task| task.id.as_ref()).collect(),
        row: tasks.iter().map(|task| task.row).collect(),
        repositories,
        repository,
        paths,
        path,
        languages,
        language,
        line_no: tasks.iter().map(|task| task.line_no).collect(),
        length: &lengths.lengths,
        length_group: (0..tasks.len()).map(|task| lengths.group(task)).collect(),
        target: tasks.iter().map(|task| beginning(&task.target)).collect(),
        block: records.places.iter().map(|place| place.0).collect(),
        start: records.places.iter().map(|place| place.1).collect(),
    }
}

fn beginning(target: &str) -> Cow<'_, str> {
    if target.len() <= SEARCHED { target.into() } else { shorten(target, SEARCHED).into() }
}

/// Returns the distinct names in the order of their first occurrence, and the number of each entry's name.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> (Vec<&'a str>, Vec<usize>) {
    let (mut places, mut found) = (HashMap::default(), Vec::new());
    let numbers = names
        .map(|name| {
            *places.entry(name).or_insert_with(|| {
                found.push(name);
                found.len() - 1
            })
        })
        .collect();
    (found, numbers)
}
