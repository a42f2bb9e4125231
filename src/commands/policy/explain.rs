//! `policy explain`: the features that a trained policy uses.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use repoformer_core::policy::model::{Calibration, FeatureCurve, PolicyModel, Training};
use repoformer_store::frame::ColumnType::{Number, Text};
use serde_json::{Value, json};

use crate::output::{check_output, group, write_data};
use crate::table::{ScoreFormat, written};
use repoformer_evaluate::table::{NamedColumn, Printable, Table, columns, signed};

#[derive(Debug, Args)]
pub(crate) struct PolicyExplainArgs {
    /// Trained policy, or `bundled`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Number of features to list, the weightiest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Format of the list [default: as FILE is named, else text]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ScoreFormat>,
    /// File for the list (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

/// Training data of a policy, and its quality on held-out data.
pub(super) fn trained_on(training: &Training) -> String {
    format!(
        "{} instances of {} repositories, {:.2} % positive, by model {}{}; held out: AUC {:.3}, calibration error {:.3}",
        group(training.instances),
        training.repositories.len(),
        100.0 * training.positive as f64 / training.instances.max(1) as f64,
        training.generation_model.as_deref().unwrap_or("(not named)"),
        training.fragments.as_ref().map_or(String::new(), |fragments| format!(", {fragments}")),
        training.held_out_auc,
        training.held_out_calibration_error,
    )
}

pub(super) fn run(args: &PolicyExplainArgs) -> Result<()> {
    let format = ScoreFormat::of(args.format, &args.output)?;
    check_output(Some(&args.output), [&args.file])?;
    let policy = PolicyModel::open(&args.file)?;
    let features = by_spread(&policy, args.top);
    write_data(&args.output, written(&Explanation { policy: &policy, features }, format)?)
}

/// A policy with its weightiest features.
struct Explanation<'a> {
    policy: &'a PolicyModel,
    /// Meanings and curves.
    features: Vec<(&'static str, &'a FeatureCurve)>,
}

impl Printable for Explanation<'_> {
    fn table(&self) -> Table {
        let mut table = Table::new(["feature", "spread", "direction"]);
        for (_, curve) in &self.features {
            table.row(vec![
                curve.feature.clone(),
                format!("{:.3}", curve.spread),
                signed(curve.direction, 2),
            ]);
        }
        table
    }

    fn text(&self) -> String {
        let policy = self.policy;
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
        let table = self.table().text();
        let mut lines = table.lines();
        text += &format!("{}  meaning\n", lines.next().unwrap_or_default());
        for (line, (meaning, _)) in lines.zip(&self.features) {
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

    fn json(&self) -> Value {
        let Self { policy, .. } = self;
        json!({
            "policy": policy.policy, "training": policy.training,
            "calibration": policy.calibration, "features": self.lines().collect::<Value>(),
            "word_buckets": policy.model.words.len(),
        })
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.features.iter().map(|(meaning, curve)| {
            json!({
                "feature": curve.feature, "meaning": meaning, "spread": curve.spread,
                "direction": curve.direction, "slope": curve.slope, "knots": curve.knots,
            })
        }))
    }

    fn columns(&self) -> Vec<NamedColumn> {
        columns(Text, ["feature", "meaning"])
            .chain(columns(Number, ["spread", "direction", "slope"]))
            .chain(columns(Text, ["knots"]))
            .collect()
    }
}

/// Meanings and curves of the `top` weightiest features.
fn by_spread(policy: &PolicyModel, top: usize) -> Vec<(&'static str, &FeatureCurve)> {
    let meanings = policy.policy.features().map(|(_, meaning)| meaning);
    let mut features: Vec<_> = meanings.zip(&policy.model.curves).collect();
    features.sort_by(|a, b| b.1.spread.total_cmp(&a.1.spread));
    features.truncate(top);
    features
}
