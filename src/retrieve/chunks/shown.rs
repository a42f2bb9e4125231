//! From the chunks that were found to the fragments that a prompt shows.

use std::ops::Range;
use std::sync::OnceLock;

use rustc_hash::FxHashSet;

use super::{Align, Piece, Ranked};
use crate::repository::chunk::RepoChunks;
use crate::task::cross_file::Fragment;
use crate::text::language::Grammar;
use crate::text::language::syntax::{ScopeKind, Syntax};

/// Turns ranked chunks into fragments.
#[derive(Debug)]
pub struct Shower<'a> {
    chunks: &'a RepoChunks,
    align: Align,
    /// Fragments of a prompt, at most.
    most: usize,
    /// Whether a fragment's path begins with its repository's folder.
    full_paths: bool,
    /// Whether texts stand where the reference sorts them, beside whatever name.
    texts_apart: bool,
    /// Whether a text is small enough to be shown whole; asked of functions and classes.
    fits: Fits<'a>,
    /// The lines of each file's functions and classes, each before those within it, found when they are first asked for.
    scopes: Vec<OnceLock<Vec<Scope>>>,
}

/// The lines of a function or class, and whether they fit, once that was asked.
#[derive(Debug)]
struct Scope {
    lines: Range<usize>,
    fits: OnceLock<bool>,
}

/// Tells whether a prompt can show a text.
struct Fits<'a>(Box<dyn Fn(&str) -> bool + Sync + 'a>);

impl std::fmt::Debug for Fits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fits")
    }
}

impl<'a> Shower<'a> {
    /// Of at most so many fragments a task, aligned. `fits` tells whether a prompt can show a text; functions and classes
    /// that it cannot are not snapped to.
    pub fn new(
        chunks: &'a RepoChunks,
        align: Align,
        most: usize,
        fits: impl Fn(&str) -> bool + Sync + 'a,
    ) -> Self {
        Self {
            chunks,
            align,
            most,
            full_paths: false,
            texts_apart: false,
            fits: Fits(Box::new(fits)),
            scopes: chunks.files.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// With paths that begin with the repository's folder, as Repoformer's program prints them.
    #[must_use]
    pub fn with_full_paths(self, full_paths: bool) -> Self {
        Self { full_paths, ..self }
    }

    /// With texts where the reference's order of ties puts them, repeated ones included, where nothing is aligned.
    #[must_use]
    pub fn with_texts_apart(self, texts_apart: bool) -> Self {
        Self {
            texts_apart,
            ..self
        }
    }

    /// The fragments for one query, best first. The same text is shown once.
    pub fn fragments(&self, found: &Ranked) -> Vec<Fragment> {
        let mut shown: FxHashSet<&str> = FxHashSet::default();
        let mut fragments = Vec::new();
        let apart = self.texts_apart && self.align == Align::None;
        for hit in &found.hits {
            if fragments.len() == self.most {
                break;
            }
            let piece = Piece::of(self.chunks, hit.chunk, self.align, |piece| {
                self.enclosing(piece)
            });
            let text = match apart {
                true => self.chunks.text(hit.text_of as usize),
                false => piece.text(self.chunks),
            };
            if shown.insert(text) || apart {
                fragments.push(Fragment {
                    path: self.path(piece.file).to_owned(),
                    text: text.to_owned(),
                    score: Some(hit.score),
                });
            }
        }
        fragments
    }

    fn path(&self, file: u32) -> &str {
        let path = &self.chunks.files[file as usize].path;
        match self.full_paths {
            true => path,
            false => named_path(path),
        }
    }

    /// The function or class around some lines: the smallest that holds them all, else the function around the middle one.
    fn enclosing(&self, piece: Piece) -> Option<Piece> {
        let file = &self.chunks.files[piece.file as usize];
        let language = self.chunks.language;
        let scopes = self.scopes[piece.file as usize]
            .get_or_init(|| scopes(file.text(), Grammar::of(language, &file.path)));
        let around = |start: u32, end: u32| {
            let holds = move |scope: &&Scope| {
                scope.lines.start <= start as usize && end as usize <= scope.lines.end
            };
            scopes.iter().rev().find(holds)
        };
        let middle = piece.start + (piece.end - piece.start) / 2;
        let whole = around(piece.start, piece.end);
        let mut snapped = whole.into_iter().chain(around(middle, middle + 1));
        let of_lines = |scope: &Scope| Piece {
            start: scope.lines.start as u32,
            end: scope.lines.end as u32,
            ..piece
        };
        let fits = |scope: &&Scope| {
            let text = || of_lines(scope).text(self.chunks);
            *scope.fits.get_or_init(|| (self.fits.0)(text()))
        };
        snapped.find(fits).map(of_lines)
    }
}

/// The lines of a text's functions and classes, each before those within it.
fn scopes(text: &str, grammar: Grammar) -> Vec<Scope> {
    let Some(syntax) = Syntax::parse(text, grammar) else {
        return Vec::new();
    };
    let scopes = syntax.scopes();
    let snaps = scopes
        .iter()
        .filter(|scope| scope.kind != ScopeKind::Namespace);
    let scope = |lines: Range<usize>| Scope {
        lines,
        fits: OnceLock::new(),
    };
    snaps.map(|snap| scope(snap.span.lines.clone())).collect()
}

/// A file's path as prompts name it: within its repository.
pub fn named_path(path: &str) -> &str {
    path.split_once('/').map_or(path, |(_, rest)| rest)
}
