//! Training sequence of one labelled instance.

use repoformer_store::error::{Error, Result};
use repoformer_text::language::Language;
use repoformer_text::tokenize::model::{EncodedText, Encoder, TextPart};

use super::split::Proportions;
use repoformer_core::label::Label;
use repoformer_core::prompt::style::DecisionFrame;
use repoformer_core::repository::Shard;

/// Settings of verbalizing.
#[derive(Debug, Clone, PartialEq)]
pub struct VerbalizeSettings {
    /// Special tokens around the contexts.
    pub frame: DecisionFrame,
    /// Greatest number of tokens of a sequence; 2,048 in the paper.
    pub max_tokens: usize,
    /// Greatest number of tokens of a cross-file context, which keeps its start; 512 in the paper.
    pub max_cross_file_tokens: usize,
    /// Token after the target, which teaches the model to stop. The released program has none.
    pub end: Option<String>,
    /// Weight of the decision relative to the completion; 1 in the paper.
    pub lambda: f32,
    /// Fractions of the repositories that are held out.
    pub held_out: Proportions,
    /// Seed of the split of repositories.
    pub seed: u64,
    /// Shard of the repositories whose sequences are written, without Parquet; the splits are computed over all repositories.
    pub shard: Option<Shard>,
}

/// Training sequence: its tokens, and the choice of supervised tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequence {
    /// Id of the instance.
    pub task_id: String,
    /// Repository of the instance.
    pub repository: String,
    /// True if retrieval helped, so that the sequence has a cross-file context.
    pub positive: bool,
    /// Edit similarity without retrieval, as in the label.
    pub es_infile: Option<f64>,
    /// Edit similarity with retrieval.
    pub es_rg1: Option<f64>,
    /// Text of [`ids`](Self::ids).
    pub text: String,
    /// Token ids of the model's tokenizer, at most [`VerbalizeSettings::max_tokens`].
    pub ids: Vec<u32>,
    /// Index of the decision: the token after `<eof>`, which L_eval supervises. If a model decides with the first token of the
    /// completion, it is the index of that token.
    pub decision: usize,
    /// Index of the first token of the completion; L_gen supervises all tokens from this one on.
    pub completion: usize,
    /// Whether the left, the right and the cross-file context were cut.
    pub cut: [bool; 3],
}

/// Reason why an instance gives no sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SequenceRejection {
    /// It has neither a label nor the two similarities.
    NotJudged,
    /// It names no repository, so it cannot be assigned to a split.
    NoRepository,
    /// Its target is empty.
    NoTarget,
    /// Its label states that retrieval helped, but nothing was retrieved.
    NoCrossFile,
    /// Target and cross-file context leave no room for the current file.
    TooLong,
    /// Another split holds out an equal target with equal contexts.
    HeldOut,
}

impl std::fmt::Display for SequenceRejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::NotJudged => "not judged: neither label nor es_infile and es_rg1",
            Self::NoRepository => "no repository: filename has no folder",
            Self::NoTarget => "the target is empty",
            Self::NoCrossFile => "labelled as helped by cross-file context, but has none",
            Self::TooLong => "target and cross-file context leave no room for the current file",
            Self::HeldOut => "the same target and contexts are held out in another split",
        })
    }
}

/// Returns the label of an instance that can be a sequence.
pub(super) fn label_of(label: &Label) -> Result<bool, SequenceRejection> {
    let judged = label.retrieval_helps().ok_or(SequenceRejection::NotJudged)?;
    if label.ground_truth.is_empty() {
        return Err(SequenceRejection::NoTarget);
    }
    Ok(judged)
}

impl Sequence {
    /// Verbalizes an instance of a repository.
    ///
    /// The contexts share the part of [`VerbalizeSettings::max_tokens`] that target, cross-file context and special tokens
    /// leave. Two thirds go to the left context, which keeps its end, and one third to the right context, which keeps its
    /// start; each may use tokens that the other does not need. The cross-file context is counted whether or not it is shown,
    /// so the current file is cut in the same way for either label and reveals nothing about the decision.
    ///
    /// # Errors
    /// The tokenizer rejects a text. The inner error is the reason why the instance cannot become a sequence.
    pub fn new(
        label: &Label,
        repository: &str,
        encoder: &Encoder,
        settings: &VerbalizeSettings,
    ) -> Result<Result<Self, SequenceRejection>> {
        let positive = match label_of(label) {
            Ok(positive) => positive,
            Err(reason) => return Ok(Err(reason)),
        };
        let language = Language::of_path(&label.filename).unwrap_or_default();
        let tokenizer = encoder.tokenizer();
        let frame = &settings.frame;
        let most = settings.max_cross_file_tokens;
        let (cross_file, cross_file_cut) =
            frame.cross_file(&label.cross_file, language, most, tokenizer);
        if positive && cross_file.is_empty() {
            return Ok(Err(SequenceRejection::NoCrossFile));
        }
        let whole = |left, right, positive| {
            let mut parts = frame.current_file(left, right);
            if positive {
                parts.extend([TextPart::Special(frame.cc()), TextPart::Plain(&cross_file)]);
            }
            parts.extend(frame.middle(positive).map(TextPart::Special));
            parts.push(TextPart::Plain(label.ground_truth.as_str()));
            parts.extend(settings.end.as_deref().map(TextPart::Special));
            parts
        };
        let around = encoder.before().len();
        let Some(limit) = settings.max_tokens.checked_sub(around) else {
            return Ok(Err(SequenceRejection::TooLong));
        };
        let fixed = encoder.encode(&whole("", "", true))?.ids.len();
        let mut room = limit.saturating_sub(fixed);
        let (left, right, with_cross_file) = loop {
            if room == 0 {
                return Ok(Err(SequenceRejection::TooLong));
            }
            let (left, right) = share(&label.prompt, &label.right_context, room, encoder);
            // Joined parts may have other tokens than single ones; the longer form determines the cut for both labels.
            let encoded = encoder.encode(&whole(left, right, true))?;
            match encoded.ids.len() {
                tokens if tokens <= limit => break (left, right, encoded),
                tokens => room = room.saturating_sub(tokens - limit),
            }
        };
        let parts = whole(left, right, positive);
        let encoded = if positive { with_cross_file } else { encoder.encode(&parts)? };
        let [decision, completion] = places(&encoded, settings)?;
        let mut text = encoder.decode(encoder.before())?;
        text.extend(parts.iter().map(TextPart::text));
        Ok(Ok(Self {
            task_id: label.id.clone(),
            repository: repository.to_owned(),
            positive,
            es_infile: label.es_infile,
            es_rg1: label.es_rg1,
            text,
            ids: [encoder.before(), &encoded.ids].concat(),
            decision: around + decision,
            completion: around + completion,
            cut: [
                left.len() < label.prompt.len(),
                right.len() < label.right_context.len(),
                positive && cross_file_cut,
            ],
        }))
    }

    /// Returns true if L_eval supervises a token.
    pub fn is_decision(&self, at: usize) -> bool {
        at == self.decision
    }

    /// Returns true if L_gen supervises a token.
    pub fn is_completion(&self, at: usize) -> bool {
        at >= self.completion
    }

    /// Returns the weight of each token's cross-entropy: λ for the decision, and equal weights that add up to 1 for the
    /// completion. The weighted sum is λ·L_eval + L_gen of this sequence. L_gen is a mean over its tokens: as a sum, it would
    /// outweigh L_eval in long completions, and the decision would not be learned (the paper's ablation A1).
    pub fn weights(&self, lambda: f32) -> Vec<f32> {
        let one = 1.0 / (self.ids.len() - self.completion).max(1) as f32;
        let weight = |at| {
            let decides = if self.is_decision(at) { lambda } else { 0.0 };
            decides + if self.is_completion(at) { one } else { 0.0 }
        };
        (0..self.ids.len()).map(weight).collect()
    }
}

/// Returns the indices of the decision and the completion: after the special token that ends the current file, and after the
/// last special token except an end token.
fn places(encoded: &EncodedText, settings: &VerbalizeSettings) -> Result<[usize; 2]> {
    let specials = settings.frame.specials_of_current_file();
    let last = encoded.specials.len().checked_sub(1 + usize::from(settings.end.is_some()));
    let places = [specials.checked_sub(1), last].map(|at| encoded.specials.get(at?));
    match places {
        [Some(eof), Some(middle)] => Ok([eof + 1, middle + 1]),
        _ => {
            let reason = "it lacks the special tokens of a sequence";
            Err(Error::parameter("tokenizer", reason))
        }
    }
}

/// Cuts left and right context to `room` tokens in total.
fn share<'t>(left: &'t str, right: &'t str, room: usize, encoder: &Encoder) -> (&'t str, &'t str) {
    let tokenizer = encoder.tokenizer();
    let right_share = room / 3;
    let left_share = room - right_share;
    let (kept_left, left_tokens) = tokenizer.end_of(left, left_share);
    let (kept_right, right_tokens) = tokenizer.start_of(right, right_share);
    match (kept_left.len() < left.len(), kept_right.len() < right.len()) {
        (false, true) => (left, tokenizer.start_of(right, room - left_tokens).0),
        (true, false) => (tokenizer.end_of(left, room - right_tokens).0, right),
        _ => (kept_left, kept_right),
    }
}
