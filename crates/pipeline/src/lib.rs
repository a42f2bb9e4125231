//! The stages of an experiment: each reads typed artifacts, calls a pure function of the crates below, and writes a typed artifact.
//!
//! A stage does nothing if its artifact is current. It rebuilds an artifact that is stale or damaged and says why, and if an
//! upstream artifact is missing, names the command that makes it.
//!
//! - [`Experiment`]: the settings of a run. [`Paths`]: the paths of its artifacts. [`Plan`]: the artifacts that a dry run would make.
//! - [`window_repositories`], [`window_queries`], [`vectorize_repositories`], [`vectorize_queries`], [`search`], [`prompt`],
//!   [`complete`], [`evaluate`]: the stages in their order.
//! - [`likelihoods`], [`probabilities`], [`latencies`]: the data that policies learn from. [`selective()`]: the decisions of
//!   policies.
//! - [`merge`]: combines the artifacts of shards. [`cache_files`]: the files of a cache, and their condition.
//! - [`task_prompt`], [`cached_fragments`]: the stages' part in the prompt for a cursor in a repository that is being edited.
//!
//! ```
//! // Names of models and benchmarks become names of files.
//! assert_eq!(repoformer_pipeline::file_name("qwen/coder:1.5b"), "qwen-coder-1.5b");
//! ```

#![forbid(unsafe_code)]

mod cache;
mod complete;
mod completed;
mod completion;
mod contexts;
mod cursor;
mod dense;
mod embed;
mod embedded;
mod engine;
mod eval;
mod exchange;
mod experiment;
mod fragments;
mod indexes;
mod layout;
mod likelihood;
mod merge;
mod messages;
mod plan;
mod prediction_artifact;
mod prompt;
mod prompt_artifact;
mod prompt_batches;
mod prompt_lines;
mod prompt_sources;
mod prompt_warnings;
mod quality;
mod queries;
mod remote;
pub mod report;
mod retrieval_artifact;
mod retrieved;
mod search;
mod search_time;
mod selective;
mod stage;
#[cfg(test)]
mod tests;
mod uses;
mod vectorize;
mod vectors;
mod window;

pub use cache::{
    CacheFile, CacheSources, Condition, RepositoryDigests, STAGES, cache_files, remove_abandoned,
};
pub use complete::{complete, complete_file};
pub use completed::{
    artifact_text, cached_predictions, check_completed_alike, check_searchable, has_predictions,
};
pub use completion::{
    AskedServer, Completion, CompletionBound, EmitLine, IN_CONTEXT, Predictions, Server,
};
pub use contexts::RightContexts;
pub use cursor::{cached_fragments, task_prompt};
pub use dense::DenseSource;
pub use embed::dense_texts;
pub use eval::{Evaluation, check_any, evaluate, scores};
pub use exchange::{trec_run, write_beir};
pub use experiment::{Experiment, PromptLayout, PromptSettings, RetrievalSettings};
pub use layout::{Layout, Paths, file_name};
pub use likelihood::likelihoods;
pub use merge::merge;
pub use messages::{Messages, NoMessages};
pub use plan::{Plan, PlanVerdict, PlannedArtifact, Requests};
pub use prompt::prompt;
pub use prompt_artifact::{PromptTotals, prompt_totals};
pub use prompt_lines::TaskPrompt;
pub use quality::retrieval_quality;
pub use queries::window_queries;
pub use remote::{
    BatchOf, BatchRead, BatchSummary, Latency, PromptText, TokenQuestion, cached_probabilities,
    decision_latencies, latencies, probabilities, read_batch, write_batch,
};
pub use search::search;
pub use search_time::{SearchTime, search_time};
pub use selective::{SelectiveTasks, SignalSources, forget_outdated, selective, write_chosen};
pub use stage::{RebuiltArtifact, StageReport};
pub use uses::{NameMeasurements, definition_uses, unresolved_names};
pub use vectorize::{vectorize_queries, vectorize_repositories};
pub use window::window_repositories;
