//! `policy sweep`

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use repoformer::policy::model::{Kind, PolicyModel, hold_out};
use repoformer::policy::sweep::{Curve, Point};
use repoformer::policy::{Example, Examples, Policy};
use serde_json::{Value, json};

use super::clocks::clocks;
use super::page;
use super::read_labels;
use crate::args::{PolicySweepArgs, SweepFormat};
use crate::output::{Printer, group, hinted, write_data};
use crate::table::Table;

pub(super) fn run(args: &PolicySweepArgs, printer: &mut Printer) -> Result<()> {
    let (retrievers, clocks) = clocks(args)?;
    let policies: Vec<Policy> = args
        .policy
        .iter()
        .map(|name| name.parse())
        .collect::<Result<_, _>>()?;
    let models = models(args)?;
    let examples = read_labels(&args.labels.labels, &args.output, printer)?;
    for model in models.values() {
        warn_of_overlap(model, &examples, printer);
    }
    let more = match args.train_labels.is_empty() {
        true => Examples::default(),
        false => read_labels(&args.train_labels, &args.output, printer)?.behind(&examples),
    };
    same_model(&examples, &more)?;
    let asked = !policies.is_empty();
    let policies = if asked {
        policies
    } else {
        Policy::ALL.to_vec()
    };
    let mut curves = Vec::new();
    let settings = (args.threshold.as_slice(), clocks.as_slice());
    for policy in policies {
        if let Some(kind) = policy.learned() {
            let (scores, calibrated) = learned(kind, (&examples, &more), &models, args)?;
            let curve = Curve::of(policy, &examples.all, &scores, Some(&calibrated), settings);
            curves.push(curve);
            continue;
        }
        let Some(scores) = scores(policy, &examples, args.seed, asked, printer)? else {
            continue;
        };
        let known: Vec<(Example, f64)> = (examples.all.iter().cloned().zip(scores))
            .filter_map(|(example, score)| Some((example, score?)))
            .collect();
        let (known, scores): (Vec<Example>, Vec<f64>) = known.into_iter().unzip();
        let probabilities = policy.is_probability().then_some(scores.as_slice());
        curves.push(Curve::of(policy, &known, &scores, probabilities, settings));
    }
    let text = match args.format {
        SweepFormat::Text => text(&examples, &curves, &retrievers),
        SweepFormat::Tsv => table(&curves, &retrievers).tsv(),
        SweepFormat::Json => {
            let records: Vec<Value> = records(&curves, &retrievers).collect();
            format!("{:#}\n", Value::Array(records))
        }
        SweepFormat::Jsonl => records(&curves, &retrievers)
            .map(|record| format!("{record}\n"))
            .collect(),
    };
    write_data(&args.output, text.as_bytes())?;
    if let Some(folder) = &args.report {
        let table = summary(&examples, &curves, &retrievers).into_rows();
        page::write(folder, (finding(&examples), table), &curves, &retrievers)?;
        printer.note(format!("report: {}", folder.join("index.html").display()));
    }
    if clocks.is_empty() {
        printer.note(
            "policy sweep: no times: --latency FILE, or --retrieval-ms MS with --generation-ms MS, tell what policies save",
        );
    }
    Ok(())
}

/// The trained policies that were named.
fn models(args: &PolicySweepArgs) -> Result<BTreeMap<&'static str, PolicyModel>> {
    let mut models = BTreeMap::new();
    for path in &args.model {
        let model = PolicyModel::read(path)?;
        let name = model.policy.name();
        if models.insert(name, model).is_some() {
            return Err(hinted(
                anyhow!(
                    "{}: another --model is of policy {name}, too",
                    path.display()
                ),
                "sweep them one after the other",
            ));
        }
    }
    Ok(models)
}

/// A policy looks better on what it learned from, and worse on another model's completions.
fn warn_of_overlap(model: &PolicyModel, examples: &Examples, printer: &Printer) {
    let known = examples.repositories();
    let seen = &model.training.repositories;
    let both: Vec<&str> = (seen.iter().map(String::as_str))
        .filter(|name| known.contains(name))
        .collect();
    if !both.is_empty() {
        printer.warning(format!(
            "policy {} was trained on {} of these repositories ({}); leave --model out to see it on repositories that it has not seen",
            model.policy,
            both.len(),
            both.join(", ")
        ));
    }
    if let (Some(trained), Some(here)) = (&model.training.generation_model, &examples.model)
        && trained != here
    {
        printer.warning(format!(
            "policy {} was trained on completions of {trained}, and these labels are of {here}",
            model.policy
        ));
    }
}

/// What is learned from must be judged by the model whose labels are swept.
fn same_model(examples: &Examples, more: &Examples) -> Result<()> {
    match (&examples.model, &more.model) {
        (Some(here), Some(there)) if here != there => Err(hinted(
            anyhow!("--train-labels are judged by model {there}, and --labels by {here}"),
            "what helps one model need not help another: judge both by the same",
        )),
        _ => Ok(()),
    }
}

/// A policy's scores, `None` where an instance lacks what it goes by; no scores at all where all do and nobody asked for it.
fn scores(
    policy: Policy,
    examples: &Examples,
    seed: u64,
    asked: bool,
    printer: &mut Printer,
) -> Result<Option<Vec<Option<f64>>>> {
    let all = &examples.all;
    let scores: Vec<Option<f64>> = match policy {
        Policy::Never => vec![Some(0.0); all.len()],
        _ => all
            .iter()
            .map(|example| policy.score(example, seed))
            .collect(),
    };
    let lacking = scores.iter().filter(|score| score.is_none()).count();
    if lacking == all.len() {
        if asked {
            return Err(hinted(
                anyhow!("policy {policy}: no instance has what it goes by"),
                format!(
                    "these are {}; complete and judge them again",
                    policy.lacking()
                ),
            ));
        }
        printer.note(format!(
            "policy sweep: {policy} is left out: {}",
            policy.lacking()
        ));
        return Ok(None);
    }
    if lacking > 0 {
        printer.failed(&format!(
            "policy {policy}: {} instances are left out: {}",
            group(lacking as u64),
            policy.lacking()
        ));
    }
    Ok(Some(scores))
}

/// Probabilities by which a learned policy decides, and those whose calibration is measured.
fn learned(
    kind: Kind,
    (examples, more): (&Examples, &Examples),
    models: &BTreeMap<&'static str, PolicyModel>,
    args: &PolicySweepArgs,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let all = &examples.all;
    if let Some(model) = models.get(kind.name()) {
        let scores: Vec<f64> = all
            .iter()
            .map(|example| model.probability(example))
            .collect();
        return Ok((scores.clone(), scores));
    }
    let mut repositories = examples.repositories();
    repositories.extend(more.repositories());
    if repositories.len() < 2 {
        return Err(hinted(
            anyhow!(
                "policy {kind}: these labels are of one repository, and there is no other to learn from"
            ),
            "give a trained policy with --model FILE, or labels of more repositories",
        ));
    }
    let held_out = hold_out(all, &more.all, kind, args.calibration.parse()?)?;
    Ok((held_out.probabilities, held_out.calibrated))
}

/// Every point as a record.
fn records<'a>(curves: &'a [Curve], retrievers: &'a [String]) -> impl Iterator<Item = Value> + 'a {
    curves.iter().flat_map(move |curve| {
        curve.points.iter().map(move |point| {
            let first = point.latencies.first();
            let mut record = json!({
                "policy": curve.policy.name(),
                "threshold": threshold(point.threshold),
                "rag_rate": point.rag_rate,
                "em": point.em,
                "es": point.es,
                "latency_ms": first.map(|latency| latency.mean_ms),
                "speedup": first.map(|latency| latency.speedup),
                "abstention_precision": point.abstention_precision,
                "auc": curve.auc,
                "calibration_error": curve.calibration.as_ref().map(|c| c.error),
            });
            if retrievers.len() > 1 {
                let each = retrievers
                    .iter()
                    .zip(&point.latencies)
                    .map(|(name, latency)| {
                        let times =
                            json!({"latency_ms": latency.mean_ms, "speedup": latency.speedup});
                        (name.clone(), times)
                    });
                record["retrievers"] = Value::Object(each.collect());
            }
            record
        })
    })
}

/// Never and always have no threshold that could be written.
fn threshold(threshold: f64) -> Option<f64> {
    threshold.is_finite().then_some(threshold)
}

fn hundredths(value: f64) -> String {
    format!("{:.2}", 100.0 * value)
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".into())
}

/// Every point as a row.
fn table(curves: &[Curve], retrievers: &[String]) -> Table {
    let mut head = vec!["policy", "threshold", "rag_rate", "em", "es"];
    let of_time: Vec<[String; 2]> = retrievers
        .iter()
        .map(|name| [format!("latency_ms:{name}"), format!("speedup:{name}")])
        .collect();
    head.extend(of_time.iter().flatten().map(String::as_str));
    head.push("abstention_precision");
    let mut table = Table::new(&head);
    for curve in curves {
        for point in &curve.points {
            let mut row = vec![
                curve.policy.to_string(),
                or_dash(threshold(point.threshold).map(|t| format!("{t:.6}"))),
                format!("{:.6}", point.rag_rate),
                or_dash(point.em.map(|em| format!("{em:.6}"))),
                format!("{:.6}", point.es),
            ];
            for latency in &point.latencies {
                row.push(format!("{:.3}", latency.mean_ms));
                row.push(format!("{:.6}", latency.speedup));
            }
            row.push(or_dash(
                point.abstention_precision.map(|p| format!("{p:.6}")),
            ));
            table.row(row);
        }
    }
    table
}

/// What can be had at all.
fn finding(examples: &Examples) -> String {
    format!(
        "{} instances of {} repositories, ES x 100: never {}, always {}, oracle {}",
        group(examples.all.len() as u64),
        examples.repositories().len(),
        hundredths(mean(&examples.all, |example| example.es_base)),
        hundredths(mean(&examples.all, |example| example.es_rag)),
        hundredths(mean(&examples.all, |e| e.es_base.max(e.es_rag))),
    )
}

/// What each policy comes to: at a fifth and half of the budget, at its best threshold, and where it is as good as always
/// retrieving.
fn summary(examples: &Examples, curves: &[Curve], retrievers: &[String]) -> Table {
    let always = mean(&examples.all, |example| example.es_rag);
    let speedups: Vec<String> = retrievers.iter().map(|name| format!("SU {name}")).collect();
    let mut head = vec![
        "policy",
        "AUC",
        "ECE",
        "ES at 20 %",
        "at 50 %",
        "best ES",
        "EM",
        "%RAG",
        "threshold",
        "abstains rightly",
    ];
    head.extend(speedups.iter().map(String::as_str));
    head.push("%RAG as good as always");
    head.extend(speedups.iter().map(String::as_str));
    let mut table = Table::new(&head);
    for curve in curves {
        table.row(row(curve, always, retrievers.len()));
    }
    table
}

fn text(examples: &Examples, curves: &[Curve], retrievers: &[String]) -> String {
    format!(
        "{}\n\n{}\nBest ES: the threshold with the best edit similarity. SU: saved of always retrieving's latency, in per cent.\n",
        finding(examples),
        summary(examples, curves, retrievers).text()
    )
}

fn row(curve: &Curve, always: f64, clocks: usize) -> Vec<String> {
    let best = curve.best();
    let is_chosen = !matches!(curve.policy, Policy::Never | Policy::Always);
    let at = |rate: f64| {
        let point = curve.at_rate(rate).filter(|_| is_chosen);
        or_dash(point.map(|point| hundredths(point.es)))
    };
    let of_best = |value: &dyn Fn(&Point) -> Option<String>| or_dash(best.and_then(value));
    let mut row = vec![
        curve.policy.to_string(),
        or_dash(is_chosen.then(|| format!("{:.3}", curve.auc))),
        or_dash(
            curve
                .calibration
                .as_ref()
                .map(|c| format!("{:.3}", c.error)),
        ),
        at(0.2),
        at(0.5),
        of_best(&|point| Some(hundredths(point.es))),
        of_best(&|point| point.em.map(hundredths)),
        of_best(&|point| Some(format!("{:.1}", 100.0 * point.rag_rate))),
        of_best(&|point| threshold(point.threshold).map(|t| format!("{t:.3}"))),
        of_best(&|point| point.abstention_precision.map(hundredths)),
    ];
    let speedups = |point: Option<&Point>| -> Vec<String> {
        (0..clocks)
            .map(|clock| {
                let latency = point.and_then(|point| point.latencies.get(clock));
                or_dash(latency.map(|latency| format!("{:.1}", 100.0 * latency.speedup)))
            })
            .collect()
    };
    row.extend(speedups(best));
    let reached = curve.reaches(always);
    row.push(or_dash(
        reached.map(|point| format!("{:.1}", 100.0 * point.rag_rate)),
    ));
    row.extend(speedups(reached));
    row
}

fn mean(examples: &[Example], of: impl Fn(&Example) -> f64) -> f64 {
    examples.iter().map(of).sum::<f64>() / examples.len().max(1) as f64
}
