//! Fragment texts: from the fragments that were found to those that a prompt shows.

use std::ops::Range;
use std::sync::OnceLock;

use rustc_hash::FxHashSet;

use super::align::{Align, Piece};
use super::query::Query;
use super::search::Found;
use super::visibility::{Hole, Visibility};
use crate::repository::fragment::{RepoFragments, path_in_repository};
use crate::task::cross_file::Fragment;
use crate::text::language::Grammar;
use crate::text::language::syntax::{ScopeKind, Syntax};

/// Turns ranked fragments into the paths and texts that prompts show.
#[derive(Debug)]
pub struct FragmentText<'a> {
    fragments: &'a RepoFragments,
    settings: FragmentTextSettings,
    /// Whether a text is small enough to be shown whole; asked of functions and classes.
    fits: Fits<'a>,
    /// The lines of each file's functions and classes, each before those within it, found when they are first asked for.
    scopes: Vec<OnceLock<Vec<Scope>>>,
}

/// How fragments are shown.
#[derive(Debug, Clone, Copy)]
pub struct FragmentTextSettings {
    /// Lines that are shown for a fragment; settled.
    pub align: Align,
    /// Fragments of a prompt, at most.
    pub most: usize,
    /// Whether a fragment's path begins with its repository's folder.
    pub full_paths: bool,
    /// Which fragments the query saw.
    pub visibility: Visibility,
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

impl<'a> FragmentText<'a> {
    /// `fits` tells whether a prompt can show a text; functions and classes that it cannot are not snapped to.
    pub fn new(
        fragments: &'a RepoFragments,
        settings: FragmentTextSettings,
        fits: impl Fn(&str) -> bool + Sync + 'a,
    ) -> Self {
        Self {
            fragments,
            settings,
            fits: Fits(Box::new(fits)),
            scopes: fragments.files.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// The fragments for one query, best first. The same text is shown once.
    pub fn shown(&self, query: &Query, found: &Found) -> Vec<Fragment> {
        self.shown_with_places(query, found).into_iter().map(|(_, fragment)| fragment).collect()
    }

    /// The fragments for one query, best first, each with the lines that its text is of.
    pub fn shown_with_places(&self, query: &Query, found: &Found) -> Vec<(Piece, Fragment)> {
        let FragmentTextSettings { align, most, full_paths, visibility } = self.settings;
        let hole = Hole::of_query(query, self.fragments, visibility.guard());
        // Texts stand where the reference's order of ties puts them, beside whatever name, repeated ones included.
        let apart = visibility.sorts_texts_apart() && align == Align::None;
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        let mut shown = Vec::new();
        for hit in &found.hits {
            if shown.len() == most {
                break;
            }
            let piece = self.piece(hit.fragment, &hole);
            let of_text = match apart {
                true => Piece::at(self.fragments.first_place(hit.text_of as usize)),
                false => piece,
            };
            let text = of_text.text(self.fragments);
            if seen.insert(text) || apart {
                let path = &self.fragments.files[piece.file as usize].path;
                let path = if full_paths { path } else { path_in_repository(path) };
                let (path, text, score) = (path.to_owned(), text.to_owned(), hit.score.value());
                shown.push((of_text, Fragment { path, text, score: Some(score) }));
            }
        }
        shown
    }

    /// Lines that are shown for a fragment.
    pub fn piece(&self, fragment: u32, hole: &Hole<'_>) -> Piece {
        let place = hole.first_named_place(fragment);
        Piece::of(place, self.settings.align, hole, |piece| self.enclosing(piece))
    }

    /// How fragments are shown.
    pub fn settings(&self) -> FragmentTextSettings {
        self.settings
    }

    /// The fragments that are shown.
    pub fn fragments(&self) -> &'a RepoFragments {
        self.fragments
    }

    /// The function or class around some lines: the smallest that holds them all, else the function around the middle one.
    fn enclosing(&self, piece: Piece) -> Option<Piece> {
        let file = &self.fragments.files[piece.file as usize];
        let language = self.fragments.language;
        let scopes = self.scopes[piece.file as usize]
            .get_or_init(|| scopes(file.lines.text(), Grammar::of(language, &file.path)));
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
            let text = || of_lines(scope).text(self.fragments);
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
    let snaps = scopes.iter().filter(|scope| scope.kind != ScopeKind::Namespace);
    let scope = |lines: Range<usize>| Scope { lines, fits: OnceLock::new() };
    snaps.map(|snap| scope(snap.span.lines.clone())).collect()
}
