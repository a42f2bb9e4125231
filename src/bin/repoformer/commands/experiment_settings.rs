//! From settings to how files are cut, fragments searched and prompts laid out.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use repoformer::pipeline::{DenseSource, Notice, PromptLayout, PromptSettings, RetrievalSettings};
use repoformer::prompt::style::{Budget, Include, Style};
use repoformer::repository::fragment::{ChunkShape, Cut, WindowShape};
use repoformer::retrieve::rank::{Ranker, Vocabulary};
use repoformer::retrieve::{Limits, QueryForm, SearchSettings, Visibility};
use repoformer::text::tokenize::model::Tokenizer;

use super::numbers::{MOST, number};
use crate::config::Settings;
use crate::output::{announce, hinted};

/// Whether files are cut into chunks.
pub(super) fn cuts_chunks(settings: &Settings) -> Result<bool> {
    let unit = settings.text("unit").unwrap_or("windows");
    let is_chunks = match unit {
        "windows" => false,
        "chunks" => true,
        other => bail!("unknown unit '{other}'; known: windows, chunks"),
    };
    if let Some(key) = settings.chosen_of_other_unit(is_chunks) {
        let (other, way) = match is_chunks {
            false => ("chunks", "add --unit chunks, or a --profile that cuts them"),
            true => (
                "windows",
                "leave it out, or cut windows with --unit windows",
            ),
        };
        return Err(hinted(
            anyhow!("--{key} is a setting of {other}, and files are cut into {unit}"),
            way,
        ));
    }
    Ok(is_chunks)
}

/// Every way to cut files that was asked for: one, or each window size with each slice size.
pub(super) fn cuts(settings: &Settings) -> Result<Vec<Cut>> {
    let mut cuts = Vec::new();
    if cuts_chunks(settings)? {
        cuts.push(Cut::Chunks(ChunkShape {
            size: number(settings, "chunk-size", 1..=MOST)?,
            stride: number(settings, "chunk-stride", 1..=MOST)?,
        }));
    } else {
        let center = settings.parsed("center")?;
        let slices: Vec<usize> = settings.parsed_list("slice-size")?;
        for window_size in settings.parsed_list("window-size")? {
            cuts.extend(slices.iter().map(|&slice_size| {
                Cut::Windows(WindowShape {
                    window_size,
                    slice_size,
                    center,
                })
            }));
        }
    }
    cuts.iter().try_for_each(|cut| cut.check())?;
    Ok(cuts)
}

/// How fragments are searched.
pub(super) fn retrieval(settings: &Settings) -> Result<RetrievalSettings> {
    let is_chunks = cuts_chunks(settings)?;
    let form: QueryForm = settings.parsed("query")?;
    if is_chunks && form == QueryForm::Window {
        return Err(hinted(
            anyhow!("--query window is made of windows, and files are cut into chunks"),
            "choose another --query, or cut windows with --unit windows",
        ));
    }
    let limit = |key| match settings.text(key) {
        Some(_) => number(settings, key, 1..=usize::MAX),
        None => Ok(usize::MAX),
    };
    let visibility = match is_chunks {
        false => Visibility::Guarded(settings.parsed("hole-guard")?),
        true => Visibility::OtherFiles {
            limits: Limits {
                files: limit("max-files")?,
                chunks: limit("max-chunks")?,
            },
            ties: settings.parsed("ties")?,
        },
    };
    Ok(RetrievalSettings {
        form,
        query_lines: number(settings, "query-lines", 1..=MOST)?,
        search: SearchSettings {
            ranker: ranker(settings)?,
            vocabulary: vocabulary(settings)?,
            visibility,
            top_k: number(settings, "top-k", 1..=u32::MAX as usize)?,
        },
        dense: dense(settings)?,
        notice: Notice::to(announce),
    })
}

/// How prompts are laid out.
pub(super) fn prompts(settings: &Settings) -> Result<PromptSettings> {
    let tokenizer = settings.text("tokenizer").unwrap_or_default();
    Ok(PromptSettings {
        align: settings.parsed("align")?,
        most: number(settings, "max-blocks", 1..=usize::MAX)?,
        full_paths: match settings.text("fragment-paths").unwrap_or_default() {
            "full" => true,
            "repository" => false,
            other => bail!("unknown fragment-paths '{other}'; known: repository, full"),
        },
        layout: layout(settings)?,
        budget: Budget {
            total: number(settings, "max-prompt-tokens", 1..=MOST)?,
            left: settings.parsed_option("max-left-tokens")?,
            right: settings.parsed_option("max-right-tokens")?,
            cross_file: settings.parsed_option("max-cross-file-tokens")?,
        },
        tokenizer: tokenizer.parse::<Tokenizer>()?,
    })
}

/// Terms that lexical rankers compare.
fn vocabulary(settings: &Settings) -> Result<Vocabulary> {
    let tokenizer = settings.text("tokenizer").unwrap_or_default();
    match (settings.text("vectorizer").unwrap_or_default(), tokenizer) {
        ("words" | "dense", _) | ("one-gram", "words") => Ok(Vocabulary::Words),
        ("one-gram", tokenizer) => Ok(Vocabulary::Tokens(tokenizer.parse()?)),
        (other, _) => bail!("unknown vectorizer '{other}'; known: one-gram, words, dense"),
    }
}

/// The ranker; dense where dense vectors are asked for and no ranker is.
fn ranker(settings: &Settings) -> Result<Ranker> {
    let ranker: Ranker = settings.parsed("ranker")?;
    let is_dense = ranker.parts().contains(&Ranker::Dense);
    let is_chosen = settings.is_chosen("vectorizer");
    match settings.text("vectorizer") {
        // Dense vectors are made to be ranked by, unless a ranker is asked for as well.
        Some("dense") if !is_dense && settings.is_chosen("ranker") => Err(hinted(
            anyhow!("ranker {ranker} needs no dense vectors, which --vectorizer asks for"),
            "choose --ranker dense, or fuse it: rrf:dense,jaccard",
        )),
        Some("dense") if !is_dense => Ok(Ranker::Dense),
        Some(other @ ("words" | "one-gram")) if ranker == Ranker::Dense && is_chosen => {
            Err(hinted(
                anyhow!("ranker {ranker} needs --vectorizer dense, and it is {other}"),
                "leave --vectorizer out: it follows from the ranker",
            ))
        }
        _ => Ok(ranker),
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
    let style = match settings.text("prompt-style").unwrap_or_default() {
        "repocoder" => return Ok(PromptLayout::RepoCoder),
        "attach" => return Ok(PromptLayout::Attach),
        name => name.parse::<Style>()?,
    };
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
        other => bail!("unknown {key} '{other}'; known: yes, no"),
    }
}
