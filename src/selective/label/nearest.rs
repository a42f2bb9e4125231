//! The chunks of other files that share most words with each query, without an index: every shape of chunks is asked for by
//! a few queries alone, so one walk over the lines' words counts for all of them.

use std::cmp::Ordering;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::code::{Code, CodeFile};
use crate::repository::fragment::ChunkShape;
use crate::retrieve::distance;

/// What is searched for.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// The file of the hole, which is not searched.
    pub(super) file: usize,
    /// The query's different words, ascending.
    pub(super) words: Vec<u32>,
}

/// A chunk that was found: lines `start..end` of a file's lines that are not blank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hit {
    pub(super) file: usize,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Jaccard similarity of the word sets.
    pub(super) score: f64,
}

/// Questions of one walk: one bit each.
const AT_ONCE: usize = 64;

/// The `top` chunks of each question, best first; of equal ones those of the nearest file, then the earlier ones come
/// first. Chunks without a word are none.
pub(super) fn nearest(
    code: &Code,
    shape: ChunkShape,
    questions: &[Question],
    top: usize,
) -> Vec<Vec<Hit>> {
    let groups = questions.chunks(AT_ONCE);
    groups
        .flat_map(|group| walk(code, shape, group, top))
        .collect()
}

/// The best chunks of a question so far.
struct Best<'a> {
    hits: Vec<Hit>,
    /// How far each folder is from the question's.
    distances: Rc<Vec<u32>>,
    files: &'a [CodeFile],
    own: u32,
}

impl<'a> Best<'a> {
    fn of(code: &'a Code, question: &Question, known: &mut FxHashMap<usize, Rc<Vec<u32>>>) -> Self {
        let own = &code.files[question.file];
        let distances = known.entry(own.folder).or_insert_with(|| {
            let folders = code.folders.iter();
            Rc::new(
                folders
                    .map(|path| distance(&own.path, path) as u32)
                    .collect(),
            )
        });
        Self {
            hits: Vec::new(),
            distances: Rc::clone(distances),
            files: &code.files,
            own: own.same_as,
        }
    }

    /// Which of two comes first.
    fn order(&self, one: &Hit, other: &Hit) -> Ordering {
        let far = |hit: &Hit| self.distances[self.files[hit.file].folder];
        let place = |hit: &Hit| (far(hit), hit.file, hit.start);
        other
            .score
            .total_cmp(&one.score)
            .then_with(|| place(one).cmp(&place(other)))
    }

    fn take(&mut self, hit: Hit, top: usize) {
        let is_worse = |last: &Hit| self.order(last, &hit) == Ordering::Less;
        if top == 0 || self.hits.len() == top && self.hits.last().is_some_and(is_worse) {
            return;
        }
        let place = self
            .hits
            .partition_point(|other| self.order(other, &hit) == Ordering::Less);
        self.hits.insert(place, hit);
        self.hits.truncate(top);
    }
}

fn walk(code: &Code, shape: ChunkShape, questions: &[Question], top: usize) -> Vec<Vec<Hit>> {
    // Which questions ask for a word.
    let mut asked = vec![0_u64; code.vocabulary];
    for (bit, question) in questions.iter().enumerate() {
        for word in &question.words {
            asked[*word as usize] |= 1 << bit;
        }
    }
    let mut known = FxHashMap::default();
    let mut best: Vec<Best<'_>> = questions
        .iter()
        .map(|question| Best::of(code, question, &mut known))
        .collect();
    // The chunk that a word was last seen in.
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
                // Chunks that share nothing count where there are too few others.
                if both == 0 && best.hits.len() == top && best.hits[top - 1].score > 0.0
                    || file.same_as == best.own
                {
                    continue;
                }
                let union = question.words.len() as u32 + distinct - both;
                let score = f64::from(both) / f64::from(union);
                best.take(
                    Hit {
                        file: number,
                        start,
                        end,
                        score,
                    },
                    top,
                );
            }
            while any != 0 {
                shared[any.trailing_zeros() as usize] = 0;
                any &= any - 1;
            }
        }
    }
    best.into_iter().map(|best| best.hits).collect()
}
