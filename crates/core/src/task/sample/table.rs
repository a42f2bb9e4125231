//! Data tables in source code, whose rows nobody completes.

use repoformer_text::language::syntax::{Syntax, is_comment, preorder, rows};
use tree_sitter::Node;

/// Maximum number of lines of a call or a collection; longer ones are data tables.
pub(super) const LONGEST_CALL: usize = 10;

/// Returns, for each of `count` lines, whether it is a row of a table. Such a line is inside a list, tuple, set, map or array
/// of more than ten lines, between its first line and its last, and contains only literals. A name, a call or a keyword makes a
/// line code. Constants such as `None` and, in TypeScript, names of properties count as literals.
pub(super) fn table_rows(count: usize, syntax: &Syntax<'_>) -> Vec<bool> {
    let spec = syntax.spec();
    let mut is_row = vec![false; count];
    let mut end_of_table = 0;
    preorder(syntax.tree(), |node, _| {
        // A node at the end can touch a row after the last line.
        let lines = rows(node).start.min(count)..rows(node).end.min(count);
        if node.start_byte() >= end_of_table {
            let is_long = lines.len() > LONGEST_CALL;
            if is_long && spec.collections.contains(&node.kind()) {
                end_of_table = node.end_byte();
                is_row[lines.start + 1..lines.end - 1].fill(true);
            }
            return is_long;
        }
        let is_broken = node.is_error() || node.is_missing();
        if !is_broken && (is_comment(node) || is_literal(spec.literals, node)) {
            return false;
        }
        let is_leaf = node.child_count() == 0;
        let is_word = node.is_named() || node.kind().contains(char::is_alphabetic);
        if is_broken || (is_leaf && is_word) {
            is_row[lines].fill(false);
        }
        !is_broken && !is_leaf
    });
    is_row
}

/// Returns true if a node is a literal that does not contain an expression.
fn is_literal(literals: &[&str], node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    let mut parts = node.children(&mut cursor);
    literals.contains(&node.kind())
        && !parts.any(|part| matches!(part.kind(), "interpolation" | "template_substitution"))
}

#[cfg(test)]
mod tests {
    use repoformer_text::language::{Grammar, Language};

    use super::*;

    /// Returns the numbers of the rows of tables.
    fn found(grammar: impl Into<Grammar>, text: &str) -> Vec<usize> {
        let syntax = Syntax::parse(text, grammar).unwrap();
        let is_row = table_rows(text.lines().count(), &syntax);
        is_row.iter().enumerate().filter(|(_, is)| **is).map(|(at, _)| at).collect()
    }

    /// Returns a collection with these rows, and with enough further rows to make it a table.
    fn table(begin: &str, rows: &[&str], filler: &str, end: &str) -> String {
        let filled = vec![filler; 11 - rows.len()];
        let rows: Vec<&str> = rows.iter().copied().chain(filled).collect();
        format!("{begin}\n{}\n{end}\n", rows.join("\n"))
    }

    #[test]
    fn rows_of_literals_are_data_in_long_collections() {
        let rows = [
            "  (0, -1.5, None),", "  'a' 'b',  # note", "  {\"k\": [1, True]},", "  # comment",
            "  f(1),", "  (x, 1),", "  f'{x}',", "  f'x',", "  'a' if 1 else 'b',", "  ...,",
        ];
        let python = table("x = [", &rows, "  1,", "]");
        // Rows 1 to 11 are between the first line and the last; 5 to 7 have names, 9 has keywords, 10 an ellipsis.
        assert_eq!(found(Language::Python, &python), [1, 2, 3, 4, 8, 11]);
        // Ten lines in total are not a table, and neither are the arguments of a call.
        let ten = format!("x = [\n{}]\n", "  1,\n".repeat(8));
        let call = format!("f(\n{})\n", "  1,\n".repeat(20));
        assert_eq!(found(Language::Python, &ten), [0; 0]);
        assert_eq!(found(Language::Python, &call), [0; 0]);
        // Lines after a table are code again, and a table may be inside another.
        let nested =
            format!("x = {{\n  'a': [\n    1,\n  ],\n{}}}\ny = 1\n", "  'b': 2,\n".repeat(8));
        assert_eq!(found(Language::Python, &nested), (1..12).collect::<Vec<_>>());
    }

    #[test]
    fn tables_of_the_other_languages_are_found() {
        let typescript = table(
            "const x = [",
            &["  { name: 'a', n: -1 },", "  { name },", "  `a${b}`,"],
            "  null,",
            "];",
        );
        assert_eq!(found(Language::TypeScript, &typescript), [1, 4, 5, 6, 7, 8, 9, 10, 11]);
        let java = table(
            "class A { int[][] x = {",
            &["  {1, 0x2},", "  {A, 2},", "  {'c', 1.5f},"],
            "  {},",
            "}; }",
        );
        assert_eq!(found(Language::Java, &java), [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        let csharp = table(
            "class A { object[] x = {",
            &["  \"a\",", "  B,", "  $\"a{b}\","],
            "  true,",
            "}; }",
        );
        assert_eq!(found(Language::CSharp, &csharp), [1, 4, 5, 6, 7, 8, 9, 10, 11]);
        let go = table(
            "package a\nvar x = [][]int{",
            &["  {1, 2},", "  {a, 2},", "  {'c', nil},"],
            "  {3},",
            "}",
        );
        assert_eq!(found(Language::Go, &go), [2, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    }

    #[test]
    fn broken_tables_are_code() {
        for text in ["", "x = [", "x = [\n\n\n\n\n\n\n\n\n\n\n\n"] {
            assert_eq!(found(Language::Python, text), [0; 0], "{text}");
        }
    }
}
