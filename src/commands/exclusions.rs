//! Flags for code from which no hole is drawn, for benchmarks and labelled instances.

use anyhow::Result;
use clap::Args;
use repoformer_core::task::sample::{Exclusions, PathPattern};
use repoformer_store::error::Error;

use crate::output::{self, add_hint, fail};
use crate::settings::ValueList;

/// Code from which no hole is drawn.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct ExclusionFlags {
    /// Draw no hole from these files and folders: names, as in '*_pb2.py', or paths in the repository, as in 'docs/**/conf.py'
    /// (repeatable)
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Draw no hole from test files: those in folders test, tests and __tests__, and those with names that test runners look for
    #[arg(long)]
    no_tests: bool,
    /// Rows of data tables, which are lines of nothing but literals in a list, map or array of more than ten lines: skip them, or
    /// draw them too [default: skip; draw for `label`, as in the paper]
    #[arg(long, value_name = "NAME", value_parser = ValueList::new(["skip", "draw"]))]
    data_tables: Option<String>,
}

impl ExclusionFlags {
    /// Returns the exclusions; without `--data-tables`, data tables are treated as in `usual`.
    pub(crate) fn exclusions(&self, usual: Exclusions) -> Result<Exclusions> {
        let parse = |text: &String| {
            PathPattern::parse(text).map_err(|error| match error {
                Error::Parameter { reason, .. } => add_hint(
                    anyhow::anyhow!("--exclude {reason}"),
                    "give a name such as 'tests', or a path such as 'src/**/*.py'; * and ? match text without '/', ** folders, [ab] a or b",
                ),
                other => other.into(),
            })
        };
        Ok(Exclusions {
            paths: self.exclude.iter().map(parse).collect::<Result<_>>()?,
            tests: self.no_tests,
            tables: match self.data_tables.as_deref() {
                None => usual.tables,
                Some("skip") => true,
                Some("draw") => false,
                Some(other) => {
                    return fail(
                        format!("unknown --data-tables '{other}'; known: skip, draw"),
                        "draw takes holes from rows of literals too; skip does not",
                    );
                }
            },
        })
    }
}

/// Warns of patterns that match no file.
pub(crate) fn warn_of_unmatched(exclusions: &Exclusions, matched: &[bool]) {
    let all = exclusions.paths.iter().zip(matched);
    for (pattern, _) in all.filter(|(_, is_matched)| !**is_matched) {
        let text = pattern.text();
        output::warning(format!(
            "--exclude '{text}' matches no source file; write paths relative to the repository"
        ));
    }
}
