//! Ways to read the characters of a text that a server writes: plain, ignoring separators, at equal distances, or as numbers, also among
//! letters; for the text itself and for the text that its escapes decode to.

use super::escapes::{Sign, escape, mail, number};

/// Maximum number of bytes that are read as one character: three nested escapes of eight characters.
const LONGEST: usize = 8 * 8 * 8;
/// Maximum number of bytes between two characters, in total and of characters that a key may contain; enough for `),\n        UInt8(`.
const LONGEST_BETWEEN: (usize, usize) = (64, 32);
/// Number of spaces that keep two texts apart.
pub(super) const FAR: usize = LONGEST_BETWEEN.0 + 1;
/// Longest distance between two characters that are read at equal distances.
pub(super) const LONGEST_STEP: usize = 32;
/// Number of bytes in a batch; complete texts are read in batches.
pub(super) const BATCH: usize = 1 << 16;

/// Way to read characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// As they are written.
    Exact,
    /// Without line ends, which may break a word.
    Joined,
    /// Only letters and digits, whatever separates them.
    Bare,
    /// Without white space; characters at equal distances, whatever separates them.
    Even,
    /// Hexadecimal digits, in groups of any size.
    Hexadecimal,
    /// Decimal numbers of bytes.
    Decimal,
    /// Octal numbers of bytes.
    Octal,
    /// Binary numbers of bytes.
    Binary,
    /// Numbers of visible characters in this base, whatever letters surround them.
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

    /// Returns the base of the notation's numbers and the letters that may precede them.
    fn radix(self) -> Option<(u32, &'static [u8])> {
        match self {
            Self::Hexadecimal => Some((16, b"xXuUhH")),
            Self::Decimal => Some((10, b"")),
            Self::Octal => Some((8, b"oO")),
            Self::Binary => Some((2, b"bB")),
            Self::Exact | Self::Joined | Self::Bare | Self::Even | Self::Among(_) => None,
        }
    }

    /// Returns whether the notation reads a character that is written as itself.
    fn takes(self, byte: u8) -> bool {
        match self {
            Self::Bare => byte.is_ascii_alphanumeric(),
            Self::Joined => byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t'),
            Self::Even => byte.is_ascii_graphic(),
            _ => true,
        }
    }
}

/// Characters and their positions in the text.
#[derive(Debug, Clone, Default)]
struct Characters {
    bytes: Vec<u8>,
    places: Vec<(usize, usize)>,
    /// Position in the text at which the source of the characters ends.
    end: usize,
}

impl Characters {
    fn push(&mut self, byte: u8, place: (usize, usize)) {
        self.bytes.push(byte);
        self.places.push(place);
    }

    /// Returns the range in the text of some characters.
    fn range(&self, from: usize, to: usize) -> (usize, usize) {
        (self.places[from].0, self.places[to - 1].1)
    }

    /// Returns the position at which a character begins, or at which the characters end.
    fn start(&self, at: usize) -> usize {
        self.places.get(at).map_or(self.end, |(start, _)| *start)
    }

    /// Returns the characters, from one on, that may form one character together, and whether more of them may follow.
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

/// Layer of a text: the text itself, or the previous layer with its escapes decoded.
#[derive(Debug)]
struct Layer {
    characters: Characters,
    readers: Vec<Reader>,
    /// First character that is not yet decoded for the next layer.
    next: usize,
    /// Whether the layer's text differs, or may differ, from the previous layer's. Until then its readers would read the same text, so they
    /// do not read.
    is_another: bool,
}

impl Layer {
    fn new() -> Self {
        let readers = Notation::ALL.map(Reader::new).into();
        Self { characters: Characters::default(), readers, next: 0, is_another: false }
    }

    /// Decodes escapes for the next layer. An incomplete escape is left for the next call.
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

    /// Moves the layer's readers to where the readers of an earlier layer are, which had the same text so far.
    fn go_on_from(&mut self, earlier: &Self) {
        self.readers.clone_from(&earlier.readers);
        for reader in &mut self.readers {
            let place = earlier.characters.start(reader.next);
            reader.next = self.characters.places.partition_point(|(start, _)| *start < place);
        }
    }

    /// Forgets the characters that all readers have read, or, if another layer's readers read for this layer, those before `others_at`.
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

/// Decoder of each layer, applied to the layer before it, because escapes may be nested. A key may look like a mail escape (`=4e`), so
/// these are decoded separately.
const DECODERS: [Decode; 4] = [escape, mail, escape, escape];

/// Text that may arrive in pieces, in all its layers and notations.
#[derive(Debug)]
pub(super) struct Layers(Vec<Layer>);

impl Layers {
    pub(super) fn new() -> Self {
        let mut layers: Vec<Layer> = (0..=DECODERS.len()).map(|_| Layer::new()).collect();
        layers[0].is_another = true;
        Self(layers)
    }

    /// Reads a piece of the text, the last one if it `is_end`, and calls `show` with each reader that has read it.
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

/// Reader of a layer in one notation.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    pub(super) reading: Notation,
    /// Characters that were read last. A 0, which no key contains, stands for a gap that separates its neighbours.
    characters: Characters,
    /// Number of these characters that were already examined.
    pub(super) seen: usize,
    /// Runs of characters at equal distances that may continue: the start of each, and the position of its next character.
    pub(super) runs: Vec<(usize, usize)>,
    /// First character of the layer that is not read yet.
    next: usize,
    /// Number of bytes since the last character, in total and of characters that a key may contain.
    between: (usize, usize),
    /// Whether a letter or digit precedes the unread text, so that no number begins there.
    is_in_word: bool,
    /// Whether the preceding text begins a number, such as `0x`.
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

    /// Returns the position in the text at which a character, or the unread text, begins.
    pub(super) fn start(&self, at: usize) -> usize {
        self.characters.start(at)
    }

    /// Returns the range in the text of some characters.
    pub(super) fn range(&self, from: usize, to: usize) -> (usize, usize) {
        self.characters.range(from, to)
    }

    /// Forgets all characters except the last ones.
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

    /// Returns the number of characters at the beginning of a secret that are not masked, so that a text that ends with one or two letters
    /// of the secret is not held back.
    pub(super) fn shown_characters(&self) -> usize {
        match self.reading {
            Notation::Bare => 2,
            Notation::Even => 4,
            _ => 0,
        }
    }

    /// Reads on in a layer. Unless it `is_whole`, more will follow, so the characters at its end may be incomplete.
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

    /// Adds a character that takes up `length` characters of the layer.
    fn push(&mut self, byte: u8, from: &Characters, length: usize) {
        self.between = (0, 0);
        self.characters.push(byte, from.range(self.next, self.next + length));
        self.next += length;
    }

    /// Skips characters that the notation does not read.
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

    /// Reads a number, or skips a byte that does not begin one. Letters may follow a number, as in `114u8` and `114_u8`.
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
            // A digit of the base is not one of these letters.
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
        // A number with more digits continues.
        self.is_in_word = !behind.is_empty();
        let is_suffix = matches!(behind, [b'_', letter, ..] if letter.is_ascii_alphabetic());
        match (radix, found.value) {
            (16, _) => {
                // Groups of digits without a prefix or suffix may continue each other.
                let is_marked = prefix > 0 || matches!(behind, [b'h' | b'H', ..]);
                let is_wide = is_marked && found.length % 2 == 1 && rest[prefix] == b'0';
                self.push_digits(from, prefix + usize::from(is_wide), end);
            }
            // A zero byte, as in the numbers of wider characters.
            (_, Some(0)) => self.skip(from, end),
            (_, value) => self.push(value.unwrap_or(0), from, end),
        }
        if is_suffix {
            self.skip(from, 1);
        }
        true
    }

    /// Reads consecutive digits as one number, or skips a byte that is not a digit. Numbers up to 32, such as the 8 of `114u8`, are
    /// skipped.
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
        // The last 0 belongs to the next prefix, as in `0x720x6b`.
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
            // Most words contain letters that are hexadecimal digits.
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

    /// Adds hexadecimal digits, without the zero bytes of wider characters.
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

/// Number at the beginning of a text.
struct Number {
    /// ASCII byte with this number, if there is one.
    value: Option<u8>,
    length: usize,
}

impl Number {
    /// Reads a number, which may have no digits; `None` if more digits may follow.
    fn read(text: &[u8], radix: u32, is_cut: bool) -> Option<Self> {
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let digits = text.iter().take_while(is_digit).count();
        if radix == 16 {
            // Digits after a `_` are read next; letters are not.
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
        // A `_` or a point may also separate two numbers.
        let trimmed =
            text[..grouped].iter().rposition(|byte| *byte != b'_').map_or(0, |last| last + 1);
        let found = float_value(&text[..float]).map(|value| (value, float));
        let found = found.or_else(|| Some((whole(trimmed)?, trimmed)));
        let (value, length) =
            found.map_or((whole(digits), digits), |(value, length)| (Some(value), length));
        Some(Self { value, length })
    }
}

/// Returns the length of a number with a point or an exponent, which follow `digits` digits; 0 if it has neither.
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

/// Returns the byte with this number, after rounding it as vectors are rounded.
fn float_value(text: &[u8]) -> Option<u8> {
    let text: String = text.iter().map(|byte| char::from(*byte)).filter(|c| *c != '_').collect();
    byte_of(text.parse().ok()?)
}

/// Returns the ASCII byte with the number of a vector's element, whatever its sign.
pub(super) fn byte_of(number: f64) -> Option<u8> {
    let number = (number as f32).abs();
    (number.fract() == 0.0 && number < 128.0).then_some(number as u8)
}
