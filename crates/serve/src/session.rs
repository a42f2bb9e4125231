//! Stable prompts: a model's server reuses the beginning that a prompt shares with the last one, and reads only the rest.

use std::sync::{Mutex, PoisonError};

use repoformer_core::prompt::shown::ShownFragment;
use repoformer_pipeline::TaskPrompt;
use repoformer_store::error::Error;
use repoformer_text::lines::line_ends;

use crate::live::{CursorScratch, LiveRepository, LiveRetrieval};

/// Share of the left context's tokens that a new left context fills, so that its beginning can stay while lines are added.
const FILLED: f64 = 0.75;

/// The last request: where its left context began, its decision, and its fragments.
#[derive(Debug)]
struct LastRequest {
    path: String,
    first_line: usize,
    retrieval: Option<ShownRetrieval>,
    retrieves: bool,
}

/// Retrieval, with the fragments that the prompt showed.
#[derive(Debug)]
struct ShownRetrieval {
    retrieval: LiveRetrieval,
    fragments: Vec<ShownFragment>,
}

/// Editing session, which keeps the prompts of one file stable.
#[derive(Debug)]
pub struct Session {
    /// Gain in mean similarity above which the prompt shows new fragments; with 0, it always shows the best ones.
    stability: f64,
    kept: Mutex<Option<LastRequest>>,
}

impl Session {
    /// Creates a session. With a `stability` of 0, every prompt is the same as the stages' prompt.
    pub fn new(stability: f64) -> Self {
        Self { stability, kept: Mutex::default() }
    }

    fn is_on(&self) -> bool {
        self.stability > 0.0
    }

    /// Returns the first line of the left context: the last request's first line, as long as the text after it fits.
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

    /// Returns the new prompt, or a prompt with the last prompt's fragments if these are about as similar and still current.
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
        let similarity = |fragments: &[ShownFragment]| {
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

    /// Returns the last request's decision if the score is so close to the threshold that a change is not worth reading another prompt.
    pub(crate) fn decide(&self, path: &str, score: Option<f64>, threshold: f64) -> Option<bool> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.as_ref().filter(|kept| self.is_on() && kept.path == path)?;
        ((score? - threshold).abs() <= self.stability / 2.0).then_some(kept.retrieves)
    }

    /// Remembers the first line, decision and fragments of a request.
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
        let retrieval = shown.map(|(retrieval, prompt)| ShownRetrieval {
            retrieval,
            fragments: prompt.fragments.clone(),
        });
        *kept = Some(LastRequest {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Shop, at_end, lines};

    #[test]
    fn a_score_near_the_threshold_changes_no_decision() {
        let session = Session::new(0.2);
        assert_eq!(session.decide("r/a.py", Some(0.5), 0.4), None, "nothing was decided yet");
        session.keep("r/a.py", 0, true, None);
        for (path, score, decided) in [
            ("r/a.py", Some(0.31), Some(true)),
            ("r/a.py", Some(0.49), Some(true)),
            ("r/a.py", Some(0.6), None),
            ("r/a.py", None, None),
            ("r/b.py", Some(0.4), None),
        ] {
            assert_eq!(session.decide(path, score, 0.4), decided, "{path} {score:?}");
        }
        let off = Session::new(0.0);
        off.keep("r/a.py", 0, true, None);
        assert_eq!(off.decide("r/a.py", Some(0.4), 0.4), None);
    }

    #[test]
    fn the_left_context_keeps_its_first_line_while_it_fits() {
        let shop = Shop::new(&[("a.py", "x = 1\n")]);
        let text = lines("row", 0..200);
        let at = |count: usize| lines("row", 0..count).len();
        let session = Session::new(0.1);
        let first = session.first_line(&shop.live, "shop/b.py", (&text, at(100)), 3);
        let room = shop.live.left_room();
        assert_eq!(
            shop.live.first_line_within(&text, at(100), (0.75 * room as f64) as usize),
            first
        );
        assert!(first > 3, "{first}");
        session.keep("shop/b.py", first, false, None);
        let next = |count| session.first_line(&shop.live, "shop/b.py", (&text, at(count)), 3);
        assert_eq!((next(101), next(102)), (first, first));
        assert!(next(200) > first, "it no longer fits");
        assert!(next(2) <= 3, "the cursor is before it");
        assert_eq!(Session::new(0.0).first_line(&shop.live, "b.py", (&text, at(100)), 3), 3);
    }

    #[test]
    fn fragments_stay_until_others_are_much_better_or_they_are_gone() {
        let (first, other) = (lines("alpha", 0..8), lines("beta", 10..18));
        let shop = Shop::new(&[("first.py", &first), ("other.py", &other)]);
        let mut scratch = CursorScratch::default();
        let mut shown = |session: &Session, text: &str| {
            let found = shop.live.retrieve(&at_end("shop/new.py", text), &mut scratch).unwrap();
            let new = shop.live.prompt(&found, &mut scratch).unwrap();
            let (prompt, kept) =
                session.prompt(&shop.live, (found, new.clone()), text, &mut scratch).unwrap();
            session.keep("shop/new.py", 0, true, Some((kept, &prompt)));
            (prompt.fragments, new.fragments)
        };
        let (near_first, near_other) = (lines("alpha", 0..4), lines("beta", 10..14));
        for (stability, stays) in [(0.0, false), (0.01, false), (1.0, true)] {
            let session = Session::new(stability);
            let (before, best) = shown(&session, &near_first);
            assert_eq!(before, best);
            let (after, best) = shown(&session, &near_other);
            assert_eq!(after == before, stays, "{stability}");
            assert_eq!(after == best, !stays, "{stability}");
        }
        let session = Session::new(1.0);
        let (before, _) = shown(&session, &near_first);
        assert_eq!(&*before[0].path, "first.py");
        shop.write("first.py", "gone = True\n");
        shop.live.refresh_below(&["first.py".into()]).unwrap();
        let (after, best) = shown(&session, &near_first);
        assert_eq!(after, best);
        assert_ne!(after, before);
    }
}
