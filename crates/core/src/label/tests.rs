//! Instances of the sample repositories and of unusual ones.

use std::collections::BTreeSet;
use std::path::Path;

use repoformer_text::language::Language;

use super::code::{Code, LineSelection};
use super::nearest::{EqualChunks, Question, nearest};
use super::*;
use crate::repository::corpus::{Repository, SourceFile};
use crate::repository::fragment::{ChunkShape, Cut, RepoFragments};
use crate::repository::record::RawRepository;
use crate::retrieve::rank::{Ranker, Vocabulary, Words};
use crate::retrieve::{
    FragmentVectors, Hit, Mode, Queries, Query, QueryForm, QueryVectors, RankLimits,
    RepositoryIndex, SearchSettings, Ties, Visibility,
};

fn sample_repository(name: &str) -> Repository {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("data/repos");
    let reading = Repository::read(&dir, name, Language::Python).unwrap();
    assert!(reading.skipped.is_empty());
    reading.repository
}

fn repository(files: &[(&str, String)]) -> Repository {
    let file = |(number, (path, text)): (usize, &(&str, String))| SourceFile {
        path: format!("r/{path}"),
        text: text.clone(),
        same_as: number as u32,
    };
    Repository { name: "r".into(), files: files.iter().enumerate().map(file).collect() }
}

fn instances(repository: Repository, drawing: &Drawing) -> Vec<Instance> {
    draw(repository, drawing).instances().collect()
}

/// Returns path, first line and score of the chunks that the index finds for some lines of a file.
fn by_index(
    repository: Repository,
    shape: ChunkShape,
    asked: &[(usize, String)],
) -> Vec<Vec<(String, u32, f64)>> {
    let chunks = RepoFragments::cut(repository, Language::Python, Cut::Chunks(shape));
    let settings = SearchSettings {
        ranker: Ranker::Jaccard,
        vocabulary: Vocabulary::Words,
        visibility: Visibility::OtherFiles { limits: RankLimits::default(), ties: Ties::Nearest },
        top_k: 3,
    };
    let query = |(row, (file, text)): (u32, &(usize, String))| Query {
        row,
        sample: 0,
        task_id: row.to_string(),
        path: chunks.files[*file].path.clone(),
        line_no: 0,
        context_start: 0,
        start: 0,
        end: 0,
        hole: 0,
        text: text.clone(),
    };
    let queries = Queries {
        repository: chunks.repository.clone(),
        mode: Mode::LeftContext,
        form: QueryForm::LastLines,
        length: 20,
        shape: None,
        queries: (0..).zip(asked).map(query).collect(),
    };
    let vectors = FragmentVectors::Terms(Words::new(&chunks.texts()));
    let index = RepositoryIndex::new(&chunks, vectors, &settings);
    let retrieval = index.search(&queries, QueryVectors::default());
    let hit = |hit: &Hit| {
        let place = chunks.first_place(hit.fragment as usize);
        let path = chunks.files[place.file as usize].path.clone();
        (path, place.start, hit.score.value())
    };
    let found = retrieval.found.iter();
    found.map(|found| found.hits.iter().map(hit).collect()).collect()
}

#[test]
fn one_walk_finds_what_the_index_finds() {
    for name in ["parcelflow", "quillpad", "tidewatch"] {
        let code = Code::from_repository(sample_repository(name), LineSelection::Lines);
        // More queries than fit in one pass, from every file.
        let (mut questions, mut texts) = (Vec::new(), Vec::new());
        for (number, file) in code.files.iter().enumerate() {
            for start in (0..file.count()).step_by(13) {
                let lines = start..file.count().min(start + 12);
                let words = code.set(std::iter::once(code.words(file, lines.clone())));
                questions.push(Question { file: number, words });
                texts.push((number, file.join(lines)));
            }
        }
        assert!(questions.len() > 64);
        for (size, stride) in [(10, 5), (30, 15), (11, 5), (70, 35)] {
            let shape = ChunkShape { size, stride };
            let hit = |hit: &super::nearest::Hit| {
                (code.files[hit.file].path.clone(), hit.start as u32, hit.score)
            };
            let found = nearest(&code, shape, &questions, (3, EqualChunks::NearestFirst));
            let found: Vec<Vec<_>> =
                found.iter().map(|hits| hits.iter().map(hit).collect()).collect();
            assert!(found == by_index(sample_repository(name), shape, &texts), "{name} {shape:?}");
        }
    }
}

#[test]
fn instances_are_cut_out_of_their_files() {
    for (kind, least) in [(InstanceKind::Chunk, 30), (InstanceKind::Function, 10)] {
        let drawing = Drawing::paper(kind);
        let repository = sample_repository("parcelflow");
        let drawn = instances(repository.clone(), &drawing);
        assert!(drawn.len() >= least, "{}", drawn.len());
        for instance in &drawn {
            let whole = [&*instance.left, &instance.target, &instance.right].concat();
            let file = repository.files.iter().find(|file| file.path == instance.path).unwrap();
            assert_eq!(whole, file.text);
            let lines = instance.target.lines().filter(|line| !line.trim().is_empty());
            assert_eq!(lines.count(), instance.lines.len());
            assert!(instance.left.is_empty() || instance.left.ends_with('\n'));
            let longest = if kind == InstanceKind::Chunk { 10 } else { 30 };
            assert!((1..=longest).contains(&instance.lines.len()));
            assert_eq!(instance.cross_file.fragments.len(), 3);
            let own = crate::repository::fragment::path_in_repository(&instance.path);
            assert!(instance.cross_file.fragments.iter().all(|fragment| fragment.path != own));
        }
        let with_target = drawn.iter().filter(|instance| instance.query_has_target).count();
        assert!((1..drawn.len()).contains(&with_target));
        let half = Drawing { ratio: drawing.ratio / 2.0, ..drawing };
        let ratio = instances(repository, &half).len() as f64 / drawn.len() as f64;
        assert!((0.4..0.6).contains(&ratio), "{ratio}");
    }
}

/// Fragments have 10 lines for each line of the target, or 11 for chunks of the released program if the query contains the
/// target.
#[test]
fn fragments_have_ten_lines_for_each_of_the_target() {
    for kind in [InstanceKind::Chunk, InstanceKind::Function] {
        let of_release = if kind == InstanceKind::Chunk { 11 } else { 10 };
        for (drawing, of_a_line) in
            [(Drawing::paper(kind), 10), (Drawing::release(kind), of_release)]
        {
            let drawing = Drawing { ratio: 1.0, ..drawing };
            let mut longest = [0; 2];
            for instance in instances(sample_repository("parcelflow"), &drawing) {
                let factor = if instance.query_has_target { of_a_line } else { 10 };
                let most = factor * instance.lines.len();
                for fragment in &instance.cross_file.fragments {
                    let lines = fragment.text.lines().count();
                    assert!(lines <= most, "{lines} of {most}");
                    // Many fragments are cut off at the end of a file.
                    longest[usize::from(instance.query_has_target)] += usize::from(lines == most);
                }
            }
            assert!(longest.iter().all(|number| *number > 0), "{longest:?}");
        }
    }
}

#[test]
fn limits_are_kept() {
    let drawn = |drawing: &Drawing| instances(sample_repository("parcelflow"), drawing);
    let chunks = Drawing { ratio: 1.0, ..Drawing::paper(InstanceKind::Chunk) };
    let few = Drawing { max_candidates: Some(20), ..chunks.clone() };
    assert!(drawn(&chunks).len() > 20 && drawn(&few).len() <= 20);
    let one = Drawing { fragments: 1, ..chunks.clone() };
    assert!(drawn(&one).iter().all(|instance| instance.cross_file.fragments.len() == 1));
    let short = Drawing { poisson_mean: 1e-9, ..chunks };
    assert!(drawn(&short).iter().all(|instance| instance.lines.len() == 1));
    let functions = Drawing { ratio: 1.0, ..Drawing::paper(InstanceKind::Function) };
    // One line of the signature, and one or two of the body.
    let short = Drawing { function_lines: 2..=3, ..functions };
    let targets: Vec<usize> =
        drawn(&short).iter().map(|instance| instance.target.lines().count()).collect();
    assert!(targets.contains(&1) && targets.contains(&2), "{targets:?}");
    assert!(targets.iter().all(|lines| *lines <= 2), "{targets:?}");
}

#[test]
fn the_released_program_shows_no_blank_lines() {
    let repository = sample_repository("quillpad");
    for instance in instances(repository, &Drawing::release(InstanceKind::Chunk)) {
        let whole = [&*instance.left, &instance.target, &instance.right].concat();
        assert!(whole.lines().all(|line| !line.trim().is_empty()));
        assert!(instance.right.is_empty() || instance.right.starts_with('\n'));
    }
}

#[test]
fn odd_repositories_give_what_they_have() {
    let line = |n: usize| format!("value_{n} = compute({n}, other_{})\n", n % 7);
    let long: String = (0..100).map(line).collect();
    let drawing = Drawing::paper(InstanceKind::Chunk);
    let drawn = |files: &[(&str, String)]| instances(repository(files), &drawing);
    // Nothing, only blank lines, one file, one line.
    assert!(drawn(&[]).is_empty());
    assert!(drawn(&[("a.py", "\n  \n".into())]).is_empty());
    let one = drawn(&[("a.py", long.clone())]);
    assert_eq!(one.len(), 2);
    assert!(one.iter().all(|instance| instance.cross_file.is_empty()));
    assert_eq!(drawn(&[("a.py", "x = 1".into())])[0].target, "x = 1");
    // Equal files: as many clusters as there are distinct chunks.
    let copies =
        ["a.py", "b.py", "c.py", "d.py", "e.py", "f.py"].map(|path| (path, "x = 1\n".repeat(10)));
    assert_eq!(drawn(&copies).len(), 1);
    // A syntax error, and a minified line of five megabytes.
    let broken = ("b.py", "def f(:\n    return (\n".to_owned());
    let minified = ("c.py", "x=1;".repeat(1_250_000));
    let found = drawn(&[("a.py", long.clone()), broken.clone(), minified.clone()]);
    let files: BTreeSet<&str> = found.iter().map(|instance| &*instance.path).collect();
    assert_eq!(files, ["r/a.py", "r/b.py"].into(), "{files:?}");
    let is_short = |instance: &Instance| instance.cross_file.text.len() < 10_000;
    assert!(found.iter().all(is_short));
    let functions = Drawing::paper(InstanceKind::Function);
    assert!(instances(repository(&[("a.py", long), broken, minified]), &functions).is_empty());
    let function =
        "def f(a):\n    \"\"\"What it does.\"\"\"\n    b = a\n\n    c = b\n    return c\n"
            .to_owned();
    let found = instances(
        repository(&[("a.py", function.clone()), ("b.py", "b = 1\n".into())]),
        &functions,
    );
    assert_eq!(found[0].target, "    b = a\n\n    c = b\n    return c");
    // Rows differ from lines if other characters also end lines.
    let odd = function.replace("What", "What\u{c}");
    assert!(instances(repository(&[("a.py", odd)]), &functions).is_empty());
}

#[test]
fn repositories_are_filtered_by_what_they_import() {
    let filter = Filter::paper(Language::Python);
    for (files, imports, wanted) in [
        (4, "import a\nimport b\nimport c\n", Err(Rejection::FewFiles)),
        (5, "import os\n", Err(Rejection::FewImports)),
        (5, "import os\nimport re\nimport sys\n", Err(Rejection::FewLocalImports)),
        (5, "import os\nimport a\nimport b\nimport c\n", Ok(())),
    ] {
        let names = ["a.py", "b.py", "c.py", "d.py", "e.py"].map(|name| (name, imports.to_owned()));
        let repository = repository(&names[..files]);
        let facts = Facts::new(&repository, Language::Python);
        assert_eq!(
            (facts.pass(&filter), filter.check(&repository, Language::Python, &mut Vec::new())),
            (wanted, wanted)
        );
        assert_eq!(facts.pass(&Filter::paper(Language::Java)), Err(Rejection::FewFiles));
    }
    assert_eq!(Facts::default().pass(&Filter::none()), Ok(()));
}

/// Facts stated in a raw record are used; facts stated for every file agree with the facts that this program computes.
#[test]
fn raw_records_say_what_they_import() {
    let sample = sample_repository("quillpad");
    let contents = sample.files.iter().map(|file| crate::repository::record::FileText {
        path: file.path.split_once('/').unwrap().1.into(),
        text: file.text.clone(),
    });
    let silent = RawRepository::new("quillpad", contents.collect());
    assert_eq!(Facts::from_record(&silent, Language::Python), None);
    let serde_json::Value::Object(mut record) = silent.to_record(&mut Vec::new()) else { panic!() };
    let read = |record: &repoformer_store::jsonl::Object| {
        RawRepository::read(Path::new("raw.jsonl"), 1, record.clone()).unwrap().0
    };
    let said = Facts::from_record(&read(&record), Language::Python);
    assert_eq!(said, Some(Facts::new(&sample, Language::Python)));
    let metadata = &mut record["files"][0]["metadata"];
    metadata["imports"] = serde_json::json!(["a", "b", "a"]);
    metadata["line_count"] = 7.into();
    record["files"] = serde_json::json!([record["files"][0]]);
    let said = Facts::from_record(&read(&record), Language::Python).unwrap();
    assert_eq!((said.files, said.lines, said.imports), (1, 7, 2));
    assert_eq!(Facts::from_record(&read(&record), Language::Java), Some(Facts::default()));
}

/// An interrupted run resumes after its finished repositories and writes the same bytes as an uninterrupted one.
#[test]
fn a_drawing_goes_on_where_it_was_broken_off() {
    let dir = tempfile::tempdir().unwrap();
    let repos = dir.path().join("repos");
    let names = ["parcelflow", "quillpad", "tidewatch"].map(str::to_owned).to_vec();
    for file in names.iter().flat_map(|name| sample_repository(name).files) {
        let path = repos.join(file.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file.text).unwrap();
    }
    let from = Repositories::Folders(repos.clone(), names.clone(), Default::default());
    let journal = dir.path().join("x.jsonl.drawn");
    let drawing = Drawing::paper(InstanceKind::Chunk);
    let collecting = CollectSettings {
        from: &from,
        shard: Shard::WHOLE,
        filter: &Filter::none(),
        drawing: &drawing,
        format: RecordFormat::Labels,
        journal: Some(&journal),
    };
    let run = |collecting: &CollectSettings<'_>, most: usize| {
        let mut records = Vec::new();
        let collected = collect(collecting, &mut |_, record| {
            if records.len() == most {
                return Err(repoformer_store::error::Error::Parameter {
                    name: "disk",
                    reason: "full".into(),
                });
            }
            records.push(record.to_owned());
            Ok(())
        });
        (collected, records)
    };
    let without = CollectSettings { journal: None, ..collecting };
    let (_, whole) = run(&without, usize::MAX);
    assert!(whole.len() > 80, "{}", whole.len());
    assert!(!journal.exists());
    // Writing the last record of the last repository fails, so that repository is drawn again.
    assert!(run(&collecting, whole.len() - 1).0.is_err());
    let (collected, again) = run(&collecting, usize::MAX);
    let collected = collected.unwrap();
    assert_eq!(collected.known, names.len() - 1);
    assert_eq!(collected.instances, whole.len());
    assert!(again == whole);
    // Draws that were cut off, whose repository changed or whose settings differ are drawn again.
    let bytes = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, &bytes[..bytes.len() - 5]).unwrap();
    let (collected, again) = run(&collecting, usize::MAX);
    assert_eq!(collected.unwrap().known, names.len() - 1);
    assert!(again == whole);
    std::fs::write(repos.join(&names[0]).join("new.py"), "import os\n").unwrap();
    assert_eq!(run(&collecting, usize::MAX).0.unwrap().known, names.len() - 1);
    let paper = || drawing.clone();
    for other in [
        Drawing { seed: 1, ..paper() },
        Drawing { max_candidates: Some(1000), ..paper() },
        Drawing { poisson_mean: 2.5, ..paper() },
        Drawing { function_lines: 3..=29, ..paper() },
        Drawing { fragments: 2, ..paper() },
        Drawing { is_release: true, ..paper() },
    ] {
        let other = CollectSettings { drawing: &other, ..collecting };
        let collected = run(&other, usize::MAX).0.unwrap();
        assert_eq!(collected.known, 0);
        assert_ne!(fingerprint(&other).unwrap().0, fingerprint(&collecting).unwrap().0);
        assert_eq!(collected.drawn_from, fingerprint(&other).unwrap().0);
    }
    for other in [
        Filter { files: 1, ..Filter::none() },
        Filter { lines: 1, ..Filter::none() },
        Filter { imports: 0.5, ..Filter::none() },
        Filter { local_imports: 0.1, ..Filter::none() },
    ] {
        let other = CollectSettings { filter: &other, ..collecting };
        let collected = run(&other, usize::MAX).0.unwrap();
        assert_eq!(collected.known, 0);
        assert_ne!(fingerprint(&other).unwrap().0, fingerprint(&collecting).unwrap().0);
        assert_eq!(collected.drawn_from, fingerprint(&other).unwrap().0);
    }
    // A file of another kind is left unchanged.
    std::fs::write(&journal, "mine\n").unwrap();
    assert!(run(&collecting, usize::MAX).0.is_err());
    assert_eq!(std::fs::read(&journal).unwrap(), b"mine\n");
}

/// Algorithm 2 of Repoformer's appendix D gathers "all the functions between 3 and 30 lines". A function's lines begin with its
/// signature and include its docstring. With the other setting, only the lines of the body are counted, the part that is cut
/// out.
#[test]
fn the_lines_of_a_function_are_counted_from_its_signature() {
    let body = |lines: usize| "    x = 1\n".repeat(lines);
    let docstring =
        |lines: usize| format!("    \"\"\"Doc.\n{}    \"\"\"\n", "\n".repeat(lines - 2));
    for (text, as_function, as_body) in [
        (format!("def f():\n{}", body(1)), false, false),
        (format!("def f():\n{}", body(2)), true, false),
        (format!("def f():\n{}", body(29)), true, true),
        (format!("def f():\n{}", body(30)), false, true),
        (format!("def f(a,\n      b):\n{}", body(29)), false, true),
        // One line of the signature, 27 of the docstring, 2 or 3 of the body.
        (format!("def f():\n{}{}", docstring(27), body(2)), true, false),
        (format!("def f():\n{}{}", docstring(27), body(3)), false, true),
        (format!("@property\ndef f():\n{}", body(29)), true, true),
        // A body without statements that do anything is still a body.
        ("def f():\n    # later\n    pass\n".to_owned(), true, false),
    ] {
        let files = [("a.py", text.clone()), ("b.py", "b = 1\n".into())];
        for (counted, wanted) in
            [(CountedLines::Function, as_function), (CountedLines::Body, as_body)]
        {
            let drawing = Drawing { counted, ..Drawing::paper(InstanceKind::Function) };
            let drawn = instances(repository(&files), &drawing);
            assert_eq!(drawn.len(), usize::from(wanted), "{counted}: {text}");
            // The docstring stays in the prompt.
            assert!(drawn.iter().all(|instance| !instance.target.contains("Doc.")), "{text}");
        }
    }
}
