//! Expectations written by hand.

use repoformer_text::language::Language;

use super::*;
use crate::repository::corpus::{Repository, SourceFile};
use crate::repository::fragment::{ChunkShape, Cut, WindowShape};
use crate::retrieve::definitions::{FileNames, KnownNames};
use crate::retrieve::{Mode, Queries, QueryForm, QuerySettings};
use crate::task::TaskSet;

/// Returns the priors of one fragment per file, by the file's first letter. The hole is the line of `main.py` that ends in `@`.
fn priors(cut: Cut, form: QueryForm, files: &[(&str, &str)], path: &str) -> Vec<(char, f64)> {
    let file = |(path, text): &(&str, &str)| SourceFile {
        path: format!("r/{path}"),
        text: text.replace('@', ""),
        same_as: u32::MAX,
    };
    let (_, main) = files.iter().find(|(path, _)| *path == "main.py").unwrap();
    let (before, right) = main.split_once("@\n").unwrap();
    let (left, target) = before.rsplit_once('\n').unwrap();
    let line = left.lines().count();
    let task_in = |path: &str| {
        Task::new("r/0".into(), &format!("r/{path}"), 0, line, target, &format!("{left}\n"))
    };
    let mut files: Vec<SourceFile> = files.iter().map(file).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let fragments =
        RepoFragments::cut(Repository { name: "r".into(), files }, Language::Python, cut);
    let tasks = TaskSet::new("t.jsonl".into(), vec![task_in("main.py")]);
    let settings = QuerySettings { mode: Mode::LeftContext, form, length: 20 };
    let queries = Queries::make(settings, &tasks, &fragments, |_| Some(right), None).queries;
    let (query, task) = (&queries.queries[0], task_in(path));
    let names = FileNames::read(&fragments, &KnownNames::default());
    let definitions = names.index();
    let priors = FileGraph::new(&definitions, &fragments).prior(&definitions, query, &task);
    let name = |fragment| {
        let file = fragments.places(fragment).next().unwrap().file;
        fragments.files[file as usize].path.chars().nth(2).unwrap()
    };
    priors.into_iter().enumerate().map(|(fragment, prior)| (name(fragment), prior)).collect()
}

#[test]
fn files_that_the_own_one_builds_on_have_a_prior() {
    let files = [
        ("main.py", "from a import f\nimport os, c\n\nx = f()\nfrom d import h; h()@\ng = c.k()\n"),
        ("a.py", "from b import g\ndef f():\n    return g()\n"),
        ("b.py", "def g():\n    return 1\n"),
        ("c.py", "def k():\n    return 1\n"),
        ("d.py", "def h():\n    return 2\n"),
    ];
    let windows = WindowShape { window_size: 20, slice_size: 1, ..WindowShape::default() };
    for cut in [Cut::Windows(windows), Cut::Chunks(ChunkShape { size: 20, stride: 20 })] {
        let found = priors(cut, QueryForm::LastLines, &files, "main.py");
        let of = |wanted: char| {
            found.iter().find(|(name, _)| *name == wanted).map(|(_, prior)| *prior).unwrap()
        };
        // The walk goes to `a`, from there to `b`, and back, so `b` is visited 0.85 times as often.
        assert!((of('a') - 1.2).abs() < 1e-12, "{found:?}");
        assert!((of('b') - (1.0 + 0.2 * 0.85_f64.sqrt())).abs() < 0.003, "{found:?}");
        assert_eq!(
            [of('c'), of('m')],
            [1.0, 1.0],
            "c is called behind the hole, and the own file has none"
        );
        assert_eq!(of('d'), 1.0, "the target alone refers to d");
        let both = priors(cut, QueryForm::LeftRight, &files, "main.py");
        assert!(both.iter().any(|(name, prior)| *name == 'c' && *prior > 1.1), "{both:?}");
        let elsewhere = priors(cut, QueryForm::LastLines, &files, "gone.py");
        assert!(elsewhere.iter().all(|(_, prior)| *prior == 1.0), "a file that is not there");
    }
}
