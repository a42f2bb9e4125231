//! Page: fills the slots of a template (`page.html`) with text, tables, figures and data.

pub(super) mod finding;
mod policy;
mod systems;

use std::io;

use self::finding::ReportFinding;
use super::ReportContents;
use super::data;
use super::figures::{Medium, gains, identifiers, length, means, outcomes};
use super::group::Lengths;
use super::text::escape;

pub(super) use policy::{plain_policy, plain_style};

const SKELETON: &str = include_str!("page.html");

/// Writes the complete page.
pub(super) fn write(report: &ReportContents, out: &mut dyn io::Write) -> io::Result<()> {
    let lengths = Lengths::new(report);
    // Each piece of the template begins with a slot's name; the content of slots is not searched for slots.
    for (at, piece) in SKELETON.split("{{").enumerate() {
        match piece.split_once("}}") {
            Some((slot, rest)) if at > 0 => {
                match slot {
                    "data" => data::write_blocks(report, &lengths, out)?,
                    _ => out.write_all(fill(slot, report, &lengths).as_bytes())?,
                }
                out.write_all(rest.as_bytes())?;
            }
            _ => out.write_all(piece.as_bytes())?,
        }
    }
    Ok(())
}

fn fill(slot: &str, report: &ReportContents, lengths: &Lengths) -> String {
    match slot {
        "policy" => policy::policy(),
        "style" => policy::style(),
        "script" => policy::script(),
        "title" if report.title.trim().is_empty() => "Report".into(),
        "title" => escape(&report.title),
        "finding" => ReportFinding::new(report).html(),
        "notes" => notes(report),
        "systems" => systems::table(report),
        "settings" => systems::settings(report),
        "figures" => plates(report, lengths),
        "provenance" => systems::definitions(&report.provenance),
        "version" => escape(&report.tool_version),
        _ => String::new(),
    }
}

fn notes(report: &ReportContents) -> String {
    if report.notes.is_empty() {
        return String::new();
    }
    let items: Vec<String> =
        report.notes.iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
    format!("<aside class=\"notes\" aria-label=\"Notes\"><ul>{}</ul></aside>", items.concat())
}

/// Renders the figures with numbered captions.
fn plates(report: &ReportContents, lengths: &Lengths) -> String {
    let measure = escape(&report.main_label());
    let baseline = escape(report.baseline().map_or("", |(_, system)| &system.name));
    let unit = lengths.unit.name();
    let plates = [
        (
            histograms(report),
            format!(
                "Gain in {measure} over <b>{baseline}</b>, in points. A column holds the gains up to 10 from its label; the grey \
                 one in the middle those of exactly 0."
            ),
        ),
        (
            outcomes::draw(report, Medium::Page).map(|(_, svg)| svg),
            format!(
                "Tasks that each system completes better and worse than <b>{baseline}</b>, by {measure}."
            ),
        ),
        (
            length::draw(report, lengths, Medium::Page).map(|(_, svg)| svg),
            format!(
                "{measure} by the length of the target in {unit}. Bands are 95 % intervals of the mean, as if tasks were independent."
            ),
        ),
        (
            identifiers::draw(report, Medium::Page).map(|(_, svg)| svg),
            format!(
                "{measure} by how many of the target’s identifiers the retrieved fragments hold."
            ),
        ),
        (
            means::draw(report, Medium::Page).map(|(_, svg)| svg),
            format!("Means of every measure, with {}.", means::intervals(report)),
        ),
    ];
    let drawn = plates.into_iter().filter_map(|(drawn, caption)| Some((drawn?, caption)));
    let figures = (1..).zip(drawn).map(|(number, (drawn, caption))| {
        format!(
            "<figure>{drawn}<figcaption><b>Figure {number}.</b> {caption}</figcaption></figure>\n"
        )
    });
    match figures.collect::<String>() {
        none if none.is_empty() => "<p class=\"empty\">There is nothing to draw.</p>".into(),
        figures => format!(
            "<p class=\"hint js-only\">Point at a mark for its numbers; press it to see its tasks below.</p>\n\
             <div class=\"plates\">\n{figures}</div>\n"
        ),
    }
}

/// Draws all histograms as one figure: the page shows the histogram of the selected system.
fn histograms(report: &ReportContents) -> Option<String> {
    let gains = gains(report, Medium::Page);
    let chosen = report.best().unwrap_or(0);
    let (mut choices, mut drawn) = (String::new(), String::new());
    for (system, (_, svg)) in &gains {
        let name = escape(&report.systems[*system].name);
        let is_chosen = *system == chosen;
        let hidden = if is_chosen { "" } else { " hidden" };
        choices += &format!(
            "<button type=\"button\" data-pick-system=\"{system}\" aria-pressed=\"{is_chosen}\">{name}</button>"
        );
        drawn += &format!("<div data-gain-of=\"{system}\"{hidden}>{svg}</div>");
    }
    match gains.len() {
        0 => None,
        1 => Some(drawn),
        _ => Some(format!(
            "<div class=\"choice\" role=\"group\" aria-label=\"System\">{choices}</div>{drawn}"
        )),
    }
}

#[cfg(test)]
mod tests;
