//! The lines of prompt artifacts, in every style.

use std::sync::OnceLock;

use repoformer_core::prompt::style::{Filled, Parts, Style};
use repoformer_core::prompt::{Builder, Scratch};
use repoformer_core::repository::fragment::path_in_repository;
use repoformer_core::retrieve::{Found, FragmentText, Mode, Query};
use repoformer_core::task::cross_file::CrossFile;
use repoformer_core::task::{Task, TaskSet};
use repoformer_store::error::Result;
use repoformer_store::jsonl::Object;
use repoformer_store::literal;
use repoformer_text::language::Language;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::contexts::right_context;
use super::experiment::{PromptLayout, PromptSettings};

/// A line of the artifact.
pub(super) struct Line {
    pub(super) json: Vec<u8>,
    pub(super) tokens: u64,
    /// Whether it holds retrieved text.
    pub(super) has_cross_file: bool,
}

/// Makes the lines of one repository's tasks in one mode.
pub(super) struct Maker<'a> {
    pub(super) prompts: &'a PromptSettings,
    pub(super) tasks: &'a TaskSet,
    /// Language of tasks whose path does not tell.
    pub(super) language: Language,
    pub(super) mode: Mode,
    /// Right contexts of the tasks that carry none, by row.
    pub(super) contexts: FxHashMap<u32, &'a str>,
    /// Turns results into fragments, where the mode retrieves.
    pub(super) texts: Option<FragmentText<'a>>,
    /// RepoCoder's style, where it is asked for.
    pub(super) builder: Option<Builder<'a>>,
}

impl Maker<'_> {
    /// The line of a task, with its query and what it found. `own_tokens` keeps from mode to mode what the task's own part of
    /// its prompts takes in RepoCoder's style.
    pub(super) fn line(
        &self,
        task: &Task,
        found: Option<(&Found, &Query)>,
        own_tokens: &OnceLock<usize>,
        scratch: &mut Scratch,
    ) -> Result<Line> {
        let (found, query) = found.unzip();
        match (&self.builder, &self.prompts.layout) {
            (Some(builder), _) => {
                let prompt = builder.build_with(task, found, own_tokens, scratch);
                Ok(Line {
                    json: builder.line(task, query, &prompt),
                    tokens: prompt.tokens as u64,
                    has_cross_file: !prompt.chosen.is_empty(),
                })
            }
            (None, PromptLayout::Style(style)) => {
                self.prompt(task, style, &self.cross_file(task, found, query), query)
            }
            (None, _) => self.attached(task, self.cross_file(task, found, query)),
        }
    }

    fn language(&self, task: &Task) -> Language {
        Language::of_path(&task.path).unwrap_or(self.language)
    }

    /// Fragments that a prompt shows: those found, or those that the task carries.
    fn cross_file(&self, task: &Task, found: Option<&Found>, query: Option<&Query>) -> CrossFile {
        match (&self.texts, found, query) {
            (Some(texts), Some(found), Some(query)) => {
                CrossFile::of(texts.shown(query, found), self.language(task))
            }
            _ if self.mode == Mode::Given => task.cross_file.clone().unwrap_or_default(),
            _ => CrossFile::default(),
        }
    }

    fn attached(&self, task: &Task, cross_file: CrossFile) -> Result<Line> {
        let has_cross_file = !cross_file.is_empty();
        let task = Task { cross_file: Some(cross_file), ..task.clone() };
        Ok(Line { json: literal::line(&task.to_record()), tokens: 0, has_cross_file })
    }

    fn prompt(
        &self,
        task: &Task,
        style: &Style,
        cross_file: &CrossFile,
        query: Option<&Query>,
    ) -> Result<Line> {
        let right = right_context(task, &self.contexts);
        let parts = Parts {
            repository: &task.repository,
            path: path_in_repository(&task.path),
            left: &task.prompt,
            right: right.unwrap_or_default(),
            cross_file,
            language: self.language(task),
        };
        let filled = style
            .fill(&parts, &self.prompts.budget, &self.prompts.tokenizer)
            .map_err(|reason| self.tasks.error(task, reason.to_string()))?;
        let mut record = self.record(task, &filled, cross_file, query);
        let metadata = &mut record["metadata"];
        metadata["prompt_style_digest"] = style.file_digest().into();
        // Whole, where the task carries another than the prompt was made with, or none.
        let right = right.filter(|_| style.shows_right()).unwrap_or_default();
        if right != task.right_context.as_deref().unwrap_or_default() {
            metadata["right_context"] = right.into();
        }
        Ok(Line {
            json: literal::line(&record),
            tokens: filled.tokens as u64,
            has_cross_file: filled.cross_file_tokens > 0,
        })
    }

    /// The task's record with the prompt in its place, what it is made of, and without the contexts that it holds.
    fn record(
        &self,
        task: &Task,
        filled: &Filled,
        cross_file: &CrossFile,
        query: Option<&Query>,
    ) -> Value {
        let Value::Object(mut record) = task.to_record() else {
            return Value::Null;
        };
        for field in
            ["right_context", "full_left_context", "full_right_context", "crossfile_context"]
        {
            record.shift_remove(field);
        }
        record.insert("prompt".into(), filled.text.as_str().into());
        let mut metadata = match record.remove("metadata") {
            Some(Value::Object(metadata)) => metadata,
            _ => Object::new(),
        };
        // The task may have been a prompt once.
        for field in [
            "query", "sample", "window_size", "slice_size", "chunk_size", "chunk_stride",
            "top_k_context", "shown_context", "right_context",
        ] {
            metadata.shift_remove(field);
        }
        if let (Some(query), Some(texts)) = (query, &self.texts) {
            metadata.insert("query".into(), json!({ "text": query.text, "hole": query.hole }));
            metadata.insert("sample".into(), query.sample.into());
            let cut = texts.fragments().cut.fields();
            metadata.extend(cut.map(|(name, value)| (name.to_owned(), value.into())));
        }
        if !cross_file.fragments.is_empty() {
            // Of a text that the task carries, no one says which part each fragment is.
            let most = match self.mode {
                Mode::Given => usize::MAX,
                _ => filled.fragments,
            };
            let shown = cross_file.fragments.iter().take(most);
            let fragment = |f: &repoformer_core::task::cross_file::Fragment| json!({ "retrieved_chunk": f.text, "filename": f.path, "score": f.score });
            let list: Vec<Value> = shown.map(fragment).collect();
            if let Some(cut) = filled.cut.as_ref().filter(|_| self.mode != Mode::Given) {
                let mut shown = vec![Value::Null; list.len().saturating_sub(1)];
                shown.push(json!({ "retrieved_chunk": cut }));
                metadata.insert("shown_context".into(), shown.into());
            }
            metadata.insert("top_k_context".into(), list.into());
        }
        let numbers = [
            ("row", task.row),
            ("prompt_tokens", filled.tokens),
            ("left_tokens", filled.left_tokens),
            ("right_tokens", filled.right_tokens),
            ("cross_file_tokens", filled.cross_file_tokens),
        ];
        metadata.extend(numbers.map(|(name, number)| (name.to_owned(), number.into())));
        metadata.insert("mode".into(), self.mode.name().into());
        metadata.insert("prompt_style".into(), self.prompts.layout.name().into());
        metadata.insert("stop".into(), json!(filled.stop));
        record.insert("metadata".into(), metadata.into());
        Value::Object(record)
    }
}
