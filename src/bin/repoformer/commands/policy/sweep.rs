//! `policy sweep`

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use repoformer::policy::model::Method;
use repoformer::policy::sweep::{Clock, Curve, Point};
use repoformer::policy::{Example, Examples, Policy};
use serde_json::{Value, json};

use super::clocks::{self, clocks};
use super::page;
use super::read_labels;
use super::scored::{Scored, Trained, score};
use crate::args::{LabelFlags, PolicySweepArgs, SweepFormat};
use crate::output::{Printer, check_output, group, hinted, write_data};
use crate::table::Table;

pub(super) fn run(args: &PolicySweepArgs, printer: &mut Printer) -> Result<()> {
    let (retrievers, clocks) = clocks(args)?;
    let policies: Vec<Policy> = args
        .policy
        .iter()
        .map(|name| name.parse())
        .collect::<Result<_, _>>()?;
    let method: Method = args.calibration.parse()?;
    if args.threshold.iter().any(|threshold| threshold.is_nan()) {
        return Err(hinted(
            anyhow!("--threshold: 'nan' is no threshold"),
            "a number that scores are held against, as in 0.2",
        ));
    }
    check_outputs(args)?;
    let trained = Trained::read(&args.model)?;
    let mut examples = read_labels(&args.labels, &args.output, printer)?;
    let more = match args.train_labels.is_empty() {
        true => Examples::default(),
        false => {
            let flags = LabelFlags {
                labels: args.train_labels.clone(),
                ..args.labels
            };
            read_labels(&flags, &args.output, printer)?.behind(&examples)
        }
    };
    same_model(&examples, &more)?;
    trained.warn(&examples.all, examples.model.as_deref(), printer);
    let asked = !policies.is_empty();
    let policies = match asked {
        true => policies,
        false => Policy::ALL.to_vec(),
    };
    let mut scored = Vec::new();
    for policy in policies {
        let data = (examples.all.as_slice(), more.all.as_slice());
        let found = score(policy, data, &trained, (method, args.seed)).and_then(known);
        match found {
            Ok(found) => scored.push(found),
            Err(reason) if asked => return Err(reason),
            Err(reason) => printer.note(format!("policy sweep: left out: {reason:#}")),
        }
    }
    let curves = curves(&mut examples, &scored, (&args.threshold, &clocks), printer);
    check_clocks(&examples, &retrievers, &clocks, printer)?;
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
        let mut table = summary(&curves, &retrievers).into_rows();
        // Rules between the columns of a text; the page has its own.
        let head = table.first_mut().into_iter().flatten();
        head.for_each(|name| *name = name.trim_start_matches("| ").to_owned());
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

/// Nothing that is read is overwritten.
fn check_outputs(args: &PolicySweepArgs) -> Result<()> {
    let times = args
        .latency
        .iter()
        .map(|text| Path::new(clocks::named(text, "").1));
    let files = [&args.labels.labels, &args.train_labels, &args.model];
    let files = files.into_iter().flatten().chain(&args.base_latency);
    let files = files.map(PathBuf::as_path);
    check_output(Some(&args.output), &files.chain(times).collect::<Vec<_>>())
}

/// A policy that no instance can be scored by is none.
fn known(scored: Scored) -> Result<Scored> {
    match scored.ordered.iter().any(Option::is_some) {
        true => Ok(scored),
        false => Err(hinted(
            anyhow!(
                "policy {}: no instance has what it goes by: {}",
                scored.policy,
                scored.policy.lacking()
            ),
            "complete and judge them again",
        )),
    }
}

/// The policies' curves over the instances that all of them can score; the others are taken out, and told of.
fn curves(
    examples: &mut Examples,
    scored: &[Scored],
    (thresholds, clocks): (&[f64], &[Clock]),
    printer: &mut Printer,
) -> Vec<Curve> {
    for scored in scored {
        let lacking = scored
            .ordered
            .iter()
            .filter(|score| score.is_none())
            .count();
        if lacking > 0 {
            printer.failed(&format!(
                "{} instances are left out of every curve: policy {} lacks {}",
                group(lacking as u64),
                scored.policy,
                scored.policy.lacking()
            ));
        }
    }
    let count = examples.all.len();
    let kept: Vec<usize> = (0..count)
        .filter(|&place| scored.iter().all(|scored| scored.ordered[place].is_some()))
        .collect();
    let mut place = 0..count;
    examples.all.retain(|_| {
        place
            .next()
            .is_some_and(|place| kept.binary_search(&place).is_ok())
    });
    let of_kept = |scores: &[Option<f64>]| -> Vec<f64> {
        kept.iter().filter_map(|&place| scores[place]).collect()
    };
    let curve = |scored: &Scored| {
        let ordered = of_kept(&scored.ordered);
        let probabilities = scored.probabilities.as_deref().map(of_kept);
        let all = &examples.all;
        match (&probabilities, thresholds) {
            // A threshold is held against what would have been known then.
            (Some(probabilities), [_, ..]) => Curve::of(
                scored.policy,
                all,
                probabilities,
                Some(probabilities),
                (thresholds, clocks),
            ),
            _ => Curve::of(
                scored.policy,
                all,
                &ordered,
                probabilities.as_deref(),
                (thresholds, clocks),
            ),
        }
    };
    scored.iter().map(curve).collect()
}

/// Measured times must be those of these instances.
fn check_clocks(
    examples: &Examples,
    retrievers: &[String],
    clocks: &[Clock],
    printer: &Printer,
) -> Result<()> {
    for (name, clock) in retrievers.iter().zip(clocks) {
        let known = examples.all.iter().filter(|e| clock.knows(&e.id)).count();
        if known == 0 {
            return Err(hinted(
                anyhow!("the times of {name} are of none of these instances"),
                "give the latencies of their own predictions, or --retrieval-ms MS with --generation-ms MS",
            ));
        }
        if known < examples.all.len() {
            printer.warning(format!(
                "{} of {} instances have no time of {name}, and take the mean of the others",
                group((examples.all.len() - known) as u64),
                group(examples.all.len() as u64)
            ));
        }
    }
    Ok(())
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

/// Every point as a record.
fn records<'a>(curves: &'a [Curve], retrievers: &'a [String]) -> impl Iterator<Item = Value> + 'a {
    curves.iter().flat_map(move |curve| {
        curve.points.iter().map(move |point| {
            let first = point.latencies.first();
            let mut record = json!({
                "policy": curve.policy.name(),
                "threshold": threshold(point.threshold),
                "n": curve.count,
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

/// What each policy comes to: at a fifth and half of the budget, at thresholds chosen on the other repositories, at its best
/// threshold in hindsight, and where it is as good as always retrieving.
fn summary(curves: &[Curve], retrievers: &[String]) -> Table {
    let mut head: Vec<String> = ["policy", "AUC", "ECE", "ES at 20 %", "at 50 %"]
        .map(String::from)
        .to_vec();
    let mut point = |title: &str, names: &[&str]| {
        let names = names.iter().map(ToString::to_string);
        let speedups = retrievers.iter().map(|name| format!("SU {name}"));
        let mut names: Vec<String> = names.chain(speedups).collect();
        names[0] = format!("{title} {}", names[0]);
        head.extend(names);
    };
    point(
        "| chosen elsewhere:",
        &["ES", "EM", "%RAG", "abstains rightly"],
    );
    point("| best in hindsight:", &["ES", "EM", "%RAG", "threshold"]);
    point("| as good as always:", &["%RAG"]);
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(&head);
    for curve in curves {
        table.row(row(curve, retrievers.len()));
    }
    table
}

fn text(examples: &Examples, curves: &[Curve], retrievers: &[String]) -> String {
    format!(
        "{}\n\n{}\n{NOTE}\n",
        finding(examples),
        summary(curves, retrievers).text()
    )
}

/// What the columns are.
pub(super) const NOTE: &str = "Chosen elsewhere: each repository at the threshold that is best for the others. SU: saved of always retrieving's latency, in per cent.\n\
    AUC: how well scores tell instances that retrieval helps from others (0.5 is chance). ECE: expected calibration error.";

/// What a cell says of a point.
type Cell<'a> = &'a dyn Fn(&Point) -> Option<String>;

fn row(curve: &Curve, clocks: usize) -> Vec<String> {
    let is_chosen = !matches!(curve.policy, Policy::Never | Policy::Always);
    let at = |rate: f64| {
        let point = curve.at_rate(rate).filter(|_| is_chosen);
        or_dash(point.map(|point| hundredths(point.es)))
    };
    let share = |point: &Point| Some(format!("{:.1}", 100.0 * point.rag_rate));
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
    ];
    let mut point = |point: Option<&Point>, values: &[Cell<'_>]| {
        row.extend(values.iter().map(|value| or_dash(point.and_then(value))));
        row.extend((0..clocks).map(|clock| {
            let latency = point.and_then(|point| point.latencies.get(clock));
            or_dash(latency.map(|latency| format!("{:.1}", 100.0 * latency.speedup)))
        }));
    };
    let es = |point: &Point| Some(hundredths(point.es));
    let em = |point: &Point| point.em.map(hundredths);
    let abstains = |point: &Point| point.abstention_precision.map(hundredths);
    let value = |point: &Point| threshold(point.threshold).map(|t| format!("{t:.3}"));
    point(curve.elsewhere.as_ref(), &[&es, &em, &share, &abstains]);
    point(curve.best(), &[&es, &em, &share, &value]);
    point(curve.reaches_always.as_ref(), &[&share]);
    row
}

fn mean(examples: &[Example], of: impl Fn(&Example) -> f64) -> f64 {
    examples.iter().map(of).sum::<f64>() / examples.len().max(1) as f64
}
