//! Table 6: sizes of the benchmarks.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use repoformer_evaluate::table::{NamedColumn, Printable, Table, beside, columns};
use repoformer_formats::lengths::{KindLengths, Lengths, lengths};
use repoformer_store::frame::ColumnType::{Number, Text};
use repoformer_text::language::Language;
use repoformer_text::message;
use serde::Deserialize;
use serde_json::{Value, json};

use super::tasks::Tasks;
use crate::fail;
use crate::settings::{DECLARED, Settings, TokenizerName};

/// Numbers of the paper.
#[derive(Debug, Deserialize)]
struct Numbers {
    title: String,
    paper: String,
    #[serde(rename = "row")]
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    dataset: String,
    task: String,
    #[serde(flatten)]
    values: BTreeMap<String, f64>,
}

/// Keys of the values, their names and numbers of digits.
const VALUES: [(&str, &str, usize); 8] = [
    ("repositories", "repositories", 0),
    ("instances", "instances", 0),
    ("x_left_lines", "left lines", 1),
    ("x_left_tokens", "left tokens", 1),
    ("x_right_lines", "right lines", 1),
    ("x_right_tokens", "right tokens", 1),
    ("y_lines", "target lines", 1),
    ("y_tokens", "target tokens", 1),
];

/// Returns the table of these settings' task files, with the paper's number in parentheses after each number.
///
/// # Errors
/// No task can be read.
pub fn sizes(settings: &Settings) -> Result<Sizes> {
    let text = include_str!("../../data/paper/table-6.toml");
    let numbers: Numbers = toml::from_str(text).context("data of table-6")?;
    let tokenizer = settings.tokenizer.open(TokenizerName::open)?;
    let repos_dir = settings.repos_dir.as_deref();
    let mut measured = Vec::new();
    for file in settings.tasks.iter() {
        let mut found = lengths(file, repos_dir, &tokenizer)?;
        if found.kinds.is_empty() && repos_dir.is_some() {
            // If a task's files do not exist, it carries its context.
            found = lengths(file, None, &tokenizer)?;
        }
        settings.messages.problems(found.problems);
        let tasks = Tasks::new(file, Language::default(), settings.paper_dataset.as_deref(), None);
        measured.extend(found.kinds.iter().map(|kind| (tasks.clone(), values(kind))));
    }
    if measured.is_empty() {
        return fail(
            "no task could be read",
            message!["name files of tasks with ", &DECLARED.tasks],
        );
    }
    Ok(Sizes { numbers, measured, tokenizer: settings.tokenizer.to_string() })
}

/// Sizes of benchmarks, each number with the paper's.
#[derive(Debug)]
pub struct Sizes {
    numbers: Numbers,
    measured: Vec<(Tasks, BTreeMap<&'static str, f64>)>,
    tokenizer: String,
}

/// Measured values by key.
type MeasuredSizes = BTreeMap<&'static str, f64>;

impl Sizes {
    fn paper(&self, tasks: &Tasks, key: &str) -> Option<f64> {
        let is_it = |row: &&Row| row.tasks() == *tasks;
        self.numbers.rows.iter().find(is_it)?.values.get(key).copied()
    }

    /// Returns the paper's rows with the measured values, then the other measured rows.
    fn lines(&self) -> Vec<(Tasks, Option<&MeasuredSizes>)> {
        let of = |tasks: &Tasks| {
            let own = self.measured.iter().filter(|(measured, _)| measured == tasks);
            own.map(|(tasks, values)| (tasks.clone(), Some(values))).collect::<Vec<_>>()
        };
        let papers: Vec<Tasks> = self.numbers.rows.iter().map(Row::tasks).collect();
        let mut lines = Vec::new();
        for tasks in &papers {
            let own = of(tasks);
            lines.extend(if own.is_empty() { vec![(tasks.clone(), None)] } else { own });
        }
        let others = self.measured.iter().filter(|(tasks, _)| !papers.contains(tasks));
        lines.extend(others.map(|(tasks, values)| (tasks.clone(), Some(values))));
        lines
    }
}

impl Row {
    fn tasks(&self) -> Tasks {
        Tasks { dataset: self.dataset.clone(), task: self.task.clone(), language: None }
    }
}

impl Printable for Sizes {
    fn table(&self) -> Table {
        let mut table = Table::new(["tasks"].into_iter().chain(VALUES.map(|(_, name, _)| name)));
        for (tasks, values) in self.lines() {
            let mut cells = vec![tasks.head()];
            for (key, _, digits) in VALUES {
                let own = values.and_then(|values| values.get(key)).copied();
                cells.push(beside(own, self.paper(&tasks, key), digits));
            }
            table.row(cells);
        }
        table
    }

    fn text(&self) -> String {
        format!(
            "{} ({}); in brackets the paper's\n\n{}\nMeans; lines that are not blank, tokens of {} (the paper: StarCoder's).\n",
            self.numbers.title,
            self.numbers.paper,
            self.table().text(),
            self.tokenizer
        )
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.lines().into_iter().map(|(tasks, values)| {
            let mut record = json!({
                "table": self.numbers.paper, "dataset": tasks.dataset, "task": tasks.task, "tokenizer": self.tokenizer,
            });
            for (key, ..) in VALUES {
                record[key] =
                    json!({"measured": values.and_then(|values| values.get(key)), "paper": self.paper(&tasks, key)});
            }
            record
        }))
    }

    fn columns(&self) -> Vec<NamedColumn> {
        let of = |(key, _, _): (&str, _, _)| ["measured", "paper"].map(|of| format!("{key}.{of}"));
        columns(Text, ["table", "dataset", "task", "tokenizer"])
            .chain(columns(Number, VALUES.into_iter().flat_map(of)))
            .collect()
    }
}

fn values(kind: &KindLengths) -> BTreeMap<&'static str, f64> {
    let mut values = BTreeMap::from([
        ("repositories", kind.repositories as f64),
        ("instances", kind.instances as f64),
    ]);
    let keys = [
        ("x_left_lines", "x_left_tokens"),
        ("x_right_lines", "x_right_tokens"),
        ("y_lines", "y_tokens"),
    ];
    for ((lines, tokens), part) in keys.into_iter().zip(&kind.parts) {
        if let Some(Lengths { lines: of_lines, tokens: of_tokens, .. }) = part {
            values.extend([(lines, of_lines.mean), (tokens, of_tokens.mean)]);
        }
    }
    values
}
