//! Judged instances as policies see them: features, model signals, and retrieval's effect.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use repoformer_store::content::ContentDigest;
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl::{self, Object, RecordAddress};
use repoformer_text::language::Language;
use repoformer_text::names::UnknownName;
use serde_json::Value;

use super::features::{Context, Local, Request, Retrieved, WordBuckets};
use crate::label::{LIKELIHOOD, Label, PASS, Signals};
use crate::repository::parallel;
use crate::task::cross_file::CrossFileFragment;

/// One judged instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Id of the task.
    pub id: String,
    /// Row of the task file, if known: ids may repeat.
    pub row: Option<usize>,
    /// Number of earlier instances with the same id and repository in the same file.
    pub repeat: usize,
    /// First component of the file's path.
    pub repository: String,
    /// Digest of the instance's contexts, its id and its file's path below the repository.
    pub content: ContentDigest,
    /// Index of the file that the instance was read from.
    pub file: usize,
    /// 1-based line in that file; 0 if the instance does not come from a file.
    pub line: usize,
    /// Score without retrieval, 0 to 1.
    pub score_base: f64,
    /// Score with retrieval, 0 to 1.
    pub score_rag: f64,
    /// Exact match without retrieval, if known.
    pub em_base: Option<f64>,
    /// Exact match with retrieval, if known.
    pub em_rag: Option<f64>,
    /// Whether the completion without retrieval is right, if known: it passes its tests, or matches exactly.
    pub is_right: Option<bool>,
    /// Whether retrieval helped.
    pub label: bool,
    /// Whether the query that retrieved the fragments contains the target, as for half of the drawn instances.
    pub query_has_target: bool,
    /// Score of the best fragment; negative infinity if nothing was retrieved, `None` if unknown.
    pub top_score: Option<f64>,
    /// Whether the retrieved fragments are known, each with a score.
    pub is_scored: bool,
    /// Signals of the model's confidence.
    pub signals: Signals,
    /// Features of the contexts.
    pub local: Local,
    /// Features of the fragments.
    pub retrieved: Retrieved,
    /// Words near the hole.
    pub hashed: WordBuckets,
}

impl Example {
    /// Returns the gain of retrieval in the score.
    pub fn gain(&self) -> f64 {
        self.score_rag - self.score_base
    }

    /// Returns the file's index and the repository, which form a group.
    pub(super) fn group(&self) -> (usize, &str) {
        (self.file, &self.repository)
    }

    /// Numbers the instances that have the same id and repository. Returns the ids of repeats, and the ids of repeats whose
    /// label contradicts an earlier instance of the same row.
    pub fn count_repeats(all: &mut [Self]) -> [Vec<String>; 2] {
        let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
        let mut labels = BTreeMap::new();
        let (mut repeated, mut contradicting) = (Vec::new(), Vec::new());
        for example in all {
            let key = (example.repository.clone(), example.id.clone());
            let label = labels.entry((key.clone(), example.row)).or_insert(example.label);
            if *label != example.label {
                contradicting.push(example.id.clone());
            }
            let count = seen.entry(key).or_default();
            example.repeat = *count;
            *count += 1;
            if example.repeat > 0 {
                repeated.push(example.id.clone());
            }
        }
        [repeated, contradicting]
    }

    /// Creates the example of a request with the scores of its completions. Without fragments, `retrieved_something` means that
    /// the fragments are unknown; otherwise nothing was retrieved.
    pub fn new(
        id: &str,
        request: Request<'_>,
        outcome: CompletionScores,
        signals: Signals,
        retrieved_something: bool,
    ) -> Self {
        let context = Context::new(request);
        let repository = request.path.split('/').next().unwrap_or("");
        let below = |path: &'_ str| {
            let below = path.strip_prefix(repository).and_then(|path| path.strip_prefix('/'));
            below.unwrap_or(path).to_owned()
        };
        let [score_base, score_rag] = outcome.score;
        let score = |fragment: &CrossFileFragment| fragment.score.filter(|score| !score.is_nan());
        let is_known = !(request.fragments.is_empty() && retrieved_something);
        let [em_base, em_rag] = outcome.em;
        Self {
            id: id.to_owned(),
            row: None,
            repeat: 0,
            repository: repository.to_owned(),
            content: ContentDigest::from_texts([
                &*below(id),
                &*below(request.path),
                request.left,
                request.right,
            ]),
            file: 0,
            line: 0,
            score_base,
            score_rag,
            em_base,
            em_rag,
            is_right: em_base.map(|exact| exact >= 1.0),
            label: outcome.label.unwrap_or(score_rag > score_base),
            query_has_target: false,
            top_score: match request.fragments.first() {
                Some(best) => score(best),
                None => is_known.then_some(f64::NEG_INFINITY),
            },
            is_scored: is_known && request.fragments.iter().all(|one| score(one).is_some()),
            signals,
            local: Local::from_context(&context),
            hashed: WordBuckets::new(&context),
            retrieved: Retrieved::new(&context),
        }
    }

    /// Converts an instance, or returns the missing field if it is not judged. If `label` is missing, or was decided by a
    /// metric other than `measure`'s, the scores decide.
    fn from_label(label: &Label, measure: Measure) -> Result<Self, &'static str> {
        let request = Request {
            left: &label.prompt,
            right: &label.right_context,
            path: &label.filename,
            language: Language::of_path(&label.filename).unwrap_or_default(),
            fragments: &label.cross_file.fragments,
        };
        let outcome = CompletionScores {
            score: measure.scores(label)?,
            em: [label.em_infile, label.em_rg1],
            label: label
                .retrieval_helps()
                .filter(|_| Measure::from_metric(label.metric.as_deref()) == measure),
        };
        let retrieved_something = !label.cross_file.is_empty();
        let metadata = |name: &str| label.record.get("metadata")?.get(name);
        let passes = label.pass_infile.filter(|_| measure == Measure::Pass);
        let exact = label.em_infile.filter(|_| measure == Measure::Similarity);
        Ok(Self {
            is_right: passes.or(exact).map(|value| value >= 1.0),
            row: metadata("row").and_then(Value::as_u64).map(|row| row as usize),
            query_has_target: metadata("query_has_target").and_then(Value::as_bool) == Some(true),
            ..Self::new(&label.id, request, outcome, label.signals, retrieved_something)
        })
    }
}

/// Measure of retrieval's gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Measure {
    /// Edit similarity.
    #[default]
    Similarity,
    /// Unit-test pass rate.
    Pass,
    /// Probability of the target, the geometric mean over its characters.
    Likelihood,
}

impl Measure {
    /// Every measure.
    pub const ALL: [Self; 3] = [Self::Similarity, Self::Pass, Self::Likelihood];

    /// Returns the measure of labels that were decided by this metric.
    fn from_metric(metric: Option<&str>) -> Self {
        match metric {
            Some(PASS) => Self::Pass,
            Some(LIKELIHOOD) => Self::Likelihood,
            _ => Self::Similarity,
        }
    }

    /// Returns the names of the score fields without and with retrieval.
    fn fields(self) -> [&'static str; 2] {
        match self {
            Self::Similarity => ["es_infile", "es_rg1"],
            Self::Pass => ["pass_infile", "pass_rg1"],
            Self::Likelihood => ["likelihood_infile", "likelihood_rg1"],
        }
    }

    /// Returns the scores of a label without and with retrieval, or the missing field.
    fn scores(self, label: &Label) -> Result<[f64; 2], &'static str> {
        let [base, rag] = self.fields();
        let [without, with] = match self {
            Self::Similarity => [label.es_infile, label.es_rg1],
            Self::Pass => [label.pass_infile, label.pass_rg1],
            Self::Likelihood => [label.likelihood_infile, label.likelihood_rg1],
        };
        Ok([without.ok_or(base)?, with.ok_or(rag)?])
    }

    /// Returns the name in settings and in records.
    pub fn key(self) -> &'static str {
        match self {
            Self::Similarity => "es",
            Self::Pass => PASS,
            Self::Likelihood => LIKELIHOOD,
        }
    }

    /// Returns the short name, for column headings of tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Similarity => "ES",
            Self::Pass => "UT",
            Self::Likelihood => "p",
        }
    }
}

impl FromStr for Measure {
    type Err = UnknownName;

    /// Reads the [key](Self::key) of a measure.
    fn from_str(key: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|measure| measure.key() == key);
        found.ok_or_else(|| UnknownName::new("metric", key, Self::ALL.map(Self::key)))
    }
}

/// Scores of a task's completions without and with retrieval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompletionScores {
    /// Scores to compare, 0 to 1.
    pub score: [f64; 2],
    /// Exact matches, 0 or 1, if known.
    pub em: [Option<f64>; 2],
    /// Whether retrieval helped, if the similarities do not decide it.
    pub label: Option<bool>,
}

/// Judged instances of some files.
#[derive(Debug, Default)]
pub struct Examples {
    /// Instances in the order of the files.
    pub all: Vec<Example>,
    /// Model whose completions were judged.
    pub model: Option<String>,
    /// Metric of the labels, if they name it.
    pub metric: Option<String>,
    /// Kind of the fragments, if the labels name it.
    pub fragments: Option<String>,
    /// Measure of the scores.
    pub measure: Measure,
    /// Number of instances that lack a similarity, by field name.
    pub unjudged: BTreeMap<&'static str, usize>,
    /// Ids of the instances with the same id and repository as an earlier instance in their file.
    pub repeated: Vec<String>,
    /// Ids of the repeats with the same row as an earlier instance but another label.
    pub contradicting: Vec<String>,
    /// Records that cannot be used.
    pub problems: Vec<Error>,
}

/// Line of a record, its model, metric and fragments, and the example or the missing field.
type RecordReading = (usize, [Option<String>; 3], Result<Example, &'static str>);

/// First file and line of each value of a field that all labels must share; `None` stands for labels without the field.
type FirstPlaces = BTreeMap<Option<String>, (PathBuf, usize)>;

/// Number of records processed at once.
const BATCH: usize = 512;

impl Examples {
    /// Reads labels (`.jsonl`, gzip, zstd, or `-`) by a measure, by default the measure of the first label. Edit similarities
    /// may range from 0 to 1 or from 0 to 100.
    ///
    /// # Errors
    /// A file cannot be read, or the labels belong to different models or metrics.
    pub fn read(paths: &[PathBuf], measure: Option<Measure>) -> Result<Self> {
        let mut examples = Self::default();
        let mut asked = measure;
        let mut seen = [const { FirstPlaces::new() }; 3];
        for (number, path) in paths.iter().enumerate() {
            let first = examples.all.len();
            let mut batch: Vec<(RecordAddress, Object)> = Vec::with_capacity(BATCH);
            let mut problems = jsonl::for_each(path, |at, object| {
                batch.push((at, object));
                if batch.len() == BATCH {
                    examples.take(path, &mut batch, &mut asked, &mut seen);
                }
                Ok(())
            })?;
            examples.take(path, &mut batch, &mut asked, &mut seen);
            examples.problems.append(&mut problems);
            let mut of_file = examples.all.split_off(first);
            of_file.iter_mut().for_each(|example| example.file = number);
            let mut off_scale = Vec::new();
            let tell = |problem| keep(&mut off_scale, path, problem);
            as_shares(path, &mut of_file, asked.unwrap_or_default(), tell);
            examples.problems.append(&mut off_scale);
            let [repeated, contradicting] = Example::count_repeats(&mut of_file);
            examples.repeated.extend(repeated);
            examples.contradicting.extend(contradicting);
            examples.all.append(&mut of_file);
        }
        let [mut models, metrics, mut fragments] = seen;
        // Labels from other tools need not name their model or fragments.
        models.remove(&None);
        fragments.remove(&None);
        examples.model = only(models, |other, one| {
            (
                format!("this label is of model {other}, but others are of model {one}"),
                "retrieval may help one model and not another: pass labels of a single model",
            )
        })?;
        examples.metric = only(metrics, |other, one| {
            (
                format!("this label uses metric {other}, but others use metric {one}"),
                "gains in two metrics cannot be compared: judge all labels by one metric",
            )
        })?;
        examples.fragments = only(fragments, |other, one| {
            (
                format!("this label has {other}, but others have {one}"),
                "scores of two kinds of fragments cannot be compared: pass labels of one kind",
            )
        })?;
        examples.measure = asked.unwrap_or_default();
        Ok(examples)
    }

    fn take(
        &mut self,
        path: &Path,
        batch: &mut Vec<(RecordAddress, Object)>,
        asked: &mut Option<Measure>,
        [models, metrics, fragments]: &mut [FirstPlaces; 3],
    ) {
        let Some((_, first)) = batch.first() else { return };
        let metric = first.get("metric").and_then(Value::as_str);
        let measure = *asked.get_or_insert(Measure::from_metric(metric));
        let read = parallel::map(batch.drain(..), |(at, object)| -> Result<RecordReading> {
            let label = Label::read(path, at.line, object)?;
            let example = Example::from_label(&label, measure)
                .map(|example| Example { line: at.line, ..example });
            Ok((at.line, [label.generation_model, label.metric, label.fragments], example))
        });
        for read in read {
            match read {
                Ok((line, [model, metric, shape], Ok(example))) => {
                    models.entry(model).or_insert_with(|| (path.to_owned(), line));
                    metrics.entry(metric).or_insert_with(|| (path.to_owned(), line));
                    fragments.entry(shape).or_insert_with(|| (path.to_owned(), line));
                    self.all.push(example);
                }
                Ok((line, [_, metric, _], Err(missing))) => {
                    *self.unjudged.entry(missing).or_default() += 1;
                    // Labels judged by another metric lack scores of this measure.
                    if metric.is_some() {
                        metrics.entry(metric).or_insert_with(|| (path.to_owned(), line));
                    }
                }
                Err(problem) => keep(&mut self.problems, path, problem),
            }
        }
    }

    /// Numbers the files after the files of `other`, so that repositories of the same name stay distinct.
    pub fn behind(mut self, other: &Self) -> Self {
        let first = other.all.iter().map(|example| example.file + 1).max();
        for example in &mut self.all {
            example.file += first.unwrap_or(0);
        }
        self
    }

    /// Returns the distinct repositories.
    pub fn repositories(&self) -> BTreeSet<&str> {
        self.all.iter().map(|e| e.repository.as_str()).collect()
    }
}

/// Labels of a file with their scores. Only the whole file shows whether the scores are fractions or percentages.
#[derive(Debug, Default)]
pub struct LabelScales {
    measure: Option<Measure>,
    labels: Vec<ScaledLabel>,
}

#[derive(Debug)]
struct ScaledLabel {
    id: String,
    line: usize,
    scores: [f64; 2],
    em: [Option<f64>; 2],
}

impl LabelScales {
    /// Adds the label on a line. The measure of the first label is used.
    pub fn add(&mut self, line: usize, label: &Label) {
        let first = || Measure::from_metric(label.metric.as_deref());
        if let Ok(scores) = self.measure.get_or_insert_with(first).scores(label) {
            let em = [label.em_infile, label.em_rg1];
            self.labels.push(ScaledLabel { id: label.id.clone(), line, scores, em });
        }
    }

    /// Reports each label whose scores are on another scale than the rest of the file, as [`Examples::read`] does.
    pub fn problems(mut self, path: &Path, tell: impl FnMut(Error)) {
        as_shares(path, &mut self.labels, self.measure.unwrap_or_default(), tell);
    }
}

/// Instance or label whose scores are on the same scale as the rest of its file.
trait Scaled {
    /// Returns the id and the line.
    fn place(&self) -> (&str, usize);
    /// Returns the scores without and with retrieval.
    fn scores(&mut self) -> [Option<&mut f64>; 2];
    /// Returns the exact matches without and with retrieval, if known.
    fn em(&mut self) -> [Option<&mut f64>; 2];
}

impl Scaled for Example {
    fn place(&self) -> (&str, usize) {
        (&self.id, self.line)
    }

    fn scores(&mut self) -> [Option<&mut f64>; 2] {
        [Some(&mut self.score_base), Some(&mut self.score_rag)]
    }

    fn em(&mut self) -> [Option<&mut f64>; 2] {
        [self.em_base.as_mut(), self.em_rag.as_mut()]
    }
}

impl Scaled for ScaledLabel {
    fn place(&self) -> (&str, usize) {
        (&self.id, self.line)
    }

    fn scores(&mut self) -> [Option<&mut f64>; 2] {
        self.scores.each_mut().map(Some)
    }

    fn em(&mut self) -> [Option<&mut f64>; 2] {
        self.em.each_mut().map(Option::as_mut)
    }
}

/// Divides a file's values by 100 if they are percentages, as the released program writes them. Values are taken as percentages
/// if more of them are above 1 than above 0 and at most 1. Removes instances with a value outside the scale, and reports each.
fn as_shares<S: Scaled>(
    path: &Path,
    of_file: &mut Vec<S>,
    measure: Measure,
    mut tell: impl FnMut(Error),
) {
    type Values<S> = fn(&mut S) -> [Option<&mut f64>; 2];
    let pairs: [([&str; 2], Values<S>); 2] =
        [(measure.fields(), S::scores), (["em_infile", "em_rg1"], S::em)];
    for (names, values) in pairs {
        let (mut above, mut within) = (0, 0);
        for value in of_file.iter_mut().flat_map(values).flatten() {
            above += usize::from(*value > 1.0);
            within += usize::from(*value > 0.0 && *value <= 1.0);
        }
        let most = if above > within { 100.0 } else { 1.0 };
        of_file.retain_mut(|one| {
            let wrong = values(one).into_iter().zip(names).find_map(|(value, name)| {
                let value = value?;
                if !(0.0..=most).contains(value) {
                    return Some((name, *value));
                }
                *value /= most;
                None
            });
            let Some((name, value)) = wrong else { return true };
            let reason = format!(
                "field '{name}' must be between 0 and {most}, like the other labels in this file, not {value}"
            );
            let (id, line) = one.place();
            let (path, task_id, reason) = (path.to_owned(), id.to_owned(), reason.into());
            tell(Error::Task { path, line, task_id, reason });
            false
        });
    }
}

/// Returns the only value that was seen. If there are two, returns an error with the reason and hint that `wrong` makes from
/// them.
fn only(
    seen: FirstPlaces,
    wrong: impl FnOnce(&str, &str) -> (String, &'static str),
) -> Result<Option<String>> {
    let mut seen = seen.into_iter();
    let name = |value: Option<String>| value.unwrap_or_else(|| "(not named)".into());
    match (seen.next(), seen.next()) {
        (Some((one, _)), Some((other, (path, line)))) => {
            let (reason, hint) = wrong(&name(other), &name(one));
            Err(Error::artifact(&path, format!("line {line}: {reason}"), hint))
        }
        (one, _) => Ok(one.and_then(|(value, _)| value)),
    }
}
