//! Prompts: the retrieved fragments as comment blocks, within a token budget, before the task's own prompt.
//!
//! The layout is RepoCoder's: a head, then blocks from the least to the most similar, so that the best block is next to the
//! code. [`style`] has the layouts of other models.

mod block;
mod counts;
mod json;
mod record;
pub mod shown;
pub mod style;

pub use block::Block;
use block::Frame;
pub use counts::{BlockCounts, CountScratch};

use std::sync::{Arc, OnceLock};

use record::{QueryRecord, RepositoryPromptParts};
use repoformer_text::language::syntax::ParseGap;
use repoformer_text::tokenize::P50k;

use crate::repository::fragment::{RepoFragments, path_in_repository};
use crate::retrieve::{
    FragmentText, FragmentTextSettings, Hit, HoleView, Mode, Query, QueryForm, RankedFragments,
};
use crate::task::Task;

/// Number of tokens that the head counts as: its length in `p50k_base`, a constant in the reference program.
const HEAD_TOKENS: usize = 20;

/// Limits of the retrieved part of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepoCoderBudget {
    /// Exclusive maximum of the tokens in the head and the blocks (2000 for Codex, 1000 for CodeGen in the reference program).
    pub tokens: usize,
    /// Maximum number of blocks.
    pub blocks: usize,
}

impl Default for RepoCoderBudget {
    fn default() -> Self {
        Self { tokens: 2000, blocks: 10 }
    }
}

/// A prompt, and the fragments that it shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// Text that the model reads.
    pub text: String,
    /// Length of the text in tokens.
    pub tokens: usize,
    /// Fragments that the prompt shows, best first.
    pub chosen: Vec<Hit>,
    /// Lines that the prompt shows for each fragment.
    pub blocks: Vec<Block>,
}

/// Builder of the prompts of one repository's tasks.
#[derive(Debug)]
pub struct Builder<'a> {
    fragments: &'a RepoFragments,
    texts: FragmentText<'a>,
    tokenizer: &'a P50k,
    counts: Arc<BlockCounts>,
    frame: Frame,
    mode: Mode,
    form: QueryForm,
    budget: RepoCoderBudget,
}

/// Settings for building the prompts of one mode.
#[derive(Debug, Clone, Copy)]
pub struct BuilderSettings {
    /// Mode in which the queries were made.
    pub mode: Mode,
    /// Form of the queries.
    pub form: QueryForm,
    /// How fragments are shown. In RepoCoder's final alignment, mode rg1 shows the lines that follow a retrieved window, and
    /// the other modes show the window itself.
    pub shown: FragmentTextSettings,
    /// Limits of the retrieved part.
    pub budget: RepoCoderBudget,
}

impl<'a> Builder<'a> {
    /// Creates a builder of prompts that show these fragments.
    pub fn new(
        fragments: &'a RepoFragments,
        tokenizer: &'a P50k,
        settings: BuilderSettings,
    ) -> Self {
        let BuilderSettings { mode, form, shown, budget } = settings;
        let fits = move |text: &str| tokenizer.count(text) < budget.tokens;
        Self {
            fragments,
            texts: FragmentText::new(fragments, shown, fits),
            tokenizer,
            counts: Arc::new(BlockCounts::new(fragments, tokenizer)),
            frame: Frame::for_fragments(fragments),
            mode,
            form,
            budget,
        }
    }

    /// Uses the counts of another builder of the same fragments, such as the builder of another mode, so that lines needed by
    /// both are counted once.
    #[must_use]
    pub fn with_counts(self, counts: Arc<BlockCounts>) -> Self {
        Self { counts, ..self }
    }

    /// Returns the counts, for another builder.
    pub fn counts(&self) -> Arc<BlockCounts> {
        Arc::clone(&self.counts)
    }

    /// Returns the files that could not be parsed, so that prompts cannot show their functions and classes whole.
    pub fn gaps(&self) -> Vec<ParseGap> {
        self.texts.gaps()
    }

    /// Builds the prompt of a task from the fragments retrieved for it; without a search, the prompt is the task's own.
    pub fn build(&self, task: &Task, found: Option<&RankedFragments>) -> Prompt {
        self.build_with(task, found, &OnceLock::new(), &mut CountScratch::default())
    }

    /// Builds one of many prompts. `scratch` has buffers that a thread reuses. The other argument caches the token count of a
    /// task's own part of its prompts, which is the same in all modes that retrieve.
    pub fn build_with(
        &self,
        task: &Task,
        found: Option<&RankedFragments>,
        own_tokens: &OnceLock<usize>,
        scratch: &mut CountScratch,
    ) -> Prompt {
        let Some(found) = found else {
            return Prompt {
                text: task.prompt.to_string(),
                tokens: self.tokenizer.count_with(&task.prompt, &mut scratch.cache),
                chosen: Vec::new(),
                blocks: Vec::new(),
            };
        };
        let chosen = self.choose(task, &found.hits, scratch);
        let own = || counts::head_and_prompt(&self.frame, self.tokenizer, &task.prompt, scratch);
        Prompt {
            text: self.text(task, &chosen),
            tokens: chosen.tokens + own_tokens.get_or_init(own),
            chosen: chosen.hits,
            blocks: chosen.blocks,
        }
    }

    fn text(&self, task: &Task, chosen: &RetrievedPart) -> String {
        let mut text = self.frame.opening();
        // A token of code has about four bytes.
        text.reserve(4 * chosen.tokens + task.prompt.len());
        for block in chosen.blocks.iter().rev() {
            block.render(&self.frame, self.fragments, &mut text);
        }
        text.push('\n');
        text.push_str(&task.prompt);
        text
    }

    fn hole(&self, task: &Task) -> HoleView<'a> {
        let guard = self.texts.settings().visibility.guard();
        HoleView::for_task(task, self.fragments, guard)
    }

    /// Chooses blocks, best first, while they fit; a block that does not fit is skipped and the next is tried.
    fn choose(&self, task: &Task, hits: &[Hit], scratch: &mut CountScratch) -> RetrievedPart {
        let hole = self.hole(task);
        let mut chosen = RetrievedPart::default();
        for hit in hits {
            if chosen.hits.len() >= self.budget.blocks {
                break;
            }
            let block = Block::new(hit, &self.texts, &hole);
            // Windows overlap, and several may contain the same definition.
            if self.texts.shows_definitions() && chosen.blocks.iter().any(|one| one.shows(&block)) {
                continue;
            }
            let room = (self.budget.tokens).saturating_sub(HEAD_TOKENS + chosen.tokens);
            let (fragments, tokenizer) = (self.fragments, self.tokenizer);
            let fits = self.counts.tokens_below(room, fragments, tokenizer, &block, scratch);
            if let Some(tokens) = fits {
                chosen.tokens += tokens;
                chosen.blocks.push(block);
                chosen.hits.push(*hit);
            }
        }
        chosen
    }

    /// Returns the JSON line of a prompt: the task's record, the query and the shown fragments, in RepoCoder's fields. The
    /// fields `sample`, `row`, `mode` and `prompt_tokens` are ours.
    pub fn line(&self, task: &Task, query: Option<&Query>, prompt: &Prompt) -> Vec<u8> {
        let mut line = Vec::with_capacity(2 * prompt.text.len());
        let record =
            RepositoryPromptParts { fragments: self.fragments, mode: self.mode, form: self.form };
        let retrieved = query.map(|query| QueryRecord {
            query,
            chosen: &prompt.chosen,
            blocks: &prompt.blocks,
            hole: self.hole(task),
        });
        record.write(task, retrieved, &prompt.text, prompt.tokens, &mut line);
        line.push(b'\n');
        line
    }

    /// Returns the fragments that a prompt shows, best first, as [`shown::read_shown_fragments`] reads them from the prompt's
    /// line.
    pub fn shown_fragments(&self, task: &Task, prompt: &Prompt) -> Vec<shown::ShownFragment> {
        let (hole, fragments) = (self.hole(task), self.fragments);
        let shown = |(hit, block): (&Hit, &Block)| {
            let place = hole.first_named_place(hit.fragment);
            let text = if block.has_lines_of(place) {
                fragments.text(hit.fragment as usize)
            } else {
                block.text(fragments)
            };
            let path = path_in_repository(&fragments.files[place.file as usize].path);
            let score = Some(hit.score.value()).filter(|score| score.is_finite());
            let first_line = Some(block.start as usize);
            shown::ShownFragment { path: path.into(), first_line, score, text: text.into() }
        };
        prompt.chosen.iter().zip(&prompt.blocks).map(shown).collect()
    }
}

/// Retrieved part of a prompt, best first.
#[derive(Debug, Default)]
struct RetrievedPart {
    blocks: Vec<Block>,
    hits: Vec<Hit>,
    /// Number of tokens of all blocks.
    tokens: usize,
}

#[cfg(test)]
mod tests;
