//! `complete`: prompts → predictions (JSONL, in the order of the prompts).

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use repoformer_core::prompt::style::Style;
use repoformer_core::repository::{Shard, parallel};
use repoformer_core::retrieve::Mode;
use repoformer_evaluate::origin::Origin;
use repoformer_models::in_context::{self, Finish, Generation, Limits};
use repoformer_store::artifact::{self, Header, Identity, LineTotals, header_path};
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl::{self, Fields, Object};
use repoformer_store::progress::Work;
use repoformer_text::message;
use repoformer_text::message::{StageRun, UserChoice};
use serde_json::{Value, json};

use super::completion::{
    Completion, EmitLine, Predictions, parse_prompt, record_line, target_lines,
};
use super::experiment::Experiment;
use super::prompt::{SHARD, for_each_prompts, require_prompts};
use super::prompt_warnings::warn_of_begun_lines;
use super::remote::{self, Latency, PromptText};
use super::stage::{
    PREDICTIONS_FILE, StageReport, check_input, check_parameters, made_again, require_jsonl,
};

/// Completes the cached prompts of each mode.
///
/// # Errors
/// Prompts are missing, an artifact cannot be written, or a predictions file is in the way that this program did not write.
pub fn complete(
    experiment: &Experiment,
    modes: &[Mode],
    completion: &Completion,
) -> Result<StageReport> {
    completion.check()?;
    let mut report = StageReport::of(experiment);
    let style = experiment.prompts.layout.style();
    if completion.server.is_none() {
        warn_of_begun_lines(experiment, &mut report)?;
    }
    for &mode in modes {
        let prompts = experiment.layout.prompts(mode);
        let prompts_there = require_prompts(experiment, mode)?;
        if mode == Mode::Prediction {
            check_searched_with(experiment, Some(completion))?;
        }
        let shard = experiment.layout.shard;
        let identity = predictions_identity(experiment, mode, completion, &prompts_there, shard);
        let path = experiment.layout.predictions(mode, &completion.model);
        refuse_foreign(&path)?;
        let mut latencies = Vec::new();
        if let Some(server) = &completion.server {
            if report.is_dry() {
                let foreseen = server.foresee(experiment, mode, &path, completion)?;
                // Answers of a batch have no times, and those that were kept may have none.
                let asks = foreseen.requests.is_some_and(|requests| requests > 0);
                report.foresee(path, &identity, foreseen)?;
                let times = experiment.layout.latency(mode, &completion.model);
                report.foresee_times(times, TIMES, asks && server.asked.is_some());
                continue;
            }
            server.forget_incomplete(experiment, mode, &path, completion)?;
        }
        let times = experiment.layout.latency(mode, &completion.model);
        if !report.is_dry() && header_path(&path).exists() {
            remote::forget_damaged_latencies(&mut report, &times, &path)?;
        }
        let built = report.built;
        let header = report.ensure_jsonl(path.clone(), &identity, |report, sink| {
            let emit: &mut EmitLine<'_> = &mut |line| sink.write(line);
            let predictions = match &completion.server {
                None => {
                    let mut local = Local::new(&prompts, completion, style, emit);
                    local.work.more(prompts_there.records as usize);
                    for_each_prompts(
                        &experiment.layout.prompts(mode),
                        mode,
                        &prompts_there,
                        &mut |piece| local.complete(piece),
                    )?;
                    local.predictions
                }
                Some(server) => {
                    let prompts = PromptText::of_header(experiment, mode, prompts_there.clone());
                    server.complete(&prompts, completion, emit)?
                }
            };
            report.problems.extend(predictions.problems);
            report.warnings.extend(predictions.warnings);
            latencies = predictions.latencies;
            let records = predictions.records;
            let is_asked = completion.server.is_some();
            let totals = is_asked.then(|| (remote::CHECKED.to_owned(), records as u64));
            Ok(LineTotals { records, totals: totals.into_iter().collect() })
        })?;
        if report.is_dry() {
            report.foresee_times(times, TIMES, true);
            continue;
        }
        // What failed is told in the runs after, too.
        if report.built == built && header.records < prompts_there.records {
            let failures = match &completion.server {
                Some(server) => {
                    server.failures(&PromptText::of_mode(experiment, mode)?, completion)?
                }
                None => vec![incomplete(&path, header.records, prompts_there.records)],
            };
            report.problems.extend(failures);
        }
        if report.built > built {
            remote::keep_latencies(&times, &latencies)?;
            // A measurement: where what was searched is no longer there, queries have no time.
            let _ = remote::latencies(experiment, mode, &completion.model);
        }
    }
    Ok(report)
}

/// Identity of a mode's predictions for these prompts: of all tasks, or of a shard's.
pub(super) fn predictions_identity(
    experiment: &Experiment,
    mode: Mode,
    completion: &Completion,
    prompts: &Header,
    shard: Option<Shard>,
) -> Identity {
    let identity = completion
        .identity()
        .parameter("benchmark", &experiment.layout.benchmark)
        .parameter("mode", mode)
        .input("prompts", &*prompts.checksum);
    match shard {
        Some(shard) => identity.parameter(SHARD, shard),
        None => identity,
    }
}

/// Kind of a file of times, in words.
const TIMES: &str = "times of tasks";

fn incomplete(path: &Path, predictions: u64, prompts: u64) -> Error {
    Error::Artifact {
        path: path.to_owned(),
        reason: format!(
            "holds predictions for {predictions} of {prompts} prompts; the others could not be completed"
        ),
        hint: message!["a ", UserChoice::VerboseRun, " says why, once this file is removed"],
    }
}

/// Somebody's own predictions, put into the cache by hand, must not be lost.
fn refuse_foreign(path: &Path) -> Result<()> {
    if path.exists() && !header_path(path).exists() {
        return Err(Error::Artifact {
            path: path.to_owned(),
            reason: "these predictions were not written by repoformer, and would be overwritten"
                .into(),
            hint: message![
                "move them away, and name the ",
                UserChoice::PredictionsFile,
                " to later stages"
            ],
        });
    }
    Ok(())
}

/// Completes every prompt of a JSONL file. Prompts of a style that is not bundled need it to be completed by the embedded
/// model.
///
/// # Errors
/// The file cannot be read, or an error of `emit`.
pub fn complete_file(
    prompts: &Path,
    completion: &Completion,
    style: Option<&Style>,
    emit: &mut EmitLine<'_>,
) -> Result<Predictions> {
    completion.check()?;
    match &completion.server {
        None => {
            let mut local = Local::new(prompts, completion, style, emit);
            artifact::whole_lines(prompts, jsonl::open(prompts)?, &mut |piece| {
                local.work.more(jsonl::records(piece).count());
                local.complete(piece)
            })?;
            Ok(local.predictions)
        }
        Some(server) => server.complete(&PromptText::of_file(prompts)?, completion, emit),
    }
}

/// The embedded model at work on the prompts of a file, piece by piece.
struct Local<'a> {
    path: &'a Path,
    completion: &'a Completion,
    style: Option<&'a Style>,
    emit: &'a mut EmitLine<'a>,
    work: Work,
    /// Lines in the pieces before.
    lines: usize,
    predictions: Predictions,
}

impl<'a> Local<'a> {
    fn new(
        path: &'a Path,
        completion: &'a Completion,
        style: Option<&'a Style>,
        emit: &'a mut EmitLine<'a>,
    ) -> Self {
        let label = format!("complete {}", path.file_name().unwrap_or_default().display());
        let work = Work::begin(label, "prompts");
        Self { path, completion, style, emit, work, lines: 0, predictions: Predictions::default() }
    }

    /// Completes the prompts of whole lines.
    fn complete(&mut self, piece: &[u8]) -> Result<()> {
        let made = parallel::map(jsonl::records(piece), |(at, bytes)| {
            let line = self.lines + at.line;
            let begin = Instant::now();
            let object = parse_prompt(self.path, line, bytes)?;
            let mut latency = Latency::of_record(self.path, line, &object)?;
            let line = complete_record(self.path, line, object, self.completion, self.style)?;
            latency.generation_ms = Some(1e3 * begin.elapsed().as_secs_f64());
            latency.at_once = Some(rayon::current_num_threads());
            self.work.done(1);
            Ok((line, latency))
        });
        self.lines += memchr::memchr_iter(b'\n', piece).count();
        for made in made {
            match made {
                Ok((line, latency)) => {
                    (self.emit)(&line)?;
                    self.predictions.records += 1;
                    self.predictions.latencies.push(latency);
                }
                Err(error) => keep(&mut self.predictions.problems, self.path, error),
            }
        }
        Ok(())
    }
}

fn complete_record(
    path: &Path,
    line: usize,
    object: Object,
    completion: &Completion,
    style: Option<&Style>,
) -> Result<Vec<u8>> {
    let fields = Fields::new(path, line, "", &object);
    let limits = Limits {
        max_lines: match completion.max_lines {
            Some(lines) => lines,
            None => target_lines(&fields, &object)?,
        },
        max_tokens: completion.max_tokens,
    };
    let own = own_style(&object, style).map_err(|reason| fields.error(reason))?;
    let prompt = left_to_right(fields.string("prompt")?, own);
    let generation = in_context::complete(&prompt, &limits);
    Ok(answered(object, &generation))
}

/// A prompt for a model that knows no special tokens: of one that was made for infilling, the right context, the
/// cross-file context and the left context in this order, so that what is to be completed stands at the end.
pub(super) fn left_to_right<'p>(prompt: &'p str, style: Option<&Style>) -> Cow<'p, str> {
    match style.and_then(|style| style.split(prompt)) {
        Some(slots) => Cow::Owned([slots.right, "\n", slots.cross_file, slots.left].concat()),
        None => Cow::Borrowed(prompt),
    }
}

/// The style that a prompt's record says it is of: `known`, or a bundled one. `None` where it names none.
pub(super) fn own_style<'s>(
    record: &Object,
    known: Option<&'s Style>,
) -> Result<Option<&'s Style>, String> {
    let metadata = record.get("metadata").and_then(Value::as_object);
    let said = |field: &str| metadata.and_then(|m| m.get(field)?.as_str());
    let Some(name) = said("prompt_style") else {
        return Ok(None);
    };
    let digest = said("prompt_style_digest");
    let is_it = |style: &&Style| match digest {
        Some(digest) => style.file_digest() == digest,
        // The prompt was written by hand.
        None => style.name() == name,
    };
    let bundled = Style::names().filter_map(|name| -> Option<&'s Style> { Style::bundled(name) });
    match known.into_iter().chain(bundled).find(is_it) {
        Some(style) => Ok(Some(style)),
        None if digest.is_some() && Style::bundled(name).is_some() => Err(format!(
            "the prompt is of another style '{name}' than the bundled one, so where its contexts are is not known; name the file of its style"
        )),
        None => Err(format!(
            "unknown prompt style '{name}', so where the prompt's contexts are is not known; name the file of its style"
        )),
    }
}

/// A prediction in RepoCoder's format.
fn answered(object: Object, generation: &Generation) -> Vec<u8> {
    let tokens: Vec<&str> = generation.tokens.iter().map(|token| token.text.as_str()).collect();
    let logprobs: Vec<f64> =
        generation.tokens.iter().map(|token| libm::log(token.probability)).collect();
    let finish = if generation.finish == Finish::Tokens { "length" } else { "stop" };
    let choices = json!([{
        "text": generation.text,
        "finish_reason": finish,
        "logprobs": { "tokens": tokens, "token_logprobs": logprobs },
    }]);
    record_line(object, choices)
}

/// Checks that predictions were completed as these would be; those that somebody brought say nothing of that.
///
/// # Errors
/// They were not: in which setting they differ.
pub fn check_completed_alike(
    experiment: &Experiment,
    path: &Path,
    completion: &Completion,
    mode: Mode,
) -> Result<()> {
    if !experiment.is_planned(path) && !header_path(path).exists() {
        return Ok(());
    }
    let step = StageRun::InMode("complete", mode.name());
    let header = require_jsonl(experiment, path, "predictions", &step)?;
    check_parameters(path, &header, &completion.identity(), &step)
}

/// Checks, as far as their records tell, that the user's predictions are fit for queries: that their prompts show fragments of
/// the same cut, and that no query contained the target.
///
/// # Errors
/// They are not, or the file cannot be read.
pub fn check_searchable(experiment: &Experiment, path: &Path) -> Result<()> {
    let origin = Origin::read(path)?;
    origin.check_cut(experiment.layout.cut)?;
    origin.check_no_target()
}

/// Checks that the cached predictions which the prompts of rg-rg were searched with are unchanged, and where these prompts
/// are to be completed, that they are there, of this model and with these settings. Predictions that the user named may be of any.
fn check_searched_with(experiment: &Experiment, completes: Option<&Completion>) -> Result<()> {
    let (layout, step) = (&experiment.layout, StageRun::Any("rg-rg"));
    for repository in &experiment.repositories {
        let queries = layout.query_windows(Mode::Prediction, repository);
        let header = match experiment.planned(&queries) {
            Some(header) => header,
            None if !queries.exists() => continue, // the prompts were made elsewhere
            None => artifact::read_header(&queries).map_err(|error| made_again(error, &step))?,
        };
        let Some(file) = header.identity.parameters.get(PREDICTIONS_FILE) else {
            continue;
        };
        let path = layout.cache.join(file);
        if completes.is_none() && !experiment.has(&path) {
            continue; // nothing says that they were others
        }
        let first =
            require_jsonl(experiment, &path, "predictions that rg-rg searched with", &step)?;
        if let (Some(completion), Some(model)) = (completes, first.identity.parameters.get("model"))
            && *model != completion.model
        {
            return Err(Error::Artifact {
                path: layout.prompts(Mode::Prediction),
                reason: format!(
                    "was searched for with predictions of {model}, and {} is to complete it",
                    completion.model
                ),
                hint: message![
                    "make it with ",
                    &step,
                    " and the predictions of the model that completes, or name their file there"
                ],
            });
        }
        if let Some(completion) = completes {
            check_completed_alike(experiment, &path, completion, Mode::LeftContext)?;
        }
        check_input(&queries, &header, PREDICTIONS_FILE, &first, &step)?;
    }
    Ok(())
}

/// Whether there is any prediction of a mode in the cache, or would be one after a dry run.
///
/// # Errors
/// They are missing or damaged.
pub fn has_predictions(
    experiment: &Experiment,
    mode: Mode,
    completion: &Completion,
) -> Result<bool> {
    let path = experiment.layout.predictions(mode, &completion.model);
    let step = StageRun::InMode("complete", mode.name());
    let header = require_jsonl(experiment, &path, "predictions", &step)?;
    Ok(header.records > 0 || experiment.is_planned(&path))
}

/// Where the model's predictions for a mode lie, once they are known to be those of the prompts and settings that are
/// there now; somebody's own, put there without a header, are taken as they are. Those for rg1 are what `rg-rg` searches
/// with unless told otherwise.
///
/// # Errors
/// They are missing, damaged, or were made otherwise.
pub fn cached_predictions(
    experiment: &Experiment,
    mode: Mode,
    completion: &Completion,
) -> Result<PathBuf> {
    let path = experiment.layout.predictions(mode, &completion.model);
    let step = StageRun::InMode("complete", mode.name());
    if !experiment.has(&path) {
        return Err(Error::Artifact {
            path,
            reason: "the predictions are missing".into(),
            hint: message!["make them with ", &step, ", or name the ", UserChoice::PredictionsFile],
        });
    }
    if !experiment.is_planned(&path) && !header_path(&path).exists() {
        return Ok(path);
    }
    let header = require_jsonl(experiment, &path, "predictions", &step)?;
    // Names of models that differ in what paths leave out share a file.
    let mut wanted = Identity::new("predictions")
        .parameter("max-tokens", completion.max_tokens)
        .parameter("model", &completion.model);
    if completion.is_embedded() {
        wanted = wanted.parameter("model-revision", in_context::REVISION);
    }
    check_parameters(&path, &header, &wanted, &step)?;
    if experiment.has(&experiment.layout.prompts(mode)) {
        check_input(&path, &header, "prompts", &require_prompts(experiment, mode)?, &step)?;
    }
    if mode == Mode::Prediction {
        check_searched_with(experiment, None)?;
    }
    Ok(path)
}

/// Writes somewhere else than into the cache what a mode's artifact holds.
///
/// # Errors
/// It cannot be read.
pub fn artifact_text(path: &Path) -> Result<Vec<u8>> {
    artifact::read_jsonl(path).map(|(_, text)| text)
}
