//! Steps of grouping; steps that were already done are skipped.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use repoformer_core::repository::parallel;
use repoformer_core::task::TaskSet;
use repoformer_store::artifact::OutputFile;
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_store::manifest::digest_of;
use repoformer_store::progress::Work;
use repoformer_text::language::Language;
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::decontaminate::Contamination;
use super::duplicates::{Dedup, Duplicate, Facts, Reason, duplicates};
use super::inputs::{self, Input, change_error};
use super::repositories::{GroupedRepository, RepositoryStream};
use super::rows::{Problem, RowSettings, Rows, Tally};
use super::spill::{Merge, Section, Spill};
use super::work::{DROPPED, PLAN, Plan, RECORD, WorkFolder, read_document, write_document};
use super::write::{Counts, GroupExclusions, GroupRecord, ShardDone, is_there, write_shard};

/// Format of the record and of the work folder.
const FORMAT: u64 = 2;
/// Greatest number of bytes of waiting rows in memory, over all threads.
const WAITING: usize = 256 << 20;
/// Least and greatest number of bytes of waiting rows in one thread.
const WAITING_EACH: (usize, usize) = (4 << 20, 64 << 20);
/// Greatest number of files that all threads together may open.
const OPEN_FILES: usize = 512;
/// Greatest size in bytes, and number, of small inputs that are read together.
const UNIT: (u64, usize) = (64 << 20, 1000);

/// Inputs, output and settings of a grouping.
#[derive(Debug, Clone)]
pub struct Grouping {
    /// Files, folders and patterns.
    pub inputs: Vec<PathBuf>,
    /// Folder of the shards.
    pub output: PathBuf,
    /// Number of shards, at least 1.
    pub shards: u64,
    /// Language of the files; `None` for all known ones.
    pub language: Option<Language>,
    /// Duplicates to drop.
    pub dedup: Dedup,
    /// Benchmarks whose repositories and targets are left out.
    pub benchmarks: Vec<TaskSet>,
    /// Greatest size of a repository in bytes.
    pub max_repository: u64,
}

/// Result of a grouping.
#[derive(Debug)]
pub struct GroupSummary {
    /// Record; `None` if no file could be used, so that nothing was written.
    pub record: Option<GroupRecord>,
    /// True if an earlier run had already completed the grouping.
    pub is_known: bool,
    /// Number of input files that an earlier run had read.
    pub resumed: usize,
    /// Files in folders that do not have a table's extension.
    pub others: Vec<PathBuf>,
    /// Links in folders that lead out of them, and are not read.
    pub links: Vec<PathBuf>,
    /// Tasks whose targets have too few words to be found in files: their number, and the first.
    pub unchecked: Option<(usize, String)>,
    /// Notes on archives.
    pub notes: Vec<String>,
    /// Broken rows and files: the first ones of each input.
    pub problems: Vec<Error>,
}

/// Inputs that were read, and the positions of their rows.
#[derive(Debug, Serialize, Deserialize)]
struct UnitDone {
    sections: Vec<Section>,
    tally: Tally,
}

/// Groups the files of rows into repositories, and writes them in shards: raw records ordered by name, compressed, and
/// `group.json` last. The output depends only on the inputs' content and order and on the settings.
///
/// # Errors
/// An input does not exist, the output folder cannot be written, or the folder contains the output or work of other inputs or
/// settings.
pub fn group(grouping: &Grouping) -> Result<GroupSummary> {
    let output = &grouping.output;
    let listed = inputs::list(&grouping.inputs, output)?;
    let work = WorkFolder::open(output)?;
    let contamination = Contamination::new(&grouping.benchmarks);
    let mut unchecked = contamination.unchecked_tasks();
    let first = unchecked.next();
    let mut summary = GroupSummary {
        unchecked: first.map(|first| (1 + unchecked.count(), first.to_string())),
        record: None,
        is_known: false,
        resumed: 0,
        others: listed.others,
        links: listed.links,
        notes: Vec::new(),
        problems: Vec::new(),
    };
    let record: Option<GroupRecord> = read_document(&output.join(RECORD))?;
    let earlier: Option<Plan> = work.read(PLAN)?;
    let known = earlier.as_ref().map_or(&[][..], |plan| &plan.inputs);
    let described = inputs::describe(&listed.files, known)?;
    let plan = Plan { settings: grouping.settings()?, inputs: described };
    if let Some(record) = record {
        let done = Plan { settings: record.settings.clone(), inputs: record.inputs.clone() };
        // A killed program may have left work.
        work.remove()?;
        check_done(output, &plan, &done, &record)?;
        return Ok(GroupSummary { record: Some(record), is_known: true, ..summary });
    }
    if let Err(error) = work.begin(&plan, earlier.as_ref()) {
        if earlier.is_none() {
            work.remove()?;
        }
        return Err(error);
    }
    let units = read_inputs(grouping, &plan, &listed.files, &work, &mut summary)?;
    let mut counts = Counts::default();
    for (_, unit) in &units {
        counts.rows += unit.tally.rows;
        counts.other_languages += unit.tally.other_languages;
        counts.marked += unit.tally.marked;
        counts.broken += unit.tally.broken;
        summary.notes.extend(unit.tally.notes.iter().cloned());
        let problems = unit.tally.problems.iter().cloned();
        summary.problems.extend(problems.map(Problem::into_error));
    }
    if units.iter().all(|(_, unit)| unit.tally.taken == 0) {
        work.remove()?;
        return Ok(summary);
    }
    let shards = Shards { grouping, units: &units, work: &work, contamination: &contamination };
    let dropped = shards.read_dropped()?;
    let done = shards.write(&dropped)?;
    for one in &done {
        counts.repositories += one.shard.repositories;
        counts.files += one.shard.files;
        counts.repeated += one.repeated;
        counts.conflicting += one.conflicting;
        counts.broken += one.problems.len() as u64;
        summary.problems.extend(one.problems.iter().cloned().map(Problem::into_error));
    }
    let of = |reason| dropped.iter().filter(|one| one.reason == reason).count() as u64;
    counts.exact_duplicates = of(Reason::ExactDuplicate);
    counts.near_duplicates = of(Reason::NearDuplicate);
    let is_file = |one: &&Duplicate| one.filepath.is_some();
    counts.contaminated_files = dropped.iter().filter(is_file).count() as u64;
    counts.contaminated_repositories = of(Reason::Contaminated) - counts.contaminated_files;
    let dropped = write_dropped(&output.join(DROPPED), &dropped)?;
    // File times are not part of the result.
    let inputs = plan.inputs.into_iter().map(|input| Input { modified: None, ..input }).collect();
    let shards = done.into_iter().map(|one| one.shard).collect();
    let record =
        GroupRecord { format: FORMAT, settings: plan.settings, inputs, counts, shards, dropped };
    write_document(&output.join(RECORD), &record)?;
    work.remove()?;
    summary.record = Some(record);
    Ok(summary)
}

impl Grouping {
    /// Returns the settings that the output depends on.
    fn settings(&self) -> Result<serde_json::Value> {
        let digest = |set: &TaskSet| digest_of(&set.path).map(|content| content.digest);
        let benchmarks = self.benchmarks.iter().map(digest).collect::<Result<Vec<_>>>()?;
        Ok(json!({
            "format": FORMAT,
            // The selection of code files, and their comparison, may change between versions.
            "program": env!("CARGO_PKG_VERSION"),
            "shards": self.shards,
            "language": self.language.map_or("all", Language::name),
            "dedup": self.dedup.name(),
            "decontaminate": benchmarks,
            "max-repository": self.max_repository,
        }))
    }
}

/// Checks that finished output is complete and belongs to this plan.
fn check_done(output: &Path, plan: &Plan, done: &Plan, record: &GroupRecord) -> Result<()> {
    let hint = message![
        "remove its shards and group.json to rebuild them, or choose another ",
        UserChoice::OutputPath
    ];
    if let Some(difference) = plan.difference(done) {
        let reason = format!("holds repositories {difference}");
        return Err(Error::artifact(output, reason, hint));
    }
    let are_there = parallel::map(&record.shards, |shard| is_there(shard, output));
    let lost = record.shards.iter().zip(are_there).find(|(_, is_there)| !is_there);
    let dropped = digest_of(&output.join(DROPPED)).is_ok_and(|it| it.digest == record.dropped);
    let lost = match lost {
        Some((shard, _)) => &shard.name,
        None if !dropped => DROPPED,
        None => return Ok(()),
    };
    let reason = "is missing or was changed";
    Err(Error::artifact(&output.join(lost), reason, hint))
}

/// Divides inputs into units that are read together: consecutive small ones.
fn units(inputs: &[Input]) -> Vec<std::ops::Range<usize>> {
    let (mut units, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (number, input) in inputs.iter().enumerate() {
        let is_full = bytes + input.bytes > UNIT.0 || number - begin >= UNIT.1;
        if number > begin && is_full {
            units.push(begin..number);
            (begin, bytes) = (number, 0);
        }
        bytes += input.bytes;
    }
    units.push(begin..inputs.len());
    units
}

/// Reads the remaining inputs, and returns the files with their rows.
fn read_inputs(
    grouping: &Grouping,
    plan: &Plan,
    paths: &[PathBuf],
    work: &WorkFolder,
    summary: &mut GroupSummary,
) -> Result<Vec<(PathBuf, UnitDone)>> {
    let progress = Work::new("group: reading", "inputs", plan.inputs.len());
    let has_failed = AtomicBool::new(false);
    let units = units(&plan.inputs);
    let all = parallel::map(units.into_iter().enumerate(), |(number, inputs)| {
        let name = format!("unit-{:05}", number + 1);
        let (document, rows) = (format!("{name}.json"), work.at(&format!("{name}.rows")));
        if let Some(done) = work.read(&document)? {
            progress.advance_kept(inputs.len());
            return Ok(Some((rows, done, inputs.len())));
        }
        // If one unit cannot be written, neither can the others.
        if has_failed.load(Relaxed) {
            return Ok(None);
        }
        let unpack_in = work.at(&format!("{name}.folder"));
        let read: Result<_> = inputs.clone().try_fold(None, |spill, number| {
            let spill = match spill {
                Some(spill) => spill,
                None => (Spill::create(&rows, grouping.shards, waiting())?, Tally::default()),
            };
            let read = grouping.read(&paths[number], number as u64, spill, &unpack_in)?;
            check_unchanged(&paths[number], &plan.inputs[number])?;
            progress.advance(1);
            Ok(Some(read))
        });
        let written = read.and_then(|read| {
            let Some((spill, tally)) = read else { return Ok(None) };
            let done = UnitDone { sections: spill.finish()?, tally };
            work.write(&document, &done)?;
            Ok(Some((rows.clone(), done, 0)))
        });
        if written.is_err() {
            has_failed.store(true, Relaxed);
            // Frees disk space.
            let _ = files::remove_file(&rows);
        }
        written
    });
    let mut done = Vec::new();
    for unit in all {
        if let Some((rows, unit, resumed)) = unit? {
            summary.resumed += resumed;
            done.push((rows, unit));
        }
    }
    Ok(done)
}

/// Returns the number of bytes of waiting rows in one thread's memory.
fn waiting() -> usize {
    (WAITING / rayon::current_num_threads().max(1)).clamp(WAITING_EACH.0, WAITING_EACH.1)
}

fn check_unchanged(path: &Path, input: &Input) -> Result<()> {
    if inputs::state(path)? == (input.bytes, input.modified) {
        Ok(())
    } else {
        Err(change_error(path))
    }
}

impl Grouping {
    /// Reads the rows of one input.
    fn read(
        &self,
        path: &Path,
        number: u64,
        (mut spill, tally): (Spill, Tally),
        unpack_in: &Path,
    ) -> Result<(Spill, Tally)> {
        let settings = RowSettings { language: self.language, max_repository: self.max_repository };
        let mut row = 0;
        let mut emit = |file: super::rows::FileRow<'_>| {
            row += 1;
            spill.add(file, number, row)
        };
        let mut rows = Rows::new(path, settings, tally, &mut emit);
        rows.read(unpack_in)?;
        let tally = rows.tally;
        Ok((spill, tally))
    }
}

/// Shards during merging and writing.
struct Shards<'a> {
    grouping: &'a Grouping,
    units: &'a [(PathBuf, UnitDone)],
    work: &'a WorkFolder,
    contamination: &'a Contamination,
}

/// Facts about the repositories of a shard, before any is dropped as a duplicate.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ShardFacts {
    repositories: Vec<Facts>,
    dropped: Vec<Duplicate>,
}

impl Shards<'_> {
    fn name(index: u64) -> String {
        format!("shard-{:05}", index + 1)
    }

    /// Returns the repositories of a shard.
    fn repositories(&self, index: u64) -> Result<RepositoryStream> {
        let mut sections = Vec::new();
        for (path, unit) in self.units {
            let of_shard = unit.sections.iter().filter(|section| section.shard == index);
            sections.extend(of_shard.map(|section| (path.clone(), section.clone())));
        }
        let at_once = (OPEN_FILES / rayon::current_num_threads().max(1)).clamp(8, 64);
        let folder = self.folder(index);
        let rows = Merge::open(sections, at_once, &folder)?;
        Ok(RepositoryStream::new(rows, self.grouping.max_repository))
    }

    /// Returns the folder of intermediate merges.
    fn folder(&self, index: u64) -> PathBuf {
        self.work.at(&format!("{}.merged", Self::name(index)))
    }

    fn remove_folder(&self, index: u64) {
        // The rest is removed with the work folder.
        let _ = files::remove_dir_all(self.folder(index));
    }

    /// Processes each shard, until one fails.
    fn each<T: Send>(&self, label: &str, of: impl Fn(u64) -> Result<T> + Sync) -> Result<Vec<T>> {
        let progress = Work::new(label, "shards", self.grouping.shards as usize);
        let has_failed = AtomicBool::new(false);
        let done = parallel::map(0..self.grouping.shards, |index| {
            if has_failed.load(Relaxed) {
                return Ok(None);
            }
            let done = of(index);
            has_failed.fetch_or(done.is_err(), Relaxed);
            progress.advance(1);
            done.map(Some)
        });
        let done: Vec<Option<T>> = done.into_iter().collect::<Result<_>>()?;
        Ok(done.into_iter().flatten().collect())
    }

    /// Returns the dropped repositories and files, in order.
    fn read_dropped(&self) -> Result<Vec<Duplicate>> {
        if self.grouping.dedup == Dedup::None && self.grouping.benchmarks.is_empty() {
            return Ok(Vec::new());
        }
        let (mut facts, mut dropped) = (Vec::new(), Vec::new());
        for shard in self.each("group: comparing", |index| self.describe(index))? {
            facts.extend(shard.repositories);
            dropped.extend(shard.dropped);
        }
        dropped.extend(duplicates(facts, self.grouping.dedup));
        dropped.sort();
        Ok(dropped)
    }

    /// Drops the repository, or some of its files, if a benchmark contains them.
    fn decontaminate(&self, repository: &mut GroupedRepository, dropped: &mut Vec<Duplicate>) {
        let GroupedRepository { name, files, .. } = repository;
        let mut leaks = |filepath: Option<&str>, of: String| {
            let filepath = filepath.map(str::to_owned);
            dropped.push(Duplicate {
                repo_name: name.clone(),
                filepath,
                reason: Reason::Contaminated,
                of,
            });
        };
        if let Some(leak) = self.contamination.repository(name) {
            leaks(None, leak.to_string());
            files.clear();
        }
        files.retain(|(path, text)| match self.contamination.file(text) {
            Some(leak) => {
                leaks(Some(path), leak.to_string());
                false
            }
            None => true,
        });
    }

    fn describe(&self, index: u64) -> Result<ShardFacts> {
        let document = format!("{}.facts.json", Self::name(index));
        if let Some(described) = self.work.read(&document)? {
            return Ok(described);
        }
        let mut stream = self.repositories(index)?;
        let mut described = ShardFacts::default();
        while let Some(mut repository) = stream.next()? {
            self.decontaminate(&mut repository, &mut described.dropped);
            if !repository.files.is_empty() {
                described.repositories.push(Facts::new(&repository, self.grouping.dedup));
            }
        }
        self.remove_folder(index);
        self.work.write(&document, &described)?;
        Ok(described)
    }

    /// Writes all shards.
    fn write(&self, dropped: &[Duplicate]) -> Result<Vec<ShardDone>> {
        let leaving = GroupExclusions::new(dropped);
        let output = &self.grouping.output;
        self.each("group: writing", |index| {
            let document = format!("{}.json", Self::name(index));
            if let Some(done) = self.work.read::<ShardDone>(&document)?
                && done.is_there(output)
            {
                return Ok(done);
            }
            let name = format!("{}-of-{:05}.jsonl.zst", Self::name(index), self.grouping.shards);
            let done = write_shard(self.repositories(index)?, &leaving, output, name)?;
            self.remove_folder(index);
            self.work.write(&document, &done)?;
            Ok(done)
        })
    }
}

/// Writes the list of dropped repositories and files, and returns its digest.
fn write_dropped(path: &Path, dropped: &[Duplicate]) -> Result<String> {
    let mut file = OutputFile::create(path)?;
    for one in dropped {
        let line = serde_json::to_string(one)
            .map_err(|e| Error::writing(path, "write this file", e.into()))?;
        file.write(format!("{line}\n").as_bytes())?;
    }
    file.finish()?;
    Ok(digest_of(path)?.digest)
}
