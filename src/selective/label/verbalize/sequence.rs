//! One labelled instance as the tokens that a model is trained on.

use super::{LeftOut, Settings};
use crate::error::{Error, Result};
use crate::selective::label::Label;
use crate::text::language::Language;
use crate::text::tokenize::model::{Encoded, Encoder, Part};

/// A training sequence: what the model reads, and which of its tokens it is to learn.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequence {
    /// The instance's id.
    pub task_id: String,
    /// Its repository.
    pub repository: String,
    /// Whether retrieval helped, and so whether there is a cross-file context.
    pub positive: bool,
    /// Edit similarity without retrieval, as the label has it.
    pub es_infile: Option<f64>,
    /// Edit similarity with retrieval.
    pub es_rg1: Option<f64>,
    /// What [`ids`](Self::ids) spell.
    pub text: String,
    /// Ids of the model's tokenizer, at most [`Settings::max_tokens`].
    pub ids: Vec<u32>,
    /// Where the decision stands in them: the token after `<eof>`, which L_eval supervises.
    pub decision: usize,
    /// Where the completion begins: it and all that follows is supervised by L_gen.
    pub completion: usize,
    /// Whether the left, the right and the cross-file context were cut.
    pub cut: [bool; 3],
}

/// Whether an instance can be a sequence, and of which label.
pub(super) fn label_of(label: &Label) -> Result<bool, LeftOut> {
    let judged = label.helped().ok_or(LeftOut::NotJudged)?;
    if label.ground_truth.is_empty() {
        return Err(LeftOut::NoTarget);
    }
    Ok(judged)
}

impl Sequence {
    /// Verbalizes an instance of a repository.
    ///
    /// Of [`Settings::max_tokens`], what target, cross-file context and special tokens leave is shared by the contexts: two thirds
    /// to the left one, which keeps its end, a third to the right one, which keeps its start; what one does not need the other has.
    /// The cross-file context is counted whether it is shown or not, so the current file is cut alike whatever the label: it
    /// tells nothing of the decision after it.
    ///
    /// # Errors
    /// The tokenizer refuses a text. The inner error says why the instance cannot be a sequence.
    pub fn of(
        label: &Label,
        repository: &str,
        encoder: &Encoder,
        settings: &Settings,
    ) -> Result<Result<Self, LeftOut>> {
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
            return Ok(Err(LeftOut::NoCrossFile));
        }
        let whole = |left, right, positive| {
            let mut parts = frame.current_file(left, right);
            if positive {
                parts.extend([Part::Special(frame.cc()), Part::Plain(&cross_file)]);
            }
            let target = Part::Plain(label.ground_truth.as_str());
            parts.extend([Part::Special(frame.middle()), target]);
            parts.extend(settings.end.as_deref().map(Part::Special));
            parts
        };
        let around = encoder.before().len();
        let Some(limit) = settings.max_tokens.checked_sub(around) else {
            return Ok(Err(LeftOut::TooLong));
        };
        let fixed = encoder.encode(&whole("", "", true))?.ids.len();
        let mut room = limit.saturating_sub(fixed);
        let (left, right, with_cross_file) = loop {
            if room == 0 {
                return Ok(Err(LeftOut::TooLong));
            }
            let (left, right) = share(&label.prompt, &label.right_context, room, encoder);
            // Parts may join in other tokens than those they have alone; the longer of the two forms decides for both.
            let encoded = encoder.encode(&whole(left, right, true))?;
            match encoded.ids.len() {
                tokens if tokens <= limit => break (left, right, encoded),
                tokens => room = room.saturating_sub(tokens - limit),
            }
        };
        let parts = whole(left, right, positive);
        let encoded = match positive {
            true => with_cross_file,
            false => encoder.encode(&parts)?,
        };
        let [decision, completion] = places(&encoded, settings)?;
        let mut text = encoder.decode(encoder.before())?;
        text.extend(parts.iter().map(Part::text));
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

    /// Whether L_eval supervises a token.
    pub fn is_decision(&self, at: usize) -> bool {
        at == self.decision
    }

    /// Whether L_gen does.
    pub fn is_completion(&self, at: usize) -> bool {
        at >= self.completion
    }

    /// What the cross-entropy of each token counts: λ that of the decision, and each of the completion's tokens alike, 1 together.
    /// Their sum is λ·L_eval + L_gen of this sequence, L_gen a mean over its tokens: summed, it would outweigh L_eval in long
    /// completions, and the decision would not be learned (the paper's ablation A1).
    pub fn weights(&self, lambda: f32) -> Vec<f32> {
        let one = 1.0 / (self.ids.len() - self.completion).max(1) as f32;
        let weight = |at| match (self.is_decision(at), self.is_completion(at)) {
            (true, _) => lambda,
            (_, true) => one,
            _ => 0.0,
        };
        (0..self.ids.len()).map(weight).collect()
    }
}

/// Behind which tokens the decision and the completion stand: the one that ends the current file, and the one that begins the
/// completion, which is the last special one but for an end.
fn places(encoded: &Encoded, settings: &Settings) -> Result<[usize; 2]> {
    let specials = settings.frame.specials_of_current_file();
    let last = encoded
        .specials
        .len()
        .checked_sub(1 + usize::from(settings.end.is_some()));
    let places = [specials.checked_sub(1), last].map(|at| encoded.specials.get(at?));
    match places {
        [Some(eof), Some(middle)] => Ok([eof + 1, middle + 1]),
        _ => Err(Error::Parameter {
            name: "tokenizer",
            reason: "it does not know the special tokens that stand in a sequence".into(),
        }),
    }
}

/// Left and right context within so many tokens together.
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
