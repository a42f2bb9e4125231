//! Layers: files of a repository that were indexed together.

use std::sync::OnceLock;

use repoformer_text::tokenize::{P50k, PieceCache};

use crate::repository::fragment::{FragmentFile, RepoFragments, WindowTexts};
use crate::retrieve::index::TokenSetIndex;
use crate::retrieve::rank::{Vocabulary, Words};
use crate::retrieve::search::{FragmentVectors, SearchSettings};
use crate::retrieve::vector::{TokenSet, TokenSets};

/// A file to be indexed.
#[derive(Debug, Clone)]
pub struct LiveFile {
    /// Path and lines of the file.
    pub file: FragmentFile,
    /// Identity of the file on disk, which all names of the file share.
    pub same: u64,
}

/// Files of a repository that were cut and indexed together.
#[derive(Debug)]
pub struct Layer {
    pub(super) fragments: RepoFragments,
    /// Identity of each file on disk.
    pub(super) same: Vec<u64>,
    pub(super) index: TokenSetIndex,
    /// Numbers of the terms, unless the terms are tokens of `p50k_base`.
    words: Option<Words>,
    /// Sets of `p50k_base` tokens, if they are kept for a later version of the file.
    sets: Option<TokenSets>,
    texts: OnceLock<WindowTexts>,
}

impl Layer {
    /// Creates a layer of fragments and their vectors; `same` has the identity on disk of each file.
    ///
    /// # Panics
    /// The numbers of identities and files differ.
    pub fn new(fragments: RepoFragments, same: Vec<u64>, vectors: FragmentVectors) -> Self {
        assert_eq!(fragments.files.len(), same.len(), "an identity for each file");
        let (index, words) = match vectors {
            FragmentVectors::Sets(sets) => (TokenSetIndex::new(&sets), None),
            FragmentVectors::Terms(words) => (TokenSetIndex::new(&words.sets()), Some(words)),
        };
        Self { fragments, same, index, words, sets: None, texts: OnceLock::new() }
    }

    /// Replaces the identities of the files on disk.
    ///
    /// # Panics
    /// The numbers of identities and files differ.
    #[must_use]
    pub fn with_identities(self, same: Vec<u64>) -> Self {
        assert_eq!(self.fragments.files.len(), same.len(), "an identity for each file");
        Self { same, ..self }
    }

    /// Creates a layer of files, which are cut in the same way as another layer's.
    pub(super) fn of_files(
        files: Vec<LiveFile>,
        like: &RepoFragments,
        settings: &SearchSettings,
    ) -> Self {
        let (fragments, same) = cut(files, like);
        let vectors = if settings.by_p50k_sets() {
            FragmentVectors::Sets(TokenSets::of_fragments(&fragments, &P50k))
        } else {
            FragmentVectors::Terms(words_of(&fragments, settings))
        };
        Self::new(fragments, same, vectors)
    }

    /// Creates a layer of one file that is being edited; reuses the sets of windows that the file's previous version has in
    /// common with it.
    pub(super) fn of_edited(
        file: LiveFile,
        before: Option<&Self>,
        like: &RepoFragments,
        settings: &SearchSettings,
    ) -> Self {
        let known = before.and_then(|before| Some((before, before.sets.as_ref()?)));
        let (Some((before, known)), true) = (known, settings.by_p50k_sets()) else {
            let mut layer = Self::of_files(vec![file], like, settings);
            if settings.by_p50k_sets() {
                layer.sets = Some(TokenSets::of_fragments(&layer.fragments, &P50k));
            }
            return layer;
        };
        let (fragments, same) = cut(vec![file], like);
        let mut cache = PieceCache::default();
        let mut sets = TokenSets::default();
        for window in 0..fragments.len() {
            let text = fragments.text(window);
            match before.find(text) {
                Some(same) => sets.push(known.get(same as usize).iter()),
                None => sets.push(set_of(text, &mut cache)),
            }
        }
        let index = TokenSetIndex::new(&sets);
        Self { fragments, same, index, words: None, sets: Some(sets), texts: OnceLock::new() }
    }

    /// Returns the fragment with a text.
    pub(super) fn find(&self, text: &str) -> Option<u32> {
        let texts = self.texts.get_or_init(|| WindowTexts::new(&self.fragments));
        texts.find(&self.fragments, text)
    }

    /// Returns the number of files before a path.
    pub(super) fn place_of(&self, path: &str) -> u32 {
        self.fragments.files.partition_point(|file| &*file.path < path) as u32
    }

    /// Builds the table of texts that later layers need if they share windows with this one.
    pub fn prepare(&self) {
        if self.fragments.cut.is_windows() {
            self.texts.get_or_init(|| WindowTexts::new(&self.fragments));
        }
    }

    /// Returns the set of a query's terms, numbered like the terms of the fragments.
    pub(super) fn set_of_query(
        &self,
        text: &str,
        vocabulary: &Vocabulary,
        cache: &mut PieceCache,
    ) -> TokenSets {
        match &self.words {
            Some(words) => words.sets_of([text].into_iter(), vocabulary),
            None => {
                let mut sets = TokenSets::default();
                sets.push(set_of(text, cache));
                sets
            }
        }
    }

    /// Returns the files, with their identities on disk.
    pub fn files(&self) -> impl Iterator<Item = (&FragmentFile, u64)> {
        self.fragments.files.iter().zip(self.same.iter().copied())
    }

    /// Returns the number of distinct terms of a fragment.
    pub(super) fn terms_of(&self, fragment: u32) -> u32 {
        self.index.size_of(fragment)
    }

    /// Returns the bytes of the index.
    pub(super) fn bytes(&self) -> usize {
        self.index.bytes()
    }
}

/// Cuts files, in the order of their paths.
fn cut(mut files: Vec<LiveFile>, like: &RepoFragments) -> (RepoFragments, Vec<u64>) {
    files.sort_unstable_by(|a, b| a.file.path.cmp(&b.file.path));
    let same: Vec<u64> = files.iter().map(|file| file.same).collect();
    let first = |same_one: u64| same.iter().position(|one| *one == same_one);
    let files = files.into_iter().map(|LiveFile { file, same }| FragmentFile {
        same_as: first(same).unwrap_or_default() as u32,
        ..file
    });
    let RepoFragments { repository, language, cut, .. } = like;
    let fragments = RepoFragments::cut_files(repository.clone(), files.collect(), *language, *cut);
    (fragments, same)
}

fn words_of(fragments: &RepoFragments, settings: &SearchSettings) -> Words {
    Words::of_terms(&fragments.texts(), &settings.vocabulary)
}

/// Returns the ids of a text's tokens, ascending.
fn set_of(text: &str, cache: &mut PieceCache) -> Vec<u32> {
    let mut ids = Vec::new();
    P50k.encode_into(text, cache, &mut ids);
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().map(u32::from).collect()
}

/// Returns the only set of a query.
pub(super) fn only(sets: &TokenSets) -> TokenSet<'_> {
    sets.get(0)
}
