//! From settings to how files are cut, fragments searched and prompts laid out.

use std::time::Duration;

use anyhow::{Result, bail};
use repoformer_core::prompt::style::{Budget, Include, Style};
use repoformer_core::repository::fragment::{ChunkShape, Cut, WindowShape};
use repoformer_core::retrieve::rank::{Ranker, Vocabulary};
use repoformer_core::retrieve::{Limits, QueryForm, SearchSettings, Visibility};
use repoformer_pipeline::{DenseSource, Notice, PromptLayout, PromptSettings, RetrievalSettings};
use repoformer_text::tokenize::model::Tokenizer;

use crate::output::{fail, note};
use crate::settings::Settings;

/// Whether files are cut into chunks.
pub(super) fn cuts_chunks(settings: &Settings) -> Result<bool> {
    let unit = settings.text("unit").unwrap_or_default();
    let is_chunks = unit == "chunks";
    if let Some(key) = settings.chosen_of_other_unit() {
        let (other, way) = match is_chunks {
            false => ("chunks", "add --unit chunks, or a --profile that cuts them"),
            true => ("windows", "leave it out, or cut windows with --unit windows"),
        };
        let reason = format!("--{key} is a setting of {other}, and files are cut into {unit}");
        return fail(reason, way);
    }
    Ok(is_chunks)
}

/// Refuses settings that were chosen for this run and that another choice does not use.
fn refuse_unused(settings: &Settings, keys: &[&str], by: &str, flag: &str) -> Result<()> {
    keys.iter().find(|key| settings.is_chosen(key)).map_or(Ok(()), |key| {
        let way = format!("leave it out, or choose another {flag}");
        fail(format!("--{key} is not used by {by}"), way)
    })
}

/// Every way to cut files that was asked for: one, or each window size with each slice size.
pub(super) fn cuts(settings: &Settings) -> Result<Vec<Cut>> {
    let mut cuts = Vec::new();
    if cuts_chunks(settings)? {
        cuts.push(Cut::Chunks(ChunkShape {
            size: settings.parsed("chunk-size")?,
            stride: settings.parsed("chunk-stride")?,
        }));
    } else {
        let center = settings.parsed("center")?;
        let slices: Vec<usize> = settings.parsed_list("slice-size")?;
        for window_size in settings.parsed_list("window-size")? {
            for &slice_size in &slices {
                cuts.push(Cut::Windows(WindowShape { window_size, slice_size, center }));
            }
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
        return fail(
            "--query window is made of windows, and files are cut into chunks",
            "choose another --query, or cut windows with --unit windows",
        );
    }
    if form == QueryForm::Window {
        refuse_unused(settings, &["query-lines"], "query window", "--query")?;
    }
    let limit = |key| Ok::<_, anyhow::Error>(settings.parsed_option(key)?.unwrap_or(usize::MAX));
    let visibility = match is_chunks {
        false => Visibility::Guarded(settings.parsed("hole-guard")?),
        true => Visibility::OtherFiles {
            limits: Limits { files: limit("max-files")?, chunks: limit("max-chunks")? },
            ties: settings.parsed("ties")?,
        },
    };
    Ok(RetrievalSettings {
        form,
        query_lines: settings.parsed("query-lines")?,
        search: SearchSettings {
            ranker: ranker(settings)?,
            vocabulary: vocabulary(settings)?,
            visibility,
            top_k: settings.parsed("top-k")?,
        },
        dense: dense(settings)?,
        notice: Notice::to(|text| note(text)),
    })
}

/// How prompts are laid out.
pub(super) fn prompts(settings: &Settings) -> Result<PromptSettings> {
    Ok(PromptSettings {
        align: settings.parsed("align")?,
        most: settings.parsed("max-blocks")?,
        full_paths: settings.text("fragment-paths") == Some("full"),
        layout: layout(settings)?,
        budget: Budget {
            total: settings.parsed("max-prompt-tokens")?,
            left: settings.parsed_option("max-left-tokens")?,
            right: settings.parsed_option("max-right-tokens")?,
            cross_file: settings.parsed_option("max-cross-file-tokens")?,
        },
        tokenizer: settings.parsed::<Tokenizer>("tokenizer")?,
    })
}

/// Terms that lexical rankers compare.
fn vocabulary(settings: &Settings) -> Result<Vocabulary> {
    let is_words = settings.text("tokenizer") == Some("words");
    Ok(match settings.text("vectorizer") {
        Some("one-gram") if !is_words => Vocabulary::Tokens(settings.parsed("tokenizer")?),
        Some("words-nltk-3.8") => Vocabulary::WordsNltk38,
        _ => Vocabulary::Words,
    })
}

/// The ranker; dense where dense vectors are asked for and no ranker is.
pub(super) fn ranker(settings: &Settings) -> Result<Ranker> {
    let ranker: Ranker = settings.parsed("ranker")?;
    let is_dense = ranker.parts().contains(&Ranker::Dense);
    let is_chosen = settings.is_chosen("vectorizer");
    match settings.text("vectorizer") {
        // Dense vectors are made to be ranked by, unless a ranker is asked for as well.
        Some("dense") if !is_dense && settings.is_chosen("ranker") => fail(
            format!("ranker {ranker} needs no dense vectors, which --vectorizer asks for"),
            "choose --ranker dense, or fuse it: rrf:dense,jaccard",
        ),
        Some("dense") if !is_dense => Ok(Ranker::Dense),
        Some(other @ ("words" | "words-nltk-3.8" | "one-gram"))
            if ranker == Ranker::Dense && is_chosen =>
        {
            fail(
                format!("ranker {ranker} needs --vectorizer dense, and it is {other}"),
                "leave --vectorizer out: it follows from the ranker",
            )
        }
        _ => Ok(ranker),
    }
}

fn dense(settings: &Settings) -> Result<Option<DenseSource>> {
    // A server whose completions are asked for embeds nothing.
    let completes = settings.text("model").is_some_and(|model| model != "in-context");
    let embeds = !completes || settings.text("embedding-model").is_some();
    let endpoint = settings.text("endpoint").filter(|_| embeds);
    Ok(match (settings.text("vectors"), endpoint) {
        (Some(_), Some(_)) => {
            bail!("--vectors and --endpoint cannot both be where vectors come from")
        }
        (Some(file), None) => Some(DenseSource::File {
            vectors: file.into(),
            texts: settings.text("vector-texts").map(Into::into),
            digests: Default::default(),
        }),
        (None, Some(url)) => {
            let Some(model) = settings.text("embedding-model") else {
                return fail(
                    "--endpoint is set and --embedding-model is not",
                    "name the model that the server embeds texts with",
                );
            };
            Some(DenseSource::Endpoint {
                url: url.to_owned(),
                model: model.to_owned(),
                batch: settings.parsed("embedding-batch")?,
                concurrency: settings.parsed("embedding-concurrency")?,
                timeout: Duration::from_secs(settings.parsed("embedding-timeout")?),
            })
        }
        (None, None) => None,
    })
}

/// The style of prompts.
pub(super) fn layout(settings: &Settings) -> Result<PromptLayout> {
    let name = settings.text("prompt-style").unwrap_or_default();
    let (layout, unused) = match name {
        "repocoder" => (PromptLayout::RepoCoder, "fragment-paths"),
        "attach" => (PromptLayout::Attach, "max-prompt-tokens"),
        _ => {
            let right = settings.text("right-context") == Some("yes");
            let style = settings.parsed::<Style>("prompt-style")?;
            return Ok(PromptLayout::Style(style.including(Include { right, cross_file: true })));
        }
    };
    let mut unused = vec!["right-context", "max-left-tokens", "max-right-tokens", unused];
    // With this alignment, the budget decides which functions and classes are shown.
    if settings.text("align") != Some("enclosing") {
        unused.push("max-cross-file-tokens");
    }
    refuse_unused(settings, &unused, &format!("prompt style {name}"), "--prompt-style")?;
    Ok(layout)
}
