//! `label`: labelled data for selective retrieval.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use repoformer::error::Error;
use repoformer::repository::corpus::repository_names;
use repoformer::selective::label::{
    CollectSettings, Drawing, Filter, InstanceKind, JudgeSettings, JudgeSummary, LengthCounts,
    RecordFormat, Repositories, Shard, collect, fingerprint, judge,
};
use repoformer::text::language::Language;

use super::comparison_text::histogram;
use super::session::{open, repos_dir};
use crate::args::{LabelArgs, LabelCommand, LabelJudgeArgs, LabelSampleArgs};
use crate::config::Settings;
use crate::output::{Printer, check_output, check_rereadable, group, hinted};
use crate::records_output::RecordsOutput;
use crate::table::Table;

pub(crate) fn run(args: &LabelArgs, printer: &mut Printer) -> Result<()> {
    match &args.command {
        LabelCommand::Sample(args) => sample(args, printer),
        LabelCommand::Judge(args) => judge_instances(args, printer),
        LabelCommand::Verbalize(args) => super::verbalize::run(args, printer),
        LabelCommand::All(args) => super::label_all::run(args, printer),
    }
}

fn sample(args: &LabelSampleArgs, printer: &mut Printer) -> Result<()> {
    let Some(settings) = open(&args.settings)? else {
        return Ok(());
    };
    let (from, known) = match args.raw {
        Some(_) => ("--raw", &SAMPLED_WITH[2..]),
        None => ("--repos-dir", &SAMPLED_WITH[..]),
    };
    if let Some(key) = settings.flag_beside(known) {
        return Err(hinted(
            anyhow!("--{key} has no say in what label sample draws from {from}"),
            "leave it out; what is searched and prompted, prompt and complete are told",
        ));
    }
    draw_instances(args, &settings, printer)
}

/// The settings that drawing heeds; the first two where folders are drawn from.
const SAMPLED_WITH: [&str; 6] = [
    "repos-dir",
    "walk",
    "repo",
    "language",
    "profile",
    "threads",
];

/// What is drawn, as flags and settings say.
struct Wanted {
    from: Repositories,
    /// How many repositories there are, where that is known.
    total: usize,
    shard: Shard,
    filter: Filter,
    drawing: Drawing,
    format: RecordFormat,
}

impl Wanted {
    fn of(args: &LabelSampleArgs, settings: &Settings) -> Result<Self> {
        let kind: InstanceKind = args.drawing.kind.parse()?;
        let paper = match settings.text("profile") {
            Some("repoformer-release") => Drawing::release(kind),
            _ => Drawing::paper(kind),
        };
        let language: Language = settings.parsed_option("language")?.unwrap_or_default();
        let ratio = args.drawing.ratio.unwrap_or(paper.ratio);
        if !(ratio > 0.0 && ratio <= 1.0) {
            return Err(hinted(
                anyhow!("--ratio must be more than 0 and at most 1"),
                "the paper's is 0.2",
            ));
        }
        let (from, total) = match &args.raw {
            Some(file) => {
                check_output(Some(&args.output), &[file])?;
                (
                    Repositories::Raw(file.clone(), settings.list("repo").to_vec()),
                    0,
                )
            }
            None => {
                let dir = repos_dir(settings)?;
                let mut names = match settings.list("repo") {
                    [] => repository_names(&dir)?,
                    named => named.to_vec(),
                };
                names.sort_unstable();
                names.dedup();
                let total = names.len();
                (
                    Repositories::Folders(dir, names, settings.parsed("walk")?),
                    total,
                )
            }
        };
        Ok(Self {
            from,
            total,
            shard: args.shard.as_deref().map_or(Ok(Shard::WHOLE), shard)?,
            filter: match args.drawing.no_filter {
                true => Filter::none(),
                false => Filter::paper(language),
            },
            drawing: Drawing {
                language,
                ratio,
                seed: args.seed,
                retrieves: !args.as_benchmark,
                ..paper
            },
            format: if args.as_benchmark {
                RecordFormat::Tasks
            } else {
                RecordFormat::Labels
            },
        })
    }

    fn collecting<'a>(&'a self, journal: Option<&'a Path>) -> CollectSettings<'a> {
        CollectSettings {
            from: &self.from,
            shard: self.shard,
            filter: &self.filter,
            drawing: &self.drawing,
            format: self.format,
            journal,
        }
    }
}

/// A digest of the instances that would be drawn, from the repositories' files as they are now, and what could not be read.
pub(super) fn instances_digest(
    args: &LabelSampleArgs,
    settings: &Settings,
) -> Result<(String, Vec<Error>)> {
    let wanted = Wanted::of(args, settings)?;
    Ok(fingerprint(&wanted.collecting(None))?)
}

/// Draws instances with these settings, in force already.
pub(super) fn draw_instances(
    args: &LabelSampleArgs,
    settings: &Settings,
    printer: &mut Printer,
) -> Result<()> {
    let wanted = Wanted::of(args, settings)?;
    let mut output = RecordsOutput::new(&args.output);
    let bar = printer.bar("label sample", wanted.total);
    let journal = journal_beside(&args.output);
    let collecting = wanted.collecting(journal.as_deref());
    let collected = collect(&collecting, &|| bar.inc(1), &mut |record| {
        output.text(record)
    });
    bar.finish_and_clear();
    let collected = collected?;
    printer.problems(&collected.problems);
    if let (Some(journal), 1..) = (&journal, collected.known) {
        printer.note(format!(
            "label sample: {} had been drawn from before it was broken off ({})",
            repositories(collected.known),
            journal.display(),
        ));
    }
    for (reason, count) in &collected.rejected {
        printer.note(format!(
            "label sample: {} left out: {reason}",
            repositories(*count)
        ));
    }
    let forget = || {
        if let Some(journal) = &journal {
            // Left behind, it would be of no harm.
            let _ = std::fs::remove_file(journal);
        }
    };
    if collected.instances == 0 {
        forget();
    }
    // A part of the repositories may have none that serves.
    if collected.instances == 0 && (args.shard.is_none() || !collected.problems.is_empty()) {
        return Err(hinted(
            anyhow!("no instance could be drawn"),
            "--no-filter takes repositories whose files do not import one another; --language names another language",
        ));
    }
    output.finish()?;
    forget();
    printer.note(format!(
        "label sample: {} {} instances of {:.2} lines from {}",
        group(collected.instances as u64),
        wanted.drawing.kind.name(),
        collected.lines as f64 / collected.instances.max(1) as f64,
        repositories(collected.repositories),
    ));
    Ok(())
}

/// Where a drawing into this file keeps what it has drawn until it is whole; nowhere for what is no file.
fn journal_beside(output: &Path) -> Option<PathBuf> {
    let is_file = output != Path::new("-") && (output.is_file() || !output.exists());
    let mut name = output.file_name().filter(|_| is_file)?.to_owned();
    name.push(".drawn");
    Some(output.with_file_name(name))
}

fn repositories(count: usize) -> String {
    match count {
        1 => "1 repository".into(),
        n => format!("{} repositories", group(n as u64)),
    }
}

/// `2/8`: the second of eight.
fn shard(text: &str) -> Result<Shard> {
    let parts = text.split_once('/');
    let numbers = parts.and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
    match numbers {
        Some((index, count)) if (1..=count).contains(&index) => Ok(Shard {
            index: index - 1,
            count,
        }),
        _ => Err(hinted(
            anyhow!("--shard '{text}' is no part of a whole"),
            "the second of eight parts is 2/8",
        )),
    }
}

pub(super) fn judge_instances(args: &LabelJudgeArgs, printer: &mut Printer) -> Result<()> {
    let mut inputs: Vec<&Path> = vec![&args.instances, &args.base, &args.rag];
    inputs.extend(args.prompts.as_deref());
    inputs.extend(args.probabilities.as_deref());
    check_rereadable(&inputs, "label judge")?;
    check_output(Some(&args.output), &inputs)?;
    check_threshold(args.threshold)?;
    let judging = JudgeSettings {
        instances: &args.instances,
        base: &args.base,
        augmented: &args.rag,
        prompts: args.prompts.as_deref(),
        probabilities: args.probabilities.as_deref(),
        model: args.model.as_deref(),
        threshold: args.threshold,
    };
    let mut output = RecordsOutput::new(&args.output);
    let judged = judge(&judging, &mut |record| output.line(record));
    let judged = judged.map_err(|error| match &error {
        Error::Artifact { path, .. } if Some(path) == args.probabilities.as_ref() => {
            let hint = "`complete --probability-of '<cc>' --after '<eof>'` writes them";
            hinted(error.into(), hint)
        }
        Error::Parameter {
            name: "augmented", ..
        } => hinted(error.into(), "name different files with --base and --rag"),
        Error::Artifact { hint, .. } if args.model.is_none() && hint.contains("name the model") => {
            let hint = format!("{hint} (--model NAME)");
            hinted(error.into(), hint)
        }
        _ => error.into(),
    })?;
    if judged.gains.is_empty() {
        printer.problems(&judged.problems);
        return Err(hinted(
            anyhow!(
                "{}: no instance has completions both without and with retrieval",
                args.instances.display()
            ),
            "complete prompts of modes none and given of these instances, and give the two files",
        ));
    }
    output.finish()?;
    printer.problems(&judged.problems);
    for (reason, count) in &judged.lacking {
        printer.failed(&format!(
            "{} instances are left out: {reason}",
            group(*count as u64)
        ));
    }
    if args.probabilities.is_some() && judged.probable < judged.gains.len() {
        printer.warning(format!(
            "{} of {} instances have no probability in --probabilities, and policy self no score of them",
            group((judged.gains.len() - judged.probable) as u64),
            group(judged.gains.len() as u64)
        ));
    }
    printer.note(report(&judged));
    Ok(())
}

pub(super) fn check_threshold(threshold: f64) -> Result<()> {
    match threshold.is_finite() {
        true => Ok(()),
        false => Err(hinted(
            anyhow!("--threshold must be a number"),
            "the paper's is 0: what makes a completion any better helps",
        )),
    }
}

/// The share of positive labels, the gains by size (figure 10), and both by the length of the targets.
fn report(judged: &JudgeSummary) -> String {
    let count = judged.gains.len();
    format!(
        "label judge: {} instances, {:.2} % positive; gain × 100:\n{}\n\n{}",
        group(count as u64),
        100.0 * judged.positive as f64 / count as f64,
        histogram(&judged.buckets()).trim_end(),
        lengths(judged).text().trim_end(),
    )
}

/// Instances by the lines of their targets, longer ones together.
fn lengths(judged: &JudgeSummary) -> Table {
    /// From so many lines on, up to the next.
    const FROM: [usize; 9] = [0, 1, 2, 3, 4, 5, 6, 11, 21];
    let mut table = Table::new(&["lines", "instances", "%", "positive %", "mean gain × 100"]);
    for (place, &from) in FROM.iter().enumerate() {
        let next = FROM.get(place + 1).copied();
        let of = judged.lengths.range(from..next.unwrap_or(usize::MAX));
        let all = of.fold(LengthCounts::default(), |sum, (_, one)| LengthCounts {
            count: sum.count + one.count,
            positive: sum.positive + one.positive,
            gain: sum.gain + one.gain,
        });
        if all.count == 0 {
            continue;
        }
        let count = all.count as f64;
        table.row(vec![
            match next {
                None => format!("{from}+"),
                Some(next) if next == from + 1 => from.to_string(),
                Some(next) => format!("{from}-{}", next - 1),
            },
            all.count.to_string(),
            format!("{:.1}", 100.0 * count / judged.gains.len() as f64),
            format!("{:.1}", 100.0 * all.positive as f64 / count),
            format!("{:+.2}", 100.0 * all.gain / count),
        ]);
    }
    table
}
