//! Paths of artifacts below the cache folder, with names that people can find by eye.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use repoformer_core::repository::Shard;
use repoformer_core::repository::fragment::Cut;
use repoformer_core::retrieve::rank::Ranker;
use repoformer_core::retrieve::{Align, Mode, QueryForm};
use repoformer_store::artifact::digest;
use repoformer_text::language::Language;

use super::experiment::Experiment;

/// Name of the folders of repositories' copies; for a shard, the start of the name.
pub(super) const COPIES: &str = "copies";

/// Parts that the paths of all artifacts of an experiment have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The cache folder.
    pub cache: PathBuf,
    /// Name of the benchmark, used for several folders.
    pub benchmark: String,
    /// Language of the repositories; part of every name unless it is Python.
    pub language: Language,
    /// How files are cut; part of every name.
    pub cut: Cut,
    /// Iteration of mode rg-rg: 1 searches with the first prediction, 2 with the prediction that results from 1.
    pub iteration: u32,
    /// Shard of the repositories, if a stage works on one; part of the names of artifacts made from all tasks.
    pub shard: Option<Shard>,
}

/// Paths of an experiment's artifacts, according to its settings.
#[derive(Debug, Clone)]
pub struct Paths<'e> {
    layout: &'e Layout,
    shard: Option<Shard>,
    /// Which lines make up a query, if the mode does not determine them.
    form: QueryForm,
    /// Number of lines in a query.
    query_lines: usize,
    ranker: &'e Ranker,
    /// Name of the vectors that the ranker compares: `one-gram`, `words`, `tokens`, `dense`.
    vectors: String,
    align: Align,
    /// Name of the prompt style; it shows whether prompts have no right context.
    style: String,
    /// Number of fragments kept per query.
    top_k: usize,
}

/// Name of the vectors that RepoCoder compares: sets of `p50k_base` tokens.
const ONE_GRAM: &str = "one-gram";

impl Layout {
    /// Returns the name of a mode in paths: `rg-rg`, and `rg-rg-2` for the second iteration.
    pub fn mode_name(&self, mode: Mode) -> String {
        match mode {
            Mode::Prediction if self.iteration > 1 => format!("{mode}-{}", self.iteration),
            _ => mode.to_string(),
        }
    }

    /// Returns an artifact's path within the cache folder, as other artifacts' headers name it.
    pub(super) fn within_cache(&self, path: &Path) -> String {
        let within = path.strip_prefix(&self.cache).unwrap_or(path);
        within.to_string_lossy().into_owned()
    }

    /// Returns the cache folder of a retrieval artifact: `<cache>/retrieval/<benchmark>/<mode>/<file>`.
    pub fn cache_of_retrieval(path: &Path) -> Option<PathBuf> {
        let stage = path.ancestors().nth(3)?;
        if stage.file_name()? != "retrieval" {
            return None;
        }
        stage.parent().map(Path::to_owned)
    }
}

impl<'e> Paths<'e> {
    /// Returns the paths for an experiment.
    pub(super) fn new(experiment: &'e Experiment) -> Self {
        let Experiment { layout, retrieval, prompts, .. } = experiment;
        let is_left = prompts.layout.style().is_some_and(|style| !style.include().right);
        Self {
            layout,
            shard: layout.shard,
            form: retrieval.form,
            query_lines: retrieval.query_lines,
            ranker: &retrieval.search.ranker,
            vectors: retrieval.search.vectors_name(),
            align: prompts.align,
            style: format!("{}{}", prompts.layout.name(), if is_left { "-left" } else { "" }),
            top_k: retrieval.search.top_k,
        }
    }

    /// Returns the name of the vectors that the ranker compares.
    pub fn vectors(&self) -> &str {
        &self.vectors
    }

    fn below(&self, parts: &[&str]) -> PathBuf {
        parts.iter().fold(self.layout.cache.clone(), |path, part| path.join(&*shorten_name(part)))
    }

    /// Returns the language after a sign; empty for the default language, which names do not mention.
    fn unless_default(&self, sign: &str) -> String {
        if self.layout.language == Language::default() {
            String::new()
        } else {
            format!("{sign}{}", self.layout.language)
        }
    }

    fn stem(&self, repository: &str) -> String {
        let language = self.unless_default("_");
        format!("{repository}{language}_{}", self.layout.cut)
    }

    /// Returns the stem for queries; unless they are windows, it names their form: `<repo>_chunk20_stride10.last-n-lines20`.
    fn query_stem(&self, mode: Mode, repository: &str) -> String {
        let stem = self.stem(repository);
        match self.form.of_mode(mode) {
            QueryForm::Window => stem,
            form => format!("{stem}.{form}{}", self.query_lines),
        }
    }

    /// Returns the name of the ranker, and of the vectors that it compares unless they are the usual ones.
    fn ranked_by(&self) -> String {
        let ranker = file_name(&self.ranker.to_string());
        match (self.layout.cut, &*self.vectors) {
            (_, ONE_GRAM) => ONE_GRAM.to_owned(),
            (Cut::Chunks(_), "words") => ranker,
            _ if *self.ranker == Ranker::Dense => ranker,
            (_, vectors) => format!("{ranker}-{vectors}"),
        }
    }

    /// True if the settings are RepoCoder's except for sizes; names are shorter then.
    fn is_repocoder(&self) -> bool {
        self.layout.cut.is_windows()
            && self.vectors == ONE_GRAM
            && self.form == QueryForm::Window
            && self.style == "repocoder"
            && self.align == Align::Auto
    }

    fn run_name(&self, mode: Mode) -> String {
        let name = self.layout.mode_name(mode);
        let language = self.unless_default("-");
        let [(_, size), (_, overlap)] = self.layout.cut.sizes();
        if self.is_repocoder() {
            return format!("{name}-{ONE_GRAM}{language}-ws-{size}-ss-{overlap}");
        }
        let style = &self.style;
        if !mode.retrieves() {
            return format!("{name}-{style}{language}");
        }
        let cut = match self.layout.cut {
            Cut::Windows(_) => format!("ws-{size}-ss-{overlap}"),
            Cut::Chunks(_) => format!("chunk-{size}-stride-{overlap}"),
        };
        let query = match self.form.of_mode(mode) {
            QueryForm::Window => QueryForm::Window.to_string(),
            form => format!("{form}{}", self.query_lines),
        };
        let (ranker, align) = (self.ranked_by(), self.align);
        format!("{name}-{query}-{ranker}-{align}-{style}{language}-{cut}")
    }

    /// Returns the path of a file made from all tasks, or from a shard's: `<name>.jsonl`, `<name>.shard-2-of-8.jsonl`.
    fn of_tasks(&self, folder: &str, name: &str, ending: &str) -> PathBuf {
        let shard = self.of_its_shard();
        self.below(&[folder, &self.layout.benchmark, &format!("{name}{shard}.{ending}")])
    }

    /// Returns the end of a name: `.shard-2-of-8`, or nothing.
    fn of_its_shard(&self) -> String {
        self.shard.map_or(String::new(), |shard| format!(".{}", shard.file_name()))
    }

    /// Returns `exec/<benchmark>/results.jsonl`: results of unit tests.
    pub fn exec_results(&self) -> PathBuf {
        self.of_tasks("exec", "results", "jsonl")
    }

    /// Returns `exec/<benchmark>/copies`: folder of repositories' copies in which tests run.
    pub fn exec_copies(&self) -> PathBuf {
        self.below(&["exec", &self.layout.benchmark, &format!("{COPIES}{}", self.of_its_shard())])
    }

    /// Returns the paths for a shard.
    #[must_use]
    pub fn of_shard(&self, shard: Shard) -> Self {
        Self { shard: Some(shard), ..self.clone() }
    }

    /// Returns `window/repos/<repo>_ws20_slice2.bin`.
    pub fn repo_windows(&self, repository: &str) -> PathBuf {
        self.below(&["window", "repos", &format!("{}.bin", self.stem(repository))])
    }

    /// Returns `window/<benchmark>/<repo>.right.bin`: right contexts of tasks that do not carry them.
    pub fn right_contexts(&self, repository: &str) -> PathBuf {
        let name = format!("{repository}.right.bin");
        self.below(&["window", &self.layout.benchmark, &name])
    }

    /// Returns `vector/dense/<model>-….vectors`: all dense vectors of a model, by the digests of their texts.
    pub fn dense_store(&self, model: &str) -> PathBuf {
        let name = repoformer_core::retrieve::dense::store_file_name(model);
        self.below(&["vector", "dense", &name])
    }

    /// Returns the paths for the same experiment's dense vectors.
    #[must_use]
    pub fn with_dense_vectors(&self) -> Self {
        Self { vectors: "dense".into(), ..self.clone() }
    }

    /// Returns `window/<benchmark>/<mode>/<repo>_ws20_slice2.bin`.
    pub fn query_windows(&self, mode: Mode, repository: &str) -> PathBuf {
        self.below(&[
            "window",
            &self.layout.benchmark,
            &self.layout.mode_name(mode),
            &format!("{}.bin", self.query_stem(mode, repository)),
        ])
    }

    /// Returns `vector/repos/<repo>_ws20_slice2.one-gram.bin`.
    pub fn repo_vectors(&self, repository: &str) -> PathBuf {
        self.below(&["vector", "repos", &format!("{}.{}.bin", self.stem(repository), self.vectors)])
    }

    /// Returns `vector/<benchmark>/<mode>/<repo>_ws20_slice2.one-gram.bin`.
    pub fn query_vectors(&self, mode: Mode, repository: &str) -> PathBuf {
        let stem = self.query_stem(mode, repository);
        let name = format!("{stem}.{}.bin", self.vectors);
        self.below(&["vector", &self.layout.benchmark, &self.layout.mode_name(mode), &name])
    }

    /// Returns `retrieval/<benchmark>/<mode>/<repo>_ws20_slice2.one-gram.top20.bin`.
    pub fn retrieval(&self, mode: Mode, repository: &str) -> PathBuf {
        let ranked_by = self.ranked_by();
        let stem = self.query_stem(mode, repository);
        let name = format!("{stem}.{ranked_by}.top{}.bin", self.top_k);
        self.below(&["retrieval", &self.layout.benchmark, &self.layout.mode_name(mode), &name])
    }

    /// Returns the hidden file next to a retrieval artifact with the time of the search, which depends on the clock.
    pub fn search_time(&self, mode: Mode, repository: &str) -> PathBuf {
        let path = self.retrieval(mode, repository);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        path.with_file_name(format!(".{stem}.time.json"))
    }

    /// Returns `prompts/<benchmark>/<mode>-one-gram-ws-20-ss-2.jsonl`.
    pub fn prompts(&self, mode: Mode) -> PathBuf {
        self.of_tasks("prompts", &self.run_name(mode), "jsonl")
    }

    /// Returns `predictions/<benchmark>/<mode>-one-gram-ws-20-ss-2-<model>.jsonl`.
    pub fn predictions(&self, mode: Mode, model: &str) -> PathBuf {
        let name = format!("{}-{}", self.run_name(mode), file_name(model));
        self.of_tasks("predictions", &name, "jsonl")
    }

    /// Returns `scores/<benchmark>/<mode>-one-gram-ws-20-ss-2-<model>.json`.
    pub fn scores(&self, mode: Mode, model: &str) -> PathBuf {
        let name = format!("{}-{}", self.run_name(mode), file_name(model));
        self.of_tasks("scores", &name, "json")
    }

    /// Returns the file of the scores of predictions in this cache; `None` for predictions elsewhere.
    pub fn scores_of(&self, predictions: &Path) -> Option<PathBuf> {
        let name = predictions.strip_prefix(self.layout.cache.join("predictions")).ok()?;
        Some(self.layout.cache.join("scores").join(name).with_extension("json"))
    }

    /// Returns `latency/<benchmark>/<mode>-one-gram-ws-20-ss-2-<model>.jsonl`: the time of each task, which depends on the clock.
    pub fn latency(&self, mode: Mode, model: &str) -> PathBuf {
        let name = format!("{}-{}", self.run_name(mode), file_name(model));
        self.of_tasks("latency", &name, "jsonl")
    }

    /// Returns `latency/<benchmark>/decision-<mode>-…-<model>.jsonl`: the time of each task's decision by the model.
    pub fn decision_latency(&self, mode: Mode, model: &str) -> PathBuf {
        let name = format!("decision-{}-{}", self.run_name(mode), file_name(model));
        self.of_tasks("latency", &name, "jsonl")
    }

    /// Returns `probabilities/<benchmark>/<mode>-<model>.jsonl`: probabilities of the token that asks for retrieval, after each
    /// prompt.
    pub fn probabilities(&self, mode: Mode, model: &str) -> PathBuf {
        let name = format!("{}-{}", self.run_name(mode), file_name(model));
        self.of_tasks("probabilities", &name, "jsonl")
    }

    /// Returns `predictions/<benchmark>/<policy>-<mode>-one-gram-ws-20-ss-2-<model>.jsonl`: a policy's choices between the
    /// predictions of `mode` and those without retrieval.
    pub fn chosen_predictions(&self, policy: &str, mode: Mode, model: &str) -> PathBuf {
        let name = format!("{policy}-{}-{}", self.run_name(mode), file_name(model));
        self.of_tasks("predictions", &name, "jsonl")
    }
}

/// Returns a name without the special characters of paths: `org/model:tag` → `org-model-tag`. A long name is shortened.
pub fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: String = name.chars().map(|c| if plain(c) { c } else { '-' }).collect();
    shorten_name(&plain).into_owned()
}

/// Largest number of bytes in a name. File systems allow 255; headers and times add a few before and after the name.
const LONGEST_NAME: usize = 200;
/// Number of bytes that a longer name keeps at its start and at its end.
const KEPT: [usize; 2] = [100, 70];

/// Returns a name that every file system accepts. A digest replaces the middle of a long name, so that names stay distinct; the
/// end stays, because it shows the kind of file.
fn shorten_name(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST_NAME {
        return name.into();
    }
    let [head, tail] = KEPT;
    let (head, tail) = (name.floor_char_boundary(head), name.ceil_char_boundary(name.len() - tail));
    let digest = &digest(name.as_bytes())[..16];
    format!("{}~{digest}~{}", &name[..head], &name[tail..]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_bounded_distinct_and_keep_their_ends() {
        let of = |letter: &str, middle: &str| {
            let letters = letter.repeat(240 / letter.len());
            format!("{letters}{middle}{letters}_ws20_slice2.one-gram.top20.bin")
        };
        for letter in ["r", "é", "語"] {
            let [one, other] =
                ["1", "2"].map(|middle| shorten_name(&of(letter, middle)).into_owned());
            assert_ne!(one, other);
            assert!(one.len() <= LONGEST_NAME, "{one}");
            assert!(one.starts_with(letter) && one.ends_with("_ws20_slice2.one-gram.top20.bin"));
        }
        assert_eq!(file_name("org/model:tag"), "org-model-tag");
        assert!(file_name(&"m".repeat(5000)).len() <= LONGEST_NAME);
    }
}
