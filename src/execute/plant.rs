//! A failure planted before a hole: tests that do not detect it cannot distinguish a wrong completion from the true one.
//!
//! The failure goes directly before the innermost statement that contains the hole's first code, so that both are reached
//! together. If that is the head of a function, the failure becomes the first statement of the function's body: before the
//! head it would be reached when the file is loaded, whatever is called. A hole of comments, blanks or a docstring contains
//! nothing that is executed.

use std::ops::Range;

use tree_sitter::Node;

use crate::text::language::syntax::{Syntax, is_bare_string, is_comment, preorder};
use crate::text::language::{Grammar, Language};

/// Position for a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planting {
    /// Offset in the file, in bytes.
    pub at: usize,
    /// Text between the new statement and the existing one.
    separator: String,
}

impl Planting {
    /// Returns the text with a statement inserted.
    pub fn insert(&self, text: &str, statement: &str) -> String {
        let (before, after) = text.split_at(self.at);
        [before, statement, &self.separator, after].concat()
    }
}

/// A statement that fails, by language. Compilers must not be able to tell that it always does: they reject unreachable
/// code.
pub(super) fn failure(language: Language) -> &'static str {
    match language {
        Language::Python => "raise AssertionError(\"planted failure\")",
        Language::Java => "if (true) throw new AssertionError(\"planted failure\");",
        Language::CSharp => {
            "if (System.DateTime.UtcNow.Ticks > 0) throw new System.Exception(\"planted failure\");"
        }
        Language::TypeScript => "if (Date.now() > 0) throw new Error(\"planted failure\");",
    }
}

/// Finds the position for a hole, given as a range of bytes of the file.
pub(super) fn find(text: &str, grammar: Grammar, hole: Range<usize>) -> Result<Planting, String> {
    let syntax = Syntax::parse(text, grammar).ok_or("its file is too large to be parsed")?;
    let first = first_code(&syntax, &hole)
        .ok_or("its hole contains nothing that is executed: comments, blanks or a docstring")?;
    let nowhere =
        || "its hole is in no statement: a field, a type or a signature without a body".to_owned();
    let mut node = first;
    let (statement, body) = loop {
        let parent = node.parent().ok_or_else(nowhere)?;
        if is_statement(node, parent, grammar) {
            break (node, None);
        }
        // Code in the head of a function runs with the body.
        if let Some(body) = parent.child_by_field_name("body")
            && is_function(parent)
            && body.start_byte() > first.start_byte()
        {
            break (parent, Some(body));
        }
        node = parent;
    };
    let statement = match body.or_else(|| body_of_decorated(statement, first)) {
        Some(body) => first_statement(body, grammar).ok_or_else(nowhere)?,
        None => statement,
    };
    let (at, behind) = match behind_constructor_call(text, grammar.language(), statement) {
        Some(end) => (end, true),
        None => (statement.start_byte(), false),
    };
    let planting = Planting {
        at,
        separator: separator(text, grammar.language(), at, behind),
    };
    // Every test would detect a file that no longer loads, whatever it tests.
    let planted = planting.insert(text, failure(grammar.language()));
    let broken = Syntax::parse(&planted, grammar).is_none_or(|planted| planted.has_error());
    if broken && !syntax.has_error() {
        return Err(
            "no failure can be planted before its hole without breaking the file's syntax".into(),
        );
    }
    Ok(planting)
}

/// Returns the first token of the hole that is executed.
fn first_code<'tree>(syntax: &'tree Syntax<'_>, hole: &Range<usize>) -> Option<Node<'tree>> {
    let mut found = None;
    preorder(syntax.tree(), |node, _| {
        if found.is_some() || node.end_byte() <= hole.start || node.start_byte() >= hole.end {
            return false;
        }
        if is_comment(node) || is_bare_string(node) {
            return false;
        }
        let is_token = node.child_count() == 0 && node.end_byte() > node.start_byte();
        // The end of a block is not code of its own.
        let closes = matches!(node.kind(), "}" | ";" | "{") || node.kind().trim().is_empty();
        if is_token && !closes {
            found = Some(node);
        }
        true
    });
    found
}

/// Whether the named children of a node are statements.
fn holds_statements(node: Node<'_>, grammar: Grammar) -> bool {
    match node.kind() {
        "program" => matches!(grammar, Grammar::TypeScript | Grammar::Tsx), // Java's contains declarations
        kind => matches!(
            kind,
            "module"
                | "block"
                | "constructor_body"
                | "statement_block"
                | "switch_block_statement_group"
                | "switch_section"
                | "switch_case"
                | "switch_default"
        ),
    }
}

/// Whether a node is a statement of its parent; the expression or pattern of a branch of `switch` is not.
fn is_statement(node: Node<'_>, parent: Node<'_>, grammar: Grammar) -> bool {
    let chooses = || {
        parent.child_by_field_name("value") == Some(node)
            || node.kind().ends_with("label")
            || node.kind().ends_with("pattern")
    };
    node.is_named()
        && holds_statements(parent, grammar)
        && !(parent.kind().starts_with("switch") && chooses())
}

fn is_function(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "function_definition"
            | "method_declaration"
            | "constructor_declaration"
            | "local_function_statement"
            | "function_declaration"
            | "method_definition"
            | "function_expression"
            | "arrow_function"
            | "generator_function_declaration"
    )
}

/// Returns the body of a function whose decorators or head contain the hole's first code.
fn body_of_decorated<'tree>(statement: Node<'tree>, first: Node<'tree>) -> Option<Node<'tree>> {
    let function = match statement.kind() {
        "decorated_definition" => statement.child_by_field_name("definition")?,
        _ => statement,
    };
    let body = function.child_by_field_name("body")?;
    (is_function(function) && first.start_byte() < body.start_byte()).then_some(body)
}

fn first_statement(body: Node<'_>, grammar: Grammar) -> Option<Node<'_>> {
    if !holds_statements(body, grammar) {
        return None;
    }
    let mut cursor = body.walk();
    body.named_children(&mut cursor)
        .find(|child| !is_comment(*child))
}

/// Returns the end of a constructor's call of another constructor, before which no statement is allowed.
fn behind_constructor_call(text: &str, language: Language, statement: Node<'_>) -> Option<usize> {
    let is_call = match language {
        Language::Java => statement.kind() == "explicit_constructor_invocation",
        Language::TypeScript => text[statement.byte_range()].starts_with("super("),
        Language::Python | Language::CSharp => false,
    };
    is_call.then(|| statement.end_byte())
}

fn separator(text: &str, language: Language, at: usize, behind: bool) -> String {
    if behind {
        return String::new();
    }
    if language != Language::Python {
        return " ".to_owned();
    }
    let line = text[..at].rfind(['\n', '\r']).map_or(0, |end| end + 1);
    let indent = text[line..at].trim_start_matches('\u{feff}');
    if indent.trim().is_empty() {
        format!("\n{indent}")
    } else {
        "; ".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with `%` for what is planted; `[` and `]` around the hole.
    fn planted(grammar: Grammar, marked: &str) -> String {
        let (before, rest) = marked.split_once("⟦").unwrap();
        let (hole, after) = rest.split_once("⟧").unwrap();
        let text = [before, hole, after].concat();
        match find(&text, grammar, before.len()..before.len() + hole.len()) {
            Ok(planting) => planting.insert(&text, "%"),
            Err(reason) => reason.split(':').next().unwrap().to_owned(),
        }
    }

    #[test]
    fn python() {
        let of = |marked: &str| planted(Grammar::Python, marked);
        let nothing = "its hole contains nothing that is executed";
        assert_eq!(of("x = 1\n⟦y = 2⟧\n"), "x = 1\n%\ny = 2\n");
        assert_eq!(
            of("def f():\n    a = 1\n⟦    return a⟧\n"),
            "def f():\n    a = 1\n    %\n    return a\n"
        );
        assert_eq!(
            of("def f():\n\tg(1,\n\t  ⟦2)⟧\n"),
            "def f():\n\t%\n\tg(1,\n\t  2)\n"
        );
        assert_eq!(
            of("def f():\n    if a:\n        b()\n⟦    elif c:⟧\n        d()\n"),
            "def f():\n    %\n    if a:\n        b()\n    elif c:\n        d()\n"
        );
        assert_eq!(of("if a: ⟦return b⟧\n"), "if a: %; return b\n");
        assert_eq!(of("a = 1; ⟦b = 2⟧\n"), "a = 1; %; b = 2\n");
        assert_eq!(
            of("⟦def f(a):⟧\n    \"\"\"Doc.\"\"\"\n    return a\n"),
            "def f(a):\n    %\n    \"\"\"Doc.\"\"\"\n    return a\n"
        );
        assert_eq!(
            of("def f(a,\n      ⟦b=1⟧):\n    return a\n"),
            "def f(a,\n      b=1):\n    %\n    return a\n"
        );
        assert_eq!(
            of("⟦@x\ndef f(a): return a⟧\n"),
            "@x\ndef f(a): %; return a\n"
        );
        assert_eq!(
            of("class A:\n    ⟦@property⟧\n    def f(self):\n        return 1\n"),
            "class A:\n    @property\n    def f(self):\n        %\n        return 1\n"
        );
        assert_eq!(
            of("⟦class A(B):⟧\n    x = 1\n"),
            "%\nclass A(B):\n    x = 1\n"
        );
        assert_eq!(
            of("with a:\n⟦    # why\n    b()⟧\n"),
            "with a:\n    # why\n    %\n    b()\n"
        );
        assert_eq!(
            of("def f():\n⟦    \"\"\"Doc.\"\"\"\n    return 1⟧\n"),
            "def f():\n    \"\"\"Doc.\"\"\"\n    %\n    return 1\n"
        );
        assert_eq!(
            of("def f():\n⟦    \"\"\"Doc.\"\"\"⟧\n    return 1\n"),
            nothing
        );
        assert_eq!(of("a = 1\n⟦# b⟧\n"), nothing);
        assert_eq!(of("a = 1\n⟦\n⟧\nb = 1\n"), nothing);
        assert_eq!(of("\u{feff}⟦a = 1⟧\n"), "\u{feff}%\na = 1\n");
        assert_eq!(
            of("class A(B):\n    def __init__(self):\n        ⟦super().__init__()⟧\n"),
            "class A(B):\n    def __init__(self):\n        %\n        super().__init__()\n"
        );
        assert_eq!(
            of("try:\n    a()\n⟦except E:⟧\n    pass\n"),
            "%\ntry:\n    a()\nexcept E:\n    pass\n"
        );
    }

    #[test]
    fn languages_with_braces() {
        let java = |marked: &str| planted(Grammar::Java, marked);
        let class = |body: &str| format!("class A {{\n  {body}\n}}\n");
        assert_eq!(
            java(&class("int f() { int a = 1; ⟦return a;⟧ }")),
            class("int f() { int a = 1; % return a; }")
        );
        assert_eq!(
            java(&class("int f() { if (a)\n ⟦return b;⟧ return c; }")),
            class("int f() { % if (a)\n return b; return c; }")
        );
        assert_eq!(
            java(&class("int ⟦f(int a)⟧ { return a; }")),
            class("int f(int a) { % return a; }")
        );
        assert_eq!(
            java(&class("A() { ⟦super();⟧ x = 1; }")),
            class("A() { super();% x = 1; }")
        );
        assert_eq!(java(&class("⟦int x = 1;⟧")), "its hole is in no statement");
        let csharp = |marked: &str| planted(Grammar::CSharp, marked);
        assert_eq!(
            csharp(&class("int F() { ⟦return a;⟧ }")),
            class("int F() { % return a; }")
        );
        assert_eq!(
            csharp(&class("int F() => ⟦a⟧;")),
            "its hole is in no statement"
        );
        let typescript = |marked: &str| planted(Grammar::TypeScript, marked);
        assert_eq!(
            typescript("function f() {\n  ⟦return a;⟧\n}\n"),
            "function f() {\n  % return a;\n}\n"
        );
        assert_eq!(
            typescript("const f = (x) => ⟦x + 1⟧;\n"),
            "% const f = (x) => x + 1;\n"
        );
        assert_eq!(
            typescript("class A extends B {\n  constructor() { ⟦super(1);⟧ this.x = 1; }\n}\n"),
            "class A extends B {\n  constructor() { super(1);% this.x = 1; }\n}\n"
        );
        assert_eq!(
            typescript("switch (a) {\n  case 1:\n    ⟦f();⟧\n}\n"),
            "switch (a) {\n  case 1:\n    % f();\n}\n"
        );
    }
}
