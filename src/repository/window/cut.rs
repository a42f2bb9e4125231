//! Cutting files into windows and merging those with the same text; and cutting again after a few files changed, which
//! looks at the texts of these alone.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Place, RepoWindows, WindowFile, WindowShape};

/// A hash of a window's text, the same on every machine: two words at a time are multiplied and folded.
fn text_hash(text: &str) -> u64 {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<16>();
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    let mut hash = text.len() as u64 ^ 0x9E37_79B9_7F4A_7C15;
    for pair in pairs.iter().chain([&last]) {
        let pair = u128::from_le_bytes(*pair);
        hash = fold(
            pair as u64 ^ hash,
            (pair >> 64) as u64 ^ 0xD6E8_FEB8_6659_FD93,
        ) ^ hash.rotate_left(29);
    }
    hash
}

/// Windows by the hash of their text.
#[derive(Default)]
struct Seen {
    /// The last window with a hash.
    last: FxHashMap<u64, u32>,
    /// The one before it with the same hash and another text, which hardly ever is.
    before: FxHashMap<u32, u32>,
}

impl Seen {
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

/// The windows found so far.
#[derive(Default)]
struct Found {
    /// Every place and its window.
    places: Vec<(u32, Place)>,
    /// For each window its first place and its hash.
    first: Vec<Place>,
    hashes: Vec<u64>,
}

impl Found {
    fn with_capacity(windows: usize) -> Self {
        Self {
            places: Vec::with_capacity(windows),
            first: Vec::with_capacity(windows),
            hashes: Vec::with_capacity(windows),
        }
    }

    /// A window that was not found before.
    fn push(&mut self, place: Place, hash: u64) -> u32 {
        self.first.push(place);
        self.hashes.push(hash);
        self.first.len() as u32 - 1
    }

    fn finish(self, repository: String, shape: WindowShape, files: Vec<WindowFile>) -> RepoWindows {
        let (first_place, places) = group(self.first.len(), &self.places);
        RepoWindows {
            repository,
            shape,
            files,
            first_place,
            places,
            hashes: self.hashes,
        }
    }
}

/// The places of a file's windows, in order.
fn places_of(shape: WindowShape, file: usize, count: usize) -> impl Iterator<Item = Place> {
    let around = move |line_no: usize| {
        let lines = shape.around(line_no, count);
        let place = Place {
            file: file as u32,
            line_no: line_no as u32,
            start: lines.start as u32,
            end: lines.end as u32,
        };
        (!lines.is_empty()).then_some(place)
    };
    (0..count).step_by(shape.step()).filter_map(around)
}

fn text_at(files: &[WindowFile], place: Place) -> &str {
    let lines = &files[place.file as usize].lines;
    lines.range(place.start as usize, place.end as usize)
}

impl RepoWindows {
    /// Cuts files that are in the code-point order of their paths.
    pub fn cut_files(repository: String, files: Vec<WindowFile>, shape: WindowShape) -> Self {
        let slots = |file: &WindowFile| file.lines.count().div_ceil(shape.step());
        let most = files.iter().map(slots).sum();
        let (mut found, mut seen) = (Found::with_capacity(most), Seen::default());
        seen.last.reserve(most);
        for (index, file) in files.iter().enumerate() {
            for place in places_of(shape, index, file.lines.count()) {
                let text = text_at(&files, place);
                let hash = text_hash(text);
                let is_same = |window: u32| text_at(&files, found.first[window as usize]) == text;
                let window = seen.find(hash, is_same).unwrap_or_else(|| {
                    let window = found.push(place, hash);
                    seen.insert(hash, window);
                    window
                });
                found.places.push((window, place));
            }
        }
        found.finish(repository, shape, files)
    }

    /// The windows of `files`, of which file i is file `kept[i]` of these windows with the same content, if it is any.
    /// The texts of these files may be unread, but for those that [`texts_to_cut_again`](Self::texts_to_cut_again) names.
    /// The result is that of [`cut_files`](Self::cut_files).
    pub fn cut_again(&self, files: Vec<WindowFile>, kept: &[Option<u32>]) -> Self {
        let fresh = fresh_hashes(&files, kept, self.shape);
        let is_fresh: FxHashSet<u64> = fresh.iter().copied().collect();
        let mut fresh = fresh.into_iter();
        let slots = Slots::of(self);
        let (mut found, mut seen) = (Found::with_capacity(slots.windows.len()), Seen::default());
        let mut window_of_old = vec![None; self.len()];
        for (index, file) in files.iter().enumerate() {
            for place in places_of(self.shape, index, file.lines.count()) {
                let old = kept[index].map(|old| slots.window(old, place.line_no) as usize);
                if let Some(window) = old.and_then(|old| window_of_old[old]) {
                    found.places.push((window, place));
                    continue;
                }
                let hash = match old {
                    Some(old) => self.hashes[old],
                    None => fresh.next().unwrap_or_default(),
                };
                // Only a window that shares its hash with one of a changed file can have been found by another way.
                let is_same = |window: u32| {
                    text_at(&files, found.first[window as usize]) == text_at(&files, place)
                };
                let known = match is_fresh.contains(&hash) {
                    true => seen.find(hash, is_same),
                    false => None,
                };
                let window = known.unwrap_or_else(|| {
                    let window = found.push(place, hash);
                    if is_fresh.contains(&hash) {
                        seen.insert(hash, window);
                    }
                    window
                });
                if let Some(old) = old {
                    window_of_old[old] = Some(window);
                }
                found.places.push((window, place));
            }
        }
        found.finish(self.repository.clone(), self.shape, files)
    }

    /// The files of these windows whose texts [`cut_again`](Self::cut_again) has to compare with those of changed files.
    pub fn texts_to_cut_again(&self, files: &[WindowFile], kept: &[Option<u32>]) -> Vec<u32> {
        let fresh: FxHashSet<u64> = fresh_hashes(files, kept, self.shape).into_iter().collect();
        let stays: FxHashSet<u32> = kept.iter().flatten().copied().collect();
        let alike = (0..self.len()).filter(|window| fresh.contains(&self.hashes[*window]));
        let first = |window| {
            self.places(window)
                .find(|place| stays.contains(&place.file))
        };
        alike.filter_map(first).map(|place| place.file).collect()
    }
}

/// The hashes of the windows of files that were not kept, in order.
fn fresh_hashes(files: &[WindowFile], kept: &[Option<u32>], shape: WindowShape) -> Vec<u64> {
    let numbered = files.iter().enumerate().zip(kept);
    let fresh = numbered.filter(|(_, kept)| kept.is_none());
    fresh
        .flat_map(|((index, file), _)| places_of(shape, index, file.lines.count()))
        .map(|place| text_hash(text_at(files, place)))
        .collect()
}

/// The window at each place, by file and order in it.
struct Slots {
    /// `first[f]` is where file f's begin, one every `step` lines.
    first: Vec<usize>,
    step: usize,
    windows: Vec<u32>,
}

impl Slots {
    fn of(windows: &RepoWindows) -> Self {
        let step = windows.shape.step();
        let mut first = vec![0];
        for file in &windows.files {
            let end = first[first.len() - 1] + file.lines.count().div_ceil(step);
            first.push(end);
        }
        let mut slots = vec![0; first[first.len() - 1]];
        for window in 0..windows.len() {
            for place in windows.places(window) {
                slots[first[place.file as usize] + place.line_no as usize / step] = window as u32;
            }
        }
        Self {
            first,
            step,
            windows: slots,
        }
    }

    fn window(&self, file: u32, line_no: u32) -> u32 {
        self.windows[self.first[file as usize] + line_no as usize / self.step]
    }
}

/// Sorts places to their windows, keeping the order within each.
fn group(windows: usize, found: &[(u32, Place)]) -> (Vec<u32>, Vec<u32>) {
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
        places[at..at + 4].copy_from_slice(&[place.file, place.line_no, place.start, place.end]);
        next[*window as usize] += 1;
    }
    (first, places)
}
