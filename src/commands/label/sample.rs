//! `label sample`: instances drawn from repositories.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use repoformer_core::label::{
    CHUNK_LINES, CollectSettings, CountedLines, Drawing, Filter, InstanceKind, RAW_FOLDER,
    RecordFormat, Rejection, Repositories, collect, fingerprint, grouped_language,
};
use repoformer_core::repository::Shard;
use repoformer_formats::merge::Positions;
use repoformer_store::artifact::digest;
use repoformer_store::error::Error;
use repoformer_store::files;
use repoformer_store::manifest::Manifest;
use repoformer_study::choices::{
    other_languages, repos_dir, repositories_in, seed, warn_of_some_departures,
};
use repoformer_text::language::Language;
use repoformer_text::message;

use crate::commands::exclusions::{ExclusionFlags, warn_of_unmatched};
use crate::commands::session::{DrawnFrom, check_drawing, open};
use crate::commands::unparsed::{DrawnCode, tell_unparsed};
use crate::output::{self, Screen, check_output, fail, group, plural, write_shard_beside};
use crate::records_output::RecordsOutput;
use crate::settings::{Departure, Listed, Paper, SettingFlags, Settings};

#[derive(Debug, Args)]
pub(crate) struct LabelSampleArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Read repositories from records instead of folders: JSONL, plain, gzip or zstd, or a folder that `group` made
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) raw: Option<PathBuf>,
    /// Write tasks of a benchmark, without retrieved fragments, as in CrossCodeLongEval
    #[arg(long, conflicts_with = "fragments")]
    pub(crate) as_benchmark: bool,
    /// File for the instances (`-`: standard output; compressed if the name ends in .gz or .zst). Until all are drawn,
    /// FILE.drawn holds them: the same command resumes there
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Kind of the holes: chunk (about three lines), function (the body of a function of 3 to 30 lines)
    #[arg(long, value_name = "KIND", default_value = "chunk", help_heading = "Sampling",
        value_parser = Listed::of(InstanceKind::ALL))]
    pub(crate) kind: String,
    #[command(flatten)]
    pub(crate) drawing: DrawingFlags,
}

/// Instances to draw, and repositories to draw from.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct DrawingFlags {
    /// Number of instances per chunk or function of a repository, one from each cluster of similar code [default: 0.2; 0.1
    /// with --profile repoformer-release]
    #[arg(long, value_name = "R")]
    pub(crate) ratio: Option<f64>,
    /// Maximum number of chunks or functions of a repository that are clustered, a random sample of more [default: all; 1000
    /// with --profile repoformer-release]
    #[arg(long, value_name = "N")]
    max_candidates: Option<usize>,
    /// Mean of the Poisson distribution of a chunk's lines, before it is clipped to 1 to 10 [default: 3]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    poisson_mean: Option<f64>,
    /// Minimum and maximum lines of a function [default: 3-30]
    #[arg(long, value_name = "N-N")]
    function_lines: Option<String>,
    /// Lines that --function-lines counts: function (from the signature to the end, docstring included), body (those that are cut
    /// out) [default: function; body with --profile repoformer-release]
    #[arg(long, value_name = "LINES", value_parser = Listed::of(CountedLines::ALL))]
    counted_lines: Option<String>,
    /// Number of fragments in the cross-file context of an instance [default: 3]
    #[arg(long, value_name = "N")]
    fragments: Option<usize>,
    /// Use every repository, not only those whose files import one another
    #[arg(long, conflicts_with_all = ["min_files", "min_lines", "min_imports", "min_local_imports"])]
    no_filter: bool,
    /// Minimum number of files of a repository [default: 5; 20 for other languages than Python]
    #[arg(long, value_name = "N")]
    min_files: Option<usize>,
    /// Minimum number of lines of a repository [default: 0; 20000 for other languages than Python]
    #[arg(long, value_name = "N")]
    min_lines: Option<usize>,
    /// Minimum number of modules that a file imports, on average over a repository [default: 3; 0 for other languages than
    /// Python]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    min_imports: Option<f64>,
    /// Minimum number of these modules that are the repository's own [default: 2; 0 for other languages than Python]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    min_local_imports: Option<f64>,
    #[command(flatten)]
    exclusions: ExclusionFlags,
}

impl DrawingFlags {
    /// Checks that each flag belongs to one of these kinds.
    pub(super) fn check_kinds(&self, kinds: &[InstanceKind]) -> Result<()> {
        let of_functions = InstanceKind::Function;
        for (flag, is_given, kind) in [
            ("function-lines", self.function_lines.is_some(), of_functions),
            ("counted-lines", self.counted_lines.is_some(), of_functions),
            ("poisson-mean", self.poisson_mean.is_some(), InstanceKind::Chunk),
        ] {
            if is_given && !kinds.contains(&kind) {
                return fail(
                    format!("--{flag} belongs to instances of kind {kind}"),
                    format!("leave it out, or draw these (--kind {kind})"),
                );
            }
        }
        Ok(())
    }

    /// Returns the usual settings, with those of the flags in their place.
    fn drawing(&self, usual: &Drawing) -> Result<Drawing> {
        let usual = usual.clone();
        let drawing = Drawing {
            ratio: self.ratio.unwrap_or(usual.ratio),
            max_candidates: self.max_candidates.or(usual.max_candidates),
            poisson_mean: self.poisson_mean.unwrap_or(usual.poisson_mean),
            function_lines: match &self.function_lines {
                Some(text) => lines(text)?,
                None => usual.function_lines,
            },
            counted: match &self.counted_lines {
                Some(name) => name.parse()?,
                None => usual.counted,
            },
            fragments: self.fragments.unwrap_or(usual.fragments),
            exclusions: self.exclusions.exclusions(usual.exclusions.clone())?,
            ..usual
        };
        if !(drawing.ratio > 0.0 && drawing.ratio <= 1.0) {
            return fail("--ratio must be more than 0 and at most 1", "the paper's is 0.2");
        }
        if drawing.max_candidates == Some(0) {
            return fail("--max-candidates must be at least 1", "without it, all are clustered");
        }
        if !(drawing.poisson_mean > 0.0 && drawing.poisson_mean <= CHUNK_LINES as f64) {
            return fail(
                format!("--poisson-mean must be more than 0 and at most {CHUNK_LINES}"),
                format!("a chunk has {CHUNK_LINES} lines; the paper's mean is 3"),
            );
        }
        if drawing.fragments == 0 {
            return fail("--fragments must be at least 1", "the paper's number is 3");
        }
        Ok(drawing)
    }

    /// Compares the settings of the flags, and the limits of repositories, with the usual ones.
    fn departures(
        &self,
        drawing: &Drawing,
        usual: &Drawing,
        (filter, usual_filter): (&Filter, &Filter),
    ) -> Vec<Departure> {
        let of_drawing = |drawing: &Drawing| {
            let lines = &drawing.function_lines;
            [
                ("ratio", drawing.ratio.to_string()),
                ("max-candidates", drawing.max_candidates.map_or("all".into(), |n| n.to_string())),
                ("poisson-mean", drawing.poisson_mean.to_string()),
                ("function-lines", format!("{}-{}", lines.start(), lines.end())),
                ("counted-lines", drawing.counted.to_string()),
                ("fragments", drawing.fragments.to_string()),
            ]
        };
        let of_filter = |filter: &Filter| {
            [
                ("min-files", filter.files.to_string()),
                ("min-lines", filter.lines.to_string()),
                ("min-imports", filter.imports.to_string()),
                ("min-local-imports", filter.local_imports.to_string()),
            ]
        };
        let mut pairs: Vec<_> = of_drawing(drawing)
            .into_iter()
            .zip(of_drawing(usual).map(|(_, usual)| usual))
            .collect();
        if self.no_filter {
            pairs.push((("no-filter", "yes".to_owned()), "no".to_owned()));
        } else {
            pairs
                .extend(of_filter(filter).into_iter().zip(of_filter(usual_filter).map(|(_, u)| u)));
        }
        let departures = pairs.into_iter().filter(|((_, value), usual)| value != usual);
        departures.map(|((key, value), usual)| Departure { key, value, usual }).collect()
    }

    /// The paper's limits, and in their place what flags say.
    fn filter(&self, language: Language, from: &Repositories) -> Result<Filter> {
        if self.no_filter {
            return Ok(Filter::none());
        }
        let (usual, imports) =
            (Filter::paper(language), [self.min_imports, self.min_local_imports]);
        // Raw records may say what files of any language import.
        if language != Language::Python
            && matches!(from, Repositories::Folders(..))
            && imports.iter().any(Option::is_some)
        {
            return fail(
                format!("imports are counted in Python, not in {language}"),
                "leave out --min-imports and --min-local-imports; --min-files and --min-lines serve all languages",
            );
        }
        let is_number = |least: &f64| *least >= 0.0 && least.is_finite();
        if !imports.iter().flatten().all(is_number) {
            return fail(
                "--min-imports and --min-local-imports must be at least 0",
                "the paper's are 3 and 2",
            );
        }
        Ok(Filter {
            files: self.min_files.unwrap_or(usual.files),
            lines: self.min_lines.unwrap_or(usual.lines),
            imports: self.min_imports.unwrap_or(usual.imports),
            local_imports: self.min_local_imports.unwrap_or(usual.local_imports),
        })
    }
}

pub(super) fn run(args: &LabelSampleArgs) -> Result<()> {
    let settings = open(&args.settings)?;
    let from = if args.raw.is_some() { DrawnFrom::RawRecords } else { DrawnFrom::Folders };
    check_drawing(&settings, "label sample", from)?;
    args.drawing.check_kinds(&[args.kind.parse()?])?;
    draw_instances(args, &settings).map(drop)
}

/// Instances to draw, as flags and settings describe them.
struct Wanted {
    from: Repositories,
    /// Part of the repositories, where one was asked for.
    shard: Option<Shard>,
    filter: Filter,
    drawing: Drawing,
    format: RecordFormat,
    /// Flags that contradict the way of drawing of the paper whose profile is in force.
    departures: Vec<Departure>,
}

impl Wanted {
    fn of(args: &LabelSampleArgs, settings: &Settings) -> Result<Self> {
        let kind = args.kind.parse()?;
        let is_release = settings.paper() == Some(Paper::RepoformerProgram);
        let usual = if is_release { Drawing::release(kind) } else { Drawing::paper(kind) };
        let drawing = args.drawing.drawing(&usual)?;
        let asked: Option<Language> = *settings.language;
        let grouped = args.raw.as_deref().map(grouped_language).transpose()?.flatten();
        if let (Some(raw), Some(asked), Some(grouped)) = (&args.raw, asked, grouped)
            && asked != grouped
        {
            return fail(
                format!("{}: grouped by language {grouped}, so there is no {asked}", raw.display()),
                "leave --language out, or group the corpus again",
            );
        }
        let language = asked.or(grouped).unwrap_or_default();
        let from = match &args.raw {
            Some(file) => {
                check_output(Some(&args.output), [file])?;
                Repositories::Raw(file.clone(), settings.repo.to_vec())
            }
            None => {
                let dir = repos_dir(settings)?;
                let names = repositories_in(&dir, &settings.repo, &Screen)?;
                Repositories::Folders(dir, names, *settings.walk)
            }
        };
        let filter = args.drawing.filter(language, &from)?;
        let departures = match settings.paper() {
            Some(Paper::Repoformer | Paper::RepoformerProgram) => {
                let limits = (&filter, &Filter::paper(language));
                args.drawing.departures(&drawing, &usual, limits)
            }
            Some(Paper::RepoCoder | Paper::CrossCodeEval) | None => Vec::new(),
        };
        Ok(Self {
            filter,
            departures,
            from,
            shard: *settings.shard,
            drawing: Drawing {
                language,
                seed: seed(settings)?,
                retrieves: !args.as_benchmark,
                ..drawing
            },
            format: if args.as_benchmark { RecordFormat::Tasks } else { RecordFormat::Labels },
        })
    }

    /// Manifest of what all shards have in common.
    fn manifest(&self, collecting: &CollectSettings<'_>) -> Result<Manifest> {
        let mut manifest = Manifest::new("instances");
        manifest.setting("kind", self.drawing.kind.name());
        manifest.setting("seed", self.drawing.seed);
        manifest.setting("settings", collecting.digest());
        match &self.from {
            Repositories::Raw(path, names) => {
                manifest.setting("repositories", names.clone());
                // A folder's record has the digest of each of its files.
                let record = path.join(RAW_FOLDER);
                manifest.input("raw", if path.is_dir() { &record } else { path })?;
            }
            Repositories::Folders(_, names, walk) => {
                manifest.setting("repositories", digest(names.join("\n").as_bytes()));
                manifest.setting("walk", walk.to_string());
            }
        }
        Ok(manifest)
    }

    fn collecting<'a>(&'a self, journal: Option<&'a Path>) -> CollectSettings<'a> {
        CollectSettings {
            from: &self.from,
            shard: self.shard.unwrap_or(Shard::WHOLE),
            filter: &self.filter,
            drawing: &self.drawing,
            format: self.format,
            journal,
        }
    }
}

/// Digest of the instances that would be drawn from the repositories as they are now, and the files that cannot be read.
pub(super) fn instances_digest(
    args: &LabelSampleArgs,
    settings: &Settings,
) -> Result<(String, Vec<Error>)> {
    let wanted = Wanted::of(args, settings)?;
    Ok(fingerprint(&wanted.collecting(None))?)
}

/// Draws instances with these settings. Returns the digest of all that they were drawn from.
pub(super) fn draw_instances(args: &LabelSampleArgs, settings: &Settings) -> Result<String> {
    let wanted = Wanted::of(args, settings)?;
    warn_of_some_departures(settings, &wanted.departures);
    let mut output = RecordsOutput::new(&args.output);
    let journal = journal_beside(&args.output);
    let collecting = wanted.collecting(journal.as_deref());
    let mut positions = Positions::default();
    let collected = collect(&collecting, &mut |position, record| {
        positions.add(position);
        output.text(record)
    })?;
    output::problems(&collected.problems);
    if let (Some(journal), 1..) = (&journal, collected.known) {
        output::note(format!(
            "label sample: resumes after {} ({})",
            repositories(collected.known),
            journal.display(),
        ));
    }
    for (reason, names) in &collected.rejected {
        output::note(format!(
            "label sample: {} left out: {reason}{}: {}",
            repositories(names.len()),
            limit(*reason),
            output::few_of(names)
        ));
    }
    warn_of_unmatched(&wanted.drawing.exclusions, &collected.matched);
    let language = wanted.drawing.language;
    tell_unparsed("label sample", language, DrawnCode::Functions, &collected.unparsed);
    if collected.instances == 0 {
        forget_journal(&args.output);
    }
    // A part of the repositories may have no suitable one.
    if collected.instances == 0 && (wanted.shard.is_none() || !collected.problems.is_empty()) {
        let others = match &wanted.from {
            Repositories::Folders(dir, names, walk) => {
                other_languages(dir, names, (wanted.drawing.language, *walk))
            }
            Repositories::Raw(..) => None,
        };
        let others = others.unwrap_or("--language names another language".into());
        let filter = "--no-filter also uses repositories whose files do not import one another";
        return fail("no instance could be drawn", message![filter, "; ", others]);
    }
    output.finish()?;
    if let Some(shard) = wanted.shard {
        write_shard_beside(&args.output, wanted.manifest(&collecting)?, shard, &positions)?;
    }
    forget_journal(&args.output);
    output::note(format!(
        "label sample: {} {} instances of {:.2} lines from {}",
        group(collected.instances),
        wanted.drawing.kind.name(),
        collected.lines as f64 / collected.instances.max(1) as f64,
        repositories(collected.repositories),
    ));
    Ok(collected.drawn_from)
}

/// Removes the file that holds the instances drawn so far.
pub(super) fn forget_journal(output: &Path) {
    if let Some(journal) = journal_beside(output)
        && let Err(e) = files::remove_file(&journal)
        && e.kind() != std::io::ErrorKind::NotFound
    {
        let journal = journal.display();
        output::warning(format!(
            "{journal}: cannot remove this file: {e}; it is of no use any more"
        ));
    }
}

/// File that holds the instances drawn so far, until all are drawn; `None` if the output is not a file.
fn journal_beside(output: &Path) -> Option<PathBuf> {
    let is_file = output != Path::new("-") && (output.is_file() || !output.exists());
    let mut name = output.file_name().filter(|_| is_file)?.to_owned();
    name.push(".drawn");
    Some(output.with_file_name(name))
}

fn repositories(count: usize) -> String {
    format!("{} {}", group(count), plural(count, "repository"))
}

/// The flag of a limit.
fn limit(reason: Rejection) -> &'static str {
    match reason {
        Rejection::FewFiles => " (--min-files)",
        Rejection::FewLines => " (--min-lines)",
        Rejection::FewImports => " (--min-imports)",
        Rejection::FewLocalImports => " (--min-local-imports)",
        Rejection::NoInstance => "",
    }
}

/// Parses `3-30`, from 3 to 30 lines.
fn lines(text: &str) -> Result<RangeInclusive<usize>> {
    let ends = text.split_once('-');
    let numbers = ends.and_then(|(least, most)| Some((least.parse().ok()?, most.parse().ok()?)));
    match numbers {
        Some((least @ 1.., most)) if least <= most => Ok(least..=most),
        _ => fail(format!("invalid --function-lines '{text}'"), "from 3 to 30 lines is 3-30"),
    }
}
