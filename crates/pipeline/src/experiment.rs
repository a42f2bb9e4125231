//! An experiment: a data set, how it is searched, how its prompts are laid out, and where its artifacts are stored.

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
use repoformer_text::counts::list_first;
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use repoformer_text::tokenize::model::Tokenizer;

use super::dense::DenseSource;
use super::layout::{Layout, Paths};
use super::messages::Messages;
use super::plan::Plan;

/// Input of a stage: a data set, its parameters, and the paths of its artifacts.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Name in tables and messages: the benchmark's, with the sizes of fragments if a run has several.
    pub name: String,
    /// Folder with one folder for each repository.
    pub repos_dir: PathBuf,
    /// The repositories that take part, sorted.
    pub repositories: Vec<String>,
    /// The benchmark's tasks, including those of other repositories; without tasks, repositories are only windowed and
    /// vectorized.
    pub tasks: Option<Arc<TaskSet>>,
    /// The experiment of all shards, if this one is limited to the layout's shard.
    pub of_all_shards: Option<Arc<Experiment>>,
    /// Paths of artifacts.
    pub layout: Layout,
    /// Rule for which files of a folder count.
    pub walk: Walk,
    /// How fragments are searched.
    pub retrieval: RetrievalSettings,
    /// How prompts are laid out.
    pub prompts: PromptSettings,
    /// How predictions are scored.
    pub scoring: Scoring,
    /// In a dry run, the artifacts that would be made.
    pub plan: Option<Plan>,
    /// Receives the messages of the stages.
    pub messages: Arc<dyn Messages>,
}

/// Settings of the search for fragments.
#[derive(Debug, Clone)]
pub struct RetrievalSettings {
    /// Lines that make up a query, if the mode does not determine them.
    pub form: QueryForm,
    /// Number of lines in a query; a window has its own number.
    pub query_lines: usize,
    /// Ranker, visibility and number of fragments.
    pub search: SearchSettings,
    /// Source of dense vectors.
    pub dense: Option<DenseSource>,
}

/// Settings of the layout of prompts.
#[derive(Debug, Clone)]
pub struct PromptSettings {
    /// Which lines are shown for a fragment.
    pub align: Align,
    /// Largest number of fragments in a prompt.
    pub most: usize,
    /// True if a fragment's path begins with its repository's folder.
    pub full_paths: bool,
    /// Style of prompts.
    pub layout: PromptLayout,
    /// Number of tokens for each context.
    pub budget: Budget,
    /// Counts tokens, except in RepoCoder's style, which counts tokens of `p50k_base`.
    pub tokenizer: Tokenizer,
}

/// Style of prompts.
#[derive(Debug, Clone)]
pub enum PromptLayout {
    /// RepoCoder's style: blocks of comments before the task's prompt.
    RepoCoder,
    /// The style of a model.
    Style(Style),
    /// The tasks themselves, with cross-file context filled in.
    Attach,
}

impl PromptLayout {
    /// Returns the name in paths.
    pub fn name(&self) -> &str {
        match self {
            Self::RepoCoder => "repocoder",
            Self::Style(style) => style.name(),
            Self::Attach => "attach",
        }
    }

    /// Returns the model's style, if prompts are for a model.
    pub fn style(&self) -> Option<&Style> {
        match self {
            Self::Style(style) => Some(style),
            Self::RepoCoder | Self::Attach => None,
        }
    }
}

impl PromptSettings {
    /// Returns the budget of RepoCoder's style.
    pub(super) fn repocoder_budget(&self) -> prompt::RepoCoderBudget {
        prompt::RepoCoderBudget { tokens: self.budget.total, blocks: self.most }
    }
}

/// Number of folder names that an error lists.
const LISTED: usize = 10;

/// Returns the error for a folder that has none of the tasks' repositories; the error lists the folders that exist.
fn not_below(repos_dir: &Path, there: &[String], first: &str, lost: usize) -> Error {
    let folder = repos_dir.display();
    let more = if lost > 1 { format!(" and {} others", lost - 1) } else { String::new() };
    let listed = list_first(there, LISTED);
    let reason = format!(
        "{folder}: has no folder of a repository of the tasks ({first}{more}); it has {listed}"
    );
    let below = there.iter().find(|name| repos_dir.join(name).join(first).is_dir());
    let hint = match below {
        Some(name) => message![
            "name the folder one level down as the ",
            UserChoice::RepositoriesFolder,
            format!(": {}", repos_dir.join(name).display())
        ],
        None => message![
            "name another ",
            UserChoice::RepositoriesFolder,
            ", or the ",
            UserChoice::TasksFile,
            " of these repositories"
        ],
    };
    Error::from_refusal(reason, hint)
}

impl Experiment {
    /// Names the fragments and their ranker, such as `chunks ranked by jaccard`: other fragments or rankers have scores on
    /// another scale.
    pub fn fragments_name(&self) -> String {
        let unit = if self.layout.cut.is_windows() { "windows" } else { "chunks" };
        format!("{unit} ranked by {}", self.retrieval.search.ranker)
    }

    /// Determines which repositories take part: the named ones, or those that the tasks name, or all existing ones. A named
    /// repository without a folder does not take part and is reported, with the number of tasks that are lost.
    ///
    /// # Errors
    /// The repositories folder cannot be listed, or none takes part.
    pub fn settle_repositories(
        repos_dir: &Path,
        named: &[String],
        mut tasks: Option<&mut TaskSet>,
    ) -> Result<(Vec<String>, Vec<Error>)> {
        let there = corpus::folder_names_with(repos_dir, named)?;
        if let Some(tasks) = &mut tasks {
            tasks.name_folders(&there);
        }
        let mut problems = Vec::new();
        let wanted = match &tasks {
            _ if !named.is_empty() => {
                let mut names = named.to_vec();
                names.sort_unstable();
                names.dedup();
                names
            }
            Some(tasks) => tasks.repositories(),
            None => {
                let found = corpus::RepositoryFolders::below(repos_dir)?;
                problems.extend(found.caches_with_source.iter().map(|name| Error::Repository {
                    path: repos_dir.join(name),
                    reason: "left out: it looks like a cache of this program, but has source files; move these or \
                             the cache to another folder"
                        .into(),
                }));
                found.names
            }
        };
        // A name that is not UTF-8 is listed with replacement characters; no folder is found under such a name.
        let (found, lost): (Vec<_>, Vec<_>) = wanted
            .into_iter()
            .partition(|name| there.binary_search(name).is_ok() && repos_dir.join(name).is_dir());
        if let (true, true, Some(first)) = (found.is_empty(), named.is_empty(), lost.first()) {
            return Err(not_below(repos_dir, &there, first, lost.len()));
        }
        for name in lost {
            let of_it = tasks.as_ref().map_or(0, |set| set.of_repository(&name).count());
            let cost = match of_it {
                0 => String::new(),
                1 => ", so 1 task cannot be completed".into(),
                n => format!(", so {n} tasks cannot be completed"),
            };
            let reason = message![
                format!("the repository folder does not exist{cost}; add it, or choose other "),
                UserChoice::Repositories
            ];
            problems.push(Error::Repository { path: repos_dir.join(&name), reason });
        }
        if found.is_empty() {
            let none = Error::Repository {
                path: repos_dir.into(),
                reason: "contains none of the repositories".into(),
            };
            return Err(problems.into_iter().next().unwrap_or(none));
        }
        Ok((found, problems))
    }

    /// Returns the paths of the artifacts.
    pub fn paths(&self) -> Paths<'_> {
        Paths::new(self)
    }

    /// Returns the header that an artifact would have after a dry run; `None` if the dry run would not have made it.
    pub fn planned_header(&self, path: &Path) -> Option<Header> {
        self.plan.as_ref()?.get(path)
    }

    /// True if an artifact exists, or a dry run would have made it.
    pub fn has(&self, path: &Path) -> bool {
        self.is_planned(path) || path.exists()
    }

    /// True if a dry run would have made an artifact, so that its content is not known.
    pub fn is_planned(&self, path: &Path) -> bool {
        self.planned_header(path).is_some()
    }

    /// Starts work of a stage.
    pub(super) fn work(&self, stage: &str, unit: &'static str, steps: usize) -> Work {
        Work::new(format!("{stage} {}", self.name), unit, steps)
    }

    /// Returns the modes in which its prompts may be made, in the order of a results table.
    pub fn known_modes(&self) -> &'static [Mode] {
        match self.prompts.layout {
            PromptLayout::RepoCoder => &REPOCODER_MODES,
            PromptLayout::Style(_) | PromptLayout::Attach => &Mode::ALL,
        }
    }

    /// Searches with another ranker and form of queries from now on.
    pub fn search_with(&mut self, ranker: Ranker, form: QueryForm) {
        self.retrieval.search.ranker = ranker;
        self.retrieval.form = form;
    }

    /// Returns which lines make up a query in a mode.
    pub fn form(&self, mode: Mode) -> QueryForm {
        self.retrieval.form.of_mode(mode)
    }

    /// True if a ranker needs dense vectors.
    pub(super) fn ranks_dense(&self) -> bool {
        self.retrieval.search.ranker.parts().contains(&Ranker::Dense)
    }

    /// True if the ranker looks up the names of files, which depends on the tasks' texts.
    pub(super) fn reads_names(&self) -> bool {
        let ranker = &self.retrieval.search.ranker;
        ranker.finds_definitions() || ranker.has_prior()
    }

    /// Returns which lines are shown for a fragment found in a mode.
    pub fn align(&self, mode: Mode) -> Align {
        match (self.prompts.align, &self.retrieval.search.ranker) {
            // The search was for the fragment itself, not for the lines after it.
            (Align::Auto, ranker) if ranker.parts() == [Ranker::Definitions] => Align::None,
            // Fragments that are not definitions are shown as they are.
            (Align::Signature, ranker) if !ranker.finds_definitions() => Align::None,
            (align, _) => align.resolve(self.form(mode), mode),
        }
    }

    /// Returns how the fragments found in a mode are shown.
    pub(super) fn fragment_text_settings(&self, mode: Mode) -> FragmentTextSettings {
        FragmentTextSettings {
            align: self.align(mode),
            most: self.prompts.most,
            full_paths: self.prompts.full_paths,
            visibility: self.retrieval.search.visibility,
        }
    }

    /// True if a prompt can show all of a text.
    pub(super) fn fits(&self, text: &str) -> bool {
        let PromptSettings { budget, tokenizer, .. } = &self.prompts;
        tokenizer.count(text) <= budget.cross_file.unwrap_or(budget.total)
    }

    /// True if tasks without a right context get one from their files.
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

    /// Adds the ranker, and the terms that it compares, to an identity.
    pub(super) fn with_ranking(&self, identity: Identity) -> Identity {
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

    /// Returns the experiment of all shards, as it was before a shard was chosen.
    pub fn whole(&self) -> &Self {
        self.of_all_shards.as_deref().unwrap_or(self)
    }

    /// Returns the tasks of all shards, which determine settings that depend on the kind of tasks.
    pub fn all_tasks(&self) -> Option<&Arc<TaskSet>> {
        self.whole().tasks.as_ref()
    }

    /// Works only on a shard of the repositories and their tasks from now on.
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

    /// Returns the tasks, which most stages need.
    ///
    /// # Errors
    /// The experiment has no tasks.
    pub fn tasks(&self) -> Result<&Arc<TaskSet>> {
        self.tasks.as_ref().ok_or(Error::Parameter {
            name: "tasks",
            reason: message!["this stage needs the ", UserChoice::TasksFile],
        })
    }
}
