//! From settings to how chunks are searched and shown.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use repoformer::pipeline::ChunkNames;
use repoformer::pipeline::{ChunkSettings, DenseSource, Notice, PromptLayout};
use repoformer::prompt::style::{Budget, Include, Style};
use repoformer::repository::chunk::ChunkShape;
use repoformer::retrieve::chunks::{Align, Limits, QueryForm};
use repoformer::retrieve::rank::Ranker;
use repoformer::text::tokenize::model::Tokenizer;

use super::session::number;
use crate::config::Settings;
use crate::output::{announce, hinted};

/// Larger than any file, and small enough to be added to.
const MOST: usize = u32::MAX as usize / 4;

/// Whether chunks are searched.
pub(super) fn searches_chunks(settings: &Settings) -> Result<bool> {
    match settings.text("unit").unwrap_or("windows") {
        "windows" => match settings.chosen_for_chunks() {
            None => Ok(false),
            Some(key) => Err(hinted(
                anyhow!("--{key} is a setting of chunks, and windows are searched"),
                "add --unit chunks, or a --profile that searches them",
            )),
        },
        "chunks" => Ok(true),
        other => bail!("unit '{other}' is neither windows nor chunks"),
    }
}

/// How chunks are searched and shown, where they are.
pub(super) fn chunk_settings(settings: &Settings) -> Result<Option<ChunkSettings>> {
    if !searches_chunks(settings)? {
        return Ok(None);
    }
    let ranker = ranker(settings)?;
    let tokenizer = settings.text("tokenizer").unwrap_or_default();
    let size = |key, least| number(settings, key, least..=MOST);
    let limit = |key| match settings.text(key) {
        Some(_) => number(settings, key, 1..=usize::MAX),
        None => Ok(usize::MAX),
    };
    let shape = ChunkShape {
        size: size("chunk-size", 1)?,
        stride: size("chunk-stride", 1)?,
    };
    shape.check()?;
    let budget = Budget {
        total: number(settings, "max-prompt-tokens", 1..=MOST)?,
        left: settings.parsed_option("max-left-tokens")?,
        right: settings.parsed_option("max-right-tokens")?,
        cross_file: settings.parsed_option("max-cross-file-tokens")?,
    };
    Ok(Some(ChunkSettings {
        shape,
        form: settings.parsed("query")?,
        query_lines: size("query-lines", 1)?,
        dense: dense(settings)?,
        notice: Notice::to(announce),
        ranker,
        align: settings.parsed("align")?,
        limits: Limits {
            files: limit("max-files")?,
            chunks: limit("max-chunks")?,
        },
        order: settings.parsed("ties")?,
        full_paths: match settings.text("fragment-paths").unwrap_or_default() {
            "full" => true,
            "repository" => false,
            other => bail!("fragment-paths '{other}' is neither repository nor full"),
        },
        layout: layout(settings)?,
        budget,
        tokenizer: tokenizer.parse::<Tokenizer>()?,
    }))
}

/// What of them is part of the artifacts' names.
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
            anyhow!("vectorizer '{other}' is not known where chunks are searched"),
            "there are words and dense; leave it out and it follows from the ranker",
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
                batch: number(settings, "embedding-batch", 1..=MOST)?,
                concurrency: number(settings, "embedding-concurrency", 1..=256)?,
                timeout: Duration::from_secs(
                    number(settings, "embedding-timeout", 1..=86_400)? as u64
                ),
            }
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(source))
}

fn layout(settings: &Settings) -> Result<PromptLayout> {
    let name = settings.text("prompt-style").unwrap_or_default();
    if name == "attach" {
        return Ok(PromptLayout::Attach);
    }
    let style: Style = name.parse()?;
    let include = Include {
        right: yes(settings, "right-context")?,
        cross_file: true,
    };
    Ok(PromptLayout::Style(style.including(include)))
}

fn yes(settings: &Settings, key: &str) -> Result<bool> {
    match settings.text(key).unwrap_or_default() {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => bail!("{key} '{other}' is neither yes nor no"),
    }
}
