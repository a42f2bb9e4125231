//! Settings of the search of chunks and of its prompts.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use repoformer::pipeline::ChunkNames;
use repoformer::pipeline::{ChunkSettings, DenseSource, Notice, PromptLayout};
use repoformer::prompt::style::{Budget, Include, Style};
use repoformer::repository::chunk::ChunkShape;
use repoformer::retrieve::chunks::{Align, Limits, QueryForm};
use repoformer::retrieve::rank::Ranker;
use repoformer::text::tokenize::model::Tokenizer;

use crate::output::{announce, hinted};
use crate::settings::Settings;

/// Whether chunks are searched.
pub(super) fn searches_chunks(settings: &Settings) -> Result<bool> {
    if settings.text("unit") == Some("chunks") {
        return Ok(true);
    }
    match settings.chosen_for_chunks() {
        None => Ok(false),
        Some(key) => Err(hinted(
            anyhow!("--{key} is a setting of chunks, and windows are searched"),
            "add --unit chunks, or a --profile that searches them",
        )),
    }
}

/// Settings of chunks; `None` where windows are searched.
pub(super) fn chunk_settings(settings: &Settings) -> Result<Option<ChunkSettings>> {
    if !searches_chunks(settings)? {
        return Ok(None);
    }
    let ranker = ranker(settings)?;
    let limit = |key| Ok::<_, anyhow::Error>(settings.parsed_option(key)?.unwrap_or(usize::MAX));
    let shape = ChunkShape {
        size: settings.parsed("chunk-size")?,
        stride: settings.parsed("chunk-stride")?,
    };
    shape.check()?;
    let budget = Budget {
        total: settings.parsed("max-prompt-tokens")?,
        left: settings.parsed_option("max-left-tokens")?,
        right: settings.parsed_option("max-right-tokens")?,
        cross_file: settings.parsed_option("max-cross-file-tokens")?,
    };
    Ok(Some(ChunkSettings {
        shape,
        form: settings.parsed("query")?,
        query_lines: settings.parsed("query-lines")?,
        dense: dense(settings)?,
        notice: Notice::to(announce),
        ranker,
        align: settings.parsed("align")?,
        limits: Limits {
            files: limit("max-files")?,
            chunks: limit("max-chunks")?,
        },
        order: settings.parsed("ties")?,
        full_paths: settings.text("fragment-paths") == Some("full"),
        layout: layout(settings)?,
        budget,
        tokenizer: settings.parsed::<Tokenizer>("tokenizer")?,
    }))
}

/// Chunk settings that are part of file names.
pub(super) fn names(chunks: &ChunkSettings) -> ChunkNames {
    let form: QueryForm = chunks.form;
    let align: Align = chunks.align;
    ChunkNames {
        shape: chunks.shape,
        form,
        query_lines: chunks.query_lines,
        ranker: chunks.ranker.to_string(),
        align: align.to_string(),
        style: chunks.layout.name().to_owned(),
    }
}

/// The ranker; dense where dense vectors are asked for and no ranker is.
fn ranker(settings: &Settings) -> Result<Ranker> {
    let vectorizer = match settings.text("vectorizer") {
        _ if settings.is_default("vectorizer") => None,
        text => text,
    };
    let ranker: Ranker = settings.parsed("ranker")?;
    let is_dense = |ranker: &Ranker| ranker.parts().contains(&Ranker::Dense);
    let ranker = match vectorizer {
        // Dense vectors are made to be ranked by, unless a ranker is asked for as well.
        Some("dense") if !is_dense(&ranker) && settings.is_chosen("ranker") => {
            return Err(hinted(
                anyhow!("ranker {ranker} needs no dense vectors, which --vectorizer asks for"),
                "choose --ranker dense, or fuse it: rrf:dense,jaccard",
            ));
        }
        Some("dense") if !is_dense(&ranker) => Ranker::Dense,
        _ => ranker,
    };
    match vectorizer {
        Some("words") if is_dense(&ranker) => Err(hinted(
            anyhow!("ranker {ranker} needs --vectorizer dense, and it is words"),
            "leave --vectorizer out: it follows from the ranker",
        )),
        None | Some("words" | "dense") => Ok(ranker),
        Some(other) => Err(hinted(
            anyhow!("vectorizer '{other}' is not used by chunks; known: words, dense"),
            "leave --vectorizer out: it follows from the ranker",
        )),
    }
}

fn dense(settings: &Settings) -> Result<Option<DenseSource>> {
    // A server whose completions are asked for embeds nothing.
    let completes = settings
        .text("model")
        .is_some_and(|model| model != "in-context");
    let embeds = !completes || settings.text("embedding-model").is_some();
    let endpoint = settings.text("endpoint").filter(|_| embeds);
    let source = match (settings.text("vectors"), endpoint) {
        (Some(_), Some(_)) => {
            bail!("--vectors and --endpoint cannot both be where vectors come from")
        }
        (Some(file), None) => DenseSource::File {
            vectors: file.into(),
            texts: settings.text("vector-texts").map(Into::into),
            digest: Default::default(),
        },
        (None, Some(url)) => {
            let Some(model) = settings.text("embedding-model") else {
                return Err(hinted(
                    anyhow!("--endpoint is set and --embedding-model is not"),
                    "name the model that the server embeds texts with",
                ));
            };
            DenseSource::Endpoint {
                url: url.to_owned(),
                model: model.to_owned(),
                batch: settings.parsed("embedding-batch")?,
                concurrency: settings.parsed("embedding-concurrency")?,
                timeout: Duration::from_secs(settings.parsed("embedding-timeout")?),
            }
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(source))
}

fn layout(settings: &Settings) -> Result<PromptLayout> {
    if settings.text("prompt-style") == Some("attach") {
        return Ok(PromptLayout::Attach);
    }
    let style: Style = settings.parsed("prompt-style")?;
    let include = Include {
        right: settings.text("right-context") == Some("yes"),
        cross_file: true,
    };
    Ok(PromptLayout::Style(style.including(include)))
}
