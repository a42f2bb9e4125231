//! Merging of the folders of training sequences that shards wrote into the folder that a single process would write.

use std::path::{Path, PathBuf};

use crate::label::sequences::{SequenceFiles, Split, lines_of};
use repoformer_store::artifact::{digest, write_file};
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use super::{MergeCounts, ShardFile, interleave, parts_of_one_whole};

/// Files next to the sequences, and the names of their digests among the inputs in manifests.
const BESIDE: [(&str, &str); 2] =
    [("tokenizer.json", "tokenizer"), ("prompt-style.toml", "prompt style")];

/// Merges the folders that `label verbalize` wrote for all shards, in any order, into the folder that it writes without shards:
/// the JSON lines and Parquet tables of each split, the tokenizer and the prompt style.
///
/// # Errors
/// A part is missing, occurs twice, is damaged, or was made with other settings; the output cannot be written; or this build
/// lacks the feature `parquet`. The output is then unchanged.
pub fn merge_sequences(folders: &[PathBuf], output: &Path) -> Result<MergeCounts> {
    let has = |split: &Split| folders.iter().any(|folder| lines_of(folder, *split).exists());
    let splits: Vec<Split> = Split::ALL.into_iter().filter(has).collect();
    let mut parts = Vec::new();
    for &split in &splits {
        let paths: Vec<PathBuf> = folders.iter().map(|folder| lines_of(folder, split)).collect();
        parts.push((split, parts_of_one_whole(&paths, &lines_of(output, split))?));
    }
    let Some(part) = parts.iter().find_map(|(_, parts)| parts.first()) else {
        let reason = "holds no training sequences";
        let hint =
            message!["pass the folders of training sequences, one for each ", UserChoice::Shard];
        return Err(Error::artifact(folders.first().map_or(output, |folder| folder), reason, hint));
    };
    let beside = BESIDE.map(|(name, input)| beside(part, name, input));
    let mut files = SequenceFiles::create(output, splits.iter().copied(), true)?;
    let mut merged = MergeCounts { parts: folders.len(), ..MergeCounts::default() };
    for (split, parts) in parts {
        merged.records += interleave(parts, &mut |line| files.push_line(split, line))?.records;
    }
    let [tokenizer, style] = beside;
    let (tokenizer, style) = (tokenizer?, style?);
    files.finish()?;
    for ((name, _), bytes) in BESIDE.iter().zip([tokenizer, style]) {
        write_file(&output.join(name), &bytes)?;
    }
    Ok(merged)
}

/// Reads a file next to a part, and checks that the part was made with this content.
fn beside(part: &ShardFile, name: &str, input: &str) -> Result<Vec<u8>> {
    let path = part.path.with_file_name(name);
    let bytes =
        files::read_companion(&path).map_err(|e| Error::reading(&path, "read this file", e))?;
    let known = part.alike.get("inputs").and_then(|inputs| inputs.get(input));
    if known.is_some_and(|known| known["blake3"] == digest(&bytes).as_str()) {
        return Ok(bytes);
    }
    let reason = "is not the file that the sequences in this folder were made with";
    Err(Error::artifact(&path, reason, "verbalize that shard again"))
}
