//! JSON lines from a file, a compressed file or standard input, one record at a time.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use repoformer_text::shell::quote;
use serde_json::{Map, Value};

use super::expansion::{ExpansionGuard, MeteredInput};
use super::gunzip::Gunzip;
use super::inputs;
use super::json;
use super::literal::{self, literal};
use super::manifest::check_beside;
use super::progress::{CountedReader, Work};
use super::readings;
use crate::error::{Error, Result, keep};
use crate::files::{File, FileState};
use crate::zstandard;

/// JSON object with its fields in the order of the file.
pub type Object = Map<String, Value>;

/// Opens a file and decompresses it: gzip, zstd or plain, recognised by its content; `-` is standard input.
///
/// # Errors
/// The file cannot be opened, its compressed data cannot be read, its format is known not to be text, or it does not match the
/// manifest next to it.
pub fn open(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    open_counted(path).map(|(input, _)| input)
}

/// Opens a file as [`open()`] does, and also returns a counter of the bytes read from the file before decompression.
fn open_counted(path: &Path) -> Result<(Box<dyn BufRead + Send>, Arc<AtomicU64>)> {
    let raw: Box<dyn Read + Send> = if path == Path::new("-") {
        let work = Work::begin("reading standard input", "bytes");
        // It may be a file: `< tasks.jsonl`.
        inputs::protect(Path::new("/dev/stdin"));
        Box::new(CountedReader::new(io::stdin(), work))
    } else {
        let file = File::open(path).map_err(|e| Error::reading(path, "open this file", e))?;
        check_beside(path)?;
        let work = Work::begin(format!("reading {}", path.display()), "bytes");
        if let Ok(metadata) = file.metadata()
            && metadata.is_file()
        {
            work.more(metadata.len() as usize);
        }
        Box::new(CountedReader::new(WholeFile::new(path, file), work))
    };
    let (raw, compressed) = MeteredInput::new(raw);
    let mut buffered = BufReader::with_capacity(1 << 16, raw);
    let start = buffered.fill_buf().map_err(|e| Error::reading(path, "read this file", e))?;
    if start.starts_with(&[0x1f, 0x8b]) {
        let decoder = ExpansionGuard::new(Gunzip::new(buffered), Arc::clone(&compressed));
        return Ok((Box::new(BufReader::new(decoder)), compressed));
    }
    // A file may begin with a frame that is skipped, as those of seekable zstd do.
    let is_skipped = matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
    if is_skipped || start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let decoder = zstandard::decoder(path, buffered)?;
        let decoder = ExpansionGuard::new(decoder, Arc::clone(&compressed));
        return Ok((Box::new(BufReader::new(decoder)), compressed));
    }
    match other_form(path, start) {
        Some(error) => Err(error),
        None => Ok((Box::new(buffered), compressed)),
    }
}

/// Number of bytes that a line of any file may have.
pub const LONGEST_LINE: u64 = 64 << 20;
/// Greatest ratio of a longer line's length to the bytes of the compressed file up to the line's end; such a line contains a
/// repository.
const LINE_TIMES: u64 = 20;
/// Number of bytes that a line with a repository may have if the compressed size is not known.
pub const LONGEST_REPOSITORY: u64 = 9 * LONGEST_LINE;
/// Replacement for a line, or the rest of a line, that is too long; JSON never contains this character.
const TOO_LONG: &[u8] = b"\0too long\n";

/// Appends the next line with its line end to `bytes`, and returns the number of appended bytes, which is 0 at the end of the
/// input. A line of more than `longest()` bytes is skipped without being held in memory; the mark appended instead makes
/// [`parse`] report that the line is too long. `longest` is called again while the line is read.
///
/// # Errors
/// The input cannot be read.
pub fn read_line(
    input: &mut (impl BufRead + ?Sized),
    longest: impl Fn() -> u64,
    bytes: &mut Vec<u8>,
) -> io::Result<usize> {
    let (start, mut is_too_long) = (bytes.len(), false);
    loop {
        let buffer = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let end = memchr::memchr(b'\n', buffer);
        let used = end.map_or(buffer.len(), |end| end + 1);
        if !is_too_long && (bytes.len() - start + used) as u64 > longest() {
            is_too_long = true;
            bytes.truncate(start);
            bytes.shrink_to(start.max(1 << 20));
        }
        if !is_too_long {
            bytes.extend_from_slice(&buffer[..used]);
        }
        let is_end = end.is_some() || used == 0;
        input.consume(used);
        if is_end {
            break;
        }
    }
    if is_too_long {
        bytes.extend_from_slice(TOO_LONG);
    }
    Ok(bytes.len() - start)
}

/// File that is read once and completely, and must not change meanwhile. Its digest is [remembered](readings).
struct WholeFile {
    path: PathBuf,
    file: File,
    before: FileState,
    hasher: blake3::Hasher,
}

impl WholeFile {
    fn new(path: &Path, file: File) -> Self {
        let before = file.state();
        Self { path: path.to_owned(), file, before, hasher: blake3::Hasher::new() }
    }
}

impl Read for WholeFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        if read == 0 && !buffer.is_empty() {
            self.file.check_unchanged(self.before)?;
            readings::remember(&self.path, &self.hasher);
        }
        Ok(read)
    }
}

/// Unsupported compressions: the first bytes of their files, and the programs that decompress them.
const COMPRESSIONS: [(&[u8], &str); 3] =
    [(b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2"), (b"\x04\x22\x4d\x18", "lz4")];

/// Returns the error for a file that begins like a file of another format.
fn other_form(path: &Path, start: &[u8]) -> Option<Error> {
    let form = |reason: String, hint: Message| Error::Form { path: path.to_owned(), reason, hint };
    if let Some((_, name)) = COMPRESSIONS.iter().find(|(begin, _)| start.starts_with(begin)) {
        let reason = format!("compressed with {name}; known compressions: gzip, zstd");
        let file = path.display();
        let plain = path.with_extension("");
        let hint = if path == Path::new("-") {
            format!("decompress it on the way: `{name} -dc | …`")
        } else {
            format!("convert it: `{name} -dc {file} | gzip > {}.gz`", plain.display())
        };
        return Some(form(reason, hint.into()));
    }
    if start.starts_with(PARQUET) {
        let hint = message![UserChoice::WriteAsJsonLines, ", or read it with pandas or polars"];
        return Some(form("a Parquet table, not JSON lines".into(), hint));
    }
    None
}

/// First bytes of a Parquet file.
pub const PARQUET: &[u8] = b"PAR1";

/// Position of a record in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordAddress {
    /// 1-based line, for messages.
    pub line: usize,
    /// 0-based number of the record, counting unusable ones; it is the key of a task.
    pub row: usize,
}

/// Calls `record` with each object and its position. Blank lines are skipped. For a line that is not a JSON object, or that
/// `record` rejects, an error is added to the returned list, which [keeps](keep) the first problems, and reading continues.
///
/// # Errors
/// The file cannot be opened or read.
pub fn for_each(
    path: &Path,
    mut record: impl FnMut(RecordAddress, Object) -> Result<()>,
) -> Result<Vec<Error>> {
    let mut reader = Reader::open(path)?;
    let mut problems = Vec::new();
    while let Some((at, bytes)) = reader.next_record()? {
        if let Err(problem) = parse(path, at.line, bytes).and_then(|object| record(at, object)) {
            keep(&mut problems, path, problem);
        }
    }
    Ok(problems)
}

/// Reader of a file's records, one after another, before parsing.
pub struct Reader<'a> {
    path: &'a Path,
    input: Box<dyn BufRead>,
    /// Counter of the bytes read from the file before decompression, if they are counted.
    of_file: Option<Arc<AtomicU64>>,
    bytes: Vec<u8>,
    next: RecordAddress,
}

impl<'a> Reader<'a> {
    /// Opens a file as [`open()`] does.
    ///
    /// # Errors
    /// The file cannot be opened, or its compressed data cannot be read.
    pub fn open(path: &'a Path) -> Result<Self> {
        let (input, of_file) = open_counted(path)?;
        Ok(Self { of_file: Some(of_file), ..Self::with_input(path, input) })
    }

    /// Creates a reader of the records in an opened file.
    pub fn with_input(path: &'a Path, input: Box<dyn BufRead>) -> Self {
        Self {
            path,
            input,
            of_file: None,
            bytes: Vec::new(),
            next: RecordAddress { line: 0, row: 0 },
        }
    }

    /// Returns the next line that is not blank, with its line end, to be [parsed](parse); `None` at the end. A line that is
    /// [too long](read_line) cannot be parsed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_record(&mut self) -> Result<Option<(RecordAddress, &[u8])>> {
        loop {
            self.bytes.clear();
            let longest = || match &self.of_file {
                Some(bytes) => {
                    LONGEST_LINE.max(bytes.load(Ordering::Relaxed).saturating_mul(LINE_TIMES))
                }
                None => LONGEST_REPOSITORY,
            };
            let read = read_line(&mut self.input, longest, &mut self.bytes)
                .map_err(|e| Error::reading(self.path, "read this file", e))?;
            if read == 0 {
                return Ok(None);
            }
            self.next.line += 1;
            if self.bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let at = self.next;
            self.next.row += 1;
            return Ok(Some((at, &self.bytes)));
        }
    }
}

/// Returns true if bytes end with the mark of a line that was [too long](read_line).
pub fn is_too_long(bytes: &[u8]) -> bool {
    bytes.ends_with(TOO_LONG)
}

/// Reads a whole file, decompressing it if necessary.
///
/// # Errors
/// The file cannot be opened or read.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    open(path)?.read_to_end(&mut text).map_err(|e| Error::reading(path, "read this file", e))?;
    Ok(text)
}

/// Format of a file that is not JSONL, recognised by its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OtherFormat {
    Tar,
    Utf16,
    /// One JSON array of all records.
    Array,
    /// JSON objects that extend over several lines.
    Indented,
    /// Columns separated by this.
    Table(char),
}

impl OtherFormat {
    /// Recognises the format of a file whose first line is not a JSON object; `None` if the line may just be damaged.
    fn from_start(line: &[u8]) -> Option<Self> {
        if is_tar(line) {
            return Some(Self::Tar);
        }
        if line.starts_with(&[0xff, 0xfe]) || line.starts_with(&[0xfe, 0xff]) {
            return Some(Self::Utf16);
        }
        let text = std::str::from_utf8(line).ok()?.trim();
        if text == "{" {
            return Some(Self::Indented);
        }
        if text.starts_with('[') {
            return Some(Self::Array);
        }
        let separator = [',', '\t'].into_iter().find(|separator| text.contains(*separator))?;
        let is_name = |cell: &str| {
            let cell = cell.trim().trim_matches('"');
            !cell.is_empty()
                && cell.chars().all(|sign| sign.is_alphanumeric() || "_-. ".contains(sign))
        };
        text.split(separator).all(is_name).then_some(Self::Table(separator))
    }

    fn refuse(self, path: &Path) -> Error {
        let file = quote(&path.display().to_string());
        let is_packed = path.extension().is_some_and(|end| end == "gz" || end == "zst");
        let first = if is_packed { "decompress it, then convert it" } else { "convert it" };
        let (reason, hint): (&str, Message) = match self {
            Self::Tar => ("this is a tar archive, not JSONL", UserChoice::ConvertToFolders.into()),
            Self::Utf16 => (
                "this text is in UTF-16, not UTF-8",
                format!("{first}: iconv -f UTF-16 -t UTF-8 {file} > FILE.jsonl").into(),
            ),
            Self::Array => (
                "this is a JSON array, not JSONL, which has one object per line",
                format!("{first}: jq -c '.[]' {file} > FILE.jsonl").into(),
            ),
            Self::Indented => (
                "its JSON objects extend over several lines, and JSONL has one object per line",
                format!("{first}: jq -c . {file} > FILE.jsonl").into(),
            ),
            Self::Table(separator) => (
                "this is a table, not JSONL, which has one JSON object per line",
                format!(
                    "convert it with pandas: read_csv({file:?}, sep={separator:?}).to_json(\"FILE.jsonl\", orient=\"records\", lines=True)",
                    file = file.to_string()
                )
                .into(),
            ),
        };
        Error::Record { path: path.to_owned(), line: 1, reason: reason.into(), hint: Some(hint) }
    }
}

/// Returns true if bytes are the beginning of a tar archive.
pub fn is_tar(start: &[u8]) -> bool {
    start.get(257..262) == Some(b"ustar")
}

/// Iterates over the records of a text and their positions, to be [parsed](parse); blank lines are skipped.
pub fn records(text: &[u8]) -> impl Iterator<Item = (RecordAddress, &[u8])> {
    let lines = text.split_inclusive(|byte| *byte == b'\n').zip(1..);
    let records = lines.filter(|(line, _)| !line.iter().all(u8::is_ascii_whitespace));
    records.zip(0..).map(|((bytes, line), row)| (RecordAddress { line, row }, bytes))
}

/// Greatest number of values in a line: each takes up to 200 bytes of memory.
const MOST_VALUES: u64 = 1 << 22;

/// Parses the JSON value of a text that begins on a line of a file. Replaces lone surrogates, and [marks](mod@literal) numbers
/// that a JSON value cannot hold.
///
/// # Errors
/// The text is not JSON, or has more than 4,194,304 values.
pub fn value(path: &Path, line: usize, bytes: &[u8]) -> serde_json::Result<Value> {
    if bytes.len() as u64 > MOST_VALUES && json::count_values(bytes) > MOST_VALUES {
        let reason = format!("has more than {MOST_VALUES} JSON values");
        return Err(serde::de::Error::custom(reason));
    }
    // If the text is known to be UTF-8, the strings need no validation of their own.
    let Ok(text) = std::str::from_utf8(bytes) else {
        return serde_json::from_slice(bytes);
    };
    json::check_names(bytes)?;
    let plain = (!literal::may_change(text)).then(|| serde_json::from_str(text));
    let first_error = match plain {
        Some(Ok(value)) => return Ok(value),
        Some(Err(error)) => Some(error),
        None => None,
    };
    let text: Cow<'_, str> = json::without_lone_surrogates(text).map_or(text.into(), Cow::from);
    let marked = literal::mark_numbers(&text);
    let value = serde_json::from_str(marked.as_deref().unwrap_or(&text));
    if let (Ok(_), Some(marked)) = (&value, &marked) {
        literal::remember(path, line, marked);
    }
    value.map_err(|error| first_error.unwrap_or(error))
}

/// Returns the text of an id: a string, or the digits of a whole number.
pub fn id(value: &Value) -> Option<String> {
    match value {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) if !id.is_f64() => Some(id.to_string()),
        other => literal(other).filter(|id| literal::is_integer(id)).map(str::to_owned),
    }
}

/// Returns true if a value has the type of an [`id`].
pub(crate) fn is_id(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Number(id) => !id.is_f64(),
        other => literal(other).is_some_and(literal::is_integer),
    }
}

/// Largest whole number of a record: no count comes close to it, and sums of such numbers fit 64 bits.
const MOST: u64 = u32::MAX as u64;

/// Returns a whole number ≥ 0 that is a count or position: of lines, list elements or tokens.
pub fn count(value: &Value) -> Option<usize> {
    value.as_u64().filter(|count| *count <= MOST).and_then(|count| usize::try_from(count).ok())
}

/// Describes why a value is not a [`count`].
pub(crate) fn not_a_count(value: &Value) -> String {
    match value {
        Value::Number(number) if value.as_u64().is_some() => {
            format!("must be a whole number from 0 to {MOST}, not {number}")
        }
        Value::Number(number) => format!("must be a whole number from 0, not {number}"),
        other => format!("must be a whole number, not {}", kind(other)),
    }
}

/// Describes a range of numbers.
pub(crate) fn range(least: f64, most: f64) -> String {
    match (least.is_finite(), most.is_finite()) {
        (true, true) => format!("between {least} and {most}"),
        (true, false) => format!("a number from {least}"),
        _ => format!("at most {most}"),
    }
}

/// Parses the JSON object on a line of a file.
///
/// # Errors
/// The line is not a JSON object.
pub fn parse(path: &Path, line: usize, bytes: &[u8]) -> Result<Object> {
    if is_too_long(bytes) {
        let reason = format!("too long for a record: more than {} MiB", LONGEST_LINE >> 20);
        return Err(Error::record(path, line, reason));
    }
    // Some editors put a byte-order mark at the start of a file.
    let bytes = if line == 1 { json::without_byte_order_mark(bytes) } else { bytes };
    let bytes = bytes.trim_ascii_end();
    let parsed = value(path, line, bytes);
    if line == 1
        && !matches!(parsed, Ok(Value::Object(_)))
        && let Some(format) = OtherFormat::from_start(bytes)
    {
        return Err(format.refuse(path));
    }
    match parsed {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(Error::record(
            path,
            line,
            format!("a JSON object is expected, not {}", kind(&other)),
        )),
        Err(e) if e.is_data() => Err(Error::record(path, line, e.to_string())),
        // serde_json counts lines in the given text, so only the column is meaningful here.
        Err(e) => {
            let text = e.to_string();
            let what = text.split(" at line ").next().unwrap_or(&text);
            Err(Error::record(path, line, format!("not JSON: {what} (column {})", e.column())))
        }
    }
}

/// Returns the name of a JSON value's type, for messages: "a string".
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => match literal(value) {
            None => "an object",
            Some("NaN") => "NaN",
            Some("Infinity") => "Infinity",
            Some("-Infinity") => "-Infinity",
            Some(number) if literal::is_integer(number) => "an integer beyond 64 bits",
            Some(_) => "a number beyond 64 bits",
        },
    }
}

/// Reads typed fields of one record; its errors name the file, the line and the field.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    path: &'a Path,
    line: usize,
    /// Path of the object in the record: `metadata.`, or empty at the top level.
    prefix: &'a str,
    object: &'a Object,
}

impl<'a> Fields<'a> {
    /// Creates a reader of the record at `line` of `path`; `prefix` precedes field names in errors.
    pub fn new(path: &'a Path, line: usize, prefix: &'a str, object: &'a Object) -> Self {
        Self { path, line, prefix, object }
    }

    /// Returns the prefix of field names in errors.
    pub fn prefix(&self) -> &'a str {
        self.prefix
    }

    /// Creates a reader of an object nested in this one.
    pub fn below(&self, prefix: &'a str, object: &'a Object) -> Self {
        Self { prefix, object, ..*self }
    }

    /// Returns the field `task_id`: a string, or the digits of a number.
    ///
    /// # Errors
    /// The field is missing or of another type.
    pub fn task_id(&self) -> Result<String> {
        self.id("task_id")
    }

    /// Returns a required id: a string, or the digits of a whole number.
    ///
    /// # Errors
    /// The field is missing or of another type.
    pub fn id(&self, name: &str) -> Result<String> {
        self.require(name, "a string", id)
    }

    /// Returns true if a field is present and not `null`.
    pub fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| !value.is_null())
    }

    /// Returns an error that names this record.
    pub fn error(&self, reason: impl Into<Message>) -> Error {
        Error::record(self.path, self.line, reason)
    }

    fn missing(&self, name: &str) -> Error {
        self.error(format!("field '{}{name}' is missing", self.prefix))
    }

    fn wrong(&self, name: &str, wanted: &str, found: &Value) -> Error {
        self.error(format!("field '{}{name}' must be {wanted}, not {}", self.prefix, kind(found)))
    }

    /// Returns a required field; `get` selects the type, and `wanted` names it in the error.
    fn require<T>(
        &self,
        name: &str,
        wanted: &str,
        get: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<T> {
        let value = self.object.get(name).ok_or_else(|| self.missing(name))?;
        get(value).ok_or_else(|| self.wrong(name, wanted, value))
    }

    /// Returns a required string.
    ///
    /// # Errors
    /// The field is missing or of another type.
    pub fn string(&self, name: &str) -> Result<&'a str> {
        self.require(name, "a string", Value::as_str)
    }

    /// Returns a whole number ≥ 0 under the first of `names` that is present and not `null`.
    ///
    /// # Errors
    /// None of these fields is present, or the field has another type or is negative.
    pub fn count(&self, names: &[&str]) -> Result<usize> {
        let there = names.iter().filter_map(|name| Some((name, self.object.get(*name)?)));
        let first = there.clone().find(|(_, value)| !value.is_null()).or(there.clone().next());
        let Some((name, value)) = first else {
            return Err(self.missing(names.first().unwrap_or(&"")));
        };
        let wrong = || format!("field '{}{name}' {}", self.prefix, not_a_count(value));
        count(value).ok_or_else(|| self.error(wrong()))
    }

    /// Returns a field that may be missing or `null`; `get` selects the type, and `wanted` names it in the error.
    fn optional<T>(
        &self,
        name: &str,
        wanted: &str,
        get: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => get(value).map(Some).ok_or_else(|| self.wrong(name, wanted, value)),
        }
    }

    /// Returns a string that may be missing or `null`.
    ///
    /// # Errors
    /// The field is of another type.
    pub fn optional_string(&self, name: &str) -> Result<Option<&'a str>> {
        self.optional(name, "a string", Value::as_str)
    }

    /// Returns a boolean that may be missing or `null`.
    ///
    /// # Errors
    /// The field is of another type.
    pub fn optional_flag(&self, name: &str) -> Result<Option<bool>> {
        self.optional(name, "a boolean", Value::as_bool)
    }

    /// Returns a whole number ≥ 0 that may be missing or `null`.
    ///
    /// # Errors
    /// The field is of another type or negative.
    pub fn optional_count(&self, name: &str) -> Result<Option<usize>> {
        match self.object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.count(&[name]).map(Some),
        }
    }

    /// Returns a number that may be missing or `null`.
    ///
    /// # Errors
    /// The field is of another type.
    pub fn optional_number(&self, name: &str) -> Result<Option<f64>> {
        self.optional(name, "a number", Value::as_f64)
    }

    /// Returns a number from 0 to `most` that may be missing or `null`.
    ///
    /// # Errors
    /// The field is of another type, or out of this range.
    pub fn optional_within(&self, name: &str, most: f64) -> Result<Option<f64>> {
        let number = self.optional_number(name)?;
        match number.filter(|number| !(0.0..=most).contains(number)) {
            None => Ok(number),
            Some(wrong) => {
                let range = range(0.0, most);
                Err(self
                    .error(format!("field '{}{name}' must be {range}, not {wrong}", self.prefix)))
            }
        }
    }

    /// Returns a required object.
    ///
    /// # Errors
    /// The field is missing or of another type.
    pub fn object(&self, name: &str) -> Result<&'a Object> {
        self.require(name, "an object", Value::as_object)
    }

    /// Returns a required list.
    ///
    /// # Errors
    /// The field is missing or of another type.
    pub fn list(&self, name: &str) -> Result<&'a [Value]> {
        self.require(name, "a list", |value| value.as_array().map(Vec::as_slice))
    }

    /// Returns a required list of strings.
    ///
    /// # Errors
    /// The field is missing, is not a list, or contains something else.
    pub fn strings(&self, name: &str) -> Result<Vec<&'a str>> {
        let element = |value: &'a Value| {
            value.as_str().ok_or_else(|| self.wrong(name, "a list of strings", value))
        };
        self.list(name)?.iter().map(element).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{KEPT, count as count_of};
    #[cfg(feature = "zstd")]
    use std::io::Write;

    #[test]
    fn one_bad_line_loses_no_other_and_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        std::fs::write(&path, "\u{feff}{\"a\": 1}\n\n[1]\n{\"a\": \n{\"a\": \"x\"}").unwrap();
        let mut seen = Vec::new();
        let problems = for_each(&path, |at, object| {
            seen.push(Fields::new(&path, at.line, "", &object).count(&["a"])?);
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [1]);
        let text: Vec<String> = problems.iter().map(|p| p.to_string()).collect();
        assert!(text[0].ends_with("x.jsonl:3: a JSON object is expected, not a list"), "{text:?}");
        assert!(text[1].contains("x.jsonl:4: not JSON: EOF while parsing a value"), "{text:?}");
        assert!(
            text[2].ends_with("x.jsonl:5: field 'a' must be a whole number, not a string"),
            "{text:?}"
        );
    }

    #[test]
    fn a_file_of_wrong_lines_keeps_some_and_counts_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        std::fs::write(&path, "[]\n".repeat(KEPT + 5)).unwrap();
        let mut problems = for_each(&path, |_, _| Ok(())).unwrap();
        assert_eq!((problems.len(), count_of(&problems)), (KEPT + 1, KEPT + 5));
        let last = problems[KEPT].to_string();
        assert!(last.ends_with("x.jsonl: 5 more problems, which are not listed"), "{last}");
        // A list with problems of several files; a number of further problems is added to another list.
        keep(&mut problems, Path::new("y"), Error::record(Path::new("y"), 1, "wrong"));
        assert_eq!((problems.len(), count_of(&problems)), (KEPT + 2, KEPT + 6));
        let rest = problems.remove(KEPT);
        keep(&mut problems, &path, rest);
        assert_eq!(count_of(&problems), KEPT + 6);
    }

    #[test]
    fn a_line_of_too_many_values_is_named() {
        let line =
            |values: usize| format!("{{\"a\": [{}0]}}", "0,".repeat(values - 4)).into_bytes();
        let most = MOST_VALUES as usize;
        parse("t.jsonl".as_ref(), 2, &line(most)).unwrap();
        let error = parse("t.jsonl".as_ref(), 2, &line(most + 1)).unwrap_err().to_string();
        assert_eq!(error, "t.jsonl:2: has more than 4194304 JSON values");
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_told() {
        let mut text = &b"{}\n{\"a\": \"xxxxxxxxxxxxxxxxxxxx\"}\n{\"b\": 1}\n"[..];
        let mut lines = Vec::new();
        while read_line(&mut text, || 12, &mut lines).unwrap() > 0 {}
        assert_eq!(lines, b"{}\n\0too long\n{\"b\": 1}\n");
        // Also for a line without a line end, and for the rest of a line.
        let mut line = b"{\"a".to_vec();
        assert_eq!(read_line(&mut &[b'x'; 13][..], || 12, &mut line).unwrap(), TOO_LONG.len());
        assert_eq!(line, [b"{\"a", TOO_LONG].concat());
        let error = parse(Path::new("x"), 7, &line).unwrap_err().to_string();
        assert_eq!(error, "x:7: too long for a record: more than 64 MiB");
    }

    /// Reads a line of 80 MB in a file of half a megabyte.
    #[cfg(feature = "zstd")]
    #[test]
    fn a_long_line_of_a_compressed_file_is_named_and_the_others_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl.zst");
        let mut zstd = zstd::stream::write::Encoder::new(File::create(&path).unwrap(), 1).unwrap();
        // Digits in random order, so that the compressed file is not tiny.
        let mut digits = String::new();
        for number in 0u64..16_000 {
            digits += blake3::hash(&number.to_le_bytes()).to_hex().as_str();
        }
        write!(zstd, "{{\"a\": \"{digits}\"}}\n\n{{\"a\": \"").unwrap();
        for _ in 0..80 {
            zstd.write_all(&[b'x'; 1 << 20]).unwrap();
        }
        zstd.write_all(b"\"}\n{\"a\": \"\"}\n").unwrap();
        zstd.finish().unwrap();
        let mut reader = Reader::open(&path).unwrap();
        let mut lines = Vec::new();
        while let Some((at, bytes)) = reader.next_record().unwrap() {
            lines.push((at.line, bytes.len()));
        }
        assert_eq!(lines, [(1, digits.len() + 10), (3, TOO_LONG.len()), (4, 10)]);
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn compressed_files_are_known_by_their_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tasks");
        let level = flate2::Compression::fast();
        let mut encoder = flate2::write::GzEncoder::new(File::create(&path).unwrap(), level);
        encoder.write_all(b"{\"a\": 7}\n").unwrap();
        encoder.finish().unwrap();
        // Two frames, as in a file that was appended to.
        let frame = |text: &str| zstd::stream::encode_all(text.as_bytes(), 1).unwrap();
        let zstd = [frame("{\"a\": 3}\n"), frame("{\"a\": 4}\n")].concat();
        let other = dir.path().join("other");
        std::fs::write(&other, zstd).unwrap();
        for path in [path, other] {
            let mut sum = 0;
            for_each(&path, |_, object| {
                sum += object["a"].as_u64().unwrap();
                Ok(())
            })
            .unwrap();
            assert_eq!(sum, 7);
        }
    }
}
