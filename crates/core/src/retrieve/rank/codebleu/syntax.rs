//! Subtrees of a text, compared by tree-sitter's notation: kinds and fields of named nodes, without words.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU16;

use tree_sitter::{Node, Tree};

/// Returns the root and every node with children, each as a hash of its notation in tree-sitter.
pub(super) fn subtrees(tree: &Tree) -> Vec<u64> {
    let mut found = Vec::new();
    let mut cursor = tree.walk();
    // Notation of the children read so far, in the node at the cursor and in each node around it: a field and a hash.
    let mut open: Vec<Vec<(Option<NonZeroU16>, u64)>> = vec![Vec::new()];
    loop {
        if cursor.goto_first_child() {
            open.push(Vec::new());
            continue;
        }
        loop {
            let (node, within) = (cursor.node(), open.pop().unwrap_or_default());
            let number = number(node, &within);
            if open.is_empty() || node.child_count() > 0 {
                found.push(number);
            }
            if let Some(around) = open.last_mut() {
                if node.is_named() || node.is_missing() {
                    around.push((cursor.field_id(), number))
                } else {
                    around.extend(within)
                }
            }
            if cursor.goto_next_sibling() {
                open.push(Vec::new());
                break;
            }
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

fn number(node: Node<'_>, within: &[(Option<NonZeroU16>, u64)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    // An error without children, including hidden ones, is written as its first character.
    if node.is_error() && node.child_count() == 0 {
        node.to_sexp().trim_matches(['(', ')']).hash(&mut hasher);
    } else {
        node.kind().hash(&mut hasher);
    }
    (node.is_missing(), within).hash(&mut hasher);
    hasher.finish()
}
