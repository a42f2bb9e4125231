//! Form in which RepoEval's function-level tasks were released.

use repoformer_core::task::Task;
use repoformer_text::lines::{is_space, line_ends};

/// Properties of RepoEval's function-level files, reported once for all tasks of a file that have them.
#[derive(Default)]
pub(super) struct FunctionLevel {
    /// Line of the first such task, and the number of such tasks.
    tasks: Option<(usize, usize)>,
    released_ids: bool,
    stripped: bool,
}

impl FunctionLevel {
    /// Records a task that names its line in the way of function-level files. Returns true if its id is shared by all tasks of
    /// its repository in these files.
    pub(super) fn see(&mut self, task: &Task, line: usize) -> bool {
        if !is_function_level(task) {
            return false;
        }
        self.tasks = Some(self.tasks.map_or((line, 1), |(first, count)| (first, count + 1)));
        let has_released_id = task.id.ends_with("/idx");
        self.released_ids |= has_released_id;
        self.stripped |= is_stripped(task);
        has_released_id
    }

    /// Returns the note for the file, with the line of the first such task.
    pub(super) fn note(&self) -> Option<(usize, String)> {
        let (first, count) = self.tasks?;
        let mut reason =
            "its line is 'metadata.lineno', where other files have 'line_no'".to_owned();
        if self.released_ids {
            reason.push_str("; all tasks of a repository have the id NAME/idx");
        }
        if self.stripped {
            reason.push_str("; prompts are stripped at their end");
        }
        if self.released_ids || self.stripped {
            reason.push_str(", as in RepoEval's function-level files");
        }
        if count > 1 {
            reason.push_str(&format!(" (first here, in {count} records)"));
        }
        Some((first, reason))
    }
}

pub(super) fn is_function_level(task: &Task) -> bool {
    task.metadata.contains("lineno") && !task.metadata.contains("line_no")
}

/// Returns true if a task's prompt was stripped at its end, at the start of the hole's line.
pub(super) fn is_stripped(task: &Task) -> bool {
    let ends_in_text = !task.prompt.is_empty() && !task.prompt.ends_with(is_space);
    ends_in_text && line_ends(&task.prompt) < task.line_no - task.context_start
}
