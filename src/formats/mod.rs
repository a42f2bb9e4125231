//! Record formats of the field: checking files, measuring their tasks, and converting one format into another,
//! and grouping the files of corpora into repositories.

pub mod convert;
pub mod exchange;
pub mod group;
pub mod lengths;
pub mod merge;
pub mod records;
pub mod validate;
