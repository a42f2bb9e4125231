//! Arrays that numpy saved (`numpy.save`): their rows as `f32`.

use std::io::Read;
use std::path::Path;

use npyz::{DType, Endianness, NpyHeader, Order, TypeChar};

use super::import::wrong;
use crate::error::{Error, Result};

/// How an NPY file begins.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// An array of two dimensions, row by row.
#[derive(Debug, PartialEq)]
pub(super) struct Array {
    pub(super) rows: usize,
    pub(super) dim: usize,
    /// `rows × dim` finite numbers.
    pub(super) numbers: Vec<f32>,
}

/// A floating-point number as it lies in the file.
#[derive(Debug, Clone, Copy)]
struct Float {
    bytes: usize,
    big_endian: bool,
}

/// Reads an array of floating-point numbers of 16, 32 or 64 bits in either order of bytes and of dimensions.
///
/// # Errors
/// It is none, of another type or number of dimensions, shorter or longer than it says, or a number in it is not finite.
pub(super) fn read(path: &Path, reader: &mut dyn Read) -> Result<Array> {
    let header = NpyHeader::from_reader(&mut *reader).map_err(|e| {
        wrong(
            path,
            "",
            format!("no NPY file: {e}"),
            "save the array with numpy.save",
        )
    })?;
    let float = float(path, &header.dtype())?;
    let [rows, dim] = *header.shape() else {
        let reason = format!(
            "an array of {} dimensions, {:?}; two are needed",
            header.shape().len(),
            header.shape()
        );
        return Err(wrong(
            path,
            "",
            reason,
            "save a row for each text, in the order of the file of texts",
        ));
    };
    let size = rows
        .checked_mul(dim)
        .and_then(|count| count.checked_mul(float.bytes as u64));
    let Some(size) = size.filter(|size| usize::try_from(*size).is_ok()) else {
        return Err(wrong(
            path,
            "",
            format!("{rows} rows of {dim} numbers cannot be"),
            "save the array again",
        ));
    };
    let mut bytes = Vec::new();
    let read = (&mut *reader)
        .take(size.saturating_add(1))
        .read_to_end(&mut bytes);
    read.map_err(|e| Error::reading(path, "read this file", e))?;
    if bytes.len() as u64 != size {
        let reason = format!(
            "{rows} rows of {dim} numbers are {size} bytes, and there are {}",
            if bytes.len() as u64 > size {
                "more".into()
            } else {
                bytes.len().to_string()
            }
        );
        return Err(wrong(
            path,
            "",
            reason,
            "save the array again; it may have been cut off",
        ));
    }
    rows_of(
        path,
        &bytes,
        float,
        (rows as usize, dim as usize),
        header.order(),
    )
}

fn float(path: &Path, dtype: &DType) -> Result<Float> {
    if let DType::Plain(plain) = dtype
        && plain.type_char() == TypeChar::Float
        && let bytes @ (2 | 4 | 8) = plain.size_field()
    {
        let big_endian = plain.endianness() == Endianness::Big;
        return Ok(Float {
            bytes: bytes as usize,
            big_endian,
        });
    }
    let reason = format!(
        "an array of {}; floating-point numbers of 16, 32 or 64 bits are needed",
        dtype.descr()
    );
    Err(wrong(
        path,
        "",
        reason,
        "save it as array.astype('float32')",
    ))
}

/// Turns the file's numbers into rows.
fn rows_of(
    path: &Path,
    bytes: &[u8],
    float: Float,
    (rows, dim): (usize, usize),
    order: Order,
) -> Result<Array> {
    let mut numbers = Vec::with_capacity(rows * dim);
    for row in 0..rows {
        for column in 0..dim {
            let at = match order {
                Order::C => row * dim + column,
                Order::Fortran => column * rows + row,
            };
            let wide = float.decode(&bytes[at * float.bytes..][..float.bytes]);
            let number = wide as f32;
            if !number.is_finite() {
                let what = if wide.is_finite() {
                    "too large for 32 bits"
                } else {
                    "not finite"
                };
                let reason = format!("number {} is {wide}, {what}", column + 1);
                return Err(wrong(
                    path,
                    &place(row),
                    reason,
                    "a vector has finite numbers alone",
                ));
            }
            numbers.push(number);
        }
    }
    Ok(Array { rows, dim, numbers })
}

/// A row in messages, counted as numpy does.
pub(super) fn place(row: usize) -> String {
    format!(" row {row} (counted from 0)")
}

impl Float {
    fn decode(self, bytes: &[u8]) -> f64 {
        let mut little = [0; 8];
        for (at, byte) in bytes.iter().enumerate() {
            little[if self.big_endian {
                self.bytes - 1 - at
            } else {
                at
            }] = *byte;
        }
        let bits = u64::from_le_bytes(little);
        match self.bytes {
            2 => half(bits as u16),
            4 => f32::from_bits(bits as u32).into(),
            _ => f64::from_bits(bits),
        }
    }
}

/// A number of 16 bits: a sign, five bits of exponent, ten of fraction (IEEE 754 binary16).
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

    /// An NPY file of version 1.0 by hand, as numpy's format description has it.
    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let length = (header.len() as u16).to_le_bytes();
        [MAGIC, &[1, 0], &length, header.as_bytes(), data].concat()
    }

    #[test]
    fn every_number_of_sixteen_bits_is_read() {
        // The definition of IEEE 754: (−1)^s × 2^(e − 15) × 1.f, and without the 1 where e is 0.
        for bits in 0..=u16::MAX {
            let (sign, exponent, fraction) = (
                bits >> 15,
                i32::from(bits >> 10 & 31),
                f64::from(bits & 1023) / 1024.0,
            );
            let size = match exponent {
                0 => fraction * 2.0_f64.powi(-14),
                31 if fraction == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (1.0 + fraction) * 2.0_f64.powi(exponent - 15),
            };
            let expected = if sign == 1 { -size } else { size };
            let found = half(bits);
            assert!(
                found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()),
                "{bits:#x}"
            );
        }
    }

    #[test]
    fn numpys_files_of_every_type_hold_the_same_rows() {
        // Written by tests/fixtures/dense/arrays.py: rows i of numbers (i + 1) × [1, −0.5, 0.25].
        let expected: Vec<f32> = (1..=4)
            .flat_map(|n| [1.0, -0.5, 0.25].map(|x: f32| x * n as f32))
            .collect();
        let files: [(&str, &[u8]); 6] = [
            ("f2", include_bytes!("../../../tests/fixtures/dense/f2.npy")),
            ("f4", include_bytes!("../../../tests/fixtures/dense/f4.npy")),
            ("f8", include_bytes!("../../../tests/fixtures/dense/f8.npy")),
            (
                "big-endian f4",
                include_bytes!("../../../tests/fixtures/dense/f4_big_endian.npy"),
            ),
            (
                "Fortran f4",
                include_bytes!("../../../tests/fixtures/dense/f4_fortran.npy"),
            ),
            (
                "Fortran big-endian f8",
                include_bytes!("../../../tests/fixtures/dense/f8_fortran_big_endian.npy"),
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
        let good = include_bytes!("../../../tests/fixtures/dense/f4.npy");
        let refused = |bytes: &[u8]| read_bytes(bytes).unwrap_err();
        let text = |bytes: &[u8]| refused(bytes).to_string();
        assert!(
            text(include_bytes!("../../../tests/fixtures/dense/i8.npy"))
                .contains("an array of '<i8'")
        );
        assert!(
            text(include_bytes!("../../../tests/fixtures/dense/object.npy"))
                .contains("an array of '|O'")
        );
        assert!(
            text(include_bytes!(
                "../../../tests/fixtures/dense/one_dimension.npy"
            ))
            .contains("of 1 dimensions, [12]")
        );
        assert!(
            text(&good[..good.len() - 1])
                .ends_with("4 rows of 3 numbers are 48 bytes, and there are 47")
        );
        assert!(text(&[good, &b"x"[..]].concat()).ends_with("are 48 bytes, and there are more"));
        assert!(text(&good[..40]).contains("no NPY file"));
        assert!(text(MAGIC).contains("no NPY file"));
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}\n";
        let row = |x: f32, y: f32| file(header, &[x.to_le_bytes(), y.to_le_bytes()].concat());
        assert_eq!(read_bytes(&row(1.0, 2.0)).unwrap().numbers, [1.0, 2.0]);
        assert_eq!(
            text(&row(1.0, f32::NAN)),
            "v.npy row 0 (counted from 0): number 2 is NaN, not finite"
        );
        let wide = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1)}\n";
        assert!(text(&file(wide, &1e300_f64.to_le_bytes())).contains("too large for 32 bits"));
        let many = "{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000, 4000000000)}\n";
        assert!(text(&file(many, &[])).contains("cannot be"));
        assert!(refused(&good[..40]).hint().is_some());
    }
}
