//! Columns of a sequence, as used by Hugging Face `datasets` and trainers.

use serde::{Deserialize, Serialize};

use super::sequence::Sequence;

/// Columns of a sequence, documented in `docs/training.md`. None is called `label`, which Hugging Face's collators would
/// mistake for `labels`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) input_ids: Vec<u32>,
    pub(super) attention_mask: Vec<u8>,
    /// Ids of supervised tokens, and −100 for the others.
    pub(super) labels: Vec<i64>,
    pub(super) eval_mask: Vec<u8>,
    pub(super) gen_mask: Vec<u8>,
    pub(super) loss_weights: Vec<f32>,
    pub(super) positive: bool,
    pub(super) es_infile: Option<f64>,
    pub(super) es_rg1: Option<f64>,
    pub(super) task_id: String,
    pub(super) repository: String,
    pub(super) text: String,
}

impl Row {
    pub(super) fn from_sequence(sequence: &Sequence, lambda: f32) -> Self {
        let count = sequence.ids.len();
        let mask = |is: &dyn Fn(usize) -> bool| (0..count).map(|at| u8::from(is(at))).collect();
        let supervised = |at| sequence.is_decision(at) || sequence.is_completion(at);
        let labels = sequence.ids.iter().enumerate();
        Self {
            input_ids: sequence.ids.clone(),
            attention_mask: vec![1; count],
            labels: labels
                .map(|(at, id)| if supervised(at) { i64::from(*id) } else { -100 })
                .collect(),
            eval_mask: mask(&|at| sequence.is_decision(at)),
            gen_mask: mask(&|at| sequence.is_completion(at)),
            loss_weights: sequence.weights(lambda),
            positive: sequence.positive,
            es_infile: sequence.es_infile,
            es_rg1: sequence.es_rg1,
            task_id: sequence.task_id.clone(),
            repository: sequence.repository.clone(),
            text: sequence.text.clone(),
        }
    }

    /// Returns the line of JSON.
    pub(super) fn to_line(&self) -> String {
        // Serializing texts and numbers cannot fail.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}
