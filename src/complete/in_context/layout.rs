//! Classification of a prompt's lines: code of the current file, or code of a retrieved block.
//!
//! Retrieved blocks are written as comments. Their comment prefix is removed, so that a block is read as code; lines that
//! only announce blocks are skipped.

/// One line of code found in a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceLine<'a> {
    /// Number of the line's block or file, ascending.
    pub source: usize,
    /// The code without the comment prefix and without the line end.
    pub text: &'a str,
}

const HEAD: &str = "Here are some relevant code fragments from other files of the repo:";
const BLOCK: &str = "the below code fragment can be found in:";

/// Returns the code lines of a prompt, and the number of the current file: the text
/// after the last block. Numbers may be skipped.
pub(super) fn read(prompt: &str) -> (Vec<SourceLine<'_>>, usize) {
    let mut reader = Reader { lines: Vec::new(), source: 0, state: State::File };
    for line in prompt.strip_suffix('\n').unwrap_or(prompt).split('\n') {
        reader.take(line.strip_suffix('\r').unwrap_or(line));
    }
    let own = reader.source + usize::from(reader.state != State::File);
    (reader.lines, own)
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    File,
    /// After a block's announcement: paths, up to the rule under them.
    Paths,
    Code,
    /// Between the rule that ends a block and the next announcement.
    Between,
}

struct Reader<'a> {
    lines: Vec<SourceLine<'a>>,
    source: usize,
    state: State,
}

impl<'a> Reader<'a> {
    fn take(&mut self, line: &'a str) {
        match uncomment(line) {
            Some(BLOCK) => {
                self.source += 1;
                self.state = State::Paths;
            }
            Some(HEAD) => self.state = State::Between,
            Some(text) if self.state != State::File => self.take_comment(text),
            _ => {
                self.source += usize::from(self.state != State::File);
                self.state = State::File;
                self.push(line);
            }
        }
    }

    fn take_comment(&mut self, text: &'a str) {
        match (self.state, is_rule(text)) {
            (State::Paths, true) => self.state = State::Code,
            (State::Code, true) => self.state = State::Between,
            // A layout without separators: a path, then the code.
            (State::Paths, false) if !is_path(text) => {
                self.state = State::Code;
                self.push(text);
            }
            (State::Code, false) => self.push(text),
            // The preceding separator was a line of the code itself.
            (State::Between, false) if self.source > 0 => {
                self.state = State::Code;
                self.push(text);
            }
            _ => {}
        }
    }

    fn push(&mut self, text: &'a str) {
        self.lines.push(SourceLine { source: self.source, text });
    }
}

/// Returns the text of a comment line in the form of blocks: a marker, one space, the line.
fn uncomment(line: &str) -> Option<&str> {
    let text = line.strip_prefix('#').or_else(|| line.strip_prefix("//"))?;
    text.strip_prefix(' ').or(text.is_empty().then_some(text))
}

fn is_rule(text: &str) -> bool {
    text.len() == 50 && text.bytes().all(|byte| byte == b'-')
}

fn is_path(text: &str) -> bool {
    let plain = !text.contains(char::is_whitespace) && !text.contains('(');
    plain && (text.contains('/') || text.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(prompt: &str) -> (Vec<(usize, &str)>, usize) {
        let (lines, own) = read(prompt);
        (lines.into_iter().map(|line| (line.source, line.text)).collect(), own)
    }

    #[test]
    fn a_rule_in_the_code_does_not_end_its_block() {
        let rule = format!("# {}", "-".repeat(50));
        let prompt = format!(
            "# {HEAD}\n{rule}\n# {BLOCK}\n# a.py\n{rule}\n# x = 1\n{rule}\n# y = 2\n{rule}\n\nz = 3\n"
        );
        let (lines, own) = texts(&prompt);
        assert_eq!(lines[..2], [(1, "x = 1"), (1, "y = 2")]);
        assert_eq!((lines.last(), own), (Some(&(2, "z = 3")), 2));
    }

    #[test]
    fn blocks_are_read_as_code() {
        let rule = format!("# {}", "-".repeat(50));
        let prompt = format!(
            "# {HEAD}\n{rule}\n# {BLOCK}\n# a/b.py\n# c.py\n{rule}\n# def f():\n#     pass\n# \n\
             # # note\n{rule}\n# {BLOCK}\n# d.py\n{rule}\n# x = 1\n{rule}\n\n# own\ny = 2\n"
        );
        let (lines, own) = texts(&prompt);
        assert_eq!(
            lines,
            [
                (1, "def f():"),
                (1, "    pass"),
                (1, ""),
                (1, "# note"),
                (2, "x = 1"),
                (3, ""),
                (3, "# own"),
                (3, "y = 2"),
            ]
        );
        assert_eq!(own, 3);
    }

    #[test]
    fn blocks_without_rules_end_at_a_blank_line() {
        let prompt = format!("// {HEAD}\n\n// {BLOCK}\n// a/b.ts\n// let x = f(1);\n\nlet y;\n");
        assert_eq!(
            texts(&prompt),
            (vec![(1, ""), (2, "let x = f(1);"), (3, ""), (3, "let y;")], 3)
        );
    }

    #[test]
    fn a_plain_prompt_is_the_file_and_its_comments_stay() {
        assert_eq!(texts("# a\r\nb\n"), (vec![(0, "# a"), (0, "b")], 0));
        assert_eq!(texts(""), (vec![(0, "")], 0));
    }

    #[test]
    fn a_prompt_that_ends_in_a_block_has_an_empty_file() {
        assert_eq!(texts(&format!("# {BLOCK}\n# a.py\n# b = 1")), (vec![(1, "b = 1")], 2));
    }
}
