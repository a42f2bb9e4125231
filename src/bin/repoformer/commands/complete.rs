//! `complete`

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};
use repoformer::artifact::file_name;
use repoformer::endpoint::{self, Endpoint};
use repoformer::generate::{Api, Asking, Ending};
use repoformer::pipeline::{self, Completion, Server, artifact_text, complete_file};
use repoformer::query::Mode;

use super::prompt::check_one_mode;
use super::session::{
    WITHOUT_PREDICTION, check_completable, check_not_tasks, completion, label, modes, open,
    without_repositories,
};
use crate::args::CompleteArgs;
use crate::config::Settings;
use crate::output::{Printer, announce, check_output, group, hinted, write_data};

pub(crate) fn run(args: &CompleteArgs, printer: &mut Printer) -> Result<()> {
    let Some(settings) = open(&args.settings)? else {
        return Ok(());
    };
    let mut completion = completion(&settings, args.max_lines)?;
    if !completion.is_embedded() || args.settings.chunks.endpoint.is_some() {
        completion.server = Some(server(args, &settings, &completion.model)?);
    }
    completion.check()?;
    if let Some(prompts) = &args.prompts {
        check_output(args.output.as_deref(), &[prompts])?;
        let bar = printer.bar("complete", 0);
        let predictions = complete_file(prompts, &completion, &|| bar.inc(1));
        bar.finish_and_clear();
        let predictions = predictions.map_err(|error| resumable(error, &completion))?;
        write_data(
            args.output.as_deref().unwrap_or(Path::new("-")),
            &predictions.text,
        )?;
        printer.problems(&predictions.problems);
        printer.note(format!(
            "complete: {} predictions",
            group(predictions.records() as u64)
        ));
        return Ok(());
    }
    check_not_tasks(&settings, args.output.as_deref())?;
    let experiment = without_repositories(&settings, printer)?;
    if experiment.tasks.is_none() && settings.text("benchmark").is_none() {
        return Err(hinted(
            anyhow!("neither --tasks nor --benchmark is set, so there are no prompts to complete"),
            "name the data set as for `repoformer prompt`, or any prompts with --prompts",
        ));
    }
    check_completable(&experiment)?;
    let modes: Vec<Mode> = modes(&settings, &WITHOUT_PREDICTION)?;
    if args.output.is_some() {
        check_one_mode(&modes)?;
    }
    let total = experiment.tasks.as_ref().map_or(0, |set| set.tasks.len()) * modes.len();
    let bar = printer.bar("complete", total);
    let report = pipeline::complete(&experiment, &modes, &completion, &|| bar.inc(1));
    bar.finish_and_clear();
    let report = report.map_err(|error| resumable(error, &completion))?;
    printer.report(&label("complete", &experiment), &report);
    if let Some(output) = &args.output {
        write_data(
            output,
            &artifact_text(&experiment.layout.predictions(modes[0], &completion.model))?,
        )?;
    }
    Ok(())
}

/// The server that has the model, and how it is asked.
fn server(args: &CompleteArgs, settings: &Settings, model: &str) -> Result<Server> {
    let Some(url) = settings.text("endpoint") else {
        return Err(hinted(
            anyhow!("--model {model} is not the embedded one, and --endpoint is not set"),
            "name the server that has it, such as --endpoint http://localhost:8080",
        ));
    };
    let of = &args.server;
    let seconds = of.request_timeout.unwrap_or(600.0);
    if !(seconds > 0.0 && seconds < 1e9) {
        return Err(hinted(
            anyhow!("--request-timeout must be more than 0 seconds"),
            "choose another",
        ));
    }
    let connection = endpoint::Settings {
        timeout: Duration::from_secs_f64(seconds),
        ..endpoint::Settings::default()
    };
    let waiting = |text: &str| announce(text);
    let named = |name: &Option<String>| name.as_deref().map(str::to_owned);
    let asking = Asking {
        api: named(&of.api).map_or(Ok(Api::default()), |name| name.parse())?,
        temperature: of.temperature.unwrap_or(0.0),
        top_p: of.top_p,
        seed: of.seed,
        stop: of.stop.clone(),
        samples: of.samples.unwrap_or(1).max(1),
        ending: named(&of.prompt_end).map_or(Ok(Ending::default()), |name| name.parse())?,
        instruction: of.instruction.clone(),
        ..Asking::new(model, 1)
    };
    let journal = match &of.journal {
        Some(path) => path.clone(),
        None => {
            let cache = Path::new(settings.text("cache-dir").unwrap_or("data/cache"));
            cache
                .join("journal")
                .join(format!("{}.jsonl", file_name(model)))
        }
    };
    Ok(Server {
        endpoint: Endpoint::new(url, connection)?.on_retry(waiting),
        asking,
        connections: of.concurrency.unwrap_or(4).max(1),
        retry_failed: of.retry_failed,
        journal,
    })
}

/// An error of a server's, with how to go on.
fn resumable(error: repoformer::error::Error, completion: &Completion) -> anyhow::Error {
    match &completion.server {
        Some(server) => {
            announce(&format!(
                "what was answered is kept in {}: the same command goes on from there",
                server.journal.display()
            ));
            error.into()
        }
        None => error.into(),
    }
}
