//! Rows of JSON lines.

use std::io::{self, BufRead, Read};

use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{Object, kind, parse};
use serde_json::Value;

use super::{FILES, NO_TEXT, PATH, Place, REPOSITORY, Rows, STARS, TEXT};

/// Bytes of a line beyond those of its texts.
const ROOM: u64 = 64 << 20;

impl Rows<'_> {
    /// Reads JSON lines. A row is a file, or with a list `files` a repository.
    pub(super) fn lines(&mut self, mut input: Box<dyn BufRead>) -> Result<()> {
        // A text of JSON is longer than what it stands for: line ends and quotes have two characters.
        let most = self.settings.max_repository.saturating_mul(2).saturating_add(ROOM);
        let mut bytes = Vec::new();
        for line in 1.. {
            bytes.clear();
            bytes.shrink_to(1 << 20);
            let read = input.by_ref().take(most).read_until(b'\n', &mut bytes);
            let read = read.and_then(|read| {
                let is_cut = read as u64 == most && bytes.last() != Some(&b'\n');
                if is_cut {
                    skip_line(&mut input).map(|()| (read, true))
                } else {
                    Ok((read, false))
                }
            });
            match read {
                Ok((0, _)) => break,
                Ok((_, true)) => {
                    let reason = format!("left out: longer than {} MiB", most >> 20);
                    self.problem(Some(Place::Line(line)), reason);
                }
                Ok(_) if bytes.iter().all(u8::is_ascii_whitespace) => {}
                Ok(_) => match parse(self.input, line, &bytes) {
                    Ok(object) => self.object(line, &object)?,
                    Err(error) => self.broken(error)?,
                },
                Err(error) => {
                    let action = "read this file further";
                    return self.broken(Error::reading(self.input, action, error));
                }
            }
        }
        Ok(())
    }

    fn object(&mut self, line: usize, row: &Object) -> Result<()> {
        let place = Place::Line(line);
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
        place: Place,
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

fn skip_line(input: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = memchr::memchr(b'\n', buffer);
        let used = end.map_or(buffer.len(), |end| end + 1);
        let is_end = end.is_some() || buffer.is_empty();
        input.consume(used);
        if is_end {
            return Ok(());
        }
    }
}

/// The first of the named fields that is there.
fn string<'r>(row: &'r Object, names: &[&str]) -> Result<&'r str, String> {
    let found = names.iter().find_map(|name| Some((name, row.get(*name)?)));
    match found {
        Some((_, Value::String(text))) => Ok(text),
        Some((name, other)) => Err(format!("field '{name}' must be a string, not {}", kind(other))),
        None => {
            let way = if row.contains_key("blob_id") && names == TEXT { NO_TEXT } else { "" };
            let names = names.join("', '");
            let end = if way.is_empty() { "" } else { ": " };
            Err(format!("none of the fields '{names}' is there{end}{way}"))
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
