//! JSON text as `serde_json` writes it, for records that consist almost entirely of long strings of code.
//!
//! Such a string has an escape every thirty bytes on average. The text between two escapes is scanned eight bytes at a time.

use repoformer_store::literal::VerbatimValue;
use serde::Serialize;
use serde_json::Value;

/// Number of bytes scanned together.
const CHUNK: usize = 16;

/// Appends a string with quotes.
pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + text.len() / 16 + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(chunk) = rest.first_chunk::<CHUNK>() {
        let plain = plain_bytes(chunk);
        // The whole chunk is copied, because copying a fixed number of bytes takes one instruction; excess bytes are removed
        // again.
        out.extend_from_slice(chunk);
        if plain == CHUNK {
            rest = &rest[CHUNK..];
        } else {
            out.truncate(out.len() - CHUNK + plain);
            escape(chunk[plain], out);
            rest = &rest[plain + 1..];
        }
    }
    for &byte in rest {
        if is_escaped(byte) {
            escape(byte, out);
        } else {
            out.push(byte);
        }
    }
    out.push(b'"');
}

/// Appends a value from a user's record.
pub(super) fn verbatim(value: &Value, out: &mut Vec<u8>) {
    self::value(&VerbatimValue(value), out);
}

/// Appends any other value, in the same form as `serde_json`.
pub(super) fn value(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    // Writing to memory never fails for our values: all keys are strings.
    let _ = serde_json::to_writer(out, value);
}

/// Returns the number of bytes before the first one that JSON escapes; all if there is none.
#[inline(always)]
fn plain_bytes(chunk: &[u8; CHUNK]) -> usize {
    let (words, _) = chunk.as_chunks::<8>();
    match escapes(u64::from_le_bytes(words[0])) {
        // All zeros count as 64, one byte past the word.
        0 => 8 + escapes(u64::from_le_bytes(words[1])).trailing_zeros() as usize / 8,
        first => first.trailing_zeros() as usize / 8,
    }
}

fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Returns a word with the highest bit set in the first byte that JSON escapes, and in some bytes after it; 0 if there is none.
#[inline(always)]
fn escapes(word: u64) -> u64 {
    const fn each(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    // A byte borrows from the bytes above it only if it is escaped itself, so the lowest set bit is always right.
    let control = word.wrapping_sub(each(0x20));
    let quote = (word ^ each(b'"')).wrapping_sub(each(1));
    let backslash = (word ^ each(b'\\')).wrapping_sub(each(1));
    (control | quote | backslash) & !word & each(0x80)
}

#[inline(always)]
fn escape(byte: u8, out: &mut Vec<u8>) {
    let letter = match byte {
        b'\n' => b'n',
        b'"' | b'\\' => byte,
        b'\t' => b't',
        b'\r' => b'r',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let digit = |nibble: u8| DIGITS[usize::from(nibble)];
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str) {
        let mut out = Vec::new();
        string(text, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(text).unwrap());
    }

    #[test]
    fn every_byte_at_every_place_is_serdes() {
        for character in (0..0x180).chain([0x2028, 0xfeff, 0x1f600]).filter_map(char::from_u32) {
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
