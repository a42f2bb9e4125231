//! `policy`: when to retrieve.

mod clocks;
mod page;
pub(super) mod scored;
mod sweep;

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use repoformer::policy::Examples;
use repoformer::policy::features::{Local, Retrieved};
use repoformer::policy::model::{Calibration, Kind, PolicyModel, Training, train};
use serde_json::{Map, Value, json};

use crate::args::{
    ExplainFormat, LabelFlags, PolicyArgs, PolicyCommand, PolicyExplainArgs, PolicyFeaturesArgs,
    PolicyTrainArgs,
};
use crate::output::{Printer, check_output, group, hinted, write_data};
use crate::records_output::RecordsOutput;
use crate::table::Table;

pub(crate) fn run(args: &PolicyArgs, printer: &mut Printer) -> Result<()> {
    match &args.command {
        PolicyCommand::Train(args) => train_policy(args, printer),
        PolicyCommand::Explain(args) => explain(args),
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
    printer.note(format!("policy train: {kind}: {}", trained_on(training)));
    Ok(())
}

fn trained_on(training: &Training) -> String {
    format!(
        "{} instances of {} repositories, {:.2} % positive, by model {}; held out: AUC {:.3}, calibration error {:.3}",
        group(training.instances as u64),
        training.repositories.len(),
        100.0 * training.positive as f64 / training.instances.max(1) as f64,
        training
            .generation_model
            .as_deref()
            .unwrap_or("(not named)"),
        training.held_out_auc,
        training.held_out_calibration_error,
    )
}

fn explain(args: &PolicyExplainArgs) -> Result<()> {
    let policy = PolicyModel::read(&args.file)?;
    let text = match args.format {
        ExplainFormat::Text => explanation(&policy, args.top),
        ExplainFormat::Json => explanation_json(&policy, args.top),
    };
    write_data(Path::new("-"), text.as_bytes())
}

/// What a policy goes by, what counts most first.
fn explanation(policy: &PolicyModel, top: usize) -> String {
    let mut text = format!(
        "{}: trained on {}\nrepositories: {}\n",
        policy.policy,
        trained_on(&policy.training),
        policy.training.repositories.join(", ")
    );
    text += &match &policy.calibration {
        Calibration::Platt { slope, offset } => {
            format!("probability: 1 / (1 + exp(-({slope:.3} x log-odds + {offset:.3})))\n")
        }
        Calibration::Isotonic { points } => {
            format!(
                "probability: a rising curve through {} points\n",
                points.len()
            )
        }
    };
    text += "\nWhat each feature adds to the log-odds: its spread over the training data, and whether more of it speaks for (+)\nor against (-) retrieval.\n\n";
    let meanings: Vec<&str> = policy
        .policy
        .features()
        .map(|(_, meaning)| meaning)
        .collect();
    let mut curves: Vec<_> = policy.model.curves.iter().zip(meanings).collect();
    curves.sort_by(|a, b| b.0.spread.total_cmp(&a.0.spread));
    let mut table = Table::new(&["feature", "spread", "direction"]);
    for (curve, _) in curves.iter().take(top) {
        table.row(vec![
            curve.feature.clone(),
            format!("{:.3}", curve.spread),
            format!("{:+.2}", curve.direction),
        ]);
    }
    let table = table.text();
    let mut lines = table.lines();
    text += &format!("{}  meaning\n", lines.next().unwrap_or_default());
    for (line, (_, meaning)) in lines.zip(&curves) {
        text += &format!("{line}  {}\n", meaning.trim());
    }
    if !policy.model.words.is_empty() {
        text += &format!(
            "\nThe words near the hole, hashed into {} buckets, add to that.\n",
            policy.model.words.len()
        );
    }
    text
}

fn explanation_json(policy: &PolicyModel, top: usize) -> String {
    let features = policy.policy.features().zip(&policy.model.curves);
    let mut features: Vec<_> = features.collect();
    features.sort_by(|a, b| b.1.spread.total_cmp(&a.1.spread));
    let features: Vec<Value> = features
        .into_iter()
        .take(top)
        .map(|((name, meaning), curve)| {
            json!({
                "feature": name, "meaning": meaning.trim(), "spread": curve.spread,
                "direction": curve.direction, "slope": curve.slope, "knots": curve.knots,
            })
        })
        .collect();
    let record = json!({
        "policy": policy.policy, "training": policy.training,
        "calibration": policy.calibration, "features": features,
        "word_buckets": policy.model.words.len(),
    });
    format!("{record:#}\n")
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
    let count = |kind: Kind| kind.features().count();
    printer.note(format!(
        "policy features: {} instances, {} features of contexts and {} of what was retrieved",
        group(examples.all.len() as u64),
        count(Kind::Learned),
        count(Kind::LearnedScored) - count(Kind::Learned),
    ));
    Ok(())
}
