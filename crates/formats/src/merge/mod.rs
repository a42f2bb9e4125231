//! Merging of the files of records that shards wrote into the file that a single process would write.
//!
//! Next to each file of a shard is a manifest that names the shard and the positions of its records among all records: runs of
//! `[position, records]`. A position is the index of a repository or task in its input; no two shards share one.

mod sequences;

use std::io::BufRead;
use std::path::{Path, PathBuf};

use foldhash::HashSet;
use repoformer_core::repository::Shard;
use repoformer_store::artifact::{OutputFile, digest};
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{self, LONGEST_REPOSITORY, Object};
use repoformer_store::manifest::{
    Manifest, SHARD, beside, forget_beside, read_beside, write_beside,
};
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::sequences::merge_sequences;

/// Name of the count of records that a shard lacks because their inputs were missing.
pub const LACKING: &str = "lacking";

/// Parameters that differ between the predictions of shards.
pub const SHARD_PARAMETERS: [&str; 3] = ["shard", "repositories", "journal"];

/// Positions of a shard's records among the records of all shards: runs of a position and its number of records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Positions(Vec<(u64, u64)>);

impl Positions {
    /// Adds a record at a position, which must not be before the last one.
    pub fn add(&mut self, position: u64) {
        match self.0.last_mut() {
            Some((last, records)) if *last == position => *records += 1,
            _ => self.0.push((position, 1)),
        }
    }

    /// Returns the position of each record.
    pub fn of_each(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|&(position, records)| (0..records).map(move |_| position))
    }

    fn records(&self) -> u64 {
        self.0.iter().map(|(_, records)| records).sum()
    }
}

/// Adds to a file's manifest the shard of the file and the positions of its records.
#[must_use]
pub fn with_shard(mut manifest: Value, shard: Shard, positions: &Positions) -> Value {
    manifest[SHARD] = serde_json::json!({"part": shard.to_string(), "records": positions});
    manifest
}

/// Writes the manifest that [`merge`] reads next to a shard's file: the shard and the positions of its records. Standard output
/// (`-`) gets no manifest.
///
/// # Errors
/// The file cannot be read, or the manifest cannot be written.
pub fn write_shard_beside(
    path: &Path,
    manifest: &Manifest,
    shard: Shard,
    positions: &Positions,
) -> Result<()> {
    write_beside(path, &with_shard(manifest.to_record(), shard, positions))
}

/// File of a shard.
#[derive(Debug)]
pub struct ShardFile {
    path: PathBuf,
    /// Shard of the file.
    pub shard: Shard,
    /// Positions of its records.
    pub positions: Positions,
    /// Its manifest, without the fields that differ between shards.
    alike: Object,
    /// Number of records that it lacks.
    lacking: u64,
}

impl ShardFile {
    /// Reads the file of a shard; returns `None` if no manifest next to the file names a shard.
    ///
    /// # Errors
    /// The manifest is damaged.
    pub fn find(path: &Path) -> Result<Option<Self>> {
        if read_beside(path)?.contains_key(SHARD) { Self::read(path).map(Some) } else { Ok(None) }
    }

    /// Returns a digest of the fields that all shards share, for files that are computed from one of the shards.
    pub fn digest(&self) -> String {
        digest(Value::Object(self.alike.clone()).to_string().as_bytes())
    }

    fn read(path: &Path) -> Result<Self> {
        let mut manifest = read_beside(path)?;
        let refused = |reason: &str| {
            let hint = message![
                "write it for a ",
                UserChoice::Shard,
                ", with an ",
                UserChoice::OutputPath,
                "; keep its FILE.manifest.json next to it"
            ];
            Error::artifact(path, reason, hint)
        };
        if !path.is_file() {
            return Err(refused("no such file"));
        }
        let Some(of_shard) = manifest.remove(SHARD) else {
            return Err(refused(
                "not the file of a shard: it has no manifest that names its shard",
            ));
        };
        let digest = manifest.get("output").and_then(|output| output["blake3"].as_str());
        if digest.is_none() {
            return Err(refused("its manifest lacks the checksum 'output.blake3'"));
        }
        #[derive(Deserialize)]
        struct ShardLine {
            part: String,
            records: Positions,
        }
        let damaged = || Error::from_damage(&beside(path), "its shard number cannot be read");
        let lacking = match manifest.get("counts").and_then(|counts| counts.get(LACKING)) {
            None => 0,
            Some(count) => count.as_u64().ok_or_else(damaged)?,
        };
        let ShardLine { part, records } =
            serde_json::from_value(of_shard).map_err(|_| damaged())?;
        let shard = part.parse().map_err(|_| damaged())?;
        if !records.0.is_sorted_by(|one, other| one.0 < other.0) {
            return Err(Error::from_damage(&beside(path), "its positions do not ascend"));
        }
        for field in ["output", "counts"] {
            manifest.remove(field);
        }
        // Inputs are compared by name: on another machine, their paths may differ.
        let inputs = manifest.get("inputs").and_then(Value::as_array).cloned().unwrap_or_default();
        let by_name = inputs.into_iter().map(|mut input| {
            if let Some(fields) = input.as_object_mut().filter(|all| all.contains_key("blake3")) {
                fields.remove("path");
            }
            (input["name"].as_str().unwrap_or_default().to_owned(), input)
        });
        manifest.insert("inputs".into(), Value::Object(by_name.collect()));
        Ok(Self { path: path.to_owned(), shard, positions: records, alike: manifest, lacking })
    }

    /// Checks that two files belong to the same whole.
    fn check_alike(&self, other: &Self) -> Result<()> {
        let refused = |what: String| {
            let reason =
                format!("does not belong to the same command as {}: {what}", self.path.display());
            Err(Error::artifact(&other.path, reason, "merge only the shards of one command"))
        };
        if self.shard.count != other.shard.count {
            return refused(format!(
                "it is shard {}, not one of {}",
                other.shard, self.shard.count
            ));
        }
        // A shard without records lacks the fields that only records provide.
        let is_empty = other.positions.0.is_empty();
        match difference(&self.alike, &other.alike, is_empty) {
            Some(name) => refused(format!("{name} differs")),
            None => Ok(()),
        }
    }
}

/// Returns the name of the first field in which two objects differ, including nested fields. With `left_out`, `other` may lack
/// fields.
fn difference(one: &Object, other: &Object, left_out: bool) -> Option<String> {
    one.keys().chain(other.keys()).find_map(|name| match (one.get(name), other.get(name)) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let within = difference(one, other, left_out)?;
            Some(if within == "blake3" { format!("input {name}") } else { within })
        }
        (Some(_), None) if left_out => None,
        (one, other) => (one != other).then(|| name.clone()),
    })
}

/// Counts from [`merge`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MergeCounts {
    /// Number of parts.
    pub parts: usize,
    /// Number of records.
    pub records: u64,
    /// Files that lack records because the inputs of these records were missing, each with the number of missing records.
    pub lacking: Vec<(PathBuf, u64)>,
}

/// Merges the files that one command wrote for all shards, in any order, into the file that it writes without shards.
///
/// # Errors
/// A part is missing, occurs twice, is damaged, or was made with other settings; or the output cannot be written. No new output
/// exists then.
pub fn merge(paths: &[PathBuf], output: &Path) -> Result<MergeCounts> {
    let parts = parts_of_one_whole(paths, output)?;
    let mut file = OutputFile::create(output)?;
    let merged = interleave(parts, &mut |line| file.write(line))?;
    forget_beside(output)?;
    file.finish()?;
    Ok(merged)
}

/// Maximum number of missing shards that an error names.
const MOST_NAMED: usize = 20;

/// Returns the parts in order, after checking that they form one whole.
fn parts_of_one_whole(paths: &[PathBuf], output: &Path) -> Result<Vec<ShardFile>> {
    let mut parts: Vec<ShardFile> =
        paths.iter().map(|path| ShardFile::read(path)).collect::<Result<_>>()?;
    let filled = parts.iter().find(|part| !part.positions.0.is_empty());
    let Some(first) = filled.or(parts.first()) else { return Ok(parts) };
    parts.iter().try_for_each(|part| first.check_alike(part))?;
    let count = first.shard.count;
    parts.sort_by_key(|part| part.shard.index);
    if let Some(twice) = parts.windows(2).find(|two| two[0].shard == two[1].shard) {
        let (shard, other) = (twice[0].shard, twice[0].path.display());
        let reason = format!("is shard {shard}, as is {other}: its records would count twice");
        return Err(Error::artifact(&twice[1].path, reason, "pass each shard once"));
    }
    let lost = count.saturating_sub(parts.len() as u64);
    if lost > 0 {
        let there: HashSet<Shard> = parts.iter().map(|part| part.shard).collect();
        let named = Shard::all(count).filter(|shard| !there.contains(shard)).take(MOST_NAMED);
        let named: Vec<String> = named.map(|shard| shard.to_string()).collect();
        let more = match lost.saturating_sub(named.len() as u64) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let reason = format!("shards are missing: {}{more}", named.join(", "));
        return Err(Error::artifact(
            output,
            reason,
            "run the missing shards, and pass their files too",
        ));
    }
    Ok(parts)
}

/// Calls `take` with the lines of all parts, in the order of their positions.
fn interleave(
    parts: Vec<ShardFile>,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<MergeCounts> {
    let lacking = parts.iter().filter(|part| part.lacking > 0);
    let lacking = lacking.map(|part| (part.path.clone(), part.lacking)).collect();
    let mut merged = MergeCounts { parts: parts.len(), records: 0, lacking };
    let mut runs: Vec<(u64, u64, usize)> = Vec::new();
    let mut readers = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        runs.extend(
            part.positions.0.iter().map(|&(position, records)| (position, records, number)),
        );
        merged.records += part.positions.records();
        readers.push(jsonl::open(&part.path)?);
    }
    runs.sort_unstable();
    if let Some(twice) = runs.windows(2).find(|two| two[0].0 == two[1].0) {
        let path = beside(&parts[twice[1].2].path);
        return Err(Error::from_damage(&path, "it has a position of another record"));
    }
    let mut line = Vec::new();
    let unlike = |part: &ShardFile| {
        let reason = "does not have the records that its manifest lists";
        Error::artifact(&part.path, reason, "make it again")
    };
    for (_, records, number) in runs {
        let (part, reader) = (&parts[number], &mut readers[number]);
        for _ in 0..records {
            line.clear();
            let read = jsonl::read_line(reader, || LONGEST_REPOSITORY, &mut line);
            read.map_err(|e| Error::reading(&part.path, "read this file", e))?;
            if jsonl::is_too_long(&line) {
                let reason = format!("has a record of more than {} MiB", LONGEST_REPOSITORY >> 20);
                return Err(Error::artifact(&part.path, reason, "omit its repository"));
            }
            if line.last() != Some(&b'\n') {
                return Err(unlike(part));
            }
            take(&line)?;
        }
    }
    for (part, mut reader) in parts.iter().zip(readers) {
        let rest =
            reader.fill_buf().map_err(|e| Error::reading(&part.path, "read this file", e))?;
        if !rest.is_empty() {
            return Err(unlike(part));
        }
    }
    Ok(merged)
}
