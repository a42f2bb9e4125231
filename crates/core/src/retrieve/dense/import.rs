//! Import of vectors computed by the user: JSON lines or a numpy array.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use foldhash::HashMap;
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{self, LONGEST_LINE, Object, kind};
use repoformer_store::literal::literal;
use repoformer_text::counts::list_first;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde_json::Value;

use super::matrix::Matrix;
use super::npy;
use super::text::{Digest, Text, digest, quote_start};

/// Maximum distance between two vectors of one text, as a fraction of the first one's length. Models compute slightly different
/// vectors for a text in another batch.
const SAME: f64 = 0.01;
/// Maximum number of texts named in a message.
const NAMED: usize = 3;

/// Returns a hint on how to compute vectors for every text.
fn write_them() -> Message {
    message![
        "use one model to compute a vector for every line of the ",
        UserChoice::FileOfTexts,
        ", and import the vectors with that file"
    ]
}

/// Vectors by the digest of their text, all of the same size.
#[derive(Debug, Clone, PartialEq)]
pub struct TextVectors {
    path: PathBuf,
    matrix: Matrix,
    rows: HashMap<Digest, usize>,
}

impl TextVectors {
    /// Returns a text's vector.
    fn get(&self, digest: &Digest) -> Option<&[f32]> {
        self.rows.get(digest).map(|row| self.matrix.row(*row))
    }

    /// Returns the vectors of these texts, one row each, in order. An empty text without a vector has a row of zeros.
    ///
    /// # Errors
    /// A text has no vector.
    pub fn matrix<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Result<Matrix> {
        let texts = texts.into_iter();
        let mut matrix = Matrix::with_capacity(self.matrix.dim(), texts.size_hint().0);
        for text in texts {
            match self.get(&digest(text)) {
                Some(vector) => matrix.push(vector)?,
                None if text.is_empty() => matrix.push_zeros(),
                None => {
                    let reason = format!("has no vector for the text {}", quote_start(text));
                    return Err(Error::vectors(&self.path, "", reason, write_them()));
                }
            }
        }
        Ok(matrix)
    }
}

/// Reads the vectors of these texts from a file. The format is recognised by content; the file may be compressed.
///
/// - JSON lines, in any order: the vector is in `embedding` or `vector`, as a list of numbers. Its text is given by `digest`
///   (BLAKE3 in hex), by `text`, or by `_id` or `id`, which name one of `texts`. Records of other digests or texts are skipped.
/// - NPY, as `numpy.save` writes it: two dimensions, one row for each of `texts`, in order, with 16, 32 or 64 bits.
///
/// Numbers are rounded to `f32`. If a text has several vectors, the first is kept. An empty text needs no vector.
///
/// # Errors
/// The file cannot be read. Errors with a line or row: a vector is missing, has another size than the first, or contains a
/// number that is not finite; an id is unknown; or two vectors of one text differ by more than a hundredth. Also fails if texts
/// have no vector, and names their number and the first few.
pub fn import(path: &Path, texts: &[Text]) -> Result<TextVectors> {
    let mut reader = jsonl::open(path)?;
    let start = reader.fill_buf().map_err(|e| Error::reading(path, "read this file", e))?;
    let mut import = Import::new(path, texts);
    if start.starts_with(b"PK") {
        let reason = "this is an archive of arrays (.npz); a single array is needed";
        let hint = "save one array with numpy.save, not numpy.savez";
        return Err(Error::vectors(path, "", reason, hint));
    }
    if start.starts_with(npy::MAGIC) {
        import.rows(npy::read(path, &mut reader)?)?;
    } else {
        import.lines(&mut reader)?;
    }
    import.finish()
}

/// State of the import of one file.
struct Import<'a> {
    path: &'a Path,
    texts: &'a [Text],
    digests: Vec<Digest>,
    /// Number of the text with a digest; the first of several equal texts.
    by_digest: HashMap<Digest, usize>,
    /// Number of the text with an id; `None` if several texts have the id.
    by_id: HashMap<&'a str, Option<usize>>,
    matrix: Option<Matrix>,
    /// Row of each text that has a vector.
    rows: HashMap<Digest, usize>,
    /// Line or row of the file for each row of the matrix.
    places: Vec<usize>,
}

/// Description of a problem, and a hint.
type Wrong = (Message, Message);

fn wrong(reason: impl Into<Message>, hint: impl Into<Message>) -> Wrong {
    (reason.into(), hint.into())
}

impl<'a> Import<'a> {
    fn new(path: &'a Path, texts: &'a [Text]) -> Self {
        let digests: Vec<Digest> = texts.iter().map(|text| digest(&text.text)).collect();
        let (mut by_digest, mut by_id) = (HashMap::default(), HashMap::default());
        for (number, text) in texts.iter().enumerate() {
            by_digest.entry(digests[number]).or_insert(number);
            by_id
                .entry(text.id.as_str())
                .and_modify(|other: &mut Option<usize>| {
                    *other = other.filter(|other| digests[*other] == digests[number]);
                })
                .or_insert(Some(number));
        }
        Self {
            path,
            texts,
            digests,
            by_digest,
            by_id,
            matrix: None,
            rows: HashMap::default(),
            places: Vec::new(),
        }
    }

    fn rows(&mut self, array: npy::Array) -> Result<()> {
        if array.rows != self.texts.len() {
            let reason = format!("has {} rows for {} texts", array.rows, self.texts.len());
            let hint = "write one row per text, in the order of the current file of texts";
            return Err(Error::vectors(self.path, "", reason, hint));
        }
        for row in 0..array.rows {
            let vector = &array.numbers[row * array.dim..][..array.dim];
            self.put(self.digests[row], vector, row, "row").map_err(|(reason, hint)| {
                Error::vectors(self.path, &npy::place(row), reason, hint)
            })?;
        }
        Ok(())
    }

    fn lines(&mut self, reader: &mut dyn BufRead) -> Result<()> {
        let mut bytes = Vec::new();
        for line in 1.. {
            bytes.clear();
            let read = jsonl::read_line(reader, || LONGEST_LINE, &mut bytes);
            if read.map_err(|e| Error::reading(self.path, "read this file", e))? == 0 {
                break;
            }
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let kept = match jsonl::parse(self.path, line, &bytes) {
                Ok(object) => self.record(&object, line),
                Err(Error::Record { reason, .. }) => {
                    Err(wrong(reason, "correct the line (JSON has no NaN)"))
                }
                Err(other) => return Err(other),
            };
            kept.map_err(|(reason, hint)| {
                Error::vectors(self.path, &format!(":{line}"), reason, hint)
            })?;
        }
        Ok(())
    }

    fn record(&mut self, object: &Object, line: usize) -> Result<(), Wrong> {
        let digest = self.digest_of(object)?;
        let field = ["embedding", "vector"].into_iter().find(|name| object.contains_key(*name));
        let Some(field) = field else {
            return Err(wrong("field 'embedding' or 'vector' is missing", write_them()));
        };
        let vector = numbers(&object[field])
            .map_err(|reason| wrong(format!("field '{field}': {reason}"), write_them()))?;
        self.put(digest, &vector, line, "line")
    }

    /// Returns the digest of the text to which a record belongs.
    fn digest_of(&self, object: &Object) -> Result<Digest, Wrong> {
        let string = |name: &str| match object.get(name) {
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(other) => {
                let reason = format!("field '{name}' must be a string, not {}", kind(other));
                Err(wrong(reason, "correct the line"))
            }
            None => Ok(None),
        };
        let text = string("text")?.map(digest);
        if let Some(hex) = string("digest")? {
            let no_digest = |_| {
                wrong(
                    "field 'digest' is not a BLAKE3 digest in hex",
                    "copy it from the file of texts",
                )
            };
            let found = Digest::from_hex(hex).map_err(no_digest)?;
            if text.is_some_and(|text| text != found) {
                return Err(wrong(
                    "field 'digest' does not match field 'text'",
                    "correct the line",
                ));
            }
            self.check_id(object, found)?;
            return Ok(found);
        }
        if let Some(text) = text {
            self.check_id(object, text)?;
            return Ok(text);
        }
        let Some(id) = id_of(object) else {
            let reason = "one of the fields 'digest', 'text', '_id' and 'id' is needed";
            return Err(wrong(reason, "copy one of them from the file of texts"));
        };
        match self.by_id.get(id.as_str()) {
            Some(Some(number)) => Ok(self.digests[*number]),
            Some(None) => {
                Err(wrong(format!("several texts have the id {id:?}"), "identify them by 'digest'"))
            }
            None => Err(wrong(
                format!("no text has the id {id:?}"),
                message![
                    "use vectors computed from the ",
                    UserChoice::FileOfTexts,
                    "; identify texts by 'digest' to keep the vectors of unchanged texts"
                ],
            )),
        }
    }

    /// Checks that the id of a record, if it has one, names no other text than the record does otherwise.
    fn check_id(&self, object: &Object, found: Digest) -> Result<(), Wrong> {
        let id = id_of(object);
        match id.and_then(|id| Some((self.by_id.get(id.as_str())?.as_ref()?, id))) {
            Some((number, id)) if self.digests[*number] != found => {
                Err(wrong(format!("another text has the id {id:?}"), "correct the line"))
            }
            _ => Ok(()),
        }
    }

    /// Adds a vector.
    fn put(
        &mut self,
        digest: Digest,
        vector: &[f32],
        place: usize,
        what: &str,
    ) -> Result<(), Wrong> {
        let matrix = self.matrix.get_or_insert_with(|| Matrix::new(vector.len()));
        if vector.len() != matrix.dim() {
            let (size, first) = (vector.len(), matrix.dim());
            let reason = format!("the vector has {size} numbers, but earlier vectors have {first}");
            return Err(wrong(reason, write_them()));
        }
        let Some(number) = self.by_digest.get(&digest) else {
            return Ok(());
        };
        if let Some(row) = self.rows.get(&digest) {
            let squares = matrix.row(*row).iter().zip(vector);
            let apart: f64 = squares.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
            if apart.sqrt() <= SAME * matrix.norm(*row) {
                return Ok(());
            }
            let reason = format!(
                "differs from the vector in {what} {} for the same text, {}",
                self.places[*row],
                quote_start(&self.texts[*number].text)
            );
            return Err(wrong(
                reason,
                "keep one vector per text; are these vectors from two models?",
            ));
        }
        matrix.push(vector).map_err(|e| wrong(e.to_string(), write_them()))?;
        self.rows.insert(digest, self.places.len());
        self.places.push(place);
        Ok(())
    }

    fn finish(self) -> Result<TextVectors> {
        let has_none = |number: &usize| {
            !self.texts[*number].text.is_empty() && !self.rows.contains_key(&self.digests[*number])
        };
        let missing: Vec<usize> = (0..self.texts.len()).filter(has_none).collect();
        if !missing.is_empty() {
            let names = missing.iter().map(|number| {
                let Text { id, text } = &self.texts[*number];
                format!("{id} ({})", quote_start(text))
            });
            let reason = format!(
                "has no vector for {} of {} texts: {}",
                missing.len(),
                self.texts.len(),
                list_first(names, NAMED)
            );
            return Err(Error::vectors(self.path, "", reason, write_them()));
        }
        Ok(TextVectors {
            path: self.path.to_owned(),
            matrix: self.matrix.unwrap_or_default(),
            rows: self.rows,
        })
    }
}

/// Reads a vector from JSON, with its numbers rounded to `f32`; the error describes what is wrong.
pub fn numbers(value: &Value) -> Result<Vec<f32>, String> {
    let Value::Array(list) = value else {
        let kind = kind(value);
        return Err(format!("a list of numbers is expected, not {kind}"));
    };
    if list.first().is_some_and(Value::is_array) {
        return Err(
            "a list of lists, with a vector for each token: have the server pool the token vectors \
             into one".into()
        );
    }
    if list.is_empty() {
        return Err("it contains no numbers".into());
    }
    let number = |(at, value): (usize, &Value)| {
        let number = value.as_f64().ok_or_else(|| match literal(value) {
            Some(written) => format!("number {} is {written}", at + 1),
            None => format!("number {} is {value}", at + 1),
        })?;
        let narrow = number as f32;
        if !narrow.is_finite() {
            return Err(format!("number {} is {value}, too large for 32 bits", at + 1));
        }
        Ok(narrow)
    };
    let narrow: Vec<f32> = list.iter().enumerate().map(number).collect::<Result<_, _>>()?;
    let largest =
        list.iter().filter_map(Value::as_f64).fold(0.0, |most: f64, one| most.max(one.abs()));
    if is_too_small(largest) {
        return Err(format!("its largest number is {largest:e}, too small for 32 bits: {SCALE}"));
    }
    Ok(narrow)
}

/// Returns the id of a record's text, which may be a number.
fn id_of(object: &Object) -> Option<String> {
    let id = ["_id", "id"].into_iter().find_map(|name| object.get(name))?;
    Some(id.as_str().map_or_else(|| id.to_string(), str::to_owned))
}

/// Hint at vectors that are too small.
pub(super) const SCALE: &str =
    "multiply the vectors by a number; it does not change how similar they are";

/// Returns true if a vector whose largest number has this absolute value is another one, or none, in 32 bits.
pub(super) fn is_too_small(largest: f64) -> bool {
    largest > 0.0 && largest < f64::from(f32::MIN_POSITIVE)
}

#[cfg(test)]
mod tests;
