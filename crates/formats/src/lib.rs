//! File formats of the field: validation, measurement, conversion, merging and grouping.
//!
//! - [`validate`](mod@validate): reports every problem of a file of records, with its line.
//! - [`convert`](mod@convert), [`exchange`]: conversion between formats. [`lengths`](mod@lengths): lengths of tasks.
//! - [`group`](mod@group): grouping of rows of corpora into shards of repositories. [`merge`](mod@merge): merging of the files
//!   of records that shards wrote.
//! - [`draw`]: tasks sampled from repositories and commits. [`label`]: files of instances, labels and training sequences.
//!
//! ```
//! use repoformer_formats::validate::validate;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("tasks.jsonl");
//! std::fs::write(&path, "{\"task_id\": 1}\nno JSON\n")?;
//! let validation = validate(&path, None)?;
//! assert_eq!(validation.records, 2);
//! assert!(validation.findings.iter().any(|finding| finding.line == 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod convert;
pub mod draw;
pub mod exchange;
pub mod group;
pub mod label;
pub mod lengths;
pub mod merge;
pub mod validate;
