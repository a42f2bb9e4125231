//! Tables of systems: means, comparisons with the baseline, and settings.

use std::fmt::Write;

use foldhash::{HashMap, HashSet};

use super::super::text::{bounds, escape, format_thousands, hundredths, tasks};
use super::super::{BaselineComparison, ReportContents, ReportMeasure, System};
use super::finding::format_signed;
use crate::statistics::{Estimate, Interval};

/// Renders the table of means: exact match, the main measure, and unit tests; and, folded, one with the other measures.
pub(super) fn table(report: &ReportContents) -> String {
    if report.systems.is_empty() {
        return "<p class=\"empty\">No system was measured.</p>".into();
    }
    let is_first = |at: &usize| {
        let is_test = report.measures[*at].metric == ReportMeasure::UNIT_TESTS;
        *at == report.main || Some(*at) == report.exact || is_test
    };
    let (first, others): (Vec<usize>, Vec<usize>) = (0..report.measures.len()).partition(is_first);
    let scroll = |table: String| {
        format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of systems\">{table}</div>"
        )
    };
    let main = scroll(table_of(report, &first, true));
    if others.is_empty() {
        return main;
    }
    let others = scroll(table_of(report, &others, false));
    format!("{main}<details class=\"fold\"><summary>Other metrics</summary>{others}</details>")
}

/// Renders a table of the means of some measures, with the comparisons if asked for.
fn table_of(report: &ReportContents, measures: &[usize], compares: bool) -> String {
    let ranges: Vec<(usize, Interval)> =
        measures.iter().map(|&at| (at, range(report, at))).collect();
    let mut html = String::from(
        "<table class=\"systems\"><thead><tr><th scope=\"col\">system</th><th scope=\"col\" class=\"number\">tasks</th>",
    );
    for (at, Interval { low, high }) in &ranges {
        let measure = &report.measures[*at];
        let _ = write!(
            html,
            "<th scope=\"col\" title=\"{}\"><span class=\"measure\">{}</span> <small>{}</small>\
             <span class=\"ends\" aria-hidden=\"true\"><span>{low:.0}</span><span>{high:.0}</span></span></th>",
            escape(&measure.title),
            escape(&measure.label()),
            escape(&measure.metric),
        );
    }
    let compared = || report.baseline().filter(|_| report.compared_systems().next().is_some());
    let baseline = if compares { compared() } else { None };
    if let Some((_, baseline)) = baseline {
        let _ = write!(
            html,
            "<th scope=\"col\">{} over {}</th><th scope=\"col\" class=\"verdicts\"><span class=\"worse\">▼&#xFE0E; worse</span> · same · \
             <span class=\"better\">better ▲&#xFE0E;</span></th>",
            escape(&report.main_label()),
            escape(&baseline.name),
        );
    }
    html += "</tr></thead><tbody>";
    for (at, system) in report.systems.iter().enumerate() {
        row(report, (at, system), &ranges, baseline.map(|(at, _)| at), &mut html);
    }
    html + "</tbody></table>"
}

/// Renders the row of a system, compared with a baseline if there is one.
fn row(
    report: &ReportContents,
    (at, system): (usize, &System),
    ranges: &[(usize, Interval)],
    baseline: Option<usize>,
    html: &mut String,
) {
    let is_best = report.best() == Some(at) && report.systems.len() > 1;
    let _ = write!(
        html,
        "<tr{}><th scope=\"row\">{}{}</th><td class=\"number\">{}</td>",
        if is_best { " class=\"best\"" } else { "" },
        escape(&system.name),
        if system.is_oracle {
            " <small title=\"retrieved with the truth: a bound, no competitor\">oracle</small>"
        } else {
            ""
        },
        format_thousands(system.n),
    );
    for (measure, range) in ranges {
        match system.means.get(*measure) {
            Some(mean) => mean_cell(*mean, *range, range_word(report), html),
            None => *html += "<td class=\"none\">–</td>",
        }
    }
    match baseline {
        None => {}
        Some(baseline) if baseline == at => {
            *html += "<td class=\"none\">baseline</td><td></td>";
        }
        Some(_) => {
            comparison_cell(system.comparison, report, html);
            changes_cell(report, at, html);
        }
    }
    *html += "</tr>";
}

/// Returns the range × 100 of a measure's bars: all means with their intervals, between multiples of 5.
fn range(report: &ReportContents, measure: usize) -> Interval {
    let means = report.systems.iter().filter_map(|system| system.means.get(measure));
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for mean in means {
        let ends = ends(*mean);
        (low, high) = (low.min(ends.low * 100.0), high.max(ends.high * 100.0));
    }
    if !(low.is_finite() && high.is_finite()) {
        (low, high) = (0.0, 100.0);
    }
    (low, high) = ((low / 5.0).floor() * 5.0, (high / 5.0).ceil() * 5.0);
    if high <= low {
        (low, high) = ((low - 5.0).max(0.0), (high + 5.0).min(100.0));
    }
    Interval { low, high }
}

/// Returns the interval of a mean; the mean itself if it has none.
fn ends(Estimate { mean, interval }: Estimate) -> Interval {
    interval.unwrap_or(Interval { low: mean, high: mean })
}

/// Returns the word that precedes a range that is not a confidence interval.
fn range_word(report: &ReportContents) -> &'static str {
    if report.few.is_some() { "range " } else { "" }
}

fn mean_cell(
    mean: Estimate,
    Interval { low, high }: Interval,
    word: &'static str,
    html: &mut String,
) {
    let place = |value: f64| ((value * 100.0 - low) / (high - low) * 100.0).clamp(0.0, 100.0);
    let ends = ends(mean);
    let shown = |interval| format!("<small>{word}{}</small>", bounds(interval, hundredths));
    let interval = mean.interval.map(shown);
    let _ = write!(
        html,
        "<td><span class=\"value\">{:.2}</span> {}<svg class=\"range\" aria-hidden=\"true\">\
         <rect class=\"interval\" x=\"{:.1}%\" y=\"2\" width=\"{:.1}%\" height=\"4\" rx=\"2\"/>\
         <rect class=\"mean\" x=\"{:.1}%\" width=\"2.5\" height=\"8\" transform=\"translate(-1.25)\"/></svg></td>",
        mean.mean * 100.0,
        interval.unwrap_or_default(),
        place(ends.low),
        place(ends.high) - place(ends.low),
        place(mean.mean),
    );
}

fn comparison_cell(
    comparison: Option<BaselineComparison>,
    report: &ReportContents,
    html: &mut String,
) {
    let Some(comparison) = comparison else {
        *html += "<td class=\"none\">–</td>";
        return;
    };
    let class = match comparison.interval {
        _ if report.few.is_some() => "same",
        Some(interval) if interval.low > 0.0 => "better",
        Some(interval) if interval.high < 0.0 => "worse",
        _ => "same",
    };
    let interval = comparison
        .interval
        .map(|ends| range_word(report).to_owned() + &bounds(ends, format_signed));
    let tests = [("tasks", comparison.p_tasks), ("repositories", comparison.p_repositories)];
    let tests = tests.into_iter().filter_map(|(unit, p)| Some(chance(unit, p?)));
    let _ = write!(
        html,
        "<td><span class=\"value {class}\">{}</span> <small>{}</small><small class=\"chance\" title=\"signs of the differences flipped, \
         two-sided\">{}</small></td>",
        format_signed(comparison.mean_difference),
        interval.unwrap_or_default(),
        tests.collect::<Vec<_>>().join("<br>"),
    );
}

/// Formats the p-value of a test that flips signs of these units.
fn chance(unit: &str, p: f64) -> String {
    match p {
        p if p < 0.001 => format!("p ({unit}) &lt; 0.001"),
        p => format!("p ({unit}) = {p:.3}"),
    }
}

/// Renders three counts, each a button that shows its tasks, over bars as wide as their shares.
fn changes_cell(report: &ReportContents, at: usize, html: &mut String) {
    let changes = report.changes(at);
    let all = changes.total().max(1) as f64;
    let system = escape(&report.systems[at].name);
    let parts = [
        ("worse", changes.worse, "▼&#xFE0E; "),
        ("same", changes.same, ""),
        ("better", changes.better, "▲&#xFE0E; "),
    ];
    let (mut counts, mut bars) = (String::new(), String::new());
    let mut left = 0.0;
    for (name, count, sign) in parts {
        let share = 100.0 * count as f64 / all;
        let off = if count == 0 { " disabled" } else { "" };
        let (shown, tasks) = (format_thousands(count), tasks(count));
        let _ = write!(
            counts,
            "<button type=\"button\" class=\"{name}\" data-pick=\"system={at}&amp;outcome={name}\" \
             title=\"{system} {name}: {tasks}, {share:.1} %\"{off}>{sign}{shown}</button>"
        );
        if count > 0 {
            let _ = write!(
                bars,
                "<rect class=\"{name}\" x=\"{left:.2}%\" width=\"{share:.2}%\" height=\"9\"/>"
            );
        }
        left += share;
    }
    let _ = write!(
        html,
        "<td class=\"verdicts\"><div class=\"counts\">{counts}</div><svg class=\"stack\" aria-hidden=\"true\">{bars}</svg></td>"
    );
}

/// Renders the settings: a table of the settings in which systems differ, and a list of the shared ones.
pub(super) fn settings(report: &ReportContents) -> String {
    let systems: Vec<SystemSettings<'_>> = report.systems.iter().map(settings_by_name).collect();
    let mut names: Vec<&str> = Vec::new();
    let mut known: HashSet<&str> = HashSet::default();
    for (name, _) in report.systems.iter().flat_map(|system| &system.settings) {
        if known.insert(name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return "<p class=\"empty\">No settings are known.</p>".into();
    }
    let (shared, different): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| {
        let first = systems.first().and_then(|system| system.get(name));
        systems.len() > 1 && systems.iter().all(|system| system.get(name) == first)
    });
    let mut html = String::new();
    if !different.is_empty() {
        html += &different_settings(report, &systems, &different);
    }
    if !shared.is_empty() {
        let value = |name: &str| systems[0].get(name).copied().unwrap_or_default();
        let pairs: Vec<(String, String)> =
            shared.iter().map(|name| (name.to_string(), value(name).to_owned())).collect();
        html += "<p class=\"all-systems\">The same for all systems</p>";
        html += &definitions(&pairs);
    }
    html
}

type SystemSettings<'a> = HashMap<&'a str, &'a str>;

/// Returns a system's settings by name; of a repeated name, the first value.
fn settings_by_name(system: &System) -> SystemSettings<'_> {
    let settings = system.settings.iter().rev();
    settings.map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn different_settings(
    report: &ReportContents,
    systems: &[SystemSettings<'_>],
    names: &[&str],
) -> String {
    let head = |system: &System| format!("<th scope=\"col\">{}</th>", escape(&system.name));
    let heads: String = report.systems.iter().map(head).collect();
    let mut html = format!(
        "<div class=\"scroll\"><table class=\"settings\"><thead><tr><th scope=\"col\">setting</th>{heads}</tr></thead><tbody>"
    );
    for name in names {
        let cell = |system: &SystemSettings<'_>| match system.get(name) {
            Some(value) => format!("<td>{}</td>", escape(value)),
            None => "<td class=\"none\">–</td>".into(),
        };
        let cells: String = systems.iter().map(cell).collect();
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>{cells}</tr>", escape(name));
    }
    html + "</tbody></table></div>"
}

/// Renders names and values as a list.
pub(super) fn definitions(pairs: &[(String, String)]) -> String {
    let item = |(name, value): &(String, String)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value))
    };
    let items: String = pairs.iter().map(item).collect();
    if items.is_empty() {
        return items;
    }
    format!("<dl class=\"pairs\">{items}</dl>")
}
