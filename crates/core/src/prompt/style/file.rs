//! Reads styles from their files, with errors that name the line.

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;
use std::sync::LazyLock;

use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_text::names::did_you_mean;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::template::{FRAGMENT, Fault, PROMPT, Piece, Presence, Slot, Template};
use super::{ContextSelection, Style};

/// Styles that are bundled with the program.
const BUNDLED: [(&str, &str); 11] = [
    ("plain", include_str!("bundled/plain.toml")),
    ("codegen", include_str!("bundled/codegen.toml")),
    ("starcoder", include_str!("bundled/starcoder.toml")),
    ("starcoder-released", include_str!("bundled/starcoder-released.toml")),
    ("repoformer", include_str!("bundled/repoformer.toml")),
    ("repoformer-released", include_str!("bundled/repoformer-released.toml")),
    ("starcoder2", include_str!("bundled/starcoder2.toml")),
    ("codellama", include_str!("bundled/codellama.toml")),
    ("deepseek-coder", include_str!("bundled/deepseek-coder.toml")),
    ("qwen2.5-coder", include_str!("bundled/qwen2.5-coder.toml")),
    ("codestral", include_str!("bundled/codestral.toml")),
];

impl Style {
    /// Returns the names of the bundled styles.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUNDLED.into_iter().map(|(name, _)| name)
    }

    /// Returns the bundled style of this name.
    pub fn find_bundled(name: &str) -> Option<&'static Self> {
        static STYLES: LazyLock<Vec<Style>> = LazyLock::new(|| {
            let parse = |(name, text)| read(text, Path::new(name), name).ok();
            BUNDLED.into_iter().filter_map(parse).collect()
        });
        STYLES.iter().find(|style| style.name == name)
    }

    /// Reads a style from a user's own file; the style's name is the file's name without its extension.
    ///
    /// # Errors
    /// The file cannot be read, or is not a style; the error names the line.
    pub fn open(path: &Path) -> Result<Self> {
        let text = files::read_to_string(path)
            .map_err(|reason| Error::reading(path, "read this prompt style", reason))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        read(&text, path, &name)
    }
}

impl FromStr for Style {
    type Err = Error;

    /// Reads the name of a bundled style, or the path of a file.
    fn from_str(setting: &str) -> Result<Self> {
        if let Some(style) = Self::find_bundled(setting) {
            return Ok(style.clone());
        }
        let path = Path::new(setting);
        if !path.exists() {
            return Err(Error::unknown("prompt style", setting, Self::names()));
        }
        Self::open(path)
    }
}

/// Keys of a style's file.
/// Greatest number of special tokens: each is looked for in the whole template.
const MOST_SPECIALS: usize = 64;
const KEYS: [&str; 6] = ["about", "template", "specials", "stop", "fragment", "cross-file-lead"];

/// Reads the text of a style's file; `name` is the name of the style.
pub(super) fn read(text: &str, path: &Path, name: &str) -> Result<Style> {
    let source = StyleFile { text, path };
    let table = DeTable::parse(text).map_err(|e| {
        let at = e.span().map_or(0, |span| span.start);
        source.error(at, e.message().trim().to_owned(), None)
    })?;
    let table = table.into_inner();
    for key in table.keys() {
        if !KEYS.contains(&key.get_ref().as_ref()) {
            let reason = format!("unknown key '{}'; known: {}", key.get_ref(), KEYS.join(", "));
            return Err(source.error(key.span().start, reason, did_you_mean(key.get_ref(), KEYS)));
        }
    }
    let specials = source.texts(&table, "specials")?;
    if specials.len() > MOST_SPECIALS {
        let at = table.get("specials").map_or(0, |value| value.span().start);
        let reason = format!("more than {MOST_SPECIALS} special tokens");
        return Err(source.error(at, reason, None));
    }
    let Some(template_value) = table.get("template") else {
        let hint =
            "add one, such as template = \"<fim_prefix>{left}<fim_suffix>{right}<fim_middle>\"";
        return Err(source.error(0, "'template' is missing".into(), Some(hint.into())));
    };
    let template = source.template(&table, "template", &PROMPT, &specials)?;
    let template = template.unwrap_or_default();
    let place = template_value.span().start;
    check_slots(&template).map_err(|(reason, hint)| source.error(place, reason, Some(hint)))?;
    let fragment = source.template(&table, "fragment", &FRAGMENT, &specials)?;
    if let Some(fragment) = &fragment
        && !fragment.shows(Slot::Text)
    {
        let at = table.get("fragment").map_or(0, |value| value.span().start);
        let hint = "write {text} for a fragment's lines and {path} for its path";
        return Err(source.error(at, "{text} is missing".into(), Some(hint.into())));
    }
    let used = |special: &&String| {
        template.has_special(special) || fragment.as_ref().is_some_and(|f| f.has_special(special))
    };
    if let Some(special) = specials.iter().find(|special| !used(special)) {
        let at = table.get("specials").map_or(0, |value| value.span().start);
        let reason = format!("the template does not use the special token '{special}'");
        return Err(source.error(at, reason, None));
    }
    Ok(Style {
        name: name.to_owned(),
        about: source.text_of(&table, "about")?.unwrap_or_default(),
        digest: blake3::hash(text.as_bytes()).to_hex().to_string(),
        stop: source.texts(&table, "stop")?,
        lead: source.text_of(&table, "cross-file-lead")?.unwrap_or_default(),
        specials,
        template,
        fragment,
        include: ContextSelection::default(),
    })
}

/// Checks that the left context is always in the template, and that no slot appears twice.
fn check_slots(template: &Template) -> std::result::Result<(), (String, String)> {
    for presence in Presence::all() {
        let pieces = template.pieces(presence);
        let count = |slot| pieces.iter().filter(|p| **p == Piece::Slot(slot)).count();
        let situation = match (presence.right, presence.cross_file) {
            (true, true) => "if there is right and cross-file context",
            (true, false) => "if there is right but no cross-file context",
            (false, true) => "if there is cross-file but no right context",
            (false, false) => "if there is no right and no cross-file context",
        };
        if count(Slot::Left) == 0 {
            let reason = format!("the template has no {{left}} {situation}");
            let hint = "add {left} to this case: every prompt needs the left context";
            return Err((reason, hint.into()));
        }
        for slot in PROMPT {
            if count(slot) > 1 {
                let name = slot.name();
                let reason = format!("the template has more than one {{{name}}} {situation}");
                let hint = "put them in sections that exclude each other: {#right}…{/right} and \
                            {^right}…{/right}";
                return Err((reason, hint.into()));
            }
        }
    }
    Ok(())
}

/// File of a style, for errors that name a line.
struct StyleFile<'f> {
    text: &'f str,
    path: &'f Path,
}

impl StyleFile<'_> {
    fn error(&self, at: usize, reason: String, hint: Option<String>) -> Error {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        Error::Style {
            path: self.path.to_owned(),
            line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
            reason,
            hint: hint.map(Into::into),
        }
    }

    fn wrong_type(&self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) -> Error {
        let found = value.get_ref().type_str();
        let reason = format!("'{key}' must be {expected}, not {found}");
        self.error(value.span().start, reason, None)
    }

    fn text_of(&self, table: &DeTable<'_>, key: &str) -> Result<Option<String>> {
        let Some(value) = table.get(key) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::String(text) => Ok(Some(text.to_string())),
            _ => Err(self.wrong_type(key, value, "a text")),
        }
    }

    fn texts(&self, table: &DeTable<'_>, key: &str) -> Result<Vec<String>> {
        let Some(value) = table.get(key) else {
            return Ok(Vec::new());
        };
        let DeValue::Array(list) = value.get_ref() else {
            return Err(self.wrong_type(key, value, "a list of texts"));
        };
        let text = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
            DeValue::String(text) if !text.is_empty() => Ok(text.to_string()),
            DeValue::String(_) => {
                Err(self.error(value.span().start, format!("'{key}' has an empty text"), None))
            }
            _ => Err(self.wrong_type(key, value, "a list of texts")),
        };
        list.iter().map(text).collect()
    }

    fn template(
        &self,
        table: &DeTable<'_>,
        key: &str,
        slots: &[Slot],
        specials: &[String],
    ) -> Result<Option<Template>> {
        let (Some(text), Some(value)) = (self.text_of(table, key)?, table.get(key)) else {
            return Ok(None);
        };
        let parsed = Template::parse(&text, slots, specials);
        parsed.map(Some).map_err(|Fault { at, reason, hint }| {
            let place = self.place_in(value.span(), &text[..at]);
            self.error(place, reason, hint)
        })
    }

    /// Returns the position in the file of the text after `before`, which is at the start of a string; only the line is exact.
    /// A newline in the file is a newline in the text, except directly after three quotes.
    fn place_in(&self, span: Range<usize>, before: &str) -> usize {
        let raw = &self.text[span.clone()];
        let opened = raw.starts_with("\"\"\"\n") || raw.starts_with("'''\n");
        let lines = before.matches('\n').count() + usize::from(opened);
        let newlines = raw.match_indices('\n').map(|(at, _)| at + 1);
        let at = std::iter::once(0).chain(newlines).take(lines + 1).last();
        span.start + at.unwrap_or_default()
    }
}
