//! `sample`

use anyhow::Result;
use rayon::prelude::*;
use repoformer::repository::corpus::Repository;
use repoformer::task::sample::{Kind, Sampling, sample};
use repoformer::text::language::Language;
use repoformer::text::tokenize::P50k;

use super::session::{open, repos_dir, repositories_in, seed};
use crate::args::SampleArgs;
use crate::output::{self, group, write_data};

pub(crate) fn run(args: &SampleArgs) -> Result<()> {
    let settings = open(&args.settings)?;
    let dir = repos_dir(&settings)?;
    let names = repositories_in(&dir, &settings)?;
    let kind: Kind = args.kind.parse()?;
    let language: Language = settings.parsed_option("language")?.unwrap_or_default();
    let sampling = Sampling {
        language,
        per_repository: args.per_repo,
        seed: seed(&settings)?,
        context_tokens: args.context_tokens,
        min_tokens: args.min_tokens,
        ..Sampling::new(kind)
    };
    let p50k = P50k::new();
    let bar = output::bar("sample", names.len());
    let drawn: Vec<_> = names
        .par_iter()
        .map(|name| {
            let reading = Repository::read(&dir, name, language)?;
            let tasks = sample(&reading.repository, &sampling, &|text| p50k.count(text));
            bar.inc(1);
            Ok((tasks, reading.skipped))
        })
        .collect();
    bar.finish_and_clear();
    let (mut text, mut total) = (Vec::new(), 0);
    for (name, outcome) in names.iter().zip(drawn) {
        match outcome {
            Ok((tasks, skipped)) => {
                output::problems(&skipped);
                output::detail(format!("  {name}: {} tasks", tasks.len()));
                if tasks.len() < args.per_repo {
                    let (drawn, asked) = (tasks.len(), args.per_repo);
                    output::note(format!(
                        "{name}: only {drawn} of {asked} {kind} tasks: the repository holds no more"
                    ));
                }
                total += tasks.len();
                for task in tasks {
                    text.extend_from_slice(task.to_record().to_string().as_bytes());
                    text.push(b'\n');
                }
            }
            Err(error) => output::problems(&[error]),
        }
    }
    if total == 0 {
        anyhow::bail!(
            "{}: no task could be drawn from the {} files of {} repositories",
            dir.display(),
            language.title(),
            names.len()
        );
    }
    write_data(&args.output, &text)?;
    output::note(format!(
        "sample: {} {kind} tasks from {}",
        group(total as u64),
        if names.len() == 1 {
            "1 repository".into()
        } else {
            format!("{} repositories", names.len())
        }
    ));
    Ok(())
}
