//! Lists that are gone through again: parameters, then the attributes they are stored in, then
//! the arguments they are passed as.

use super::corpus::Corpus;
use super::lexer::Core;
use super::parameters::Parameters;
use super::templates::Template;

/// Adds the last line with its name replaced by the names that followed that name before.
pub(super) fn add(corpus: &Corpus, templates: &mut Vec<Template>, p: &Parameters) {
    let Some(last) = corpus.lines.len().checked_sub(1) else {
        return;
    };
    if corpus.lines[last].source != corpus.blocks || p.successor <= 0.0 {
        return;
    }
    let Some(slot) = first_name(corpus, last) else {
        return;
    };
    let mut found: Vec<(Core, f64)> = Vec::new();
    for &place in &corpus.places[slot as usize] {
        let line = corpus.line_of[place as usize] as usize;
        if line >= last {
            continue;
        }
        let Some(next) = following(corpus, place as usize, line) else {
            continue;
        };
        if next == slot {
            continue;
        }
        match found.iter_mut().find(|(core, _)| *core == next) {
            Some(entry) => entry.1 += 1.0,
            None => found.push((next, 1.0)),
        }
    }
    let sum: f64 = found.iter().map(|(_, votes)| votes).sum();
    if sum == 0.0 {
        return;
    }
    let share = p.successor * sum / (sum + 1.0);
    for template in templates.iter_mut() {
        template.weight *= 1.0 - share;
    }
    for (core, votes) in found {
        let weight = share * votes / sum;
        templates.push(Template {
            line: last,
            weight,
            renaming: vec![(slot, core)],
        });
    }
}

fn first_name(corpus: &Corpus, line: usize) -> Option<Core> {
    let mut pieces = corpus.line_pieces(line).iter().map(|piece| piece.core());
    pieces.find(|core| corpus.vocabulary.is_identifier(*core))
}

/// The name after a name in a list: on the same line, or at the start of the next.
fn following(corpus: &Corpus, place: usize, line: usize) -> Option<Core> {
    let is_first = first_name(corpus, line) == Some(corpus.pieces[place].core());
    let end = corpus.lines[line].end;
    let comma = |at: usize| corpus.vocabulary.text(corpus.pieces[at].core()) == ",";
    if place + 2 < end
        && comma(place + 1)
        && corpus
            .vocabulary
            .is_identifier(corpus.pieces[place + 2].core())
    {
        return Some(corpus.pieces[place + 2].core());
    }
    let next = line + 1;
    let same = next < corpus.lines.len()
        && corpus.lines[next].source == corpus.lines[line].source
        && corpus.lines[next].indent == corpus.lines[line].indent;
    if is_first && same {
        first_name(corpus, next)
    } else {
        None
    }
}
