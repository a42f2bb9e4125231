//! Times of requests by retriever, given or measured.

use std::path::{Path, PathBuf};

use repoformer_core::policy::sweep::{Clock, LatencyModel, RequestTimes};
use repoformer_core::policy::{Example, Examples};
use repoformer_core::task::NumberedRecords;
use repoformer_store::error::{Error, Result};
use repoformer_store::remark::Remark;
use repoformer_text::counts::part;
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use crate::table::with_embedding;

/// Sources of the times of requests.
#[derive(Debug, Clone, Default)]
pub struct TimeSources {
    /// Names of retrievers, and their files of measured times.
    pub measured: Vec<(String, PathBuf)>,
    /// File of the measured times of completions without retrieval.
    pub base: Option<PathBuf>,
    /// Milliseconds of a generation, for generations that no file has.
    pub generation_ms: Option<f64>,
    /// Names of retrievers, and times that apply to every request.
    pub given: Vec<(String, RequestTimes)>,
    /// Milliseconds of a model's decision; by default, the measured times are used.
    pub decision_ms: Option<f64>,
    /// Parts of a request that run at the same time.
    pub clock: Clock,
}

/// Times of requests by retriever.
#[derive(Debug, Clone, Default)]
pub struct RetrieverTimes {
    /// Names of the retrievers, without duplicates.
    pub names: Vec<String>,
    /// Their times, in the same order.
    pub models: Vec<LatencyModel>,
}

impl RetrieverTimes {
    /// Reads the measured times, and adds the given ones.
    ///
    /// # Errors
    /// A file cannot be read or lacks times, the files belong to two benchmarks, or two retrievers have the same name.
    pub fn read(sources: &TimeSources, tell: &dyn Fn(Remark)) -> Result<Self> {
        let mut times = Self::default();
        let base = sources.base.as_deref();
        let mut add = |name, model: LatencyModel| {
            times.names.push(name);
            times.models.push(model.deciding(sources.decision_ms).by(sources.clock));
        };
        for (name, file) in &sources.measured {
            let model = LatencyModel::read(file, base, sources.generation_ms)?;
            if model.without_embedding {
                let reason = "the retrieval times do not include the queries' dense vectors, which \
                              came from a file";
                tell(Remark::Warning(format!("{}: {reason}", file.display()).into()));
            }
            if let Some(benchmark) = benchmark_of(file) {
                check_base(file, benchmark, base)?;
                let note = format!(
                    "policy sweep: the times of {name} are from benchmark {benchmark}; the labels \
                     do not name a benchmark"
                );
                tell(Remark::Note(note.into()));
            }
            add(with_embedding(name.clone(), model.without_embedding), model);
        }
        for (name, given) in &sources.given {
            add(name.clone(), LatencyModel::from_times(*given));
        }
        for (place, name) in times.names.iter().enumerate() {
            if times.names[..place].contains(name) {
                return Err(Error::from_refusal(
                    format!("two retrievers have the name '{name}'"),
                    "give each a name, as in sparse=12 and dense=350",
                ));
            }
        }
        Ok(times)
    }

    /// Checks that measured times belong to these instances, and warns of instances that have none.
    ///
    /// # Errors
    /// The times belong to none of the instances.
    pub(super) fn check(&self, examples: &Examples, tell: &dyn Fn(Remark)) -> Result<()> {
        for (name, model) in self.names.iter().zip(&self.models) {
            if model.is_measured() {
                let mut numbered = NumberedRecords::default();
                let known = examples.all.iter().filter(|example| model.knows(example));
                known.for_each(|example| numbered.add(&example.id));
                let warning = numbered.warning(format_args!("the times of {name}"), None);
                warning.into_iter().for_each(|warning| tell(Remark::Unproven(warning)));
            }
            check_known(name, examples, &|example| model.knows(example), tell)?;
            if model.has_base() {
                let name = format!("{name} without retrieval");
                check_known(&name, examples, &|example| model.knows_base(example), tell)?;
            }
        }
        Ok(())
    }
}

/// Checks that some instances have times, and warns of instances without times.
fn check_known(
    name: &str,
    examples: &Examples,
    knows: &dyn Fn(&Example) -> bool,
    tell: &dyn Fn(Remark),
) -> Result<()> {
    let all = examples.all.len();
    match examples.all.iter().filter(|example| knows(example)).count() {
        0 => Err(Error::from_refusal(
            format!("no time of {name} belongs to these instances"),
            message![
                "pass the times of these instances' predictions, or the ",
                UserChoice::RetrievalTime,
                " with the ",
                UserChoice::GenerationTime
            ],
        )),
        known if known < all => {
            let without = part(all - known, all, "instance", ["has", "have"]);
            let warning =
                format!("{without} no time of {name}; the mean of the other times is used");
            tell(Remark::Warning(warning.into()));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Checks that times of completions without retrieval are not from another benchmark.
fn check_base(file: &Path, benchmark: &str, base: Option<&Path>) -> Result<()> {
    match base.and_then(benchmark_of).filter(|other| *other != benchmark) {
        None => Ok(()),
        Some(other) => Err(Error::from_refusal(
            message![
                format!("{} has times from benchmark {benchmark}, but the ", file.display()),
                UserChoice::BaseTimes,
                format!(" are from {other}")
            ],
            "pass times from the same benchmark",
        )),
    }
}

/// Returns the benchmark of a cache's times, which only their folder names: `latency/BENCHMARK/FILE`.
fn benchmark_of(path: &Path) -> Option<&str> {
    let folder = path.parent()?;
    let is_cached = folder.parent()?.file_name()? == "latency";
    folder.file_name()?.to_str().filter(|_| is_cached)
}
