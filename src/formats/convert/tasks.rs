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
            let text = files.text(&mut task).map(str::to_owned);
            let wanted = to != Format::RepoEval
                && !(task.full_left_context.is_some() && task.full_right_context.is_some());
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
        for (counts, names) in [(&mut left_out, written.left_out), (&mut lacking, written.lacking)]
        {
            names.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
        }
        Ok(Some(written.record))
    })?;
    let tasks = |count| match count {
        1 => "1 task".to_owned(),
        _ => format!("{count} tasks"),
    };
    let left_out = left_out.into_iter().map(|(name, count)| {
        format!("'{name}' of {} is dropped: {to} has no such field", tasks(count))
    });
    let lacking = lacking.into_iter().map(|(name, count)| {
        let of = tasks(count);
        format!(
            "'{name}' of {of} is unknown and not written; a folder of repositories would supply it"
        )
    });
    conversion.warnings = left_out.chain(lacking).collect();
    Ok(conversion)
}
