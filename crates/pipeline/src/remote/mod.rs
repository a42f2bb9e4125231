//! `complete` by a model on a server: turns the prompts' records into requests, and adds the answers to the records.

mod batch;
mod latency;
mod likelihood;
mod probability;
mod record;
#[cfg(test)]
mod tests;

pub use batch::{BatchOf, BatchRead, BatchSummary, read_batch, write_batch};
pub use latency::decision_latencies;
pub use latency::{Latency, latencies};
pub(super) use latency::{
    find_damage as find_damaged_latencies, keep as keep_latencies, merge as merge_latencies,
};
pub(super) use likelihood::likelihoods;
pub use probability::{TokenQuestion, cached_probabilities, probabilities};
pub use record::PromptText;
use std::path::Path;

use record::{OpenRecord, RecordQueue, RequestableRecords, change_error};
use repoformer_core::completion::Answer;
use repoformer_core::retrieve::Mode;
use repoformer_models::server::{
    Completer, Failures, IsEnough, Journal, JournalEntry, find_unanswered, run,
};
use repoformer_store::artifact::Header;
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::progress::Work;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};

use super::completion::{AskedServer, Completion, EmitLine, Predictions, Server};
use super::engine::Flaw;
use super::experiment::Experiment;

/// Known answers to prompts.
struct KnownAnswers {
    /// Number of prompts that have an answer in the journal, including answers that a batch or another command added.
    answers: u64,
    /// Number of prompts whose answer failed.
    failed: u64,
    /// Number of requests to send, with failed ones if they are to be repeated; `None` without a server.
    requests: Option<usize>,
}

impl KnownAnswers {
    /// True if more predictions are available than the file has (`there` of `prompts`), or fewer, because an earlier version kept
    /// failed answers as predictions.
    fn differs_from(&self, there: u64, prompts: u64) -> bool {
        let is_more = self.answers > there || self.requests.is_some_and(|requests| requests > 0);
        (there < prompts && is_more) || there + self.failed > prompts
    }
}

/// Marks headers of predictions without failed answers, which earlier versions kept.
pub(super) const CHECKED: &str = "checked";

/// Question to a server about each record of some prompts.
trait Question: Sync {
    /// Work that needs the answers, in messages.
    const VERB: &'static str;

    /// Returns the key of the request for a record.
    fn key(&self, record: &OpenRecord, journal: &Journal) -> String;

    /// True if a [key](Self::key) belongs to this record, whichever answers exist.
    fn is_key(&self, key: &str, record: &OpenRecord) -> bool;

    /// Asks the server.
    fn ask(&self, record: OpenRecord) -> Result<Answer>;

    /// Returns the times of a record and its line with the answer.
    fn answer_record(
        &self,
        record: OpenRecord,
        entry: &JournalEntry,
        path: &Path,
    ) -> Result<(Latency, Vec<u8>)>;
}

/// Question about completions.
struct CompletionRequests<'a> {
    server: &'a Server,
    completer: Option<Completer<'a>>,
}

impl Question for CompletionRequests<'_> {
    const VERB: &'static str = "complete";

    fn key(&self, record: &OpenRecord, journal: &Journal) -> String {
        self.server.key(record, Some(journal))
    }

    fn is_key(&self, key: &str, record: &OpenRecord) -> bool {
        record.has_key(key)
    }

    fn ask(&self, record: OpenRecord) -> Result<Answer> {
        let Some(completer) = &self.completer else {
            return Ok(Answer::default());
        };
        let is_enough = record.is_enough();
        let is_enough = is_enough.as_ref().map(|enough| enough as &IsEnough<'_>);
        completer.ask(&record.asking, record.prompt(), is_enough)
    }

    fn answer_record(
        &self,
        record: OpenRecord,
        entry: &JournalEntry,
        _: &Path,
    ) -> Result<(Latency, Vec<u8>)> {
        Ok((record.latency(entry), record.with_answers(entry)))
    }
}

impl Server {
    /// Counts the answers to these prompts.
    fn known_answers(&self, prompts: &PromptText, completion: &Completion) -> Result<KnownAnswers> {
        let journal = self.journal.exists().then(|| Journal::read(&self.journal)).transpose()?;
        let journal = journal.as_ref();
        let key = |record: &OpenRecord| self.key(record, journal);
        let RequestableRecords { keys, .. } =
            self.askable(prompts, completion, &key, &mut Vec::new())?;
        let is_answered = |key: &&String| journal.is_some_and(|journal| journal.has_answer(key));
        let requests = self.asked.as_ref().map(|AskedServer { sending, .. }| {
            find_unanswered(&keys, journal, sending.retry_failed).len()
        });
        let has_failed = |key: &&String| journal.is_some_and(|journal| journal.has_failed(key));
        Ok(KnownAnswers {
            answers: keys.iter().filter(is_answered).count() as u64,
            failed: keys.iter().filter(has_failed).count() as u64,
            requests,
        })
    }

    /// Returns the number of requests to complete a mode's prompts; `None` if it is not known.
    pub(super) fn requests(
        &self,
        experiment: &Experiment,
        mode: Mode,
        prompts: &Header,
        completion: &Completion,
    ) -> Result<Option<usize>> {
        if experiment.is_planned(&experiment.paths().prompts(mode)) {
            return Ok(None);
        }
        let prompts = PromptText::of_header(experiment, mode, prompts.clone());
        Ok(self.known_answers(&prompts, completion)?.requests)
    }

    /// Returns a flaw if a mode's predictions lack answers that the journal has or the server can give, or include failed answers.
    pub(super) fn incomplete(
        &self,
        experiment: &Experiment,
        mode: Mode,
        (prompts, predictions): (&Header, &Header),
        completion: &Completion,
    ) -> Result<Option<Flaw>> {
        let is_sound =
            predictions.records >= prompts.records && predictions.totals.contains_key(CHECKED);
        if is_sound || experiment.is_planned(&experiment.paths().prompts(mode)) {
            return Ok(None);
        }
        let (there, wanted) = (predictions.records, prompts.records);
        let prompts = PromptText::of_header(experiment, mode, prompts.clone());
        let known = self.known_answers(&prompts, completion)?;
        Ok(known.differs_from(there, wanted).then(|| Flaw::Incomplete {
            there: there.min(wanted.saturating_sub(known.failed)),
            wanted,
        }))
    }

    /// Returns an error for each prompt without an answer, with the reason.
    pub(super) fn failures(
        &self,
        prompts: &PromptText,
        completion: &Completion,
    ) -> Result<Vec<Error>> {
        let (mut problems, mut failed) = (Vec::new(), Vec::new());
        let (journal, failures) = (Journal::open(&self.journal)?, Failures::default());
        self.for_each_record(prompts, completion, &mut |record| {
            let record = match record {
                Ok(record) => record,
                Err(problem) => {
                    problems.push(problem);
                    return Ok(());
                }
            };
            let key = self.key(&record, Some(&journal));
            if let Some(reason) = self.entry(&journal, &failures, &key)?.error {
                failed.push(record.failure_error(&prompts.path, reason));
            }
            Ok(())
        })?;
        problems.append(&mut failed);
        Ok(problems)
    }

    /// Completes every prompt.
    ///
    /// # Errors
    /// The same as for [`Self::each_answered`].
    pub(super) fn complete(
        &self,
        prompts: &PromptText,
        completion: &Completion,
        emit: &mut EmitLine<'_>,
    ) -> Result<Predictions> {
        let completer = self.asked.as_ref().map(|asked| Completer::new(&asked.endpoint));
        self.each_answered(
            prompts,
            completion,
            &CompletionRequests { server: self, completer },
            emit,
        )
    }

    /// Asks a question about every prompt. The prompts are read three times: to find the requests to send, to send them, and to
    /// write the answers.
    ///
    /// # Errors
    /// The prompts cannot be read or change meanwhile, the journal cannot be written, the server does not answer, or `emit` returns
    /// an error.
    fn each_answered<Q: Question>(
        &self,
        prompts: &PromptText,
        completion: &Completion,
        question: &Q,
        emit: &mut EmitLine<'_>,
    ) -> Result<Predictions> {
        let path = prompts.path.as_path();
        let mut predictions = Predictions::default();
        let journal = Journal::open(&self.journal)?;
        let key = |record: &OpenRecord| question.key(record, &journal);
        let askable = self.askable(prompts, completion, &key, &mut predictions.problems)?;
        let mut ahead = RecordQueue::new(self, prompts, completion, &askable);
        let mut prepare = |place: usize| {
            let record = ahead.record(place)?;
            let is_same = question.is_key(&askable.keys[place], &record);
            is_same.then_some(record).ok_or_else(|| change_error(path))
        };
        let ask = |record| question.ask(record);
        let (journal, failures) =
            self.ask_all(Q::VERB, path, journal, &askable.keys, &mut prepare, &ask)?;
        let doubtful = askable.keys.iter().filter(|key| journal.is_doubtful(key)).count();
        if doubtful > 0 {
            predictions.warnings.push(message![
                format!("{}: {doubtful} answers that an earlier version kept are empty, and ", self.journal.display()),
                "do not say why they ended, so whether the server failed is not known; name another ",
                UserChoice::Journal,
                " to ask for them again"
            ]);
        }
        let mut keys = askable.keys.iter();
        self.for_each_record(prompts, completion, &mut |record| {
            // Records that cannot be requested were reported above.
            let Ok(record) = record else { return Ok(()) };
            let key = keys.next().filter(|key| question.is_key(key, &record));
            let entry = self.entry(&journal, &failures, key.ok_or_else(|| change_error(path))?)?;
            let answered = match &entry.error {
                Some(reason) => Err(record.failure_error(path, reason)),
                None => question.answer_record(record, &entry, path),
            };
            match answered {
                Err(problem) => keep(&mut predictions.problems, path, problem),
                Ok((latency, line)) => {
                    predictions.latencies.push(latency);
                    emit(&line)?;
                    predictions.records += 1;
                }
            }
            Ok(())
        })?;
        match keys.next() {
            None => Ok(predictions),
            Some(_) => Err(change_error(path)),
        }
    }

    /// Sends all requests that have no answer yet; returns the journal with the answers, and the failures.
    fn ask_all<R>(
        &self,
        verb: &str,
        prompts: &Path,
        mut journal: Journal,
        keys: &[String],
        prepare: &mut (dyn FnMut(usize) -> Result<R> + Send),
        ask: &(dyn Fn(R) -> Result<Answer> + Sync),
    ) -> Result<(Journal, Failures)> {
        let Some(AskedServer { endpoint, sending }) = &self.asked else {
            return Ok((journal, Failures::default()));
        };
        let open = find_unanswered(keys, Some(&journal), sending.retry_failed);
        let label = format!("{verb} {}", prompts.file_name().unwrap_or_default().display());
        let work = Work::new(label, "prompts", keys.len());
        work.advance_kept(keys.len() - open.len());
        if open.is_empty() {
            return Ok((journal, Failures::default()));
        }
        endpoint.greet()?;
        let connections = sending.connections;
        let failures = run(keys, open, connections, &mut journal, &work, prepare, ask)?;
        Ok((journal, failures))
    }

    /// Returns the key of the request for a record.
    fn key(&self, record: &OpenRecord, journal: Option<&Journal>) -> String {
        record.key(journal, self.asked.as_ref().map(|asked| asked.sending))
    }

    /// Returns the records that can be requested.
    fn askable(
        &self,
        prompts: &PromptText,
        completion: &Completion,
        key: &dyn Fn(&OpenRecord) -> String,
        problems: &mut Vec<Error>,
    ) -> Result<RequestableRecords> {
        let mut askable = RequestableRecords::default();
        self.for_each_record(prompts, completion, &mut |record| {
            match record {
                Ok(record) => {
                    askable.lines.push(record.line);
                    askable.keys.push(key(&record));
                }
                Err(problem) => keep(problems, &prompts.path, problem),
            }
            Ok(())
        })?;
        Ok(askable)
    }

    /// Returns the journal's entry for a request; the reason of a failure ends with what to do.
    fn entry(&self, journal: &Journal, failures: &Failures, key: &str) -> Result<JournalEntry> {
        let failed = |reason: Message| JournalEntry::from_failure(key, reason);
        if let Some(reason) = failures.get(key) {
            return Ok(failed(message![reason, "; the same command asks again"]));
        }
        let way_out = match self.asked {
            Some(_) => message!["a ", UserChoice::RetryOfFailedRequests, " asks again"],
            None => message!["a ", UserChoice::NewBatch, " holds what has no answer"],
        };
        let mut entry = match journal.get(key)? {
            Some(entry) => entry,
            None => failed("it has no answer yet".into()),
        };
        entry.error = entry.error.map(|reason| message![reason, "; ", way_out]);
        Ok(entry)
    }
}
