//! One file, parsed: what each of its lines is.

use std::ops::Range;

use rayon::prelude::*;
use tree_sitter::{Node, Parser, Tree};

use crate::corpus::{Repository, SourceFile};
use crate::lines::Lines;

/// Files beyond these sizes are data or generated; a syntax tree takes many times their memory.
const LARGEST_FILE: usize = 8 << 20;
const LONGEST_LINE: usize = 1 << 20;

/// Where generated files say that they are.
const HEAD_LINES: usize = 10;

/// What a line is to someone who completes code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineClass {
    /// White space alone.
    Blank,
    /// A comment alone.
    Comment,
    /// Nothing but the text of a docstring or of a string over several lines.
    Prose,
    /// Touched by a syntax error, so that nothing is known about it.
    Broken,
    /// Everything else.
    Code,
}

/// The lines of a file and what they are.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) lines: Lines,
    /// One for each line.
    pub(super) classes: Vec<LineClass>,
    /// Whether a program wrote it, by its own word: nobody completes such code.
    pub(super) is_generated: bool,
}

/// Reads every file in parallel and takes from each what `extract` finds in its tree, which does not outlive the call.
///
/// A file that stands in the repository under several names is read under the first alone.
pub(super) fn read_all<T: Send>(
    repository: &Repository,
    extract: impl Fn(&Source, &Tree) -> T + Sync,
) -> (Vec<Option<Source>>, Vec<Option<T>>) {
    let files = repository.files.par_iter().enumerate();
    files
        .map_init(parser, |parser, (index, file)| {
            if canonical(index, file) != index {
                return (None, None);
            }
            let Some((source, tree)) = parser.as_mut().and_then(|p| read(p, file)) else {
                return (None, None);
            };
            let extracted = extract(&source, &tree);
            (Some(source), Some(extracted))
        })
        .unzip()
}

/// Index of the first file that is the same file on disk.
pub(super) fn canonical(index: usize, file: &SourceFile) -> usize {
    index.min(file.same_as as usize)
}

fn parser() -> Option<Parser> {
    let mut parser = Parser::new();
    let language = tree_sitter_python::LANGUAGE.into();
    parser.set_language(&language).ok().map(|()| parser)
}

fn read(parser: &mut Parser, file: &SourceFile) -> Option<(Source, Tree)> {
    if file.text.len() > LARGEST_FILE {
        return None;
    }
    let lines = file.lines();
    if lines.iter().any(|line| line.len() > LONGEST_LINE) {
        return None;
    }
    // The joined lines rather than the file's text: tree-sitter ends a row at `\n` alone, and a row must be a line.
    let tree = parser.parse(lines.text(), None)?;
    let classes = classify(&lines, &tree);
    let is_generated = is_generated(&lines, &classes);
    Some((
        Source {
            lines,
            classes,
            is_generated,
        },
        tree,
    ))
}

fn is_generated(lines: &Lines, classes: &[LineClass]) -> bool {
    let head = lines.iter().zip(classes).take(HEAD_LINES);
    let mut comments = head.filter(|&(_, &class)| class == LineClass::Comment);
    comments.any(|(line, _)| {
        let line = line.to_ascii_lowercase();
        line.contains("do not edit") || line.contains("@generated")
    })
}

/// Every node before its children, with its depth; `visit` says whether to go below it. No recursion: code can be nested deeply.
pub(super) fn preorder<'tree>(
    tree: &'tree Tree,
    mut visit: impl FnMut(Node<'tree>, usize) -> bool,
) {
    let mut cursor = tree.walk();
    let mut depth = 0;
    loop {
        if visit(cursor.node(), depth) && cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
            depth -= 1;
        }
    }
}

/// The rows that a node touches.
pub(super) fn rows(node: Node<'_>) -> Range<usize> {
    let (start, end) = (node.start_position(), node.end_position());
    // A node that ends where a row begins does not touch that row.
    let last = if end.column == 0 && end.row > start.row {
        end.row
    } else {
        end.row + 1
    };
    start.row..last
}

/// Whether this statement is a string that nothing uses, as a docstring is.
pub(super) fn is_bare_string(node: Node<'_>) -> bool {
    node.kind() == "expression_statement"
        && node.named_child_count() == 1
        && node
            .named_child(0)
            .is_some_and(|child| matches!(child.kind(), "string" | "concatenated_string"))
}

fn classify(lines: &Lines, tree: &Tree) -> Vec<LineClass> {
    let mut classes: Vec<LineClass> = lines
        .iter()
        .map(|line| match line.trim_start().as_bytes().first() {
            None => LineClass::Blank,
            Some(b'#') => LineClass::Comment,
            Some(_) => LineClass::Code,
        })
        .collect();
    preorder(tree, |node, _| {
        if node.is_error() || node.is_missing() {
            // An error at the end can stand behind the last line.
            let end = rows(node).end.min(classes.len());
            classes[rows(node).start.min(end)..end].fill(LineClass::Broken);
            return false;
        }
        let over_several_lines = node.start_position().row < node.end_position().row;
        if is_bare_string(node) || (over_several_lines && node.kind() == "string") {
            mark_prose(lines, node, &mut classes);
        }
        // Within one row there is nothing to find but the statement itself; most nodes are spared the visit.
        over_several_lines || node.has_error() || matches!(node.kind(), "module" | "block")
    });
    classes
}

fn mark_prose(lines: &Lines, node: Node<'_>, classes: &mut [LineClass]) {
    for row in rows(node) {
        let at = lines.byte_range(row, row + 1).start;
        let line = lines.line(row);
        let start = at + line.len() - line.trim_start().len();
        let covered = node.start_byte() <= start && at + line.trim_end().len() <= node.end_byte();
        if covered && matches!(classes[row], LineClass::Code | LineClass::Comment) {
            classes[row] = LineClass::Prose;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn classes(text: &str) -> String {
        let file = SourceFile {
            path: "r/a.py".into(),
            text: text.into(),
            same_as: 0,
        };
        let (source, _) = read(&mut parser().unwrap(), &file).unwrap();
        let letter = |class: &LineClass| match class {
            LineClass::Blank => '_',
            LineClass::Comment => '#',
            LineClass::Prose => '"',
            LineClass::Broken => '!',
            LineClass::Code => 'c',
        };
        source.classes.iter().map(letter).collect()
    }

    #[test]
    fn each_line_is_what_it_looks_like() {
        assert_eq!(classes(""), "");
        assert_eq!(classes("x = 1\n\n  # note\ny = 2  # two\n"), "c_#c");
        // A docstring, be it one line or several; the string that a statement uses keeps its first and last line.
        assert_eq!(classes("def f():\n    \"doc\"\n    return 1\n"), "c\"c");
        assert_eq!(
            classes("'''a\n\n# b\n'''\nx = '''a\n# b\n''' + f(1)\n"),
            "\"_\"\"c\"c"
        );
        assert_eq!(classes("f(\n    '''a\n    b''',\n    'c')\n"), "c\"cc");
        assert_eq!(classes("x = ('a'\n     'b')\n"), "cc");
        assert_eq!(classes("'a' \\\n'b'\nx\n"), "\"\"c");
    }

    #[test]
    fn rows_are_lines_behind_rare_separators_too() {
        assert_eq!(
            classes("x = 1\u{c}y = 2\u{2028}'''a\u{85}b'''\n# c"),
            "cc\"\"#"
        );
    }

    #[test]
    fn a_syntax_error_spoils_its_own_lines() {
        let classes = classes("x = 1\ny = = 2\nz = 3\n");
        assert_eq!(classes, "c!c");
    }
}
