//! The statuses that a run of tests can have.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// What a run of tests says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// At least one test ran, and all that ran passed.
    Pass,
    /// A test failed.
    Fail,
    /// The tests could not be run to their end: code that does not load, a crash, a full disk.
    Error,
    /// A limit of time was reached.
    Timeout,
    /// The limit of memory was reached.
    OutOfMemory,
    /// Nothing ran, or all was skipped.
    NoTests,
    /// What tests need is missing, or setting up failed.
    EnvironmentBroken,
}

impl Status {
    /// Every status, in the order of a results table.
    pub const ALL: [Self; 7] = [
        Self::Pass,
        Self::Fail,
        Self::Error,
        Self::Timeout,
        Self::OutOfMemory,
        Self::NoTests,
        Self::EnvironmentBroken,
    ];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::OutOfMemory => "out-of-memory",
            Self::NoTests => "no-tests",
            Self::EnvironmentBroken => "environment-broken",
        }
    }
}

impl FromStr for Status {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|status| status.name() == name);
        found.ok_or_else(|| Error::Parameter {
            name: "status",
            reason: format!(
                "'{name}' is not one of {}",
                Self::ALL.map(Self::name).join(", ")
            ),
        })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
