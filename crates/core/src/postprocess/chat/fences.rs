//! Code that an answer marks with Markdown.

use std::borrow::Cow;
use std::cmp::Reverse;

use repoformer_text::language::Language;
use repoformer_text::lines::{strip, unfinished_line};

use super::echo::LeftEnd;
use super::literal::{Strings, is_text_hole, line_ranges, string_at_end};
use super::prose::{is_sentence, without_sentences};
use super::steps;
use crate::postprocess::hole::HoleContext;

/// Further names of a language after a fence, in addition to its name, its title and the extensions of its files.
const ALIASES: [(Language, &[&str]); 6] = [
    (Language::Python, &["python3", "python2", "py3", "ipython", "python-code"]),
    (Language::Java, &[]),
    (Language::CSharp, &["c#", "csharp", "dotnet"]),
    (Language::TypeScript, &["javascript", "js", "jsx", "tsx", "mts", "cts"]),
    (Language::Go, &["golang"]),
    (Language::JavaScript, &["typescript", "ts", "tsx", "node"]),
];

/// Names of blocks without source code: commands, output, data, text.
const NO_SOURCES: [&str; 31] = [
    "bash", "sh", "shell", "zsh", "fish", "console", "shell-session", "terminal", "powershell",
    "cmd", "bat", "pycon", "text", "txt", "plain", "plaintext", "output", "log", "diff", "patch",
    "json", "yaml", "yml", "toml", "ini", "xml", "csv", "markdown", "md", "mermaid", "dockerfile",
];

/// Names of documents that may contain fences themselves.
const DOCUMENTS: [&str; 3] = ["markdown", "md", "mdx"];

/// Names of other languages.
const OTHERS: [&str; 27] = [
    "c", "cpp", "c++", "h", "hpp", "rust", "rs", "ruby", "rb", "php", "kotlin", "kt", "swift",
    "scala", "html", "css", "sql", "lua", "perl", "r", "dart", "haskell", "elixir", "vue",
    "svelte", "cython", "pseudocode",
];

/// Programs with which commands begin.
const PROGRAMS: [&str; 15] = [
    "$", "pip", "pip3", "conda", "uv", "npm", "npx", "yarn", "pnpm", "apt", "apt-get", "brew",
    "cargo", "dotnet", "mvn",
];

/// Words in the line above a fence that announce something other than the answer.
const ASIDES: [&str; 21] = [
    "usage", "example", "examples", "output", "outputs", "prints", "install", "test", "tests",
    "run", "instead", "original", "existing", "current", "incorrect", "wrong", "import", "imports",
    "draft", "attempt", "attempts",
];

/// Phrases that announce something other than the answer.
const ASIDE_PHRASES: [&str; 4] = ["use it", "call it", "used like", "used as"];

/// Words in the line above a fence that announce the answer.
const ANSWERS: [&str; 14] = [
    "complete", "completed", "completion", "missing", "answer", "implementation", "solution",
    "updated", "fixed", "correct", "corrected", "final", "filled", "next",
];

/// Words in the line above a fence that announce a correction, and words that rule one out.
const CORRECTIONS: [&str; 4] = ["correct", "corrected", "fixed", "final"];
const NO_CORRECTIONS: [&str; 8] =
    ["not", "usage", "output", "outputs", "prints", "result", "test", "tests"];

/// Maximum number of nested blocks around an answer.
const DEEPEST: usize = 3;

/// Maximum length of a fence of tildes without a name.
const LONGEST_FENCE: usize = 6;

/// Maximum length of an answer, in bytes, in which code spans are searched for.
const LONGEST_PROSE: usize = 20_000;

/// Block between two fences.
#[derive(Debug)]
struct Block {
    /// Name after the opening fence, in lower case.
    name: String,
    content: String,
    caption: Caption,
    /// True if a fence closes the block, so that its whole content is code.
    is_closed: bool,
}

/// Caption: the line above a block.
#[derive(Debug, Clone, Copy, Default)]
struct Caption {
    /// True if the caption announces something other than the answer.
    is_aside: bool,
    /// True if the caption announces a correction, so that other blocks are drafts.
    is_correction: bool,
}

/// Kind of a block's content, judged by the name after its fence and by its lines.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    OfTask,
    Unnamed,
    OfOther,
    NoSource,
}

impl Block {
    fn kind(&self, language: Language) -> Kind {
        let name = self.name.as_str();
        let mut lines = self.content.lines().map(str::trim).filter(|line| !line.is_empty());
        let is_session = lines.clone().next().is_some_and(|line| line.starts_with(['>', '$']));
        let is_command =
            |line: &str| PROGRAMS.contains(&line.split(' ').next().unwrap_or_default());
        if is_session {
            Kind::NoSource
        } else if names(language, name) {
            Kind::OfTask
        } else if NO_SOURCES.contains(&name) || lines.all(is_command) {
            Kind::NoSource
        } else if is_known(name) {
            Kind::OfOther
        } else {
            Kind::Unnamed
        }
    }
}

/// Returns true if the name is one of the language's names.
fn names(language: Language, name: &str) -> bool {
    let aliases = ALIASES.iter().filter(|(of, _)| *of == language);
    name == language.name()
        || name == language.title().to_lowercase()
        || language.extensions().iter().any(|end| end.trim_start_matches('.') == name)
        || aliases.flat_map(|(_, names)| *names).any(|alias| *alias == name)
}

/// Returns true if a word after a fence names a language or a format.
fn is_known(name: &str) -> bool {
    Language::ALL.into_iter().any(|language| names(language, name))
        || NO_SOURCES.contains(&name)
        || DOCUMENTS.contains(&name)
        || OTHERS.contains(&name)
}

/// Keeps the marked code: the block between fences that is most likely the answer or, if there are no blocks, the longest code
/// span among sentences. A text without marks stays whole.
///
/// Blocks whose caption announces something other than the answer are ranked last. Of the others, blocks in the task's language
/// come first, then blocks without a name, then other languages, then commands, output and data. Among blocks of equal rank, a
/// block announced as correct or final wins; then the block with the most lines that do not repeat the left context; then the
/// last one.
///
/// Also returns true if the code ends at its closing mark, so that no sentences follow in it.
pub(in super::super) fn marked_code<'a>(
    hole: &HoleContext<'_>,
    text: &'a str,
) -> (Cow<'a, str>, bool) {
    let text = behind_name(hole, text);
    let mut marked: Option<Block> = None;
    for _ in 0..DEEPEST {
        let text = marked.as_ref().map_or(text, |block| &block.content);
        let Some(inner) = best_block(hole, text) else { break };
        // Code never begins with a fence: a block that does, or that is a document, contains the fences of the answer.
        let first = inner.content.lines().find(|line| !strip(line).is_empty());
        let is_outer = DOCUMENTS.contains(&&*inner.name)
            || first.and_then(Fence::from_line).is_some_and(|fence| fence.opens());
        marked = Some(inner);
        if !is_outer {
            break;
        }
    }
    match marked {
        Some(block) => (block.content.into(), block.is_closed),
        None => match code_span(hole, text) {
            Some(code) => (code.into(), true),
            None => (text.into(), false),
        },
    }
}

/// Returns the text after a first line that is only the language's name: the prompt ended within an opening fence.
fn behind_name<'a>(hole: &HoleContext<'_>, text: &'a str) -> &'a str {
    let language = hole.language;
    match text.split_once('\n') {
        Some((name, code))
            if names(language, &name.trim_end().to_lowercase())
                && !strip(code).is_empty()
                && string_at_end(hole.known_left(), language).is_none() =>
        {
            code
        }
        _ => text,
    }
}

/// Returns the block that is most likely the answer.
fn best_block(hole: &HoleContext<'_>, text: &str) -> Option<Block> {
    let (before, blocks) = blocks(hole, text);
    if blocks.is_empty() {
        return None;
    }
    let left = LeftEnd::new(hole.left_context);
    let best = blocks.into_iter().enumerate().min_by_key(|(number, block)| {
        let lines = left.own_lines(&block.content);
        let kind = block.kind(hole.language);
        let Caption { is_aside, is_correction } = block.caption;
        let is_other = is_aside || kind == Kind::NoSource;
        (lines == 0, is_other, kind, !is_correction, Reverse((lines, *number)))
    });
    let (_, block) = best?;
    let is_other = block.caption.is_aside || block.kind(hole.language) == Kind::NoSource;
    if is_other && !is_text_hole(hole) {
        // The marked block shows something other than the code before it.
        let code = without_sentences(hole, before).trim_end();
        if !strip(code).is_empty() {
            let (name, content) = (String::new(), code.to_owned());
            let caption = Caption::default();
            return Some(Block { name, content, caption, is_closed: true });
        }
    }
    Some(block)
}

/// A line that is, or contains, a fence.
struct Fence<'a> {
    sign: char,
    length: usize,
    indentation: usize,
    /// Rest of the fence's line, without surrounding white space.
    rest: &'a str,
    info: &'a str,
}

impl<'a> Fence<'a> {
    /// Returns the fence at the beginning of a line, after its indentation.
    fn from_line(line: &'a str) -> Option<Self> {
        let text = line.trim_start();
        Self::at(text, line.len() - text.len())
    }

    /// Returns the fence at the beginning of a list item.
    fn of_item(line: &'a str) -> Option<Self> {
        let text = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let marks = if text.len() < line.len() { &[". ", ") "][..] } else { &["- ", "* ", "+ "] };
        let text = marks.iter().find_map(|mark| text.strip_prefix(mark))?.trim_start();
        Self::at(text, line.len() - text.len())
    }

    fn at(text: &'a str, indentation: usize) -> Option<Self> {
        let sign = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let rest = text.trim_start_matches(sign);
        let length = text.len() - rest.len();
        (length >= 3).then_some(Self { sign, length, indentation, rest, info: rest.trim() })
    }

    /// Returns the code of a fence that opens and closes in the same line.
    fn span(&self) -> Option<&'a str> {
        let rest = self.rest.trim_end();
        let inner = rest.trim_end_matches(self.sign);
        let is_closed = rest.len() - inner.len() == self.length && !inner.contains('`');
        (is_closed && !strip(inner).is_empty()).then_some(inner)
    }

    /// Returns true if the fence can open a block: no backtick follows backticks in the line, and tildes do not underline a
    /// title.
    fn opens(&self) -> bool {
        match self.sign {
            '~' => !self.info.is_empty() || self.length <= LONGEST_FENCE,
            _ => !self.info.contains('`'),
        }
    }

    /// Returns true if the fence closes the block that another one opened.
    fn closes(&self, open: &Fence<'_>) -> bool {
        self.sign == open.sign && self.length >= open.length && self.info.is_empty()
    }

    /// Returns the name of the language, in lower case, and the code that follows the fence instead of a name.
    fn name(&self) -> (String, Option<&'a str>) {
        let first = self.info.split([' ', '\t', '{', ',', ':']).next().unwrap_or_default();
        let name = first.trim_start_matches('.').to_lowercase();
        let behind = self.info[first.len()..].trim_start();
        let is_name = self.info.starts_with('{')
            || is_known(&name) && !behind.starts_with(['=', '(', '[', '.', '+', '*', '/', ';']);
        let is_path = || Language::of_path(first).is_some();
        let is_word = || {
            self.info.chars().all(|c| {
                c.is_alphanumeric() || matches!(c, '-' | '_' | '+' | '#' | '.' | '/' | ':')
            })
        };
        if is_name || is_path() || is_word() {
            (name, None)
        } else {
            (String::new(), Some(self.info))
        }
    }
}

/// Returns a fence that opens after a sentence in the same line.
fn behind_sentence<'a>(line: &'a str, language: Language) -> Option<Fence<'a>> {
    let at = line.find("```").filter(|at| *at > 0)?;
    let before = line[..at].trim_end();
    let fence = Fence::at(&line[at..], 0)?;
    let introduces = before.ends_with([':', '：', '.', '!']) && is_sentence(before, language);
    (introduces && (fence.opens() || fence.span().is_some())).then_some(fence)
}

/// An open block.
struct OpenFence<'a> {
    fence: Fence<'a>,
    name: String,
    content: String,
    caption: Caption,
    /// Number of fences that are open inside the block.
    inner: usize,
}

impl<'a> OpenFence<'a> {
    fn new(fence: Fence<'a>, caption: Caption) -> Self {
        let (name, code) = fence.name();
        let content = code.map_or(String::new(), |code| format!("{code}\n"));
        Self { fence, name, content, caption, inner: 0 }
    }

    /// Adds a line, without the fence's indentation.
    fn add(&mut self, line: &str) {
        let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
        self.content += &line[blank.min(self.fence.indentation)..];
    }

    /// Returns the block; `is_closed` is true if a fence closes it.
    fn close(self, is_closed: bool) -> Block {
        let Self { mut name, mut content, caption, fence, .. } = self;
        if strip(&content).is_empty() {
            // A word that is not the name of a language is code if the block has no other content.
            content = String::new();
            if !is_known(&name) {
                content += fence.info;
                name.clear();
            }
        }
        // The newline before the closing fence belongs to the fence.
        let end = content.strip_suffix('\n').map_or(content.len(), str::len);
        content.truncate(content[..end].trim_end_matches('\r').len());
        Block { name, content, caption, is_closed }
    }
}

/// Returns the text before the first block between fences, and the blocks. A fence inside a string of the surrounding code does
/// not count.
fn blocks<'a>(hole: &HoleContext<'_>, text: &'a str) -> (&'a str, Vec<Block>) {
    let language = hole.language;
    if !text.contains("```") && !text.contains("~~~") {
        return (text, Vec::new());
    }
    let held = string_at_end(hole.known_left(), language);
    let definitions = held.map_or_else(Vec::new, |_| definitions(text, language));
    let mut strings = Strings::new(text, language);
    // Sentences of an answer are not indented; sentences in a string may be.
    let first = text.lines().find(|line| !strip(line).is_empty()).unwrap_or_default();
    if first.starts_with([' ', '\t']) && Fence::from_line(first).is_none() {
        strings.restart(0, held);
    }
    let (mut blocks, mut open): (Vec<Block>, Option<OpenFence<'_>>) = (Vec::new(), None);
    let (mut above, mut is_first, mut before) = ("", true, text);
    for (number, line) in line_ranges(text).enumerate() {
        let content = &text[line.clone()];
        let bare = content.trim_end_matches(['\n', '\r']);
        let fence = Fence::from_line(bare);
        let Some(mut current) = open.take() else {
            let fence =
                fence.or_else(|| Fence::of_item(bare)).or_else(|| behind_sentence(bare, language));
            let fence = fence.filter(|_| !strings.hold(line.start));
            let Some(fence) = fence else {
                above = if strip(bare).is_empty() { above } else { bare };
                continue;
            };
            if blocks.is_empty() {
                before = &text[..line.start];
            }
            if let Some(code) = fence.span() {
                let content = span_content(code, language);
                blocks.push(Block {
                    name: String::new(),
                    content,
                    caption: Caption::new(above),
                    is_closed: true,
                });
            } else if std::mem::take(&mut is_first) && closes_prompt(text, &line, &fence, language)
            {
                // The prompt opened the block.
                let content = text[..line.start].trim_end_matches(['\n', '\r']).to_owned();
                let (name, caption) = (String::new(), Caption::default());
                blocks.push(Block { name, content, caption, is_closed: true });
            } else if fence.opens() {
                open = Some(OpenFence::new(fence, Caption::new(above)));
            } else {
                above = bare;
                continue;
            }
            above = "";
            let defines = definitions.get(number + 1).is_some_and(|defines| *defines);
            strings.restart(line.end, held.filter(|_| !defines));
            continue;
        };
        let is_in_string = strings.hold(line.start);
        let fence = fence.filter(|_| !is_in_string);
        let is_document = DOCUMENTS.contains(&&*current.name);
        match fence {
            Some(fence) if fence.closes(&current.fence) && current.inner == 0 => {
                blocks.push(current.close(true));
                strings.restart(line.end, None);
                continue;
            }
            Some(fence) if fence.closes(&current.fence) => current.inner -= 1,
            Some(fence) if is_document && fence.opens() && !fence.info.is_empty() => {
                current.inner += 1
            }
            // A fence that names a language cannot close a block, so the block before was never closed.
            Some(fence)
                if !is_document
                    && fence.sign == current.fence.sign
                    && fence.length >= current.fence.length
                    && fence.opens()
                    && is_known(&fence.name().0) =>
            {
                blocks.push(current.close(false));
                open = Some(OpenFence::new(fence, Caption::default()));
                strings.restart(line.end, None);
                continue;
            }
            _ => {}
        }
        let closing = before_closing(bare, &current.fence, language);
        if let Some(code) = closing.filter(|_| !is_in_string) {
            current.add(code);
            current.content.push('\n');
            blocks.push(current.close(true));
            strings.restart(line.end, None);
            continue;
        }
        current.add(content);
        open = Some(current);
    }
    blocks.extend(open.map(|open| open.close(false)));
    (before, blocks)
}

/// Returns, for each line, whether the code from there on defines something before its first multi-line string. Such code is
/// not inside the string in which the left context ends. All lines are judged at once, from the last to the first, because each
/// block of an answer asks for the code behind its fence.
pub(super) fn definitions(text: &str, language: Language) -> Vec<bool> {
    steps::add(text.len());
    let is_definition = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        language.is_keyword(first) && line.ends_with([':', '{'])
    };
    let mut defines = false;
    let judge = |line: &str| {
        let mark = ["\"\"\"", "'''"].iter().filter_map(|mark| line.find(mark)).min();
        let before = line[..mark.unwrap_or(line.len())].trim();
        defines = is_definition(before) || mark.is_none() && defines;
        defines
    };
    let mut definitions: Vec<bool> = text.split_inclusive('\n').rev().map(judge).collect();
    definitions.reverse();
    definitions
}

/// Returns the code before a fence at the end of the same line that closes a block.
fn before_closing<'a>(line: &'a str, open: &Fence<'_>, language: Language) -> Option<&'a str> {
    let bare = line.trim_end();
    let code = bare.trim_end_matches(open.sign);
    let is_closing = bare.len() - code.len() == open.length && !strip(code).is_empty();
    let is_only = is_closing && open.sign == '`' && !code.contains('`');
    let is_comment =
        [language.comment(), "*"].iter().any(|sign| code.trim_start().starts_with(sign));
    (is_only && !is_comment).then_some(code)
}

/// Returns true if the first fence of an answer closes a block that the prompt opened: code precedes it, and the fences after
/// it come in pairs, or the next one opens a block.
fn closes_prompt(
    text: &str,
    line: &std::ops::Range<usize>,
    fence: &Fence<'_>,
    language: Language,
) -> bool {
    let last = text[..line.start].lines().rev().find(|line| !strip(line).is_empty());
    if !fence.info.is_empty() || last.is_none_or(|last| is_sentence(last, language)) {
        return false;
    }
    let mut others = text[line.end..].lines().filter_map(Fence::from_line).filter(Fence::opens);
    match others.next() {
        None => true,
        Some(next) => !next.info.is_empty() || others.count() % 2 == 1,
    }
}

impl Caption {
    fn new(above: &str) -> Self {
        let words = || above.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
        let has = |listed: &[&str]| words().any(|word| listed.contains(&&*word));
        let above_lower = above.to_lowercase();
        let has_phrase = || ASIDE_PHRASES.iter().any(|phrase| above_lower.contains(phrase));
        Self {
            is_aside: (has(&ASIDES) || has_phrase()) && !has(&ANSWERS),
            is_correction: has(&CORRECTIONS) && !has(&NO_CORRECTIONS),
        }
    }
}

/// Returns the content of a code span, without the name of a language at its beginning.
fn span_content(span: &str, language: Language) -> String {
    let named = span.split_once(' ').filter(|(name, _)| {
        let name = name.to_lowercase();
        names(language, &name) && !language.is_keyword(&name)
    });
    let code = named.map_or(span, |(_, code)| code);
    let padded = code.strip_prefix(' ').and_then(|code| code.strip_suffix(' '));
    padded.filter(|code| !strip(code).is_empty()).unwrap_or(code).to_owned()
}

/// Returns the code span that is the whole text or, among sentences, the longest one; of equally long spans, the last.
fn code_span(hole: &HoleContext<'_>, text: &str) -> Option<String> {
    let language = hole.language;
    let bare = strip(text);
    let spans = if bare.len() > LONGEST_PROSE { Vec::new() } else { spans(bare) };
    if let [(span, range)] = &spans[..]
        && *range == (0..bare.len())
        && text.trim_start_matches(['\n', '\r']).starts_with('`')
    {
        if span.len() + 2 == bare.len() && is_string(hole, span) {
            return Some(text.to_owned());
        }
        return Some(span_content(span, language));
    }
    let is_prose = || {
        let mut lines = text.lines().filter(|line| !strip(line).is_empty());
        lines.all(|line| {
            is_sentence(line, language)
                || is_sentence(&outside(line), language)
                || is_span(line, language)
        })
    };
    if spans.is_empty() || is_text_hole(hole) || !is_prose() {
        return None;
    }
    let longest = spans.into_iter().map(|(span, _)| span).max_by_key(|span| span.len());
    longest.map(|span| span_content(span, language))
}

/// Returns a line without its code spans.
fn outside(line: &str) -> String {
    let (mut text, mut start) = (String::new(), 0);
    for (_, range) in spans(line) {
        text += &line[start..range.start];
        start = range.end;
    }
    text + &line[start..]
}

/// Returns true for languages in which backticks delimit strings.
fn has_backticks(language: Language) -> bool {
    matches!(language, Language::TypeScript | Language::JavaScript | Language::Go)
}

/// Returns true if a code span that is the whole answer is a string of the language: it has a placeholder, or it continues a
/// line of the left context that it does not repeat.
fn is_string(hole: &HoleContext<'_>, span: &str) -> bool {
    let unfinished = strip(unfinished_line(hole.known_left()));
    let goes_on = !unfinished.is_empty() && !strip(span).starts_with(unfinished);
    has_backticks(hole.language) && (goes_on || span.contains("${"))
}

/// Returns true if a line has a code span and no other words, and is neither a comment nor an expression of strings between
/// backticks.
fn is_span(line: &str, language: Language) -> bool {
    let outside = outside(line);
    let is_code = has_backticks(language)
        && (spans(line).len() > 1
            || outside.contains([';', ',', '(', ')', '[', ']', '{', '}', '+', '=', '?']));
    line.contains('`')
        && !line.starts_with("    ")
        && !line.trim_start().starts_with(language.comment())
        && !outside.contains(char::is_alphanumeric)
        && !is_code
}

/// Returns the code spans of a text: the parts between equally many backticks in one line.
fn spans(text: &str) -> Vec<(&str, std::ops::Range<usize>)> {
    let (mut spans, mut start) = (Vec::new(), 0);
    while let Some(at) = text[start..].find('`') {
        let begin = start + at;
        let rest = text[begin..].trim_start_matches('`');
        let length = text.len() - begin - rest.len();
        let line = rest.split('\n').next().unwrap_or_default();
        let marks = "`".repeat(length);
        let end = line
            .match_indices(&*marks)
            .map(|(at, _)| at)
            .find(|at| !line[at + length..].starts_with('`') && !line[..*at].ends_with('`'));
        match end {
            Some(end) if end > 0 => {
                let stop = begin + 2 * length + end;
                spans.push((&line[..end], begin..stop));
                start = stop;
            }
            _ => start = begin + length,
        }
    }
    spans
}
