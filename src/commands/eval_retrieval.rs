//! `eval --retrieval`: compares rankers and queries without a model.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use repoformer_core::retrieve::rank::Ranker;
use repoformer_core::retrieve::{Align, Mode, QueryForm};
use repoformer_evaluate::quality::{Measures, RetrievalQuality, TaskQuality};
use repoformer_evaluate::table::{
    NamedColumn, Printable, Table, columns, or_dash, percent, with_embedding,
};
use repoformer_pipeline as pipeline;
use repoformer_pipeline::{Experiment, StageReport, retrieval_quality};
use repoformer_store::frame::ColumnType::{Flag, Integer, Number, Text};
use repoformer_study::choices::warn_of_departures;
use repoformer_study::experiments::{check_ranker, single};
use repoformer_study::stages::read_predictions;
use serde_json::{Value, json};

use crate::commands::eval_args::EvalArgs;
use crate::output::{self, write_data};
use crate::settings::Settings;
use crate::table::format_results;

/// Measures in the table; JSON contains all.
const COLUMNS: [(&str, &str); 10] = [
    ("id recall", "id_recall"),
    ("new id recall", "new_id_recall"),
    ("new id all", "new_id_containment"),
    ("api recall", "api_recall"),
    ("definitions", "definition_recall"),
    ("verbatim", "verbatim"),
    ("ES", "es"),
    ("gt@1", "gt_recall@1"),
    ("gt@5", "gt_recall@5"),
    ("gt@10", "gt_recall@10"),
];

/// Measurements of one ranker and query.
struct Row {
    ranker: String,
    query: QueryForm,
    align: String,
    quality: RetrievalQuality,
    milliseconds: Option<f64>,
    /// True if the time does not include the query's dense vector.
    without_embedding: bool,
}

pub(super) fn run(args: &EvalArgs, settings: &Settings) -> Result<()> {
    let mut rankers: Vec<Ranker> = parse_all(&separate(&args.rankers))?;
    // Signatures are shown only if a ranker finds definitions.
    let finding = rankers.iter().find(|ranker| ranker.finds_definitions());
    let finding = finding.or(rankers.first()).filter(|_| *settings.align.get() == Align::Signature);
    let of_finding =
        finding.map(|ranker| settings.with(|values| values.ranker.replace(vec![ranker.clone()])));
    let settings = of_finding.as_ref().unwrap_or(settings);
    let (mut experiment, settings) = single(settings)?;
    if experiment.tasks.is_none() {
        bail!("--tasks is not set, so there is nothing to measure against");
    }
    warn_of_departures(&settings);
    if rankers.is_empty() {
        rankers.push(experiment.retrieval.search.ranker.clone());
    }
    let mut forms: Vec<QueryForm> = parse_all(&args.queries)?;
    if forms.is_empty() {
        forms.push(experiment.retrieval.form);
    }
    for ranker in &rankers {
        check_ranker(ranker, experiment.layout.language)?;
    }
    output::report("window", &pipeline::window_repositories(&experiment)?);
    let (mut rows, mut vectors) = (Vec::new(), StageReport::default());
    let mut kinds = BTreeSet::new();
    for ranker in &rankers {
        experiment.search_with(ranker.clone(), forms[0]);
        let is_dense = ranker.parts().contains(&Ranker::Dense);
        if kinds.insert((experiment.paths().vectors().to_owned(), is_dense)) {
            vectors.merge(pipeline::vectorize_repositories(&experiment)?);
        }
    }
    output::report("vectorize", &vectors);
    for ranker in rankers {
        for &form in &forms {
            experiment.search_with(ranker.clone(), form);
            rows.push(measure(&experiment, args, &settings)?);
        }
    }
    let results = Results { rows, per_task: args.per_task };
    write_data(&args.output, format_results(&results, args.format()?)?)
}

/// Measurements of rankers and queries.
struct Results {
    rows: Vec<Row>,
    per_task: bool,
}

impl Printable for Results {
    fn table(&self) -> Table {
        table(&self.rows, self.per_task)
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.rows.iter().map(|row| row.record(self.per_task)))
    }

    fn columns(&self) -> Vec<NamedColumn> {
        let measures = Measures::default().values().map(|(measure, _)| measure);
        let mut all: Vec<NamedColumn> = columns(Text, ["retrieval", "query", "align"]).collect();
        if self.per_task {
            all.extend(columns(Text, ["task_id"]));
            all.extend(columns(Integer, ["row"]));
            all.extend(columns(Text, ["repository"]));
            all.extend(columns(Number, measures));
            return all;
        }
        all.extend(columns(Text, ["repository"]));
        all.extend(columns(Integer, ["n"]));
        for measure in measures {
            all.extend(columns(Number, [format!("{measure}.mean")]));
            all.extend(columns(Integer, [format!("{measure}.n")]));
        }
        all.extend(columns(Number, ["retrieval_ms"]));
        all.extend(columns(Flag, ["without_embedding"]));
        all
    }

    /// Returns a row per task if requested; otherwise a row per repository, and one without a repository for all.
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.rows.iter().flat_map(|row| {
            let quality = &row.quality;
            let records: Vec<Value> = if self.per_task {
                quality.tasks.iter().map(TaskQuality::to_record).collect()
            } else {
                let each = quality.repositories.iter().map(|(repository, means)| {
                    let mut record = means.to_record();
                    record["repository"] = repository.as_str().into();
                    record
                });
                let mut all = quality.all.to_record();
                all["retrieval_ms"] = row.milliseconds.into();
                all["without_embedding"] = row.without_embedding.into();
                each.chain([all]).collect()
            };
            records.into_iter().map(|mut record| {
                record["retrieval"] = row.ranker.as_str().into();
                record["query"] = row.query.name().into();
                record["align"] = row.align.as_str().into();
                record
            })
        }))
    }
}

/// Splits names at commas, except the names of fusions, which contain commas.
fn separate(names: &[String]) -> Vec<String> {
    let apart = |name: &String| {
        if name.trim_start_matches("graph:").starts_with("rrf:") {
            vec![name.clone()]
        } else {
            name.split(',').map(str::to_owned).collect()
        }
    };
    names.iter().flat_map(apart).collect()
}

fn parse_all<T: std::str::FromStr<Err: Into<anyhow::Error>>>(names: &[String]) -> Result<Vec<T>> {
    names.iter().map(|name| name.parse().map_err(Into::into)).collect()
}

fn measure(experiment: &Experiment, args: &EvalArgs, settings: &Settings) -> Result<Row> {
    let (search, form) = (&experiment.retrieval.search, experiment.retrieval.form);
    let mode = form.mode();
    let read = || read_predictions(experiment, settings, args.predictions.as_deref());
    let joined = (mode == Mode::Prediction).then(read).transpose()?;
    let mut modes = vec![mode, Mode::GroundTruth];
    modes.dedup();
    let mut report = pipeline::window_queries(experiment, &modes, joined.as_ref())?;
    report.merge(pipeline::vectorize_queries(experiment, &modes)?);
    report.merge(pipeline::search(experiment, &modes)?);
    output::report(&format!("search {} {form}", search.ranker), &report);
    let time = pipeline::search_time(experiment, mode)?;
    Ok(Row {
        ranker: search.ranker.to_string(),
        query: form,
        align: experiment.align(mode).to_string(),
        quality: retrieval_quality(experiment, mode)?,
        milliseconds: time.map(|time| 1e3 * time.seconds / time.queries.max(1) as f64),
        without_embedding: time.is_some_and(|time| !time.with_embedding),
    })
}

impl Row {
    fn record(&self, per_task: bool) -> Value {
        let mut record = self.quality.to_record(&self.ranker, per_task);
        record["query"] = self.query.name().into();
        record["align"] = self.align.as_str().into();
        record["retrieval_ms"] = json!(self.milliseconds);
        if self.without_embedding {
            record["without_embedding"] = true.into();
        }
        record
    }

    fn cells(&self, repository: &str) -> Vec<String> {
        let (query, align) = (self.query.to_string(), self.align.clone());
        vec![self.ranker.clone(), query, align, repository.to_owned()]
    }
}

/// Returns a row per repository and one for all, or a row per task if requested; values × 100.
fn table(rows: &[Row], per_task: bool) -> Table {
    let mut head = vec!["ranker", "query", "shown", "repository", "n"];
    head.extend(COLUMNS.map(|(name, _)| name));
    head.push("ms/query");
    let mut table = Table::new(head);
    let cell = |value: Option<f64>| or_dash(value.map(percent));
    for row in rows {
        if per_task {
            for task in &row.quality.tasks {
                let mut cells = row.cells(&task.task_id);
                cells.push("1".into());
                cells.extend(COLUMNS.map(|(_, measure)| cell(task.measures.get(measure))));
                table.row(cells);
            }
        }
        let all = ("all".to_owned(), row.quality.all.clone());
        let several = row.quality.repositories.len() > 1;
        let each = row.quality.repositories.iter().filter(|_| several);
        for (name, summary) in each.chain([&all]) {
            let mut cells = row.cells(name);
            cells.push(summary.n.to_string());
            let mean = |measure| summary.get(measure).and_then(|mean| mean.mean);
            cells.extend(COLUMNS.map(|(_, measure)| cell(mean(measure))));
            let time = row.milliseconds.filter(|_| name == "all");
            let text = |ms| with_embedding(format!("{ms:.3}"), row.without_embedding);
            cells.push(time.map_or(String::new(), text));
            table.row(cells);
        }
    }
    table
}
