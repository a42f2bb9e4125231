//! Where artifacts lie below the cache folder, so that a person finds them by eye.

use std::path::{Path, PathBuf};

use crate::query::Mode;
use crate::window::WindowShape;

/// Paths of one configuration's artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The cache folder.
    pub cache: PathBuf,
    /// Name of the benchmark, a folder in several places.
    pub benchmark: String,
    /// Window and slice size are part of every name.
    pub shape: WindowShape,
    /// The vectorizer's name.
    pub vectorizer: String,
    /// Windows kept a query.
    pub top_k: usize,
}

impl Layout {
    fn below(&self, parts: &[&str]) -> PathBuf {
        parts
            .iter()
            .fold(self.cache.clone(), |path, part| path.join(part))
    }

    fn stem(&self, repository: &str) -> String {
        format!(
            "{repository}_ws{}_slice{}",
            self.shape.window_size, self.shape.slice_size
        )
    }

    fn run_name(&self, mode: Mode) -> String {
        format!(
            "{mode}-{}-ws-{}-ss-{}",
            self.vectorizer, self.shape.window_size, self.shape.slice_size
        )
    }

    /// `window/repos/<repo>_ws20_slice2.bin`
    pub fn repo_windows(&self, repository: &str) -> PathBuf {
        self.below(&["window", "repos", &format!("{}.bin", self.stem(repository))])
    }

    /// `window/<benchmark>/<mode>/<repo>_ws20_slice2.bin`
    pub fn query_windows(&self, mode: Mode, repository: &str) -> PathBuf {
        self.below(&[
            "window",
            &self.benchmark,
            mode.name(),
            &format!("{}.bin", self.stem(repository)),
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
        let name = format!("{}.{}.bin", self.stem(repository), self.vectorizer);
        self.below(&["vector", &self.benchmark, mode.name(), &name])
    }

    /// `retrieval/<benchmark>/<mode>/<repo>_ws20_slice2.one-gram.top20.bin`
    pub fn retrieval(&self, mode: Mode, repository: &str) -> PathBuf {
        let name = format!(
            "{}.{}.top{}.bin",
            self.stem(repository),
            self.vectorizer,
            self.top_k
        );
        self.below(&["retrieval", &self.benchmark, mode.name(), &name])
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
            &format!("{}-{model}.jsonl", self.run_name(mode)),
        ])
    }

    /// `scores/<benchmark>/<mode>-one-gram-ws-20-ss-2-<model>.json`
    pub fn scores(&self, mode: Mode, model: &str) -> PathBuf {
        self.below(&[
            "scores",
            &self.benchmark,
            &format!("{}-{model}.json", self.run_name(mode)),
        ])
    }

    /// `.notes/<where the artifact lies>.<name>`: what the artifact's stage notes for its next run (see
    /// [`read_note`](super::read_note)).
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
}
