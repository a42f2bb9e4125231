//! One file or folder per subcommand.

pub(crate) mod compare;
mod comparison_text;
pub(crate) mod complete;
pub(crate) mod convert;
pub(crate) mod eval;
#[cfg(target_os = "linux")]
mod eval_exec;
mod eval_output;
mod eval_retrieval;
mod experiment_settings;
#[cfg(target_os = "linux")]
pub(crate) mod guard;
pub(crate) mod inspect;
pub(crate) mod label;
pub(crate) mod policy;
pub(crate) mod prompt;
pub(crate) mod report;
pub(crate) mod rg_rg;
mod rows;
pub(crate) mod run;
pub(crate) mod sample;
pub(crate) mod search;
mod selective;
mod server;
mod session;
pub(crate) mod validate;
pub(crate) mod vectorize;
pub(crate) mod window;
