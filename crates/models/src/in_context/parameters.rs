//! Parameters of the model.
//!
//! None of them depends on a particular text: they weigh the evidence in a prompt. They were tuned on single lines of three Python
//! repositories (diffusers, fortuna, vizier), for similarity between probable lines and the true line, and confirmed on two others
//! (evaluate, nerfstudio).

/// Number of bytes read at the end of the prompt; bounds the work.
pub(super) const MAX_PROMPT_BYTES: usize = 1 << 17;
/// Number of lines of a given text for which the prompt's lines are weighed; further lines are spelled. Bounds the work.
pub(super) const MAX_TARGET_LINES: usize = 100;
/// Maximum number of tokens read or written per line.
pub(super) const MAX_LINE_TOKENS: usize = 96;
/// Number of lines before the hole that are compared with the lines before each candidate.
pub(super) const HISTORY_LINES: usize = 20;
/// Number of lines before the hole within which a candidate counts as a repetition.
pub(super) const REPEAT_WINDOW: usize = 11;
/// Share of a name's votes that goes to its replacement in the preceding lines.
pub(super) const SUBSTITUTION: f64 = 0.9;
/// Factor for each name in which a draft differs from a line that it otherwise follows.
pub(super) const DEPARTURE: f64 = 0.17;

/// The alignment of the lines before the hole with lines of the prompt.
pub(super) mod alignment {
    /// Cost of a pair of lines without any agreement.
    pub(crate) const MISMATCH: f64 = 0.15;
    /// Information (in nats, summed over tokens) at which a line has full weight.
    pub(crate) const FULL_INFORMATION: f64 = 6.8;
    /// Exponent of a pair's similarity: above 1, half-similar lines count less than half.
    pub(crate) const POWER: f64 = 1.29;
    /// Factor per line of distance to the hole.
    pub(crate) const DECAY: f64 = 0.7;
    /// Cost of a line that appears only before the hole.
    pub(crate) const INSERTED: f64 = 0.04;
    /// Cost of a line that appears only before the candidate.
    pub(crate) const SKIPPED: f64 = 0.4;
}

/// Log-linear weights of the evidence for a line of the prompt as the next line.
pub(super) mod line {
    /// Score of the alignment that ends before the line.
    pub(crate) const ALIGNMENT: f64 = 2.746;
    /// Similarity of the line before it to the last line.
    pub(crate) const SIMILAR_LAST: f64 = 0.435;
    /// Similarity of the line two before it to the last line but one.
    pub(crate) const SIMILAR_SECOND: f64 = 0.060;
    /// The line before it equals the last line.
    pub(crate) const EQUAL_LAST: f64 = -0.847;
    /// The two lines before it equal the last two lines.
    pub(crate) const EQUAL_SECOND: f64 = 1.088;
    /// The lines before end in the same token.
    pub(crate) const LAST_TOKEN: f64 = 0.798;
    /// The lines before begin with the same token.
    pub(crate) const FIRST_TOKEN: f64 = 0.975;
    /// The lines before begin with the same two tokens.
    pub(crate) const FIRST_TWO_TOKENS: f64 = 0.416;
    /// Logarithm of 1 + number of tokens that the lines before have in common at their ends.
    pub(crate) const SUFFIX: f64 = 0.399;
    /// Logarithm of 1 + number of such tokens, with all names considered equal.
    pub(crate) const SUFFIX_SHAPE: f64 = 0.569;
    /// Agrees with the hole on whether a blank line precedes it.
    pub(crate) const BLANK: f64 = 2.787;
    /// Differs from the hole in whether it is within a string of several lines.
    pub(crate) const TEXT_STATE: f64 = -1.985;
    /// Differs from the hole in whether it is within brackets.
    pub(crate) const BRACKET_STATE: f64 = -1.565;
    /// Difference in open brackets, up to 3.
    pub(crate) const DEPTH: f64 = -0.943;
    /// Occurs among the last lines already.
    pub(crate) const REPEAT_NEAR: f64 = -0.186;
    /// Equals the last line.
    pub(crate) const REPEAT_LAST: f64 = 0.459;
    /// The line before differs in indentation from its predecessor in the same direction as the last line.
    pub(crate) const INDENT_STEP: f64 = -0.252;
    /// The line before has the same indentation as the last line.
    pub(crate) const SAME_INDENT: f64 = 1.128;
    /// Would begin left of the margin.
    pub(crate) const OUTDENT_PAST: f64 = 0.341;
    /// Belongs to the current file.
    pub(crate) const OWN: f64 = 1.231;
    /// Logarithm of its distance to the hole, in the current file.
    pub(crate) const DISTANCE: f64 = -0.569;
    /// Number of blocks between its block and the last.
    pub(crate) const RANK: f64 = -0.193;
    /// Share of its names that the current file does not contain.
    pub(crate) const FOREIGN_NAMES: f64 = -0.919;
    /// Begins its source, so the text before it is unknown.
    pub(crate) const START_OF_SOURCE: f64 = 0.811;
}

/// Blending of contexts within a line.
pub(super) mod context {
    /// Weight of the short contexts, relative to lines followed from their start.
    pub(crate) const ESCAPE: f64 = 0.2;
    /// Growth of a position's weight, as exponent, per token of matching context.
    pub(crate) const GROWTH: f64 = 1.8;
    /// Longest context, in tokens.
    pub(crate) const LONGEST: usize = 7;
    /// Logarithm of the factor for the current file.
    pub(crate) const OWN: f64 = 0.02;
    /// Exponent with which the weight falls with distance in the current file.
    pub(crate) const DISTANCE: f64 = 0.24;
    /// Logarithm of the factor per block of distance to the last.
    pub(crate) const RANK: f64 = -0.3;
    /// Logarithm of the factor for each point of alignment of a position's line.
    pub(crate) const ALIGNMENT: f64 = 0.3;
    /// Number of positions of one token that are considered, nearest first; bounds the work.
    pub(crate) const MAX_PLACES: usize = 512;
}

/// The search for the line to write.
pub(super) mod search {
    /// Number of drafts extended at a time.
    pub(crate) const BEAM: usize = 6;
    /// Number of tokens tried after each draft.
    pub(crate) const BRANCH: usize = 5;
    /// Number of lines of the prompt that are candidates.
    pub(crate) const LINES: usize = 24;
    /// Share of these lines, relative to the drafts of the beam.
    pub(crate) const LINES_SHARE: f64 = 0.7;
    /// Flattens (above 1) or sharpens the candidates' probabilities; positive.
    pub(crate) const TEMPERATURE: f64 = 1.1;
    /// Gain of an exact match in addition to its similarity.
    pub(crate) const EXACT_BONUS: f64 = 0.05;
}

/// Shares of text that the model cannot predict itself, for the probability of a given text.
pub(super) mod likelihood {
    /// Share of tokens that are spelled.
    pub(crate) const SPELLED: f64 = 0.1;
    /// Share of lines that are written byte by byte.
    pub(crate) const RAW: f64 = 0.05;
    /// Share of probability that is spread evenly over all indentations.
    pub(crate) const ANY_INDENT: f64 = 0.02;
    /// Probability that a spelled token ends after a byte.
    pub(crate) const END: f64 = 0.1;
    /// Share of bytes that are not printable ASCII, when nothing else is known.
    pub(crate) const UNPRINTED: f64 = 0.03;
    /// Maximum number of bytes from which a byte is predicted; they fit into 32 bits.
    pub(crate) const CONTEXT: usize = 4;
}
