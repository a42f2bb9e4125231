//! `label all`: from repositories to training sequences, with one model.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use repoformer::pipeline::{self, cached_predictions};
use repoformer::retrieve::Mode;
use repoformer::selective::label::verbalize::check_splits;
use repoformer::store::manifest::Manifest;

use super::complete::complete_modes;
use super::label::{check_threshold, draw_instances, instances_digest, judge_instances};
use super::server::{self, Asked};
use super::session::{check_completable, label, open, without_repositories};
use super::verbalize::{Making, verbalize_labels, with_flags};
use crate::args::{LabelAllArgs, LabelJudgeArgs, LabelSampleArgs, SettingFlags};
use crate::config::Settings;
use crate::output::{Printer, check_folder, hinted, write_manifest_beside};

/// Completed without what was retrieved, and with it.
const MODES: [Mode; 2] = [Mode::Without, Mode::Given];

pub(crate) fn run(args: &LabelAllArgs, printer: &mut Printer) -> Result<()> {
    let folder = &args.output;
    check_folder(folder, "label all")?;
    check_threshold(args.threshold)?;
    let instances = folder.join("instances.jsonl");
    let flags = flags(args, &instances)?;
    let Some(settings) = open(&flags)? else {
        return Ok(());
    };
    // What cannot be made is known before the hours that lead to it.
    let making = Making {
        tokenizer: Path::new(settings.text("tokenizer").unwrap_or_default()),
        prompt_style: settings.text("prompt-style").unwrap_or_default(),
        max_tokens: args.max_sequence_tokens,
        seed: args.seed,
        flags: &args.sequences,
    };
    making.check_output(folder)?;
    let sequences = making.settings()?;
    let asked = Asked {
        flags: &flags,
        server: &args.server,
        seed: None,
        by_batch: false,
    };
    let completion = server::model(&asked, &settings, None)?;
    draw(args, &settings, &flags, &instances, printer)?;
    check_splits(&instances, sequences.0.held_out).map_err(with_flags)?;

    let experiment = without_repositories(&settings, printer)?;
    check_completable(&experiment)?;
    let report = pipeline::prompt(&experiment, &MODES)?;
    printer.report(&label("prompt", &experiment), &report);
    complete_modes(&experiment, &MODES, &completion, printer)?;
    let [base, rag] = MODES.map(|mode| cached_predictions(&experiment, mode, &completion));
    let labels = folder.join("labels.jsonl");
    let judging = LabelJudgeArgs {
        instances,
        base: base?,
        rag: rag?,
        prompts: None,
        probabilities: None,
        model: None,
        threshold: args.threshold,
        output: labels.clone(),
    };
    judge_instances(&judging, printer)?;
    verbalize_labels(&labels, &sequences, folder, printer)
}

/// The flags of the stages: their data lies in the folder, and the paper's profile serves where none is named.
fn flags(args: &LabelAllArgs, instances: &Path) -> Result<SettingFlags> {
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.with_context(|| format!("{}: not UTF-8", path.display()))
    };
    let mut flags = args.settings.clone();
    for (is_free, name) in [
        (flags.tasks.is_empty(), "tasks"),
        (flags.mode.is_empty(), "mode"),
    ] {
        if !is_free {
            return Err(hinted(
                anyhow!(
                    "--{name} is not for label all, which completes the instances that it draws"
                ),
                "leave it out",
            ));
        }
    }
    flags.tasks = vec![text(instances)?];
    flags.mode = MODES.map(|mode| mode.to_string()).to_vec();
    if flags.cache_dir.is_none() {
        flags.cache_dir = Some(text(&args.output.join("cache"))?);
    }
    // Only where nobody names one, in the environment or in a file either.
    if Settings::resolve(&flags)?.text("profile").is_none() && flags.config.is_none() {
        flags.profile = Some("repoformer-paper".into());
    }
    Ok(flags)
}

/// Draws the instances, unless they are there and would be the same.
fn draw(
    args: &LabelAllArgs,
    settings: &Settings,
    flags: &SettingFlags,
    instances: &Path,
    printer: &mut Printer,
) -> Result<()> {
    let drawing = LabelSampleArgs {
        settings: flags.clone(),
        raw: None,
        drawing: args.drawing.clone(),
        shard: None,
        as_benchmark: false,
        seed: args.seed,
        output: instances.to_owned(),
    };
    let mut manifest = Manifest::new("instances");
    let (drawn_from, problems) = instances_digest(&drawing, settings)?;
    for (name, value) in [
        ("kind", args.drawing.kind.clone()),
        ("seed", args.seed.to_string()),
        ("drawn-from", drawn_from),
    ] {
        manifest.setting(name, value);
    }
    let wanted = |digest: &str| {
        let mut manifest = manifest.to_record();
        manifest["digest"] = digest.into();
        manifest
    };
    let beside = instances.with_extension("jsonl.manifest.json");
    let known = std::fs::read(&beside).ok();
    let known = known.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if known.is_some() && known == digest(instances).map(|found| wanted(&found)) {
        printer.problems(&problems);
        printer.note(format!("label sample: {} is current", instances.display()));
        return Ok(());
    }
    if let Err(e) = std::fs::remove_file(&beside)
        && e.kind() != std::io::ErrorKind::NotFound
    {
        return Err(anyhow!(
            "{}: cannot remove this file: {e}",
            beside.display()
        ));
    }
    draw_instances(&drawing, settings, printer)?;
    write_manifest_beside(instances, &wanted(&digest(instances).unwrap_or_default()))
}

/// A digest of a file's bytes, where it can be read.
fn digest(path: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(std::fs::File::open(path).ok()?).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}
