//! `inspect`: any artifact's header, or its records as JSONL.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use repoformer::formats::records;
use repoformer::pipeline::{Layout, RightContexts};
use repoformer::repository::fragment::RepoFragments;
use repoformer::retrieve::dense::Matrix;
use repoformer::retrieve::rank::Words;
use repoformer::retrieve::vector::TokenSets;
use repoformer::retrieve::{Queries, Retrieval};
use repoformer::store::artifact::{
    Header, Payload, header_path, read, read_header, read_jsonl_header,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::output::{fail, hinted, write_data};

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Artifact in a cache folder
    file: PathBuf,
    /// Part to print: the header (text), or the records (jsonl)
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: InspectFormat,
    /// Include the texts of windows, chunks and queries
    #[arg(long)]
    context: bool,
}

/// Part of an artifact that `inspect` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InspectFormat {
    Text,
    Jsonl,
}

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
            format!("predictions {}", scores["predictions"].as_str().unwrap_or("?")),
            format!("missing     {}", scores.get("missing").unwrap_or(&Value::Null)),
        ];
        return Ok((lines.join("\n") + "\n").into_bytes());
    }
    let header = if is_jsonl(path) { read_jsonl_header(path)? } else { read_header(path)? };
    let Header { identity, format, tool, records, bytes, checksum, columns, totals } = header;
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
    lines.extend(totals.iter().map(|(name, total)| format!("total       {name} = {total}")));
    lines.extend(
        identity.parameters.iter().map(|(name, value)| format!("parameter   {name} = {value}")),
    );
    lines.extend(
        identity.inputs.iter().map(|(name, digest)| format!("input       {name}: {digest}")),
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
        tasks.into_iter().flatten().for_each(|task| line(&mut out, task));
        return Ok(out);
    }
    let kind = read_header(path)?.identity.kind;
    let mut out = Vec::new();
    if kind == RepoFragments::KIND {
        let (_, fragments) = read::<RepoFragments>(path)?;
        let records = (0..fragments.len()).map(|f| records::fragment(&fragments, f, args.context));
        records.for_each(|record| line(&mut out, &record));
    } else if kind == Queries::KIND {
        let (_, queries) = read::<Queries>(path)?;
        let records = queries.queries.iter();
        records.for_each(|query| line(&mut out, &records::query(&queries, query, args.context)));
    } else if kind == TokenSets::KIND {
        let (_, sets) = read::<TokenSets>(path)?;
        sets.iter().for_each(|set| {
            line(&mut out, &json!({ "embedding": set.iter().collect::<Vec<_>>() }))
        });
    } else if kind == Retrieval::KIND {
        retrieval(args, &mut out)?;
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
    } else {
        anyhow::bail!("{}: holds {kind}, which has no records to print", path.display());
    }
    Ok(out)
}

/// Retrieval results name fragments by number; the fragments and queries lie in the same cache.
fn retrieval(args: &InspectArgs, out: &mut Vec<u8>) -> Result<()> {
    let path = &args.file;
    let (header, results) = read::<Retrieval>(path)?;
    let place = |file: &str| {
        let within = header.identity.parameters.get(file)?;
        Some(Layout::cache_of_retrieval(path)?.join(within))
    };
    let (Some(fragments), Some(queries)) = (place("fragments-file"), place("queries-file")) else {
        return Err(in_no_cache(path));
    };
    let fragments = made_from::<RepoFragments>(path, &header, "fragments", &fragments)?;
    let queries = made_from::<Queries>(path, &header, "queries", &queries)?;
    let guard = header.identity.parameters.get("hole-guard");
    let records = records::RetrievalRecords {
        fragments: &fragments,
        queries: &queries,
        guard: guard.and_then(|guard| guard.parse().ok()).unwrap_or_default(),
        context: args.context,
    };
    for (found, query) in results.found.iter().zip(&queries.queries) {
        line(out, &records.of(found, query));
    }
    Ok(())
}

fn in_no_cache(path: &Path) -> anyhow::Error {
    hinted(anyhow!("{}: lies in no cache folder", path.display()), "leave it where it was written")
}

/// Reads the artifact at a place, which must be what this one was made from.
fn made_from<T: Payload>(path: &Path, header: &Header, input: &str, place: &Path) -> Result<T> {
    let (found, payload) = read::<T>(place)?;
    if header.identity.inputs.get(input) != Some(&found.checksum) {
        return fail(
            format!(
                "{}: was made from other {input} than {} holds now",
                path.display(),
                place.display()
            ),
            "make it again with `repoformer search`",
        );
    }
    Ok(payload)
}

fn line(out: &mut Vec<u8>, record: &impl Serialize) {
    if serde_json::to_writer(&mut *out, record).is_ok() {
        out.push(b'\n');
    }
}
