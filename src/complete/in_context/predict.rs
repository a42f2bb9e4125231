//! The probability of the next token, after the tokens of the line that are there already.

use super::corpus::Corpus;
use super::lexer::{Core, NEWLINE, Piece};
use super::parameters::Parameters;
use super::templates::{Renaming, Template};

/// A template that the line follows so far.
#[derive(Clone, Debug)]
struct Followed {
    template: u32,
    weight: f64,
    /// Renamings found within the line; those of the template come after.
    renaming: Renaming,
}

/// A line that is being written.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub pieces: Vec<Piece>,
    followed: Vec<Followed>,
}

impl Draft {
    pub(super) fn new(templates: &[Template]) -> Self {
        let followed = templates
            .iter()
            .enumerate()
            .map(|(number, template)| Followed {
                template: number as u32,
                weight: template.weight,
                renaming: Renaming::new(),
            });
        Self {
            pieces: Vec::new(),
            followed: followed.collect(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Predictor<'a> {
    pub corpus: &'a Corpus,
    pub parameters: &'a Parameters,
    pub templates: &'a [Template],
    /// For each line the factor its tokens count with in short contexts.
    pub line_factors: Vec<f64>,
    /// Room for votes by piece.
    votes: Vec<f64>,
    touched: Vec<Piece>,
}

impl<'a> Predictor<'a> {
    pub(super) fn new(
        corpus: &'a Corpus,
        parameters: &'a Parameters,
        templates: &'a [Template],
        line_factors: Vec<f64>,
    ) -> Self {
        let votes = vec![0.0; corpus.vocabulary.len() * 3];
        Self {
            corpus,
            parameters,
            templates,
            line_factors,
            votes,
            touched: Vec::new(),
        }
    }

    /// The tokens that may come next with their probabilities, likeliest first.
    pub(super) fn next(&mut self, draft: &Draft) -> Vec<(Piece, f64)> {
        let mass: f64 = draft.followed.iter().map(|followed| followed.weight).sum();
        let follow = mass / (mass + self.parameters.escape);
        let mut votes = Vec::new();
        if draft.pieces.is_empty() {
            self.vote_templates(draft);
            self.collect(1.0, &mut votes);
        } else {
            self.vote_templates(draft);
            self.collect(follow, &mut votes);
            self.vote_contexts(&draft.pieces);
            self.collect(1.0 - follow, &mut votes);
        }
        votes.sort_by_key(|(piece, _)| *piece);
        votes.dedup_by(|b, a| {
            let same = a.0 == b.0;
            if same {
                a.1 += b.1;
            }
            same
        });
        let sum: f64 = votes.iter().map(|(_, vote)| vote).sum();
        for (_, vote) in &mut votes {
            *vote /= sum;
        }
        votes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        votes
    }

    fn vote(&mut self, piece: Piece, weight: f64) {
        if self.votes[piece.index()] == 0.0 {
            self.touched.push(piece);
        }
        self.votes[piece.index()] += weight;
    }

    /// Moves the votes out, scaled to sum to `share`.
    fn collect(&mut self, share: f64, out: &mut Vec<(Piece, f64)>) {
        let sum: f64 = self
            .touched
            .iter()
            .map(|piece| self.votes[piece.index()])
            .sum();
        for piece in self.touched.drain(..) {
            let vote = std::mem::take(&mut self.votes[piece.index()]);
            if vote > 0.0 {
                out.push((piece, share * vote / sum));
            }
        }
    }

    fn vote_templates(&mut self, draft: &Draft) {
        for followed in &draft.followed {
            let (plain, renamed) = self.offer(followed, draft.pieces.len());
            match renamed {
                Some(renamed) => {
                    self.vote(renamed, followed.weight * self.parameters.substitution);
                    self.vote(
                        plain,
                        followed.weight * (1.0 - self.parameters.substitution),
                    );
                }
                None => self.vote(plain, followed.weight),
            }
        }
    }

    /// The template's own token at a place, and what it is renamed to.
    fn offer(&self, followed: &Followed, at: usize) -> (Piece, Option<Piece>) {
        let template = &self.templates[followed.template as usize];
        let pieces = self.corpus.line_pieces(template.line);
        let Some(&piece) = pieces.get(at) else {
            return (Piece::NEWLINE, None);
        };
        let core = piece.core();
        let found = lookup(&followed.renaming, core).or_else(|| lookup(&template.renaming, core));
        (
            piece,
            found.filter(|to| *to != core).map(|to| piece.with_core(to)),
        )
    }

    /// Votes of all places that stand after the same tokens as the end of the draft.
    fn vote_contexts(&mut self, pieces: &[Piece]) {
        let Some(last) = pieces.last() else { return };
        for index in 0..self.corpus.places[last.core() as usize].len() {
            let place = self.corpus.places[last.core() as usize][index] as usize;
            let line = self.corpus.line_of[place] as usize;
            let length = self.match_length(pieces, place, line);
            let weight =
                (self.parameters.ngram_beta * length as f64).exp() * self.line_factors[line];
            let follower = self.corpus.follower(place);
            self.vote(follower, weight);
        }
    }

    /// Tokens in common backwards, the line's start counted as one.
    fn match_length(&self, pieces: &[Piece], place: usize, line: usize) -> usize {
        let cap = self.parameters.ngram_cap;
        let start = self.corpus.lines[line].start;
        let there = self.corpus.pieces[start..=place].iter().rev();
        let common = there
            .zip(pieces.iter().rev())
            .take(cap)
            .take_while(|(a, b)| a.core() == b.core())
            .count();
        let whole = common == pieces.len() && place + 1 - start == common;
        (common + usize::from(whole)).min(cap)
    }

    /// The draft with one more token.
    pub(super) fn extend(&self, draft: &Draft, piece: Piece) -> Draft {
        let at = draft.pieces.len();
        let mut followed = Vec::with_capacity(draft.followed.len());
        for one in &draft.followed {
            let (plain, renamed) = self.offer(one, at);
            let core = plain.core();
            if plain.core() == NEWLINE || piece.core() == NEWLINE {
                if plain == piece {
                    followed.push(one.clone());
                }
            } else if renamed.is_some_and(|renamed| renamed.core() == piece.core()) {
                let mut one = one.clone();
                one.weight *= self.parameters.substitution;
                followed.push(one);
            } else if core == piece.core() {
                let mut one = one.clone();
                if renamed.is_some() {
                    one.weight *= 1.0 - self.parameters.substitution;
                    set(&mut one.renaming, core, core);
                }
                followed.push(one);
            } else if self.corpus.same_shape(core, piece.core()) {
                let mut one = one.clone();
                one.weight *= self.parameters.active_rho;
                set(&mut one.renaming, core, piece.core());
                if one.weight > 1e-7 {
                    followed.push(one);
                }
            }
        }
        let mut pieces = draft.pieces.clone();
        pieces.push(piece);
        Draft { pieces, followed }
    }
}

fn lookup(renaming: &Renaming, core: Core) -> Option<Core> {
    renaming
        .iter()
        .find(|(from, _)| *from == core)
        .map(|(_, to)| *to)
}

fn set(renaming: &mut Renaming, from: Core, to: Core) {
    match renaming.iter_mut().find(|(core, _)| *core == from) {
        Some(entry) => entry.1 = to,
        None => renaming.push((from, to)),
    }
}
