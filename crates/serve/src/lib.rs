//! Completions for editors, with selective retrieval from the repository as it is edited.
//!
//! Follow one keystroke. An editor sends the text around its cursor, over HTTP ([`http`]) or as the client of a language server ([`lsp`]).
//! A [`LiveRepository`] finds the file and prepares the prompt for the cursor, exactly as the pipeline's stages would from the current
//! files; a [`Watch`] notifies it of changes. A [`Decider`] decides whether the prompt shows the retrieved fragments, and a [`Session`]
//! keeps prompts stable from request to request. The model's server writes the completion, which a [`Service`] passes on. A [`Learner`]
//! records labels from the text that the user writes in place of the completions shown.
//!
//! The crate prints nothing; the caller receives its [`Messages`](repoformer_pipeline::Messages).
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use repoformer_models::endpoint::Endpoint;
//! use repoformer_pipeline::{Experiment, Messages};
//! use repoformer_serve::http::{RequestGuard, serve};
//! use repoformer_serve::{
//!     Decider, DecisionPolicy, LiveRepository, Model, ServeError, Service, Session,
//! };
//!
//! fn run(
//!     experiment: Experiment,
//!     policy: DecisionPolicy,
//!     (model, endpoint): (Model, Endpoint),
//!     messages: Arc<dyn Messages>,
//! ) -> Result<(), ServeError> {
//!     let decider = Decider::new(policy, &experiment.prompts)?;
//!     let (live, ()) = LiveRepository::open(experiment, |_| (), &mut |_| {})?;
//!     let session = Session::new(0.0);
//!     let live = Arc::new(live);
//!     let service = Service::new(live, decider, model, endpoint, session, None, messages);
//!     serve(Arc::new(service), RequestGuard::new(([127, 0, 0, 1], 8012).into(), None)?)
//! }
//! ```

#![forbid(unsafe_code)]

mod decide;
mod decisions;
mod error;
pub mod http;
mod learn;
mod live;
pub mod lsp;
mod metrics;
mod request;
mod runtime;
mod service;
mod session;
#[cfg(test)]
mod tests;
mod upstream;
mod watch;

pub use decide::{DECIDING, Decider, DecisionPolicy};
pub use error::ServeError;
pub use learn::Learner;
pub use live::LiveRepository;
pub use service::{Model, Service};
pub use session::Session;
pub use watch::{Watch, Watcher};
