//! What the commands can be told that ask a model on a server.

use std::path::PathBuf;

use clap::Args;

/// How a server's model is asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --endpoint")]
pub(crate) struct ServerArgs {
    /// completions (/v1/completions) or chat (/v1/chat/completions) [default: completions]
    #[arg(long, value_name = "NAME")]
    pub(crate) api: Option<String>,
    /// Requests at a time [default: 4]
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: Option<usize>,
    /// Completions of each prompt [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) samples: Option<usize>,
    /// 0: the likeliest token at each step [default: 0]
    #[arg(long, value_name = "T")]
    pub(crate) temperature: Option<f64>,
    /// Share of probability that tokens are drawn from [default: the server's]
    #[arg(long, value_name = "P")]
    pub(crate) top_p: Option<f64>,
    /// A text that ends a completion, beside those of the prompt's style (repeatable)
    #[arg(long, value_name = "TEXT")]
    pub(crate) stop: Vec<String>,
    /// White space at the end of a prompt: before-whitespace (kept back, and dropped from what is written), as-is
    /// [default: before-whitespace]
    #[arg(long, value_name = "HOW")]
    pub(crate) prompt_end: Option<String>,
    /// What a chat model is told first [default: to write what comes next, and nothing else]
    #[arg(long, value_name = "TEXT")]
    pub(crate) instruction: Option<String>,
    /// Seconds that one request may take [default: 600]
    #[arg(long, value_name = "S")]
    pub(crate) request_timeout: Option<f64>,
    /// Ask again for what failed
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// Where answers are kept as they come [default: journal/MODEL.jsonl in the cache]
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
}

impl ServerArgs {
    /// A flag that was given, for nothing where no server is asked.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            (self.api.is_some(), "--api"),
            (self.concurrency.is_some(), "--concurrency"),
            (self.samples.is_some(), "--samples"),
            (self.temperature.is_some(), "--temperature"),
            (self.top_p.is_some(), "--top-p"),
            (!self.stop.is_empty(), "--stop"),
            (self.prompt_end.is_some(), "--prompt-end"),
            (self.instruction.is_some(), "--instruction"),
            (self.request_timeout.is_some(), "--request-timeout"),
            (self.retry_failed, "--retry-failed"),
            (self.journal.is_some(), "--journal"),
        ];
        let given = flags.into_iter().find(|(is_given, _)| *is_given);
        given.map(|(_, name)| name)
    }
}

/// The probability of one token.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --endpoint")]
pub(crate) struct ProbabilityArgs {
    /// Instead of completing, ask how probable it is that this token comes next (`<cc>`: does the model want cross-file
    /// context?)
    #[arg(long, value_name = "TOKEN", conflicts_with_all = [
        "samples", "temperature", "top_p", "seed", "api", "stop", "prompt_end", "instruction", "max_lines", "write_batch", "read_batch",
    ])]
    pub(crate) probability_of: Option<String>,
    /// Cut prompts behind the last such text first, or add it (`<eof>`)
    #[arg(long, value_name = "TEXT", requires = "probability_of")]
    pub(crate) after: Option<String>,
    /// The token's number in the model's vocabulary [default: what the server's /tokenize says]
    #[arg(long, value_name = "N", requires = "probability_of")]
    pub(crate) token_id: Option<u64>,
}
