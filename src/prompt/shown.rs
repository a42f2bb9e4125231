//! Fragments that prompts show, read from the prompts' records.

use std::path::Path;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use crate::error::Result;
use crate::store::jsonl::{self, Object};
use crate::task::cross_file;

/// A retrieved piece of code. Its texts are shared by the outcomes that show it.
#[derive(Debug, Clone, PartialEq)]
pub struct Fragment {
    /// The file that it comes from.
    pub path: Arc<str>,
    /// 0-based line where it begins there.
    pub first_line: Option<usize>,
    /// The ranker's score.
    pub score: Option<f64>,
    /// The code.
    pub text: Arc<str>,
}

impl Fragment {
    /// As tasks carry it.
    pub(crate) fn to_cross_file(&self) -> cross_file::Fragment {
        cross_file::Fragment {
            path: self.path.to_string(),
            text: self.text.to_string(),
            score: self.score,
        }
    }
}

/// Reads the fragments that each row's prompt shows, best first.
pub fn read_fragments(path: &Path) -> Result<FxHashMap<usize, Vec<Fragment>>> {
    let mut texts: FxHashSet<Arc<str>> = FxHashSet::default();
    let mut found = FxHashMap::default();
    jsonl::for_each(path, |_, object| {
        let metadata = object.get("metadata").and_then(Value::as_object);
        let row = metadata.and_then(|metadata| metadata.get("row")?.as_u64());
        let list = metadata.and_then(|metadata| metadata.get("top_k_context")?.as_array());
        if let (Some(row), Some(list)) = (row, list) {
            let fragments = list.iter().filter_map(Value::as_object);
            let fragments: Vec<Fragment> = fragments.map(|hit| fragment(hit, &mut texts)).collect();
            // Of several samples' prompts the first is shown.
            found.entry(row as usize).or_insert(fragments);
        }
        Ok(())
    })?;
    Ok(found)
}

/// A hit as windows (`context`, `metadata[0]`) or chunks (`retrieved_chunk`, `filename`) write it.
fn fragment(hit: &Object, texts: &mut FxHashSet<Arc<str>>) -> Fragment {
    let text = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| hit.get(*name)?.as_str());
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
        // Without the repository, as the prompt names it.
        Some(names) => {
            let names = names.iter().skip(1).filter_map(Value::as_str);
            names.collect::<Vec<_>>().join("/")
        }
        None => text(["filename", "path"]),
    };
    let score = hit.get("sim_score").or_else(|| hit.get("score"));
    Fragment {
        path: shared(path),
        first_line: place.and_then(|place| Some(place["start_line_no"].as_u64()? as usize)),
        score: score.and_then(Value::as_f64),
        text: shared(text(["context", "retrieved_chunk"])),
    }
}
