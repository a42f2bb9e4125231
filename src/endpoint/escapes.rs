//! Escapes of JSON, URLs and HTML in texts that servers write, of one layer or several.

/// Bytes of an escape, at most.
const LONGEST: usize = 16;

/// True if a text may hold escapes.
pub(super) fn has_escapes(text: &[u8]) -> bool {
    memchr::memchr3(b'\\', b'%', b'&', text).is_some()
}

/// A text with a byte for each escape of an ASCII character.
pub(super) struct Unescaped {
    pub(super) bytes: Vec<u8>,
    /// Where each byte begins in the text.
    starts: Vec<usize>,
    /// Where the text ends, or an escape begins that is not complete.
    end: usize,
}

impl Unescaped {
    pub(super) fn whole(text: &[u8]) -> Self {
        Self::of(text, true)
    }

    /// Reads a text to which more will be added: an escape at its end may not be complete.
    pub(super) fn beginning(text: &[u8]) -> Self {
        Self::of(text, false)
    }

    fn of(text: &[u8], is_whole: bool) -> Self {
        let mut view = Self { bytes: Vec::new(), starts: Vec::new(), end: text.len() };
        let mut at = 0;
        while at < text.len() {
            let (byte, length) = match escape(&text[at..]) {
                Escape::Byte(byte, length) => (byte, length),
                Escape::Open if !is_whole => {
                    view.end = at;
                    break;
                }
                Escape::Open | Escape::None => (text[at], 1),
            };
            view.bytes.push(byte);
            view.starts.push(at);
            at += length;
        }
        view
    }

    /// Where a byte begins in the text; of the last one also its end.
    pub(super) fn start(&self, byte: usize) -> usize {
        self.starts.get(byte).copied().unwrap_or(self.end)
    }

    /// Where the byte begins that a place in the text belongs to.
    pub(super) fn start_before(&self, place: usize) -> usize {
        match self.starts.partition_point(|start| *start <= place) {
            _ if place >= self.end => self.end,
            behind => self.start(behind.saturating_sub(1)),
        }
    }
}

/// First part of a text.
enum Escape {
    /// An escape of a byte, and its length.
    Byte(u8, usize),
    /// The beginning of one.
    Open,
    None,
}

fn escape(text: &[u8]) -> Escape {
    let text = &text[..text.len().min(LONGEST)];
    let escape = match text {
        [b'\\', ..] => backslash(text),
        [b'%', ..] => percent(text),
        [b'&', ..] => ampersand(text),
        _ => Escape::None,
    };
    match escape {
        Escape::Open if text.len() == LONGEST => Escape::None,
        escape => escape,
    }
}

/// JSON's `\/`, `\"`, `\\` and `\u002f`; JSON within JSON has more backslashes.
fn backslash(text: &[u8]) -> Escape {
    let run = text.iter().take_while(|byte| **byte == b'\\').count();
    match &text[run..] {
        [] => Escape::Open,
        [b'u', digits @ ..] => hexadecimal(digits, 4, run + 1),
        [sign @ (b'/' | b'"'), ..] => Escape::Byte(*sign, run + 1),
        _ if run > 1 => Escape::Byte(b'\\', run),
        _ => Escape::None,
    }
}

/// `%2F` of URLs; a URL within a URL has `%252F`.
fn percent(text: &[u8]) -> Escape {
    let mut start = 1;
    while let Some(rest) = text[start..].strip_prefix(b"25") {
        match hexadecimal(rest, 2, 0) {
            Escape::Byte(..) => start += 2,
            Escape::Open => return Escape::Open,
            Escape::None => break,
        }
    }
    hexadecimal(&text[start..], 2, start)
}

/// `&amp;`, `&#47;` and `&#x2f;` of HTML.
fn ampersand(text: &[u8]) -> Escape {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    let length = text[1..].iter().take_while(|byte| is_name(byte)).count();
    let (name, behind) = text[1..].split_at(length);
    let number = |digits: &[u8], radix| {
        let digits = str::from_utf8(digits).ok()?;
        u8::from_str_radix(digits, radix).ok().filter(u8::is_ascii)
    };
    let byte = match (name, behind) {
        (_, []) => return Escape::Open,
        (_, [other, ..]) if *other != b';' => None,
        (b"amp", _) => Some(b'&'),
        (b"lt", _) => Some(b'<'),
        (b"gt", _) => Some(b'>'),
        (b"quot", _) => Some(b'"'),
        (b"apos", _) => Some(b'\''),
        ([b'#', b'x' | b'X', digits @ ..], _) => number(digits, 16),
        ([b'#', digits @ ..], _) => number(digits, 10),
        _ => None,
    };
    byte.map_or(Escape::None, |byte| Escape::Byte(byte, length + 2))
}

/// A byte of so many digits behind `before` bytes.
fn hexadecimal(digits: &[u8], count: usize, before: usize) -> Escape {
    let digits = &digits[..digits.len().min(count)];
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return Escape::None;
    }
    if digits.len() < count {
        return Escape::Open;
    }
    let code = str::from_utf8(digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
    match code.filter(u8::is_ascii) {
        Some(byte) => Escape::Byte(byte, before + count),
        None => Escape::None,
    }
}
