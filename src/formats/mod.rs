//! Record formats of the field: checking files, measuring their tasks, and converting one format into another.

pub mod convert;
pub mod exchange;
pub mod lengths;
pub mod merge;
pub mod records;
pub mod validate;
