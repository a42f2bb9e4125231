//! Tables in the layout of the paper: each cell has a run's number and the paper's number.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use repoformer_core::retrieve::rank::Ranker;
use repoformer_evaluate::table::{NamedColumn, Printable, Table, beside, columns, distinct};
use repoformer_store::frame::ColumnType::{Number, Text};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde::Deserialize;
use serde_json::{Value, json};

use super::names::TABLES;
use super::tasks::Tasks;
use crate::experiment_settings::ranker;
use crate::fail;
use crate::settings::{DECLARED, Departure, Settings};

/// Values of tables: key, heading and number of digits.
const VALUES: [(&str, &str, usize); 10] = [
    ("threshold", "T", 2),
    ("em", "EM", 2),
    ("es", "ES", 2),
    ("id_f1", "ID F1", 2),
    ("ut", "UT", 2),
    ("decreased", "↓", 0),
    ("unchanged", "=", 0),
    ("increased", "↑", 0),
    ("retrieved", "%RAG", 0),
    ("speedup", "SU %", 0),
];

/// Table of the paper.
#[derive(Debug, Deserialize)]
pub struct PaperTable {
    title: String,
    paper: String,
    /// Keys of the printed values, in the paper's order.
    columns: Vec<String>,
    /// Settings of the table that differ from the paper's profile.
    #[serde(default)]
    settings: BTreeMap<String, String>,
    #[serde(rename = "row")]
    rows: Vec<PaperRow>,
    /// Model whose numbers are printed next to this run's.
    #[serde(default)]
    model: String,
}

/// Numbers of the paper for one model, policy and task.
#[derive(Debug, Deserialize)]
struct PaperRow {
    model: String,
    policy: String,
    dataset: String,
    task: String,
    language: Option<String>,
    #[serde(flatten)]
    values: BTreeMap<String, toml::Value>,
}

impl PaperRow {
    /// Returns the threshold of rows that name none (the paper's footnote 6).
    fn usual_threshold(&self) -> f64 {
        if self.task == "function" { 0.15 } else { 0.2 }
    }

    /// Returns the threshold of `self-threshold`.
    fn threshold(&self) -> f64 {
        let own = self.values.get("threshold").and_then(toml::Value::as_float);
        own.unwrap_or_else(|| self.usual_threshold())
    }

    /// Returns the policy in the notation of `--policy`: `self@0.99` if the threshold is not the usual one.
    fn policy(&self) -> String {
        match self.policy.as_str() {
            "self-threshold" if self.threshold() != self.usual_threshold() => {
                format!("self@{}", self.threshold())
            }
            policy => policy.to_owned(),
        }
    }

    /// Returns true if the row belongs to a run's policy with the same threshold.
    fn is_of(&self, policy: &str) -> bool {
        let asked =
            policy.strip_prefix("self@").and_then(|threshold| threshold.parse::<f64>().ok());
        match asked {
            Some(asked) => self.policy == "self-threshold" && self.threshold() == asked,
            None => self.policy() == policy,
        }
    }
}

/// Numbers of a run for one benchmark and one mode or policy.
#[derive(Debug)]
pub struct MeasuredRow {
    /// Name of the run's benchmark.
    pub benchmark: String,
    /// Tasks of the paper that the benchmark's tasks are, or stand for.
    pub tasks: Tasks,
    /// Model that completed the tasks.
    pub model: String,
    /// Mode or policy, as in the table of a run.
    pub mode: String,
    /// Metric of exact match and edit similarity.
    pub metric: String,
    /// True if latencies lack the time for computing the queries' dense vectors.
    pub lacks: bool,
    /// Numbers × 100, or counts, by key.
    pub values: BTreeMap<&'static str, f64>,
}

/// Returns the paper's word for a mode or policy; others keep their name.
fn policy(mode: &str) -> &str {
    match mode {
        "none" | "never" => "none",
        "rg1" | "given" | "always" => "always",
        "self@greedy" => "self-greedy",
        "self" => "self-threshold",
        other => other,
    }
}

impl PaperTable {
    /// Opens the table with this name. Its cells also show the numbers of a model of the paper: the named one, or else the
    /// table's first.
    pub fn open(name: &str, model: Option<&str>) -> Result<Self> {
        let found = TABLES.iter().find(|(known, _)| *known == name);
        let (_, text) = found.with_context(|| format!("unknown table '{name}'"))?;
        let mut table: Self = toml::from_str(text).with_context(|| format!("data of {name}"))?;
        let mut models: Vec<&str> = table.rows.iter().map(|row| row.model.as_str()).collect();
        models.dedup();
        let wanted = model.or(models.first().copied()).unwrap_or_default();
        if !models.contains(&wanted) {
            return fail(
                format!("the paper's {name} has no model '{wanted}'"),
                format!("its models: {}", models.join(", ")),
            );
        }
        table.model = wanted.to_owned();
        Ok(table)
    }

    /// Rejects tasks for which the table has no column.
    pub fn check_has(&self, tasks: &Tasks, benchmark: &str) -> Result<()> {
        let all = self.tasks();
        if all.contains(tasks) {
            return Ok(());
        }
        let heads = all.iter().map(Tasks::head).collect::<Vec<_>>().join(", ");
        fail(
            format!(
                "{benchmark}: {} has no column for {}; it has {heads}",
                self.paper,
                tasks.head()
            ),
            message![
                "choose task files for its columns, where the name of a file gives the kind of its tasks, and ",
                &DECLARED.paper_dataset,
                " gives the data set"
            ],
        )
    }

    /// Rejects lexical retrieval for a table of dense retrieval.
    pub fn check_retrieval(&self, settings: &Settings) -> Result<()> {
        let wanted = self.settings.get(DECLARED.ranker.key).map(String::as_str);
        let ranker = ranker(settings)?;
        if wanted != Some("dense") || ranker == Ranker::Dense {
            return Ok(());
        }
        fail(
            format!("{} is about dense retrieval, but the ranker is {ranker}", self.paper),
            message![
                "add ",
                &DECLARED.ranker,
                " dense with ",
                &DECLARED.embedding_model,
                " NAME ",
                &DECLARED.endpoint,
                " URL, or with ",
                &DECLARED.vectors,
                " FILE; table-3 is the same table for ranker jaccard"
            ],
        )
    }

    /// Returns the settings that differ from the paper's for this table.
    pub fn departures(&self, settings: &Settings) -> Vec<Departure> {
        let mut all = settings.departures_of_kinds();
        all.retain(|departure| !self.settings.contains_key(departure.key));
        let own =
            self.settings.iter().filter_map(|(key, value)| settings.departure_from(key, value));
        all.extend(own);
        all
    }

    /// Returns the tasks that the table has, in its order.
    fn tasks(&self) -> Vec<Tasks> {
        let mut all = Vec::new();
        for row in &self.rows {
            let tasks = Tasks {
                dataset: row.dataset.clone(),
                task: row.task.clone(),
                language: row.language.clone(),
            };
            if !all.contains(&tasks) {
                all.push(tasks);
            }
        }
        all
    }

    /// Returns the values that the table prints, in its order.
    fn printed_values(&self) -> impl Iterator<Item = (&'static str, &'static str, usize)> {
        let value = |column: &String| VALUES.into_iter().find(|(key, ..)| key == column);
        self.columns.iter().filter_map(value)
    }

    /// Returns the values that the table has for some tasks.
    fn values(&self, tasks: &Tasks) -> Vec<(&'static str, &'static str, usize)> {
        let has = |key: &str| self.of(tasks).any(|row| row.values.contains_key(key));
        self.printed_values().filter(|(key, ..)| has(key)).collect()
    }

    /// Returns the model of the paper's dense vectors.
    fn retriever(&self) -> Option<&str> {
        self.rows.iter().find_map(|row| row.values.get("retriever")?.as_str())
    }

    fn of<'t>(&'t self, tasks: &'t Tasks) -> impl Iterator<Item = &'t PaperRow> {
        self.rows.iter().filter(|row| {
            (&row.dataset, &row.task, &row.language)
                == (&tasks.dataset, &tasks.task, &tasks.language)
        })
    }

    /// Returns the paper's number for the chosen model; `None` if the threshold differs from the paper's.
    fn number(&self, tasks: &Tasks, policy: &str, key: &str) -> Option<f64> {
        let mut rows = self.of(tasks).filter(|row| row.model == self.model && row.is_of(policy));
        let value = rows.find_map(|row| row.values.get(key))?;
        value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
    }

    /// Returns the table with the numbers of a run.
    ///
    /// # Errors
    /// Two results belong to the same cell.
    pub fn filled_with(
        self,
        measured: Vec<MeasuredRow>,
        settings: &Settings,
    ) -> Result<FilledTable> {
        let cell =
            |one: &MeasuredRow| (one.model.clone(), policy(&one.mode).to_owned(), one.tasks.head());
        for (place, one) in measured.iter().enumerate() {
            if let Some(twin) = measured[..place].iter().find(|other| cell(other) == cell(one)) {
                let (_, policy, head) = cell(one);
                return fail(
                    format!(
                        "two results belong in the same table cell, {head}, policy {policy}: {} ({}) and {} ({})",
                        twin.benchmark, twin.mode, one.benchmark, one.mode
                    ),
                    message![
                        "run one at a time (completions are kept), or name the data set with ",
                        &DECLARED.paper_dataset
                    ],
                );
            }
        }
        let departures = self.departures(settings);
        let file = || Some(settings.vectors.as_ref()?.to_string_lossy().into_owned());
        let vectors = (*settings.embedding_model).clone().or_else(file);
        Ok(FilledTable { table: self, measured, departures, vectors })
    }

    /// Returns the model and policy of each row: first all of the paper's policies, even if this run lacks them.
    fn lines<'m>(&self, measured: &'m [MeasuredRow]) -> Vec<(&'m str, String)> {
        let mut lines: Vec<(&str, String)> = Vec::new();
        for one in measured {
            let line = (one.model.as_str(), policy(&one.mode).to_owned());
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let model = measured.first().map(|one| one.model.as_str());
        for row in self.rows.iter().filter(|row| row.model == self.model) {
            let is_it = |one: &MeasuredRow| row.is_of(policy(&one.mode));
            if let Some(line) = model.map(|model| (model, row.policy()))
                && !lines.contains(&line)
                && !measured.iter().any(is_it)
            {
                lines.push(line);
            }
        }
        let known = ["none", "always", "self-greedy", "self-threshold"];
        let place = |policy: &str| {
            if policy.starts_with("self@") {
                known.len() - 1
            } else {
                known.iter().position(|one| *one == policy).unwrap_or(known.len())
            }
        };
        lines.sort_by_key(|(_, policy)| place(policy));
        lines
    }

    fn find_measured<'m>(
        measured: &'m [MeasuredRow],
        (model, of): (&str, &str),
        tasks: &Tasks,
    ) -> Option<&'m MeasuredRow> {
        measured
            .iter()
            .find(|one| one.model == model && policy(&one.mode) == of && one.tasks == *tasks)
    }

    fn fill(&self, measured: &[MeasuredRow]) -> Table {
        let all = self.tasks();
        let mut head = vec!["model".to_owned(), "policy".to_owned()];
        for tasks in &all {
            let names = self.values(tasks);
            head.extend(names.iter().map(|(_, name, _)| format!("{} {name}", tasks.head())));
        }
        let mut table = Table::new(head);
        for line in self.lines(measured) {
            let line = (line.0, line.1.as_str());
            let mut cells = vec![line.0.to_owned(), line.1.to_owned()];
            for tasks in &all {
                let own = Self::find_measured(measured, line, tasks);
                for (key, _, digits) in self.values(tasks) {
                    let number = own.and_then(|one| one.values.get(key)).copied();
                    cells.push(beside(number, self.number(tasks, line.1, key), digits));
                }
            }
            table.row(cells);
        }
        table
    }

    fn records(
        &self,
        measured: &[MeasuredRow],
        departures: &[Departure],
    ) -> impl Iterator<Item = Value> + use<> {
        let mut records = Vec::new();
        for (model, policy) in &self.lines(measured) {
            let line = (*model, policy.as_str());
            for tasks in self.tasks() {
                let own = Self::find_measured(measured, line, &tasks);
                let mut record = json!({
                    "table": self.paper, "model": line.0, "policy": line.1, "dataset": tasks.dataset,
                    "task": tasks.task, "language": tasks.language, "paper_model": self.model,
                    "metric": own.map(|one| &one.metric),
                });
                if !departures.is_empty() {
                    record["departures"] = departures.iter().map(Departure::to_record).collect();
                }
                for (key, ..) in self.values(&tasks) {
                    record[key] = json!({
                        "measured": own.and_then(|one| one.values.get(key)),
                        "paper": self.number(&tasks, line.1, key),
                    });
                }
                records.push(record);
            }
        }
        records.into_iter()
    }
}

/// Table with the numbers of a run.
#[derive(Debug)]
pub struct FilledTable {
    table: PaperTable,
    measured: Vec<MeasuredRow>,
    /// Settings that differ from the paper's.
    departures: Vec<Departure>,
    /// Model, or file, of dense vectors.
    vectors: Option<String>,
}

impl Printable for FilledTable {
    fn table(&self) -> Table {
        self.table.fill(&self.measured)
    }

    fn text(&self) -> String {
        let Self { table: paper_table, measured, departures, vectors } = self;
        let PaperTable { title, paper, model, .. } = paper_table;
        let wants = |key: &str| paper_table.columns.iter().any(|known| known == key);
        let metrics = distinct(measured.iter().map(|one| one.metric.as_str()));
        let lacks = if wants("speedup") && measured.iter().any(|one| one.lacks) {
            "\nSU is not known: the queries' dense vectors came from a file, without times.\n"
        } else {
            ""
        };
        let text = self.table().text();
        let mut rest = match (paper_table.retriever(), vectors) {
            (Some(retriever), Some(vectors)) => {
                format!("\nDense vectors of {vectors}; the paper's are of {retriever}.\n")
            }
            _ => String::new(),
        };
        if !departures.is_empty() {
            rest += &format!("\n{}\n", Departure::line("in the paper", departures));
        }
        format!(
            "{title} ({paper}); scores by {metrics}; in brackets the paper's {model}\n\n{text}{lacks}{rest}"
        )
    }

    fn notes(&self) -> Vec<Message> {
        let has = |key: &str| self.measured.iter().any(|one| one.values.contains_key(key));
        let wants = |key: &str| self.table.columns.iter().any(|known| known == key);
        if !wants("ut") || has("ut") {
            return Vec::new();
        }
        let without = if wants("increased") {
            ": the changes are those of edit similarity."
        } else {
            ", so UT is not known."
        };
        vec![message!["No ", UserChoice::TestResultsFile, " was given", without]]
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.table.records(&self.measured, &self.departures))
    }

    fn columns(&self) -> Vec<NamedColumn> {
        let of = |key| ["measured", "paper"].map(|of| format!("{key}.{of}"));
        let names =
            ["table", "model", "policy", "dataset", "task", "language", "paper_model", "metric"];
        columns(Text, names)
            .chain(columns(Number, self.table.printed_values().flat_map(|(key, ..)| of(key))))
            .chain(columns(Text, ["departures"]))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use repoformer_text::language::Language;

    use super::*;

    #[test]
    fn every_table_can_be_opened() {
        for (name, _) in TABLES {
            let table = PaperTable::open(name, None).unwrap();
            assert!(!table.tasks().is_empty() && !table.values(&table.tasks()[0]).is_empty());
        }
        let error = PaperTable::open("table-2", Some("GPT")).unwrap_err().to_string();
        assert!(error.contains("no model 'GPT'"), "{error}");
    }

    #[test]
    fn the_papers_numbers_stand_beside_the_runs() {
        let table = PaperTable::open("table-2", Some("Repoformer-3B")).unwrap();
        let measured = vec![MeasuredRow {
            benchmark: "line".into(),
            tasks: Tasks::new("line.jsonl".as_ref(), Language::Python, None, None),
            model: "mine".into(),
            mode: "self@0.2".into(),
            metric: "repoformer".into(),
            lacks: false,
            values: [("es", 12.5)].into(),
        }];
        // The paper's number is for another threshold.
        let line = &measured[0].tasks;
        let number = |policy| table.number(line, policy, "es");
        assert_eq!((number("self-threshold"), number("self@0.9")), (Some(79.02), None));
        let filled = table.filled_with(measured, &Settings::defaults().unwrap()).unwrap();
        let text = filled.text();
        assert!(text.contains("self@0.2") && text.contains("12.50 (79.02)"), "{text}");
        // Table 2, Repoformer-3B, line: EM 56.30 greedy and 59.63 at threshold 0.2.
        let em = |policy: &str| {
            filled.lines().find(|row| row["policy"] == policy).map(|row| row["em"].clone())
        };
        let of_paper = |em: f64| Some(json!({"measured": null, "paper": em}));
        assert_eq!(em("self-greedy"), of_paper(56.3));
        assert_eq!(em("self-threshold"), of_paper(59.63));
    }
}
