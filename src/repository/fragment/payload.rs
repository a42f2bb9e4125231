//! Fragments on disk: which files there are and where each fragment lies, then the text of all files.

use std::sync::Arc;

use super::{Cut, FragmentFile, RepoFragments};
use crate::error::Result;
use crate::store::artifact::{Column, Columns, Payload, check_offsets};
use crate::text::language::Language;
use crate::text::lines::Lines;

const ABOUT: &str = "about";
const FILES: &str = "files";
const FIRST_PLACE: &str = "first place";
const PLACES: &str = "places";
const TEXT: &str = "text";

/// A file without its text: path, same_as, number of lines, bytes of the lines joined.
type FileRecord = (String, u32, u32, u32);

impl Payload for RepoFragments {
    const KIND: &'static str = "repository fragments";

    fn records(&self) -> usize {
        self.len()
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        let record = |file: &FragmentFile| -> FileRecord {
            let (lines, bytes) = (file.lines.count(), file.lines.text().len());
            (file.path.clone(), file.same_as, lines as u32, bytes as u32)
        };
        let files: Vec<FileRecord> = self.files.iter().map(record).collect();
        let texts = self.files.iter().map(|file| file.lines.text().as_bytes());
        Ok(vec![
            Column::records(ABOUT, &(&self.repository, self.language, self.cut))?,
            Column::records(FILES, &files)?,
            Column::numbers(FIRST_PLACE, &self.first_place),
            Column::numbers(PLACES, &self.places),
            Column::runs(TEXT, texts),
        ])
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        let (repository, language, cut): (String, Language, Cut) = columns.records(ABOUT)?;
        let records: Vec<FileRecord> = columns.records(FILES)?;
        let (first_place, places) = (columns.numbers(FIRST_PLACE)?, columns.numbers(PLACES)?);
        let text = String::from_utf8(columns.numbers(TEXT)?);
        let text = Arc::new(text.map_err(|_| columns.damaged("its texts are not UTF-8"))?);
        let (mut files, mut begin) = (Vec::with_capacity(records.len()), 0_usize);
        for (path, same_as, count, bytes) in records {
            let part = begin..begin + bytes as usize;
            begin = part.end;
            let lines = Lines::from_joined(&text, part, count as usize);
            let lines = lines.ok_or_else(|| {
                columns.damaged("a file's text is missing or has another number of lines")
            })?;
            files.push(FragmentFile {
                path,
                same_as,
                lines,
            });
        }
        Ok(Self {
            repository,
            language,
            cut,
            files,
            first_place,
            places,
        })
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
