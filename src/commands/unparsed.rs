//! Files that a grammar could not parse.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use repoformer_core::task::sample::{Kind, UnparsedFile};
use repoformer_text::language::Language;
use repoformer_text::language::syntax::{ParseExtent, ParseGap};

use crate::output::{self, format_count};

/// Kind of code from which a command draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrawnCode {
    /// Lines, including lines of a function that has an error elsewhere.
    Lines,
    /// Functions without any error.
    Functions,
}

impl DrawnCode {
    /// Returns the code that tasks of a kind are drawn from.
    pub(super) fn from_kind(kind: Kind) -> Self {
        match kind {
            Kind::Function => Self::Functions,
            Kind::Line | Kind::Api | Kind::Chunk => Self::Lines,
        }
    }
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
                format!(", nor from {} around them", format_count(functions, "function"))
            }
        };
        // The errors are after the last line: the file ends too early.
        let code = match lines {
            0 => "the end".to_owned(),
            lines => format_count(lines, "line"),
        };
        output::warning(format!(
            "{command}: the {} grammar cannot parse {code} of {}; nothing is drawn from there{around}: {}",
            language.title(),
            format_count(places.len() as u64, "file"),
            output::few_of(&places)
        ));
    }
    if !unread.is_empty() {
        output::warning(format!(
            "{command}: nothing is drawn from {} that cannot be parsed (too much text, too long a line, or too deep nesting): {}",
            format_count(unread.len() as u64, "file"),
            output::few_of(&unread)
        ));
    }
}

/// Files in which names, functions and classes may not be found, by the title of their language, without duplicates.
static GAPS: Mutex<BTreeMap<&str, BTreeSet<(String, ParseExtent)>>> = Mutex::new(BTreeMap::new());

/// Records files for [`tell_unfound`].
pub(crate) fn keep_gaps(gaps: Vec<ParseGap>) {
    let mut kept = GAPS.lock().unwrap_or_else(PoisonError::into_inner);
    for ParseGap { language, path, parsed } in gaps {
        kept.entry(language.title()).or_default().insert((path, parsed));
    }
}

/// Warns of the files that [`keep_gaps`] recorded.
pub(crate) fn tell_unfound() {
    let kept = std::mem::take(&mut *GAPS.lock().unwrap_or_else(PoisonError::into_inner));
    for (title, files) in kept {
        let (mut places, mut unread) = (Vec::new(), Vec::new());
        for (path, parsed) in files {
            match parsed {
                ParseExtent::Partly(row) => places.push(format!("{path}:{}", row + 1)),
                ParseExtent::Whole | ParseExtent::Not => unread.push(path),
            }
        }
        let reasons = [
            (format!("the {title} grammar cannot parse all of"), places),
            (
                format!("too much {title} text, too long a line, or too deep nesting to parse in"),
                unread,
            ),
        ];
        for (reason, files) in reasons.into_iter().filter(|(_, files)| !files.is_empty()) {
            output::warning(format!(
                "{reason} {}; functions, classes and names there may not be found: {}",
                format_count(files.len() as u64, "file"),
                output::few_of(&files)
            ));
        }
    }
}
