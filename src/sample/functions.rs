//! Function holes: bodies of 3 to 30 lines (RepoCoder, section 3.3 "Function Body Completion";
//! Repoformer, appendix D, algorithm 2).

use std::ops::{Range, RangeInclusive};

use tree_sitter::{Node, Tree};

use super::source::{LineClass, Source, is_bare_string, preorder, rows};

/// Lines of a body, blank ones between its first and its last included.
const BODY_LINES: RangeInclusive<usize> = 3..=30;

/// The bodies in the order of their signatures; a nested function's body lies within another.
pub(super) fn holes(source: &Source, tree: &Tree) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    preorder(tree, |node, _| {
        if node.kind() == "function_definition" && !node.has_error() {
            found.extend(body(source, node).filter(|hole| BODY_LINES.contains(&hole.len())));
        }
        !node.is_error() && rows(node).len() > *BODY_LINES.start()
    });
    found
}

/// The lines of a body that has something to complete. Its docstring tells what to write and stays in the prompt.
fn body(source: &Source, function: Node<'_>) -> Option<Range<usize>> {
    let body = function.child_by_field_name("body")?;
    let mut cursor = body.walk();
    let mut statements = body
        .named_children(&mut cursor)
        .filter(|node| node.kind() != "comment")
        .peekable();
    // A comment between the signature and the first statement belongs to the body, though not to its node.
    let signature = (0..function.child_count())
        .rev()
        .filter_map(|i| function.child(i))
        .find(|node| node.kind() == ":")?;
    let docstring = statements.next_if(|&node| is_bare_string(node));
    let mut start = rows(docstring.unwrap_or(signature)).end;
    let (mut first, mut last, mut is_stub) = (None, None, true);
    for statement in statements {
        first = first.or(Some(statement));
        last = Some(statement);
        is_stub &= is_placeholder(source, statement);
    }
    // A statement on the line of the signature or of the docstring cannot be cut out in whole lines.
    if is_stub || first?.start_position().row < start {
        return None;
    }
    let mut end = rows(last?).end;
    let is = |line: usize, classes: &[LineClass]| classes.contains(&source.classes[line]);
    while start < end && is(start, &[LineClass::Blank]) {
        start += 1;
    }
    while start < end && is(end - 1, &[LineClass::Blank, LineClass::Comment]) {
        end -= 1;
    }
    Some(start..end)
}

/// `pass`, `...`, a bare string, or the raising of `NotImplementedError`.
fn is_placeholder(source: &Source, statement: Node<'_>) -> bool {
    let text = &source.lines.text()[statement.byte_range()];
    match statement.kind() {
        "pass_statement" => true,
        "expression_statement" => text == "..." || is_bare_string(statement),
        "raise_statement" => text
            .strip_prefix("raise")
            .is_some_and(|raised| raised.trim_start().starts_with("NotImplementedError")),
        _ => false,
    }
}
