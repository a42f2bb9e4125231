//! Files of the field: checked, measured, converted, merged and grouped.
//!
//! - [`validate`](mod@validate): every problem of a file of records, with its line.
//! - [`convert`](mod@convert), [`exchange`]: one format as another. [`lengths`](mod@lengths): how long tasks are.
//! - [`group`](mod@group): rows of corpora as shards of repositories. [`merge`](mod@merge): files of records that shards wrote.
//! - [`draw`]: tasks drawn from repositories and commits. [`label`]: files of instances, labels and training sequences.
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
