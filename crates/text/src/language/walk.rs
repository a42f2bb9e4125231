//! Walking a tree without recursion, and where its nodes stand.

use std::ops::Range;

use tree_sitter::{Node, Tree};

/// Where something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// In bytes of the text.
    pub bytes: Range<usize>,
    /// The lines that it touches.
    pub lines: Range<usize>,
}

/// Every node before its children, with the nodes around it, outermost first; `visit` says whether to go below it.
pub fn walk<'tree>(tree: &'tree Tree, mut visit: impl FnMut(Node<'tree>, &[Node<'tree>]) -> bool) {
    let mut cursor = tree.walk();
    // The cursor knows them too, but asking a node for its parent means a search from the root.
    let mut ancestors = Vec::new();
    loop {
        let node = cursor.node();
        if visit(node, &ancestors) && cursor.goto_first_child() {
            ancestors.push(node);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
            ancestors.pop();
        }
    }
}

/// Every node before its children, with its depth; `visit` says whether to go below it.
pub fn preorder<'tree>(tree: &'tree Tree, mut visit: impl FnMut(Node<'tree>, usize) -> bool) {
    walk(tree, |node, ancestors| visit(node, ancestors.len()));
}

/// The rows that a node touches.
pub fn rows(node: Node<'_>) -> Range<usize> {
    let (start, end) = (node.start_position(), node.end_position());
    // A node that ends where a row begins does not touch that row.
    let last = if end.column == 0 && end.row > start.row { end.row } else { end.row + 1 };
    start.row..last
}

/// The first child of a kind.
pub fn child<'tree>(node: Node<'tree>, kind: &str) -> Option<Node<'tree>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).find(|child| child.kind() == kind)
}
