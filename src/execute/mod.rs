//! Unit tests as a metric: a prediction is right when the repository's own tests pass with it (Repoformer and RepoCoder call
//! it the unit-test pass rate).
//!
//! One task's way:
//!
//! 1. [`Site`]: its hole in the file as it lies on the disk. A task that is not its file's is excluded and named.
//! 2. [`Template`], [`TestMap`]: the command that runs its tests.
//! 3. [`Copies`]: a copy of its repository, set up once; the user's own is never written.
//! 4. The oracle ([`run()`]): the tests must pass with the truth, and fail with a failure planted before the hole
//!    ([`Site::planted`]). Tests that do neither say nothing about predictions; their task is excluded and listed.
//! 5. Every prediction in the hole's place, each in a run of its own ([`guard`]), judged by [`judge`].
//! 6. [`pass_at_k`], [`Summaries`]: rates over one denominator, the tasks whose oracle is sound.
//!
//! Every result is appended to a log as it comes, under a digest of all that it depends on: what was run is not run again,
//! be it after an interruption or for another set of predictions. Summaries depend on neither order nor number of workers.
//!
//! [`mine`] finds the tests of each task: it marks the holes, runs the suite once to see which tests come by, and keeps
//! those that notice a planted failure.

mod command;
mod copies;
pub mod guard;
mod log;
pub mod mine;
mod pass_at_k;
mod plant;
mod run;
mod site;
mod subject;
mod summary;
mod test_map;
mod verdict;

pub use command::{Template, Values, default_test_command};
pub use copies::{Broken, Copies, Copy, Errand, Setup};
pub use log::{Kind, Log, Record};
pub use pass_at_k::pass_at_k;
pub use plant::Planting;
pub use run::{Exclusion, Execution, Settings, TaskResult, run};
pub use site::Site;
pub use subject::{Commands, Subject, is_test_file, site, subjects};
pub use summary::{Summaries, Summary};
pub use test_map::{Reading, TestMap};
pub use verdict::{Runner, Status, Verdict, judge};
