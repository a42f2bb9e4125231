//! Expectations written by hand.

use super::*;
use crate::repository::corpus::{Repository, SourceFile};
use crate::repository::fragment::{ChunkShape, WindowShape};
use crate::retrieve::{Mode, Queries, QueryForm, QuerySettings};
use crate::task::TaskSet;

fn cuts() -> [Cut; 2] {
    let windows = WindowShape { window_size: 4, slice_size: 2, ..WindowShape::default() };
    [Cut::Windows(windows), Cut::Chunks(ChunkShape { size: 4, stride: 2 })]
}

fn fragments(language: Language, cut: Cut, files: &[(&str, &str)]) -> RepoFragments {
    let file = |(path, text): &(&str, &str)| SourceFile {
        path: format!("r/{path}"),
        text: (*text).to_owned(),
        same_as: u32::MAX,
    };
    let mut files: Vec<SourceFile> = files.iter().map(file).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    RepoFragments::cut(Repository { name: "r".into(), files }, language, cut)
}

/// Returns the fragments that the left context of a hole retrieves, best first. The hole is the line of `text` that ends in
/// `@`.
fn found(
    language: Language,
    cut: Cut,
    files: &[(&str, &str)],
    (path, text): (&str, &str),
) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.ends_with('@')).unwrap();
    let left: String = lines[..at].iter().map(|line| format!("{line}\n")).collect();
    let target = lines[at].trim_end_matches('@');
    let task = Task::new("r/0".into(), &format!("r/{path}"), 0, at, target, &left);
    let whole = text.replace('@', "");
    let fragments = fragments(language, cut, &[files, &[(path, &whole)]].concat());
    let form = match cut {
        Cut::Windows(_) => QueryForm::Window,
        Cut::Chunks(_) => QueryForm::LastLines,
    };
    let tasks = TaskSet::new("t.jsonl".into(), vec![task]);
    let settings = QuerySettings { mode: Mode::LeftContext, form, length: 4 };
    let queries = Queries::of_tasks(settings, &tasks, &fragments).queries;
    let names = FileNames::read(&fragments, &KnownNames::default());
    let mut found = names.index().search(&queries.queries[0], &tasks.tasks()[0]);
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.fragment.cmp(&b.fragment)));
    found.iter().map(|found| fragments.text(found.fragment as usize).to_owned()).collect()
}

const LIBRARY: &str = "\
LIMIT = 3
# a
# b
# c
def helper(x):
    return x
# d
# e
class Thing:
    # f
    # g
    # h
    def use(self):
        return 1
# i
# j
def other():
    return 2
";

#[test]
fn names_near_the_hole_come_first_and_imports_last() {
    let main = "\
from lib import Thing, helper, other, LIMIT
import os


x = helper(1)
y = 2
z = x@
";
    for cut in cuts() {
        let found = found(Language::Python, cut, &[("lib.py", LIBRARY)], ("main.py", main));
        let first = |start: &str| found.iter().position(|text| text.contains(start));
        assert_eq!(first("def helper"), Some(0), "{found:?}");
        // A class comes before its methods, and all imported definitions are found.
        let class = first("class Thing");
        assert!(class.is_some() && class < first("    def use"), "{found:?}");
        assert!(first("def other").is_some() && first("LIMIT").is_some(), "{found:?}");
    }
}

/// Lines of a prompt may end with characters other than `\n`, at which a tree's rows end, and the prompt may not match its
/// file.
#[test]
fn prompts_of_odd_lines_are_looked_up() {
    let files = [("a.py", "from b import f\ny = 1\nz = f(2)\n"), ("b.py", LIBRARY)];
    for prompt in ["x\rx\rx\rx\n", "\r", "\r\r\n", "\n", "", "a\u{2028}b\u{c}c\u{85}d", "x\r\nx\r"]
    {
        for cut in cuts() {
            let fragments = fragments(Language::Python, cut, &files);
            let tasks = TaskSet::new(
                "t.jsonl".into(),
                vec![Task::new("r/0".into(), "r/a.py", 0, 1, "y = 1", prompt)],
            );
            let settings =
                QuerySettings { mode: Mode::LeftContext, form: QueryForm::LastLines, length: 4 };
            let names = FileNames::read(&fragments, &KnownNames::default());
            for query in Queries::of_tasks(settings, &tasks, &fragments).queries.queries {
                names.index().search(&query, &tasks.tasks()[0]);
            }
        }
    }
}

#[test]
fn lines_of_the_target_tell_nothing() {
    let main = "import os\n\n\nhelper\nfrom lib import helper@\nx = helper(1)\n";
    for cut in cuts() {
        let found = found(Language::Python, cut, &[("lib.py", LIBRARY)], ("main.py", main));
        assert_eq!(found, [""; 0], "the target imports it");
    }
    // Imports after the hole do not count either.
    let main = "import os\n\n\nhelper\ny = 1@\nfrom lib import helper\n";
    for cut in cuts() {
        let found = found(Language::Python, cut, &[("lib.py", LIBRARY)], ("main.py", main));
        assert_eq!(found, [""; 0], "an import behind the hole");
    }
}

#[test]
fn the_target_is_found_where_the_prompt_ends_within_or_before_its_line() {
    let file = "import os\n\ndef f(x):\n    y = 1\n\n    from lib import helper\n    return y\n";
    let head = "import os\n\ndef f(x):";
    let all = "y = 1\n\n    from lib import helper";
    for cut in cuts() {
        for (prompt, target, start) in [
            (format!("{head}\n"), format!("    {all}\n"), 3),
            (head.to_owned(), format!("    {all}"), 3),
            (head.to_owned(), format!("\n    {all}"), 2),
            (format!("{head}\n    y ="), " 1\n\n    from lib import he".to_owned(), 3),
        ] {
            // The line number may refer to the prompt alone.
            let task = Task::new("r/0".into(), "r/main.py", 0, 0, &target, &prompt);
            let fragments = fragments(Language::Python, cut, &[("main.py", file)]);
            let (text, row) = without_target(&fragments.files[0], &task, cut);
            assert!(!text.contains("helper") && text.ends_with("    return y"), "{text}");
            let blank = usize::from(matches!(cut, Cut::Chunks(_)));
            assert_eq!(row, start - blank, "{prompt:?} {target:?}");
        }
        let task = Task::new("r/0".into(), "r/main.py", 0, 3, "    z = 2", &format!("{head}\n"));
        let fragments = fragments(Language::Python, cut, &[("main.py", file)]);
        let (text, row) = without_target(&fragments.files[0], &task, cut);
        assert_eq!((text, row), (format!("{head}\n"), 3), "another version of the file");
    }
}

#[test]
fn a_chunk_s_hole_that_stands_in_two_places_is_looked_up_in_what_the_task_shows() {
    let main = "x = 1\nfrom lib import helper@\nx = 1\nfrom lib import helper\nhelper\n";
    let cut = cuts()[1];
    let files = [("lib.py", LIBRARY)];
    assert_eq!(found(Language::Python, cut, &files, ("main.py", main)), [""; 0]);
}

#[test]
fn declared_types_lead_to_methods() {
    for (language, library, main) in [
        (
            Language::Java,
            (
                "p/Lib.java",
                "package p;\n// a\n// b\n// c\npublic class Lib {\n  // d\n  // e\n  // f\n  int area() {\n    return 1;\n  }\n}\n",
            ),
            (
                "p/Main.java",
                "package p;\nclass Main {\n  private Lib lib;\n  int f() {\n    int x = this.lib.area();\n    return x;@\n  }\n}\n",
            ),
        ),
        (
            Language::CSharp,
            (
                "Lib.cs",
                "namespace P;\n// a\n// b\n// c\npublic class Lib {\n  // d\n  // e\n  // f\n  public int area() {\n    return 1;\n  }\n}\n",
            ),
            (
                "Main.cs",
                "namespace P;\nclass Main {\n  private Lib lib;\n  int f() {\n    int x = lib.area();\n    return x;@\n  }\n}\n",
            ),
        ),
        (
            Language::TypeScript,
            (
                "lib.ts",
                "// a\n// b\n// c\n// d\nexport class Lib {\n  // d\n  // e\n  // f\n  area() {\n    return 1;\n  }\n}\n",
            ),
            (
                "main.ts",
                "import { Lib } from './lib';\nfunction f(lib: Lib) {\n  const x = lib.area();\n  return x;@\n}\n",
            ),
        ),
        (
            Language::Go,
            (
                "lib/lib.go",
                "package lib\n// a\n// b\n// c\ntype Lib struct {\n  // d\n  // e\n}\nfunc (l Lib) area() int {\n  return 1\n}\n",
            ),
            (
                "main.go",
                "package main\nimport \"example.org/r/lib\"\nfunc f(l lib.Lib) int {\n  x := l.area()\n  return x@\n}\n",
            ),
        ),
    ] {
        for cut in cuts() {
            let found = found(language, cut, &[library], main);
            assert!(found[0].contains("area()"), "{language}: {found:?}");
        }
    }
}
