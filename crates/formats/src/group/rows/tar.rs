//! Files of tar archives, which become repositories by the rule of `convert`.

use std::io::BufRead;
use std::path::Path;

use repoformer_core::repository::corpus::{Listing, Walk};
use repoformer_core::repository::fragment::path_in_repository;
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_text::language::Language;

use super::{Problem, RowPosition, Rows};
use crate::convert::archive_to_folders;

impl Rows<'_> {
    /// Unpacks an archive into a folder that does not exist yet, accepts the files of its repositories, and removes the folder.
    pub(super) fn archive(&mut self, input: Box<dyn BufRead>, folder: &Path) -> Result<()> {
        let removed = || match files::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::writing(folder, "remove this folder", error))
            }
            _ => Ok(()),
        };
        removed()?;
        match archive_to_folders(self.input, input, folder) {
            Ok(conversion) => {
                for error in conversion.problems {
                    self.tally.problem(Problem::from_error(self.input, error));
                }
                let remarks = conversion.warnings.iter().map(ToString::to_string);
                let remarks = conversion.notes.iter().map(ToString::to_string).chain(remarks);
                remarks.for_each(|remark| self.tally.note(remark));
                self.unpack(folder)?;
            }
            Err(error) => self.note_error(error)?,
        }
        removed()
    }

    fn unpack(&mut self, folder: &Path) -> Result<()> {
        let cannot_list = |e| Error::reading(folder, "list this folder", e);
        let mut names = Vec::new();
        for entry in files::read_dir(folder).map_err(cannot_list)? {
            names.extend(entry.map_err(cannot_list)?.file_name().into_string().ok());
        }
        names.sort_unstable();
        for name in names {
            for language in Language::ALL {
                let listing = Listing::new(folder, &name, language, Walk::Glob)?;
                let (found, skipped) = listing.all()?;
                for error in skipped {
                    self.tally.problem(Problem::from_error(self.input, error));
                }
                for file in found {
                    let bytes = listing.read_bytes(&file)?;
                    let path = path_in_repository(&file.path).as_bytes();
                    self.file(RowPosition::Archive, name.as_bytes(), path, &bytes.content, 0)?;
                }
            }
        }
        Ok(())
    }
}
