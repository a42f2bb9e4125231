//! Table of an experiment: one row per mode or iteration.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use repoformer_core::metrics::Metric;
use repoformer_core::retrieve::Mode;
use repoformer_evaluate::mode_scores::{ModeScores, ScoredTask};
use repoformer_evaluate::statistics::{Groups, Interval, IntervalKind, Resampling, ResamplingUnit};
use repoformer_evaluate::table::{
    NamedColumn, Printable, Table, columns, ends, format_fixed, interval, or_dash, percent,
    with_embedding,
};
use repoformer_pipeline as pipeline;
use repoformer_pipeline::{
    Completion, Experiment, Latency, Messages, PromptTotals, SearchTime, prompt_totals,
};
use repoformer_store::frame::ColumnType::{Flag, Integer, Number, Text};
use repoformer_text::counts::part;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use repoformer_text::visible::visible_in_line;
use serde_json::{Value, json};

use crate::paper::{MeasuredRow, Tasks};
use crate::policies::PolicyChoice;
use crate::settings::{DECLARED, Departure, Settings};

/// Row of the table.
#[derive(Debug, Clone)]
pub struct Row {
    benchmark: String,
    /// Name of the mode, with its iteration.
    mode: String,
    /// Metric of its exact match and edit similarity.
    metric: Metric,
    /// Metric with its cut, in words.
    metric_name: String,
    /// Scores of the mode, as in their artifact.
    scores: Arc<ModeScores>,
    /// Intervals of exact match and edit similarity.
    intervals: [Option<Interval>; 2],
    /// Units that the intervals resample, and their number.
    units: (ResamplingUnit, usize),
    /// Unit-test pass rate of each row whose tests are conclusive.
    passed: BTreeMap<usize, f64>,
    /// Totals of the mode's prompts; a policy chooses among the prompts of two modes.
    prompts: Option<PromptTotals>,
    /// Fraction of the tasks for which a policy retrieves.
    rag_rate: Option<f64>,
    time: Option<SearchTime>,
    /// Mean milliseconds of a completion, if all were measured.
    generation_ms: Option<f64>,
    /// Mean milliseconds from a request to its completion, retrieval included.
    latency_ms: Option<f64>,
    /// Number of completions whose time is unknown, and number of all completions; `None` if times were not requested.
    untimed: Option<(usize, usize)>,
    /// Threshold of a policy, if it has one.
    threshold: Option<f64>,
    /// Fraction of the latency of always retrieving that is saved.
    speedup: Option<f64>,
    /// True if the row is a mode whose prompts show retrieval results before completing.
    is_always: bool,
    /// Greatest number of simultaneous requests when completions were timed.
    at_once: usize,
    /// True if `latency_ms` lacks the time for computing the queries' dense vectors.
    without_embedding: bool,
    /// Fraction of the tasks whose predictions are the same as in the previous iteration.
    pub unchanged: Option<f64>,
    /// Profile of the paper in the run, and the settings that contradict it.
    profile: Option<(&'static str, Vec<Departure>)>,
}

impl Row {
    /// Creates the row of some scores by the first metric.
    fn new(
        experiment: &Experiment,
        mode: String,
        scores: ModeScores,
        resampling: &Resampling,
    ) -> Self {
        let metric = experiment.scoring.first();
        Self {
            benchmark: experiment.name.clone(),
            mode,
            metric,
            metric_name: experiment.scoring.name(metric, scores.samples()),
            intervals: intervals(&scores, metric, resampling),
            units: units(&scores),
            scores: Arc::new(scores),
            passed: BTreeMap::new(),
            prompts: None,
            rag_rate: None,
            time: None,
            generation_ms: None,
            latency_ms: None,
            untimed: None,
            without_embedding: false,
            threshold: None,
            speedup: None,
            is_always: false,
            at_once: 0,
            unchanged: None,
            profile: None,
        }
    }

    /// Returns the rows of all metrics of its experiment, starting with this row.
    pub fn by_metric(self, experiment: &Experiment, resampling: &Resampling) -> Vec<Row> {
        let others = experiment.scoring.metrics.iter().skip(1).map(|&metric| Self {
            metric,
            metric_name: experiment.scoring.name(metric, self.scores.samples()),
            intervals: intervals(&self.scores, metric, resampling),
            ..self.clone()
        });
        let others: Vec<Row> = others.collect();
        [self].into_iter().chain(others).collect()
    }

    /// Creates the row of a completed mode with these scores, without the times of its completions.
    ///
    /// # Errors
    /// The prompts or the times of their search cannot be read.
    pub fn of_mode(
        experiment: &Experiment,
        mode: Mode,
        scores: ModeScores,
        resampling: &Resampling,
    ) -> Result<Row> {
        let name = experiment.layout.mode_name(mode);
        Ok(Self {
            is_always: matches!(mode, Mode::LeftContext | Mode::Given),
            prompts: Some(prompt_totals(experiment, mode)?),
            time: pipeline::search_time(experiment, mode)?.filter(|_| mode.retrieves()),
            ..Self::new(experiment, name, scores, resampling)
        })
    }

    /// Creates the row of a policy.
    pub fn selective(
        experiment: &Experiment,
        selected: &PolicyChoice,
        resampling: &Resampling,
    ) -> Row {
        let count = selected.scores.all.n as f64;
        let name = selected.source.name.clone();
        Self {
            rag_rate: Some(selected.retrieved as f64 / count.max(1.0)),
            threshold: selected.threshold,
            latency_ms: selected.latency_ms,
            without_embedding: selected.without_embedding,
            ..Self::new(experiment, name, selected.scores.clone(), resampling)
        }
    }

    /// Adds the paper's profile in force and the settings that contradict it.
    pub fn with_profile(self, settings: &Settings) -> Row {
        let profile = settings.paper_profile().map(|name| (name, settings.departures()));
        Self { profile, ..self }
    }

    /// Names the settings that contradict its profile.
    fn departures(&self) -> Option<String> {
        let (profile, departures) = self.profile.as_ref()?;
        let profile = format!("in profile {profile}");
        (!departures.is_empty()).then(|| Departure::line(&profile, departures))
    }

    /// Adds the unit-test results of its predictions; for a policy, these are the results of the modes that it chose.
    pub fn with_tests(self, passed: BTreeMap<usize, f64>) -> Row {
        Self { passed, ..self }
    }

    /// Returns the fraction of the tasks that pass their unit tests, if the tests were run.
    fn pass_rate(&self) -> Option<f64> {
        let count = self.passed.len();
        (count > 0).then(|| self.passed.values().sum::<f64>() / count as f64)
    }

    /// Adds the time of its prompts, which is measured now if it was not measured before.
    pub fn with_time(self, experiment: &Experiment, mode: Mode, model: &str) -> Result<Row> {
        let latencies = pipeline::latencies(experiment, mode, model)?;
        let latency = |latency: &Latency| Some(latency.retrieval(mode)? + latency.generation_ms?);
        // If no completion was timed, no times are kept.
        let all = if latencies.is_empty() { self.count() as usize } else { latencies.len() };
        let timed = latencies.iter().filter(|latency| latency.generation_ms.is_some()).count();
        Ok(Self {
            untimed: Some((all - timed, all)),
            generation_ms: mean(latencies.iter().map(|latency| latency.generation_ms)),
            // The second retrieval waits for a completion.
            latency_ms: mean(latencies.iter().map(latency)).filter(|_| mode != Mode::Prediction),
            at_once: latencies.iter().filter_map(|latency| latency.at_once).max().unwrap_or(0),
            without_embedding: latencies.iter().any(|latency| latency.without_embedding),
            ..self
        })
    }
}

/// Reports how many completions of a mode have no time, so that its means are left out.
pub fn tell_of_untimed(
    row: &Row,
    experiment: &Experiment,
    mode: Mode,
    completion: &Completion,
    messages: &dyn Messages,
) {
    let Some((untimed @ 1.., all)) = row.untimed else {
        return;
    };
    let path = experiment.paths().predictions(mode, &completion.model);
    let (why, way_out): (_, Message) = if completion.is_embedded() {
        (
            "they were completed without timing",
            format!("delete {} to complete and time them again", path.display()).into(),
        )
    } else {
        (
            "the answers come from a batch or an earlier run",
            message!["to time them, use a new ", &DECLARED.journal],
        )
    };
    messages.note(message![
        format!(
            "{} {}: {} no time, so the mean is left out: {why}; ",
            row.benchmark,
            row.mode,
            part(untimed, all, "completion", ["has", "have"])
        ),
        way_out
    ]);
}

/// Returns the mean of these values, if there are any and all are known.
fn mean(times: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let times: Vec<f64> = times.collect::<Option<_>>()?;
    (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
}

/// Returns the numbers of a benchmark's rows for a table of the paper: the numbers of each mode's first metric.
pub fn measured_rows(
    rows: &[Row],
    benchmark: &str,
    model: &str,
    tasks: &Tasks,
) -> Vec<MeasuredRow> {
    let mut all: Vec<MeasuredRow> = Vec::new();
    let rows: Vec<&Row> = rows.iter().filter(|row| row.benchmark == benchmark).collect();
    let always_lacks = rows.iter().any(|row| row.is_always && row.without_embedding);
    for &row in &rows {
        if all.iter().any(|one| one.mode == row.mode) {
            continue;
        }
        let mut values = BTreeMap::from([("retrieved", 100.0 * row.share_with_blocks())]);
        // If a latency lacks the queries' vectors, the saving is unknown.
        let speedup = row.speedup.filter(|_| !row.without_embedding && !always_lacks);
        values.extend(row.threshold.map(|threshold| ("threshold", threshold)));
        let scores = ["em", "es", "id_f1"].map(|name| (name, row.value(name)));
        let rest = scores.into_iter().chain([("ut", row.pass_rate()), ("speedup", speedup)]);
        values.extend(rest.filter_map(|(key, value)| Some((key, 100.0 * value?))));
        if row.is_always
            && let Some(without) =
                rows.iter().find(|other| other.mode == "none" && other.metric == row.metric)
        {
            let names = ["decreased", "unchanged", "increased"];
            let counts = row.changes(without);
            values.extend(names.into_iter().zip(counts.map(|count| count as f64)));
        }
        let (model, mode) = (model.to_owned(), row.mode.clone());
        let (benchmark, tasks) = (row.benchmark.clone(), tasks.clone());
        let metric = row.metric_name.clone();
        all.push(MeasuredRow {
            benchmark,
            tasks,
            model,
            mode,
            values,
            metric,
            lacks: always_lacks,
        });
    }
    all
}

/// Returns the name of a benchmark's first metric, with its cut and its treatment of several samples.
pub fn metric_name(rows: &[Row], benchmark: &str) -> String {
    let found = rows.iter().find(|row| row.benchmark == benchmark);
    found.map(|row| row.metric_name.clone()).unwrap_or_default()
}

/// Sets how much each row saves of the latency of always retrieving on the same tasks.
pub fn compare_with_always(rows: &mut [Row]) {
    let of = |row: &Row| Some((row.benchmark.clone(), row.latency_ms.filter(|_| row.is_always)?));
    let always: Vec<(String, f64)> = rows.iter().filter_map(of).collect();
    for row in rows {
        let found = always.iter().find(|(benchmark, _)| *benchmark == row.benchmark);
        let saved = |time: f64, always: f64| if always > 0.0 { 1.0 - time / always } else { 0.0 };
        row.speedup = found.and_then(|(_, always)| Some(saved(row.latency_ms?, *always)));
    }
}

/// Reports how many requests waited for each other while completions were timed.
pub fn tell_of_crowds(rows: &[Row], messages: &dyn Messages) {
    let most = rows.iter().filter(|row| row.latency_ms.is_some()).map(|row| row.at_once).max();
    if let Some(most @ 2..) = most {
        messages.note(message![
            format!("completions were timed with up to {most} at once; "),
            &DECLARED.concurrency,
            " 1 (a server) or ",
            &DECLARED.threads,
            " 1 (the embedded model), with an empty cache, times them one by one"
        ]);
    }
}

/// Warns of rows over different tasks, if predictions or conclusive unit tests are missing.
pub fn warn_of_gaps(rows: &[Row], messages: &dyn Messages) {
    for row in rows {
        let same = rows.iter().filter(|other| other.benchmark == row.benchmark);
        let tested = same.map(|other| other.passed.len()).max().unwrap_or(0);
        if (1..tested).contains(&row.passed.len()) {
            messages.warning(format!(
                "{} {}: unit tests are conclusive for {} tasks, but for {tested} in another row, so UT is not comparable",
                row.benchmark,
                row.mode,
                row.passed.len()
            ).into());
        }
        let same = rows.iter().filter(|other| other.benchmark == row.benchmark);
        let most = same.map(Row::count).max().unwrap_or(0);
        if row.count() < most {
            messages.warning(message![
                format!(
                    "{} {}: only {} a prediction, so its row is not comparable with the others; a ",
                    row.benchmark,
                    row.mode,
                    part(row.count() as usize, most as usize, "task", ["has", "have"])
                ),
                UserChoice::Comparison,
                " pairs tasks"
            ]);
        }
    }
}

/// Rows to print.
#[derive(Debug)]
pub struct ResultRows(pub Vec<Row>);

impl Printable for ResultRows {
    fn table(&self) -> Table {
        table(&self.0, false)
    }

    fn text(&self) -> String {
        let mut text = table(&self.0, true).text();
        for (benchmarks, line) in departures(&self.0) {
            text += &format!("\n{}: {line}\n", visible_in_line(&benchmarks.join(", ")));
        }
        text
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.0.iter().map(Row::record))
    }

    fn columns(&self) -> Vec<NamedColumn> {
        let scores = ["em", "es", "em_low", "em_high", "es_low", "es_high"];
        let times = ["ut", "generation_ms", "latency_ms", "speedup", "unchanged"];
        columns(Text, ["benchmark", "mode"])
            .chain(columns(Integer, ["n"]))
            .chain(columns(Text, ["metric"]))
            .chain(columns(Number, scores))
            .chain(columns(Text, ["interval", "unit"]))
            .chain(columns(Integer, ["units"]))
            .chain(columns(Number, ["prompt_tokens", "with_retrieved", "retrieval_ms"]))
            .chain(columns(Flag, ["without_embedding"]))
            .chain(columns(Number, times))
            .chain(columns(Text, ["profile", "departures"]))
            .collect()
    }

    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.0.iter().map(|row| {
            let mut record = row.record();
            record["without_embedding"] = row.lacks_embedding().into();
            record
        }))
    }
}

/// Returns the settings that contradict the profiles of the rows, each with its benchmarks.
pub fn departures(rows: &[Row]) -> Vec<(Vec<&str>, String)> {
    let mut all: Vec<(Vec<&str>, String)> = Vec::new();
    for row in rows {
        let Some(line) = row.departures() else { continue };
        match all.iter_mut().find(|(_, known)| *known == line) {
            Some((benchmarks, _)) if benchmarks.contains(&row.benchmark.as_str()) => {}
            Some((benchmarks, _)) => benchmarks.push(&row.benchmark),
            None => all.push((vec![&row.benchmark], line)),
        }
    }
    all
}

fn groups(scores: &ModeScores) -> Groups {
    Groups::new(scores.tasks.iter().map(|task| task.repository.as_deref()))
}

fn units(scores: &ModeScores) -> (ResamplingUnit, usize) {
    let groups = groups(scores);
    (groups.unit(), groups.len())
}

/// Returns the intervals of a mode's means, from the scores of its tasks.
fn intervals(
    scores: &ModeScores,
    metric: Metric,
    resampling: &Resampling,
) -> [Option<Interval>; 2] {
    let groups = groups(scores);
    let column = |name: &str| -> Vec<Option<f64>> {
        scores.tasks.iter().map(|task| task.get(metric, name)).collect()
    };
    let found = resampling.intervals(&groups, [column("em"), column("es")]);
    [0, 1].map(|place| found.get(place).copied().flatten())
}

impl Row {
    /// Returns the number of tasks that are worse, equal and better than in another row: by their unit tests if the tests of
    /// both rows were run, otherwise by edit similarity.
    fn changes(&self, without: &Row) -> [usize; 3] {
        let are_tested = !self.passed.is_empty() && !without.passed.is_empty();
        let scores = |row: &Row| -> BTreeMap<usize, f64> {
            if are_tested {
                return row.passed.clone();
            }
            let of = |task: &ScoredTask| Some((task.row, task.get(row.metric, "es")?));
            row.scores.tasks.iter().filter_map(of).collect()
        };
        let (before, now) = (scores(without), scores(self));
        let mut counts = [0; 3];
        for (row, score) in &now {
            if let Some(order) = before.get(row).map(|before| score.total_cmp(before)) {
                counts[(order as i8 + 1) as usize] += 1;
            }
        }
        counts
    }

    /// Returns the kind of its intervals, if it has any.
    fn interval_kind(&self) -> Option<IntervalKind> {
        let (unit, units) = self.units;
        self.intervals.iter().any(Option::is_some).then(|| unit.interval_kind(units))
    }

    /// Returns the number of scored tasks.
    fn count(&self) -> u64 {
        self.scores.all.n as u64
    }

    fn value(&self, name: &str) -> Option<f64> {
        self.scores.mean(self.metric, name)
    }

    fn tokens_per_prompt(&self) -> Option<f64> {
        let prompts = self.prompts.as_ref()?;
        Some(prompts.tokens as f64 / prompts.prompts.max(1) as f64)
    }

    /// Returns the fraction of the tasks whose prompt shows retrieved fragments.
    fn share_with_blocks(&self) -> f64 {
        match (&self.prompts, self.rag_rate) {
            (Some(prompts), None) => prompts.with_blocks as f64 / prompts.prompts.max(1) as f64,
            (_, rate) => rate.unwrap_or(0.0),
        }
    }

    fn milliseconds_per_query(&self) -> Option<f64> {
        self.time.map(|time| 1e3 * time.seconds / time.queries.max(1) as f64)
    }

    /// Returns true if some of its times lack the time for computing the queries' dense vectors.
    fn lacks_embedding(&self) -> bool {
        self.without_embedding || self.time.is_some_and(|time| !time.with_embedding)
    }

    fn record(&self) -> Value {
        let mut record = json!({
            "benchmark": self.benchmark,
            "mode": self.mode,
            "n": self.count(),
            "metric": self.metric_name,
            "em": self.value("em"),
            "es": self.value("es"),
            "em_interval": ends(&self.intervals[0]),
            "es_interval": ends(&self.intervals[1]),
            "interval": self.interval_kind().map(IntervalKind::name),
            "unit": self.units.0.name(),
            "units": self.units.1,
            "prompt_tokens": self.tokens_per_prompt(),
            "with_retrieved": self.share_with_blocks(),
            "retrieval_ms": self.milliseconds_per_query(),
        });
        if self.lacks_embedding() {
            record["without_embedding"] = true.into();
        }
        if let Some((profile, departures)) = &self.profile {
            record["profile"] = (*profile).into();
            if !departures.is_empty() {
                record["departures"] = departures.iter().map(Departure::to_record).collect();
            }
        }
        for (name, value) in [
            ("ut", self.pass_rate()),
            ("generation_ms", self.generation_ms),
            ("latency_ms", self.latency_ms),
            ("speedup", self.speedup),
            ("unchanged", self.unchanged),
        ] {
            if let Some(value) = value {
                record[name] = value.into();
            }
        }
        record
    }
}

/// Returns the table. Intervals, `[low, high]`, follow their means; with tabs they come last, with one number per column.
fn table(rows: &[Row], intervals_inside: bool) -> Table {
    let column = |name: &str, cell: &dyn Fn(&Row) -> String| -> Vec<String> {
        [name.to_owned()].into_iter().chain(rows.iter().map(cell)).collect()
    };
    let mut all = vec![
        column("tasks", &|row| row.benchmark.clone()),
        column("mode", &|row| row.mode.clone()),
        column("n", &|row| row.count().to_string()),
        column("metric", &|row| row.metric_name.clone()),
        column("EM", &|row| or_dash(row.value("em").map(percent))),
        column("ES", &|row| or_dash(row.value("es").map(percent))),
        column("%RAG", &|row| format!("{:.1}", 100.0 * row.share_with_blocks())),
        column("tokens/prompt", &|row| {
            or_dash(row.tokens_per_prompt().map(|tokens| format!("{tokens:.0}")))
        }),
        column("retrieval ms/query", &|row| {
            let lacks = row.time.is_some_and(|time| !time.with_embedding);
            let text = |ms| with_embedding(format!("{ms:.3}"), lacks);
            or_dash(row.milliseconds_per_query().map(text))
        }),
    ];
    // Empty columns are left out.
    let mut optional = |name: &str, cell: &dyn Fn(&Row) -> Option<String>| {
        if rows.iter().any(|row| cell(row).is_some()) {
            all.push(column(name, &|row| or_dash(cell(row))));
        }
    };
    optional("UT", &|row| row.pass_rate().map(percent));
    optional("generation ms/prompt", &|row| row.generation_ms.map(milliseconds));
    optional("latency ms", &|row| {
        row.latency_ms.map(|time| with_embedding(milliseconds(time), row.without_embedding))
    });
    optional("SU %", &|row| row.speedup.map(|saved| format_fixed(100.0 * saved, 1)));
    optional("unchanged %", &|row| row.unchanged.map(|share| format!("{:.1}", 100.0 * share)));
    let is_range = |row: &Row| row.interval_kind() == Some(IntervalKind::Range);
    let head = if rows.iter().all(is_range) { "range" } else { "95 %" };
    let shown = |row: &Row, place: usize| match interval(&row.intervals[place]) {
        ends if is_range(row) && head != "range" && !ends.is_empty() => format!("range {ends}"),
        ends => ends,
    };
    if !intervals_inside {
        // The text output has this below the table.
        if rows.iter().any(|row| row.departures().is_some()) {
            all.push(column("departures", &|row| row.departures().unwrap_or_default()));
        }
        let kind = |row: &Row| row.interval_kind().map_or("", IntervalKind::name).to_owned();
        all.push(column("interval", &kind));
    }
    for (place, name) in ["EM", "ES"].into_iter().enumerate() {
        if intervals_inside {
            all.insert(5 + 2 * place, column(head, &|row| shown(row, place)));
            continue;
        }
        let end = |of: fn(Interval) -> f64| {
            move |row: &Row| row.intervals[place].map(of).map(percent).unwrap_or_default()
        };
        all.push(column(&format!("{name} low"), &end(|interval| interval.low)));
        all.push(column(&format!("{name} high"), &end(|interval| interval.high)));
    }
    Table::of_columns(&all)
}

/// Formats milliseconds, as a whole number unless short.
fn milliseconds(time: f64) -> String {
    if time < 20.0 { format!("{time:.2}") } else { format!("{time:.0}") }
}
