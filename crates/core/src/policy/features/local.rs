//! Features of the hole's own file.

use super::numbers::{flag, log, share};
use super::tokens::{find_end, find_start, is_word};
use super::{Context, NEAR_LINES, features};

features! {
    /// Features that are known before retrieval.
    Local {
        lines_before: "Lines in the 5 KiB before the hole (as every count: ln(1 + count))",
        lines_behind: "Lines in the 2 KiB after the hole",
        bytes_before: "Bytes from the start of the file to the hole",
        indent: "Indentation of the last line before the hole, in columns",
        indent_step:
            "Indentation of the first line after the hole minus the last line's indentation",
        begun: "Columns before the hole on its own line",
        begun_tokens: "Tokens before the hole on its own line",
        open_brackets: "Open brackets before the hole",
        opens: "The last line opens a block or a bracket",
        after_def: "The last line defines a function",
        after_class: "The last line defines a class",
        after_decorator: "The last line is a decorator or annotation",
        after_import: "The last line is an import",
        after_leave: "The last line leaves its block: return, raise, break, continue, pass",
        after_branch: "The last line is a condition or a loop",
        after_comment: "The last line is a comment or ends a docstring",
        after_assignment: "The last line is an assignment",
        after_call: "The last line ends with a closing bracket",
        after_comma: "The last line ends with a comma",
        after_blank: "A blank line precedes the hole",
        before_blank: "A blank line follows the hole",
        before_closing: "The next line closes a bracket",
        before_leave: "The next line leaves its block",
        before_def: "The next line begins a definition",
        last_tokens: "Tokens in the last line",
        last_names: "Names in the last line",
        repeat_tokens:
            "Tokens in the longest suffix of the left context that also occurs earlier",
        repeat_lines:
            "Lines in the longest suffix of the left context that also occurs earlier",
        repeat_places: "Occurrences of the longest repeated suffix of the left context",
        repeat_place:
            "Relative position of the longest repeated suffix of the left context, from 0 to 1",
        repeat_agreement:
            "Fraction of the occurrences of the last three tokens followed by the same token",
        familiar:
            "Fraction of the last five lines' token trigrams that occur elsewhere in the file",
        familiar_behind:
            "Fraction of the next five lines' token trigrams that occur elsewhere in the file",
        repeat_behind: "Tokens in the longest suffix of the left context that occurs after the hole",
        follow_tokens:
            "Tokens in the longest prefix of the right context that occurs before the hole",
        follow_lines:
            "Lines in the longest prefix of the right context that occurs before the hole",
        bridge_tokens:
            "Tokens between a repetition of the text before the hole and one of the text \
             after it; 0 without any",
        bridge:
            "The file has a repetition of the text before the hole followed by one of the text \
             after it",
        near_overlap: "Largest fraction of the names near the hole in any other ten lines of the file",
        near_names: "Names near the hole",
        near_unseen: "Fraction of the names near the hole that occur nowhere else in the file",
        near_unseen_count: "Names near the hole that occur nowhere else in the file",
        near_common: "Fraction of the names near the hole that occur at least three more times",
        new_behind: "Names after the hole that do not occur before it",
        near_imported: "Names near the hole that are imported from the repository",
        near_imported_share: "Fraction of the names near the hole that are imported from the repository",
        local_imports: "Import statements for modules of the repository itself",
        local_import_share: "Fraction of the import statements that are for the repository itself",
        diversity: "Distinct names divided by all names before the hole",
        same_beginning: "Lines before the hole that start like the last line",
        is_test: "The file is a test",
        is_index: "The file is an index of its folder (`__init__`)",
        depth: "Folders in the file's path",
    }
}

impl Local {
    /// Computes the features.
    pub fn from_context(context: &Context<'_>) -> Self {
        let (left, right) = (&context.left, &context.right);
        let text = super::tail(context.request.left, super::LEFT_BYTES);
        let behind = super::head(context.request.right, super::RIGHT_BYTES);
        let last = last_line(text);
        let code = last.code;
        let next = behind.trim_start_matches([' ', '\t', '\r']);
        let next_is_open = next.starts_with('\n');
        let next_line = first_code(behind);
        let repeat = context.repeat;
        let repeat_behind = find_end(&left.all, &right.all);
        let follow = context.follow;
        let bridge = (repeat.length > 0)
            .then(|| find_start(&right.all, &left.all, repeat.at))
            .filter(|found| found.length > 2 && found.at - repeat.at < 200);
        let starts = first_word(code);
        let (mut unseen, mut common) = (0, 0);
        for &count in &context.elsewhere {
            unseen += usize::from(count == 0);
            common += usize::from(count > 2);
        }
        let imports = &context.imports;
        let imported = context.near.bits(&imports.local_names).count_ones() as usize;
        let is_one_of = |words: &[&str]| words.contains(&starts);
        let path = context.request.path;
        let file = path.rsplit('/').next().unwrap_or(path);
        Self {
            lines_before: log(left.lines.len()),
            lines_behind: log(right.lines.len()),
            bytes_before: log(context.request.left.len()),
            indent: last.indent as f32,
            indent_step: next_line.indent as f32 - last.indent as f32,
            begun: log(last.begun.trim().len()),
            begun_tokens: log(super::Tokens::from_text(last.begun).all.len()),
            open_brackets: open_brackets(text) as f32,
            opens: flag(code.ends_with([':', '{', '(', '['])),
            after_def: flag(is_definition(code) && !is_one_of(CLASSES)),
            after_class: flag(is_one_of(CLASSES)),
            after_decorator: flag(code.starts_with('@')),
            after_import: flag(is_one_of(&["import", "from", "using", "package"])),
            after_leave: flag(is_one_of(LEAVES)),
            after_branch: flag(is_one_of(BRANCHES)),
            after_comment: flag(
                code.starts_with(['#', '*', '"'])
                    || code.starts_with("//")
                    || code.ends_with("\"\"\"")
                    || code.ends_with("*/"),
            ),
            after_assignment: flag(assigns(code)),
            after_call: flag(code.ends_with([')', ']', '}'])),
            after_comma: flag(code.ends_with(',')),
            after_blank: flag(last.is_blank_after),
            before_blank: flag(next_is_open && first_line(&next[1..]).trim().is_empty()),
            before_closing: flag(next_line.code.starts_with([')', ']', '}'])),
            before_leave: flag(LEAVES.contains(&first_word(next_line.code))),
            before_def: flag(is_definition(next_line.code) || next_line.code.starts_with('@')),
            last_tokens: log(left.last_lines(1).len()),
            last_names: log(left.last_lines(1).iter().filter(|t| is_word(**t)).count()),
            repeat_tokens: log(repeat.length),
            repeat_lines: repeat.lines as f32,
            repeat_places: log(repeat.places),
            repeat_place: share(repeat.at, left.all.len()),
            repeat_agreement: agreement(&left.all, repeat.length.min(3)),
            familiar: context.familiar[0],
            familiar_behind: context.familiar[1],
            repeat_behind: log(repeat_behind.length),
            follow_tokens: log(follow.length),
            follow_lines: follow.lines as f32,
            bridge_tokens: bridge.map_or(0.0, |found| log(found.at - repeat.at)),
            bridge: flag(bridge.is_some()),
            near_overlap: near_overlap(context),
            near_names: log(context.near.len()),
            near_unseen: share(unseen, context.near.len()),
            near_unseen_count: log(unseen),
            near_common: share(common, context.near.len()),
            new_behind: log(context.new_behind),
            near_imported: log(imported),
            near_imported_share: share(imported, context.near.len()),
            local_imports: log(imports.local_statements),
            local_import_share: share(imports.local_statements, imports.statements),
            diversity: share(context.different_before, context.words_before),
            same_beginning: log(same_beginnings(context)),
            is_test: flag(super::is_test(context.request.path)),
            is_index: flag(file.starts_with("__init__") || file.starts_with("index.")),
            depth: path.matches('/').count() as f32,
        }
    }
}

const LEAVES: &[&str] = &["return", "raise", "break", "continue", "pass", "throw", "yield"];
const BRANCHES: &[&str] = &[
    "if", "elif", "else", "for", "while", "with", "try", "except", "finally", "switch", "case",
    "catch",
];

const CLASSES: &[&str] = &["class", "interface", "enum", "struct", "record"];
/// Modifiers at the beginning of a line.
const MODIFIERS: &[&str] = &[
    "public", "private", "protected", "internal", "static", "final", "abstract", "sealed",
    "export", "default", "async", "override", "virtual", "partial", "readonly",
];

/// Returns the first word of a line that is not a modifier, ignoring brackets that close the previous block.
fn first_word(code: &str) -> &str {
    let mut words =
        code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let is_word = code
        .trim_start_matches(['}', ')', ' '])
        .starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let word = words.find(|word| is_word && !MODIFIERS.contains(word));
    word.unwrap_or("")
}

/// Returns true if a line begins a function or a class.
fn is_definition(code: &str) -> bool {
    let first = first_word(code);
    let is_body = code.ends_with('{') && code.contains('(') && !code.contains("=>");
    CLASSES.contains(&first)
        || ["def", "function", "func"].contains(&first)
        || is_body && !BRANCHES.contains(&first)
}

/// A line next to the hole.
struct Edge<'a> {
    /// Line without leading and trailing blanks.
    code: &'a str,
    /// Indentation in columns; a tab counts as four.
    indent: usize,
    /// Beginning of the hole's line, before the hole.
    begun: &'a str,
    is_blank_after: bool,
}

/// Returns the last complete non-blank line before the hole.
fn last_line(text: &str) -> Edge<'_> {
    let (whole, begun) = match memchr::memrchr(b'\n', text.as_bytes()) {
        Some(end) => text.split_at(end + 1),
        None => ("", text),
    };
    let trimmed = whole.trim_end();
    let start = memchr::memrchr(b'\n', trimmed.as_bytes()).map_or(0, |end| end + 1);
    let line = &trimmed[start..];
    Edge {
        code: line.trim_start(),
        indent: indent(line),
        begun,
        is_blank_after: whole[trimmed.len()..].matches('\n').take(2).count() > 1,
    }
}

/// Returns the first non-blank line after the hole's line.
fn first_code(text: &str) -> Edge<'_> {
    let from = memchr::memchr(b'\n', text.as_bytes()).map_or(text.len(), |end| end + 1);
    let line = text[from..].lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or("");
    Edge { code: line.trim(), indent: indent(line), begun: "", is_blank_after: false }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}

fn indent(line: &str) -> usize {
    let blanks = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t'));
    blanks.map(|byte| if byte == b'\t' { 4 } else { 1 }).sum()
}

/// Returns true if a line has an assignment outside brackets.
fn assigns(code: &str) -> bool {
    let bytes = code.as_bytes();
    let mut depth = 0i32;
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'=' if depth == 0 => {
                let before = at.checked_sub(1).map_or(b' ', |at| bytes[at]);
                let behind = bytes.get(at + 1).copied().unwrap_or(b' ');
                if behind == b'=' || behind == b'>' {
                    return false;
                }
                return !matches!(before, b'=' | b'!' | b'<' | b'>');
            }
            _ => {}
        }
    }
    false
}

/// Returns the number of brackets that the last 40 lines leave open.
fn open_brackets(text: &str) -> usize {
    let from = memchr::memrchr_iter(b'\n', text.as_bytes()).nth(40);
    let (mut open, mut closed) = (0usize, 0usize);
    for byte in text[from.map_or(0, |at| at + 1)..].bytes().rev() {
        match byte {
            b')' | b']' | b'}' => closed += 1,
            b'(' | b'[' | b'{' if closed > 0 => closed -= 1,
            b'(' | b'[' | b'{' => open += 1,
            _ => {}
        }
    }
    open
}

/// Returns the largest fraction of the near names that any ten other lines before or after the hole contain.
pub(super) fn near_overlap(context: &Context<'_>) -> f32 {
    const BLOCK: usize = 10;
    let [left, right] = &context.near_by_line;
    let far = &left[..left.len().saturating_sub(NEAR_LINES)];
    let behind = right.get(super::NEAR_LINES_BEHIND..).unwrap_or(&[]);
    let most = [far, behind].into_iter().flat_map(|lines| {
        let starts = (0..lines.len()).step_by(BLOCK / 2);
        starts.map(|start| {
            let block = lines[start..].iter().take(BLOCK);
            block.fold(0, |names, line| names | line).count_ones()
        })
    });
    share(most.max().unwrap_or(0) as usize, context.near.len())
}

/// Returns the number of lines before the last that start with the last line's first two tokens.
fn same_beginnings(context: &Context<'_>) -> usize {
    let left = &context.left;
    let Some((&last, before)) = left.lines.split_last() else {
        return 0;
    };
    let start = |line: u32| left.all.get(line as usize..line as usize + 2);
    let Some(wanted) = start(last) else { return 0 };
    before.iter().filter(|line| start(**line) == Some(wanted)).count()
}

/// Returns how often the earlier occurrences of the left context's last `length` tokens are followed by the most frequent next
/// token, as a fraction of these occurrences.
fn agreement(left: &[u32], length: usize) -> f32 {
    if length == 0 {
        return 0.0;
    }
    let end = &left[left.len() - length..];
    let last = end[length - 1];
    let mut next: Vec<u32> = (left[..left.len() - 1].windows(length).enumerate())
        .filter(|(_, window)| window[length - 1] == last && *window == end)
        .map(|(at, _)| left[at + length])
        .collect();
    next.sort_unstable();
    let most = next.chunk_by(|a, b| a == b).map(<[u32]>::len).max();
    share(most.unwrap_or(0), next.len())
}
