//! Labels of a file of instances, and the manifest next to them.

use std::collections::BTreeMap;
use std::path::Path;

use repoformer_core::label::Label;
use repoformer_core::repository::Shard;
use repoformer_evaluate::conditions::common;
use repoformer_evaluate::label::{JudgeSettings, JudgeSummary, LabelCriterion, judge};
use repoformer_store::error::{Error, Result};
use repoformer_store::manifest::{Manifest, write_beside};
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use serde_json::json;

use crate::merge::{LACKING, Positions, SHARD_PARAMETERS, ShardFile, write_shard_beside};

/// Judgement of a file of instances: all instances, the instances of a shard, or a file that already belongs to a shard.
#[derive(Debug)]
pub struct InstanceJudgement<'a> {
    settings: JudgeSettings<'a>,
    /// Shard of the labels.
    shard: Option<Shard>,
    /// File of the instances, if it belongs to a shard.
    part: Option<ShardFile>,
}

/// Counts of a judgement, and the positions of its labels among the labels of all shards.
#[derive(Debug)]
pub struct InstanceLabels {
    /// Counts of the labels, and of the instances without a label.
    pub summary: JudgeSummary,
    positions: Positions,
}

impl<'a> InstanceJudgement<'a> {
    /// Creates a judgement with these settings, whose shard is replaced: by the one that is `asked` for, or by all instances if
    /// the file of instances already belongs to a shard.
    ///
    /// # Errors
    /// The instances belong to another shard, or the manifest next to them is damaged.
    pub fn new(settings: JudgeSettings<'a>, asked: Option<Shard>) -> Result<Self> {
        let part = ShardFile::find(settings.instances)?;
        if let (Some(part), Some(asked)) = (&part, asked)
            && part.shard != asked
        {
            let instances = settings.instances.display();
            return Err(Error::from_refusal(
                format!(
                    "{instances}: contains the instances of shard {}, not of shard {asked}",
                    part.shard
                ),
                message![
                    "leave the ",
                    UserChoice::Shard,
                    " out, or pass the instances of all repositories"
                ],
            ));
        }
        let shard = part.as_ref().map(|part| part.shard).or(asked);
        // A shard's file contains only its own instances.
        let judged = asked.filter(|_| part.is_none()).unwrap_or(Shard::WHOLE);
        Ok(Self { settings: JudgeSettings { shard: judged, ..settings }, shard, part })
    }

    /// Judges the instances, and passes each label with its row in the file to `emit`, in order.
    ///
    /// # Errors
    /// The same as for [`judge`].
    pub fn judge(
        &self,
        emit: &mut dyn FnMut(usize, &Label) -> Result<()>,
    ) -> Result<InstanceLabels> {
        // A manifest may name more positions than the file has instances.
        let mut places = self.part.as_ref().map(|part| part.positions.of_each().enumerate());
        let mut positions = Positions::default();
        let summary = judge(&self.settings, &mut |number, label| {
            let place = match &mut places {
                Some(places) => places.find(|(at, _)| *at >= number).map(|(_, place)| place),
                None => Some(number as u64),
            };
            place.into_iter().for_each(|place| positions.add(place));
            emit(number, label)
        })?;
        Ok(InstanceLabels { summary, positions })
    }

    /// Checks that there are labels. A shard may have no instances, and therefore no labels.
    ///
    /// # Errors
    /// No instance has the required data, or none can be used.
    pub fn check(&self, labels: &InstanceLabels) -> Result<()> {
        let JudgeSummary { gains, problems, lacking, .. } = &labels.summary;
        let is_empty_shard = self.shard.is_some() && problems.is_empty() && lacking.is_empty();
        if !gains.is_empty() || is_empty_shard {
            return Ok(());
        }
        let instances = self.settings.instances.display();
        if lacking.is_empty() && !problems.is_empty() {
            return Err(Error::from_refusal(
                format!("{instances}: no instance could be judged"),
                "see the errors above",
            ));
        }
        if self.settings.by == LabelCriterion::Likelihood {
            return Err(Error::from_refusal(
                format!(
                    "{instances}: no instance has both a likelihood without and one with retrieval"
                ),
                message![
                    "write ",
                    UserChoice::TargetLikelihoods,
                    " for mode none, and for a mode that retrieves"
                ],
            ));
        }
        Err(Error::from_refusal(
            format!(
                "{instances}: no instance has both a completion without and one with retrieval"
            ),
            "complete the prompts of these instances in modes none and given, and pass both files",
        ))
    }

    /// Writes the manifest next to the labels, `output`: their settings and inputs, and for a shard the data that `merge`
    /// needs.
    ///
    /// # Errors
    /// A file cannot be read, or the manifest cannot be written.
    pub fn write_manifest(&self, labels: &InstanceLabels, output: &Path) -> Result<()> {
        let (settings, summary) = (&self.settings, &labels.summary);
        let mut manifest = Manifest::new("labels");
        // Without any instance, the usual metric is unknown.
        if !summary.gains.is_empty() {
            manifest.setting("metric", summary.metric.to_string());
        }
        if settings.by != LabelCriterion::Likelihood {
            manifest.setting("postprocess", settings.postprocess.to_string());
        }
        manifest.setting("threshold", settings.threshold);
        manifest.count("instances", summary.gains.len());
        manifest.setting("model", settings.model.map(str::to_owned));
        let results = match settings.by {
            LabelCriterion::Tests(results) => results.map(|(path, _)| Some(path)),
            _ => [None, None],
        };
        let mut inputs: Vec<(String, Option<&Path>)> = [
            ("base", Some(settings.base)),
            ("rag", Some(settings.augmented)),
            ("prompts", settings.prompts),
            ("samples-from", settings.samples),
            ("probabilities", settings.probabilities),
            ("base-exec", results[0]),
            ("rag-exec", results[1]),
        ]
        .map(|(name, path)| (name.to_owned(), path))
        .into();
        let Some(shard) = self.shard else {
            manifest.input("instances", settings.instances)?;
            inputs.extend(settings.trials.iter().enumerate().flat_map(|(number, files)| {
                let files = ["fragments-tasks", "fragments"].into_iter().zip(files);
                files.map(move |(name, path)| (format!("{name}-{}", number + 1), Some(&**path)))
            }));
            for (name, path) in inputs {
                if let Some(path) = path {
                    manifest.input(&name, path)?;
                }
            }
            return write_beside(output, &manifest.to_record());
        };
        // Each shard has files of its own: they must have been made with the same settings, or be missing for all shards.
        for (name, path) in inputs {
            manifest.setting(&name, json!(path.map(shared_parameters).transpose()?));
        }
        // Shards may take different numbers of rounds, with task files of different names.
        let mut first = match settings.trials {
            [[_, answers], ..] => Some(shared_parameters(answers)?),
            [] => None,
        };
        first.iter_mut().for_each(|shared| drop(shared.remove("benchmark")));
        manifest.setting("fragments", json!(first));
        manifest.count(LACKING, summary.lacking.values().sum());
        match &self.part {
            Some(part) => manifest.digest("instances", &part.digest()),
            None => manifest.input("instances", settings.instances)?,
        }
        write_shard_beside(output, &manifest, shard, &labels.positions)
    }
}

/// Returns the parameters that the predictions of all shards share.
fn shared_parameters(path: &Path) -> Result<BTreeMap<String, String>> {
    let mut known = common(path)?;
    known.retain(|name, _| !SHARD_PARAMETERS.contains(&name.as_str()));
    Ok(known)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::Value;

    use repoformer_core::postprocess::Postprocess;
    use repoformer_store::manifest::{beside, read_beside};

    use super::*;
    use crate::merge::merge;

    /// Instances of two repositories and their completions; the first ones are right only with retrieval.
    struct Inputs {
        folder: tempfile::TempDir,
        postprocess: Postprocess,
        probabilities: Option<PathBuf>,
    }

    impl Inputs {
        fn new() -> Self {
            let inputs = Self {
                folder: tempfile::tempdir().unwrap(),
                postprocess: Postprocess::own(false),
                probabilities: None,
            };
            let names = ["one", "two", "three", "four"];
            let id = |name: &str| format!("{name}/a.py/0_1");
            let lines = |record: &dyn Fn(usize, &str) -> Value| {
                let all = names.iter().enumerate();
                all.map(|(row, name)| format!("{}\n", record(row, name))).collect::<String>()
            };
            inputs.write("instances", &lines(&|_, name| {
                json!({
                    "metadata": {"task_id": id(name), "filename": format!("{name}/a.py"), "start_i": 0, "end_i": 1},
                    "prompt": "", "groundtruth": "x = 1\n", "right_context": "", "crossfile_context": "# x",
                })
            }));
            let predictions = |text: &str| {
                lines(&|row, name| {
                    json!({
                        "metadata": {"task_id": id(name), "row": row}, "choices": [{"text": text}],
                        "asked": {"model": "m"},
                    })
                })
            };
            inputs.write("base", &predictions("y"));
            inputs.write("rag", &predictions("x = 1\n"));
            inputs
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.path(name), text).unwrap();
        }

        /// Judges these files and writes the labels to `output`. Returns the number of labels.
        fn judge(
            &self,
            [instances, base, rag]: [&str; 3],
            output: &str,
            shard: Option<Shard>,
        ) -> Result<usize> {
            let [instances, base, augmented] = [instances, base, rag].map(|name| self.path(name));
            let settings = JudgeSettings {
                instances: &instances,
                base: &base,
                augmented: &augmented,
                trials: &[],
                prompts: None,
                probabilities: self.probabilities.as_deref(),
                samples: None,
                model: None,
                by: LabelCriterion::Usual,
                postprocess: &self.postprocess,
                threshold: 0.0,
                shard: Shard::WHOLE,
            };
            let judgement = InstanceJudgement::new(settings, shard)?;
            let mut text = String::new();
            let labels = judgement.judge(&mut |_, label| {
                text += &format!("{}\n", label.to_record());
                Ok(())
            })?;
            judgement.check(&labels)?;
            self.write(output, &text);
            judgement.write_manifest(&labels, &self.path(output))?;
            Ok(labels.summary.gains.len())
        }
    }

    const FILES: [&str; 3] = ["instances", "base", "rag"];

    #[test]
    fn labels_of_shards_are_those_of_all() {
        let inputs = Inputs::new();
        assert_eq!(inputs.judge(FILES, "all", None).unwrap(), 4);
        let manifest = read_beside(&inputs.path("all")).unwrap();
        let names: Vec<&Value> =
            manifest["inputs"].as_array().unwrap().iter().map(|input| &input["name"]).collect();
        assert_eq!(names, ["instances", "base", "rag"]);
        assert_eq!(manifest["counts"]["instances"], 4);

        let parts: Vec<PathBuf> = Shard::all(2)
            .map(|shard| {
                let output = format!("labels-{}", shard.index);
                inputs.judge(FILES, &output, Some(shard)).unwrap();
                inputs.path(&output)
            })
            .collect();
        merge(&parts, &inputs.path("merged")).unwrap();
        let read = |name: &str| std::fs::read_to_string(inputs.path(name)).unwrap();
        assert_eq!(read("merged"), read("all"));

        // A shard's labels are computed from a shard's instances, and belong to the same shard.
        let of_part = |output, shard| inputs.judge(["labels-0", "base", "rag"], output, shard);
        let [first, second] = [0, 1].map(|index| Shard::all(2).nth(index));
        let other = of_part("x", second).unwrap_err();
        assert!(
            other.to_string().contains("the instances of shard 1/2, not of shard 2/2"),
            "{other}"
        );
        of_part("same", first).unwrap();
        of_part("own", None).unwrap();
        assert_eq!(read("own"), read("same"));
        let shard = |name: &str| read_beside(&inputs.path(name)).unwrap()["shard"].clone();
        assert_eq!(shard("own"), shard("labels-0"));
    }

    #[test]
    fn positions_that_cannot_be_are_refused() {
        let inputs = Inputs::new();
        let parts = [0, 1].map(|index| {
            let output = format!("labels-{index}");
            inputs.judge(FILES, &output, Shard::all(2).nth(index)).unwrap();
            inputs.path(&output)
        });
        let manifest = beside(&parts[1]);
        let written = read_beside(&parts[1]).unwrap();
        let count = written["shard"]["records"].as_array().unwrap().len();
        for (first, step, reason) in
            [(0, 1, "it has a position of another record"), (9, -1, "its positions do not ascend")]
        {
            let mut forged = written.clone();
            forged.shift_remove("record_checksum");
            let positions = (0..count as i64).map(|number| json!([first + step * number, 1]));
            forged["shard"]["records"] = positions.collect();
            std::fs::write(&manifest, Value::Object(forged).to_string()).unwrap();
            let refused = merge(&parts, &inputs.path("merged")).unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn labels_of_shards_with_other_inputs_are_not_merged() {
        let mut inputs = Inputs::new();
        let [first, second] = [0, 1].map(|index| Shard::all(2).nth(index));
        inputs.judge(FILES, "labels-0", first).unwrap();
        let path = inputs.path("probabilities");
        let record = |name: &str, row: usize| {
            json!({
                "metadata": {"task_id": format!("{name}/a.py/0_1"), "row": row},
                "next_token": {"text": "<cc>", "probability": 0.5},
            })
        };
        let names = ["one", "two", "three", "four"].into_iter().enumerate();
        let lines: String = names.map(|(row, name)| format!("{}\n", record(name, row))).collect();
        inputs.write("probabilities", &lines);
        inputs.probabilities = Some(path);
        inputs.judge(FILES, "labels-1", second).unwrap();
        let parts = ["labels-0", "labels-1"].map(|name| inputs.path(name));
        let refused = merge(&parts, &inputs.path("merged")).map(drop).unwrap_err().to_string();
        assert!(refused.contains("probabilities"), "{refused}");

        inputs.judge(FILES, "all", None).unwrap();
        let manifest = read_beside(&inputs.path("all")).unwrap();
        let named = manifest["inputs"].as_array().unwrap().last().unwrap();
        assert_eq!(named["name"], "probabilities");
    }

    #[test]
    fn no_label_is_refused_unless_of_an_empty_shard() {
        let inputs = Inputs::new();
        let first = |name: &str| {
            let text = std::fs::read_to_string(inputs.path(name)).unwrap();
            text.lines().next().unwrap().to_owned() + "\n"
        };
        inputs.write("some", &first("base"));
        let text = std::fs::read_to_string(inputs.path("rag")).unwrap();
        inputs.write("others", text.split_once('\n').unwrap().1);
        let none = inputs.judge(["instances", "some", "others"], "x", None).unwrap_err();
        assert!(none.to_string().contains("no instance has both a completion"), "{none}");

        inputs.write("one", &first("instances"));
        inputs.write("rag-one", &first("rag"));
        let counts = Shard::all(2)
            .map(|shard| inputs.judge(["one", "some", "rag-one"], "part", Some(shard)).unwrap());
        let mut counts: Vec<usize> = counts.collect();
        counts.sort_unstable();
        assert_eq!(counts, [0, 1]);
    }
}
