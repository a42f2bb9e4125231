//! Where artifacts lie below the cache folder, so that a person finds them by eye.

use std::path::{Path, PathBuf};

use crate::repository::chunk::ChunkShape;
use crate::repository::window::WindowShape;
use crate::retrieve::chunks::QueryForm;
use crate::retrieve::query::Mode;
use crate::text::language::Language;

/// What of a configuration of chunks is part of the names of its artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkNames {
    /// Chunk size and stride.
    pub shape: ChunkShape,
    /// Which lines make a query where the mode does not say.
    pub form: QueryForm,
    /// Lines of a query.
    pub query_lines: usize,
    /// The ranker's name.
    pub ranker: String,
    /// The alignment's.
    pub align: String,
    /// The prompt style's.
    pub style: String,
}

/// Paths of one configuration's artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The cache folder.
    pub cache: PathBuf,
    /// Name of the benchmark, a folder in several places.
    pub benchmark: String,
    /// What the repositories are written in; part of every name where it is not Python.
    pub language: Language,
    /// Window and slice size are part of every name.
    pub shape: WindowShape,
    /// What stands in their place where chunks are searched.
    pub chunks: Option<ChunkNames>,
    /// The vectorizer's name.
    pub vectorizer: String,
    /// Windows kept a query.
    pub top_k: usize,
    /// Which retrieval with a prediction mode rg-rg is: 1 searches with the first prediction, 2 with what came of that.
    pub iteration: u32,
}

impl Layout {
    /// A mode as it stands in paths: `rg-rg`, and `rg-rg-2` for its second iteration.
    pub fn mode_name(&self, mode: Mode) -> String {
        match mode {
            Mode::Prediction if self.iteration > 1 => format!("{mode}-{}", self.iteration),
            _ => mode.to_string(),
        }
    }

    fn below(&self, parts: &[&str]) -> PathBuf {
        parts
            .iter()
            .fold(self.cache.clone(), |path, part| path.join(part))
    }

    /// The language behind a sign; empty for the default, which names do not mention.
    fn unless_default(&self, sign: &str) -> String {
        if self.language == Language::default() {
            String::new()
        } else {
            format!("{sign}{}", self.language)
        }
    }

    fn stem(&self, repository: &str) -> String {
        let language = self.unless_default("_");
        let cut = match &self.chunks {
            None => {
                let shape = self.shape;
                format!("ws{}_slice{}", shape.window_size, shape.slice_size)
            }
            Some(names) => format!("chunk{}_stride{}", names.shape.size, names.shape.stride),
        };
        format!("{repository}{language}_{cut}")
    }

    /// With what tells queries of chunks apart: `<repo>_chunk20_stride10.last-n-lines20`.
    fn query_stem(&self, mode: Mode, repository: &str) -> String {
        let stem = self.stem(repository);
        match &self.chunks {
            None => stem,
            Some(names) => format!("{stem}.{}{}", names.form.of_mode(mode), names.query_lines),
        }
    }

    fn run_name(&self, mode: Mode) -> String {
        let name = self.mode_name(mode);
        let language = self.unless_default("-");
        let Some(names) = &self.chunks else {
            let WindowShape {
                window_size,
                slice_size,
                ..
            } = self.shape;
            let vectorizer = &self.vectorizer;
            return format!("{name}-{vectorizer}{language}-ws-{window_size}-ss-{slice_size}");
        };
        let (form, lines) = (names.form.of_mode(mode), names.query_lines);
        let style = &names.style;
        if !mode.retrieves() {
            return format!("{name}-{style}{language}");
        }
        let (ranker, align) = (file_name(&names.ranker), &names.align);
        let ChunkShape { size, stride } = names.shape;
        format!(
            "{name}-{form}{lines}-{ranker}-{align}-{style}{language}-chunk-{size}-stride-{stride}"
        )
    }

    /// `window/repos/<repo>_ws20_slice2.bin`
    pub fn repo_windows(&self, repository: &str) -> PathBuf {
        self.below(&["window", "repos", &format!("{}.bin", self.stem(repository))])
    }

    /// `window/<benchmark>/<repo>.right.bin`: right contexts of tasks whose file does not carry them.
    pub fn right_contexts(&self, repository: &str) -> PathBuf {
        let name = format!("{repository}.right.bin");
        self.below(&["window", &self.benchmark, &name])
    }

    /// `vector/dense/<model>-….vectors`: every dense vector of a model, by the digest of its text.
    pub fn dense_store(&self, model: &str) -> PathBuf {
        let name = crate::retrieve::dense::store_file_name(model);
        self.below(&["vector", "dense", &name])
    }

    /// The same layout where vectors are dense.
    #[must_use]
    pub fn with_dense_vectors(&self) -> Self {
        Self {
            vectorizer: "dense".into(),
            ..self.clone()
        }
    }

    /// `window/<benchmark>/<mode>/<repo>_ws20_slice2.bin`
    pub fn query_windows(&self, mode: Mode, repository: &str) -> PathBuf {
        self.below(&[
            "window",
            &self.benchmark,
            &self.mode_name(mode),
            &format!("{}.bin", self.query_stem(mode, repository)),
        ])
    }

    /// `vector/repos/<repo>_ws20_slice2.one-gram.bin`
    pub fn repo_vectors(&self, repository: &str) -> PathBuf {
        self.below(&[
            "vector",
            "repos",
            &format!("{}.{}.bin", self.stem(repository), self.vectorizer),
        ])
    }

    /// `vector/<benchmark>/<mode>/<repo>_ws20_slice2.one-gram.bin`
    pub fn query_vectors(&self, mode: Mode, repository: &str) -> PathBuf {
        let stem = self.query_stem(mode, repository);
        let name = format!("{stem}.{}.bin", self.vectorizer);
        self.below(&["vector", &self.benchmark, &self.mode_name(mode), &name])
    }

    /// `retrieval/<benchmark>/<mode>/<repo>_ws20_slice2.one-gram.top20.bin`
    pub fn retrieval(&self, mode: Mode, repository: &str) -> PathBuf {
        let ranked_by = match &self.chunks {
            None => self.vectorizer.clone(),
            Some(names) => file_name(&names.ranker),
        };
        let stem = self.query_stem(mode, repository);
        let name = format!("{stem}.{ranked_by}.top{}.bin", self.top_k);
        self.below(&["retrieval", &self.benchmark, &self.mode_name(mode), &name])
    }

    /// Beside a retrieval artifact, hidden: how long the search took, which depends on the clock.
    pub fn search_time(&self, mode: Mode, repository: &str) -> PathBuf {
        let path = self.retrieval(mode, repository);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        path.with_file_name(format!(".{stem}.time.json"))
    }

    /// `prompts/<benchmark>/<mode>-one-gram-ws-20-ss-2.jsonl`
    pub fn prompts(&self, mode: Mode) -> PathBuf {
        self.below(&[
            "prompts",
            &self.benchmark,
            &format!("{}.jsonl", self.run_name(mode)),
        ])
    }

    /// `predictions/<benchmark>/<mode>-one-gram-ws-20-ss-2-<model>.jsonl`
    pub fn predictions(&self, mode: Mode, model: &str) -> PathBuf {
        self.below(&[
            "predictions",
            &self.benchmark,
            &format!("{}-{}.jsonl", self.run_name(mode), file_name(model)),
        ])
    }

    /// `scores/<benchmark>/<mode>-one-gram-ws-20-ss-2-<model>.json`
    pub fn scores(&self, mode: Mode, model: &str) -> PathBuf {
        self.below(&[
            "scores",
            &self.benchmark,
            &format!("{}-{}.json", self.run_name(mode), file_name(model)),
        ])
    }

    /// `latency/<benchmark>/<mode>-one-gram-ws-20-ss-2-<model>.jsonl`: what each task took, which depends on the clock.
    pub fn latency(&self, mode: Mode, model: &str) -> PathBuf {
        self.below(&[
            "latency",
            &self.benchmark,
            &format!("{}-{}.jsonl", self.run_name(mode), file_name(model)),
        ])
    }

    /// `probabilities/<benchmark>/<mode>-<model>.jsonl`: of the token that asks for retrieval, behind each prompt.
    pub fn probabilities(&self, mode: Mode, model: &str) -> PathBuf {
        let name = format!("{}-{}.jsonl", self.run_name(mode), file_name(model));
        self.below(&["probabilities", &self.benchmark, &name])
    }

    /// `predictions/<benchmark>/<policy>-<mode>-one-gram-ws-20-ss-2-<model>.jsonl`: what a policy chose between the predictions of
    /// `mode` and those without retrieval.
    pub fn chosen_predictions(&self, policy: &str, mode: Mode, model: &str) -> PathBuf {
        let name = format!(
            "{policy}-{}-{}.jsonl",
            self.run_name(mode),
            file_name(model)
        );
        self.below(&["predictions", &self.benchmark, &name])
    }

    /// `.notes/<where the artifact lies>.<name>`: what the artifact's stage notes for its next run (see
    /// [`read_note`](crate::store::artifact::read_note)).
    pub fn note(&self, artifact: &Path, name: &str) -> PathBuf {
        let below = artifact.strip_prefix(&self.cache).unwrap_or(artifact);
        let mut path = self.cache.join(".notes").join(below).into_os_string();
        path.push(".");
        path.push(name);
        path.into()
    }

    /// The cache folder that a retrieval artifact lies in: `<cache>/retrieval/<benchmark>/<mode>/<file>`.
    pub fn cache_of_retrieval(path: &Path) -> Option<PathBuf> {
        let stage = path.ancestors().nth(3)?;
        if stage.file_name()? != "retrieval" {
            return None;
        }
        stage.parent().map(Path::to_owned)
    }

    /// The iteration that such an artifact is of, from its folder: `rg-rg-2` is the second.
    pub fn iteration_of_retrieval(path: &Path) -> u32 {
        let folder = path
            .parent()
            .and_then(|folder| folder.file_name()?.to_str());
        let number = folder.and_then(|name| {
            name.strip_prefix(Mode::Prediction.name())?
                .strip_prefix('-')
        });
        number.and_then(|number| number.parse().ok()).unwrap_or(1)
    }
}

/// A name without what is special in paths: `org/model:tag` → `org-model-tag`.
pub fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let kept = name.chars().map(|c| if plain(c) { c } else { '-' });
    kept.collect()
}
