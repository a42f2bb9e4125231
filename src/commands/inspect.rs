//! `inspect`: describes a file of the cache, or prints its records as JSONL.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use repoformer_core::repository::fragment::RepoFragments;
use repoformer_core::retrieve::dense::{Matrix, StoredVectors, read_stored};
use repoformer_core::retrieve::rank::Words;
use repoformer_core::retrieve::records;
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{Queries, Retrieval};
use repoformer_core::task::kind::RecordKind;
use repoformer_pipeline::{Layout, RightContexts};
use repoformer_store::artifact::{
    Header, Payload, header_path, read, read_header, read_jsonl_header,
};
use repoformer_store::files::{self, File};
use repoformer_store::jsonl::{self, PARQUET};
use repoformer_store::parquet::ParquetRows;
use repoformer_text::visible::visible_in_line;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::output::{fail, print_text, write_data};
use crate::table::json_text;

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// File in a cache folder, or a Parquet table
    file: PathBuf,
    /// Part to print: kind and header of the file (text, json), or its records (jsonl)
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
    Json,
    Jsonl,
}

pub(crate) fn run(args: &InspectArgs) -> Result<()> {
    match args.format {
        InspectFormat::Text => print_text(&header_text(&header(&args.file)?)),
        InspectFormat::Json => write_data(Path::new("-"), json_text(&header(&args.file)?)),
        InspectFormat::Jsonl => {
            let mut lines = Lines::default();
            records(args, &mut lines)?;
            lines.flush()
        }
    }
}

/// Buffer of lines for standard output.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// Number of bytes that are written at once.
    const PIECE: usize = 1 << 20;

    /// Adds a record as JSON.
    fn push(&mut self, record: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.0, record)?;
        self.0.push(b'\n');
        if self.0.len() < Self::PIECE { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<()> {
        write_data(Path::new("-"), &self.0)?;
        self.0.clear();
        Ok(())
    }
}

fn is_jsonl(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "jsonl") && header_path(path).exists()
}

/// Reads the vectors of a model: `vector/dense/….vectors`.
fn read_vectors(path: &Path) -> Result<Option<StoredVectors>> {
    if path.extension().is_some_and(|end| end == "vectors") {
        Ok(read_stored(path)?)
    } else {
        Ok(None)
    }
}

/// Reads scores, which are plain JSON without a header: `scores/<benchmark>/….json`.
fn scores(path: &Path) -> Option<Map<String, Value>> {
    if path.extension()? != "json" {
        return None;
    }
    let scores: Map<String, Value> = serde_json::from_slice(&files::read(path).ok()?).ok()?;
    let known = scores.contains_key("predictions") && scores.contains_key("all");
    known.then_some(scores)
}

/// Folders of the cache whose JSON lines have no header, and the kinds of these files.
const WITHOUT_HEADER: [(&str, &str); 6] = [
    ("journal", "answers of a server"),
    ("latency", "times of tasks"),
    ("exec", "results of test runs"),
    ("predictions", "predictions"),
    ("probabilities", "probabilities"),
    ("vector", "times of embeddings"),
];

/// Opens a Parquet table; `None` for other files.
fn table(path: &Path) -> Result<Option<ParquetRows>> {
    let mut begin = [0; PARQUET.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut begin));
    Ok(if read.is_ok() && begin == PARQUET { Some(ParquetRows::open(path)?) } else { None })
}

/// Contents of a JSON file without a header.
struct PlainJson {
    kind: String,
    records: Vec<Value>,
    /// Number of lines that are not JSON objects, such as the end of an interrupted write.
    unreadable: usize,
}

/// Reads JSON without a header: lines, or one document; `None` for other files.
fn plain(path: &Path) -> Option<PlainJson> {
    let is_lines = path.extension()? == "jsonl";
    let bytes = files::read(path).ok()?;
    let texts: Vec<(usize, &[u8])> = if is_lines {
        jsonl::records(&bytes).map(|(at, text)| (at.line, text)).collect()
    } else {
        vec![(1, &bytes)]
    };
    let value = |(line, text): &(usize, &[u8])| jsonl::value(path, *line, text).ok();
    let read: Vec<Value> = texts.iter().filter_map(value).collect();
    let unreadable = texts.len() - read.len();
    let objects: Vec<&Map<String, Value>> = read.iter().filter_map(Value::as_object).collect();
    if objects.len() < read.len() || read.is_empty() && unreadable > 0 {
        return None;
    }
    let is_in = |folder: &str| path.iter().any(|part| part == folder);
    let name = path.file_name()?.to_string_lossy();
    let kind = match objects.first() {
        Some(first) if !is_lines => match first.get("kind").and_then(Value::as_str) {
            _ if name.ends_with(".header.json") => "header of an artifact".into(),
            _ if name.ends_with(".time.json") => "time of a search".into(),
            Some(kind) => format!("manifest of {kind}"),
            None => "JSON object".into(),
        },
        first => match WITHOUT_HEADER.iter().find(|(folder, _)| is_in(folder)) {
            Some((_, kind)) => (*kind).into(),
            None => match first.and_then(|first| RecordKind::from_record(first)) {
                Some(kind) => format!("JSON lines, the first is {}", kind.record()),
                None => "JSON lines".into(),
            },
        },
    };
    Some(PlainJson { kind, records: read, unreadable })
}

/// Returns the header of a file, or equivalent facts about a file without a header.
fn header(path: &Path) -> Result<Value> {
    if let Some(scores) = scores(path) {
        return Ok(json!({
            "kind": "scores", "records": scores["all"]["n"], "predictions": scores["predictions"],
            "missing": scores.get("missing"),
        }));
    }
    if let Some(stored) = read_vectors(path)? {
        return Ok(json!({
            "kind": "dense vectors", "records": stored.vectors.len(), "model": stored.model,
            "dimensions": stored.dim,
        }));
    }
    if let Some(rows) = table(path)? {
        let columns =
            rows.columns().into_iter().map(|(name, kind)| json!({"name": name, "type": kind}));
        let columns: Vec<Value> = columns.collect();
        return Ok(json!({"kind": "Parquet table", "records": rows.count(), "columns": columns}));
    }
    if let Some(plain) = Some(path).filter(|path| !is_jsonl(path)).and_then(plain) {
        let mut header = json!({"kind": plain.kind, "records": plain.records.len()});
        if plain.unreadable > 0 {
            header["unreadable"] = plain.unreadable.into();
        }
        return Ok(header);
    }
    let header = if is_jsonl(path) { read_jsonl_header(path)? } else { read_header(path)? };
    Ok(serde_json::to_value(header)?)
}

/// Fields of headers with their printed names, in the order of the text.
const FIELDS: [(&str, &str); 15] = [
    ("kind", "kind"),
    ("records", "records"),
    ("predictions", "predictions"),
    ("model", "model"),
    ("dimensions", "dimensions"),
    ("missing", "missing"),
    ("unreadable", "unreadable"),
    ("bytes", "bytes"),
    ("checksum", "checksum"),
    ("format", "format"),
    ("tool", "written by"),
    ("columns", "column"),
    ("totals", "total"),
    ("parameters", "parameter"),
    ("inputs", "input"),
];

fn header_text(header: &Value) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut text = String::new();
    for (field, name) in FIELDS {
        let mut line = |value: String| text += &format!("{name:<11} {}\n", visible_in_line(&value));
        match header.get(field) {
            None => {}
            Some(Value::Array(columns)) => columns.iter().for_each(|column| {
                let name = plain(&column["name"]);
                line(match column.get("type") {
                    Some(kind) => format!("{name} = {}", plain(kind)),
                    None => format!("{name} = {} bytes", column["bytes"]),
                });
            }),
            Some(Value::Object(values)) => values.iter().for_each(|(name, value)| {
                let sign = if field == "inputs" { ":" } else { " =" };
                line(format!("{name}{sign} {}", plain(value)));
            }),
            Some(tool) if field == "tool" => line(format!("repoformer {}", plain(tool))),
            Some(value) => line(plain(value)),
        }
    }
    text
}

/// Writes the records of a file, one after another.
fn records(args: &InspectArgs, out: &mut Lines) -> Result<()> {
    let path = &args.file;
    if is_jsonl(path) {
        read_jsonl_header(path)?;
        return write_data(Path::new("-"), files::read(path)?);
    }
    if let Some(scores) = scores(path) {
        let tasks = scores.get("tasks").and_then(Value::as_array);
        return tasks.into_iter().flatten().try_for_each(|task| out.push(task));
    }
    if let Some(stored) = read_vectors(path)? {
        for (digest, vector) in stored.vectors {
            out.push(&json!({"digest": digest.to_hex().as_str(), "embedding": vector}))?;
        }
        return Ok(());
    }
    if let Some(rows) = table(path)? {
        return rows.for_each(|row| out.push(&row));
    }
    if let Some(plain) = plain(path) {
        return plain.records.iter().try_for_each(|record| out.push(record));
    }
    let kind = read_header(path)?.identity.kind;
    if kind == RepoFragments::KIND {
        let (_, fragments) = read::<RepoFragments>(path)?;
        let mut all = 0..fragments.len();
        all.try_for_each(|f| out.push(&records::fragment(&fragments, f, args.context)))
    } else if kind == Queries::KIND {
        let (_, queries) = read::<Queries>(path)?;
        let mut all = queries.queries.iter();
        all.try_for_each(|query| out.push(&records::query(&queries, query, args.context)))
    } else if kind == TokenSets::KIND {
        let (_, sets) = read::<TokenSets>(path)?;
        let mut all = sets.iter();
        all.try_for_each(|set| out.push(&json!({ "embedding": set.iter().collect::<Vec<_>>() })))
    } else if kind == Retrieval::KIND {
        retrieval(args, out)
    } else if kind == Words::KIND {
        let (_, words) = read::<Words>(path)?;
        (0..words.documents()).try_for_each(|document| {
            let count =
                |(word, count)| (words.dictionary().word(word).to_owned(), Value::from(count));
            let counts = words.row(document).map(count);
            out.push(&json!({ "words": counts.collect::<Map<_, _>>() }))
        })
    } else if kind == Matrix::KIND {
        let (_, vectors) = read::<Matrix>(path)?;
        let mut rows = vectors.iter();
        rows.try_for_each(|row| out.push(&json!({ "embedding": row })))
    } else if kind == RightContexts::KIND {
        let (_, contexts) = read::<RightContexts>(path)?;
        let mut all = contexts.iter();
        all.try_for_each(|(row, text)| out.push(&json!({ "row": row, "right_context": text })))
    } else {
        anyhow::bail!("{}: holds {kind}, which has no records to print", path.display());
    }
}

/// Writes retrieval results, which name fragments by number; the fragments and queries are in the same cache.
fn retrieval(args: &InspectArgs, out: &mut Lines) -> Result<()> {
    let path = &args.file;
    let (header, results) = read::<Retrieval>(path)?;
    let place = |file: &str| {
        let within = header.identity.parameters.get(file)?;
        Some(Layout::cache_of_retrieval(path)?.join(within))
    };
    let (Some(fragments), Some(queries)) = (place("fragments-file"), place("queries-file")) else {
        let reason = format!("{}: is not in a cache folder", path.display());
        return fail(reason, "inspect the file in the cache folder where it was written");
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
        out.push(&records.of(found, query))?;
    }
    Ok(())
}

/// Reads the artifact at `place`, and checks that the artifact at `path` was made from it.
fn made_from<T: Payload>(path: &Path, header: &Header, input: &str, place: &Path) -> Result<T> {
    let (found, payload) = read::<T>(place)?;
    if header.identity.inputs.get(input) != Some(&found.checksum) {
        let (path, place) = (path.display(), place.display());
        return fail(
            format!("{path}: is stale: {place} has other {input} now"),
            "run `repoformer search` again",
        );
    }
    Ok(payload)
}
