//! Messages for the user that name settings and commands.
//!
//! A library does not know how its user sets a cache folder: by a flag, a field or a key. It names the [`UserChoice`], and the
//! front end adds how to make that choice.
//!
//! ```
//! use repoformer_text::message;
//! use repoformer_text::message::{UserChoice, MessagePart};
//!
//! let hint = message!["choose another ", UserChoice::CacheFolder];
//! assert_eq!(hint.to_string(), "choose another cache folder");
//! let with_key = hint.parts().iter().map(|part| match part {
//!     MessagePart::Choice(UserChoice::CacheFolder) => "cache folder (cache_dir=...)".to_owned(),
//!     part => part.to_string(),
//! });
//! assert_eq!(with_key.collect::<String>(), "choose another cache folder (cache_dir=...)");
//! ```

use std::fmt;

use serde::{Serialize, Serializer};

use crate::named;

/// Something that the user can set or run: a setting, a file, or a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UserChoice {
    /// Language of the source files.
    Language,
    /// Repositories to process.
    Repositories,
    /// Server that completes prompts.
    CompletionServer,
    /// Number of lines of a completion.
    LinesToWrite,
    /// Whether failed requests are sent again.
    RetryOfFailedRequests,
    /// Writing the unanswered requests to a file.
    NewBatch,
    /// Printing every problem.
    VerboseRun,
    /// Evaluation by unit tests, with the results of each task.
    UnitTestResults,
    /// Folder of artifacts.
    CacheFolder,
    /// Path of the output.
    OutputPath,
    /// Folder with a folder for each repository.
    RepositoriesFolder,
    /// File of tasks.
    TasksFile,
    /// File of predictions.
    PredictionsFile,
    /// File of prompts to complete.
    PromptsFile,
    /// File of pairs of a target and a prediction.
    PairsFile,
    /// Evaluation of predictions.
    ResultOfEvaluation,
    /// The stages that cut and search repositories.
    WindowAndSearchStages,
    /// Sampling new tasks.
    DrawTasks,
    /// Judging labels.
    ScoreAsLabels,
    /// File of a trained policy.
    TrainedPolicy,
    /// Policy `learned`, which decides by contexts alone.
    PolicyLearned,
    /// Retraining a policy.
    PolicyTraining,
    /// Samples of completions without retrieval.
    EntropySamples,
    /// Probability with which a model generates the token that requests retrieval.
    RetrievalProbability,
    /// Whether a model considers the token that requests retrieval likelier than any other token.
    RetrievalLikeliest,
    /// Instances whose query contains the target.
    TargetQueries,
    /// Judging instances.
    JudgeInstances,
    /// Metric by which instances are judged.
    LabelMetric,
    /// Prompts of the instances that are judged.
    LabelPrompts,
    /// Labels on which policies are swept.
    SweptLabels,
    /// Labels from which policies learn.
    TrainingLabels,
    /// Policy that is swept.
    SweptPolicy,
    /// Policy that decides in a run.
    PolicyOfRun,
    /// Times of completions without retrieval.
    BaseTimes,
    /// Time of a retrieval.
    RetrievalTime,
    /// Time of a completion.
    GenerationTime,
    /// Time of a model's decision.
    DecisionTime,
    /// Predictions without retrieval for judging labels.
    BasePredictions,
    /// Predictions with retrieval for judging labels.
    RetrievalPredictions,
    /// Unit-test results of the predictions without and with retrieval.
    ResultsOfBoth,
    /// Name of the predictions in their unit-test results.
    NameInResults,
    /// File with several completions of each prompt.
    SamplesFile,
    /// Name of the model.
    ModelName,
    /// Gain that makes a label positive.
    LabelThreshold,
    /// Likelihoods of the targets instead of completions.
    TargetLikelihoods,
    /// Shard of the repositories.
    Shard,
    /// Number of instances per chunk or function of a repository.
    InstanceRatio,
    /// Greatest number of chunks or functions that are clustered.
    CandidateLimit,
    /// Mean of the distribution of chunk lengths in lines.
    PoissonMean,
    /// Least and greatest number of lines of a function.
    FunctionLines,
    /// Number of fragments of an instance.
    FragmentCount,
    /// Least numbers of imported modules.
    ImportLimits,
    /// Least numbers of files and lines of a repository.
    SizeLimits,
    /// Fraction of the repositories held out for validation.
    ValidationShare,
    /// Fraction of the repositories held out for tests.
    TestShare,
    /// Holding out no repositories.
    NothingHeldOut,
    /// Weight of the decision in the loss.
    DecisionWeight,
    /// Greatest number of tokens of a cross-file context.
    CrossFileTokens,
    /// Greatest number of tokens of a training sequence.
    SequenceTokens,
    /// Token that ends the current file.
    EofToken,
    /// Token that requests cross-file context.
    CcToken,
    /// Token after each target.
    EndToken,
    /// First day of the commits to sample from.
    FirstDay,
    /// Folder of the repositories for tasks from commits.
    TreesFolder,
    /// Writing a table as JSON lines.
    WriteAsJsonLines,
    /// Converting repositories to folders.
    ConvertToFolders,
    /// Converting answers or completions to predictions.
    ConvertToPredictions,
    /// File of the texts to embed.
    FileOfTexts,
    /// Vectorizer that asks a model for vectors.
    DenseVectorizer,
    /// Server that computes vectors.
    EmbeddingServer,
    /// Greatest number of tokens of a prompt.
    PromptBudget,
    /// Greatest number of tokens of a completion.
    NewTokens,
    /// Id of the token whose probability is requested.
    TokenNumber,
    /// API of chat models.
    ChatApi,
    /// Journal of a server's answers.
    Journal,
    /// File of the results of unit tests.
    ResultsFile,
    /// Folder of the copies in which tests run.
    WorkFolder,
    /// Command that runs tests.
    TestCommand,
    /// Command that lists tests.
    ListCommand,
    /// Command that prepares a repository for its tests.
    SetupCommand,
    /// Time limit of the setup in seconds.
    SetupTimeLimit,
    /// Time limit of the tests in seconds.
    TimeLimit,
    /// Processor time limit of the tests in seconds.
    ProcessorTimeLimit,
    /// Memory limit of the tests.
    MemoryLimit,
    /// Disk space limit of the tests.
    DiskLimit,
    /// Limit on the number of processes of the tests.
    ProcessLimit,
    /// Tests of each task, which are a subset of the tests of its repository.
    TestsOfTasks,
    /// Repeating runs although their results are known.
    RepeatedRuns,
    /// Treatment of tasks without a prediction.
    TasksWithoutPrediction,
    /// Truncation of predictions.
    Postprocessing,
    /// Running tests with the isolation that the system allows.
    IsolationAuto,
    /// Running tests without isolation.
    IsolationOff,
    /// File of the probabilities of a model's decisions.
    ProbabilitiesFile,
    /// Results of unit tests, by mode or system.
    TestResultsFile,
    /// Report of a run.
    ReportOfRun,
    /// Planning a run.
    DryRun,
    /// Comparison of results produced under different conditions.
    MixedConditions,
    /// System that the others are compared with.
    Baseline,
    /// Run on the bundled repository.
    Demonstration,
    /// Completing prompts.
    CompletePrompts,
    /// Combining the parts of all shards.
    MergeShards,
    /// Comparing predictions task by task.
    Comparison,
    /// Sweeping thresholds of a policy.
    PolicySweep,
    /// Listing every setting.
    ListOfSettings,
    /// Selection of the files of a repository that are read.
    Walk,
    /// Tokenizer of a model.
    Tokenizer,
    /// Scores of retrieval results.
    RetrievalScores,
}

named! {
    UserChoice, "choice":
    Language = "language",
    Repositories = "repositories",
    CompletionServer = "completion server",
    LinesToWrite = "number of lines to write",
    RetryOfFailedRequests = "retry of failed requests",
    NewBatch = "new batch",
    VerboseRun = "verbose run",
    UnitTestResults = "unit-test results of each task",
    CacheFolder = "cache folder",
    OutputPath = "output path",
    RepositoriesFolder = "folder of repositories",
    TasksFile = "tasks file",
    PredictionsFile = "predictions file",
    PromptsFile = "prompts file",
    PairsFile = "pairs file",
    ResultOfEvaluation = "result of an evaluation",
    WindowAndSearchStages = "window and search stages",
    DrawTasks = "draw tasks from repositories",
    ScoreAsLabels = "score it as labels",
    TrainedPolicy = "trained policy",
    PolicyLearned = "policy learned",
    PolicyTraining = "train the policy again",
    EntropySamples = "several samples of each completion",
    RetrievalProbability = "the probability of the token that requests retrieval",
    RetrievalLikeliest = "whether the token that requests retrieval is the likeliest",
    TargetQueries = "instances whose query contained the target",
    JudgeInstances = "judge instances",
    LabelMetric = "metric of labels",
    LabelPrompts = "prompts of labels",
    SweptLabels = "labels to sweep",
    TrainingLabels = "training labels",
    SweptPolicy = "policy to sweep",
    PolicyOfRun = "policy of a run",
    BaseTimes = "times of completions without retrieval",
    RetrievalTime = "time of a retrieval",
    GenerationTime = "time of a generation",
    DecisionTime = "time of a decision",
    BasePredictions = "predictions without retrieval",
    RetrievalPredictions = "predictions with retrieval",
    ResultsOfBoth = "test results of both predictions",
    NameInResults = "name in the results",
    SamplesFile = "file of samples",
    ModelName = "name of the model",
    LabelThreshold = "threshold of labels",
    TargetLikelihoods = "likelihoods of targets",
    Shard = "shard",
    InstanceRatio = "ratio of instances",
    CandidateLimit = "limit of candidates",
    PoissonMean = "mean of the Poisson distribution",
    FunctionLines = "lines of functions",
    FragmentCount = "number of fragments",
    ImportLimits = "limits of imports",
    SizeLimits = "limits of files and lines",
    ValidationShare = "share for validation",
    TestShare = "share for tests",
    NothingHeldOut = "hold out no repository",
    DecisionWeight = "weight of the decision",
    CrossFileTokens = "limit of cross-file tokens",
    SequenceTokens = "limit of tokens",
    EofToken = "token that ends the current file",
    CcToken = "token that requests cross-file context",
    EndToken = "end token",
    FirstDay = "first day",
    TreesFolder = "folder of trees",
    WriteAsJsonLines = "write it as JSON lines",
    ConvertToFolders = "convert it to folders",
    ConvertToPredictions = "convert it to predictions",
    FileOfTexts = "current file of texts",
    DenseVectorizer = "dense vectorizer",
    EmbeddingServer = "embedding server",
    PromptBudget = "prompt budget",
    NewTokens = "number of new tokens",
    TokenNumber = "token number",
    ChatApi = "chat API",
    Journal = "journal",
    ResultsFile = "results file",
    WorkFolder = "work folder",
    TestCommand = "test command",
    ListCommand = "list command",
    SetupCommand = "setup command",
    SetupTimeLimit = "setup time limit",
    TimeLimit = "limit of seconds",
    ProcessorTimeLimit = "limit of processor time",
    MemoryLimit = "limit of memory",
    DiskLimit = "limit of disk space",
    ProcessLimit = "limit of processes",
    TestsOfTasks = "tests of each task",
    RepeatedRuns = "repeated runs",
    TasksWithoutPrediction = "tasks without prediction",
    Postprocessing = "postprocessing",
    IsolationAuto = "the isolation that this system allows",
    IsolationOff = "isolation is off",
    ProbabilitiesFile = "file of probabilities",
    TestResultsFile = "file of test results",
    ReportOfRun = "report",
    DryRun = "dry run",
    MixedConditions = "mixed conditions",
    Baseline = "baseline",
    Demonstration = "demonstration",
    CompletePrompts = "complete the prompts",
    MergeShards = "put the shards together",
    Comparison = "comparison",
    PolicySweep = "policy sweep",
    ListOfSettings = "list of all settings",
    Walk = "walk",
    Tokenizer = "tokenizer",
    RetrievalScores = "scores of retrieval",
}

/// Run of a stage that builds an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageRun {
    /// The stage builds the artifact in every mode.
    Any(&'static str),
    /// The stage builds the artifact in this mode.
    InMode(&'static str, &'static str),
    /// The stage builds the artifact with this prompt style.
    WithStyle(&'static str, String),
}

impl fmt::Display for StageRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(stage) => write!(f, "the stage `{stage}`"),
            Self::InMode(stage, mode) => write!(f, "the stage `{stage}` in mode {mode}"),
            Self::WithStyle(stage, style) => {
                write!(f, "the stage `{stage}` with prompt style {style}")
            }
        }
    }
}

/// Part of a [`Message`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessagePart {
    /// Literal words, such as a path or a server's message.
    Text(String),
    /// Something that the user can set or run.
    Choice(UserChoice),
    /// A stage that the user can run.
    Stage(StageRun),
    /// A setting, by its key.
    Setting(&'static str),
}

impl fmt::Display for MessagePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Choice(choice) => f.write_str(choice.name()),
            Self::Stage(stage) => stage.fmt(f),
            Self::Setting(key) => f.write_str(key),
        }
    }
}

/// Sentence whose user choices are typed values; it is displayed, and written to files, in plain words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    parts: Vec<MessagePart>,
}

impl Message {
    /// Returns its parts; two texts never follow each other.
    pub fn parts(&self) -> &[MessagePart] {
        &self.parts
    }

    /// Adds text, a choice, a stage, a setting or another message.
    pub fn push(&mut self, more: impl Into<Self>) {
        for part in more.into().parts {
            match (self.parts.last_mut(), part) {
                (Some(MessagePart::Text(text)), MessagePart::Text(more)) => text.push_str(&more),
                (_, part) => self.parts.push(part),
            }
        }
    }

    /// Joins messages with this text between them.
    pub fn join(messages: impl IntoIterator<Item = Self>, between: &str) -> Self {
        let mut whole = Self::default();
        for (number, message) in messages.into_iter().enumerate() {
            if number > 0 {
                whole.push(between);
            }
            whole.push(message);
        }
        whole
    }

    /// Appends text to the message.
    #[must_use]
    pub fn then(mut self, more: impl Into<Self>) -> Self {
        self.push(more);
        self
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| part.fmt(f))
    }
}

impl std::error::Error for Message {}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        let parts = if text.is_empty() { Vec::new() } else { vec![MessagePart::Text(text)] };
        Self { parts }
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&String> for Message {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<UserChoice> for Message {
    fn from(choice: UserChoice) -> Self {
        Self { parts: vec![MessagePart::Choice(choice)] }
    }
}

impl From<MessagePart> for Message {
    fn from(part: MessagePart) -> Self {
        match part {
            MessagePart::Text(text) => text.into(),
            part => Self { parts: vec![part] },
        }
    }
}

impl From<&StageRun> for Message {
    fn from(stage: &StageRun) -> Self {
        Self { parts: vec![MessagePart::Stage(stage.clone())] }
    }
}

impl From<&Message> for Message {
    fn from(message: &Message) -> Self {
        message.clone()
    }
}

/// Builds a [`Message`] from texts, choices, stages, settings and other messages.
#[macro_export]
macro_rules! message {
    ($($part:expr),+ $(,)?) => {{
        let mut message = $crate::message::Message::default();
        $(message.push($part);)+
        message
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_words_of_its_parts() {
        let stage = StageRun::InMode("search", "rg1");
        let message = message!["run ", &stage, format!(" with {}", "a "), UserChoice::CacheFolder];
        assert_eq!(message.to_string(), "run the stage `search` in mode rg1 with a cache folder");
        let [
            MessagePart::Text(_),
            MessagePart::Stage(named),
            MessagePart::Text(text),
            MessagePart::Choice(choice),
        ] = message.parts()
        else {
            panic!("{message:?}");
        };
        assert_eq!((named, &**text, *choice), (&stage, " with a ", UserChoice::CacheFolder));
        let style = StageRun::WithStyle("prompt", "own.toml".into());
        assert_eq!(style.to_string(), "the stage `prompt` with prompt style own.toml");
        assert_eq!(StageRun::Any("window").to_string(), "the stage `window`");
    }

    #[test]
    fn words_in_a_text_are_no_choice() {
        let path = "/home/me/test command/cache folder";
        assert_eq!(Message::from(path).parts(), [MessagePart::Text(path.into())]);
        assert_ne!(Message::from("cache folder"), UserChoice::CacheFolder.into());
    }

    #[test]
    fn a_setting_is_its_key_and_stays_apart_from_its_value() {
        let ranker = MessagePart::Setting("ranker");
        let message = message!["choose ", ranker.clone(), " dense"];
        assert_eq!(message.to_string(), "choose ranker dense");
        let [_, of, MessagePart::Text(value)] = message.parts() else { panic!("{message:?}") };
        assert_eq!((of, &**value), (&ranker, " dense"));
        assert_ne!(Message::from("ranker"), ranker.into());
    }

    #[test]
    fn texts_in_a_row_are_one_part() {
        assert_eq!(message!["a", "b"], Message::from("ab"));
        assert_eq!(message!["a", ""], Message::from("a"));
        assert_eq!(
            Message::from("a").then("b").then(UserChoice::Journal),
            message!["ab", UserChoice::Journal]
        );
        assert_eq!(
            Message::join([message!["a"], UserChoice::Journal.into()], "b"),
            message!["ab", UserChoice::Journal]
        );
        assert_eq!(message!["a", MessagePart::Text("b".into())], Message::from("ab"));
        assert_eq!(Message::from(MessagePart::Text(String::new())), Message::default());
        assert_eq!(Message::join([], "b"), Message::default());
        assert_eq!(Message::from(""), Message::default());
        assert_eq!(message!["", UserChoice::Journal, ""], UserChoice::Journal.into());
    }
}
