//! Subcommands, and their shared code.

pub(crate) mod cache;
pub(crate) mod compare;
mod comparison_text;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod convert;
mod demonstration;
pub(crate) mod doctor;
mod dry_run;
pub(crate) mod eval;
pub(crate) mod eval_args;
#[cfg(target_os = "linux")]
mod eval_exec;
mod eval_names;
mod eval_output;
mod eval_retrieval;
mod eval_score;
mod exclusions;
pub(crate) mod group;
pub(crate) mod inspect;
pub(crate) mod label;
pub(crate) mod manual;
pub(crate) mod merge;
mod parts;
pub(crate) mod policy;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod rg_rg;
pub(crate) mod run;
pub(crate) mod sample;
mod sample_commits;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod serve_args;
mod session;
pub(crate) mod stages;
pub(crate) mod stats;
pub(crate) mod unparsed;
pub(crate) mod validate;
