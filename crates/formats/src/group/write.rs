//! Shards of raw records, and their common record.

use std::path::Path;

use foldhash::{HashMap, HashSet};
use repoformer_store::artifact::OutputFile;
use repoformer_store::error::{Error, Result};
use repoformer_store::manifest::digest_of;
use repoformer_store::readings::FileDigest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::duplicates::Duplicate;
use super::inputs::Input;
use super::repositories::RepositoryStream;
use super::rows::Problem;

/// Counts of rows and repositories, as in `group.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of files in the rows.
    pub rows: u64,
    /// Number of files that are not of the language, or not of any known one.
    pub other_languages: u64,
    /// Number of files whose first line contained StarCoderData's marks, which were removed.
    pub marked: u64,
    /// Number of rows, parts of inputs and repositories that are broken or too large.
    pub broken: u64,
    /// Number of repeated files with the same path and text.
    pub repeated: u64,
    /// Number of repeated files with the same path and another text.
    pub conflicting: u64,
    /// Number of repositories dropped because another has the same files.
    pub exact_duplicates: u64,
    /// Number of repositories dropped because another has nearly the same texts.
    pub near_duplicates: u64,
    /// Number of repositories left out because tasks use them.
    pub contaminated_repositories: u64,
    /// Number of files left out because they contain targets of tasks.
    pub contaminated_files: u64,
    /// Number of repositories written.
    pub repositories: u64,
    /// Number of files in these repositories.
    pub files: u64,
}

/// Shard that was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRecord {
    /// Name of its file.
    pub name: String,
    /// Size of its file.
    pub bytes: u64,
    /// Digest of its file.
    pub digest: String,
    /// Number of repositories in it.
    pub repositories: u64,
    /// Number of files in these repositories.
    pub files: u64,
}

/// Record of a grouping, written last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupRecord {
    /// Format of the record.
    pub format: u64,
    /// Settings that the output depends on.
    pub settings: Value,
    /// Files that were read.
    pub(super) inputs: Vec<Input>,
    /// Counts.
    pub counts: Counts,
    /// Shards, in order.
    pub shards: Vec<ShardRecord>,
    /// Digest (BLAKE3) of the list of dropped repositories and files.
    #[serde(default)]
    pub dropped: String,
}

/// Shard, and findings from writing it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ShardDone {
    pub(super) shard: ShardRecord,
    pub(super) repeated: u64,
    pub(super) conflicting: u64,
    pub(super) problems: Vec<Problem>,
}

impl ShardDone {
    /// Returns true if the shard's file is unchanged.
    pub(super) fn is_there(&self, output: &Path) -> bool {
        is_there(&self.shard, output)
    }
}

/// Returns true if a shard's file is unchanged.
pub(super) fn is_there(shard: &ShardRecord, output: &Path) -> bool {
    let is_it = |there: FileDigest| (there.bytes, &there.digest) == (shard.bytes, &shard.digest);
    digest_of(&output.join(&shard.name)).is_ok_and(is_it)
}

/// Repositories and files that are not written.
#[derive(Debug, Default)]
pub(super) struct GroupExclusions<'a> {
    /// Whole repositories.
    pub(super) repositories: HashSet<&'a str>,
    /// Files of other repositories.
    pub(super) files: HashMap<&'a str, HashSet<&'a str>>,
}

impl<'a> GroupExclusions<'a> {
    /// Collects the repositories that are left out completely, and the repositories that lose files.
    pub(super) fn new(dropped: &'a [Duplicate]) -> Self {
        let mut leaving = Self::default();
        for one in dropped {
            match &one.filepath {
                Some(path) => {
                    leaving.files.entry(&*one.repo_name).or_default().insert(path);
                }
                None => {
                    leaving.repositories.insert(&*one.repo_name);
                }
            }
        }
        leaving
    }
}

/// Writes a shard without the dropped repositories and files.
pub(super) fn write_shard(
    mut repositories: RepositoryStream,
    dropped: &GroupExclusions<'_>,
    output: &Path,
    name: String,
) -> Result<ShardDone> {
    let path = output.join(&name);
    let mut file = OutputFile::create(&path)?;
    let mut done = ShardDone::default();
    while let Some(mut repository) = repositories.next()? {
        if let Some(reason) = repository.left_out {
            let reason = format!("repository {}: left out: {reason}", repository.name);
            done.problems.push(Problem::new(output, reason));
            continue;
        }
        done.repeated += repository.repeated;
        done.conflicting += repository.conflicting;
        if dropped.repositories.contains(&*repository.name) {
            continue;
        }
        if let Some(files) = dropped.files.get(&*repository.name) {
            repository.files.retain(|(path, _)| !files.contains(&**path));
            if repository.files.is_empty() {
                continue;
            }
        }
        let json = |text: &str| {
            serde_json::to_string(text)
                .map_err(|e| Error::writing(&path, "write this file", e.into()))
        };
        let (name, stars) = (json(&repository.name)?, repository.stars);
        file.write(
            format!("{{\"repo_name\":{name},\"stars_count\":{stars},\"files\":[").as_bytes(),
        )?;
        for (number, (path, text)) in repository.files.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            file.write(format!("{comma}{{\"filepath\":{},\"content\":", json(path)?).as_bytes())?;
            file.write(json(text)?.as_bytes())?;
            file.write(b"}")?;
        }
        file.write(b"]}\n")?;
        done.shard.repositories += 1;
        done.shard.files += repository.files.len() as u64;
    }
    file.finish()?;
    let FileDigest { bytes, digest } = digest_of(&path)?;
    (done.shard.bytes, done.shard.digest) = (bytes, digest);
    done.shard.name = name;
    Ok(done)
}
