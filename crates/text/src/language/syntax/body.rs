//! Bodies of functions as benchmarks extract them (RepoCoder, section 3.3; Repoformer, appendix D, algorithm 2).

use tree_sitter::Node;

use super::{Span, Syntax, child, is_comment, rows};
use crate::language::BlockMarks;

/// Greatest number of docstring lines that belong to a definition's head.
const DOCSTRING_LINES: usize = 3;

/// Statements of a function: those after its signature and its docstring, or between its braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// Span from the first statement, or a comment before it, to the last statement, without braces. For an expression body
    /// (`=> x`), the expression.
    pub span: Span,
    /// Whether its lines contain nothing else, so that they can be removed as a whole.
    pub is_whole_lines: bool,
    /// Whether there is nothing to complete: `pass`, `...`, a string, or raising an error such as `NotImplementedError`.
    pub is_stub: bool,
}

/// Returns the body of a definition; `None` if it has no body, or if the body contains only comments and a docstring.
pub(super) fn find_body(syntax: &Syntax<'_>, definition: Node<'_>) -> Option<Body> {
    let body = definition.child_by_field_name("body")?;
    if syntax.spec().layout == BlockMarks::Indentation {
        return suite(syntax, definition, body);
    }
    match body.kind() {
        "arrow_expression_clause" => body_of(syntax, None, &[body.named_child(0)?]),
        "block" | "constructor_body" | "statement_block" => braces(syntax, body),
        _ => body_of(syntax, None, &[body]),
    }
}

/// Returns the row after a definition's signature and the head of its docstring; the definition's end if it has no body.
pub(super) fn head_end(syntax: &Syntax<'_>, definition: Node<'_>) -> usize {
    let Some(body) = definition.child_by_field_name("body") else {
        return rows(definition).end;
    };
    // A brace may be on a row of its own.
    let signature = body.prev_sibling().map_or(rows(body).start + 1, |before| rows(before).end);
    let mut cursor = body.walk();
    let docstring = body.named_children(&mut cursor).find(|node| !is_comment(*node));
    let is_docstring =
        |node: &Node<'_>| syntax.spec().layout == BlockMarks::Indentation && is_bare_string(*node);
    docstring.filter(is_docstring).map_or(signature, |docstring| {
        let lines = syntax.of(docstring).lines().take(DOCSTRING_LINES);
        let paragraph = lines.take_while(|line| !line.trim().is_empty()).count();
        docstring.start_position().row + paragraph
    })
}

/// Returns the body after a colon. A docstring describes the code to write and is not part of the body.
fn suite(syntax: &Syntax<'_>, definition: Node<'_>, body: Node<'_>) -> Option<Body> {
    let mut cursor = body.walk();
    let mut statements =
        body.named_children(&mut cursor).filter(|node| !is_comment(*node)).peekable();
    // A comment between the signature and the first statement belongs to the body, but not to its node.
    let signature = (0..definition.child_count())
        .rev()
        .filter_map(|i| definition.child(i))
        .find(|node| node.kind() == ":")?;
    let docstring = statements.next_if(|&node| is_bare_string(node));
    let before = docstring.unwrap_or(signature);
    let statements: Vec<Node<'_>> = statements.collect();
    let start = rows(before).end;
    let is_whole_lines = statements.first()?.start_position().row >= start;
    body_of(syntax, is_whole_lines.then_some(start), &statements)
}

/// Returns the statements between `{` and `}`.
fn braces(syntax: &Syntax<'_>, block: Node<'_>) -> Option<Body> {
    let (open, close) = (child(block, "{")?, block.child(block.child_count().checked_sub(1)?)?);
    let mut inside: Vec<Node<'_>> = Vec::new();
    let mut cursor = block.walk();
    for node in block.named_children(&mut cursor) {
        if syntax.spec().statement_list == Some(node.kind()) {
            inside.extend(node.named_children(&mut node.walk()));
        } else {
            inside.push(node);
        }
    }
    let statements: Vec<Node<'_>> =
        inside.iter().copied().filter(|node| !is_comment(*node)).collect();
    let start = rows(open).end;
    // Text after the last statement on its line, such as a comment, belongs to the body, but the brace must not.
    let is_whole_lines = inside.first()?.start_position().row >= start
        && rows(*inside.last()?).end <= close.start_position().row;
    body_of(syntax, is_whole_lines.then_some(start), &statements)
}

/// Returns the body that consists of these statements. `start` is the first line that can belong to the body, if it has whole
/// lines.
fn body_of(syntax: &Syntax<'_>, start: Option<usize>, statements: &[Node<'_>]) -> Option<Body> {
    Some(Body {
        span: between(syntax, start, *statements.first()?, *statements.last()?),
        is_whole_lines: start.is_some(),
        is_stub: statements.iter().all(|&node| is_placeholder(syntax, node)),
    })
}

/// Returns the span from the first non-blank line at or after `start`, or else from the first statement, to the last statement.
fn between(syntax: &Syntax<'_>, start: Option<usize>, first: Node<'_>, last: Node<'_>) -> Span {
    let mut span = Span {
        bytes: first.start_byte()..last.end_byte(),
        lines: rows(first).start..rows(last).end,
    };
    let Some(start) = start else {
        return span;
    };
    // Upwards from the first statement, over lines that contain only comments.
    let text = syntax.text();
    let mut line_start = text[..first.start_byte()].rfind('\n').map_or(0, |at| at + 1);
    for row in (start..rows(first).start).rev() {
        let end = line_start - 1;
        line_start = text[..end].rfind('\n').map_or(0, |at| at + 1);
        let line = &text[line_start..end];
        if !line.trim().is_empty() {
            span.lines.start = row;
            span.bytes.start = line_start + line.len() - line.trim_start().len();
        }
    }
    span
}

/// Returns true if the statement is an unused string, such as a docstring.
pub fn is_bare_string(node: Node<'_>) -> bool {
    node.kind() == "expression_statement"
        && node.named_child_count() == 1
        && node
            .named_child(0)
            .is_some_and(|child| matches!(child.kind(), "string" | "concatenated_string"))
}

/// Returns true if a statement is a placeholder for unwritten code, such as `pass`, or an unused string.
fn is_placeholder(syntax: &Syntax<'_>, statement: Node<'_>) -> bool {
    let spec = syntax.spec();
    (spec.is_placeholder)(statement.kind(), syntax.of(statement))
        || (spec.layout == BlockMarks::Indentation && is_bare_string(statement))
}
