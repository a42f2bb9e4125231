//! Plants a failure before a hole: tests that do not detect it cannot distinguish a wrong completion from the true one.
//!
//! The failure is inserted directly before the innermost statement that contains the first code of the hole, so that both are reached
//! together. If this statement is the head of a function, the failure becomes the first statement of the function's body: before the head,
//! it would be reached whenever the file is loaded. A hole that consists of comments, white space or a docstring contains no executed code.

use std::ops::Range;

use repoformer_text::language::syntax::{Syntax, is_bare_string, is_comment, preorder};
use repoformer_text::language::{BlockMarks, Grammar, LanguageSpec};
use tree_sitter::Node;

/// Position for a new statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementPosition {
    /// Offset in the file, in bytes.
    pub at: usize,
    /// Text between the new statement and the existing one.
    separator: String,
}

impl StatementPosition {
    /// Returns the text with a statement inserted.
    pub fn insert(&self, text: &str, statement: &str) -> String {
        let (before, after) = text.split_at(self.at);
        [before, statement, &self.separator, after].concat()
    }
}

/// Finds the position for a hole, given as a range of bytes in the file.
pub(super) fn find(
    text: &str,
    grammar: Grammar,
    hole: Range<usize>,
) -> Result<StatementPosition, String> {
    let spec = grammar.language().spec();
    let syntax =
        Syntax::parse(text, grammar).ok_or("parsing its file takes too much time or memory")?;
    let first = first_code(&syntax, &hole)
        .ok_or("its hole contains no executable code, only comments, blanks or a docstring")?;
    let nowhere = || {
        "its hole is not in a statement, but in a field, a type or a signature without a body"
            .to_owned()
    };
    let mut node = first;
    let (statement, body) = loop {
        let parent = node.parent().ok_or_else(nowhere)?;
        if is_statement(node, parent, spec) {
            break (node, None);
        }
        // Code in the head of a function runs with the body.
        if let Some(body) = parent.child_by_field_name("body")
            && spec.bodies.contains(&parent.kind())
            && body.start_byte() > first.start_byte()
        {
            break (parent, Some(body));
        }
        node = parent;
    };
    let statement = match body.or_else(|| body_of_decorated(statement, first, spec)) {
        Some(body) => first_statement(body, spec).ok_or_else(nowhere)?,
        None => statement,
    };
    let behind = (spec.is_constructor_call)(statement.kind(), &text[statement.byte_range()]);
    let at = if behind { statement.end_byte() } else { statement.start_byte() };
    let planting = StatementPosition { at, separator: separator(text, spec, at, behind) };
    // Otherwise every test would detect a file that no longer loads, whatever it tests.
    let planted = planting.insert(text, spec.failure);
    let broken = Syntax::parse(&planted, grammar).is_none_or(|planted| planted.has_error());
    if broken && !syntax.has_error() {
        return Err(
            "no failure can be planted before its hole without breaking the file's syntax".into()
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
        // The end of a block alone is not code.
        let closes = matches!(node.kind(), "}" | ";" | "{") || node.kind().trim().is_empty();
        if is_token && !closes {
            found = Some(node);
        }
        true
    });
    found
}

/// Returns true if a node is a statement in its parent; the expression or pattern of a `switch` branch is not.
fn is_statement(node: Node<'_>, parent: Node<'_>, spec: &LanguageSpec) -> bool {
    let chooses = || {
        parent.child_by_field_name("value") == Some(node)
            || node.kind().ends_with("label")
            || node.kind().ends_with("pattern")
    };
    node.is_named()
        && spec.blocks.contains(&parent.kind())
        && !(parent.kind().starts_with("switch") && chooses())
}

/// Returns the body of a function if its decorators or head contain the first code of the hole.
fn body_of_decorated<'tree>(
    statement: Node<'tree>,
    first: Node<'tree>,
    spec: &LanguageSpec,
) -> Option<Node<'tree>> {
    let function = match statement.kind() {
        "decorated_definition" => statement.child_by_field_name("definition")?,
        _ => statement,
    };
    let body = function.child_by_field_name("body")?;
    let is_function = spec.bodies.contains(&function.kind());
    (is_function && first.start_byte() < body.start_byte()).then_some(body)
}

fn first_statement<'tree>(body: Node<'tree>, spec: &LanguageSpec) -> Option<Node<'tree>> {
    if !spec.blocks.contains(&body.kind()) {
        return None;
    }
    let mut cursor = body.walk();
    body.named_children(&mut cursor).find(|child| !is_comment(*child))
}

fn separator(text: &str, spec: &LanguageSpec, at: usize, behind: bool) -> String {
    if behind {
        return String::new();
    }
    if spec.layout == BlockMarks::Braces {
        return " ".to_owned();
    }
    let line = text[..at].rfind(['\n', '\r']).map_or(0, |end| end + 1);
    let indent = text[line..at].trim_start_matches('\u{feff}');
    if indent.trim().is_empty() { format!("\n{indent}") } else { "; ".to_owned() }
}

#[cfg(test)]
mod tests {
    use repoformer_text::language::Language;

    use super::*;

    /// Plants `%` in files in which `⟦` and `⟧` mark the hole, and `‹` and `›` mark the planted text.
    fn assert_planted(language: Language, marked: &[&str]) {
        for marked in marked {
            let wanted = marked.replace(['⟦', '⟧', '‹', '›'], "");
            let (before, rest) = marked.split_once('‹').unwrap();
            let (_, after) = rest.split_once('›').unwrap();
            assert_eq!(planted(language, &[before, after].concat()).unwrap(), wanted);
        }
    }

    fn planted(language: Language, marked: &str) -> Result<String, String> {
        let (before, rest) = marked.split_once('⟦').unwrap();
        let (hole, after) = rest.split_once('⟧').unwrap();
        let text = [before, hole, after].concat();
        let range = before.len()..before.len() + hole.len();
        find(&text, language.into(), range).map(|planting| planting.insert(&text, "%"))
    }

    #[test]
    fn python() {
        assert_planted(
            Language::Python,
            &[
                "x = 1\n‹%\n›⟦y = 2⟧\n",
                "def f():\n    a = 1\n⟦    ‹%\n    ›return a⟧\n",
                "def f():\n\t‹%\n\t›g(1,\n\t  ⟦2)⟧\n",
                "def f():\n    ‹%\n    ›if a:\n        b()\n⟦    elif c:⟧\n        d()\n",
                "if a: ‹%; ›⟦return b⟧\n",
                "a = 1; ‹%; ›⟦b = 2⟧\n",
                "⟦def f(a):⟧\n    ‹%\n    ›\"\"\"Doc.\"\"\"\n    return a\n",
                "def f(a,\n      ⟦b=1⟧):\n    ‹%\n    ›return a\n",
                "⟦@x\ndef f(a): ‹%; ›return a⟧\n",
                "class A:\n    ⟦@property⟧\n    def f(self):\n        ‹%\n        ›return 1\n",
                "‹%\n›⟦class A(B):⟧\n    x = 1\n",
                "with a:\n⟦    # why\n    ‹%\n    ›b()⟧\n",
                "def f():\n⟦    \"\"\"Doc.\"\"\"\n    ‹%\n    ›return 1⟧\n",
                "\u{feff}‹%\n›⟦a = 1⟧\n",
                "class A(B):\n    def __init__(self):\n        ‹%\n        ›⟦super().__init__()⟧\n",
                "‹%\n›try:\n    a()\n⟦except E:⟧\n    pass\n",
            ],
        );
        let nothing = "its hole contains no executable code";
        for marked in [
            "def f():\n⟦    \"\"\"Doc.\"\"\"⟧\n    return 1\n",
            "a = 1\n⟦# b⟧\n",
            "a = 1\n⟦\n⟧\nb = 1\n",
        ] {
            assert!(
                planted(Language::Python, marked).unwrap_err().starts_with(nothing),
                "{marked}"
            );
        }
    }

    #[test]
    fn languages_with_braces() {
        assert_planted(
            Language::Java,
            &[
                "class A { int f() { int a = 1; ‹% ›⟦return a;⟧ } }",
                "class A { int f() { ‹% ›if (a)\n ⟦return b;⟧ return c; } }",
                "class A { int ⟦f(int a)⟧ { ‹% ›return a; } }",
                "class A { A() { ⟦super();⟧‹%› x = 1; } }",
            ],
        );
        assert_planted(Language::CSharp, &["class A { int F() { ‹% ›⟦return a;⟧ } }"]);
        assert_planted(
            Language::TypeScript,
            &[
                "function f() {\n  ‹% ›⟦return a;⟧\n}\n",
                "‹% ›const f = (x) => ⟦x + 1⟧;\n",
                "class A extends B {\n  constructor() { ⟦super(1);⟧‹%› this.x = 1; }\n}\n",
                "switch (a) {\n  case 1:\n    ‹% ›⟦f();⟧\n}\n",
            ],
        );
        for (language, marked) in [
            (Language::Java, "class A { ⟦int x = 1;⟧ }"),
            (Language::CSharp, "class A { int F() => ⟦a⟧; }"),
        ] {
            let reason = planted(language, marked).unwrap_err();
            assert!(reason.starts_with("its hole is not in a statement"), "{reason}");
        }
    }
}
