//! Encodings of single characters in texts that servers write: escapes of JSON, programs, URLs, HTML and mails, and bytes as numbers.

/// Bytes of an escape, at most.
const LONGEST: usize = 40;
/// Digits of a number, at most; what follows is another one.
const LONGEST_NUMBER: usize = 80;
/// Bytes between two characters, at most, and those of them that are no blanks: as in `),\n        UInt8(`.
const LONGEST_BETWEEN: (usize, usize) = (64, 12);
/// Characters that are read before they are looked at.
const BATCH: usize = 1 << 16;

/// A way to write characters, which a text is read by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// As they are.
    Plain,
    /// Escapes of JSON and of programs, URLs and HTML, of one layer or several.
    Escapes,
    /// Quoted-printable, and lines that are broken in the middle of a word.
    Mail,
    /// Letters and digits alone, whatever is between them.
    Bare,
    /// Letters and digits alone, between escapes or written as such.
    BareEscapes,
    /// Hexadecimal digits in any groups.
    Hexadecimal,
    /// Decimal numbers of bytes.
    Decimal,
    /// Octal numbers of bytes.
    Octal,
    /// Binary numbers of bytes.
    Binary,
}

impl Encoding {
    pub(super) const ALL: [Self; 9] = [
        Self::Plain,
        Self::Escapes,
        Self::Mail,
        Self::Bare,
        Self::BareEscapes,
        Self::Hexadecimal,
        Self::Decimal,
        Self::Octal,
        Self::Binary,
    ];

    /// True if a text may hold characters that are written so, and not as another encoding has them.
    pub(super) fn may_be_in(self, text: &[u8]) -> bool {
        match self {
            Self::Plain => true,
            Self::Escapes | Self::BareEscapes => memchr::memchr3(b'\\', b'%', b'&', text).is_some(),
            Self::Mail => memchr::memchr3(b'=', b'\n', b'\r', text).is_some(),
            Self::Bare => !text.iter().all(u8::is_ascii_alphanumeric),
            _ => text.iter().any(u8::is_ascii_digit),
        }
    }

    /// Base of its numbers, and the letters before them.
    fn radix(self) -> Option<(u32, &'static [u8])> {
        match self {
            Self::Hexadecimal => Some((16, b"xXuU")),
            Self::Decimal => Some((10, b"")),
            Self::Octal => Some((8, b"oO")),
            Self::Binary => Some((2, b"bB")),
            _ => None,
        }
    }

    fn is_bare(self) -> bool {
        matches!(self, Self::Bare | Self::BareEscapes)
    }
}

/// A text as an encoding reads it, which may come in pieces.
#[derive(Debug)]
pub(super) struct Reader {
    encoding: Encoding,
    /// Characters that were read last. A 0, which no key has, stands for all that keeps two others apart.
    pub(super) bytes: Vec<u8>,
    /// Where each begins in the text, and how long it is.
    places: Vec<(u32, u8)>,
    /// Where the text begins that is not read yet.
    next: usize,
    /// Bytes since the last character, and those of them that are no blanks.
    between: (usize, usize),
    /// Whether a letter or digit is before the text that is not read, which therefore begins no number.
    is_in_word: bool,
}

impl Reader {
    pub(super) fn new(encoding: Encoding) -> Self {
        let (bytes, places) = (Vec::new(), Vec::new());
        Self { encoding, bytes, places, next: 0, between: (0, 0), is_in_word: false }
    }

    /// Reads on in a text, to which more will be added unless it `is_whole`: what is at its end may not be complete. Returns whether
    /// more can be read at once.
    pub(super) fn read(&mut self, text: &[u8], is_whole: bool) -> bool {
        while self.next < text.len() {
            let is_complete = match self.encoding.radix() {
                Some((radix, letters)) => self.read_number(text, radix, letters, is_whole),
                None => self.read_sign(text, is_whole),
            };
            if !is_complete {
                return false;
            }
            if self.bytes.len() > BATCH {
                return true;
            }
        }
        false
    }

    fn push(&mut self, byte: u8, at: usize, length: usize) {
        self.between = (0, 0);
        self.bytes.push(byte);
        self.places.push((at as u32, length as u8)); // answers are bounded
    }

    /// Skips bytes that are no character.
    fn skip(&mut self, text: &[u8], length: usize) {
        let skipped = &text[self.next..self.next + length];
        self.between.0 += length;
        self.between.1 += skipped.iter().filter(|byte| !byte.is_ascii_whitespace()).count();
        let is_far = self.between.0 > LONGEST_BETWEEN.0 || self.between.1 > LONGEST_BETWEEN.1;
        if is_far && self.bytes.last().is_some_and(|byte| *byte != 0) {
            self.push(0, self.next, length);
        }
        self.next += length;
    }

    fn read_sign(&mut self, text: &[u8], is_whole: bool) -> bool {
        let at = self.next;
        let rest = &text[at..text.len().min(at + LONGEST)];
        let is_cut = rest.len() < LONGEST && !is_whole;
        let sign = match self.encoding {
            Encoding::Mail => mail(rest, is_cut),
            Encoding::Escapes => escape(rest, is_cut),
            Encoding::BareEscapes => written_blank(rest).unwrap_or_else(|| escape(rest, is_cut)),
            _ => Sign::None,
        };
        let (byte, length) = match sign {
            Sign::Byte(byte, length) => (Some(byte), length),
            Sign::Break(length) => (None, length),
            Sign::None => (Some(text[at]), 1),
            Sign::Open => return false,
        };
        let is_bare = self.encoding.is_bare();
        match byte.filter(|byte| !is_bare || byte.is_ascii_alphanumeric()) {
            Some(byte) => {
                self.push(byte, at, length);
                self.next += length;
            }
            None => self.skip(text, length),
        }
        true
    }

    /// Reads a number, or a byte that is none. Letters may follow a number, as in `114u8`.
    fn read_number(&mut self, text: &[u8], radix: u32, letters: &[u8], is_whole: bool) -> bool {
        let at = self.next;
        if self.is_in_word || !text[at].is_ascii_alphanumeric() {
            self.is_in_word &= text[at].is_ascii_alphanumeric();
            self.skip(text, 1);
            return true;
        }
        let rest = &text[at..text.len().min(at + LONGEST_NUMBER)];
        let is_letter = |byte: &&u8| letters.contains(byte);
        let run = |from: usize| rest[from..].iter().take_while(is_letter).count();
        let prefix = match rest {
            [b'0', letter, ..] if letters.contains(letter) && radix != 16 => 2,
            [b'0', b'x' | b'X', ..] if radix == 16 => 2,
            // A digit of the base is none of its letters.
            _ => run(0),
        };
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let count = rest[prefix..].iter().take_while(is_digit).count();
        let end = prefix + count;
        if end == text.len() - at && rest.len() < LONGEST_NUMBER && !is_whole {
            return false;
        }
        let digits = &rest[prefix..end];
        let is_number = match rest.get(end).filter(|byte| byte.is_ascii_alphanumeric()) {
            Some(behind) => {
                digits.first().is_some_and(u8::is_ascii_digit) && b"uUiIlLhHnfFdD".contains(behind)
            }
            None => !digits.is_empty(),
        };
        if !is_number {
            self.is_in_word = true;
            self.skip(text, 1);
            return true;
        }
        match radix {
            16 => self.push_digits(digits, prefix),
            _ => match number(digits, radix) {
                // As in `114.0`.
                Some(0) => self.skip(text, end),
                byte => self.push(byte.unwrap_or(0), at, end),
            },
        }
        self.next = at + end;
        self.is_in_word = end < LONGEST_NUMBER;
        true
    }

    /// Hexadecimal digits, without the empty bytes of wider characters.
    fn push_digits(&mut self, digits: &[u8], prefix: usize) {
        let is_even = digits.len().is_multiple_of(2);
        let mut at = self.next;
        let mut before = prefix;
        for pair in digits.chunks(2) {
            if is_even && pair == b"00" {
                before += 2;
                continue;
            }
            for digit in pair {
                self.push(digit.to_ascii_lowercase(), at, before + 1);
                at += before + 1;
                before = 0;
            }
        }
    }

    /// Where a character begins in the text; of the last one also its end.
    pub(super) fn start(&self, byte: usize) -> usize {
        self.places.get(byte).map_or(self.next, |(start, _)| *start as usize)
    }

    /// Where some characters lie in the text.
    pub(super) fn range(&self, from: usize, to: usize) -> (usize, usize) {
        let (last, length) = self.places[to - 1];
        (self.start(from), last as usize + usize::from(length))
    }

    /// Forgets all characters but the last ones.
    pub(super) fn keep(&mut self, most: usize) {
        let begin = self.bytes.len().saturating_sub(most);
        self.bytes.drain(..begin);
        self.places.drain(..begin);
    }

    /// Forgets the beginning of the text, of which nothing is masked any more.
    pub(super) fn forget(&mut self, end: usize) {
        for (start, _) in &mut self.places {
            *start = start.saturating_sub(end as u32);
        }
        self.next -= end;
    }

    /// Characters of a secret that stay: texts that end with one or two letters of it need not wait for all that may follow.
    pub(super) fn shown(&self) -> usize {
        if self.encoding.is_bare() { 2 } else { 0 }
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

/// `\n`, `\r` and `\t`, which programs write between words.
fn written_blank(text: &[u8]) -> Option<Sign> {
    let run = text.iter().take_while(|byte| **byte == b'\\').count();
    let is_blank = run > 0 && matches!(text.get(run), Some(b'n' | b'r' | b't'));
    is_blank.then_some(Sign::Break(run + 1))
}

/// JSON's `\/`, `\"`, `\\` and `\u002f`, which have more backslashes within JSON, and the `\x2f`, `\057`, `\57`, `\u{2f}`, `\o{57}` and
/// `\U0000002f` of programs.
fn backslash(text: &[u8], is_cut: bool) -> Sign {
    let run = text.iter().take_while(|byte| **byte == b'\\').count();
    let behind = run + 1;
    let sign = match &text[run..] {
        [] if is_cut => Sign::Open,
        [b'u' | b'x' | b'o'] if is_cut => Sign::Open,
        [letter @ (b'u' | b'x' | b'o'), b'{', rest @ ..] => {
            let radix = if *letter == b'o' { 8 } else { 16 };
            let length = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            match (number(&rest[..length], radix), rest.get(length)) {
                (_, None) if is_cut => Sign::Open,
                (Some(byte), Some(b'}')) => Sign::Byte(byte, behind + length + 2),
                _ => Sign::None,
            }
        }
        [b'u', digits @ ..] => {
            let more = digits.iter().take_while(|byte| **byte == b'u').count();
            digits_of(&digits[more..], 4, 16, behind + more, is_cut)
        }
        [b'U', digits @ ..] => digits_of(digits, 8, 16, behind, is_cut),
        [b'x', digits @ ..] => {
            let zeros = digits.iter().take_while(|byte| **byte == b'0').count() / 2 * 2;
            digits_of(&digits[zeros..], 2, 16, behind + zeros, is_cut)
        }
        digits @ [b'0'..=b'7', ..] => octal(digits, run, is_cut),
        [sign @ (b'/' | b'"'), ..] => Sign::Byte(*sign, behind),
        _ => Sign::None,
    };
    match sign {
        Sign::None if run > 1 => Sign::Byte(b'\\', run),
        sign => sign,
    }
}

/// A byte of up to three octal digits behind `before` bytes.
fn octal(digits: &[u8], before: usize, is_cut: bool) -> Sign {
    let count = digits.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    if is_cut && count < 3 && count == digits.len() {
        return Sign::Open;
    }
    let mut lengths = (1..=count).rev();
    let found = lengths.find_map(|length| Some((number(&digits[..length], 8)?, length)));
    found.map_or(Sign::None, |(byte, length)| Sign::Byte(byte, before + length))
}

/// `%2F` of URLs, and the older `%u002F`; a URL within a URL has `%252F`.
fn percent(text: &[u8], is_cut: bool) -> Sign {
    let of = |digits: &[u8], before| match digits.strip_prefix(b"u") {
        Some(digits) => digits_of(digits, 4, 16, before + 1, is_cut),
        None => digits_of(digits, 2, 16, before, is_cut),
    };
    let mut start = 1;
    while let Some(rest) = text[start..].strip_prefix(b"25") {
        match of(rest, 0) {
            Sign::Byte(..) => start += 2,
            Sign::Open => return Sign::Open,
            _ => break,
        }
    }
    of(&text[start..], start)
}

/// `&amp;`, `&sol;`, `&#47;` and `&#x2f;` of HTML, which reads some without `;` too; HTML within HTML has `&amp;#47;`.
fn ampersand(text: &[u8], is_cut: bool) -> Sign {
    let mut end = 1;
    while text[end..].starts_with(b"amp;") {
        end += 4;
    }
    match entity(&text[end..], is_cut) {
        Sign::Byte(byte, length) if end == 1 || text[end + length - 1] == b';' => {
            Sign::Byte(byte, end + length)
        }
        Sign::Open => Sign::Open,
        _ if end > 1 => Sign::Byte(b'&', end),
        _ => Sign::None,
    }
}

/// What is behind the `&`.
fn entity(name: &[u8], is_cut: bool) -> Sign {
    /// Names, each with its sign behind it.
    const NAMES: [&[u8]; 35] = [
        b"amp&", b"lt<", b"gt>", b"quot\"", b"apos'", b"excl!", b"num#", b"dollar$", b"percnt%",
        b"lpar(", b"rpar)", b"ast*", b"midast*", b"plus+", b"comma,", b"period.", b"sol/",
        b"colon:", b"semi;", b"equals=", b"quest?", b"commat@", b"lsqb[", b"lbrack[", b"bsol\\",
        b"rsqb]", b"rbrack]", b"Hat^", b"lowbar_", b"grave`", b"lcub{", b"lbrace{", b"verbar|",
        b"rcub}", b"rbrace}",
    ];
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
        (Some(byte), behind) => Sign::Byte(byte, length + usize::from(behind == Some(&b';'))),
        (None, _) => Sign::None,
    }
}

/// `=2F` of quoted-printable; lines of it are broken by `=` at their ends, those of base64 without.
fn mail(text: &[u8], is_cut: bool) -> Sign {
    let mark = usize::from(text[0] == b'=');
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let blanks = text[mark..].iter().take(LONGEST / 2).take_while(is_blank).count() * mark;
    match (&text[mark + blanks..], &text[mark..]) {
        ([] | [b'\r'], _) if is_cut => Sign::Open,
        ([b'\n', ..], _) => Sign::Break(mark + blanks + 1),
        ([b'\r', b'\n', ..], _) => Sign::Break(mark + blanks + 2),
        (_, digits) if mark > 0 => digits_of(digits, 2, 16, 1, is_cut),
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
