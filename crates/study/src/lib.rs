//! Study of code completion: turns the settings that a user requests into experiments, policies, tables, figures and reports.
//!
//! A study begins with [`settings`]: defaults, a profile, a file, the environment and what the front end passes. They describe
//! [`experiments`], one for each task file, cut, ranker and context; the stages of an experiment are in `repoformer-pipeline`.
//! [`policies`] choose between the predictions of two modes. [`rows`], the [`paper`]'s tables and figures, and [`report`]s show
//! the results.
//!
//! ```
//! use repoformer_study::settings::Settings;
//!
//! let settings = Settings::defaults()?;
//! assert_eq!(*settings.top_k, 20);
//! let wider = settings.with(|values| values.top_k.replace(30));
//! assert_eq!(*wider.top_k, 30);
//! # Ok::<(), anyhow::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod checkout;
pub mod choices;
pub mod chosen;
pub mod experiment_settings;
pub mod experiments;
pub mod judged;
pub mod mixed;
pub mod paper;
pub mod policies;
pub mod report;
pub mod reports;
pub mod rows;
pub mod run;
pub mod scoring;
pub mod server;
pub mod settings;
pub mod stage_log;
pub mod stages;
pub mod test_results;
#[cfg(test)]
mod tests;

use repoformer_store::error::Error;
use repoformer_text::message;
use repoformer_text::message::Message;
use repoformer_text::names::{UnknownName, did_you_mean};
use repoformer_text::tokenize::model::TokenizerError;

/// Fails for this reason, with a hint.
///
/// # Errors
/// Always.
pub fn fail<T>(reason: impl Into<Message>, hint: impl Into<Message>) -> anyhow::Result<T> {
    Err(Error::from_refusal(reason, hint).into())
}

/// Fails with the known names, and a hint with the name that was probably meant.
///
/// # Errors
/// Always.
pub fn unknown<T>(
    what: impl Into<Message>,
    given: &str,
    known: &[impl AsRef<str>],
) -> anyhow::Result<T> {
    let names: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    let reason = message![what, format!(" '{given}'; known: {}", names.join(", "))];
    Err(match did_you_mean(given, names) {
        Some(hint) => Error::from_refusal(reason, hint).into(),
        None => reason.into(),
    })
}

/// Returns an error with its causes, as a message.
pub fn message_of(error: &anyhow::Error) -> Message {
    let causes = error.chain().map(|cause| {
        let ours = cause.downcast_ref().map(Error::message);
        let message = || cause.downcast_ref::<Message>().cloned();
        ours.or_else(message).unwrap_or_else(|| cause.to_string().into())
    });
    Message::join(causes, ": ")
}

/// Returns the hint of an error or of one of its causes.
pub fn hint_of(error: &anyhow::Error) -> Option<Message> {
    error.chain().find_map(|cause| {
        let ours = cause.downcast_ref::<Error>().and_then(Error::hint);
        let unknown = || Some(cause.downcast_ref::<UnknownName>()?.hint()?.into());
        let tokenizer = || cause.downcast_ref().map(|e: &TokenizerError| e.hint().into());
        ours.or_else(unknown).or_else(tokenizer)
    })
}
