//! Ways to read the characters of a text that a server writes: as they are, without what is between them, at equal distances, or as
//! numbers, also among letters; of the text itself, and of what its escapes mean.

use super::escapes::{Sign, escape, mail, number};

/// Bytes of a text that are read as one character, at most: three escapes of eight characters within one another.
const LONGEST: usize = 8 * 8 * 8;
/// Bytes between two characters, at most, and those of them that a key may have: as in `),\n        UInt8(`.
const LONGEST_BETWEEN: (usize, usize) = (64, 32);
/// Number of blanks that keep two texts apart.
pub(super) const FAR: usize = LONGEST_BETWEEN.0 + 1;
/// Greatest distance of two characters that are read at equal distances.
pub(super) const LONGEST_STEP: usize = 32;
/// Texts that come as a whole are read in batches of so many bytes.
pub(super) const BATCH: usize = 1 << 16;

/// A way to read characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// As they are.
    Exact,
    /// Without ends of lines, which may break in the middle of a word.
    Joined,
    /// Letters and digits alone, whatever is between them.
    Bare,
    /// Without blanks, each as far from the next as that from the one behind it, whatever is between them.
    Even,
    /// Hexadecimal digits in any groups.
    Hexadecimal,
    /// Decimal numbers of bytes.
    Decimal,
    /// Octal numbers of bytes.
    Octal,
    /// Binary numbers of bytes.
    Binary,
    /// Numbers of visible characters in this base, whatever letters are around them.
    Among(u32),
}

impl Notation {
    const ALL: [Self; 12] = [
        Self::Exact,
        Self::Joined,
        Self::Bare,
        Self::Even,
        Self::Hexadecimal,
        Self::Decimal,
        Self::Octal,
        Self::Binary,
        Self::Among(16),
        Self::Among(10),
        Self::Among(8),
        Self::Among(2),
    ];

    /// Base of its numbers, and the letters before them.
    fn radix(self) -> Option<(u32, &'static [u8])> {
        match self {
            Self::Hexadecimal => Some((16, b"xXuUhH")),
            Self::Decimal => Some((10, b"")),
            Self::Octal => Some((8, b"oO")),
            Self::Binary => Some((2, b"bB")),
            Self::Exact | Self::Joined | Self::Bare | Self::Even | Self::Among(_) => None,
        }
    }

    /// Whether it reads a character that is written as itself.
    fn takes(self, byte: u8) -> bool {
        match self {
            Self::Bare => byte.is_ascii_alphanumeric(),
            Self::Joined => byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t'),
            Self::Even => byte.is_ascii_graphic(),
            _ => true,
        }
    }
}

/// Characters, and where each is in the text.
#[derive(Debug, Clone, Default)]
struct Characters {
    bytes: Vec<u8>,
    places: Vec<(usize, usize)>,
    /// Where the text ends from which they were read.
    end: usize,
}

impl Characters {
    fn push(&mut self, byte: u8, place: (usize, usize)) {
        self.bytes.push(byte);
        self.places.push(place);
    }

    /// Where some characters lie in the text.
    fn range(&self, from: usize, to: usize) -> (usize, usize) {
        (self.places[from].0, self.places[to - 1].1)
    }

    /// Where a character begins, or the characters end.
    fn start(&self, at: usize) -> usize {
        self.places.get(at).map_or(self.end, |(start, _)| *start)
    }

    /// The characters from one on that may be one together, and whether more of them may come.
    fn ahead(&self, at: usize, is_whole: bool) -> (&[u8], bool) {
        let most = self.places[at].0 + LONGEST;
        let places = &self.places[at..self.places.len().min(at + LONGEST)];
        let count = places.partition_point(|(_, end)| *end <= most).max(1);
        let is_last = at + count == self.bytes.len();
        let is_cut = !is_whole && is_last && self.places[at + count - 1].1 < most;
        (&self.bytes[at..at + count], is_cut)
    }

    fn forget(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.places.drain(..count);
    }
}

/// A layer of a text: the text itself, or the layer before with its escapes decoded.
#[derive(Debug)]
struct Layer {
    characters: Characters,
    readers: Vec<Reader>,
    /// First character that is not decoded yet for the next layer.
    next: usize,
    /// Whether it is another text than the layer before, or may become one. Until then its readers would read the same, and read
    /// nothing.
    is_another: bool,
}

impl Layer {
    fn new() -> Self {
        let readers = Notation::ALL.map(Reader::new).into();
        Self { characters: Characters::default(), readers, next: 0, is_another: false }
    }

    /// Decodes escapes for the next layer. What may become one waits.
    fn decode(&mut self, decode: Decode, into: &mut Self, is_whole: bool) {
        let from = &self.characters;
        while let Some(byte) = from.bytes.get(self.next) {
            let sign = if matches!(byte, b'\\' | b'%' | b'&' | b'=') {
                let (rest, is_cut) = from.ahead(self.next, is_whole);
                decode(rest, is_cut)
            } else {
                Sign::None
            };
            let (byte, length) = match sign {
                Sign::Byte(byte, length) => (byte, length),
                Sign::None => (*byte, 1),
                Sign::Open => {
                    into.is_another = true;
                    break;
                }
            };
            into.is_another |= !matches!(sign, Sign::None);
            into.characters.push(byte, from.range(self.next, self.next + length));
            self.next += length;
        }
        into.characters.end = from.start(self.next);
    }

    /// Has its readers go on where those of an earlier layer are, which had the same text so far.
    fn go_on_from(&mut self, earlier: &Self) {
        self.readers.clone_from(&earlier.readers);
        for reader in &mut self.readers {
            let place = earlier.characters.start(reader.next);
            reader.next = self.characters.places.partition_point(|(start, _)| *start < place);
        }
    }

    /// Forgets the characters that were read in all ways, or that are before a place if others read for it.
    fn forget(&mut self, others_at: usize) {
        let next = if self.is_another {
            self.readers.iter().map(|reader| reader.next).min().unwrap_or_default()
        } else {
            self.characters.places.partition_point(|(start, _)| *start < others_at)
        };
        let count = next.min(self.next);
        self.characters.forget(count);
        self.next -= count;
        if self.is_another {
            self.readers.iter_mut().for_each(|reader| reader.next -= count);
        }
    }
}

type Decode = fn(&[u8], bool) -> Sign;

/// How each layer is decoded from the one before it: escapes may be within escapes. A key may look like an escape of mails (`=4e`), so
/// that these are decoded apart.
const DECODERS: [Decode; 4] = [escape, mail, escape, escape];

/// A text that may come in pieces, in all its layers and readings.
#[derive(Debug)]
pub(super) struct Layers(Vec<Layer>);

impl Layers {
    pub(super) fn new() -> Self {
        let mut layers: Vec<Layer> = (0..=DECODERS.len()).map(|_| Layer::new()).collect();
        layers[0].is_another = true;
        Self(layers)
    }

    /// Reads a piece of the text, the last one if it `is_end`, and shows each reader that has read it.
    pub(super) fn read(&mut self, piece: &[u8], is_end: bool, mut show: impl FnMut(&mut Reader)) {
        let first = &mut self.0[0].characters;
        for byte in piece {
            first.push(*byte, (first.end, first.end + 1));
            first.end += 1;
        }
        let mut read = 0;
        for (at, decode) in (1..).zip(DECODERS) {
            let (before, layers) = self.0.split_at_mut(at);
            let layer = &mut layers[0];
            let was_another = layer.is_another;
            before[at - 1].decode(decode, layer, is_end);
            if layer.is_another && !was_another {
                layer.go_on_from(&before[read]);
            }
            if layer.is_another {
                read = at;
            }
        }
        if let Some(last) = self.0.last_mut() {
            last.next = last.characters.bytes.len();
        }
        let mut read_to = 0;
        for layer in &mut self.0 {
            if layer.is_another {
                for reader in &mut layer.readers {
                    reader.read(&layer.characters, is_end);
                    show(reader);
                }
            }
            layer.forget(read_to);
            if layer.is_another {
                read_to = layer.characters.start(0);
            }
        }
    }
}

/// What a layer holds in one reading.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    pub(super) reading: Notation,
    /// Characters that were read last. A 0, which no key has, stands for all that keeps two others apart.
    characters: Characters,
    /// Those of them that were looked at before.
    pub(super) seen: usize,
    /// Where runs of characters at equal distances begin that may go on, and where their next character is.
    pub(super) runs: Vec<(usize, usize)>,
    /// First character of the layer that is not read yet.
    next: usize,
    /// Bytes since the last character, and those of them that a key may have.
    between: (usize, usize),
    /// Whether a letter or digit is before what is not read, which therefore begins no number.
    is_in_word: bool,
    /// Whether what is before begins a number, such as `0x`.
    is_prefixed: bool,
}

impl Reader {
    fn new(reading: Notation) -> Self {
        Self {
            reading,
            characters: Characters::default(),
            seen: 0,
            runs: Vec::new(),
            next: 0,
            between: (0, 0),
            is_in_word: false,
            is_prefixed: false,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.characters.bytes
    }

    /// Where a character begins in the text, or what is not read yet.
    pub(super) fn start(&self, at: usize) -> usize {
        self.characters.start(at)
    }

    /// Where some characters lie in the text.
    pub(super) fn range(&self, from: usize, to: usize) -> (usize, usize) {
        self.characters.range(from, to)
    }

    /// Forgets all characters but the last ones.
    pub(super) fn keep(&mut self, most: usize) {
        let length = self.characters.bytes.len();
        let count = length.saturating_sub(most);
        self.characters.forget(count);
        self.seen = length - count;
        self.runs.retain(|(_, next)| *next >= length);
        for (start, next) in &mut self.runs {
            *start -= count;
            *next -= count;
        }
    }

    /// Characters of a secret that stay: texts that end with one or two letters of it need not wait for all that may follow.
    pub(super) fn shown_characters(&self) -> usize {
        match self.reading {
            Notation::Bare => 2,
            Notation::Even => 4,
            _ => 0,
        }
    }

    /// Reads on in a layer, to which more will be added unless it `is_whole`: what is at its end may not be complete.
    fn read(&mut self, from: &Characters, is_whole: bool) {
        while let Some(byte) = from.bytes.get(self.next).copied() {
            if let Notation::Among(radix) = self.reading {
                if !self.read_among(from, radix, is_whole) {
                    break;
                }
                continue;
            }
            match self.reading.radix() {
                Some((radix, letters)) => {
                    if !self.read_number(from, radix, letters, is_whole) {
                        break;
                    }
                }
                None if self.reading.takes(byte) => self.push(byte, from, 1),
                None => self.skip(from, 1),
            }
        }
        self.characters.end = from.start(self.next);
    }

    /// Reads a character of so many of the layer.
    fn push(&mut self, byte: u8, from: &Characters, length: usize) {
        self.between = (0, 0);
        self.characters.push(byte, from.range(self.next, self.next + length));
        self.next += length;
    }

    /// Skips what is no character.
    fn skip(&mut self, from: &Characters, length: usize) {
        let (start, end) = from.range(self.next, self.next + length);
        let skipped = &from.bytes[self.next..self.next + length];
        self.between.0 += end - start;
        self.between.1 += skipped.iter().filter(|byte| byte.is_ascii_graphic()).count();
        let is_far = self.between.0 > LONGEST_BETWEEN.0 || self.between.1 > LONGEST_BETWEEN.1;
        if is_far && self.bytes().last().is_some_and(|byte| *byte != 0) {
            self.characters.push(0, (start, end));
        }
        self.next += length;
    }

    /// Reads a number, or a byte that is none. Letters may follow a number, as in `114u8` and `114_u8`.
    fn read_number(
        &mut self,
        from: &Characters,
        radix: u32,
        letters: &[u8],
        is_whole: bool,
    ) -> bool {
        let first = from.bytes[self.next];
        if self.is_in_word || !first.is_ascii_alphanumeric() {
            self.is_in_word &= first.is_ascii_alphanumeric();
            self.skip(from, 1);
            return true;
        }
        let (rest, is_cut) = from.ahead(self.next, is_whole);
        let prefix = match rest {
            [b'0', b'x' | b'X', ..] if radix == 16 => 2,
            [b'0', letter, ..] if letters.contains(letter) && radix != 16 => 2,
            // A digit of the base is none of its letters.
            _ => rest.iter().take_while(|byte| letters.contains(byte)).count(),
        };
        let Some(found) = Number::read(&rest[prefix..], radix, is_cut) else { return false };
        let (end, behind) = (prefix + found.length, &rest[prefix + found.length..]);
        let is_number = match behind {
            [letter, ..] if letter.is_ascii_alphanumeric() => {
                letter.is_ascii_alphabetic()
                    && rest[prefix..].first().is_some_and(u8::is_ascii_digit)
            }
            _ => found.length > 0,
        };
        if !is_number {
            self.is_in_word = true;
            self.skip(from, 1);
            return true;
        }
        // A number of more digits goes on.
        self.is_in_word = !behind.is_empty();
        let is_suffix = matches!(behind, [b'_', letter, ..] if letter.is_ascii_alphabetic());
        match (radix, found.value) {
            (16, _) => {
                // Groups of digits have no mark, and go on one another.
                let is_marked = prefix > 0 || matches!(behind, [b'h' | b'H', ..]);
                let is_wide = is_marked && found.length % 2 == 1 && rest[prefix] == b'0';
                self.push_digits(from, prefix + usize::from(is_wide), end);
            }
            // As in the numbers of wider characters.
            (_, Some(0)) => self.skip(from, end),
            (_, value) => self.push(value.unwrap_or(0), from, end),
        }
        if is_suffix {
            self.skip(from, 1);
        }
        true
    }

    /// Reads all digits that follow one another as a number, or a byte that is none. Small numbers, as in `114u8`, are none.
    fn read_among(&mut self, from: &Characters, radix: u32, is_whole: bool) -> bool {
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        if !is_digit(&&from.bytes[self.next]) {
            self.is_prefixed = false;
            self.skip(from, 1);
            return true;
        }
        let (rest, is_cut) = from.ahead(self.next, is_whole);
        let length = rest.iter().take_while(is_digit).count();
        if is_cut && length == rest.len() {
            return false;
        }
        let is_before_letter = matches!(
            (radix, rest.get(length)),
            (16, Some(b'x' | b'X')) | (8, Some(b'o' | b'O')) | (2, Some(b'b' | b'B'))
        );
        if is_before_letter && rest[..length] == *b"0" {
            self.skip(from, 2);
            self.is_prefixed = true;
            return true;
        }
        // As in `0x720x6b`.
        let is_of_next =
            is_before_letter && self.is_prefixed && length > 1 && rest[length - 1] == b'0';
        let is_prefixed = std::mem::take(&mut self.is_prefixed);
        let length = length - usize::from(is_of_next);
        let digits = &rest[..length];
        if radix == 16 {
            let is_wide = is_prefixed && length % 2 == 1 && digits[0] == b'0';
            let (start, digits) = (usize::from(is_wide), &digits[usize::from(is_wide)..]);
            let is_visible = |pair: &[u8]| matches!(pair, b"00" | [b'2'..=b'7', _]);
            let is_empty = digits.iter().all(|digit| *digit == b'0');
            // Most words have such letters.
            if digits.chunks(2).all(is_visible) && !is_empty {
                self.push_digits(from, start, length)
            } else {
                self.skip(from, length)
            }
            return true;
        }
        match number(digits, radix) {
            Some(0..=32) => self.skip(from, length),
            Some(code @ 33..=126) => self.push(code as u8, from, length),
            _ => self.push(0, from, length),
        }
        true
    }

    /// Hexadecimal digits, without the empty bytes of wider characters.
    fn push_digits(&mut self, from: &Characters, prefix: usize, end: usize) {
        let is_even = (end - prefix).is_multiple_of(2);
        let end = self.next + end;
        for start in (self.next + prefix..end).step_by(2) {
            let pair = &from.bytes[start..end.min(start + 2)];
            if is_even && pair == b"00" {
                continue;
            }
            for (at, digit) in pair.iter().enumerate() {
                self.push(digit.to_ascii_lowercase(), from, start + at + 1 - self.next);
            }
        }
        self.next = end;
    }
}

/// First number of a text.
struct Number {
    /// The byte that it is, if it is one of ASCII.
    value: Option<u8>,
    length: usize,
}

impl Number {
    /// Reads a number, which may have no digits; none if more of it may come.
    fn read(text: &[u8], radix: u32, is_cut: bool) -> Option<Self> {
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let digits = text.iter().take_while(is_digit).count();
        if radix == 16 {
            // Digits behind a `_` are read next; letters are not.
            let is_open = is_cut && (text.len() <= digits || text[digits..] == *b"_");
            return (!is_open).then_some(Self { value: None, length: digits });
        }
        let is_part = |byte: &&u8| is_digit(byte) || **byte == b'_';
        let grouped = text.iter().take_while(is_part).count();
        let float = if radix == 10 && digits > 0 { float_length(text, grouped) } else { 0 };
        if is_cut && grouped.max(float) == text.len() {
            return None;
        }
        let whole = |length: usize| {
            let digits: Vec<u8> =
                text[..length].iter().copied().filter(|byte| *byte != b'_').collect();
            number(&digits, radix).and_then(|value| u8::try_from(value).ok()).filter(u8::is_ascii)
        };
        // A `_` may also be between two numbers, and a point.
        let trimmed =
            text[..grouped].iter().rposition(|byte| *byte != b'_').map_or(0, |last| last + 1);
        let found = float_value(&text[..float]).map(|value| (value, float));
        let found = found.or_else(|| Some((whole(trimmed)?, trimmed)));
        let (value, length) =
            found.map_or((whole(digits), digits), |(value, length)| (Some(value), length));
        Some(Self { value, length })
    }
}

/// Length of a number with a point or an exponent, whose digits before these are so many; 0 if it has neither.
fn float_length(text: &[u8], digits: usize) -> usize {
    let run = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits;
    if text.get(end) == Some(&b'.') {
        end += 1 + run(end + 1);
    }
    if let Some([b'e' | b'E', exponent @ ..]) = text.get(end..) {
        let sign = usize::from(matches!(exponent, [b'+' | b'-', ..]));
        let count = run(end + 1 + sign);
        if count > 0 || exponent.len() == sign {
            end += 1 + sign + count;
        }
    }
    if end > digits { end } else { 0 }
}

/// The byte that a number is, once it is rounded as vectors are.
fn float_value(text: &[u8]) -> Option<u8> {
    let text: String = text.iter().map(|byte| char::from(*byte)).filter(|c| *c != '_').collect();
    byte_of(text.parse().ok()?)
}

/// The ASCII byte that a number of a vector is, whatever its sign.
pub(super) fn byte_of(number: f64) -> Option<u8> {
    let number = (number as f32).abs();
    (number.fract() == 0.0 && number < 128.0).then_some(number as u8)
}
