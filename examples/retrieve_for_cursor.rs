//! Retrieves the fragments of other files that resemble the lines before a cursor, as an editor would.
//!
//! `cargo run --release --example retrieve_for_cursor -- data/repos tidewatch/tidewatch/cli.py 40`
#![allow(clippy::print_stdout)] // an example prints

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use repoformer_core::repository::corpus::Repository;
use repoformer_core::repository::fragment::{ChunkShape, Cut, RepoFragments};
use repoformer_core::retrieve::rank::{Ranker, Vocabulary, Words};
use repoformer_core::retrieve::*;
use repoformer_core::task::{Task, TaskSet};
use repoformer_core::text::language::Language;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, path, line] = &arguments[..] else {
        bail!("usage: retrieve_for_cursor REPOS_DIR REPOSITORY/FILE LINE");
    };
    let language = Language::of_path(path).context("unknown language")?;
    let name = path.split('/').next().unwrap_or_default();
    let repository = Repository::read(Path::new(folder), name, language)?.repository;
    // A cursor is a task whose prompt is the file up to it.
    let file = repository.file(path).context("no such file")?;
    let line = line.parse()?;
    ensure!(line <= file.lines().count(), "{path} has no line {line}");
    let left: String = file.text.split_inclusive('\n').take(line).collect();
    let tasks = vec![Task::new("cursor".into(), path, 0, line, "", &left)];
    let path = "cursor".into();
    let tasks = TaskSet::new(path, tasks);

    let fragments = RepoFragments::cut(repository, language, Cut::Chunks(ChunkShape::default()));
    let (limits, ties) = (RankLimits::default(), Ties::default());
    let visibility = Visibility::OtherFiles { limits, ties };
    let settings = SearchSettings {
        ranker: Ranker::Jaccard,
        vocabulary: Vocabulary::Words,
        visibility,
        top_k: 3,
    };
    let vectors = FragmentVectors::Terms(Words::new(&fragments.texts()));
    let index = RepositoryIndex::new(&fragments, vectors, &settings);
    let (mode, form, length) = (Mode::LeftContext, QueryForm::LastLines, 20);
    let made = Queries::of_tasks(QuerySettings { mode, form, length }, &tasks, &fragments);
    let found = index.search(&made.queries, QueryVectors::default()).found;
    // The query ends at the cursor: the lines after a fragment resemble those that come next.
    let shown = FragmentTextSettings { align: Align::Next, most: 3, full_paths: false, visibility };
    let texts = FragmentText::new(&fragments, shown, |_| true);
    for fragment in texts.collect(&made.queries.queries[0], &found[0]) {
        println!("# {}\n{}\n", fragment.path, fragment.text);
    }
    Ok(())
}
