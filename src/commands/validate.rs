//! `validate`

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use repoformer_formats::validate::{Severity, Validation, validate};
use repoformer_study::checkout::folder_for;
use repoformer_study::settings::mask_found_keys;
use repoformer_text::visible::visible_in_line;

use crate::output::{self, Screen, group, plural, print_text, write_data};
use crate::table::ReportFormat;

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Files to check: JSONL, plain, gzip or zstd (`-`: standard input); their formats are detected
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Also compare tasks with their files; this folder holds one folder per repository
    #[arg(long, value_name = "DIR")]
    repos_dir: Option<PathBuf>,
    /// Treat notes as errors: repeated ids, `lineno`, `owner--name`, empty contexts, unknown fields
    #[arg(long)]
    strict: bool,
    /// Format of the summary: text (a line per file; findings on stderr) or json (an object per file, with its findings)
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: ReportFormat,
}

pub(crate) fn run(args: &ValidateArgs) -> Result<()> {
    let mut unread = None;
    let mut text = String::new();
    mask_found_keys();
    let repos_dir = folder_for(args.repos_dir.as_deref(), &args.files, &Screen);
    for file in &args.files {
        let report = match validate(file, repos_dir.as_deref()) {
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
                // The output lists them.
                let notes = if args.strict { report.count(Severity::Note) } else { 0 };
                output::failures(report.count(Severity::Error) + notes);
                text += &format!("{}\n", report.to_record());
            }
        }
    }
    if text.is_empty()
        && let Some(error) = unread
    {
        return Err(error.into());
    }
    match args.format {
        ReportFormat::Text => print_text(&text),
        ReportFormat::Json => write_data(Path::new("-"), text),
    }
}

/// Prints the findings, by line, and how many more there are.
fn report_findings(report: &Validation, strict: bool) {
    for finding in &report.findings {
        let message = report.message(finding);
        if strict || finding.severity == Severity::Error {
            output::count_failure(message);
        } else {
            output::note(format!("note: {message}"));
        }
    }
    for severity in [Severity::Error, Severity::Note] {
        let further = report.further(severity);
        if further > 0 {
            let noun = plural(further, &severity.to_string());
            output::note(format!("… and {} more {noun} like these", group(further)));
        }
        if strict || severity == Severity::Error {
            output::failures(further);
        }
    }
}

fn summary(report: &Validation) -> String {
    let number = |n: usize, noun: &str| format!("{n} {}", plural(n, noun));
    format!(
        "{}: {}, {}, {}, {}\n",
        visible_in_line(&report.path.display().to_string()),
        report.kind(),
        number(report.records, "record"),
        number(report.count(Severity::Error), "error"),
        number(report.count(Severity::Note), "note"),
    )
}
