//! `policy sweep`: scores of policies, and their curves.

use std::path::{Path, PathBuf};

use anyhow::Result;
use repoformer::selective::policy::model::CalibrationMethod;
use repoformer::selective::policy::sweep::{LatencyModel, SweepCurve};
use repoformer::selective::policy::{Examples, Policy};

use super::clocks::{self, clocks};
use super::labels::read_labels;
use super::page;
use super::scored::{Scored, Trained, lacking, score};
use super::tables::{self, Swept};
use crate::args::{LabelFlags, PolicySweepArgs};
use crate::output::{self, check_output, fail, group, write_data};

pub(super) fn run(args: &PolicySweepArgs) -> Result<()> {
    let (retrievers, clocks) = clocks(args)?;
    let policies: Vec<Policy> =
        args.policy.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
    let method: CalibrationMethod = args.calibration.parse()?;
    if args.threshold.iter().any(|threshold| threshold.is_nan()) {
        return fail(
            "invalid --threshold 'nan': expected a number",
            "scores are compared with it, as in 0.2",
        );
    }
    check_outputs(args)?;
    let trained = Trained::read(&args.model)?;
    let mut examples = read_labels(&args.labels, &args.output)?;
    let more = if args.train_labels.is_empty() {
        Examples::default()
    } else {
        let flags = LabelFlags { labels: args.train_labels.clone(), ..args.labels };
        read_labels(&flags, &args.output)?.behind(&examples)
    };
    same_model(&examples, &more)?;
    trained.warn(&examples.all, examples.model.as_deref());
    let asked = !policies.is_empty();
    let policies = if asked { policies } else { Policy::ALL.to_vec() };
    let mut scored = Vec::new();
    for policy in policies {
        let found = score(policy, &examples.all, &more.all, &trained, method, args.seed);
        match found.and_then(known) {
            Ok(found) if asked || found.lacking() == 0 => scored.push(found),
            // It was not requested, and would exclude instances from the other policies.
            Ok(found) => output::note(format!(
                "policy sweep: policy {policy} is left out: {} of {} instances lack {} (--policy {policy} sweeps the rest)",
                group(found.lacking()),
                group(examples.all.len()),
                lacking(policy)
            )),
            Err(reason) if asked => return Err(reason),
            Err(reason) => output::note(format!("policy sweep: left out: {reason:#}")),
        }
    }
    let curves = curves(&mut examples, &scored, &args.threshold, &clocks);
    check_clocks(&examples, &retrievers, &clocks)?;
    let swept =
        Swept { finding: tables::finding(&examples), curves: &curves, retrievers: &retrievers };
    write_data(&args.output, swept.text(args.format))?;
    if let Some(folder) = &args.report {
        page::write(folder, &swept)?;
        output::note(format!("report: {}", folder.join("index.html").display()));
    }
    if clocks.is_empty() {
        output::note(
            "policy sweep: no latencies: give --latency FILE, or --retrieval-ms MS with --generation-ms MS",
        );
    }
    Ok(())
}

/// Checks that no input is overwritten.
fn check_outputs(args: &PolicySweepArgs) -> Result<()> {
    let times = args.latency.iter().map(|text| Path::new(clocks::named(text, "").1));
    let files = [&args.labels.labels, &args.train_labels, &args.model].into_iter().flatten();
    let files = files.chain(&args.base_latency).map(PathBuf::as_path);
    check_output(Some(&args.output), files.chain(times))
}

/// Refuses a policy that can score no instance.
fn known(scored: Scored) -> Result<Scored> {
    if scored.ordered.iter().any(Option::is_some) {
        return Ok(scored);
    }
    let (policy, lacking) = (scored.policy, lacking(scored.policy));
    fail(
        format!("policy {policy}: no instance has its signal: {lacking}"),
        "complete the instances and label them again",
    )
}

/// Curves of the policies over the instances that all of them can score; the others are reported.
fn curves(
    examples: &mut Examples,
    scored: &[Scored],
    thresholds: &[f64],
    clocks: &[LatencyModel],
) -> Vec<SweepCurve> {
    for scored in scored {
        let count = scored.lacking();
        if count > 0 {
            output::failed(&format!(
                "{} instances are left out of every curve: policy {} lacks {}",
                group(count),
                scored.policy,
                lacking(scored.policy)
            ));
        }
    }
    let is_kept = |place: usize| scored.iter().all(|scored| scored.ordered[place].is_some());
    let kept: Vec<bool> = (0..examples.all.len()).map(is_kept).collect();
    let mut each = kept.iter();
    examples.all.retain(|_| each.next() == Some(&true));
    let of_kept = |scores: &[Option<f64>]| -> Vec<f64> {
        scores
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| **kept)
            .filter_map(|(score, _)| *score)
            .collect()
    };
    let curve = |scored: &Scored| {
        let ordered = of_kept(&scored.ordered);
        let probabilities = scored.probabilities.as_deref().map(of_kept);
        // Thresholds compare with what is known at decision time.
        let scores = match (&probabilities, thresholds) {
            (Some(probabilities), [_, ..]) => probabilities,
            _ => &ordered,
        };
        let probabilities = probabilities.as_deref();
        SweepCurve::of(scored.policy, &examples.all, scores, probabilities, thresholds, clocks)
    };
    scored.iter().map(curve).collect()
}

/// Checks that measured times belong to these instances.
fn check_clocks(examples: &Examples, retrievers: &[String], clocks: &[LatencyModel]) -> Result<()> {
    for (name, clock) in retrievers.iter().zip(clocks) {
        let all = examples.all.len();
        let count = |knows: &dyn Fn(&str) -> bool| {
            examples.all.iter().filter(|example| knows(&example.id)).count()
        };
        let mut found = vec![(name.clone(), count(&|id| clock.knows(id)))];
        if clock.has_base() {
            let name = format!("{name} without retrieval");
            found.push((name, count(&|id| clock.knows_base(id))));
        }
        for (name, known) in found {
            if known == 0 {
                return fail(
                    format!("the times of {name} belong to none of these instances"),
                    "give the times of their own predictions, or --retrieval-ms MS with --generation-ms MS",
                );
            }
            if known < all {
                output::warning(format!(
                    "{} of {} instances have no time of {name}; the mean of the others is used",
                    group(all - known),
                    group(all)
                ));
            }
        }
    }
    Ok(())
}

/// Checks that the training labels are of the same model.
fn same_model(examples: &Examples, more: &Examples) -> Result<()> {
    match (&examples.model, &more.model) {
        (Some(here), Some(there)) if here != there => fail(
            format!("--train-labels are of model {there}, but --labels of {here}"),
            "what helps one model may not help another: label both with the same model",
        ),
        _ => Ok(()),
    }
}
