//! Character table of a `Precompiled` normalizer, as SentencePiece writes it: a trie of bytes as a double array, and the texts
//! that its leaves refer to by position.

use foldhash::HashSet;

use super::checked::{CharsRead, widest};

/// Greatest size of a table in bytes; SentencePiece's own have 250,000.
const MOST: usize = 1 << 20;
/// Greatest size in bytes of a character's replacement; the longest of SentencePiece's has 33.
const LONGEST: usize = 256;
/// Greatest size of a key in bytes: the library looks up a character, or several characters of together fewer than six bytes.
const KEY: usize = 5;

/// Returns the greatest number of characters that one character may become. If the characters are the text's own, returns this
/// number per byte.
pub(super) fn growth(table: &str, read: CharsRead) -> Result<u64, String> {
    let bytes = decode(table).ok_or("its table of characters is not Base64, or above 1 MiB")?;
    let (units, texts) = split(&bytes)
        .ok_or("its table of characters is shorter than it says, or its texts are not UTF-8")?;
    let first = units.first().ok_or("its table of characters is empty")?;
    let mut nodes = HashSet::from_iter([offset(*first)]);
    let mut most = 1;
    for depth in 1..=KEY {
        let mut below = HashSet::default();
        for node in nodes {
            let block = units.get(node & !0xFF..=node | 0xFF);
            let block = block.ok_or("its table of characters has an offset beyond its end")?;
            for byte in 1..=0xFF {
                let unit = block[(node & 0xFF) ^ byte];
                if label(unit) != byte {
                    continue;
                }
                let child = node ^ byte ^ offset(unit);
                if has_leaf(unit) {
                    let text = units.get(child).and_then(|leaf| text_at(texts, *leaf));
                    let text = text.ok_or("its table of characters leads to no text")?;
                    let units = match read {
                        CharsRead::OfText => depth,
                        // Five bytes are at least two characters.
                        CharsRead::OfSteps => 1 + depth / KEY,
                    };
                    most = most.max(widest(text).div_ceil(units as u64));
                }
                below.insert(child);
            }
        }
        nodes = below;
    }
    Ok(most)
}

/// Returns the text that a leaf refers to, up to the zero at its end.
fn text_at(texts: &str, leaf: u32) -> Option<&str> {
    let text = texts.get((leaf & !(1 << 31)) as usize..)?;
    let end = text.bytes().take(LONGEST + 1).position(|byte| byte == 0);
    let end = end.or_else(|| (text.len() <= LONGEST).then_some(text.len()))?;
    text.get(..end)
}

/// Returns true if a key ends at a unit of the array.
fn has_leaf(unit: u32) -> bool {
    unit & (1 << 8) != 0
}

/// Returns the byte of a unit; for a leaf, no byte.
fn label(unit: u32) -> usize {
    (unit & (1 << 31 | 0xFF)) as usize
}

/// Returns the offset from a unit to its children.
fn offset(unit: u32) -> usize {
    ((unit >> 10) as usize) << ((unit & (1 << 9)) >> 6)
}

/// Returns the units of the array and the texts.
fn split(bytes: &[u8]) -> Option<(Vec<u32>, &str)> {
    let (size, rest) = bytes.split_first_chunk()?;
    let units = u32::from_le_bytes(*size) as usize / 4;
    let (array, texts) = rest.split_at_checked(units * 4)?;
    let unit = |unit: &[u8]| unit.iter().rev().fold(0, |unit, byte| unit << 8 | u32::from(*byte));
    Some((array.chunks(4).map(unit).collect(), str::from_utf8(texts).ok()?))
}

/// Returns the bytes of a text in Base64.
fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 || digits.len() > MOST / 3 * 4
    {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for four in digits.chunks(4) {
        let mut value = 0;
        for digit in four {
            let digit = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            value = value << 6 | u32::from(digit);
        }
        value <<= 6 * (4 - four.len());
        bytes.extend_from_slice(&value.to_be_bytes()[1..four.len()]);
    }
    Some(bytes)
}
