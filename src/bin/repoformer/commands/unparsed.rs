//! Files that a grammar could not parse.

use repoformer::task::sample::UnparsedFile;
use repoformer::text::language::Language;

use crate::output::{self, counted};

/// Kind of code that a command draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrawnCode {
    /// Lines, also of a function that has an error elsewhere.
    Lines,
    /// Functions without any error.
    Functions,
}

/// Warns of code that cannot be parsed, so that no task is drawn from it.
pub(super) fn tell_unparsed(
    command: &str,
    language: Language,
    drawn: DrawnCode,
    files: &[UnparsedFile],
) {
    let (mut places, mut unread) = (Vec::new(), Vec::new());
    let [mut lines, mut functions] = [0; 2];
    for file in files {
        match &file.lines {
            Some(unparsed) => {
                lines += unparsed.count as u64;
                functions += unparsed.functions as u64;
                places.push(format!("{}:{}", file.path, unparsed.first + 1));
            }
            None => unread.push(file.path.clone()),
        }
    }
    if !places.is_empty() {
        let around = match drawn {
            DrawnCode::Lines => String::new(),
            DrawnCode::Functions => {
                format!(", nor from {} around them", counted(functions, "function"))
            }
        };
        output::warning(format!(
            "{command}: the {} grammar cannot parse {} of {}; nothing is drawn from there{around}: {}",
            language.title(),
            counted(lines, "line"),
            counted(places.len() as u64, "file"),
            output::few_of(&places)
        ));
    }
    if !unread.is_empty() {
        output::warning(format!(
            "{command}: nothing is drawn from {} with too much text, or with too long a line, to be parsed: {}",
            counted(unread.len() as u64, "file"),
            output::few_of(&unread)
        ));
    }
}
