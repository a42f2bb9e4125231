//! Character classes that the pattern of p50k_base distinguishes.

include!(concat!(env!("OUT_DIR"), "/classes.rs"));

static CLASS_INDEX: [u8; INDEX] = *include_bytes!(concat!(env!("OUT_DIR"), "/class_index.bin"));
static CLASS_BLOCKS: [u8; BLOCKS] = *include_bytes!(concat!(env!("OUT_DIR"), "/class_blocks.bin"));

/// Class of a character for the pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// `[^\s\p{L}\p{N}]`: marks, symbols, punctuation, controls, unassigned.
    Other,
    /// `\p{L}`.
    Letter,
    /// `\p{N}`, including `½` and `Ⅷ`.
    Number,
    /// `\s`: the Unicode property White_Space, which includes U+0085 but not U+001C.
    Space,
}

impl Class {
    /// Returns the class of a character.
    pub(super) fn from_character(character: char) -> Self {
        match number(character) {
            1 => Self::Letter,
            2 | DECIMAL => Self::Number,
            3 => Self::Space,
            _ => Self::Other,
        }
    }

    /// Returns the class of the character that starts at byte `at`; `None` at the end.
    #[inline(always)]
    pub(super) fn at(text: &str, at: usize) -> Option<Self> {
        let byte = *text.as_bytes().get(at)?;
        match ASCII.get(usize::from(byte)) {
            Some(&class) => Some(class),
            None => Self::beyond_ascii(text, at),
        }
    }

    #[inline(never)]
    fn beyond_ascii(text: &str, at: usize) -> Option<Self> {
        text.get(at..)?.chars().next().map(Self::from_character)
    }
}

/// Numbers in the table for two classes that the pattern does not distinguish from others.
const DECIMAL: u8 = 4;
const NONSPACING: u8 = 5;

/// Returns the number of a character's class in the table that the build script lays out.
fn number(character: char) -> u8 {
    let code = u32::from(character) as usize;
    let block = CLASS_INDEX.get(code >> 8).copied().map_or(0, usize::from);
    CLASS_BLOCKS.get(block << 8 | code & 0xFF).copied().unwrap_or(0)
}

/// Returns true for `\p{Nd}`: the decimal digits of all scripts.
pub fn is_decimal_digit(character: char) -> bool {
    number(character) == DECIMAL
}

/// Returns true for `\p{Mn}`: marks that take no space, such as accents.
pub fn is_nonspacing_mark(character: char) -> bool {
    number(character) == NONSPACING
}

/// Returns true for Python's `\w`: the characters that `str.isalnum` accepts, which are `[\p{L}\p{N}]`, and the underscore.
pub fn is_word(character: char) -> bool {
    character == '_' || matches!(Class::from_character(character), Class::Letter | Class::Number)
}

/// Classes of the 128 ASCII characters.
static ASCII: [Class; 128] = {
    let mut classes = [Class::Other; 128];
    let mut code = 0;
    while code < 128 {
        classes[code] = match code as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Number,
            b' ' | b'\t'..=b'\r' => Class::Space,
            _ => Class::Other,
        };
        code += 1;
    }
    classes
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_and_the_unicode_table_agree() {
        for code in 0..128_u8 {
            let character = char::from(code);
            assert_eq!(
                Class::at(&character.to_string(), 0),
                Some(Class::from_character(character))
            );
        }
        assert_eq!(Class::at("", 0), None);
    }

    /// If `data/classes.txt` is older than the crate that generated it, the test names the first character that changed.
    #[test]
    fn classes_are_those_of_tiktokens_pattern() {
        let mut wanted = vec![0_u8; 0x11_0000];
        let patterns = [(1, r"\p{L}"), (2, r"\p{N}"), (3, r"\s"), (4, r"\p{Nd}"), (5, r"\p{Mn}")];
        for (value, pattern) in patterns {
            let parsed = regex_syntax::parse(pattern).unwrap();
            let regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(set)) =
                parsed.kind()
            else {
                panic!("{pattern}");
            };
            for range in set.iter() {
                wanted[range.start() as usize..=range.end() as usize].fill(value);
            }
        }
        let differs = ('\0'..=char::MAX).find(|&c| number(c) != wanted[c as usize]);
        assert_eq!(differs, None);
    }

    #[test]
    fn digits_are_numbers_and_marks_are_other() {
        for (character, decimal, nonspacing, class) in [
            ('7', true, false, Class::Number),
            ('\u{663}', true, false, Class::Number),
            ('\u{bd}', false, false, Class::Number),
            ('\u{301}', false, true, Class::Other),
            ('\u{903}', false, false, Class::Other),
            ('a', false, false, Class::Letter),
        ] {
            let found = (
                is_decimal_digit(character),
                is_nonspacing_mark(character),
                Class::from_character(character),
            );
            assert_eq!(found, (decimal, nonspacing, class), "{character:?}");
        }
    }
}
