//! Left contexts of function bodies, without the statements that affect no cut.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use foldhash::HashMap;
use repoformer_text::language::Language;
use repoformer_text::language::syntax::Syntax;
use repoformer_text::lines::is_space;
use tree_sitter::Node;

/// Contexts of at least this many bytes are shortened; shorter ones are parsed as fast without.
const FEWEST_BYTES: usize = 500;
/// Greatest number of bytes of remembered contexts.
const MOST_REMEMBERED: usize = 64 << 20;

/// Contexts that were shortened, by their digest: each is parsed once, whatever the number of its predictions.
static SHORTENED: LazyLock<Mutex<Memo>> = LazyLock::new(Mutex::default);

/// Remembered contexts.
#[derive(Default)]
struct Memo {
    contexts: HashMap<blake3::Hash, Arc<str>>,
    bytes: usize,
}

/// Returns a context with the same cuts of every prediction: without the finished statements before the last one, in the module
/// and in each class that the context ends in.
///
/// These statements parse without an error, and the last function, whose body is compared, is not among them. What remains
/// parses like the whole: a statement may follow any other, and each remaining line keeps its indentation. If the context does
/// not parse up to its end, or ends in no function, it stays as it is.
pub(super) fn shorten(context: &str) -> Arc<str> {
    if context.len() < FEWEST_BYTES {
        return context.into();
    }
    let digest = blake3::hash(context.as_bytes());
    let memo = || SHORTENED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = memo().contexts.get(&digest).cloned();
    if let Some(known) = known {
        return known;
    }
    let short: Arc<str> = without_finished_statements(context).as_deref().unwrap_or(context).into();
    let mut memo = memo();
    if memo.bytes + short.len() > MOST_REMEMBERED {
        *memo = Memo::default();
    }
    if memo.contexts.insert(digest, Arc::clone(&short)).is_none() {
        memo.bytes += short.len();
    }
    short
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
