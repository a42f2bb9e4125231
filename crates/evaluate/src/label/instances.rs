//! Files of instances, read in batches: only a few hundred instances are in memory at a time.

use std::path::Path;

use repoformer_core::label::Label;
use repoformer_core::postprocess::{TASKS_CHECKED_FOR_BODIES, are_function_bodies};
use repoformer_core::repository::{Shard, parallel};
use repoformer_core::task::kind::RecordKind;
use repoformer_core::task::{Task, TaskSet};
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{self, Object, Reader, RecordAddress};
use repoformer_store::progress::Work;

/// Greatest number of instances in memory at once.
const INSTANCES_AT_ONCE: usize = 512;
/// Greatest total size in bytes of their records.
const BYTES_AT_ONCE: usize = 32 << 20;

/// A file of instances, or of tasks of any benchmark.
pub(super) struct Instances<'a> {
    path: &'a Path,
    pub(super) shard: Shard,
    /// Instances of all shards, without their texts.
    pub(super) tasks: TaskSet,
    /// The first instances, with their texts.
    pub(super) first: Vec<Task>,
}

/// Some of the shard's instances, as tasks and as labels without judgement.
pub(super) struct Batch {
    pub(super) tasks: Vec<Task>,
    pub(super) labels: Vec<Label>,
    /// Index of each among all instances.
    pub(super) places: Vec<usize>,
    /// Number of instances that were read, including the instances of other shards.
    read: usize,
}

impl<'a> Instances<'a> {
    /// Reads the instances without their texts.
    pub(super) fn read(path: &'a Path, shard: Shard, problems: &mut Vec<Error>) -> Result<Self> {
        let (mut tasks, mut first, mut marks) = (Vec::new(), Vec::new(), Vec::new());
        problems.extend(jsonl::for_each(path, |at, object| {
            let (mut task, _) = instance(path, at, object)?;
            if first.len() < TASKS_CHECKED_FOR_BODIES {
                first.push(task.clone());
            }
            marks.push(task.hole_mark());
            task.forget_texts();
            tasks.push(task);
            Ok(())
        })?);
        Ok(Self { path, shard, tasks: TaskSet::with_marks(path.to_owned(), tasks, marks), first })
    }

    /// Returns true if instances of unknown kind are function bodies.
    pub(super) fn are_bodies(&self) -> bool {
        are_function_bodies(&self.first)
    }

    /// Reads the shard's instances again, with their texts, and passes them on in batches, in order.
    pub(super) fn for_each_batch(&self, take: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
        let work = Work::new("label judge", "instances", self.tasks.tasks().len());
        let mut reader = Reader::open(self.path)?;
        let mut first = 0;
        while let Some(batch) = self.batch(&mut reader, first)? {
            work.advance(batch.read);
            first += batch.read;
            take(batch)?;
        }
        Ok(())
    }

    /// Reads the next instances, starting at index `first`; `None` at the end of the file.
    fn batch(&self, reader: &mut Reader<'_>, first: usize) -> Result<Option<Batch>> {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while lines.len() < INSTANCES_AT_ONCE
            && bytes < BYTES_AT_ONCE
            && let Some((at, line)) = reader.next_record()?
        {
            bytes += line.len();
            lines.push((at, line.to_owned()));
        }
        if lines.is_empty() {
            return Ok(None);
        }
        let read = parallel::map(lines, |(at, line)| {
            let object = jsonl::parse(self.path, at.line, &line);
            // Problems of the other records were reported when the file was first read.
            object.and_then(|object| instance(self.path, at, object)).ok()
        });
        let mut batch = Batch { tasks: vec![], labels: vec![], places: vec![], read: 0 };
        for (task, label) in read.into_iter().flatten() {
            let place = first + batch.read;
            let before = self.tasks.tasks().get(place);
            if before.is_none_or(|before| (before.row, &before.id) != (task.row, &task.id)) {
                let hint = "run the command again when no other program writes to the file";
                return Err(Error::artifact(self.path, "was changed while it was read", hint));
            }
            batch.read += 1;
            if self.shard.holds(&task.repository) {
                batch.tasks.push(task);
                batch.labels.push(label);
                batch.places.push(place);
            }
        }
        Ok(Some(batch))
    }
}

/// Reads a record as a task and as a label without judgement.
fn instance(path: &Path, at: RecordAddress, object: Object) -> Result<(Task, Label)> {
    let label = match RecordKind::from_record(&object) {
        Some(RecordKind::Label) => Some(Label::read(path, at.line, object.clone())?),
        _ => None,
    };
    let task = Task::from_record(path, at, object)?;
    let label = label.unwrap_or_else(|| Label::of_task(&task));
    Ok((task, label))
}
