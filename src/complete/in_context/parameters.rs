//! Parameters of the model.

/// Declares a struct of parameters with their default values.
macro_rules! parameters {
    ($(#[$docs:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr,)* }) => {
        $(#[$docs])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}

parameters! {
    /// Parameters of the model.
    ///
    /// None of them contains anything about a text: they weigh the evidence in a prompt. The defaults
    /// were tuned on single lines of three Python repositories (diffusers, fortuna, vizier), for similarity between probable
    /// lines and the true one, and confirmed on two others (evaluate, nerfstudio).
    Parameters {
        /// Bytes of the prompt that are read, counted from its end; bounds the work.
        max_prompt_bytes: usize = 1 << 17,
        /// Tokens of a line that are read or written.
        max_line_tokens: usize = 96,
        /// Lines before the hole that are compared with the lines before each candidate.
        history_lines: usize = 20,
        /// Alignment of the lines before the hole with the lines before each candidate.
        alignment: AlignmentParameters = Default::default(),
        /// Weights of the evidence for a line of the prompt as the next line.
        line_weights: LineWeights = Default::default(),
        /// Number of lines before the hole within which a candidate counts as a repetition.
        repeat_window: usize = 11,
        /// Share of a name's votes for its replacement in the lines before.
        substitution: f64 = 0.9,
        /// Factor for each name in which a draft differs from a line that it otherwise follows.
        departure: f64 = 0.17,
        /// Blending of short contexts.
        contexts: ContextParameters = Default::default(),
        /// Search for the line to write.
        search: SearchParameters = Default::default(),
    }
}

parameters! {
    /// The alignment of the lines before the hole with lines of the prompt.
    AlignmentParameters {
        /// Cost of a pair of lines without any agreement.
        mismatch: f64 = 0.15,
        /// Information (in nats, summed over tokens) from which a line has full weight.
        full_information: f64 = 6.8,
        /// Power of a pair's similarity: above 1, half-similar lines count less than half.
        power: f64 = 1.29,
        /// Factor per line of distance to the hole.
        decay: f64 = 0.7,
        /// Cost of a line that appears only before the hole.
        inserted: f64 = 0.04,
        /// Cost of a line that appears only before the candidate.
        skipped: f64 = 0.4,
    }
}

parameters! {
    /// Log-linear weights of the evidence for a line of the prompt as the next line.
    LineWeights {
        /// Score of the alignment that ends before the line.
        alignment: f64 = 2.746,
        /// Similarity of the line before it to the last line.
        similar_last: f64 = 0.435,
        /// Similarity of the line two before it to the last line but one.
        similar_second: f64 = 0.060,
        /// The line before it equals the last line.
        equal_last: f64 = -0.847,
        /// The two lines before it equal the last two lines.
        equal_second: f64 = 1.088,
        /// The lines before end in the same token.
        last_token: f64 = 0.798,
        /// The lines before begin with the same token.
        first_token: f64 = 0.975,
        /// The lines before begin with the same two tokens.
        first_two_tokens: f64 = 0.416,
        /// Logarithm of 1 + number of tokens that the lines before have in common at their ends.
        suffix: f64 = 0.399,
        /// Logarithm of 1 + number of such tokens, with all names considered equal.
        suffix_shape: f64 = 0.569,
        /// Agrees with the hole in whether a blank line precedes.
        blank: f64 = 2.787,
        /// Differs from the hole in being within a string of several lines.
        text_state: f64 = -1.985,
        /// Differs from the hole in being within brackets.
        bracket_state: f64 = -1.565,
        /// Difference in open brackets, up to 3.
        depth: f64 = -0.943,
        /// Appears among the last lines already.
        repeat_near: f64 = -0.186,
        /// Equals the last line.
        repeat_last: f64 = 0.459,
        /// The line before is indented, level or outdented like the last line.
        indent_step: f64 = -0.252,
        /// The line before has the indentation of the last line.
        same_indent: f64 = 1.128,
        /// Would begin left of the margin.
        outdent_past: f64 = 0.341,
        /// Belongs to the current file.
        own: f64 = 1.231,
        /// Logarithm of its distance to the hole, in the current file.
        distance: f64 = -0.569,
        /// Number of blocks between its block and the last.
        rank: f64 = -0.193,
        /// Share of its names that the current file does not contain.
        foreign_names: f64 = -0.919,
        /// Begins its source, so the text before it is unknown.
        start_of_source: f64 = 0.811,
    }
}

parameters! {
    /// Blending of contexts within a line.
    ContextParameters {
        /// Weight of the short contexts against lines followed from their start.
        escape: f64 = 0.2,
        /// Growth of a position's weight, as exponent, per token of matching context.
        growth: f64 = 1.8,
        /// Longest context, in tokens.
        longest: usize = 7,
        /// Logarithm of the factor for the current file.
        own: f64 = 0.02,
        /// Power with which the weight falls with distance in the current file.
        distance: f64 = 0.24,
        /// Logarithm of the factor per block of distance to the last.
        rank: f64 = -0.3,
        /// Logarithm of the factor for each point of alignment of a position's line.
        alignment: f64 = 0.3,
        /// Number of positions of one token that are considered, the nearest first; bounds the work.
        max_places: usize = 512,
    }
}

parameters! {
    /// The search for the line to write.
    SearchParameters {
        /// Number of drafts extended at a time.
        beam: usize = 6,
        /// Number of tokens tried after each draft.
        branch: usize = 5,
        /// Number of lines of the prompt that are candidates.
        lines: usize = 24,
        /// Share of these lines against the drafts of the beam.
        lines_share: f64 = 0.7,
        /// Flattens (above 1) or sharpens the candidates' probabilities; positive.
        temperature: f64 = 1.1,
        /// Gain of an exact match in addition to its similarity.
        exact_bonus: f64 = 0.05,
    }
}
