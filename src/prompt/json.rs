//! JSON text as `serde_json` writes it, for records that are nearly all long strings of code.
//!
//! Such a string holds an escape every thirty bytes. What stands between two of them is found eight bytes at a time
//! and copied at once.

use serde::Serialize;

/// Appends a string with its quotes.
pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(plain) = up_to_escape(rest) {
        out.extend_from_slice(&rest[..plain]);
        out.extend_from_slice(escape(rest[plain], &mut [0; 6]));
        rest = &rest[plain + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Appends any other value, as `serde_json` does.
pub(super) fn value(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    // Writing to memory fails for no value of ours: all keys are texts.
    let _ = serde_json::to_writer(out, value);
}

/// Bytes before the first that JSON escapes; `None` where there is none.
#[inline]
fn up_to_escape(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let found = escapes(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(8 * number + found.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|&byte| is_escaped(byte))?;
    Some(8 * words.len() + at)
}

fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// The highest bit of the first byte that JSON escapes, and of some bytes behind it; 0 where there is none.
#[inline(always)]
fn escapes(word: u64) -> u64 {
    const fn each(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    // A byte borrows from those above it only where it is found itself, so the lowest bit is always right.
    let control = word.wrapping_sub(each(0x20));
    let quote = (word ^ each(b'"')).wrapping_sub(each(1));
    let backslash = (word ^ each(b'\\')).wrapping_sub(each(1));
    (control | quote | backslash) & !word & each(0x80)
}

#[inline(always)]
fn escape(byte: u8, room: &mut [u8; 6]) -> &[u8] {
    match byte {
        b'\n' => b"\\n",
        b'"' => b"\\\"",
        b'\\' => b"\\\\",
        b'\t' => b"\\t",
        b'\r' => b"\\r",
        0x08 => b"\\b",
        0x0c => b"\\f",
        _ => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let digit = |nibble: u8| DIGITS[usize::from(nibble)];
            *room = [b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)];
            room
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str) {
        let mut out = Vec::new();
        string(text, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            serde_json::to_string(text).unwrap()
        );
    }

    #[test]
    fn every_byte_at_every_place_is_serdes() {
        for character in (0..0x180)
            .chain([0x2028, 0xfeff, 0x1f600])
            .filter_map(char::from_u32)
        {
            for before in 0..9 {
                for around in ["a", "\"", "\n", "\0", "é"] {
                    let text = around.repeat(before) + &character.to_string() + &around.repeat(9);
                    check(&text);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn strings_are_serdes(text in "([a-z (]{0,20}[\"\\\\\n\r\t\x08\x0c\0-\x1f\x7f é\u{2028}😀]{0,3}){0,12}") {
            check(&text);
        }
    }
}
