//! Tasks of the paper that the tasks of a file are, or stand for.

use std::path::Path;

use anyhow::Result;
use repoformer_core::task::Task;
use repoformer_pipeline::Experiment;
use repoformer_text::language::Language;

use super::names::DATASETS;
use crate::experiments::are_functions;
use crate::settings::Settings;

/// Tasks of a column or panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tasks {
    pub(crate) dataset: String,
    pub(crate) task: String,
    pub(crate) language: Option<String>,
}

impl Tasks {
    /// Determines the paper's tasks for a file. The file's name identifies chunks, functions and calls; otherwise the tasks'
    /// kind is used, or else lines. The data set is the one that was named, or that the path names, or RepoEval, which has no
    /// chunks.
    pub fn new(file: &Path, language: Language, dataset: Option<&str>, kind: Option<&str>) -> Self {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let path = file.to_string_lossy().to_lowercase();
        let words =
            || name.split(|c: char| !c.is_alphabetic()).map(|word| word.trim_end_matches('s'));
        let task =
            ["chunk", "function", "api"].into_iter().find(|task| words().any(|one| one == *task));
        let task = task.or(kind).unwrap_or("line");
        let named = |words: &[&str]| words.iter().any(|word| path.contains(word));
        let dataset = match dataset {
            Some(dataset) => dataset,
            None if named(&["crosscodelongeval", "cclongeval"]) => DATASETS[1],
            None if task == "chunk" => DATASETS[1],
            None if named(&["crosscodeeval", "cceval"]) => DATASETS[2],
            None => DATASETS[0],
        };
        Self {
            dataset: dataset.to_owned(),
            task: task.to_owned(),
            language: (dataset == DATASETS[2]).then(|| language.name().to_owned()),
        }
    }

    /// Returns a heading such as `RepoEval line`, with the language if the data set has several.
    pub fn head(&self) -> String {
        let language = self.language.as_ref().map_or(String::new(), |name| format!(" {name}"));
        format!("{} {}{language}", self.dataset, self.task)
    }
}

/// Returns the tasks of the paper that an experiment's tasks are, or stand for.
pub fn tasks_of(experiment: &Experiment, settings: &Settings) -> Result<Tasks> {
    let set = experiment.tasks()?;
    let kind = if are_functions(settings, Some(set)) {
        Some("function".into())
    } else {
        set.tasks().first().and_then(Task::kind)
    };
    let (language, dataset) = (experiment.layout.language, settings.paper_dataset.as_deref());
    Ok(Tasks::new(&set.path, language, dataset, kind.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_tell_their_kind_where_the_name_does_not() {
        let of = |kind| Tasks::new("x.jsonl".as_ref(), Language::Python, None, kind).head();
        assert_eq!(of(Some("function")), "RepoEval function");
        assert_eq!(of(Some("chunk")), "CrossCodeLongEval chunk");
    }

    #[test]
    fn names_of_files_tell_the_tasks() {
        for (path, dataset, head) in [
            ("line.jsonl", None, "RepoEval line"),
            ("rapid_capitals.jsonl", None, "RepoEval line"),
            ("x/api_level_completion_2k_context_codex.test.jsonl", None, "RepoEval api"),
            (
                "crosscodelongeval/python_function_completion_sparse_rg1.jsonl",
                None,
                "CrossCodeLongEval function",
            ),
            ("function.jsonl", Some("CrossCodeLongEval"), "CrossCodeLongEval function"),
            ("chunks.jsonl", None, "CrossCodeLongEval chunk"),
            (
                "crosscodeeval/python/line_completion_rg1_bm25.jsonl",
                None,
                "CrossCodeEval line python",
            ),
        ] {
            assert_eq!(
                Tasks::new(Path::new(path), Language::Python, dataset, None).head(),
                head,
                "{path}"
            );
        }
    }
}
