//! Manifest: the record of settings and inputs that is written in, or beside, every output file.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::store::artifact::digest;
use crate::store::files;

/// Tool, settings, inputs and counts of a result. It contains neither time nor machine, so equal results have equal
/// manifests.
///
/// ```
/// use repoformer::store::manifest::Manifest;
/// let mut manifest = Manifest::new("scores");
/// manifest.setting("metrics", "repocoder");
/// manifest.count("tasks", 3);
/// let record = manifest.to_record();
/// assert_eq!((&record["kind"], &record["settings"]["metrics"], &record["counts"]["tasks"]),
///     (&"scores".into(), &"repocoder".into(), &3.into()));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    kind: String,
    settings: Map<String, Value>,
    inputs: Vec<Value>,
    counts: Map<String, Value>,
}

impl Manifest {
    /// An empty manifest; `kind` names the result.
    pub fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), settings: Map::new(), inputs: Vec::new(), counts: Map::new() }
    }

    /// Adds a setting.
    pub fn setting(&mut self, name: &str, value: impl Into<Value>) {
        self.settings.insert(name.to_owned(), value.into());
    }

    /// Adds a count.
    pub fn count(&mut self, name: &str, count: usize) {
        self.counts.insert(name.to_owned(), count.into());
    }

    /// Adds an input file with size and digest; `-` and pipes can be read only once, so they are recorded by name.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn input(&mut self, name: &str, path: &Path) -> Result<()> {
        let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
        let mut input = json!({"name": name, "path": path.display().to_string()});
        if is_file {
            let bytes = files::read(path).map_err(|e| Error::reading(path, "read this file", e))?;
            input["bytes"] = bytes.len().into();
            input["blake3"] = digest(&bytes).into();
        }
        self.inputs.push(input);
        Ok(())
    }

    /// Adds an input of which only the digest is known.
    pub fn digest(&mut self, name: &str, digest: &str) {
        self.inputs.push(json!({"name": name, "blake3": digest}));
    }

    /// Returns the record `{"tool", "version", "kind", "settings", "inputs", "counts"}`.
    pub fn to_record(&self) -> Value {
        json!({
            "tool": env!("CARGO_PKG_NAME"),
            "version": env!("CARGO_PKG_VERSION"),
            "kind": self.kind,
            "settings": self.settings,
            "inputs": self.inputs,
            "counts": self.counts,
        })
    }
}

/// Path of the manifest that lies beside a file: `FILE.manifest.json`.
pub fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".manifest.json");
    name.into()
}

/// Reads the manifest beside a file; it is empty where none can be read.
pub fn read_beside(path: &Path) -> Map<String, Value> {
    let text = files::read(beside(path)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_by_their_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, "abc").unwrap();
        let mut manifest = Manifest::new("scores");
        manifest.input("tasks", &path).unwrap();
        manifest.input("predictions", Path::new("-")).unwrap();
        let inputs = &manifest.to_record()["inputs"];
        assert_eq!(inputs[0]["bytes"], 3);
        assert_eq!(inputs[0]["blake3"], blake3::hash(b"abc").to_hex().as_str());
        assert_eq!(inputs[1], json!({"name": "predictions", "path": "-"}));
    }
}
