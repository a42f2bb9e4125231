//! Lines of the prompt as candidates for the next line: their probabilities, and the replacement of their names.

use super::align::Alignment;
use super::corpus::Corpus;
use super::evidence::Evidence;
use super::history::History;
use super::lexer::{Core, Piece};

/// Replacements of a template's names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NameReplacements(Vec<(Core, Core)>);

impl NameReplacements {
    pub(super) fn get(&self, from: Core) -> Option<Core> {
        self.0.iter().find(|(core, _)| *core == from).map(|(_, to)| *to)
    }

    pub(super) fn set(&mut self, from: Core, to: Core) {
        match self.0.iter_mut().find(|(core, _)| *core == from) {
            Some(entry) => entry.1 = to,
            None => self.0.push((from, to)),
        }
    }

    /// Adds the replacements between two lines of the same shape; existing replacements stay.
    fn learn(&mut self, there: &[Piece], here: &[Piece]) {
        for (from, to) in there.iter().zip(here) {
            if self.get(from.core()).is_none() {
                self.set(from.core(), to.core());
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Template {
    pub line: usize,
    pub weight: f64,
    pub renaming: NameReplacements,
}

/// Share below which lines are not candidates.
const NEGLIGIBLE: f64 = 1e-5;

/// Number of lines before the hole whose names are compared.
const RENAMED_LINES: usize = 4;

/// Smallest similarity of the lines before at which their names are compared.
const RENAMED_SIMILARITY: f64 = 0.2;

/// Returns the candidates for the next line, with weights that sum to one.
pub(super) fn collect(corpus: &Corpus, alignment: &Alignment, history: &History) -> Vec<Template> {
    let evidence = Evidence::new(corpus, alignment, history);
    let logs = (0..corpus.lines.len()).map(|line| evidence.log_weight(line));
    let logs: Vec<f64> = logs.collect();
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| libm::exp(log - top)).collect();
    let least = NEGLIGIBLE * weights.iter().sum::<f64>();
    let kept = || weights.iter().enumerate().filter(|(_, weight)| **weight > least);
    let sum: f64 = kept().map(|(_, weight)| weight).sum();
    let template = |(line, weight): (usize, &f64)| Template {
        line,
        weight: weight / sum,
        renaming: rename(corpus, alignment, history, line),
    };
    kept().map(template).collect()
}

/// Returns the names that differ between the lines before the candidate and the lines before the hole, if the lines have the same shape
/// otherwise.
fn rename(
    corpus: &Corpus,
    alignment: &Alignment,
    history: &History,
    line: usize,
) -> NameReplacements {
    let mut renaming = NameReplacements::default();
    let mut there = line;
    for (back, here) in history.lines.iter().rev().take(RENAMED_LINES).enumerate() {
        let Some(before) = corpus.previous(there) else {
            break;
        };
        if back == 0 && alignment.similarities[before] < RENAMED_SIMILARITY {
            break;
        }
        there = before;
        let other = corpus.line_pieces(before);
        let pairs = || other.iter().zip(&here.pieces);
        if other.len() == here.pieces.len()
            && pairs().all(|(a, b)| corpus.same_shape(a.core(), b.core()))
        {
            renaming.learn(other, &here.pieces);
        }
    }
    renaming
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text and the weight of the likeliest line, and the sum of all weights.
    fn likeliest(prompt: &str) -> (String, f64, f64) {
        let corpus = Corpus::read(prompt);
        let alignment = Alignment::new(&corpus);
        let history = History::of_prompt(&corpus);
        let templates = collect(&corpus, &alignment, &history);
        let sum = templates.iter().map(|template| template.weight).sum();
        let best = templates.iter().max_by(|a, b| a.weight.total_cmp(&b.weight)).unwrap();
        let pieces = corpus.line_pieces(best.line).iter();
        (pieces.map(|piece| corpus.vocabulary.write(*piece)).collect(), best.weight, sum)
    }

    #[test]
    fn weights_sum_to_one_and_the_continuation_leads() {
        let (text, weight, sum) = likeliest("p = 1\nq = 2\nr(p)\n\nz()\n\np = 1\nq = 2\n");
        assert_eq!(text, "r(p)");
        assert!((sum - 1.0).abs() < 1e-12 && weight > 0.5);
    }

    #[test]
    fn a_closing_bracket_needs_an_open_one() {
        let open = "x = f(\n    1,\n)\ny = g()\nz = f(\n    1,\n";
        assert_eq!(likeliest(open).0, ")");
        let closed = "x = f(\n    1,\n)\ny = g()\nz = f(1)\n";
        assert_ne!(likeliest(closed).0, ")");
    }

    #[test]
    fn of_two_equal_continuations_the_better_block_counts_more() {
        let rule = format!("# {}", "-".repeat(50));
        let block = |line: &str| {
            format!(
                "# the below code fragment can be found in:\n# a.py\n{rule}\n# s = 1\n# {line}\n{rule}\n"
            )
        };
        // Blocks are written worst to best.
        let prompt = format!("{}{}\ns = 1\n", block("bad()"), block("good()"));
        assert_eq!(likeliest(&prompt).0, "good()");
    }

    #[test]
    fn names_are_learned_from_lines_of_one_shape() {
        let corpus = Corpus::read("a.x(k)\nb()\n\nnew.x(k)\n");
        let alignment = Alignment::new(&corpus);
        let history = History::of_prompt(&corpus);
        let renaming = rename(&corpus, &alignment, &history, 1);
        let core = |line: usize, at: usize| corpus.line_pieces(line)[at].core();
        assert_eq!(renaming.get(core(0, 0)), Some(core(2, 0)));
        assert_eq!(renaming.get(core(0, 4)), Some(core(0, 4)));
        assert_eq!(renaming.get(core(1, 0)), None);
    }
}
