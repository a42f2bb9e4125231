use super::super::tests::{alone, report};
use super::super::{ReportContents, System};
use super::*;

#[test]
fn files_are_named_after_systems_and_measures() {
    let mut report = report();
    let names: Vec<String> = report.figures().into_iter().map(|(name, _)| name).collect();
    let wanted =
        ["means.svg", "gain-rg1.svg", "outcomes.svg", "es-by-length.svg", "es-by-identifiers.svg"];
    assert_eq!(names, wanted);
    for name in ["../Ünder", "../Ünder", "..."] {
        let system = System { name: name.into(), ..System::default() };
        report.systems.push(system);
    }
    assert_eq!(super::names(&report), ["none", "rg1", "nder", "nder-2", "system"]);
}

/// Counted by hand from the report of the tests: gains 0.1, 0, -0.5 and one task without a prediction.
#[test]
fn every_mark_tells_its_numbers() {
    let figures = report().figures();
    let svg = |name: &str| &figures.iter().find(|(known, _)| known == name).unwrap().1;
    let gain = svg("gain-rg1.svg");
    assert!(gain.contains("<title>gain 0 to +20: 1 task, 33.3 %</title>"), "{gain}");
    assert!(gain.contains("<title>gain \u{2212}60 to \u{2212}40: 1 task, 33.3 %</title>"));
    assert!(gain.contains("<title>gain exactly 0: 1 task, 33.3 %</title>"));
    assert!(gain.contains("<desc id=\"desc\">Better on 1 task, the same on 1, worse on 1.</desc>"));
    assert!(svg("outcomes.svg").contains("<title>rg1 better: 1 task, 33.3 %</title>"));
    assert!(svg("means.svg").contains("<title>rg1: edit similarity 60.00 [50.00, 70.00]</title>"));
    // In tasks 0 and 1, rg1's fragments contain all identifiers, with values 0.9 and 0.5; the baseline has 0.8 and 0.5 there.
    let identifiers = svg("es-by-identifiers.svg");
    assert!(
        identifiers.contains("<title>rg1, all retrieved: 70.00; none 65.00, n = 2</title>"),
        "{identifiers}"
    );
    for (name, svg) in &figures {
        assert!(svg.starts_with("<?xml") && svg.ends_with("</svg>\n"), "{name}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
        assert!(!svg.contains("class=") && !svg.contains("var("), "{name} stands alone");
    }
}

#[test]
fn what_would_be_empty_is_not_drawn() {
    assert_eq!(ReportContents::default().figures(), []);
    let alone = alone();
    let names: Vec<String> = alone.figures().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["means.svg", "es-by-length.svg", "es-by-identifiers.svg"]);
}

#[test]
fn page_and_file_draw_the_same() {
    let report = report();
    let marks = |svg: &str| svg.matches("<title>").count();
    let (page, file) = (gains(&report, Medium::Page), gains(&report, Medium::File));
    assert_eq!(marks(&page[0].1.1), marks(&file[0].1.1));
    assert_eq!(page[0].1.1.matches("data-pick=\"system=1&amp;bucket=").count(), 3);
}
