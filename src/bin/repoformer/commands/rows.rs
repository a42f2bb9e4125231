//! The table of an experiment: a row per mode or iteration.

use anyhow::Result;
use repoformer::evaluate::statistics::{Groups, Interval, Resampling};
use repoformer::pipeline::{
    self, Completion, Experiment, Latency, PromptTotals, SearchTime, prompt_totals,
};
use repoformer::retrieve::Mode;
use serde_json::{Value, json};

use super::eval_output::interval;
use super::selective::Selected;
use crate::args::ScoreFormat;
use crate::output;
use crate::table::Table;

/// One row of the table.
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
        report.warnings.iter().for_each(|rebuilt| output::warning(rebuilt));
        output::problems(&report.problems);
        let row = Self {
            benchmark: experiment.name.clone(),
            mode: experiment.layout.mode_name(mode),
            intervals: intervals(&scores, resampling),
            scores,
            prompts: Some(prompt_totals(experiment, mode)?),
            rag_rate: None,
            time: pipeline::search_time(experiment, mode).filter(|_| mode.retrieves()),
            generation_ms: None,
            latency_ms: None,
            unchanged: None,
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
            mode: selected.policy.clone(),
            intervals: intervals(&selected.scores, resampling),
            scores: selected.scores.clone(),
            prompts: None,
            rag_rate: Some(selected.retrieved.len() as f64 / count.max(1.0)),
            time: None,
            generation_ms: None,
            latency_ms: selected.latency_ms,
            unchanged: None,
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
pub(super) fn text(rows: &[Row], format: ScoreFormat) -> Result<String> {
    Ok(match format {
        ScoreFormat::Text => table(rows, true).text(),
        ScoreFormat::Tsv => table(rows, false).tsv(),
        ScoreFormat::Json => {
            serde_json::to_string_pretty(&rows.iter().map(json_row).collect::<Vec<_>>())? + "\n"
        }
        ScoreFormat::Jsonl => rows.iter().map(|row| json_row(row).to_string() + "\n").collect(),
    })
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
}

/// The table. Intervals, `[low, high]`, follow their means; with tabs they come last, one number per column.
fn table(rows: &[Row], intervals_inside: bool) -> Table {
    let mut head = vec![
        "tasks",
        "mode",
        "n",
        "EM",
        "ES",
        "tokens/prompt",
        "with retrieved %",
        "retrieval ms/query",
    ];
    // Empty columns are left out.
    let has_generation = rows.iter().any(|row| row.generation_ms.is_some());
    let has_latency = rows.iter().any(|row| row.latency_ms.is_some());
    let has_unchanged = rows.iter().any(|row| row.unchanged.is_some());
    if has_generation {
        head.push("generation ms/prompt");
    }
    if has_latency {
        head.push("latency ms");
    }
    if has_unchanged {
        head.push("unchanged %");
    }
    if intervals_inside {
        head.insert(4, "95 %");
        head.insert(6, "95 %");
    } else {
        head.extend(["EM low", "EM high", "ES low", "ES high"]);
    }
    let mut table = Table::new(&head);
    for row in rows {
        let mut cells = vec![
            row.benchmark.clone(),
            row.mode.clone(),
            row.count().to_string(),
            format!("{:.2}", 100.0 * row.value("em")),
            format!("{:.2}", 100.0 * row.value("es")),
            row.tokens_per_prompt().map_or("-".into(), |tokens| format!("{tokens:.0}")),
            format!("{:.1}", 100.0 * row.share_with_blocks()),
            row.milliseconds_per_query().map_or("-".into(), |ms| format!("{ms:.3}")),
        ];
        if has_generation {
            let ms = row.generation_ms;
            cells.push(milliseconds(ms));
        }
        if has_latency {
            cells.push(milliseconds(row.latency_ms));
        }
        if has_unchanged {
            let share = row.unchanged;
            cells.push(share.map_or("-".into(), |share| format!("{:.1}", 100.0 * share)));
        }
        if intervals_inside {
            cells.insert(4, interval(&row.intervals[0]));
            cells.insert(6, interval(&row.intervals[1]));
        } else {
            let ends = row.intervals.iter().flat_map(|interval| {
                let ends = interval.map(|interval| [interval.low, interval.high]);
                let end = |end: usize| {
                    ends.map_or(String::new(), |ends| format!("{:.2}", 100.0 * ends[end]))
                };
                [end(0), end(1)]
            });
            cells.extend(ends);
        }
        table.row(cells);
    }
    table
}

/// Milliseconds, whole unless short.
fn milliseconds(time: Option<f64>) -> String {
    match time {
        None => "-".into(),
        Some(time) if time < 20.0 => format!("{time:.2}"),
        Some(time) => format!("{time:.0}"),
    }
}

fn json_row(row: &Row) -> Value {
    let mut record = json!({
        "benchmark": row.benchmark,
        "mode": row.mode,
        "n": row.count(),
        "em": row.value("em"),
        "es": row.value("es"),
        "em_interval": row.intervals[0].map(|interval| [interval.low, interval.high]),
        "es_interval": row.intervals[1].map(|interval| [interval.low, interval.high]),
        "prompt_tokens": row.tokens_per_prompt(),
        "with_retrieved": row.share_with_blocks(),
        "retrieval_ms": row.milliseconds_per_query(),
    });
    for (name, value) in [
        ("generation_ms", row.generation_ms),
        ("latency_ms", row.latency_ms),
        ("unchanged", row.unchanged),
    ] {
        if let Some(value) = value {
            record[name] = value.into();
        }
    }
    record
}
