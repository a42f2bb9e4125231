//! `sample`

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use repoformer_core::repository::Shard;
use repoformer_core::repository::corpus::is_test_file;
use repoformer_core::task::Task;
use repoformer_core::task::sample::{Exclusions, HoleStart, Kind, Sampling};
use repoformer_formats::draw::{FolderSampling, FolderTasks, RepositoryTasks};
use repoformer_study::choices::{other_languages, repos_dir, repositories_in, seed};

use super::exclusions::{ExclusionFlags, warn_of_unmatched};
use super::sample_commits::{self, CommitFlags};
use super::unparsed::{DrawnCode, tell_unparsed};
use crate::commands::session::{DrawnFrom, check_drawing, open};
use crate::output::{self, Screen, fail, format_count, group, plural, write_data};
use crate::settings::{SettingFlags, ValueList};
use crate::table::json_lines;

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    #[command(flatten)]
    settings: SettingFlags,
    /// Kind of the holes: line (a line of code), api (a call of a definition in another file), function (a body of 3 to 30
    /// lines), chunk (a few lines)
    #[arg(long, value_name = "KIND", value_parser = ValueList::new(Kind::ALL))]
    kind: String,
    /// Maximum number of tasks per repository
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    per_repo: u32,
    /// Maximum tokens of the left context
    #[arg(long, value_name = "N", default_value_t = 2000)]
    context_tokens: usize,
    /// Minimum tokens of a sampled line
    #[arg(long, value_name = "N", default_value_t = 5)]
    min_tokens: usize,
    /// Where a hole begins: line-start (at the start of its first line) or any-token (at any token of that line)
    #[arg(long, value_name = "NAME", default_value = HoleStart::LineStart.name(), value_parser = ValueList::new(HoleStart::ALL))]
    cursor: String,
    /// File for the tasks (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    exclusions: ExclusionFlags,
    #[command(flatten)]
    commits: CommitFlags,
}

pub(crate) fn run(args: &SampleArgs) -> Result<()> {
    let settings = open(&args.settings)?;
    let (kind, per_repo): (Kind, _) = (args.kind.parse()?, args.per_repo as usize);
    let language = settings.language.unwrap_or_default();
    let usual = Sampling::new(kind);
    let sampling = Sampling {
        language,
        per_repository: per_repo,
        seed: seed(&settings)?,
        context_tokens: args.context_tokens,
        min_tokens: args.min_tokens,
        cursor: args.cursor.parse()?,
        exclusions: args.exclusions.exclusions(usual.exclusions.clone())?,
        ..usual
    };
    if let Some(commits) = args.commits.wanted_commits() {
        return sample_commits::run(&commits, &settings, &sampling, &args.output);
    }
    check_drawing(&settings, "sample", DrawnFrom::Folders)?;
    let dir = repos_dir(&settings)?;
    let names = repositories_in(&dir, &settings.repo, &Screen)?;
    let (walk, shard): (_, Option<Shard>) = (*settings.walk, *settings.shard);
    let drawing = FolderSampling { dir: &dir, names: &names, walk, sampling: &sampling, shard };
    let drawn = drawing.draw();
    report(&drawn, &sampling);
    let (total, count) = (drawn.tasks().count(), drawn.repositories.len());
    let repositories = plural(count, "repository");
    // A shard of the repositories may yield no task.
    if total == 0 && shard.is_none() {
        let reason = format!(
            "{}: no task could be drawn from the {} files of {count} {repositories}",
            dir.display(),
            language.title()
        );
        let hint = other_languages(&dir, &names, (language, walk));
        return fail(reason, hint.unwrap_or("choose another --kind, or other repositories".into()));
    }
    write_data(&args.output, json_lines(drawn.tasks().map(Task::to_record)))?;
    drawing.write_manifest(&drawn, &args.output)?;
    let total = group(total);
    let in_tests = drawn.tasks().filter(|task| is_test_file(task.file_in_repository())).count();
    let of_tests = match in_tests {
        0 => String::new(),
        count => format!("; {} in test files, which --no-tests excludes", group(count)),
    };
    output::note(format!("sample: {total} {kind} tasks from {count} {repositories}{of_tests}"));
    Ok(())
}

/// Prints the number of tasks from each repository, and the files that were left out.
fn report(drawn: &FolderTasks, sampling: &Sampling) {
    let Sampling { kind, per_repository, .. } = sampling;
    for outcome in &drawn.repositories {
        let RepositoryTasks { name, tasks, skipped } = match outcome {
            Ok(tasks) => tasks,
            Err(error) => {
                output::problems(std::slice::from_ref(error));
                continue;
            }
        };
        output::problems(skipped);
        let count = tasks.len();
        output::detail(format!("  {name}: {}", format_count(count as u64, "task")));
        if count < *per_repository {
            let Exclusions { paths, tests, tables } = &sampling.exclusions;
            let is_part = *tests || !paths.is_empty();
            let rest = match (is_part, tables) {
                (true, _) => " outside the excluded files",
                (false, true) => {
                    "; rows of data tables are not drawn (--data-tables draw uses them)"
                }
                (false, false) => "",
            };
            output::note(format!(
                "{name}: only {count} of {per_repository} {kind} tasks: the repository has no more{rest}"
            ));
        }
    }
    warn_of_unmatched(&sampling.exclusions, &drawn.matched);
    tell_unparsed("sample", sampling.language, DrawnCode::from_kind(*kind), &drawn.unparsed);
}
