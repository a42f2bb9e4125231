//! Figures of the paper, drawn from a run's results.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use repoformer_core::policy::sweep::{SweepCurve, SweepPoint};
use repoformer_core::policy::{Example, Measure, Policy, Threshold};
use repoformer_core::retrieve::Mode;
use repoformer_core::retrieve::rank::Ranker;
use repoformer_evaluate::curve_charts::{
    ABSTENTIONS, Curves, abstention_parts, bucket_names, gains,
};
use repoformer_evaluate::report::{Chart, ChartForm, ChartPage, Line, PageTable};
use repoformer_evaluate::statistics::{Buckets, Changes};
use repoformer_evaluate::table::{
    NamedColumn, Printable, Table, columns, distinct, format_fixed, or_dash,
};
use repoformer_store::frame::ColumnType::{Number, Text};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde_json::{Map, Value, json};

use super::facts::{Fact, facts};
use super::names::FIGURES;
use super::panel::{Panel, heads, measure, series, variation};
use crate::choices::{modes, write_page};
use crate::fail;
use crate::settings::{DECLARED, Departure, Settings};

/// Figure of the paper.
#[derive(Debug)]
pub struct Figure {
    number: u8,
    title: &'static str,
    facts: Vec<Fact>,
}

/// Numbers of a figure: columns, and rows of tasks and series.
#[derive(Debug, Default)]
struct Drawing {
    columns: Vec<String>,
    rows: Vec<(String, String, Vec<Option<f64>>)>,
    charts: Vec<Chart>,
}

impl Figure {
    /// Returns the figure with this name; `None` if it is not the name of a figure.
    pub fn find(name: &str) -> Result<Option<Self>> {
        let found = FIGURES.iter().find(|(number, _)| name == format!("figure-{number}"));
        let Some((number, title)) = found else { return Ok(None) };
        Ok(Some(Self { number: *number, title, facts: facts(*number)? }))
    }

    /// Checks that a run with these settings produces the data of the figure.
    pub fn check(self, settings: &Settings) -> Result<Self> {
        let name = self.name();
        let modes = modes(settings, &[])?;
        let retrieves = modes.contains(&Mode::LeftContext) || modes.contains(&Mode::Given);
        if !(modes.contains(&Mode::Without) && retrieves) {
            return fail(
                format!("{name} compares completions without and with retrieval"),
                message![
                    "add ",
                    &DECLARED.mode,
                    " none,rg1, or none,given for tasks that carry their contexts"
                ],
            );
        }
        let counts = [
            (DECLARED.ranker.key, settings.ranker.len()),
            (DECLARED.right_context.key, settings.right_context.len()),
            (DECLARED.tasks.key, settings.tasks.len()),
        ];
        if let Some((key, _)) = counts.into_iter().find(|(_, count)| *count > 1)
            && self.number == 1
        {
            return fail(
                format!("{name} shows two requests of one run, but {key} has several values"),
                "choose one",
            );
        }
        if settings.paper_model.is_some() {
            return fail(
                message![
                    &DECLARED.paper_model,
                    format!(" works only with tables, and {name} is a figure")
                ],
                "leave it out; the paper's numbers are printed below the figure",
            );
        }
        if !settings.beside.is_empty() && !matches!(self.number, 3 | 6 | 7 | 10) {
            return fail(
                format!("{name} shows only one model"),
                message!["leave ", &DECLARED.beside, " out; figures 3, 6, 7 and 10 show several"],
            );
        }
        Ok(self)
    }

    /// Returns the name, such as `figure-4`.
    pub fn name(&self) -> String {
        format!("figure-{}", self.number)
    }

    /// Returns true if it shows two requests of the first tasks instead of numbers.
    pub fn is_walk(&self) -> bool {
        self.number == 1
    }

    /// Draws the figure into a folder, and returns its numbers.
    ///
    /// # Errors
    /// No panel has the data of the figure, or the folder cannot be written.
    pub fn draw(
        self,
        panels: &[Panel],
        settings: &Settings,
        folder: &Path,
    ) -> Result<FigureNumbers> {
        if panels.is_empty() {
            return fail(
                format!("{}: no tasks were completed without and with retrieval", self.name()),
                "see above for what was left out",
            );
        }
        let mut drawing = match self.number {
            4 => self.thresholds(panels)?,
            5 => self.abstentions(panels)?,
            7 => contexts(panels)?,
            8 | 9 => self.budgets(panels)?,
            11 => self.calibration(panels)?,
            _ => self.gains(panels)?,
        };
        let facts: Vec<String> = self.facts.iter().map(Fact::words).collect();
        let facts = if facts.is_empty() {
            "The paper gives no numbers for this figure.".to_owned()
        } else {
            format!("The paper says:\n{}", facts.join("\n"))
        };
        let page = ChartPage {
            title: format!("{} (Repoformer, Figure {})", self.title, self.number),
            finding: String::new(),
            tables: vec![PageTable { rows: drawing.table().into_rows(), ..PageTable::default() }],
            note: facts.clone(),
            charts: std::mem::take(&mut drawing.charts),
        };
        write_page(folder, &page)?;
        Ok(FigureNumbers {
            drawing,
            metrics: panels.iter().map(|panel| (panel.head(), panel.metric.clone())).collect(),
            departures: settings.departures_of_kinds(),
            missing: self.missing_curve(panels),
            facts,
            figure: self,
        })
    }

    /// Returns the name of the paper's curve that these panels lack, and how to draw it.
    fn missing_curve(&self, panels: &[Panel]) -> Option<Message> {
        let has_policy = |policy: Policy| {
            panels.iter().any(|panel| panel.judged.policies.iter().any(|one| one.policy == policy))
        };
        match self.number {
            8 if !panels.iter().any(|panel| panel.ranker == Ranker::Dense.to_string()) => {
                Some(message![
                    "The paper's curve of UniXcoder is missing: ",
                    &DECLARED.ranker,
                    " dense draws it, with ",
                    &DECLARED.vectors,
                    " FILE or an embedding server."
                ])
            }
            9 if !has_policy(Policy::Entropy) => Some(message![
                "The paper's curve of the entropy is missing: it needs a ",
                UserChoice::SamplesFile,
                " of a model on a server."
            ]),
            _ => None,
        }
    }

    /// Rejects a figure for which no policy has scores.
    fn require_any<T>(&self, found: Vec<T>, hint: Message) -> Result<Vec<T>> {
        if found.is_empty() {
            return fail(
                format!("{} shows decisions, but no policy could decide", self.name()),
                hint,
            );
        }
        Ok(found)
    }

    /// Names a chart of these tasks.
    fn chart(&self, mut chart: Chart, tasks: &str, suffix: &str) -> Chart {
        chart.name = format!("{}-{}{suffix}", self.name(), slug(tasks));
        chart.title = format!("{tasks}: {}", chart.title);
        chart.caption = format!("{tasks}. {}", chart.caption);
        chart
    }

    /// Draws figures 3, 6 and 10: counts of gains, over all instances or over the instances with retrieval.
    fn gains(&self, panels: &[Panel]) -> Result<Drawing> {
        let (mut drawing, mut of_tasks) = (Drawing::default(), Vec::new());
        let only_retrieved = self.number == 6;
        for panel in panels {
            let deciding = panel.judged.deciding().filter(|_| only_retrieved);
            if only_retrieved && deciding.is_none() {
                continue;
            }
            let is_shown = |place: usize| deciding.is_none_or(|policy| policy.retrieves[place]);
            let shown =
                panel.judged.examples.iter().enumerate().filter(|(place, _)| is_shown(*place));
            let own = shown.map(|(_, example)| example.gain()).collect();
            let by = deciding.map_or(String::new(), |policy| format!(" ({})", policy.name));
            of_tasks.push((panel, series(panels, panel, &panel.model), by.clone(), own));
            for (model, examples) in &panel.beside {
                let same = examples.iter().enumerate().filter(|(place, _)| is_shown(*place));
                let same: Vec<f64> = same.map(|(_, example)| example.gain()).collect();
                of_tasks.push((panel, series(panels, panel, model), by.clone(), same));
            }
        }
        let of_tasks = self.require_any(of_tasks, decide())?;
        drawing.columns = ["n", "worse %", "same %", "better %"].map(String::from).to_vec();
        drawing.columns.extend(bucket_names());
        for (panel, name, by, gained) in &of_tasks {
            let changes = Changes::new(gained.iter().copied());
            let all = changes.total();
            let share = |count: usize| Some(100.0 * count as f64 / all as f64).filter(|_| all > 0);
            let mut values = vec![Some(all as f64)];
            values.extend([changes.worse, changes.same, changes.better].map(share));
            let buckets = Buckets::new(gained.iter().copied());
            values.extend(buckets.counts.map(|count| Some(count as f64)));
            drawing.rows.push((panel.head(), format!("{name}{by}"), values));
        }
        for head in heads(panels) {
            let of_it = of_tasks.iter().filter(|(panel, ..)| panel.head() == head);
            let each: Vec<(String, &[f64])> =
                of_it.map(|(_, name, _, gained)| (name.clone(), &gained[..])).collect();
            if !each.is_empty() {
                let chart = gains(&each, measure(panels, &head));
                drawing.charts.push(self.chart(chart, &head, ""));
            }
        }
        Ok(drawing)
    }

    /// Draws figure 4: quality, retrievals and latency by threshold.
    fn thresholds(&self, panels: &[Panel]) -> Result<Drawing> {
        const THRESHOLDS: [f64; 11] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
        let mut drawing = Drawing {
            columns: ["always".to_owned()]
                .into_iter()
                .chain(THRESHOLDS.map(|at| format!("{at:.1}")))
                .chain(["never".to_owned()])
                .collect(),
            ..Drawing::default()
        };
        let decided = panels.iter().filter_map(|panel| {
            let policy = panel.judged.deciding()?;
            policy.probabilities.is_some().then_some((panel, policy))
        });
        for (panel, policy) in self.require_any(decided.collect(), decide())? {
            let curve = panel.curve(policy, &THRESHOLDS.map(Threshold::Above));
            let mut points: Vec<&SweepPoint> = curve.points.iter().collect();
            points.sort_by(|a, b| a.threshold.total_cmp(&b.threshold));
            let ends = [Policy::Always, Policy::Never].map(|policy| {
                let flat = vec![0.0; panel.judged.examples.len()];
                SweepCurve::new(
                    policy,
                    &panel.judged.examples,
                    &flat,
                    None,
                    &[],
                    panel.judged.clock.as_slice(),
                )
            });
            let all = || ends[0].points.iter().chain(points.iter().copied()).chain(&ends[1].points);
            let latency = |point: &SweepPoint| Some(point.latencies.first()?.as_ref()?.mean_ms);
            let name = series(panels, panel, policy.policy.name());
            let score = panel.measure.name();
            let lacks = panel.judged.clock.as_ref().is_some_and(|clock| clock.without_embedding);
            let latency_name = if lacks { "latency ms + embedding" } else { "latency ms" };
            for (what, value) in [
                (
                    score,
                    &(|point: &SweepPoint| Some(100.0 * point.score))
                        as &dyn Fn(&SweepPoint) -> Option<f64>,
                ),
                ("%RAG", &|point| Some(100.0 * point.rag_rate)),
                (latency_name, &latency),
            ] {
                let values: Vec<Option<f64>> = all().map(value).collect();
                if values.iter().any(Option::is_some) {
                    drawing.rows.push((panel.head(), format!("{name} {what}"), values));
                }
            }
            let always = |value: Option<f64>| {
                let points = value.map_or(Vec::new(), |value| vec![(0.0, value), (1.0, value)]);
                Line { name: "always".into(), points }
            };
            let curves = Curves { named: vec![(name, &curve)], measure: panel.measure };
            let mut quality = curves.threshold();
            quality.lines.push(always(ends[0].points.first().map(|point| 100.0 * point.score)));
            let mut time = curves.threshold_latency(0, &panel.ranker);
            time.lines.push(always(ends[0].points.first().and_then(latency)));
            time.lines.retain(|line| !line.points.is_empty());
            let head = panel.head();
            let varied = variation(panels, panel);
            let slug = if varied.is_empty() { varied } else { format!("-{}", slug(&varied)) };
            drawing.charts.push(self.chart(quality, &head, &slug));
            drawing.charts.push(self.chart(time, &head, &format!("{slug}-latency")));
        }
        Ok(drawing)
    }

    /// Draws figure 5: outcomes of the instances for which the policy does not retrieve.
    fn abstentions(&self, panels: &[Panel]) -> Result<Drawing> {
        let columns =
            ["n", "%RAG", "abstentions"].into_iter().chain(ABSTENTIONS).chain(["precision %"]);
        let mut drawing =
            Drawing { columns: columns.map(String::from).collect(), ..Drawing::default() };
        let decided = panels.iter().filter_map(|panel| Some((panel, panel.judged.deciding()?)));
        let mut named = Vec::new();
        for (panel, policy) in self.require_any(decided.collect(), decide())? {
            let curve = panel.curve(policy, &[Threshold::Above(policy.threshold)]);
            let point = curve.points.first();
            let rate = point.map_or(0.0, |point| point.rag_rate);
            let abstained = (curve.count as f64 * (1.0 - rate)).round();
            let mut values = vec![Some(curve.count as f64), Some(100.0 * rate), Some(abstained)];
            let parts = point.and_then(abstention_parts);
            values.extend((0..ABSTENTIONS.len()).map(|part| Some(parts?[part])));
            values.push(point.and_then(|point| Some(100.0 * point.abstention_precision?)));
            drawing.rows.push((panel.head(), series(panels, panel, &policy.name), values));
            named.push((series(panels, panel, &panel.head()), curve));
        }
        let named = named.iter().map(|(name, curve)| (name.clone(), curve)).collect();
        let chart = Curves { named, measure: Measure::default() }.abstentions();
        drawing.charts.push(Chart { name: self.name(), ..chart });
        Ok(drawing)
    }

    /// Draws figures 8 and 9: quality by the percentage of instances with retrieval.
    fn budgets(&self, panels: &[Panel]) -> Result<Drawing> {
        let is_shown = |policy: Policy| match self.number {
            8 => policy == Policy::TrialRetrieval,
            _ => matches!(policy, Policy::Entropy | Policy::TrialGeneration),
        };
        let hint = match self.number {
            8 => message![
                "add ",
                &DECLARED.policy,
                " trial-retrieval@0.3, and retrieve with a ranker (",
                &DECLARED.mode,
                " none,rg1)"
            ],
            _ => message![
                "add ",
                &DECLARED.policy,
                " trial-generation@0.5, and entropy@1 with a ",
                UserChoice::SamplesFile
            ],
        };
        let rankers_vary = panels.iter().any(|panel| panel.ranker != panels[0].ranker);
        let mut found = Vec::new();
        for panel in panels {
            let mut seen: Vec<Policy> = Vec::new();
            for policy in panel.judged.policies.iter().filter(|one| is_shown(one.policy)) {
                // Other thresholds give the same curve.
                if seen.contains(&policy.policy) {
                    continue;
                }
                seen.push(policy.policy);
                let name = match (policy.policy, self.number) {
                    (_, 8) if rankers_vary => "",
                    (_, 8) => &panel.ranker,
                    // The paper's name.
                    (Policy::TrialGeneration, _) => "token uncertainty",
                    (other, _) => other.name(),
                };
                found.push((panel, series(panels, panel, name), panel.curve(policy, &[])));
            }
        }
        let found = self.require_any(found, hint)?;
        let shares = (0..=10).map(|tenth| f64::from(tenth) / 10.0);
        let columns = shares.clone().map(|share| format!("{:.0} %", 100.0 * share));
        let mut drawing = Drawing {
            columns: columns.chain(["as always at %".into()]).collect(),
            ..Drawing::default()
        };
        for (panel, name, curve) in &found {
            let points: Vec<Option<&SweepPoint>> =
                shares.clone().map(|share| curve.at_rate(share)).collect();
            let of = |value: fn(&SweepPoint) -> f64| -> Vec<Option<f64>> {
                points.iter().map(|point| Some(100.0 * value((*point)?))).collect()
            };
            let mut values = of(|point| point.score);
            values.push(curve.reaches_always.as_ref().map(|point| 100.0 * point.rag_rate));
            drawing.rows.push((panel.head(), name.clone(), values));
            // Equal scores are not separated, and the number of instances may not be a multiple of ten.
            let mut rates = of(|point| point.rag_rate);
            let mut wanted = shares.clone().zip(&rates);
            if wanted.any(|(share, rate)| rate.is_some_and(|rate| 100.0 * share - rate > 0.05)) {
                rates.push(None);
                drawing.rows.push((panel.head(), format!("{name} at %"), rates));
            }
        }
        for head in heads(panels) {
            let of_it = found.iter().filter(|(panel, ..)| panel.head() == head);
            let named: Vec<(String, &SweepCurve)> =
                of_it.map(|(_, name, curve)| (name.clone(), curve)).collect();
            if !named.is_empty() {
                let measure = measure(panels, &head);
                let chart = Curves { named, measure }.budget();
                drawing.charts.push(self.chart(chart, &head, ""));
            }
        }
        Ok(drawing)
    }

    /// Draws figure 11: how often retrieval helps, by the predicted probability that it does.
    fn calibration(&self, panels: &[Panel]) -> Result<Drawing> {
        let bins = (0..10).map(|bin| format!("{}-{} %", 10 * bin, 10 * bin + 10));
        let mut drawing =
            Drawing { columns: bins.chain(["error %".into()]).collect(), ..Drawing::default() };
        let decided = panels.iter().filter_map(|panel| {
            let policy = panel.judged.deciding()?;
            policy.probabilities.as_ref()?;
            Some((panel, panel.curve(policy, &[])))
        });
        let decided: Vec<(&Panel, SweepCurve)> = self.require_any(decided.collect(), decide())?;
        for (panel, curve) in &decided {
            let Some(reliability) = &curve.calibration else { continue };
            let name = series(panels, panel, curve.policy.name());
            for (what, value) in [
                (
                    "probability %",
                    &(|bin: usize| Some(100.0 * reliability.bins[bin].probability))
                        as &dyn Fn(usize) -> Option<f64>,
                ),
                ("helped %", &|bin| Some(100.0 * reliability.bins[bin].positive)),
                ("n", &|bin| Some(reliability.bins[bin].count as f64)),
            ] {
                let mut values = vec![None; 10];
                for (at, bin) in reliability.bins.iter().enumerate() {
                    values[bin.place] = value(at);
                }
                values.push(Some(100.0 * reliability.error).filter(|_| what == "helped %"));
                drawing.rows.push((panel.head(), format!("{name} {what}"), values));
            }
        }
        let named =
            decided.iter().map(|(panel, curve)| (series(panels, panel, &panel.head()), curve));
        let chart = Curves { named: named.collect(), measure: Measure::default() }.calibration();
        drawing.charts.push(Chart { name: self.name(), ..chart });
        Ok(drawing)
    }
}

/// Returns a text in a form that can be part of a file name.
fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '+' | '_' | '.') { c } else { '-' };
    text.to_lowercase().chars().map(plain).collect()
}

/// Returns a hint for when no policy can decide.
fn decide() -> Message {
    message![
        "add ",
        &DECLARED.policy,
        " learned, or self with a model that was trained to decide (",
        &DECLARED.endpoint,
        ", ",
        &DECLARED.model,
        ", ",
        &DECLARED.prompt_style,
        ")"
    ]
}

/// Draws figure 7: edit similarity with and without right and cross-file contexts.
fn contexts(panels: &[Panel]) -> Result<Drawing> {
    const COLUMNS: [&str; 4] = ["L", "L+R", "L+CC", "L+R+CC"];
    let mut drawing = Drawing { columns: COLUMNS.map(String::from).to_vec(), ..Drawing::default() };
    let mean = |examples: &[Example], of: fn(&Example) -> f64| {
        Some(100.0 * examples.iter().map(of).sum::<f64>() / examples.len() as f64)
            .filter(|_| !examples.is_empty())
    };
    // Pass rates are a different measure.
    for panel in panels.iter().filter(|panel| panel.measure == Measure::Similarity) {
        let varied = variation(panels, panel);
        let others = varied.trim_end_matches("L+R").trim_end_matches(" L").trim();
        let others = if others == "L" { "" } else { others };
        let own = [(&panel.model, &panel.judged.examples[..])];
        let beside = panel.beside.iter().map(|(model, examples)| (model, &examples[..]));
        for (model, examples) in own.into_iter().chain(beside) {
            let (head, name) = (panel.head(), format!("{others} {model}").trim().to_owned());
            let place = drawing.rows.iter().position(|row| (&row.0, &row.1) == (&head, &name));
            let place = place.unwrap_or_else(|| {
                drawing.rows.push((head, name, vec![None; COLUMNS.len()]));
                drawing.rows.len() - 1
            });
            let at = usize::from(panel.has_right);
            let values = &mut drawing.rows[place].2;
            values[at] = mean(examples, |example| example.score_base);
            values[2 + at] = mean(examples, |example| example.score_rag);
        }
    }
    let names: Vec<String> =
        drawing.rows.iter().map(|(tasks, model, _)| format!("{tasks} {model}")).collect();
    let line = |(at, name): (usize, &&str)| {
        let points = drawing.rows.iter().enumerate();
        let points = points.filter_map(|(place, row)| Some((place as f64, row.2[at]?)));
        Line { name: (*name).to_owned(), points: points.collect() }
    };
    let chart = Chart {
        name: "figure-7".into(),
        title: "Edit similarity by contexts".into(),
        caption: "Edit similarity with the left context alone, with the right one, with cross-file context, and with both.".into(),
        x: String::new(),
        y: "edit similarity × 100".into(),
        lines: COLUMNS.iter().enumerate().map(line).collect(),
        form: ChartForm::Bars(names),
    };
    drawing.charts.push(chart);
    Ok(drawing)
}

impl Drawing {
    fn table(&self) -> Table {
        let head = ["tasks", "series"].map(String::from).into_iter().chain(self.columns.clone());
        let mut table = Table::new(head);
        for (tasks, series, values) in &self.rows {
            let cells = values.iter().map(|value| or_dash(value.map(number)));
            table.row([tasks.clone(), series.clone()].into_iter().chain(cells).collect());
        }
        table
    }

    /// Returns the values of a row by column.
    fn by_column(&self, values: &[Option<f64>]) -> Map<String, Value> {
        self.columns.iter().cloned().zip(values.iter().map(|value| json!(value))).collect()
    }
}

/// Numbers of a figure.
#[derive(Debug)]
pub struct FigureNumbers {
    figure: Figure,
    drawing: Drawing,
    /// Metric of each task file's edit similarities.
    metrics: BTreeMap<String, String>,
    /// Settings that differ from the paper's.
    departures: Vec<Departure>,
    /// Note about a curve that is missing.
    missing: Option<Message>,
    /// Numbers of the paper in words.
    facts: String,
}

impl Printable for FigureNumbers {
    fn table(&self) -> Table {
        self.drawing.table()
    }

    fn text(&self) -> String {
        let Self { figure: Figure { title, number, .. }, facts, departures, .. } = self;
        let mut text = self.table().text();
        if !departures.is_empty() {
            text += &format!("\n{}\n", Departure::line("in the paper", departures));
        }
        let metrics = distinct(self.metrics.values().map(String::as_str));
        format!(
            "{title} (Repoformer (Wu et al., ICML 2024), Figure {number}); edit similarity by {metrics}\n\n{text}\n{facts}\n"
        )
    }

    fn notes(&self) -> Vec<Message> {
        self.missing.clone().into_iter().collect()
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let records = self.drawing.rows.iter().map(|(tasks, series, values)| {
            let mut record = self.row(tasks, series);
            record["values"] = self.drawing.by_column(values).into();
            record
        });
        Box::new(records.chain(self.figure.facts.iter().map(Fact::record)))
    }

    fn columns(&self) -> Vec<NamedColumn> {
        columns(Text, ["figure", "tasks", "series", "metric", "column"])
            .chain(columns(Number, ["value"]))
            .chain(columns(Text, ["departures"]))
            .collect()
    }

    /// Returns one row per number of this run; the paper's numbers are not included.
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let Drawing { columns, rows, .. } = &self.drawing;
        Box::new(rows.iter().flat_map(move |(tasks, series, values)| {
            columns.iter().zip(values).map(move |(column, value)| {
                let mut record = self.row(tasks, series);
                record["column"] = column.as_str().into();
                record["value"] = json!(value);
                record
            })
        }))
    }
}

impl FigureNumbers {
    /// Returns a record of the fields that all values of a row share.
    fn row(&self, tasks: &str, series: &str) -> Value {
        let mut record = json!({
            "figure": self.figure.name(), "tasks": tasks, "series": series, "metric": self.metrics.get(tasks),
        });
        if !self.departures.is_empty() {
            record["departures"] = self.departures.iter().map(Departure::to_record).collect();
        }
        record
    }
}

/// Formats a number of the table: counts as whole numbers, others with two digits.
fn number(value: f64) -> String {
    format_fixed(value, if value.fract() == 0.0 { 0 } else { 2 })
}
