//! `policy explain`: the features that a trained policy uses.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use repoformer::selective::policy::model::{Calibration, FeatureCurve, PolicyModel, Training};
use serde_json::{Value, json};

use super::scored::read_model;
use crate::output::{group, write_data};
use crate::table::{ReportFormat, Table, json_text};

#[derive(Debug, Args)]
pub(crate) struct PolicyExplainArgs {
    /// Trained policy
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Number of features to list, the weightiest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Format of the list
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: ReportFormat,
}

/// Training data of a policy, and its quality on held-out data.
pub(super) fn trained_on(training: &Training) -> String {
    format!(
        "{} instances of {} repositories, {:.2} % positive, by model {}; held out: AUC {:.3}, calibration error {:.3}",
        group(training.instances),
        training.repositories.len(),
        100.0 * training.positive as f64 / training.instances.max(1) as f64,
        training.generation_model.as_deref().unwrap_or("(not named)"),
        training.held_out_auc,
        training.held_out_calibration_error,
    )
}

pub(super) fn run(args: &PolicyExplainArgs) -> Result<()> {
    let policy = read_model(&args.file)?;
    let text = match args.format {
        ReportFormat::Text => explanation(&policy, args.top),
        ReportFormat::Json => explanation_json(&policy, args.top),
    };
    write_data(Path::new("-"), text)
}

/// The features of a policy, the weightiest first.
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
            format!("probability: a rising curve through {} points\n", points.len())
        }
    };
    text += "\nWhat each feature adds to the log-odds: its spread over the training data, and whether more of it speaks for (+)\nor against (-) retrieval.\n\n";
    let features = by_spread(policy, top);
    let mut table = Table::new(["feature", "spread", "direction"]);
    for (_, curve) in &features {
        table.row(vec![
            curve.feature.clone(),
            format!("{:.3}", curve.spread),
            format!("{:+.2}", curve.direction),
        ]);
    }
    let table = table.text();
    let mut lines = table.lines();
    text += &format!("{}  meaning\n", lines.next().unwrap_or_default());
    for (line, (meaning, _)) in lines.zip(&features) {
        text += &format!("{line}  {meaning}\n");
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
    let feature = |(meaning, curve): (&str, &FeatureCurve)| {
        json!({
            "feature": curve.feature, "meaning": meaning, "spread": curve.spread,
            "direction": curve.direction, "slope": curve.slope, "knots": curve.knots,
        })
    };
    let features: Vec<Value> = by_spread(policy, top).into_iter().map(feature).collect();
    json_text(&json!({
        "policy": policy.policy, "training": policy.training,
        "calibration": policy.calibration, "features": features,
        "word_buckets": policy.model.words.len(),
    }))
}

/// Meanings and curves of the `top` weightiest features.
fn by_spread(policy: &PolicyModel, top: usize) -> Vec<(&'static str, &FeatureCurve)> {
    let meanings = policy.policy.features().map(|(_, meaning)| meaning);
    let mut features: Vec<_> = meanings.zip(&policy.model.curves).collect();
    features.sort_by(|a, b| b.1.spread.total_cmp(&a.1.spread));
    features.truncate(top);
    features
}
