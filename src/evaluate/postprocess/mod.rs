//! Post-processing: what of a model's answer is compared with the target.
//!
//! A model writes on where the target ends, so every reference program cuts the answer before its formula, each in its own
//! way, and the cut moves scores as much as the formula does. Each way is a [`Step`]; a [`Recipe`] is the steps taken one
//! after the other. [`Postprocess::Own`] takes for each metric what its program takes:
//!
//! | metric | recipe | program |
//! |---|---|---|
//! | `repocoder` | `stripped-lines` | `compute_score.py` |
//! | `repoformer` | `lines`, for function bodies `function-body` | `eval_metric.py`, `process_examples` |
//! | `crosscodeeval` | `statement` | `eval_utils.py`, `postprocess_code_lines` |
//! | `repobench` | `first-line` | `run.py`, `get_first_line_not_comment` |
//! | `chars` | none | |

mod body;
mod chat;
mod cut;
mod prefix;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::evaluate::metrics::Metric;
use crate::evaluate::metrics::lines::stripped_lines;
use crate::task::Task;
use crate::text::language::{Language, Layout, without_comment_signs, without_comments};

pub use body::is_function_body;

/// What stands around a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole<'a> {
    /// The file before the hole, as the model was shown it, without cross-file context; empty where it is not known.
    pub left_context: &'a str,
    /// What stood in the hole.
    pub target: &'a str,
    /// The file's language.
    pub language: Language,
}

impl<'a> Hole<'a> {
    /// The hole of a task.
    pub fn of(task: &'a Task) -> Self {
        Self {
            left_context: &task.prompt,
            target: &task.ground_truth,
            language: task.language(),
        }
    }
}

/// A target and a prediction as they are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processed<'a> {
    /// The target; steps that keep a part of every text keep that of the target.
    pub target: Cow<'a, str>,
    /// The prediction.
    pub prediction: Cow<'a, str>,
}

/// One way of cutting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A chat model's code fence: what is inside.
    Fences,
    /// A chat model's sentences before and behind the code, and the special tokens that end its turn.
    Chatter,
    /// Lines of the left context that the answer repeats first.
    Echo,
    /// The first line that is neither blank nor a comment (RepoBench).
    FirstLine,
    /// The first non-blank lines, as many as the target has (Repoformer).
    Lines,
    /// The same, stripped (RepoCoder). The metric itself does it too, so that this shows what is compared.
    StrippedLines,
    /// The first statement: in Python the shortest run of lines that the left context parses with, in other languages
    /// [`Bracket`](Self::Bracket) (CrossCodeEval).
    Statement,
    /// Up to and with the first of `; { }` (CrossCodeEval).
    Bracket,
    /// The body of the function that the hole is in (Repoformer).
    FunctionBody,
    /// Without comments, as the language's grammar finds them; the target too.
    Comments,
    /// Without all from `#` or `//` on in each line (CrossCodeEval); the target too.
    CommentSigns,
}

impl Step {
    /// Every step, in the order that a chain of them makes sense in.
    pub const ALL: [Self; 11] = [
        Self::Fences,
        Self::Chatter,
        Self::Echo,
        Self::FirstLine,
        Self::Lines,
        Self::StrippedLines,
        Self::Statement,
        Self::Bracket,
        Self::FunctionBody,
        Self::Comments,
        Self::CommentSigns,
    ];

    /// Its name on the command line and in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fences => "fences",
            Self::Chatter => "chatter",
            Self::Echo => "echo",
            Self::FirstLine => "first-line",
            Self::Lines => "lines",
            Self::StrippedLines => "stripped-lines",
            Self::Statement => "statement",
            Self::Bracket => "bracket",
            Self::FunctionBody => "function-body",
            Self::Comments => "comments",
            Self::CommentSigns => "comment-signs",
        }
    }

    /// What it makes of a target and a prediction.
    fn apply(self, hole: &Hole<'_>, prediction: &str) -> (Option<String>, String) {
        let language = hole.language;
        let kept = match self {
            Self::Fences => chat::inside_fence(prediction),
            Self::Chatter => chat::without_chatter(prediction),
            Self::Echo => chat::without_echo(hole.left_context, prediction),
            Self::FirstLine => cut::first_line(prediction, language),
            Self::Lines => return (None, cut::lines(hole.target, prediction)),
            Self::StrippedLines => {
                let (_, count) = stripped_lines(hole.target, usize::MAX);
                return (None, stripped_lines(prediction, count).0);
            }
            Self::Statement => match language.spec().layout {
                Layout::Indentation => cut::first_statement(hole.left_context, prediction),
                Layout::Braces => cut::bracket(prediction),
            },
            Self::Bracket => cut::bracket(prediction),
            Self::FunctionBody => return body::function_body(hole, prediction),
            Self::Comments => {
                let target = without_comments(hole.target, language).into_owned();
                return (
                    Some(target),
                    without_comments(prediction, language).into_owned(),
                );
            }
            Self::CommentSigns => {
                let target = without_comment_signs(hole.target).into_owned();
                return (Some(target), without_comment_signs(prediction).into_owned());
            }
        };
        (None, kept.to_owned())
    }
}

/// Steps in their order; none keeps the prediction as it is.
///
/// ```
/// use repoformer::text::language::Language;
/// use repoformer::evaluate::postprocess::{Hole, Recipe};
/// let recipe: Recipe = "chat,lines".parse()?;
/// assert_eq!(recipe.to_string(), "fences,chatter,echo,lines");
/// let hole = Hole { left_context: "def f(x):\n", target: "    return x\n", language: Language::Python };
/// let answer = "Sure, here is the code:\n```python\ndef f(x):\n    return x\n\nprint(f(1))\n```\n";
/// assert_eq!(recipe.apply(hole, answer).prediction, "    return x");
/// # Ok::<(), repoformer::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Recipe(Vec<Step>);

impl Recipe {
    /// Takes the steps.
    pub fn apply<'a>(&self, hole: Hole<'a>, prediction: &'a str) -> Processed<'a> {
        let mut now = Processed {
            target: hole.target.into(),
            prediction: prediction.into(),
        };
        for step in &self.0 {
            let hole = Hole {
                target: &now.target,
                ..hole
            };
            let (target, prediction) = step.apply(&hole, &now.prediction);
            if let Some(target) = target {
                now.target = target.into();
            }
            now.prediction = prediction.into();
        }
        now
    }

    /// Whether a step is among them.
    pub fn has(&self, step: Step) -> bool {
        self.0.contains(&step)
    }

    /// Whether predictions stay as they are.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&[Step]> for Recipe {
    fn from(steps: &[Step]) -> Self {
        Self(steps.to_vec())
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        let names: Vec<&str> = self.0.iter().map(|step| step.name()).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for Recipe {
    type Err = Error;

    /// Names separated by commas; `chat` is `fences,chatter,echo`, `none` is nothing.
    fn from_str(names: &str) -> Result<Self> {
        let mut steps = Vec::new();
        for name in names.split(',') {
            match name {
                "none" if names == "none" => {}
                "chat" => steps.extend([Step::Fences, Step::Chatter, Step::Echo]),
                name => {
                    let step = Step::ALL.into_iter().find(|step| step.name() == name);
                    steps.push(step.ok_or_else(|| unknown(name))?);
                }
            }
        }
        Ok(Self(steps))
    }
}

fn unknown(name: &str) -> Error {
    let names = Step::ALL.map(Step::name).join(", ");
    Error::Parameter {
        name: "postprocess",
        reason: format!("'{name}' is not one of own, none, chat, {names}"),
    }
}

/// How predictions are cut before they are scored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Postprocess {
    /// For each metric as its program does.
    Own {
        /// Whether the targets are function bodies, which Repoformer's program is told.
        function_bodies: bool,
    },
    /// The same for every metric.
    Same(Recipe),
}

impl Postprocess {
    /// Predictions as they are.
    pub const NONE: Self = Self::Same(Recipe(Vec::new()));

    /// What is done before a metric is computed.
    pub fn recipe(&self, metric: Metric) -> Recipe {
        let steps: &[Step] = match (self, metric) {
            (Self::Same(recipe), _) => return recipe.clone(),
            (Self::Own { .. }, Metric::RepoCoder) => &[Step::StrippedLines],
            (Self::Own { .. }, Metric::Chars) => &[],
            (Self::Own { function_bodies }, Metric::Repoformer | Metric::RepoformerDifflib) => {
                match function_bodies {
                    true => &[Step::FunctionBody],
                    false => &[Step::Lines],
                }
            }
            (Self::Own { .. }, Metric::CrossCodeEval) => &[Step::Statement],
            (Self::Own { .. }, Metric::RepoBench) => &[Step::FirstLine],
        };
        steps.into()
    }
}

/// Tasks that tell whether the holes of a set are function bodies; each costs a parse of its prompt.
pub(crate) const LOOKED_AT_FOR_BODIES: usize = 40;

/// Whether the holes of a set are function bodies: most of the first tasks are, and have more than one line.
pub fn are_function_bodies(tasks: &[Task]) -> bool {
    let looked_at = tasks.len().min(LOOKED_AT_FOR_BODIES);
    let is_one = |task: &&Task| is_function_body(&Hole::of(task));
    let found = tasks[..looked_at].iter().filter(is_one).count();
    looked_at > 0 && found * 10 >= looked_at * 9
}

#[cfg(test)]
mod tests;
