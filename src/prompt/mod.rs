//! Prompts: the retrieved windows as comment blocks, within a budget of tokens, before the task's own prompt.
//!
//! The layout is RepoCoder's: a head, then blocks from the least to the most similar, so that the best stands
//! next to the code.

mod block;

pub use block::{Block, BlockCounts};

use serde::{Serialize, Serializer};

use crate::jsonl::Object;
use crate::query::{Mode, QueryWindow};
use crate::records::{self, HitRecord, QueryRecord};
use crate::retrieve::{Found, Hit, Hole, HoleGuard};
use crate::task::Task;
use crate::tokenize::P50k;
use crate::window::RepoWindows;

/// Tokens that the head counts as: its length in `p50k_base`, a constant in the reference.
const HEAD_TOKENS: usize = 20;

/// What bounds the retrieved part of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The head and the blocks stay below this many tokens (2000 for Codex, 1000 for CodeGen in the reference).
    pub tokens: usize,
    /// At most this many blocks.
    pub blocks: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            tokens: 2000,
            blocks: 10,
        }
    }
}

/// A prompt and what it was made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// What the model reads.
    pub text: String,
    /// Its length in tokens.
    pub tokens: usize,
    /// The windows in it, best first.
    pub chosen: Vec<Hit>,
}

/// Builds the prompts of one repository's tasks.
#[derive(Debug)]
pub struct Builder<'a> {
    windows: &'a RepoWindows,
    tokenizer: &'a P50k,
    counts: BlockCounts<'a>,
    mode: Mode,
    guard: HoleGuard,
    budget: Budget,
}

impl<'a> Builder<'a> {
    /// For one mode: `rg1` prints the lines that follow a retrieved window, the other modes the window itself.
    pub fn new(
        windows: &'a RepoWindows,
        tokenizer: &'a P50k,
        mode: Mode,
        guard: HoleGuard,
        budget: Budget,
    ) -> Self {
        Self {
            windows,
            tokenizer,
            counts: BlockCounts::new(windows, tokenizer),
            mode,
            guard,
            budget,
        }
    }

    /// The prompt of a task with what was found for it; the task's own prompt where nothing was searched.
    pub fn build(&self, task: &Task, found: Option<&Found>) -> Prompt {
        let Some(found) = found else {
            return Prompt {
                text: task.prompt.clone(),
                tokens: self.tokenizer.count(&task.prompt),
                chosen: Vec::new(),
            };
        };
        let (blocks, chosen) = self.choose(task, &found.hits);
        let mut text = block::head();
        let block_tokens: usize = blocks.iter().map(|block| self.counts.tokens(block)).sum();
        for block in blocks.iter().rev() {
            block.render(self.windows, &mut text);
        }
        text.push('\n');
        text.push_str(&task.prompt);
        let tokens = block_tokens + self.counts.head_and_prompt(&task.prompt);
        Prompt {
            text,
            tokens,
            chosen,
        }
    }

    /// Blocks best first while they fit; one that does not is passed over and the next is tried.
    fn choose(&self, task: &Task, hits: &[Hit]) -> (Vec<Block>, Vec<Hit>) {
        let hole = Hole::of(task, self.windows, self.guard);
        let (mut blocks, mut chosen, mut used) = (Vec::new(), Vec::new(), HEAD_TOKENS);
        for hit in hits {
            if chosen.len() >= self.budget.blocks {
                break;
            }
            let block = match self.mode {
                Mode::LeftContext => Block::extended(self.windows, hit.window, &hole),
                _ => Block::plain(self.windows, hit.window, &hole),
            };
            let tokens = self.counts.tokens(&block);
            if used + tokens < self.budget.tokens {
                used += tokens;
                blocks.push(block);
                chosen.push(*hit);
            }
        }
        (blocks, chosen)
    }

    /// The JSON line of a prompt: the task's record, what was searched with and what was chosen, in RepoCoder's
    /// fields; ours are `sample`, `row`, `mode` and `prompt_tokens`.
    pub fn line(&self, task: &Task, query: Option<&QueryWindow>, prompt: &Prompt) -> Vec<u8> {
        let shape = self.windows.shape;
        let hole = Hole::of(task, self.windows, self.guard);
        let retrieved = query.map(|query| Retrieved {
            query_window: records::query(query, self.mode, shape, &self.windows.repository, true),
            top_k_context: prompt
                .chosen
                .iter()
                .map(|hit| records::hit(self.windows, hit, &hole, true))
                .collect(),
            window_size: shape.window_size,
            slice_size: (!prompt.chosen.is_empty()).then_some(shape.slice_size),
            sample: query.sample,
        });
        let metadata = Metadata {
            task: TaskFields(&task.metadata),
            retrieved,
            row: task.row,
            mode: self.mode.name(),
            prompt_tokens: prompt.tokens,
        };
        let mut line = Vec::with_capacity(2 * prompt.text.len());
        // Writing to memory fails for no record of ours: all keys are texts.
        if serde_json::to_writer(
            &mut line,
            &Record {
                prompt: &prompt.text,
                metadata,
                extra: &task.extra,
            },
        )
        .is_ok()
        {
            line.push(b'\n');
        }
        line
    }
}

#[derive(Serialize)]
struct Record<'a> {
    prompt: &'a str,
    metadata: Metadata<'a>,
    #[serde(flatten)]
    extra: &'a Object,
}

/// The task's metadata, then what is new.
#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(flatten)]
    task: TaskFields<'a>,
    #[serde(flatten)]
    retrieved: Option<Retrieved<'a>>,
    row: usize,
    mode: &'static str,
    prompt_tokens: usize,
}

#[derive(Serialize)]
struct Retrieved<'a> {
    query_window: QueryRecord<'a>,
    top_k_context: Vec<HitRecord<'a>>,
    window_size: usize,
    slice_size: Option<usize>,
    sample: u32,
}

/// A task's metadata without the fields that a prompt writes itself: the task may have been a prompt once.
struct TaskFields<'a>(&'a Object);

const WRITTEN_ANEW: [&str; 8] = [
    "query_window",
    "top_k_context",
    "window_size",
    "slice_size",
    "sample",
    "row",
    "mode",
    "prompt_tokens",
];

impl Serialize for TaskFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.0
                .iter()
                .filter(|(name, _)| !WRITTEN_ANEW.contains(&name.as_str())),
        )
    }
}

#[cfg(test)]
mod tests;
