//! The stages in Repoformer's manner: chunks instead of windows, the same stages and the same cache.

mod contexts;
mod dense;
mod exchange;
mod index;
mod prompt;
mod quality;
mod queries;
mod retrieved;
mod search;
mod vectors;

pub(super) use index::index_repositories;
pub(super) use prompt::{prompt, settings as prompt_settings};
pub(super) use queries::make_queries;
pub(super) use search::{search, time_each};
pub(super) use vectors::{vectorize_queries, vectorize_repositories};

pub use contexts::RightContexts;
pub use dense::{DenseSource, Notice};
pub use exchange::{trec_run, write_beir};
pub use quality::retrieval_quality;
pub use vectors::dense_texts;

use super::{Experiment, Unread, check_digest, check_input, check_parameter};
use crate::error::Result;
use crate::prompt::style::{Budget, Style};
use crate::repository::chunk::{ChunkShape, RepoChunks};
use crate::retrieve::chunks::{Align, Limits, Order, Queries, QueryForm};
use crate::retrieve::query::Mode;
use crate::retrieve::rank::Ranker;
use crate::store::artifact::{Header, Identity};
use crate::text::tokenize::model::Tokenizer;

/// How chunks are searched and shown.
#[derive(Debug)]
pub struct ChunkSettings {
    /// How files are cut.
    pub shape: ChunkShape,
    /// Which lines make a query, where the mode does not say.
    pub form: QueryForm,
    /// Lines of a query.
    pub query_lines: usize,
    /// How chunks are ranked.
    pub ranker: Ranker,
    /// What is shown for a chunk.
    pub align: Align,
    /// Bounds on what is ranked.
    pub limits: Limits,
    /// The order of equal scores.
    pub order: Order,
    /// Whether a fragment's path begins with its repository's folder.
    pub full_paths: bool,
    /// Where dense vectors come from.
    pub dense: Option<DenseSource>,
    /// Who is told what their server does.
    pub notice: Notice,
    /// How prompts are laid out.
    pub layout: PromptLayout,
    /// How much of each context.
    pub budget: Budget,
    /// What counts tokens.
    pub tokenizer: Tokenizer,
}

/// How prompts are laid out.
#[derive(Debug)]
pub enum PromptLayout {
    /// For a model.
    Style(Style),
    /// The tasks themselves, with their cross-file context filled in.
    Attach,
}

impl PromptLayout {
    /// Its name in paths.
    pub fn name(&self) -> &str {
        match self {
            Self::Style(style) => style.name(),
            Self::Attach => "attach",
        }
    }
}

impl Experiment {
    /// The settings of chunks; asked for by the stages in their manner alone.
    fn of_chunks(&self) -> Result<&ChunkSettings> {
        self.chunks.as_ref().ok_or(crate::error::Error::Parameter {
            name: "unit",
            reason: "must be chunks for this".into(),
        })
    }
}

/// An identity with the parameters of the chunks.
fn shaped(experiment: &Experiment, chunks: &ChunkSettings, identity: Identity) -> Identity {
    identity
        .parameter("chunk-size", chunks.shape.size)
        .parameter("chunk-stride", chunks.shape.stride)
        .parameter("language", experiment.layout.language)
}

/// The chunks of a repository as the `window` stage left them.
fn open_chunks(experiment: &Experiment, repository: &str) -> Result<Unread<RepoChunks>> {
    let path = experiment.layout.repo_windows(repository);
    let chunks = Unread::<RepoChunks>::open(&path, "window")?;
    check_parameter(&path, &chunks.header, ("walk", experiment.walk), "window")?;
    Ok(chunks)
}

/// Queries as the `window` stage left them: of the tasks and chunks that are there now.
fn open_queries(
    experiment: &Experiment,
    mode: Mode,
    repository: &str,
    chunks: &Header,
) -> Result<Unread<Queries>> {
    let command = match mode {
        Mode::Prediction => "rg-rg".to_owned(),
        _ => format!("window --mode {mode}"),
    };
    let path = experiment.layout.query_windows(mode, repository);
    let queries = Unread::<Queries>::open(&path, &command)?;
    let tasks = experiment.tasks()?.digest_of(repository);
    check_digest(&path, &queries.header, "tasks", &tasks, &command)?;
    check_input(&path, &queries.header, "chunks", chunks, &command)?;
    let length = experiment.of_chunks()?.query_lines;
    check_parameter(&path, &queries.header, ("query-lines", length), &command)?;
    Ok(queries)
}
