//! Stable prompts: a model's server keeps the beginning that a prompt shares with the last one, and reads the rest.

use std::sync::{Mutex, PoisonError};

use repoformer_core::prompt::shown::Fragment;
use repoformer_pipeline::TaskPrompt;
use repoformer_store::error::Error;
use repoformer_text::lines::line_ends;

use crate::live::{CursorScratch, LiveRepository, LiveRetrieval};

/// Share of the left context's tokens that a new beginning leaves room for, so that it can stay while lines are added.
const FILLED: f64 = 0.75;

/// The last request's beginning of the left context, and its fragments.
#[derive(Debug)]
struct Kept {
    path: String,
    first_line: usize,
    retrieval: Option<Shown>,
    retrieves: bool,
}

/// A retrieval, and the fragments of it that the prompt showed.
#[derive(Debug)]
struct Shown {
    retrieval: LiveRetrieval,
    fragments: Vec<Fragment>,
}

/// The file that is being edited.
#[derive(Debug)]
pub struct Session {
    /// Gain in mean similarity that is worth reading new fragments; 0: the best fragments are always shown.
    stability: f64,
    kept: Mutex<Option<Kept>>,
}

impl Session {
    /// A session; with a `stability` of 0 each prompt is that of the stages.
    pub fn new(stability: f64) -> Self {
        Self { stability, kept: Mutex::default() }
    }

    fn is_on(&self) -> bool {
        self.stability > 0.0
    }

    /// First line of the left context: the last request's as long as what follows fits.
    pub(crate) fn first_line(
        &self,
        live: &LiveRepository,
        path: &str,
        (text, offset): (&str, usize),
        wanted: usize,
    ) -> usize {
        if !self.is_on() {
            return wanted;
        }
        let room = live.left_room();
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.as_ref().filter(|kept| kept.path == path).map(|kept| kept.first_line);
        let least = live.first_line_within(text, offset, room);
        match kept {
            Some(line) if line >= least && line <= line_ends(&text[..offset]) => line,
            _ => live.first_line_within(text, offset, (FILLED * room as f64) as usize).max(wanted),
        }
    }

    /// The prompt with what was found, or with what the last prompt showed where that is as good, and still there.
    pub(crate) fn prompt(
        &self,
        live: &LiveRepository,
        (found, new): (LiveRetrieval, TaskPrompt),
        text: &str,
        scratch: &mut CursorScratch,
    ) -> Result<(TaskPrompt, LiveRetrieval), Error> {
        if !self.is_on() {
            return Ok((new, found));
        }
        let shown = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = kept.as_mut().filter(|kept| kept.path == found.task.path);
            kept.and_then(|kept| kept.retrieval.take())
        };
        let Some(shown) = shown else { return Ok((new, found)) };
        let similarity = |fragments: &[Fragment]| {
            mean(live.similarities(&found.query.text, fragments).into_iter())
        };
        let gain = similarity(&new.fragments) - similarity(&shown.fragments);
        if gain > self.stability
            || !shown.retrieval.is_visible_from(&found.task)
            || !shown.retrieval.is_current(&live.snapshot(), text)
        {
            return Ok((new, found));
        }
        let old = live.prompt_with(&shown.retrieval, &found.task, scratch)?;
        let mut retrieval = shown.retrieval;
        (retrieval.task, retrieval.took) = (found.task, found.took);
        Ok((old, retrieval))
    }

    /// Whether to retrieve, where the score is so near the threshold that a change is not worth reading another prompt.
    pub(crate) fn decide(&self, path: &str, score: Option<f64>, threshold: f64) -> Option<bool> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.as_ref().filter(|kept| self.is_on() && kept.path == path)?;
        ((score? - threshold).abs() <= self.stability / 2.0).then_some(kept.retrieves)
    }

    /// Keeps a request's.
    pub(crate) fn keep(
        &self,
        path: &str,
        first_line: usize,
        retrieves: bool,
        shown: Option<(LiveRetrieval, &TaskPrompt)>,
    ) {
        if !self.is_on() {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept.take().filter(|kept| kept.path == path).and_then(|kept| kept.retrieval);
        let retrieval = shown
            .map(|(retrieval, prompt)| Shown { retrieval, fragments: prompt.fragments.clone() });
        *kept = Some(Kept {
            path: path.to_owned(),
            first_line,
            retrieval: retrieval.or(before),
            retrieves,
        });
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += value;
        count += 1;
    }
    sum / f64::from(count.max(1))
}
