//! `sample`

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use repoformer_core::repository::corpus::Repository;
use repoformer_core::repository::{Shard, parallel};
use repoformer_core::task::sample::{Exclusions, HoleStart, Kind, Sampling, TaskSample, sample};
use repoformer_formats::merge::Positions;
use repoformer_store::artifact::digest;
use repoformer_store::manifest::Manifest;
use repoformer_store::progress::Work;
use repoformer_study::choices::{other_languages, repos_dir, repositories_in, seed};
use repoformer_text::tokenize::P50k;

use super::exclusions::{ExclusionFlags, warn_of_unmatched};
use super::sample_commits::{self, CommitFlags};
use super::unparsed::{DrawnCode, tell_unparsed};
use crate::commands::session::{DrawnFrom, check_drawing, open};
use crate::output::{self, Screen, fail, group, plural, write_data, write_shard_beside};
use crate::settings::{Listed, SettingFlags};
use crate::table::json_lines;

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    #[command(flatten)]
    settings: SettingFlags,
    /// Kind of the holes: line (a line of code), api (a call of a definition in another file), function (a body of 3 to 30
    /// lines), chunk (a few lines)
    #[arg(long, value_name = "KIND", value_parser = Listed::of(Kind::ALL))]
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
    /// Where a hole begins: line-start (at the start of its first line), any-token (at any token of it)
    #[arg(long, value_name = "NAME", default_value = HoleStart::LineStart.name(), value_parser = Listed::of(HoleStart::ALL))]
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
    if let Some(commits) = args.commits.wanted() {
        return sample_commits::run(&commits, &settings, &sampling, &args.output);
    }
    check_drawing(&settings, "sample", DrawnFrom::Folders)?;
    let dir = repos_dir(&settings)?;
    let names = repositories_in(&dir, &settings.repo, &Screen)?;
    let walk = *settings.walk;
    let p50k = P50k;
    let shard: Option<Shard> = *settings.shard;
    let mut manifest = Manifest::new("tasks");
    manifest.setting("settings", digest(format!("{sampling:?}{walk:?}").as_bytes()));
    manifest.setting("repositories", digest(names.join("\n").as_bytes()));
    let is_held = |(_, name): &(u64, String)| shard.is_none_or(|shard| shard.holds(name));
    let (places, names): (Vec<u64>, Vec<String>) = (0..).zip(names).filter(is_held).unzip();
    let work = Work::of("sample", "repositories", names.len());
    let draw = |name: &String| {
        let reading = Repository::read_with(&dir, name, language, walk)?;
        let drawn = sample(&reading.repository, &sampling, &|text| p50k.count(text));
        let matched = sampling.exclusions.matched(&reading.repository);
        work.done(1);
        Ok((drawn, matched, reading.skipped))
    };
    let drawn: Vec<_> = parallel::map(&names, draw);
    drop(work);
    let (mut text, mut total, mut matched) = (String::new(), 0, Vec::new());
    let mut all_unparsed = Vec::new();
    let mut positions = Positions::default();
    for ((name, place), outcome) in names.iter().zip(places).zip(drawn) {
        match outcome {
            Ok((TaskSample { tasks, unparsed }, found, skipped)) => {
                all_unparsed.extend(unparsed);
                Exclusions::also_matched(&mut matched, &found);
                output::problems(&skipped);
                output::detail(format!("  {name}: {} tasks", tasks.len()));
                if tasks.len() < per_repo {
                    let (drawn, asked) = (tasks.len(), per_repo);
                    let Exclusions { paths, tests, tables } = &sampling.exclusions;
                    let is_part = *tests || !paths.is_empty();
                    let rest = match (is_part, tables) {
                        (true, _) => " outside of what is excluded",
                        (false, true) => {
                            " outside of data tables (--data-tables draw takes their rows)"
                        }
                        (false, false) => "",
                    };
                    output::note(format!(
                        "{name}: only {drawn} of {asked} {kind} tasks: the repository holds no more{rest}"
                    ));
                }
                total += tasks.len();
                tasks.iter().for_each(|_| positions.add(place));
                text += &json_lines(tasks.iter().map(|task| task.to_record()));
            }
            Err(error) => output::problems(&[error]),
        }
    }
    warn_of_unmatched(&sampling.exclusions, &matched);
    tell_unparsed("sample", language, DrawnCode::of(kind), &all_unparsed);
    // A part of the repositories may have none.
    if total == 0 && shard.is_none() {
        let (count, title) = (names.len(), language.title());
        let repositories = plural(count, "repository");
        let reason = format!(
            "{}: no task could be drawn from the {title} files of {count} {repositories}",
            dir.display()
        );
        let hint = other_languages(&dir, &names, (language, walk));
        return fail(reason, hint.unwrap_or("choose another --kind, or other repositories".into()));
    }
    write_data(&args.output, text)?;
    if let Some(shard) = shard {
        write_shard_beside(&args.output, manifest, shard, &positions)?;
    }
    let (total, count) = (group(total), names.len());
    let repositories = plural(count, "repository");
    output::note(format!("sample: {total} {kind} tasks from {count} {repositories}"));
    Ok(())
}
