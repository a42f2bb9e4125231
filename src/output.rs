//! Printing: data to stdout, everything else to stderr.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use repoformer_core::repository::Shard;
use repoformer_formats::merge::{self, Positions};
use repoformer_pipeline::{Messages, RebuiltArtifact, STAGES, StageReport};
use repoformer_store::artifact::OutputFile;
use repoformer_store::error::{Access, Error};
use repoformer_store::literal;
pub(crate) use repoformer_store::manifest::write_document as write_json;
use repoformer_store::manifest::{self, Manifest};
use repoformer_store::remark::{LeftOutTasks, Remark};
pub(crate) use repoformer_study::{fail, message_of, unknown};
pub(crate) use repoformer_text::counts::{format_count, group, list_first, plural};
use repoformer_text::message;
use repoformer_text::message::Message;
use repoformer_text::visible::visible;

use crate::bars;
use crate::choices::in_flags;
use crate::commands::unparsed::keep_gaps;
use crate::interruption::set_interruption_message;
use crate::near_files::near_file;

/// Flags that say how much is printed, and how.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ScreenFlags {
    /// Print nothing but errors
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Print more: every path, every problem
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    verbose: bool,
    /// Draw no progress bar (none is drawn unless stderr is a terminal)
    #[arg(long, global = true)]
    no_progress: bool,
    /// When to use colours; NO_COLOR is respected
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColorWhen,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ColorWhen {
    Auto,
    Always,
    Never,
}

/// Number of warnings of one stage shown without `-v`.
const WARNINGS_SHOWN: usize = 3;
/// Number of tasks named for each reason without `-v`.
const TASKS_NAMED: usize = 8;
/// Number of problems, and of reasons of tasks that are left out, shown without `-v`.
const PROBLEMS_SHOWN: usize = 20;

/// Adds a hint to an error.
pub(crate) fn add_hint(
    source: impl Into<anyhow::Error>,
    hint: impl Into<Message>,
) -> anyhow::Error {
    Error::from_refusal(message_of(&source.into()), hint).into()
}

/// Flags of the screen, which [`init`] sets once.
static SCREEN: OnceLock<ScreenFlags> = OnceLock::new();
/// Number of skipped items and failed checks.
static PROBLEMS: AtomicUsize = AtomicUsize::new(0);
/// Problems and hints printed so far, since each is printed only once.
static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Sets the amount and form of the output.
pub(crate) fn init(flags: ScreenFlags) {
    match flags.color {
        ColorWhen::Auto => {}
        ColorWhen::Always => anstream::ColorChoice::Always.write_global(),
        ColorWhen::Never => anstream::ColorChoice::Never.write_global(),
    }
    if !flags.quiet && !flags.no_progress {
        bars::begin();
    }
    SCREEN.get_or_init(|| flags);
}

fn is_quiet() -> bool {
    SCREEN.get().is_some_and(|flags| flags.quiet)
}

/// True if `-v` was given.
pub(crate) fn is_verbose() -> bool {
    SCREEN.get().is_some_and(|flags| flags.verbose)
}

/// True if nothing was skipped and no check failed.
pub(crate) fn all_done() -> bool {
    PROBLEMS.load(Relaxed) == 0
}

/// True if this text was not printed before.
fn is_new(text: &str) -> bool {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned())
}

/// Prints a line to stderr, as all messages do.
fn say(text: &str) {
    say_after("", text);
}

/// Prints a text after a label, which alone may have colours. The text may come from others, so hidden characters are written out,
/// and only the first line can look like a message. If stderr cannot be written (a closed pipe, a full disk), the work continues,
/// and the exit code reports its end.
fn say_after(label: &str, text: &str) {
    bars::aside(|| {
        let text = visible(text).replace('\n', "\n  | ");
        let _ = writeln!(anstream::stderr().lock(), "{label}{text}");
    });
}

fn say_error(text: &str) {
    say_after("\x1b[1;31merror\x1b[0m: ", text);
}

fn say_hint(text: &str) {
    say_after("\x1b[1;36mhint\x1b[0m: ", text);
}

/// Prints a message that accompanies an error or an interruption, even with `--quiet`.
pub(crate) fn announce(text: &str) {
    say(text);
}

/// Returns an error with its causes, and its hint.
pub(crate) fn error_and_hint(error: &anyhow::Error) -> (String, Option<String>) {
    let ours = error.chain().find_map(|cause| cause.downcast_ref::<Error>().and_then(hint_of));
    let hint = ours.or_else(|| repoformer_study::hint_of(error));
    (in_flags(&message_of(error)), hint.map(|hint| in_flags(&hint)))
}

/// Prints the error that ends the program, with its causes and its hint.
pub(crate) fn error(error: &anyhow::Error) {
    let (text, hint) = error_and_hint(error);
    say_error(&text);
    hint.iter().for_each(|hint| say_hint(hint));
}

/// Prints a hint below a failed check.
pub(crate) fn failed_hint(text: &str) {
    say_hint(text);
}

/// Returns the library's hint, or a similar path if the error's path does not exist.
fn hint_of(error: &Error) -> Option<Message> {
    let missing = match error {
        Error::Io { path, access: Access::Read, reason, .. } => {
            (reason.kind() == io::ErrorKind::NotFound).then_some(path)
        }
        Error::Repository { path, .. } => (!path.exists()).then_some(path),
        _ => None,
    };
    let near = missing.and_then(|path| near_file(path));
    near.map(|near| format!("did you mean '{}'?", near.display()).into()).or_else(|| error.hint())
}

pub(crate) fn note(text: impl AsRef<str>) {
    if !is_quiet() {
        say(text.as_ref());
    }
}

pub(crate) fn detail(text: impl AsRef<str>) {
    if is_verbose() {
        say(text.as_ref());
    }
}

pub(crate) fn warning(text: impl Into<Message>) {
    if !is_quiet() {
        say_after("\x1b[1;33mwarning\x1b[0m: ", &in_flags(&text.into()));
    }
}

/// Warns of files whose records contain numbers that JSON does not have.
pub(crate) fn warn_of_not_json() {
    for (path, lines) in literal::take_not_json() {
        let first = lines.first().copied().unwrap_or_default();
        let records = format_count(lines.len() as u64, "record");
        warning(format!(
            "{}:{first}: NaN or Infinity is not valid JSON (Python's json writes it); it is read as null in unused fields ({records})",
            path.display()
        ));
    }
}

/// Prints a note only once.
fn note_once(text: &str) {
    if is_new(text) {
        note(text);
    }
}

/// Prints a warning only once.
pub(crate) fn warning_once(text: &str) {
    if is_new(text) {
        warning(text);
    }
}

/// True once records that may belong to other tasks were warned of.
static NUMBERED: AtomicBool = AtomicBool::new(false);

/// Warns of records that only numbers assign to their tasks, but only for the first such file.
pub(crate) fn warn_of_numbers(text: Option<impl AsRef<str>>) {
    if let Some(text) = text
        && !NUMBERED.swap(true, Relaxed)
    {
        warning(text.as_ref());
    }
}

/// Returns the number of items to show: `few` without `-v`, all with it.
fn shown_count(few: usize) -> usize {
    if is_verbose() { usize::MAX } else { few }
}

/// Lists names in a sentence; only the first few without `-v`.
pub(crate) fn few_of(names: &[String]) -> String {
    let shown = names.len().min(shown_count(5));
    let rest = match names.len() - shown {
        0 => String::new(),
        more => format!(" and {more} more (-v lists them)"),
    };
    names[..shown].join(", ") + &rest
}

/// Prints the number of items that are not shown.
fn note_hidden(indent: &str, hidden: usize) {
    if hidden > 0 {
        note(format!("{indent}… and {hidden} more like these (-v shows all)"));
    }
}

/// Prints what to do about a warning.
pub(crate) fn hint(text: &str) {
    if !is_quiet() {
        say_hint(text);
    }
}

/// Reports skipped items, each once, and counts them.
pub(crate) fn problems(problems: &[Error]) {
    let (mut count, mut said, mut way) = (0, 0, " (-v shows all)");
    for problem in problems {
        let text = in_flags(&problem.message());
        if !is_new(&text) {
            continue;
        }
        count += problem.count();
        if matches!(problem, Error::Further { .. }) {
            way = if is_verbose() { "" } else { " (-v shows more)" };
            continue;
        }
        if said == shown_count(PROBLEMS_SHOWN) {
            continue;
        }
        said += 1;
        say_error(&text);
        // Problems of the same kind have the same hint.
        let hint = hint_of(problem).map(|hint| in_flags(&hint));
        if let Some(hint) = hint.filter(|hint| is_new(hint)) {
            say_hint(&hint);
        }
    }
    failures(count);
    if count > said {
        note(format!("… and {} more like these{way}", group(count - said)));
    }
}

/// Prints these lines below a warning, `few` of them without `-v`.
pub(crate) fn list(lines: &[Message], few: usize) {
    let (few, all) = (shown_count(few), lines.len());
    lines.iter().take(few).for_each(|line| note(in_flags(line)));
    note_hidden("  ", all.saturating_sub(few));
}

/// Counts a failed check.
pub(crate) fn count_failure(text: impl Into<Message>) {
    failures(1);
    say_error(&in_flags(&text.into()));
}

/// Counts failed checks that the output lists.
pub(crate) fn failures(number: usize) {
    PROBLEMS.fetch_add(number, Relaxed);
}

/// Printed reasons for rebuilding stale artifacts, each with its benchmark.
static REBUILT_FOR: Mutex<BTreeSet<(String, String)>> = Mutex::new(BTreeSet::new());

/// Returns the benchmark and the reason of a rebuild; the benchmark is the artifact's folder within its stage.
fn rebuilt_for(one: &RebuiltArtifact) -> (String, String) {
    let mut parts = one.path.iter().rev().map(|part| part.to_string_lossy());
    let below: Vec<_> = parts.by_ref().take_while(|part| !STAGES.contains(&&**part)).collect();
    (below.last().map(|part| part.to_string()).unwrap_or_default(), one.reason.clone())
}

/// Warns of artifacts that were rebuilt, in one line without `-v`. Artifacts with a printed reason are not printed again, and
/// neither are rebuilds that follow from a printed one.
pub(crate) fn rebuilt(artifacts: &[RebuiltArtifact]) {
    if is_verbose() {
        return artifacts.iter().for_each(|one| warning(one.to_string()));
    }
    let mut printed = REBUILT_FOR.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = |one: &RebuiltArtifact| {
        one.is_stale && (printed.contains(&rebuilt_for(one)) || one.follows && !printed.is_empty())
    };
    let new: Vec<&RebuiltArtifact> = artifacts.iter().filter(|one| !is_known(one)).collect();
    match new[..] {
        [] => {}
        [one] => warning(one.to_string()),
        _ => {
            let all_follow = new.iter().all(|one| one.follows);
            let mut reasons: Vec<&str> = Vec::new();
            for one in new.iter().filter(|one| all_follow || !one.follows) {
                if !reasons.contains(&&*one.reason) {
                    reasons.push(&one.reason);
                }
            }
            let more = match reasons.len().saturating_sub(WARNINGS_SHOWN) {
                0 => String::new(),
                more => format!("; {more} other reasons"),
            };
            reasons.truncate(WARNINGS_SHOWN);
            let are_stale = new.iter().all(|one| one.is_stale);
            let state = if are_stale { "stale" } else { "stale or damaged" };
            let (count, reasons) = (new.len(), reasons.join("; "));
            warning(format!("{count} {state} artifacts rebuilt: {reasons}{more} (-v lists them)"));
        }
    }
    printed.extend(new.iter().filter(|one| one.is_stale).map(|one| rebuilt_for(one)));
}

fn warnings(report: &StageReport) {
    rebuilt(&report.rebuilt);
    let few = shown_count(WARNINGS_SHOWN);
    report.warnings.iter().take(few).for_each(warning);
    note_hidden("", report.warnings.len().saturating_sub(few));
}

/// Reports the remarks of a stage that was not run.
pub(crate) fn remarks(report: &StageReport) {
    warnings(report);
    problems(&report.problems);
    problems(&report.misfits);
}

/// Reports the work of a stage.
pub(crate) fn report(stage: &str, report: &StageReport) {
    warnings(report);
    let before = PROBLEMS.load(Relaxed);
    problems(&report.problems);
    let skipped = match PROBLEMS.load(Relaxed) - before {
        0 => String::new(),
        n => format!(", {n} skipped"),
    };
    let (count, records) = (report.built + report.current, report.records as usize);
    let state = match (report.built, report.current) {
        (0, _) => "current".to_owned(),
        (_, 0) => "written".to_owned(),
        (built, current) => format!("{built} written, {current} current"),
    };
    problems(&report.misfits);
    note(format!(
        "{stage}: {} {} in {count} {} ({state}){skipped}",
        group(records),
        plural(records, "record"),
        plural(count, "artifact")
    ));
    for path in &report.outputs {
        detail(format!("  {}", path.display()));
    }
}

/// Receiver of the libraries' messages, which prints them as the program's own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen;

/// Returns the screen as a receiver of messages.
pub(crate) fn screen() -> Arc<dyn Messages> {
    Arc::new(Screen)
}

impl Messages for Screen {
    fn tell(&self, remark: Remark) {
        tell(remark);
    }

    fn stage(&self, name: &str, of: &StageReport) {
        report(name, of);
    }

    fn remarks(&self, of: &StageReport) {
        remarks(of);
    }

    fn on_interruption(&self, text: Option<String>) -> Option<String> {
        set_interruption_message(text)
    }
}

/// Prints a remark of the libraries.
pub(crate) fn tell(remark: Remark) {
    match remark {
        Remark::Announcement(text) => announce(&in_flags(&text)),
        Remark::Note(text) => note(in_flags(&text)),
        Remark::NoteOnce(text) => note_once(&in_flags(&text)),
        Remark::Detail(text) => detail(in_flags(&text)),
        Remark::Warning(text) => warning(text),
        Remark::WarningOnce(text) => warning_once(&in_flags(&text)),
        Remark::Hint(text) => hint(&in_flags(&text)),
        Remark::Failed(text) => count_failure(text),
        Remark::LeftOut(tasks) => warn_left_out(tasks),
        Remark::Problems(all) => problems(&all),
        Remark::Unproven(text) => warn_of_numbers(Some(text)),
        Remark::Gaps(gaps) => keep_gaps(gaps),
    }
}

/// Warns of tasks that are left out, counts them, and lists them by reason.
fn warn_left_out(tasks: LeftOutTasks) {
    failures(tasks.count());
    warning(tasks.warning);
    let path = tasks.path.display();
    let lines = tasks.reasons.into_iter().map(|(reason, mut names)| {
        let more = names.len().saturating_sub(TASKS_NAMED);
        if more > 0 && !is_verbose() {
            names.truncate(TASKS_NAMED);
            names.push(format!("… and {more} more (-v)"));
        }
        message![format!("  {path}: "), reason, format!(": {}", names.join(", "))]
    });
    list(&lines.collect::<Vec<_>>(), PROBLEMS_SHOWN);
}

/// Checks that a command does not overwrite its inputs.
pub(crate) fn check_output<P: AsRef<Path>>(
    output: Option<&Path>,
    inputs: impl IntoIterator<Item = P>,
) -> Result<()> {
    let real = |path: &Path| path.canonicalize().ok();
    let output = output.and_then(real);
    let is_output = |input: &P| output.is_some() && real(input.as_ref()) == output;
    match inputs.into_iter().find(is_output) {
        None => Ok(()),
        Some(input) => {
            let input = input.as_ref().display();
            fail(format!("-o would overwrite {input}, an input"), "name another file")
        }
    }
}

/// Checks that inputs read more than once are files, not pipes.
pub(crate) fn check_rereadable(inputs: &[&Path], command: &str) -> Result<()> {
    let is_pipe = |path: &&&Path| **path == Path::new("-") || path.exists() && !path.is_file();
    let Some(path) = inputs.iter().find(is_pipe) else {
        return Ok(());
    };
    let name = path.display().to_string();
    let reason = if path.is_dir() {
        format!("{name}: this is a folder")
    } else {
        let name = if name == "-" { "standard input" } else { &name };
        format!("{command} reads its input twice, but {name} can be read only once")
    };
    fail(reason, "name a file")
}

/// Checks that the output of several files is a folder.
pub(crate) fn check_folder(output: &Path, command: &str) -> Result<()> {
    let start = if output == Path::new("-") {
        String::new()
    } else if output.is_file() {
        format!("{}: this is a file, but ", output.display())
    } else {
        return Ok(());
    };
    fail(format!("{start}{command} writes several files"), "name a folder with -o")
}

/// Writes data to a file, completely or not at all and compressed if its extension requires it, or to standard output (`-`).
pub(crate) fn write_data(path: &Path, data: impl AsRef<[u8]>) -> Result<()> {
    if path != Path::new("-") {
        let mut file = OutputFile::create(path)?;
        file.write(data.as_ref())?;
        manifest::forget_beside(path)?;
        return Ok(file.finish()?);
    }
    let written = bars::aside(|| {
        let mut stdout = io::stdout().lock();
        stdout.write_all(data.as_ref()).and_then(|()| stdout.flush())
    });
    written.context("standard output: cannot write")
}

/// Prints a text for people, with hidden characters written out.
pub(crate) fn print_text(text: &str) -> Result<()> {
    write_data(Path::new("-"), &*visible(text))
}

/// Writes the manifest of a file next to it, as `FILE.manifest.json` with the file's checksum; standard output gets none.
pub(crate) fn write_manifest_beside(path: &Path, manifest: &serde_json::Value) -> Result<()> {
    Ok(manifest::write_beside(path, manifest)?)
}

/// Writes the manifest of a shard's file next to it: the shard and the positions of its records, which `merge` reads.
pub(crate) fn write_shard_beside(
    path: &Path,
    manifest: Manifest,
    shard: Shard,
    positions: &Positions,
) -> Result<()> {
    Ok(merge::write_shard_beside(path, &manifest, shard, positions)?)
}

/// True if the error is a closed pipe.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let direct = cause.downcast_ref::<io::Error>();
        let io = direct.or(match cause.downcast_ref::<Error>() {
            Some(Error::Io { reason, .. }) => Some(reason),
            _ => None,
        });
        io.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}
