//! The subcommands, and what they share.

pub(crate) mod cache;
mod checkout;
mod chosen;
pub(crate) mod compare;
mod comparison_text;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod convert;
mod curve_charts;
mod demonstration;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod eval_args;
mod eval_definitions;
#[cfg(target_os = "linux")]
mod eval_exec;
mod eval_output;
mod eval_retrieval;
mod eval_score;
mod exclusions;
mod experiment_settings;
mod experiments;
pub(crate) mod group;
pub(crate) mod inspect;
mod judged;
pub(crate) mod label;
pub(crate) mod manual;
pub(crate) mod merge;
mod mixed;
pub(crate) mod paper;
mod parts;
pub(crate) mod policy;
#[cfg(feature = "serve")]
pub(crate) mod replay;
pub(crate) mod report;
mod reports;
pub(crate) mod rg_rg;
mod rows;
pub(crate) mod run;
pub(crate) mod sample;
mod sample_commits;
mod selective;
#[cfg(feature = "serve")]
pub(crate) mod serve;
mod server;
mod session;
mod stage_log;
pub(crate) mod stages;
pub(crate) mod stats;
mod tests_of_run;
pub(crate) mod validate;
