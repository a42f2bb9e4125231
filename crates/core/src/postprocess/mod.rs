//! Post-processing: cuts a model's answer to the part that is compared with the target.
//!
//! A model continues after the end of the target, so every reference program cuts the answer first, each in its own way. The
//! cut changes scores as much as the formula does. Each kind of cut is a [`Step`]; a [`Recipe`] is a sequence of steps.
//! [`Postprocess::Own`] uses the recipe of each metric's program:
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
mod context;
mod cut;
mod hole;
mod prefix;
mod unclosed;
mod uncut;

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use repoformer_store::error::{Error, Result};
use repoformer_text::language::{
    BlockMarks, parse_without_comments, without_comment_signs, without_comments,
};

use crate::metrics::Metric;
use crate::metrics::repocoder::stripped_lines;
use crate::task::{Task, TaskFiles};

pub use body::is_function_body;
pub use hole::HoleContext;
use uncut::Cut;
pub use uncut::UncutReason;

/// Target and prediction after post-processing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedTexts<'a> {
    /// Target; some steps apply to the target as well.
    pub target: Cow<'a, str>,
    /// The prediction.
    pub prediction: Cow<'a, str>,
    /// Reason why a step that parses left the prediction whole, if one did.
    pub uncut: Option<UncutReason>,
}

/// A step of post-processing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Remove a chat model's thoughts and the tokens of its chat template.
    Thoughts,
    /// Keep the code that a chat model marks: the content of a fence or a code span.
    Fences,
    /// Remove a chat model's sentences before and after the code.
    Chatter,
    /// Remove lines of the left context that are repeated at the beginning of the answer.
    Echo,
    /// Keep the first line that is neither blank nor a comment (RepoBench).
    FirstLine,
    /// Keep the first non-blank lines, as many as the target has (Repoformer).
    Lines,
    /// Keep the first non-blank lines, stripped, as many as the target has (RepoCoder). The metric itself does the same; the
    /// step makes the compared texts visible.
    StrippedLines,
    /// Keep the first statement: in Python, the shortest run of lines that parses after the left context; in other languages,
    /// the same text as [`Bracket`](Self::Bracket) (CrossCodeEval).
    Statement,
    /// Keep the text up to and including the first of `; { }` (CrossCodeEval).
    Bracket,
    /// Keep the body of the function that contains the hole (Repoformer).
    FunctionBody,
    /// Remove comments, as the language's grammar finds them, from the target as well.
    Comments,
    /// Remove the rest of each line from `#` or `//` on (CrossCodeEval), from the target as well.
    CommentSigns,
}

impl Step {
    /// All steps, in an order in which they can be chained.
    pub const ALL: [Self; 12] = [
        Self::Thoughts,
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

    /// Steps that leave only the code of a chat model's answer, in order.
    pub const CHAT: [Self; 4] = [Self::Thoughts, Self::Fences, Self::Chatter, Self::Echo];

    /// Returns the name of the step, as in settings and outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thoughts => "thoughts",
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

    /// Applies the step to a prediction; `is_marked` is true if the prediction is code that a chat model marked.
    fn apply(self, hole: &HoleContext<'_>, prediction: &str, is_marked: bool) -> Cut {
        let language = hole.language;
        let kept = match self {
            Self::Thoughts => chat::without_thoughts(hole, prediction),
            Self::Fences => {
                let (code, is_marked) = chat::marked_code(hole, prediction);
                return Cut { is_marked, ..Cut::of_prediction(code) };
            }
            // Marked code has no sentences around it.
            Self::Chatter if is_marked => prediction,
            Self::Chatter => chat::without_sentences(hole, prediction),
            Self::Echo => {
                return Cut::of_prediction(chat::without_echo(hole.left_context, prediction));
            }
            Self::FirstLine => cut::first_line(prediction, language),
            Self::Lines => return Cut::of_prediction(cut::lines(hole.target, prediction)),
            Self::StrippedLines => {
                let (_, count) = stripped_lines(hole.target, usize::MAX);
                return Cut::of_prediction(stripped_lines(prediction, count).0);
            }
            Self::Statement => match language.spec().layout {
                BlockMarks::Indentation => return cut::first_statement(hole, prediction),
                BlockMarks::Braces => cut::bracket(prediction),
            },
            Self::Bracket => cut::bracket(prediction),
            Self::FunctionBody => return body::function_body(hole, prediction),
            Self::Comments => {
                let target = without_comments(hole.target, language).into_owned();
                let cut = Cut::of_parsed(prediction, parse_without_comments(prediction, language));
                return Cut { target: Some(target), ..cut };
            }
            Self::CommentSigns => {
                let target = without_comment_signs(hole.target).into_owned();
                return Cut::of_both(Some(target), without_comment_signs(prediction));
            }
        };
        Cut::of_prediction(kept)
    }
}

/// Sequence of steps; the empty sequence keeps the prediction as it is.
///
/// ```
/// use repoformer_text::language::Language;
/// use repoformer_core::postprocess::{HoleContext, Recipe};
/// let recipe: Recipe = "chat,lines".parse()?;
/// assert_eq!(recipe.to_string(), "chat,lines");
/// let left_context = "def f(x):\n";
/// let hole = HoleContext { left_context, whole_left_context: None, target: "    return x\n", language: Language::Python };
/// let answer = "Sure, here is the code:\n```python\ndef f(x):\n    return x\n\nprint(f(1))\n```\n";
/// assert_eq!(recipe.apply(hole, answer).prediction, "    return x");
/// # Ok::<(), repoformer_store::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Recipe(Vec<Step>);

impl Recipe {
    /// Applies the steps.
    pub fn apply<'a>(&self, hole: HoleContext<'a>, prediction: &'a str) -> ComparedTexts<'a> {
        let (target, prediction) = (hole.target.into(), prediction.into());
        let mut now = ComparedTexts { target, prediction, uncut: None };
        let mut is_marked = false;
        for step in &self.0 {
            let hole = HoleContext { target: &now.target, ..hole };
            let cut = step.apply(&hole, &now.prediction, is_marked);
            is_marked |= cut.is_marked;
            if let Some(target) = cut.target {
                now.target = target.into();
            }
            now.prediction = cut.prediction.into();
            now.uncut = now.uncut.or(cut.uncut);
        }
        now
    }

    /// Returns the steps that leave only the code of a chat model's answer.
    pub fn chat() -> Self {
        Self(Step::CHAT.to_vec())
    }

    /// Returns the leading steps that are also in [`chat`](Self::chat).
    pub fn answers(&self) -> Self {
        let steps = self.0.iter().take_while(|step| Step::CHAT.contains(step));
        Self(steps.copied().collect())
    }

    /// Returns the names and versions of the rules that differ between versions of this program, if the recipe has one of their
    /// steps. They are part of the identity of results that depend on the recipe.
    pub fn revision(&self) -> Option<String> {
        let is_chat = Step::CHAT.iter().any(|step| self.has(*step));
        let chat = is_chat.then(|| format!("chat {}", chat::REVISION));
        let body = self.has(Step::FunctionBody).then(|| format!("body {}", body::REVISION));
        let names: Vec<String> = chat.into_iter().chain(body).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// Returns true if the recipe keeps as many lines as the target has, so that later lines do not count.
    pub fn is_of_lines(&self) -> bool {
        self.0.split_last().is_some_and(|(last, first)| {
            matches!(last, Step::Lines | Step::StrippedLines)
                && first.iter().all(|step| Step::CHAT.contains(step))
        })
    }

    /// Returns true if the recipe has a step.
    pub fn has(&self, step: Step) -> bool {
        self.0.contains(&step)
    }

    /// Returns true if the recipe has no steps.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        let chat = self.0.strip_prefix(&Step::CHAT);
        let steps = chat.unwrap_or(&self.0).iter().map(|step| step.name());
        let names: Vec<&str> = chat.map(|_| "chat").into_iter().chain(steps).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for Recipe {
    type Err = Error;

    /// Parses names separated by commas; `chat` stands for `thoughts,fences,chatter,echo`, and `none` for the empty recipe.
    fn from_str(names: &str) -> Result<Self> {
        let mut steps = Vec::new();
        for name in names.split(',') {
            match name {
                "none" if names == "none" => {}
                "chat" => steps.extend(Step::CHAT),
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
    let names = ["own", "none", "chat"].into_iter();
    Error::unknown("post-processing", name, names.chain(Step::ALL.map(Step::name)))
}

/// Choice of recipes for metrics.
///
/// ```
/// use repoformer_core::metrics::Metric;
/// use repoformer_core::postprocess::Postprocess;
/// let own: Postprocess = "chat,own".parse()?;
/// assert_eq!(own.recipe(Metric::RepoBench).to_string(), "chat,first-line");
/// let same: Postprocess = "fences,lines".parse()?;
/// assert_eq!(same.recipe(Metric::RepoBench).to_string(), "fences,lines");
/// # Ok::<(), repoformer_store::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Postprocess {
    /// Recipe of each metric's own program.
    Own {
        /// Whether the targets are function bodies, which Repoformer's program cuts differently.
        function_bodies: bool,
        /// Steps before the program's own.
        before: Recipe,
    },
    /// One recipe for every metric.
    Same(Recipe),
}

impl Postprocess {
    /// No post-processing.
    pub const NONE: Self = Self::Same(Recipe(Vec::new()));

    /// Returns the recipe of each metric's own program.
    pub fn own(function_bodies: bool) -> Self {
        Self::Own { function_bodies, before: Recipe::default() }
    }

    /// Returns the recipe of each metric's own program, after the steps that leave only the code of a chat model's answer.
    pub fn chat(function_bodies: bool) -> Self {
        Self::Own { function_bodies, before: Recipe::chat() }
    }

    /// Puts the steps for chat answers before each metric's own recipe.
    pub fn cut_answers(&mut self) {
        if let Self::Own { before, .. } = self {
            *before = Recipe::chat();
        }
    }

    /// Sets whether the targets are function bodies.
    #[must_use]
    pub fn with_bodies(self, function_bodies: bool) -> Self {
        match self {
            Self::Own { before, .. } => Self::Own { function_bodies, before },
            Self::Same(recipe) => Self::Same(recipe),
        }
    }

    /// Returns the steps that leave only the code of a chat model's answer, which precede every metric's own recipe.
    pub fn answers(&self) -> Recipe {
        match self {
            Self::Own { before: recipe, .. } | Self::Same(recipe) => recipe.answers(),
        }
    }

    /// Returns the recipe of a metric.
    pub fn recipe(&self, metric: Metric) -> Recipe {
        let (function_bodies, before) = match self {
            Self::Same(recipe) => return recipe.clone(),
            Self::Own { function_bodies, before } => (*function_bodies, before),
        };
        let step = match metric {
            Metric::RepoCoder => Some(Step::StrippedLines),
            Metric::Chars => None,
            Metric::Repoformer | Metric::RepoformerDifflib if function_bodies => {
                Some(Step::FunctionBody)
            }
            Metric::Repoformer | Metric::RepoformerDifflib => Some(Step::Lines),
            Metric::CrossCodeEval => Some(Step::Statement),
            Metric::RepoBench => Some(Step::FirstLine),
        };
        Recipe(before.0.iter().copied().chain(step).collect())
    }
}

impl fmt::Display for Postprocess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own { before, .. } if before.is_empty() => f.write_str("own"),
            Self::Own { before, .. } => write!(f, "{before},own"),
            Self::Same(recipe) => recipe.fmt(f),
        }
    }
}

impl FromStr for Postprocess {
    type Err = Error;

    /// Parses the names of a [`Recipe`]; the last may be `own`, the recipe of each metric's own program.
    fn from_str(names: &str) -> Result<Self> {
        if names == "own" {
            return Ok(Self::own(false));
        }
        match names.strip_suffix(",own") {
            Some(before) => Ok(Self::Own { function_bodies: false, before: before.parse()? }),
            None => Ok(Self::Same(names.parse()?)),
        }
    }
}

/// Number of tasks that decide whether the holes of a set are function bodies; each costs a parse of its prompt.
pub const TASKS_CHECKED_FOR_BODIES: usize = 40;

/// Counts of the tasks, among the first ones of a set, whose holes are function bodies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FunctionBodies {
    /// Number of tasks that were checked.
    pub looked_at: usize,
    /// Number of these tasks whose holes are function bodies.
    pub found: usize,
    /// Number of these tasks for which the answer is unknown: their targets have several lines, and their records have only the
    /// end of the file before the hole.
    pub unknown: usize,
}

impl FunctionBodies {
    /// Checks the first tasks of a set. A task's metadata may name the kind of its hole. For other tasks, the text before the
    /// hole is parsed; if the record has only the end of that text, it is read from the folder of repositories.
    pub fn new(tasks: &[Task], repos_dir: Option<&Path>) -> Self {
        let mut files = repos_dir.and_then(|dir| TaskFiles::below(dir).ok());
        let tasks = &tasks[..tasks.len().min(TASKS_CHECKED_FOR_BODIES)];
        let mut bodies = Self { looked_at: tasks.len(), ..Self::default() };
        for task in tasks {
            let is_one = is_known_body(task).or_else(|| {
                let mut task = task.clone();
                files.as_mut()?.take_left(&mut task);
                is_known_body(&task)
            });
            bodies.found += usize::from(is_one == Some(true));
            bodies.unknown += usize::from(is_one.is_none());
        }
        bodies
    }

    /// Returns true if the set's holes count as function bodies: nine in ten of the checked ones are.
    pub fn are_all(self) -> bool {
        self.looked_at > 0 && self.found * 10 >= self.looked_at * 9
    }

    /// Returns true if the set's holes may be function bodies although [`are_all`](Self::are_all) is false: half of the checked
    /// ones are, or nine in ten if the unknown ones count.
    pub fn are_unsure(self) -> bool {
        let is_possible = (self.found + self.unknown) * 10 >= self.looked_at * 9;
        self.looked_at > 0 && !self.are_all() && (is_possible || self.found * 2 >= self.looked_at)
    }
}

/// Returns true if a task's hole is a function body; `None` if too little of the file is known.
fn is_known_body(task: &Task) -> Option<bool> {
    let hole = HoleContext::new(task);
    match task.kind().as_deref() {
        Some("function") => Some(true),
        Some("chunk") => Some(false),
        _ if task.metadata.contains("function_name") => Some(true),
        _ if !body::may_be_function_body(&hole) => Some(false),
        _ if is_function_body(&hole) => Some(true),
        _ => task.has_whole_left().then_some(false),
    }
}

/// Returns true if the holes of a set are function bodies, judged by the records alone; see [`FunctionBodies`].
pub fn are_function_bodies(tasks: &[Task]) -> bool {
    FunctionBodies::new(tasks, None).are_all()
}

#[cfg(test)]
mod tests;
