//! `label all`: from repositories to training sequences, with one model.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use repoformer::pipeline::{self, cached_predictions};
use repoformer::retrieve::Mode;
use repoformer::selective::label::verbalize::check_splits;
use repoformer::store::files;
use repoformer::store::manifest::{Manifest, beside, check_beside, read_beside, with_output};

use super::judge::{self, LabelJudgeArgs, check_threshold};
use super::sample::{
    DrawingFlags, LabelSampleArgs, draw_instances, forget_journal, instances_digest,
};
use super::verbalize::{Making, SequenceFlags, verbalize_labels, with_flags};
use crate::commands::checkout;
use crate::commands::complete::complete_modes;
use crate::commands::experiments::{check_completable, completion_of, without_repositories};
use crate::commands::server;
use crate::commands::session::{begin, label, seed};
use crate::output::{self, check_folder, fail, write_manifest_beside};
use crate::settings::{Given, SettingFlags, Settings};

#[derive(Debug, Args)]
pub(crate) struct LabelAllArgs {
    #[command(flatten)]
    settings: SettingFlags,
    /// Retrieval helps where it raises the edit similarity (0 to 1) by more than this
    #[arg(long, value_name = "T", default_value_t = 0.0, allow_negative_numbers = true)]
    threshold: f64,
    /// Maximum tokens of a training sequence
    #[arg(long, value_name = "N", default_value_t = 2048)]
    max_sequence_tokens: usize,
    /// Folder for instances.jsonl, labels.jsonl, the output of `label verbalize`, and the cache
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    drawing: DrawingFlags,
    #[command(flatten)]
    sequences: SequenceFlags,
}

/// The subcommand, as the source of settings.
const NAME: &str = "label all";
/// Completions without retrieved fragments, and with them.
const MODES: [Mode; 2] = [Mode::Without, Mode::Given];

pub(crate) fn run(args: &LabelAllArgs) -> Result<()> {
    let folder = &args.output;
    check_folder(folder, "label all")?;
    check_threshold(args.threshold)?;
    let instances = folder.join("instances.jsonl");
    let settings = settings(args, &instances)?;
    // Mistakes are reported before the hours of completing.
    let making = Making {
        tokenizer: Path::new(settings.text("tokenizer").unwrap_or_default()),
        prompt_style: settings.text("prompt-style").unwrap_or_default(),
        max_tokens: args.max_sequence_tokens,
        seed: seed(&settings)?,
        flags: &args.sequences,
    };
    making.check_output(folder)?;
    let (sequences, encoder) = making.settings()?;
    let completion = server::model(&settings, None, false)?;
    // Before the hours of drawing.
    if !instances.exists() {
        server::greet(&completion)?;
    }
    draw(args, &settings, &instances)?;
    check_splits(&instances, sequences.held_out).map_err(with_flags)?;

    let experiment = without_repositories(&settings)?;
    check_completable(&experiment)?;
    let completion = completion_of(completion, &settings, &experiment)?;
    let report = pipeline::prompt(&experiment, &MODES)?;
    output::report(&label("prompt", &experiment), &report);
    complete_modes(&experiment, &MODES, &completion)?;
    let [base, rag] = MODES.map(|mode| cached_predictions(&experiment, mode, &completion));
    let labels = folder.join("labels.jsonl");
    let judging = LabelJudgeArgs {
        instances,
        base: base?,
        rag: rag?,
        prompts: None,
        probabilities: None,
        samples_from: None,
        metric: None,
        postprocess: None,
        base_exec: None,
        rag_exec: None,
        model: None,
        shard: None,
        threshold: args.threshold,
        output: labels.clone(),
        summary: None,
        format: None,
    };
    judge::run_with(&judging, &settings)?;
    verbalize_labels(&labels, &sequences, &encoder, folder)
}

/// The settings: the data lies in the folder, and the paper's profile is the default.
fn settings(args: &LabelAllArgs, instances: &Path) -> Result<Settings> {
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.with_context(|| format!("{}: not UTF-8", path.display()))
    };
    let flags = &args.settings;
    if let Some(key) = ["tasks", "mode"].into_iter().find(|key| flags.has(key)) {
        return fail(
            format!(
                "--{key} is not used by label all, which completes the instances that it draws"
            ),
            "leave it out",
        );
    }
    let mut presets = Given::from([("cache-dir", vec![text(&args.output.join("cache"))?])]);
    // A configuration that was named is complete.
    if !flags.has("config") {
        presets.insert("profile", vec!["repoformer-paper".into()]);
    }
    let mut settings = Settings::with_presets(flags, NAME, presets)?;
    // It draws from the repositories, whatever tasks an earlier run left.
    checkout::settle(&mut settings);
    settings.fix("tasks", vec![text(instances)?], NAME);
    settings.fix("mode", MODES.map(|mode| mode.to_string()).to_vec(), NAME);
    begin(settings, flags)
}

/// Draws the instances, unless the file holds them already.
fn draw(args: &LabelAllArgs, settings: &Settings, instances: &Path) -> Result<()> {
    let drawing = LabelSampleArgs {
        settings: args.settings.clone(),
        raw: None,
        drawing: args.drawing.clone(),
        as_benchmark: false,
        output: instances.to_owned(),
    };
    let (drawn_from, problems) = instances_digest(&drawing, settings)?;
    let seed = seed(settings)?.to_string();
    let manifest = |drawn_from: String| {
        let mut manifest = Manifest::new("instances");
        manifest.setting("kind", args.drawing.kind.clone());
        manifest.setting("seed", seed.clone());
        manifest.setting("drawn-from", drawn_from);
        manifest.to_record()
    };
    let (beside, known) = (beside(instances), read_beside(instances));
    if let (Ok(known), Ok(wanted)) = (&known, with_output(manifest(drawn_from), instances))
        && wanted.as_object() == Some(known)
    {
        output::problems(&problems);
        output::note(format!("label sample: {} is current", instances.display()));
        // An earlier command may not have been able to.
        forget_journal(instances);
        return Ok(());
    }
    if instances.exists()
        && let Err(damage) = known.and_then(|_| check_beside(instances))
    {
        output::warning(format!("{damage}; the instances are drawn again"));
    }
    if let Err(e) = files::remove_file(&beside)
        && e.kind() != std::io::ErrorKind::NotFound
    {
        return Err(anyhow!("{}: cannot remove this file: {e}", beside.display()));
    }
    // What was read for the digest above need not be what is drawn from.
    let drawn_from = draw_instances(&drawing, settings)?;
    write_manifest_beside(instances, &manifest(drawn_from))
}
