//! Dense vectors of fragments and queries: made by a server or read from a file, and those that are there.

use std::path::Path;
use std::time::Duration;

use repoformer_core::retrieve::dense::{
    EmbeddingTimes, Matrix, Text, VectorStore, Vectors, digest, import, read_texts,
};
use repoformer_core::retrieve::{Mode, Query};
use repoformer_models::embed::Embedder;
use repoformer_models::endpoint::{ConnectionSettings, Endpoint};
use repoformer_store::artifact::{Header, Identity, Payload};
use repoformer_store::error::{Error, Result};
use repoformer_text::message::StageRun;

use super::dense::{DenseSource, Notice};
use super::experiment::Experiment;
use super::fragments::OpenFragments;
use super::stage::{StageReport, Unread, check_digest, check_input, check_parameters};
use super::window::open_queries;

/// Checks that vectors came from this source.
fn check_source(source: &DenseSource, path: &Path, header: &Header, step: &StageRun) -> Result<()> {
    let wanted = source.identity(Identity::new(Matrix::KIND))?;
    check_parameters(path, header, &wanted, step)?;
    let mut digests = wanted.inputs.iter();
    digests.try_for_each(|(name, digest)| check_digest(path, header, name, digest, step))
}

/// Where vectors are taken from while a stage runs.
pub(super) struct Source {
    from: DenseSource,
    /// Opened when the first vector is needed.
    store: Option<(Embedder, VectorStore)>,
    file: Option<Vectors>,
    /// Whose queries are to have vectors, besides the fragments.
    modes: Vec<Mode>,
    notice: Notice,
}

impl Source {
    /// With what tells its vectors from others.
    pub(super) fn identity(&self, identity: Identity) -> Result<Identity> {
        self.from.identity(identity)
    }

    /// `None` where no ranker needs dense vectors.
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
            notice: settings.notice.clone(),
        }))
    }

    /// A row for each text. Where the texts are queries, the server's time for each is kept.
    pub(super) fn matrix(
        &mut self,
        experiment: &Experiment,
        texts: Vec<Text>,
        are_queries: bool,
        report: &mut StageReport,
    ) -> Result<Matrix> {
        let wanted = || texts.iter().map(|text| text.text.as_str());
        match self.from.clone() {
            DenseSource::Endpoint { url, model, batch, concurrency, timeout } => {
                let path = experiment.layout.dense_store(&model);
                let (embedder, store) = match &mut self.store {
                    Some(opened) => opened,
                    None => {
                        let settings =
                            ConnectionSettings { timeout, ..ConnectionSettings::default() };
                        let notice = self.notice.clone();
                        let endpoint = Endpoint::new(&url, settings)?;
                        let endpoint = endpoint.on_retry(move |text| notice.tell(text));
                        let store = VectorStore::open(&path, &model)?;
                        let notes = store.notes().iter().map(Error::message);
                        report.warnings.extend(notes);
                        let embedder = Embedder::new(endpoint, &model);
                        let embedder = embedder.batch_size(batch).concurrency(concurrency);
                        self.store.insert((embedder, store))
                    }
                };
                let mut times = match are_queries {
                    true => Some(EmbeddingTimes::open(&path)?),
                    false => None,
                };
                let is_missing = |text: &&str| {
                    let digest = digest(text);
                    let is_timed = times.as_ref().is_none_or(|times| times.contains(&digest));
                    !(text.is_empty() || store.contains(&digest) && is_timed)
                };
                let missing = wanted().filter(is_missing).count();
                if missing > 0 {
                    self.notice.tell(&format!("asking {url} for the vectors of {missing} texts"));
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

/// The dense vectors of a repository's fragments and of one mode's queries, to be read.
pub(super) struct Dense {
    fragments: Unread<Matrix>,
    queries: Unread<Matrix>,
}

/// Headers of the artifacts that dense vectors are made of.
pub(super) struct DenseInputs<'a> {
    pub(super) fragments: &'a Header,
    pub(super) queries: &'a Header,
}

impl Dense {
    /// # Errors
    /// They are missing, or were made of other fragments or queries.
    pub(super) fn open(
        experiment: &Experiment,
        mode: Mode,
        repository: &str,
        made_of: DenseInputs<'_>,
    ) -> Result<Self> {
        let layout = experiment.layout.with_dense_vectors();
        let step = StageRun::InMode("vectorize", mode.name());
        let path = layout.repo_vectors(repository);
        let fragments = Unread::<Matrix>::open(experiment, &path, &step)?;
        check_input(&path, &fragments.header, "fragments", made_of.fragments, &step)?;
        let path = layout.query_vectors(mode, repository);
        let queries = Unread::<Matrix>::open(experiment, &path, &step)?;
        check_input(&path, &queries.header, "queries", made_of.queries, &step)?;
        if let Some(source) = &experiment.retrieval.dense {
            for (header, path) in
                [(&fragments.header, layout.repo_vectors(repository)), (&queries.header, path)]
            {
                check_source(source, &path, header, &step)?;
            }
        }
        Ok(Self { fragments, queries })
    }

    /// Names and headers of their artifacts, as inputs of others.
    pub(super) fn headers(&self) -> [(&'static str, &Header); 2] {
        [("dense vectors", &self.fragments.header), ("dense queries", &self.queries.header)]
    }

    /// The identity of what is made with them.
    pub(super) fn inputs(&self, identity: Identity) -> Identity {
        let headers = self.headers().into_iter();
        headers.fold(identity, |identity, (name, header)| identity.input(name, &*header.checksum))
    }

    /// Reads them.
    ///
    /// # Errors
    /// They are damaged, or of different sizes.
    pub(super) fn read(&mut self) -> Result<(Matrix, Matrix)> {
        let (fragments, queries) = (self.fragments.read(None)?, self.queries.read(None)?);
        if fragments.dim() == queries.dim() || fragments.is_empty() || queries.is_empty() {
            return Ok((fragments, queries));
        }
        let reason = format!(
            "the vectors of fragments have {} numbers, those of queries {}; make both with one model",
            fragments.dim(),
            queries.dim()
        );
        Err(Error::parameter("vectors", reason))
    }
}

/// A cosine for each fragment, by the number of the query.
pub(super) fn cosines(fragments: &Matrix, queries: &Matrix) -> impl Fn(usize) -> Vec<f64> + Sync {
    move |query| {
        let mut out = Vec::new();
        // Sizes agree, as `Dense::read` saw to; where there is nothing, nothing is alike.
        if fragments.cosines(queries.row(query), &mut out).is_err() {
            out = vec![0.0; fragments.len()];
        }
        out
    }
}

/// How long a server took for each query's vector; `None` where a time is not known: of vectors that came from a file.
pub(super) fn embedding_times(experiment: &Experiment, queries: &[Query]) -> Option<Vec<Duration>> {
    let Some(DenseSource::Endpoint { model, .. }) = &experiment.retrieval.dense else {
        return None;
    };
    let known = EmbeddingTimes::read(&experiment.layout.dense_store(model));
    let time = |query: &Query| match query.text.is_empty() {
        true => Some(Duration::ZERO),
        false => known.get(&digest(&query.text)).map(|seconds| Duration::from_secs_f64(*seconds)),
    };
    queries.iter().map(time).collect()
}

/// Every different text that dense retrieval needs vectors of, for a user who computes them elsewhere: the fragments of all
/// repositories, then the queries of these modes.
///
/// # Errors
/// Fragments or queries are missing.
pub fn dense_texts(experiment: &Experiment, modes: &[Mode]) -> Result<Vec<Text>> {
    let mut texts = Vec::new();
    for repository in &experiment.repositories {
        let mut fragments = OpenFragments::open(experiment, repository)?;
        let fragments = fragments.read_all()?;
        texts.extend((0..fragments.len()).map(|fragment| Text {
            id: fragments.name(fragment),
            text: fragments.text(fragment).to_owned(),
        }));
    }
    for &mode in modes.iter().filter(|mode| mode.retrieves()) {
        for repository in &experiment.repositories {
            let fragments = OpenFragments::open(experiment, repository)?;
            let mut queries = open_queries(experiment, mode, repository, &fragments.header)?;
            let queries = queries.read(None)?;
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

/// Name of a query's text, for vectors made elsewhere.
pub(super) fn query_name(mode: Mode, query: &Query) -> String {
    format!("{mode}|{}|{}", query.row, query.sample)
}
