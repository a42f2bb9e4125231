//! Finds the chunks of other files that are most similar to each query. No index is needed: each shape of chunks has only a few
//! queries, whose shared words are counted together in one pass over the words of the lines.

use std::cmp::Ordering;
use std::rc::Rc;

use foldhash::HashMap;

use super::code::{Code, CodeFile};
use crate::repository::fragment::ChunkShape;
use crate::retrieve::distance;

/// A query.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// File of the hole, which is not searched.
    pub(super) file: usize,
    /// Distinct words of the query, ascending.
    pub(super) words: Vec<u32>,
}

/// Lines `start..end` of a file, retrieved for a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hit {
    pub(super) file: usize,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Jaccard similarity of the word sets.
    pub(super) score: f64,
}

/// Maximum number of queries per pass: one bit each.
const AT_ONCE: usize = 64;

/// Order of chunks with equal scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EqualChunks {
    /// Chunks of files in nearer folders come first, then earlier chunks.
    NearestFirst,
    /// Chunks are in the order of the files and their lines.
    InOrder,
}

/// Returns the `top` chunks of each query, best first. Chunks without a word are skipped.
pub(super) fn nearest(
    code: &Code,
    shape: ChunkShape,
    questions: &[Question],
    (top, equal): (usize, EqualChunks),
) -> Vec<Vec<Hit>> {
    let groups = questions.chunks(AT_ONCE);
    groups.flat_map(|group| walk(code, shape, group, (top, equal))).collect()
}

/// Best chunks so far for a query.
struct Best<'a> {
    hits: Vec<Hit>,
    /// Distance of each folder from the folder of the query's file.
    distances: Rc<Vec<u32>>,
    files: &'a [CodeFile],
    own: u32,
    equal: EqualChunks,
}

impl<'a> Best<'a> {
    fn from_code(
        code: &'a Code,
        question: &Question,
        equal: EqualChunks,
        known: &mut HashMap<usize, Rc<Vec<u32>>>,
    ) -> Self {
        let own = &code.files[question.file];
        let distances = known.entry(own.folder).or_insert_with(|| {
            let folders = code.folders.iter();
            Rc::new(folders.map(|path| distance(&own.path, path) as u32).collect())
        });
        Self {
            hits: Vec::new(),
            distances: Rc::clone(distances),
            files: &code.files,
            own: own.same_as,
            equal,
        }
    }

    /// Compares two chunks by their order in the result.
    fn order(&self, one: &Hit, other: &Hit) -> Ordering {
        let far = |hit: &Hit| match self.equal {
            EqualChunks::NearestFirst => self.distances[self.files[hit.file].folder],
            EqualChunks::InOrder => 0,
        };
        let place = |hit: &Hit| (far(hit), hit.file, hit.start);
        other.score.total_cmp(&one.score).then_with(|| place(one).cmp(&place(other)))
    }

    fn take(&mut self, hit: Hit, top: usize) {
        let is_worse = |last: &Hit| self.order(last, &hit) == Ordering::Less;
        if top == 0 || self.hits.len() == top && self.hits.last().is_some_and(is_worse) {
            return;
        }
        let place = self.hits.partition_point(|other| self.order(other, &hit) == Ordering::Less);
        self.hits.insert(place, hit);
        self.hits.truncate(top);
    }
}

fn walk(
    code: &Code,
    shape: ChunkShape,
    questions: &[Question],
    (top, equal): (usize, EqualChunks),
) -> Vec<Vec<Hit>> {
    // Queries that contain each word, one bit per query.
    let mut asked = vec![0_u64; code.vocabulary];
    for (bit, question) in questions.iter().enumerate() {
        for word in &question.words {
            asked[*word as usize] |= 1 << bit;
        }
    }
    let mut known = HashMap::default();
    let mut best: Vec<Best<'_>> = questions
        .iter()
        .map(|question| Best::from_code(code, question, equal, &mut known))
        .collect();
    // Number of the chunk in which each word was last seen.
    let (mut seen, mut chunk) = (vec![0_u32; code.vocabulary], 0_u32);
    let mut shared = [0_u32; AT_ONCE];
    for (number, file) in code.files.iter().enumerate() {
        for start in (0..file.count()).step_by(shape.stride) {
            let end = file.count().min(start + shape.size);
            chunk += 1;
            let (mut distinct, mut any) = (0_u32, 0_u64);
            for word in code.words(file, start..end) {
                let last = &mut seen[*word as usize];
                if *last == chunk {
                    continue;
                }
                *last = chunk;
                distinct += 1;
                let mut bits = asked[*word as usize];
                any |= bits;
                while bits != 0 {
                    shared[bits.trailing_zeros() as usize] += 1;
                    bits &= bits - 1;
                }
            }
            if distinct == 0 {
                continue;
            }
            for (bit, (best, question)) in best.iter_mut().zip(questions).enumerate() {
                let both = shared[bit];
                // Chunks without a shared word are used only if there are not enough others.
                if both == 0 && best.hits.len() == top && best.hits[top - 1].score > 0.0
                    || file.same_as == best.own
                {
                    continue;
                }
                let union = question.words.len() as u32 + distinct - both;
                let score = f64::from(both) / f64::from(union);
                best.take(Hit { file: number, start, end, score }, top);
            }
            while any != 0 {
                shared[any.trailing_zeros() as usize] = 0;
                any &= any - 1;
            }
        }
    }
    best.into_iter().map(|best| best.hits).collect()
}
