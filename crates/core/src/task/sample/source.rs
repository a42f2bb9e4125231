//! A parsed file, with the class of each line.

use std::ops::Range;

use repoformer_store::progress::Work;
use repoformer_text::language::syntax::{Syntax, is_bare_string, is_comment, preorder, rows};
use repoformer_text::language::{BlockMarks, Grammar, Language, LanguageSpec, Prose};
use repoformer_text::lines::Lines;
use serde::{Deserialize, Serialize};
use tree_sitter::{Node, Tree};

use super::table::{LONGEST_CALL, table_rows};
use crate::repository::corpus::{Repository, SourceFile};
use crate::repository::parallel;

/// Number of lines in which a generated file declares that it is generated.
const HEAD_LINES: usize = 10;

/// Class of a line, from the view of someone who completes code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineClass {
    /// Only white space.
    Blank,
    /// Only a comment or, in C#, a line for the preprocessor.
    Comment,
    /// Only text of a docstring, of a multi-line string or of a JSX element.
    Prose,
    /// Part of a syntax error, so that nothing is known about the line.
    Broken,
    /// Everything else.
    Code,
}

/// A file with lines from which no task is drawn, because they cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnparsedFile {
    /// `repository/folder/…/file`.
    pub path: String,
    /// Lines that could not be parsed; `None` if the file or one of its lines is too long to be parsed.
    pub lines: Option<UnparsedLines>,
}

/// Lines of a file with syntax errors, or with syntax that the grammar does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnparsedLines {
    /// 0-based number of the first line.
    pub first: usize,
    /// Number of lines.
    pub count: usize,
    /// Number of functions that contain an error or are inside one.
    pub functions: usize,
}

/// Lines of a file, with their classes.
#[derive(Debug)]
pub(super) struct SampleSource {
    pub(super) lines: Lines,
    /// Class of each line.
    pub(super) classes: Vec<LineClass>,
    /// Whether each line is a row of a data table.
    pub(super) is_table: Vec<bool>,
    /// Whether the file declares that a program wrote it: nobody completes such code.
    pub(super) is_generated: bool,
    /// Lines and functions that could not be parsed, if any.
    unparsed: Option<UnparsedLines>,
}

/// Reads every file in parallel, and returns the value that `extract` computes from each file's syntax, which is dropped after
/// the call. Files that cannot be read have no value.
///
/// If a file has several names in the repository, only the first is read.
pub(super) fn read_all<T: Send + Default>(
    repository: &Repository,
    language: Language,
    extract: impl Fn(&SourceFile, &SampleSource, &Syntax<'_>) -> T + Sync,
) -> (Vec<Option<SampleSource>>, Vec<T>) {
    let read = |(index, file): (usize, &SourceFile)| {
        if canonical(index, file) != index {
            return None;
        }
        let grammar = Grammar::for_path(language, &file.path);
        let (source, tree) = read(file, grammar)?;
        let syntax = Syntax::of_tree(source.lines.text(), grammar, tree);
        let extracted = extract(file, &source, &syntax);
        Some((Some(source), extracted))
    };
    let files = repository.files.iter().enumerate();
    let work = Work::new(format!("parse {}", repository.name), "files", repository.files.len());
    let read = parallel::map(files, |file| {
        work.advance(1);
        read(file).unwrap_or_default()
    });
    read.into_iter().unzip()
}

/// Returns the files of [`read_all`] that could not be parsed completely.
pub(super) fn unparsed_files(
    repository: &Repository,
    sources: &[Option<SampleSource>],
) -> Vec<UnparsedFile> {
    let files = repository.files.iter().zip(sources).enumerate();
    let own = files.filter(|(index, (file, _))| canonical(*index, file) == *index);
    own.filter_map(|(_, (file, source))| unparsed_file(&file.path, source.as_ref())).collect()
}

/// Returns the entry of a file that could not be parsed completely.
pub(super) fn unparsed_file(path: &str, source: Option<&SampleSource>) -> Option<UnparsedFile> {
    let lines = match source {
        Some(source) => Some(source.unparsed?),
        None => None,
    };
    Some(UnparsedFile { path: path.to_owned(), lines })
}

/// Returns the index of the first file that is the same file on disk.
pub(super) fn canonical(index: usize, file: &SourceFile) -> usize {
    index.min(file.same_as as usize)
}

fn read(file: &SourceFile, grammar: impl Into<Grammar>) -> Option<(SampleSource, Tree)> {
    let lines = file.lines();
    let syntax = Syntax::of_lines(&lines, grammar)?;
    let classes = classify(&lines, &syntax);
    let is_table = table_rows(lines.count(), &syntax);
    let unparsed = unparsed_lines(&syntax, &classes);
    let tree = syntax.into_tree();
    let is_generated = is_generated(&lines, &classes);
    Some((SampleSource { lines, classes, is_table, is_generated, unparsed }, tree))
}

impl SampleSource {
    /// Returns every line of code, separately (RepoCoder, section 3.1 "Line Completion"). Its number of tokens, and whether it
    /// repeats, are checked when it is drawn.
    pub(super) fn lines_of_code(&self) -> Vec<Range<usize>> {
        let classes = (0..).zip(&self.classes);
        let code = classes.filter(|&(_, &class)| class == LineClass::Code);
        code.map(|(line, _)| line..line + 1).collect()
    }

    /// Returns true if these lines are only rows of data tables. Blank lines, comments and lines of brackets are ignored.
    pub(super) fn are_tables(&self, lines: Range<usize>) -> bool {
        let mut code = lines.filter(|&line| self.has_words(line)).peekable();
        code.peek().is_some() && code.all(|line| self.is_table[line])
    }

    /// Returns true if a line is code and has more than brackets and other signs.
    pub(super) fn has_words(&self, line: usize) -> bool {
        let is_word = |c: char| c == '_' || c.is_alphanumeric();
        self.classes[line] == LineClass::Code && self.lines.line(line).contains(is_word)
    }

    /// Returns true if the rows of the syntax tree are the lines of the file, so that all lines end with `\n`.
    pub(super) fn is_plain(&self, file: &SourceFile) -> bool {
        let ends = memchr::memchr_iter(b'\n', file.text.as_bytes()).count();
        let lines = ends + usize::from(!file.text.is_empty() && !file.text.ends_with('\n'));
        self.lines.count() == lines
    }

    /// Returns true if the lines of a call are few enough to be cut out, and the first one is code.
    pub(super) fn can_cut_call(&self, lines: &Range<usize>) -> bool {
        lines.len() <= LONGEST_CALL && self.classes[lines.start] == LineClass::Code
    }
}

fn unparsed_lines(syntax: &Syntax<'_>, classes: &[LineClass]) -> Option<UnparsedLines> {
    if !syntax.has_error() {
        return None;
    }
    let is_broken = |class: &LineClass| *class == LineClass::Broken;
    let count = classes.iter().filter(|class| is_broken(class)).count();
    let functions = syntax.functions().iter().filter(|function| function.is_broken).count();
    // The error may be that the file ends too early.
    let last = classes.len().saturating_sub(1);
    let first = classes.iter().position(is_broken).unwrap_or(last);
    Some(UnparsedLines { first, count, functions })
}

fn is_generated(lines: &Lines, classes: &[LineClass]) -> bool {
    let head = lines.iter().zip(classes).take(HEAD_LINES);
    let mut comments = head.filter(|&(_, &class)| class == LineClass::Comment);
    comments.any(|(line, _)| {
        let line = line.to_ascii_lowercase();
        let words = ["do not edit", "@generated", "<auto-generated"];
        words.iter().any(|word| line.contains(word))
    })
}

fn classify(lines: &Lines, syntax: &Syntax<'_>) -> Vec<LineClass> {
    let spec = syntax.spec();
    let of_line = |line: &str| match line.trim_start().as_bytes().first() {
        None => LineClass::Blank,
        Some(b'#') if spec.has_hash_lines => LineClass::Comment,
        Some(_) => LineClass::Code,
    };
    let mut classes: Vec<LineClass> = lines.iter().map(of_line).collect();
    preorder(syntax.tree(), |node, depth| {
        if node.is_error() || node.is_missing() {
            // An error at the end can be after the last line.
            let end = rows(node).end.min(classes.len());
            classes[rows(node).start.min(end)..end].fill(LineClass::Broken);
            return false;
        }
        let over_several_lines = node.start_position().row < node.end_position().row;
        if is_comment(node) {
            mark(lines, node, LineClass::Comment, &mut classes);
        } else if is_prose(spec, node, over_several_lines) {
            mark(lines, node, LineClass::Prose, &mut classes);
        }
        // A node within one row contains only the statement itself, so most nodes need no visit.
        over_several_lines || node.has_error() || depth == 0 || node.kind() == "block"
    });
    classes
}

/// Returns true if the lines of this node are text for people, or data.
fn is_prose(spec: &LanguageSpec, node: Node<'_>, over_several_lines: bool) -> bool {
    let is_listed = spec.prose.iter().any(|prose| match prose {
        Prose::Always(kind) => node.kind() == *kind,
        Prose::Long(kind) => over_several_lines && node.kind() == *kind,
    });
    is_listed || (spec.layout == BlockMarks::Indentation && is_bare_string(node))
}

/// Marks the lines that contain only text of a node.
fn mark(lines: &Lines, node: Node<'_>, class: LineClass, classes: &mut [LineClass]) {
    for row in rows(node) {
        let at = lines.byte_range(row, row + 1).start;
        let line = lines.line(row);
        let start = at + line.len() - line.trim_start().len();
        let covered = node.start_byte() <= start && at + line.trim_end().len() <= node.end_byte();
        if covered && matches!(classes[row], LineClass::Code | LineClass::Comment) {
            classes[row] = class;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(text: &str) -> String {
        classes_of(Language::Python, text)
    }

    fn classes_of(grammar: impl Into<Grammar>, text: &str) -> String {
        let file = SourceFile { path: "r/a".into(), text: text.into(), same_as: 0 };
        let (source, _) = read(&file, grammar).unwrap();
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
        // A docstring of one line or several; a string that a statement uses keeps its first and last line.
        assert_eq!(classes("def f():\n    \"doc\"\n    return 1\n"), "c\"c");
        assert_eq!(classes("'''a\n\n# b\n'''\nx = '''a\n# b\n''' + f(1)\n"), "\"_\"\"c\"c");
        assert_eq!(classes("f(\n    '''a\n    b''',\n    'c')\n"), "c\"cc");
        assert_eq!(classes("x = ('a'\n     'b')\n"), "cc");
        assert_eq!(classes("'a' \\\n'b'\nx\n"), "\"\"c");
    }

    /// Syntax in the languages' specifications that the grammars do not support: PEP 696, JEP 440 and 441.
    #[test]
    fn what_cannot_be_parsed_is_counted_and_named() {
        let file = |path: &str, text: &str, same_as| SourceFile {
            path: format!("r/{path}"),
            text: text.into(),
            same_as,
        };
        let java = "class A {\n  int f(Object o) {\n    return switch (o) {\n      case final String s -> 1;\n      default -> 0;\n    };\n  }\n\n  int g(int x) {\n    return x;\n  }\n}\n";
        let python = "def f[T = int](x):\n    y = x\n    return y\n\n\ndef g(x):\n    return x\n";
        let whole = "def f(x):\n    return x\n";
        let large = format!("x = '{}'\n", "y".repeat(1 << 21));
        let of = |language, files: Vec<SourceFile>| {
            let repository = Repository { name: "r".into(), files };
            let (sources, _) = read_all(&repository, language, |_, _, _| ());
            unparsed_files(&repository, &sources)
        };
        let found = of(Language::Java, vec![file("A.java", java, 0)]);
        let [UnparsedFile { path, lines: Some(lines) }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&**path, lines.first, lines.functions), ("r/A.java", 3, 1));
        let files = vec![
            file("a.py", python, 0),
            file("b.py", whole, 1),
            file("c.py", python, 0),
            file("d.py", &large, 3),
        ];
        let found = of(Language::Python, files);
        let [a, d] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&*a.path, a.lines.map(|lines| lines.first)), ("r/a.py", Some(0)));
        assert_eq!((&*d.path, d.lines), ("r/d.py", None));
    }

    /// Expectations written by hand.
    #[test]
    fn lines_of_the_other_languages_are_what_they_look_like() {
        let java = "/** a\n * b\n */\nclass A { // c\n  /* d */ int x;\n  // e\n  String s = \"\"\"\n    // f\n    g\n    \"\"\";\n}\n";
        assert_eq!(classes_of(Language::Java, java), "###cc#c\"\"cc");
        let csharp = "#region R\n/// <a/>\nclass A {\n#if B\n  string s = @\"\n#if C\n\n   // d\"; /*\n e */\n#endif\n}\n#endregion\n";
        assert_eq!(classes_of(Language::CSharp, csharp), "##c#c\"_c##c#");
        let typescript = "const a = `\n b\n ${c}\n // d\n`; // e\nf(/* g */\n /* h */\n 1);\n";
        assert_eq!(classes_of(Language::TypeScript, typescript), "c\"c\"cc#c");
        let go = "/* a\n b */\nvar a = 1 // c\nvar b = `d\n// e\n`\nf( /* g */\n/* h */ 1)\n";
        assert_eq!(classes_of(Language::Go, go), "##cc\"\"cc");
        let tsx = "const a = (\n <p>\n  some words\n  {b} and\n  {/* c */}\n </p>\n);\n";
        assert_eq!(classes_of(Grammar::for_path(Language::TypeScript, "a.tsx"), tsx), "cc\"cccc");
    }

    #[test]
    fn rows_are_lines_behind_rare_separators_too() {
        assert_eq!(classes("x = 1\u{c}y = 2\u{2028}'''a\u{85}b'''\n# c"), "cc\"\"#");
    }

    #[test]
    fn a_syntax_error_spoils_its_own_lines() {
        let classes = classes("x = 1\ny = = 2\nz = 3\n");
        assert_eq!(classes, "c!c");
    }
}
