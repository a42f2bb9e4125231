//! An experiment: a data set, how it is searched, how its prompts are laid out, and where artifacts lie.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use repoformer_core::prompt;
use repoformer_core::prompt::style::{Budget, Style};
use repoformer_core::repository::Shard;
use repoformer_core::repository::corpus::{self, Walk};
use repoformer_core::repository::fragment::Cut;
use repoformer_core::retrieve::rank::{Ranker, Vocabulary};
use repoformer_core::retrieve::{
    Align, FragmentTextSettings, Mode, QueryForm, REPOCODER_MODES, SearchSettings,
};
use repoformer_core::task::TaskSet;
use repoformer_evaluate::score::Scoring;
use repoformer_store::artifact::{Header, Identity};
use repoformer_store::error::{Error, Result};
use repoformer_store::progress::Work;
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use repoformer_text::tokenize::model::Tokenizer;

use super::dense::DenseSource;
use super::layout::{Layout, Paths};
use super::messages::Messages;
use super::plan::Plan;

/// Input of a stage: a data set, its parameters, and where artifacts lie.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Name in tables and messages: the benchmark's, with the sizes of fragments where one run has several.
    pub name: String,
    /// One folder a repository.
    pub repos_dir: PathBuf,
    /// The repositories that take part, sorted.
    pub repositories: Vec<String>,
    /// The benchmark's tasks, those of other repositories included; without them only the repositories are windowed and vectorized.
    pub tasks: Option<Arc<TaskSet>>,
    /// The experiment of all shards, where this one is of the layout's.
    pub of_all_shards: Option<Arc<Experiment>>,
    /// Where artifacts lie.
    pub layout: Layout,
    /// Which files of a folder count.
    pub walk: Walk,
    /// How fragments are searched.
    pub retrieval: RetrievalSettings,
    /// How prompts are laid out.
    pub prompts: PromptSettings,
    /// How predictions are scored.
    pub scoring: Scoring,
    /// In a dry run, what would be made.
    pub plan: Option<Plan>,
    /// Receives what the stages have to tell.
    pub messages: Arc<dyn Messages>,
}

/// How fragments are searched.
#[derive(Debug, Clone)]
pub struct RetrievalSettings {
    /// Which lines make a query, where the mode does not say.
    pub form: QueryForm,
    /// Lines of a query; a window has its own.
    pub query_lines: usize,
    /// Ranker, visibility and number of fragments.
    pub search: SearchSettings,
    /// Where dense vectors come from.
    pub dense: Option<DenseSource>,
}

/// How prompts are laid out.
#[derive(Debug, Clone)]
pub struct PromptSettings {
    /// Lines that are shown for a fragment.
    pub align: Align,
    /// Fragments of a prompt, at most.
    pub most: usize,
    /// Whether a fragment's path begins with its repository's folder.
    pub full_paths: bool,
    /// Style of prompts.
    pub layout: PromptLayout,
    /// Tokens of each context.
    pub budget: Budget,
    /// Counts tokens, but in RepoCoder's style, which counts those of `p50k_base`.
    pub tokenizer: Tokenizer,
}

/// Style of prompts.
#[derive(Debug, Clone)]
pub enum PromptLayout {
    /// RepoCoder's: blocks of comments before the task's prompt.
    RepoCoder,
    /// For a model.
    Style(Style),
    /// The tasks themselves, with their cross-file context filled in.
    Attach,
}

impl PromptLayout {
    /// Its name in paths.
    pub fn name(&self) -> &str {
        match self {
            Self::RepoCoder => "repocoder",
            Self::Style(style) => style.name(),
            Self::Attach => "attach",
        }
    }

    /// The model's style, where prompts are for one.
    pub fn style(&self) -> Option<&Style> {
        match self {
            Self::Style(style) => Some(style),
            Self::RepoCoder | Self::Attach => None,
        }
    }
}

impl PromptSettings {
    /// Budget of RepoCoder's style.
    pub(super) fn repocoder_budget(&self) -> prompt::RepoCoderBudget {
        prompt::RepoCoderBudget { tokens: self.budget.total, blocks: self.most }
    }
}

impl Experiment {
    /// Fragments and their ranker, such as `chunks ranked by jaccard`: scores of others have another scale.
    pub fn fragments_name(&self) -> String {
        let unit = if self.layout.cut.is_windows() { "windows" } else { "chunks" };
        format!("{unit} ranked by {}", self.retrieval.search.ranker)
    }

    /// Settles which repositories take part: those named, or those that the tasks name, or all that are there. A named
    /// repository without a folder takes no part and is reported, with the number of tasks that this costs.
    ///
    /// # Errors
    /// The repositories folder cannot be listed, or none takes part.
    pub fn settle_repositories(
        repos_dir: &Path,
        named: &[String],
        mut tasks: Option<&mut TaskSet>,
    ) -> Result<(Vec<String>, Vec<Error>)> {
        let there = corpus::folder_names(repos_dir)?;
        if let Some(tasks) = &mut tasks {
            tasks.name_folders(&there);
        }
        let wanted = match &tasks {
            _ if !named.is_empty() => {
                let mut names = named.to_vec();
                names.sort_unstable();
                names.dedup();
                names
            }
            Some(tasks) => tasks.repositories(),
            None => corpus::RepositoryFolders::below(repos_dir)?.names,
        };
        // A name that is not UTF-8 is listed with replacement characters, under which no folder is found.
        let (found, lost): (Vec<_>, Vec<_>) = wanted
            .into_iter()
            .partition(|name| there.binary_search(name).is_ok() && repos_dir.join(name).is_dir());
        let mut problems = Vec::new();
        for name in lost {
            let of_it = tasks.as_ref().map_or(0, |set| set.of_repository(&name).count());
            let cost = match of_it {
                0 => String::new(),
                1 => ", so that 1 task cannot be carried out".into(),
                n => format!(", so that {n} tasks cannot be carried out"),
            };
            let reason = message![
                format!("there is no such repository folder{cost}; put it there, or choose other "),
                UserChoice::Repositories
            ];
            problems.push(Error::Repository { path: repos_dir.join(&name), reason });
        }
        if found.is_empty() {
            let none = Error::Repository {
                path: repos_dir.into(),
                reason: "holds none of the repositories".into(),
            };
            return Err(problems.into_iter().next().unwrap_or(none));
        }
        Ok((found, problems))
    }

    /// Paths of the artifacts.
    pub fn paths(&self) -> Paths<'_> {
        Paths::new(self)
    }

    /// The header that an artifact would have, if a dry run would have made it.
    pub fn planned(&self, path: &Path) -> Option<Header> {
        self.plan.as_ref()?.get(path)
    }

    /// Whether an artifact is there, or a dry run would have made it.
    pub fn has(&self, path: &Path) -> bool {
        self.is_planned(path) || path.exists()
    }

    /// Whether a dry run would have made an artifact, so that its content is not known.
    pub fn is_planned(&self, path: &Path) -> bool {
        self.planned(path).is_some()
    }

    /// Begins work of a stage.
    pub(super) fn work(&self, stage: &str, unit: &'static str, steps: usize) -> Work {
        Work::new(format!("{stage} {}", self.name), unit, steps)
    }

    /// Modes that its prompts may be made in, in the order of a results table.
    pub fn known_modes(&self) -> &'static [Mode] {
        match self.prompts.layout {
            PromptLayout::RepoCoder => &REPOCODER_MODES,
            PromptLayout::Style(_) | PromptLayout::Attach => &Mode::ALL,
        }
    }

    /// Searches with another ranker and query from now on.
    pub fn search_with(&mut self, ranker: Ranker, form: QueryForm) {
        self.retrieval.search.ranker = ranker;
        self.retrieval.form = form;
    }

    /// Lines that make a query in a mode.
    pub fn form(&self, mode: Mode) -> QueryForm {
        self.retrieval.form.of_mode(mode)
    }

    /// Whether some ranker needs dense vectors.
    pub(super) fn ranks_dense(&self) -> bool {
        self.retrieval.search.ranker.parts().contains(&Ranker::Dense)
    }

    /// Whether the ranker looks up the names of files, which depends on the tasks' texts.
    pub(super) fn reads_names(&self) -> bool {
        let ranker = &self.retrieval.search.ranker;
        ranker.finds_definitions() || ranker.has_prior()
    }

    /// Lines that are shown for a fragment found in a mode.
    pub fn align(&self, mode: Mode) -> Align {
        match (self.prompts.align, &self.retrieval.search.ranker) {
            // The fragment itself is what was looked for, and what follows it is not.
            (Align::Auto, ranker) if ranker.parts() == [Ranker::Definitions] => Align::None,
            // Fragments that are no definitions are shown themselves.
            (Align::Signature, ranker) if !ranker.finds_definitions() => Align::None,
            (align, _) => align.settled(self.form(mode), mode),
        }
    }

    /// How the fragments found in a mode are shown.
    pub(super) fn shown(&self, mode: Mode) -> FragmentTextSettings {
        FragmentTextSettings {
            align: self.align(mode),
            most: self.prompts.most,
            full_paths: self.prompts.full_paths,
            visibility: self.retrieval.search.visibility,
        }
    }

    /// Whether a prompt can show a text whole.
    pub(super) fn fits(&self, text: &str) -> bool {
        let PromptSettings { budget, tokenizer, .. } = &self.prompts;
        tokenizer.count(text) <= budget.cross_file.unwrap_or(budget.total)
    }

    /// Whether right contexts of tasks that carry none are taken from their files.
    pub fn takes_right_contexts(&self) -> bool {
        let shows = !matches!(self.prompts.layout, PromptLayout::RepoCoder);
        shows || self.retrieval.form.uses_right_context()
    }

    /// Adds the parameters of the cut to an identity.
    pub(super) fn cut(&self, mut identity: Identity) -> Identity {
        for (name, value) in self.layout.cut.sizes() {
            identity = identity.parameter(name, value);
        }
        if let Cut::Windows(shape) = self.layout.cut {
            identity = identity.parameter("center", shape.center);
        }
        identity.parameter("language", self.layout.language)
    }

    /// Adds the ranker and what it compares to an identity.
    pub(super) fn ranked(&self, identity: Identity) -> Identity {
        let identity = identity.parameter("ranker", &self.retrieval.search.ranker);
        self.vocabulary(identity)
    }

    /// Adds the terms that rankers compare to an identity.
    pub(super) fn vocabulary(&self, identity: Identity) -> Identity {
        let vocabulary = &self.retrieval.search.vocabulary;
        let identity = identity.parameter("vectorizer", vocabulary.name());
        match vocabulary {
            Vocabulary::Tokens(tokenizer) => identity.parameter("tokenizer", tokenizer.digest()),
            _ => identity,
        }
    }

    /// Adds the parameters of the visibility to an identity.
    pub(super) fn visible(&self, identity: Identity) -> Identity {
        let parameters = self.retrieval.search.visibility.parameters().into_iter();
        parameters.fold(identity, |identity, (name, value)| identity.parameter(name, value))
    }

    /// The experiment of all shards, as it was when a part was chosen.
    pub fn whole(&self) -> &Self {
        self.of_all_shards.as_deref().unwrap_or(self)
    }

    /// The tasks of all shards, by which settings that depend on the kind of tasks are chosen.
    pub fn all_tasks(&self) -> Option<&Arc<TaskSet>> {
        self.whole().tasks.as_ref()
    }

    /// Works on a part of the repositories and their tasks from now on.
    pub fn restrict(&mut self, shard: Shard) {
        self.of_all_shards = Some(Arc::new(self.clone()));
        self.name = format!("{} {shard}", self.name);
        self.layout.shard = Some(shard);
        self.repositories.retain(|repository| shard.holds(repository));
        if let Some(all) = self.tasks.take() {
            let held = all.tasks().iter().filter(|task| shard.holds(&task.repository));
            self.tasks = Some(Arc::new(TaskSet::new(all.path.clone(), held.cloned().collect())));
        }
    }

    /// The tasks, which most stages cannot do without.
    ///
    /// # Errors
    /// There are none.
    pub fn tasks(&self) -> Result<&Arc<TaskSet>> {
        self.tasks.as_ref().ok_or(Error::Parameter {
            name: "tasks",
            reason: message!["this stage needs the ", UserChoice::TasksFile],
        })
    }
}
