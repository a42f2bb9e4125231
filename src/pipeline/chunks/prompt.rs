//! `prompt` in the manner of chunks: tasks + rankings → prompts, or the tasks with their cross-file context.

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use super::super::prompt::{TASKS, TOKENS, WITH_BLOCKS};
use super::super::{Experiment, Report, Unread};
use super::contexts::{RightContexts, right_context};
use super::queries::open_needed_contexts;
use super::retrieved::OnDisk;
use super::{ChunkSettings, PromptLayout, shaped};
use crate::error::Result;
use crate::prompt::style::{Filled, Parts, Style};
use crate::retrieve::chunks::{Align, Query, Ranked, Shower, named_path};
use crate::retrieve::query::Mode;
use crate::store::artifact::{Identity, LineTotals};
use crate::store::jsonl::Object;
use crate::task::cross_file::CrossFile;
use crate::task::{Task, TaskSet};
use crate::text::language::Language;

/// The settings that shape a mode's prompts.
pub(in crate::pipeline) fn settings(experiment: &Experiment, mode: Mode) -> Result<Identity> {
    let chunks = experiment.of_chunks()?;
    let mut identity = Identity::new("prompts")
        .parameter("benchmark", &experiment.layout.benchmark)
        .parameter("mode", mode)
        .parameter("prompt-style", chunks.layout.name());
    if let PromptLayout::Style(style) = &chunks.layout {
        identity = identity
            .parameter("template", style.digest())
            .parameter("right-context", style.include().right);
    }
    // What fits decides which functions and classes are shown, too.
    if matches!(chunks.layout, PromptLayout::Style(_)) || chunks.align == Align::Enclosing {
        identity = identity
            .parameter("tokenizer", chunks.tokenizer.digest())
            .parameter("max-prompt-tokens", chunks.budget.total);
        let budget = chunks.budget;
        for (name, tokens) in [
            ("max-left-tokens", budget.left),
            ("max-right-tokens", budget.right),
            ("max-cross-file-tokens", budget.cross_file),
        ] {
            let tokens = tokens.map_or("any".to_owned(), |tokens| tokens.to_string());
            identity = identity.parameter(name, tokens);
        }
    }
    if !mode.retrieves() {
        return Ok(identity);
    }
    Ok(shaped(experiment, chunks, identity)
        .parameter("query", chunks.form.of_mode(mode))
        .parameter("query-lines", chunks.query_lines)
        .parameter("ranker", &chunks.ranker)
        .parameter("top-k", experiment.layout.top_k)
        .parameter("max-blocks", experiment.budget.blocks)
        .parameter("align", chunks.align)
        .parameter("ties", chunks.order)
        .parameter("max-files", chunks.limits.files)
        .parameter("max-chunks", chunks.limits.chunks)
        .parameter("full-paths", chunks.full_paths))
}

/// Builds the prompts of each mode.
///
/// # Errors
/// Rankings are missing or stale, or an artifact cannot be written.
pub(in crate::pipeline) fn prompt(experiment: &Experiment, modes: &[Mode]) -> Result<Report> {
    let mut report = Report::default();
    warn_of_specials(experiment, &mut report)?;
    warn_of_contexts(experiment, &mut report)?;
    for &mode in modes {
        let tasks = experiment.tasks()?;
        let mut sources = Sources::open(experiment, mode)?;
        let identity = sources.identity(experiment, settings(experiment, mode)?, tasks);
        let path = experiment.layout.prompts(mode);
        warn_of_others(experiment, tasks, &mut report);
        let mut is_told = false;
        let header = report.ensure_jsonl(path, &identity, |report, sink| {
            let mut totals = [(TOKENS, 0), (WITH_BLOCKS, 0), (WITHOUT_PROMPT, 0)];
            let mut records = 0;
            is_told = true;
            for line in sources.build(experiment)? {
                match line {
                    Ok(line) => {
                        sink.write(&line.json)?;
                        totals[0].1 += line.tokens;
                        totals[1].1 += u64::from(line.has_cross_file);
                        records += 1;
                    }
                    Err(error) => {
                        report.problems.push(error);
                        totals[2].1 += 1;
                    }
                }
            }
            let totals = totals.map(|(name, total)| (name.to_owned(), total));
            Ok(LineTotals {
                records,
                totals: totals.into(),
            })
        })?;
        // Tasks without a prompt are complained of each time, not only when the others' prompts are made.
        let lost = header.totals.get(WITHOUT_PROMPT).copied().unwrap_or(0);
        if !is_told && lost > 0 {
            let lines = sources.build(experiment)?.into_iter();
            report.problems.extend(lines.filter_map(Result::err));
        }
    }
    Ok(report)
}

const WITHOUT_PROMPT: &str = "tasks without a prompt";

/// A model's tokenizer knows the model's special tokens; another one cuts them up, and every budget with them.
fn warn_of_specials(experiment: &Experiment, report: &mut Report) -> Result<()> {
    let chunks = experiment.of_chunks()?;
    if let PromptLayout::Style(style) = &chunks.layout {
        let unknown = style.unknown_specials(&chunks.tokenizer);
        if !unknown.is_empty() && chunks.tokenizer.is_model() {
            report.warnings.push(format!(
                "the tokenizer knows no {} as one token; is it that of a model for --prompt-style {}?",
                unknown.join(", "),
                style.name()
            ));
        }
    }
    Ok(())
}

/// Tasks of repositories that do not take part.
fn warn_of_others(experiment: &Experiment, tasks: &TaskSet, report: &mut Report) {
    let takes_part = |task: &&Task| {
        experiment
            .repositories
            .binary_search(&task.repository)
            .is_ok()
    };
    let others = tasks.tasks.len() - tasks.tasks.iter().filter(takes_part).count();
    if others > 0 {
        let text = format!("{others} tasks of other repositories are left out");
        if !report.warnings.contains(&text) {
            report.warnings.push(text);
        }
    }
}

/// Without repositories there is nowhere to take a right context from.
fn warn_of_contexts(experiment: &Experiment, report: &mut Report) -> Result<()> {
    let shown = match &experiment.of_chunks()?.layout {
        PromptLayout::Style(style) => style.shows_right() && style.include().right,
        PromptLayout::Attach => false,
    };
    if !shown || !experiment.repos_dir.as_os_str().is_empty() {
        return Ok(());
    }
    let tasks = &experiment.tasks()?.tasks;
    let without = tasks.iter().filter(|t| t.right_context.is_none()).count();
    if without > 0 {
        report.warnings.push(format!(
            "{without} tasks carry no right context, so their prompts have none; with --repos-dir it is taken from their files"
        ));
    }
    Ok(())
}

/// A line of the artifact.
struct Line {
    json: Vec<u8>,
    tokens: u64,
    has_cross_file: bool,
}

/// What the prompts of one mode are made from.
struct Sources {
    mode: Mode,
    parts: Vec<Part>,
}

/// The part of one repository, to be read where prompts are made; nothing of it is needed by tasks that carry all their
/// contexts.
struct Part {
    repository: String,
    contexts: Option<Unread<RightContexts>>,
    retrieved: Option<OnDisk>,
}

impl Sources {
    fn open(experiment: &Experiment, mode: Mode) -> Result<Self> {
        let part = |repository: &String| {
            let contexts = open_needed_contexts(experiment, repository)?;
            let retrieved = match mode.retrieves() {
                false => None,
                true => Some(OnDisk::open(experiment, mode, repository)?),
            };
            Ok(Part {
                repository: repository.clone(),
                contexts,
                retrieved,
            })
        };
        let parts: Result<Vec<Part>> = experiment.repositories.par_iter().map(part).collect();
        Ok(Self {
            mode,
            parts: parts?,
        })
    }

    fn identity(&self, experiment: &Experiment, settings: Identity, tasks: &TaskSet) -> Identity {
        let mut identity = settings.input(TASKS, tasks.digest());
        // A thousand repositories would make a header of their own.
        let mut hasher = blake3::Hasher::new();
        for part in &self.parts {
            hasher.update(part.repository.as_bytes());
            let contexts = part.contexts.iter().map(|c| &*c.header.checksum);
            let retrieved = part.retrieved.iter().flat_map(OnDisk::checksums);
            for checksum in contexts.chain(retrieved) {
                hasher.update(checksum.as_bytes());
            }
        }
        identity = identity.input("retrieval", hasher.finalize().to_hex().as_str());
        let repositories = experiment.repositories.len();
        identity.parameter("repositories", repositories)
    }

    /// The lines of the artifact in the order of the tasks, then of their samples.
    fn build(&mut self, experiment: &Experiment) -> Result<Vec<Result<Line>>> {
        let (tasks, settings, mode) = (experiment.tasks()?, experiment.of_chunks()?, self.mode);
        let parts = self.parts.par_iter_mut();
        let of_parts = parts.map(|part| part.build(experiment, settings, tasks, mode));
        let of_parts: Vec<Vec<_>> = of_parts.collect::<Result<_>>()?;
        let mut lines: Vec<(usize, u32, Result<Line>)> = of_parts.into_iter().flatten().collect();
        lines.sort_by_key(|(row, sample, _)| (*row, *sample));
        Ok(lines.into_iter().map(|(_, _, line)| line).collect())
    }
}

impl Part {
    fn build(
        &mut self,
        experiment: &Experiment,
        settings: &ChunkSettings,
        tasks: &TaskSet,
        mode: Mode,
    ) -> Result<Vec<(usize, u32, Result<Line>)>> {
        let contexts = self.contexts.as_mut().map(|contexts| contexts.read(None));
        let contexts = contexts.transpose()?;
        let maker = Maker {
            settings,
            tasks,
            language: experiment.layout.language,
            mode,
            contexts: contexts
                .as_ref()
                .map(RightContexts::map)
                .unwrap_or_default(),
        };
        let of_it: Vec<&Task> = tasks.of_repository(&self.repository).collect();
        let Some(retrieved) = &mut self.retrieved else {
            let lines = of_it.par_iter().map(|task| maker.line(task, None));
            return Ok(lines.collect());
        };
        let retrieved = retrieved.read()?;
        let shower = retrieved.shower(experiment, settings);
        let found = retrieved.ranking.found.par_iter();
        let pairs = found.zip(&retrieved.queries.queries);
        let lines = pairs.filter_map(|(found, query)| {
            let task = tasks.of_row(found.row as usize)?;
            Some(maker.line(task, Some((&shower, found, query))))
        });
        let mut lines: Vec<_> = lines.collect();
        let searched: FxHashSet<usize> = lines.iter().map(|(row, _, _)| *row).collect();
        let lost = of_it
            .into_iter()
            .filter(|task| !searched.contains(&task.row));
        lines.extend(lost.map(|task| match settings.layout {
            // Data that is only added to loses no task of its repository.
            PromptLayout::Attach => maker.line(task, None),
            PromptLayout::Style(_) => {
                let reason = "nothing was searched for on its behalf, as `repoformer window` told, so it has no prompt";
                (task.row, 0, Err(tasks.error(task, reason)))
            }
        }));
        Ok(lines)
    }
}

/// Makes the lines of one repository.
struct Maker<'a> {
    settings: &'a ChunkSettings,
    tasks: &'a TaskSet,
    language: Language,
    mode: Mode,
    /// Right contexts of the tasks that carry none, by row.
    contexts: FxHashMap<u32, &'a str>,
}

type Found<'a> = (&'a Shower<'a>, &'a Ranked, &'a Query);

impl Maker<'_> {
    fn line(&self, task: &Task, found: Option<Found<'_>>) -> (usize, u32, Result<Line>) {
        let sample = found.map_or(0, |(_, found, _)| found.sample);
        let language = Language::of_path(&task.path).unwrap_or(self.language);
        let cross_file = match (found, self.mode) {
            (Some((shower, found, _)), _) => CrossFile::of(shower.fragments(found), language),
            (None, Mode::Given) => task.cross_file.clone().unwrap_or_default(),
            (None, _) => CrossFile::default(),
        };
        let line = match &self.settings.layout {
            PromptLayout::Attach => self.attached(task, cross_file),
            PromptLayout::Style(style) => self.prompt(task, (style, language), &cross_file, found),
        };
        (task.row, sample, line)
    }

    fn attached(&self, task: &Task, cross_file: CrossFile) -> Result<Line> {
        let has_cross_file = !cross_file.is_empty();
        let task = Task {
            cross_file: Some(cross_file),
            ..task.clone()
        };
        Ok(Line {
            json: json_line(&task.to_record()),
            tokens: 0,
            has_cross_file,
        })
    }

    fn prompt(
        &self,
        task: &Task,
        (style, language): (&Style, Language),
        cross_file: &CrossFile,
        found: Option<Found<'_>>,
    ) -> Result<Line> {
        let right = right_context(task, &self.contexts);
        let parts = Parts {
            repository: &task.repository,
            path: named_path(&task.path),
            left: &task.prompt,
            right: right.unwrap_or_default(),
            cross_file,
            language,
        };
        let filled = style
            .fill(&parts, &self.settings.budget, &self.settings.tokenizer)
            .map_err(|reason| self.tasks.error(task, reason.to_string()))?;
        let record = self.record(task, &filled, cross_file, found);
        Ok(Line {
            json: json_line(&record),
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
        found: Option<Found<'_>>,
    ) -> Value {
        let Value::Object(mut record) = task.to_record() else {
            return Value::Null;
        };
        for field in [
            "right_context",
            "full_left_context",
            "full_right_context",
            "crossfile_context",
        ] {
            record.shift_remove(field);
        }
        record.insert("prompt".into(), filled.text.as_str().into());
        let mut metadata = match record.remove("metadata") {
            Some(Value::Object(metadata)) => metadata,
            _ => Object::new(),
        };
        if let Some((_, _, query)) = found {
            let text = query.text();
            metadata.insert("query".into(), json!({ "text": text, "hole": query.hole }));
            metadata.insert("sample".into(), query.sample.into());
        }
        if !cross_file.fragments.is_empty() {
            // Of a text that the task carries, no one says which part each fragment is.
            let most = match self.mode {
                Mode::Given => usize::MAX,
                _ => filled.fragments,
            };
            let shown = cross_file.fragments.iter().take(most);
            let fragment = |f: &crate::task::cross_file::Fragment| json!({ "retrieved_chunk": f.text, "filename": f.path, "score": f.score });
            let list: Vec<Value> = shown.map(fragment).collect();
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
        metadata.insert("prompt_style".into(), self.settings.layout.name().into());
        metadata.insert("stop".into(), json!(filled.stop));
        record.insert("metadata".into(), metadata.into());
        Value::Object(record)
    }
}

fn json_line(record: &Value) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).unwrap_or_default();
    line.push(b'\n');
    line
}
