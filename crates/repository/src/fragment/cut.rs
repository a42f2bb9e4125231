//! Cutting of files into fragments, and merging of windows with equal text.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::HashMap;
use foldhash::fast::RandomState;
use repoformer_store::progress::Work;
use repoformer_text::language::Language;
use repoformer_text::lines::{Lines, strip};
use repoformer_text::tokenize::is_word;

use super::{Cut, WindowShape};
use crate::corpus::{Repository, SourceFile};
use crate::parallel;

/// Occurrence of a fragment: lines `start..end` of a file, 0-based. Chunks count only non-blank lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentPlace {
    /// Index in [`RepoFragments::files`].
    pub file: u32,
    /// Line that a window was cut around, or number of a chunk in its file.
    pub number: u32,
    /// First line.
    pub start: u32,
    /// Line after the last.
    pub end: u32,
}

impl FragmentPlace {
    #[inline]
    fn new(numbers: &[u32]) -> Self {
        Self { file: numbers[0], number: numbers[1], start: numbers[2], end: numbers[3] }
    }
}

/// File as the later stages need it: its name and its lines, without blank lines if it is cut into chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentFile {
    /// `repository/folder/…/file.py`.
    pub path: String,
    /// Index of the first file that is the same on disk; the file's own index if no link is involved.
    pub same_as: u32,
    /// Length of its lines joined by `\n`.
    pub bytes: u32,
    /// BLAKE3 of its lines joined by `\n`.
    pub digest: [u8; 32],
    /// Its lines.
    pub lines: Lines,
}

impl FragmentFile {
    /// Creates files with the lines that a cut keeps.
    pub fn of_files(files: Vec<SourceFile>, cut: Cut) -> Vec<Self> {
        let work = Work::new("cut", "files", files.len());
        parallel::map(files, |file| {
            work.advance(1);
            Self::new(file, cut)
        })
    }

    /// Creates a file with the lines that a cut keeps.
    pub fn new(file: SourceFile, cut: Cut) -> Self {
        let lines = match cut {
            Cut::Windows(_) => Lines::from_text(file.text),
            // Lines end only at `\n`, as in the reference: a form feed is an ordinary character.
            Cut::Chunks(_) => {
                let lines = file.text.split('\n');
                let kept: Vec<&str> = lines.filter(|line| !strip(line).is_empty()).collect();
                Lines::with_line_feeds(kept.join("\n"))
            }
        };
        Self {
            path: file.path,
            same_as: file.same_as,
            bytes: lines.text().len() as u32,
            digest: *blake3::hash(lines.text().as_bytes()).as_bytes(),
            lines,
        }
    }

    /// Returns lines `start..end`, joined by `\n`.
    pub fn text(&self, start: u32, end: u32) -> &str {
        self.lines.range(start as usize, end as usize)
    }
}

/// All fragments of a repository, ordered by first occurrence: files by path, then by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoFragments {
    /// Name of the repository's folder.
    pub repository: String,
    /// Language of its files.
    pub language: Language,
    /// Way in which its files were cut.
    pub cut: Cut,
    /// Files in code-point order of their paths, including those without a fragment.
    pub files: Vec<FragmentFile>,
    /// `first_place[f]..first_place[f + 1]` are the places of fragment f.
    pub(super) first_place: Vec<u32>,
    /// Four numbers per place: file, number, start, end.
    pub(super) places: Vec<u32>,
}

impl RepoFragments {
    /// Cuts every file of a repository.
    ///
    /// ```
    /// use repoformer_repository::corpus::{Repository, SourceFile};
    /// use repoformer_repository::fragment::{ChunkShape, Cut, RepoFragments, WindowShape};
    /// use repoformer_text::language::Language;
    /// let repository = |text: String| {
    ///     let file = SourceFile { path: "r/a.py".into(), text, same_as: 0 };
    ///     Repository { name: "r".into(), files: vec![file] }
    /// };
    ///
    /// let text = (0..25).map(|n| format!("x{n} = {n}\n")).collect::<String>();
    /// let cut = Cut::Windows(WindowShape::default());
    /// let windows = RepoFragments::cut(repository(text), Language::Python, cut);
    /// let ranges: Vec<_> = (0..windows.len()).map(|w| windows.first_place(w)).map(|p| (p.start, p.end)).collect();
    /// assert_eq!(ranges, [(0, 10), (0, 20), (10, 25)]);
    ///
    /// // A chunk without a word is dropped and takes no number.
    /// let cut = Cut::Chunks(ChunkShape { size: 2, stride: 1 });
    /// let chunks = RepoFragments::cut(repository("a\n\n  \nb\nc\n)\n]\n".into()), Language::Python, cut);
    /// let texts: Vec<_> = (0..chunks.len()).map(|chunk| chunks.text(chunk)).collect();
    /// assert_eq!(texts, ["a\nb", "b\nc", "c\n)"], "neither brackets alone nor blank lines");
    /// ```
    pub fn cut(repository: Repository, language: Language, cut: Cut) -> Self {
        let files = FragmentFile::of_files(repository.files, cut);
        Self::cut_files(repository.name, files, language, cut)
    }

    /// Cuts files that are in the code-point order of their paths and have only the lines that this cut keeps.
    pub fn cut_files(
        repository: String,
        files: Vec<FragmentFile>,
        language: Language,
        cut: Cut,
    ) -> Self {
        let (first_place, places) = match cut {
            Cut::Windows(shape) => windows(&files, shape),
            Cut::Chunks(_) => chunks(&files, cut),
        };
        Self { repository, language, cut, files, first_place, places }
    }

    /// Creates fragments with these places, ordered by first occurrence; each has at least one place.
    pub fn of_places<'p>(
        repository: String,
        files: Vec<FragmentFile>,
        (language, cut): (Language, Cut),
        fragments: impl IntoIterator<Item = &'p [FragmentPlace]>,
    ) -> Self {
        let (mut first_place, mut places) = (vec![0], Vec::new());
        for fragment in fragments {
            let numbers = fragment.iter().map(|p| [p.file, p.number, p.start, p.end]);
            places.extend(numbers.flatten());
            first_place.push(places.len() as u32 / 4);
        }
        Self { repository, language, cut, files, first_place, places }
    }

    /// Returns the number of fragments.
    pub fn len(&self) -> usize {
        self.first_place.len() - 1
    }

    /// Returns true if there are no fragments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the places of a fragment, at least one, in corpus order.
    #[inline]
    pub fn places(&self, fragment: usize) -> impl ExactSizeIterator<Item = FragmentPlace> + '_ {
        let (from, to) =
            (self.first_place[fragment] as usize, self.first_place[fragment + 1] as usize);
        self.places[4 * from..4 * to].chunks_exact(4).map(FragmentPlace::new)
    }

    /// Returns the first place of a fragment.
    #[inline]
    pub fn first_place(&self, fragment: usize) -> FragmentPlace {
        FragmentPlace::new(&self.places[4 * self.first_place[fragment] as usize..])
    }

    /// Returns the number of places before merging.
    pub fn place_count(&self) -> usize {
        self.places.len() / 4
    }

    /// Returns a fragment's text: its lines joined by `\n`.
    pub fn text(&self, fragment: usize) -> &str {
        let place = self.first_place(fragment);
        self.files[place.file as usize].text(place.start, place.end)
    }

    /// Returns the texts of all fragments.
    pub fn texts(&self) -> Vec<&str> {
        (0..self.len()).map(|fragment| self.text(fragment)).collect()
    }

    /// Returns a fragment's name in Repoformer's program: `path|number`.
    pub fn name(&self, fragment: usize) -> String {
        let place = self.first_place(fragment);
        format!("{}|{}", self.files[place.file as usize].path, place.number)
    }

    /// Returns the index of the file with this path.
    pub fn file_index(&self, path: &str) -> Option<usize> {
        self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()
    }

    /// Returns the fragments whose first place is in a file.
    pub fn of_file(&self, file: u32) -> Range<u32> {
        self.partition(|place| place.file < file)..self.partition(|place| place.file <= file)
    }

    /// Returns the chunk of a file with this number.
    pub fn find_chunk(&self, file: u32, number: u32) -> Option<u32> {
        let at = self.partition(|place| (place.file, place.number) < (file, number));
        let place = ((at as usize) < self.len()).then(|| self.first_place(at as usize))?;
        (place.file == file && place.number == number).then_some(at)
    }

    /// Returns the number of fragments before the first one whose first place fails a test; all earlier fragments must pass it.
    fn partition(&self, test: impl Fn(FragmentPlace) -> bool) -> u32 {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            if test(self.first_place(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low as u32
    }
}

/// Returns the chunks of all files: offsets of their places, and the places.
fn chunks(files: &[FragmentFile], cut: Cut) -> (Vec<u32>, Vec<u32>) {
    let of_file = |(file, content): (usize, &FragmentFile)| -> Vec<u32> {
        let count = content.lines.count();
        let starts = (0..count).step_by(cut.stride());
        let ranges = starts.map(|start| (start as u32, count.min(start + cut.size()) as u32));
        let worded = ranges.filter(|(start, end)| content.text(*start, *end).contains(is_word));
        (0..)
            .zip(worded)
            .flat_map(|(number, (start, end))| [file as u32, number, start, end])
            .collect()
    };
    let places = parallel::map(files.iter().enumerate(), of_file).concat();
    ((0..=places.len() as u32 / 4).collect(), places)
}

/// Returns the windows of all files, merged by text: offsets of their places, and the places.
fn windows(files: &[FragmentFile], shape: WindowShape) -> (Vec<u32>, Vec<u32>) {
    let slots = |file: &FragmentFile| file.lines.count().div_ceil(shape.step());
    let most = files.iter().map(slots).sum();
    let mut seen = WindowTable::default();
    seen.last.reserve(most);
    let (mut first, mut places) = (Vec::with_capacity(most), Vec::with_capacity(most));
    let text = |place: FragmentPlace| files[place.file as usize].text(place.start, place.end);
    for (file, content) in files.iter().enumerate() {
        let count = content.lines.count();
        for line_no in (0..count).step_by(shape.step()) {
            let lines = shape.around(line_no, count);
            if lines.is_empty() {
                continue;
            }
            let place = FragmentPlace {
                file: file as u32,
                number: line_no as u32,
                start: lines.start as u32,
                end: lines.end as u32,
            };
            let hash = seen.hash(text(place));
            let is_same = |window: u32| text(first[window as usize]) == text(place);
            let window = seen.find(hash, is_same).unwrap_or_else(|| {
                let window = first.len() as u32;
                first.push(place);
                seen.insert(hash, window);
                window
            });
            places.push((window, place));
        }
    }
    group(first.len(), &places)
}

/// Windows by the hash of their text.
#[derive(Debug, Default)]
struct WindowTable {
    /// Seed of the hashes, so that nobody can choose texts whose hashes collide.
    seed: RandomState,
    /// Last window with each hash.
    last: HashMap<u64, u32>,
    /// Previous window with the same hash but another text, which almost never exists.
    before: HashMap<u32, u32>,
}

impl WindowTable {
    fn hash(&self, text: &str) -> u64 {
        self.seed.hash_one(text)
    }

    fn find(&self, hash: u64, is_same: impl Fn(u32) -> bool) -> Option<u32> {
        let mut window = *self.last.get(&hash)?;
        while !is_same(window) {
            window = *self.before.get(&window)?;
        }
        Some(window)
    }

    fn insert(&mut self, hash: u64, window: u32) {
        if let Some(before) = self.last.insert(hash, window) {
            self.before.insert(window, before);
        }
    }
}

/// Windows of a repository by their text.
#[derive(Debug, Default)]
pub struct WindowTexts(WindowTable);

impl WindowTexts {
    /// Indexes the windows of these fragments, which have distinct texts.
    pub fn new(fragments: &RepoFragments) -> Self {
        let mut seen = WindowTable::default();
        let hashes = parallel::map(0..fragments.len(), |window| seen.hash(fragments.text(window)));
        seen.last.reserve(hashes.len());
        for (window, hash) in (0..).zip(hashes) {
            seen.insert(hash, window);
        }
        Self(seen)
    }

    /// Returns the window with a text, among the fragments that were indexed.
    pub fn find(&self, fragments: &RepoFragments, text: &str) -> Option<u32> {
        self.0.find(self.0.hash(text), |window| fragments.text(window as usize) == text)
    }
}

/// Groups places by window, keeping the order in each group.
fn group(windows: usize, found: &[(u32, FragmentPlace)]) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0_u32; windows + 1];
    for (window, _) in found {
        first[*window as usize + 1] += 1;
    }
    for window in 0..windows {
        first[window + 1] += first[window];
    }
    let mut next = first.clone();
    let mut places = vec![0_u32; 4 * found.len()];
    for (window, place) in found {
        let at = 4 * next[*window as usize] as usize;
        places[at..at + 4].copy_from_slice(&[place.file, place.number, place.start, place.end]);
        next[*window as usize] += 1;
    }
    (first, places)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use repoformer_store::artifact::Payload;

    use super::*;
    use crate::corpus::SourceFile;

    fn repository(texts: &[String]) -> Repository {
        let file = |(i, text): (usize, &String)| SourceFile {
            path: format!("r/{i:03}.py"),
            text: text.clone(),
            same_as: i as u32,
        };
        Repository { name: "r".into(), files: texts.iter().enumerate().map(file).collect() }
    }

    /// Text of a window and its places: file, line_no, start, end.
    type Merged = (String, Vec<(usize, usize, usize, usize)>);

    /// Merges windows by the reference's loop: windows as (text, places), with a linear search.
    fn slow(texts: &[String], w: usize, s: usize) -> Vec<Merged> {
        let (step, delta) = ((w / s).max(1), w / 2);
        let mut merged: Vec<(String, Vec<_>)> = Vec::new();
        for (file, text) in texts.iter().enumerate() {
            let lines: Vec<String> = Lines::new(text).iter().map(str::to_owned).collect();
            let mut line_no = 0;
            while line_no < lines.len() {
                let (start, end) =
                    (line_no.saturating_sub(delta), lines.len().min(line_no + w - delta));
                if end > start {
                    let (text, place) = (lines[start..end].join("\n"), (file, line_no, start, end));
                    match merged.iter_mut().find(|(t, _)| *t == text) {
                        Some((_, places)) => places.push(place),
                        None => merged.push((text, vec![place])),
                    }
                }
                line_no += step;
            }
        }
        merged
    }

    proptest! {
        #[test]
        fn equals_the_reference_loop(texts in prop::collection::vec("[ab\n]{0,60}", 0..5), w in 1_usize..9, s in 1_usize..5) {
            let cut = Cut::Windows(WindowShape { window_size: w, slice_size: s, ..WindowShape::default() });
            let windows = RepoFragments::cut(repository(&texts), Language::Python, cut);
            let fast: Vec<_> = (0..windows.len()).map(|i| {
                let place = |p: FragmentPlace| (p.file as usize, p.number as usize, p.start as usize, p.end as usize);
                (windows.text(i).to_owned(), windows.places(i).map(place).collect::<Vec<_>>())
            }).collect();
            prop_assert_eq!(fast, slow(&texts, w, s));
            prop_assert!(windows.check().is_ok());
        }
    }
}
