//! `label verbalize`: labels as training sequences.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Result;
use clap::Args;
use repoformer_core::prompt::style::{DecisionFrame, Style};
use repoformer_formats::label::sequences::{
    Proportions, SequenceLayout, VerbalizeSettings, VerbalizeSummary, added_tokens, outputs,
};
use repoformer_formats::label::verbalize_into;
use repoformer_study::choices::seed;
use repoformer_text::counts::subject;
use repoformer_text::tokenize::model::Encoder;

use crate::commands::session::use_threads;
use crate::output::{self, check_folder, check_output, check_rereadable, group, screen};
use crate::settings::{Settings, StyleName, ValueList};

/// Returns the bundled styles that have a place for the decision.
fn deciding_styles() -> ValueList {
    let decides = |name: &&str| {
        name.parse::<Style>().is_ok_and(|style| DecisionFrame::new(&style, None, None).is_ok())
    };
    ValueList::new(Style::names().filter(decides))
}

#[derive(Debug, Args)]
pub(crate) struct LabelVerbalizeArgs {
    /// Labels of one model, from `label judge` (repeatable, for example for chunks and functions)
    #[arg(long, value_name = "FILE", required = true)]
    labels: Vec<PathBuf>,
    /// Tokenizer of the model (tokenizer.json, or its folder); missing tokens are added to the copy in -o
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// Prompt style whose fill-in-the-middle tokens to use; repoformer and repoformer-released put the decision in a place of
    /// their own [default: starcoder]
    #[arg(long, value_name = "NAME|FILE", value_parser = deciding_styles())]
    prompt_style: Option<String>,
    /// Maximum tokens of a training sequence
    #[arg(long, alias = "max-tokens", value_name = "N", default_value_t = 2048)]
    max_sequence_tokens: usize,
    /// Verbalize one shard of the labels' repositories, for example 2/8; combine the folders with `merge`, which adds Parquet
    /// [default: all]
    #[arg(long, value_name = "I/N")]
    shard: Option<String>,
    /// Seed for choosing the held-out repositories [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Number of threads; the output does not depend on it [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Folder for train.jsonl, train.parquet, the other splits, tokenizer.json and prompt-style.toml
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    sequences: SequenceFlags,
}

/// Layout of training sequences.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sequences")]
pub(crate) struct SequenceFlags {
    /// Token that ends the current file; the model decides after it [default: the style's, or <eof>]
    #[arg(long, value_name = "TOKEN")]
    eof_token: Option<String>,
    /// Token that asks for cross-file context; the context follows the token [default: the style's, or <cc>]
    #[arg(long, value_name = "TOKEN")]
    cc_token: Option<String>,
    /// Token after each target, to teach the model to stop, such as <|endoftext|> [default: none, as in the released program]
    #[arg(long, value_name = "TOKEN")]
    end_token: Option<String>,
    /// Maximum tokens of a cross-file context; longer contexts keep their beginning
    #[arg(long, value_name = "N", default_value_t = 512)]
    max_cc_tokens: usize,
    /// Weight of the decision relative to the completion, in loss_weights
    #[arg(long, value_name = "L", default_value_t = 1.0)]
    lambda: f32,
    /// Fraction of the repositories held out for validation
    #[arg(long, value_name = "R", default_value_t = 0.1)]
    validation: f64,
    /// Fraction of the repositories held out for testing
    #[arg(long, value_name = "R", default_value_t = 0.0)]
    test: f64,
}

pub(super) fn run(args: &LabelVerbalizeArgs) -> Result<()> {
    let settings = Settings::of_shard(args.shard.as_deref(), screen())?;
    use_threads(args.threads.unwrap_or(*settings.threads).min(1024))?;
    let labels: Vec<&Path> = args.labels.iter().map(PathBuf::as_path).collect();
    check_rereadable(&labels, "label verbalize")?;
    check_folder(&args.output, "label verbalize")?;
    let asked_style = args.prompt_style.as_deref().map(StyleName::from_str).transpose()?;
    let style = asked_style.or_else(|| settings.prompt_style.own().cloned());
    let style = style.unwrap_or_else(|| StyleName::Style("starcoder".into()));
    let written = args.output.join("tokenizer.json");
    check_output(Some(&written), [&args.tokenizer, &args.tokenizer.join("tokenizer.json")])?;
    let seed = args.seed.map_or_else(|| seed(&settings), Ok)?;
    let layout = args.sequences.layout(args.max_sequence_tokens, seed);
    let (sequences, encoder) = layout.open(&style.open()?, &args.tokenizer)?;
    let sequences = VerbalizeSettings { shard: *settings.shard, ..sequences };
    verbalize_labels(&labels, &sequences, &encoder, &args.output)
}

/// Verbalizes files of labels into a folder, and reports the result.
pub(super) fn verbalize_labels(
    labels: &[&Path],
    settings: &VerbalizeSettings,
    encoder: &Encoder,
    folder: &Path,
) -> Result<()> {
    outputs(folder).iter().try_for_each(|output| check_output(Some(output), labels))?;
    let verbalized = verbalize_into(folder, labels, encoder, settings)?;
    output::problems(&verbalized.problems);
    for (reason, count) in &verbalized.left_out {
        output::count_failure(format!(
            "{} left out: {reason}",
            subject(*count, "instance", ["is", "are"])
        ));
    }
    if verbalized.repeated > 0 {
        output::warning(format!(
            "{} repeated, with the same target and contexts; each copy is used",
            subject(verbalized.repeated, "instance", ["is", "are"])
        ));
    }
    report(&verbalized, settings, encoder);
    output::note(format!("written to {}", folder.display()));
    Ok(())
}

/// Checks that the outputs do not overwrite the tokenizer or style that is read.
pub(super) fn check_inputs(folder: &Path, tokenizer: &Path, style: &StyleName) -> Result<()> {
    let read = [tokenizer, &tokenizer.join("tokenizer.json"), &style.path()];
    outputs(folder).iter().try_for_each(|written| check_output(Some(written), read))
}

impl SequenceFlags {
    /// Returns the layout of sequences with this maximum number of tokens.
    pub(super) fn layout(&self, max_tokens: usize, seed: u64) -> SequenceLayout<'_> {
        SequenceLayout {
            eof: self.eof_token.as_deref(),
            cc: self.cc_token.as_deref(),
            end: self.end_token.as_deref(),
            max_tokens,
            max_cross_file_tokens: self.max_cc_tokens,
            lambda: self.lambda,
            held_out: Proportions { validation: self.validation, test: self.test },
            seed,
        }
    }
}

fn report(verbalized: &VerbalizeSummary, settings: &VerbalizeSettings, encoder: &Encoder) {
    for (split, summary) in &verbalized.splits {
        let split = split.name();
        let note = |text| output::note(format!("label verbalize: {split}: {text}"));
        note(summary.sequences_text(settings.max_tokens));
        if !summary.kinds.is_empty() && verbalized.has_several_kinds() {
            note(summary.kinds_text());
        }
        if summary.sequences == 0 && settings.shard.is_none() {
            output::warning(format!("split {split} has no sequences"));
        }
    }
    if settings.shard.is_none() {
        verbalized.uneven_splits(settings.held_out).into_iter().for_each(output::warning);
    }
    if let Some(added) = added_tokens(encoder) {
        output::note(added.to_string());
    }
    if verbalized.inexact > 0 {
        output::warning(format!(
            "{} sequences do not decode to their text, since the tokenizer normalizes text; train on input_ids, not on text",
            group(verbalized.inexact)
        ));
    }
}
