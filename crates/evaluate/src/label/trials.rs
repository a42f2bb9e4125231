//! Scores of trials: completions, or probabilities, of prompts that show some of an instance's fragments.

use std::collections::BTreeMap;
use std::path::Path;

use repoformer_core::label::{FragmentGains, FragmentSet, Label, Trial};
use repoformer_core::repository::Shard;
use repoformer_core::task::TaskSet;
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl;
use repoformer_text::lines::{Lines, strip};
use serde_json::Value;

use super::instances::{Batch, Instances};
use super::judge::{Scorer, check_sample_counts};
use super::likelihoods::{Likelihood, likelihoods};
use super::summary::JudgeSummary;
use crate::predictions;
use crate::score::target_digest;

/// Scores of the trials of each instance, by the instance's row.
#[derive(Debug, Default)]
pub(super) struct TrialScores(BTreeMap<usize, Vec<ScoredTrial>>);

#[derive(Debug)]
struct ScoredTrial {
    shown: FragmentSet,
    /// Score by the labels' criterion; `None` if the prompt lacks a fragment.
    score: Option<f64>,
    /// Digest of the trial's texts.
    content: u64,
}

/// Trial whose prompt must contain these lines of each of its fragments: the first, the longest and the last with code.
struct ExpectedLines {
    /// Row of the instance.
    instance: usize,
    shown: FragmentSet,
    lines: Vec<[String; 3]>,
}

/// Trials of a file, with what is needed to score them.
struct TrialFile<'a> {
    path: &'a Path,
    given: Answers,
    instances: &'a Instances<'a>,
    scorer: &'a Scorer<'a>,
}

/// Answers to the trials of a file, by their place in the file.
enum Answers {
    Samples(Vec<Vec<String>>),
    Likelihoods(Vec<Option<Likelihood>>),
}

impl TrialScores {
    /// Reads the scores of the trials in a file from their predictions, or from the probabilities of their targets.
    pub(super) fn add(
        &mut self,
        [path, answers]: [&Path; 2],
        instances: &Instances<'_>,
        scorer: &Scorer<'_>,
        judged: &mut JudgeSummary,
    ) -> Result<()> {
        let JudgeSummary { problems, warnings, .. } = judged;
        let trials = Instances::read(path, Shard::WHOLE, problems)?;
        let given = if scorer.is_likelihood() {
            Answers::Likelihoods(likelihoods(answers, &trials.tasks, problems, warnings)?)
        } else {
            let joined = predictions::read(answers, &trials.tasks)?;
            problems.extend(joined.problems);
            warnings.extend(predictions::warning(answers, &joined.numbered));
            check_sample_counts(answers, &trials.tasks, &joined.predictions)?;
            Answers::Samples(joined.predictions)
        };
        let file = TrialFile { path, given, instances, scorer };
        let mut expected = BTreeMap::new();
        trials.for_each_batch(&mut |batch| self.add_batch(&file, batch, judged, &mut expected))?;
        self.check_prompts(answers, &expected, judged)
    }

    fn add_batch(
        &mut self,
        file: &TrialFile<'_>,
        batch: Batch,
        judged: &mut JudgeSummary,
        expected: &mut BTreeMap<usize, ExpectedLines>,
    ) -> Result<()> {
        let TrialFile { path, given, instances, scorer } = file;
        let tasks = TaskSet::new((*path).to_owned(), batch.tasks);
        let scores: Vec<Option<f64>> = match given {
            Answers::Samples(samples) => {
                let samples: Vec<&[String]> =
                    batch.places.iter().map(|&place| &*samples[place]).collect();
                scorer.score(&tasks, &samples)?.into_iter().map(|score| Some(score?.es)).collect()
            }
            Answers::Likelihoods(likely) => {
                let found = batch.places.iter().map(|&place| likely[place]);
                found.map(|found| Some(found?.per_character)).collect()
            }
        };
        let of_other_target = |number: usize, label: &Label| match given {
            Answers::Samples(_) => false,
            Answers::Likelihoods(likely) => likely[batch.places[number]]
                .is_some_and(|found| found.is_of_other(target_digest(&label.ground_truth))),
        };
        let all = instances.tasks.tasks();
        for (number, (label, score)) in batch.labels.iter().zip(scores).enumerate() {
            let task = &tasks.tasks()[number];
            let mut wrong = |reason: String| judged.problems.push(tasks.error(task, reason));
            let Some(trial) = Trial::of_label(label) else {
                wrong("it does not show the fragments of an instance".into());
                continue;
            };
            let place = all.binary_search_by_key(&trial.row, |task| task.row).ok();
            let instance = place.map(|place| &all[place]);
            let Some(instance) = instance.filter(|instance| instance.id == trial.instance) else {
                wrong(format!("{} is not one of the instances", trial.instance));
                continue;
            };
            if !instances.shard.holds(&instance.repository) {
                continue;
            }
            if of_other_target(number, label) {
                wrong("the probability belongs to another target".into());
                continue;
            }
            let Some(score) = score else {
                judged.fragments.unanswered += 1;
                continue;
            };
            let known = self.0.entry(trial.row).or_default();
            if known.iter().any(|other| other.shown == trial.shown) {
                wrong("an earlier task shows the same fragments".into());
                continue;
            }
            // The trial lists only the fragments that it shows.
            let fragments = &label.cross_file.fragments;
            let listed = 0..fragments.len().min(FragmentSet::MOST);
            let content = label.content(listed.fold(FragmentSet::default(), FragmentSet::with));
            known.push(ScoredTrial { shown: trial.shown, score: Some(score), content });
            let lines = fragments.iter().filter_map(|one| telling_lines(&one.text)).collect();
            let (instance, shown) = (trial.row, trial.shown);
            expected.insert(task.row, ExpectedLines { instance, shown, lines });
        }
        Ok(())
    }

    /// Forgets the scores of trials whose prompts lack a fragment, as far as the predictions contain the prompts. Counts the trials
    /// whose prompts show a part of one.
    fn check_prompts(
        &mut self,
        answers: &Path,
        expected: &BTreeMap<usize, ExpectedLines>,
        judged: &mut JudgeSummary,
    ) -> Result<()> {
        let mut unseen = expected.len();
        // Problems of records were reported when the predictions were read.
        jsonl::for_each(answers, |_, object| {
            let metadata = object.get("metadata");
            let row = metadata.and_then(|metadata| metadata.get("row")?.as_u64());
            let prompt = object.get("prompt").and_then(Value::as_str);
            let (Some(row), Some(prompt)) = (row, prompt) else { return Ok(()) };
            let Some(ExpectedLines { instance, shown, lines }) = expected.get(&(row as usize))
            else {
                return Ok(());
            };
            unseen = unseen.saturating_sub(1);
            let missing = |lines: &[String; 3]| {
                lines.iter().filter(|line| !prompt.contains(line.as_str())).count()
            };
            // One line may be cut; another one may also stand elsewhere in the prompt.
            match lines.iter().map(missing).max() {
                None | Some(0) => return Ok(()),
                Some(1) => {
                    judged.fragments.cut += 1;
                    return Ok(());
                }
                Some(_) => {}
            }
            let known = self.0.get_mut(instance).into_iter().flatten();
            known.filter(|one| one.shown == *shown).for_each(|one| one.score = None);
            Ok(())
        })?;
        judged.fragments.unseen += unseen;
        Ok(())
    }

    /// Returns the gains of an instance's fragments over its score without retrieval, and the reason why some trials show other
    /// text, if any do.
    pub(super) fn gains(
        &self,
        row: usize,
        label: &Label,
        without: f64,
    ) -> (FragmentGains, Option<String>) {
        let (mut gains, mut wrong) = (FragmentGains::default(), None);
        for trial in self.0.get(&row).into_iter().flatten() {
            if label.content(trial.shown) == trial.content {
                gains.insert(trial.shown, trial.score.map(|score| score - without));
                continue;
            }
            wrong.get_or_insert_with(|| {
                let shown = trial.shown.to_value();
                format!(
                    "its fragments {shown} are not those that were completed: write the tasks of these instances again, and complete them"
                )
            });
        }
        (gains, wrong)
    }
}

/// Returns the first, the longest and the last line of a fragment that are not blank, without indentation.
fn telling_lines(fragment: &str) -> Option<[String; 3]> {
    let lines = Lines::new(fragment);
    let lines: Vec<&str> = lines.iter().map(strip).filter(|line| !line.is_empty()).collect();
    let longest = lines.iter().max_by_key(|line| line.len())?;
    Some([lines.first()?, longest, lines.last()?].map(|line| (*line).to_owned()))
}

/// Returns the error for trials that were completed in a mode that retrieves anew.
pub(super) fn wrong_mode(answers: &Path) -> Error {
    Error::artifact(
        answers,
        "has predictions of a mode that retrieves other fragments than the tasks name",
        "complete the tasks in mode given",
    )
}
