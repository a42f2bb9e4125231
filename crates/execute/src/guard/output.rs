//! Output of a command: its head and its tail.

use std::io::{self, Read};
use std::thread;
use std::time::Duration;

/// Number of bytes kept of the beginning, and of the end.
const KEPT: usize = 32 << 10;
/// Number of reads without a pause, and the pause after each further read. A guard has a higher priority than other programs, so a flood of
/// output must not keep it busy. Meanwhile, a pipe holds 64 KiB.
const FREELY: usize = 4000;
const PAUSE: Duration = Duration::from_millis(1);

/// Head and tail of a stream.
#[derive(Debug, Default)]
pub(super) struct HeadAndTail {
    head: Vec<u8>,
    /// Bytes after the head; up to twice as many as are kept, so that they are rarely moved.
    tail: Vec<u8>,
    bytes: u64,
}

impl HeadAndTail {
    /// Reads a stream to its end.
    pub(super) fn read(mut stream: impl Read) -> Self {
        let mut kept = Self::default();
        let mut buffer = vec![0; 64 << 10];
        for number in 0.. {
            if number > FREELY {
                thread::sleep(PAUSE);
            }
            match stream.read(&mut buffer) {
                Ok(0) => return kept,
                Ok(read) => kept.push(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return kept,
            }
        }
        kept
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(&rest[rest.len().saturating_sub(KEPT)..]);
        if self.tail.len() > 2 * KEPT {
            self.tail.drain(..self.tail.len() - KEPT);
        }
    }

    /// Returns the total number of bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the text without terminal escape codes, with a line in place of the omitted part.
    pub(super) fn text(&self) -> String {
        let tail = &self.tail[self.tail.len().saturating_sub(KEPT)..];
        let left_out = self.bytes - (self.head.len() + tail.len()) as u64;
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(tail));
        without_escapes(&match left_out {
            0 => [head, tail].concat(),
            n => format!("{head}\n[… {n} bytes left out …]\n{tail}"),
        })
    }
}

/// Removes a terminal's escape codes (ECMA-48): colours and other controls (`ESC [ … letter`), and links and titles
/// (`ESC ] …`, up to BEL or `ESC \`).
fn without_escapes(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    let mut in_title = false;
    for part in parts {
        let rest = match part.chars().next() {
            Some('[') => part[1..].trim_start_matches(|c| matches!(c, ' '..='?')).get(1..),
            Some(']') => {
                in_title = true;
                part.split_once('\u{7}').map(|(_, rest)| rest)
            }
            Some('\\') if in_title => part.get(1..),
            _ => Some(part),
        };
        in_title = in_title && rest.is_none();
        kept += rest.unwrap_or_default();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_codes_are_removed() {
        for (text, wanted) in [
            // Summaries of pytest 8 and vitest 3 with colours, and of jest 29.
            (
                "\u{1b}[32m\u{1b}[32m\u{1b}[1m2 passed\u{1b}[0m\u{1b}[32m in 0.01s\u{1b}[0m",
                "2 passed in 0.01s",
            ),
            (
                "\u{1b}[2m      Tests \u{1b}[22m \u{1b}[1m\u{1b}[32m3 passed\u{1b}[39m\u{1b}[22m\u{1b}[90m (3)\u{1b}[39m",
                "      Tests  3 passed (3)",
            ),
            (
                "\u{1b}[1mTests:\u{1b}[22m       \u{1b}[1m\u{1b}[31m1 failed\u{1b}[39m\u{1b}[22m, 3 total",
                "Tests:       1 failed, 3 total",
            ),
            ("a\u{1b}]8;;http://x\u{7}b\u{1b}]8;;\u{1b}\\c\u{1b}[?25ld\u{1b}[K", "abcd"),
            ("a\u{1b}", "a"),
            ("a\u{1b}[", "a"),
            ("a\u{1b}[3", "a"),
            ("\u{1b}[é", ""),
        ] {
            assert_eq!(HeadAndTail::read(text.as_bytes()).text(), wanted);
        }
    }

    #[test]
    fn what_is_short_is_whole_and_of_what_is_long_both_ends_stay() {
        for length in [0, 1, KEPT, KEPT + 1, 2 * KEPT] {
            let text: String = (0..length).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
            let kept = HeadAndTail::read(text.as_bytes());
            assert_eq!((kept.bytes(), kept.text()), (length as u64, text));
        }
        // Calculated by hand: 32 KiB at each end of 10 MiB.
        let text = format!("begin{}end", "x".repeat(10 << 20));
        let kept = HeadAndTail::read(text.as_bytes());
        let shown = kept.text();
        assert!(shown.starts_with("beginxxx") && shown.ends_with("xxxend"));
        assert!(shown.contains(&format!("[… {} bytes left out …]", text.len() - 2 * KEPT)));
        assert!(shown.len() < 2 * KEPT + 100 && kept.tail.capacity() <= 8 * KEPT);
    }
}
