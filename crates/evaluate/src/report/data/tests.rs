//! Tests of the blocks with a plain reader that implements only the description of the format.

use std::io::Read;

use flate2::read::ZlibDecoder;
use proptest::prelude::*;
use serde_json::Value;

use super::super::group::Lengths;
use super::super::tests::report;
use super::super::{ReportContents, ShownFragment, TaskOutcome};
use super::*;

/// Returns every block by its name.
fn read(report: &ReportContents) -> Vec<(String, Vec<u8>)> {
    let mut elements = Vec::new();
    write_blocks(report, &Lengths::new(report), &mut elements).unwrap();
    let elements = String::from_utf8(elements).unwrap();
    let read = |line: &str| {
        let inner =
            line.strip_prefix("<script type=\"text/plain\" id=\"")?.strip_suffix("</script>")?;
        let (name, text) = inner.split_once("\">")?;
        let mut bytes = Vec::new();
        ZlibDecoder::new(&STANDARD.decode(text).ok()?[..]).read_to_end(&mut bytes).ok()?;
        Some((name.to_owned(), bytes))
    };
    elements.lines().map(|line| read(line).expect("an element")).collect()
}

struct Reader<'a> {
    bytes: &'a [u8],
    lines: &'a [String],
}

impl Reader<'_> {
    fn number(&mut self) -> u64 {
        let mut number = 0;
        for place in 0.. {
            let (first, rest) = self.bytes.split_first().unwrap();
            self.bytes = rest;
            number |= u64::from(first & 127) << (7 * place);
            if *first < 128 {
                break;
            }
        }
        number
    }

    fn text(&mut self) -> String {
        let mut expected = 0;
        let lines: Vec<&str> = (0..self.number())
            .map(|_| {
                let step = self.number();
                let step =
                    if step & 1 == 1 { -((step >> 1) as i64) - 1 } else { (step >> 1) as i64 };
                let line = expected + step;
                expected = line + 1;
                self.lines[line as usize].as_str()
            })
            .collect();
        lines.join("\n")
    }

    fn option(&mut self) -> Option<String> {
        (self.number() == 1).then(|| self.text())
    }

    fn outcome(&mut self) -> Option<TaskOutcome> {
        if self.number() == 0 {
            return None;
        }
        let (raw, prediction) = (self.option(), self.text());
        let fragments = (0..self.number()).map(|_| {
            let (path, line) = (self.text().into(), self.number());
            let (score, rest) = self.bytes.split_at(4);
            let score = f32::from_le_bytes(score.try_into().unwrap());
            self.bytes = rest;
            ShownFragment {
                path,
                first_line: line.checked_sub(1).map(|line| line as usize),
                score: (!score.is_nan()).then_some(f64::from(score)),
                text: self.text().into(),
            }
        });
        let fragments = fragments.collect();
        Some(TaskOutcome { raw, prediction, fragments, ..TaskOutcome::default() })
    }
}

/// Reads every text of every task and compares it with the original.
fn assert_round_trip(report: &ReportContents) {
    let blocks = read(report);
    let block = |name: String| &blocks.iter().find(|(known, _)| *known == name).unwrap().1;
    let of_lines = blocks.iter().filter(|(name, _)| name.starts_with("lines-"));
    let texts = of_lines.map(|(_, bytes)| String::from_utf8(bytes.clone()).unwrap());
    let lines: Vec<String> =
        texts.flat_map(|text| text.split('\n').map(Into::into).collect::<Vec<String>>()).collect();
    let summary: Value = serde_json::from_slice(block("summary".into())).unwrap();
    for (at, task) in report.tasks.iter().enumerate() {
        let place = |name: &str| summary["tasks"][name][at].as_u64().unwrap();
        let bytes = &block(format!("tasks-{}", place("block")))[place("start") as usize..];
        let mut reader = Reader { bytes, lines: &lines };
        assert_eq!(reader.text(), task.target);
        assert_eq!(reader.text(), task.left_context);
        assert_eq!(reader.option(), task.right_context.as_deref().map(str::to_owned));
        for system in &report.systems {
            let wanted = system.outcomes[at].clone().map(|outcome| TaskOutcome {
                values: Vec::new(),
                identifiers_retrieved: None,
                status: None,
                ..outcome
            });
            assert_eq!(reader.outcome(), wanted);
        }
    }
    // The numbers of blocks' first lines are the ones that the page's search for a line uses.
    let firsts = summary["line_blocks"].as_array().unwrap();
    let mut first = 0;
    for (n, known) in firsts.iter().enumerate() {
        assert_eq!(known.as_u64(), Some(first));
        first += block(format!("lines-{n}")).split(|&byte| byte == b'\n').count() as u64;
    }
}

#[test]
fn texts_come_back_as_they_were() {
    let mut report = report();
    assert_round_trip(&report);
    report.tasks[1].left_context = "\n\n\r\n\u{feff}\0é\u{2028}</script>\n".into();
    report.tasks[2].target = "".into();
    report.tasks[3].left_context = "long ".repeat(100_000).into();
    report.tasks[0].right_context = Some((0..60_000).rev().map(|n| format!("{n}\n")).collect());
    assert_round_trip(&report);
}

proptest! {
    #[test]
    fn any_texts_come_back(texts in proptest::collection::vec("(?s)[ab\n\r\u{e9}]{0,12}", 8), first in 0usize..300) {
        let mut report = report();
        for (at, task) in report.tasks.iter_mut().enumerate() {
            (task.target, task.left_context) = (texts[at].clone().into(), texts[at + 4].clone().into());
        }
        if let Some(outcome) = &mut report.systems[1].outcomes[1] {
            outcome.fragments[0].first_line = Some(first);
            outcome.fragments[0].score = None;
            outcome.fragments[1].text = texts[0].as_str().into();
        }
        assert_round_trip(&report);
    }
}

#[test]
fn repeated_lines_are_kept_once() {
    let size = |report: &ReportContents| -> usize {
        let blocks = read(report).into_iter();
        let lines = blocks.filter(|(name, _)| name.starts_with("lines"));
        lines.map(|(_, bytes)| bytes.len()).sum()
    };
    let mut report = report();
    let once = size(&report);
    let again = report.tasks[0].clone();
    report.tasks.extend(vec![again; 50]);
    assert_eq!(size(&report), once);
}

/// Verdicts and buckets by hand, as in the report's own test.
#[test]
fn the_summary_holds_columns() {
    let report = report();
    let blocks = read(&report);
    let summary: Value = serde_json::from_slice(&blocks[0].1).unwrap();
    assert_eq!(blocks[0].0, "summary");
    let rg1 = &summary["systems"][1];
    assert_eq!(rg1["values"][1], serde_json::json!([9000, 5000, 4000, null]));
    assert_eq!(rg1["gains"], serde_json::json!([1000, 0, -5000, null]));
    assert_eq!([&rg1["verdicts"], &rg1["buckets"], &rg1["found"]], ["bswm", "gfc-", "aan-"]);
    assert_eq!(summary["systems"][0]["verdicts"], "----");
    assert_eq!(summary["tasks"]["repository"], serde_json::json!([0, 0, 0, 0]));
    assert_eq!(summary["tasks"]["paths"], serde_json::json!(["file_0.py", "file_1.py"]));
}
