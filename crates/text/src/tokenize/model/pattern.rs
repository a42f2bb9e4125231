//! How often the engine of regular expressions may go back at one place of a text. It takes time in proportion to the text for
//! what has no look-around, back-reference or atomic group; for the rest it tries one way after another.

/// Ways to match at one place.
const WAYS: u64 = 4_000;
/// Ways of a repetition without end.
const ENDLESS: u64 = 1_000;
/// Groups within one another; the engine takes 64.
const DEPTH: usize = 64;

/// Whether there may be too many ways to match a pattern at one place of a text.
pub(super) fn is_slow(pattern: &str) -> bool {
    let mut rest = PatternRest { text: pattern.as_bytes(), depth: 0 };
    let ways = rest.alternatives();
    // The engine refuses a pattern with an end of a group that has no start.
    ways.tried > WAYS
}

/// Ways to match a part of a pattern.
#[derive(Clone, Copy)]
struct Ways {
    /// All of them.
    all: u64,
    /// Those that the engine tries one after another if nothing else of the pattern has it do so.
    tried: u64,
    /// Whether it tries them itself.
    is_hard: bool,
}

/// Rest of a pattern.
struct PatternRest<'p> {
    text: &'p [u8],
    depth: usize,
}

impl PatternRest<'_> {
    /// Alternatives up to the end of a group.
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
        // A group alone is what is in it.
        let tried = match is_hard {
            _ if parts == 1 => tried,
            true => all,
            false => 1,
        };
        Ways { all, tried, is_hard }
    }

    /// A character, class or group and its repetition.
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

    /// The least and the most times that something is repeated.
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

    /// A character, class, assertion or group.
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

    /// A group; look-around and conditions are hard, whatever is in them.
    fn group(&mut self) -> Ways {
        let starts =
            |signs: &[&str]| signs.iter().any(|sign| self.text.starts_with(sign.as_bytes()));
        let is_whole = starts(&["(?=", "(?!", "(?<=", "(?<!", "(?>"]);
        let is_hard = is_whole || starts(&["(?("]);
        self.text = &self.text[1..];
        if self.take(b"?") {
            // Flags and names are read as characters, but for the sign of a repetition.
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
        // What is plain in such a group is left to the faster engine, and matches in one way.
        ways.all = if is_whole && !ways.is_hard { 1 } else { ways.all };
        ways.is_hard |= is_hard;
        ways.tried = if is_hard { ways.all } else { ways.tried };
        ways
    }

    /// Bytes of a class, with those within it.
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

    /// The patterns of GPT-2, of cl100k_base as OpenAI has it and as tokenizers have it, of o200k_base and DeepSeek-V3, and
    /// of digits by threes.
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
