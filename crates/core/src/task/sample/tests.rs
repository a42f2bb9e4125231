use super::*;
use crate::repository::corpus::SourceFile;
use proptest::prelude::*;

pub(super) fn repository(files: &[(&str, &str)]) -> Repository {
    let mut files: Vec<SourceFile> = files
        .iter()
        .map(|(path, text)| SourceFile {
            path: format!("r/{path}"),
            text: (*text).to_owned(),
            same_as: u32::MAX,
        })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Repository { name: "r".into(), files }
}

/// Counts runs of word characters, and single other characters.
pub(super) fn count(text: &str) -> usize {
    let mut word = false;
    text.chars()
        .filter(|&c| {
            let continues = word && (c == '_' || c.is_alphanumeric());
            word = c == '_' || c.is_alphanumeric();
            !c.is_whitespace() && !continues
        })
        .count()
}

/// Returns the path and the lines of every candidate.
pub(super) fn places(
    kind: Kind,
    language: Language,
    files: &[(&str, &str)],
) -> Vec<(String, std::ops::Range<usize>)> {
    let repository = repository(files);
    let holes = candidates(&repository, kind, language).holes;
    let path = |hole: &Hole| repository.files[hole.file].path[2..].to_owned();
    holes.iter().map(|hole| (path(hole), hole.start..hole.end)).collect()
}

/// Returns `file:first line-line after the last` of every candidate.
fn holes(kind: Kind, files: &[(&str, &str)]) -> Vec<String> {
    let places = places(kind, Language::Python, files).into_iter();
    places.map(|(path, lines)| format!("{path}:{}-{}", lines.start, lines.end)).collect()
}

fn ground_truths(repository: &Repository, sampling: &Sampling) -> Vec<String> {
    let tasks = sample(repository, sampling, &count).tasks.into_iter();
    let mut texts: Vec<_> = tasks.map(|task| task.ground_truth).collect();
    texts.sort();
    texts
}

#[test]
fn kinds_parse_as_they_print() {
    for kind in Kind::ALL {
        assert_eq!(kind.to_string().parse::<Kind>().unwrap(), kind);
    }
    let message = "lines".parse::<Kind>().unwrap_err().to_string();
    assert_eq!(message, "unknown kind of task 'lines'; known: line, api, chunk, function");
}

#[test]
fn lines_are_code_of_five_tokens_and_do_not_repeat() {
    let text = "first = f(1, 2)\n# a comment of many words\nx = 1\n\nsecond = f(1, 2)\n\
                def g():\n    '''Some words in a docstring.'''\n    second = f(1, 2)\n    y = '''a b c d e\n    f g h i j\n    '''\n";
    let wanted = ["    second = f(1, 2)", "    y = '''a b c d e", "def g():", "second = f(1, 2)"];
    let found = ground_truths(&repository(&[("a.py", text)]), &Sampling::new(Kind::Line));
    // One of the two equal lines, depending on which was drawn first.
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|line| wanted.contains(&line.as_str())), "{found:?}");
}

#[test]
fn function_bodies_keep_their_docstring_in_the_prompt() {
    let text = "\
def one(a,
        b):  # why
    '''Doc.

    More.
    '''

    x = 1
    # in between

    y = 2
    # behind

def stub():
    '''Doc.'''
    raise NotImplementedError(
        'a'
        'b')

def short(): return 1

def two_lines():
    '''Doc.
    Doc.
    Doc.'''
    x = 1
    return x

class C:
    @property
    async def outer(self):
        # first
        def inner():
            a = 1
            b = 2
            return '''a
            b'''
        return inner
";
    assert_eq!(holes(Kind::Function, &[("a.py", text)]), ["a.py:7-11", "a.py:31-38", "a.py:33-37"]);
    let tasks =
        sample(&repository(&[("a.py", text)]), &Sampling::new(Kind::Function), &count).tasks;
    // `inner` is inside `outer`, so only one of them is drawn.
    assert_eq!(tasks.len(), 2);
    let one = tasks.iter().find(|task| task.line_no == 7).unwrap();
    assert!(one.prompt.ends_with("    More.\n    '''\n\n"));
    assert_eq!(one.ground_truth, "    x = 1\n    # in between\n\n    y = 2");
}

#[test]
fn bodies_have_three_to_thirty_lines() {
    let body = |lines: usize| format!("def f():\n{}", "    x = 1\n".repeat(lines));
    for (lines, counts) in [(2, 0), (3, 1), (30, 1), (31, 0)] {
        assert_eq!(holes(Kind::Function, &[("a.py", &body(lines))]).len(), counts, "{lines}");
    }
}

#[test]
fn calls_are_found_through_imports() {
    let library = "def helper(): pass\nclass Thing:\n    def special(self): pass\n    def append(self): pass\n";
    let main = "\
import os, pkg.lib
import pkg.lib as lib
from pkg import helper as h, lib as other, missing
from pkg.lib import Thing
from . import lib as relative
from os.path import helper as outside
def local(): return Thing(
    1)
x = h(local(), 2)
y = pkg.lib.helper(
    1,
    2)
lib.helper(); os.helper()
other.Thing.special(1)
relative.helper(3)
outside(1)
helper(1)
os.path.join(missing(h))
anything.special(4)
anything.append(5)
os.special(6)
";
    let found = holes(
        Kind::Api,
        &[
            ("pkg/__init__.py", "from .lib import *\n"),
            ("pkg/lib.py", library),
            ("pkg/main.py", main),
        ],
    );
    let wanted = ["6-8", "8-9", "9-12", "12-13", "13-14", "14-15", "18-19"];
    assert_eq!(found, wanted.map(|lines| format!("pkg/main.py:{lines}")));
}

#[test]
fn calls_of_the_own_file_and_of_foreign_modules_do_not_count() {
    let files = [
        ("pkg/__init__.py", ""),
        ("pkg/logging.py", "def getLogger(): pass\nclass A:\n    def only(self): pass\n"),
        // Python's own module, not the package's; a method that two files define; a method that this file defines.
        (
            "pkg/a.py",
            "import logging\nlogging.getLogger()\nclass B:\n    def twice(self): pass\nb.twice()\nb.only()\n",
        ),
        (
            "pkg/b.py",
            "class C:\n    def twice(self): pass\n    def only(self):\n        self.only()\nc.twice()\n",
        ),
        // Each file imports from the other.
        ("x.py", "from y import *\nfrom y import f\nf()\ng()\n"),
        ("y.py", "from x import *\nfrom x import f\nf()\ng()\n"),
    ];
    assert_eq!(holes(Kind::Api, &files), [""; 0]);
}

#[test]
fn a_package_that_imports_in_circles_still_gives_its_names() {
    let files = [
        ("p/__init__.py", "from .a import *\nfrom .b import *\n"),
        ("p/a.py", "from .b import *\nfrom p import *\n"),
        ("p/b.py", "from .a import *\ndef found(): pass\n"),
        // No file has that name: it is compiled, or created by a build.
        ("q/__init__.py", "from q.fast import fast\n"),
        ("use.py", "from p import found\nfound(1)\nfrom q import fast\nfast(1)\n"),
    ];
    assert_eq!(holes(Kind::Api, &files), ["use.py:1-2"]);
}

#[test]
fn chunks_end_in_code_and_hold_a_word() {
    let text = "import a\n\nx = (\n    1\n)\n# end\n\n";
    for seed in 0..50 {
        let sampling = Sampling { seed, ..Sampling::new(Kind::Chunk) };
        for chunk in ground_truths(&repository(&[("a.py", text)]), &sampling) {
            let wanted = ["x = (", "x = (\n    1", "x = (\n    1\n)", "    1", "    1\n)"];
            assert!(wanted.contains(&chunk.as_str()), "{chunk:?}");
        }
    }
}

#[test]
fn odd_files_give_nothing_and_break_nothing() {
    let deep = format!("x\nx = {}{}\n", "(".repeat(50_000), ")".repeat(50_000));
    let nested: String = (0..90).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect();
    let files = [
        ("binary.py", "\u{0}\u{1}\u{7f}\n\u{0}("),
        ("blank.py", "\n\n"),
        ("broken.py", "def f(:\n  '''\n x = = =\n"),
        ("deep.py", &deep),
        ("empty.py", ""),
        ("generated.py", "# Generated by a compiler. DO NOT EDIT!\nx = f(1, 2)\n"),
        ("long.py", &"x".repeat((1 << 20) + 1)),
        ("nested.py", &nested),
        ("one.py", "x = f(1, 2)"),
    ];
    for kind in Kind::ALL {
        assert_eq!(sample(&repository(&[]), &Sampling::new(kind), &count).tasks, []);
        for task in sample(&repository(&files), &Sampling::new(kind), &count).tasks {
            assert!(
                ["r/broken.py", "r/deep.py", "r/nested.py"].contains(&task.path.as_str()),
                "{task:?}"
            );
        }
    }
}

#[test]
fn a_file_with_two_names_is_read_once() {
    let mut repository = repository(&[("a.py", "x\nx = f(1, 2)\n"), ("b.py", "x\nx = f(1, 2)\n")]);
    repository.files[1].same_as = 0;
    assert_eq!(candidates(&repository, Kind::Line, Language::Python).holes.len(), 1);
}

#[test]
fn the_stream_is_pinned() {
    // Recorded values: a change here changes everyone's benchmarks, and needs another stream name.
    let text: String = (0..1000).map(|n| format!("value_{n} = f({n}, 2)\n")).collect();
    let tasks = sample(&repository(&[("a.py", &text)]), &Sampling::new(Kind::Line), &count).tasks;
    let lines: Vec<_> = tasks.iter().take(5).map(|task| task.line_no).collect();
    assert_eq!(lines, [723, 771, 545, 435, 546]);
}

/// Returns Python code with a mixture of constructs, joined from pieces.
fn python() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "import b\n",
        "from b import *\n",
        "from .b import f, C as D\n",
        "x = f(1, 2)\n",
        "b.f(\n    1,\n)\n",
        "\n",
        "# note\n",
        "'''a\nb'''\n",
        "def f(a):\n    'doc'\n    x = f(a, 1)\n\n    return x + 1\n",
        "class C:\n    def m(self):\n        return D(\n            1)\n",
        "c.m()\n",
        "  y = = 1\n",
        "(\n",
        "\u{c}z = 1\n",
        "é = 'ü\u{2028}'\n",
        "\tif x:\n\t\ty = f(x, 2)\n",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tasks_are_cut_from_their_files(a in python(), b in python(), seed in any::<u64>(), context_tokens in 0usize..60) {
        let repository = repository(&[("a.py", &a), ("b.py", &b)]);
        for kind in Kind::ALL {
            let sampling = Sampling { seed, context_tokens, per_repository: 20, ..Sampling::new(kind) };
            let tasks = sample(&repository, &sampling, &count).tasks;
            prop_assert_eq!(&tasks, &sample(&repository, &sampling, &count).tasks);
            let fewer = sample(&repository, &Sampling { per_repository: 5, ..sampling.clone() }, &count).tasks;
            prop_assert_eq!(&tasks[..fewer.len()], &fewer[..]);
            let mut taken = foldhash::HashSet::default();
            let mut texts = foldhash::HashSet::default();
            let mut ids = foldhash::HashSet::default();
            for task in &tasks {
                let names_its_hole = task.id.starts_with(&format!("r/{kind}-"));
                prop_assert!(names_its_hole && ids.insert(&task.id));
                let lines = repository.file(&task.path).unwrap().lines();
                let length = task.ground_truth.split('\n').count();
                prop_assert_eq!(&task.ground_truth, lines.range(task.line_no, task.line_no + length));
                prop_assert_eq!(&task.prompt, &format!("{}\n", lines.range(task.context_start, task.line_no)));
                prop_assert!(count(&task.prompt) <= context_tokens);
                prop_assert!(task.context_start == 0 || count(lines.range(task.context_start - 1, task.line_no)) > context_tokens);
                prop_assert!(texts.insert(task.ground_truth.trim()));
                for line in task.line_no..task.line_no + length {
                    prop_assert!(taken.insert((&task.path, line)));
                }
            }
        }
    }
}
