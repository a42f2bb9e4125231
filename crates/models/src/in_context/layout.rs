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

/// Returns the code lines of a prompt, and the source number of the current file, which is the text after the last block. Numbers may be
/// skipped.
pub(super) fn read(prompt: &str) -> (Vec<SourceLine<'_>>, usize) {
    let mut reader = Reader { lines: Vec::new(), source: 0, state: LayoutState::File };
    for line in prompt.strip_suffix('\n').unwrap_or(prompt).split('\n') {
        reader.take(line.strip_suffix('\r').unwrap_or(line));
    }
    let own = reader.source + usize::from(reader.state != LayoutState::File);
    (reader.lines, own)
}

#[derive(Clone, Copy, PartialEq)]
enum LayoutState {
    File,
    /// After a block's announcement: paths, up to the rule below them.
    Paths,
    Code,
    /// Between the rule that ends a block and the next announcement.
    Between,
}

struct Reader<'a> {
    lines: Vec<SourceLine<'a>>,
    source: usize,
    state: LayoutState,
}

impl<'a> Reader<'a> {
    fn take(&mut self, line: &'a str) {
        match uncomment(line) {
            Some(BLOCK) => {
                self.source += 1;
                self.state = LayoutState::Paths;
            }
            Some(HEAD) => self.state = LayoutState::Between,
            Some(text) if self.state != LayoutState::File => self.take_comment(text),
            _ => {
                self.source += usize::from(self.state != LayoutState::File);
                self.state = LayoutState::File;
                self.push(line);
            }
        }
    }

    fn take_comment(&mut self, text: &'a str) {
        match (self.state, is_rule(text)) {
            (LayoutState::Paths, true) => self.state = LayoutState::Code,
            (LayoutState::Code, true) => self.state = LayoutState::Between,
            // A layout without separators: a path, then the code.
            (LayoutState::Paths, false) if !is_path(text) => {
                self.state = LayoutState::Code;
                self.push(text);
            }
            (LayoutState::Code, false) => self.push(text),
            // The preceding separator was part of the code.
            (LayoutState::Between, false) if self.source > 0 => {
                self.state = LayoutState::Code;
                self.push(text);
            }
            _ => {}
        }
    }

    fn push(&mut self, text: &'a str) {
        self.lines.push(SourceLine { source: self.source, text });
    }
}

/// Returns the text of a comment line as retrieved blocks write it: a marker, one space, the line.
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

    #[test]
    fn blocks_are_read_as_code() {
        let rule = format!("# {}", "-".repeat(50));
        let blocks = format!(
            "# {HEAD}\n{rule}\n# {BLOCK}\n# a/b.py\n# c.py\n{rule}\n# def f():\n#     pass\n# \n\
             # # note\n{rule}\n# {BLOCK}\n# d.py\n{rule}\n# x = 1\n{rule}\n\n# own\ny = 2\n"
        );
        // A rule in the code does not end its block.
        let with_rule = format!("# {BLOCK}\n# a.py\n{rule}\n# x\n{rule}\n# y\n{rule}\nz\n");
        let without_rules =
            format!("// {HEAD}\n\n// {BLOCK}\n// a/b.ts\n// let x = f(1);\n\nlet y;\n");
        for (prompt, wanted, own) in [
            (blocks.as_str(), "1 def f():|1     pass|1 |1 # note|2 x = 1|3 |3 # own|3 y = 2", 3),
            (&with_rule, "1 x|1 y|2 z", 2),
            (&without_rules, "1 |2 let x = f(1);|3 |3 let y;", 3),
            ("# a\r\nb\n", "0 # a|0 b", 0),
            ("", "0 ", 0),
            (&format!("# {BLOCK}\n# a.py\n# b = 1"), "1 b = 1", 2),
        ] {
            let (lines, found) = read(prompt);
            let lines: Vec<_> =
                lines.iter().map(|line| format!("{} {}", line.source, line.text)).collect();
            assert_eq!((lines.join("|").as_str(), found), (wanted, own));
        }
    }
}
