//! `policy`: when to retrieve.

mod clocks;
mod explain;
mod page;
pub(super) mod scored;
mod sweep;

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use repoformer::selective::policy::Examples;
use repoformer::selective::policy::features::{Local, Retrieved};
use repoformer::selective::policy::model::{LearnedPolicy, train};
use serde_json::{Map, Value, json};

use crate::args::{LabelFlags, PolicyArgs, PolicyCommand, PolicyFeaturesArgs, PolicyTrainArgs};
use crate::output::{Printer, check_output, group, hinted, write_data};
use crate::records_output::RecordsOutput;

pub(crate) fn run(args: &PolicyArgs, printer: &mut Printer) -> Result<()> {
    match &args.command {
        PolicyCommand::Train(args) => train_policy(args, printer),
        PolicyCommand::Explain(args) => explain::run(args),
        PolicyCommand::Sweep(args) => sweep::run(args, printer),
        PolicyCommand::Features(args) => features(args, printer),
    }
}

/// The judged instances of some files; the others are told of.
fn read_labels(flags: &LabelFlags, output: &Path, printer: &mut Printer) -> Result<Examples> {
    let inputs: Vec<&Path> = flags.labels.iter().map(PathBuf::as_path).collect();
    check_output(Some(output), &inputs)?;
    let mut examples = Examples::read(&flags.labels)?;
    printer.problems(&examples.problems);
    for (missing, count) in &examples.unjudged {
        printer.failed(&format!(
            "{} instances are left out: not judged (no {missing})",
            group(*count as u64)
        ));
    }
    if examples.repeated > 0 {
        printer.warning(format!(
            "{} instances have the id of another of their repository: given twice they count twice",
            group(examples.repeated as u64)
        ));
    }
    let knowing = examples.all.iter().filter(|e| e.query_has_target).count();
    if knowing > 0 {
        let them = "instances whose fragments were found with the target in the query";
        printer.note(match flags.no_target_queries {
            true => format!("{} {them} are left out", group(knowing as u64)),
            false => format!(
                "{} {them} are among them (--no-target-queries leaves them out)",
                group(knowing as u64)
            ),
        });
    }
    if flags.no_target_queries {
        examples.all.retain(|example| !example.query_has_target);
    }
    if examples.all.is_empty() {
        return Err(hinted(
            anyhow!("no judged instance in these labels"),
            "`repoformer label judge` makes them",
        ));
    }
    Ok(examples)
}

fn train_policy(args: &PolicyTrainArgs, printer: &mut Printer) -> Result<()> {
    let (kind, method) = (args.policy.parse()?, args.calibration.parse()?);
    let examples = read_labels(&args.labels, &args.output, printer)?;
    let policy = train(&examples, kind, method)?;
    write_data(&args.output, policy.to_text().as_bytes())?;
    let training = &policy.training;
    if training.repositories.len() < 2 {
        printer.warning(format!(
            "all instances are of one repository ({}): what is said of held-out instances is said of its own",
            training.repositories.join(", ")
        ));
    }
    printer.note(format!(
        "policy train: {kind}: {}",
        explain::trained_on(training)
    ));
    Ok(())
}

fn features(args: &PolicyFeaturesArgs, printer: &mut Printer) -> Result<()> {
    let examples = read_labels(&args.labels, &args.output, printer)?;
    let mut output = RecordsOutput::new(&args.output);
    let named = |features: &[(&str, &str)], values: &[f32]| -> Map<String, Value> {
        let pairs = features.iter().zip(values);
        pairs
            .map(|((name, _), value)| ((*name).to_owned(), json!(value)))
            .collect()
    };
    for example in &examples.all {
        output.line(&json!({
            "task_id": example.id,
            "repository": example.repository,
            "label": example.label,
            "es_infile": example.es_base,
            "es_rg1": example.es_rag,
            "em_infile": example.em_base,
            "em_rg1": example.em_rag,
            "min_logprob": example.signals.min_logprob,
            "entropy": example.signals.entropy,
            "cc_probability": example.signals.cc_probability,
            "local": named(Local::FEATURES, &example.local.values()),
            "hashed": example.hashed.buckets(),
            "retrieved": named(Retrieved::FEATURES, &example.retrieved.values()),
        }))?;
    }
    output.finish()?;
    let count = |kind: LearnedPolicy| kind.features().count();
    printer.note(format!(
        "policy features: {} instances, {} features of contexts and {} of what was retrieved",
        group(examples.all.len() as u64),
        count(LearnedPolicy::Learned),
        count(LearnedPolicy::LearnedScored) - count(LearnedPolicy::Learned),
    ));
    Ok(())
}
