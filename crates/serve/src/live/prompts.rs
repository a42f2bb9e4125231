//! Prompts for a cursor, as the stage `prompt` builds them.

use foldhash::HashSet;
use repoformer_core::prompt::shown::ShownFragment;
use repoformer_core::prompt::style::Budget;
use repoformer_core::repository::corpus::SourceFile;
use repoformer_core::repository::fragment::{FragmentFile, RepoFragments};
use repoformer_core::retrieve::live::LiveHits;
use repoformer_core::retrieve::rank::Words;
use repoformer_core::retrieve::vector::TokenSet;
use repoformer_core::retrieve::{Mode, Query, RankedFragments};
use repoformer_core::task::Task;
use repoformer_pipeline::{Layout, TaskPrompt, task_prompt};
use repoformer_store::error::Result;
use repoformer_text::lines::line_ends;

use super::{CursorScratch, LiveRepository, LiveRetrieval};

impl LiveRepository {
    /// Returns the prompt for a cursor without retrieval.
    ///
    /// # Errors
    /// The prompt style cannot lay it out.
    pub(crate) fn plain_prompt(
        &self,
        task: &Task,
        scratch: &mut CursorScratch,
    ) -> Result<TaskPrompt> {
        let text = SourceFile { path: task.path.clone(), text: String::new(), same_as: 0 };
        let own = self.only(FragmentFile::new(text, self.experiment.layout.cut));
        self.prompt_of(task, Mode::Without, (&own, None), scratch)
    }

    /// Returns a repository with one file and no fragments.
    pub(super) fn only(&self, file: FragmentFile) -> RepoFragments {
        let Layout { language, cut, .. } = self.experiment.layout;
        let none = std::iter::empty();
        RepoFragments::of_places(self.name.clone(), vec![file], (language, cut), none)
    }

    /// Returns the prompt for a cursor with the fragments retrieved for it.
    ///
    /// # Errors
    /// The prompt style cannot lay it out.
    pub(crate) fn prompt(
        &self,
        retrieval: &LiveRetrieval,
        scratch: &mut CursorScratch,
    ) -> Result<TaskPrompt> {
        self.prompt_with(retrieval, &retrieval.task, scratch)
    }

    /// Returns the prompt for a cursor with the fragments retrieved for an earlier one.
    ///
    /// # Errors
    /// The prompt style cannot lay it out.
    pub(crate) fn prompt_with(
        &self,
        retrieval: &LiveRetrieval,
        task: &Task,
        scratch: &mut CursorScratch,
    ) -> Result<TaskPrompt> {
        let LiveRetrieval { query, found, .. } = retrieval;
        let LiveHits { excerpt, found } = &**found;
        self.prompt_of(task, Mode::LeftContext, (excerpt, Some((found, query))), scratch)
    }

    /// Returns the similarity of each fragment to the text of a query, by terms of the vocabulary.
    pub(crate) fn similarities(&self, query: &str, fragments: &[ShownFragment]) -> Vec<f64> {
        let texts = std::iter::once(query).chain(fragments.iter().map(|one| &*one.text));
        let texts: Vec<&str> = texts.collect();
        let vocabulary = &self.experiment.retrieval.search.vocabulary;
        let sets = Words::of_terms(&texts, vocabulary).sets();
        let query: HashSet<u32> = sets.get(0).iter().collect();
        let of = |set: TokenSet<'_>| {
            let overlap = set.iter().filter(|term| query.contains(term)).count();
            overlap as f64 / (query.len() + set.len() - overlap).max(1) as f64
        };
        sets.iter().skip(1).map(of).collect()
    }

    /// Returns the number of tokens that a prompt usually has for the left context: at least half of the total, because the other parts
    /// rarely need all of their budget. If they do, the prompt shows less of the left context.
    pub(crate) fn left_room(&self) -> usize {
        let Budget { total, left, right, cross_file } = self.experiment.prompts.budget;
        let right = right.filter(|_| self.experiment.takes_right_contexts());
        let others = right.unwrap_or(0) + cross_file.unwrap_or(0);
        left.unwrap_or(total).min(total - others.min(total / 2))
    }

    /// Returns the first line from which the text up to a cursor has at most `tokens` tokens.
    pub(crate) fn first_line_within(&self, text: &str, offset: usize, tokens: usize) -> usize {
        let left = &text[..offset];
        let tokenizer = &self.experiment.prompts.tokenizer;
        let (mut line, mut room, mut end) = (line_ends(left), tokens, left.len());
        loop {
            let start = left[..end].rfind('\n').map_or(0, |at| at + 1);
            let count = tokenizer.count(&left[start..end]) + 1;
            if count > room {
                return (line + 1).min(line_ends(left));
            }
            if start == 0 {
                return 0;
            }
            (room, end, line) = (room - count, start - 1, line - 1);
        }
    }

    fn prompt_of(
        &self,
        task: &Task,
        mode: Mode,
        (fragments, found): (&RepoFragments, Option<(&RankedFragments, &Query)>),
        scratch: &mut CursorScratch,
    ) -> Result<TaskPrompt> {
        task_prompt(&self.experiment, mode, task, fragments, found, &mut scratch.prompt)
    }
}
