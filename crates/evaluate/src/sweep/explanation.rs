//! Weights of a trained policy.

use repoformer_core::policy::model::{Calibration, FeatureCurve, PolicyModel};
use repoformer_store::frame::ColumnType::{Number, Text};
use repoformer_text::visible::visible_in_line;
use serde_json::{Value, json};

use crate::table::{NamedColumn, Printable, Table, columns, format_signed};

/// Trained policy with its most important features: a table of these, and as text also the training data.
#[derive(Debug, Clone)]
pub struct Explanation<'a> {
    policy: &'a PolicyModel,
    /// Descriptions and curves of the features.
    features: Vec<(&'static str, &'a FeatureCurve)>,
}

impl<'a> Explanation<'a> {
    /// Selects the `top` features with the widest spreads, widest first.
    pub fn new(policy: &'a PolicyModel, top: usize) -> Self {
        let meanings = policy.policy.features().map(|(_, meaning)| meaning);
        let mut features: Vec<_> = meanings.zip(&policy.model.curves).collect();
        features.sort_by(|a, b| b.1.spread.total_cmp(&a.1.spread));
        features.truncate(top);
        Self { policy, features }
    }
}

impl Printable for Explanation<'_> {
    fn table(&self) -> Table {
        let mut table = Table::new(["feature", "spread", "direction"]);
        for (_, curve) in &self.features {
            table.row(vec![
                curve.feature.clone(),
                format!("{:.3}", curve.spread),
                format_signed(curve.direction, 2),
            ]);
        }
        table
    }

    fn text(&self) -> String {
        let policy = self.policy;
        let mut text = format!(
            "{}: trained on {}\nrepositories: {}\n",
            policy.policy,
            visible_in_line(&policy.training.summary()),
            visible_in_line(&policy.training.repositories.join(", "))
        );
        text += &match &policy.calibration {
            Calibration::Platt { slope, offset } => {
                format!("probability: 1 / (1 + exp(-({slope:.3} x log-odds + {offset:.3})))\n")
            }
            Calibration::Isotonic { points } => {
                format!(
                    "probability: an isotonic (increasing) curve through {} points\n",
                    points.len()
                )
            }
        };
        text += "\nContribution of each feature to the log-odds: its spread over the training \
                 data, and whether larger values\nfavour (+) or oppose (-) retrieval.\n\n";
        let table = self.table().text();
        let mut lines = table.lines();
        text += &format!("{}  meaning\n", lines.next().unwrap_or_default());
        for (line, (meaning, _)) in lines.zip(&self.features) {
            text += &format!("{line}  {meaning}\n");
        }
        if !policy.model.words.is_empty() {
            text += &format!(
                "\nThe words near the hole, hashed into {} buckets, contribute as well.\n",
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
