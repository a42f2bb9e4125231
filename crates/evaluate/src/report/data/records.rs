//! Texts of each task, as line numbers.
//!
//! A record is a sequence of unsigned LEB128 numbers, except scores:
//!
//! ```text
//! record    = target left-context option(right-context) outcome-of-each-system
//! outcome   = 0 | 1 option(raw) prediction count fragment*
//! fragment  = path first-line-plus-1-or-0 score text
//! option(t) = 0 | 1 t
//! score     = 4 bytes, a little-endian 32-bit float, NaN for none
//! text, …   = count step*
//! ```
//!
//! A step is the difference between consecutive line numbers minus one, with the sign in the lowest bit. A text that follows
//! its file in the pool is therefore a run of zeros, which compresses to almost nothing.

use super::super::{ReportContents, TaskOutcome};
use super::pool::Pool;

/// Greatest size of a block in bytes, unless a single record is longer.
const BLOCK: usize = 64 * 1024;

/// Records of all tasks.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) blocks: Vec<Vec<u8>>,
    /// Block and offset of each task.
    pub(super) places: Vec<(usize, usize)>,
}

/// Packs the texts of all tasks, file by file, so that adjacent tasks in a block share lines.
pub(super) fn pack<'a>(report: &'a ReportContents<'_>) -> (Records, Pool<'a>) {
    let mut order: Vec<usize> = (0..report.tasks.len()).collect();
    order.sort_by_key(|&at| {
        let task = &report.tasks[at];
        (&task.repository, &task.path, task.line_no, at)
    });
    let mut pool = Pool::default();
    let mut records = Records { blocks: Vec::new(), places: vec![(0, 0); order.len()] };
    for task in order {
        let record = record(report, task, &mut pool);
        match records.blocks.last() {
            Some(block) if block.len() + record.len() <= BLOCK => {}
            _ => records.blocks.push(Vec::new()),
        }
        let last = records.blocks.len() - 1;
        let block = &mut records.blocks[last];
        records.places[task] = (last, block.len());
        block.extend_from_slice(&record);
    }
    (records, pool)
}

fn record<'a>(report: &'a ReportContents<'_>, at: usize, pool: &mut Pool<'a>) -> Vec<u8> {
    let task = &report.tasks[at];
    let mut record = Vec::new();
    text(&task.target, pool, &mut record);
    text(&task.left_context, pool, &mut record);
    option(task.right_context.as_deref(), pool, &mut record);
    for system in 0..report.systems.len() {
        match report.outcome(system, at) {
            None => number(0, &mut record),
            Some(found) => {
                number(1, &mut record);
                outcome(found, pool, &mut record);
            }
        }
    }
    record
}

fn outcome<'a>(outcome: &'a TaskOutcome, pool: &mut Pool<'a>, record: &mut Vec<u8>) {
    option(outcome.raw.as_deref(), pool, record);
    text(&outcome.prediction, pool, record);
    number(outcome.fragments.len() as u64, record);
    for fragment in &outcome.fragments {
        text(&fragment.path, pool, record);
        number(fragment.first_line.map_or(0, |line| line as u64 + 1), record);
        let score = fragment.score.filter(|score| score.is_finite());
        let score = score.map_or(f32::NAN, |score| score as f32);
        record.extend_from_slice(&score.to_le_bytes());
        text(&fragment.text, pool, record);
    }
}

fn option<'a>(found: Option<&'a str>, pool: &mut Pool<'a>, record: &mut Vec<u8>) {
    number(u64::from(found.is_some()), record);
    if let Some(found) = found {
        text(found, pool, record);
    }
}

fn text<'a>(found: &'a str, pool: &mut Pool<'a>, record: &mut Vec<u8>) {
    let lines = pool.lines(found);
    number(lines.len() as u64, record);
    let mut expected = 0;
    for line in lines {
        let step = i64::from(line) - expected;
        number((step << 1 ^ step >> 63) as u64, record);
        expected = i64::from(line) + 1;
    }
}

fn number(mut rest: u64, record: &mut Vec<u8>) {
    while rest >= 0x80 {
        record.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    record.push(rest as u8);
}
