//! Unit tests as a metric: a prediction is right if the repository's own tests pass with it (Repoformer and RepoCoder call this
//! the unit-test pass rate).
//!
//! The steps for one task:
//!
//! 1. [`Site`]: the hole in the file on disk. A task that does not match its file is excluded and reported.
//! 2. [`Template`], [`TestMap`]: the command that runs the task's tests.
//! 3. [`Copies`]: a copy of the repository, set up once; the original is never written.
//! 4. The oracle ([`run()`]): the tests must pass with the reference text, and fail with a failure planted before the hole
//!    ([`Site::plant_failure`]). Other tests say nothing about predictions, so their tasks are excluded and listed.
//! 5. Every prediction in the hole, each in a run of its own ([`guard`]), judged by [`judge`].
//! 6. [`pass_at_k`], [`Summaries`]: rates over one denominator, the tasks with a sound oracle.
//!
//! Every result is appended to a log as it arrives, under a digest of everything that the result depends on, so that no run is
//! repeated after an interruption or for another set of predictions. Summaries depend on neither the order nor the number of
//! workers.
//!
//! [`mine`] finds the tests of each task: it marks the holes, runs the suite once to see which tests reach them, and keeps
//! those that detect a planted failure.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod bench;
mod command;
mod copies;
pub mod guard;
mod log;
pub mod mine;
mod pass_at_k;
mod plant;
mod remarks;
mod results;
mod run;
mod samples;
mod site;
mod space;
mod subject;
mod summary;
mod telling;
mod test_map;
mod verdict;

pub use bench::{Bench, BenchSettings, Isolation};
pub use command::{NamedPaths, Template, Values, default_test_command};
pub use copies::{Copies, Copy, CopyFailure, CopyFolders, Setup};
pub use log::{HoleText, Log, RunRecord, gather};
pub use pass_at_k::pass_at_k;
pub use plant::StatementPosition;
pub use results::{ExecutionResults, TestedPredictions};
pub use run::{Exclusion, Execution, ExecutionSettings, TaskResult, run};
pub use samples::{check_missing, execution_recipe, read_samples};
pub use site::Site;
pub use subject::{Commands, Subject, site, subjects};
pub use summary::{Summaries, Summary};
pub use test_map::TestMap;
pub use verdict::{Runner, Status, Verdict, judge};
