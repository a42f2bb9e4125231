//! Repository as a record of `raw.jsonl`, the first form of Repoformer's training data.

use std::path::Path;

use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{Fields, Object};
use repoformer_store::schema::{Field, Type, may, must, require};
use repoformer_text::language::syntax::{ParseExtent, ParseGap};
use repoformer_text::language::{Language, Resolution};
use repoformer_text::lines::{Lines, strip, universal_newlines};
use serde_json::{Value, json};

use super::python::{Modules, PythonFile};
use super::{FileText, blob_sha1};
use crate::corpus::{Repository, SourceFile, path_names};

/// Fields of a record of a raw file.
pub const RAW: &[Field] = &[
    must("repo_name", Type::Text),
    may("stars_count", Type::Number),
    must("files", Type::List(&Type::Object(FILE))),
    may("repo_size", Type::Object(&[may("number_of_files lines_of_code", Type::Count)])),
];

const FILE: &[Field] =
    &[must("filepath content", Type::Text), may("metadata", Type::Object(METADATA))];

const METADATA: &[Field] = &[
    may("size", Type::Count),
    may("lang ext hexsha", Type::Text),
    may("avg_line_length", Type::Number),
    may("max_line_length line_count non_empty_line_count", Type::Count),
    may("imports local_imports", Type::List(&Type::Text)),
    may("functions", Type::List(&Type::List(&Type::List(&Type::Count)))),
    // Fields of the packages from which it was created.
    may("source url license patent repository", Type::Text),
];

/// File of a raw repository.
#[derive(Debug, Clone, PartialEq)]
pub struct RawFile {
    /// Path in the repository, and text.
    pub content: FileText,
    /// `metadata`, as it was read; empty if the record has none.
    pub metadata: Object,
}

/// Record of a raw file: `repo_name, stars_count, files[{filepath, content, metadata}], repo_size`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawRepository {
    /// Name, often `owner/name`.
    pub name: String,
    /// Files, in the order of the record.
    pub files: Vec<RawFile>,
    /// Other fields of the record, as they were read.
    pub extra: Object,
}

impl RawFile {
    /// Fields of the metadata that are computed if they are missing.
    pub const COMPUTED: [&str; 11] = [
        "size", "lang", "ext", "hexsha", "avg_line_length", "max_line_length", "line_count",
        "non_empty_line_count", "imports", "local_imports", "functions",
    ];
}

impl RawRepository {
    /// Reads the record at a line of a file. Also returns an error for each file that is left out because its path cannot name
    /// a file in the repository.
    ///
    /// # Errors
    /// A field is missing or of another type, or the repository's name leads elsewhere.
    pub fn read(path: &Path, line: usize, mut record: Object) -> Result<(Self, Vec<Error>)> {
        require(path, line, RAW, &record)?;
        let fields = Fields::new(path, line, "", &record);
        let name = fields.string("repo_name")?.to_owned();
        path_names(&name).map_err(|e| fields.error(format!("field 'repo_name' {e}")))?;
        let (mut files, mut left_out) = (Vec::new(), Vec::new());
        for (number, file) in fields.list("files")?.iter().enumerate() {
            let prefix = format!("files[{number}].");
            let Value::Object(file) = file else { continue };
            let fields = fields.below(&prefix, file);
            match path_names(fields.string("filepath")?) {
                Ok(names) => files.push(read_file(&fields, file, names.join("/"))?),
                Err(e) => {
                    left_out.push(
                        fields.error(format!("field '{prefix}filepath' {e}; the file is left out")),
                    );
                }
            }
        }
        record.shift_remove("repo_name");
        record.shift_remove("files");
        Ok((Self { name, files, extra: record }, left_out))
    }

    /// Returns the name of its folder: `owner_name` for `owner/name`, as RepoEval names folders.
    pub fn folder(&self) -> String {
        self.name.replace('/', "_")
    }

    /// Returns its files of a language, in the order of their paths, in its folder.
    pub fn repository(self, language: Language) -> Repository {
        let name = self.folder();
        let mut files: Vec<SourceFile> = self
            .files
            .into_iter()
            .filter(|file| language.holds(&file.content.path))
            .map(|file| SourceFile {
                path: format!("{name}/{}", file.content.path),
                text: universal_newlines(file.content.text),
                same_as: 0,
            })
            .collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files.dedup_by(|one, other| one.path == other.path);
        for (number, file) in (0..).zip(&mut files) {
            file.same_as = number;
        }
        Repository { name, files }
    }

    /// Returns the record of a repository's files, with everything that can be computed; see [`RawRepository::to_record`].
    pub fn new(name: &str, contents: Vec<FileText>) -> Self {
        let file = |content| RawFile { content, metadata: Object::new() };
        Self {
            name: name.to_owned(),
            files: contents.into_iter().map(file).collect(),
            extra: Object::new(),
        }
    }

    /// Returns the record. Existing values are kept, and missing ones are computed. Lines are split as by Python's
    /// `splitlines`; lengths are in characters.
    ///
    /// - `size`: bytes of UTF-8; `lang` and `ext` (without dot): as The Stack names them; `hexsha`: git's blob id of the text
    /// - `avg_line_length`, `max_line_length`, `line_count`, `non_empty_line_count` (lines that are not only white space)
    /// - `imports`: every module that the file imports, by its dotted name; `local_imports`: the imports that are files or
    ///   folders of the repository; `functions`: start and end of each function definition, `[[row, column], [row, column]]`,
    ///   0-based, with columns in bytes (tree-sitter's). For Python; empty for other languages.
    /// - `stars_count`: 0 if it is not known; `repo_size`: the number of files and the sum of their `line_count`
    ///
    /// Files that lack imports and functions because they cannot be parsed are added to `gaps`.
    pub fn to_record(&self, gaps: &mut Vec<ParseGap>) -> Value {
        let paths = self.files.iter().map(|file| file.content.path.as_str());
        let modules = PythonFile::modules(paths);
        let (mut files, mut lines) = (Vec::with_capacity(self.files.len()), 0);
        for RawFile { content, metadata } in &self.files {
            let Value::Object(mut computed) = describe(&self.name, content, &modules, gaps) else {
                continue;
            };
            lines += computed["line_count"].as_u64().unwrap_or(0);
            computed.extend(metadata.clone());
            files.push(json!({
                "filepath": content.path, "content": content.text, "metadata": computed,
            }));
        }
        let mut record = Object::new();
        record.insert("repo_name".into(), self.name.as_str().into());
        let stars = self.extra.get("stars_count").cloned();
        record.insert("stars_count".into(), stars.unwrap_or_else(|| 0.into()));
        let count = files.len();
        record.insert("files".into(), files.into());
        let size = json!({"number_of_files": count, "lines_of_code": lines});
        record.insert("repo_size".into(), size);
        for (name, value) in &self.extra {
            record.insert(name.clone(), value.clone());
        }
        Value::Object(record)
    }
}

fn read_file(fields: &Fields<'_>, file: &Object, path: String) -> Result<RawFile> {
    let metadata = match file.get("metadata") {
        None | Some(Value::Null) => Object::new(),
        Some(_) => fields.object("metadata")?.clone(),
    };
    Ok(RawFile { content: FileText { path, text: fields.string("content")?.to_owned() }, metadata })
}

/// Returns the fields of a file that can be computed.
fn describe(
    repository: &str,
    content: &FileText,
    modules: &Modules,
    gaps: &mut Vec<ParseGap>,
) -> Value {
    let language = Language::of_path(&content.path);
    let lang = language.map_or("", Language::title);
    let file_name = content.path.rsplit('/').next().unwrap_or("");
    let ext = file_name.rsplit_once('.').map_or("", |(_, ext)| ext);
    let lines = Lines::new(&content.text);
    let lengths = || lines.iter().map(|line| line.chars().count());
    let filled = lines.iter().filter(|line| !strip(line).is_empty());
    let average = lengths().sum::<usize>() as f64 / lines.count().max(1) as f64;
    let python = match language.filter(|of| matches!(of.spec().resolution, Resolution::Modules)) {
        Some(language) => PythonFile::read(&content.text).unwrap_or_else(|| {
            let path = format!("{repository}/{}", content.path);
            gaps.extend(ParseGap::find(language, &path, ParseExtent::Not));
            PythonFile::default()
        }),
        None => PythonFile::default(),
    };
    let imports: Vec<String> = python.imports.iter().map(ToString::to_string).collect();
    json!({
        "size": content.text.len(), "lang": lang, "ext": ext,
        "hexsha": blob_sha1(content.text.as_bytes()),
        "avg_line_length": average, "max_line_length": lengths().max().unwrap_or(0),
        "line_count": lines.count(), "non_empty_line_count": filled.count(),
        "imports": imports, "local_imports": python.local_imports(&content.path, modules),
        "functions": python.functions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand; `hexsha` is `git hash-object`'s.
    #[test]
    fn what_is_not_said_is_computed_and_what_is_said_is_kept() {
        let content = |path: &str, text: &str| FileText { path: path.into(), text: text.into() };
        let mut raw = RawRepository::new(
            "o/r",
            vec![
                content("a/b.py", "import os\nfrom a import c\n\n\u{e9} = 1\n"),
                content("a/c.py", "def f():\n    return 1"),
                content("x.ts", ""),
            ],
        );
        raw.files[1].metadata.insert("size".into(), 7.into());
        raw.extra.insert("mine".into(), "kept".into());
        assert_eq!(raw.folder(), "o_r");
        let record = raw.to_record(&mut Vec::new());
        let computed = record["files"][0]["metadata"].as_object().unwrap();
        assert!(computed.keys().eq(RawFile::COMPUTED));
        assert_eq!(record["repo_size"], json!({"number_of_files": 3, "lines_of_code": 6}));
        assert_eq!(record["mine"], "kept");
        assert_eq!(
            record["files"][0]["metadata"],
            json!({
                "size": 34, "lang": "Python", "ext": "py", "hexsha": blob_sha1("import os\nfrom a import c\n\n\u{e9} = 1\n".as_bytes()),
                "avg_line_length": 7.25, "max_line_length": 15, "line_count": 4, "non_empty_line_count": 3,
                "imports": ["os", "a"], "local_imports": ["a"], "functions": [],
            })
        );
        let second = &record["files"][1]["metadata"];
        assert_eq!(
            (&second["size"], &second["functions"]),
            (&json!(7), &json!([[[0, 0], [1, 12]]]))
        );
        assert_eq!(record["files"][2]["metadata"]["avg_line_length"], 0.0);
        let Value::Object(object) = record.clone() else { unreachable!() };
        let read = |object| RawRepository::read(Path::new("raw.jsonl"), 4, object);
        let (again, left_out) = read(object).unwrap();
        assert_eq!((again.to_record(&mut Vec::new()), left_out.len()), (record.clone(), 0));
        // A path out of the repository affects only its own file.
        let Value::Object(mut object) = record.clone() else { unreachable!() };
        for (place, bad) in [(0, "/etc/x"), (2, "pkg\\win.py")] {
            object["files"][place]["filepath"] = bad.into();
        }
        let (rest, left_out) = read(object).unwrap();
        assert_eq!(rest.files, [again.files[1].clone()]);
        let reasons: Vec<String> = left_out.iter().map(ToString::to_string).collect();
        assert_eq!(
            reasons,
            [
                "raw.jsonl:4: field 'files[0].filepath' leads out of the repository: \"/etc/x\"; the file is left out",
                "raw.jsonl:4: field 'files[2].filepath' contains a backslash: \"pkg\\\\win.py\"; separate its folders with '/'; the file is left out",
            ]
        );
        for (field, bad) in [("repo_name", json!("../x")), ("files", json!([1]))] {
            let Value::Object(mut object) = record.clone() else { unreachable!() };
            object.insert(field.into(), bad);
            let error = read(object).unwrap_err().to_string();
            assert!(error.starts_with("raw.jsonl:4: field '"), "{error}");
        }
    }
}
