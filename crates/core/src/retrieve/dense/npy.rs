//! Reader of numpy's array files (`numpy.save`), which returns their rows as `f32`.

use std::io::Read;
use std::path::Path;

use repoformer_store::error::{Error, Result};

use super::import::{SCALE, is_too_small};

/// First bytes of an NPY file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
/// Maximum length of the header; headers usually have about a hundred bytes.
const LONGEST_HEADER: usize = 1 << 16;

/// An array of two dimensions, row by row.
#[derive(Debug, PartialEq)]
pub(super) struct Array {
    pub(super) rows: usize,
    pub(super) dim: usize,
    /// `rows × dim` finite numbers.
    pub(super) numbers: Vec<f32>,
}

/// Header as numpy's format description defines it: a Python dictionary with three fields.
struct Header {
    /// Type of the elements, as a Python literal.
    descr: String,
    /// Whether columns are stored one after another, instead of rows.
    fortran_order: bool,
    shape: Vec<usize>,
}

/// Type of the floating-point numbers in the file.
#[derive(Debug, Clone, Copy)]
struct Float {
    bytes: usize,
    big_endian: bool,
}

/// Reads an array of floating-point numbers with 16, 32 or 64 bits, in either byte order and either order of dimensions.
///
/// # Errors
/// The file is not such an array, is shorter or longer than its header states, or contains a number that is not finite.
pub(super) fn read(path: &Path, reader: &mut dyn Read) -> Result<Array> {
    let wrong = |reason: String, hint: &str| Error::vectors(path, "", reason, hint);
    let reading = |e| Error::reading(path, "read this file", e);
    let Some(header) = Header::read(reader).map_err(reading)? else {
        let reason = "this is not an NPY file, or its header is damaged".to_owned();
        return Err(wrong(reason, "save the array with numpy.save"));
    };
    let Some(float) = Float::from_descr(&header.descr) else {
        let reason =
            format!("has numbers of type {}; 16-, 32- or 64-bit floats are needed", header.descr);
        return Err(wrong(reason, "save it as array.astype('float32')"));
    };
    let [rows, dim] = header.shape[..] else {
        let (count, shape) = (header.shape.len(), &header.shape);
        let reason = format!("has {count} dimensions, {shape:?}; two are needed");
        let hint = "save one row per text, in the order of the file of texts";
        return Err(wrong(reason, hint));
    };
    // Any number of such rows would fit the file.
    if dim == 0 && rows > 0 {
        let reason = format!("its {rows} rows are empty");
        return Err(wrong(reason, "save a row of numbers for each text"));
    }
    let count = rows.checked_mul(dim);
    let Some(size) = count.and_then(|count| count.checked_mul(float.bytes)) else {
        let reason = format!("{rows} rows of {dim} numbers do not fit in memory");
        return Err(wrong(reason, "save the array again"));
    };
    let mut bytes = Vec::new();
    let read = reader.take(size as u64 + 1).read_to_end(&mut bytes);
    read.map_err(reading)?;
    if bytes.len() != size {
        let found = if bytes.len() > size { "more".into() } else { bytes.len().to_string() };
        let reason =
            format!("{rows} rows of {dim} numbers need {size} bytes, but the file has {found}");
        return Err(wrong(reason, "save the array again; it may be truncated"));
    }
    let mut numbers = Vec::with_capacity(rows * dim);
    for row in 0..rows {
        let mut largest = 0.0_f64;
        for column in 0..dim {
            let at = if header.fortran_order { column * rows + row } else { row * dim + column };
            let wide = float.decode(&bytes[at * float.bytes..][..float.bytes]);
            let number = wide as f32;
            if !number.is_finite() {
                let what = if wide.is_finite() { "too large for 32 bits" } else { "not finite" };
                let reason = format!("number {} is {wide}, {what}", column + 1);
                return Err(Error::vectors(
                    path,
                    &place(row),
                    reason,
                    "save finite 32-bit numbers only",
                ));
            }
            largest = largest.max(wide.abs());
            numbers.push(number);
        }
        if is_too_small(largest) {
            let reason = format!("its largest number is {largest:e}, too small for 32 bits");
            return Err(Error::vectors(path, &place(row), reason, SCALE));
        }
    }
    Ok(Array { rows, dim, numbers })
}

/// Returns a row's position for messages, counted as in numpy.
pub(super) fn place(row: usize) -> String {
    format!(" row {row} (counted from 0)")
}

impl Header {
    /// Reads magic, version, length and dictionary; `None` if they are not in the form that numpy writes.
    fn read(reader: &mut dyn Read) -> std::io::Result<Option<Self>> {
        let mut take = |length: usize| {
            let mut bytes = Vec::new();
            reader.take(length as u64).read_to_end(&mut bytes)?;
            Ok::<_, std::io::Error>(bytes)
        };
        let start = take(MAGIC.len() + 2)?;
        // Version 1 has two bytes for the header's length; later versions have four.
        let width = if start.get(MAGIC.len()) == Some(&1) { 2 } else { 4 };
        let length = take(width)?.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        if !start.starts_with(MAGIC) || length > LONGEST_HEADER {
            return Ok(None);
        }
        let text = take(length)?;
        Ok((text.len() == length).then(|| Self::parse(str::from_utf8(&text).ok()?)).flatten())
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| Some(text.split_once(&format!("'{name}':"))?.1.trim_start());
        let descr = field("descr")?;
        // A list, which describes records, ends before the next field.
        let end = match descr.strip_prefix('\'') {
            Some(rest) => rest.find('\'')? + 2,
            None => descr.find(", 'fortran_order'")?,
        };
        let shape = field("shape")?.strip_prefix('(')?.split_once(')')?.0;
        let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
        Some(Self {
            descr: descr[..end].to_owned(),
            fortran_order: field("fortran_order")?.starts_with("True"),
            shape: sizes.map(|size| size.parse().ok()).collect::<Option<_>>()?,
        })
    }
}

impl Float {
    fn from_descr(descr: &str) -> Option<Self> {
        match descr.as_bytes() {
            [b'\'', order @ (b'<' | b'>'), b'f', size @ (b'2' | b'4' | b'8'), b'\''] => {
                Some(Self { bytes: usize::from(size - b'0'), big_endian: *order == b'>' })
            }
            _ => None,
        }
    }

    fn decode(self, bytes: &[u8]) -> f64 {
        let push = |bits: u64, byte: &u8| bits << 8 | u64::from(*byte);
        let bits = if self.big_endian {
            bytes.iter().fold(0, push)
        } else {
            bytes.iter().rev().fold(0, push)
        };
        match self.bytes {
            2 => half(bits as u16),
            4 => f32::from_bits(bits as u32).into(),
            _ => f64::from_bits(bits),
        }
    }
}

/// Widens a 16-bit number: a sign, five bits of exponent, ten of fraction (IEEE 754 binary16).
fn half(bits: u16) -> f64 {
    let sign = u64::from(bits >> 15) << 63;
    let (exponent, fraction) = (u64::from(bits >> 10 & 31), u64::from(bits & 1023));
    match exponent {
        0 => f64::from_bits(sign | (fraction as f64 * 2.0_f64.powi(-24)).to_bits()),
        31 => f64::from_bits(sign | 0x7ff << 52 | fraction << 42),
        _ => f64::from_bits(sign | (exponent + 1023 - 15) << 52 | fraction << 42),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(bytes: &[u8]) -> Result<Array> {
        read(Path::new("v.npy"), &mut &bytes[..])
    }

    /// Returns an NPY file of version 1.0, written by hand as in numpy's format description.
    fn file(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n");
        let length = (header.len() as u16).to_le_bytes();
        [MAGIC, &[1, 0], &length, header.as_bytes(), data].concat()
    }

    #[test]
    fn every_number_of_sixteen_bits_is_read() {
        // The definition of IEEE 754: (−1)^s × 2^(e − 15) × 1.f, and without the 1 if e is 0.
        for bits in 0..=u16::MAX {
            let (exponent, fraction) =
                (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
            let size = match exponent {
                0 => fraction * 2.0_f64.powi(-14),
                31 if fraction == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (1.0 + fraction) * 2.0_f64.powi(exponent - 15),
            };
            let (expected, found) = (if bits >> 15 == 1 { -size } else { size }, half(bits));
            let both_nan = found.is_nan() && expected.is_nan();
            assert!(found.to_bits() == expected.to_bits() || both_nan, "{bits:#x}");
        }
    }

    #[test]
    fn numpys_files_of_every_type_hold_the_same_rows() {
        // Written by tests/fixtures/dense/arrays.py: row i has the numbers (i + 1) × [1, −0.5, 0.25].
        let expected: Vec<f32> =
            (1..=4).flat_map(|n| [1.0, -0.5, 0.25].map(|x: f32| x * n as f32)).collect();
        let files: [(&str, &[u8]); 6] = [
            ("f2", include_bytes!("../../../../../tests/fixtures/dense/f2.npy")),
            ("f4", include_bytes!("../../../../../tests/fixtures/dense/f4.npy")),
            ("f8", include_bytes!("../../../../../tests/fixtures/dense/f8.npy")),
            (
                "big-endian f4",
                include_bytes!("../../../../../tests/fixtures/dense/f4_big_endian.npy"),
            ),
            ("Fortran f4", include_bytes!("../../../../../tests/fixtures/dense/f4_fortran.npy")),
            (
                "Fortran big-endian f8",
                include_bytes!("../../../../../tests/fixtures/dense/f8_fortran_big_endian.npy"),
            ),
        ];
        for (name, bytes) in files {
            let array = read_bytes(bytes).unwrap();
            assert_eq!((array.rows, array.dim), (4, 3), "{name}");
            assert_eq!(array.numbers, expected, "{name}");
        }
    }

    #[test]
    fn arrays_that_cannot_serve_are_refused_in_words() {
        let good = include_bytes!("../../../../../tests/fixtures/dense/f4.npy");
        let row = [1.0_f32.to_le_bytes(), f32::NAN.to_le_bytes()].concat();
        for (bytes, reason) in [
            (
                &include_bytes!("../../../../../tests/fixtures/dense/i8.npy")[..],
                "numbers of type '<i8'",
            ),
            (
                include_bytes!("../../../../../tests/fixtures/dense/object.npy"),
                "numbers of type '|O'",
            ),
            (
                include_bytes!("../../../../../tests/fixtures/dense/one_dimension.npy"),
                "has 1 dimensions, [12]",
            ),
            (&good[..good.len() - 1], "4 rows of 3 numbers need 48 bytes, but the file has 47"),
            (&[good, &b"x"[..]].concat(), "need 48 bytes, but the file has more"),
            (&good[..40], "not an NPY file"),
            (MAGIC, "not an NPY file"),
            (
                &file("'<f4'", "(1, 2)", &row),
                "v.npy row 0 (counted from 0): number 2 is NaN, not finite",
            ),
            (&file("'<f8'", "(1, 1)", &1e300_f64.to_le_bytes()), "too large for 32 bits"),
            (&file("'<f8'", "(1, 1)", &1e-60_f64.to_le_bytes()), "too small for 32 bits"),
            (&file("'<f8'", "(4000000000, 4000000000)", &[]), "do not fit in memory"),
            // A loop over so many rows would take years.
            (&file("'<f4'", "(4000000000000000000, 0)", &[]), "rows are empty"),
        ] {
            let error = read_bytes(bytes).unwrap_err();
            assert!(error.to_string().contains(reason) && error.hint().is_some(), "{error}");
        }
    }
}
