//! Fragment texts: turns retrieved fragments into the texts that a prompt shows.

use std::ops::Range;
use std::sync::OnceLock;

use foldhash::HashSet;
use repoformer_text::language::Grammar;
use repoformer_text::language::syntax::{self, ParseExtent, ParseGap, ScopeKind, Syntax};

use super::align::{Align, FileLines};
use super::definitions::HEAD;
use super::query::Query;
use super::search::{Hit, RankedFragments};
use super::visibility::{HoleView, Visibility};
use crate::repository::fragment::{FragmentFile, RepoFragments, path_in_repository};
use crate::task::cross_file::CrossFileFragment;

/// Converter of ranked fragments to the paths and texts that prompts show.
#[derive(Debug)]
pub struct FragmentText<'a> {
    fragments: &'a RepoFragments,
    settings: FragmentTextSettings,
    /// Test of whether a text is small enough to be shown whole; used for functions and classes.
    fits: FitTest<'a>,
    /// Functions and classes of each file, each before the ones inside it; parsed on first use.
    scopes: Vec<OnceLock<FileScopes>>,
}

/// Functions and classes of a file, and how much of the file was parsed.
#[derive(Debug)]
struct FileScopes {
    scopes: Vec<Scope>,
    parsed: ParseExtent,
}

/// Settings for showing fragments.
#[derive(Debug, Clone, Copy)]
pub struct FragmentTextSettings {
    /// Lines that are shown for a fragment; must be resolved (not `auto`).
    pub align: Align,
    /// Maximum number of fragments in a prompt.
    pub most: usize,
    /// Whether a fragment's path begins with its repository's folder.
    pub full_paths: bool,
    /// Fragments that the query may see.
    pub visibility: Visibility,
}

/// Lines of a function or class, and whether they fit, once that was tested.
#[derive(Debug)]
struct Scope {
    lines: Range<usize>,
    /// Row after the signature and the head of the documentation or, for a class, of the body.
    head_end: usize,
    fits: OnceLock<bool>,
}

/// Test of whether a prompt can show a text.
struct FitTest<'a>(Box<dyn Fn(&str) -> bool + Sync + 'a>);

impl std::fmt::Debug for FitTest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fits")
    }
}

impl<'a> FragmentText<'a> {
    /// Creates a converter. `fits` returns whether a prompt can show a text; functions and classes that do not fit are not
    /// used.
    pub fn new(
        fragments: &'a RepoFragments,
        settings: FragmentTextSettings,
        fits: impl Fn(&str) -> bool + Sync + 'a,
    ) -> Self {
        Self {
            fragments,
            settings,
            fits: FitTest(Box::new(fits)),
            scopes: fragments.files.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns the fragments for one query, best first. The same text is shown only once.
    pub fn collect(&self, query: &Query, found: &RankedFragments) -> Vec<CrossFileFragment> {
        self.collect_with_places(query, found).into_iter().map(|(_, fragment)| fragment).collect()
    }

    /// Returns the fragments for one query, best first, each with the lines of its text.
    pub fn collect_with_places(
        &self,
        query: &Query,
        found: &RankedFragments,
    ) -> Vec<(FileLines, CrossFileFragment)> {
        let FragmentTextSettings { align, most, full_paths, visibility } = self.settings;
        let hole = HoleView::of_query(query, self.fragments, visibility.guard());
        // In the reference program's order of ties, texts are sorted apart from names, and texts may repeat.
        let apart = visibility.sorts_texts_apart() && align == Align::None;
        let mut seen: HashSet<&str> = HashSet::default();
        let mut shown = Vec::new();
        for hit in &found.hits {
            if shown.len() == most {
                break;
            }
            let piece = self.piece(hit, &hole);
            let of_text = if apart {
                FileLines::at(self.fragments.first_place(hit.text_of as usize))
            } else {
                piece
            };
            let text = of_text.text(self.fragments);
            if seen.insert(text) || apart {
                let path = &self.fragments.files[piece.file as usize].path;
                let path = if full_paths { path } else { path_in_repository(path) };
                let (path, text, score) = (path.to_owned(), text.to_owned(), hit.score.value());
                shown.push((of_text, CrossFileFragment { path, text, score: Some(score) }));
            }
        }
        shown
    }

    /// Returns the lines that are shown for a retrieved fragment.
    pub fn piece(&self, hit: &Hit, hole: &HoleView<'_>) -> FileLines {
        let place = hole.first_named_place(hit.fragment);
        let align = self.settings.align;
        let of_definition = hit.definition.and_then(|definition| match align {
            Align::Signature => self.signature(definition),
            Align::Enclosing => self.body(definition),
            _ => None,
        });
        of_definition.unwrap_or_else(|| {
            FileLines::from_place(place, align, hole, |piece| self.enclosing(piece))
        })
    }

    /// Returns true if functions and classes are shown for fragments that contain them or parts of them.
    pub fn shows_definitions(&self) -> bool {
        matches!(self.settings.align, Align::Enclosing | Align::Signature)
    }

    /// Returns the settings for showing fragments.
    pub fn settings(&self) -> FragmentTextSettings {
        self.settings
    }

    /// Returns the fragments from which texts are taken.
    pub fn fragments(&self) -> &'a RepoFragments {
        self.fragments
    }

    /// Returns the function or class around some lines: the smallest that contains all of them, otherwise the function around
    /// the middle line.
    fn enclosing(&self, piece: FileLines) -> Option<FileLines> {
        let scopes = self.scopes_of(piece.file);
        let around = |start: u32, end: u32| {
            let holds = move |scope: &&Scope| {
                scope.lines.start <= start as usize && end as usize <= scope.lines.end
            };
            scopes.iter().rev().find(holds)
        };
        let middle = piece.start + (piece.end - piece.start) / 2;
        let whole = around(piece.start, piece.end);
        let mut snapped = whole.into_iter().chain(around(middle, middle + 1));
        let of_lines = |scope: &Scope| FileLines {
            start: scope.lines.start as u32,
            end: scope.lines.end as u32,
            ..piece
        };
        snapped.find(|scope| self.fits(scope, of_lines(scope))).map(of_lines)
    }

    /// Returns true if a prompt can show the lines of a function or class.
    fn fits(&self, scope: &Scope, lines: FileLines) -> bool {
        *scope.fits.get_or_init(|| (self.fits.0)(lines.text(self.fragments)))
    }

    /// Returns the functions and classes of a file.
    fn scopes_of(&self, file: u32) -> &[Scope] {
        let FragmentFile { path, lines, .. } = &self.fragments.files[file as usize];
        let grammar = Grammar::for_path(self.fragments.language, path);
        let of_file = self.scopes[file as usize].get_or_init(|| {
            let syntax = Syntax::parse(lines.text(), grammar);
            let parsed = ParseExtent::from_syntax(syntax.as_ref());
            FileScopes { scopes: syntax.map_or(Vec::new(), |syntax| scopes(&syntax)), parsed }
        });
        &of_file.scopes
    }

    /// Returns the files whose functions and classes were requested, and that could not be parsed completely.
    pub fn gaps(&self) -> Vec<ParseGap> {
        let read = self.fragments.files.iter().zip(&self.scopes);
        let gap = |(file, scopes): (&FragmentFile, &OnceLock<FileScopes>)| {
            ParseGap::find(self.fragments.language, &file.path, scopes.get()?.parsed)
        };
        read.filter_map(gap).collect()
    }

    /// Returns the function or class of a definition; the definition begins with the line of its name.
    fn scope_of(&self, definition: FileLines) -> Option<&Scope> {
        let row = definition.start as usize;
        let is_it = |scope: &&Scope| scope.lines.start <= row && row < scope.head_end;
        self.scopes_of(definition.file).iter().rev().find(is_it)
    }

    /// Returns the signature of a definition; the first lines if it is neither a function nor a class.
    fn signature(&self, definition: FileLines) -> Option<FileLines> {
        let scope = self.scope_of(definition);
        let lines = scope.map(|scope| scope.lines.start as u32..scope.head_end as u32);
        let first = definition.start..definition.end.min(definition.start + HEAD);
        let lines = lines.unwrap_or(first);
        Some(FileLines { file: definition.file, start: lines.start, end: lines.end })
    }

    /// Returns the whole definition, if it fits.
    fn body(&self, definition: FileLines) -> Option<FileLines> {
        let scope = self.scope_of(definition)?;
        let (start, end) = (scope.lines.start as u32, scope.lines.end as u32);
        Some(FileLines { file: definition.file, start, end })
            .filter(|lines| self.fits(scope, *lines))
    }
}

/// Returns a text's functions and classes, each before the ones inside it.
fn scopes(syntax: &Syntax<'_>) -> Vec<Scope> {
    let scopes = syntax.scopes();
    let snaps = scopes.into_iter().filter(|scope| scope.kind != ScopeKind::Namespace);
    let scope = |scope: syntax::Scope<'_>| Scope {
        head_end: head_end(&scope),
        lines: scope.span.lines,
        fits: OnceLock::new(),
    };
    snaps.map(scope).collect()
}

/// Returns the row after a signature and the head of the documentation; for a class, the row after its first lines.
fn head_end(scope: &syntax::Scope<'_>) -> usize {
    match scope.kind {
        ScopeKind::Function => scope.head_end,
        _ => scope.span.lines.end.min(scope.span.lines.start + HEAD as usize).max(scope.head_end),
    }
}
