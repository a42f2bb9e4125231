//! `validate`

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use repoformer::formats::validate::{Severity, Validation, validate};

use crate::args::{ReportFormat, ValidateArgs};
use crate::output::{self, write_data};

pub(crate) fn run(args: &ValidateArgs) -> Result<()> {
    let mut unread = None;
    let mut text = String::new();
    for file in &args.files {
        let report = match validate(file, args.repos_dir.as_deref()) {
            Ok(report) => report,
            // The other files are still checked.
            Err(error) if args.files.len() > 1 => {
                output::problems(std::slice::from_ref(&error));
                unread.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        match args.format {
            ReportFormat::Text => {
                report_findings(&report, args.strict);
                text += &summary(&report);
            }
            ReportFormat::Json => {
                count(&report, args.strict);
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{}", report.to_record());
            }
        }
    }
    if text.is_empty()
        && let Some(error) = unread
    {
        return Err(error.into());
    }
    write_data(Path::new("-"), text.as_bytes())
}

/// Prints every finding, by line.
fn report_findings(report: &Validation, strict: bool) {
    for finding in &report.findings {
        let message = report.message(finding);
        match finding.severity {
            Severity::Error => output::failed(&message),
            Severity::Note if strict => output::failed(&message),
            Severity::Note => output::note(format!("note: {message}")),
        }
    }
}

/// Counts findings that the JSON output lists.
fn count(report: &Validation, strict: bool) {
    let notes = if strict { report.count(Severity::Note) } else { 0 };
    output::failures(report.count(Severity::Error) + notes);
}

fn summary(report: &Validation) -> String {
    let number = |n: usize, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    format!(
        "{}: {}, {}, {}, {}\n",
        report.path.display(),
        report.kind(),
        number(report.records, "record"),
        number(report.count(Severity::Error), "error"),
        number(report.count(Severity::Note), "note"),
    )
}
