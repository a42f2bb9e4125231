//! `stats`: counts the tasks in files, and measures their lengths.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use repoformer_evaluate::table::{NamedColumn, Printable, Table, columns, or_dash};
use repoformer_formats::lengths::{FileLengths, KindLengths, Lengths, Spread, TaskPart, lengths};
use repoformer_store::frame::ColumnType::{Integer, Number, Text};
use repoformer_study::checkout::folder_for;
use repoformer_study::settings::TokenizerName;
use serde_json::Value;

use crate::output::{self, Screen, check_output, fail, group, plural, write_data};
use crate::table::{ScoreFormat, format_results};

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Files of tasks or labels: JSONL, plain, gzip or zstd (`-`: standard input); their formats are detected
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Count the whole file before and after each hole, instead of the contexts in the records; the folder holds one folder per
    /// repository
    #[arg(long, value_name = "DIR")]
    repos_dir: Option<PathBuf>,
    /// Tokenizer that counts tokens: p50k_base, words, or a model's tokenizer.json
    #[arg(long, value_name = "NAME|FILE", default_value = "p50k_base")]
    tokenizer: String,
    /// Format of the table; in all but text, tokenizer and contexts are columns [default: from the extension of FILE, else text]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ScoreFormat>,
    /// File for the table (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

pub(crate) fn run(args: &StatsArgs) -> Result<()> {
    let tokenizer = args.tokenizer.parse::<TokenizerName>()?.open()?;
    let format = ScoreFormat::choose(args.format, &args.output)?;
    check_output(Some(&args.output), &args.files)?;
    let repos_dir = folder_for(args.repos_dir.as_deref(), &args.files, &Screen);
    let mut measured = Vec::new();
    for file in &args.files {
        match lengths(file, repos_dir.as_deref(), &tokenizer) {
            Ok(found) => measured.push(found),
            // The other files are still counted.
            Err(error) if args.files.len() > 1 => output::problems(&[error]),
            Err(error) => return Err(error.into()),
        }
    }
    for file in &measured {
        output::problems(&file.problems);
        file.kinds.iter().for_each(|kind| tell_of_some(&file.path, kind));
    }
    if measured.iter().all(|file| file.kinds.is_empty()) {
        return fail(
            "no task could be read",
            "see the problems above, or name files of tasks or labels",
        );
    }
    write_data(&args.output, format_results(&Stats { measured: &measured, args }, format)?)
}

/// Lengths to print.
struct Stats<'a> {
    measured: &'a [FileLengths],
    args: &'a StatsArgs,
}

impl Printable for Stats<'_> {
    fn table(&self) -> Table {
        table(self.measured, Some(self.args))
    }

    fn text(&self) -> String {
        format!("{}\n{}\n", table(self.measured, None).text(), legend(self.args))
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(records(self.measured, self.args))
    }

    fn columns(&self) -> Vec<NamedColumn> {
        let mut all: Vec<NamedColumn> = columns(Text, ["file", "kind"]).collect();
        all.extend(columns(Integer, ["instances", "repositories", "files"]));
        for part in TaskPart::ALL.map(|part| part.name().replace('-', "_")) {
            all.extend(columns(Integer, [format!("{part}.tasks")]));
            for unit in ["lines", "tokens"] {
                all.extend(columns(
                    Number,
                    ["mean", "median"].map(|of| format!("{part}.{unit}.{of}")),
                ));
                all.extend(columns(Integer, [format!("{part}.{unit}.max")]));
            }
        }
        all.extend(columns(Text, ["tokenizer", "contexts"]));
        all
    }
}

/// Returns the name of the contexts, in a word or two.
fn contexts(args: &StatsArgs) -> &'static str {
    if args.repos_dir.is_some() { "whole files" } else { "as carried" }
}

fn legend(args: &StatsArgs) -> String {
    let contexts = match args.repos_dir {
        Some(_) => "the whole file before and after the hole",
        None => "as in the records",
    };
    format!(
        "Lines that are not blank; tokens of {}. Left and right contexts: {contexts}.",
        args.tokenizer
    )
}

/// Reports parts that only some of the tasks have: their lengths are over these tasks.
fn tell_of_some(path: &Path, kind: &KindLengths) {
    for (part, lengths) in TaskPart::ALL.iter().zip(&kind.parts) {
        if let Some(lengths) = lengths
            && lengths.tasks < kind.instances
        {
            output::note(format!(
                "{}: only {} of {} {} of {} have a value for '{}'; its lengths are over these",
                path.display(),
                group(lengths.tasks),
                group(kind.instances),
                plural(kind.instances, "task"),
                kind.kind.name(),
                part.name(),
            ));
        }
    }
}

fn records<'a>(
    measured: &'a [FileLengths],
    args: &'a StatsArgs,
) -> impl Iterator<Item = Value> + 'a {
    measured.iter().flat_map(move |file| {
        file.kinds.iter().map(move |kind| {
            let mut record = kind.to_record();
            record["file"] = file.path.display().to_string().into();
            record["tokenizer"] = args.tokenizer.as_str().into();
            record["contexts"] = contexts(args).into();
            record
        })
    })
}

/// Returns three rows for each kind of a file: means, medians and maxima. With `args`, tokenizer and contexts are columns.
fn table(measured: &[FileLengths], args: Option<&StatsArgs>) -> Table {
    let head = ["file", "kind", "", "repositories", "instances", "files"].map(String::from);
    let lengths = TaskPart::ALL.iter();
    let lengths =
        lengths.flat_map(|part| ["lines", "tokens"].map(|unit| format!("{} {unit}", part.name())));
    let described = args.map(|args| [args.tokenizer.clone(), contexts(args).to_owned()]);
    let more = described.iter().flat_map(|_| ["tokenizer", "contexts"]).map(String::from);
    let mut table = Table::new(head.into_iter().chain(lengths).chain(more));
    for file in measured {
        for kind in &file.kinds {
            for (name, value) in VALUES {
                let place = [file.path.display().to_string(), kind.kind.name().into(), name.into()];
                let named = |count: usize| or_dash((count > 0).then(|| count.to_string()));
                let counts =
                    [named(kind.repositories), kind.instances.to_string(), named(kind.files)];
                let of = |lengths: &Option<Lengths>, spread: fn(&Lengths) -> Spread| {
                    or_dash(lengths.as_ref().map(|lengths| value(spread(lengths))))
                };
                let lengths = kind.parts.iter().flat_map(|part| {
                    [of(part, |lengths| lengths.lines), of(part, |lengths| lengths.tokens)]
                });
                let cells = place.into_iter().chain(counts).chain(lengths);
                table.row(cells.chain(described.iter().flatten().cloned()).collect());
            }
        }
    }
    table
}

/// Function from lengths to a cell.
type Cell = fn(Spread) -> String;

/// Names and values of the rows.
const VALUES: [(&str, Cell); 3] = [
    ("mean", |spread| format!("{:.1}", spread.mean)),
    ("median", |spread| format!("{:.1}", spread.median)),
    ("max", |spread| spread.max.to_string()),
];
