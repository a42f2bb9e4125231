//! From a request to a prompt: finds the file, retrieves, and decides whether the prompt shows the retrieved fragments.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use repoformer_core::completion::{CompletionRequest, Ending};
use repoformer_core::label::Signals;
use repoformer_core::task::Task;
use repoformer_models::endpoint::Endpoint;
use repoformer_models::server::{StreamEnd, StreamRequest};
use repoformer_pipeline::{Messages, TaskPrompt};
use repoformer_store::error::Error;

use crate::decide::{Decider, Decision};
use crate::decisions::{DecisionRecord, Decisions, PromptTimes, TokenCounts};
use crate::learn::{LearnRequest, Learner, PromptContext};
use crate::live::{Cursor, CursorPlace, CursorScratch, LiveRepository};
use crate::metrics::{IndexSize, Metrics};
use crate::request::{EditorRequest, Protocol};
use crate::session::Session;
use crate::upstream::{self, UpstreamRequest, ms_since};

/// Number of recently edited files that are remembered.
const RECENT: usize = 8;
/// Model that completes code.
#[derive(Debug)]
pub struct Model {
    /// Name of the model; empty if the server has only one.
    pub name: String,
    /// Largest number of tokens in a completion.
    pub max_tokens: u64,
    /// Number of tokens in a completion if the editor requests no number.
    pub usual_tokens: u64,
    /// Sampling temperature; 0 always takes the most probable token.
    pub temperature: f64,
    /// Probability mass from which tokens are sampled (top-p); `None` uses the server's default.
    pub top_p: Option<f64>,
    /// Texts that end a completion.
    pub stop: Vec<String>,
    /// Treatment of white space at the end of a prompt.
    pub ending: Ending,
}

/// Completion service for the files of one repository; its state is shared by all requests.
pub struct Service {
    pub(crate) live: Arc<LiveRepository>,
    decider: Decider,
    pub(crate) model: Model,
    pub(crate) endpoint: Endpoint,
    pub(crate) metrics: Metrics,
    decisions: Decisions,
    recent: Mutex<Vec<String>>,
    session: Session,
    learner: Option<Learner>,
    numbers: AtomicU64,
    pub(crate) messages: Arc<dyn Messages>,
}

/// Prompt for a request, with the request to the model's server and the decision behind it.
#[derive(Debug)]
pub(crate) struct PreparedPrompt {
    pub(crate) number: u64,
    pub(crate) prompt: TaskPrompt,
    pub(crate) request: StreamRequest,
    pub(crate) decision: Decision,
    /// Record for the web page and `/debug/last`.
    pub(crate) record: DecisionRecord,
    /// Milliseconds spent on decision and retrieval.
    pub(crate) ms: f64,
    /// Request to learn from, if a label is to be computed for it.
    pub(crate) asked: Option<Box<LearnRequest>>,
}

impl Service {
    /// Creates a service from a repository, its policy, and the model that completes.
    pub fn new(
        live: Arc<LiveRepository>,
        decider: Decider,
        model: Model,
        endpoint: Endpoint,
        session: Session,
        learner: Option<Learner>,
        messages: Arc<dyn Messages>,
    ) -> Self {
        Self {
            live,
            decider,
            model,
            endpoint,
            metrics: Metrics::default(),
            decisions: Decisions::default(),
            recent: Mutex::default(),
            session,
            learner,
            numbers: AtomicU64::new(1),
            messages,
        }
    }

    /// Prepares the prompt for a request. It never blocks, except for a model that decides, which it asks through `endpoint`; once that is
    /// closed, it stops.
    pub(crate) fn prepare(
        &self,
        wanted: &EditorRequest,
        endpoint: &Endpoint,
    ) -> Result<PreparedPrompt, Error> {
        thread_local! {
            static SCRATCH: RefCell<CursorScratch> = RefCell::default();
        }
        SCRATCH.with_borrow_mut(|scratch| self.prepare_with(wanted, endpoint, scratch))
    }

    fn prepare_with(
        &self,
        wanted: &EditorRequest,
        endpoint: &Endpoint,
        scratch: &mut CursorScratch,
    ) -> Result<PreparedPrompt, Error> {
        let begin = Instant::now();
        let recent = lock(&self.recent).clone();
        let located = self.live.locate(&wanted.place(), &recent);
        endpoint.check_open()?;
        let CursorPlace { path, text, offset, first_line, held, is_known } = &located;
        let locating = ms_since(begin);
        self.remember(&located);
        let learner = self.learner.as_ref().filter(|_| !wanted.is_supposed);
        if let Some(learner) = learner {
            learner.see(path, (text, *offset), held);
        }
        let begin = Instant::now();
        let session = &self.session;
        let first_line = session.first_line(&self.live, path, (text, *offset), *first_line);
        let cursor = Cursor { path, text, offset: *offset, first_line };
        let task = self.live.task(&cursor)?;
        let right = task.right_context.clone().unwrap_or_default();
        let beginning = ms_since(begin);
        let begin = Instant::now();
        let mut plain = None;
        let signals = if self.decider.asks_model() {
            let prompt = plain.insert(self.live.plain_prompt(&task, scratch)?);
            self.decider.ask(endpoint, self.name_of_model(wanted), prompt)?
        } else {
            Signals::default()
        };
        let mut decision = self.decider.before_retrieval(&task, &right, signals)?;
        let stay = |mut decision: Decision| {
            if let Some(same) = session.decide(path, decision.score, self.decider.threshold()) {
                decision.retrieves = same;
            }
            decision
        };
        decision = decision.map(stay);
        let mut deciding = ms_since(begin);
        let mut steps = [0.0; 2];
        let (mut laying, mut prompt) = (0.0, None);
        // While a line is typed, only its first completion is learned from.
        let is_learned = learner.is_some_and(|learner| *is_known && !learner.has(path));
        // Labels always contain the current retrieval, from which policies decide, even if the prompt shows an earlier one.
        let mut now = None;
        if decision.is_none_or(|decision| decision.retrieves) {
            endpoint.check_open()?;
            let found = self.live.retrieve(&cursor, scratch)?;
            endpoint.check_open()?;
            steps = found.took.map(|took| took.as_secs_f64() * 1e3);
            let begin = Instant::now();
            let new = self.live.prompt(&found, scratch)?;
            laying = ms_since(begin);
            let begin = Instant::now();
            // The current retrieval decides, even if the prompt shows an earlier one.
            let after = match decision {
                Some(decision) => decision,
                None => stay(self.decider.after_retrieval(&found.task, &new, signals)?),
            };
            deciding += ms_since(begin);
            decision = Some(after);
            if after.retrieves {
                now = is_learned.then(|| PromptContext::new(&new));
                let begin = Instant::now();
                let (shown, kept) = session.prompt(&self.live, (found, new), text, scratch)?;
                laying += ms_since(begin);
                session.keep(path, first_line, true, Some((kept, &shown)));
                prompt = Some(shown);
            }
        }
        if prompt.is_none() {
            session.keep(path, first_line, false, None);
        }
        let begin = Instant::now();
        let prompt = match prompt.or(plain) {
            Some(prompt) => prompt,
            None => self.live.plain_prompt(&task, scratch)?,
        };
        laying += ms_since(begin);
        let decision = decision.unwrap_or(Decision { retrieves: false, score: None });
        let ms = steps[0] + steps[1] + deciding;
        let mut record = DecisionRecord {
            file: is_known.then(|| path.clone()),
            line: Some(task.line_no + 1),
            score: decision.score.filter(|score| score.is_finite()),
            retrieved: Some(decision.retrieves),
            ..self.record(wanted)
        };
        record.show(&prompt.fragments);
        record.ms.prompt = Some(PromptTimes {
            locate: locating + beginning,
            index: steps[0],
            search: steps[1],
            decide: deciding,
            prompt: laying,
        });
        let asked = is_learned
            .then(|| self.learn_request(wanted, (&cursor, task), (now, signals), decision, scratch))
            .and_then(|asked| {
                let tell = |error| {
                    self.messages.detail(&format!("{path}: a line was not labelled: {error}"))
                };
                asked.map_err(tell).ok()
            })
            .map(Box::new);
        let (number, request) = (record.number, self.request(wanted, &prompt));
        Ok(PreparedPrompt { number, prompt, request, decision, record, ms, asked })
    }

    /// Returns the request whose completion is shown, together with the request for the completion that is not shown.
    fn learn_request(
        &self,
        wanted: &EditorRequest,
        (cursor, task): (&Cursor<'_>, Task),
        (now, signals): (Option<PromptContext>, Signals),
        decision: Decision,
        scratch: &mut CursorScratch,
    ) -> Result<LearnRequest, Error> {
        let retrieved = decision.retrieves;
        let unused = if retrieved {
            self.live.plain_prompt(&task, scratch)?
        } else {
            self.live.prompt(&self.live.retrieve(cursor, scratch)?, scratch)?
        };
        let other = self.request(wanted, &unused);
        let found = now.unwrap_or_else(|| PromptContext::new(&unused));
        let (text, offset) = (cursor.text.to_owned(), cursor.offset);
        Ok(LearnRequest { task, text, offset, found, signals, retrieved, other })
    }

    /// Keeps a completion that the editor received, to learn from how the user changes it.
    pub(crate) fn keep_shown(
        &self,
        asked: Option<Box<LearnRequest>>,
        completion: String,
        model: String,
    ) {
        if let (Some(learner), Some(asked)) = (&self.learner, asked) {
            learner.keep(*asked, completion, model);
        }
    }

    /// Returns the name of the model that completes, as its server knows it; empty if neither the settings nor the request name one.
    pub(crate) fn name_of_model<'w>(&'w self, wanted: &'w EditorRequest) -> &'w str {
        if self.model.name.is_empty() { &wanted.model } else { &self.model.name }
    }

    fn remember(&self, located: &CursorPlace) {
        if located.is_known {
            let mut recent = lock(&self.recent);
            recent.retain(|path| *path != located.path);
            recent.insert(0, located.path.clone());
            recent.truncate(RECENT);
        }
    }

    /// Requests a completion from the model's server, and holds `permit` until the request has ended.
    pub(crate) fn complete(
        &self,
        request: StreamRequest,
        permit: impl Send + 'static,
    ) -> UpstreamRequest {
        upstream::complete(&self.endpoint, request, permit)
    }

    /// Returns the request for a prompt's completion.
    fn request(&self, wanted: &EditorRequest, prompt: &TaskPrompt) -> StreamRequest {
        let Model { max_tokens, usual_tokens, temperature, top_p, stop, .. } = &self.model;
        let tokens = wanted.max_tokens.unwrap_or(*usual_tokens).min(*max_tokens).max(1);
        let mut settings = CompletionRequest {
            temperature: *temperature,
            top_p: *top_p,
            ..CompletionRequest::new(self.name_of_model(wanted), tokens as usize)
        };
        // The editor's stop texts come first, because servers accept only a few.
        let stops = wanted.stop.iter().chain(stop).chain(&prompt.stop);
        settings.add_stops(stops.cloned().collect());
        // A stop text within the trimmed white space must not end the completion at its beginning.
        let is_kept = settings.holds_stop(self.model.ending.split(&prompt.text).1);
        settings.ending = if is_kept { Ending::AsIs } else { self.model.ending };
        StreamRequest::new(&settings, &prompt.text, &wanted.passed)
    }

    /// Counts a request.
    pub(crate) fn count(&self, protocol: Protocol) {
        self.metrics.requests[protocol as usize].fetch_add(1, Relaxed);
    }

    /// Counts a prompt and the time spent on it.
    pub(crate) fn count_prepared(&self, prepared: &PreparedPrompt) {
        self.metrics.preparing.add_ms(prepared.ms);
        self.metrics.retrieved.fetch_add(u64::from(prepared.decision.retrieves), Relaxed);
    }

    /// Returns the record of a request, with its number.
    fn record(&self, wanted: &EditorRequest) -> DecisionRecord {
        let number = self.numbers.fetch_add(1, Relaxed);
        DecisionRecord {
            policy: self.decider.name().to_owned(),
            threshold: self.decider.threshold(),
            ..DecisionRecord::new(number, wanted.protocol.name())
        }
    }

    /// Returns the record of a request without a decision, because it failed or was cancelled before.
    pub(crate) fn record_unmade(&self, wanted: &EditorRequest) -> DecisionRecord {
        DecisionRecord { file: wanted.file.clone(), ..self.record(wanted) }
    }

    /// Keeps a decision and its outcome for the web page.
    pub(crate) fn keep(
        &self,
        mut record: DecisionRecord,
        outcome: &'static str,
        (first, whole): (Option<f64>, f64),
        end: &StreamEnd,
    ) {
        (record.ms.first_token, record.ms.whole) = (first, whole);
        record.outcome = outcome;
        record.tokens = TokenCounts::new(end);
        for (count, tokens) in [
            (&self.metrics.prompt_tokens, record.tokens.prompt),
            (&self.metrics.cached_tokens, record.tokens.cached),
            (&self.metrics.written_tokens, record.tokens.written),
        ] {
            count.fetch_add(tokens.unwrap_or_default(), Relaxed);
        }
        self.decisions.keep(record);
    }

    /// Returns at most `most` decisions with numbers above `after`, newest first. Reads the files of the fragments that were shown, to look
    /// up their lines.
    pub(crate) fn decisions(&self, after: u64, most: usize) -> Vec<DecisionRecord> {
        self.decisions.after(after, most, &self.live)
    }

    pub(crate) fn index_size(&self) -> IndexSize {
        let snapshot = self.live.snapshot();
        let (layers, bytes) = snapshot.size();
        IndexSize { fragments: snapshot.fragments(), layers, bytes }
    }
}

impl PreparedPrompt {
    /// Returns the decision as a header: `retrieved; policy=learned@0.2; score=0.31; fragments=4; ms=0.52`.
    pub(crate) fn header(&self, policy: &Service) -> String {
        let what = if self.decision.retrieves { "retrieved" } else { "not retrieved" };
        let score = self.decision.score.filter(|score| score.is_finite());
        let score = score.map_or(String::new(), |score| format!("; score={score:.3}"));
        format!(
            "{what}; policy={}{score}; fragments={}; ms={:.2}",
            policy.decider.name(),
            self.prompt.fragments.len(),
            self.ms
        )
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use repoformer_core::policy::Policy;
    use serde_json::json;

    use super::*;
    use crate::decisions::KEPT;
    use crate::tests::{Shop, lines, service};

    fn wanted(text: &str) -> EditorRequest {
        EditorRequest::completion(
            &json!({"prompt": text, "filepath": "new.py", "stop": ["\n\n"], "top_k": 3}),
        )
        .unwrap()
    }

    #[test]
    fn the_policy_decides_what_a_prompt_shows_and_the_page_says_so() {
        let shop = Shop::new(&[("store.py", &lines("row", 0..12))]);
        for (policy, retrieves) in [(Policy::Always, true), (Policy::Never, false)] {
            let service = service(&shop, policy);
            let wanted = wanted(&lines("row", 0..3));
            let prepared = service.prepare(&wanted, &service.endpoint).unwrap();
            let shown = &prepared.prompt.fragments;
            assert_eq!(!shown.is_empty(), retrieves);
            assert_eq!(prepared.prompt.text.contains("# row_3 = load_table(3)"), retrieves);
            let what = if retrieves { "retrieved" } else { "not retrieved" };
            let start = format!("{what}; policy={policy}; fragments={}; ms=", shown.len());
            let header = prepared.header(&service);
            assert!(header.starts_with(&start), "{header}");
            service.keep(prepared.record, "done", (None, 2.0), &StreamEnd::default());
            let kept = serde_json::to_value(service.decisions(0, 9).remove(0)).unwrap();
            assert_eq!((&kept["file"], &kept["line"]), (&json!("shop/new.py"), &json!(4)));
            assert_eq!((&kept["retrieved"], &kept["outcome"]), (&json!(retrieves), &json!("done")));
            let fragments = kept["fragments"].as_array().unwrap();
            assert_eq!(fragments.len(), shown.len());
            assert!(fragments.iter().all(|one| one["first_line"].is_u64()), "{fragments:?}");
            assert!(service.decisions(1, 9).is_empty(), "no later one");
        }
    }

    #[test]
    fn only_the_last_decisions_are_kept() {
        let shop = Shop::new(&[("store.py", "x = 1\n")]);
        let service = service(&shop, Policy::Never);
        for _ in 0..KEPT + 3 {
            let record = service.record_unmade(&wanted("x"));
            service.keep(record, "failed", (None, 1.0), &StreamEnd::default());
        }
        let kept = service.decisions(0, usize::MAX);
        assert_eq!(kept.len(), KEPT);
        assert_eq!(kept[0].number, KEPT as u64 + 3);
        assert_eq!(service.decisions(KEPT as u64 + 1, usize::MAX).len(), 2);
    }
}
