//! Conversion of records of DevEval and EvoCodeBench, which are functions with their tests, to RepoEval's tasks.
//!
//! A record gives the position of a function's body in a file, and the text comes from the file. DevEval's projects are in
//! folders of topics, which are not repositories: `Topic/project/a.py` is read from, and becomes a task of, `project/a.py`.

use std::ops::Range;
use std::path::Path;

use foldhash::HashSet;
use repoformer_core::task::kind::RecordKind;
use repoformer_core::task::{TargetDefinition, Task, TaskFiles};
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{self, Fields, Object, RecordAddress};
use repoformer_text::language::syntax::{Function, Syntax};
use repoformer_text::language::{Grammar, Language};
use repoformer_text::lines::{Lines, strip};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};

use super::gold::Gold;

/// Returns the reason why a record without its repository is not a task.
pub(super) fn no_folder() -> Message {
    message![
        "its text must be read from its repository; the ",
        UserChoice::RepositoriesFolder,
        " is needed"
    ]
}

/// Converts a record to a task. Fields that have no place in a task are kept in its metadata.
pub(super) fn task(
    gold: &mut Gold,
    path: &Path,
    at: RecordAddress,
    mut object: Object,
    files: Option<&mut TaskFiles<'_>>,
) -> Result<Task> {
    let FunctionDescription { namespace, file, signature, mut body, dependencies } =
        FunctionDescription::read(path, at.line, &object)?;
    let refused = |reason: Message| Error::Task {
        path: path.to_owned(),
        line: at.line,
        task_id: namespace.clone(),
        reason,
    };
    let Some(files) = files else {
        return Err(refused(no_folder()));
    };
    let mut place = Task::new(namespace.clone(), &file, 0, body.start, "", "");
    let file = files.text(&mut place).map_err(|reason| refused(reason.into()))?;
    let text = file.text();
    let lines = Lines::new(text);
    let ends = text.matches('\n').count();
    if lines.count() != ends + usize::from(!text.is_empty() && !text.ends_with('\n')) {
        let reason = "has line ends other than newlines, so the record's line numbers do not fit";
        return Err(refused(format!("{}: {reason}", place.path).into()));
    }
    // Some records count the empty line after a file's last newline.
    if body.end == lines.count() + 1 {
        body.end -= 1;
    }
    let name = namespace.rsplit('.').next().unwrap_or(&namespace);
    check(&lines, &place.path, name, &signature, &body).map_err(|what| {
        let version = "is this the repository version that the record was made from?";
        refused(format!("{}: {what}; {version}", place.path).into())
    })?;
    let target = lines.range(body.start, body.end);
    let prompt = lines.range(0, body.start);
    let mut task =
        Task::new(namespace.clone(), &place.path, 0, body.start, target, &format!("{prompt}\n"));
    let root = root(place.file_in_repository(), &namespace);
    let found = dependencies
        .into_iter()
        .filter_map(|name| gold.find(files, &task.repository, root, [name]));
    let found: Vec<TargetDefinition> = found.collect();
    task.set_definitions(found);
    for name in ["namespace", "completion_path", "project_path"] {
        object.shift_remove(name);
    }
    let mut metadata = task.metadata.to_object();
    for (name, value) in object {
        metadata.entry(name).or_insert(value);
    }
    Ok(Task { line: at.line, row: at.row, metadata: metadata.into(), ..task })
}

/// Description of a function in a record.
pub(crate) struct FunctionDescription {
    namespace: String,
    file: String,
    /// Lines of the signature, 0-based.
    signature: Range<usize>,
    body: Range<usize>,
    /// Names that the function uses and that other files define.
    dependencies: Vec<String>,
}

impl FunctionDescription {
    /// Reads a record at a line of a file.
    ///
    /// # Errors
    /// A field is missing, of another type, or impossible.
    pub(crate) fn read(path: &Path, line: usize, object: &Object) -> Result<Self> {
        RecordKind::DevEval.check(path, line, object)?;
        let fields = Fields::new(path, line, "", object);
        if fields.list("tests")?.is_empty() {
            return Err(fields.error("field 'tests' is empty, so no completion can be tested"));
        }
        Ok(Self {
            namespace: fields.string("namespace")?.to_owned(),
            file: file_of(&fields)?,
            signature: span(&fields, "signature_position")?,
            body: span(&fields, "body_position")?,
            dependencies: dependencies(&fields)?,
        })
    }
}

/// Returns the path of the file, starting with its project.
fn file_of(fields: &Fields<'_>) -> Result<String> {
    let whole = fields.string("completion_path")?;
    let project = fields.optional_string("project_path")?.and_then(|path| path.rsplit_once('/'));
    let topic = project.map_or("", |(topic, _)| topic);
    let file = whole.strip_prefix(topic).map(|file| file.trim_start_matches('/'));
    match file {
        Some(file) if file.contains('/') => Ok(file.to_owned()),
        _ => Err(fields.error("field 'completion_path' must be project/…/file")),
    }
}

/// Returns the 0-based lines of a field `[first, last]` that counts from 1.
fn span(fields: &Fields<'_>, name: &str) -> Result<Range<usize>> {
    let numbers: Vec<usize> = fields.list(name)?.iter().filter_map(jsonl::count).collect();
    match numbers[..] {
        [first, last] if 1 <= first && first <= last => Ok(first - 1..last),
        _ => Err(fields
            .error(format!("field '{name}' must be two lines, [first, last], counted from 1"))),
    }
}

/// Returns the names that the function uses and that other files define.
fn dependencies(fields: &Fields<'_>) -> Result<Vec<String>> {
    if !fields.has("dependency") {
        return Ok(Vec::new());
    }
    let own = fields.below("dependency.", fields.object("dependency")?);
    let (mut known, names) = (HashSet::default(), own.strings("cross_file")?);
    let names = names.into_iter().filter(|name| known.insert(*name));
    Ok(names.map(str::to_owned).collect())
}

/// Checks that lines are a function's signature, and its body up to its end.
fn check(
    lines: &Lines,
    path: &str,
    name: &str,
    signature: &Range<usize>,
    body: &Range<usize>,
) -> std::result::Result<(), String> {
    if body.end > lines.count() || signature.start >= lines.count() {
        let last = body.end.max(signature.end);
        return Err(format!(
            "it has {} lines, but the function ends at line {last}",
            lines.count()
        ));
    }
    let syntax = Syntax::of_lines(lines, Grammar::for_path(Language::Python, path));
    let functions = syntax.as_ref().map(Syntax::functions).unwrap_or_default();
    let head = lines.line(signature.start);
    let begins = |function: &&Function<'_>| {
        function.name == name
            && function.span.lines.contains(&signature.start)
            && head.contains("def ")
    };
    // Of nested functions, the innermost.
    let Some(function) = functions.iter().rfind(begins) else {
        return Err(format!("line {} does not begin function {name}", signature.start + 1));
    };
    let is_code = |row: &usize| !strip(lines.line(*row)).is_empty();
    let end = body.clone().rfind(is_code).map_or(body.start, |row| row + 1);
    let indent = |line: &str| line.len() - line.trim_start().len();
    let first = body.clone().find(is_code).map(|row| lines.line(row));
    match first {
        Some(first) if body.start >= signature.end && indent(first) > indent(head) => {}
        _ => return Err(format!("line {} does not begin the body of {name}", body.start + 1)),
    }
    if function.span.lines.end == end {
        Ok(())
    } else {
        Err(format!("{name} ends at line {}, but its body at line {end}", function.span.lines.end))
    }
}

/// Returns the folder that modules are imported from: for `src/a/b.py`, it is `src` if the namespace is `a.b.f`.
fn root<'p>(file: &'p str, namespace: &str) -> &'p str {
    let first = namespace.split('.').next().unwrap_or(namespace);
    let folders = file.match_indices('/').map(|(at, _)| at);
    let mut starts = std::iter::once(0).chain(folders.map(|at| at + 1));
    let is_start = |start: &usize| {
        let rest = &file[*start..];
        rest.split(['/', '.']).next() == Some(first)
    };
    starts.find(is_start).map_or("", |start| file[..start].trim_end_matches('/'))
}

/// Returns the text of a completion as the benchmark places it: its common indent is removed, and the indent of the body is put
/// before each non-blank line.
pub(super) fn place_body(completion: &str, indent: usize) -> String {
    let lines: Vec<&str> = completion.split('\n').collect();
    let blank_start =
        |line: &&str| -> String { line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect() };
    let is_code = |line: &&&str| !line.trim().is_empty();
    let mut starts = lines.iter().filter(is_code).map(blank_start);
    let common = starts.next().map_or(String::new(), |first| {
        starts.fold(first, |common, start| {
            let shared = common.bytes().zip(start.bytes()).take_while(|(a, b)| a == b).count();
            common[..shared].to_owned()
        })
    });
    let indent = " ".repeat(indent);
    let mut placed = String::new();
    for (number, line) in lines.iter().enumerate() {
        if number > 0 {
            placed.push('\n');
        }
        if !line.trim().is_empty() {
            placed.extend([&indent, line.strip_prefix(common.as_str()).unwrap_or(line)]);
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equivalent to Python's `textwrap.indent(textwrap.dedent(text), " " * indent)`.
    #[test]
    fn completions_are_placed_as_the_benchmark_places_them() {
        for (text, indent, wanted) in [
            ("x = 1\nif x:\n    y\n", 4, "    x = 1\n    if x:\n        y\n"),
            ("        a\n\n          b\n   \n", 4, "    a\n\n      b\n\n"),
            ("a\n    b", 8, "        a\n            b"),
            ("\ta\n\t b\n", 2, "  a\n   b\n"),
            ("\ta\n    b\n", 2, "  \ta\n      b\n"),
            ("", 4, ""),
        ] {
            assert_eq!(place_body(text, indent), wanted, "{text:?}");
        }
    }

    #[test]
    fn modules_are_imported_from_the_folder_that_the_namespace_shows() {
        for (file, namespace, wanted) in [
            ("mistune/toc.py", "mistune.toc.f", ""),
            ("src/mistune/toc.py", "mistune.toc.f", "src"),
            ("a/lib/b.py", "b.f", "a/lib"),
            ("setup.py", "other.f", ""),
        ] {
            assert_eq!(root(file, namespace), wanted, "{file} {namespace}");
        }
    }
}
