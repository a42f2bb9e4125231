//! The lines of prompt artifacts, in every style.

use std::sync::OnceLock;

use foldhash::HashMap;
use repoformer_core::prompt::shown;
use repoformer_core::prompt::style::{Parts, Style, StyledPrompt};
use repoformer_core::prompt::{Builder, CountScratch};
use repoformer_core::repository::fragment::path_in_repository;
use repoformer_core::retrieve::{FragmentText, Mode, Query, RankedFragments};
use repoformer_core::task::cross_file::{CrossFile, CrossFileFragment};
use repoformer_core::task::{Task, TaskSet};
use repoformer_store::error::Result;
use repoformer_store::jsonl::Object;
use repoformer_store::literal;
use repoformer_text::language::Language;
use repoformer_text::language::syntax::ParseGap;
use serde_json::{Value, json};

use super::contexts::right_context;
use super::experiment::{PromptLayout, PromptSettings};

/// A line of the artifact.
pub(super) struct Line {
    pub(super) json: Vec<u8>,
    pub(super) tokens: u64,
    /// True if the line holds retrieved text.
    pub(super) has_cross_file: bool,
}

/// Prompt of a task, and the fragments that it shows.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskPrompt {
    /// Text of the prompt.
    pub text: String,
    /// Texts that end a completion.
    pub stop: Vec<String>,
    /// Fragments in the prompt, best first.
    pub fragments: Vec<shown::ShownFragment>,
    /// Right context that the prompt was made with; empty if it has none.
    pub right: String,
}

/// Maker of the lines for one repository's tasks in one mode.
pub(super) struct Maker<'a> {
    pub(super) prompts: &'a PromptSettings,
    pub(super) tasks: &'a TaskSet,
    /// Language of tasks whose path does not show it.
    pub(super) language: Language,
    pub(super) mode: Mode,
    /// Right contexts of the tasks that carry none, by row.
    pub(super) contexts: HashMap<u32, &'a str>,
    /// Turns results into fragments, if the mode retrieves.
    pub(super) texts: Option<FragmentText<'a>>,
    /// Builds prompts in RepoCoder's style, if that style is chosen.
    pub(super) builder: Option<Builder<'a>>,
}

impl Maker<'_> {
    /// Returns the files that could not be parsed, although prompts would show their functions and classes whole.
    pub(super) fn gaps(&self) -> Vec<ParseGap> {
        let texts = self.texts.iter().flat_map(FragmentText::gaps);
        texts.chain(self.builder.iter().flat_map(Builder::gaps)).collect()
    }

    /// Returns the line of a task, with its query and results. `own_tokens` keeps the size of the task's own part of its prompts in
    /// RepoCoder's style, which is the same in every mode.
    pub(super) fn line(
        &self,
        task: &Task,
        found: Option<(&RankedFragments, &Query)>,
        own_tokens: &OnceLock<usize>,
        scratch: &mut CountScratch,
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
            (None, _) => self.attach(task, self.cross_file(task, found, query)),
        }
    }

    fn language(&self, task: &Task) -> Language {
        Language::of_path(&task.path).unwrap_or(self.language)
    }

    /// Returns the fragments that a prompt shows: the results, or the fragments that the task carries.
    fn cross_file(
        &self,
        task: &Task,
        found: Option<&RankedFragments>,
        query: Option<&Query>,
    ) -> CrossFile {
        match (&self.texts, found, query) {
            (Some(texts), Some(found), Some(query)) => {
                CrossFile::new(texts.collect(query, found), self.language(task))
            }
            _ if self.mode == Mode::Given => task.cross_file.clone().unwrap_or_default(),
            _ => CrossFile::default(),
        }
    }

    fn attach(&self, task: &Task, cross_file: CrossFile) -> Result<Line> {
        let has_cross_file = !cross_file.is_empty();
        let task = Task { cross_file: Some(cross_file), ..task.clone() };
        Ok(Line { json: literal::line(&task.to_record()), tokens: 0, has_cross_file })
    }

    /// Returns the prompt of a task and the fragments in it, as if read from the task's line.
    pub(super) fn task_prompt(
        &self,
        task: &Task,
        found: Option<(&RankedFragments, &Query)>,
        scratch: &mut CountScratch,
    ) -> Result<TaskPrompt> {
        let (found, query) = found.unzip();
        if let Some(builder) = &self.builder {
            let prompt = builder.build_with(task, found, &OnceLock::new(), scratch);
            return Ok(TaskPrompt {
                stop: Vec::new(),
                fragments: builder.shown_fragments(task, &prompt),
                right: task.right_context.as_deref().unwrap_or_default().to_owned(),
                text: prompt.text,
            });
        }
        let cross_file = self.cross_file(task, found, query);
        let PromptLayout::Style(style) = &self.prompts.layout else {
            return Ok(TaskPrompt {
                text: task.prompt.to_string(),
                stop: Vec::new(),
                fragments: cross_file.fragments.into_iter().map(shown_fragment).collect(),
                right: task.right_context.as_deref().unwrap_or_default().to_owned(),
            });
        };
        let (filled, right) = self.fill(task, style, &cross_file)?;
        let mut shown = self.shown_fragments(&cross_file, &filled).to_vec();
        if let (Some(last), Some(cut)) = (shown.last_mut(), self.cut(&filled)) {
            last.text = cut.to_owned();
        }
        Ok(TaskPrompt {
            fragments: shown.into_iter().map(shown_fragment).collect(),
            right: right.to_owned(),
            text: filled.text,
            stop: filled.stop,
        })
    }

    fn prompt(
        &self,
        task: &Task,
        style: &Style,
        cross_file: &CrossFile,
        query: Option<&Query>,
    ) -> Result<Line> {
        let (filled, right) = self.fill(task, style, cross_file)?;
        let mut record = self.record(task, &filled, cross_file, query);
        let metadata = &mut record["metadata"];
        metadata["prompt_style_digest"] = style.file_digest().into();
        // The whole right context, if the task carries none, or not the one that the prompt was made with.
        if right != task.right_context.as_deref().unwrap_or_default() {
            metadata["right_context"] = right.into();
        }
        Ok(Line {
            json: literal::line(&record),
            tokens: filled.tokens as u64,
            has_cross_file: filled.cross_file_tokens > 0,
        })
    }

    /// Fills a style with a task's contexts; also returns the right context in the prompt, empty if the style shows none.
    fn fill<'t>(
        &'t self,
        task: &'t Task,
        style: &Style,
        cross_file: &CrossFile,
    ) -> Result<(StyledPrompt, &'t str)> {
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
        Ok((filled, right.filter(|_| style.shows_right()).unwrap_or_default()))
    }

    /// Returns the fragments that a filled style shows.
    fn shown_fragments<'c>(
        &self,
        cross_file: &'c CrossFile,
        filled: &StyledPrompt,
    ) -> &'c [CrossFileFragment] {
        // For text that the task carries, it is not known which part comes from which fragment.
        let most = match self.mode {
            Mode::Given => usize::MAX,
            _ => filled.fragments,
        };
        &cross_file.fragments[..cross_file.fragments.len().min(most)]
    }

    /// Returns the text shown for the last fragment, if the budget cut it.
    fn cut<'f>(&self, filled: &'f StyledPrompt) -> Option<&'f str> {
        filled.cut.as_deref().filter(|_| self.mode != Mode::Given)
    }

    /// Returns the task's record with its prompt, the prompt's sources and sizes, and without the contexts that the prompt
    /// contains.
    fn record(
        &self,
        task: &Task,
        filled: &StyledPrompt,
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
        // The task's record may come from a prompt.
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
            let fragment = |f: &CrossFileFragment| json!({ "retrieved_chunk": f.text, "filename": f.path, "score": f.score });
            let list: Vec<Value> =
                self.shown_fragments(cross_file, filled).iter().map(fragment).collect();
            if let Some(cut) = self.cut(filled) {
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

/// Returns a fragment as in the prompt's record.
fn shown_fragment(
    CrossFileFragment { path, text, score }: CrossFileFragment,
) -> shown::ShownFragment {
    let score = score.filter(|score| score.is_finite());
    shown::ShownFragment { path: path.into(), first_line: None, score, text: text.into() }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use foldhash::HashSet;
    use repoformer_core::prompt::style::Budget;
    use repoformer_core::repository::corpus::{Repository, SourceFile};
    use repoformer_core::repository::fragment::{ChunkShape, Cut, RepoFragments};
    use repoformer_core::retrieve::{
        Align, FragmentTextSettings, Hit, HoleGuard, Queries, QueryForm, QuerySettings, Score,
        Visibility,
    };
    use repoformer_store::jsonl;
    use repoformer_text::tokenize::model::Tokenizer;

    use super::*;

    fn fragments() -> RepoFragments {
        let text = |name: &str| (0..9).map(|n| format!("{name}_{n} = {n}\n")).collect::<String>();
        let file = |(same_as, name): (u32, &str)| SourceFile {
            path: format!("r/{name}.py"),
            text: text(name),
            same_as,
        };
        let files = (0..).zip(["alpha", "beta", "own"]).map(file).collect();
        let repository = Repository { name: "r".into(), files };
        let cut = Cut::Chunks(ChunkShape { size: 3, stride: 3 });
        RepoFragments::cut(repository, Language::Python, cut)
    }

    fn settings(style: &str, cross_file: usize) -> PromptSettings {
        PromptSettings {
            align: Align::None,
            most: 4,
            full_paths: false,
            layout: PromptLayout::Style(Style::find_bundled(style).unwrap().clone()),
            budget: Budget { total: 200, left: None, right: Some(9), cross_file: Some(cross_file) },
            tokenizer: Tokenizer::p50k_base(),
        }
    }

    #[test]
    fn a_task_prompt_has_what_its_line_says() {
        let fragments = fragments();
        let right = Some("own_4 = 4\n".into());
        let task = Task::new("r/0".into(), "r/own.py", 0, 3, "own_3 = 3", "own_0 = 0\nown_1 = 1\n");
        let task = Task { right_context: right, ..task };
        let tasks = TaskSet::new(PathBuf::from("tasks"), vec![task.clone()]);
        let query =
            QuerySettings { mode: Mode::LeftContext, form: QueryForm::LastLines, length: 3 };
        let queries = Queries::of_tasks(query, &tasks, &fragments).queries.queries;
        let score = |fragment: u32| Score::Jaccard { overlap: 1, union: 2 + fragment };
        let hit = |fragment| Hit {
            fragment,
            text_of: fragment,
            score: score(fragment),
            definition: None,
        };
        let found =
            RankedFragments { row: 0, sample: 0, seen: None, hits: (0..6).map(hit).collect() };
        let (mut cuts, mut fragments_shown) = (0, 0);
        for (style, cross_file) in [
            ("repoformer", 20),
            ("repoformer", 150),
            ("repoformer-released", 40),
            ("starcoder2", 90),
            ("plain", 61),
        ] {
            let prompts = settings(style, cross_file);
            let shown = FragmentTextSettings {
                align: Align::None,
                most: prompts.most,
                full_paths: false,
                visibility: Visibility::Guarded(HoleGuard::Strict),
            };
            for is_searched in [true, false] {
                let maker = Maker {
                    prompts: &prompts,
                    tasks: &tasks,
                    language: Language::Python,
                    mode: if is_searched { Mode::LeftContext } else { Mode::Without },
                    contexts: HashMap::default(),
                    texts: is_searched.then(|| FragmentText::new(&fragments, shown, |_| true)),
                    builder: None,
                };
                let found = is_searched.then_some((&found, &queries[0]));
                let scratch = &mut CountScratch::default();
                let line = maker.line(&task, found, &OnceLock::new(), scratch).unwrap();
                let record = jsonl::parse(&tasks.path, 1, &line.json).unwrap();
                let (_, read) =
                    shown::read_shown_fragments(&record, &mut HashSet::default()).unwrap();
                let made = maker.task_prompt(&task, found, scratch).unwrap();
                assert_eq!(record["prompt"], made.text.as_str(), "{style}");
                assert_eq!(record["metadata"]["stop"], json!(made.stop), "{style}");
                assert_eq!(read.fragments, made.fragments, "{style}");
                assert_eq!(
                    read.right.as_deref().or(task.right_context.as_deref()).unwrap(),
                    made.right
                );
                assert!(is_searched || made.fragments.is_empty(), "{style}");
                fragments_shown += made.fragments.len();
                cuts += usize::from(record["metadata"].get("shown_context").is_some());
            }
        }
        assert!(cuts > 1 && fragments_shown > 5, "{cuts} cut of {fragments_shown}");
    }
}
