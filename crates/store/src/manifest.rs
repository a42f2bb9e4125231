//! Manifest: the record of settings and inputs that is written into every output file, or next to it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::artifact::write_file;
use crate::error::{Error, Result};
use crate::readings::{self, FileDigest};
use crate::{files, json, seal};

/// Tool, settings, inputs and counts of a result. It contains neither a time nor a machine, so equal results have equal
/// manifests.
///
/// ```
/// use repoformer_store::manifest::Manifest;
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
    inputs: Vec<Input>,
    counts: Map<String, Value>,
}

/// Input of a result. A pipe has no digest, and an input that is not a file has no path.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Input {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blake3: Option<String>,
}

/// Name of the program in manifests.
const TOOL: &str = "repoformer";

impl Manifest {
    /// Creates an empty manifest; `kind` names the result.
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

    /// Adds an input file with the size and digest of the content that was read. `-` and pipes can be read only once, so only
    /// their names are recorded.
    ///
    /// # Errors
    /// The file cannot be read, or changed between two readings.
    pub fn input(&mut self, name: &str, path: &Path) -> Result<()> {
        let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
        let path_text = Some(path.display().to_string());
        let mut input = Input { name: name.into(), path: path_text, bytes: None, blake3: None };
        if is_file {
            // The file may have changed since it was read.
            let FileDigest { bytes, digest } = match readings::find(path)? {
                Some(read) => read,
                None => digest_of(path)?,
            };
            (input.bytes, input.blake3) = (Some(bytes), Some(digest));
        }
        self.inputs.push(input);
        Ok(())
    }

    /// Adds an input that has only a digest.
    pub fn digest(&mut self, name: &str, digest: &str) {
        let blake3 = Some(digest.to_owned());
        self.inputs.push(Input { name: name.into(), path: None, bytes: None, blake3 });
    }

    /// Returns tool, settings, counts and inputs as names and values.
    pub fn lines(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let tool = format!("{} {}", TOOL, env!("CARGO_PKG_VERSION"));
        let named = self.settings.iter().chain(&self.counts);
        let named = named.map(|(name, value)| (name.clone(), text(value)));
        let inputs = self.inputs.iter().map(|Input { name, path, blake3, .. }| {
            let path = path.as_deref().unwrap_or_default();
            let digest = blake3.as_ref().map_or(String::new(), |hex| format!(" (BLAKE3 {hex})"));
            (name.clone(), format!("{path}{digest}"))
        });
        [("tool".to_owned(), tool)].into_iter().chain(named).chain(inputs).collect()
    }

    /// Returns the record `{"tool", "version", "kind", "settings", "inputs", "counts"}`.
    pub fn to_record(&self) -> Value {
        json!({
            "tool": TOOL,
            "version": env!("CARGO_PKG_VERSION"),
            "kind": self.kind,
            "settings": self.settings,
            "inputs": self.inputs,
            "counts": self.counts,
        })
    }
}

/// Returns the path of the manifest next to a file: `FILE.manifest.json`.
pub fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".manifest.json");
    name.into()
}

/// Field of a manifest that describes the file next to the manifest.
const OUTPUT: &str = "output";

/// Field that names the shard in the file.
pub const SHARD: &str = "shard";

/// Returns true if the manifest next to a file states that the file belongs to a shard; such a file may be empty.
pub fn is_part(path: &Path) -> bool {
    read_beside(path).is_ok_and(|manifest| manifest.contains_key(SHARD))
}

/// Adds the size and digest of the file that a manifest describes.
///
/// # Errors
/// The file cannot be read.
pub fn with_output(mut manifest: Value, path: &Path) -> Result<Value> {
    let FileDigest { bytes, digest } = digest_of(path)?;
    manifest[OUTPUT] = json!({"bytes": bytes, "blake3": digest});
    Ok(manifest)
}

/// Writes a manifest next to a file, with the checksum of the file. Standard output (`-`) and pipes have no manifest.
///
/// # Errors
/// The file cannot be read, or the manifest cannot be written.
pub fn write_beside(path: &Path, manifest: &Value) -> Result<()> {
    if path == Path::new("-") || path.exists() && !path.is_file() {
        return Ok(());
    }
    write_document(&beside(path), &with_output(manifest.clone(), path)?)
}

/// Writes a JSON object to a file, indented and with its checksum.
///
/// # Errors
/// The file cannot be written.
pub fn write_document(path: &Path, document: &Value) -> Result<()> {
    write_file(path, &seal::seal(format!("{document:#}\n").into_bytes()))
}

/// Returns the length and digest of a file.
pub fn digest_of(path: &Path) -> Result<FileDigest> {
    let mut hasher = blake3::Hasher::new();
    let hashed = files::File::open(path).and_then(|file| hasher.update_reader(file).map(|_| ()));
    hashed.map_err(|e| Error::reading(path, "read this file", e))?;
    Ok(FileDigest { bytes: hasher.count(), digest: hasher.finalize().to_hex().to_string() })
}

/// Reads the manifest next to a file, as [`read`] does.
///
/// # Errors
/// The manifest is damaged or cannot be read.
pub fn read_beside(path: &Path) -> Result<Map<String, Value>> {
    read(&beside(path))
}

/// Reads a manifest; returns no fields if there is no such file.
///
/// # Errors
/// The manifest is damaged or cannot be read.
pub fn read(manifest: &Path) -> Result<Map<String, Value>> {
    let text = files::read_companion_if_there(manifest)
        .map_err(|e| Error::reading(manifest, "read this manifest", e))?;
    let Some(text) = text else { return Ok(Map::new()) };
    seal::check_document(manifest, &text)?;
    match json::parse(&text) {
        Ok(Value::Object(mut fields)) if !fields.is_empty() => {
            fields.remove(seal::FIELD);
            Ok(fields)
        }
        _ => {
            let hint = "make the file again, or remove its manifest";
            Err(Error::artifact(manifest, "damaged: no JSON object with fields", hint))
        }
    }
}

/// Checks that a file matches the manifest next to it, if there is one.
///
/// # Errors
/// The file or its manifest was changed, or another version wrote it in another format.
pub fn check_beside(path: &Path) -> Result<()> {
    let manifest = read_beside(path)?;
    if let Some(format) = manifest.get(OUTPUT).and_then(seal::other_format) {
        let version = manifest.get("version").and_then(Value::as_str).unwrap_or("unknown");
        let reason = format!("written by repoformer {version} {format}");
        return Err(Error::artifact(path, reason, "read it with that version, or make it again"));
    }
    let Some(digest) = manifest.get(OUTPUT).and_then(|output| output.get("blake3")) else {
        return Ok(());
    };
    let Some(written) = digest.as_str() else {
        let reason = "field 'output.blake3' must be a string: no checksum of the file";
        return Err(Error::artifact(
            &beside(path),
            reason,
            "write the file again, or remove this manifest",
        ));
    };
    if digest_of(path)?.digest == written {
        return Ok(());
    }
    let beside = beside(path).display().to_string();
    let reason = format!("damaged or changed: its checksum in {beside} differs");
    let hint = format!("write the file again; if you changed it on purpose, remove {beside}");
    Err(Error::artifact(path, reason, hint))
}

/// Removes the manifest next to a file that is being rewritten.
///
/// # Errors
/// The manifest cannot be removed.
pub fn forget_beside(path: &Path) -> Result<()> {
    let beside_it = beside(path);
    // A file that is not a manifest of this program stays.
    let fields = files::read_companion(&beside_it).ok().and_then(|text| json::parse(&text).ok());
    let is_own = fields.is_some_and(|fields| fields.get(OUTPUT).is_some());
    if is_own {
        let removed = files::remove_file(&beside_it);
        removed.map_err(|e| Error::writing(&beside_it, "remove this manifest", e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_manifest_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, "abc").unwrap();
        for foreign in ["[1]", "notes on the output", "{\"input\": 1}"] {
            std::fs::write(beside(&path), foreign).unwrap();
            forget_beside(&path).unwrap();
            assert_eq!(std::fs::read_to_string(beside(&path)).unwrap(), foreign);
        }
        write_beside(&path, &Manifest::new("scores").to_record()).unwrap();
        forget_beside(&path).unwrap();
        assert!(!beside(&path).exists());
    }

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
