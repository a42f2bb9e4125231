//! Source file as a record of Repoformer's `packages.jsonl`.

use std::path::Path;

use repoformer_store::error::Result;
use repoformer_store::jsonl::{Fields, Object};
use repoformer_store::schema::{Field, Type, may, must, require};
use repoformer_text::language::Language;
use serde_json::{Value, json};

use super::FileText;
use crate::corpus::path_names_with_repository;

/// Fields of a record of a packages file.
pub const PACKAGE: &[Field] = &[
    may("source url license patent", Type::Text),
    must("repository filepath", Type::Text),
    must("content", Type::List(&Type::Object(CONTENT))),
];

const CONTENT: &[Field] = &[may("type lang", Type::Text), must("content", Type::Text)];

/// Record of a packages file (`jsonify.py`): `source, url, license, patent, repository, filepath, content[{type, lang,
/// content}]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    /// Value of `metadata.repository` in its tasks: often a URL.
    pub repository: String,
    /// `repository/folder/…/file.py`; its first name is the repository's folder.
    pub filepath: String,
    /// Text of the file, taken from the first element of `content`, as Repoformer's program reads it.
    pub text: String,
    /// Record as it was read.
    pub record: Object,
}

impl Package {
    /// Reads a record at a line of a file.
    ///
    /// # Errors
    /// A field is missing, of another type, or leads out of the repository.
    pub fn read(path: &Path, line: usize, record: Object) -> Result<Self> {
        require(path, line, PACKAGE, &record)?;
        let fields = Fields::new(path, line, "", &record);
        let filepath = fields.string("filepath")?;
        let names = path_names_with_repository(filepath)
            .map_err(|e| fields.error(format!("field 'filepath' {e}")))?;
        if names.len() < 2 {
            return Err(fields.error("field 'filepath' must be repository/folder/…/file"));
        }
        let repository = fields.string("repository")?;
        let Some(Value::Object(first)) = fields.list("content")?.first() else {
            return Err(fields.error("field 'content' must begin with an object"));
        };
        let text = fields.below("content[0].", first).string("content")?;
        Ok(Self {
            repository: repository.to_owned(),
            filepath: names.join("/"),
            text: text.to_owned(),
            record,
        })
    }

    /// Returns the folder of its repository and its path there.
    pub fn place(&self) -> (&str, &str) {
        self.filepath.split_once('/').unwrap_or((&self.filepath, ""))
    }

    /// Returns the name of its repository: `owner/name` if the record has it, or the name of the folder.
    pub fn name(&self) -> &str {
        let (folder, _) = self.place();
        if self.repository.replace('/', "_") == folder { &self.repository } else { folder }
    }

    /// Returns the record of a file in a repository's folder. Fields of the repository that are not in `kept` are filled in as
    /// `jsonify.py` does, with the repository's name instead of its URL.
    pub fn record_of(repository: &str, content: &FileText, kept: &Object) -> Value {
        let language = Language::of_path(&content.path).unwrap_or_default();
        let folder = repository.replace('/', "_");
        let mut record = json!({
            "source": "github", "url": "", "license": "permissive", "patent": "NO_PATENT_INFO",
            "repository": repository, "filepath": format!("{folder}/{}", content.path),
            "content": [{"type": "code", "lang": language.name(), "content": content.text}],
        });
        for name in OF_REPOSITORY {
            if let Some(value) = kept.get(name) {
                record[name] = value.clone();
            }
        }
        record
    }

    /// Returns the fields that describe the repository in addition to its name, for the metadata of a raw file.
    pub fn kept_fields(&self) -> Object {
        let content = FileText { path: String::new(), text: String::new() };
        let usual = Self::record_of(self.name(), &content, &Object::new());
        let said =
            OF_REPOSITORY.into_iter().filter_map(|name| Some((name, self.record.get(name)?)));
        let more = said.filter(|(name, value)| usual[*name] != **value);
        more.map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }
}

/// Fields of a packages file that describe the repository, not the file.
pub const OF_REPOSITORY: [&str; 5] = ["source", "url", "license", "patent", "repository"];
