//! Vectors that the user computed: JSON lines or a numpy array.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::{Digest, Matrix, Text, digest, npy, shown};
use crate::error::{Error, Result};
use crate::store::jsonl::{self, Object, kind};

/// How far two vectors of one text may lie apart, as a share of the first one's length: models compute a text a little
/// differently in other company.
const SAME: f64 = 0.01;
/// Texts that a message names.
const NAMED: usize = 3;

const WRITE_THEM: &str = "give every line of the file that `vectorize --write-texts` wrote a vector, all from one model, and name that file \
                          with --vector-texts";

/// Vectors by the digest of their text, all of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Vectors {
    path: PathBuf,
    matrix: Matrix,
    rows: FxHashMap<Digest, usize>,
    unused: usize,
}

impl Vectors {
    /// Numbers a vector; 0 where there is none.
    pub fn dim(&self) -> usize {
        self.matrix.dim()
    }

    /// Number of different texts that have a vector.
    pub fn len(&self) -> usize {
        self.matrix.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.matrix.is_empty()
    }

    /// Records of the file whose digest or text is none of the texts'; they were passed over.
    pub fn unused(&self) -> usize {
        self.unused
    }

    /// A text's vector.
    pub fn get(&self, digest: &Digest) -> Option<&[f32]> {
        self.rows.get(digest).map(|row| self.matrix.row(*row))
    }

    /// The vectors of these texts, a row each in their order. An empty text that has none has a row of zeros.
    ///
    /// # Errors
    /// A text has no vector.
    pub fn matrix<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Result<Matrix> {
        let texts = texts.into_iter();
        let mut matrix = Matrix::with_capacity(self.dim(), texts.size_hint().0);
        for text in texts {
            match self.get(&digest(text)) {
                Some(vector) => matrix.push(vector)?,
                None if text.is_empty() => matrix.push_zeros(),
                None => {
                    let reason = format!("has no vector for the text {}", shown(text));
                    return Err(wrong(&self.path, "", reason, WRITE_THEM));
                }
            }
        }
        Ok(matrix)
    }
}

/// An error that names the file and a place in it.
pub(super) fn wrong(path: &Path, place: &str, reason: impl Into<String>, hint: &str) -> Error {
    Error::Vectors {
        path: path.to_owned(),
        place: place.into(),
        reason: reason.into(),
        hint: hint.into(),
    }
}

/// Reads the vectors of these texts from a file, known by its content, compressed or not:
///
/// - JSON lines, in any order: the vector in `embedding` or `vector`, a list of numbers; its text by `digest` (BLAKE3 in
///   hex), `text`, or `_id` or `id`, which names one of `texts`. Records of other digests or texts are passed over.
/// - NPY, as `numpy.save` writes it: two dimensions, a row for each of `texts` in their order, of 16, 32 or 64 bits.
///
/// Numbers are rounded to `f32`. A text that has several vectors keeps the first. An empty text needs none.
///
/// # Errors
/// The file cannot be read; or, with the line or row: a vector is missing, of another size than the first, or holds what
/// is no finite number, an id is none of the texts', two vectors of one text differ by more than a hundredth; or texts
/// have no vector, with their number and the first few.
pub fn import(path: &Path, texts: &[Text]) -> Result<Vectors> {
    let mut reader = jsonl::open(path)?;
    let start = reader
        .fill_buf()
        .map_err(|e| Error::reading(path, "read this file", e))?;
    let mut import = Import::new(path, texts);
    if start.starts_with(b"PK") {
        let hint = "save the one array with numpy.save, not numpy.savez";
        return Err(wrong(
            path,
            "",
            "an archive of arrays (.npz); one array is needed",
            hint,
        ));
    }
    match start.starts_with(npy::MAGIC) {
        true => import.rows(npy::read(path, &mut reader)?)?,
        false => import.lines(&mut reader)?,
    }
    import.finish()
}

/// The reading of one file.
struct Import<'a> {
    path: &'a Path,
    texts: &'a [Text],
    digests: Vec<Digest>,
    /// Which text a digest is of; the first of those that are alike.
    by_digest: FxHashMap<Digest, usize>,
    /// Which text an id names; `None` where it names several.
    by_id: FxHashMap<&'a str, Option<usize>>,
    matrix: Option<Matrix>,
    /// The row of each text that has one.
    rows: FxHashMap<Digest, usize>,
    /// Where in the file each row of the matrix stood.
    places: Vec<usize>,
    unused: usize,
}

/// What is wrong, and what to do about it.
type Wrong = (String, &'static str);

impl<'a> Import<'a> {
    fn new(path: &'a Path, texts: &'a [Text]) -> Self {
        let digests: Vec<Digest> = texts.iter().map(Text::digest).collect();
        let (mut by_digest, mut by_id) = (FxHashMap::default(), FxHashMap::default());
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
            rows: FxHashMap::default(),
            places: Vec::new(),
            unused: 0,
        }
    }

    fn rows(&mut self, array: npy::Array) -> Result<()> {
        if array.rows != self.texts.len() {
            let reason = format!("{} rows for {} texts", array.rows, self.texts.len());
            let hint = "a row for each text is needed, in the order of the file of texts, which must be the current one";
            return Err(wrong(self.path, "", reason, hint));
        }
        if array.dim == 0 && array.rows > 0 {
            return Err(wrong(self.path, "", "its rows have no numbers", WRITE_THEM));
        }
        for row in 0..array.rows {
            let vector = &array.numbers[row * array.dim..][..array.dim];
            self.put(self.digests[row], vector, row, "row")
                .map_err(|(reason, hint)| wrong(self.path, &npy::place(row), reason, hint))?;
        }
        Ok(())
    }

    fn lines(&mut self, reader: &mut dyn BufRead) -> Result<()> {
        let mut bytes = Vec::new();
        for line in 1.. {
            bytes.clear();
            let read = reader.read_until(b'\n', &mut bytes);
            if read.map_err(|e| Error::reading(self.path, "read this file", e))? == 0 {
                break;
            }
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let outcome = match jsonl::parse(self.path, line, &bytes) {
                Ok(object) => self.record(&object, line),
                Err(Error::Record { reason, .. }) => Err((reason, "NaN is no JSON; see the line")),
                Err(other) => return Err(other),
            };
            outcome
                .map_err(|(reason, hint)| wrong(self.path, &format!(":{line}"), reason, hint))?;
        }
        Ok(())
    }

    fn record(&mut self, object: &Object, line: usize) -> Result<(), Wrong> {
        let digest = self.digest_of(object)?;
        let field = ["embedding", "vector"]
            .into_iter()
            .find(|name| object.contains_key(*name));
        let Some(field) = field else {
            return Err((
                "field 'embedding' or 'vector' is missing".into(),
                WRITE_THEM,
            ));
        };
        let vector = super::embed::numbers(&object[field])
            .map_err(|reason| (format!("field '{field}': {reason}"), WRITE_THEM))?;
        self.put(digest, &vector, line, "line")
    }

    /// Which text a record is of.
    fn digest_of(&self, object: &Object) -> Result<Digest, Wrong> {
        let string = |name: &str| match object.get(name) {
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(other) => {
                let reason = format!("field '{name}' must be a string, not {}", kind(other));
                Err((reason, "see the line"))
            }
            None => Ok(None),
        };
        let text = string("text")?.map(digest);
        if let Some(hex) = string("digest")? {
            let found = Digest::from_hex(hex).map_err(|_| {
                (
                    "field 'digest' is no BLAKE3 digest in hex".into(),
                    "copy it from the file of texts",
                )
            })?;
            return match text.is_some_and(|text| text != found) {
                true => Err((
                    "field 'digest' is not that of field 'text'".into(),
                    "see the line",
                )),
                false => Ok(found),
            };
        }
        if let Some(text) = text {
            return Ok(text);
        }
        let Some(id) = ["_id", "id"].into_iter().find_map(|name| object.get(name)) else {
            let reason = "none of the fields 'digest', 'text', '_id' and 'id' is there".into();
            return Err((reason, "copy one of them from the file of texts"));
        };
        let id = match id {
            Value::String(id) => id.clone(),
            other => other.to_string(),
        };
        match self.by_id.get(id.as_str()) {
            Some(Some(number)) => Ok(self.digests[*number]),
            Some(None) => Err((
                format!("the id {id:?} names several texts"),
                "name them by their 'digest'",
            )),
            None => Err((
                format!("no text has the id {id:?}"),
                "the vectors must be of the current file of texts; name them by 'digest' to keep those that are unchanged",
            )),
        }
    }

    /// Keeps a vector.
    fn put(
        &mut self,
        digest: Digest,
        vector: &[f32],
        place: usize,
        what: &str,
    ) -> Result<(), Wrong> {
        let matrix = self.matrix.get_or_insert_with(|| Matrix::new(vector.len()));
        if vector.len() != matrix.dim() {
            let reason = format!(
                "the vector has {} numbers, those before it have {}",
                vector.len(),
                matrix.dim()
            );
            return Err((reason, WRITE_THEM));
        }
        let Some(number) = self.by_digest.get(&digest) else {
            self.unused += 1;
            return Ok(());
        };
        if let Some(row) = self.rows.get(&digest) {
            let squares = matrix.row(*row).iter().zip(vector);
            let apart: f64 = squares
                .map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2))
                .sum();
            if apart.sqrt() <= SAME * matrix.norm(*row) {
                return Ok(());
            }
            let reason = format!(
                "another vector for the text of {what} {}, {}",
                self.places[*row],
                shown(&self.texts[*number].text)
            );
            return Err((reason, "a text has one vector; are these of two models?"));
        }
        matrix
            .push(vector)
            .map_err(|e| (e.to_string(), WRITE_THEM))?;
        self.rows.insert(digest, self.places.len());
        self.places.push(place);
        Ok(())
    }

    fn finish(self) -> Result<Vectors> {
        let has_none = |number: &usize| {
            !self.texts[*number].text.is_empty() && !self.rows.contains_key(&self.digests[*number])
        };
        let missing: Vec<usize> = (0..self.texts.len()).filter(has_none).collect();
        if !missing.is_empty() {
            let names = missing.iter().take(NAMED).map(|number| {
                let Text { id, text } = &self.texts[*number];
                format!("{id} ({})", shown(text))
            });
            let names = names.collect::<Vec<_>>().join(", ");
            let more = if missing.len() > NAMED { ", …" } else { "" };
            let reason = format!(
                "no vector for {} of {} texts: {names}{more}",
                missing.len(),
                self.texts.len()
            );
            return Err(wrong(self.path, "", reason, WRITE_THEM));
        }
        Ok(Vectors {
            path: self.path.to_owned(),
            matrix: self.matrix.unwrap_or_default(),
            rows: self.rows,
            unused: self.unused,
        })
    }
}

#[cfg(test)]
mod tests;
