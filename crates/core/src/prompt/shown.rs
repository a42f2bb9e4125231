//! Contexts that prompts show, read from the prompts' records.

use std::path::Path;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{self, Object};
use repoformer_store::schema::require;
use serde_json::Value;

use crate::task::cross_file;
use crate::task::fields::MADE;

/// A retrieved piece of code. The outcomes that show it share its texts.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownFragment {
    /// Path of the file that contains the code.
    pub path: Arc<str>,
    /// 0-based line at which the code begins in the file.
    pub first_line: Option<usize>,
    /// Score by the ranker.
    pub score: Option<f64>,
    /// Text of the code.
    pub text: Arc<str>,
}

impl ShownFragment {
    /// Converts the fragment to the form that tasks use.
    pub fn to_cross_file(&self) -> cross_file::CrossFileFragment {
        cross_file::CrossFileFragment {
            path: self.path.to_string(),
            text: self.text.to_string(),
            score: self.score,
        }
    }
}

/// Contexts that a prompt shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShownContexts {
    /// Fragments, best first, as the prompt shows them.
    pub fragments: Vec<ShownFragment>,
    /// The right context with which the prompt was built, whole, if the task has another one or none.
    pub right: Option<String>,
}

/// Reads the fragments that each row's prompt shows, best first.
///
/// # Errors
/// The file cannot be read, or a record in it has a wrong field.
pub fn read_fragments(path: &Path) -> Result<HashMap<usize, Vec<ShownFragment>>> {
    let shown = read_shown(path)?.into_iter();
    Ok(shown.map(|(row, shown)| (row, shown.fragments)).collect())
}

/// Reads the contexts that each row's prompt shows.
///
/// # Errors
/// The file cannot be read, or a record in it has a wrong field.
pub fn read_shown(path: &Path) -> Result<HashMap<usize, ShownContexts>> {
    let (shown, problems) = read_checked(path, |_, _| {})?;
    problems.into_iter().next().map_or(Ok(shown), Err)
}

/// Reads the contexts that each row's prompt shows, and the errors of records that cannot be used. Calls `check` for every
/// other record, with its line.
pub fn read_checked(
    path: &Path,
    mut check: impl FnMut(usize, &Object),
) -> Result<(HashMap<usize, ShownContexts>, Vec<Error>)> {
    let mut texts: HashSet<Arc<str>> = HashSet::default();
    let mut found = HashMap::default();
    let problems = jsonl::for_each(path, |at, object| {
        require(path, at.line, MADE, &object)?;
        check(at.line, &object);
        if let Some((row, shown)) = read_shown_fragments(&object, &mut texts) {
            // If several samples have prompts, the first prompt is used.
            found.entry(row).or_insert(shown);
        }
        Ok(())
    })?;
    Ok((found, problems))
}

/// Returns the row of a prompt's record and the contexts that the prompt shows. The record's fields must have the right types.
pub fn read_shown_fragments(
    record: &Object,
    texts: &mut HashSet<Arc<str>>,
) -> Option<(usize, ShownContexts)> {
    let metadata = record.get("metadata")?.as_object()?;
    let row = metadata.get("row")?.as_u64()?;
    let list = |name: &str| metadata.get(name).and_then(Value::as_array);
    let lines = list("shown_context");
    let hits = list("top_k_context").into_iter().flatten();
    let fragments = hits.enumerate().filter_map(|(place, hit)| {
        let lines = lines.and_then(|lines| lines.get(place)?.as_object());
        Some(fragment(hit.as_object()?, lines, texts))
    });
    let fragments = fragments.collect();
    let right = metadata.get("right_context").and_then(Value::as_str).map(str::to_owned);
    Some((row as usize, ShownContexts { fragments, right }))
}

/// Reads a hit as windows (`context`, `metadata[0]`) or chunks (`retrieved_chunk`, `filename`) write it. `lines` are the lines
/// shown for the hit, if they differ from its own.
fn fragment(hit: &Object, lines: Option<&Object>, texts: &mut HashSet<Arc<str>>) -> ShownFragment {
    let text_of = |object: &Object, names: [&str; 2]| {
        let found = names.iter().find_map(|name| object.get(*name)?.as_str());
        found.unwrap_or_default().to_owned()
    };
    let mut shared = |text: String| match texts.get(text.as_str()) {
        Some(known) => known.clone(),
        None => {
            let text: Arc<str> = text.into();
            texts.insert(text.clone());
            text
        }
    };
    let place = hit.get("metadata").and_then(|places| places.get(0));
    let names = place.and_then(|place| place["fpath_tuple"].as_array());
    let path = match names {
        // Without the repository, as in the prompt.
        Some(names) => {
            let names = names.iter().skip(1).filter_map(Value::as_str);
            names.collect::<Vec<_>>().join("/")
        }
        None => text_of(hit, ["filename", "path"]),
    };
    let place = lines
        .filter(|lines| lines.contains_key("start_line_no"))
        .or(place.and_then(Value::as_object));
    let first_line = place.and_then(|place| Some(place.get("start_line_no")?.as_u64()? as usize));
    let score = hit.get("sim_score").or_else(|| hit.get("score"));
    ShownFragment {
        path: shared(path),
        first_line,
        score: score.and_then(Value::as_f64),
        text: shared(text_of(lines.unwrap_or(hit), ["context", "retrieved_chunk"])),
    }
}
