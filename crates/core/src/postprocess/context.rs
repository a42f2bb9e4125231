//! Left contexts of function bodies, without the statements that affect no cut.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use foldhash::HashMap;
use repoformer_text::language::Language;
use repoformer_text::language::syntax::Syntax;
use repoformer_text::lines::is_space;
use tree_sitter::Node;

use super::body::TargetBody;

/// Contexts of at least this many bytes are shortened; shorter ones are parsed as fast without.
const FEWEST_BYTES: usize = 500;
/// Number of first bytes by which contexts of the same file are found; shorter contexts are parsed from the start.
const BEGINNING: usize = 4096;
/// Greatest number of contexts with the same beginning that a context is compared with.
const MOST_COMPARED: usize = 4;
/// Greatest number of bytes of remembered contexts and targets.
const MOST_REMEMBERED: usize = 64 << 20;

/// Known contexts by their digest: each is parsed once, whatever the number of its predictions.
static KNOWN: LazyLock<Mutex<Memo>> = LazyLock::new(Mutex::default);

/// Left context of a function's body.
#[derive(Debug)]
pub(super) struct LeftContext {
    text: String,
    /// Body of the first target that was asked for.
    target: OnceLock<TargetBody>,
}

impl LeftContext {
    /// Keeps a text whole.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), target: OnceLock::new() }
    }

    /// Returns a context with the same cuts of every prediction: without the finished statements before the last one, in the
    /// module and in each class that the context ends in.
    ///
    /// These statements parse without an error, and the last function, whose body is compared, is not among them. What remains
    /// parses like the whole: a statement may follow any other, and each remaining line keeps its indentation. If the context
    /// does not parse up to its end, or ends in no function, it stays as it is.
    ///
    /// If a context continues one that was shortened before, only its remaining text is parsed. `target` is the target that
    /// will be asked for.
    pub(super) fn shorten(text: &str, target: &str) -> Arc<Self> {
        let digest = blake3::hash(text.as_bytes());
        let memo = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = memo().contexts.get(&digest).cloned();
        if let Some(known) = known {
            return known;
        }
        let beginning = text.as_bytes().get(..BEGINNING).map(blake3::hash);
        let earlier = beginning.and_then(|beginning| memo().before(beginning, text.len()));
        let earlier = earlier
            .into_iter()
            .flatten()
            .find(|earlier| blake3::hash(&text.as_bytes()[..earlier.length]) == earlier.digest);
        let remaining = earlier.map_or(Cow::Borrowed(text), |earlier| {
            Cow::Owned(format!("{}{}", earlier.context.text, &text[earlier.length..]))
        });
        let short = match remaining.len() {
            0..FEWEST_BYTES => None,
            _ => without_finished_statements(&remaining),
        };
        let is_short = short.is_some();
        let context = Arc::new(Self::new(short.unwrap_or_else(|| text.to_owned())));
        let shortened = Shortened { length: text.len(), digest, context: Arc::clone(&context) };
        // The context keeps the target and its body.
        let bytes = context.text.len() + 2 * target.len();
        memo().insert(shortened, bytes, beginning.filter(|_| is_short));
        context
    }

    /// Returns the text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the body with this target in the hole.
    pub(super) fn target_body(&self, target: &str) -> Cow<'_, TargetBody> {
        let kept = self.target.get_or_init(|| TargetBody::new(&self.text, target));
        if kept.is_of(target) {
            Cow::Borrowed(kept)
        } else {
            Cow::Owned(TargetBody::new(&self.text, target))
        }
    }
}

/// Remembered contexts.
#[derive(Default)]
struct Memo {
    contexts: HashMap<blake3::Hash, Arc<LeftContext>>,
    /// Contexts from which statements were removed, by the digest of their beginning, in ascending order of length.
    by_beginning: HashMap<blake3::Hash, Vec<Shortened>>,
    bytes: usize,
}

/// Context that was shortened.
#[derive(Debug, Clone)]
struct Shortened {
    /// Number of bytes before.
    length: usize,
    /// Digest of the text before.
    digest: blake3::Hash,
    context: Arc<LeftContext>,
}

impl Memo {
    /// Returns the longest contexts with a beginning, among those that are shorter than a context.
    fn before(&self, beginning: blake3::Hash, length: usize) -> Option<Vec<Shortened>> {
        let all = self.by_beginning.get(&beginning)?;
        let shorter = all.partition_point(|known| known.length < length);
        Some(all[..shorter].iter().rev().take(MOST_COMPARED).cloned().collect())
    }

    fn insert(&mut self, shortened: Shortened, bytes: usize, beginning: Option<blake3::Hash>) {
        if self.bytes + bytes > MOST_REMEMBERED {
            *self = Self::default();
        }
        let context = Arc::clone(&shortened.context);
        if self.contexts.insert(shortened.digest, context).is_some() {
            return;
        }
        self.bytes += bytes;
        if let Some(beginning) = beginning {
            let all = self.by_beginning.entry(beginning).or_default();
            let place = all.partition_point(|known| known.length < shortened.length);
            all.insert(place, shortened);
        }
    }
}

/// Removes the statements; `None` if the context must stay as it is.
fn without_finished_statements(context: &str) -> Option<String> {
    let text = format!("{context}pass");
    let syntax = Syntax::parse(&text, Language::Python)?;
    if syntax.has_error() {
        return None;
    }
    let (mut kept, mut end) = (String::new(), 0);
    let mut around = syntax.tree().root_node();
    let last = loop {
        let last = around.child_count().checked_sub(1)?;
        let (first, last) = (around.child(0)?, around.child(last)?);
        if let (Some(first), Some(last)) = (line_start(context, first), line_start(context, last))
            && end <= first
        {
            kept.push_str(&context[end..first]);
            end = last;
        }
        match block_of_class(last) {
            Some(block) => around = block,
            None => break last,
        }
    };
    kept.push_str(&context[end..]);
    has_function(last).then_some(kept)
}

/// Returns the start of a node's line in the context; `None` if another node begins there.
fn line_start(context: &str, node: Node<'_>) -> Option<usize> {
    let before = context.get(..node.start_byte())?;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    before[start..].chars().all(is_space).then_some(start)
}

/// Returns the block of a class, which may have decorators.
fn block_of_class(node: Node<'_>) -> Option<Node<'_>> {
    let class = if node.kind() == "decorated_definition" {
        node.child_by_field_name("definition")?
    } else {
        node
    };
    (class.kind() == "class_definition").then(|| class.child_by_field_name("body"))?
}

/// Returns true if a statement is a function, or contains one.
fn has_function(statement: Node<'_>) -> bool {
    let mut cursor = statement.walk();
    loop {
        if cursor.node().kind() == "function_definition" {
            return true;
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_that_continue_others_are_shortened_alike() {
        let functions: String =
            (0..200).map(|n| format!("def f{n}(x):\n    return x + {n}\n\n\n")).collect();
        let methods = |class: &str, count: usize| -> String {
            let method =
                |n| format!("    @property\n    def m{n}(self):\n        return '{class}{n}'\n\n");
            format!("class {class}:\n    x = 1\n\n") + &(0..count).map(method).collect::<String>()
        };
        let (first, all) = (methods("First", 3), methods("First", 9));
        let (second, end) = (methods("Second", 2), "    def last(self):\n        ");
        let ends = [
            format!("{first}{end}"),
            format!("{all}{end}"),
            format!("{all}\n{second}{end}"),
            format!("{all}\n{second}\ndef a_longer_name():\n    if x:\n        "),
        ];
        for (number, end) in ends.iter().enumerate() {
            // The first text continues the contexts before it, the second none.
            let short = ["import a\n".to_owned(), format!("import a{number}\n")].map(|start| {
                let context = format!("{start}{functions}{end}");
                let beginning = blake3::hash(&context.as_bytes()[..BEGINNING]);
                let before = KNOWN.lock().unwrap().before(beginning, context.len());
                let continued = before.map_or(0, |before| before.len());
                assert_eq!(continued, if start.len() == 9 { number } else { 0 });
                LeftContext::shorten(&context, "").text().to_owned()
            });
            assert_eq!(short[0], short[1]);
            assert!(short[0].len() < 250, "{}", short[0]);
        }
    }
}
