//! One program of integration tests: the library is linked once. A module a subject; those named
//! `cli_*` run the real binary, and `transcripts` shows what it prints.

#![allow(clippy::unwrap_used)] // what a test expects and does not get ends it
#![allow(clippy::print_stderr)] // the tests that are asked for say what they counted

mod benchmarks;
mod book;
mod cli_alike;
#[cfg(feature = "serve")]
mod cli_answers;
mod cli_bad_cache;
mod cli_bad_input;
mod cli_cache;
mod cli_chat;
mod cli_chunks;
mod cli_commits;
mod cli_complete;
mod cli_departures;
mod cli_deveval;
mod cli_doctor;
mod cli_dry_run;
#[cfg(target_os = "linux")]
mod cli_exec;
mod cli_exec_attempts;
mod cli_files;
mod cli_flips;
mod cli_folder_names;
mod cli_formats;
mod cli_functions;
mod cli_group;
#[cfg(unix)]
mod cli_hostile;
mod cli_joins;
mod cli_languages;
mod cli_likelihood;
#[cfg(feature = "serve")]
mod cli_lsp;
mod cli_manual;
#[cfg(unix)]
mod cli_meanwhile;
mod cli_metrics;
mod cli_other_tasks;
mod cli_paper;
mod cli_policy;
#[cfg(target_os = "linux")]
mod cli_progress;
mod cli_repoexec;
#[cfg(target_os = "linux")]
mod cli_secrets;
mod cli_self_policy;
#[cfg(feature = "serve")]
mod cli_serve;
mod cli_shards;
mod cli_shown;
mod cli_tables;
mod cli_uses;
mod cli_verbalize;
#[cfg(not(feature = "serve"))]
mod cli_without_serve;
mod endpoint;
mod messages;
mod reference;
mod report_browser;
#[cfg(unix)]
mod repositories;
mod sources;
mod support;
mod transcripts;
