//! How users of the command line make the choices that the libraries name. No other module knows these flags and commands.

use repoformer_text::message::{Message, MessagePart, StageRun, UserChoice};

/// Flags or commands that make each choice, in the order of the choices.
const WAYS: [(UserChoice, &str); UserChoice::ALL.len()] = [
    (UserChoice::Language, "--language"),
    (UserChoice::Repositories, "--repo"),
    (UserChoice::CompletionServer, "--endpoint"),
    (UserChoice::LinesToWrite, "--max-lines"),
    (UserChoice::RetryOfFailedRequests, "--retry-failed"),
    (UserChoice::NewBatch, "--write-batch"),
    (UserChoice::VerboseRun, "--verbose"),
    (UserChoice::UnitTestResults, "`eval --exec --per-task --format jsonl`"),
    (UserChoice::CacheFolder, "--cache-dir"),
    (UserChoice::OutputPath, "-o"),
    (UserChoice::RepositoriesFolder, "--repos-dir"),
    (UserChoice::TasksFile, "--tasks"),
    (UserChoice::PredictionsFile, "--predictions"),
    (UserChoice::PromptsFile, "`repoformer complete --prompts`"),
    (UserChoice::PairsFile, "`repoformer eval --pairs`"),
    (UserChoice::ResultOfEvaluation, "`repoformer eval`"),
    (UserChoice::WindowAndSearchStages, "`repoformer window`, `search`"),
    (UserChoice::DrawTasks, "`repoformer sample`"),
    (UserChoice::ScoreAsLabels, "`repoformer label judge`"),
    (UserChoice::TrainedPolicy, "--model FILE; for `run`, --policy-model FILE"),
    (UserChoice::PolicyLearned, "--policy learned"),
    (UserChoice::PolicyTraining, "`repoformer policy train --labels FILE -o FILE`"),
    (
        UserChoice::EntropySamples,
        "draw them with `complete --mode none --samples 20 --temperature 1 -o FILE`, and pass them to `label judge` or `run` with --samples-from FILE",
    ),
    (
        UserChoice::RetrievalProbability,
        "ask for it with `complete --probability-of '<cc>' --after '<eof>'`, and pass it to `label judge` or `run` with --probabilities",
    ),
    (
        UserChoice::RetrievalLikeliest,
        "ask for it with `complete --probability-of '<cc>' --after '<eof>'`, and pass it to `label judge` or `run` with --probabilities",
    ),
    (UserChoice::TargetQueries, "--target-queries keeps them"),
    (UserChoice::JudgeInstances, "`repoformer label judge`"),
    (UserChoice::LabelMetric, "`label judge --metric`"),
    (UserChoice::LabelPrompts, "`label judge --prompts`"),
    (UserChoice::SweptLabels, "--labels"),
    (UserChoice::TrainingLabels, "--train-labels"),
    (UserChoice::SweptPolicy, "--policy"),
    (UserChoice::PolicyOfRun, "`run --policy`"),
    (UserChoice::BaseTimes, "--base-latency"),
    (UserChoice::RetrievalTime, "--retrieval-ms"),
    (UserChoice::GenerationTime, "--generation-ms"),
    (UserChoice::DecisionTime, "--decision-ms"),
    (UserChoice::BasePredictions, "--base"),
    (UserChoice::RetrievalPredictions, "--rag"),
    (UserChoice::ResultsOfBoth, "--base-exec FILE --rag-exec FILE"),
    (UserChoice::NameInResults, "--base-exec NAME=FILE, --rag-exec NAME=FILE"),
    (UserChoice::SamplesFile, "--samples-from FILE"),
    (UserChoice::ModelName, "--model"),
    (UserChoice::LabelThreshold, "--threshold"),
    (UserChoice::TargetLikelihoods, "`complete --likelihood --mode MODE -o FILE`"),
    (UserChoice::Shard, "--shard"),
    (UserChoice::InstanceRatio, "--ratio"),
    (UserChoice::CandidateLimit, "--max-candidates"),
    (UserChoice::PoissonMean, "--poisson-mean"),
    (UserChoice::FunctionLines, "--function-lines"),
    (UserChoice::FragmentCount, "--fragments"),
    (UserChoice::ImportLimits, "--min-imports, --min-local-imports"),
    (UserChoice::SizeLimits, "--min-files, --min-lines"),
    (UserChoice::ValidationShare, "--validation"),
    (UserChoice::TestShare, "--test"),
    (UserChoice::NothingHeldOut, "--validation 0 --test 0"),
    (UserChoice::DecisionWeight, "--lambda"),
    (UserChoice::CrossFileTokens, "--max-cc-tokens"),
    (UserChoice::SequenceTokens, "--max-sequence-tokens"),
    (UserChoice::EofToken, "--eof-token"),
    (UserChoice::CcToken, "--cc-token"),
    (UserChoice::EndToken, "--end-token"),
    (UserChoice::FirstDay, "--since"),
    (UserChoice::TreesFolder, "--trees"),
    (
        UserChoice::WriteAsJsonLines,
        "`--format jsonl`; `repoformer inspect --format jsonl` prints its rows",
    ),
    (UserChoice::ConvertToFolders, "`repoformer convert --to repos -o DIR`"),
    (
        UserChoice::ConvertToPredictions,
        "`repoformer convert --to repocoder-predictions --tasks FILE`",
    ),
    (UserChoice::FileOfTexts, "`vectorize --write-texts`, --vector-texts"),
    (UserChoice::DenseVectorizer, "`vectorize --vectorizer dense`"),
    (UserChoice::EmbeddingServer, "--endpoint URL --embedding-model NAME"),
    (UserChoice::PromptBudget, "--max-prompt-tokens"),
    (UserChoice::NewTokens, "--max-tokens"),
    (UserChoice::TokenNumber, "--token-id"),
    (UserChoice::ChatApi, "--api chat"),
    (UserChoice::Journal, "--journal"),
    (UserChoice::ResultsFile, "--exec-results"),
    (UserChoice::WorkFolder, "--work-dir"),
    (UserChoice::TestCommand, "--test-cmd"),
    (UserChoice::ListCommand, "--list-tests-cmd"),
    (UserChoice::SetupCommand, "--setup-cmd"),
    (UserChoice::SetupTimeLimit, "--setup-timeout"),
    (UserChoice::TimeLimit, "--timeout"),
    (UserChoice::ProcessorTimeLimit, "--cpu-limit"),
    (UserChoice::MemoryLimit, "--memory-limit"),
    (UserChoice::DiskLimit, "--disk-limit"),
    (UserChoice::ProcessLimit, "--process-limit"),
    (
        UserChoice::TestsOfTasks,
        "name them with --tests, or find them with `eval --exec --mine-tests -o tests.jsonl`",
    ),
    (UserChoice::RepeatedRuns, "--rerun"),
    (
        UserChoice::TasksWithoutPrediction,
        "--missing zero counts them as failed, --missing skip leaves them out",
    ),
    (UserChoice::Postprocessing, "--postprocess"),
    (UserChoice::IsolationAuto, "--isolation auto"),
    (UserChoice::IsolationOff, "--isolation off"),
    (UserChoice::ProbabilitiesFile, "--probabilities"),
    (UserChoice::TestResultsFile, "--exec"),
    (UserChoice::ReportOfRun, "--report"),
    (UserChoice::DryRun, "--dry-run"),
    (UserChoice::MixedConditions, "--allow-mixed"),
    (UserChoice::Baseline, "--baseline"),
    (UserChoice::Demonstration, "`repoformer run` without flags"),
    (UserChoice::CompletePrompts, "`repoformer run`, `complete`"),
    (UserChoice::MergeShards, "`repoformer merge`"),
    (UserChoice::Comparison, "`repoformer compare`"),
    (UserChoice::PolicySweep, "`policy sweep --labels FILE --policy NAME --threshold T`"),
    (UserChoice::ListOfSettings, "`repoformer run --show-settings`"),
    (UserChoice::Walk, "--walk"),
    (UserChoice::Tokenizer, "--tokenizer"),
    (UserChoice::RetrievalScores, "`eval --retrieval`"),
];

const _: () = {
    let mut index = 0;
    while index < WAYS.len() {
        assert!(WAYS[index].0 as usize == index, "the order is that of the choices");
        index += 1;
    }
};

/// Returns the flags or commands that make a choice.
pub(crate) fn way(choice: UserChoice) -> &'static str {
    WAYS[choice as usize].1
}

/// Returns the command that runs a stage.
fn command(run: &StageRun) -> String {
    match run {
        StageRun::Any(stage) => format!("`repoformer {stage}`"),
        StageRun::InMode(stage, mode) => format!("`repoformer {stage} --mode {mode}`"),
        StageRun::WithStyle(stage, style) => {
            format!("`repoformer {stage} --prompt-style {style}`")
        }
    }
}

/// Formats a message for users of the command line: stages as commands, settings as flags, and each choice followed by its flags or
/// commands at the first mention.
pub(crate) fn in_flags(message: &Message) -> String {
    let mut named = Vec::new();
    let write = |part: &MessagePart| match part {
        MessagePart::Choice(choice) if !named.contains(choice) => {
            named.push(*choice);
            format!("{choice} ({})", way(*choice))
        }
        MessagePart::Stage(run) => command(run),
        MessagePart::Setting(key) => format!("--{key}"),
        MessagePart::Choice(_) | MessagePart::Text(_) => part.to_string(),
    };
    message.parts().iter().map(write).collect()
}

#[cfg(test)]
mod tests {
    use repoformer_study::settings::DECLARED;
    use repoformer_text::message;

    use super::*;

    #[test]
    fn the_first_mention_of_a_choice_has_its_flag() {
        let folder = UserChoice::CacheFolder;
        let message = message!["/a cache folder/x: choose another ", folder, "; a ", folder];
        assert_eq!(
            in_flags(&message),
            "/a cache folder/x: choose another cache folder (--cache-dir); a cache folder"
        );
    }

    #[test]
    fn a_setting_is_written_as_its_flag_each_time() {
        let ranker = &DECLARED.ranker;
        let message = message!["/a ranker: ", ranker, " dense, or another ", ranker];
        assert_eq!(in_flags(&message), "/a ranker: --ranker dense, or another --ranker");
        assert_eq!(message.to_string(), "/a ranker: ranker dense, or another ranker");
    }

    #[test]
    fn a_stage_is_written_as_its_command() {
        for (run, command) in [
            (StageRun::Any("window"), "`repoformer window`"),
            (StageRun::InMode("search", "rg1"), "`repoformer search --mode rg1`"),
            (
                StageRun::WithStyle("prompt", "starcoder".into()),
                "`repoformer prompt --prompt-style starcoder`",
            ),
        ] {
            assert_eq!(
                in_flags(&message!["make it with ", &run]),
                format!("make it with {command}")
            );
        }
    }
}
