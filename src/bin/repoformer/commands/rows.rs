//! The table of an experiment: a row per mode or iteration.

use anyhow::Result;
use repoformer::evaluate::statistics::{Groups, Interval, Resampling};
use repoformer::pipeline::{
    self, Completion, Experiment, Latency, PromptTotals, SearchTime, prompt_totals,
};
use repoformer::retrieve::Mode;
use serde_json::{Value, json};

use super::selective::Selected;
use crate::output;
use crate::table::{ScoreFormat, Table, interval, or_dash, percent, written};

/// One row of the table.
#[derive(Default)]
pub(super) struct Row {
    benchmark: String,
    /// The mode's name, with its iteration.
    mode: String,
    /// The mode's scores, as in their artifact.
    scores: Value,
    /// Intervals of exact match and edit similarity.
    intervals: [Option<Interval>; 2],
    /// Totals of the mode's prompts; a policy chooses among those of two modes.
    prompts: Option<PromptTotals>,
    /// Share of the tasks that a policy retrieves for.
    rag_rate: Option<f64>,
    time: Option<SearchTime>,
    /// Mean milliseconds of a completion, where all were measured.
    generation_ms: Option<f64>,
    /// Mean milliseconds from a request to its completion, retrieval included.
    latency_ms: Option<f64>,
    /// Share of the tasks whose predictions equal those of the previous iteration.
    pub(super) unchanged: Option<f64>,
}

impl Row {
    /// The row of a completed mode.
    pub(super) fn of(
        experiment: &Experiment,
        mode: Mode,
        completion: &Completion,
        resampling: &Resampling,
    ) -> Result<Row> {
        let (scores, report) = pipeline::scores(experiment, mode, &completion.model, None)?;
        report.warnings.iter().for_each(output::warning);
        output::problems(&report.problems);
        let row = Self {
            benchmark: experiment.name.clone(),
            mode: experiment.layout.mode_name(mode),
            intervals: intervals(&scores, resampling),
            scores,
            prompts: Some(prompt_totals(experiment, mode)?),
            time: pipeline::search_time(experiment, mode).filter(|_| mode.retrieves()),
            ..Self::default()
        };
        if completion.is_embedded() {
            Ok(row)
        } else {
            row.timed(experiment, mode, &completion.model)
        }
    }

    /// The row of a policy.
    pub(super) fn selective(
        experiment: &Experiment,
        selected: &Selected,
        resampling: &Resampling,
    ) -> Row {
        let count = selected.scores["all"]["n"].as_f64().unwrap_or(0.0);
        Self {
            benchmark: experiment.name.clone(),
            mode: selected.source.name.clone(),
            intervals: intervals(&selected.scores, resampling),
            scores: selected.scores.clone(),
            rag_rate: Some(selected.retrieved as f64 / count.max(1.0)),
            latency_ms: selected.latency_ms,
            ..Self::default()
        }
    }

    /// Whether all of its completions were timed.
    pub(super) fn is_timed(&self) -> bool {
        self.generation_ms.is_some()
    }

    /// Adds the time of its prompts, measured now if it was not before.
    pub(super) fn timed(self, experiment: &Experiment, mode: Mode, model: &str) -> Result<Row> {
        let latencies = pipeline::latencies(experiment, mode, model)?;
        let latency = |latency: &Latency| Some(latency.retrieval(mode)? + latency.generation_ms?);
        Ok(Self {
            generation_ms: mean(latencies.iter().map(|latency| latency.generation_ms)),
            // The second retrieval waits for a completion.
            latency_ms: mean(latencies.iter().map(latency)).filter(|_| mode != Mode::Prediction),
            ..self
        })
    }
}

/// Mean of these values, if there are any and all are known.
fn mean(times: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let times: Vec<f64> = times.collect::<Option<_>>()?;
    (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
}

/// Warns of rows over different tasks, where predictions are missing.
pub(super) fn warn_of_gaps(rows: &[Row]) {
    for row in rows {
        let same = rows.iter().filter(|other| other.benchmark == row.benchmark);
        let most = same.map(Row::count).max().unwrap_or(0);
        if row.count() < most {
            output::warning(format!(
                "{} {}: only {} of {most} tasks have a prediction, so its row is not comparable with the others; `compare` pairs tasks",
                row.benchmark,
                row.mode,
                row.count()
            ));
        }
    }
}

/// The rows in the requested format.
pub(super) fn text(rows: &[Row], format: ScoreFormat) -> String {
    let table = || table(rows, format == ScoreFormat::Text);
    written(format, table, rows.iter().map(Row::record))
}

/// Intervals of a mode's means, from the scores of its tasks.
fn intervals(scores: &Value, resampling: &Resampling) -> [Option<Interval>; 2] {
    let tasks = scores["tasks"].as_array().map_or(&[][..], Vec::as_slice);
    let groups = Groups::of(tasks.iter().map(|task| task["repository"].as_str()));
    let column = |name: &str| -> Vec<Option<f64>> {
        tasks.iter().map(|task| task["repocoder"][name].as_f64()).collect()
    };
    let found = resampling.intervals(&groups, [column("em"), column("es")]);
    [0, 1].map(|place| found.get(place).copied().flatten())
}

impl Row {
    /// Number of tasks scored.
    fn count(&self) -> u64 {
        self.scores["all"]["n"].as_u64().unwrap_or(0)
    }

    fn value(&self, name: &str) -> f64 {
        self.scores["all"]["repocoder"][name].as_f64().unwrap_or(0.0)
    }

    fn tokens_per_prompt(&self) -> Option<f64> {
        let prompts = self.prompts.as_ref()?;
        Some(prompts.tokens as f64 / prompts.prompts.max(1) as f64)
    }

    /// Share of the tasks whose prompt shows retrieved fragments.
    fn share_with_blocks(&self) -> f64 {
        match (&self.prompts, self.rag_rate) {
            (Some(prompts), None) => prompts.with_blocks as f64 / prompts.prompts.max(1) as f64,
            (_, rate) => rate.unwrap_or(0.0),
        }
    }

    fn milliseconds_per_query(&self) -> Option<f64> {
        self.time.map(|time| 1e3 * time.seconds / time.queries.max(1) as f64)
    }

    fn record(&self) -> Value {
        let mut record = json!({
            "benchmark": self.benchmark,
            "mode": self.mode,
            "n": self.count(),
            "em": self.value("em"),
            "es": self.value("es"),
            "em_interval": self.intervals[0].map(|interval| [interval.low, interval.high]),
            "es_interval": self.intervals[1].map(|interval| [interval.low, interval.high]),
            "prompt_tokens": self.tokens_per_prompt(),
            "with_retrieved": self.share_with_blocks(),
            "retrieval_ms": self.milliseconds_per_query(),
        });
        for (name, value) in [
            ("generation_ms", self.generation_ms),
            ("latency_ms", self.latency_ms),
            ("unchanged", self.unchanged),
        ] {
            if let Some(value) = value {
                record[name] = value.into();
            }
        }
        record
    }
}

/// The table. Intervals, `[low, high]`, follow their means; with tabs they come last, one number per column.
fn table(rows: &[Row], intervals_inside: bool) -> Table {
    let column = |name: &str, cell: &dyn Fn(&Row) -> String| -> Vec<String> {
        [name.to_owned()].into_iter().chain(rows.iter().map(cell)).collect()
    };
    let mut columns = vec![
        column("tasks", &|row| row.benchmark.clone()),
        column("mode", &|row| row.mode.clone()),
        column("n", &|row| row.count().to_string()),
        column("EM", &|row| percent(row.value("em"))),
        column("ES", &|row| percent(row.value("es"))),
        column("tokens/prompt", &|row| {
            or_dash(row.tokens_per_prompt().map(|tokens| format!("{tokens:.0}")))
        }),
        column("with retrieved %", &|row| format!("{:.1}", 100.0 * row.share_with_blocks())),
        column("retrieval ms/query", &|row| {
            or_dash(row.milliseconds_per_query().map(|ms| format!("{ms:.3}")))
        }),
    ];
    // Empty columns are left out.
    let mut optional = |name: &str, cell: &dyn Fn(&Row) -> Option<String>| {
        if rows.iter().any(|row| cell(row).is_some()) {
            columns.push(column(name, &|row| or_dash(cell(row))));
        }
    };
    optional("generation ms/prompt", &|row| row.generation_ms.map(milliseconds));
    optional("latency ms", &|row| row.latency_ms.map(milliseconds));
    optional("unchanged %", &|row| row.unchanged.map(|share| format!("{:.1}", 100.0 * share)));
    for (place, name) in ["EM", "ES"].into_iter().enumerate() {
        if intervals_inside {
            columns.insert(4 + 2 * place, column("95 %", &|row| interval(&row.intervals[place])));
            continue;
        }
        let end = |of: fn(Interval) -> f64| {
            move |row: &Row| row.intervals[place].map(of).map(percent).unwrap_or_default()
        };
        columns.push(column(&format!("{name} low"), &end(|interval| interval.low)));
        columns.push(column(&format!("{name} high"), &end(|interval| interval.high)));
    }
    Table::of_columns(&columns)
}

/// Milliseconds, whole unless short.
fn milliseconds(time: f64) -> String {
    if time < 20.0 { format!("{time:.2}") } else { format!("{time:.0}") }
}
