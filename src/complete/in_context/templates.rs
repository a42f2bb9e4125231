//! Lines of the prompt as candidates for the next line: how likely each is, and how its names
//! translate to the place of the hole.

use super::align::Alignment;
use super::corpus::Corpus;
use super::features::Context;
use super::lexer::{Core, Piece};
use super::parameters::Parameters;

/// Which name of a template stands for which name here; few, so a list.
pub(super) type Renaming = Vec<(Core, Core)>;

#[derive(Clone, Debug)]
pub(super) struct Template {
    pub line: usize,
    pub weight: f64,
    pub renaming: Renaming,
}

/// The lines before the hole, oldest first: of the prompt and then those written.
#[derive(Debug)]
pub(super) struct History<'a> {
    pub lines: Vec<&'a [Piece]>,
    pub indents: Vec<usize>,
    pub blank_end: bool,
    pub state: super::state::State,
    /// How many of them were written by the model.
    pub written: usize,
}

/// All lines as templates, their weights summing to one.
pub(super) fn collect(
    corpus: &Corpus,
    alignment: &Alignment,
    history: &History<'_>,
    p: &Parameters,
) -> Vec<Template> {
    let mut own_cores = vec![false; corpus.vocabulary.len()];
    let own = corpus
        .lines
        .partition_point(|line| line.source < corpus.blocks);
    for piece in &corpus.pieces[corpus
        .lines
        .get(own)
        .map_or(corpus.pieces.len(), |l| l.start)..]
    {
        own_cores[piece.core() as usize] = true;
    }
    let context = Context {
        corpus,
        alignment,
        history,
        own_cores,
        repeat_window: p.repeat_window,
    };
    let mut templates: Vec<Template> = (0..corpus.lines.len())
        .map(|line| Template {
            line,
            weight: context
                .features(line)
                .iter()
                .zip(&p.line_weights)
                .map(|(f, w)| f * w)
                .sum(),
            renaming: Vec::new(),
        })
        .collect();
    let top = templates
        .iter()
        .map(|t| t.weight)
        .fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for template in &mut templates {
        template.weight = (template.weight - top).exp();
        sum += template.weight;
    }
    templates.retain(|template| template.weight > 1e-5 * sum);
    for template in &mut templates {
        template.weight /= sum;
        template.renaming = rename(corpus, alignment, history, template.line);
    }
    templates
}

/// Names that differ between the lines before the template and those before the hole, where the
/// two are otherwise of one shape.
fn rename(corpus: &Corpus, alignment: &Alignment, history: &History<'_>, line: usize) -> Renaming {
    let mut renaming = Renaming::new();
    let mut there = line;
    for (back, here) in history.lines.iter().rev().take(4).enumerate() {
        let Some(before) = corpus.previous(there) else {
            break;
        };
        there = before;
        if back == 0 && alignment.similarities[before] < 0.2 {
            break;
        }
        let other = corpus.line_pieces(before);
        let same = other.len() == here.len()
            && other
                .iter()
                .zip(*here)
                .all(|(a, b)| corpus.same_shape(a.core(), b.core()));
        if !same {
            continue;
        }
        for (a, b) in other.iter().zip(*here) {
            if !renaming.iter().any(|(from, _)| *from == a.core()) {
                renaming.push((a.core(), b.core()));
            }
        }
    }
    renaming
}

pub(super) fn dump(
    corpus: &Corpus,
    alignment: &Alignment,
    history: &History<'_>,
    p: &Parameters,
) -> Vec<(String, [f64; super::features::FEATURES])> {
    let mut own_cores = vec![false; corpus.vocabulary.len()];
    let own = corpus
        .lines
        .partition_point(|line| line.source < corpus.blocks);
    for piece in &corpus.pieces[corpus
        .lines
        .get(own)
        .map_or(corpus.pieces.len(), |l| l.start)..]
    {
        own_cores[piece.core() as usize] = true;
    }
    let context = Context {
        corpus,
        alignment,
        history,
        own_cores,
        repeat_window: p.repeat_window,
    };
    (0..corpus.lines.len())
        .map(|l| {
            let r = rename(corpus, alignment, history, l);
            let text: String = corpus
                .line_pieces(l)
                .iter()
                .map(|q| {
                    corpus.vocabulary.write(
                        r.iter()
                            .find(|x| x.0 == q.core())
                            .map_or(*q, |x| q.with_core(x.1)),
                    )
                })
                .collect();
            (text, context.features(l))
        })
        .collect()
}
