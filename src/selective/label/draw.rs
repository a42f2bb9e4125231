//! Draws instances from a repository: algorithms 1 (chunks) and 2 (functions) of Repoformer's appendix D.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use super::code::{Code, CodeFile};
use super::nearest::{Hit, Question, nearest};
use crate::error::named;
use crate::repository::corpus::Repository;
use crate::repository::fragment::ChunkShape;
use crate::retrieve::rank::Words;
use crate::selective::cluster::{Vectors, k_means};
use crate::task::cross_file::{CrossFile, Fragment};
use crate::task::sample::{
    BODY_LINES, Exclusions, POISSON_MEAN, Stream, UnparsedFile, function_bodies, tables,
};
use crate::text::language::Language;

/// Kind of code that is cut out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InstanceKind {
    /// A run of non-blank lines, with a length of about Poisson(3), or another mean.
    #[default]
    Chunk,
    /// A function's body of 3 to 30 lines, or other limits.
    Function,
}

named! {
    InstanceKind, "kind of instance":
    Chunk = "chunk",
    Function = "function",
}

/// Settings of drawing instances.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// Kind of code that is cut out.
    pub kind: InstanceKind,
    /// Language of the repositories.
    pub language: Language,
    /// Seed of the random draws.
    pub seed: u64,
    /// Number of clusters, and so of instances, per chunk or function of a repository.
    pub ratio: f64,
    /// Greatest number of chunks or functions of a repository that are clustered, a random sample if there are more; `None`: all.
    pub max_candidates: Option<usize>,
    /// Mean of the Poisson distribution of a chunk's lines, more than 0 and at most [`CHUNK_LINES`]; a length of 0 counts as 1.
    pub poisson_mean: f64,
    /// Lines of a function's body, blank ones between its first and its last included.
    pub function_lines: RangeInclusive<usize>,
    /// Number of fragments in an instance's cross-file context, at least 1.
    pub fragments: usize,
    /// Whether the released program is followed. It leaves out blank lines of contexts, its query of a function of k lines has 3k
    /// lines before and k after it, and a chunk's fragments have 11k lines where the query has the target.
    pub is_release: bool,
    /// Whether to retrieve fragments.
    pub retrieves: bool,
    /// Where nothing is cut out.
    pub exclusions: Exclusions,
}

impl Drawing {
    /// Settings of the paper.
    pub fn paper(kind: InstanceKind) -> Self {
        Self {
            kind,
            language: Language::Python,
            seed: 0,
            ratio: 0.2,
            max_candidates: None,
            poisson_mean: POISSON_MEAN,
            function_lines: BODY_LINES,
            fragments: 3,
            is_release: false,
            retrieves: true,
            exclusions: Exclusions::default(),
        }
    }

    /// Settings of the released program.
    pub fn release(kind: InstanceKind) -> Self {
        Self { ratio: 0.1, max_candidates: Some(1000), is_release: true, ..Self::paper(kind) }
    }
}

/// A hole with its contexts and retrieved fragments.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// `repository/folder/…/file`.
    pub path: String,
    /// Non-blank lines of the hole.
    pub lines: Range<usize>,
    /// Text of the file before the hole.
    pub left: String,
    /// Text that stood in the hole.
    pub target: String,
    /// Text of the file after the hole.
    pub right: String,
    /// Retrieved fragments.
    pub cross_file: CrossFile,
    /// Whether the query has the hole's own lines.
    pub query_has_target: bool,
}

/// What is drawn from a repository.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// The instances, in the order of the files.
    pub instances: Vec<Instance>,
    /// Files whose functions could not be parsed, or not all; chunks need no grammar.
    pub unparsed: Vec<UnparsedFile>,
}

/// Lines of the chunks that are clustered, and so the most lines that a chunk's hole can have.
pub const CHUNK_LINES: usize = 10;
/// Least number of chunks that a compared term is in.
const MIN_DF: u32 = 5;

/// Draws the instances of a repository, in the order of its files. They depend on its files and the settings alone.
pub fn draw(repository: Repository, drawing: &Drawing) -> Draw {
    let mut stream =
        Stream::for_labels(drawing.seed, drawing.kind.name(), repository.content_digest());
    let (bodies, unparsed) = match drawing.kind {
        InstanceKind::Function => {
            function_bodies(&repository, drawing.language, &drawing.function_lines)
        }
        InstanceKind::Chunk => Default::default(),
    };
    let tables =
        if drawing.exclusions.tables { tables(&repository, drawing.language) } else { Vec::new() };
    let code = Code::of(repository);
    let mut candidates = match drawing.kind {
        InstanceKind::Chunk => chunks(&code),
        InstanceKind::Function => functions(&code, &bodies),
    };
    let tables: Vec<Vec<Option<bool>>> =
        code.files.iter().zip(tables).map(|(file, rows)| file.of_lines(&rows)).collect();
    let are_tables = |place: &Place| {
        tables.get(place.file).is_some_and(|is_table| {
            let mut known = is_table[place.lines.clone()].iter().flatten().peekable();
            known.peek().is_some() && known.all(|is_table| *is_table)
        })
    };
    let excluded: Vec<bool> =
        code.files.iter().map(|file| drawing.exclusions.hold(&file.path)).collect();
    candidates.retain(|place| !excluded[place.file] && !are_tables(place));
    let candidates = sample(candidates, drawing.max_candidates, &mut stream);
    let mut holes: Vec<Hole> = clusters(&code, &candidates, drawing.ratio, &mut stream)
        .into_iter()
        .map(|members| {
            let place = &candidates[members[stream.below(members.len())]];
            hole(place, drawing, &mut stream)
        })
        .collect();
    // Of a chunk that is data in part, that part.
    holes.retain(|hole| !are_tables(&Place { file: hole.file, lines: hole.lines.clone() }));
    holes.sort_by_key(|hole| (hole.file, hole.lines.start));
    let found = if drawing.retrieves {
        retrieve(&code, &holes, drawing)
    } else {
        vec![Vec::new(); holes.len()]
    };
    let instances = holes.into_iter().zip(found);
    let instances = instances.map(|(hole, hits)| instance(&code, hole, &hits, drawing)).collect();
    Draw { instances, unparsed }
}

/// A run of non-blank lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    file: usize,
    lines: Range<usize>,
}

/// A run of lines that is cut out.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hole {
    file: usize,
    lines: Range<usize>,
    query_has_target: bool,
}

/// Returns disjoint chunks of all files, without copies of files.
fn chunks(code: &Code) -> Vec<Place> {
    let mut places = Vec::new();
    for (number, file) in own_files(code) {
        let starts = (0..file.count()).step_by(CHUNK_LINES);
        let lines = starts.map(|start| start..file.count().min(start + CHUNK_LINES));
        places.extend(lines.map(|lines| Place { file: number, lines }));
    }
    places
}

/// Draws at most `most` places, in the order of the repository.
fn sample(mut places: Vec<Place>, most: Option<usize>, stream: &mut Stream) -> Vec<Place> {
    if let Some(most) = most
        && places.len() > most
    {
        for place in 0..most {
            let other = place + stream.below(places.len() - place);
            places.swap(place, other);
        }
        places.truncate(most);
        places.sort_by_key(|place| (place.file, place.lines.start));
    }
    places
}

fn functions(code: &Code, bodies: &[Vec<Range<usize>>]) -> Vec<Place> {
    let mut places = Vec::new();
    for (number, file) in own_files(code) {
        let rows = bodies.get(number).map_or(&[][..], Vec::as_slice);
        let starts = file.row_starts();
        let lines = rows.iter().map(|rows| file.of_rows(&starts, rows.clone()));
        let lines = lines.filter(|lines| !lines.is_empty());
        places.extend(lines.map(|lines| Place { file: number, lines }));
    }
    places
}

/// Returns the files that are not copies of earlier ones.
fn own_files(code: &Code) -> impl Iterator<Item = (usize, &CodeFile)> {
    let files = code.files.iter().enumerate();
    files.filter(|(number, file)| file.same_as as usize == *number)
}

/// Returns the members of each cluster.
fn clusters(code: &Code, places: &[Place], ratio: f64, stream: &mut Stream) -> Vec<Vec<usize>> {
    if places.is_empty() {
        return Vec::new();
    }
    let text = |place: &Place| code.files[place.file].joined(place.lines.clone());
    let texts: Vec<String> = places.iter().map(text).collect();
    let vectors = Vectors::of(&Words::of(&texts), MIN_DF);
    let count = (ratio * places.len() as f64) as usize;
    let of_each = k_means(&vectors, count.max(1), &mut |n| stream.below(n as usize) as u64);
    let mut clusters = vec![Vec::new(); of_each.iter().max().map_or(0, |most| most + 1)];
    for (place, cluster) in of_each.into_iter().enumerate() {
        clusters[cluster].push(place);
    }
    clusters
}

/// Draws the hole of a place: all of a body, a run of lines of a chunk.
fn hole(place: &Place, drawing: &Drawing, stream: &mut Stream) -> Hole {
    let lines = match drawing.kind {
        InstanceKind::Function => place.lines.clone(),
        InstanceKind::Chunk => {
            let length = stream.length(drawing.poisson_mean).min(place.lines.len());
            let start = place.lines.start + stream.below(place.lines.len() - length + 1);
            start..start + length
        }
    };
    Hole { file: place.file, lines, query_has_target: stream.below(2) == 1 }
}

/// Returns the fragments of each hole.
fn retrieve(code: &Code, holes: &[Hole], drawing: &Drawing) -> Vec<Vec<Hit>> {
    let mut by_size: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, hole) in holes.iter().enumerate() {
        let is_longer = drawing.is_release && drawing.kind == InstanceKind::Chunk;
        let factor = if is_longer && hole.query_has_target { 11 } else { 10 };
        by_size.entry(factor * hole.lines.len()).or_default().push(number);
    }
    let mut found = vec![Vec::new(); holes.len()];
    for (size, numbers) in by_size {
        let shape = ChunkShape { size, stride: (size / 2).max(1) };
        let question = |number: &usize| question(code, &holes[*number], drawing);
        let questions: Vec<Question> = numbers.iter().map(question).collect();
        let hits = nearest(code, shape, &questions, drawing.fragments);
        for (number, hits) in numbers.into_iter().zip(hits) {
            found[number] = hits;
        }
    }
    found
}

fn question(code: &Code, hole: &Hole, drawing: &Drawing) -> Question {
    let (file, length) = (&code.files[hole.file], hole.lines.len());
    let (before, behind) = match (drawing.kind, drawing.is_release) {
        (InstanceKind::Chunk, _) => (5 * length, 5 * length),
        (InstanceKind::Function, false) => (20, 20),
        (InstanceKind::Function, true) => (3 * length, length),
    };
    let left = hole.lines.start.saturating_sub(before)..hole.lines.start;
    let right = hole.lines.end..file.count().min(hole.lines.end + behind);
    let own = if hole.query_has_target { hole.lines.clone() } else { 0..0 };
    let parts = [left, own, right].map(|lines| code.words(file, lines));
    Question { file: hole.file, words: code.set(parts.into_iter()) }
}

fn instance(code: &Code, hole: Hole, hits: &[Hit], drawing: &Drawing) -> Instance {
    let file = &code.files[hole.file];
    let fragment = |hit: &Hit| {
        let from = &code.files[hit.file];
        Fragment {
            path: crate::repository::fragment::path_in_repository(&from.path).to_owned(),
            text: from.joined(hit.start..hit.end),
            score: Some(hit.score),
        }
    };
    let [left, target, right] = if drawing.is_release {
        let mut left = file.joined(0..hole.lines.start);
        let mut right = file.joined(hole.lines.end..file.count());
        if !left.is_empty() {
            left.push('\n');
        }
        if !right.is_empty() {
            right.insert(0, '\n');
        }
        [left, file.joined(hole.lines.clone()), right]
    } else {
        file.around(hole.lines.clone()).map(str::to_owned)
    };
    Instance {
        path: file.path.clone(),
        lines: hole.lines,
        left,
        target,
        right,
        cross_file: CrossFile::of(hits.iter().map(fragment).collect(), drawing.language),
        query_has_target: hole.query_has_target,
    }
}
