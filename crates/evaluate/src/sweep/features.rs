//! Features of labelled instances as records, for other learners.

use repoformer_core::policy::Example;
use repoformer_core::policy::features::{Local, Retrieved};
use repoformer_store::frame::ColumnType::{Flag, Number, Text};
use serde_json::{Map, Value, json};

use crate::table::{NamedColumn, columns};

/// Returns the record of an instance: id, repository, label, scores, signals, and the features by name.
pub fn feature_record(example: &Example) -> Value {
    let named = |features: &[(&str, &str)], values: &[f32]| -> Map<String, Value> {
        let pairs = features.iter().zip(values);
        pairs.map(|((name, _), value)| ((*name).to_owned(), json!(value))).collect()
    };
    json!({
        "task_id": example.id,
        "repository": example.repository,
        "label": example.label,
        "query_has_target": example.query_has_target,
        "es_infile": example.score_base,
        "es_rg1": example.score_rag,
        "em_infile": example.em_base,
        "em_rg1": example.em_rag,
        "min_logprob": example.signals.min_logprob,
        "entropy": example.signals.entropy,
        "cc_probability": example.signals.cc_probability,
        "cc_likeliest": example.signals.cc_likeliest,
        "local": named(Local::FEATURES, &example.local.values()),
        "hashed": example.hashed.buckets(),
        "retrieved": named(Retrieved::FEATURES, &example.retrieved.values()),
    })
}

/// Returns the columns of a data frame of such records.
pub fn feature_columns() -> impl Iterator<Item = NamedColumn> {
    let scores =
        ["es_infile", "es_rg1", "em_infile", "em_rg1", "min_logprob", "entropy", "cc_probability"];
    let named = |of: &'static str, features: &'static [(&str, &str)]| {
        columns(Number, features.iter().map(move |(name, _)| format!("{of}.{name}")))
    };
    columns(Text, ["task_id", "repository"])
        .chain(columns(Flag, ["label", "query_has_target"]))
        .chain(columns(Number, scores))
        .chain(columns(Flag, ["cc_likeliest"]))
        .chain(named("local", Local::FEATURES))
        .chain(columns(Text, ["hashed"]))
        .chain(named("retrieved", Retrieved::FEATURES))
}
