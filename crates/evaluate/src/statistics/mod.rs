//! Statistics: intervals of means, and tests of the difference between two systems.
//!
//! Tasks of one repository resemble each other, so a thousand tasks from seven repositories contain less information than a
//! thousand tasks from a thousand repositories. [`bootstrap`] therefore draws repositories, [`permutation`] tests paired
//! differences by task or by repository, and [`gain`] counts better, same and worse tasks and the buckets of the paper's
//! figures.
//!
//! All randomness comes from a seed; the results are the same bytes on every platform and with any number of threads.
//!
//! ```
//! use repoformer_evaluate::statistics::{Groups, Resampling, SignFlips, ResamplingUnit};
//! let repositories = ["a", "a", "b", "b", "c"].map(Some);
//! let groups = Groups::new(repositories);
//! assert_eq!((groups.unit(), groups.len()), (ResamplingUnit::Repositories, 3));
//!
//! let gains = [0.5, 0.0, 0.25, 0.25, 1.0];
//! let interval = Resampling::default().interval(&groups, &gains).unwrap();
//! assert!(interval.low < 0.4 && 0.4 < interval.high, "the mean is 0.4");
//! assert_eq!((interval.low, interval.high), (0.25, 1.0), "a repository's own mean, drawn three times");
//!
//! // Four tasks differ, so there are 16 ways to flip them, and two are as far from 0: all better, all worse.
//! let test = SignFlips::default().test(&Groups::tasks(5), &gains);
//! assert_eq!((test.p, test.exact), (2.0 / 16.0, true));
//! ```

pub mod bootstrap;
pub mod gain;
mod groups;
mod interval;
mod normal;
pub mod permutation;
mod stream;

pub use bootstrap::Resampling;
pub use gain::{Bucket, Buckets, Changes, GainSign, SAME};
pub use groups::{FEW_REPOSITORIES, Groups, ResamplingUnit};
pub use interval::{Estimate, Interval, IntervalKind};
pub use permutation::{PermutationTest, SignFlips};

#[cfg(test)]
mod tests;
