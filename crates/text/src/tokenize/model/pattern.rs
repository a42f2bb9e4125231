//! Bound on how often the regular-expression engine may backtrack at one position of a text. The engine takes time in
//! proportion to the text for patterns without look-around, back-references and atomic groups; for other patterns, it tries one
//! way to match after another.

/// Greatest number of ways to match at one position.
const WAYS: u64 = 4_000;
/// Number of ways counted for an unbounded repetition.
const ENDLESS: u64 = 1_000;
/// Greatest nesting of groups; the engine accepts 64.
const DEPTH: usize = 64;

/// Returns true if there may be too many ways to match a pattern at one position of a text.
pub(super) fn is_slow(pattern: &str) -> bool {
    let mut rest = PatternRest { text: pattern.as_bytes(), depth: 0 };
    let ways = rest.alternatives();
    // The engine rejects a pattern with a group end that has no start.
    ways.tried > WAYS
}

/// Ways to match a part of a pattern.
#[derive(Clone, Copy)]
struct Ways {
    /// All ways.
    all: u64,
    /// Ways that the engine tries one after another if nothing else in the pattern makes it do so.
    tried: u64,
    /// Whether this part itself makes the engine try its ways one after another.
    is_hard: bool,
}

/// Remaining text of a pattern.
struct PatternRest<'p> {
    text: &'p [u8],
    depth: usize,
}

impl PatternRest<'_> {
    /// Reads alternatives up to the end of a group.
    fn alternatives(&mut self) -> Ways {
        let mut sum = self.sequence();
        while self.take(b"|") {
            let next = self.sequence();
            sum.all = sum.all.saturating_add(next.all);
            sum.tried = sum.tried.max(next.tried);
            sum.is_hard |= next.is_hard;
        }
        sum
    }

    /// Reads a sequence.
    fn sequence(&mut self) -> Ways {
        let (mut all, mut is_hard, mut parts, mut tried) = (1_u64, false, 0, 1);
        while let Some(part) = self.parse_repeated() {
            parts += 1;
            all = all.saturating_mul(part.all);
            is_hard |= part.is_hard;
            tried = part.tried;
        }
        // A group that stands alone has the ways of its content.
        let tried = match is_hard {
            _ if parts == 1 => tried,
            true => all,
            false => 1,
        };
        Ways { all, tried, is_hard }
    }

    /// Reads a character, class or group with its repetition.
    fn parse_repeated(&mut self) -> Option<Ways> {
        let mut part = self.part()?;
        while let Some((least, most)) = self.repetition() {
            let is_possessive = self.take(b"+");
            let _ = self.take(b"?");
            let times = most.map_or(ENDLESS, |most| most.saturating_sub(least) + 1);
            let repeats = most.map_or(u32::MAX, |most| most.try_into().unwrap_or(u32::MAX));
            let all = part.all.saturating_pow(repeats).saturating_mul(times);
            part.all = if is_possessive && part.all == 1 { 1 } else { all };
            part.is_hard |= is_possessive;
            part.tried = if part.is_hard { part.all } else { 1 };
        }
        Some(part)
    }

    /// Reads a repetition: its least and greatest number of times.
    fn repetition(&mut self) -> Option<(u64, Option<u64>)> {
        match self.text.first()? {
            b'?' => self.skip(1, (0, Some(1))),
            b'*' | b'+' => self.skip(1, (0, None)),
            b'{' => {
                let end = self.text.iter().position(|byte| *byte == b'}')?;
                let inside = str::from_utf8(&self.text[1..end]).ok()?;
                let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
                let number = |text: &str| match text.trim() {
                    "" => Ok(None),
                    digits => digits.parse::<u64>().map(Some),
                };
                let (least, most) = (number(least).ok()?, number(most).ok()?);
                self.skip(end + 1, (least.unwrap_or(0), most))
            }
            _ => None,
        }
    }

    /// Reads a character, class, assertion or group.
    fn part(&mut self) -> Option<Ways> {
        let one = |is_hard| Ways { all: 1, tried: 1, is_hard };
        match self.text {
            [] | [b'|' | b')', ..] => None,
            [b'(', ..] => Some(self.group()),
            [b'[', ..] => self.skip(self.class(), one(false)),
            [b'\\', b'1'..=b'9' | b'k' | b'g' | b'K' | b'G', ..] => self.skip(2, one(true)),
            [b'\\', _, ..] => self.skip(2, one(false)),
            _ => self.skip(1, one(false)),
        }
    }

    /// Reads a group; look-around and conditions are hard, whatever they contain.
    fn group(&mut self) -> Ways {
        let starts =
            |signs: &[&str]| signs.iter().any(|sign| self.text.starts_with(sign.as_bytes()));
        let is_whole = starts(&["(?=", "(?!", "(?<=", "(?<!", "(?>"]);
        let is_hard = is_whole || starts(&["(?("]);
        self.text = &self.text[1..];
        if self.take(b"?") {
            // Flags and names are read as characters, except for a repetition sign.
            let _ = self.take(b"<") || self.take(b"P<");
        }
        self.depth += 1;
        if self.depth > DEPTH {
            self.text = &[];
            return Ways { all: u64::MAX, tried: u64::MAX, is_hard: true };
        }
        let mut ways = self.alternatives();
        self.depth -= 1;
        let _ = self.take(b")");
        // A plain part of such a group is left to the faster engine, and matches in one way.
        ways.all = if is_whole && !ways.is_hard { 1 } else { ways.all };
        ways.is_hard |= is_hard;
        ways.tried = if is_hard { ways.all } else { ways.tried };
        ways
    }

    /// Returns the number of bytes of a class, including nested classes.
    fn class(&self) -> usize {
        let (mut depth, mut at) = (0, 0);
        while let Some(byte) = self.text.get(at) {
            match byte {
                b'\\' => at += 1,
                // A bracket that comes first is a character.
                b'[' => {
                    depth += 1;
                    at += usize::from(self.text.get(at + 1) == Some(&b'^'));
                    at += usize::from(self.text.get(at + 1) == Some(&b']'));
                }
                b']' if depth == 1 => return at + 1,
                b']' => depth -= 1,
                _ => {}
            }
            at += 1;
        }
        self.text.len()
    }

    fn take(&mut self, sign: &[u8]) -> bool {
        let rest = self.text.strip_prefix(sign);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    fn skip<T>(&mut self, bytes: usize, value: T) -> Option<T> {
        self.text = self.text.get(bytes..).unwrap_or_default();
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_with_too_many_ways_are_slow() {
        for pattern in [
            r".{0,600}.{0,600}(?=\x00)|(?s).",
            r"(a+)+(?=b)|a",
            r"(?:(?=a)a|(?=a)a){18}b|a",
            r"(?:a|aa)*(?!b)",
            r"a*b*(x)\1",
            r"a*a*a*b++",
            r"(?=(?:(?=a)a|(?=a)a){18}b)a|a",
        ] {
            assert!(is_slow(pattern), "{pattern}");
        }
    }

    /// The patterns of GPT-2, of cl100k_base as OpenAI and as tokenizers write it, of o200k_base and DeepSeek-V3, and of digits
    /// in groups of three.
    #[test]
    fn patterns_of_tokenizers_are_not_slow() {
        for pattern in [
            r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{M}]*[\p{Ll}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|\s+(?!\S)|\s+",
            r##"[!"#$%&'()*+,\-./:;<=>?@\[\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|\s+(?!\S)|\s+"##,
            r"(?:[\p{Han}&&[^a]]+[^]]*|\s+(?!\S)|\s+)",
            r"\d{1,3}(?=(?:\d{3})*\b)|(?=(\d{3})+(?!\d))",
        ] {
            assert!(!is_slow(pattern), "{pattern}");
        }
    }
}
