//! `complete`

use std::path::{Path, PathBuf};

use anyhow::Result;
use repoformer::pipeline::{
    self, Completion, Experiment, PromptText, TokenQuestion, artifact_text, complete_file,
};
use repoformer::retrieve::Mode;

use super::prompt::check_one_mode;
use super::server::{self, resumable};
use super::session::{
    WITHOUT_PREDICTION, check_completable, check_not_tasks, label, modes, open,
    without_repositories,
};
use crate::args::{CompleteArgs, ProbabilityArgs};
use crate::output::{self, check_output, fail, group, write_data};
use crate::settings::Settings;

pub(crate) fn run(args: &CompleteArgs) -> Result<()> {
    let settings = open(&args.settings)?;
    let by_batch = args.write_batch.is_some() || !args.read_batch.is_empty();
    let completion = server::model(&settings, settings.parsed_option("seed")?, by_batch)?;
    if completion.server.is_none() && settings.is_flag("seed") {
        return fail(
            "--seed is for samples of a model on a server; the embedded model draws none",
            "leave it out",
        );
    }
    let data = Data::of(args, &settings)?;
    let place = args.output.as_deref().unwrap_or(Path::new("-"));
    // The output must differ from the inputs and from the journal.
    let mut read = data.files();
    read.extend(args.read_batch.iter().map(PathBuf::as_path));
    read.extend(completion.server.iter().map(|server| &*server.journal));
    check_output(args.output.as_deref(), &read)?;
    check_output(args.write_batch.as_deref(), &read)?;
    if let Some(file) = &args.write_batch {
        return write_batch(file, &data.prompts()?, &completion);
    }
    if let Some(question) = question(&args.probability) {
        return probabilities(&data, &completion, &question, place);
    }
    if !args.read_batch.is_empty() {
        read_batch(&args.read_batch, &data.prompts()?, &completion)?;
    }
    match &data {
        Data::File(prompts) => complete_one(prompts, &completion, place),
        Data::Cache(experiment, modes) => {
            complete_cached(experiment, modes, &completion, args.output.as_deref())
        }
    }
}

/// Prompts to complete.
enum Data {
    /// A file of prompts.
    File(PathBuf),
    /// A data set's prompts in the cache.
    Cache(Box<Experiment>, Vec<Mode>),
}

impl Data {
    fn of(args: &CompleteArgs, settings: &Settings) -> Result<Self> {
        let output = args.output.as_deref();
        if let Some(prompts) = &args.prompts {
            return Ok(Self::File(prompts.clone()));
        }
        check_not_tasks(settings, output)?;
        let experiment = without_repositories(settings)?;
        if experiment.tasks.is_none() && settings.text("benchmark").is_none() {
            return fail(
                "neither --tasks nor --benchmark is set, so there are no prompts to complete",
                "name the data set as for `repoformer prompt`, or a file with --prompts",
            );
        }
        check_completable(&experiment)?;
        let modes: Vec<Mode> = modes(settings, &WITHOUT_PREDICTION)?;
        if output.is_some() || args.probability.probability_of.is_some() {
            check_one_mode(&modes)?;
        }
        Ok(Self::Cache(Box::new(experiment), modes))
    }

    /// Files that are read.
    fn files(&self) -> Vec<&Path> {
        match self {
            Self::File(path) => vec![path],
            Self::Cache(..) => Vec::new(),
        }
    }

    fn prompts(&self) -> Result<Vec<PromptText>> {
        Ok(match self {
            Self::File(path) => vec![PromptText::of_file(path)?],
            Self::Cache(experiment, modes) => modes
                .iter()
                .map(|mode| PromptText::of_mode(experiment, *mode))
                .collect::<Result<_, _>>()?,
        })
    }
}

fn complete_one(prompts: &Path, completion: &Completion, place: &Path) -> Result<()> {
    let bar = output::bar("complete", 0);
    let total = |total: usize| bar.set_length(total as u64);
    let predictions =
        resumable(completion, || complete_file(prompts, completion, &total, &|| bar.inc(1)));
    bar.finish_and_clear();
    let predictions = predictions?;
    write_data(place, &predictions.text)?;
    output::problems(&predictions.problems);
    output::note(format!("complete: {} predictions", group(predictions.records as u64)));
    Ok(())
}

fn complete_cached(
    experiment: &Experiment,
    modes: &[Mode],
    completion: &Completion,
    output: Option<&Path>,
) -> Result<()> {
    complete_modes(experiment, modes, completion)?;
    if let Some(output) = output {
        let path = experiment.layout.predictions(modes[0], &completion.model);
        write_data(output, &artifact_text(&path)?)?;
    }
    Ok(())
}

/// Completes the cached prompts of these modes, and reports it.
pub(super) fn complete_modes(
    experiment: &Experiment,
    modes: &[Mode],
    completion: &Completion,
) -> Result<()> {
    let total = experiment.tasks.as_ref().map_or(0, |set| set.tasks.len()) * modes.len();
    let bar = output::bar("complete", total);
    let report =
        resumable(completion, || pipeline::complete(experiment, modes, completion, &|| bar.inc(1)));
    bar.finish_and_clear();
    output::report(&label("complete", experiment), &report?);
    Ok(())
}

fn question(args: &ProbabilityArgs) -> Option<TokenQuestion> {
    Some(TokenQuestion {
        text: args.probability_of.clone()?,
        id: args.token_id,
        after: args.after.clone(),
    })
}

fn probabilities(
    data: &Data,
    completion: &Completion,
    question: &TokenQuestion,
    place: &Path,
) -> Result<()> {
    let prompts = data.prompts()?.remove(0);
    let bar = output::bar("complete", prompts.records());
    let found = resumable(completion, || {
        pipeline::probabilities(&prompts, completion, question, &|| bar.inc(1))
    });
    bar.finish_and_clear();
    let found = found?;
    write_data(place, &found.text)?;
    output::problems(&found.problems);
    output::note(format!(
        "complete: {} probabilities of {:?}",
        group(found.records as u64),
        question.text
    ));
    Ok(())
}

fn write_batch(file: &Path, prompts: &[PromptText], completion: &Completion) -> Result<()> {
    let batch = pipeline::write_batch(prompts, completion)?;
    write_data(file, &batch.text)?;
    output::problems(&batch.problems);
    let others = match batch.others {
        0 => String::new(),
        n => format!(" ({} prompts are answered, or repeat another)", group(n as u64)),
    };
    let requests = group(batch.requests as u64);
    output::note(format!("complete: {requests} requests{others}"));
    if batch.requests > 50_000 || batch.text.len() > 200_000_000 {
        output::warning(
            "OpenAI takes at most 50,000 requests and 200 MB per file; split this one, and read the answers to its parts one by one",
        );
    }
    Ok(())
}

fn read_batch(files: &[PathBuf], prompts: &[PromptText], completion: &Completion) -> Result<()> {
    let read = pipeline::read_batch(files, prompts, completion)?;
    output::problems(&read.problems);
    output::note(format!(
        "complete: {} answers, {} failures, {} without a prompt or unreadable",
        group(read.answers as u64),
        group(read.failed as u64),
        group(read.problems.len() as u64)
    ));
    Ok(())
}
