//! Conversion of tasks between formats, with missing fields taken from the repositories.

use std::collections::BTreeMap;
use std::path::Path;

use repoformer_core::task::kind::RecordKind;
use repoformer_core::task::{Format, Task, TaskFiles};
use repoformer_store::error::{Error, Result};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};

use super::gold::Gold;
use super::stream::{Conversion, Emit, dropped_field_warnings, each};
use super::{deveval, repoexec};

/// Converts tasks to a format; see [`Task::to_format`]. Records of DevEval, EvoCodeBench and RepoExec become tasks of
/// `repos_dir`. Missing fields are taken from `repos_dir`: if the target format needs them, a file that cannot be read, or that
/// has another text, is an error.
///
/// # Errors
/// The file or the repositories cannot be read, or `emit` returns an error.
pub fn tasks(
    path: &Path,
    to: Format,
    repos_dir: Option<&Path>,
    emit: &mut Emit<'_>,
) -> Result<Conversion> {
    let mut files = repos_dir.map(TaskFiles::below).transpose()?;
    let (mut left_out, mut lacking) = (BTreeMap::<_, usize>::new(), BTreeMap::<_, usize>::new());
    let mut gold = Gold::default();
    let mut conversion = each(path, emit, |at, object| {
        let mut task = match RecordKind::from_record(&object) {
            Some(RecordKind::DevEval) => {
                deveval::task(&mut gold, path, at, object, files.as_mut())?
            }
            Some(RecordKind::RepoExec) => {
                repoexec::task(&mut gold, path, at, object, files.as_mut())?
            }
            _ => Task::from_record(path, at, object)?,
        };
        let mut not_filled = None;
        if let Some(files) = &mut files
            && to != task.format
        {
            let file = files.text(&mut task);
            let wanted = to != Format::RepoEval
                && !(task.full_left_context.is_some() && task.full_right_context.is_some());
            not_filled = match file {
                Ok(file) if wanted => task.fill(file).err(),
                Ok(_) => None,
                Err(reason) => wanted.then_some(reason),
            };
        }
        let written = task.to_format(to).map_err(|reason| Error::Task {
            path: path.to_owned(),
            line: at.line,
            task_id: task.id.clone(),
            reason: not_filled.map_or(reason, Message::from),
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
    let left_out = dropped_field_warnings(left_out, "task", to.name());
    let lacking = lacking.into_iter().map(|(name, count)| {
        let of = tasks(count);
        message![
            format!("'{name}' of {of} is unknown and not written; a "),
            UserChoice::RepositoriesFolder,
            " would supply it"
        ]
    });
    conversion.warnings = left_out.map(Message::from).chain(lacking).collect();
    conversion.notes.extend(gold.note());
    Ok(conversion)
}
