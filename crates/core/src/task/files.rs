//! Files that contain the holes of tasks.

use std::path::Path;

use foldhash::HashMap;
use repoformer_store::error::Result;
use repoformer_text::lines::{IndexedText, universal_newlines};

use super::Task;
use crate::repository::corpus::{folder_names, read_named};

/// Source files of tasks, each read once.
#[derive(Debug)]
pub struct TaskFiles<'a> {
    repos_dir: &'a Path,
    /// Names of the folders that may be repositories.
    folders: Vec<String>,
    texts: HashMap<String, Result<IndexedText<'static>, String>>,
}

impl<'a> TaskFiles<'a> {
    /// Lists the repositories in a folder.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn below(repos_dir: &'a Path) -> Result<Self> {
        Ok(Self { repos_dir, folders: folder_names(repos_dir)?, texts: HashMap::default() })
    }

    /// Reads a task's file in text mode, and changes the task's path to the folder of its repository. The error describes why
    /// the file cannot be read.
    pub fn text(&mut self, task: &mut Task) -> Result<&IndexedText<'static>, String> {
        task.name_folder(&self.folders);
        if task.path.is_empty() {
            return Err(format!("{} records do not name a file", task.format));
        }
        let text = self.texts.entry(task.path.clone()).or_insert_with(|| {
            let text = read_named(self.repos_dir, &task.path)?;
            Ok(IndexedText::new(universal_newlines(text)))
        });
        text.as_ref().map_err(Clone::clone)
    }

    /// Reads the whole file before a task's hole into the task, if its record lacks this text and its prompt shows less. Leaves
    /// the task unchanged if the file cannot be read or has another text.
    pub fn take_left(&mut self, task: &mut Task) {
        let mut of_folder = Task {
            path: task.path.clone(),
            repository: task.repository.clone(),
            ..Task::default()
        };
        let Ok(file) = self.text(&mut of_folder) else {
            return;
        };
        if let (None, Ok(hole)) = (&task.full_left_context, task.hole_in(file))
            && file.text()[..hole.start] != task.prompt
        {
            task.full_left_context = Some(file.text()[..hole.start].into());
        }
    }
}
