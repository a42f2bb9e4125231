//! Exchange of retrieval results in formats of information retrieval: BEIR's collections and TREC's runs, so that other tools
//! can rank our fragments and judge our rankings.
//!
//! [`beir`] writes documents, queries and judgements; [`trec`] writes runs. Both encode ids with [`id`], so their files can be
//! joined; [`query_ids`] creates unique ids for tasks, whose own ids may repeat. Equal records give equal bytes.

pub mod beir;
pub mod crosscodeeval;
pub mod trec;

use std::borrow::Cow;

use foldhash::{HashMap, HashSet};
use repoformer_store::error::{Error, Result};

/// Encodes an id for files: TREC's fields end at white space, and a quotation mark opens a quoted field in BEIR's judgements.
/// White space, control characters, `"` and `%` are percent-encoded in UTF-8 (RFC 3986, section 2.1), so that different ids
/// stay different and can be decoded.
///
/// ```
/// use repoformer_formats::exchange::id;
/// assert_eq!(id("demo/src/a.py|3"), "demo/src/a.py|3");
/// assert_eq!(id("demo/my file.py|3"), "demo/my%20file.py|3");
/// assert_eq!(id("50%\u{a0}\"é\""), "50%25%C2%A0%22é%22");
/// ```
pub fn id(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '%';
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let (mut id, mut utf8) = (String::with_capacity(text.len() + 8), [0; 4]);
    for c in text.chars() {
        if is_odd(c) {
            let bytes = c.encode_utf8(&mut utf8).bytes();
            id.extend(bytes.map(|byte| format!("%{byte:02X}")));
        } else {
            id.push(c);
        }
    }
    Cow::Owned(id)
}

/// Returns a query id for each task, given its row and id: its own id if no other task has it, else `id#row`. Rows are
/// distinct, and therefore query ids are too.
///
/// ```
/// use repoformer_formats::exchange::query_ids;
/// let ids = query_ids(&[(0, "repo/idx"), (1, "repo/1"), (4, "repo/idx")]);
/// assert_eq!(ids, ["repo/idx#0", "repo/1", "repo/idx#4"]);
/// ```
pub fn query_ids(tasks: &[(usize, &str)]) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::default();
    for (_, id) in tasks {
        *counts.entry(id).or_default() += 1;
    }
    let numbered = |(row, id): &(usize, &str)| format!("{id}#{row}");
    let mut keeps: Vec<bool> =
        tasks.iter().map(|(_, id)| counts[id] == 1 && !id.is_empty()).collect();
    // A task whose own id equals another's numbered id is numbered too. Numbered ids end in their rows, so they differ.
    loop {
        let others = tasks.iter().zip(&keeps).filter(|(_, keeps)| !**keeps);
        let taken: HashSet<String> = others.map(|(task, _)| numbered(task)).collect();
        let mut done = true;
        for (keeps, (_, id)) in keeps.iter_mut().zip(tasks) {
            if *keeps && taken.contains(*id) {
                (*keeps, done) = (false, false);
            }
        }
        if done {
            let id = |(task, keeps): (&(usize, &str), &bool)| {
                if *keeps { task.1.to_owned() } else { numbered(task) }
            };
            return tasks.iter().zip(&keeps).map(id).collect();
        }
    }
}

/// Ids written so far, so that no id is written twice.
#[derive(Default)]
struct Ids(HashSet<String>);

impl Ids {
    /// Returns the id to write; `what` names the kind: "documents".
    fn add(&mut self, what: &'static str, text: &str) -> Result<String> {
        let id = check_id(what, text)?.into_owned();
        if !self.0.insert(id.clone()) {
            return Err(Error::parameter(what, format!("the id '{id}' is repeated")));
        }
        Ok(id)
    }
}

/// Returns the id to write, which must not be empty.
fn check_id<'a>(what: &'static str, text: &'a str) -> Result<Cow<'a, str>> {
    if text.is_empty() {
        return Err(Error::parameter(what, "an id is empty"));
    }
    Ok(id(text))
}

#[cfg(test)]
mod tests;
