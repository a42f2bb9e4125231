//! Times for `policy sweep`: measured or given, one clock per retriever.

use std::path::Path;

use anyhow::Result;
use repoformer::error::Error;
use repoformer::selective::policy::sweep::{LatencyModel, RequestTimes};

use crate::args::PolicySweepArgs;
use crate::output::{fail, hinted};

/// The clocks and their retrievers' names, in the order of the flags.
pub(super) fn clocks(args: &PolicySweepArgs) -> Result<(Vec<String>, Vec<LatencyModel>)> {
    let (mut names, mut clocks) = (Vec::new(), Vec::new());
    for text in &args.latency {
        let (name, file) = named(text, "measured");
        names.push(name);
        let base = args.base_latency.as_deref();
        let clock = LatencyModel::read(Path::new(file), base, args.generation_ms);
        let clock = clock.map_err(|error| match &error {
            Error::Artifact { reason, hint, .. } if !hint.contains("none") => {
                let field = reason.strip_prefix("has no ").unwrap_or("generation_ms");
                let hint = format!("{hint}, or give --{}", field.replace('_', "-"));
                hinted(error, hint)
            }
            _ => error.into(),
        })?;
        clocks.push(clock.deciding(args.decision_ms));
    }
    if args.latency.is_empty() && args.base_latency.is_some() {
        return fail(
            "--base-latency gives the times of completions without retrieval, but those with retrieval are missing",
            "add --latency FILE",
        );
    }
    for text in &args.retrieval_ms {
        let (name, number) = named(text, "retrieval");
        let retrieval = milliseconds("--retrieval-ms", number)?;
        let Some(generation) = args.generation_ms else {
            return fail(
                "--retrieval-ms gives the time of a retrieval, but that of a generation is missing",
                "add --generation-ms MS",
            );
        };
        names.push(name);
        let clock = LatencyModel::given(RequestTimes::new(retrieval, generation));
        clocks.push(clock.deciding(args.decision_ms));
    }
    if clocks.is_empty() && args.generation_ms.is_some() {
        return fail(
            "--generation-ms gives the time of a generation, but that of a retrieval is missing",
            "add --retrieval-ms MS, or --latency FILE",
        );
    }
    for (place, name) in names.iter().enumerate() {
        if names[..place].contains(name) {
            return fail(
                format!("two retrievers have the name '{name}'"),
                "name them: --retrieval-ms sparse=12 --retrieval-ms dense=350",
            );
        }
    }
    for time in args.generation_ms.into_iter().chain([args.decision_ms]) {
        milliseconds("a time", &time.to_string())?;
    }
    Ok((names, clocks))
}

/// `NAME=VALUE`, or a value alone.
pub(super) fn named<'a>(text: &'a str, otherwise: &str) -> (String, &'a str) {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !name.contains('/') => (name.into(), value),
        _ => (otherwise.into(), text),
    }
}

fn milliseconds(flag: &str, text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => fail(
            format!("invalid {flag} '{text}': expected a number of milliseconds"),
            "a number of at least 0, as in 12.5",
        ),
    }
}
