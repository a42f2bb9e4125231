//! `label sample`: instances drawn from repositories.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use repoformer_core::label::{
    CollectSummary, CountedLines, Drawing, DrawingDifference, Filter, FilterLimits, InstanceKind,
    RecordFormat, Rejection, Repositories, drawn_language, journal_beside, parse_function_lines,
    remove_journal,
};
use repoformer_formats::label::InstanceRequest;
use repoformer_study::choices::{
    other_languages, repos_dir, repositories_in, seed, warn_of_some_departures,
};
use repoformer_text::message;

use crate::commands::exclusions::{ExclusionFlags, warn_of_unmatched};
use crate::commands::session::{DrawnFrom, check_drawing, open};
use crate::commands::unparsed::{DrawnCode, keep_gaps, tell_unparsed};
use crate::output::{self, Screen, check_output, fail, format_count, group};
use crate::records_output::RecordsOutput;
use crate::settings::{Departure, Paper, SettingFlags, Settings, ValueList};

#[derive(Debug, Args)]
pub(crate) struct LabelSampleArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Read repositories from records instead of folders: JSONL, plain, gzip or zstd, or a folder that `group` wrote
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) raw: Option<PathBuf>,
    /// Write tasks of a benchmark, without retrieved fragments, as in CrossCodeLongEval
    #[arg(long, conflicts_with = "fragments")]
    pub(crate) as_benchmark: bool,
    /// File for the instances (`-`: standard output; compressed if the name ends in .gz or .zst); until all are drawn,
    /// FILE.drawn keeps them, so that the same command resumes
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Kind of the holes: chunk (about three lines), function (the body of a function of 3 to 30 lines)
    #[arg(long, value_name = "KIND", default_value = "chunk", help_heading = "Sampling",
        value_parser = ValueList::new(InstanceKind::ALL))]
    pub(crate) kind: String,
    #[command(flatten)]
    pub(crate) drawing: DrawingFlags,
}

/// Instances to draw, and repositories to draw from.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct DrawingFlags {
    /// Number of instances per chunk or function, one from each cluster of similar code [default: 0.2; 0.1 with --profile
    /// repoformer-release]
    #[arg(long, value_name = "R")]
    pub(crate) ratio: Option<f64>,
    /// Maximum number of chunks or functions to cluster in a repository; if there are more, a random sample is clustered
    /// [default: all; 1000 with --profile repoformer-release]
    #[arg(long, value_name = "N")]
    max_candidates: Option<usize>,
    /// Mean number of lines of a chunk, drawn from a Poisson distribution and limited to 1 to 10 [default: 3]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    poisson_mean: Option<f64>,
    /// Minimum and maximum lines of a function [default: 3-30]
    #[arg(long, value_name = "N-N")]
    function_lines: Option<String>,
    /// Lines that --function-lines counts: function (from the signature to the end, with the docstring) or body (the target's
    /// lines) [default: function; body with --profile repoformer-release]
    #[arg(long, value_name = "LINES", value_parser = ValueList::new(CountedLines::ALL))]
    counted_lines: Option<String>,
    /// Number of fragments in the cross-file context of an instance [default: 3]
    #[arg(long, value_name = "N")]
    fragments: Option<usize>,
    /// Use every repository, even if its files do not import one another
    #[arg(long, conflicts_with_all = ["min_files", "min_lines", "min_imports", "min_local_imports"])]
    no_filter: bool,
    /// Minimum number of files of a repository [default: 5; 20 for languages other than Python]
    #[arg(long, value_name = "N")]
    min_files: Option<usize>,
    /// Minimum number of lines of a repository [default: 0; 20000 for languages other than Python]
    #[arg(long, value_name = "N")]
    min_lines: Option<usize>,
    /// Minimum number of modules that a file imports, on average over a repository [default: 3; 0 for languages other than
    /// Python]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    min_imports: Option<f64>,
    /// Minimum number of the repository's own modules that a file imports, on average [default: 2; 0 for languages other than
    /// Python]
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
                    format!("--{flag} works only with instances of kind {kind}"),
                    format!("leave it out, or add --kind {kind}"),
                );
            }
        }
        Ok(())
    }

    /// Returns the usual settings, changed by the flags.
    fn drawing(&self, usual: &Drawing) -> Result<Drawing> {
        let usual = usual.clone();
        let function_lines =
            self.function_lines.as_deref().map(parse_function_lines).transpose()?;
        let counted = self.counted_lines.as_deref().map(str::parse).transpose()?;
        let drawing = Drawing {
            ratio: self.ratio.unwrap_or(usual.ratio),
            max_candidates: self.max_candidates.or(usual.max_candidates),
            poisson_mean: self.poisson_mean.unwrap_or(usual.poisson_mean),
            function_lines: function_lines.unwrap_or(usual.function_lines),
            counted: counted.unwrap_or(usual.counted),
            fragments: self.fragments.unwrap_or(usual.fragments),
            exclusions: self.exclusions.exclusions(usual.exclusions.clone())?,
            ..usual
        };
        drawing.check()?;
        Ok(drawing)
    }

    /// Returns the limits of the filter, from the flags.
    fn limits(&self) -> FilterLimits {
        FilterLimits {
            files: self.min_files,
            lines: self.min_lines,
            imports: self.min_imports,
            local_imports: self.min_local_imports,
        }
    }
}

pub(super) fn run(args: &LabelSampleArgs) -> Result<()> {
    let settings = open(&args.settings)?;
    let from = if args.raw.is_some() { DrawnFrom::RawRecords } else { DrawnFrom::Folders };
    check_drawing(&settings, "label sample", from)?;
    args.drawing.check_kinds(&[args.kind.parse()?])?;
    draw_instances(args, &settings).map(drop)
}

/// Returns the request for instances that flags and settings describe, and the flags that contradict the sampling of the paper
/// whose profile is in force.
pub(super) fn request(
    args: &LabelSampleArgs,
    settings: &Settings,
) -> Result<(InstanceRequest, Vec<Departure>)> {
    let kind = args.kind.parse()?;
    let is_release = settings.paper() == Some(Paper::RepoformerProgram);
    let usual = if is_release { Drawing::release(kind) } else { Drawing::paper(kind) };
    let drawing = args.drawing.drawing(&usual)?;
    let language = drawn_language(*settings.language, args.raw.as_deref())?;
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
    let is_unfiltered = args.drawing.no_filter;
    let filter = if is_unfiltered {
        Filter::none()
    } else {
        args.drawing.limits().filter(language, &from)?
    };
    let mut differences = Vec::new();
    if let Some(Paper::Repoformer | Paper::RepoformerProgram) = settings.paper() {
        let no_filter =
            DrawingDifference { name: "no-filter", value: "yes".into(), usual: "no".into() };
        differences = drawing.differences(&usual);
        differences.extend(if is_unfiltered {
            vec![no_filter]
        } else {
            filter.differences(&Filter::paper(language))
        });
    }
    let departure =
        |DrawingDifference { name, value, usual }| Departure { key: name, value, usual };
    let retrieves = !args.as_benchmark;
    let request = InstanceRequest {
        from,
        shard: *settings.shard,
        filter,
        drawing: Drawing { language, seed: seed(settings)?, retrieves, ..drawing },
        format: if retrieves { RecordFormat::Labels } else { RecordFormat::Tasks },
    };
    Ok((request, differences.into_iter().map(departure).collect()))
}

/// Draws instances with these settings. Returns the digest of everything that they were drawn from.
pub(super) fn draw_instances(args: &LabelSampleArgs, settings: &Settings) -> Result<String> {
    let (request, departures) = request(args, settings)?;
    warn_of_some_departures(settings, &departures);
    let mut output = RecordsOutput::new(&args.output);
    let journal = journal_beside(&args.output);
    let drawn = request.draw(journal.as_deref(), &mut |record| output.text(record))?;
    report(&request, &drawn.summary, journal.as_deref());
    if drawn.summary.instances == 0 {
        forget_journal(&args.output);
    }
    if request.lacks_instances(&drawn) {
        let others = match &request.from {
            Repositories::Folders(dir, names, walk) => {
                other_languages(dir, names, (request.drawing.language, *walk))
            }
            Repositories::Raw(..) => None,
        };
        let others = others.unwrap_or("choose another language with --language".into());
        let filter = "add --no-filter to use repositories whose files do not import one another";
        return fail("no instance could be drawn", message![filter, "; ", others]);
    }
    output.finish()?;
    request.write_manifest(&drawn, &args.output)?;
    forget_journal(&args.output);
    let CollectSummary { instances, lines, repositories, .. } = drawn.summary;
    output::note(format!(
        "label sample: {} {} instances of {:.2} lines from {}",
        group(instances),
        request.drawing.kind,
        lines as f64 / instances.max(1) as f64,
        format_count(repositories as u64, "repository"),
    ));
    Ok(drawn.summary.drawn_from)
}

/// Prints the numbers of repositories and files that were left out, and why.
fn report(request: &InstanceRequest, summary: &CollectSummary, journal: Option<&Path>) {
    keep_gaps(summary.gaps.clone());
    output::problems(&summary.problems);
    let repositories = |count: usize| format_count(count as u64, "repository");
    if let (Some(journal), 1..) = (journal, summary.known) {
        let known = repositories(summary.known);
        output::note(format!("label sample: resuming after {known} ({})", journal.display()));
    }
    for (reason, names) in &summary.rejected {
        output::note(format!(
            "label sample: {} left out: {reason}{}: {}",
            repositories(names.len()),
            limit(*reason),
            output::few_of(names)
        ));
    }
    warn_of_unmatched(&request.drawing.exclusions, &summary.matched);
    let language = request.drawing.language;
    tell_unparsed("label sample", language, DrawnCode::Functions, &summary.unparsed);
}

/// Removes the file that keeps the instances drawn so far.
pub(super) fn forget_journal(output: &Path) {
    if let Err(error) = remove_journal(output) {
        output::warning(format!("{error}; the file is no longer needed"));
    }
}

/// Returns the flag of a limit.
fn limit(reason: Rejection) -> &'static str {
    match reason {
        Rejection::FewFiles => " (--min-files)",
        Rejection::FewLines => " (--min-lines)",
        Rejection::FewImports => " (--min-imports)",
        Rejection::FewLocalImports => " (--min-local-imports)",
        Rejection::NoInstance => "",
    }
}
