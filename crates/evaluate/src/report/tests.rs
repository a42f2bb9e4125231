//! Small report whose numbers can be counted by hand, and properties of every page.

use std::sync::Arc;

use super::*;
use crate::statistics::{Estimate, Interval};

/// Returns a report of four tasks, `none` and `rg1`: better by 0.1, the same, worse by 0.5, and one without a prediction of
/// rg1.
pub(super) fn report() -> ReportContents<'static> {
    let task = |row: usize| ReportTask {
        row,
        id: format!("demo/{row}").into(),
        repository: "demo".into(),
        path: format!("file_{}.py", row % 2).into(),
        line_no: 10 * row,
        language: "python".into(),
        target: format!("    value_{row} = load(path)").into(),
        left_context: "import os\n\ndef load(path):\n".into(),
        right_context: (row > 1).then(|| "\nreturn value\n".into()),
    };
    let none = [0.8, 0.5, 0.9, 0.7].map(|es| Some(outcome(es, Vec::new())));
    let fragment = |text: &str| ShownFragment {
        path: Arc::from("io.py"),
        first_line: Some(4),
        score: Some(0.5),
        text: text.into(),
    };
    let mut rg1 = [0.9, 0.5, 0.4]
        .map(|es| Some(outcome(es, vec![fragment("a\nb\n"), fragment("b")])))
        .to_vec();
    rg1.push(None);
    for (share, outcome) in [1.0, 1.0, 0.0].into_iter().zip(rg1.iter_mut().flatten()) {
        outcome.identifiers_retrieved = Some(share);
    }
    if let Some(first) = &mut rg1[0] {
        first.raw = Some("value_0 = load(path)\nnext".into());
    }
    let measure = |value: &str, title: &str| ReportMeasure {
        metric: "repocoder".into(),
        value: value.into(),
        title: title.into(),
    };
    ReportContents {
        title: "A demonstration".into(),
        measures: vec![measure("em", "exact match"), measure("es", "edit similarity")],
        main: 1,
        exact: Some(0),
        tasks: (0..4).map(task).collect(),
        systems: vec![system("none", none.to_vec(), 0.725), system("rg1", rg1, 0.6)],
        baseline: Some(0),
        ..ReportContents::default()
    }
}

fn outcome(es: f64, fragments: Vec<ShownFragment>) -> TaskOutcome {
    TaskOutcome {
        prediction: format!("value = {es}"),
        values: vec![0.0, es],
        fragments,
        ..TaskOutcome::default()
    }
}

fn system(name: &str, outcomes: Vec<Option<TaskOutcome>>, es: f64) -> System {
    let mean = |mean: f64, interval| Estimate { mean, interval };
    let around = Interval { low: es - 0.1, high: es + 0.1 };
    System {
        name: name.into(),
        settings: vec![("mode".into(), name.into()), ("seed".into(), "0".into())],
        means: vec![mean(0.0, None), mean(es, Some(around))],
        n: outcomes.iter().flatten().count(),
        outcomes,
        ..System::default()
    }
}

/// Returns a report with one system that is compared with nothing.
pub(super) fn alone() -> ReportContents<'static> {
    let mut report = report();
    report.systems.remove(0);
    report.baseline = None;
    report
}

/// Indices out of range and lists that are too short are read as missing values.
#[test]
fn every_report_has_a_page() {
    let mut odd = report();
    (odd.main, odd.exact, odd.baseline) = (7, Some(9), Some(5));
    odd.systems[0].outcomes.truncate(1);
    odd.systems[1].means.clear();
    for outcome in odd.systems[1].outcomes.iter_mut().flatten() {
        outcome.values = vec![f64::NAN];
    }
    for report in [odd, ReportContents::default(), alone()] {
        assert!(report.page().ends_with("</html>\n"));
        report.figures();
    }
}
