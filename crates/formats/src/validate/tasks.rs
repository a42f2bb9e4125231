//! Validation of tasks, beyond the types of their fields.

use repoformer_core::task::cross_file::CrossFile;
use repoformer_core::task::kind::RecordKind;
use repoformer_core::task::{Format, NO_TARGET, Task};
use repoformer_store::jsonl::{Object, RecordAddress};
use repoformer_text::counts::format_count;
use repoformer_text::lines::{Lines, is_space, line_ends, strip};

use super::function_level::{is_function_level, is_stripped};
use super::{Severity, Validator, reason};
use Severity::{Error, Note};

impl Validator<'_> {
    /// Checks a task whose fields have the right types.
    pub(super) fn task(
        &mut self,
        at: RecordAddress,
        format: Format,
        object: Object,
        id: Option<String>,
    ) {
        let task = match Task::from_record(self.path, at, object) {
            Ok(task) => task,
            Err(error) => return self.find(at.line, id, Error, reason(error)),
        };
        let kind = RecordKind::Task(format);
        let has_released_id = self.function_level.see(&task, at.line);
        if format.is_written()
            && !has_released_id
            && let Some(first) = self.seen_before(kind, task.id.clone(), at.line)
        {
            let reason =
                format!("its id equals that of line {first}; tasks are identified by their row");
            self.find(at.line, id.clone(), Note, reason);
        }
        for (severity, reason) in findings(&task, has_released_id) {
            self.find(at.line, id.clone(), severity, reason);
        }
        self.beside_file(at.line, task, id);
    }

    /// Compares a task with its file, if the repositories are given.
    fn beside_file(&mut self, line: usize, mut task: Task, id: Option<String>) {
        let Some(files) = &mut self.files else {
            return;
        };
        let found = match files.text(&mut task) {
            Err(reason) => Some((Error, reason)),
            Ok(file) => match task.hole_in(file) {
                Err(reason) => Some((Error, reason)),
                Ok(hole) => {
                    let text = file.text();
                    around(&task, &text[..hole.start], &text[hole.end..])
                }
            },
        };
        if let Some((severity, reason)) = found {
            self.find(line, id, severity, reason);
        }
    }
}

/// Compares the text around a hole in its file with the task.
fn around(task: &Task, before: &str, after: &str) -> Option<(Severity, String)> {
    let joined = |text: &str| Lines::new(text).text().to_owned();
    let end = |text: &str| {
        if is_stripped(task) { joined(text.trim_end_matches(is_space)) } else { joined(text) }
    };
    let prompt = &*task.prompt;
    // A line break has at most three bytes, so that the end of the text suffices.
    let tail = |text: &str| {
        let text = if is_stripped(task) { text.trim_end_matches(is_space) } else { text };
        text[text.floor_char_boundary(text.len().saturating_sub(3 * prompt.len() + 3))..].to_owned()
    };
    let right = task.right_context.as_ref();
    let (whole_left, whole_right) = (&task.full_left_context, &task.full_right_context);
    let different = [
        ("prompt", !before.ends_with(prompt) && !end(&tail(before)).ends_with(&end(prompt))),
        ("full_left_context", whole_left.as_ref().is_some_and(|left| left != before)),
        ("right_context", right.is_some_and(|right| !after.starts_with(right.as_str()))),
        ("full_right_context", whole_right.as_ref().is_some_and(|right| right != after)),
    ];
    let (name, _) = different.into_iter().find(|(_, differs)| *differs)?;
    Some((Note, format!("'{name}' differs from {}", task.path)))
}

fn findings(task: &Task, has_released_id: bool) -> Vec<(Severity, String)> {
    let mut found = Vec::new();
    let mut find = |severity, reason: &str| found.push((severity, reason.to_owned()));
    if strip(&task.ground_truth).is_empty() {
        find(Note, NO_TARGET);
    }
    if task.prompt.is_empty() {
        find(Note, "no left context: its prompt is empty");
    }
    let hub_name = |name: &str| name.split('/').next().is_some_and(|name| name.contains("--"));
    for (what, name) in [("id", &task.id), ("repository", &task.repository)] {
        if hub_name(name) && !(what == "id" && has_released_id) {
            let folder = task.repository.replace("--", "_");
            let reason = format!(
                "its {what} has the name used on the Hugging Face hub, {name:?}; the folder is {folder:?}"
            );
            find(Note, &reason);
        }
    }
    if task.cross_file.as_ref().is_some_and(CrossFile::is_empty) {
        find(Note, "its 'crossfile_context' is empty");
    }
    if task.right_context.as_ref().is_some_and(|right| right.is_empty()) {
        find(Note, "no right context: 'right_context' is empty");
    }
    if let Some(left) = &task.full_left_context
        && task.format != Format::RepoBench
        && !left.ends_with(&*task.prompt)
    {
        find(Note, "'full_left_context' does not end with 'prompt'");
    }
    if let (Some(whole), Some(right)) = (&task.full_right_context, &task.right_context)
        && !whole.starts_with(right.as_str())
    {
        find(Note, "'full_right_context' does not begin with 'right_context'");
    }
    let (shown, between) = (line_ends(&task.prompt), task.line_no - task.context_start);
    if matches!(task.format, Format::RepoEval | Format::CrossCodeEval)
        && shown != between
        && !(is_function_level(task) && is_stripped(task))
    {
        let (start, end) = (task.context_start, task.line_no);
        let reason = format!(
            "its prompt ends {}, but from line {start} to {end} there are {between}",
            format_count(shown as u64, "line")
        );
        find(Note, &reason);
    }
    found
}
