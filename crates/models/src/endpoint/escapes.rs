//! Escapes of single characters in texts that servers write, as used by JSON, programming languages, URLs, HTML and mail.

/// Meaning of the first characters of a text.
#[derive(Clone, Copy)]
pub(super) enum Sign {
    /// A character and the length of its escape. A newline stands for every character that no key contains.
    Byte(u8, usize),
    /// Beginning of an escape that is not complete yet.
    Open,
    None,
}

/// Decodes an escape of JSON, a programming language, a URL or HTML. If the text `is_cut`, more of it may follow.
pub(super) fn escape(text: &[u8], is_cut: bool) -> Sign {
    match text {
        [b'\\', ..] => backslash(text, is_cut),
        [b'%', ..] => percent(text, is_cut),
        [b'&', ..] => ampersand(text, is_cut),
        _ => Sign::None,
    }
}

/// Decodes JSON's `\/`, `\"`, `\\` and `\u002f`, which have more backslashes within JSON; `\x2f`, `\057`, `\57`, `\u{2f}`, `\o{57}`,
/// `\U0000002f` and white space (`\n`) of programming languages; and any other ASCII punctuation after a backslash, as in patterns and
/// shells.
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
                (Some(code), Some(b'}')) => Sign::Byte(character(code), behind + length + 2),
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
            match digits_of(&digits[zeros..], 2, 16, behind + zeros, is_cut) {
                Sign::None => digits_of(digits, 2, 16, behind, is_cut),
                sign => sign,
            }
        }
        digits @ [b'0'..=b'7', ..] => octal(digits, run, is_cut),
        [sign @ (b'/' | b'"'), ..] => Sign::Byte(*sign, behind),
        [sign, ..] if run == 1 && sign.is_ascii_punctuation() => Sign::Byte(*sign, behind),
        [b'n' | b'r' | b't' | b'b' | b'f' | b'v', ..] => Sign::Byte(b'\n', behind),
        _ => Sign::None,
    };
    match sign {
        Sign::None if run > 1 => Sign::Byte(b'\\', run),
        sign => sign,
    }
}

/// Reads a byte of up to three octal digits, which follow `before` other bytes.
fn octal(digits: &[u8], before: usize, is_cut: bool) -> Sign {
    let count = digits.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    if is_cut && count < 3 && count == digits.len() {
        return Sign::Open;
    }
    let mut lengths = (1..=count).rev();
    let value = |length: usize| number(&digits[..length], 8).filter(|code| *code < 256);
    let found = lengths.find_map(|length| Some((value(length)?, length)));
    found.map_or(Sign::None, |(code, length)| Sign::Byte(character(code), before + length))
}

/// Decodes `%2F` of URLs, and the older `%u002F`.
fn percent(text: &[u8], is_cut: bool) -> Sign {
    match text[1..].strip_prefix(b"u") {
        Some(digits) => digits_of(digits, 4, 16, 2, is_cut),
        None => digits_of(&text[1..], 2, 16, 1, is_cut),
    }
}

/// Decodes `&amp;`, `&sol;`, `&#47;` and `&#x2f;` of HTML, which accepts some without `;` too; HTML within HTML contains `&amp;#47;`.
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

/// Decodes the name behind an `&`.
fn entity(name: &[u8], is_cut: bool) -> Sign {
    /// Maximum length of a name.
    const LONGEST_NAME: usize = 31;
    /// Names, each followed by its character.
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
        let code = number(&digits[..length], radix);
        (code.map(character), length + 1 + usize::from(is_hexadecimal))
    } else {
        let is_letter = |byte: &&u8| byte.is_ascii_alphanumeric();
        let length = name.iter().take(LONGEST_NAME).take_while(is_letter).count();
        if is_cut && length == name.len() {
            return Sign::Open;
        }
        let mut names = NAMES.iter().filter_map(|name| name.split_last());
        match names.find(|(_, of)| name.starts_with(of)) {
            Some((sign, of)) => (Some(*sign), of.len()),
            // An unlisted name, such as `&nbsp;`.
            None => ((length > 0 && name.get(length) == Some(&b';')).then_some(b'\n'), length),
        }
    };
    match (byte, name.get(length)) {
        (_, None) if is_cut => Sign::Open,
        (Some(byte), behind) => Sign::Byte(byte, length + usize::from(behind == Some(&b';'))),
        (None, _) => Sign::None,
    }
}

/// Decodes `=2F` of quoted-printable, which also breaks lines with a trailing `=`. If the text `is_cut`, more of it may follow.
pub(super) fn mail(text: &[u8], is_cut: bool) -> Sign {
    let Some(rest) = text.strip_prefix(b"=") else { return Sign::None };
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    match &rest[blanks..] {
        [] | [b'\r'] if is_cut => Sign::Open,
        [b'\n', ..] => Sign::Byte(b'\n', blanks + 2),
        [b'\r', b'\n', ..] => Sign::Byte(b'\n', blanks + 3),
        _ => digits_of(rest, 2, 16, 1, is_cut),
    }
}

/// Reads a byte of `count` digits, which follow `before` other bytes.
fn digits_of(digits: &[u8], count: usize, radix: u32, before: usize, is_cut: bool) -> Sign {
    let digits = &digits[..digits.len().min(count)];
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    match number(digits, radix) {
        _ if is_cut && digits.len() < count && digits.iter().all(is_digit) => Sign::Open,
        Some(code) if digits.len() == count => Sign::Byte(character(code), before + count),
        _ => Sign::None,
    }
}

/// Returns the value of a text that consists of digits.
pub(super) fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    let digits =
        str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| is_digit(&byte)))?;
    u32::from_str_radix(digits, radix).ok()
}

/// Returns the character of a code point, or a newline if no key contains that character.
fn character(code: u32) -> u8 {
    u8::try_from(code).ok().filter(u8::is_ascii_graphic).unwrap_or(b'\n')
}
