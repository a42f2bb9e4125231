//! `window`: repositories → repository windows; tasks → query windows.

use std::path::Path;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::windows::Opened;
use super::{Experiment, Report, chunks, for_each_repository};
use crate::error::{Error, Result};
use crate::evaluate::predictions::JoinedPredictions;
use crate::repository::corpus::{Listed, Listing, Stamp};
use crate::repository::window::{Change, RepoWindows, TextRanges, WindowFile, digest_of_files};
use crate::retrieve::query::{Mode, QueryWindows, fits, hole_lines};
use crate::store::artifact::{
    self, Columns, Header, Identity, Payload, PieceSource, State, read_note, write_note,
};
use crate::task::{Task, TaskSet};

/// Cuts the repositories.
///
/// # Errors
/// An artifact cannot be written.
pub fn window_repositories(experiment: &Experiment) -> Result<Report> {
    if experiment.chunks.is_some() {
        return chunks::index_repositories(experiment);
    }
    for_each_repository(experiment, |repository, report| {
        cut_repository(experiment, repository, report)
    })
}

/// Cuts the query windows of each mode that retrieves; rg-rg needs `predictions`.
///
/// # Errors
/// Repository windows are missing, an artifact cannot be written, or rg-rg is asked for without predictions.
pub fn window_queries(
    experiment: &Experiment,
    modes: &[Mode],
    predictions: Option<&JoinedPredictions>,
) -> Result<Report> {
    if experiment.chunks.is_some() {
        return chunks::make_queries(experiment, modes, predictions);
    }
    let mut report = for_each_repository(experiment, |repository, report| {
        let mut opened = Opened::new(experiment, repository)?;
        let tasks = experiment.tasks()?;
        let file = |task: &Task| opened.windows().file_index(&task.path).map(|n| n as u32);
        let files = tasks.of_repository(repository).filter_map(file).collect();
        opened.read_files(files)?;
        report.warnings.extend(misfits(tasks, opened.windows()));
        modes
            .iter()
            .filter(|mode| mode.retrieves())
            .try_for_each(|mode| cut_queries(experiment, *mode, &opened, predictions, report))
    })?;
    if let Some(empty @ 1..) = predictions.map(|joined| joined.empty) {
        report
            .warnings
            .push(format!("{empty} of the predictions are empty texts"));
    }
    Ok(report)
}

fn cut_repository(experiment: &Experiment, name: &str, report: &mut Report) -> Result<()> {
    let path = experiment.layout.repo_windows(name);
    let (stamps, change) = (
        experiment.layout.note(&path, "stamps"),
        experiment.layout.note(&path, CHANGE),
    );
    let mut before = Before::read(&path, &stamps);
    let known = |path: &str, stamp: &Stamp| before.as_ref().is_some_and(|b| b.knows(path, stamp));
    let listing = Listing::read(&experiment.repos_dir, name, experiment.files(), known)?;
    let (files, noted) = Before::files(before.as_ref(), listing.files);
    report.problems.extend(listing.skipped);
    if files.is_empty() {
        report.problems.push(no_file(experiment, name));
    }
    report.warnings.extend(files.iter().filter_map(long_line));
    let shape = experiment.shape();
    let identity = experiment
        .shaped(Identity::new(RepoWindows::KIND))
        .parameter("repository", name)
        .input("repository", digest_of_files(&files));
    let state = artifact::state::<RepoWindows>(&path, &identity);
    before = before.filter(|before| match &state {
        State::Current(_) => true,
        State::Stale(_) => before.windows.shape == shape,
        State::Missing | State::Damaged(_) => false,
    });
    let header = report.settle(path, state, |_, path| {
        if let Some(before) = &mut before
            && let Ok((header, cut)) = before.cut_again(path, &identity, &files)
        {
            write_note(&change, &cut);
            return Ok(header);
        }
        let windows = cut_all(experiment, name, files)?;
        artifact::write(path, &identity, &windows)
    })?;
    let noted = Stamps {
        windows: header.checksum,
        files: noted,
    };
    if before.is_none_or(|before| before.stamps != noted) {
        write_note(&stamps, &noted);
    }
    Ok(())
}

/// Cuts all files, after reading them again where some are known by their stamps alone.
fn cut_all(experiment: &Experiment, name: &str, mut files: Vec<WindowFile>) -> Result<RepoWindows> {
    if files.iter().any(|file| !file.lines.is_read()) {
        let listing = Listing::read(&experiment.repos_dir, name, experiment.files(), |_, _| {
            false
        })?;
        files = Before::files(None, listing.files).0;
    }
    let shape = experiment.shape();
    Ok(RepoWindows::cut_files(name.to_owned(), files, shape))
}

/// The note about what a repository kept since it was cut before.
pub(super) const CHANGE: &str = "change";

/// The note about the files that windows were cut from.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamps {
    /// Checksum of the windows.
    windows: String,
    /// For each of their files how it can be known again.
    files: Vec<Option<Stamp>>,
}

/// The windows of the run before, from which the files that did not change are taken.
struct Before {
    header: Header,
    windows: RepoWindows,
    columns: Columns,
    texts: TextRanges,
    stamps: Stamps,
    /// Number of the file with this path.
    file: FxHashMap<String, usize>,
}

impl Before {
    /// `None` where there are none, or none to be trusted.
    fn read(path: &Path, stamps: &Path) -> Option<Self> {
        let stamps: Stamps = read_note(stamps)?;
        let (header, mut columns) = artifact::open(path).ok()?;
        let (windows, texts) = RepoWindows::outline(&mut columns).ok()?;
        let fit = header.checksum == stamps.windows
            && windows.files.len() == stamps.files.len()
            && windows.check().is_ok();
        let numbered = windows.files.iter().zip(0..);
        let file = numbered.map(|(file, n)| (file.path.clone(), n)).collect();
        fit.then_some(Self {
            header,
            windows,
            columns,
            texts,
            stamps,
            file,
        })
    }

    /// Whether a file is the one that it was. One that may hold a line too long to pass over in silence is read again.
    fn knows(&self, path: &str, stamp: &Stamp) -> bool {
        let stamped = self.file.get(path).and_then(|n| self.stamps.files[*n]);
        stamped == Some(*stamp) && stamp.size() <= LONG_LINE as u64
    }

    /// The files as they are now, those that were known without their texts, and their stamps.
    fn files(before: Option<&Self>, listed: Vec<Listed>) -> (Vec<WindowFile>, Vec<Option<Stamp>>) {
        let stamps = listed.iter().map(|file| file.stamp).collect();
        let files = listed.into_par_iter().map(|file| {
            let Listed { path, same_as, .. } = file;
            let known = before.and_then(|b| Some(&b.windows.files[*b.file.get(&path)?]));
            match (file.text, known) {
                (None, Some(known)) => WindowFile {
                    path,
                    same_as,
                    bytes: known.bytes,
                    digest: known.digest,
                    lines: known.lines.clone(),
                },
                (text, _) => WindowFile::new(path, same_as, text.unwrap_or_default()),
            }
        });
        (files.collect(), stamps)
    }

    /// Cuts the files as they are now, with a look at those alone that changed, and writes the windows; the texts of the
    /// others go from the old artifact to the new one.
    fn cut_again(
        &mut self,
        path: &Path,
        identity: &Identity,
        files: &[WindowFile],
    ) -> Result<(Header, Change)> {
        self.windows.read_hashes(&mut self.columns)?;
        let kept: Vec<Option<u32>> = files.iter().map(|file| self.kept(file)).collect();
        let mut wanted = self.windows.texts_to_cut_again(files, &kept);
        wanted.extend(self.changed(&kept));
        wanted.sort_unstable();
        wanted.dedup();
        self.windows
            .read_texts(&mut self.columns, &self.texts, Some(&wanted))?;
        let with_text = |(file, kept): (&WindowFile, &Option<u32>)| {
            let mut file = file.clone();
            if let (false, Some(old)) = (file.lines.is_read(), kept) {
                file.lines = self.windows.files[*old as usize].lines.clone();
            }
            file
        };
        let files = files.iter().zip(&kept).map(with_text).collect();
        let cut = self.windows.cut_again(files, &kept);
        let text = |number: usize| match (cut.files[number].lines.is_read(), kept[number]) {
            (false, Some(old)) => PieceSource::Kept(&self.columns, self.texts.begin(old as usize)),
            _ => PieceSource::Text(cut.files[number].lines.text()),
        };
        let columns = cut.columns_with(text);
        let columns = columns.map_err(|reason| self.columns.damaged(reason))?;
        let header = artifact::write_columns(path, identity, cut.len(), &columns)?;
        let (old, new) = (&*self.header.checksum, &*header.checksum);
        let change = Change::between((old, &self.windows), (new, &cut));
        Ok((header, change))
    }

    /// The number before of a file whose content is the same.
    fn kept(&self, file: &WindowFile) -> Option<u32> {
        let number = *self.file.get(&file.path)?;
        let old = &self.windows.files[number];
        let same = (old.digest, old.lines.count()) == (file.digest, file.lines.count());
        same.then_some(number as u32)
    }

    /// The files before that are not kept, some windows of which may be.
    fn changed(&self, kept: &[Option<u32>]) -> Vec<u32> {
        let mut stays = vec![false; self.windows.files.len()];
        kept.iter()
            .flatten()
            .for_each(|old| stays[*old as usize] = true);
        let numbered = (0..).zip(stays);
        numbered
            .filter(|(_, stays)| !stays)
            .map(|(old, _)| old)
            .collect()
    }
}

fn no_file(experiment: &Experiment, name: &str) -> Error {
    let language = experiment.layout.language.title();
    let reason = format!(
        "holds no {language} file that can be read, so nothing can be retrieved from it; put its files there, or \
         choose others with --repo"
    );
    Error::Repository {
        path: experiment.repos_dir.join(name),
        reason,
    }
}

fn cut_queries(
    experiment: &Experiment,
    mode: Mode,
    opened: &Opened,
    predictions: Option<&JoinedPredictions>,
    report: &mut Report,
) -> Result<()> {
    let (tasks, windows) = (experiment.tasks()?, opened.windows());
    let repository = windows.repository.as_str();
    let mut identity = experiment
        .shaped(Identity::new(QueryWindows::KIND))
        .parameter("repository", repository)
        .parameter("benchmark", &experiment.layout.benchmark)
        .parameter("mode", mode)
        .input("tasks", tasks.hole_digest(repository))
        .input("windows", &*opened.header.checksum);
    let cut = match (mode, predictions) {
        (Mode::Prediction, Some(joined)) => {
            identity = identity.input("predictions", joined.digest(tasks, repository));
            QueryWindows::cut_with_predictions(tasks, &joined.predictions, windows)
        }
        (Mode::Prediction, None) => {
            let reason = "mode rg-rg searches with predictions: name their file".into();
            return Err(Error::Parameter {
                name: "predictions",
                reason,
            });
        }
        _ => QueryWindows::cut(mode, tasks, windows),
    };
    // Cutting is cheap, and its complaints are due whether or not the artifact is current.
    report.problems.extend(cut.skipped);
    let path = experiment.layout.query_windows(mode, repository);
    report.ensure(path, &identity, |_| Ok(cut.queries))?;
    Ok(())
}

/// A line of more bytes than this fits no prompt of any model.
const LONG_LINE: usize = 1 << 20;

/// A warning for a file with a line that no prompt can hold.
fn long_line(file: &WindowFile) -> Option<String> {
    if !file.lines.is_read() || file.lines.text().len() <= LONG_LINE {
        return None;
    }
    let mut lines = file.lines.iter().zip(1..);
    let (line, number) = lines.find(|(line, _)| line.len() > LONG_LINE)?;
    let (path, length) = (&file.path, line.len());
    Some(format!(
        "{path}:{number}: a line of {length} bytes: its windows are searched, but fit no prompt; leave the file out if it is data"
    ))
}

/// A warning where tasks do not fit their files.
fn misfits(tasks: &TaskSet, windows: &RepoWindows) -> Option<String> {
    let of_it = tasks.of_repository(&windows.repository);
    let mut misfits =
        of_it.filter(|task| hole_lines(task, windows).is_ok_and(|lines| !fits(task, lines)));
    let first = misfits.next()?;
    Some(format!(
        "{}:{}: task {}: its prompt does not end where its hole begins, line {} (from 0) of {}; {} more tasks of {} do not \
         fit either; if they were made from another version of the repository, what is retrieved may hold their targets",
        tasks.path.display(),
        first.line,
        first.id,
        first.line_no,
        first.path,
        misfits.count(),
        windows.repository,
    ))
}
