//! Unit tests as a metric: a prediction is correct if the repository's own tests pass with it (the unit-test pass rate of the Repoformer
//! and RepoCoder papers).
//!
//! The steps for one task:
//!
//! 1. [`Site`]: the hole in the file on disk. A task that does not match its file is excluded and reported.
//! 2. [`Template`], [`TestMap`]: the command that runs the task's tests.
//! 3. [`Copies`]: a copy of the repository, set up once; the original is never written.
//! 4. The oracle ([`run()`]): the tests must pass with the reference text, and fail with a failure planted before the hole
//!    ([`Site::plant_failure`]). Other tests reveal nothing about predictions, so their tasks are excluded and listed.
//! 5. Each prediction is inserted into the hole, in a separate run ([`guard`]), and judged by [`judge`].
//! 6. [`pass_at_k`], [`Summaries`]: rates over one denominator, the tasks with a sound oracle.
//!
//! Every result is appended to a log as it arrives, under a digest of everything that it depends on, so that no run is repeated after an
//! interruption or for another set of predictions. Summaries do not depend on the order of results or the number of workers.
//!
//! A run's outcome decides whether a sample passes, and the samples decide pass@k:
//!
//! ```
//! use repoformer_execute::guard::{RunEnd, RunOutcome};
//! use repoformer_execute::{Runner, Status, Template, Values, judge, pass_at_k};
//!
//! let command = Template::parse("test-cmd", "pytest -q {tests}")?;
//! let tests = ["test_cli.py::test_add".to_owned()];
//! let command = command.fill(Values { tests: &tests, ..Values::default() });
//! assert_eq!(command, "pytest -q test_cli.py::test_add");
//!
//! let outcome = |exit_code, output: &str| RunOutcome {
//!     ended: RunEnd::Exited,
//!     exit_code: Some(exit_code),
//!     output: output.into(),
//!     ..RunOutcome::default()
//! };
//! assert_eq!(judge(Runner::Pytest, &outcome(0, "1 passed in 0.1s")).status, Status::Pass);
//! assert_eq!(judge(Runner::Pytest, &outcome(1, "1 failed in 0.1s")).status, Status::Fail);
//! assert_eq!(pass_at_k(2, 1, 1), Some(0.5));
//! # Ok::<(), repoformer_store::error::Error>(())
//! ```
//!
//! [`mine`] finds the tests of each task: it marks the holes, runs the suite once to see which tests reach the marks, and keeps the tests
//! that detect a planted failure.

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
