//! Tasks from one format to another, with what is missing taken from the repositories.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustc_hash::FxHashMap;

use super::{Emit, Outcome, count, each};
use crate::error::{Error, Result};
use crate::repository::corpus::repository_names;
use crate::task::{Format, Task};
use crate::text::lines::universal_newlines;

/// The source files of tasks, each read once.
#[derive(Debug)]
pub(crate) struct Files<'a> {
    repos_dir: &'a Path,
    /// The repositories' folders.
    folders: Vec<String>,
    texts: FxHashMap<String, Result<String, String>>,
}

impl<'a> Files<'a> {
    pub(crate) fn below(repos_dir: &'a Path) -> Result<Self> {
        Ok(Self {
            repos_dir,
            folders: repository_names(repos_dir)?,
            texts: FxHashMap::default(),
        })
    }

    /// The text of a task's file as text mode reads it; in words why it cannot be read. The task is told the folder that
    /// its repository has here.
    pub(crate) fn text(&mut self, task: &mut Task) -> Result<&str, String> {
        task.name_folder(&self.folders);
        if task.path.is_empty() {
            return Err(format!("{} names no file", task.format));
        }
        let path = self.repos_dir.join(&task.path);
        let text = self.texts.entry(task.path.clone()).or_insert_with(|| {
            let bytes =
                fs::read(&path).map_err(|e| format!("{}: cannot be read: {e}", path.display()))?;
            match String::from_utf8(bytes) {
                Ok(text) => Ok(universal_newlines(text)),
                Err(_) => Err(format!("{}: is not UTF-8", path.display())),
            }
        });
        text.as_deref().map_err(Clone::clone)
    }
}

/// Converts tasks to a format; see [`Task::to_format`]. What their records do not have is taken from `repos_dir`: where the
/// target cannot do without, a file that cannot be read or has other text is an error.
///
/// # Errors
/// The file or the repositories cannot be read, or an error of `emit`.
pub fn tasks(
    path: &Path,
    to: Format,
    repos_dir: Option<&Path>,
    emit: &mut Emit<'_>,
) -> Result<Outcome> {
    let mut files = repos_dir.map(Files::below).transpose()?;
    let (mut left_out, mut lacking) = (BTreeMap::new(), BTreeMap::new());
    let mut outcome = each(path, emit, |at, object| {
        let mut task = Task::from_record(path, at, object)?;
        let mut not_filled = None;
        if let Some(files) = &mut files
            && to != task.format
        {
            let (row, text) = (task.row, files.text(&mut task).map(str::to_owned));
            debug_assert_eq!(row, task.row);
            let wanted = to != Format::RepoEval && !is_whole(&task);
            not_filled = match text {
                Ok(text) if wanted => task.fill(&text).err(),
                Ok(_) => None,
                Err(reason) => wanted.then_some(reason),
            };
        }
        let written = task.to_format(to).map_err(|reason| Error::Task {
            path: path.to_owned(),
            line: at.line,
            task_id: task.id.clone(),
            reason: not_filled.unwrap_or(reason),
        })?;
        for name in written.left_out {
            *left_out.entry(name).or_default() += 1;
        }
        for name in written.lacking {
            *lacking.entry(name).or_default() += 1;
        }
        Ok(Some(written.record))
    })?;
    for (name, tasks) in left_out {
        let tasks = count(tasks, "task");
        outcome.warnings.push(format!(
            "'{name}' of {tasks} is left out: {to} has no place for it"
        ));
    }
    for (name, tasks) in lacking {
        let tasks = count(tasks, "task");
        outcome.warnings.push(format!(
            "'{name}' of {tasks} is not known and not written; --repos-dir takes it from the files"
        ));
    }
    Ok(outcome)
}

/// Whether nothing about its file is to be found out.
fn is_whole(task: &Task) -> bool {
    task.full_left_context.is_some() && task.full_right_context.is_some()
}
