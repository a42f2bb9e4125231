//! Conversion of settings to the way in which files are cut, fragments searched and prompts laid out.

use std::time::Duration;

use anyhow::Result;
use repoformer_core::prompt::style::{Budget, ContextSelection};
use repoformer_core::repository::fragment::{ChunkShape, Cut, WindowShape};
use repoformer_core::retrieve::rank::{Ranker, Vocabulary};
use repoformer_core::retrieve::{Align, QueryForm, RankLimits, SearchSettings, Visibility};
use repoformer_pipeline::{
    DenseSource, IN_CONTEXT, PromptLayout, PromptSettings, RetrievalSettings,
};
use repoformer_text::message;

use crate::fail;
use crate::settings::{
    DECLARED, FragmentPaths, FragmentUnit, Setting, SettingValue, Settings, StyleName,
    TokenizerName, Vectorizer,
};

/// Returns true if files are cut into chunks.
pub fn cuts_chunks(settings: &Settings) -> Result<bool> {
    let unit = *settings.unit.get();
    let is_chunks = unit == FragmentUnit::Chunks;
    if let Some(setting) = settings.chosen_of_other_unit() {
        let (other, way) = if is_chunks {
            let way = message!["leave it out, or cut windows with ", &DECLARED.unit, " windows"];
            ("windows", way)
        } else {
            let profile = &DECLARED.profile;
            let way =
                message!["add ", &DECLARED.unit, " chunks, or a ", profile, " that cuts them"];
            ("chunks", way)
        };
        let reason = format!(" applies only to {other}, but files are cut into {unit}");
        return fail(message![setting, reason], way);
    }
    Ok(is_chunks)
}

/// Rejects settings that were chosen for this run but are not used because of another choice.
fn refuse_unused(entries: &[&dyn SettingValue], by: &str, of: &Setting) -> Result<()> {
    entries.iter().find(|entry| entry.is_chosen()).map_or(Ok(()), |entry| {
        let way = message!["leave it out, or choose another ", of];
        fail(message![entry.setting(), format!(" is not used by {by}")], way)
    })
}

/// Returns every requested way to cut files: one, or each window size with each slice size.
pub fn cuts(settings: &Settings) -> Result<Vec<Cut>> {
    let mut cuts = Vec::new();
    if cuts_chunks(settings)? {
        cuts.push(Cut::Chunks(ChunkShape {
            size: *settings.chunk_size,
            stride: *settings.chunk_stride,
        }));
    } else {
        let center = *settings.center;
        for &window_size in settings.window_size.iter() {
            for &slice_size in settings.slice_size.iter() {
                cuts.push(Cut::Windows(WindowShape { window_size, slice_size, center }));
            }
        }
    }
    cuts.iter().try_for_each(|cut| cut.check())?;
    Ok(cuts)
}

/// Returns the settings of retrieval.
pub fn retrieval(settings: &Settings) -> Result<RetrievalSettings> {
    let is_chunks = cuts_chunks(settings)?;
    let form: QueryForm = *settings.query;
    if is_chunks && form == QueryForm::Window {
        return fail(
            message![&DECLARED.query, " window needs windows, but files are cut into chunks"],
            message![
                "choose another ", &DECLARED.query, ", or cut windows with ", &DECLARED.unit,
                " windows"
            ],
        );
    }
    if form == QueryForm::Window {
        refuse_unused(&[&settings.query_lines], "query window", &DECLARED.query)?;
    }
    let limit = |limit: &Option<usize>| limit.unwrap_or(usize::MAX);
    let visibility = if is_chunks {
        Visibility::OtherFiles {
            limits: RankLimits {
                files: limit(&settings.max_files),
                chunks: limit(&settings.max_chunks),
            },
            ties: *settings.ties,
        }
    } else {
        Visibility::Guarded(*settings.hole_guard)
    };
    Ok(RetrievalSettings {
        form,
        query_lines: *settings.query_lines,
        search: SearchSettings {
            ranker: ranker(settings)?,
            vocabulary: vocabulary(settings)?,
            visibility,
            top_k: *settings.top_k,
        },
        dense: dense(settings)?,
    })
}

/// Returns the settings of prompts.
pub fn prompts(settings: &Settings) -> Result<PromptSettings> {
    Ok(PromptSettings {
        align: *settings.align,
        most: *settings.max_blocks,
        full_paths: *settings.fragment_paths == FragmentPaths::Full,
        layout: layout(settings)?,
        budget: Budget {
            total: *settings.max_prompt_tokens,
            left: *settings.max_left_tokens,
            right: *settings.max_right_tokens,
            cross_file: *settings.max_cross_file_tokens,
        },
        tokenizer: settings.tokenizer.open(TokenizerName::open)?,
    })
}

/// Returns the terms that lexical rankers compare.
fn vocabulary(settings: &Settings) -> Result<Vocabulary> {
    let is_words = *settings.tokenizer.get() == TokenizerName::Words;
    Ok(match *settings.vectorizer {
        Vectorizer::OneGram if !is_words => {
            Vocabulary::Tokens(settings.tokenizer.open(TokenizerName::open)?)
        }
        Vectorizer::WordsNltk38 => Vocabulary::WordsNltk38,
        Vectorizer::OneGram | Vectorizer::Words | Vectorizer::Dense => Vocabulary::Words,
    })
}

/// Returns the ranker; dense if dense vectors are requested but no ranker.
pub fn ranker(settings: &Settings) -> Result<Ranker> {
    let ranker = settings.ranker.first().cloned().unwrap_or(Ranker::Jaccard);
    let is_dense = ranker.parts().contains(&Ranker::Dense);
    let is_chosen = settings.vectorizer.is_chosen();
    match *settings.vectorizer {
        // Dense vectors imply the dense ranker, unless another ranker is requested.
        Vectorizer::Dense if !is_dense && settings.ranker.is_chosen() => fail(
            message![
                format!("ranker {ranker} does not use the dense vectors that "),
                &DECLARED.vectorizer,
                " computes"
            ],
            message!["choose ", &DECLARED.ranker, " dense, or fuse it: rrf:dense,jaccard"],
        ),
        Vectorizer::Dense if !is_dense => Ok(Ranker::Dense),
        other if other != Vectorizer::Dense && ranker == Ranker::Dense && is_chosen => fail(
            message![
                format!("ranker {ranker} needs "),
                &DECLARED.vectorizer,
                format!(" dense, but it is {other}")
            ],
            message!["leave ", &DECLARED.vectorizer, " out: it follows from the ranker"],
        ),
        _ => Ok(ranker),
    }
}

fn dense(settings: &Settings) -> Result<Option<DenseSource>> {
    // A server that is asked for completions computes no vectors.
    let completes = settings.model.as_str() != IN_CONTEXT;
    let embeds = !completes || settings.embedding_model.is_some();
    let endpoint = settings.endpoint.as_deref().filter(|_| embeds);
    Ok(match (settings.vectors.as_deref(), endpoint) {
        (Some(_), Some(_)) => {
            return Err(message![
                &DECLARED.vectors,
                " and ",
                &DECLARED.endpoint,
                " cannot both provide vectors"
            ]
            .into());
        }
        (Some(file), None) => Some(DenseSource::File {
            vectors: file.into(),
            texts: settings.vector_texts.as_deref().map(Into::into),
            digests: Default::default(),
        }),
        (None, Some(url)) => {
            let Some(model) = settings.embedding_model.as_deref() else {
                return fail(
                    message![
                        &DECLARED.endpoint,
                        " is set and ",
                        &DECLARED.embedding_model,
                        " is not"
                    ],
                    "name the server's embedding model",
                );
            };
            Some(DenseSource::Endpoint {
                url: url.to_owned(),
                model: model.to_owned(),
                batch: *settings.embedding_batch,
                concurrency: *settings.embedding_concurrency,
                timeout: Duration::from_secs(*settings.embedding_timeout),
            })
        }
        (None, None) => None,
    })
}

/// Returns the style of prompts.
pub fn layout(settings: &Settings) -> Result<PromptLayout> {
    let (layout, unused): (_, &dyn SettingValue) = match settings.prompt_style.get() {
        StyleName::RepoCoder => (PromptLayout::RepoCoder, &settings.fragment_paths),
        StyleName::Attach => (PromptLayout::Attach, &settings.max_prompt_tokens),
        StyleName::Style(_) => {
            let right = settings.right_context.first() == Some(&true);
            let style = settings.prompt_style.open(StyleName::open)?;
            return Ok(PromptLayout::Style(
                style.including(ContextSelection { right, cross_file: true }),
            ));
        }
    };
    let mut unused: Vec<&dyn SettingValue> = vec![
        &settings.right_context,
        &settings.max_left_tokens,
        &settings.max_right_tokens,
        unused,
    ];
    // With this alignment, the budget determines which functions and classes are shown.
    if *settings.align.get() != Align::Enclosing {
        unused.push(&settings.max_cross_file_tokens);
    }
    let name = settings.prompt_style.get();
    refuse_unused(&unused, &format!("prompt style {name}"), &DECLARED.prompt_style)?;
    Ok(layout)
}
