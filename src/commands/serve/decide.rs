//! Whether to retrieve for a cursor.

use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::OnceLock;

use anyhow::Result;
use repoformer_core::label::Signals;
use repoformer_core::policy::features::Request;
use repoformer_core::policy::model::{LearnedPolicy, PolicyModel};
use repoformer_core::policy::{Policy, Threshold};
use repoformer_core::prompt::shown::Fragment;
use repoformer_core::prompt::style::DecisionFrame;
use repoformer_core::task::Task;
use repoformer_core::task::cross_file;
use repoformer_models::endpoint::Endpoint;
use repoformer_models::server::{NextToken, Prober};
use repoformer_pipeline::{Experiment, PromptLayout, PromptSettings, TaskPrompt, TokenQuestion};
use repoformer_store::error::Error;

use crate::commands::chosen::Chosen;
use crate::commands::policy::scored::{other_fragments, read_model};
use crate::output::fail;
use crate::settings::{PolicyName, Settings};

/// A policy with a threshold, and its model.
#[derive(Debug)]
pub(super) struct Decider {
    policy: Policy,
    pub(super) threshold: f64,
    /// Name with the threshold: `learned-scored@0.3`.
    pub(super) name: String,
    model: Option<PolicyModel>,
    /// Set by the layout of prompts, and found in the model's vocabulary with the first request.
    question: OnceLock<TokenQuestion>,
    token: OnceLock<NextToken>,
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Decision {
    pub(super) retrieves: bool,
    /// Score of the request by the policy, where it has one.
    pub(super) score: Option<f64>,
}

impl Decider {
    pub(super) fn new(settings: &Settings) -> Result<Self> {
        // Those of a profile are for comparisons.
        let always = PolicyName { policy: Policy::Always, threshold: None };
        let chosen = match settings.policy.own().map_or(&[][..], Vec::as_slice) {
            [] => Chosen::new(&always, false)?,
            [one] => Chosen::new(one, false)?,
            _ => return fail("serve decides by one policy", "give --policy once"),
        };
        let Chosen { policy, threshold, name } = chosen;
        let Threshold::Above(threshold) = threshold else {
            return fail(
                format!("policy '{name}': a share of requests that are still to come is not known"),
                format!("give a number, as in {policy}@0.3; `policy sweep` helps to choose one"),
            );
        };
        let known = [
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
        if !known.contains(&policy) {
            let names = known.map(Policy::name).join(", ");
            return fail(
                format!("policy '{policy}' does not decide before a completion"),
                format!("choose one of {names}"),
            );
        }
        let files = settings.policy_model.own().map_or(&[][..], Vec::as_slice);
        let model = match (policy.learned(), files) {
            (None, []) => None,
            (None, _) => {
                return fail(
                    format!("--policy-model is not used by policy {policy}"),
                    "leave it out, or choose policy learned, learned-scored or self-scored",
                );
            }
            (Some(kind), [file]) => {
                let model = read_model(file)?;
                if model.policy != kind {
                    return fail(
                        format!(
                            "{}: this is a policy {}, not {kind}",
                            file.display(),
                            model.policy
                        ),
                        format!("choose --policy {}, or another file", model.policy),
                    );
                }
                Some(model)
            }
            (Some(LearnedPolicy::LearnedScored), []) => Some(PolicyModel::bundled()?),
            (Some(_), [_, _, ..]) => {
                return fail("serve decides by one trained policy", "give --policy-model once");
            }
            (Some(kind), []) => {
                return fail(
                    format!("policy {kind} needs its trained model"),
                    "name it with --policy-model FILE; `policy train` makes one",
                );
            }
        };
        let (question, token) = (OnceLock::new(), OnceLock::new());
        Ok(Self { policy, threshold, name, model, question, token })
    }

    /// Checks that a policy which looks at fragments learned from such as are found here.
    pub(super) fn check_fragments(&self, experiment: &Experiment) -> Result<()> {
        let here = experiment.fragments_name();
        match self.model.as_ref().and_then(|model| other_fragments(model, &here)) {
            None => Ok(()),
            Some(difference) => fail(
                difference,
                "choose its fragments with --unit and --ranker, or name a policy that was trained on these with --policy-model",
            ),
        }
    }

    /// Checks that a layout of prompts has a place where the model decides, where the policy asks it.
    pub(super) fn check_layout(&self, prompts: &PromptSettings) -> Result<()> {
        if !self.policy.asks_model() {
            return Ok(());
        }
        let PromptSettings { layout, tokenizer, .. } = prompts;
        let PromptLayout::Style(style) = layout else {
            return fail(
                format!(
                    "policy {}: prompt style {} has no place where the model decides",
                    self.policy,
                    layout.name()
                ),
                "choose the model's style with --prompt-style, such as repoformer",
            );
        };
        let frame = DecisionFrame::of(style, None, None)?;
        let text = frame.cc().to_owned();
        let after = Some(frame.eof().to_owned());
        let own = Some(tokenizer).filter(|tokenizer| tokenizer.is_model());
        let id = own.and_then(|tokenizer| tokenizer.special(&text)).map(u64::from);
        self.question.get_or_init(|| TokenQuestion { text, id, after });
        Ok(())
    }

    /// Whether the model is asked, for the probability of a token after the prompt without retrieval.
    pub(super) fn asks_model(&self) -> bool {
        self.policy.asks_model()
    }

    /// Signals of the model about a request.
    ///
    /// # Errors
    /// Its server does not answer, or tells no such probability.
    pub(super) fn ask(
        &self,
        endpoint: &Endpoint,
        model: &str,
        plain: &TaskPrompt,
    ) -> Result<Signals, Error> {
        let question = self.question.get().ok_or(Error::Parameter {
            name: "policy",
            reason: "the layout of prompts has no place where the model decides".into(),
        })?;
        let token = match self.token.get() {
            Some(token) => token,
            None => {
                let text = &question.text;
                let found = match (NextToken::find(endpoint, model, text), question.id) {
                    // The number that the model's tokenizer.json has.
                    (Err(Error::UnknownToken { .. }), Some(id)) => {
                        NextToken { text: text.clone(), id }
                    }
                    (Err(Error::UnknownToken { url, reason }), None) => {
                        let hint = "name the model's tokenizer.json with --tokenizer".into();
                        return Err(Error::Endpoint { url, reason, hint, status: None });
                    }
                    (found, _) => found?,
                };
                self.token.get_or_init(|| found)
            }
        };
        let answer = Prober::new(endpoint, model, token).ask(&question.prompt(&plain.text))?;
        let tokens = answer.samples.first().map_or(&[][..], |sample| &sample.tokens);
        if self.policy == Policy::SelfGreedy && tokens.len() < 2 {
            return Err(Error::Endpoint {
                url: endpoint.url("/v1/completions"),
                reason: "the server does not tell which token is the likeliest".into(),
                hint: "choose policy self@T, which needs the probability alone".into(),
                status: None,
            });
        }
        Ok(Signals {
            cc_probability: tokens.first().map(|asked| libm::exp(asked.logprob)),
            cc_likeliest: tokens.get(1).map(|likeliest| token.is(likeliest)),
            ..Signals::default()
        })
    }

    /// The decision, where it does not depend on what would be retrieved. `right` is the right context that prompts show.
    ///
    /// # Errors
    /// A signal is missing.
    pub(super) fn before_retrieval(
        &self,
        task: &Task,
        right: &str,
        signals: Signals,
    ) -> Result<Option<Decision>, Error> {
        let score = match (self.policy, &self.model) {
            (Policy::Never, _) => return Ok(Some(Decision { retrieves: false, score: None })),
            (Policy::Random, _) => Some(chance()),
            (Policy::SelfDecision, _) => signals.cc_probability,
            (Policy::SelfGreedy, _) => signals.cc_likeliest.map(f64::from),
            (Policy::Learned, Some(model)) => model.decide(request(task, right, &[]), signals),
            _ => return Ok(None),
        };
        self.by_score(score).map(Some)
    }

    /// The decision about a prompt with what was retrieved.
    ///
    /// # Errors
    /// A signal is missing.
    pub(super) fn after_retrieval(
        &self,
        task: &Task,
        prompt: &TaskPrompt,
        signals: Signals,
    ) -> Result<Decision, Error> {
        let fragments: Vec<_> = prompt.fragments.iter().map(Fragment::to_cross_file).collect();
        match (self.policy, &self.model) {
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
        let score = score.filter(|score| !score.is_nan()).ok_or_else(|| Error::Parameter {
            name: "policy",
            reason: format!("{}: the model's server told no probability", self.policy),
        })?;
        Ok(Decision { retrieves: score > self.threshold, score: Some(score) })
    }
}

/// A number between 0 and 1, another each time.
fn chance() -> f64 {
    let hasher = std::hash::RandomState::new().build_hasher();
    (hasher.finish() >> 11) as f64 / (1u64 << 53) as f64
}

fn request<'a>(
    task: &'a Task,
    right: &'a str,
    fragments: &'a [cross_file::Fragment],
) -> Request<'a> {
    Request { left: &task.prompt, right, path: &task.path, language: task.language(), fragments }
}
