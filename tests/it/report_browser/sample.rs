//! Reports that look like real ones: holes in the sample repositories' own files, fragments from their other files, and
//! predictions that miss by as much as models do. Drawn by a plain generator of numbers, so that every run shows the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use repoformer_evaluate::report::{
    BaselineComparison, ReportContents, ReportMeasure, ReportTask, ShownFragment, System,
    TaskOutcome,
};
use repoformer_evaluate::statistics::{Estimate, Interval};

/// A source file, by lines.
struct Source {
    repository: String,
    path: Arc<str>,
    lines: Vec<String>,
}

/// Numbers that look drawn (Knuth's multiplicative congruential generator, upper bits).
pub(crate) struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Below `end`.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// As many tasks and systems as asked for; systems are `none`, `rg1`, `gt`, `rg-rg`, and further ones by number.
pub(crate) fn report(tasks: usize, systems: usize) -> ReportContents<'static> {
    let sources = sources();
    let mut numbers = Numbers(7);
    let tasks: Vec<ReportTask> = (0..tasks).map(|row| task(row, &sources, &mut numbers)).collect();
    let systems = (0..systems).map(|at| system(at, &tasks, &sources, &mut numbers)).collect();
    let mut report = ReportContents {
        few: None,
        title: "Line completion in three repositories".into(),
        tool_version: env!("CARGO_PKG_VERSION").into(),
        provenance: vec![
            ("tasks".into(), "data/tasks/line.jsonl".into()),
            ("digest of the tasks".into(), "b3:0e9a64c1d2f7a85e".into()),
            ("post-processing".into(), "first lines, as many as the target has".into()),
            ("bootstrap".into(), "10,000 samples, seed 0".into()),
        ],
        notes: vec![
            "rg-rg has no prediction for some tasks; its means are over the others.".into(),
        ],
        measures: vec![measure("em", "exact match"), measure("es", "edit similarity")],
        main: 1,
        exact: Some(0),
        tasks,
        systems,
        baseline: Some(0),
    };
    summarize(&mut report);
    report
}

fn measure(value: &str, title: &str) -> ReportMeasure {
    ReportMeasure { metric: "repocoder".into(), value: value.into(), title: title.into() }
}

/// The repositories that come along, or the files below `$REPORT_CORPUS`, a folder a repository: for measurements.
fn sources() -> Vec<Source> {
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/repos");
    let root = std::env::var_os("REPORT_CORPUS").map_or(bundled, PathBuf::from);
    let (mut files, mut sources) = (Vec::new(), Vec::new());
    collect(&root, &mut files);
    files.sort();
    for file in files {
        let within = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let Some((repository, path)) = within.split_once('/') else {
            continue;
        };
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        let lines: Vec<String> = text.lines().map(Into::into).collect();
        if lines.len() >= 30 {
            sources.push(Source { repository: repository.into(), path: path.into(), lines });
        }
    }
    sources
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|end| end == "py") {
            files.push(path);
        }
    }
}

fn task(row: usize, sources: &[Source], numbers: &mut Numbers) -> ReportTask<'static> {
    let is_code =
        |line: &String| line.trim().len() > 12 && !line.trim().starts_with(['#', '"', '@']);
    let (source, line) = loop {
        let source = &sources[numbers.below(sources.len())];
        let line = 8 + numbers.below(source.lines.len() - 10);
        if is_code(&source.lines[line]) {
            break (source, line);
        }
    };
    let above = source.lines[line.saturating_sub(200)..line].join("\n") + "\n";
    let below = source.lines[line + 1..].iter().take(60);
    ReportTask {
        row,
        id: format!("{}/{row}", source.repository).into(),
        repository: source.repository.clone().into(),
        path: source.path.to_string().into(),
        line_no: line,
        language: "python".into(),
        target: source.lines[line].clone().into(),
        left_context: above.into(),
        right_context: Some(below.map(|line| format!("\n{line}")).collect()),
    }
}

fn system(at: usize, tasks: &[ReportTask], sources: &[Source], numbers: &mut Numbers) -> System {
    let name = ["none", "rg1", "gt", "rg-rg"]
        .get(at)
        .map_or_else(|| format!("model-{at}"), |name| name.to_string());
    let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let outcomes = tasks.iter().map(|task| {
        let missing = name == "rg-rg" && numbers.chance(2);
        (!missing).then(|| outcome(at, task, sources, numbers))
    });
    System {
        outcomes: outcomes.collect(),
        settings: vec![
            setting("mode", &name),
            setting("model", "in-context"),
            setting("ranker", if at == 0 { "–" } else { "jaccard" }),
            setting("window", "20 lines, a new one every 2"),
            setting("prompt tokens", "4,096"),
        ],
        name,
        ..System::default()
    }
}

fn outcome(
    system: usize,
    task: &ReportTask,
    sources: &[Source],
    numbers: &mut Numbers,
) -> TaskOutcome {
    let fragments = if system == 0 { Vec::new() } else { fragments(task, sources, numbers) };
    // What systems have in common is told by the task, so that most gains are 0.
    let hard = task.row * 7919 % 100;
    let reach = [34, 52, 60, 54].get(system).copied().unwrap_or(30 + system * 3);
    let exact = hard < reach && !numbers.chance(4) || numbers.chance(3);
    let prediction = if exact {
        task.target.to_string()
    } else {
        spoil(&task.target, hard, if numbers.chance(80) { 0 } else { system })
    };
    let raw = numbers
        .chance(30)
        .then(|| format!("{prediction}\n{}", sources[0].lines[numbers.below(20)]));
    let es = similarity(task.target.trim(), prediction.trim());
    TaskOutcome {
        raw,
        values: vec![f64::from(u8::from(es == 1.0)), es],
        identifiers_retrieved: found(&task.target, &fragments),
        prediction,
        fragments,
        status: None,
    }
}

/// Ten windows of twenty lines, most from the task's repository; one may hold the target.
fn fragments(task: &ReportTask, sources: &[Source], numbers: &mut Numbers) -> Vec<ShownFragment> {
    let own: Vec<&Source> =
        sources.iter().filter(|source| source.repository == task.repository).collect();
    let fragment = |rank: usize| {
        let source = own[numbers.below(own.len())];
        // Few windows of a repository answer many queries.
        let first = numbers.below(source.lines.len() / 20 + 1) * 10;
        let lines = source.lines[first..].iter().take(20);
        ShownFragment {
            path: source.path.clone(),
            first_line: Some(first),
            score: Some(0.62 / (1.0 + rank as f64 * 0.13)),
            text: lines.map(|line| format!("{line}\n")).collect::<String>().into(),
        }
    };
    (0..10).map(fragment).collect()
}

fn found(target: &str, fragments: &[ShownFragment]) -> Option<f64> {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c| !is_word(c));
        words
            .filter(|word| word.starts_with(|c: char| c == '_' || c.is_alphabetic()))
            .map(Into::into)
            .collect()
    };
    if fragments.is_empty() {
        return None;
    }
    let mut names = words(target);
    names.sort();
    names.dedup();
    let shown: Vec<String> = fragments.iter().flat_map(|fragment| words(&fragment.text)).collect();
    let found = names.iter().filter(|name| shown.contains(name)).count();
    (!names.is_empty()).then(|| found as f64 / names.len() as f64)
}

/// Renames, drops or adds a word or two.
fn spoil(target: &str, hard: usize, way: usize) -> String {
    let indent = &target[..target.len() - target.trim_start().len()];
    let mut words: Vec<String> = target.trim().split(' ').map(Into::into).collect();
    let at = hard % words.len();
    match (hard + way) % 5 {
        0 => words[at] = words[at].replace(['a', 'e'], "o"),
        1 => words.truncate((at + 1).max(words.len() / 2)),
        2 => words[at] = "self.result".into(),
        3 => words.push("or None".into()),
        _ => words[at] = format!("{}_id", words[at].trim_end_matches([')', ':', ','])),
    }
    match words.join(" ") {
        same if same == target.trim() => format!("{indent}pass"),
        other => format!("{indent}{other}"),
    }
}

/// 1 minus edit distance over the longer length, by the textbook.
fn similarity(a: &str, b: &str) -> f64 {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    let longer = a.len().max(b.len());
    if longer == 0 { 1.0 } else { 1.0 - row[b.len()] as f64 / longer as f64 }
}

/// Means with normal intervals, and the comparison with the baseline.
pub(crate) fn summarize(report: &mut ReportContents) {
    let tasks = report.tasks.len();
    for at in 0..report.systems.len() {
        let values = |measure| {
            (0..tasks).filter_map(|task| report.value(at, task, measure)).collect::<Vec<f64>>()
        };
        let means: Vec<Estimate> =
            (0..report.measures.len()).map(|m| mean(&values(m), (0.0, 1.0))).collect();
        let gains: Vec<f64> = (0..tasks).filter_map(|task| report.gain(at, task)).collect();
        let gain = mean(&gains, (-1.0, 1.0));
        let n = values(report.main).len();
        let is_compared = report.baseline.is_some_and(|baseline| baseline != at);
        let system = &mut report.systems[at];
        (system.means, system.n) = (means, n);
        system.comparison = is_compared.then(|| BaselineComparison {
            mean_difference: gain.mean,
            interval: gain.interval,
            p_tasks: Some(if gain.mean.abs() > 0.02 { 0.0002 } else { 0.041 }),
            p_repositories: None,
        });
    }
}

fn mean(values: &[f64], (least, most): (f64, f64)) -> Estimate {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    let half = 1.96 * (variance / n).sqrt();
    Estimate {
        mean,
        interval: Some(Interval { low: (mean - half).max(least), high: (mean + half).min(most) }),
    }
}
