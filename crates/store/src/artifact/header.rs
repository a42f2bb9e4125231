//! Header of an artifact: its kind, its inputs, and the program that wrote it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Version of the artifact format; incremented whenever a payload or its encoding changes.
pub(crate) const FORMAT: u32 = 2;

/// Everything that determines an artifact's bytes. Two artifacts with the same identity are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Kind of artifact, such as `repository windows`.
    pub kind: String,
    /// Parameters that affect the content.
    pub parameters: BTreeMap<String, String>,
    /// Digest of each input.
    pub inputs: BTreeMap<String, String>,
}

impl Identity {
    /// Creates an identity without parameters and inputs.
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

    /// Returns the differences in kind, parameters and inputs between this identity and the one needed, `other`.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        if self.kind != other.kind {
            return vec![Difference::Kind { was: self.kind.clone(), is: other.kind.clone() }];
        }
        let parameters = parameter_differences(&self.parameters, &other.parameters);
        let inputs = parameter_differences(&self.inputs, &other.inputs);
        let parameters = parameters.map(|(name, was, is)| Difference::Parameter { name, was, is });
        let inputs = inputs.map(|(name, was, is)| Difference::Input { name, was, is });
        parameters.chain(inputs).collect()
    }
}

/// Returns the name, earlier value and present value of each difference: first new and changed parameters, then removed ones.
fn parameter_differences<'m>(
    was: &'m BTreeMap<String, String>,
    is: &'m BTreeMap<String, String>,
) -> impl Iterator<Item = (String, Option<String>, Option<String>)> + 'm {
    let gone = was.iter().filter(|(name, _)| !is.contains_key(*name));
    let gone = gone.map(|(name, was)| (name.clone(), Some(was.clone()), None));
    let there = is.iter().filter(|(name, value)| was.get(*name) != Some(value));
    let there =
        there.map(|(name, value)| (name.clone(), was.get(name).cloned(), Some(value.clone())));
    there.chain(gone)
}

/// Difference between an artifact on disk and the one needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// Another version of the program wrote the artifact.
    Version {
        /// Version that wrote the artifact.
        was: String,
    },
    /// The artifact is of another kind.
    Kind {
        /// Kind of the artifact on disk.
        was: String,
        /// Kind that is needed.
        is: String,
    },
    /// A parameter was changed, added or removed.
    Parameter {
        /// Name of the parameter.
        name: String,
        /// Value with which the artifact was built.
        was: Option<String>,
        /// Current value.
        is: Option<String>,
    },
    /// An input was changed, added or removed.
    Input {
        /// Name of the input.
        name: String,
        /// Digest of the input from which the artifact was built.
        was: Option<String>,
        /// Digest of the current input.
        is: Option<String>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { was } => write!(f, "it was written by repoformer {was}"),
            Self::Kind { was, is } => write!(f, "it holds {was}, not {is}"),
            Self::Parameter { name, was: Some(was), is: Some(is) } => {
                write!(f, "{name} was {was}, is {is}")
            }
            Self::Parameter { name, was: None, .. } => write!(f, "{name} is not recorded"),
            Self::Input { name, is: Some(_), .. } => write!(f, "{name} changed"),
            Self::Parameter { is: None, .. } | Self::Input { is: None, .. } => {
                write!(f, "some of its inputs or settings no longer exist")
            }
        }
    }
}

impl Difference {
    /// Returns `{"parameter", "was", "is"}`, with `input`, `kind` or `version` instead of `parameter` if one of these differs.
    pub fn to_record(&self) -> Value {
        match self {
            Self::Version { was } => {
                json!({"version": "repoformer", "was": was, "is": env!("CARGO_PKG_VERSION")})
            }
            Self::Kind { was, is } => json!({"kind": "artifact", "was": was, "is": is}),
            Self::Parameter { name, was, is } => json!({"parameter": name, "was": was, "is": is}),
            Self::Input { name, was, is } => json!({"input": name, "was": was, "is": is}),
        }
    }
}

/// Description of a column in the artifact's header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnHeader {
    /// Name of the column.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// BLAKE3 of the bytes, in hex.
    pub checksum: String,
}

/// Version of a header. It is read before the other fields, since a later format may have different ones.
#[derive(Debug, Default, Deserialize)]
pub struct HeaderVersion {
    /// Version of the format.
    pub format: Option<u64>,
    /// Version of the program that wrote the header.
    #[serde(default)]
    pub tool: Option<String>,
}

impl HeaderVersion {
    /// Describes the program that wrote the header, if its format is not `format`.
    pub fn other_than(&self, format: u32) -> Option<String> {
        let Self { format: own, tool } = self;
        if *own == Some(u64::from(format)) {
            return None;
        }
        let own = own.map_or_else(|| "null".into(), |own| own.to_string());
        Some(format!(
            "written by repoformer {} in format {own}; this is repoformer {} with format {format}",
            tool.as_deref().unwrap_or("?"),
            env!("CARGO_PKG_VERSION"),
        ))
    }
}

/// Header of an artifact: one line of JSON, readable with `head -n 2`.
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
    /// BLAKE3 of the payload, in hex; for columns, BLAKE3 of their headers.
    pub checksum: String,
    /// Columns of a binary payload, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnHeader>,
    /// Sums over the records, for readers that need nothing else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub totals: BTreeMap<String, u64>,
}

/// Counts of a JSONL artifact, known after all its lines are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineTotals {
    /// Number of records.
    pub records: usize,
    /// Sums over the records, by name.
    pub totals: BTreeMap<String, u64>,
}

/// Returns the BLAKE3 of several texts, in hex. The lengths are hashed too, so that splitting the same characters differently
/// gives another digest.
pub fn digest_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher)
}

/// Returns the digest of everything hashed so far, in hex.
pub(super) fn hex(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex().to_string()
}

impl Header {
    /// Returns the header of a binary artifact.
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

    /// Returns the header of an artifact that is not written yet, with `checksum` as a placeholder.
    pub fn from_plan(identity: &Identity, checksum: String) -> Self {
        Self::of_lines(identity, LineTotals::default(), 0, checksum)
    }

    /// Returns the header of a JSONL artifact of this length and checksum.
    pub(super) fn of_lines(
        identity: &Identity,
        LineTotals { records, totals }: LineTotals,
        bytes: u64,
        checksum: String,
    ) -> Self {
        Self { bytes, checksum, totals, ..Self::of_columns(identity, records, Vec::new()) }
    }

    /// Returns the checksum of all columns: the digest of their headers.
    pub(super) fn checksum_of(columns: &[ColumnHeader]) -> String {
        let mut hasher = blake3::Hasher::new();
        for column in columns {
            let line = format!("{} {} {}\n", column.name, column.bytes, column.checksum);
            hasher.update(line.as_bytes());
        }
        hex(&hasher)
    }
}
