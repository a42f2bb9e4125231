//! Prompts: the retrieved windows as comment blocks, within a budget of tokens, before the task's own prompt.
//!
//! The layout is RepoCoder's: a head, then blocks from the least to the most similar, so that the best stands
//! next to the code.

mod block;

pub use block::{Block, BlockCounts};

use serde_json::{Value, json};

use crate::query::{Mode, QueryWindow};
use crate::records;
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

    /// The JSON record of a prompt: the task's, what was searched with and what was chosen, in RepoCoder's fields;
    /// ours are `mode`, `row`, `sample` and `prompt_tokens`.
    pub fn record(&self, task: &Task, query: Option<&QueryWindow>, prompt: &Prompt) -> Value {
        let mut metadata = task.metadata.clone();
        let shape = self.windows.shape;
        if let Some(query) = query {
            let hole = Hole::of(task, self.windows, self.guard);
            let sizes = (shape.window_size, shape.slice_size);
            let window = records::query(
                query,
                self.mode,
                sizes,
                &self.windows.repository,
                Some(task),
                true,
            );
            let contexts: Vec<Value> = prompt
                .chosen
                .iter()
                .map(|hit| records::to_value(&records::hit(self.windows, hit, Some(&hole), true)))
                .collect();
            metadata.insert("query_window".into(), records::to_value(&window));
            let any = !contexts.is_empty();
            metadata.insert("top_k_context".into(), contexts.into());
            metadata.insert("window_size".into(), shape.window_size.into());
            metadata.insert(
                "slice_size".into(),
                if any {
                    shape.slice_size.into()
                } else {
                    Value::Null
                },
            );
            metadata.insert("sample".into(), query.sample.into());
        }
        metadata.insert("row".into(), task.row.into());
        metadata.insert("mode".into(), self.mode.name().into());
        metadata.insert("prompt_tokens".into(), prompt.tokens.into());
        json!({ "prompt": prompt.text, "metadata": metadata })
    }
}

#[cfg(test)]
mod tests;
