//! Rows of Parquet files. Only the needed columns are read, row by row. Memory holds one page of each column, and one row,
//! whose texts are limited to the size of a repository and whose files are limited to the length of a list.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use parquet::basic::{Repetition, Type as PhysicalType};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type};
use repoformer_store::error::{Error, Result};
use repoformer_store::files::File;
use repoformer_store::parquet::{
    self as tables, BoundedPages, DecodedBytes, MOST_TIMES, most_bytes,
};

use super::{FILES, NO_TEXT, PATH, Problem, REPOSITORY, RowPosition, Rows, STARS, TEXT};

/// Number of bytes that a file counts for in addition to its path and text.
const OF_FILE: u64 = 16;
/// Greatest number of rows per byte of a file; no file of texts has more.
const MOST_ROWS: u64 = 8;

type Outcome<T> = Result<T, ParquetError>;

/// Indexes of the needed columns.
struct Columns {
    repository: usize,
    path: usize,
    text: usize,
    stars: Option<usize>,
    /// True if a row is a repository, with lists of paths and texts.
    are_lists: bool,
}

impl Columns {
    fn from_schema(schema: &SchemaDescriptor) -> Result<Self, (String, Option<&'static str>)> {
        let lists = |names: &[&str]| {
            names.iter().find_map(|name| {
                schema.columns().iter().position(|column| {
                    let parts = column.path().parts();
                    parts.len() > 1 && parts[0] == FILES && parts.last().is_some_and(|l| l == name)
                })
            })
        };
        let flat = |names: &[&str]| {
            names.iter().find_map(|name| {
                schema.columns().iter().position(|column| column.path().parts() == [*name])
            })
        };
        let mut fields = schema.root_schema().get_fields().iter();
        let are_lists = fields.any(|field| field.name() == FILES && !field.is_primitive());
        let within = if are_lists { "files." } else { "" };
        let find = |names: &[&str], is_listed: bool| {
            let found = if is_listed { lists(names) } else { flat(names) };
            found.ok_or_else(|| {
                let within = if is_listed { within } else { "" };
                let known: Vec<String> =
                    names.iter().map(|name| format!("{within}{name}")).collect();
                let fields = schema.root_schema().get_fields().iter().map(|field| field.name());
                let there = fields.take(40).collect::<Vec<_>>().join(", ");
                let is_v2 = names == TEXT
                    && schema.columns().iter().any(|column| column.name() == "blob_id");
                let reason = format!("has no column {}; it has {there}", known.join(" or "));
                (reason, is_v2.then_some(NO_TEXT))
            })
        };
        let columns = Self {
            repository: find(&REPOSITORY, false)?,
            path: find(&PATH, are_lists)?,
            text: find(&TEXT, are_lists)?,
            stars: flat(&STARS),
            are_lists,
        };
        for (number, levels) in [
            (columns.repository, 0),
            (columns.path, i16::from(are_lists)),
            (columns.text, i16::from(are_lists)),
        ] {
            let column = schema.column(number);
            if column.physical_type() != PhysicalType::BYTE_ARRAY
                || column.max_rep_level() != levels
            {
                let kind = column.physical_type().to_string().to_lowercase();
                return Err((format!("column {} is not text: {kind}", column.path()), None));
            }
        }
        if let Some(column) = columns.stars.map(|number| schema.column(number))
            && Stars::from_column(&column, Box::new(NoPages)).is_none()
        {
            return Err((format!("column {} is not a number", column.path()), None));
        }
        Ok(columns)
    }
}

impl Rows<'_> {
    /// Reads a Parquet file. A row group or page that cannot be read is reported, and the others are read.
    pub(super) fn parquet(&mut self) -> Result<()> {
        let cannot_open = |e| Error::reading(self.input, "open this file", e);
        let file = File::open(self.input).map_err(cannot_open)?;
        let bytes = file.metadata().map_err(cannot_open)?.len();
        let table = match tables::open(file) {
            Ok(table) => table,
            Err(error) => return self.unreadable("cannot read this Parquet table", error),
        };
        let metadata = table.metadata();
        let schema = metadata.file_metadata().schema_descr();
        let columns = match Columns::from_schema(schema) {
            Ok(columns) => columns,
            Err((reason, hint)) => {
                let hint = hint.map(str::to_owned);
                self.tally.problem(Problem { hint, ..Problem::new(self.input, reason) });
                return Ok(());
            }
        };
        let counts = metadata.row_groups().iter().map(|group| group.num_rows());
        let counts: Vec<u64> = counts.map(|rows| u64::try_from(rows).unwrap_or(0)).collect();
        let all = counts.iter().fold(0u64, |sum, rows| sum.saturating_add(*rows));
        if all > bytes.saturating_mul(MOST_ROWS) {
            self.problem(None, format!("damaged: its header promises {all} rows in {bytes} bytes"));
            return Ok(());
        }
        let (mut row, mut left, decoded) = (0, most_bytes(bytes), DecodedBytes::of_file(bytes));
        for (number, rows) in counts.into_iter().enumerate() {
            let (end, decoded) = (row + rows, &decoded);
            let mut reading = Group { table: &table, number, columns: &columns, decoded, row, end };
            if let Err(lost) = reading.read(self, &mut left)? {
                let (first, last) = (reading.row + 1, reading.end);
                let of = format!("row group {}: rows {first} to {last} are lost", number + 1);
                self.unreadable(&of, lost)?;
            }
            if left == 0 || decoded.are_exceeded() {
                let reason = format!(
                    "its texts are more than {MOST_TIMES} times as large as the file, which looks \
                     malicious; the rest is left out"
                );
                self.problem(None, reason);
                break;
            }
            row = reading.end;
        }
        Ok(())
    }

    /// Records unreadable data; an error of the disk ends the work.
    fn unreadable(&mut self, what: &str, error: ParquetError) -> Result<()> {
        if let ParquetError::External(cause) = &error
            && let Some(io) = cause.downcast_ref::<std::io::Error>()
            && let Some(code) = io.raw_os_error()
        {
            let reason = std::io::Error::from_raw_os_error(code);
            return Err(Error::reading(self.input, "read this file", reason));
        }
        let reason = match &error {
            // The crate's message names a feature of its compilation.
            ParquetError::General(words) if words.starts_with("Disabled feature") => {
                let codec = words.rsplit(' ').next().unwrap_or_default();
                format!(
                    "compressed with {codec}, which is not supported; write the file again with \
                     Snappy, zstd, gzip or no compression"
                )
            }
            _ => error.to_string(),
        };
        self.problem(None, format!("{what}: {reason}"));
        Ok(())
    }
}

fn damage_error() -> ParquetError {
    ParquetError::General("it is damaged".into())
}

/// Row group that is being read.
struct Group<'t> {
    table: &'t dyn FileReader,
    number: usize,
    columns: &'t Columns,
    decoded: &'t DecodedBytes,
    /// Number of the file's rows that are done.
    row: u64,
    /// Number of the file's rows that are done after this group.
    end: u64,
}

impl Group<'_> {
    /// Reads its rows; returns `Ok(Err)` if the rows from `self.row` on cannot be read.
    fn read(&mut self, rows: &mut Rows<'_>, left: &mut u64) -> Result<Outcome<()>> {
        let begin = self.row;
        let opened = catch_unwind(AssertUnwindSafe(|| self.open(rows.settings.max_repository)));
        let mut readers = match opened.unwrap_or_else(|_| Err(damage_error())) {
            Ok(readers) => readers,
            Err(error) => return Ok(Err(error)),
        };
        while self.row < self.end && *left > 0 {
            let next = catch_unwind(AssertUnwindSafe(|| readers.next(self.columns.are_lists)));
            let mut next = next.unwrap_or_else(|_| Err(damage_error()));
            if next.is_err() && readers.budget.is_exceeded() {
                let place = Some(RowPosition::Row(self.row + 1));
                let name = readers.repository.values.first().map(ByteArray::data);
                let name = super::shorten_name(&String::from_utf8_lossy(name.unwrap_or_default()));
                let most = rows.settings.max_repository >> 20;
                rows.problem(place, format!("{name}: left out: more than {most} MiB"));
                *left = left.saturating_sub(rows.settings.max_repository);
                let skipped = catch_unwind(AssertUnwindSafe(|| {
                    self.open_lists(&mut readers, self.row + 1 - begin)
                }));
                if let Err(error) = skipped.unwrap_or_else(|_| Err(damage_error())) {
                    return Ok(Err(error));
                }
                next = Ok(false);
            }
            match next {
                Ok(true) => readers.take(rows, RowPosition::Row(self.row + 1), left)?,
                Ok(false) => {}
                Err(error) => return Ok(Err(error)),
            }
            self.row += 1;
        }
        Ok(Ok(()))
    }

    fn column(&self, number: usize, budget: Option<&Budget>) -> Outcome<Texts> {
        let (descriptor, pages) = self.pages(number)?;
        let schema = self.table.metadata().file_metadata().schema_descr();
        let element = element_level(schema.root_schema(), descriptor.path().parts());
        let pages: Box<dyn PageReader> = match budget {
            Some(budget) => Box::new(PageBudget { pages, budget: budget.clone(), row: 0 }),
            None => pages,
        };
        Ok(Texts::new(descriptor, element, pages))
    }

    fn pages(&self, number: usize) -> Outcome<(ColumnDescPtr, Box<dyn PageReader>)> {
        let schema = self.table.metadata().file_metadata().schema_descr();
        let pages = self.table.get_row_group(self.number)?.get_column_page_reader(number)?;
        let column = schema.column(number);
        let pages = BoundedPages::new(pages, column.max_rep_level(), self.decoded);
        Ok((column, Box::new(pages)))
    }

    fn open(&self, most: u64) -> Outcome<Readers> {
        let budget = Budget::new(most);
        let stars = match self.columns.stars {
            Some(number) => {
                let (descriptor, pages) = self.pages(number)?;
                Stars::from_column(&descriptor, pages)
            }
            None => None,
        };
        Ok(Readers {
            repository: self.column(self.columns.repository, None)?,
            path: self.column(self.columns.path, Some(&budget))?,
            text: self.column(self.columns.text, Some(&budget))?,
            stars,
            stars_of_row: 0,
            budget,
        })
    }

    /// Reopens the lists of a group after its first `rows` rows.
    fn open_lists(&self, readers: &mut Readers, rows: u64) -> Outcome<()> {
        readers.budget.lift();
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        for (number, texts) in
            [(self.columns.path, &mut readers.path), (self.columns.text, &mut readers.text)]
        {
            *texts = self.column(number, Some(&readers.budget))?;
            if texts.reader.skip_records(rows)? != rows {
                return Err(ends_early());
            }
        }
        Ok(())
    }
}

fn ends_early() -> ParquetError {
    ParquetError::General("a column ends early".into())
}

/// Readers of the columns of a row group, and their values of one row.
struct Readers {
    repository: Texts,
    path: Texts,
    text: Texts,
    stars: Option<Stars>,
    stars_of_row: u64,
    budget: Budget,
}

impl Readers {
    /// Reads a row.
    fn next(&mut self, are_lists: bool) -> Outcome<bool> {
        self.budget.begin();
        self.repository.next()?;
        self.stars_of_row = match &mut self.stars {
            Some(stars) => stars.next()?,
            None => 0,
        };
        self.path.next()?;
        self.text.next()?;
        if are_lists && self.path.elements().count() != self.text.elements().count() {
            return Err(ParquetError::General("its lists differ in length".into()));
        }
        Ok(true)
    }

    /// Passes on the files of the row.
    fn take(&self, rows: &mut Rows<'_>, place: RowPosition, left: &mut u64) -> Result<()> {
        let repository = self.repository.elements().next().flatten();
        let Some(repository) = repository else {
            rows.problem(Some(place), "has no repository name");
            return Ok(());
        };
        for (path, text) in self.path.elements().zip(self.text.elements()) {
            let bytes = [path, text].into_iter().flatten().map(<[u8]>::len).sum::<usize>() as u64;
            *left = left.saturating_sub(bytes + OF_FILE);
            if *left == 0 {
                return Ok(());
            }
            match (path, text) {
                (Some(path), Some(text)) => {
                    rows.file(place, repository, path, text, self.stars_of_row)?;
                }
                (path, _) => {
                    rows.tally.rows += 1;
                    let names = [Some(repository), path].into_iter().flatten();
                    let names =
                        names.map(|name| super::shorten_name(&String::from_utf8_lossy(name)));
                    let what = if path.is_some() { "text" } else { "path" };
                    let reason = format!("{}: has no {what}", names.collect::<Vec<_>>().join(": "));
                    rows.problem(Some(place), reason);
                }
            }
        }
        Ok(())
    }
}

/// Returns the smallest definition level that represents an element: of a list, or of a column without lists.
fn element_level(schema: &Type, parts: &[String]) -> i16 {
    let (mut level, mut element, mut node) = (0, 0, schema);
    for part in parts {
        let Some(field) = node.get_fields().iter().find(|field| field.name() == part) else {
            break;
        };
        match field.get_basic_info().repetition() {
            Repetition::OPTIONAL => level += 1,
            Repetition::REPEATED => {
                level += 1;
                element = level;
            }
            Repetition::REQUIRED => {}
        }
        if field.is_primitive() {
            break;
        }
        node = field;
    }
    element
}

/// Column of texts, and the texts of the row that was read last.
struct Texts {
    reader: ColumnReaderImpl<ByteArrayType>,
    values: Vec<ByteArray>,
    definition: Vec<i16>,
    repetition: Vec<i16>,
    /// Level of a text that is present.
    present: i16,
    /// Level of an element, present or not.
    element: i16,
}

impl Texts {
    fn new(descriptor: ColumnDescPtr, element: i16, pages: Box<dyn PageReader>) -> Self {
        let present = descriptor.max_def_level();
        let reader = ColumnReaderImpl::new(descriptor, pages);
        let (values, definition, repetition) = (Vec::new(), Vec::new(), Vec::new());
        Self { reader, values, definition, repetition, present, element }
    }

    fn next(&mut self) -> Outcome<()> {
        self.values.clear();
        self.definition.clear();
        self.repetition.clear();
        let levels = (Some(&mut self.definition), Some(&mut self.repetition));
        let (rows, _, _) = self.reader.read_records(1, levels.0, levels.1, &mut self.values)?;
        if rows == 1 { Ok(()) } else { Err(ends_early()) }
    }

    /// Returns the texts of the row; `None` for missing ones.
    fn elements(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut values = self.values.iter().map(ByteArray::data);
        let always = if self.present == 0 { &[0][..] } else { &[] };
        let levels = always.iter().chain(&self.definition);
        let elements = levels.filter(|level| **level >= self.element);
        elements.map(move |level| if *level == self.present { values.next() } else { None })
    }
}

/// Column of numbers.
enum Stars {
    Int(ColumnReaderImpl<Int32Type>),
    Long(ColumnReaderImpl<Int64Type>),
    Float(ColumnReaderImpl<FloatType>),
    Double(ColumnReaderImpl<DoubleType>),
}

impl Stars {
    /// Returns the reader of a column; `None` if it is not a column of numbers.
    fn from_column(column: &ColumnDescPtr, pages: Box<dyn PageReader>) -> Option<Self> {
        let descriptor = Arc::clone(column);
        Some(match column.physical_type() {
            PhysicalType::INT32 => Self::Int(ColumnReaderImpl::new(descriptor, pages)),
            PhysicalType::INT64 => Self::Long(ColumnReaderImpl::new(descriptor, pages)),
            PhysicalType::FLOAT => Self::Float(ColumnReaderImpl::new(descriptor, pages)),
            PhysicalType::DOUBLE => Self::Double(ColumnReaderImpl::new(descriptor, pages)),
            _ => return None,
        })
    }

    /// Returns the number of the next row; 0 if it has none.
    fn next(&mut self) -> Outcome<u64> {
        Ok(match self {
            Self::Int(reader) => next(reader)?.map_or(0, |stars| stars.max(0) as u64),
            Self::Long(reader) => next(reader)?.map_or(0, |stars| stars.max(0) as u64),
            Self::Float(reader) => next(reader)?.map_or(0, |stars| stars as u64),
            Self::Double(reader) => next(reader)?.map_or(0, |stars| stars as u64),
        })
    }
}

fn next<T: DataType>(reader: &mut ColumnReaderImpl<T>) -> Outcome<Option<T::T>> {
    let (mut values, mut definition) = (Vec::new(), Vec::new());
    let (rows, _, _) = reader.read_records(1, Some(&mut definition), None, &mut values)?;
    if rows == 1 { Ok(values.pop()) } else { Err(ends_early()) }
}

/// Limit on the bytes of pages that one row may use, beyond the first page of each column, which other rows share.
#[derive(Debug, Clone)]
struct Budget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    most: u64,
    row: AtomicU64,
    left: AtomicU64,
    is_exceeded: AtomicBool,
}

impl Budget {
    fn new(most: u64) -> Self {
        let (row, left) = (AtomicU64::new(0), AtomicU64::new(most));
        Self(Arc::new(BudgetState { most, row, left, is_exceeded: AtomicBool::new(false) }))
    }

    /// Starts a row.
    fn begin(&self) {
        self.0.row.fetch_add(1, Relaxed);
        self.0.left.store(self.0.most, Relaxed);
        self.0.is_exceeded.store(false, Relaxed);
    }

    /// Lets all pages pass until the next row.
    fn lift(&self) {
        self.0.left.store(u64::MAX, Relaxed);
    }

    fn is_exceeded(&self) -> bool {
        self.0.is_exceeded.load(Relaxed)
    }

    fn spend(&self, bytes: usize) -> Outcome<()> {
        let left = self.0.left.load(Relaxed).checked_sub(bytes as u64);
        self.0.left.store(left.unwrap_or(0), Relaxed);
        self.0.is_exceeded.store(left.is_none(), Relaxed);
        left.map(|_| ()).ok_or_else(|| ParquetError::General("the row is too long".into()))
    }
}

/// Pages with a limit on the bytes that a row may use.
struct PageBudget {
    pages: Box<dyn PageReader>,
    budget: Budget,
    /// Number of the row that read the last page.
    row: u64,
}

impl Iterator for PageBudget {
    type Item = Outcome<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for PageBudget {
    fn get_next_page(&mut self) -> Outcome<Option<Page>> {
        let page = self.pages.get_next_page()?;
        let row = self.budget.0.row.load(Relaxed);
        let is_first = std::mem::replace(&mut self.row, row) != row;
        match &page {
            Some(page) if !is_first => self.budget.spend(page.buffer().len())?,
            _ => {}
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Outcome<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Outcome<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Outcome<Option<Page>> {
        self.pages.take_deferred_dictionary()
    }

    fn at_record_boundary(&mut self) -> Outcome<bool> {
        self.pages.at_record_boundary()
    }
}

/// Reader without pages, for a reader that is only asked for its type.
struct NoPages;

impl Iterator for NoPages {
    type Item = Outcome<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}

impl PageReader for NoPages {
    fn get_next_page(&mut self) -> Outcome<Option<Page>> {
        Ok(None)
    }

    fn peek_next_page(&mut self) -> Outcome<Option<PageMetadata>> {
        Ok(None)
    }

    fn skip_next_page(&mut self) -> Outcome<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use parquet::schema::parser::parse_message_type;
    use repoformer_store::parquet::{column, writer};

    use super::super::{RowSettings, Tally};
    use super::*;

    /// Lists of equal elements, millions of which take a few kilobytes.
    #[test]
    fn a_list_without_end_is_named_and_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.parquet");
        let schema = "message table { required binary repo_name; required group files (LIST) { \
             repeated group list { required group element { \
             required binary path; required binary content; } } } }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut file = writer(std::fs::File::create(&path).unwrap(), schema).unwrap();
        for files in [3, 4_200_000] {
            let mut group = file.next_row_group().unwrap();
            column::<ByteArrayType>(&mut group, &["o/r".into()], None, None).unwrap();
            for text in ["a.py", "x = 1\n"] {
                let texts = vec![ByteArray::from(text); files];
                let mut repetition = vec![1; files];
                repetition[0] = 0;
                let present = vec![1; files];
                column::<ByteArrayType>(&mut group, &texts, Some(&present), Some(&repetition))
                    .unwrap();
            }
            group.close().unwrap();
        }
        file.close().unwrap();
        let settings = RowSettings { language: None, max_repository: 256 << 20 };
        let mut taken = 0;
        let mut emit = |_: super::super::FileRow<'_>| {
            taken += 1;
            Ok(())
        };
        let mut rows = Rows::new(&path, settings, Tally::default(), &mut emit);
        rows.read(dir.path()).unwrap();
        let problems = std::mem::take(&mut rows.tally.problems);
        let reason = "row group 2: rows 2 to 2 are lost: Parquet error: a row has a list of more than 4194304 elements";
        assert_eq!(problems, [Problem::new(&path, reason)]);
        assert_eq!(taken, 3);
    }
}
