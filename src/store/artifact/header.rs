//! The header of an artifact: its kind, its inputs, and the program that wrote it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Version of the artifact format; raised whenever a payload or its encoding changes.
pub(crate) const FORMAT: u32 = 2;

/// Everything that determines an artifact's bytes. Two artifacts with the same identity are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Kind of artifact, such as `repository windows`.
    pub kind: String,
    /// Parameters that influence the content.
    pub parameters: BTreeMap<String, String>,
    /// Digest of each input.
    pub inputs: BTreeMap<String, String>,
}

impl Identity {
    /// An identity without parameters and inputs.
    pub fn new(kind: &str) -> Self {
        Self { kind: kind.into(), parameters: BTreeMap::new(), inputs: BTreeMap::new() }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: impl ToString) -> Self {
        self.parameters.insert(name.into(), value.to_string());
        self
    }

    /// Adds an input.
    #[must_use]
    pub fn input(mut self, name: &str, digest: impl Into<String>) -> Self {
        self.inputs.insert(name.into(), digest.into());
        self
    }

    /// Describes the first difference to `other`, for the message about a stale artifact; `None` if they are equal.
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

/// A column as the artifact's header describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnHeader {
    /// Name of the column.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// BLAKE3 of the bytes, in hex.
    pub checksum: String,
}

/// The header of an artifact: one line of JSON, readable with `head -n 2`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Everything that determines the artifact's bytes.
    #[serde(flatten)]
    pub identity: Identity,
    /// Version of the format.
    pub format: u32,
    /// Version of the program that wrote the artifact.
    pub tool: String,
    /// Number of records.
    pub records: u64,
    /// Length of the payload in bytes.
    pub bytes: u64,
    /// BLAKE3 of the payload, in hex; for columns, of their checksums.
    pub checksum: String,
    /// Columns of a binary payload, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnHeader>,
    /// Sums over the records, for readers that need nothing else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub totals: BTreeMap<String, u64>,
}

/// Counts of a JSONL artifact, known once all its lines are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineTotals {
    /// Number of records.
    pub records: usize,
    /// Sums over the records, by name.
    pub totals: BTreeMap<String, u64>,
}

/// BLAKE3 of several texts, in hex; their lengths are hashed too, so that their borders count.
pub(crate) fn digest_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher)
}

/// The digest of everything hashed so far, in hex.
pub(super) fn hex(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex().to_string()
}

impl Header {
    /// Header of a binary artifact.
    pub(super) fn of_columns(
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
            checksum: Self::checksum_of(&columns),
            columns,
            totals: BTreeMap::new(),
        }
    }

    /// Header of a JSONL artifact of this length and checksum.
    pub(super) fn of_lines(
        identity: &Identity,
        LineTotals { records, totals }: LineTotals,
        bytes: u64,
        checksum: String,
    ) -> Self {
        Self { bytes, checksum, totals, ..Self::of_columns(identity, records, Vec::new()) }
    }

    /// Checksum of all columns: the digest of their headers.
    pub(super) fn checksum_of(columns: &[ColumnHeader]) -> String {
        let mut hasher = blake3::Hasher::new();
        for column in columns {
            let line = format!("{} {} {}\n", column.name, column.bytes, column.checksum);
            hasher.update(line.as_bytes());
        }
        hex(&hasher)
    }
}
