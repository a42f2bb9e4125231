//! Sampling of instances from repositories into a file.

use std::io::ErrorKind;
use std::path::Path;

use repoformer_core::label::{
    CollectSettings, CollectSummary, Drawing, Filter, InstanceKind, RAW_FOLDER, RecordFormat,
    Repositories, collect, fingerprint,
};
use repoformer_core::repository::Shard;
use repoformer_store::artifact::digest;
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_store::inputs;
use repoformer_store::manifest::{
    Manifest, beside, check_beside, read_beside, with_output, write_beside,
};
use serde_json::Value;

use crate::merge::{Positions, write_shard_beside};

/// Instances to sample, and the repositories to sample them from.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceRequest {
    /// Source of the repositories.
    pub from: Repositories,
    /// Shard of the repositories; `None` for all.
    pub shard: Option<Shard>,
    /// Filter of the repositories.
    pub filter: Filter,
    /// Settings of sampling from each repository.
    pub drawing: Drawing,
    /// Format of the records.
    pub format: RecordFormat,
}

/// Counts of the sampled instances, and their positions among the instances of all shards.
#[derive(Debug)]
pub struct InstanceDraw {
    /// Counts of the instances and of their repositories.
    pub summary: CollectSummary,
    positions: Positions,
}

impl InstanceRequest {
    fn collecting<'a>(&'a self, journal: Option<&'a Path>) -> CollectSettings<'a> {
        CollectSettings {
            from: &self.from,
            shard: self.shard.unwrap_or(Shard::WHOLE),
            filter: &self.filter,
            drawing: &self.drawing,
            format: self.format,
            journal,
        }
    }

    /// Returns the digest of everything that the instances depend on, and errors for the files that cannot be read.
    ///
    /// # Errors
    /// The same as for [`fingerprint`].
    pub fn fingerprint(&self) -> Result<(String, Vec<Error>)> {
        fingerprint(&self.collecting(None))
    }

    /// Samples the instances, and passes each record to `emit` as a line of JSON without a newline. The journal keeps the
    /// sampled instances.
    ///
    /// # Errors
    /// The same as for [`collect`].
    pub fn draw(
        &self,
        journal: Option<&Path>,
        emit: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<InstanceDraw> {
        let mut positions = Positions::default();
        let summary = collect(&self.collecting(journal), &mut |position, record| {
            positions.add(position);
            emit(record)
        })?;
        Ok(InstanceDraw { summary, positions })
    }

    /// Returns true if no instance could be sampled although some were expected: a shard of the repositories may have no
    /// suitable one.
    pub fn lacks_instances(&self, draw: &InstanceDraw) -> bool {
        let CollectSummary { instances, problems, .. } = &draw.summary;
        *instances == 0 && (self.shard.is_none() || !problems.is_empty())
    }

    /// Writes a manifest next to a shard's instances, `output`, that names the shard; writes nothing for the instances of all
    /// repositories.
    ///
    /// # Errors
    /// A file cannot be read, or the manifest cannot be written.
    pub fn write_manifest(&self, draw: &InstanceDraw, output: &Path) -> Result<()> {
        match self.shard {
            Some(shard) => write_shard_beside(output, &self.manifest()?, shard, &draw.positions),
            None => Ok(()),
        }
    }

    /// Returns a manifest with the data that all shards share.
    fn manifest(&self) -> Result<Manifest> {
        let mut manifest = Manifest::new("instances");
        manifest.setting("kind", self.drawing.kind.name());
        manifest.setting("seed", self.drawing.seed);
        manifest.setting("settings", self.collecting(None).digest());
        match &self.from {
            Repositories::Raw(path, names) => {
                manifest.setting("repositories", names.clone());
                // A folder's record has the digest of each of its files.
                let record = path.join(RAW_FOLDER);
                manifest.input("raw", if path.is_dir() { &record } else { path })?;
            }
            Repositories::Folders(_, names, walk) => {
                manifest.setting("repositories", digest(names.join("\n").as_bytes()));
                manifest.setting("walk", walk.to_string());
            }
        }
        Ok(manifest)
    }
}

/// File of instances that are kept: the manifest next to it records their source.
#[derive(Debug, Clone, Copy)]
pub struct InstanceFile<'a> {
    /// Path of the file.
    pub path: &'a Path,
    /// Kind of the instances.
    pub kind: InstanceKind,
    /// Seed of the random draws.
    pub seed: u64,
}

/// State of a file of instances.
#[derive(Debug)]
pub enum InstanceFileState {
    /// It contains the instances that would be sampled.
    Current,
    /// It is damaged or was changed; the error describes how.
    Damaged(Error),
    /// It does not exist, or contains other instances.
    Stale,
}

impl InstanceFile<'_> {
    fn manifest(&self, drawn_from: &str) -> Value {
        let mut manifest = Manifest::new("instances");
        manifest.setting("kind", self.kind.name());
        manifest.setting("seed", self.seed.to_string());
        manifest.setting("drawn-from", drawn_from);
        manifest.to_record()
    }

    /// Compares the file with the instances that would be sampled, given by their digest ([`InstanceRequest::fingerprint`]).
    pub fn state(&self, drawn_from: &str) -> InstanceFileState {
        let known = read_beside(self.path);
        if let (Ok(known), Ok(Value::Object(current))) =
            (&known, with_output(self.manifest(drawn_from), self.path))
            && current == *known
        {
            return InstanceFileState::Current;
        }
        if !self.path.exists() {
            return InstanceFileState::Stale;
        }
        match known.and_then(|_| check_beside(self.path)) {
            Ok(()) => InstanceFileState::Stale,
            Err(damage) => InstanceFileState::Damaged(damage),
        }
    }

    /// Removes the manifest before the file is rewritten.
    ///
    /// # Errors
    /// The manifest cannot be removed.
    pub fn remove_manifest(&self) -> Result<()> {
        // `state` read the file to compare it with its manifest.
        inputs::release(self.path);
        let beside = beside(self.path);
        match files::remove_file(&beside) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                Err(Error::writing(&beside, "remove this file", e))
            }
            _ => Ok(()),
        }
    }

    /// Writes the manifest of the instances in the file; `drawn_from` is the digest of their source.
    ///
    /// # Errors
    /// The file cannot be read, or the manifest cannot be written.
    pub fn write_manifest(&self, drawn_from: &str) -> Result<()> {
        write_beside(self.path, &self.manifest(drawn_from))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use repoformer_core::repository::corpus::Walk;

    use super::*;
    use crate::merge::merge;

    /// Returns a request for three repositories of a hundred lines each.
    fn request(folder: &Path) -> InstanceRequest {
        let names = ["one", "two", "three"].map(String::from);
        for name in &names {
            let line = |number| format!("{name}_{number} = {number} + len({name:?})\n");
            std::fs::create_dir_all(folder.join(name)).unwrap();
            let text: String = (0..100).map(line).collect();
            std::fs::write(folder.join(name).join("a.py"), text).unwrap();
        }
        InstanceRequest {
            from: Repositories::Folders(folder.to_owned(), names.to_vec(), Walk::default()),
            shard: None,
            filter: Filter::none(),
            drawing: Drawing { ratio: 1.0, ..Drawing::paper(InstanceKind::Chunk) },
            format: RecordFormat::Labels,
        }
    }

    fn draw(request: &InstanceRequest, output: &Path) -> InstanceDraw {
        let mut text = String::new();
        let draw = request.draw(None, &mut |record| {
            text += &format!("{record}\n");
            Ok(())
        });
        let draw = draw.unwrap();
        std::fs::write(output, text).unwrap();
        request.write_manifest(&draw, output).unwrap();
        draw
    }

    #[test]
    fn instances_of_shards_are_those_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let all = request(&folder.path().join("repos"));
        let path = |name: &str| folder.path().join(name);
        let whole = draw(&all, &path("all"));
        assert!(whole.summary.instances >= 3, "{:?}", whole.summary);
        assert!(!beside(&path("all")).exists());
        assert_eq!(all.fingerprint().unwrap().0, whole.summary.drawn_from);
        let parts: Vec<PathBuf> = Shard::all(2)
            .map(|shard| {
                let output = path(&shard.file_name());
                draw(&InstanceRequest { shard: Some(shard), ..all.clone() }, &output);
                output
            })
            .collect();
        merge(&parts, &path("merged")).unwrap();
        let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
        assert_eq!(read("merged"), read("all"));
        // Other settings do not count as part of a whole.
        let shard = Shard::all(2).nth(1);
        let drawing = Drawing { seed: 1, ..all.drawing.clone() };
        draw(&InstanceRequest { shard, drawing, ..all.clone() }, &parts[1]);
        let error = merge(&parts, &path("merged")).unwrap_err().to_string();
        assert!(error.contains("seed differs"), "{error}");
    }

    #[test]
    fn only_a_shard_may_be_empty() {
        let folder = tempfile::tempdir().unwrap();
        let mut all = request(folder.path());
        all.filter.files = 2;
        let output = folder.path().join("x");
        let none = draw(&all, &output);
        assert!(all.lacks_instances(&none));
        all.shard = Some(Shard { index: 0, count: 1 });
        assert!(!all.lacks_instances(&none));
    }

    #[test]
    fn a_file_is_current_while_nothing_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("instances.jsonl");
        let file = InstanceFile { path: &path, kind: InstanceKind::Chunk, seed: 3 };
        assert!(matches!(file.state("a"), InstanceFileState::Stale));
        std::fs::write(&path, "{}\n").unwrap();
        // Without a manifest, the source of the instances is unknown.
        assert!(matches!(file.state("a"), InstanceFileState::Stale));
        file.write_manifest("a").unwrap();
        assert!(matches!(file.state("a"), InstanceFileState::Current));
        assert!(matches!(file.state("b"), InstanceFileState::Stale));
        let other = InstanceFile { seed: 4, ..file };
        assert!(matches!(other.state("a"), InstanceFileState::Stale));
        std::fs::write(&path, "{} \n").unwrap();
        let InstanceFileState::Damaged(error) = file.state("a") else { panic!("not damaged") };
        assert!(error.to_string().contains("damaged or changed"), "{error}");
        file.remove_manifest().unwrap();
        file.remove_manifest().unwrap();
        assert!(!beside(&path).exists());
    }
}
