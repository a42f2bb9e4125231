//! Warnings about prompts that would not contain what the user expects.

use repoformer_core::prompt::style::Budget;
use repoformer_core::task::{Task, TaskSet};
use repoformer_store::error::Result;
use repoformer_text::counts::subject;
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use super::experiment::{Experiment, PromptLayout, PromptSettings};
use super::stage::StageReport;

/// Warns if the tokenizer does not know the style's special tokens: it splits them, so budgets are wrong.
pub(super) fn warn_of_specials(experiment: &Experiment, report: &mut StageReport) {
    let prompts = &experiment.prompts;
    if let PromptLayout::Style(style) = &prompts.layout {
        let unknown = style.unknown_specials(&prompts.tokenizer);
        if !unknown.is_empty() && prompts.tokenizer.is_model() {
            report.warn(format!(
                "the tokenizer does not know {} as one token; does it belong to a model for prompt style {}?",
                unknown.join(", "),
                style.name()
            ));
        }
    }
}

/// Warns if the sum of the budgets exceeds the budget of the whole prompt. The left context is then shorter with retrieved
/// fragments than without, so that two modes differ in more than the fragments.
pub(super) fn warn_of_budgets(experiment: &Experiment, report: &mut StageReport) {
    let PromptSettings { layout, budget, tokenizer, .. } = &experiment.prompts;
    let (
        Some(style),
        Budget { total, left: Some(left), right: Some(right), cross_file: Some(cross_file) },
    ) = (layout.style(), *budget)
    else {
        return;
    };
    let right = if style.shows_right() { right } else { 0 };
    let own = style.own_tokens(tokenizer);
    let sum = left + right + cross_file + own;
    if style.shows_cross_file() && sum > total {
        let budget = UserChoice::PromptBudget;
        report.warn(message![
            format!(
                "left context ({left} tokens), right context ({right}), cross-file context ({cross_file}) and the style's text ({own}) \
                 may need {sum} tokens, but the "
            ),
            budget,
            format!(" is {total}, so retrieved fragments may shorten the left context; raise the "),
            budget,
            format!(" to {sum}, or lower another limit")
        ]);
    }
}

/// Warns of tasks whose repositories do not take part.
pub(super) fn warn_of_others(experiment: &Experiment, tasks: &TaskSet, report: &mut StageReport) {
    let takes_part = |task: &&Task| experiment.repositories.binary_search(&task.repository).is_ok();
    let others = tasks.tasks().len() - tasks.tasks().iter().filter(takes_part).count();
    if others > 0 {
        let text = match others {
            1 => "1 task of another repository is left out".to_owned(),
            n => format!("{n} tasks of other repositories are left out"),
        };
        let text = text.into();
        if !report.warnings.contains(&text) {
            report.warnings.push(text);
        }
    }
}

/// Warns if right contexts are needed, but there are no repositories to take them from.
pub(super) fn warn_of_contexts(experiment: &Experiment, report: &mut StageReport) -> Result<()> {
    let shown = experiment.prompts.layout.style().is_some_and(|style| style.shows_right());
    if !shown || !experiment.repos_dir.as_os_str().is_empty() {
        return Ok(());
    }
    let tasks = experiment.tasks()?.tasks();
    let without = tasks.iter().filter(|t| t.right_context.is_none()).count();
    if without > 0 {
        report.warn(format!(
            "{without} tasks carry no right context, so their prompts have none; with their repositories, it is read from the files"
        ));
    }
    Ok(())
}

/// Warns of holes that begin within a line, if the model writes whole lines.
pub(super) fn warn_of_begun_lines(experiment: &Experiment, report: &mut StageReport) -> Result<()> {
    let begun = experiment.tasks()?.tasks().iter().filter(|task| task.begins_within_line()).count();
    if begun > 0 {
        report.warn(format!(
            "{} within a line; the embedded model writes whole lines, so its scores say little about {}",
            subject(begun, "task", ["begins", "begin"]),
            if begun == 1 { "it" } else { "them" }
        ));
    }
    Ok(())
}
