//! Conversion of tasks between formats, with missing fields taken from the repositories.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustc_hash::FxHashMap;

use super::stream::{Conversion, Emit, each};
use crate::error::{Error, Result};
use crate::repository::corpus::repository_names;
use crate::task::{Format, Task};
use crate::text::lines::universal_newlines;

/// Source files of tasks, each read once.
#[derive(Debug)]
pub(crate) struct TaskFiles<'a> {
    repos_dir: &'a Path,
    /// Names of the repositories' folders.
    folders: Vec<String>,
    texts: FxHashMap<String, Result<String, String>>,
}

impl<'a> TaskFiles<'a> {
    pub(crate) fn below(repos_dir: &'a Path) -> Result<Self> {
        Ok(Self { repos_dir, folders: repository_names(repos_dir)?, texts: FxHashMap::default() })
    }

    /// Reads a task's file in text mode; the error says why it cannot be read. The task's path is changed to the folder of its
    /// repository.
    pub(crate) fn text(&mut self, task: &mut Task) -> Result<&str, String> {
        task.name_folder(&self.folders);
        if task.path.is_empty() {
            return Err(format!("{} names no file", task.format));
        }
        let path = self.repos_dir.join(&task.path);
        let text = self.texts.entry(task.path.clone()).or_insert_with(|| {
            let bytes =
                fs::read(&path).map_err(|e| format!("{}: cannot be read: {e}", path.display()))?;
            let text =
                String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8", path.display()))?;
            Ok(universal_newlines(text))
        });
        text.as_deref().map_err(Clone::clone)
    }
}

/// Converts tasks to a format; see [`Task::to_format`]. Missing fields are taken from `repos_dir`: if the target format needs
/// them, a file that cannot be read or has other text is an error.
///
/// # Errors
/// The file or the repositories cannot be read, or an error of `emit`.
pub fn tasks(
    path: &Path,
    to: Format,
    repos_dir: Option<&Path>,
    emit: &mut Emit<'_>,
) -> Result<Conversion> {
    let mut files = repos_dir.map(TaskFiles::below).transpose()?;
    let (mut left_out, mut lacking) = (BTreeMap::<_, usize>::new(), BTreeMap::<_, usize>::new());
    let mut conversion = each(path, emit, |at, object| {
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
    let tasks = |count| {
        if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
    };
    for (name, count) in left_out {
        let of = tasks(count);
        conversion.warnings.push(format!("'{name}' of {of} is dropped: {to} has no such field"));
    }
    for (name, count) in lacking {
        let of = tasks(count);
        conversion.warnings.push(format!(
            "'{name}' of {of} is unknown and not written; a folder of repositories would supply it"
        ));
    }
    Ok(conversion)
}

/// Whether nothing needs to be taken from its file.
fn is_whole(task: &Task) -> bool {
    task.full_left_context.is_some() && task.full_right_context.is_some()
}
