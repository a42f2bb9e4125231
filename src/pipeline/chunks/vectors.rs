//! `vectorize` in the manner of chunks: chunks → word vectors; where a ranker needs them, chunks and queries → dense ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::{
    Experiment, Report, Unread, check_digest, check_input, for_each_repository, stale,
};
use super::{ChunkSettings, open_chunks, open_queries, shaped};
use crate::artifact::{Header, Identity, Payload};
use crate::chunk::{Queries, RepoChunks};
use crate::dense::{Embedder, Matrix, Store, Text, Vectors, digest, import, read_texts};
use crate::endpoint::{Endpoint, Settings};
use crate::error::{Error, Result};
use crate::query::Mode;
use crate::rank::{Ranker, Words};

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
            Self::File { vectors, .. } => {
                let bytes = std::fs::read(vectors)
                    .map_err(|e| Error::reading(vectors, "read these vectors", e))?;
                identity.input("vectors", blake3::hash(&bytes).to_hex().as_str())
            }
        })
    }
}

/// Word vectors of each repository's chunks, and dense ones where a ranker needs them.
///
/// # Errors
/// Chunks are missing, an artifact cannot be written, or dense vectors cannot be had.
pub(in crate::pipeline) fn vectorize_repositories(experiment: &Experiment) -> Result<Report> {
    let settings = experiment.of_chunks()?;
    let mut report = for_each_repository(experiment, |repository, report| {
        let mut chunks = open_chunks(experiment, repository)?;
        let identity = shaped(experiment, settings, Identity::new(Words::KIND))
            .parameter("repository", repository)
            .parameter("vectorizer", "words")
            .input("chunks", &*chunks.header.checksum);
        let path = experiment.layout.repo_vectors(repository);
        report.ensure(path, &identity, |_| {
            let chunks = chunks.read(None)?;
            Ok(Words::of(&texts_of_chunks(&chunks)))
        })?;
        Ok(())
    })?;
    if let Some(mut source) = Source::new(settings, &[])? {
        for repository in &experiment.repositories {
            dense_chunks(experiment, settings, &mut source, repository, &mut report)?;
        }
    }
    Ok(report)
}

/// Words of queries are looked up when they are searched with; a ranker of dense vectors needs theirs.
///
/// # Errors
/// Queries are missing, or their vectors cannot be had.
pub(in crate::pipeline) fn vectorize_queries(
    experiment: &Experiment,
    modes: &[Mode],
) -> Result<Report> {
    let settings = experiment.of_chunks()?;
    let mut report = Report::default();
    let Some(mut source) = Source::new(settings, modes)? else {
        return Ok(report);
    };
    for &mode in modes.iter().filter(|mode| mode.retrieves()) {
        for repository in &experiment.repositories {
            dense_queries(
                experiment,
                settings,
                &mut source,
                (mode, repository),
                &mut report,
            )?;
        }
    }
    Ok(report)
}

fn texts_of_chunks(chunks: &RepoChunks) -> Vec<&str> {
    (0..chunks.len()).map(|chunk| chunks.text(chunk)).collect()
}

fn dense_chunks(
    experiment: &Experiment,
    settings: &ChunkSettings,
    source: &mut Source,
    repository: &str,
    report: &mut Report,
) -> Result<()> {
    let mut chunks = open_chunks(experiment, repository)?;
    let identity = shaped(experiment, settings, Identity::new(Matrix::KIND))
        .parameter("repository", repository)
        .input("chunks", &*chunks.header.checksum);
    let identity = source.from.identity(identity)?;
    let layout = experiment.layout.with_dense_vectors();
    report.ensure(layout.repo_vectors(repository), &identity, |report| {
        let chunks = chunks.read(None)?;
        let texts = texts_of_chunks(&chunks);
        let named = (0..).zip(&texts);
        let text = |(chunk, text): (usize, &&str)| Text {
            id: chunks.name(chunk),
            text: (*text).to_owned(),
        };
        source.matrix(experiment, named.map(text).collect(), report)
    })?;
    Ok(())
}

fn dense_queries(
    experiment: &Experiment,
    settings: &ChunkSettings,
    source: &mut Source,
    (mode, repository): (Mode, &str),
    report: &mut Report,
) -> Result<()> {
    let chunks = open_chunks(experiment, repository)?;
    let mut queries = open_queries(experiment, mode, repository, &chunks.header)?;
    let identity = shaped(experiment, settings, Identity::new(Matrix::KIND))
        .parameter("repository", repository)
        .parameter("mode", mode)
        .input("queries", &*queries.header.checksum);
    let identity = source.from.identity(identity)?;
    let layout = experiment.layout.with_dense_vectors();
    report.ensure(
        layout.query_vectors(mode, repository),
        &identity,
        |report| {
            let queries = queries.read(None)?;
            source.matrix(experiment, texts_of_queries(&queries), report)
        },
    )?;
    Ok(())
}

fn texts_of_queries(queries: &Queries) -> Vec<Text> {
    let mode = queries.mode;
    let text = |query: &crate::chunk::Query| Text {
        id: format!("{mode}|{}|{}", query.row, query.sample),
        text: query.text(),
    };
    queries.queries.iter().map(text).collect()
}

/// Every different text that dense retrieval needs vectors of, for a user who computes them elsewhere: the chunks of all
/// repositories, then the queries of these modes.
///
/// # Errors
/// Chunks or queries are missing.
pub fn dense_texts(experiment: &Experiment, modes: &[Mode]) -> Result<Vec<Text>> {
    let mut texts = Vec::new();
    for repository in &experiment.repositories {
        let chunks = open_chunks(experiment, repository)?.read(None)?;
        texts.extend((0..chunks.len()).map(|chunk| Text {
            id: chunks.name(chunk),
            text: chunks.text(chunk).to_owned(),
        }));
    }
    for &mode in modes.iter().filter(|mode| mode.retrieves()) {
        for repository in &experiment.repositories {
            let chunks = open_chunks(experiment, repository)?;
            let mut queries = open_queries(experiment, mode, repository, &chunks.header)?;
            texts.extend(texts_of_queries(&queries.read(None)?));
        }
    }
    let mut seen = std::collections::HashSet::new();
    texts.retain(|text| !text.text.is_empty() && seen.insert(digest(&text.text)));
    Ok(texts)
}

/// Where vectors are taken from while a stage runs.
struct Source {
    from: DenseSource,
    /// Opened when the first vector is needed.
    store: Option<(Embedder, Store)>,
    file: Option<Vectors>,
    /// Whose queries are to have vectors, besides the chunks.
    modes: Vec<Mode>,
    notice: Notice,
}

impl Source {
    /// `None` where no ranker needs dense vectors.
    fn new(settings: &ChunkSettings, modes: &[Mode]) -> Result<Option<Self>> {
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
    fn matrix(
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
                        let settings = Settings {
                            timeout,
                            ..Settings::default()
                        };
                        let notice = self.notice.clone();
                        let endpoint = Endpoint::new(&url, settings)?;
                        let endpoint = endpoint.on_retry(move |text| notice.tell(text));
                        let path = experiment.layout.dense_store(&model);
                        let store = Store::open(&path, &model)?;
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
