//! Rows of JSON lines.

use std::io::BufRead;

use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{Object, is_too_long, kind, parse, read_line};
use serde_json::Value;

use super::{FILES, NO_TEXT, PATH, REPOSITORY, RowPosition, Rows, STARS, TEXT};

/// Greatest number of bytes of a line in addition to its texts.
const ROOM: u64 = 64 << 20;

impl Rows<'_> {
    /// Reads JSON lines. A row is a file, or, if it has a list `files`, a repository.
    pub(super) fn lines(&mut self, mut input: Box<dyn BufRead>) -> Result<()> {
        // A JSON text is longer than the text it represents: line ends and quotes take two characters.
        let most = self.settings.max_repository.saturating_mul(2).saturating_add(ROOM);
        let mut bytes = Vec::new();
        for line in 1.. {
            bytes.clear();
            bytes.shrink_to(1 << 20);
            let read = read_line(&mut input, || most, &mut bytes);
            match read {
                Ok(0) => break,
                Ok(_) if is_too_long(&bytes) => {
                    let reason = format!("left out: longer than {} MiB", most >> 20);
                    self.problem(Some(RowPosition::Line(line)), reason);
                }
                Ok(_) if bytes.iter().all(u8::is_ascii_whitespace) => {}
                Ok(_) => match parse(self.input, line, &bytes) {
                    Ok(object) => self.object(line, &object)?,
                    Err(error) => self.note_error(error)?,
                },
                Err(error) => {
                    let action = "read this file further";
                    return self.note_error(Error::reading(self.input, action, error));
                }
            }
        }
        Ok(())
    }

    fn object(&mut self, line: usize, row: &Object) -> Result<()> {
        let place = RowPosition::Line(line);
        let (repository, stars) = match (string(row, &REPOSITORY), stars(row)) {
            (Ok(repository), Ok(stars)) => (repository, stars),
            (Err(reason), _) | (_, Err(reason)) => {
                self.problem(Some(place), reason);
                return Ok(());
            }
        };
        let Some(Value::Array(files)) = row.get(FILES) else {
            return self.one(place, repository, row, "", stars);
        };
        for (number, file) in files.iter().enumerate() {
            let within = format!("{FILES}[{number}]");
            match file {
                Value::Object(file) => self.one(place, repository, file, &within, stars)?,
                other => {
                    let reason = format!("field '{within}' must be an object, not {}", kind(other));
                    self.problem(Some(place), reason);
                }
            }
        }
        Ok(())
    }

    fn one(
        &mut self,
        place: RowPosition,
        repository: &str,
        file: &Object,
        within: &str,
        stars: u64,
    ) -> Result<()> {
        match (string(file, &PATH), string(file, &TEXT)) {
            (Ok(path), Ok(text)) => {
                let [repository, path, text] = [repository, path, text].map(str::as_bytes);
                self.file(place, repository, path, text, stars)
            }
            (Err(reason), _) | (_, Err(reason)) => {
                self.tally.rows += 1;
                let within = if within.is_empty() { "" } else { &format!("{within}: ") };
                self.problem(Some(place), format!("{within}{reason}"));
                Ok(())
            }
        }
    }
}

/// Returns the first of the named fields that exists.
fn string<'r>(row: &'r Object, names: &[&str]) -> Result<&'r str, String> {
    let found = names.iter().find_map(|name| Some((name, row.get(*name)?)));
    match found {
        Some((_, Value::String(text))) => Ok(text),
        Some((name, other)) => Err(format!("field '{name}' must be a string, not {}", kind(other))),
        None => {
            let way = if row.contains_key("blob_id") && names == TEXT { NO_TEXT } else { "" };
            let names = names.join("', '");
            let end = if way.is_empty() { "" } else { ": " };
            Err(format!("the fields '{names}' are all missing{end}{way}"))
        }
    }
}

fn stars(row: &Object) -> Result<u64, String> {
    let found = STARS.iter().find_map(|name| Some((name, row.get(*name)?)));
    match found {
        None | Some((_, Value::Null)) => Ok(0),
        Some((_, Value::Number(number))) => {
            Ok(number.as_u64().unwrap_or_else(|| number.as_f64().unwrap_or(0.0) as u64))
        }
        Some((name, other)) => Err(format!("field '{name}' must be a number, not {}", kind(other))),
    }
}
