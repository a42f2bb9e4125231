//! Dense vectors of chunks and queries: where they come from, and those that are there.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::super::{Experiment, Report, Unread, check_digest, check_input, stale};
use super::ChunkSettings;
use super::vectors::dense_texts;
use crate::endpoint::{ConnectionSettings, Endpoint};
use crate::error::{Error, Result};
use crate::retrieve::dense::{
    Embedder, Matrix, Text, VectorStore, Vectors, digest, import, read_texts,
};
use crate::retrieve::query::Mode;
use crate::retrieve::rank::Ranker;
use crate::store::artifact::{Header, Identity, Payload};

/// How often it is told how far the embedding of texts is.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Takes what is told.
type Listener = dyn Fn(&str) + Send + Sync;

/// Who is told, in words, what a server that is waited for does.
#[derive(Clone, Default)]
pub struct Notice(Option<Arc<Listener>>);

impl Notice {
    /// Told to `listener`.
    pub fn to(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    fn tell(&self, text: &str) {
        if let Some(listener) = &self.0 {
            listener(text);
        }
    }
}

impl std::fmt::Debug for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notice")
    }
}

/// Where dense vectors come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DenseSource {
    /// An OpenAI-compatible server.
    Endpoint {
        /// Where it answers.
        url: String,
        /// What embeds.
        model: String,
        /// Texts a request, at most.
        batch: usize,
        /// Requests at a time.
        concurrency: usize,
        /// Time for one request.
        timeout: Duration,
    },
    /// A file that the user computed.
    File {
        /// The vectors: JSONL or NPY.
        vectors: PathBuf,
        /// The texts that rows and ids belong to, as [`dense_texts`] were written.
        texts: Option<PathBuf>,
        /// Digest of the vectors' file, once it was read.
        digest: OnceLock<String>,
    },
}

impl DenseSource {
    /// That vectors came from here.
    fn check(&self, path: &Path, header: &Header, command: &str) -> Result<()> {
        let wanted = self.identity(Identity::new(Matrix::KIND))?;
        for (name, value) in &wanted.parameters {
            let there = header.identity.parameters.get(name);
            if there != Some(value) {
                let was = there.map_or("a file", String::as_str);
                return Err(stale(
                    path,
                    format!("{name} was {was}, is {value}"),
                    command,
                ));
            }
        }
        let digests = wanted.inputs.iter();
        digests
            .into_iter()
            .try_for_each(|(name, digest)| check_digest(path, header, name, digest, command))
    }

    /// What tells its vectors from others.
    fn identity(&self, identity: Identity) -> Result<Identity> {
        Ok(match self {
            Self::Endpoint { model, .. } => identity.parameter("embedding-model", model),
            Self::File {
                vectors, digest, ..
            } => {
                let digest = match digest.get() {
                    Some(digest) => digest,
                    None => {
                        let bytes = std::fs::read(vectors)
                            .map_err(|e| Error::reading(vectors, "read these vectors", e))?;
                        digest.get_or_init(|| blake3::hash(&bytes).to_hex().to_string())
                    }
                };
                identity.input("vectors", &**digest)
            }
        })
    }
}

/// Where vectors are taken from while a stage runs.
pub(super) struct Source {
    from: DenseSource,
    /// Opened when the first vector is needed.
    store: Option<(Embedder, VectorStore)>,
    file: Option<Vectors>,
    /// Whose queries are to have vectors, besides the chunks.
    modes: Vec<Mode>,
    notice: Notice,
}

impl Source {
    /// With what tells its vectors from others.
    pub(super) fn identity(&self, identity: Identity) -> Result<Identity> {
        self.from.identity(identity)
    }

    /// `None` where no ranker needs dense vectors.
    pub(super) fn new(settings: &ChunkSettings, modes: &[Mode]) -> Result<Option<Self>> {
        if !settings.ranker.parts().contains(&Ranker::Dense) {
            return Ok(None);
        }
        let Some(from) = settings.dense.clone() else {
            let reason = format!(
                "ranker {} needs dense vectors: name a server with --endpoint and --embedding-model, or a file with \
                 --vectors",
                settings.ranker
            );
            return Err(Error::Parameter {
                name: "vectors",
                reason,
            });
        };
        Ok(Some(Self {
            from,
            store: None,
            file: None,
            modes: modes.to_vec(),
            notice: settings.notice.clone(),
        }))
    }

    /// A row for each text.
    pub(super) fn matrix(
        &mut self,
        experiment: &Experiment,
        texts: Vec<Text>,
        report: &mut Report,
    ) -> Result<Matrix> {
        let wanted = || texts.iter().map(|text| text.text.as_str());
        match self.from.clone() {
            DenseSource::Endpoint {
                url,
                model,
                batch,
                concurrency,
                timeout,
            } => {
                let (embedder, store) = match &mut self.store {
                    Some(opened) => opened,
                    None => {
                        let settings = ConnectionSettings {
                            timeout,
                            ..ConnectionSettings::default()
                        };
                        let notice = self.notice.clone();
                        let endpoint = Endpoint::new(&url, settings)?;
                        let endpoint = endpoint.on_retry(move |text| notice.tell(text));
                        let path = experiment.layout.dense_store(&model);
                        let store = VectorStore::open(&path, &model)?;
                        let notes = store.notes().iter().map(ToString::to_string);
                        report.warnings.extend(notes);
                        let embedder = Embedder::new(endpoint, &model);
                        let embedder = embedder.batch_size(batch).concurrency(concurrency);
                        self.store.insert((embedder, store))
                    }
                };
                let missing = wanted()
                    .filter(|text| !store.contains(&digest(text)))
                    .count();
                if missing > 0 {
                    self.notice
                        .tell(&format!("asking {url} for the vectors of {missing} texts"));
                }
                let mut told = Instant::now();
                embedder.embed(wanted(), store, &mut |done, all| {
                    if told.elapsed() >= TELL_EVERY {
                        told = Instant::now();
                        self.notice.tell(&format!("embedded {done} of {all} texts"));
                    }
                })?;
                store.matrix(wanted())
            }
            DenseSource::File {
                vectors,
                texts: named,
                ..
            } => {
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

/// The dense vectors of a repository's chunks and of one mode's queries, to be read.
pub(super) struct Dense {
    chunks: Unread<Matrix>,
    queries: Unread<Matrix>,
}

impl Dense {
    /// # Errors
    /// They are missing, or were made of other chunks or queries.
    pub(super) fn open(
        experiment: &Experiment,
        mode: Mode,
        repository: &str,
        (chunk_header, query_header): (&Header, &Header),
    ) -> Result<Self> {
        let layout = experiment.layout.with_dense_vectors();
        let command = format!("vectorize --mode {mode}");
        let path = layout.repo_vectors(repository);
        let chunks = Unread::<Matrix>::open(&path, &command)?;
        check_input(&path, &chunks.header, "chunks", chunk_header, &command)?;
        let path = layout.query_vectors(mode, repository);
        let queries = Unread::<Matrix>::open(&path, &command)?;
        check_input(&path, &queries.header, "queries", query_header, &command)?;
        if let Some(source) = &experiment.of_chunks()?.dense {
            for (header, path) in [
                (&chunks.header, layout.repo_vectors(repository)),
                (&queries.header, path),
            ] {
                source.check(&path, header, &command)?;
            }
        }
        Ok(Self { chunks, queries })
    }

    /// What they are as inputs of what is made with them.
    pub(super) fn headers(&self) -> [(&'static str, &Header); 2] {
        [
            ("dense vectors", &self.chunks.header),
            ("dense queries", &self.queries.header),
        ]
    }

    /// The identity of what is made with them.
    pub(super) fn inputs(&self, identity: Identity) -> Identity {
        let headers = self.headers().into_iter();
        headers.fold(identity, |identity, (name, header)| {
            identity.input(name, &*header.checksum)
        })
    }

    /// Reads them.
    ///
    /// # Errors
    /// They are damaged, or of different sizes.
    pub(super) fn read(&mut self) -> Result<(Matrix, Matrix)> {
        let (chunks, queries) = (self.chunks.read(None)?, self.queries.read(None)?);
        if chunks.dim() == queries.dim() || chunks.is_empty() || queries.is_empty() {
            return Ok((chunks, queries));
        }
        let reason = format!(
            "the vectors of chunks have {} numbers, those of queries {}; make both with one model",
            chunks.dim(),
            queries.dim()
        );
        Err(Error::Parameter {
            name: "vectors",
            reason,
        })
    }
}

/// A cosine for each chunk, by the number of the query.
pub(super) fn cosines((chunks, queries): &(Matrix, Matrix)) -> impl Fn(usize) -> Vec<f64> + Sync {
    |query| {
        let mut out = Vec::new();
        // Sizes agree, as `Dense::read` saw to; where there is nothing, nothing is alike.
        if chunks.cosines(queries.row(query), &mut out).is_err() {
            out = vec![0.0; chunks.len()];
        }
        out
    }
}
