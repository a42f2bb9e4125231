//! Record formats of the field: checking files, and converting one format into another.

pub mod convert;
pub mod exchange;
pub mod records;
pub mod validate;
