//! Layout of training sequences: its choices are checked and opened with its tokenizer.

use std::path::Path;

use repoformer_store::error::{Error, Result};
use repoformer_store::inputs;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use repoformer_text::tokenize::model::{Encoder, tokenizer_file};

use super::sequence::VerbalizeSettings;
use super::split::Proportions;
use repoformer_core::prompt::style::{DecisionFrame, Style};

/// Layout of training sequences, with the spelling of its tokens.
#[derive(Debug, Clone, Copy)]
pub struct SequenceLayout<'a> {
    /// Token that ends the current file; if `None`, the style's, or the usual one.
    pub eof: Option<&'a str>,
    /// Token that requests cross-file context; if `None`, the style's, or the usual one.
    pub cc: Option<&'a str>,
    /// Token after the target.
    pub end: Option<&'a str>,
    /// Greatest number of tokens of a sequence.
    pub max_tokens: usize,
    /// Greatest number of tokens of a cross-file context.
    pub max_cross_file_tokens: usize,
    /// Weight of the decision relative to the completion.
    pub lambda: f32,
    /// Fractions of the repositories that are held out.
    pub held_out: Proportions,
    /// Seed of the split of repositories.
    pub seed: u64,
}

impl SequenceLayout<'_> {
    /// Checks the layout for a style, and opens the model's tokenizer with the special tokens. All shards have the same
    /// settings.
    ///
    /// # Errors
    /// A number is outside its range, a special token could occur in code or has two meanings, the style has no place for the
    /// decision, or the tokenizer cannot be read or is not a model's.
    pub fn open(&self, style: &Style, tokenizer: &Path) -> Result<(VerbalizeSettings, Encoder)> {
        self.check()?;
        if matches!(&*tokenizer.to_string_lossy(), "p50k_base" | "words") {
            return Err(Error::from_refusal(
                message![
                    "the ",
                    UserChoice::Tokenizer,
                    " must be a model's own file, because training uses its token ids"
                ],
                "pass the tokenizer.json of the model, for example from the Hugging Face hub",
            ));
        }
        let frame = DecisionFrame::new(style, self.eof, self.cc)?;
        let mut specials = frame.specials();
        if let Some(end) = self.end.filter(|end| specials.contains(end)) {
            return Err(Error::from_refusal(
                message![
                    "the ",
                    UserChoice::EndToken,
                    format!(" '{end}' is already part of a sequence")
                ],
                "use the model's own end-of-text token, such as <|endoftext|>",
            ));
        }
        specials.extend(self.end);
        // The special tokens, one token of context and one of the target.
        if self.max_tokens < specials.len() + 2 {
            return Err(Error::from_refusal(
                format!(
                    "a sequence of {} tokens cannot hold its {} special tokens",
                    self.max_tokens,
                    specials.len()
                ),
                message!["raise the ", UserChoice::SequenceTokens, "; the paper uses 2048"],
            ));
        }
        inputs::protect(&tokenizer_file(tokenizer));
        let encoder = Encoder::open(tokenizer, &specials)?;
        let settings = VerbalizeSettings {
            max_tokens: self.max_tokens,
            max_cross_file_tokens: self.max_cross_file_tokens,
            end: self.end.map(str::to_owned),
            lambda: self.lambda,
            held_out: self.held_out,
            seed: self.seed,
            shard: None,
            frame,
        };
        Ok((settings, encoder))
    }

    /// Checks the properties that do not depend on a style.
    fn check(&self) -> Result<()> {
        let refused = |choice: UserChoice, range: &str, hint: &str| {
            Err(Error::from_refusal(message!["the ", choice, " must be ", range], hint))
        };
        let Proportions { validation, test } = self.held_out;
        for (choice, share) in
            [(UserChoice::ValidationShare, validation), (UserChoice::TestShare, test)]
        {
            if !(0.0..1.0).contains(&share) {
                let hint = "write 0.1 for a tenth of the repositories";
                return refused(choice, "at least 0 and less than 1", hint);
            }
        }
        if !(self.lambda >= 0.0 && self.lambda.is_finite()) {
            let range = "a number from 0 up";
            return refused(UserChoice::DecisionWeight, range, "the paper uses 1.0");
        }
        if self.max_cross_file_tokens == 0 {
            let range = "at least 1: a positive sequence shows some cross-file context";
            return refused(UserChoice::CrossFileTokens, range, "the paper uses 512");
        }
        for (choice, token) in [
            (UserChoice::EofToken, self.eof),
            (UserChoice::CcToken, self.cc),
            (UserChoice::EndToken, self.end),
        ] {
            if let Some(token) = token.filter(|token| could_be_code(token)) {
                return Err(Error::from_refusal(
                    message![
                        "the ",
                        choice,
                        format!(
                            " '{token}' could also occur in code, where it would count as a special token"
                        )
                    ],
                    "choose a text in angle or square brackets, as in <eof>",
                ));
            }
        }
        Ok(())
    }
}

/// Returns true if a special token could occur in code: its text is not in angle or square brackets, is empty, or contains
/// spaces.
fn could_be_code(token: &str) -> bool {
    let token = token.strip_prefix('\u{2581}').unwrap_or(token);
    let ends = [('<', '>'), ('[', ']')];
    let is_framed =
        ends.iter().any(|(first, last)| token.starts_with(*first) && token.ends_with(*last));
    !is_framed || token.len() < 3 || token.contains(char::is_whitespace)
}

/// Lists the tokens added to a tokenizer, with their ids; `None` without added tokens.
pub fn added_tokens(encoder: &Encoder) -> Option<Message> {
    let added: Vec<String> =
        encoder.added.iter().map(|(token, id)| format!("{token} = {id}")).collect();
    (!added.is_empty()).then(|| {
        let added = added.join(", ");
        format!("added to the tokenizer: {added} (the model's embeddings need a row for each)")
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> SequenceLayout<'static> {
        SequenceLayout {
            eof: None,
            cc: None,
            end: None,
            max_tokens: 2048,
            max_cross_file_tokens: 512,
            lambda: 1.0,
            held_out: Proportions { validation: 0.1, test: 0.0 },
            seed: 0,
        }
    }

    fn tokenizer() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/tokenizers/starcoder.json")
    }

    fn refusal(layout: SequenceLayout<'_>) -> String {
        let style: Style = "starcoder".parse().unwrap();
        let opened = layout.open(&style, &tokenizer());
        opened.map(drop).unwrap_err().to_string()
    }

    #[test]
    fn numbers_and_tokens_that_cannot_serve_are_refused() {
        let held_out = |validation, test| Proportions { validation, test };
        for (wrong, words) in [
            (SequenceLayout { held_out: held_out(1.0, 0.0), ..layout() }, "share for validation"),
            (SequenceLayout { held_out: held_out(0.0, -0.1), ..layout() }, "share for tests"),
            (SequenceLayout { lambda: f32::NAN, ..layout() }, "weight of the decision"),
            (SequenceLayout { max_cross_file_tokens: 0, ..layout() }, "cross-file tokens"),
            (SequenceLayout { eof: Some("end"), ..layout() }, "'end' could also occur in code"),
            (SequenceLayout { cc: Some("<a b>"), ..layout() }, "'<a b>' could also occur in code"),
            (SequenceLayout { end: Some("<>"), ..layout() }, "'<>' could also occur in code"),
            (SequenceLayout { end: Some("<fim_suffix>"), ..layout() }, "already part"),
            (SequenceLayout { max_tokens: 6, ..layout() }, "cannot hold its 5 special tokens"),
        ] {
            let refusal = refusal(wrong);
            assert!(refusal.contains(words), "{refusal}");
        }
        let style: Style = "starcoder".parse().unwrap();
        let words = layout().open(&style, Path::new("words")).map(drop).unwrap_err();
        assert!(words.to_string().contains("must be a model's own file"), "{words}");
    }

    #[test]
    fn brackets_keep_a_token_out_of_code() {
        let tokens = ["<eof>", "[CC]", "\u{2581}<PRE>", "<eof", "eof", "<>", "< a>", ""];
        assert_eq!(tokens.map(could_be_code), [false, false, false, true, true, true, true, true]);
    }

    #[test]
    fn missing_tokens_are_added_and_named() {
        let style: Style = "starcoder".parse().unwrap();
        let layout = SequenceLayout { end: Some("<|endoftext|>"), max_tokens: 9, ..layout() };
        let (settings, encoder) = layout.open(&style, &tokenizer()).unwrap();
        assert_eq!((settings.max_tokens, settings.end.as_deref()), (9, layout.end));
        let added = added_tokens(&encoder).unwrap().to_string();
        assert!(added.contains("<cc> = ") && added.contains(", <eof> = "), "{added}");
        assert!(!added.contains("endoftext"), "{added}");
    }
}
