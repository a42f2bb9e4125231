//! Prompts that need not be built again: after a few files changed, most would come out as they were.

use std::ops::Range;
use std::path::Path;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::artifact::{self, Header, Identity, read_note, write_note};
use crate::query::QueryWindow;
use crate::retrieve::{Found, Hole, HoleGuard};
use crate::window::RepoWindows;

/// Everything that a prompt is made from, but for the tasks and the settings: a digest of the query and of each window
/// found, its named places and the content of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Input([u8; 32]);

impl Input {
    pub(super) fn of(
        found: &Found,
        query: &QueryWindow,
        windows: &RepoWindows,
        guard: HoleGuard,
    ) -> Self {
        let mut hasher = blake3::Hasher::new();
        let text = |hasher: &mut blake3::Hasher, text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        let numbers = |hasher: &mut blake3::Hasher, numbers: &[u32]| {
            numbers.iter().for_each(|n| {
                hasher.update(&n.to_le_bytes());
            });
        };
        let QueryWindow {
            row,
            sample,
            task_id,
            path,
            line_no,
            context_start,
            start,
            end,
            text: lines,
        } = query;
        let known = [*row, *sample, *line_no, *context_start, *start, *end];
        numbers(&mut hasher, &known);
        numbers(&mut hasher, &[found.row, found.sample]);
        [task_id, path, lines]
            .iter()
            .for_each(|part| text(&mut hasher, part));
        let hole = Hole::of_query(query, windows, guard);
        for hit in &found.hits {
            let places = hole.named_places(hit.window);
            numbers(&mut hasher, &[hit.overlap, hit.union, places.len() as u32]);
            let first = places.first().copied();
            let shown = first.unwrap_or_else(|| windows.first_place(hit.window as usize));
            hasher.update(&windows.files[shown.file as usize].digest);
            numbers(&mut hasher, &[hole.last_line(shown)]);
            for place in places {
                text(&mut hasher, &windows.files[place.file as usize].path);
                numbers(&mut hasher, &[place.line_no, place.start, place.end]);
            }
        }
        Self(*hasher.finalize().as_bytes())
    }
}

/// The note beside prompts: what each was made from.
#[derive(Debug, Serialize, Deserialize)]
struct Noted {
    /// Checksum of the prompts.
    prompts: String,
    /// The settings that shaped them, and the tasks.
    settings: Identity,
    /// One a prompt, in their order.
    lines: Vec<NotedLine>,
}

/// A prompt's record: what it was made from, where something was retrieved, and what it adds to the sums.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct NotedLine {
    pub(super) input: Option<Input>,
    pub(super) bytes: u64,
    pub(super) tokens: u64,
    pub(super) has_blocks: bool,
}

/// The identity without what may differ between prompts that are the same.
fn settings(identity: &Identity) -> Identity {
    let mut settings = identity.clone();
    settings.inputs.retain(|name, _| name == "tasks");
    settings
}

impl NotedLine {
    /// Writes the note on prompts that were just built, unless it says nothing.
    pub(super) fn write(lines: Vec<Self>, note: &Path, identity: &Identity, prompts: &Header) {
        if lines.iter().any(|line| line.input.is_some()) {
            let noted = Noted {
                prompts: prompts.checksum.clone(),
                settings: settings(identity),
                lines,
            };
            write_note(note, &noted);
        }
    }
}

/// The prompts of the run before.
#[derive(Default)]
pub(super) struct KeptPrompts {
    text: Vec<u8>,
    lines: FxHashMap<Input, (Range<usize>, NotedLine)>,
}

impl KeptPrompts {
    /// Those that were made with the same settings for the same tasks, if what each was made from is known.
    pub(super) fn read(path: &Path, note: &Path, identity: &Identity) -> Self {
        let read = || {
            let noted: Noted = read_note(note)?;
            let (header, text) = artifact::read_jsonl(path).ok()?;
            let fits = header.checksum == noted.prompts && noted.settings == settings(identity);
            fits.then_some((noted, text))
        };
        let Some((noted, text)) = read() else {
            return Self::default();
        };
        let (mut lines, mut end) = (FxHashMap::default(), 0);
        for line in noted.lines {
            let range = end..end + line.bytes as usize;
            end = range.end;
            if let Some(input) = line.input {
                lines.insert(input, (range, line));
            }
        }
        Self { text, lines }
    }

    /// The prompt that was made from this.
    pub(super) fn get(&self, input: &Input) -> Option<(&[u8], NotedLine)> {
        let (range, noted) = self.lines.get(input)?;
        Some((self.text.get(range.clone())?, *noted))
    }
}
