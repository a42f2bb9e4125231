//! `label verbalize`: labels as training sequences.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Result;
use clap::Args;
use repoformer_core::label::InstanceKind;
use repoformer_core::label::verbalize::{
    KindCounts, Proportions, Split, SplitSummary, VerbalizeSettings, VerbalizeSummary, lines_of,
    verbalize,
};
use repoformer_core::prompt::style::{DecisionFrame, Style};
use repoformer_core::repository::Shard;
use repoformer_formats::merge::{Positions, ShardFile};
use repoformer_store::error::Error;
use repoformer_store::manifest::Manifest;
use repoformer_study::choices::seed;
use repoformer_text::tokenize::model::Encoder;

use crate::commands::session::use_threads;
use crate::output::{
    self, check_folder, check_output, check_rereadable, fail, group, hinted, plural, screen,
    write_shard_beside,
};
use crate::settings::{Listed, Settings, StyleName};

/// The bundled styles that have a place for the decision.
fn deciding_styles() -> Listed {
    let decides = |name: &&str| {
        name.parse::<Style>().is_ok_and(|style| DecisionFrame::of(&style, None, None).is_ok())
    };
    Listed::of(Style::names().filter(decides))
}

#[derive(Debug, Args)]
pub(crate) struct LabelVerbalizeArgs {
    /// Labels of one model, from `label judge` (repeatable, as for chunks and functions)
    #[arg(long, value_name = "FILE", required = true)]
    labels: Vec<PathBuf>,
    /// The model's tokenizer.json, or its folder; missing tokens are added to the copy in -o
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// Prompt style whose fill-in-the-middle tokens are used; repoformer and repoformer-released have their own place for
    /// the decision [default: starcoder]
    #[arg(long, value_name = "NAME|FILE", value_parser = deciding_styles())]
    prompt_style: Option<String>,
    /// Maximum tokens of a training sequence
    #[arg(long, alias = "max-tokens", value_name = "N", default_value_t = 2048)]
    max_sequence_tokens: usize,
    /// Part of the labels, by their repositories: 2/8 is the second of eight; `merge` puts the folders together, and adds
    /// Parquet [default: all]
    #[arg(long, value_name = "I/N")]
    shard: Option<String>,
    /// Seed of the choice of held-out repositories [default: 0]
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
    /// Token that asks for cross-file context, which follows it [default: the style's, or <cc>]
    #[arg(long, value_name = "TOKEN")]
    cc_token: Option<String>,
    /// Token after each target that teaches the model to stop, such as <|endoftext|> [default: none, as in the released
    /// program]
    #[arg(long, value_name = "TOKEN")]
    end_token: Option<String>,
    /// Maximum tokens of a cross-file context; the first ones are kept
    #[arg(long, value_name = "N", default_value_t = 512)]
    max_cc_tokens: usize,
    /// Weight of the decision relative to the completion, in loss_weights
    #[arg(long, value_name = "L", default_value_t = 1.0)]
    lambda: f32,
    /// Share of the repositories that is held out for validation
    #[arg(long, value_name = "R", default_value_t = 0.1)]
    validation: f64,
    /// Share of the repositories that is held out for tests
    #[arg(long, value_name = "R", default_value_t = 0.0)]
    test: f64,
}

pub(super) fn run(args: &LabelVerbalizeArgs) -> Result<()> {
    let settings = Settings::of_shard(args.shard.as_deref(), screen())?;
    let shard: Option<Shard> = *settings.shard;
    use_threads(args.threads.unwrap_or(*settings.threads).min(1024))?;
    let labels: Vec<&Path> = args.labels.iter().map(PathBuf::as_path).collect();
    check_rereadable(&labels, "label verbalize")?;
    check_folder(&args.output, "label verbalize")?;
    let asked_style = args.prompt_style.as_deref().map(StyleName::from_str).transpose()?;
    let prompt_style = asked_style.or_else(|| settings.prompt_style.own().cloned());
    let making = Making {
        tokenizer: &args.tokenizer,
        prompt_style: prompt_style.unwrap_or_else(|| StyleName::Style("starcoder".into())),
        max_tokens: args.max_sequence_tokens,
        seed: args.seed.map_or_else(|| seed(&settings), Ok)?,
        flags: &args.sequences,
    };
    let written = args.output.join("tokenizer.json");
    check_output(Some(&written), [&args.tokenizer, &args.tokenizer.join("tokenizer.json")])?;
    let (settings, encoder) = making.settings()?;
    if let Some(shard) = shard {
        check_own_folder(&args.output, shard)?;
    }
    let settings = VerbalizeSettings { shard, ..settings };
    verbalize_labels(&labels, &settings, &encoder, &args.output)
}

/// Verbalizes files of labels into a folder, and reports it.
pub(super) fn verbalize_labels(
    labels: &[&Path],
    settings: &VerbalizeSettings,
    encoder: &Encoder,
    folder: &Path,
) -> Result<()> {
    for output in outputs(folder) {
        check_output(Some(&output), labels)?;
    }
    let verbalized = verbalize(labels, encoder, settings, folder).map_err(with_hint)?;
    if let Some(shard) = settings.shard {
        write_parts(&verbalized, settings, shard, labels, folder)?;
    }
    output::problems(&verbalized.problems);
    for (reason, count) in &verbalized.left_out {
        output::failed(format!("{} instances are left out: {reason}", group(*count)));
    }
    if verbalized.repeated > 0 {
        output::warning(format!(
            "{} instances are there again, with the same target and contexts; each counts",
            group(verbalized.repeated)
        ));
    }
    report(&verbalized, settings, encoder);
    output::note(format!("written to {}", folder.display()));
    Ok(())
}

/// Refuses a folder that holds another shard's sequences.
fn check_own_folder(folder: &Path, shard: Shard) -> Result<()> {
    for split in Split::ALL {
        // Only all shards together have it.
        if lines_of(folder, split).with_extension("parquet").exists() {
            return fail(
                format!("{}: holds the sequences of all shards", folder.display()),
                "give each shard a folder of its own, or remove this one",
            );
        }
        // A damaged manifest is replaced.
        let there = ShardFile::of(&lines_of(folder, split)).ok().flatten();
        if let Some(other) = there.filter(|other| other.shard != shard) {
            return fail(
                format!("{}: holds the sequences of shard {}", folder.display(), other.shard),
                "give each shard a folder of its own, or remove this one",
            );
        }
    }
    Ok(())
}

/// Writes beside a shard's files which part they are.
fn write_parts(
    verbalized: &VerbalizeSummary,
    settings: &VerbalizeSettings,
    shard: Shard,
    labels: &[&Path],
    folder: &Path,
) -> Result<()> {
    let VerbalizeSettings {
        max_tokens, max_cross_file_tokens, end, lambda, held_out, seed, ..
    } = settings;
    let mut manifest = Manifest::new("sequences");
    manifest.setting("max-sequence-tokens", *max_tokens);
    manifest.setting("max-cc-tokens", *max_cross_file_tokens);
    manifest.setting("end-token", end.clone());
    manifest.setting("lambda", *lambda);
    manifest.setting("validation", held_out.validation);
    manifest.setting("test", held_out.test);
    manifest.setting("seed", *seed);
    for (number, path) in labels.iter().enumerate() {
        let name = if number == 0 { "labels".into() } else { format!("labels {}", number + 1) };
        manifest.input(&name, path)?;
    }
    manifest.input("tokenizer", &folder.join("tokenizer.json"))?;
    manifest.input("prompt style", &folder.join("prompt-style.toml"))?;
    for (split, summary) in &verbalized.splits {
        let mut positions = Positions::default();
        summary.lines.iter().for_each(|line| positions.add(*line));
        let mut manifest = manifest.clone();
        manifest.count("sequences", summary.sequences);
        write_shard_beside(&lines_of(folder, *split), manifest, shard, &positions)?;
    }
    Ok(())
}

/// Adds the flags that resolve an error.
pub(super) fn with_hint(error: Error) -> anyhow::Error {
    match &error {
        Error::Parameter { name: "validation", .. } => {
            hinted(error, "label more, or hold none out with --validation 0 --test 0")
        }
        _ => error.into(),
    }
}

/// Files written into a folder.
fn outputs(folder: &Path) -> Vec<PathBuf> {
    let splits = ["train", "validation", "test"].into_iter();
    let splits = splits.flat_map(|name| [format!("{name}.jsonl"), format!("{name}.parquet")]);
    let beside = ["tokenizer.json", "prompt-style.toml"].map(String::from);
    splits.chain(beside).map(|name| folder.join(name)).collect()
}

/// Options of a verbalization.
pub(super) struct Making<'a> {
    pub(super) tokenizer: &'a Path,
    pub(super) prompt_style: StyleName,
    pub(super) max_tokens: usize,
    pub(super) seed: u64,
    pub(super) flags: &'a SequenceFlags,
}

impl Making<'_> {
    /// Checks that the outputs do not overwrite the tokenizer or the style that is read.
    pub(super) fn check_output(&self, folder: &Path) -> Result<()> {
        let inside = self.tokenizer.join("tokenizer.json");
        let style = self.prompt_style.path();
        let read = [self.tokenizer, &inside, &style];
        outputs(folder).iter().try_for_each(|written| check_output(Some(written), read))
    }

    /// Settings of the sequences, and their tokenizer.
    pub(super) fn settings(&self) -> Result<(VerbalizeSettings, Encoder)> {
        let flags = self.flags;
        for (name, share) in [("validation", flags.validation), ("test", flags.test)] {
            if !(0.0..1.0).contains(&share) {
                return fail(
                    format!("--{name} must be at least 0 and less than 1"),
                    "a tenth of the repositories is 0.1",
                );
            }
        }
        if !(flags.lambda >= 0.0 && flags.lambda.is_finite()) {
            return fail("--lambda must be a number of at least 0", "the paper's is 1.0");
        }
        if flags.max_cc_tokens == 0 {
            return fail(
                "--max-cc-tokens must be at least 1: a positive sequence shows some cross-file context",
                "the paper's is 512",
            );
        }
        if matches!(&*self.tokenizer.to_string_lossy(), "p50k_base" | "words") {
            return fail(
                "--tokenizer must be the file of a model, whose token ids the training uses",
                "name a tokenizer.json, as models on the Hugging Face hub have it",
            );
        }
        let style = self.prompt_style.open()?;
        let (eof, cc) = (flags.eof_token.as_deref(), flags.cc_token.as_deref());
        let frame = DecisionFrame::of(&style, eof, cc)?;
        let mut specials = frame.specials();
        let end = flags.end_token.as_deref();
        for (flag, token) in [("eof-token", eof), ("cc-token", cc), ("end-token", end)] {
            check_token(flag, token)?;
        }
        if let Some(end) = end.filter(|end| specials.contains(end)) {
            return fail(
                format!("--end-token {end} is already part of a sequence"),
                "take the model's own end of a text, such as <|endoftext|>",
            );
        }
        specials.extend(end);
        // These, one token of context and one of the target.
        let least = specials.len() + 2;
        if self.max_tokens < least {
            return fail(
                format!(
                    "a sequence of {} tokens cannot hold its {} special tokens",
                    self.max_tokens,
                    specials.len()
                ),
                "the paper's have 2048",
            );
        }
        let encoder = Encoder::open(self.tokenizer, &specials)?;
        let settings = VerbalizeSettings {
            max_tokens: self.max_tokens,
            max_cross_file_tokens: flags.max_cc_tokens,
            end: flags.end_token.clone(),
            lambda: flags.lambda,
            held_out: Proportions { validation: flags.validation, test: flags.test },
            seed: self.seed,
            shard: None,
            frame,
        };
        Ok((settings, encoder))
    }
}

/// Checks that a special token cannot occur in code.
fn check_token(flag: &str, token: Option<&str>) -> Result<()> {
    let is_code = |token: &&str| {
        let token = token.strip_prefix('\u{2581}').unwrap_or(token);
        let ends = [('<', '>'), ('[', ']')];
        let is_framed =
            ends.iter().any(|(first, last)| token.starts_with(*first) && token.ends_with(*last));
        !is_framed || token.len() < 3 || token.contains(char::is_whitespace)
    };
    match token.filter(is_code) {
        None => Ok(()),
        Some(token) => fail(
            format!("--{flag} '{token}' could occur in code, and would be special there too"),
            "choose a text in angle or square brackets, as in <eof>",
        ),
    }
}

fn report(verbalized: &VerbalizeSummary, settings: &VerbalizeSettings, encoder: &Encoder) {
    for (split, summary) in &verbalized.splits {
        output::note(format!("label verbalize: {}: {}", split.name(), line(summary, settings)));
        if !summary.kinds.is_empty() && verbalized.splits.values().any(|one| one.kinds.len() > 1) {
            output::note(format!("label verbalize: {}: {}", split.name(), kinds(summary)));
        }
        if summary.sequences == 0 && settings.shard.is_none() {
            output::warning(format!("{} has no sequence", split.name()));
        }
    }
    if settings.shard.is_none() {
        warn_of_shares(verbalized, settings);
    }
    if !encoder.added.is_empty() {
        let added = encoder.added.iter();
        let added: Vec<String> = added.map(|(token, id)| format!("{token} = {id}")).collect();
        output::note(format!(
            "added to the tokenizer: {} (the model's embeddings need a row for each)",
            added.join(", ")
        ));
    }
    if verbalized.inexact > 0 {
        output::warning(format!(
            "{} sequences do not decode to their text, which the tokenizer normalizes; train on input_ids, not on text",
            group(verbalized.inexact)
        ));
    }
}

/// Warns of splits that are far from the share that was asked for: repositories are held out whole.
fn warn_of_shares(verbalized: &VerbalizeSummary, settings: &VerbalizeSettings) {
    let splits = || verbalized.splits.values();
    let sequences: usize = splits().map(|split| split.sequences).sum();
    let repositories: usize = splits().map(|split| split.repositories).sum();
    for (split, summary) in &verbalized.splits {
        let asked = match split {
            Split::Train => continue,
            Split::Validation => settings.held_out.validation,
            Split::Test => settings.held_out.test,
        };
        let share = summary.sequences as f64 / sequences.max(1) as f64;
        if share > 2.0 * asked || share < asked / 2.0 {
            output::warning(format!(
                "{} holds {:.1} % of the sequences, and {:.1} % were asked for: repositories are held out whole, so that no code is in two \
                 splits, and these are {} of {repositories}; labels of more repositories come closer",
                split.name(),
                100.0 * share,
                100.0 * asked,
                summary.repositories
            ));
        }
    }
}

/// `823 of chunks, 36.90 % positive; 411 of functions, 30.10 % positive`
fn kinds(summary: &SplitSummary) -> String {
    let of_kind = |(kind, counts): (&Option<InstanceKind>, &KindCounts)| {
        let name = kind.map_or("an unnamed kind".to_owned(), |kind| format!("{kind}s"));
        let positive = 100.0 * counts.positive as f64 / counts.sequences as f64;
        format!("{} of {name}, {positive:.2} % positive", group(counts.sequences))
    };
    summary.kinds.iter().map(of_kind).collect::<Vec<_>>().join("; ")
}

/// `1,234 sequences of 5 repositories, 36.90 % positive; 1,012.3 tokens on average, 2,048 at most; cut: …`
fn line(summary: &SplitSummary, settings: &VerbalizeSettings) -> String {
    let count = summary.sequences.max(1) as f64;
    let [left, right, cross_file] = summary.cut.map(group);
    format!(
        "{} sequences of {} {}, {:.2} % positive; {:.1} tokens on average, {} of {} at most; cut: {left} left, {right} right, \
         {cross_file} cross-file contexts",
        group(summary.sequences),
        group(summary.repositories),
        plural(summary.repositories, "repository"),
        100.0 * summary.positive as f64 / count,
        summary.tokens as f64 / count,
        group(summary.longest),
        group(settings.max_tokens),
    )
}
