//! Repository windows: every file cut into overlapping runs of lines, the corpus that retrieval searches.
//!
//! RepoCoder's rules: a window of w lines around every `step`-th line, w/2 of them before it; windows with the
//! same text are one window with several places. A file's text is stored once, a window is a range of its lines.

mod change;
mod cut;
mod payload;

pub use change::{Change, Run};
pub use payload::TextRanges;

use std::str::FromStr;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::repository::corpus::Repository;
use crate::text::language::Language;
use crate::text::lines::Lines;

/// How many lines of a window lie before the line that it is cut around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Center {
    /// Half the window, as the reference program does.
    #[default]
    Half,
    /// One step, as the extended pipeline's document says; the same at slice size 2.
    Step,
}

impl FromStr for Center {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "half" => Ok(Self::Half),
            "step" => Ok(Self::Step),
            other => Err(format!("'{other}' is neither half nor step")),
        }
    }
}

impl std::fmt::Display for Center {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Half => "half",
            Self::Step => "step",
        })
    }
}

/// How files are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowShape {
    /// Lines of a window.
    pub window_size: usize,
    /// Windows overlap so that a new one starts every `window_size / slice_size` lines.
    pub slice_size: usize,
    /// Where the line that a window is cut around lies in it.
    pub center: Center,
}

impl Default for WindowShape {
    fn default() -> Self {
        Self {
            window_size: 20,
            slice_size: 2,
            center: Center::Half,
        }
    }
}

impl WindowShape {
    /// # Errors
    /// A size of 0, or one past any file's length.
    pub fn check(&self) -> Result<()> {
        let too_large = u32::MAX as usize / 4;
        for (name, value) in [
            ("window-size", self.window_size),
            ("slice-size", self.slice_size),
        ] {
            if value == 0 || value > too_large {
                let reason = format!("must lie between 1 and {too_large}, not {value}");
                return Err(Error::Parameter { name, reason });
            }
        }
        Ok(())
    }

    /// Lines between the starts of two windows.
    pub fn step(&self) -> usize {
        (self.window_size / self.slice_size).max(1)
    }

    /// Half a window: the lines before a query's hole (`delta` in the reference).
    pub fn half(&self) -> usize {
        self.window_size / 2
    }

    /// The lines of the window cut around `line_no` in a file of `count` lines.
    pub fn around(&self, line_no: usize, count: usize) -> std::ops::Range<usize> {
        let before = match self.center {
            Center::Half => self.half(),
            Center::Step => self.step().min(self.window_size),
        };
        line_no.saturating_sub(before)..count.min(line_no + self.window_size - before)
    }
}

/// One occurrence of a window: lines `start..end` of a file, cut around `line_no` (all 0-based).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index in [`RepoWindows::files`].
    pub file: u32,
    /// The line that the window was cut around.
    pub line_no: u32,
    /// First line.
    pub start: u32,
    /// Line after the last.
    pub end: u32,
}

impl Place {
    /// From its four numbers.
    fn of(numbers: &[u32]) -> Self {
        Self {
            file: numbers[0],
            line_no: numbers[1],
            start: numbers[2],
            end: numbers[3],
        }
    }
}

/// A file as the later stages need it: its name and its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowFile {
    /// `repository/folder/…/file.py`.
    pub path: String,
    /// Index of the first file that is the same on disk; its own where no link is involved.
    pub same_as: u32,
    /// Length of its lines joined by `\n`.
    pub bytes: u32,
    /// BLAKE3 of its lines joined by `\n`.
    pub digest: [u8; 32],
    /// Its lines.
    pub lines: Lines,
}

/// All windows of a repository, merged by text, in first-seen order: files by path, then by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoWindows {
    /// The repository's folder name.
    pub repository: String,
    /// How its files were cut.
    pub shape: WindowShape,
    /// Its files in code-point order of their paths.
    pub files: Vec<WindowFile>,
    /// `first_place[w]..first_place[w + 1]` are window w's places.
    first_place: Vec<u32>,
    /// Four numbers a place: file, line_no, start, end.
    places: Vec<u32>,
    /// A hash of each window's text: windows with different ones are different.
    hashes: Vec<u64>,
}

impl WindowFile {
    /// A file of this text.
    pub fn new(path: String, same_as: u32, text: String) -> Self {
        let lines = Lines::of(text);
        Self {
            path,
            same_as,
            bytes: lines.text().len() as u32,
            digest: *blake3::hash(lines.text().as_bytes()).as_bytes(),
            lines,
        }
    }
}

/// A digest of what windows are cut from: the files' names and lines, and which are the same on disk.
pub fn digest_of_files(files: &[WindowFile]) -> String {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(&(file.path.len() as u64).to_le_bytes());
        hasher.update(file.path.as_bytes());
        hasher.update(&file.same_as.to_le_bytes());
        hasher.update(&(file.lines.count() as u64).to_le_bytes());
        hasher.update(&file.digest);
    }
    hasher.finalize().to_hex().to_string()
}

impl RepoWindows {
    /// Cuts every file of a repository.
    ///
    /// ```
    /// use repoformer::repository::corpus::{Repository, SourceFile};
    /// use repoformer::repository::window::{RepoWindows, WindowShape};
    /// let text = (0..25).map(|n| format!("x{n} = {n}\n")).collect::<String>();
    /// let file = SourceFile { path: "r/a.py".into(), text, same_as: 0 };
    /// let windows = RepoWindows::cut(Repository { name: "r".into(), files: vec![file] }, WindowShape::default());
    /// assert_eq!(windows.len(), 3);
    /// let ranges: Vec<_> = (0..3).map(|w| windows.first_place(w)).map(|p| (p.start, p.end)).collect();
    /// assert_eq!(ranges, [(0, 10), (0, 20), (10, 25)]);
    /// ```
    pub fn cut(repository: Repository, shape: WindowShape) -> Self {
        let files = repository.files.into_par_iter();
        let files = files.map(|file| WindowFile::new(file.path, file.same_as, file.text));
        Self::cut_files(repository.name, files.collect(), shape)
    }

    /// What its files are written in: all of them the same.
    pub fn language(&self) -> Language {
        let first = self.files.first();
        let language = first.and_then(|file| Language::of_path(&file.path));
        language.unwrap_or_default()
    }

    /// Number of windows.
    pub fn len(&self) -> usize {
        self.first_place.len() - 1
    }

    /// Whether there is no window.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where a window occurs, in corpus order; at least one place.
    pub fn places(&self, window: usize) -> impl ExactSizeIterator<Item = Place> + '_ {
        let (from, to) = (
            self.first_place[window] as usize,
            self.first_place[window + 1] as usize,
        );
        self.places[4 * from..4 * to].chunks_exact(4).map(Place::of)
    }

    /// Where a window occurs first.
    pub fn first_place(&self, window: usize) -> Place {
        Place::of(&self.places[4 * self.first_place[window] as usize..])
    }

    /// A window's text: its lines joined by `\n`.
    pub fn text(&self, window: usize) -> &str {
        let place = self.first_place(window);
        self.files[place.file as usize]
            .lines
            .range(place.start as usize, place.end as usize)
    }

    /// Index of the file with this path.
    pub fn file_index(&self, path: &str) -> Option<usize> {
        self.files
            .binary_search_by(|file| file.path.as_str().cmp(path))
            .ok()
    }

    /// Number of places before merging.
    pub fn place_count(&self) -> usize {
        self.places.len() / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::corpus::SourceFile;
    use crate::store::artifact::Payload;
    use proptest::prelude::*;

    fn repository(texts: &[String]) -> Repository {
        let file = |(i, text): (usize, &String)| SourceFile {
            path: format!("r/{i:03}.py"),
            text: text.clone(),
            same_as: i as u32,
        };
        Repository {
            name: "r".into(),
            files: texts.iter().enumerate().map(file).collect(),
        }
    }

    /// A window's text and its places: file, line_no, start, end.
    type Merged = (String, Vec<(usize, usize, usize, usize)>);

    /// The reference's loop: windows as (text, places), merged by a linear search.
    fn slow(texts: &[String], w: usize, s: usize) -> Vec<Merged> {
        let (step, delta) = ((w / s).max(1), w / 2);
        let mut merged: Vec<(String, Vec<_>)> = Vec::new();
        for (file, text) in texts.iter().enumerate() {
            let lines: Vec<String> = Lines::new(text).iter().map(str::to_owned).collect();
            let mut line_no = 0;
            while line_no < lines.len() {
                let (start, end) = (
                    line_no.saturating_sub(delta),
                    lines.len().min(line_no + w - delta),
                );
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
            let shape = WindowShape { window_size: w, slice_size: s, center: Center::Half };
            let windows = RepoWindows::cut(repository(&texts), shape);
            let fast: Vec<_> = (0..windows.len()).map(|i| {
                let place = |p: Place| (p.file as usize, p.line_no as usize, p.start as usize, p.end as usize);
                (windows.text(i).to_owned(), windows.places(i).map(place).collect::<Vec<_>>())
            }).collect();
            prop_assert_eq!(fast, slow(&texts, w, s));
            prop_assert!(windows.check().is_ok());
        }
    }

    #[test]
    fn both_centers_agree_at_slice_size_2() {
        let cut = |center, slice_size| {
            WindowShape {
                window_size: 20,
                slice_size,
                center,
            }
            .around(30, 100)
        };
        assert_eq!(cut(Center::Half, 2), cut(Center::Step, 2));
        assert_eq!(cut(Center::Half, 5), 20..40);
        assert_eq!(cut(Center::Step, 5), 26..46);
    }

    #[test]
    fn sizes_of_zero_are_refused() {
        let shape = WindowShape {
            window_size: 0,
            ..WindowShape::default()
        };
        assert!(
            shape
                .check()
                .unwrap_err()
                .to_string()
                .starts_with("window-size: must lie between")
        );
    }
}
