//! Prompts made in parallel and put together in order, without a copy of each in memory.

use std::sync::{Arc, Mutex, OnceLock};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::Adds;
use crate::error::Result;
use crate::pipeline::kept::{Input, NotedLine};
use crate::prompt::{BlockCounts, Builder, Scratch};
use crate::retrieve::Found;
use crate::retrieve::query::QueryWindow;
use crate::store::artifact::LineSink;

/// One prompt to make.
pub(super) struct Wanted<'a> {
    /// Index of its task, which are in the order of their rows.
    pub(super) task: usize,
    /// Index of its repository.
    pub(super) part: usize,
    pub(super) retrieved: Option<(&'a Found, &'a QueryWindow)>,
    /// What it is made from.
    pub(super) input: Input,
}

/// What the modes of one run share, so that nothing is counted once a mode.
#[derive(Default)]
pub(super) struct Shared {
    /// By the checksum of a repository's windows.
    blocks: FxHashMap<String, Arc<BlockCounts>>,
    /// What each task's own part of its prompts takes.
    pub(super) own_tokens: Vec<OnceLock<usize>>,
    /// One a thread that builds.
    scratches: Mutex<Vec<Scratch>>,
}

impl Shared {
    pub(super) fn count_once<'a>(&mut self, windows: &str, builder: Builder<'a>) -> Builder<'a> {
        let counts = self.blocks.entry(windows.to_owned());
        let counts = counts.or_insert_with(|| builder.counts());
        builder.with_counts(Arc::clone(counts))
    }

    fn with_scratch(&self, work: impl FnOnce(&mut Scratch)) {
        let kept = self.scratches.lock().ok().and_then(|mut kept| kept.pop());
        let mut scratch = kept.unwrap_or_default();
        work(&mut scratch);
        if let Ok(mut kept) = self.scratches.lock() {
            kept.push(scratch);
        }
    }
}

/// Prompts that one thread makes before another may take over: enough to make the handing out cheap.
const BATCH: usize = 4;
/// Batches in memory at a time for each thread. Their memory is used over and over: it stays in the processor's
/// caches, and is not asked of the system again.
const BATCHES: usize = 8;

/// Neighbouring prompts' records, and what each was made from.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) text: Vec<u8>,
    pub(super) lines: Vec<NotedLine<Adds>>,
}

impl Batch {
    pub(super) fn keep(&mut self, (line, noted): &(&[u8], NotedLine<Adds>)) {
        self.text.extend_from_slice(line);
        self.lines.push(*noted);
    }
}

/// Makes all prompts in parallel and hands their records over in the order of `wanted`.
pub(super) fn in_batches(
    wanted: &[Wanted<'_>],
    make: impl Fn(&Wanted<'_>, &mut Scratch, &mut Batch) + Sync,
    shared: &Shared,
    sink: &mut LineSink,
) -> Result<Vec<NotedLine<Adds>>> {
    let mut lines = Vec::with_capacity(wanted.len());
    let mut batches = Vec::new();
    batches.resize_with(BATCHES * rayon::current_num_threads(), Batch::default);
    for wanted in wanted.chunks(BATCH * batches.len()) {
        let pairs = batches.par_iter_mut().zip(wanted.par_chunks(BATCH));
        pairs.for_each(|(batch, wanted)| {
            shared.with_scratch(|scratch| {
                for wanted in wanted {
                    make(wanted, scratch, batch);
                }
            });
        });
        for batch in &mut batches {
            sink.write(&batch.text)?;
            batch.text.clear();
            lines.append(&mut batch.lines);
        }
    }
    Ok(lines)
}
