//! `policy features`

use anyhow::Result;
use repoformer::selective::policy::features::{Local, Retrieved};
use repoformer::selective::policy::model::LearnedPolicy;
use serde_json::{Map, Value, json};

use super::labels::read_labels;
use crate::args::PolicyFeaturesArgs;
use crate::output::{self, group};
use crate::records_output::RecordsOutput;

pub(super) fn run(args: &PolicyFeaturesArgs) -> Result<()> {
    let examples = read_labels(&args.labels, &args.output)?;
    let mut output = RecordsOutput::new(&args.output);
    let named = |features: &[(&str, &str)], values: &[f32]| -> Map<String, Value> {
        let pairs = features.iter().zip(values);
        pairs.map(|((name, _), value)| ((*name).to_owned(), json!(value))).collect()
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
    output::note(format!(
        "policy features: {} instances, {} features of contexts and {} of retrieved fragments",
        group(examples.all.len() as u64),
        count(LearnedPolicy::Learned),
        count(LearnedPolicy::LearnedScored) - count(LearnedPolicy::Learned),
    ));
    Ok(())
}
