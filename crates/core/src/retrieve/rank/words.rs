//! Word vectors: the words of each document, with their counts.

use std::ops::Range;

use repoformer_store::artifact::{Column, Columns, Payload, check_offsets};
use repoformer_store::error::Result;
use repoformer_store::progress::Work;
use repoformer_text::tokenize::model::Tokenizer;
use repoformer_text::tokenize::words::cut;
use repoformer_text::tokenize::{Dictionary, Nltk};

use crate::repository::parallel;
use crate::retrieve::vector::TokenSets;

/// Terms that the lexical rankers compare.
#[derive(Debug, Clone, Default)]
pub enum Vocabulary {
    /// Words ([`each_word`](repoformer_text::tokenize::each_word)), as Repoformer's program cuts them with a recent NLTK.
    #[default]
    Words,
    /// Words as the program cut them when it was released ([`Nltk::Until38`]).
    WordsNltk38,
    /// Tokens of a tokenizer.
    Tokens(Tokenizer),
}

impl Vocabulary {
    /// Returns the name among the values of the setting `vectorizer`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::WordsNltk38 => "words-nltk-3.8",
            Self::Tokens(_) => "one-gram",
        }
    }

    /// Visits the terms of a text, in order. Returns true if the terms of the lower-cased text are the lower-cased terms of the
    /// text.
    pub(super) fn each(&self, text: &str, mut visit: impl FnMut(&str)) -> bool {
        match self {
            Self::Words => cut(text, Nltk::From39, visit),
            Self::WordsNltk38 => cut(text, Nltk::Until38, visit),
            Self::Tokens(tokenizer) => {
                tokenizer.each_term(text, &mut visit);
                false
            }
        }
    }
}

/// Words of documents, case-sensitive, in flat buffers: a dictionary and, for each document, the numbers of its distinct words
/// in ascending order, with their counts. Words are numbered in the order in which they are first seen.
///
/// ```
/// use repoformer_core::retrieve::rank::Words;
/// let words = Words::new(&["b = a + a", "c(a)"]);
/// let numbers = ["b", "a", "c"].map(|word| words.dictionary().get(word));
/// assert_eq!(numbers, [Some(0), Some(1), Some(2)]);
/// assert_eq!(words.row(0).collect::<Vec<_>>(), [(0, 1), (1, 2)]);
/// assert_eq!((words.documents(), words.length(0), words.length(1)), (2, 3, 2));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    dictionary: Dictionary,
    /// The row of document d is `first[d]..first[d + 1]`.
    first: Vec<u32>,
    numbers: Vec<u32>,
    counts: Vec<u32>,
    /// Number of words of each document, including repeats.
    lengths: Vec<u32>,
    /// Documents, ascending, in which the lower-cased words differ from the words of the lower-cased text.
    uneven: Vec<u32>,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            dictionary: Dictionary::default(),
            first: vec![0],
            numbers: Vec::new(),
            counts: Vec::new(),
            lengths: Vec::new(),
            uneven: Vec::new(),
        }
    }
}

/// Number of documents that one thread processes at a time.
const BATCH: usize = 512;

impl Words {
    /// Counts the words of documents, in order. The result does not depend on the number of threads.
    ///
    /// # Panics
    /// The documents' numbers of distinct words add up to more than 4,294,967,295.
    pub fn new<T: AsRef<str> + Sync>(texts: &[T]) -> Self {
        Self::of_terms(texts, &Vocabulary::Words)
    }

    /// Counts the terms of documents, in order.
    ///
    /// # Panics
    /// As for [`new`](Self::new).
    pub fn of_terms<T: AsRef<str> + Sync>(texts: &[T], vocabulary: &Vocabulary) -> Self {
        if texts.len() <= BATCH || rayon::current_num_threads() == 1 {
            return Self::of_batch(texts, vocabulary);
        }
        let work = Work::new("vectorize", "texts", texts.len());
        let of_batch = |part: &[T]| {
            let words = Self::of_batch(part, vocabulary);
            work.advance(part.len());
            words
        };
        let parts = parallel::map(texts.chunks(BATCH), of_batch);
        let mut all = Self::default();
        for part in &parts {
            all.append(part);
        }
        all
    }

    fn of_batch<T: AsRef<str>>(texts: &[T], vocabulary: &Vocabulary) -> Self {
        let (mut words, mut row) = (Self::default(), Row::default());
        for (document, text) in (0..).zip(texts) {
            let is_even = vocabulary.each(text.as_ref(), |word| row.add(words.intern(word), 1));
            if !is_even {
                words.uneven.push(document);
            }
            words.push(&mut row);
        }
        words
    }

    /// Returns the number of a word; an unknown word gets a new number.
    #[inline]
    pub(super) fn intern(&mut self, word: &str) -> u32 {
        self.dictionary.intern(word)
    }

    /// Appends the document of a row, and empties the row.
    pub(super) fn push(&mut self, row: &mut Row) {
        row.seen.sort_unstable();
        let mut length = 0;
        for number in row.seen.drain(..) {
            let count = std::mem::take(&mut row.counts[number as usize]);
            self.numbers.push(number);
            self.counts.push(count);
            length += count;
        }
        self.lengths.push(length);
        let end = u32::try_from(self.numbers.len());
        self.first.push(end.expect("documents of more than 4,294,967,295 distinct words"));
    }

    /// Appends the documents of another list, whose dictionary may be different.
    fn append(&mut self, other: &Self) {
        let numbers: Vec<u32> =
            other.dictionary.iter().map(|word| self.dictionary.intern(word)).collect();
        let before = self.documents() as u32;
        self.uneven.extend(other.uneven.iter().map(|document| before + document));
        let mut row = Row::default();
        for document in 0..other.documents() {
            for (number, count) in other.row(document) {
                row.add(numbers[number as usize], count);
            }
            self.push(&mut row);
        }
    }

    /// Counts the words of the documents' lower-cased texts. Lower-casing a text can give other words than lower-casing its
    /// words; only texts in which this may happen are cut again.
    pub(super) fn to_lowercase<T: AsRef<str>>(&self, texts: &[T], vocabulary: &Vocabulary) -> Self {
        let (mut lowered, mut row) = (Self::default(), Row::default());
        let mut number_of = vec![u32::MAX; self.dictionary.len()];
        let mut uneven = self.uneven.iter().peekable();
        for document in 0..self.documents() {
            if uneven.next_if(|next| **next as usize == document).is_some() {
                let text = texts.get(document).map_or("", |text| text.as_ref()).to_lowercase();
                vocabulary.each(&text, |word| row.add(lowered.intern(word), 1));
            } else {
                for (number, count) in self.row(document) {
                    let known = &mut number_of[number as usize];
                    if *known == u32::MAX {
                        let word = self.dictionary.word(number).to_ascii_lowercase();
                        *known = lowered.intern(&word);
                    }
                    row.add(*known, count);
                }
            }
            lowered.push(&mut row);
        }
        lowered
    }

    /// Returns the set of each document's terms, by their numbers.
    pub fn sets(&self) -> TokenSets {
        let mut sets = TokenSets::default();
        (0..self.documents()).for_each(|document| sets.push(self.row(document).map(|row| row.0)));
        sets
    }

    /// Returns the set of each text's terms, by the documents' numbers. Terms that no document has get higher numbers.
    pub fn sets_of<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
        vocabulary: &Vocabulary,
    ) -> TokenSets {
        let mut sets = TokenSets::default();
        for text in texts {
            let (mut numbers, mut others) = (Vec::new(), Dictionary::default());
            vocabulary.each(text, |term| {
                let known = self.dictionary.get(term);
                numbers.push(
                    known.unwrap_or_else(|| self.dictionary.len() as u32 + others.intern(term)),
                );
            });
            numbers.sort_unstable();
            numbers.dedup();
            sets.push(numbers);
        }
        sets
    }

    /// Returns the words and their numbers.
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// Returns the number of documents.
    pub fn documents(&self) -> usize {
        self.lengths.len()
    }

    /// Returns a document's distinct words, ascending by number, with their counts.
    ///
    /// # Panics
    /// The document does not exist.
    #[inline]
    pub fn row(&self, document: usize) -> impl ExactSizeIterator<Item = (u32, u32)> {
        let range = self.range(document);
        let (numbers, counts) = (&self.numbers[range.clone()], &self.counts[range]);
        (0..numbers.len()).map(move |at| (numbers[at], counts[at]))
    }

    /// Returns the number of distinct words of a document.
    pub(super) fn distinct(&self, document: usize) -> u32 {
        self.first[document + 1] - self.first[document]
    }

    /// Returns the number of words of a document, including repeats.
    ///
    /// # Panics
    /// The document does not exist.
    #[inline]
    pub fn length(&self, document: usize) -> u32 {
        self.lengths[document]
    }

    /// Returns the number of words of all documents.
    pub(super) fn total_length(&self) -> u64 {
        self.lengths.iter().map(|length| u64::from(*length)).sum()
    }

    #[inline]
    fn range(&self, document: usize) -> Range<usize> {
        self.first[document] as usize..self.first[document + 1] as usize
    }

    /// Returns the numbers of all rows, one row after another.
    pub(super) fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    fn check_rows(&self) -> bool {
        let words = self.dictionary.len();
        (0..self.documents()).all(|document| {
            let numbers = &self.numbers[self.range(document)];
            let length = self.row(document).map(|(_, count)| u64::from(count)).sum::<u64>();
            numbers.is_sorted_by(|a, b| a < b)
                && numbers.last().is_none_or(|last| (*last as usize) < words)
                && self.row(document).all(|(_, count)| count > 0)
                && length == u64::from(self.lengths[document])
        })
    }
}

/// Counts of one document's words, reused for the next document.
#[derive(Default)]
pub(super) struct Row {
    /// Count by number of the word; 0 for words that were not seen.
    counts: Vec<u32>,
    seen: Vec<u32>,
}

impl Row {
    #[inline]
    pub(super) fn add(&mut self, number: u32, count: u32) {
        let place = number as usize;
        if place >= self.counts.len() {
            self.counts.resize((place + 1).next_power_of_two(), 0);
        }
        if self.counts[place] == 0 {
            self.seen.push(number);
        }
        self.counts[place] += count;
    }
}

impl Payload for Words {
    const KIND: &'static str = "word vectors";

    fn records(&self) -> usize {
        self.documents()
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        let (text, ends) = self.dictionary.parts();
        Ok(vec![
            Column::records("words", text)?,
            Column::numbers("ends", ends),
            Column::numbers("first", &self.first),
            Column::numbers("numbers", &self.numbers),
            Column::numbers("counts", &self.counts),
            Column::numbers("lengths", &self.lengths),
            Column::numbers("uneven", &self.uneven),
        ])
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        let (text, ends) = (columns.records("words")?, columns.numbers("ends")?);
        let dictionary = Dictionary::from_parts(text, ends);
        Ok(Self {
            dictionary: dictionary.map_err(|reason| columns.damage_error(reason))?,
            first: columns.numbers("first")?,
            numbers: columns.numbers("numbers")?,
            counts: columns.numbers("counts")?,
            lengths: columns.numbers("lengths")?,
            uneven: columns.numbers("uneven")?,
        })
    }

    fn check(&self) -> Result<(), String> {
        check_offsets(&self.first, self.numbers.len())?;
        let fits = self.counts.len() == self.numbers.len()
            && self.lengths.len() + 1 == self.first.len()
            && self.uneven.is_sorted_by(|a, b| a < b)
            && self.uneven.last().is_none_or(|last| (*last as usize) < self.lengths.len());
        if fits && self.check_rows() {
            Ok(())
        } else {
            Err("its rows of words are inconsistent".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use repoformer_text::tokenize::each_word;

    use super::*;

    /// Returns words and counts without numbers.
    fn counted(words: &Words, document: usize) -> BTreeMap<&str, u32> {
        words
            .row(document)
            .map(|(number, count)| (words.dictionary().word(number), count))
            .collect()
    }

    fn counts(text: &str) -> BTreeMap<&str, u32> {
        let mut counts = BTreeMap::new();
        each_word(text, |word| *counts.entry(word).or_default() += 1);
        counts
    }

    proptest! {
        #[test]
        fn rows_count_the_words_of_each_text(texts in prop::collection::vec("([aAbBÉİΣ '_]|n't|N't){0,20}", 0..9)) {
            let words = Words::new(&texts);
            let lowered = words.to_lowercase(&texts, &Vocabulary::Words);
            prop_assert_eq!(words.documents(), texts.len());
            for (document, text) in texts.iter().enumerate() {
                prop_assert_eq!(counted(&words, document), counts(text));
                let lower = text.to_lowercase();
                prop_assert_eq!(counted(&lowered, document), counts(&lower));
                prop_assert_eq!(words.length(document), counts(text).values().sum::<u32>());
            }
            prop_assert!(words.check().is_ok() && lowered.check().is_ok());
        }
    }

    #[test]
    fn many_threads_give_what_one_gives() {
        let text = |n: u64| format!("w{} v{} don't é{} w{0}", n * n % 997, n % 7, n % 31);
        let texts: Vec<String> = (0..3 * BATCH as u64 + 5).map(text).collect();
        let of = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Words::new(&texts))
        };
        assert_eq!(of(1), of(4));
        assert_eq!(of(1), Words::of_batch(&texts, &Vocabulary::Words));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let damages: [fn(&mut Words); 9] = [
            |words| words.first[1] = 9,
            |words| words.first.clear(),
            |words| words.numbers[0] = 7,
            |words| words.numbers.swap(0, 1),
            |words| words.counts[0] = 0,
            |words| words.lengths[0] += 1,
            |words| words.lengths.push(0),
            |words| words.uneven = vec![2],
            |words| words.counts.push(1),
        ];
        for (number, damage) in damages.into_iter().enumerate() {
            let mut words = Words::new(&["a b", "b"]);
            assert!(words.check().is_ok());
            damage(&mut words);
            assert!(words.check().is_err(), "damage {number}");
        }
    }
}
