//! Decides whether to retrieve for a cursor.

use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::OnceLock;

use repoformer_core::label::Signals;
use repoformer_core::policy::Policy;
use repoformer_core::policy::features::Request;
use repoformer_core::policy::model::PolicyModel;
use repoformer_core::prompt::shown::ShownFragment;
use repoformer_core::prompt::style::DecisionFrame;
use repoformer_core::task::{Task, cross_file};
use repoformer_models::endpoint::Endpoint;
use repoformer_models::server::{NextToken, Prober};
use repoformer_pipeline::{PromptLayout, PromptSettings, TaskPrompt, TokenQuestion};
use repoformer_store::error::Error;
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use crate::error::{Result, ServeError};

/// Policy with its threshold and its model.
#[derive(Debug)]
pub struct DecisionPolicy {
    /// Policy, one of [`DECIDING`].
    pub policy: Policy,
    /// Score above which the policy retrieves.
    pub threshold: f64,
    /// Name of the policy with its threshold: `learned-scored@0.3`.
    pub name: String,
    /// Trained model of a learned policy.
    pub model: Option<PolicyModel>,
}

/// Policies that can decide before the completion.
pub const DECIDING: [Policy; 9] = [
    Policy::Never,
    Policy::Always,
    Policy::Random,
    Policy::TrialRetrieval,
    Policy::Learned,
    Policy::LearnedScored,
    Policy::SelfScored,
    Policy::SelfDecision,
    Policy::SelfGreedy,
];

/// Decides for each request whether its prompt shows the retrieved fragments.
#[derive(Debug)]
pub struct Decider {
    policy: DecisionPolicy,
    /// Question for the model, if the policy asks it.
    question: Option<TokenQuestion>,
    /// Token of the question, looked up in the model's vocabulary with the first request.
    token: OnceLock<NextToken>,
}

/// Returns the question that a policy asks the model, in the layout of its prompts.
fn question(policy: Policy, prompts: &PromptSettings) -> Result<TokenQuestion> {
    let PromptSettings { layout, tokenizer, .. } = prompts;
    let PromptLayout::Style(style) = layout else {
        return Err(ServeError::NoPlaceToDecide { policy, style: layout.name().to_owned() });
    };
    let frame = DecisionFrame::new(style, None, None)?;
    let text = frame.cc().to_owned();
    let after = Some(frame.eof().to_owned());
    let own = Some(tokenizer).filter(|tokenizer| tokenizer.is_model());
    let id = own.and_then(|tokenizer| tokenizer.special(&text)).map(u64::from);
    Ok(TokenQuestion { text, id, after })
}

/// Decision about a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Decision {
    pub(crate) retrieves: bool,
    /// Score that the policy gives the request, if any.
    pub(crate) score: Option<f64>,
}

impl Decider {
    /// Creates a decider for a policy and a prompt layout.
    ///
    /// # Errors
    /// The policy asks the model, but the layout has no place for a decision.
    pub fn new(policy: DecisionPolicy, prompts: &PromptSettings) -> Result<Self> {
        let question = policy.policy.asks_model().then(|| question(policy.policy, prompts));
        Ok(Self { question: question.transpose()?, policy, token: OnceLock::new() })
    }

    /// Returns the name of the policy, with its threshold.
    pub(crate) fn name(&self) -> &str {
        &self.policy.name
    }

    /// Returns the score above which the policy retrieves.
    pub(crate) fn threshold(&self) -> f64 {
        self.policy.threshold
    }

    /// Returns whether the policy asks the model for the probability of a token after the prompt without retrieval.
    pub(crate) fn asks_model(&self) -> bool {
        self.question.is_some()
    }

    /// Requests the model's signals for a request.
    ///
    /// # Errors
    /// The model's server does not answer, or does not return the probability.
    pub(crate) fn ask(
        &self,
        endpoint: &Endpoint,
        model: &str,
        plain: &TaskPrompt,
    ) -> Result<Signals, Error> {
        let question = self.question.as_ref().ok_or(Error::Parameter {
            name: "policy",
            reason: "the prompt style has no place for the model's decision".into(),
        })?;
        let token = match self.token.get() {
            Some(token) => token,
            None => {
                let text = &question.text;
                let found = match (NextToken::find(endpoint, model, text), question.id) {
                    // The token's number in the model's tokenizer.json.
                    (Err(Error::UnknownToken { .. }), Some(id)) => {
                        NextToken { text: text.clone(), id }
                    }
                    (Err(Error::UnknownToken { url, reason }), None) => {
                        let hint = message![
                            "choose the model's tokenizer.json as ",
                            UserChoice::Tokenizer
                        ];
                        return Err(Error::Endpoint { url, reason, hint, status: None });
                    }
                    (found, _) => found?,
                };
                self.token.get_or_init(|| found)
            }
        };
        let answer = Prober::new(endpoint, model, token).ask(&question.prompt(&plain.text))?;
        let tokens = answer.samples.first().map_or(&[][..], |sample| &sample.tokens);
        if self.policy.policy == Policy::SelfGreedy && tokens.len() < 2 {
            return Err(Error::Endpoint {
                url: endpoint.url("/v1/completions"),
                reason: "the server does not return the likeliest token".into(),
                hint: "choose policy self@T, which needs only the probability".into(),
                status: None,
            });
        }
        Ok(Signals {
            cc_probability: tokens.first().map(|asked| libm::exp(asked.logprob)),
            cc_likeliest: tokens.get(1).map(|likeliest| token.is(likeliest)),
            ..Signals::default()
        })
    }

    /// Returns the decision, or `None` if it depends on the retrieved fragments. `right` is the right context shown in prompts.
    ///
    /// # Errors
    /// A signal is missing.
    pub(crate) fn before_retrieval(
        &self,
        task: &Task,
        right: &str,
        signals: Signals,
    ) -> Result<Option<Decision>, Error> {
        let score = match (self.policy.policy, &self.policy.model) {
            (Policy::Never, _) => return Ok(Some(Decision { retrieves: false, score: None })),
            (Policy::Random, _) => Some(chance()),
            (Policy::SelfDecision, _) => signals.cc_probability,
            (Policy::SelfGreedy, _) => signals.cc_likeliest.map(f64::from),
            (Policy::Learned, Some(model)) => model.decide(request(task, right, &[]), signals),
            _ => return Ok(None),
        };
        self.by_score(score).map(Some)
    }

    /// Returns the decision about a prompt with retrieved fragments.
    ///
    /// # Errors
    /// A signal is missing.
    pub(crate) fn after_retrieval(
        &self,
        task: &Task,
        prompt: &TaskPrompt,
        signals: Signals,
    ) -> Result<Decision, Error> {
        let fragments: Vec<_> = prompt.fragments.iter().map(ShownFragment::to_cross_file).collect();
        match (self.policy.policy, &self.policy.model) {
            (Policy::TrialRetrieval, _) => {
                let best = fragments.first().and_then(|best| best.score);
                self.by_score(Some(best.unwrap_or(f64::NEG_INFINITY)))
            }
            (Policy::LearnedScored | Policy::SelfScored, Some(model)) => {
                self.by_score(model.decide(request(task, &prompt.right, &fragments), signals))
            }
            _ => Ok(Decision { retrieves: true, score: None }),
        }
    }

    fn by_score(&self, score: Option<f64>) -> Result<Decision, Error> {
        let score = score.filter(|score| !score.is_nan()).ok_or_else(|| {
            Error::parameter(
                "policy",
                format!("{}: the model's server returned no probability", self.policy.policy),
            )
        })?;
        Ok(Decision { retrieves: score > self.policy.threshold, score: Some(score) })
    }
}

/// Returns a random number between 0 and 1.
fn chance() -> f64 {
    let hasher = std::hash::RandomState::new().build_hasher();
    (hasher.finish() >> 11) as f64 / (1u64 << 53) as f64
}

fn request<'a>(
    task: &'a Task,
    right: &'a str,
    fragments: &'a [cross_file::CrossFileFragment],
) -> Request<'a> {
    Request { left: &task.prompt, right, path: &task.path, language: task.language(), fragments }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use repoformer_core::prompt::shown::ShownFragment;

    use super::*;
    use crate::tests::prompts;

    fn decider(policy: Policy, threshold: f64) -> Decider {
        let model = policy.as_learned().map(|_| PolicyModel::load_bundled().unwrap());
        let name = format!("{policy}@{threshold}");
        Decider::new(DecisionPolicy { policy, threshold, name, model }, &prompts()).unwrap()
    }

    fn task() -> Task {
        Task::new("r/0".into(), "r/a.py", 0, 1, "", "total = price * count\n")
    }

    fn prompt(score: Option<f64>) -> TaskPrompt {
        let fragment = |score| ShownFragment {
            path: Arc::from("b.py"),
            first_line: None,
            score: Some(score),
            text: Arc::from("total = price * count\n"),
        };
        let fragments = score.map(fragment).into_iter().collect();
        let text = "total = price * count\n".into();
        TaskPrompt { text, stop: Vec::new(), fragments, right: String::new() }
    }

    #[test]
    fn policies_decide_before_or_after_retrieval() {
        let before = |policy, threshold, signals| {
            decider(policy, threshold).before_retrieval(&task(), "", signals)
        };
        let signals = |cc_probability, cc_likeliest| Signals {
            cc_probability,
            cc_likeliest,
            ..Signals::default()
        };
        let none = Signals::default();
        let decision = |retrieves, score| Some(Decision { retrieves, score });
        assert_eq!(before(Policy::Never, 0.0, none).unwrap(), decision(false, None));
        for later in [Policy::Always, Policy::TrialRetrieval, Policy::LearnedScored] {
            assert_eq!(before(later, 0.5, none).unwrap(), None);
        }
        assert!(before(Policy::Random, -1.0, none).unwrap().unwrap().retrieves);
        assert!(!before(Policy::Random, 1.0, none).unwrap().unwrap().retrieves);
        let asked = |probability| before(Policy::SelfDecision, 0.3, signals(probability, None));
        assert_eq!(asked(Some(0.4)).unwrap(), decision(true, Some(0.4)));
        assert_eq!(asked(Some(0.3)).unwrap(), decision(false, Some(0.3)));
        let greedy = |likeliest| before(Policy::SelfGreedy, 0.5, signals(Some(0.4), likeliest));
        assert_eq!(greedy(Some(true)).unwrap(), decision(true, Some(1.0)));
        assert_eq!(greedy(Some(false)).unwrap(), decision(false, Some(0.0)));
        let error = asked(None).unwrap_err().to_string();
        assert!(error.contains("the model's server returned no probability"), "{error}");
    }

    #[test]
    fn what_was_found_decides_where_the_policy_looks_at_it() {
        let after = |policy, threshold, score| {
            let decider = decider(policy, threshold);
            decider.after_retrieval(&task(), &prompt(score), Signals::default()).unwrap()
        };
        let always = Decision { retrieves: true, score: None };
        assert_eq!(after(Policy::Always, 0.0, None), always);
        assert!(after(Policy::TrialRetrieval, 0.5, Some(0.6)).retrieves);
        assert!(!after(Policy::TrialRetrieval, 0.5, Some(0.5)).retrieves);
        assert_eq!(after(Policy::TrialRetrieval, 0.5, None).score, Some(f64::NEG_INFINITY));
        let score = after(Policy::LearnedScored, 0.0, Some(0.9)).score.unwrap();
        assert!(score > 0.0 && score < 1.0, "{score}");
        assert!(after(Policy::LearnedScored, score - 1e-9, Some(0.9)).retrieves);
        assert!(!after(Policy::LearnedScored, score, Some(0.9)).retrieves);
    }

    #[test]
    fn a_policy_that_asks_the_model_needs_a_place_in_the_prompt() {
        let asks = |layout| {
            let prompts = PromptSettings { layout, ..prompts() };
            let name = Policy::SelfDecision.to_string();
            let policy =
                DecisionPolicy { policy: Policy::SelfDecision, threshold: 0.2, name, model: None };
            Decider::new(policy, &prompts)
        };
        let asked = asks(prompts().layout).unwrap();
        assert!(asked.asks_model() && !decider(Policy::Learned, 0.2).asks_model());
        let question = asked.question.unwrap();
        assert_eq!((&*question.text, question.after.as_deref()), ("<cc>", Some("<eof>")));
        let error = asks(PromptLayout::RepoCoder).unwrap_err();
        assert!(matches!(error, ServeError::NoPlaceToDecide { .. }), "{error}");
    }
}
