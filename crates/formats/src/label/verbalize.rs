//! Labels as training sequences in a folder, and the manifests of shards.

use std::path::Path;

use crate::label::sequences::{Split, VerbalizeSettings, VerbalizeSummary, lines_of, verbalize};
use repoformer_core::repository::Shard;
use repoformer_store::error::{Error, Result};
use repoformer_store::manifest::Manifest;
use repoformer_text::tokenize::model::Encoder;

use crate::merge::{Positions, ShardFile, write_shard_beside};

/// Verbalizes files of labels into a folder, as [`verbalize`] does. For a shard, it also writes manifests that name the shard,
/// which [`merge_sequences`](crate::merge::merge_sequences) reads.
///
/// # Errors
/// The folder contains sequences other than the shard's; or the same as for [`verbalize`].
pub fn verbalize_into(
    folder: &Path,
    labels: &[&Path],
    encoder: &Encoder,
    settings: &VerbalizeSettings,
) -> Result<VerbalizeSummary> {
    if let Some(shard) = settings.shard {
        check_own_folder(folder, shard)?;
    }
    let summary = verbalize(labels, encoder, settings, folder)?;
    if let Some(shard) = settings.shard {
        write_manifests(folder, labels, settings, shard, &summary)?;
    }
    Ok(summary)
}

/// Rejects a folder that contains the sequences of another shard, or of all.
fn check_own_folder(folder: &Path, shard: Shard) -> Result<()> {
    let refused = |of: String| {
        let reason = format!("{}: contains the sequences of {of}", folder.display());
        Err(Error::from_refusal(reason, "give each shard its own folder, or remove this folder"))
    };
    for split in Split::ALL {
        // Only the sequences of all shards together have a Parquet table.
        if lines_of(folder, split).with_extension("parquet").exists() {
            return refused("all shards".to_owned());
        }
        // A damaged manifest is replaced.
        let there = ShardFile::find(&lines_of(folder, split)).ok().flatten();
        if let Some(other) = there.filter(|other| other.shard != shard) {
            return refused(format!("shard {}", other.shard));
        }
    }
    Ok(())
}

/// Writes manifests next to a shard's files that name the shard.
fn write_manifests(
    folder: &Path,
    labels: &[&Path],
    settings: &VerbalizeSettings,
    shard: Shard,
    summary: &VerbalizeSummary,
) -> Result<()> {
    let mut manifest = Manifest::new("sequences");
    manifest.setting("max-sequence-tokens", settings.max_tokens);
    manifest.setting("max-cc-tokens", settings.max_cross_file_tokens);
    manifest.setting("end-token", settings.end.clone());
    manifest.setting("lambda", settings.lambda);
    manifest.setting("validation", settings.held_out.validation);
    manifest.setting("test", settings.held_out.test);
    manifest.setting("seed", settings.seed);
    for (number, path) in labels.iter().enumerate() {
        let name = if number == 0 { "labels".into() } else { format!("labels {}", number + 1) };
        manifest.input(&name, path)?;
    }
    manifest.input("tokenizer", &folder.join("tokenizer.json"))?;
    manifest.input("prompt style", &folder.join("prompt-style.toml"))?;
    for (split, sequences) in &summary.splits {
        let mut positions = Positions::default();
        sequences.lines.iter().for_each(|line| positions.add(*line));
        let mut manifest = manifest.clone();
        manifest.count("sequences", sequences.sequences);
        write_shard_beside(&lines_of(folder, *split), &manifest, shard, &positions)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crate::label::sequences::{Proportions, SequenceLayout, outputs};
    use serde_json::json;

    use super::*;
    use crate::merge::merge_sequences;

    /// Verbalizes labels of six repositories.
    fn run(folder: &Path, output: &str, shard: Option<Shard>) -> Result<VerbalizeSummary> {
        let labels = folder.join("labels.jsonl");
        let line = |row: usize| {
            let name = format!("r{}", row % 6);
            json!({
                "metadata": {"task_id": format!("{name}/a.py/{row}_{row}"), "filename": format!("{name}/a.py"), "start_i": row, "end_i": row + 1},
                "prompt": format!("x = {row}\n"), "groundtruth": "y = x\n", "right_context": "", "crossfile_context": "# b = 2\n",
                "label": row.is_multiple_of(2),
            })
        };
        let lines: String = (0..24).map(|row| format!("{}\n", line(row))).collect();
        std::fs::write(&labels, lines).unwrap();
        let layout = SequenceLayout {
            eof: None,
            cc: None,
            end: None,
            max_tokens: 256,
            max_cross_file_tokens: 64,
            lambda: 1.0,
            held_out: Proportions { validation: 0.2, test: 0.0 },
            seed: 0,
        };
        let tokenizer = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/fixtures/tokenizers/starcoder.json");
        let (settings, encoder) = layout.open(&"starcoder".parse()?, &tokenizer)?;
        let settings = VerbalizeSettings { shard, ..settings };
        verbalize_into(&folder.join(output), &[&labels], &encoder, &settings)
    }

    #[test]
    fn folders_of_shards_merge_to_that_of_all() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        assert_eq!(run(folder, "all", None).unwrap().splits[&Split::Train].sequences, 20);
        let parts: Vec<PathBuf> = Shard::all(2)
            .map(|shard| {
                run(folder, &shard.file_name(), Some(shard)).unwrap();
                folder.join(shard.file_name())
            })
            .collect();
        merge_sequences(&parts, &folder.join("merged")).unwrap();
        let mut compared = 0;
        for (one, other) in outputs(&folder.join("all")).iter().zip(outputs(&folder.join("merged")))
        {
            assert_eq!(one.exists(), other.exists(), "{}", one.display());
            if one.exists() {
                assert!(
                    std::fs::read(one).unwrap() == std::fs::read(&other).unwrap(),
                    "{}",
                    one.display()
                );
                compared += 1;
            }
        }
        assert_eq!(compared, 6);
    }

    #[test]
    fn a_folder_holds_one_shard() {
        let place = tempfile::tempdir().unwrap();
        let [first, second] = [0, 1].map(|index| Some(Shard { index, count: 2 }));
        let refusal = |output, shard| run(place.path(), output, shard).unwrap_err().to_string();
        run(place.path(), "part", first).unwrap();
        run(place.path(), "part", first).unwrap();
        assert!(refusal("part", second).ends_with("contains the sequences of shard 1/2"));
        run(place.path(), "all", None).unwrap();
        assert!(refusal("all", first).ends_with("contains the sequences of all shards"));
    }
}
