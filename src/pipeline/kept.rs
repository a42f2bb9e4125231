//! Lines of a JSONL artifact that need not be made again: after a few files changed, most would come out as they were.

use std::ops::Range;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::store::artifact::{self, Header, Identity, read_note, write_note};

/// A digest of everything that a line was made from, besides the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Input(pub(super) [u8; 32]);

/// A line of the artifact: what it was made from, and what it adds to the sums.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct NotedLine<T> {
    pub(super) input: Input,
    pub(super) bytes: u64,
    pub(super) adds: T,
}

/// The note beside the artifact.
#[derive(Debug, Serialize, Deserialize)]
struct Noted<T> {
    /// Checksum of the artifact.
    artifact: String,
    /// What shaped all of its lines.
    settings: Identity,
    /// One a line, in their order.
    lines: Vec<NotedLine<T>>,
}

impl<T: Serialize> NotedLine<T> {
    /// Writes the note on lines that were just made, if any were. `settings` is the part of the artifact's
    /// identity that is the same for lines which are.
    pub(super) fn write(lines: Vec<Self>, note: &Path, settings: Identity, artifact: &Header) {
        if !lines.is_empty() {
            let artifact = artifact.checksum.clone();
            let noted = Noted {
                artifact,
                settings,
                lines,
            };
            write_note(note, &noted);
        }
    }
}

/// The lines of the run before.
#[derive(Default)]
pub(super) struct KeptLines<T> {
    path: PathBuf,
    header: Option<Header>,
    lines: FxHashMap<Input, (Range<usize>, NotedLine<T>)>,
    /// Empty until it is loaded.
    text: Vec<u8>,
}

impl<T: Copy + DeserializeOwned> KeptLines<T> {
    /// Those that were made with the same settings, if what each was made from is known.
    pub(super) fn read(path: &Path, note: &Path, settings: &Identity) -> Self {
        let read = || {
            let noted: Noted<T> = read_note(note)?;
            let header = artifact::read_jsonl_header(path).ok()?;
            let fits = header.checksum == noted.artifact && noted.settings == *settings;
            fits.then_some((noted.lines, Some(header)))
        };
        let (noted, header) = read().unwrap_or_default();
        let (mut lines, mut end) = (FxHashMap::default(), 0);
        for line in noted {
            let range = end..end + line.bytes as usize;
            end = range.end;
            lines.insert(line.input, (range, line));
        }
        Self {
            path: path.to_owned(),
            header,
            lines,
            text: Vec::new(),
        }
    }

    /// The header of the artifact and what its lines add to the sums, if it is made of lines from these inputs, in their
    /// order, and nothing else.
    pub(super) fn same_as<'a>(
        &self,
        inputs: impl Iterator<Item = &'a Input>,
    ) -> Option<(&Header, Vec<NotedLine<T>>)> {
        let header = self.header.as_ref()?;
        let (mut end, mut lines) = (0, Vec::with_capacity(self.lines.len()));
        for input in inputs {
            let (range, line) = self.lines.get(input)?;
            if std::mem::replace(&mut end, range.end) != range.start {
                return None;
            }
            lines.push(*line);
        }
        (end as u64 == header.bytes).then_some((header, lines))
    }

    /// With the text of the lines; without any where it cannot be had.
    pub(super) fn load(self) -> Self {
        let Some(wanted) = &self.header else {
            return self;
        };
        match artifact::read_jsonl(&self.path) {
            Ok((header, text)) if header.checksum == wanted.checksum => Self { text, ..self },
            _ => Self {
                header: None,
                lines: FxHashMap::default(),
                ..self
            },
        }
    }

    /// The line that was made from this, once the text is loaded.
    pub(super) fn get(&self, input: &Input) -> Option<(&[u8], NotedLine<T>)> {
        let (range, noted) = self.lines.get(input)?;
        Some((self.text.get(range.clone())?, *noted))
    }
}
