//! `inspect`: any artifact's header, or its records as JSONL.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use repoformer::formats::records;
use repoformer::pipeline::{Layout, RightContexts};
use repoformer::repository::chunk::RepoChunks;
use repoformer::repository::window::RepoWindows;
use repoformer::retrieve::Retrieval;
use repoformer::retrieve::chunks::{Queries, Ranking};
use repoformer::retrieve::dense::Matrix;
use repoformer::retrieve::query::QueryWindows;
use repoformer::retrieve::rank::Words;
use repoformer::retrieve::vector::TokenSets;
use repoformer::store::artifact::{
    Header, Payload, header_path, read, read_header, read_jsonl_header,
};
use repoformer::text::language::Language;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::args::{InspectArgs, InspectFormat};
use crate::output::{hinted, write_data};

pub(crate) fn run(args: &InspectArgs) -> Result<()> {
    let text = match args.format {
        InspectFormat::Text => header_text(&args.file)?,
        InspectFormat::Jsonl => records_text(args)?,
    };
    write_data(Path::new("-"), &text)
}

fn is_jsonl(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "jsonl") && header_path(path).exists()
}

/// Scores are plain JSON and carry no header: `scores/<benchmark>/….json`.
fn scores(path: &Path) -> Option<Map<String, Value>> {
    if path.extension()? != "json" {
        return None;
    }
    let scores: Map<String, Value> = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let known = scores.contains_key("predictions") && scores.contains_key("all");
    known.then_some(scores)
}

fn header_text(path: &Path) -> Result<Vec<u8>> {
    if let Some(scores) = scores(path) {
        let lines = [
            "kind        scores".to_owned(),
            format!("records     {}", scores["all"]["n"]),
            format!(
                "predictions {}",
                scores["predictions"].as_str().unwrap_or("?")
            ),
            format!(
                "missing     {}",
                scores.get("missing").unwrap_or(&Value::Null)
            ),
        ];
        return Ok((lines.join("\n") + "\n").into_bytes());
    }
    let header = if is_jsonl(path) {
        read_jsonl_header(path)?
    } else {
        read_header(path)?
    };
    let Header {
        identity,
        format,
        tool,
        records,
        bytes,
        checksum,
        columns,
        totals,
    } = header;
    let mut lines = vec![
        format!("kind        {}", identity.kind),
        format!("records     {records}"),
        format!("bytes       {bytes}"),
        format!("checksum    {checksum}"),
        format!("format      {format}"),
        format!("written by  repoformer {tool}"),
    ];
    lines.extend(
        columns
            .iter()
            .map(|column| format!("column      {} = {} bytes", column.name, column.bytes)),
    );
    lines.extend(
        totals
            .iter()
            .map(|(name, total)| format!("total       {name} = {total}")),
    );
    lines.extend(
        identity
            .parameters
            .iter()
            .map(|(name, value)| format!("parameter   {name} = {value}")),
    );
    lines.extend(
        identity
            .inputs
            .iter()
            .map(|(name, digest)| format!("input       {name}: {digest}")),
    );
    Ok((lines.join("\n") + "\n").into_bytes())
}

fn records_text(args: &InspectArgs) -> Result<Vec<u8>> {
    let path = &args.file;
    if is_jsonl(path) {
        read_jsonl_header(path)?;
        return Ok(std::fs::read(path)?);
    }
    if let Some(scores) = scores(path) {
        let mut out = Vec::new();
        let tasks = scores.get("tasks").and_then(Value::as_array);
        tasks
            .into_iter()
            .flatten()
            .for_each(|task| line(&mut out, task));
        return Ok(out);
    }
    let kind = read_header(path)?.identity.kind;
    let mut out = Vec::new();
    if kind == RepoWindows::KIND {
        let (_, windows) = read::<RepoWindows>(path)?;
        (0..windows.len())
            .for_each(|w| line(&mut out, &records::window(&windows, w, args.context)));
    } else if kind == QueryWindows::KIND {
        let (_, queries) = read::<QueryWindows>(path)?;
        let QueryWindows {
            mode,
            shape,
            repository,
            windows,
        } = &queries;
        for query in windows {
            line(
                &mut out,
                &records::query(query, *mode, *shape, repository, args.context),
            );
        }
    } else if kind == TokenSets::KIND {
        let (_, sets) = read::<TokenSets>(path)?;
        sets.iter().for_each(|set| {
            line(
                &mut out,
                &json!({ "embedding": set.iter().collect::<Vec<_>>() }),
            )
        });
    } else if kind == Retrieval::KIND {
        retrieval(args, &mut out)?;
    } else if kind == RepoChunks::KIND {
        let (_, chunks) = read::<RepoChunks>(path)?;
        (0..chunks.len()).for_each(|chunk| line(&mut out, &chunks.record(chunk, args.context)));
    } else if kind == Queries::KIND {
        let (_, queries) = read::<Queries>(path)?;
        let records = queries.queries.iter();
        records.for_each(|query| line(&mut out, &queries.record(query, args.context)));
    } else if kind == Words::KIND {
        let (_, words) = read::<Words>(path)?;
        for document in 0..words.documents() {
            let counts = words.row(document);
            let counts = counts.map(|(word, count)| {
                (words.dictionary().word(word).to_owned(), Value::from(count))
            });
            line(&mut out, &json!({ "words": counts.collect::<Map<_, _>>() }));
        }
    } else if kind == Matrix::KIND {
        let (_, vectors) = read::<Matrix>(path)?;
        let rows = vectors.iter();
        rows.for_each(|row| line(&mut out, &json!({ "embedding": row })));
    } else if kind == RightContexts::KIND {
        let (_, contexts) = read::<RightContexts>(path)?;
        for (row, text) in contexts.iter() {
            line(&mut out, &json!({ "row": row, "right_context": text }));
        }
    } else if kind == Ranking::KIND {
        ranking(args, &mut out)?;
    } else {
        anyhow::bail!(
            "{}: holds {kind}, which has no records to print",
            path.display()
        );
    }
    Ok(out)
}

/// Retrieval results name windows by number; the windows themselves lie in the same cache.
fn retrieval(args: &InspectArgs, out: &mut Vec<u8>) -> Result<()> {
    let (header, results) = read::<Retrieval>(&args.file)?;
    let windows = sibling::<RepoWindows>(&args.file, &header, "windows", |layout| {
        layout.repo_windows(&results.repository)
    })?;
    let queries = sibling::<QueryWindows>(&args.file, &header, "queries", |layout| {
        layout.query_windows(results.mode, &results.repository)
    })?;
    for (index, query) in queries.windows.iter().enumerate().take(results.found.len()) {
        line(
            out,
            &records::retrieval(&results, index, &windows, query, args.context),
        );
    }
    Ok(())
}

/// Rankings name chunks by number; the chunks and queries lie in the same cache.
fn ranking(args: &InspectArgs, out: &mut Vec<u8>) -> Result<()> {
    let path = &args.file;
    let (header, results) = read::<Ranking>(path)?;
    let place = || {
        let parameter = |name: &str| header.identity.parameters.get(name);
        let cache = Layout::cache_of_retrieval(path)?;
        let name = path.file_name()?.to_str()?;
        // `<repo>_chunk20_stride10.last-n-lines20.jaccard.top10.bin`
        let (named, _) = name.strip_suffix(".bin")?.rsplit_once(".top")?;
        let (queries, _) = named.rsplit_once('.')?;
        let (chunks, _) = queries.rsplit_once('.')?;
        let window = cache.join("window");
        let mode = window
            .join(parameter("benchmark")?)
            .join(parameter("mode")?);
        Some((
            window.join("repos").join(format!("{chunks}.bin")),
            mode.join(format!("{queries}.bin")),
        ))
    };
    let Some((chunks, queries)) = place() else {
        return Err(in_no_cache(path));
    };
    let chunks = made_from::<RepoChunks>(path, &header, "chunks", &chunks)?;
    let queries = made_from::<Queries>(path, &header, "queries", &queries)?;
    for (found, query) in results.found.iter().zip(&queries.queries) {
        line(out, &found.record(&queries, query, &chunks, args.context));
    }
    Ok(())
}

/// Reads the artifact of the same cache that this one was made from.
fn sibling<T: Payload>(
    path: &Path,
    header: &Header,
    input: &str,
    place: impl Fn(&Layout) -> PathBuf,
) -> Result<T> {
    let layout = layout_of(path, header).ok_or_else(|| in_no_cache(path))?;
    made_from(path, header, input, &place(&layout))
}

fn in_no_cache(path: &Path) -> anyhow::Error {
    hinted(
        anyhow!("{}: lies in no cache folder", path.display()),
        "leave it where it was written",
    )
}

/// Reads the artifact at a place, which must be what this one was made from.
fn made_from<T: Payload>(path: &Path, header: &Header, input: &str, place: &Path) -> Result<T> {
    let (found, payload) = read::<T>(place)?;
    if header.identity.inputs.get(input) != Some(&found.checksum) {
        return Err(hinted(
            anyhow!(
                "{}: was made from other {input} than {} holds now",
                path.display(),
                place.display()
            ),
            "make it again with `repoformer search`",
        ));
    }
    Ok(payload)
}

/// The layout that a retrieval artifact was written in, read off its path: `<repo>_ws20_slice2.one-gram.top20.bin`.
fn layout_of(path: &Path, header: &Header) -> Option<Layout> {
    let repository = header.identity.parameters.get("repository")?;
    let name = path
        .file_name()?
        .to_str()?
        .strip_prefix(repository.as_str())?;
    let language = Language::ALL
        .into_iter()
        .find(|language| name.starts_with(&format!("_{language}_ws")));
    let name = language.map_or(name, |language| &name[1 + language.name().len()..]);
    let mut parts = name.strip_prefix("_ws")?.split('.');
    let (window_size, slice_size) = parts.next()?.split_once("_slice")?;
    let vectorizer = parts.next()?.to_owned();
    Some(Layout {
        cache: Layout::cache_of_retrieval(path)?,
        benchmark: header.identity.parameters.get("benchmark")?.clone(),
        language: language.unwrap_or_default(),
        chunks: None,
        shape: repoformer::repository::window::WindowShape {
            window_size: window_size.parse().ok()?,
            slice_size: slice_size.parse().ok()?,
            ..Default::default()
        },
        vectorizer,
        top_k: header.identity.parameters.get("top-k")?.parse().ok()?,
        iteration: Layout::iteration_of_retrieval(path),
    })
}

fn line(out: &mut Vec<u8>, record: &impl Serialize) {
    if serde_json::to_writer(&mut *out, record).is_ok() {
        out.push(b'\n');
    }
}
