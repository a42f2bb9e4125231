//! Walks of a tree without recursion, and positions of nodes.

use std::ops::Range;

use tree_sitter::{Node, Tree};

/// Position of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Range of bytes in the text.
    pub bytes: Range<usize>,
    /// Lines that it touches.
    pub lines: Range<usize>,
}

/// Visits every node before its children, with its ancestors, outermost first. `visit` returns whether to descend into the
/// node.
pub fn walk<'tree>(tree: &'tree Tree, mut visit: impl FnMut(Node<'tree>, &[Node<'tree>]) -> bool) {
    let mut cursor = tree.walk();
    // The cursor knows the ancestors too, but asking a node for its parent searches from the root.
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

/// Visits every node before its children, with its depth. `visit` returns whether to descend into the node.
pub fn preorder<'tree>(tree: &'tree Tree, mut visit: impl FnMut(Node<'tree>, usize) -> bool) {
    walk(tree, |node, ancestors| visit(node, ancestors.len()));
}

/// Returns the rows that a node touches.
pub fn rows(node: Node<'_>) -> Range<usize> {
    let (start, end) = (node.start_position(), node.end_position());
    // A node that ends at the start of a row does not touch that row.
    let last = if end.column == 0 && end.row > start.row { end.row } else { end.row + 1 };
    start.row..last
}

/// Returns the first child of a kind.
pub fn child<'tree>(node: Node<'tree>, kind: &str) -> Option<Node<'tree>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).find(|child| child.kind() == kind)
}
