//! Encodings of single characters in texts that servers write: escapes of JSON, programs, URLs, HTML and mails, and bytes as numbers.

/// Bytes of an escape, at most.
const LONGEST: usize = 16;
/// Bytes between two numbers of a list, at most, as in `', '`.
const LONGEST_BETWEEN: usize = 4;

/// A way to write characters, which a text is read by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Escapes of JSON and of programs, URLs and HTML, of one layer or several.
    Escapes,
    /// Quoted-printable, and lines that are broken in the middle of a word.
    Mail,
    /// Hexadecimal digits of a byte, or of up to four, between other characters.
    Hexadecimal,
    /// Decimal numbers of bytes between other characters.
    Decimal,
}

impl Encoding {
    pub(super) const ALL: [Self; 4] = [Self::Escapes, Self::Mail, Self::Hexadecimal, Self::Decimal];

    /// True if a text may hold characters that are written so.
    fn may_be_in(self, text: &[u8]) -> bool {
        match self {
            Self::Escapes => memchr::memchr3(b'\\', b'%', b'&', text).is_some(),
            Self::Mail => memchr::memchr2(b'=', b'\n', text).is_some(),
            Self::Hexadecimal | Self::Decimal => text.iter().any(u8::is_ascii_digit),
        }
    }
}

/// A text as an encoding reads it.
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    /// Where each byte begins in the text, and how long it is.
    places: Vec<(u32, u8)>,
    /// Where the text ends, or a character begins that is not complete.
    end: usize,
}

impl Decoded {
    /// Reads a text, to which more will be added unless it `is_whole`: what is at its end may not be complete. Behind a letter or
    /// digit that was there before it, its first ones begin no number.
    pub(super) fn of(
        text: &[u8],
        encoding: Encoding,
        is_whole: bool,
        is_in_word: bool,
    ) -> Option<Self> {
        if !encoding.may_be_in(text) {
            return None;
        }
        let mut view = Self { bytes: Vec::new(), places: Vec::new(), end: text.len() };
        match encoding {
            Encoding::Escapes | Encoding::Mail => view.read_signs(text, encoding, is_whole),
            _ => view.read_numbers(text, encoding, is_whole, is_in_word),
        }
        Some(view)
    }

    fn push(&mut self, byte: u8, at: usize, length: usize) {
        self.bytes.push(byte);
        self.places.push((at as u32, length as u8)); // answers are bounded
    }

    fn read_signs(&mut self, text: &[u8], encoding: Encoding, is_whole: bool) {
        let (mut at, mut may_break) = (0, true);
        while at < text.len() {
            let rest = &text[at..text.len().min(at + LONGEST)];
            let is_cut = rest.len() < LONGEST && !is_whole;
            let sign = match encoding {
                Encoding::Mail => mail(rest, is_cut),
                _ => escape(rest, is_cut),
            };
            let length = match sign {
                Sign::Byte(byte, length) => {
                    self.push(byte, at, length);
                    length
                }
                // A second one in a row is an empty line.
                Sign::Break(length) if may_break => length,
                Sign::Open => {
                    self.end = at;
                    return;
                }
                Sign::None | Sign::Break(_) => {
                    self.push(text[at], at, 1);
                    1
                }
            };
            may_break = !matches!(sign, Sign::Break(_)) || !may_break;
            at += length;
        }
    }

    /// What is no number, or too far from the one before, becomes a 0, which no key has.
    fn read_numbers(
        &mut self,
        text: &[u8],
        encoding: Encoding,
        is_whole: bool,
        mut is_in_word: bool,
    ) {
        let (mut at, mut between) = (0, 0);
        while at < text.len() {
            if !text[at].is_ascii_alphanumeric() {
                is_in_word = false;
                between += 1;
                if between > LONGEST_BETWEEN {
                    self.push(0, at, 1);
                }
                at += 1;
                continue;
            }
            between = 0;
            let rest = &text[at..text.len().min(at + LONGEST)];
            let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            let word = &rest[..length];
            let digits = match encoding {
                Encoding::Decimal => word,
                _ => word.strip_prefix(b"0x").or(word.strip_prefix(b"0X")).unwrap_or(word),
            };
            let radix = if encoding == Encoding::Decimal { 10 } else { 16 };
            let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
            let may_be_number = !is_in_word && length < LONGEST && digits.iter().all(is_digit);
            if may_be_number && length == text.len() - at && !is_whole {
                self.end = at;
                return;
            }
            is_in_word = true;
            match (encoding, digits.len()) {
                _ if !may_be_number => self.push(0, at, length),
                (Encoding::Hexadecimal, 2 | 4 | 6 | 8) => {
                    // All begin with the number, which is not split.
                    let mut end = length - digits.len();
                    for pair in digits.chunks(2) {
                        end += 2;
                        self.push(number(pair, 16).unwrap_or(0), at, end);
                    }
                }
                (Encoding::Decimal, _) => self.push(number(digits, 10).unwrap_or(0), at, length),
                _ => self.push(0, at, length),
            }
            at += length;
        }
    }

    /// Where a byte begins in the text; of the last one also its end.
    pub(super) fn start(&self, byte: usize) -> usize {
        self.places.get(byte).map_or(self.end, |(start, _)| *start as usize)
    }

    /// Where some bytes lie in the text.
    pub(super) fn range(&self, from: usize, to: usize) -> (usize, usize) {
        let (last, length) = self.places[to - 1];
        (self.start(from), last as usize + usize::from(length))
    }

    /// Where the byte begins that a place in the text belongs to.
    pub(super) fn start_before(&self, place: usize) -> usize {
        match self.places.partition_point(|(start, _)| *start as usize <= place) {
            _ if place >= self.end => self.end,
            behind => self.start(behind.saturating_sub(1)).min(place),
        }
    }
}

/// First part of a text.
#[derive(Clone, Copy)]
enum Sign {
    /// A byte, and how long it is written.
    Byte(u8, usize),
    /// A line that is broken here, and how long that is written.
    Break(usize),
    /// The beginning of a sign that is not complete.
    Open,
    None,
}

fn escape(text: &[u8], is_cut: bool) -> Sign {
    match text {
        [b'\\', ..] => backslash(text, is_cut),
        [b'%', ..] => percent(text, is_cut),
        [b'&', ..] => ampersand(text, is_cut),
        _ => Sign::None,
    }
}

/// JSON's `\/`, `\"`, `\\` and `\u002f`, which have more backslashes within JSON, and the `\x2f`, `\057`, `\u{2f}` and `\U0000002f` of
/// programs.
fn backslash(text: &[u8], is_cut: bool) -> Sign {
    let run = text.iter().take_while(|byte| **byte == b'\\').count();
    let behind = run + 1;
    let sign = match &text[run..] {
        [] if is_cut => Sign::Open,
        [b'u', b'{', rest @ ..] => {
            let length = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            match (number(&rest[..length], 16), rest.get(length)) {
                (_, None) if is_cut => Sign::Open,
                (Some(byte), Some(b'}')) => Sign::Byte(byte, behind + length + 2),
                _ => Sign::None,
            }
        }
        [b'u', digits @ ..] => digits_of(digits, 4, 16, behind, is_cut),
        [b'U', digits @ ..] => digits_of(digits, 8, 16, behind, is_cut),
        [b'x', digits @ ..] => digits_of(digits, 2, 16, behind, is_cut),
        digits @ [b'0' | b'1', ..] => digits_of(digits, 3, 8, run, is_cut),
        [sign @ (b'/' | b'"'), ..] => Sign::Byte(*sign, behind),
        _ => Sign::None,
    };
    match sign {
        Sign::None if run > 1 => Sign::Byte(b'\\', run),
        sign => sign,
    }
}

/// `%2F` of URLs; a URL within a URL has `%252F`.
fn percent(text: &[u8], is_cut: bool) -> Sign {
    let mut start = 1;
    while let Some(rest) = text[start..].strip_prefix(b"25") {
        match digits_of(rest, 2, 16, 0, is_cut) {
            Sign::Byte(..) => start += 2,
            Sign::Open => return Sign::Open,
            _ => break,
        }
    }
    digits_of(&text[start..], 2, 16, start, is_cut)
}

/// `&amp;`, `&sol;`, `&#47;` and `&#x2f;` of HTML, which reads some without `;` too.
fn ampersand(text: &[u8], is_cut: bool) -> Sign {
    /// Names, each with its sign behind it.
    const NAMES: [&[u8]; 35] = [
        b"amp&", b"lt<", b"gt>", b"quot\"", b"apos'", b"excl!", b"num#", b"dollar$", b"percnt%",
        b"lpar(", b"rpar)", b"ast*", b"midast*", b"plus+", b"comma,", b"period.", b"sol/",
        b"colon:", b"semi;", b"equals=", b"quest?", b"commat@", b"lsqb[", b"lbrack[", b"bsol\\",
        b"rsqb]", b"rbrack]", b"Hat^", b"lowbar_", b"grave`", b"lcub{", b"lbrace{", b"verbar|",
        b"rcub}", b"rbrace}",
    ];
    let name = &text[1..];
    let (byte, length) = if let Some(number_of) = name.strip_prefix(b"#") {
        let is_hexadecimal = matches!(number_of, [b'x' | b'X', ..]);
        let (digits, radix) = if is_hexadecimal { (&number_of[1..], 16) } else { (number_of, 10) };
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let length = digits.iter().take_while(is_digit).count();
        (number(&digits[..length], radix), length + 1 + usize::from(is_hexadecimal))
    } else {
        let mut names = NAMES.iter().filter_map(|name| name.split_last());
        if is_cut && names.clone().any(|(_, of)| of.starts_with(name)) {
            return Sign::Open;
        }
        let named = names.find(|(_, of)| name.starts_with(of));
        (named.map(|(sign, _)| *sign), named.map_or(0, |(_, of)| of.len()))
    };
    match (byte, name.get(length)) {
        (_, None) if is_cut => Sign::Open,
        (Some(byte), behind) => Sign::Byte(byte, 1 + length + usize::from(behind == Some(&b';'))),
        (None, _) => Sign::None,
    }
}

/// `=2F` of quoted-printable; lines of it are broken by `=` at their ends, those of base64 without.
fn mail(text: &[u8], is_cut: bool) -> Sign {
    match text {
        [b'=' | b'\r'] | [b'=', b'\r'] if is_cut => Sign::Open,
        [b'\n', ..] => Sign::Break(1),
        [b'\r', b'\n', ..] | [b'=', b'\n', ..] => Sign::Break(2),
        [b'=', b'\r', b'\n', ..] => Sign::Break(3),
        [b'=', digits @ ..] => digits_of(digits, 2, 16, 1, is_cut),
        _ => Sign::None,
    }
}

/// A byte of so many digits behind `before` bytes.
fn digits_of(digits: &[u8], count: usize, radix: u32, before: usize, is_cut: bool) -> Sign {
    let digits = &digits[..digits.len().min(count)];
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    match number(digits, radix) {
        _ if is_cut && digits.len() < count && digits.iter().all(is_digit) => Sign::Open,
        Some(byte) if digits.len() == count => Sign::Byte(byte, before + count),
        _ => Sign::None,
    }
}

/// The ASCII character of some digits.
fn number(digits: &[u8], radix: u32) -> Option<u8> {
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    let digits =
        str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| is_digit(&byte)))?;
    u8::from_str_radix(digits, radix).ok().filter(u8::is_ascii)
}
