//! Vectors in rows, and the exact cosine of each with a query.

use repoformer_store::artifact::{Column, Columns, Payload};
use repoformer_store::error::{Error, Result};

/// Number of sums computed in parallel, because the processor adds several numbers at once.
const LANES: usize = 16;

/// Vectors of the same size, row by row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matrix {
    dim: usize,
    rows: usize,
    /// `rows × dim` numbers.
    numbers: Vec<f32>,
    /// Sum of the squares of each row.
    squares: Vec<f64>,
}

impl Matrix {
    /// Creates a matrix without rows, for rows of `dim` numbers.
    pub fn new(dim: usize) -> Self {
        Self { dim, ..Self::default() }
    }

    /// Creates a matrix without rows, with capacity for `rows`.
    pub fn with_capacity(dim: usize, rows: usize) -> Self {
        Self {
            numbers: Vec::with_capacity(rows.saturating_mul(dim)),
            squares: Vec::with_capacity(rows),
            ..Self::new(dim)
        }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// The row has another size than the rows before it, or a number in it is not finite.
    pub fn push(&mut self, row: &[f32]) -> Result<()> {
        self.check_vector(row)?;
        self.numbers.extend_from_slice(row);
        self.squares.push(dot(row, row));
        self.rows += 1;
        Ok(())
    }

    /// Appends a row of zeros, whose cosine with everything is 0.
    pub fn push_zeros(&mut self) {
        self.numbers.resize(self.numbers.len() + self.dim, 0.0);
        self.squares.push(0.0);
        self.rows += 1;
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the number of numbers per row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Returns a row.
    ///
    /// # Panics
    /// The row does not exist.
    pub fn row(&self, index: usize) -> &[f32] {
        assert!(index < self.rows, "there is no row {index} of {}", self.rows);
        &self.numbers[index * self.dim..][..self.dim]
    }

    /// Iterates over the rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        (0..self.rows).map(|index| self.row(index))
    }

    /// Returns the length of a row's vector: the square root of the sum of its squares.
    ///
    /// # Panics
    /// The row does not exist.
    pub fn norm(&self, index: usize) -> f64 {
        self.squares[index].sqrt()
    }

    /// Computes the cosine of each row with `query`, in the order of the rows, from −1 to 1; 0 if either vector is all zeros.
    /// `out` is overwritten.
    ///
    /// The cosine is q·r / √(q·q × r·r). Products of two `f32` are exact in `f64`. They are summed in `f64` in one fixed order,
    /// so that the result depends on neither threads nor processor: sum i of sixteen adds the products i, i + 16, i + 32 … one
    /// after another, and then the sums are added in pairs (i and i + 8, then i and i + 4, i + 2, i + 1). The cosine of a
    /// vector with itself is exactly 1; results are clamped to 1.
    ///
    /// # Errors
    /// The query has another size than the rows, or a number in it is not finite.
    ///
    /// ```
    /// let mut matrix = repoformer_core::retrieve::dense::Matrix::new(2);
    /// for row in [[3.0, 4.0], [4.0, -3.0], [0.0, 0.0], [-6.0, -8.0], [1.0, 0.0]] {
    ///     matrix.push(&row)?;
    /// }
    /// let mut cosines = Vec::new();
    /// matrix.cosines(&[0.75, 1.0], &mut cosines)?;
    /// assert_eq!(cosines, [1.0, 0.0, 0.0, -1.0, 0.6]);
    /// # Ok::<(), repoformer_store::error::Error>(())
    /// ```
    pub fn cosines(&self, query: &[f32], out: &mut Vec<f64>) -> Result<()> {
        self.check_vector(query)?;
        out.clear();
        if self.dim == 0 {
            out.resize(self.rows, 0.0);
            return Ok(());
        }
        let own = dot(query, query);
        // The query is widened once for all rows.
        let query: Vec<f64> = query.iter().map(|number| f64::from(*number)).collect();
        for (row, square) in self.numbers.chunks_exact(self.dim).zip(&self.squares) {
            // The product of two sums of squares of `f32` neither overflows nor underflows in `f64`.
            let length = (own * square).sqrt();
            let cosine = if length > 0.0 { dot(&query, row) / length } else { 0.0 };
            out.push(cosine.clamp(-1.0, 1.0));
        }
        Ok(())
    }

    fn check_vector(&self, vector: &[f32]) -> Result<()> {
        let reason = if vector.len() != self.dim {
            format!("it has {} numbers, but the other vectors have {}", vector.len(), self.dim)
        } else if !vector.iter().all(|number| number.is_finite()) {
            "a number in it is not finite".into()
        } else {
            return Ok(());
        };
        Err(Error::parameter("vector", reason))
    }
}

/// Returns the dot product of two vectors of the same size: the sums of the lanes, added in pairs.
fn dot<N: Copy + Into<f64>>(one: &[N], other: &[f32]) -> f64 {
    let mut sums = lane_sums(one, other);
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

/// Returns the products' sums, lane by lane. This is a separate function because, together with the additions, the compiler
/// would vectorize the loop badly or not at all.
#[inline(never)]
fn lane_sums<N: Copy + Into<f64>>(one: &[N], other: &[f32]) -> [f64; LANES] {
    let (ones, rest) = one.as_chunks::<LANES>();
    let (others, other_rest) = other.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for at in 0..ones.len().min(others.len()) {
        for lane in 0..LANES {
            sums[lane] += ones[at][lane].into() * f64::from(others[at][lane]);
        }
    }
    for lane in 0..rest.len().min(other_rest.len()) {
        sums[lane] += rest[lane].into() * f64::from(other_rest[lane]);
    }
    sums
}

const SHAPE: &str = "rows and numbers a row";
const NUMBERS: &str = "vectors";

impl Payload for Matrix {
    const KIND: &'static str = "dense vectors";

    fn records(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        let shape = (self.rows as u64, self.dim as u64);
        Ok(vec![Column::records(SHAPE, &shape)?, Column::numbers(NUMBERS, &self.numbers)])
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        let (rows, dim): (u64, u64) = columns.records(SHAPE)?;
        let numbers: Vec<f32> = columns.numbers(NUMBERS)?;
        if rows.checked_mul(dim) != Some(numbers.len() as u64)
            || (dim == 0 && rows > u64::from(u32::MAX))
        {
            let reason = format!("{} numbers are not {rows} rows of {dim}", numbers.len());
            return Err(columns.damage_error(reason));
        }
        let (rows, dim) = (rows as usize, dim as usize);
        let squares = match dim {
            0 => vec![0.0; rows],
            _ => numbers.chunks_exact(dim).map(|row| dot(row, row)).collect(),
        };
        Ok(Self { dim, rows, numbers, squares })
    }

    fn check(&self) -> Result<(), String> {
        // A number that is not finite makes the sum of squares not finite.
        match self.squares.iter().position(|square| !square.is_finite()) {
            Some(row) => Err(format!("a number in row {row} is not finite")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use repoformer_store::artifact::{self, Identity};

    use super::*;

    fn matrix(dim: usize, rows: &[Vec<f32>]) -> Matrix {
        let mut matrix = Matrix::new(dim);
        for row in rows {
            matrix.push(row).unwrap();
        }
        matrix
    }

    /// Computes the definition, number by number, in the order that `cosines` documents.
    fn plain(query: &[f32], row: &[f32]) -> f64 {
        let product = |a: &[f32], b: &[f32]| {
            let lane = |lane: usize| {
                let mut sum = 0.0;
                for i in (lane..a.len()).step_by(16) {
                    sum += f64::from(a[i]) * f64::from(b[i]);
                }
                sum
            };
            let pair = |i: usize| lane(i) + lane(i + 8);
            let four = |i: usize| pair(i) + pair(i + 4);
            let eight = |i: usize| four(i) + four(i + 2);
            eight(0) + eight(1)
        };
        let length = (product(query, query) * product(row, row)).sqrt();
        if length == 0.0 { 0.0 } else { (product(query, row) / length).clamp(-1.0, 1.0) }
    }

    fn numbers(dim: usize) -> impl Strategy<Value = Vec<f32>> {
        let number = prop_oneof![
            8 => -1.0_f32..1.0,
            1 => Just(0.0),
            1 => prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO,
        ];
        prop::collection::vec(number, dim)
    }

    proptest! {
        #[test]
        fn cosines_are_those_of_the_definition(
            (dim, rows, query) in (1_usize..70).prop_flat_map(|dim| {
                (Just(dim), prop::collection::vec(numbers(dim), 0..6), numbers(dim))
            }),
        ) {
            let matrix = matrix(dim, &rows);
            let mut cosines = vec![9.0];
            matrix.cosines(&query, &mut cosines).unwrap();
            let expected: Vec<f64> = rows.iter().map(|row| plain(&query, row)).collect();
            prop_assert_eq!(&cosines, &expected);
            for (row, square) in rows.iter().zip(&matrix.squares) {
                matrix.cosines(row, &mut cosines).unwrap();
                let at = rows.iter().position(|other| other == row).unwrap();
                let own = if *square == 0.0 { 0.0 } else { 1.0 };
                prop_assert_eq!(cosines[at], own, "a vector's cosine with itself");
                prop_assert!(cosines.iter().all(|cosine| (-1.0..=1.0).contains(cosine)));
            }
        }

        #[test]
        fn what_is_written_is_read_back(
            (dim, rows) in (0_usize..20).prop_flat_map(|dim| (Just(dim), prop::collection::vec(numbers(dim), 0..6))),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let (path, matrix) = (dir.path().join("x.bin"), matrix(dim, &rows));
            artifact::write(&path, &Identity::new(Matrix::KIND), &matrix).unwrap();
            let (header, back) = artifact::read::<Matrix>(&path).unwrap();
            prop_assert_eq!(header.records as usize, rows.len());
            prop_assert_eq!(&back, &matrix);
            prop_assert!(back.iter().eq(rows.iter().map(Vec::as_slice)));
        }
    }

    #[test]
    fn cosines_are_numpys() {
        // tests/fixtures/dense/cosines.py computes them in double precision with numpy, and its `fsum` twin exactly.
        let text = include_str!("../../../../../tests/fixtures/dense/cosines.json");
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        for case in value["cases"].as_array().unwrap() {
            let list = |value: &serde_json::Value| -> Vec<f32> {
                let list = value.as_array().unwrap();
                list.iter().map(|number| number.as_f64().unwrap() as f32).collect()
            };
            let rows: Vec<Vec<f32>> = case["rows"].as_array().unwrap().iter().map(list).collect();
            let query = list(&case["query"]);
            let mut cosines = Vec::new();
            matrix(query.len(), &rows).cosines(&query, &mut cosines).unwrap();
            for name in ["numpy", "fsum"] {
                let expected = case[name].as_array().unwrap();
                assert_eq!(cosines.len(), expected.len());
                for (found, expected) in cosines.iter().zip(expected) {
                    let difference = (found - expected.as_f64().unwrap()).abs();
                    assert!(difference < 1e-15, "{name}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn vectors_of_another_size_and_numbers_that_are_none_are_refused() {
        let mut matrix = matrix(2, &[vec![1.0, 2.0]]);
        let text = matrix.push(&[1.0]).unwrap_err().to_string();
        assert_eq!(text, "vector: it has 1 numbers, but the other vectors have 2");
        assert!(matrix.push(&[1.0, f32::NAN]).is_err());
        assert!(matrix.cosines(&[1.0], &mut Vec::new()).is_err());
        assert!(matrix.cosines(&[1.0, f32::INFINITY], &mut Vec::new()).is_err());
        assert_eq!((matrix.len(), matrix.dim(), matrix.norm(0)), (1, 2, 5.0_f64.sqrt()));
        matrix.push_zeros();
        assert_eq!(matrix.row(1), [0.0, 0.0]);
        let mut cosines = Vec::new();
        matrix.cosines(&[0.0, 1.0], &mut cosines).unwrap();
        assert_eq!(cosines[1], 0.0);
        let mut empty = Matrix::new(0);
        empty.push_zeros();
        empty.cosines(&[], &mut cosines).unwrap();
        assert_eq!(cosines, [0.0]);
    }
}
