//! Thoughts, envelopes around answers, and the tokens of chat templates.

use repoformer_text::language::{BlockMarks, Language};
use repoformer_text::lines::{strip, unfinished_line};

use super::literal::{Literals, Strings, Templates, line_ranges, template_at_end};
use super::prose::is_sentence;
use crate::postprocess::hole::HoleContext;

/// Names of tags around thoughts, in tags of any form: `<think>`, `[THINK]`, `<|begin_of_thought|>`, `◁think▷`, `<seed:think>`.
const THOUGHTS: [&str; 14] = [
    "think", "thinking", "thought", "thoughts", "reason", "reasoning", "reflection", "analysis",
    "rationale", "scratchpad", "reasoning_content", "antthinking", "inner_monologue",
    "chain_of_thought",
];

/// Names of tags around answers.
const ENVELOPES: [&str; 9] = [
    "answer", "final_answer", "solution", "completion", "code", "output", "response", "result",
    "python",
];

/// Names of tags around answers that are also HTML elements, and therefore code in JavaScript files.
const ELEMENTS: [&str; 2] = ["code", "output"];

/// Marks of thoughts that are not tags.
const PAIRS: [(&str, &str); 4] = [
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought", "<channel|>"),
    ("<unused94>thought", "<unused95>"),
    ("Here is my thought process:", "Here is my response:"),
];

/// Tokens without bars that end a turn.
const ENDS: [&str; 14] = [
    "</s>", "<eos>", "<EOS>", "<end_of_turn>", "<eot>", "<EOT>", "<EOD>", "<eom>", "<pad>",
    "[/INST]", "[EOS]", "<fim_pad>", "<file_sep>", "<seed:eos>",
];

/// Tokens without bars that begin a turn.
const BEGINS: [&str; 6] = ["<s>", "<bos>", "<start_of_turn>", "[INST]", "[/INST]", "<fim_middle>"];

/// Roles that templates name after a token that begins a turn.
const ROLES: [&str; 3] = ["assistant", "model", "ai"];

/// Maximum number of nested tags around an answer.
const DEEPEST: usize = 3;

/// Maximum number of thoughts and tokens before an answer; each takes a pass over the whole answer.
const MOST: usize = 32;

/// Maximum length of a tag or a token.
const LONGEST: usize = 64;

/// A tag.
struct Tag {
    name: String,
    closes: bool,
    length: usize,
    /// True if bars enclose the name.
    has_bars: bool,
    /// True if the tag has only a name: no attributes, no `/` at its end.
    is_plain: bool,
    /// True if the name looks like the name of a class: `<Result>`.
    is_class: bool,
}

impl Tag {
    /// Returns the tag at the beginning of a text.
    fn at(text: &str) -> Option<Self> {
        let (opening, closing) = match text.chars().next()? {
            '<' => ('<', '>'),
            '[' => ('[', ']'),
            '◁' => ('◁', '▷'),
            _ => return None,
        };
        let inner = &text[opening.len_utf8()..];
        let end = inner.find([closing, '\n', opening])?;
        if end > LONGEST || !inner[end..].starts_with(closing) {
            return None;
        }
        let written = inner[..end].trim_matches(['|', '｜']);
        let has_bars = written.len() < end;
        let (closes, name) = match written.strip_prefix('/') {
            Some(name) => (true, name),
            None => (false, written),
        };
        let is_plain = !name.contains([' ', '\t', '=', '/']);
        let name = name.split([' ', '\t']).next().unwrap_or_default();
        let is_class =
            !has_bars && name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
        let name = name.rsplit(':').next().unwrap_or_default().replace('▁', "_");
        // `[think]` may be a list.
        if opening == '[' && name.chars().any(char::is_lowercase) {
            return None;
        }
        let mut name = name.to_lowercase();
        let mut closes = closes;
        for (prefix, is_end) in [
            ("begin_of_", false),
            ("start_of_", false),
            ("start_", false),
            ("end_of_", true),
            ("end_", true),
        ] {
            if let Some(rest) = name.strip_prefix(prefix) {
                (name, closes) = (rest.to_owned(), closes || is_end);
                break;
            }
        }
        let length = opening.len_utf8() + end + closing.len_utf8();
        Some(Self { name, closes, length, has_bars, is_plain, is_class })
    }

    /// Returns the tag around thoughts at the beginning of a text. In JavaScript files, a name with a capital at its beginning
    /// is a component.
    fn of_thoughts(text: &str, language: Language) -> Option<Self> {
        let tag = Self::at(text)?;
        let is_component = has_elements(language)
            && text
                .strip_prefix('<')
                .is_some_and(|name| name.trim_start_matches('/').starts_with(char::is_uppercase));
        (THOUGHTS.contains(&&*tag.name) && !is_component).then_some(tag)
    }
}

/// Returns true if code in this language may contain HTML elements.
fn has_elements(language: Language) -> bool {
    matches!(language, Language::TypeScript | Language::JavaScript)
}

/// Removes a model's thoughts, the tags around its answer, and the tokens of its chat template. If the thoughts do not end,
/// nothing is left.
pub(in super::super) fn without_thoughts<'a>(hole: &HoleContext<'_>, text: &'a str) -> &'a str {
    let language = hole.language;
    // After an open quotation mark, a token may be part of the string.
    let left = hole.known_left();
    let template = template_at_end(left, language);
    let is_in_string = template.is_some() || Literals::new(unfinished_line(left), language).is_open;
    let mut text = text;
    if template.is_some() {
        text = behind_own_thoughts(text, language);
    } else if !is_in_string {
        for _ in 0..MOST {
            let before = text.len();
            text = behind_channels(text, language);
            text = behind_tokens(text);
            text = behind_thoughts(text, language);
            if text.len() == before {
                break;
            }
        }
    }
    let end = template.or(is_in_string.then_some("\n"));
    let first = end.map_or(0, |end| text.find(end).unwrap_or(text.len()));
    text = before_end(text, first, template, language);
    for _ in 0..DEEPEST {
        let Some(inner) = in_envelope(text, language) else { break };
        text = inner;
    }
    text
}

/// Returns the text after its leading blank lines, with the white space of its first line.
fn behind_blank_lines(text: &str) -> &str {
    let mut start = 0;
    for line in line_ranges(text) {
        if !strip(&text[line.clone()]).is_empty() {
            break;
        }
        start = line.end;
    }
    &text[start..]
}

/// Returns the positions at which `is_sought` is true outside strings and comments.
fn places<'t>(
    text: &'t str,
    language: Language,
    is_sought: impl Fn(&'t str) -> bool + 't,
) -> impl Iterator<Item = usize> + 't {
    places_beside(text, move |line| Literals::new(line, language), is_sought)
}

/// Returns the positions at which `is_sought` is true outside the literals of the line.
fn places_beside<'t>(
    text: &'t str,
    literals: impl Fn(&str) -> Literals + 't,
    is_sought: impl Fn(&'t str) -> bool + 't,
) -> impl Iterator<Item = usize> + 't {
    line_ranges(text).flat_map(move |line| {
        let content = &text[line.clone()];
        let mut found: Vec<usize> = content
            .char_indices()
            .filter(|(at, c)| matches!(c, '<' | '[' | '◁') && is_sought(&text[line.start + at..]))
            .map(|(at, _)| at)
            .collect();
        if !found.is_empty() {
            let literals = literals(content.trim_end());
            found.retain(|at| !literals.hold(*at));
        }
        found.into_iter().map(move |at| line.start + at)
    })
}

/// Returns the final channel of an answer in gpt-oss's format, with or without the format's tokens.
fn behind_channels(text: &str, language: Language) -> &str {
    const CHANNEL: &str = "<|channel|>";
    const MESSAGE: &str = "<|message|>";
    const TURN: &str = "<|start|>assistant";
    let begin = text.trim_start();
    if let Some((_, answer)) =
        begin.strip_prefix("analysis").and_then(|rest| rest.split_once("assistantfinal"))
    {
        return answer;
    }
    let is_channel = ["<|start|>", CHANNEL].iter().any(|token| begin.starts_with(token))
        && begin.contains(CHANNEL);
    if !is_channel {
        return text;
    }
    let is_final =
        |rest: &str| rest.strip_prefix(CHANNEL).is_some_and(|name| name.starts_with("final"));
    // Quotation marks and backticks in the analysis do not hide a turn.
    let mut turns = text.match_indices(TURN).map(|(at, turn)| at + turn.len());
    let turn = turns.find(|at| is_final(&text[*at..]));
    match turn.or_else(|| places(text, language, is_final).last()) {
        Some(at) => text[at..].split_once(MESSAGE).map_or("", |(_, answer)| answer),
        None => "",
    }
}

/// Returns the text after the tokens at its beginning.
fn behind_tokens(text: &str) -> &str {
    // Servers that remove special tokens keep the role.
    let role = text.trim_start().strip_prefix("assistant\n");
    let mut rest = role.unwrap_or(text);
    loop {
        let begin = rest.trim_start();
        let bare = BEGINS.iter().find(|token| begin.starts_with(**token)).map(|token| token.len());
        let is_of_thoughts = Tag::at(begin).is_some_and(|tag| THOUGHTS.contains(&&*tag.name))
            || PAIRS.iter().any(|(mark, _)| begin.starts_with(mark));
        let token = bare.or_else(|| barred_token(begin)).filter(|_| !is_of_thoughts);
        let Some(length) = token else {
            return if rest.len() < text.len() { behind_blank_lines(rest) } else { text };
        };
        rest = &begin[length..];
        let role = ROLES.iter().find_map(|role| {
            let rest = rest.strip_prefix(role)?;
            rest.starts_with(['\n', '<', '\r']).then_some(rest)
        });
        rest = role.unwrap_or(rest);
    }
}

/// Returns the length of the token with bars at the beginning of a text: `<|im_end|>`, `<｜end▁of▁sentence｜>`.
fn barred_token(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('<')?;
    let bar = inner.chars().next().filter(|c| matches!(c, '|' | '｜'))?;
    let name = &inner[bar.len_utf8()..];
    let end = name.find([bar, '<', '>', '"', '\'', '`', ' ', '\n'])?;
    let behind = name[end..].strip_prefix(bar)?;
    let is_token = end > 0 && end <= LONGEST && behind.starts_with('>');
    is_token.then(|| 1 + 2 * bar.len_utf8() + end + 1)
}

/// Returns the length of the token at the beginning of a text, if that token ends a turn.
fn end_token(text: &str) -> Option<usize> {
    let bare = ENDS.iter().find(|token| text.starts_with(**token)).map(|token| token.len());
    bare.or_else(|| barred_token(text))
}

/// Returns the text after thoughts, which are at the beginning or after sentences; empty if the thoughts do not end.
fn behind_thoughts(text: &str, language: Language) -> &str {
    let begin = text.trim_start();
    if let Some((_, end)) = PAIRS.iter().find(|(mark, _)| begin.starts_with(mark)) {
        return begin.split_once(end).map_or("", |(_, rest)| behind_blank_lines(rest));
    }
    let is_tag = move |rest: &str| Tag::of_thoughts(rest, language).is_some();
    let at = |place: usize| Some((place, Tag::of_thoughts(&text[place..], language)?));
    // Thoughts quote code, and may end after a comment sign.
    let tags = || places_beside(text, Literals::of_thoughts, is_tag).filter_map(at);
    let in_comment = tags().next().filter(|(place, tag)| ends_in_comment(text, *place, tag));
    let in_code = places(text, language, is_tag).filter_map(at).next();
    let firsts = [in_code, in_comment].into_iter().flatten();
    let Some((first, tag)) = firsts.min_by_key(|(place, _)| *place) else { return text };
    let behind = |place: usize, tag: &Tag| behind_blank_lines(&text[place + tag.length..]);
    if tag.closes {
        // The prompt opened the thoughts, unless their end is in a multi-line string.
        let is_code = Strings::new(text, language).hold(first);
        return if is_code { text } else { behind(first, &tag) };
    }
    let is_first = line_ranges(&text[..first])
        .map(|line| strip(&text[line]))
        .all(|line| line.is_empty() || is_sentence(line, language));
    if !is_first {
        return text;
    }
    let ends = || tags().filter(|(_, end)| end.closes);
    let end = ends().find(|(_, end)| end.name == tag.name).or_else(|| ends().next());
    match end {
        Some((place, end)) => behind(place, &end),
        None => {
            let inner = &text[first + tag.length..];
            let is_answer =
                |rest: &str| Tag::at(rest).is_some_and(|tag| !tag.closes && tag.name == "answer");
            places(inner, language, is_answer).next().map_or("", |at| &inner[at..])
        }
    }
}

/// Returns true if a tag in a comment ends thoughts that the prompt opened. The tag must end its line, and text must follow.
/// The comment must not merely mention the tag: the tag is joined to a word, or a blank line follows.
fn ends_in_comment(text: &str, place: usize, tag: &Tag) -> bool {
    let line = unfinished_line(&text[..place]);
    let behind = &text[place + tag.length..];
    let (rest, next) = behind.split_once('\n').unwrap_or((behind, ""));
    let is_joined = line.ends_with(|c: char| !c.is_whitespace());
    let is_block = line.trim_start().starts_with(['*', '/']) && line.contains('*');
    let begins_paragraph = strip(next.split('\n').next().unwrap_or_default()).is_empty();
    tag.closes
        && !is_block
        && strip(rest).is_empty()
        && !strip(next).is_empty()
        && (is_joined || begins_paragraph)
}

/// Returns the text after thoughts that a blank line follows, as models write them. Other thoughts belong to a template for
/// prompts.
fn behind_own_thoughts(text: &str, language: Language) -> &str {
    let rest = behind_thoughts(text, language);
    let thoughts = &text[..text.len() - rest.len()];
    let blank = thoughts[thoughts.trim_end().len()..].matches('\n').count();
    if blank > 1 && !rest.is_empty() { rest } else { text }
}

/// Returns the text before the tokens at its end. Also cuts the text before the first token, from position `first` on, that has
/// bars or that ends or begins a line: after such a token, a model writes turns that nobody asked for. If `open` is given, the
/// text begins inside the string that this mark began.
fn before_end<'a>(
    text: &'a str,
    first: usize,
    open: Option<&'static str>,
    language: Language,
) -> &'a str {
    let mut end = text.len();
    let element = text.find("<s>").filter(|_| has_elements(language));
    // `</s>` also ends an HTML element.
    let is_element =
        |at: usize| text[at..].starts_with("</s>") && element.is_some_and(|start| start < at);
    loop {
        let bare = text[..end].trim_end();
        // The last `<` or `[` begins the last token, if there is one.
        let Some(start) = bare.rfind(['<', '[']) else { break };
        let is_last = end_token(&bare[start..]) == Some(bare.len() - start);
        let is_index = bare[start..].starts_with('[')
            && bare[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if !is_last || is_index || is_element(start) {
            break;
        }
        end = start;
    }
    let kept = if end < text.len() { text[..end].trim_end() } else { text };
    let mut strings = Strings::new(kept, language);
    strings.restart(0, open);
    let templates = Templates::new(kept, language);
    let is_end = |rest: &str| end_token(rest).is_some() && !rest.starts_with('[');
    let mut ends = places(kept, language, is_end);
    let end = ends.find(|&at| {
        let rest = &kept[at..];
        let behind = &rest[end_token(rest).unwrap_or_default()..];
        // The end of the line is not sought: a line may have many tokens.
        let next = behind.trim_start_matches(|c: char| c.is_whitespace() && c != '\n');
        let is_begin = BEGINS.iter().any(|token| next.starts_with(token));
        let ends_line =
            next.is_empty() || next.starts_with('\n') || is_begin || end_token(next).is_some();
        let begins_line = kept[..at].ends_with('\n') || at == 0;
        // A token with bars is never code.
        let is_bare = !rest.starts_with("<|") && !rest.starts_with("<｜");
        at >= first
            && (!is_bare || ends_line || begins_line)
            && !strings.hold(at)
            && !templates.hold(at)
            && !is_element(at)
    });
    end.map_or(kept, |end| kept[..end].trim_end())
}

/// Returns the content of tags around the answer, if only sentences precede the tags.
fn in_envelope(text: &str, language: Language) -> Option<&str> {
    // Names of classes are generics, or JavaScript components.
    let has_classes = language.spec().layout == BlockMarks::Braces;
    let is_around = |tag: &Tag| {
        ENVELOPES.contains(&&*tag.name)
            && tag.is_plain
            && !(has_classes && tag.is_class)
            && !(has_elements(language) && ELEMENTS.contains(&&*tag.name))
    };
    let mut open = None;
    for line in line_ranges(text) {
        let content = text[line.clone()].trim_start();
        if let Some(tag) = Tag::at(content).filter(is_around) {
            let start = line.end - content.len() + tag.length;
            open = (!tag.closes).then_some((start, tag));
            break;
        }
        let content = strip(content);
        if !content.is_empty() && !is_sentence(content, language) {
            break;
        }
    }
    let Some((start, tag)) = open else {
        // The prompt may have opened the tags.
        let bare = text.trim_end();
        let end = bare.rfind(['<', '['])?;
        let tag = Tag::at(&bare[end..]).filter(is_around)?;
        let is_last = tag.closes && end + tag.length == bare.len();
        return is_last.then(|| bare[..end].trim_end());
    };
    let inner = &text[start..];
    let is_end = |rest: &str| Tag::at(rest).is_some_and(|end| end.closes && end.name == tag.name);
    let end = places(inner, language, is_end).last();
    // Tags that are not closed are on a line of their own.
    let behind = inner.split('\n').next().unwrap_or_default();
    if end.is_none() && !tag.has_bars && !strip(behind).is_empty() {
        return None;
    }
    let end = end.unwrap_or(inner.len());
    Some(behind_blank_lines(inner[..end].trim_end()))
}
