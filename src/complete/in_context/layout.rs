//! What the lines of a prompt are: code of the file at hand, or code of a retrieved block.
//!
//! Retrieved blocks are written as comments. Their comment prefix is taken off, so that a block is
//! read as the code it is; the lines that only announce blocks are not code and are left out.

/// One line of code found in a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceLine<'a> {
    /// Number of the block in the order of the prompt; the file at hand has the last number.
    pub source: usize,
    /// The code without the comment prefix and without the line end.
    pub text: &'a str,
}

const HEAD: &str = "Here are some relevant code fragments from other files of the repo:";
const BLOCK: &str = "the below code fragment can be found in:";

/// The code lines of a prompt and the number of its blocks.
pub(super) fn read(prompt: &str) -> (Vec<SourceLine<'_>>, usize) {
    let mut reader = Reader {
        lines: Vec::new(),
        blocks: 0,
        state: State::File,
    };
    for line in prompt.split('\n') {
        reader.take(line.strip_suffix('\r').unwrap_or(line));
    }
    let Reader {
        mut lines, blocks, ..
    } = reader;
    for line in &mut lines {
        if line.source == FILE {
            line.source = blocks;
        }
    }
    (lines, blocks)
}

/// Stands for the file at hand until the number of blocks is known.
const FILE: usize = usize::MAX;

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
    blocks: usize,
    state: State,
}

impl<'a> Reader<'a> {
    fn take(&mut self, line: &'a str) {
        match uncomment(line) {
            Some(text) if text == BLOCK => {
                self.blocks += 1;
                self.state = State::Paths;
            }
            Some(HEAD) => self.state = State::Between,
            Some(text) if self.state != State::File => self.take_comment(text),
            _ => {
                self.state = State::File;
                self.lines.push(SourceLine {
                    source: FILE,
                    text: line,
                });
            }
        }
    }

    fn take_comment(&mut self, text: &'a str) {
        self.state = match (self.state, is_rule(text)) {
            (State::Paths, true) => State::Code,
            // A layout without rules: one path, then the code.
            (State::Paths, false) if !is_path(text) => {
                self.push_block_line(text);
                State::Code
            }
            (State::Code, true) => State::Between,
            (State::Code, false) => {
                self.push_block_line(text);
                State::Code
            }
            (state, _) => state,
        };
    }

    fn push_block_line(&mut self, text: &'a str) {
        self.lines.push(SourceLine {
            source: self.blocks - 1,
            text,
        });
    }
}

/// The text of a comment line as blocks are written: a marker, one space, the line.
fn uncomment(line: &str) -> Option<&str> {
    let text = line.strip_prefix('#').or_else(|| line.strip_prefix("//"))?;
    text.strip_prefix(' ').or(text.is_empty().then_some(text))
}

fn is_rule(text: &str) -> bool {
    text.len() == 50 && text.bytes().all(|byte| byte == b'-')
}

fn is_path(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace) && text.contains('.')
        || text.contains('/') && !text.contains('(')
}
