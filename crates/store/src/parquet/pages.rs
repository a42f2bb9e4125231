//! Limits on the pages of a Parquet file. A few bytes may stand for millions of equal elements, and all elements of a row are read at
//! once. Row groups may share a page, which is decoded for each of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;

use super::{MOST_TIMES, most_bytes};

type Outcome<T> = Result<T, ParquetError>;

/// Greatest number of elements in the lists of a row: no repository has as many files, and no training sequence as many tokens.
pub(super) const MOST_ELEMENTS: u64 = 1 << 22;

/// Number of bytes that the pages of a file may still have when decoded.
#[derive(Debug, Clone)]
pub struct DecodedBytes(Arc<AtomicU64>);

impl DecodedBytes {
    /// Creates the number for a file of this size.
    pub fn of_file(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(most_bytes(bytes))))
    }

    /// Returns whether the pages have exceeded it.
    pub fn are_exceeded(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    fn take(&self, bytes: usize) -> Outcome<()> {
        let left = self.0.load(Relaxed).saturating_sub(bytes as u64);
        self.0.store(left, Relaxed);
        if left > 0 {
            return Ok(());
        }
        let reason = format!("its pages are more than {MOST_TIMES} times as large as the file");
        Err(ParquetError::General(reason))
    }
}

/// Pages of a column; a page is rejected if a row's list is too long, or the pages of the file are too large.
pub struct BoundedPages {
    pages: Box<dyn PageReader>,
    /// Greatest level of repetition; 0 if the column has no lists.
    max_level: i16,
    most: u64,
    /// Number of elements of the last row so far.
    elements: u64,
    decoded: DecodedBytes,
}

impl BoundedPages {
    /// Wraps the pages of a column with this greatest level of repetition.
    pub fn new(pages: Box<dyn PageReader>, max_level: i16, decoded: &DecodedBytes) -> Self {
        Self { pages, max_level, most: MOST_ELEMENTS, elements: 0, decoded: decoded.clone() }
    }

    fn check(&mut self, page: &Page) -> Outcome<()> {
        let (levels, count) = match page {
            Page::DictionaryPage { .. } => return Ok(()),
            Page::DataPage { buf, num_values, rep_level_encoding, .. } => {
                let length = buf.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize);
                let levels = length.and_then(|length| buf.get(4..)?.get(..length));
                let is_known = *rep_level_encoding == Encoding::RLE;
                (levels.filter(|_| is_known), *num_values)
            }
            Page::DataPageV2 { buf, num_values, rep_levels_byte_len, .. } => {
                (buf.get(..*rep_levels_byte_len as usize), *num_values)
            }
        };
        let levels = levels.filter(|_| self.max_level == 1);
        let is_read = levels.is_some_and(|levels| self.add(levels, count));
        if !is_read {
            // With other levels, or damaged ones, each level may continue the list.
            self.elements = self.elements.saturating_add(u64::from(count));
        }
        if self.elements > self.most {
            let reason = format!("a row has a list of more than {} elements", self.most);
            return Err(ParquetError::General(reason));
        }
        Ok(())
    }

    /// Counts the elements of levels of 0 and 1, one per value, until a list is too long. Returns false if the levels are
    /// damaged.
    fn add(&mut self, mut bytes: &[u8], mut left: u32) -> bool {
        while left > 0 && self.elements <= self.most {
            let Some((header, rest)) = number(bytes) else { return false };
            let count = u32::try_from(header >> 1).unwrap_or(u32::MAX);
            bytes = rest;
            if header & 1 == 0 {
                let Some((level, rest)) = bytes.split_first() else { return false };
                let count = count.min(left);
                if count == 0 {
                    return false;
                }
                bytes = rest;
                left -= count;
                match level & 1 {
                    0 => self.elements = 1,
                    _ => self.elements += u64::from(count),
                }
                continue;
            }
            for _ in 0..count.min(left.div_ceil(8)) {
                let Some((eight, rest)) = bytes.split_first() else { return false };
                bytes = rest;
                for bit in 0..left.min(8) {
                    match eight >> bit & 1 {
                        0 => self.elements = 1,
                        _ => self.elements += 1,
                    }
                    if self.elements > self.most {
                        return true;
                    }
                }
                left -= left.min(8);
            }
        }
        true
    }
}

/// Returns the number that the bytes begin with, seven bits in each byte, and the bytes after it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().take(9).position(|byte| byte & 128 == 0)? + 1;
    let parts = bytes[..length].iter().rev();
    let number = parts.fold(0, |number, byte| number << 7 | u64::from(byte & 127));
    Some((number, &bytes[length..]))
}

impl Iterator for BoundedPages {
    type Item = Outcome<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for BoundedPages {
    fn get_next_page(&mut self) -> Outcome<Option<Page>> {
        self.decoded.take(0)?;
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.decoded.take(page.buffer().len())?;
        }
        if let Some(page) = page.as_ref().filter(|_| self.max_level > 0) {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Outcome<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Outcome<()> {
        // The following page may or may not continue its last row.
        self.elements = 0;
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Pages(Vec<Page>);

    impl Iterator for Pages {
        type Item = Outcome<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.0.pop().map(Ok)
        }
    }

    impl PageReader for Pages {
        fn get_next_page(&mut self) -> Outcome<Option<Page>> {
            Ok(self.0.pop())
        }

        fn peek_next_page(&mut self) -> Outcome<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Outcome<()> {
            Ok(())
        }
    }

    /// Returns a page whose repetition levels have these bytes.
    fn page(levels: &[u8], num_values: u32, is_first_version: bool) -> Page {
        let length = levels.len() as u32;
        if is_first_version {
            return Page::DataPage {
                buf: [&length.to_le_bytes(), levels].concat().into(),
                num_values,
                encoding: Encoding::PLAIN,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            };
        }
        Page::DataPageV2 {
            buf: levels.to_vec().into(),
            num_values,
            encoding: Encoding::PLAIN,
            num_nulls: 0,
            num_rows: 1,
            def_levels_byte_len: 0,
            rep_levels_byte_len: length,
            is_compressed: false,
            statistics: None,
        }
    }

    #[test]
    fn pages_that_row_groups_share_count_for_each() {
        let decoded = DecodedBytes::of_file(0);
        let large = || page(&vec![0; 40 << 20], 1, true);
        let read = || {
            let pages = Box::new(Pages(vec![large()]));
            BoundedPages::new(pages, 0, &decoded).next().unwrap()
        };
        assert!(read().is_ok() && !decoded.are_exceeded());
        let error = read().unwrap_err().to_string();
        assert!(
            error.ends_with("its pages are more than 500 times as large as the file"),
            "{error}"
        );
        assert!(decoded.are_exceeded() && read().is_err());
    }

    #[test]
    fn a_list_of_more_elements_than_a_row_may_have_is_refused() {
        // One value that begins a row, and further values that continue it.
        let row = |more: u8| [2, 0, more << 1, 1];
        for is_first_version in [true, false] {
            let decoded = DecodedBytes::of_file(0);
            let is_read = |pages: &[(&[u8], u32)], max_level| {
                let pages = pages.iter().rev().map(|(l, n)| page(l, *n, is_first_version));
                let pages = Box::new(Pages(pages.collect()));
                let mut bounded =
                    BoundedPages { most: 20, ..BoundedPages::new(pages, max_level, &decoded) };
                bounded.all(|page| page.is_ok())
            };
            assert!(is_read(&[(&row(19), 20)], 1));
            assert!(!is_read(&[(&row(20), 21)], 1));
            // A row continues in the next page, or another row begins there.
            assert!(!is_read(&[(&row(10), 11), (&[20, 1], 10)], 1));
            assert!(is_read(&[(&row(10), 11), (&row(10), 11)], 1));
            // Packed levels: rows of four values each.
            assert!(is_read(&[(&[9, 0b1110_1110, 0b1110_1110, 0b1110_1110, 0b1110_1110], 32)], 1));
            assert!(!is_read(&[(&[9, 0b1111_1110, 0xff, 0xff, 0xff], 32)], 1));
            // Damaged levels, and levels of nested lists, count as one list; a column without lists has none.
            assert!(!is_read(&[(&[2], 32)], 1) && is_read(&[(&[2], 8)], 1));
            assert!(!is_read(&[(&row(31), 32)], 2) && is_read(&[(&row(31), 32)], 0));
        }
    }
}
