//! Parameters of the model.

/// Parameters of the model.
///
/// None of them contains anything about a text: they weigh the evidence in a prompt. The defaults
/// were tuned on single lines of three Python repositories (diffusers, fortuna, vizier), for similarity between probable
/// lines and the true one, and confirmed on two others (evaluate, nerfstudio).
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Bytes of the prompt that are read, counted from its end; bounds the work.
    pub max_prompt_bytes: usize,
    /// Tokens of a line that are read or written.
    pub max_line_tokens: usize,
    /// Lines before the hole that are compared with the lines before each candidate.
    pub history_lines: usize,
    /// Alignment of the lines before the hole with the lines before each candidate.
    pub alignment: AlignmentParameters,
    /// Weights of the evidence for a line of the prompt as the next line.
    pub line_weights: LineWeights,
    /// Number of lines before the hole within which a candidate counts as a repetition.
    pub repeat_window: usize,
    /// Share of a name's votes for its replacement in the lines before.
    pub substitution: f64,
    /// Factor for each name in which a draft differs from a line that it otherwise follows.
    pub departure: f64,
    /// Blending of short contexts.
    pub contexts: ContextParameters,
    /// Search for the line to write.
    pub search: SearchParameters,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            max_prompt_bytes: 1 << 17,
            max_line_tokens: 96,
            history_lines: 20,
            alignment: AlignmentParameters::default(),
            line_weights: LineWeights::default(),
            repeat_window: 11,
            substitution: 0.9,
            departure: 0.17,
            contexts: ContextParameters::default(),
            search: SearchParameters::default(),
        }
    }
}

/// The alignment of the lines before the hole with lines of the prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct AlignmentParameters {
    /// Cost of a pair of lines without any agreement.
    pub mismatch: f64,
    /// Information (in nats, summed over tokens) from which a line has full weight.
    pub full_information: f64,
    /// Power of a pair's similarity: above 1, half-similar lines count less than half.
    pub power: f64,
    /// Factor per line of distance to the hole.
    pub decay: f64,
    /// Cost of a line that appears only before the hole.
    pub inserted: f64,
    /// Cost of a line that appears only before the candidate.
    pub skipped: f64,
}

impl Default for AlignmentParameters {
    fn default() -> Self {
        Self {
            mismatch: 0.15,
            full_information: 6.8,
            power: 1.29,
            decay: 0.7,
            inserted: 0.04,
            skipped: 0.4,
        }
    }
}

/// Log-linear weights of the evidence for a line of the prompt as the next line.
#[derive(Clone, Debug, PartialEq)]
pub struct LineWeights {
    /// Score of the alignment that ends before the line.
    pub alignment: f64,
    /// Similarity of the line before it to the last line.
    pub similar_last: f64,
    /// Similarity of the line two before it to the last line but one.
    pub similar_second: f64,
    /// The line before it equals the last line.
    pub equal_last: f64,
    /// The two lines before it equal the last two lines.
    pub equal_second: f64,
    /// The lines before end in the same token.
    pub last_token: f64,
    /// The lines before begin with the same token.
    pub first_token: f64,
    /// The lines before begin with the same two tokens.
    pub first_two_tokens: f64,
    /// Logarithm of 1 + number of tokens that the lines before have in common at their ends.
    pub suffix: f64,
    /// Logarithm of 1 + number of such tokens, with all names considered equal.
    pub suffix_shape: f64,
    /// Agrees with the hole in whether a blank line precedes.
    pub blank: f64,
    /// Differs from the hole in being within a string of several lines.
    pub text_state: f64,
    /// Differs from the hole in being within brackets.
    pub bracket_state: f64,
    /// Difference in open brackets, up to 3.
    pub depth: f64,
    /// Appears among the last lines already.
    pub repeat_near: f64,
    /// Equals the last line.
    pub repeat_last: f64,
    /// The line before is indented, level or outdented like the last line.
    pub indent_step: f64,
    /// The line before has the indentation of the last line.
    pub same_indent: f64,
    /// Would begin left of the margin.
    pub outdent_past: f64,
    /// Belongs to the current file.
    pub own: f64,
    /// Logarithm of its distance to the hole, in the current file.
    pub distance: f64,
    /// Number of blocks between its block and the last.
    pub rank: f64,
    /// Share of its names that the current file does not contain.
    pub foreign_names: f64,
    /// Begins its source, so the text before it is unknown.
    pub start_of_source: f64,
}

impl Default for LineWeights {
    fn default() -> Self {
        Self {
            alignment: 2.746,
            similar_last: 0.435,
            similar_second: 0.060,
            equal_last: -0.847,
            equal_second: 1.088,
            last_token: 0.798,
            first_token: 0.975,
            first_two_tokens: 0.416,
            suffix: 0.399,
            suffix_shape: 0.569,
            blank: 2.787,
            text_state: -1.985,
            bracket_state: -1.565,
            depth: -0.943,
            repeat_near: -0.186,
            repeat_last: 0.459,
            indent_step: -0.252,
            same_indent: 1.128,
            outdent_past: 0.341,
            own: 1.231,
            distance: -0.569,
            rank: -0.193,
            foreign_names: -0.919,
            start_of_source: 0.811,
        }
    }
}

/// Blending of contexts within a line.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextParameters {
    /// Weight of the short contexts against lines followed from their start.
    pub escape: f64,
    /// Growth of a position's weight, as exponent, per token of matching context.
    pub growth: f64,
    /// Longest context, in tokens.
    pub longest: usize,
    /// Logarithm of the factor for the current file.
    pub own: f64,
    /// Power with which the weight falls with distance in the current file.
    pub distance: f64,
    /// Logarithm of the factor per block of distance to the last.
    pub rank: f64,
    /// Logarithm of the factor for each point of alignment of a position's line.
    pub alignment: f64,
    /// Number of positions of one token that are considered, the nearest first; bounds the work.
    pub max_places: usize,
}

impl Default for ContextParameters {
    fn default() -> Self {
        Self {
            escape: 0.2,
            growth: 1.8,
            longest: 7,
            own: 0.02,
            distance: 0.24,
            rank: -0.3,
            alignment: 0.3,
            max_places: 512,
        }
    }
}

/// The search for the line to write.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchParameters {
    /// Number of drafts extended at a time.
    pub beam: usize,
    /// Number of tokens tried after each draft.
    pub branch: usize,
    /// Number of lines of the prompt that are candidates.
    pub lines: usize,
    /// Share of these lines against the drafts of the beam.
    pub lines_share: f64,
    /// Flattens (above 1) or sharpens the candidates' probabilities; positive.
    pub temperature: f64,
    /// Gain of an exact match in addition to its similarity.
    pub exact_bonus: f64,
}

impl Default for SearchParameters {
    fn default() -> Self {
        Self {
            beam: 6,
            branch: 5,
            lines: 24,
            lines_share: 0.7,
            temperature: 1.1,
            exact_bonus: 0.05,
        }
    }
}
