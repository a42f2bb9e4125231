//! Draws instances from a repository: algorithms 1 (chunks) and 2 (functions) of Repoformer's appendix D.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use repoformer_text::language::Language;
use repoformer_text::lines::is_space;
use repoformer_text::named;

use super::code::{Code, CodeFile, LineSelection};
use super::nearest::{EqualChunks, Hit, Question, nearest};
use crate::cluster::{TfIdfVectors, k_means};
use crate::repository::corpus::Repository;
use crate::repository::fragment::ChunkShape;
use crate::retrieve::rank::Words;
use crate::task::cross_file::{CrossFile, CrossFileFragment};
use crate::task::sample::{
    BodyCut, CountedLines, Exclusions, FUNCTION_LINES, FunctionHoles, POISSON_MEAN, Stream,
    UnparsedFile, function_holes, tables,
};

/// Kind of code that is cut out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum InstanceKind {
    /// A run of non-blank lines; its length follows a Poisson distribution, with mean 3 by default.
    #[default]
    Chunk,
    /// The body of a function of 3 to 30 lines by default.
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
    /// Number of clusters, and therefore of instances, per chunk or function of a repository.
    pub ratio: f64,
    /// Maximum number of a repository's chunks or functions that are clustered; a random sample is clustered if there are more.
    /// `None`: all.
    pub max_candidates: Option<usize>,
    /// Mean of the Poisson distribution of a chunk's number of lines, more than 0 and at most [`CHUNK_LINES`]. A length of 0
    /// counts as 1.
    pub poisson_mean: f64,
    /// Minimum and maximum number of a function's counted lines.
    pub function_lines: RangeInclusive<usize>,
    /// Lines of a function that are counted.
    pub counted: CountedLines,
    /// Number of fragments in an instance's cross-file context, at least 1.
    pub fragments: usize,
    /// True to draw as the released program does (`1_create_chunk.py`, `1_create_function.py`):
    ///
    /// - A chunk and its contexts have no blank lines. A hole is dropped if it would extend past the end of its file or has ten
    ///   lines. The fragments of a chunk of k lines have 11k lines if the query contains the target, otherwise 10k.
    /// - The hole of a function is everything after the function's first line. If the query contains the target, it has k lines
    ///   on either side of a hole of k lines, otherwise 3k. The fragments have 10k lines up to k = 9, otherwise 50.
    pub is_release: bool,
    /// Whether to retrieve fragments.
    pub retrieves: bool,
    /// Files and code that are never cut out.
    pub exclusions: Exclusions,
}

impl Drawing {
    /// Returns the settings of the paper.
    pub fn paper(kind: InstanceKind) -> Self {
        Self {
            kind,
            language: Language::Python,
            seed: 0,
            ratio: 0.2,
            max_candidates: None,
            poisson_mean: POISSON_MEAN,
            function_lines: FUNCTION_LINES,
            counted: CountedLines::Function,
            fragments: 3,
            is_release: false,
            retrieves: true,
            exclusions: Exclusions::default(),
        }
    }

    /// Returns the settings of the released program.
    pub fn release(kind: InstanceKind) -> Self {
        Self {
            ratio: 0.1,
            max_candidates: Some(1000),
            counted: CountedLines::Body,
            is_release: true,
            ..Self::paper(kind)
        }
    }

    /// Returns true if functions are drawn as the released program draws them: it keeps their blank lines.
    fn is_released_function(&self) -> bool {
        self.is_release && self.kind == InstanceKind::Function
    }

    fn reading(&self) -> LineSelection {
        match (self.is_release, self.kind) {
            (false, _) => LineSelection::Lines,
            (true, InstanceKind::Chunk) => LineSelection::Lines38,
            (true, InstanceKind::Function) => LineSelection::AllLines38,
        }
    }

    fn function_holes(&self) -> FunctionHoles {
        FunctionHoles {
            lines: self.function_lines.clone(),
            counted: self.counted,
            cut: if self.is_release { BodyCut::BehindFirstRow } else { BodyCut::Statements },
        }
    }
}

/// A hole with its contexts and retrieved fragments.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// `repository/folder/…/file`.
    pub path: String,
    /// Lines of the hole, numbered among the file's non-blank lines, or among all lines for a function of the released program.
    pub lines: Range<usize>,
    /// Text of the file before the hole.
    pub left: String,
    /// Text that was in the hole.
    pub target: String,
    /// Text of the file after the hole.
    pub right: String,
    /// Retrieved fragments.
    pub cross_file: CrossFile,
    /// Whether the query contains the hole's own lines.
    pub query_has_target: bool,
}

/// Instances of a repository.
#[derive(Debug)]
pub struct Draw {
    code: Code,
    /// Holes of the instances in the order of the files, and the fragments retrieved for each.
    holes: Vec<(Hole, Vec<Hit>)>,
    drawing: Drawing,
    /// Files with functions that could not be parsed; chunks need no grammar.
    pub unparsed: Vec<UnparsedFile>,
}

impl Draw {
    /// Returns the instances in the order of the files. Each contains the whole text of its file, so all instances together
    /// take many times as much memory as the repository.
    pub fn instances(&self) -> impl Iterator<Item = Instance> {
        self.holes.iter().map(|(hole, hits)| instance(&self.code, hole, hits, &self.drawing))
    }

    /// Returns true if there are no instances.
    pub fn is_empty(&self) -> bool {
        self.holes.is_empty()
    }
}

/// Number of lines of the chunks that are clustered, and therefore the maximum number of lines of a chunk's hole.
pub const CHUNK_LINES: usize = 10;
/// Minimum number of chunks that contain a term used for clustering.
const MIN_DF: u32 = 5;

/// Draws the instances of a repository, in the order of its files. The result depends only on the files and the settings.
pub fn draw(repository: Repository, drawing: &Drawing) -> Draw {
    let mut stream =
        Stream::for_labels(drawing.seed, drawing.kind.name(), repository.content_digest());
    let (rows, unparsed) = match drawing.kind {
        InstanceKind::Function => {
            function_holes(&repository, drawing.language, &drawing.function_holes())
        }
        InstanceKind::Chunk => Default::default(),
    };
    let tables =
        if drawing.exclusions.tables { tables(&repository, drawing.language) } else { Vec::new() };
    let code = Code::from_repository(repository, drawing.reading());
    let mut candidates = match drawing.kind {
        InstanceKind::Chunk => chunks(&code),
        InstanceKind::Function => functions(&code, &rows),
    };
    let tables: Vec<Vec<Option<bool>>> =
        code.files.iter().zip(tables).map(|(file, rows)| file.of_lines(&rows)).collect();
    let are_tables = |place: &LineRun| {
        tables.get(place.file).is_some_and(|is_table| {
            let mut known = is_table[place.lines.clone()].iter().flatten().peekable();
            known.peek().is_some() && known.all(|is_table| *is_table)
        })
    };
    let excluded: Vec<bool> =
        code.files.iter().map(|file| drawing.exclusions.hold(&file.path)).collect();
    candidates.retain(|place| !excluded[place.file] && !are_tables(place));
    let candidates = sample(candidates, drawing.max_candidates, &mut stream);
    let mut holes: Vec<Hole> = clusters(&code, &candidates, drawing, &mut stream)
        .into_iter()
        .filter_map(|members| {
            let place = &candidates[members[stream.below(members.len())]];
            hole(&code, place, drawing, &mut stream)
        })
        .collect();
    // Only part of a chunk may be data, and the hole may be that part.
    holes.retain(|hole| !are_tables(&LineRun { file: hole.file, lines: hole.lines.clone() }));
    holes.sort_by_key(|hole| (hole.file, hole.lines.start));
    let found = if drawing.retrieves {
        retrieve(&code, &holes, drawing)
    } else {
        vec![Vec::new(); holes.len()]
    };
    let holes = holes.into_iter().zip(found).collect();
    Draw { code, holes, drawing: drawing.clone(), unparsed }
}

/// A run of a file's lines.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LineRun {
    file: usize,
    lines: Range<usize>,
}

/// A run of lines that is cut out of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hole {
    file: usize,
    lines: Range<usize>,
    query_has_target: bool,
}

/// Returns disjoint chunks of all files except copies.
fn chunks(code: &Code) -> Vec<LineRun> {
    let mut places = Vec::new();
    for (number, file) in own_files(code) {
        let starts = (0..file.count()).step_by(CHUNK_LINES);
        let lines = starts.map(|start| start..file.count().min(start + CHUNK_LINES));
        places.extend(lines.map(|lines| LineRun { file: number, lines }));
    }
    places
}

/// Draws at most `most` places, in the order of the repository.
fn sample(mut places: Vec<LineRun>, most: Option<usize>, stream: &mut Stream) -> Vec<LineRun> {
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

fn functions(code: &Code, rows: &[Vec<Range<usize>>]) -> Vec<LineRun> {
    let mut places = Vec::new();
    for (number, file) in own_files(code) {
        let rows = rows.get(number).map_or(&[][..], Vec::as_slice);
        let starts = file.row_starts();
        let lines = rows.iter().map(|rows| file.of_rows(&starts, rows.clone()));
        let lines = lines.filter(|lines| !lines.is_empty());
        places.extend(lines.map(|lines| LineRun { file: number, lines }));
    }
    places
}

/// Returns the files that are not copies of earlier files.
fn own_files(code: &Code) -> impl Iterator<Item = (usize, &CodeFile)> {
    let files = code.files.iter().enumerate();
    files.filter(|(number, file)| file.same_as as usize == *number)
}

/// Returns the members of each cluster.
fn clusters(
    code: &Code,
    places: &[LineRun],
    drawing: &Drawing,
    stream: &mut Stream,
) -> Vec<Vec<usize>> {
    let count = (drawing.ratio * places.len() as f64) as usize;
    // The released program cannot cluster so few functions, and draws none.
    if places.is_empty() || count == 0 && drawing.is_released_function() {
        return Vec::new();
    }
    let text = |place: &LineRun| code.files[place.file].join(place.lines.clone());
    let texts: Vec<String> = places.iter().map(text).collect();
    let vectors = TfIdfVectors::new(&Words::new(&texts), MIN_DF);
    let of_each = k_means(&vectors, count.max(1), &mut |n| stream.below(n as usize) as u64);
    let mut clusters = vec![Vec::new(); of_each.iter().max().map_or(0, |most| most + 1)];
    for (place, cluster) in of_each.into_iter().enumerate() {
        clusters[cluster].push(place);
    }
    clusters
}

/// Draws the hole of a place: the whole body of a function, or a run of a chunk's lines. Returns `None` if the released program
/// drops the hole.
fn hole(code: &Code, place: &LineRun, drawing: &Drawing, stream: &mut Stream) -> Option<Hole> {
    let lines = match drawing.kind {
        InstanceKind::Function => place.lines.clone(),
        InstanceKind::Chunk => {
            // In the released program, a file's last chunk has ten lines, too.
            let most = if drawing.is_release { CHUNK_LINES } else { place.lines.len() };
            let length = stream.length(drawing.poisson_mean).min(most);
            let start = place.lines.start + stream.below(most - length + 1);
            start..start + length
        }
    };
    let hole = Hole { file: place.file, lines, query_has_target: stream.below(2) == 1 };
    (!is_dropped(code, &hole, drawing)).then_some(hole)
}

/// Returns true if the released program drops a chunk's hole: the hole extends past the end of the file, or has all ten lines.
fn is_dropped(code: &Code, hole: &Hole, drawing: &Drawing) -> bool {
    drawing.is_release
        && drawing.kind == InstanceKind::Chunk
        && (hole.lines.end > code.files[hole.file].count() || hole.lines.len() >= CHUNK_LINES)
}

/// Returns the fragments of each hole.
fn retrieve(code: &Code, holes: &[Hole], drawing: &Drawing) -> Vec<Vec<Hit>> {
    let mut by_size: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, hole) in holes.iter().enumerate() {
        by_size.entry(fragment_lines(hole, drawing)).or_default().push(number);
    }
    let equal = if drawing.is_release { EqualChunks::InOrder } else { EqualChunks::NearestFirst };
    let mut found = vec![Vec::new(); holes.len()];
    for (size, numbers) in by_size {
        let shape = ChunkShape { size, stride: (size / 2).max(1) };
        let question = |number: &usize| question(code, &holes[*number], drawing);
        let questions: Vec<Question> = numbers.iter().map(question).collect();
        let hits = nearest(code, shape, &questions, (drawing.fragments, equal));
        for (number, hits) in numbers.into_iter().zip(hits) {
            found[number] = hits;
        }
    }
    found
}

/// Returns the number of lines of a hole's fragments.
fn fragment_lines(hole: &Hole, drawing: &Drawing) -> usize {
    let length = hole.lines.len();
    match (drawing.is_release, drawing.kind) {
        (true, InstanceKind::Chunk) if hole.query_has_target => 11 * length,
        (true, InstanceKind::Function) if length >= CHUNK_LINES => 50,
        _ => 10 * length,
    }
}

fn question(code: &Code, hole: &Hole, drawing: &Drawing) -> Question {
    let (file, length) = (&code.files[hole.file], hole.lines.len());
    let around = match (drawing.kind, drawing.is_release) {
        (InstanceKind::Chunk, _) => 5 * length,
        (InstanceKind::Function, false) => 20,
        (InstanceKind::Function, true) if hole.query_has_target => length,
        (InstanceKind::Function, true) => 3 * length,
    };
    let left = hole.lines.start.saturating_sub(around)..hole.lines.start;
    let right = hole.lines.end..file.count().min(hole.lines.end + around);
    let own = if hole.query_has_target { hole.lines.clone() } else { 0..0 };
    let parts = [left, own, right].map(|lines| code.words(file, lines));
    Question { file: hole.file, words: code.set(parts.into_iter()) }
}

fn instance(code: &Code, hole: &Hole, hits: &[Hit], drawing: &Drawing) -> Instance {
    let file = &code.files[hole.file];
    let fragment = |hit: &Hit| {
        let from = &code.files[hit.file];
        let path = if drawing.is_release {
            &from.path
        } else {
            crate::repository::fragment::path_in_repository(&from.path)
        };
        CrossFileFragment {
            path: path.to_owned(),
            text: from.join(hit.start..hit.end),
            score: Some(hit.score),
        }
    };
    let [left, target, right] = if drawing.is_release {
        released_texts(file, &hole.lines, drawing.kind)
    } else {
        file.around(hole.lines.clone()).map(str::to_owned)
    };
    Instance {
        path: file.path.clone(),
        lines: hole.lines.clone(),
        left,
        target,
        right,
        cross_file: CrossFile::new(hits.iter().map(fragment).collect(), drawing.language),
        query_has_target: hole.query_has_target,
    }
}

/// Returns the left context, target and right context as the released program writes them. A chunk's right context begins with
/// a line break. A function's target ends with one, and the indentation before the target belongs to the left context.
fn released_texts(file: &CodeFile, lines: &Range<usize>, kind: InstanceKind) -> [String; 3] {
    let mut left = file.join(0..lines.start);
    let mut target = file.join(lines.clone());
    let mut right = file.join(lines.end..file.count());
    if lines.start > 0 {
        left.push('\n');
    }
    match kind {
        InstanceKind::Chunk if lines.end < file.count() => right.insert(0, '\n'),
        InstanceKind::Chunk => {}
        InstanceKind::Function => {
            target.push('\n');
            let begin = target.len() - target.trim_start_matches(is_space).len();
            left.extend(target.drain(..begin));
        }
    }
    [left, target, right]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sha2::{Digest, Sha256};

    use super::*;

    const RELEASED: &str = include_str!("../../../../tests/fixtures/label/released.txt");

    /// Compares holes, contexts and fragments with the output of the released programs (`1_create_chunk.py` and
    /// `1_create_function.py` at commit 5b05713), as `tests/fixtures/label/record.py` recorded it.
    #[test]
    fn the_release_profile_shows_what_the_released_programs_show() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("data/repos");
        let mut compared = 0;
        for name in ["parcelflow", "quillpad", "tidewatch"] {
            for kind in InstanceKind::ALL {
                let reading = Repository::read(&dir, name, Language::Python).unwrap();
                let drawing = Drawing::release(kind);
                let (rows, _) = function_holes(
                    &reading.repository,
                    Language::Python,
                    &drawing.function_holes(),
                );
                let code = Code::from_repository(reading.repository, drawing.reading());
                let recorded: Vec<Vec<&str>> = RELEASED
                    .lines()
                    .map(|line| line.split(' ').collect::<Vec<_>>())
                    .filter(|row| row[0] == kind.name() && row[1].starts_with(&format!("{name}/")))
                    .collect();
                let hole = |row: &Vec<&str>| Hole {
                    file: code.files.iter().position(|file| file.path == row[1]).unwrap(),
                    lines: row[2].parse().unwrap()..row[3].parse().unwrap(),
                    query_has_target: row[4] == "1",
                };
                if kind == InstanceKind::Function {
                    let mut wanted: Vec<LineRun> = recorded
                        .iter()
                        .filter(|row| row[4] == "0")
                        .map(&hole)
                        .map(|hole| LineRun { file: hole.file, lines: hole.lines })
                        .collect();
                    let mut found = functions(&code, &rows);
                    for places in [&mut wanted, &mut found] {
                        places
                            .sort_by_key(|place| (place.file, place.lines.start, place.lines.end));
                    }
                    assert_eq!(found, wanted, "{name}");
                }
                let (kept, dropped): (Vec<_>, Vec<_>) =
                    recorded.iter().partition(|row| row[5] != "-");
                for row in dropped {
                    assert!(is_dropped(&code, &hole(row), &drawing), "{row:?}");
                }
                let holes: Vec<Hole> = kept.iter().map(|row| hole(row)).collect();
                let found = retrieve(&code, &holes, &drawing);
                for ((hole, hits), row) in holes.into_iter().zip(found).zip(kept) {
                    assert!(!is_dropped(&code, &hole, &drawing), "{row:?}");
                    let Instance { left, target, right, cross_file, .. } =
                        instance(&code, &hole, &hits, &drawing);
                    let texts = [left, target, right, cross_file.text].join("\0");
                    let digest = Sha256::digest(texts.as_bytes());
                    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                    assert_eq!(digest[..12], *row[5], "{row:?}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 850, "{compared}");
    }
}
