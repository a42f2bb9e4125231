//! Work folder of grouping: the work done so far, so that interrupted work can resume, and a lock against a second process.

use std::path::{Path, PathBuf};

use repoformer_store::artifact::{create_folder, write_file};
use repoformer_store::error::{Error, Result};
use repoformer_store::files::{self, File, TryLockError};
use repoformer_store::seal::{Seal, check, seal};
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::inputs::Input;

/// Name in the output folder.
const NAME: &str = ".group";

/// Work folder, locked while this value exists.
pub(super) struct WorkFolder {
    path: PathBuf,
    output: PathBuf,
    _lock: File,
}

/// Inputs and settings of the work in the folder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) settings: Value,
    pub(super) inputs: Vec<Input>,
}

impl Plan {
    /// Returns the difference between work or output of two plans; `None` if they agree.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        if let (Value::Object(ours), Value::Object(theirs)) = (&self.settings, &other.settings) {
            for (name, value) in ours {
                let there = theirs.get(name).unwrap_or(&Value::Null);
                if there != value {
                    return Some(format!("with {name} {there}, not {value}"));
                }
            }
        }
        if self.inputs.len() != other.inputs.len() {
            let (ours, theirs) = (self.inputs.len(), other.inputs.len());
            return Some(format!("of {theirs} input files, not {ours}"));
        }
        let mut pairs = self.inputs.iter().zip(&other.inputs);
        let (ours, _) = pairs.find(|(ours, theirs)| !ours.is_same(theirs))?;
        Some(format!("of other inputs: {} was changed or moved", ours.path))
    }
}

impl WorkFolder {
    /// Opens or creates the folder.
    ///
    /// # Errors
    /// The folder cannot be written, or another process works in it.
    pub(super) fn open(output: &Path) -> Result<Self> {
        let path = output.join(NAME);
        create_folder(&path)?;
        let lock = path.join("lock");
        let options = &mut std::fs::File::options();
        let file = File::open_with(options.create(true).write(true).truncate(false), &lock)
            .map_err(|e| Error::writing(&lock, "create this file", e))?;
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            let reason =
                format!("{}: another process is grouping into this folder", output.display());
            let hint = message!["wait until it ends, or choose another ", UserChoice::OutputPath];
            return Err(Error::execution(reason, hint));
        }
        Ok(Self { path, output: output.to_owned(), _lock: file })
    }

    /// Returns the path of a file in the folder.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Reads a document; `None` if it is missing or damaged.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        read_document(&self.at(name))
    }

    /// Writes a document.
    pub(super) fn write(&self, name: &str, document: &impl Serialize) -> Result<()> {
        write_document(&self.at(name), document)
    }

    /// Removes the folder.
    pub(super) fn remove(self) -> Result<()> {
        files::remove_dir_all(&self.path)
            .map_err(|e| Error::writing(&self.path, "remove this folder", e))
    }

    /// Writes this work's plan, and rejects the folder if it has another plan.
    pub(super) fn begin(&self, plan: &Plan, earlier: Option<&Plan>) -> Result<()> {
        match earlier.map(|earlier| plan.difference(earlier)) {
            Some(Some(difference)) => {
                let reason = format!("holds unfinished work {difference}");
                let hint = message![
                    "repeat the earlier command to continue, remove the folder to start over, or \
                     choose another ",
                    UserChoice::OutputPath
                ];
                return Err(Error::artifact(&self.path, reason, hint));
            }
            // The file times of the new plan may be later.
            Some(None) => {}
            None => self.check_output()?,
        }
        self.write(PLAN, plan)
    }

    /// Rejects an output folder with shards of other work.
    fn check_output(&self) -> Result<()> {
        let cannot_list = |e| Error::reading(&self.output, "list this folder", e);
        for entry in files::read_dir(&self.output).map_err(cannot_list)? {
            let entry = entry.map_err(cannot_list)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("shard-") || name == DROPPED || name == RECORD {
                let reason = "already exists, but does not belong to this run";
                let hint = message!["remove it, or choose another ", UserChoice::OutputPath];
                return Err(Error::artifact(&entry.path(), reason, hint));
            }
        }
        Ok(())
    }
}

/// Name of the plan in the folder.
pub(super) const PLAN: &str = "plan.json";
/// Name of the list of dropped repositories and files, in the output folder.
pub(super) const DROPPED: &str = "dropped.jsonl";
/// Name of the record of the output, which is written last.
pub(super) const RECORD: &str = "group.json";

/// Reads a document with its checksum; `None` if it is missing or damaged.
pub(super) fn read_document<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let read = files::read_regular_if_there(path)
        .map_err(|e| Error::reading(path, "read this file", e))?;
    let whole = read.filter(|bytes| check(bytes) == Seal::Whole);
    Ok(whole.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// Writes a document with its checksum.
pub(super) fn write_document(path: &Path, document: &impl Serialize) -> Result<()> {
    let cannot = |e: serde_json::Error| Error::writing(path, "write this file", e.into());
    let mut json = serde_json::to_vec_pretty(document).map_err(cannot)?;
    json.push(b'\n');
    write_file(path, &seal(json))
}
