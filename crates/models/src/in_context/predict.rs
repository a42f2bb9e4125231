//! Probability of the next token, given the tokens of the line so far.
//!
//! Two sources are blended as in prediction by partial matching (Cleary & Witten 1984): lines of the prompt that the draft follows from its
//! start and, by an escape, positions after the same last tokens. Longer contexts count more.

use super::align::Alignment;
use super::corpus::Corpus;
use super::lexer::{NEWLINE, Piece};
use super::parameters::{DEPARTURE, SUBSTITUTION, context as p};
use super::templates::{NameReplacements, Template};

/// Template that a draft has followed so far.
#[derive(Clone, Debug)]
struct FollowedTemplate {
    template: usize,
    weight: f64,
    /// Names replaced within the line; they take precedence over the template's replacements.
    renaming: NameReplacements,
}

/// Line that is being written.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub pieces: Vec<Piece>,
    followed: Vec<FollowedTemplate>,
}

/// Next token of a template, and the same token with its name replaced.
#[derive(Clone, Copy)]
struct Offer {
    plain: Piece,
    renamed: Option<Piece>,
}

#[derive(Debug)]
pub(super) struct Predictor<'a> {
    pub corpus: &'a Corpus,
    pub templates: &'a [Template],
    alignment: &'a Alignment,
    /// For each line, the factor of its tokens in short contexts, once it is needed.
    line_factors: Vec<Option<f64>>,
    /// Weight of each length of a short context.
    growth: [f64; p::LONGEST + 1],
    /// Votes by piece.
    votes: Vec<f64>,
    voted: Vec<Piece>,
}

/// Weight below which followed templates are dropped.
const NEGLIGIBLE: f64 = 1e-7;

impl<'a> Predictor<'a> {
    pub(super) fn new(
        corpus: &'a Corpus,
        alignment: &'a Alignment,
        templates: &'a [Template],
    ) -> Self {
        Self {
            corpus,
            templates,
            alignment,
            line_factors: vec![None; corpus.lines.len()],
            growth: std::array::from_fn(|length| libm::exp(p::GROWTH * length as f64)),
            votes: vec![0.0; Piece::count(corpus.vocabulary.len())],
            voted: Vec::new(),
        }
    }

    /// Returns an empty draft.
    pub(super) fn draft(&self) -> Draft {
        let follow = |(template, one): (usize, &Template)| FollowedTemplate {
            template,
            weight: one.weight,
            renaming: NameReplacements::default(),
        };
        let followed = self.templates.iter().enumerate().map(follow).collect();
        Draft { pieces: Vec::new(), followed }
    }

    /// Returns the possible next tokens with their probabilities, most probable first.
    pub(super) fn next(&mut self, draft: &Draft) -> Vec<(Piece, f64)> {
        let mass: f64 = draft.followed.iter().map(|followed| followed.weight).sum();
        let escape = if draft.pieces.is_empty() { 0.0 } else { p::ESCAPE };
        let follow = mass / (mass + escape);
        let mut tokens = Vec::new();
        self.vote_templates(draft);
        self.move_votes(follow, &mut tokens);
        self.vote_contexts(&draft.pieces);
        self.move_votes(1.0 - follow, &mut tokens);
        tokens.sort_by_key(|(piece, _)| *piece);
        tokens.dedup_by(|later, first| {
            let same = later.0 == first.0;
            first.1 += if same { later.1 } else { 0.0 };
            same
        });
        let sum: f64 = tokens.iter().map(|(_, share)| share).sum();
        for (_, share) in &mut tokens {
            *share /= sum;
        }
        tokens.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        tokens
    }

    fn vote(&mut self, piece: Piece, weight: f64) {
        if weight > 0.0 {
            if self.votes[piece.index()] == 0.0 {
                self.voted.push(piece);
            }
            self.votes[piece.index()] += weight;
        }
    }

    /// Moves the votes to `out`, scaled to sum to `share`.
    fn move_votes(&mut self, share: f64, out: &mut Vec<(Piece, f64)>) {
        let sum: f64 = self.voted.iter().map(|piece| self.votes[piece.index()]).sum();
        for piece in self.voted.drain(..) {
            let votes = std::mem::take(&mut self.votes[piece.index()]);
            out.push((piece, share * votes / sum));
        }
    }

    fn vote_templates(&mut self, draft: &Draft) {
        for followed in &draft.followed {
            let Offer { plain, renamed } = self.offer(followed, draft.pieces.len());
            let share = if renamed.is_some() { SUBSTITUTION } else { 0.0 };
            self.vote(renamed.unwrap_or(plain), followed.weight * share);
            self.vote(plain, followed.weight * (1.0 - share));
        }
    }

    fn offer(&self, followed: &FollowedTemplate, at: usize) -> Offer {
        let template = &self.templates[followed.template];
        let pieces = self.corpus.line_pieces(template.line);
        let plain = pieces.get(at).copied().unwrap_or(Piece::NEWLINE);
        let core = plain.core();
        let found = followed.renaming.get(core).or_else(|| template.renaming.get(core));
        let renamed = found.filter(|to| *to != core).map(|to| plain.with_core(to));
        Offer { plain, renamed }
    }

    /// Adds the votes of the positions after the draft's last token.
    fn vote_contexts(&mut self, pieces: &[Piece]) {
        let Some(last) = pieces.last() else {
            return;
        };
        let corpus = self.corpus;
        let places = corpus.places[last.core() as usize].iter().rev();
        for &place in places.take(p::MAX_PLACES) {
            let place = place as usize;
            let length = self.match_length(pieces, place).min(p::LONGEST);
            let line = corpus.line_of[place] as usize;
            let alignment = self.alignment;
            let factor = *self.line_factors[line]
                .get_or_insert_with(|| line_factor(corpus, alignment, line));
            self.vote(corpus.follower(place), factor * self.growth[length]);
        }
    }

    /// Returns the number of tokens in common, backwards from a position; the line's start counts as one.
    fn match_length(&self, pieces: &[Piece], place: usize) -> usize {
        let start = self.corpus.lines[self.corpus.line_of[place] as usize].start;
        let there = self.corpus.pieces[start..=place].iter().rev();
        let common = (there.zip(pieces.iter().rev()).take(p::LONGEST))
            .take_while(|(a, b)| a.core() == b.core())
            .count();
        common + usize::from(common == pieces.len() && common == place + 1 - start)
    }

    /// Returns the draft with one more token.
    pub(super) fn extend(&self, draft: &Draft, piece: Piece) -> Draft {
        let mut pieces = Vec::with_capacity(draft.pieces.len() + 1);
        pieces.extend_from_slice(&draft.pieces);
        pieces.push(piece);
        let follow = |followed| self.follow(followed, draft.pieces.len(), piece);
        Draft { pieces, followed: draft.followed.iter().filter_map(follow).collect() }
    }

    /// Returns a followed template after one more token, if the draft still follows it.
    fn follow(
        &self,
        followed: &FollowedTemplate,
        at: usize,
        piece: Piece,
    ) -> Option<FollowedTemplate> {
        let Offer { plain, renamed } = self.offer(followed, at);
        let (here, there) = (piece.core(), plain.core());
        if (here == NEWLINE || there == NEWLINE) && here != there {
            return None;
        }
        let mut next = followed.clone();
        if renamed.is_some_and(|renamed| renamed.core() == here) {
            next.weight *= SUBSTITUTION;
        } else if there == here {
            if renamed.is_some() {
                next.weight *= 1.0 - SUBSTITUTION;
                next.renaming.set(there, here);
            }
        } else if self.corpus.same_shape(there, here) {
            next.weight *= DEPARTURE;
            next.renaming.set(there, here);
        } else {
            return None;
        }
        (next.weight > NEGLIGIBLE).then_some(next)
    }
}

/// Returns the factor of a line by its distance, as in nested caches (Hellendoorn & Devanbu 2017).
fn line_factor(corpus: &Corpus, alignment: &Alignment, index: usize) -> f64 {
    let aligned = corpus.previous(index).map_or(0.0, |before| alignment.scores[before]);
    let near = match corpus.distance_to_last_block(&corpus.lines[index]) {
        Some(rank) => p::RANK * rank as f64,
        None => p::OWN - p::DISTANCE * corpus.log_distance(index),
    };
    libm::exp(p::ALIGNMENT * aligned + near)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the distributions along the tokens of the first line, if each line is a template of equal weight.
    fn along_first_line(prompt: &str) -> Vec<Vec<(String, f64)>> {
        let corpus = Corpus::read(prompt);
        let alignment = Alignment::new(&corpus);
        let count = corpus.lines.len();
        let template = |line| Template {
            line,
            weight: 1.0 / count as f64,
            renaming: NameReplacements::default(),
        };
        let templates: Vec<_> = (0..count).map(template).collect();
        let mut predictor = Predictor::new(&corpus, &alignment, &templates);
        let mut draft = predictor.draft();
        let mut all = Vec::new();
        for piece in corpus.line_pieces(0) {
            let next = predictor.next(&draft);
            let text = |(piece, share): &(Piece, f64)| (corpus.vocabulary.write(*piece), *share);
            all.push(next.iter().map(text).collect());
            draft = predictor.extend(&draft, *piece);
        }
        all
    }

    #[test]
    fn the_first_token_is_by_weight_of_the_lines() {
        let all = along_first_line("if a\nif b\nx\n");
        assert_eq!(all[0][0].0, "if");
        assert!((all[0][0].1 - 2.0 / 3.0).abs() < 1e-12);
        assert!((all[0][1].1 - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn distributions_sum_to_one() {
        for next in along_first_line("if f(a, b):\n    f(a)\nelse:\n    f(b, a)\n") {
            let sum: f64 = next.iter().map(|(_, share)| share).sum();
            assert!((sum - 1.0).abs() < 1e-9);
            assert!(next.windows(2).all(|pair| pair[0].1 >= pair[1].1));
        }
    }

    #[test]
    fn a_name_replaced_once_is_replaced_again() {
        let corpus = Corpus::read("x.a = a\ny\nb\n");
        let alignment = Alignment::new(&corpus);
        let templates = [Template { line: 0, weight: 1.0, renaming: NameReplacements::default() }];
        let mut predictor = Predictor::new(&corpus, &alignment, &templates);
        let mut draft = predictor.draft();
        let b = corpus.line_pieces(2)[0];
        for (at, piece) in corpus.line_pieces(0)[..4].iter().enumerate() {
            // `x . b =` follows the line with `b` instead of `a`.
            draft = predictor.extend(&draft, if at == 2 { b } else { *piece });
        }
        let next = predictor.next(&draft);
        let share = |text: &str| {
            let found = next.iter().find(|(piece, _)| corpus.vocabulary.write(*piece) == text);
            found.map(|(_, share)| *share)
        };
        // One departure, then the part of the followed weight that goes to the replaced name.
        let follow = DEPARTURE / (DEPARTURE + p::ESCAPE);
        assert!((share(" b").unwrap() - follow * SUBSTITUTION).abs() < 1e-12);
        assert!((share(" b").unwrap() + share(" a").unwrap() - 1.0).abs() < 1e-12);
    }
}
