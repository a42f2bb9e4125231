//! Fields of each kind of record, with their types, as tables. A row lists the names of fields with the same type, separated by
//! blanks.

use std::path::Path;

use repoformer_store::error::Result;
use repoformer_store::jsonl::Object;
use repoformer_store::schema::{Field, Type, may, must, require, type_of, unless};

use super::Format;
use super::kind::RecordKind;
use crate::completion::ROUNDED;
use crate::repository::record::{PACKAGE, RAW};
use Type::{
    Any, Between, Count, Either, Flag, Id, List, Map, MaybeEmpty, Number, Open, OrNull, Text,
};

/// Returns the type of a number from 0 to a maximum, which may be infinite.
const fn within(most: f64) -> Type {
    Between(0.0, most)
}

/// Logarithm of a probability.
const LOGARITHM: Type = Between(f64::NEG_INFINITY, ROUNDED);
/// Negative logarithm of a probability.
const BITS: Type = Between(-ROUNDED, f64::INFINITY);

/// Object with any fields.
const ANYTHING: Type = Open(&[]);

const TEXTS: Type = List(&Text);
const TEXT_OR_TEXTS: Type = Either(&[Text, TEXTS], "a string or a list of strings");

const SHOWN: Type =
    List(&Type::Object(&[must("retrieved_chunk filename", Text), may("score", Number)]));
const CROSS_FILE: Type =
    Either(&[Text, MaybeEmpty(&[may("text", Text), may("list", SHOWN)])], "a string or an object");

const REPO_EVAL_TASK: &[Field] = &[
    must("task_id ground_truth", Text),
    must("fpath_tuple", TEXTS),
    must("context_start_lineno", Count),
    unless("line_no", "lineno", Count),
    may("lineno", Count),
    // In function-level files.
    may("function_name", Text),
    // In tasks that `sample` drew.
    may("definitions", List(&Type::Object(DEFINITION))),
    may("commit", Type::Object(COMMIT)),
    // In DevEval and EvoCodeBench.
    may("type domain", Text),
    may("signature_position body_position", List(&Count)),
    may("dependency requirement", ANYTHING),
    may("tests", TEXTS),
    may("indent", Count),
    // In RepoExec.
    may("test_files", Map(&Text)),
    may("module project", Text),
];

const DEFINITION: &[Field] = &[must("path text", Text), must("line code_line", Count)];

const COMMIT: &[Field] = &[
    must("id parent date stratum", Text),
    must("names", Type::Object(&[must("file import repository nowhere", Count)])),
    may("similar", within(1.0)),
    may("in_history", Flag),
];

const REPO_EVAL: &[Field] = &[must("prompt", Text), must("metadata", Type::Object(REPO_EVAL_TASK))];

const REPOFORMER: &[Field] = &[
    must("prompt groundtruth", Text),
    may("right_context full_left_context full_right_context", Text),
    may("crossfile_context", CROSS_FILE),
    may("ranking_latency", Number),
    must("metadata", Type::Object(REPOFORMER_METADATA)),
];

const REPOFORMER_METADATA: &[Field] = &[
    must("task_id", Id),
    must("filepath", Text),
    may("repository url", Text),
    // Kept by conversions from RepoEval.
    may("context_start_lineno", Count),
    may("ground_truth", Text),
    may("lineno", Count),
];

const CROSS_CODE_EVAL: &[Field] = &[
    must("prompt groundtruth", Text),
    may("right_context full_left_context full_right_context", Text),
    may("crossfile_context", CROSS_FILE),
    must("metadata", Type::Object(CROSS_CODE_EVAL_METADATA)),
];

const CROSS_CODE_EVAL_METADATA: &[Field] = &[
    must("task_id", Id),
    must("repository file", Text),
    must("context_start_lineno groundtruth_start_lineno", Count),
    may("right_context_start_lineno", Count),
    // In instances that this program drew.
    may("kind", Text),
];

const CROSS_CODE_LONG_EVAL: &[Field] = &[
    must("prompt groundtruth", Text),
    may("right_context full_left_context full_right_context", Text),
    may("crossfile_context", CROSS_FILE),
    must("metadata", Type::Object(&[must("task_id", Id)])),
];

const REPO_BENCH: &[Field] = &[
    must("repo_name file_path", Text),
    must("context", List(&Type::Object(&[may("identifier", Text), must("path snippet", Text)]))),
    must("import_statement", Text),
    may("token_num", Count),
    must("cropped_code", Text),
    may("all_code", Text),
    must("next_line", Text),
    // -1 if the next line needs none of the snippets.
    may("gold_snippet_index", Number),
    may("created_at level", Text),
];

const RECC_EVAL: &[Field] = &[must("pkg fpath input gt", Text)];

/// Place of a window, or of a chunk, which has its number instead of a line.
const PLACE: &[Field] = &[
    must("fpath_tuple", TEXTS),
    unless("line_no", "chunk", Count),
    must("start_line_no end_line_no", Count),
    unless("window_size", "chunk", Count),
    must("repo", Text),
    unless("slice_size", "chunk", Count),
    may("chunk chunk_size chunk_stride", Count),
];

const WINDOW: &[Field] = &[may("context", Text), must("metadata", List(&Type::Object(PLACE)))];

const QUERY_PLACE: &[Field] = &[
    may("task_id", Text),
    may("row sample", Count),
    must("fpath_tuple", TEXTS),
    unless("line_no start_line_no end_line_no context_start_lineno window_size", "query", Count),
    may("slice_size", Count),
    must("repo", Text),
    // In queries that are not windows.
    may("query", Text),
    may("hole", Count),
    // The reference program writes all metadata of the task, and the text from which the window was made.
    may("ground_truth prediction", Text),
];

const QUERY_WINDOW: &[Field] = &[may("context", Text), must("metadata", Type::Object(QUERY_PLACE))];

/// Retrieved fragments, in the form of search results or of a style's prompts.
const HITS: Type = List(&Type::Object(&[
    may("context", Text),
    unless("metadata", "retrieved_chunk", List(&Type::Object(PLACE))),
    unless("sim_score", "retrieved_chunk", Number),
    may("overlap union", Count),
    may("retrieved_chunk filename", Text),
    may("score", Number),
]));

const RETRIEVAL: &[Field] = &[
    must("task_id", Text),
    may("row candidates", Count),
    must("query_window", Type::Object(QUERY_WINDOW)),
    must("top_k_context", HITS),
];

const PROMPT: &[Field] = &[
    must("prompt", Text),
    may("groundtruth", Text),
    may("metadata", Type::Object(PROMPT_METADATA)),
];

const PROMPT_METADATA: &[Field] = &[
    may("task_id", Id),
    may("ground_truth", Text),
    may("fpath_tuple", TEXTS),
    may("context_start_lineno line_no lineno", Count),
    // From the task, in formats other than RepoEval's.
    may("repository file filepath filename url function_name kind", Text),
    may("groundtruth_start_lineno right_context_start_lineno start_i end_i", Count),
    may("query_has_target", Flag),
    may("query_window", Type::Object(QUERY_WINDOW)),
    may("query", Type::Object(&[must("text", Text), must("hole", Count)])),
    may("top_k_context", HITS),
    may("shown_context", List(&OrNull(&Open(SHOWN_LINES)))),
    may("right_context prompt_style_digest", Text),
    may("window_size slice_size chunk_size chunk_stride sample row", Count),
    may("mode prompt_style", Text),
    may("prompt_tokens left_tokens right_tokens cross_file_tokens", Count),
    may("stop", TEXTS),
];

/// Lines that a prompt shows in place of a fragment.
const SHOWN_LINES: &[Field] =
    &[may("context retrieved_chunk", Text), may("start_line_no end_line_no", Count)];

/// Returns the type of a field of a prompt's metadata.
pub fn of_prompt_metadata(name: &str) -> Option<&'static Type> {
    type_of(PROMPT_METADATA, name)
}

/// Fields that any prediction, prompt or probability may have about how it was made.
pub const MADE: &[Field] =
    &[may("metadata", Open(PROMPT_METADATA)), may("asked", ASKED), may("next_token", TOKEN)];

/// Settings of a request, if known.
pub const ASKED: Type = Open(&[
    may("model api prompt_end instruction until", Text),
    may("max_tokens samples", Count),
    may("temperature", within(f64::INFINITY)),
    may("top_p", within(1.0)),
    may("seed", Number),
    may("stop", TEXT_OR_TEXTS),
]);

const TOKEN: Type =
    Open(&[may("text", Text), may("probability", within(1.0)), may("is_likeliest", Flag)]);

const REPO_CODER_PREDICTION: &[Field] = &[
    may("task_id", Id),
    may("prompt groundtruth", Text),
    may("metadata", Open(PROMPT_METADATA)),
    may("pred", TEXT_OR_TEXTS),
    must("choices", List(&Type::Object(CHOICE))),
    may("asked", ASKED),
    may("next_token", TOKEN),
    may("entropy", BITS),
    may("finish_reason", Text),
    may("error", Any),
];

const CHOICE: &[Field] = &[
    must("text", Text),
    may("index", Count),
    may("finish_reason written", Text),
    may("min_logprob mean_logprob", LOGARITHM),
    may("logprobs", ANYTHING),
];

const CROSS_CODE_EVAL_PREDICTION: &[Field] = &[
    may("task_id", Id),
    must("pred", TEXT_OR_TEXTS),
    may("choices", List(&Type::Object(CHOICE))),
    may("pred_raw prompt_used", Text),
    may("retrieval_prob", Number),
    may("do_retrieval", Either(&[Flag, Number], "a boolean or a number")),
    // CrossCodeEval's program repeats the whole task in its predictions.
    may("prompt groundtruth right_context full_left_context full_right_context", Text),
    may("crossfile_context", CROSS_FILE),
    may("ranking_latency", Number),
    may("metadata", Open(PROMPT_METADATA)),
    may("asked", ASKED),
    may("next_token", TOKEN),
    may("entropy", BITS),
    may("finish_reason", Text),
    may("error", Any),
];

const LM_EVAL_SAMPLE: &[Field] = &[
    must("doc_id", Count),
    must("doc", Open(LM_EVAL_DOCUMENT)),
    may("arguments", ANYTHING),
    must("resps", List(&Any)),
    may("filtered_resps", List(&Any)),
    may("target filter", Text),
    may("metrics", TEXTS),
    may("doc_hash prompt_hash target_hash", Text),
];

const LM_EVAL_DOCUMENT: &[Field] = &[
    must("task_id", Id),
    may("prompt withheld target", Text),
    may("metadata", Open(PROMPT_METADATA)),
];

const PAIR: &[Field] = &[
    must("task_id", Id),
    must("target", Text),
    must("pred", TEXT_OR_TEXTS),
    may("prompt language", Text),
    may("pred_ids target_ids", TEXTS),
];

const LABEL: &[Field] = &[
    must("prompt groundtruth right_context", Text),
    may("crossfile_context", CROSS_FILE),
    must("metadata", Type::Object(LABEL_METADATA)),
    // The released program writes percentages.
    may("es_infile es_rg1 em_infile em_rg1 pass_infile pass_rg1", within(100.0)),
    may("likelihood_infile likelihood_rg1 cc_probability", within(1.0)),
    may("min_logprob", LOGARITHM),
    may("entropy", BITS),
    may("generation_model metric fragments", Text),
    may("label cc_likeliest", Flag),
    may("threshold", Number),
    may("fragment_gains", List(&Type::Object(FRAGMENT_GAIN))),
];

const FRAGMENT_GAIN: &[Field] = &[must("shown", List(&Count)), may("gain", Number)];

const LABEL_METADATA: &[Field] = &[
    must("task_id", Id),
    must("filename", Text),
    must("start_i end_i", Count),
    may("row context_start_lineno", Count),
    may("kind", Text),
    may("query_has_target", Flag),
    may("instance", Text),
    may("instance_row", Count),
    may("shown", List(&Count)),
];

const BATCH_REQUEST: &[Field] = &[
    must("custom_id method url", Text),
    // Servers accept additional fields.
    must("body", ANYTHING),
];

const BATCH_RESPONSE: &[Field] = &[
    may("id", Text),
    must("custom_id", Text),
    may("response", Open(&[may("status_code", Count), may("body", ANSWER)])),
    may("error", Any),
];

/// Answer of a server, which may not be a completion.
const ANSWER: Type = Either(&[Open(&[may("choices", CHOICES)]), Any], "a value");
const CHOICES: Type =
    Either(&[List(&Either(&[Open(&[may("index", Count)]), Any], "a value")), Any], "a value");

const BEIR_DOCUMENT: &[Field] = &[
    must("_id", Id),
    may("title", Text),
    must("text", Text),
    may("metadata", ANYTHING),
    // In texts to be embedded.
    may("digest", Text),
];

/// Further fields are objects of numbers, named after metrics.
const SCORE: &[Field] = &[
    must("task_id", Id),
    may("row", Count),
    may("repository target_digest predictions", Text),
    may("statuses", TEXTS),
    may("metadata", ANYTHING),
    may("asked", ASKED),
    may("log_probability", LOGARITHM),
    may("bits_per_character", BITS),
    may("characters", Count),
];

const LATENCY: &[Field] = &[
    must("task_id", Id),
    may("row sample at_once", Count),
    may("retrieval_ms generation_ms decision_ms", within(f64::INFINITY)),
    may("record_checksum", Text),
    may("without_embedding", Flag),
];

const SEQUENCE: &[Field] = &[
    must("input_ids", List(&Count)),
    must("attention_mask labels eval_mask gen_mask loss_weights", List(&Number)),
    may("positive", Flag),
    may("es_infile es_rg1", Number),
    may("task_id repository text", Text),
];

const DEV_EVAL: &[Field] = &[
    must("namespace type completion_path", Text),
    // EvoCodeBench has no project path, but a domain.
    may("project_path domain", Text),
    must("signature_position body_position", List(&Count)),
    may(
        "dependency",
        Type::Object(&[may("intra_class intra_file", TEXTS), must("cross_file", TEXTS)]),
    ),
    may("requirement", Type::Object(&[may("Functionality Arguments", Text)])),
    must("tests", TEXTS),
    must("indent", Count),
];

const REPO_EXEC: &[Field] = &[
    must("problem_ids", Count),
    must("project focal_function module code entry_point test", Text),
    may("test_list", TEXTS),
];

const DEV_EVAL_COMPLETION: &[Field] = &[must("namespace completion", Text), may("idx", Count)];

impl RecordKind {
    /// Returns the fields of this kind of record.
    pub fn fields(self) -> &'static [Field] {
        match self {
            RecordKind::Task(Format::RepoEval) => REPO_EVAL,
            RecordKind::Task(Format::Repoformer) => REPOFORMER,
            RecordKind::Task(Format::CrossCodeEval) => CROSS_CODE_EVAL,
            RecordKind::Task(Format::CrossCodeLongEval) => CROSS_CODE_LONG_EVAL,
            RecordKind::Task(Format::RepoBench) => REPO_BENCH,
            RecordKind::Task(Format::ReccEval) => RECC_EVAL,
            RecordKind::Window => WINDOW,
            RecordKind::QueryWindow => QUERY_WINDOW,
            RecordKind::Retrieval => RETRIEVAL,
            RecordKind::Prompt => PROMPT,
            RecordKind::RepoCoderPrediction => REPO_CODER_PREDICTION,
            RecordKind::CrossCodeEvalPrediction => CROSS_CODE_EVAL_PREDICTION,
            RecordKind::LmEvalSample => LM_EVAL_SAMPLE,
            RecordKind::Pair => PAIR,
            RecordKind::Score => SCORE,
            RecordKind::Package => PACKAGE,
            RecordKind::RawRepository => RAW,
            RecordKind::Label => LABEL,
            RecordKind::BatchRequest => BATCH_REQUEST,
            RecordKind::BatchResponse => BATCH_RESPONSE,
            RecordKind::BeirDocument | RecordKind::BeirQuery => BEIR_DOCUMENT,
            RecordKind::Latency => LATENCY,
            RecordKind::Sequence => SEQUENCE,
            RecordKind::DevEval => DEV_EVAL,
            RecordKind::DevEvalCompletion => DEV_EVAL_COMPLETION,
            RecordKind::RepoExec => REPO_EXEC,
        }
    }

    /// Checks that a record at a line of a file has the fields of this kind, each with the right type.
    ///
    /// # Errors
    /// A field is missing, of another type, or out of its range.
    pub fn check(self, path: &Path, line: usize, record: &Object) -> Result<()> {
        require(path, line, self.fields(), record)
    }
}
