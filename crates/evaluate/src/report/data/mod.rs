//! Data for the page's script: a summary of every task, which is needed immediately, and the texts, which are needed task by
//! task.
//!
//! The data are blocks in the page: bytes compressed (zlib) and in base64, each in a `<script type="text/plain">`.
//!
//! - Block `summary` is JSON: ids, paths, values and verdicts in columns, and the beginnings of targets for the search
//!   ([`summary`]).
//! - Blocks `lines-0`, `lines-1`, … contain the lines of all texts, in UTF-8 with `\n` between them. Contexts of one file and
//!   fragments of one repository repeat lines; each line is stored once, except short ones ([`pool`]).
//! - Blocks `tasks-0`, `tasks-1`, … contain the tasks' texts as line numbers ([`records`]).
//!
//! Blocks are small, so that opening a task decodes only a few.

mod pool;
mod records;
mod summary;

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use repoformer_core::repository::parallel;

use super::ReportContents;
use super::group::Lengths;

/// Number of blocks that are compressed before they are written.
const AT_ONCE: usize = 64;

/// Writes every block of a report as an element, in the order of the page.
pub(super) fn write_blocks(
    report: &ReportContents,
    lengths: &Lengths,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (tasks, pool) = records::pack(report);
    let summary = summary::json(report, lengths, &tasks, &pool);
    out.write_all(element("summary", summary.as_bytes()).as_bytes())?;
    drop(summary);
    let (tasks, lines) = (tasks.blocks, pool.into_blocks());
    let named = |name: &'static str, blocks: Vec<Vec<u8>>| {
        blocks
            .into_iter()
            .enumerate()
            .map(move |(number, bytes)| (format!("{name}-{number}"), bytes))
    };
    let mut all = named("tasks", tasks).chain(named("lines", lines));
    loop {
        let some: Vec<_> = all.by_ref().take(AT_ONCE).collect();
        if some.is_empty() {
            return Ok(());
        }
        for element in parallel::map(some, |(name, bytes)| element(&name, &bytes)) {
            out.write_all(element.as_bytes())?;
        }
    }
}

fn element(name: &str, bytes: &[u8]) -> String {
    let mut element = format!("<script type=\"text/plain\" id=\"{name}\">");
    STANDARD.encode_string(compress(bytes), &mut element);
    element.push_str("</script>\n");
    element
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests;
