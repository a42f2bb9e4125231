//! Storage of fragments: first the files and the place of each fragment, then the texts of all files. The texts take most of
//! the space and can be left on disk.

use std::ops::Range;
use std::sync::Arc;

use repoformer_store::artifact::{Column, Columns, Payload, Piece, check_offsets};
use repoformer_store::error::Result;
use repoformer_text::language::Language;
use repoformer_text::lines::Lines;

use super::{Cut, FragmentFile, RepoFragments};

const ABOUT: &str = "about";
const FILES: &str = "files";
const FIRST_PLACE: &str = "first place";
const PLACES: &str = "places";
const TEXT: &str = "text";

/// File without its text: path, same_as, number of lines, bytes of the joined lines, their digest.
type FileRecord = (String, u32, u32, u32, [u8; 32]);

impl Payload for RepoFragments {
    const KIND: &'static str = "repository fragments";

    fn records(&self) -> usize {
        self.len()
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        let record = |file: &FragmentFile| -> FileRecord {
            let (path, lines) = (file.path.clone(), file.lines.count() as u32);
            (path, file.same_as, lines, file.bytes, file.digest)
        };
        let files: Vec<FileRecord> = self.files.iter().map(record).collect();
        let texts = self.files.iter();
        let texts = texts.map(|file| (file.lines.text(), file.digest));
        Ok(vec![
            Column::records(ABOUT, &(&self.repository, self.language, self.cut))?,
            Column::records(FILES, &files)?,
            Column::numbers(FIRST_PLACE, &self.first_place),
            Column::numbers(PLACES, &self.places),
            Column::pieces(TEXT, texts),
        ])
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        let (mut fragments, texts) = Self::outline(columns)?;
        fragments.read_texts(columns, &texts, None)?;
        Ok(fragments)
    }

    fn check_columns(columns: &mut Columns) -> Result<()> {
        columns.check_all(Some(TEXT))?;
        let (_, texts) = Self::outline(columns)?;
        columns.check_pieces(TEXT, texts.pieces())
    }

    fn check(&self) -> Result<(), String> {
        check_offsets(&self.first_place, self.places.len() / 4)?;
        let is_outside = |n: &[u32]| {
            let file = n.first().and_then(|file| self.files.get(*file as usize));
            n.len() < 4
                || n[2] >= n[3]
                || file.is_none_or(|file| n[3] as usize > file.lines.count())
        };
        let without_place = self.first_place.windows(2).any(|pair| pair[0] == pair[1]);
        let files = self.files.len();
        if without_place || self.places.chunks(4).any(is_outside) {
            Err("a fragment lies outside its file".into())
        } else if self.files.iter().any(|file| file.same_as as usize >= files) {
            Err("a file is the same as a missing one".into())
        } else {
            Ok(())
        }
    }
}

/// Start of each file's text in the column of texts, and its digest.
#[derive(Debug)]
pub struct TextRanges(Vec<(u64, Piece)>);

impl TextRanges {
    fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.0.iter().map(|(_, piece)| *piece)
    }
}

impl RepoFragments {
    /// Reads everything except the files' texts.
    ///
    /// # Errors
    /// A column is missing, damaged, or cannot be read.
    pub fn outline(columns: &mut Columns) -> Result<(Self, TextRanges)> {
        let (repository, language, cut): (String, Language, Cut) = columns.records(ABOUT)?;
        let records: Vec<FileRecord> = columns.records(FILES)?;
        let (mut files, mut ranges, mut begin) = (Vec::new(), Vec::new(), 0);
        for (path, same_as, count, bytes, digest) in records {
            files.push(FragmentFile {
                path,
                same_as,
                bytes,
                digest,
                lines: Lines::unread(count as usize),
            });
            let bytes = u64::from(bytes);
            ranges.push((begin, Piece { bytes, digest }));
            begin += bytes;
        }
        let fragments = Self {
            repository,
            language,
            cut,
            files,
            first_place: columns.numbers(FIRST_PLACE)?,
            places: columns.numbers(PLACES)?,
        };
        Ok((fragments, TextRanges(ranges)))
    }

    /// Reads the texts of these files, or of all files.
    ///
    /// # Errors
    /// The texts are damaged or cannot be read.
    pub fn read_texts(
        &mut self,
        columns: &mut Columns,
        texts: &TextRanges,
        wanted: Option<&[u32]>,
    ) -> Result<()> {
        let Some(wanted) = wanted else {
            let text = Arc::new(columns.texts(TEXT, texts.pieces())?);
            for (file, (begin, piece)) in self.files.iter_mut().zip(&texts.0) {
                let part = *begin as usize..(begin + piece.bytes) as usize;
                file.lines = join_lines(columns, &text, part, file)?;
            }
            return Ok(());
        };
        for &index in wanted {
            let (file, (begin, piece)) = (&mut self.files[index as usize], texts.0[index as usize]);
            if !file.lines.is_read() {
                let text = Arc::new(columns.text(TEXT, begin, piece)?);
                file.lines = join_lines(columns, &text, 0..text.len(), file)?;
            }
        }
        Ok(())
    }
}

fn join_lines(
    columns: &Columns,
    text: &Arc<String>,
    part: Range<usize>,
    file: &FragmentFile,
) -> Result<Lines> {
    Lines::from_joined(text, part, file.lines.count())
        .ok_or_else(|| columns.damage_error("a text has another number of lines"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use repoformer_store::artifact::{ArtifactState, Identity, read, state, write};

    use super::*;
    use crate::corpus::{Repository, SourceFile};
    use crate::fragment::WindowShape;

    #[test]
    fn fragments_are_read_as_they_were_written_or_not_at_all() {
        let file = |(path, text): (&str, &str)| SourceFile {
            path: path.into(),
            text: text.into(),
            same_as: 0,
        };
        let files = [("r/a.py", "x = 1\n\ny = 2\n"), ("r/b.py", "\n"), ("r/c.py", "")];
        let repository = Repository { name: "r".into(), files: files.map(file).into() };
        let cut = Cut::Windows(WindowShape::default());
        let windows = RepoFragments::cut(repository, Language::Python, cut);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("windows.bin");
        let identity = Identity::new(RepoFragments::KIND);
        write(&path, &identity, &windows).unwrap();
        let (header, back) = read::<RepoFragments>(&path).unwrap();
        assert_eq!((back, header.records), (windows, 2));
        let bytes = fs::read(&path).unwrap();
        // Without the field's name, there is no checksum; the content it covers is intact.
        let name = memchr::memmem::find(&bytes, b"\"record_checksum\"").unwrap();
        let name = name..name + "\"record_checksum\"".len();
        for at in (0..bytes.len()).filter(|at| !name.contains(at)) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x20;
            fs::write(&path, &changed).unwrap();
            let state = state::<RepoFragments>(&path, &identity);
            assert!(!matches!(state, ArtifactState::Current(_)), "byte {at}");
        }
    }
}
