//! The head of an artifact: what it is, what it was made from, and by what.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::columns::{self, ColumnHeader};

/// Version of the artifacts' format; raised whenever a payload or its encoding changes.
pub(crate) const FORMAT: u32 = 2;

/// What determines an artifact's bytes. Two artifacts with the same identity are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// What it is, such as `repository windows`.
    pub kind: String,
    /// Parameters that shaped it.
    pub parameters: BTreeMap<String, String>,
    /// Digest of each thing it was made from.
    pub inputs: BTreeMap<String, String>,
}

impl Identity {
    /// Of an artifact of this kind.
    pub fn new(kind: &str) -> Self {
        Self {
            kind: kind.into(),
            parameters: BTreeMap::new(),
            inputs: BTreeMap::new(),
        }
    }

    /// With one more parameter.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: impl ToString) -> Self {
        self.parameters.insert(name.into(), value.to_string());
        self
    }

    /// With one more input.
    #[must_use]
    pub fn input(mut self, name: &str, digest: impl Into<String>) -> Self {
        self.inputs.insert(name.into(), digest.into());
        self
    }

    /// In what `other` differs, for the message about a stale artifact; `None` where it does not.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.kind != other.kind {
            return Some(format!("it holds {}, not {}", self.kind, other.kind));
        }
        for (name, value) in &other.parameters {
            match self.parameters.get(name) {
                Some(old) if old == value => {}
                Some(old) => return Some(format!("{name} was {old}, is {value}")),
                None => return Some(format!("{name} is not recorded")),
            }
        }
        for (name, digest) in &other.inputs {
            if self.inputs.get(name) != Some(digest) {
                return Some(format!("{name} changed"));
            }
        }
        (self != other).then(|| "it was made from more than is there now".into())
    }
}

/// The header of an artifact: one line of JSON, readable with `head -n 2`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// What determines its bytes.
    #[serde(flatten)]
    pub identity: Identity,
    /// Version of the format.
    pub format: u32,
    /// Version of the program that wrote it.
    pub tool: String,
    /// Number of records.
    pub records: u64,
    /// Bytes of the payload.
    pub bytes: u64,
    /// BLAKE3 of the payload, in hex; of the columns' checksums where it has columns.
    pub checksum: String,
    /// What a binary payload consists of, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnHeader>,
    /// Sums over the records that a reader may want without reading them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub totals: BTreeMap<String, u64>,
}

/// What is known of a JSONL artifact once all its lines are made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineTotals {
    /// Number of records.
    pub records: usize,
    /// Sums over the records, by name.
    pub totals: BTreeMap<String, u64>,
}

impl Header {
    /// Of a binary artifact.
    pub(crate) fn of_columns(
        identity: &Identity,
        records: usize,
        columns: Vec<ColumnHeader>,
    ) -> Self {
        Self {
            identity: identity.clone(),
            format: FORMAT,
            tool: env!("CARGO_PKG_VERSION").into(),
            records: records as u64,
            bytes: columns.iter().map(|column| column.bytes).sum(),
            checksum: columns::checksum(&columns),
            columns,
            totals: BTreeMap::new(),
        }
    }

    /// Of a JSONL artifact of so many bytes and with this checksum.
    pub(crate) fn of_lines(
        identity: &Identity,
        LineTotals { records, totals }: LineTotals,
        (bytes, checksum): (u64, String),
    ) -> Self {
        Self {
            bytes,
            checksum,
            totals,
            ..Self::of_columns(identity, records, Vec::new())
        }
    }
}
