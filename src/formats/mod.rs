//! Files of the field: telling what they hold, checking them, and turning one into another.

pub mod convert;
pub mod exchange;
pub mod records;
pub mod validate;
