//! Bounds of a Parquet file's schema, checked before the package parses it: the package calls itself for each level of groups, and keeps
//! the whole path of each column. Fields as in Apache's `parquet.thrift`, in Thrift's compact protocol.

use std::io::{Read, Seek, SeekFrom};

/// Greatest depth of groups.
const MOST_LEVELS: usize = 64;
/// Greatest number of bytes of all columns' paths.
const MOST_PATHS: u64 = 64 << 20;
/// Number of bytes that a name in a path counts for, in addition to its text.
const OF_NAME: u64 = 48;
/// Greatest number of bytes of a footer; files of terabytes stay below it.
const MOST_FOOTER: u32 = 256 << 20;
/// Length and magic number at the end of a file.
const END: usize = 8;

/// Checks that the schema of a file can be parsed in bounded memory. A file without a footer passes: the package reports it.
///
/// # Errors
/// The reason why it cannot, in words.
pub(super) fn check(file: &mut (impl Read + Seek)) -> Result<(), String> {
    let Some(footer) = read(file)? else { return Ok(()) };
    let mut compact = Compact { left: &footer };
    let mut last = 0;
    while let Some((field, kind)) = compact.field(&mut last).ok_or_else(damaged)? {
        if (field, kind) == (2, LIST) {
            check_schema(&mut compact)?;
        } else {
            compact.skip(kind, MOST_LEVELS).ok_or_else(damaged)?;
        }
    }
    Ok(())
}

fn damaged() -> String {
    "its footer is damaged".into()
}

/// Reads the footer; `None` if the file has none.
fn read(file: &mut (impl Read + Seek)) -> Result<Option<Vec<u8>>, String> {
    let cannot = |error: std::io::Error| error.to_string();
    let bytes = file.seek(SeekFrom::End(0)).map_err(cannot)?;
    let Some(before_end) = bytes.checked_sub(END as u64) else { return Ok(None) };
    file.seek(SeekFrom::Start(before_end)).map_err(cannot)?;
    let mut end = [0; END];
    file.read_exact(&mut end).map_err(cannot)?;
    let [a, b, c, d, magic @ ..] = end;
    let length = u32::from_le_bytes([a, b, c, d]);
    let start = before_end.checked_sub(u64::from(length));
    let Some(start) = start.filter(|_| &magic == b"PAR1") else { return Ok(None) };
    if length > MOST_FOOTER {
        return Err(format!("its footer has more than {} MiB", MOST_FOOTER >> 20));
    }
    let mut footer = vec![0; length as usize];
    file.seek(SeekFrom::Start(start)).map_err(cannot)?;
    file.read_exact(&mut footer).map_err(cannot)?;
    Ok(Some(footer))
}

/// Group whose elements follow.
struct Group {
    /// Number of its elements that are yet to come.
    left: u64,
    /// Bytes of its path.
    path: u64,
}

/// Checks the list of a schema's elements, each group before its own.
fn check_schema(compact: &mut Compact<'_>) -> Result<(), String> {
    let (mut groups, mut paths) = (Vec::<Group>::new(), 0u64);
    for _ in 0..compact.list(STRUCT).ok_or_else(damaged)? {
        let (name, children) = compact.element().ok_or_else(damaged)?;
        while groups.last().is_some_and(|group| group.left == 0) {
            groups.pop();
        }
        let above = groups.last_mut().map_or(0, |group| {
            group.left -= 1;
            group.path
        });
        let path = above.saturating_add(name + OF_NAME);
        if children == 0 {
            paths = paths.saturating_add(path);
        } else {
            groups.push(Group { left: children, path });
        }
        if groups.len() > MOST_LEVELS {
            return Err(format!("its columns nest more than {MOST_LEVELS} levels deep"));
        }
        if paths > MOST_PATHS {
            return Err(format!(
                "the paths of its columns have more than {} MiB",
                MOST_PATHS >> 20
            ));
        }
    }
    Ok(())
}

/// Types of the compact protocol.
const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Bytes in the compact protocol; each function returns `None` if they are damaged.
struct Compact<'a> {
    left: &'a [u8],
}

impl<'a> Compact<'a> {
    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(usize::try_from(count).ok()?)?;
        self.left = left;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte & 128 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Returns a number with a sign, and 0 for negative ones.
    fn count(&mut self) -> Option<u64> {
        let number = self.number()?;
        Some(if number & 1 == 0 { number >> 1 } else { 0 })
    }

    /// Reads the header of a struct's next field: its id and type, or `None` at the end.
    fn field(&mut self, last: &mut u64) -> Option<Option<(u64, u8)>> {
        let header = self.byte()?;
        if header & 15 == STOP {
            return Some(None);
        }
        *last = if header >> 4 == 0 { self.count()? } else { *last + u64::from(header >> 4) };
        Some(Some((*last, header & 15)))
    }

    /// Reads the header of a list of this type, and returns its length. Each element has at least one byte.
    fn list(&mut self, kind: u8) -> Option<u64> {
        let (length, of) = self.any_list()?;
        (of == kind || length == 0).then_some(length)
    }

    fn any_list(&mut self) -> Option<(u64, u8)> {
        let header = self.byte()?;
        let length = if header >> 4 == 15 { self.number()? } else { u64::from(header >> 4) };
        (length <= self.left.len() as u64).then_some((length, header & 15))
    }

    /// Reads an element of a schema: the length of its name, and the number of its own elements.
    fn element(&mut self) -> Option<(u64, u64)> {
        let (mut name, mut children, mut last) = (0, 0, 0);
        while let Some((field, kind)) = self.field(&mut last)? {
            match (field, kind) {
                (4, BINARY) => {
                    name = self.number()?;
                    self.take(name)?;
                }
                (5, I32) => children = self.count()?,
                _ => self.skip(kind, MOST_LEVELS)?,
            }
        }
        Some((name, children))
    }

    /// Skips a value, with structs and lists at most this many levels deep.
    fn skip(&mut self, kind: u8, levels: usize) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        match kind {
            TRUE | FALSE => {}
            BYTE => drop(self.byte()?),
            I16 | I32 | I64 => drop(self.number()?),
            DOUBLE => drop(self.take(8)?),
            UUID => drop(self.take(16)?),
            BINARY => {
                let length = self.number()?;
                self.take(length)?;
            }
            LIST | SET => {
                let (length, of) = self.any_list()?;
                for _ in 0..length {
                    self.skip_element(of, levels)?;
                }
            }
            MAP => {
                let length = self.number()?;
                if length > self.left.len() as u64 {
                    return None;
                }
                let of = if length == 0 { 0 } else { self.byte()? };
                for _ in 0..length {
                    self.skip_element(of >> 4, levels)?;
                    self.skip_element(of & 15, levels)?;
                }
            }
            STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, levels)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Skips an element of a list; there, a truth value has a byte of its own.
    fn skip_element(&mut self, kind: u8, levels: usize) -> Option<()> {
        match kind {
            TRUE | FALSE => self.byte().map(drop),
            _ => self.skip(kind, levels),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Returns a file whose schema consists of these elements, each of them a name and a number of its own elements.
    fn file(elements: &[(&str, u8)]) -> Vec<u8> {
        let count = elements.len() as u64;
        let number = |mut number: u64| {
            let mut bytes = Vec::new();
            while number > 127 {
                bytes.push(number as u8 | 128);
                number >>= 7;
            }
            bytes.push(number as u8);
            bytes
        };
        let mut footer = vec![0x15, 2, 0x19, 0xf0 | STRUCT];
        footer.extend(number(count));
        for (name, children) in elements {
            footer.extend([0x40 | BINARY].into_iter().chain(number(name.len() as u64)));
            footer.extend(name.as_bytes());
            footer.push(0x10 | I32);
            footer.extend(number(u64::from(*children) << 1).into_iter().chain([STOP]));
        }
        footer.push(STOP);
        let length = footer.len() as u32;
        [&footer[..], &length.to_le_bytes(), b"PAR1"].concat()
    }

    fn checked(bytes: Vec<u8>) -> Result<(), String> {
        check(&mut Cursor::new(bytes))
    }

    #[test]
    fn a_schema_is_neither_deep_nor_wide_without_bound() {
        let deep = |levels: usize| [vec![("g", 1); levels], vec![("x", 0)]].concat();
        checked(file(&deep(MOST_LEVELS))).unwrap();
        let error = checked(file(&deep(MOST_LEVELS + 1))).unwrap_err();
        assert_eq!(error, "its columns nest more than 64 levels deep");
        // The name of a group counts for each of its columns.
        let name = "n".repeat(1 << 20);
        let wide = |columns: u8| {
            let columns = vec![("x", 0); columns.into()];
            [vec![("m", 1), (name.as_str(), columns.len() as u8)], columns].concat()
        };
        checked(file(&wide(60))).unwrap();
        let error = checked(file(&wide(65))).unwrap_err();
        assert_eq!(error, "the paths of its columns have more than 64 MiB");
    }

    #[test]
    fn lengths_that_promise_too_much_are_damage() {
        for footer in [
            &[0x19, 0xf0 | STRUCT, 255, 255, 255, 255, 15, STOP][..],
            &[0x19, 0xf0 | BYTE, 255, 255, 3, STOP],
            &[0x18, 200, 1, STOP],
            &[0x1b, 255, 255, 3, 0x33, STOP],
            &[0x1c],
        ] {
            let length = footer.len() as u32;
            let bytes = [footer, &length.to_le_bytes(), b"PAR1"].concat();
            assert_eq!(checked(bytes), Err(damaged()), "{footer:?}");
        }
        let nested = [vec![0x1c; 100], vec![STOP; 101]].concat();
        let length = nested.len() as u32;
        assert_eq!(checked([&nested[..], &length.to_le_bytes(), b"PAR1"].concat()), Err(damaged()));
        // The package reports files that are no tables.
        checked(b"PAR".to_vec()).unwrap();
        checked(b"\xff\xff\xff\xffPAR1".to_vec()).unwrap();
    }

    #[test]
    fn what_this_program_writes_passes() {
        use crate::frame::{Column, ColumnType, Frame};
        let column = |name: &str, of| Column { name: name.into(), of, values: vec![1.into(); 3] };
        let columns = vec![column("a", ColumnType::Integer), column("b", ColumnType::Number)];
        checked(Frame { rows: 3, columns }.parquet().unwrap()).unwrap();
    }
}
