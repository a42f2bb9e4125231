//! The command line: flags parsed into plain values, nothing built from them here.

mod evaluation;
mod formats;
mod label;
mod policy;
mod records;
mod stages;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};

#[cfg(target_os = "linux")]
pub(crate) use evaluation::GuardArgs;
pub(crate) use evaluation::{
    CompareArgs, EvalArgs, ExecArgs, Isolation, ReportArgs, ResampledUnit, Switch,
};
pub(crate) use formats::{ReportFormat, ScoreFormat};
pub(crate) use label::{
    LabelAllArgs, LabelArgs, LabelCommand, LabelJudgeArgs, LabelSampleArgs, LabelVerbalizeArgs,
    SequenceFlags,
};
pub(crate) use policy::{
    LabelFlags, PolicyArgs, PolicyCommand, PolicyExplainArgs, PolicyFeaturesArgs, PolicySweepArgs,
    PolicyTrainArgs,
};
pub(crate) use records::{ConvertArgs, InspectArgs, InspectFormat, SampleArgs, ValidateArgs};
pub(crate) use stages::{
    CompleteArgs, ExportFormat, PromptArgs, RgRgArgs, RunArgs, SearchArgs, VectorizeArgs,
    WindowArgs,
};

use crate::output::ScreenFlags;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Repository-level code completion experiments: window, retrieve, prompt, complete, retrieve again, score
#[derive(Debug, Parser)]
#[command(name = "repoformer", version, styles = STYLES, propagate_version = true, max_term_width = 100)]
#[command(after_help = "`repoformer run` runs the embedded demonstration.

Every setting that `--show-settings` lists is a flag (--top-k), an environment variable (REPOFORMER_TOP_K) and a key of a \
configuration file (top-k). Flags beat the environment, which beats the file, which beats the profile.

Exit status: 0 done, 1 done but something was skipped or a check failed, 2 could not run.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) screen: ScreenFlags,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Cut repositories into windows or chunks, and tasks into the queries of each mode
    Window(WindowArgs),
    /// Turn windows, chunks and queries into vectors
    Vectorize(VectorizeArgs),
    /// Find the fragments most similar to each query
    Search(SearchArgs),
    /// Build prompts from tasks and retrieval results
    Prompt(PromptArgs),
    /// Complete prompts with the embedded model, with a server's model, or by batches
    Complete(CompleteArgs),
    /// Retrieve again with predictions as queries: windows, vectors, search and prompts
    RgRg(RgRgArgs),
    /// Score predictions against tasks, or pairs of texts
    Eval(EvalArgs),
    /// Compare two sets of scores task by task: differences, intervals, tests
    Compare(CompareArgs),
    /// Write an HTML page with its figures: tables, gains, and every task with its retrieval and predictions
    Report(ReportArgs),
    /// Run all stages and print a table of scores; without flags, the embedded demonstration
    Run(RunArgs),
    /// Print a cached artifact: its header, or its records as JSONL
    Inspect(InspectArgs),
    /// Make a benchmark from repositories: holes with their prompts, in RepoEval's format
    Sample(SampleArgs),
    /// Make training data for selective retrieval: draw instances, label them, verbalize the labels
    Label(LabelArgs),
    /// Decide when to retrieve: train, explain and sweep policies on labelled instances
    Policy(PolicyArgs),
    /// Convert records between formats: tasks, predictions, repositories, batch requests and answers
    Convert(ConvertArgs),
    /// Check files of records and list every problem with its line
    Validate(ValidateArgs),
    /// Run one test command in isolation (started by `eval --exec`)
    #[cfg(target_os = "linux")]
    #[command(name = repoformer::execute::guard::SUBCOMMAND, hide = true)]
    Guard(GuardArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
