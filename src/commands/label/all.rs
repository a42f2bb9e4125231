//! `label all`: from repositories to training sequences, with one model.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use repoformer_core::label::InstanceKind;
use repoformer_core::retrieve::Mode;
use repoformer_evaluate::label::check_threshold;
use repoformer_formats::label::sequences::check_splits;
use repoformer_formats::label::{InstanceFile, InstanceFileState};
use repoformer_pipeline as pipeline;
use repoformer_pipeline::cached_predictions;
use repoformer_store::error::Error;
use repoformer_study::choices::{label, seed};
use repoformer_study::experiments::{check_completable, completion_of, without_repositories};
use repoformer_study::stages::complete;
use repoformer_study::{checkout, server};

use super::judge::{self, LabelJudgeArgs};
use super::sample::{DrawingFlags, LabelSampleArgs, draw_instances, forget_journal, request};
use super::verbalize::{SequenceFlags, check_inputs, verbalize_labels};
use crate::commands::session::begin;
use crate::output::{self, Screen, check_folder, fail, screen};
use crate::settings::{DECLARED, Setting, SettingFlags, Settings, ValueList};

#[derive(Debug, Args)]
pub(crate) struct LabelAllArgs {
    #[command(flatten)]
    settings: SettingFlags,
    /// Minimum gain: retrieval helps if it raises the edit similarity (0 to 1) by more than this
    #[arg(long, value_name = "T", default_value_t = 0.0, allow_negative_numbers = true)]
    threshold: f64,
    /// Also complete the instances with one fragment at a time, then in each further round with the best set so far and one
    /// more fragment, and add the gains to the labels: up to this number of rounds
    #[arg(long, value_name = "N", default_value_t = 0)]
    fragment_rounds: usize,
    /// Maximum tokens of a training sequence
    #[arg(long, value_name = "N", default_value_t = 2048)]
    max_sequence_tokens: usize,
    /// Folder for instances.jsonl, labels.jsonl, the output of `label verbalize`, and the cache; with several kinds, the files
    /// have names such as instances-chunk.jsonl
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Kinds of the holes: chunk (about three lines), function (the body of a function of 3 to 30 lines); repeatable, or separated
    /// by commas
    #[arg(long, value_name = "KIND", default_value = "chunk", help_heading = "Sampling", value_delimiter = ',',
        value_parser = ValueList::new(InstanceKind::ALL))]
    kind: Vec<String>,
    #[command(flatten)]
    drawing: DrawingFlags,
    #[command(flatten)]
    sequences: SequenceFlags,
}

/// Subcommand, as the source of settings.
const NAME: &str = "label all";
/// Settings of fragments, searches and embeddings, whose flags are refused.
static UNUSED: [&Setting; 22] = [
    &DECLARED.window_size,
    &DECLARED.slice_size,
    &DECLARED.center,
    &DECLARED.chunk_size,
    &DECLARED.chunk_stride,
    &DECLARED.hole_guard,
    &DECLARED.vectorizer,
    &DECLARED.ranker,
    &DECLARED.top_k,
    &DECLARED.query,
    &DECLARED.query_lines,
    &DECLARED.ties,
    &DECLARED.max_files,
    &DECLARED.max_chunks,
    &DECLARED.embedding_model,
    &DECLARED.embedding_batch,
    &DECLARED.embedding_concurrency,
    &DECLARED.embedding_timeout,
    &DECLARED.vectors,
    &DECLARED.vector_texts,
    &DECLARED.align,
    &DECLARED.fragment_paths,
];
/// Completions without retrieved fragments, and with them.
const MODES: [Mode; 2] = [Mode::Without, Mode::Given];

/// Files of the instances of one kind.
struct KindFiles {
    kind: InstanceKind,
    instances: PathBuf,
    labels: PathBuf,
}

impl KindFiles {
    /// Returns the files of each kind in a folder.
    fn of_all(folder: &Path, names: &[String]) -> Result<Vec<Self>> {
        let mut kinds: Vec<InstanceKind> = Vec::new();
        for name in names {
            let kind = name.parse()?;
            if kinds.contains(&kind) {
                return fail(format!("--kind names {kind} twice"), "name each kind once");
            }
            kinds.push(kind);
        }
        let is_one = kinds.len() == 1;
        let path = |name: &str, kind: InstanceKind| {
            if is_one {
                folder.join(format!("{name}.jsonl"))
            } else {
                folder.join(format!("{name}-{kind}.jsonl"))
            }
        };
        let files =
            |kind| Self { kind, instances: path("instances", kind), labels: path("labels", kind) };
        Ok(kinds.into_iter().map(files).collect())
    }

    /// Returns the name of the file of tasks that show some of the fragments.
    fn name_of_round(&self, round: usize) -> String {
        let stem = self.labels.file_stem().unwrap_or_default().to_string_lossy();
        format!("{}-{round}.jsonl", stem.replace("labels", "fragments"))
    }
}

pub(crate) fn run(args: &LabelAllArgs) -> Result<()> {
    let folder = &args.output;
    check_folder(folder, "label all")?;
    check_threshold(args.threshold)?;
    let kinds = KindFiles::of_all(folder, &args.kind)?;
    args.drawing.check_kinds(&kinds.iter().map(|files| files.kind).collect::<Vec<_>>())?;
    let settings = settings(args, &kinds)?;
    // Errors are reported before hours of completing.
    let (tokenizer, style) = (settings.tokenizer.get().path(), settings.prompt_style.get());
    check_inputs(folder, &tokenizer, style)?;
    let layout = args.sequences.layout(args.max_sequence_tokens, seed(&settings)?);
    let (sequences, encoder) = layout.open(&style.open()?, &tokenizer)?;
    let completion = server::model(&settings, None, false)?;
    // Errors are reported before hours of drawing.
    if kinds.iter().any(|files| !files.instances.exists()) {
        server::greet(&completion, &Screen)?;
    }
    for files in &kinds {
        draw(args, &settings, files)?;
    }
    let instances: Vec<&Path> = kinds.iter().map(|files| &*files.instances).collect();
    check_splits(&instances, sequences.held_out)?;
    for files in &kinds {
        label_kind(args, &settings, files)?;
    }
    let labels: Vec<&Path> = kinds.iter().map(|files| &*files.labels).collect();
    verbalize_labels(&labels, &sequences, &encoder, folder)
}

/// Completes the instances of a kind without and with their fragments, and labels them.
fn label_kind(args: &LabelAllArgs, settings: &Settings, files: &KindFiles) -> Result<()> {
    let [base, rag] = complete_modes(settings, &files.instances, MODES)?;
    let mut judging = LabelJudgeArgs {
        instances: files.instances.clone(),
        base: base?,
        rag: rag?,
        fragments: Vec::new(),
        next_fragments: None,
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
        output: files.labels.clone(),
        summary: None,
        format: None,
    };
    for round in 1..=args.fragment_rounds {
        let tasks = files.labels.with_file_name(files.name_of_round(round));
        judging.next_fragments = Some(tasks.clone());
        judge::judge(&judging, settings)?;
        judging.next_fragments = None;
        if tasks.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            repoformer_store::files::remove_file(&tasks)
                .map_err(|e| Error::writing(&tasks, "remove this file", e))?;
            break;
        }
        let [answers] = complete_modes(settings, &tasks, [Mode::Given])?;
        judging.fragments.push([tasks, answers?]);
    }
    judge::report(&judging, &judge::judge(&judging, settings)?)
}

/// Completes tasks in some modes. Returns the files of the predictions.
fn complete_modes<const N: usize>(
    settings: &Settings,
    tasks: &Path,
    modes: [Mode; N],
) -> Result<[Result<PathBuf>; N]> {
    let mut settings = settings.clone();
    settings.change(|values| values.tasks.fix(vec![tasks.to_owned()], NAME));
    let (experiment, settings) = without_repositories(&settings)?;
    check_completable(&experiment)?;
    let completion = completion_of(&experiment, &settings, None, false)?;
    let report = pipeline::prompt(&experiment, &modes)?;
    output::report(&label("prompt", &experiment), &report);
    let report = complete(&experiment, &modes, &completion)?;
    output::report(&label("complete", &experiment), &report);
    Ok(modes.map(|mode| Ok(cached_predictions(&experiment, mode, &completion)?)))
}

/// Returns the settings: the data is in the folder, and the paper's profile is the default.
fn settings(args: &LabelAllArgs, kinds: &[KindFiles]) -> Result<Settings> {
    let flags = &args.settings;
    if let Some(Setting { key, .. }) =
        [&DECLARED.tasks, &DECLARED.mode].into_iter().find(|one| flags.has(one))
    {
        return fail(
            format!("--{key} is not used by label all, which draws its own instances"),
            "leave it out",
        );
    }
    // The instances carry their fragments.
    if let Some(Setting { key, .. }) = UNUSED.into_iter().find(|one| flags.has(one)) {
        return fail(
            format!(
                "--{key} is not used by label all, which retrieves fragments as it draws instances"
            ),
            "leave it out; set fragments and instances with the flags under Sampling",
        );
    }
    let mut settings = Settings::with_presets(flags, screen(), |preset| {
        preset.cache_dir.fix(args.output.join("cache"), NAME);
        // A named configuration is complete.
        if !flags.has(&DECLARED.config) {
            preset.profile.fix(Some("repoformer-paper".into()), NAME);
        }
    })?;
    // Instances are drawn from the repositories; task files of an earlier run do not matter.
    checkout::settle(&mut settings);
    settings.change(|values| {
        values.tasks.fix(kinds.iter().map(|files| files.instances.clone()).collect(), NAME);
        values.mode.fix(MODES.to_vec(), NAME);
    });
    begin(settings, flags)
}

/// Draws the instances, unless the file already contains them.
fn draw(args: &LabelAllArgs, settings: &Settings, files: &KindFiles) -> Result<()> {
    let instances = &*files.instances;
    let drawing = LabelSampleArgs {
        settings: args.settings.clone(),
        raw: None,
        kind: files.kind.name().to_owned(),
        drawing: args.drawing.clone(),
        as_benchmark: false,
        output: instances.to_owned(),
    };
    let (drawn_from, problems) = request(&drawing, settings)?.0.fingerprint()?;
    let file = InstanceFile { path: instances, kind: files.kind, seed: seed(settings)? };
    match file.state(&drawn_from) {
        InstanceFileState::Current => {
            output::problems(&problems);
            output::note(format!("label sample: {} is up to date", instances.display()));
            // An earlier command may have failed to remove it.
            forget_journal(instances);
            return Ok(());
        }
        InstanceFileState::Damaged(damage) => {
            output::warning(format!("{damage}; the instances are drawn again"));
        }
        InstanceFileState::Stale => {}
    }
    file.remove_manifest()?;
    // The repositories may have changed since the digest above was computed.
    let drawn_from = draw_instances(&drawing, settings)?;
    Ok(file.write_manifest(&drawn_from)?)
}
