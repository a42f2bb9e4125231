use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::repository::chunk::{ChunkShape, RepoChunks};
use crate::repository::corpus::{Repository, SourceFile};
use crate::retrieve::query::Mode;
use crate::retrieve::rank::{Index, Ranker, Words};
use crate::store::artifact::Payload;
use crate::task::{Task, TaskSet};
use crate::text::language::Language;
use crate::text::lines::strip;

fn file(path: &str, text: &str, same_as: u32) -> SourceFile {
    SourceFile {
        path: path.into(),
        text: text.into(),
        same_as,
    }
}

fn repository(files: Vec<SourceFile>) -> Repository {
    Repository {
        name: "r".into(),
        files,
    }
}

fn cut(files: Vec<SourceFile>, size: usize, stride: usize) -> RepoChunks {
    RepoChunks::cut(
        repository(files),
        Language::Python,
        ChunkShape { size, stride },
    )
}

/// The reference's loop: lines by `\n`, blank ones dropped, a chunk without a word takes no number.
fn slow(text: &str, size: usize, stride: usize) -> Vec<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let lines: Vec<&str> = lines.into_iter().filter(|l| !strip(l).is_empty()).collect();
    let mut chunks = Vec::new();
    let mut start = 0;
    while start < lines.len() {
        let chunk = lines[start..lines.len().min(start + size)].join("\n");
        if chunk.chars().any(|c| c.is_alphanumeric() || c == '_') {
            chunks.push(chunk);
        }
        start += stride;
    }
    chunks
}

proptest! {
    #[test]
    fn equals_the_reference_loop(
        texts in prop::collection::vec("[ab( \n\u{c}]{0,60}", 0..5), size in 1_usize..6, stride in 1_usize..6,
    ) {
        let numbered = texts.iter().enumerate();
        let files = numbered.map(|(n, text)| file(&format!("r/{n}.py"), text, n as u32)).collect();
        let chunks = cut(files, size, stride);
        prop_assert!(chunks.check().is_ok());
        let all: Vec<String> = texts.iter().flat_map(|text| slow(text, size, stride)).collect();
        let fast: Vec<&str> = (0..chunks.len()).map(|chunk| chunks.text(chunk)).collect();
        prop_assert_eq!(fast, all);
    }

    /// Whatever is found and however it is aligned: nothing of the task's own file is shown, under none of its names.
    #[test]
    fn no_alignment_shows_the_own_file(
        lines in prop::collection::vec((0_usize..4, 0_usize..3, "[a-d]{1,3}"), 1..60),
        own in 0_usize..4, size in 1_usize..5, stride in 1_usize..4, form in 0_usize..8, limit in 1_usize..30,
    ) {
        // Four files; the fifth is a link to the task's. Every line names its file, some lines begin functions.
        let mut texts = vec![String::new(); 4];
        for (n, kind, word) in &lines {
            let line = match kind {
                0 => format!("def {word}(): # file{n}\n"),
                1 => format!("    {word}() # file{n}\n"),
                _ => format!("{word} = 1 # file{n}\n\n"),
            };
            texts[*n].push_str(&line);
        }
        let numbered = texts.iter().enumerate();
        let mut files: Vec<SourceFile> = numbered.map(|(n, text)| file(&format!("r/{n}.py"), text, n as u32)).collect();
        files.push(file("r/link.py", &texts[own], own as u32));
        let chunks = cut(files, size, stride);
        let mut task = Task::new("r/0".into(), &format!("r/{own}.py"), 0, 0, "a()", &texts[own]);
        task.right_context = Some("b\nc\n".into());
        let tasks = TaskSet { path: PathBuf::from("t.jsonl"), tasks: vec![task] };
        let form = QueryForm::ALL[form];
        let predictions = [vec!["c\nd".to_owned()]];
        let predictions = (form.mode() == Mode::Prediction).then_some(&predictions[..]);
        let right = |task: &'_ Task| -> Option<&'_ str> { let _ = task; Some("b\nc\n") };
        let (queries, skipped) = queries((form.mode(), form, 3), &tasks, &chunks, right, predictions);
        prop_assert!(skipped.is_empty());
        let ranker = Ranker::Jaccard;
        let texts: Vec<&str> = (0..chunks.len()).map(|chunk| chunks.text(chunk)).collect();
        let index = Index::new(Words::of(&texts), &texts, std::slice::from_ref(&ranker), Language::Python);
        let limits = Limits { files: limit, chunks: limit };
        let neighbourhood = Neighbourhood::new(&chunks, limits, Order::Nearest);
        let ranking = Ranking::search(&index, &neighbourhood, &queries, (&ranker, 100), None);
        let marker = format!("file{own}");
        for align in Align::ALL {
            let shower = Shower::new(&chunks, align.settled(form), 100, |_| true);
            for fragment in shower.fragments(&ranking.found[0]) {
                prop_assert!(!fragment.text.contains(&marker), "{} shows {}", align, fragment.text);
            }
        }
    }
}

#[test]
fn what_is_written_is_read_back() {
    let chunks = cut(
        vec![
            file("r/a.py", "a\n\nb\nc\n", 0),
            file("r/b.py", "", 1),
            file("r/c.py", "x\n", 0),
        ],
        2,
        1,
    );
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.bin");
    let identity = crate::store::artifact::Identity::new(RepoChunks::KIND);
    crate::store::artifact::write(&path, &identity, &chunks).unwrap();
    assert_eq!(
        crate::store::artifact::read::<RepoChunks>(&path).unwrap().1,
        chunks
    );
    assert_eq!(chunks.name(2), "r/a.py|2");
    assert_eq!(chunks.text(2), "c", "the short end of a file is a chunk");
    assert_eq!(
        (chunks.numbered(0, 3), chunks.numbered(2, 0)),
        (None, Some(3))
    );
}

#[test]
fn near_files_come_first_and_the_own_one_not_at_all() {
    // By hand: from r/x/own.py the distance to r/x/… is 0, to r/… 1, to r/y/… 2.
    let names = ["r/a.py", "r/x/m.py", "r/x/own.py", "r/x/s.py", "r/y/a.py"];
    let numbered = (0..).zip(names);
    let files = numbered
        .map(|(n, name)| file(name, "one\ntwo\n", n))
        .collect();
    let chunks = cut(files, 1, 1);
    let sight = Neighbourhood::new(&chunks, Limits::default(), Order::Nearest).sight("r/x/own.py");
    let unseen = u32::MAX;
    assert_eq!(sight.priority, [4, 5, 0, 1, unseen, unseen, 2, 3, 6, 7]);
    assert_eq!(sight.seen, 8);
    let limits = Limits {
        files: 3,
        chunks: 5,
    };
    let sight = Neighbourhood::new(&chunks, limits, Order::Nearest).sight("r/x/own.py");
    let few = [4, unseen, 0, 1, unseen, unseen, 2, 3, unseen, unseen];
    assert_eq!(
        sight.priority, few,
        "the fourth file and the sixth chunk are not ranked"
    );
}

#[test]
fn the_reference_sorts_names_and_texts_apart() {
    let lines: String = (0..11).map(|n| format!("w{}\n", n % 3)).collect();
    let chunks = cut(
        vec![file("r/a.py", &lines, 0), file("r/own.py", "x\n", 1)],
        1,
        1,
    );
    let sight = Neighbourhood::new(&chunks, Limits::default(), Order::Reference).sight("r/own.py");
    // `r/a.py|9` is the greatest name, `r/a.py|10` comes before `r/a.py|1`.
    let mut names: Vec<usize> = (0..11).collect();
    names.sort_by_key(|chunk| sight.priority[*chunk]);
    assert_eq!(names, [9, 8, 7, 6, 5, 4, 3, 2, 10, 1, 0]);
    let texts = sight.text_priority.unwrap();
    let mut by_text: Vec<usize> = (0..11).collect();
    by_text.sort_by_key(|chunk| texts[*chunk]);
    let of_text = |n: &usize| chunks.text(*n).to_owned();
    assert_eq!(of_text(&by_text[0]), "w2");
    assert_eq!(of_text(&by_text[10]), "w0");
}

fn made(form: QueryForm, length: usize, filled: Option<&str>) -> (Vec<String>, u32) {
    let mut task = Task::new(
        "r/0".into(),
        "r/a.py",
        0,
        0,
        "t1\n\nt2",
        "l1\n \nl2\nl3\nl4\n",
    );
    task.right_context = Some("\nr1\n\nr2\nr3\nr4\n".into());
    let tasks = TaskSet {
        path: PathBuf::from("t.jsonl"),
        tasks: vec![task],
    };
    let chunks = cut(vec![file("r/a.py", "x\n", 0)], 1, 1);
    let predictions = filled.map(|filled| [vec![filled.to_owned()]]);
    let predictions = predictions.as_ref().map(|predictions| &predictions[..]);
    let what = (form.mode(), form, length);
    let right = tasks.tasks[0].right_context.as_deref();
    let (made, skipped) = queries(what, &tasks, &chunks, |_| right, predictions);
    assert!(skipped.is_empty());
    (made.queries[0].lines.clone(), made.queries[0].hole)
}

#[test]
fn queries_are_the_lines_that_their_form_says() {
    // By hand from the definitions, n = 4; blank lines never count.
    let check = |form, filled, lines: &str, hole| {
        let lines: Vec<String> = lines.split(' ').map(str::to_owned).collect();
        assert_eq!(made(form, 4, filled), (lines, hole), "{form}");
    };
    check(QueryForm::LastLines, None, "l1 l2 l3 l4", 4);
    check(QueryForm::FirstLines, None, "r1 r2 r3 r4", 0);
    check(QueryForm::LeftRight, None, "l3 l4 r1 r2", 2);
    check(QueryForm::GroundTruth, None, "l3 l4 t1 t2", 4);
    check(QueryForm::Prediction, Some("p1\n\np2"), "l3 l4 p1 p2", 4);
    let six = Some("p1\np2\np3\np4\np5\np6");
    check(QueryForm::Prediction, six, "p1 p2 p3 p4", 4);
    check(
        QueryForm::PredictionLeftRight,
        Some("p1\np2"),
        "l3 l4 p1 r1",
        3,
    );
    check(QueryForm::PredictionLeftRight, Some(""), "l3 l4 r1 r2", 2);
    // k = 2 target lines: 10 of either context.
    check(
        QueryForm::Surrounding,
        None,
        "l1 l2 l3 l4 t1 t2 r1 r2 r3 r4",
        6,
    );
    check(
        QueryForm::SurroundingOnly,
        None,
        "l1 l2 l3 l4 r1 r2 r3 r4",
        4,
    );
    let (odd, hole) = made(QueryForm::LeftRight, 5, None);
    assert_eq!((odd.join(" ").as_str(), hole), ("l3 l4 r1 r2 r3", 2));
}

#[test]
fn names_of_queries_and_alignments_are_read_as_they_are_written() {
    for form in QueryForm::ALL {
        assert_eq!(form.name().parse(), Ok(form));
    }
    for align in Align::ALL {
        assert_eq!(align.name().parse(), Ok(align));
    }
    assert!(
        "last"
            .parse::<QueryForm>()
            .unwrap_err()
            .contains("last-n-lines")
    );
}

#[test]
fn alignment_stays_in_the_file() {
    let chunks = cut(
        vec![
            file("r/a.py", "a\nb\nc\nd\ne\n", 0),
            file("r/b.py", "x\n", 1),
        ],
        2,
        2,
    );
    // Chunks of a.py: ab, cd, e; of b.py: x.
    let shown = |chunk, align| Piece::of(&chunks, chunk, align, |_| None).text(&chunks);
    assert_eq!(shown(0, Align::Next), "c\nd");
    assert_eq!(
        shown(2, Align::Next),
        "e",
        "the last is shown itself, not the next file"
    );
    assert_eq!(shown(1, Align::Previous), "a\nb");
    assert_eq!(shown(3, Align::Previous), "x");
    assert_eq!(
        shown(1, Align::Extend),
        "d\ne",
        "no further than the file reaches"
    );
    assert_eq!(shown(1, Align::None), "c\nd");
}

#[test]
fn fragments_snap_to_the_function_that_holds_them() {
    let text = concat!(
        "import os\n\nclass Store:\n    def read(self, path):\n        with open(path) as stream:\n",
        "            return stream\n\n    def write(self):\n        pass\n",
    );
    let chunks = cut(vec![file("r/a.py", text, 0)], 2, 1);
    // Non-blank lines: 0 import, 1 class, 2-4 read, 5-6 write.
    let found = |chunk: u32| Ranked {
        row: 0,
        sample: 0,
        seen: 1,
        hits: vec![Rank {
            chunk,
            text_of: chunk,
            score: 1.0,
        }],
    };
    let shown = |chunk, most: usize| {
        let shower = Shower::new(&chunks, Align::Enclosing, 10, move |text: &str| {
            text.lines().count() <= most
        });
        shower.fragments(&found(chunk))[0].text.clone()
    };
    assert!(shown(2, 10).starts_with("    def read") && shown(2, 10).ends_with("return stream"));
    assert_eq!(
        shown(4, 10).lines().count(),
        6,
        "the class holds both functions"
    );
    assert!(
        shown(4, 3).starts_with("    def write"),
        "the class is too long: the function around the middle"
    );
    assert_eq!(
        shown(2, 2),
        chunks.text(2),
        "nothing fits: the chunk itself"
    );
    assert_eq!(
        shown(0, 5),
        chunks.text(0),
        "no function around an import, and the class is too long"
    );
}
