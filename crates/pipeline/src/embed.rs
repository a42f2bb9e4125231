//! Dense vectors of fragments and queries: made by a server or read from a file, and existing ones.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use repoformer_core::retrieve::dense::{
    EmbeddingTimes, Matrix, Text, TextVectors, VectorStore, digest, import, read_texts,
};
use repoformer_core::retrieve::{Mode, Query};
use repoformer_models::embed::Embedder;
use repoformer_models::endpoint::{ConnectionSettings, Endpoint};
use repoformer_store::artifact::{Identity, Payload};
use repoformer_store::error::{Error, Result};
use repoformer_text::message::StageRun;

use super::dense::DenseSource;
use super::engine::{Artifact, Engine, LazyArtifact};
use super::experiment::Experiment;
use super::fragments::{Fragments, OpenFragments};
use super::messages::Messages;
use super::queries::ModeQueries;

/// Dense vectors of a repository's fragments, or of its queries in a mode.
pub(super) struct DenseVectors<'a> {
    pub(super) repository: &'a str,
    pub(super) mode: Option<Mode>,
}

impl Artifact for DenseVectors<'_> {
    type Content = Matrix;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        let layout = experiment.paths().with_dense_vectors();
        match self.mode {
            Some(mode) => layout.query_vectors(mode, self.repository),
            None => layout.repo_vectors(self.repository),
        }
    }

    fn making_stage(&self, _: &Experiment) -> StageRun {
        self.mode
            .map_or(StageRun::Any("vectorize"), |mode| StageRun::InMode("vectorize", mode.name()))
    }

    fn identity(&self, engine: &mut Engine<'_>) -> Result<Identity> {
        let (experiment, repository) = (engine.experiment, self.repository);
        let identity = experiment.cut(Identity::new(Matrix::KIND));
        let identity = identity.parameter("repository", repository);
        let identity = match self.mode {
            Some(mode) => {
                let queries = engine.header(&ModeQueries::new(mode, repository))?;
                identity.parameter("mode", mode).input("queries", queries.checksum)
            }
            None => {
                let fragments = engine.header(&Fragments::new(repository))?;
                identity.input("fragments", fragments.checksum)
            }
        };
        match &experiment.retrieval.dense {
            Some(source) => source.identity(identity),
            None => Ok(identity),
        }
    }
}

/// Source of vectors while a stage runs.
pub(super) struct VectorSource {
    from: DenseSource,
    /// Opened when the first vector is needed.
    store: Option<(Embedder, VectorStore)>,
    file: Option<TextVectors>,
    /// Modes whose queries need vectors, besides the fragments.
    modes: Vec<Mode>,
    messages: Arc<dyn Messages>,
}

impl VectorSource {
    /// Returns the source of vectors; `None` if no ranker needs dense vectors.
    pub(super) fn new(experiment: &Experiment, modes: &[Mode]) -> Result<Option<Self>> {
        if !experiment.ranks_dense() {
            return Ok(None);
        }
        let settings = &experiment.retrieval;
        let Some(from) = settings.dense.clone() else {
            let reason = format!(
                "ranker {} needs dense vectors: name a server and its embedding model, or a file of vectors",
                settings.search.ranker
            );
            return Err(Error::parameter("vectors", reason));
        };
        Ok(Some(Self {
            from,
            store: None,
            file: None,
            modes: modes.to_vec(),
            messages: Arc::clone(&experiment.messages),
        }))
    }

    /// Returns one row for each text. For queries, the server's time for each text is kept.
    pub(super) fn matrix(
        &mut self,
        engine: &mut Engine<'_>,
        texts: Vec<Text>,
        are_queries: bool,
    ) -> Result<Matrix> {
        let experiment = engine.experiment;
        let wanted = || texts.iter().map(|text| text.text.as_str());
        match self.from.clone() {
            DenseSource::Endpoint { url, model, batch, concurrency, timeout } => {
                let path = experiment.paths().dense_store(&model);
                let (embedder, store) = match &mut self.store {
                    Some(opened) => opened,
                    None => {
                        let settings =
                            ConnectionSettings { timeout, ..ConnectionSettings::default() };
                        let messages = Arc::clone(&self.messages);
                        let endpoint = Endpoint::new(&url, settings)?;
                        let endpoint = endpoint.on_notice(move |notice| messages.server(notice));
                        let store = VectorStore::open(&path, &model)?;
                        let notes = store.notes().iter().map(Error::message);
                        engine.report.warnings.extend(notes);
                        let embedder = Embedder::new(endpoint, &model);
                        let embedder = embedder.batch_size(batch).concurrency(concurrency);
                        self.store.insert((embedder, store))
                    }
                };
                let mut times = if are_queries { Some(EmbeddingTimes::open(&path)?) } else { None };
                let is_missing = |text: &&str| {
                    let digest = digest(text);
                    let is_timed = times.as_ref().is_none_or(|times| times.contains(&digest));
                    !(text.is_empty() || store.contains(&digest) && is_timed)
                };
                let missing = wanted().filter(is_missing).count();
                if missing > 0 {
                    let url = embedder.url();
                    let text = format!("requesting vectors of {missing} texts from {url}");
                    self.messages.note(text.into());
                }
                match &mut times {
                    Some(times) => embedder.embed_timed(wanted(), store, times)?,
                    None => embedder.embed(wanted(), store)?,
                };
                store.matrix(wanted())
            }
            DenseSource::File { vectors, texts: named, .. } => {
                let file = match &self.file {
                    Some(file) => file,
                    None => {
                        let named = match named {
                            Some(path) => read_texts(&path)?,
                            None => dense_texts(experiment, &self.modes)?,
                        };
                        self.file.insert(import(&vectors, &named)?)
                    }
                };
                file.matrix(wanted())
            }
        }
    }
}

/// Dense vectors of a repository's fragments and of one mode's queries, not read yet.
pub(super) struct Dense {
    fragments: LazyArtifact<Matrix>,
    queries: LazyArtifact<Matrix>,
}

impl Dense {
    /// # Errors
    /// The vectors are missing, or were made from other fragments or queries.
    pub(super) fn open(engine: &mut Engine<'_>, mode: Mode, repository: &str) -> Result<Self> {
        Ok(Self {
            fragments: engine.need(&DenseVectors { repository, mode: None })?,
            queries: engine.need(&DenseVectors { repository, mode: Some(mode) })?,
        })
    }

    /// Adds the vectors to the identity of an artifact that is made with them.
    ///
    /// # Errors
    /// The same as for [`open`](Self::open).
    pub(super) fn inputs(
        engine: &mut Engine<'_>,
        mode: Mode,
        repository: &str,
        identity: Identity,
    ) -> Result<Identity> {
        let fragments = engine.header(&DenseVectors { repository, mode: None })?;
        let queries = engine.header(&DenseVectors { repository, mode: Some(mode) })?;
        let identity = identity.input("dense vectors", fragments.checksum);
        Ok(identity.input("dense queries", queries.checksum))
    }

    /// Reads the vectors.
    ///
    /// # Errors
    /// The vectors are damaged, or of different sizes.
    pub(super) fn read(&mut self) -> Result<(Matrix, Matrix)> {
        let (fragments, queries) = (self.fragments.read(None)?, self.queries.read(None)?);
        if fragments.dim() == queries.dim() || fragments.is_empty() || queries.is_empty() {
            return Ok((fragments, queries));
        }
        let reason = format!(
            "vectors of fragments have {} dimensions, but vectors of queries have {}; compute both with one model",
            fragments.dim(),
            queries.dim()
        );
        Err(Error::parameter("vectors", reason))
    }
}

/// Returns a function from the number of a query to a cosine for each fragment.
pub(super) fn cosines(fragments: &Matrix, queries: &Matrix) -> impl Fn(usize) -> Vec<f64> + Sync {
    move |query| {
        let mut out = Vec::new();
        // `Dense::read` has checked that sizes agree; without vectors, all cosines are 0.
        if fragments.cosines(queries.row(query), &mut out).is_err() {
            out = vec![0.0; fragments.len()];
        }
        out
    }
}

/// Returns the time that a server took for each query's vector; `None` if a time is not known, as for vectors from a file.
pub(super) fn embedding_times(experiment: &Experiment, queries: &[Query]) -> Option<Vec<Duration>> {
    let Some(DenseSource::Endpoint { model, .. }) = &experiment.retrieval.dense else {
        return None;
    };
    let known = EmbeddingTimes::read(&experiment.paths().dense_store(model));
    let time = |query: &Query| {
        if query.text.is_empty() {
            Some(Duration::ZERO)
        } else {
            known.get(&digest(&query.text)).map(|seconds| Duration::from_secs_f64(*seconds))
        }
    };
    queries.iter().map(time).collect()
}

/// Returns the distinct texts that need dense vectors, for users who compute the vectors elsewhere: the fragments of all
/// repositories, then the queries of these modes.
///
/// # Errors
/// Fragments or queries are missing.
pub fn dense_texts(experiment: &Experiment, modes: &[Mode]) -> Result<Vec<Text>> {
    let (mut texts, mut engine) = (Vec::new(), Engine::new(experiment));
    for repository in &experiment.repositories {
        let mut fragments = OpenFragments::open(&mut engine, repository)?;
        let fragments = fragments.read_all()?;
        texts.extend((0..fragments.len()).map(|fragment| Text {
            id: fragments.name(fragment),
            text: fragments.text(fragment).to_owned(),
        }));
    }
    for &mode in modes.iter().filter(|mode| mode.retrieves()) {
        for repository in &experiment.repositories {
            let queries = engine.need(&ModeQueries::new(mode, repository))?.read(None)?;
            texts.extend(
                queries
                    .queries
                    .iter()
                    .map(|query| Text { id: query_name(mode, query), text: query.text.clone() }),
            );
        }
    }
    let mut seen = std::collections::HashSet::new();
    texts.retain(|text| !text.text.is_empty() && seen.insert(digest(&text.text)));
    Ok(texts)
}

/// Returns the name of a query's text, for vectors made elsewhere.
pub(super) fn query_name(mode: Mode, query: &Query) -> String {
    format!("{mode}|{}|{}", query.row, query.sample)
}
