//! Conversion of records of RepoExec, which are functions with a test file each, to RepoEval's tasks.
//!
//! A record has the function's text, the name of its module, and a test file that imports from that module. The test file is
//! written next to the module, so that its relative imports work.

use std::ops::Range;
use std::path::Path;

use foldhash::{HashMap, HashSet};
use repoformer_core::repository::definitions::Names;
use repoformer_core::task::kind::RecordKind;
use repoformer_core::task::{TargetDefinition, Task, TaskFiles};
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{Fields, Object, RecordAddress};
use repoformer_text::language::syntax::{Binding, Function, Syntax};
use repoformer_text::language::{Grammar, Language};
use repoformer_text::lines::Lines;
use repoformer_text::message::Message;
use serde_json::json;
use tree_sitter::Node;

use super::deveval::no_folder;
use super::gold::Gold;

/// Converts a record to a task. Its module and project are kept in the metadata.
pub(super) fn task(
    gold: &mut Gold,
    path: &Path,
    at: RecordAddress,
    object: Object,
    files: Option<&mut TaskFiles<'_>>,
) -> Result<Task> {
    RecordKind::RepoExec.check(path, at.line, &object)?;
    let fields = Fields::new(path, at.line, "", &object);
    let project = fields.string("project")?;
    let [module, name] = [fields.string("module")?, fields.string("entry_point")?];
    let [function, context] = [fields.string("focal_function")?, fields.string("code")?];
    let (test, number) = (fields.string("test")?, fields.count(&["problem_ids"])?);
    // `test-apps/black/src`: the benchmark's folder, the repository, and the folder inside the repository that modules are
    // imported from.
    let of_benchmark = project.split_once('/').map_or(project, |(_, rest)| rest);
    let (repository, root) = of_benchmark.split_once('/').unwrap_or((of_benchmark, ""));
    let id = format!("{repository}/{number}");
    let refused = |reason: Message| Error::Task {
        path: path.to_owned(),
        line: at.line,
        task_id: id.clone(),
        reason,
    };
    let Some(files) = files else {
        return Err(refused(no_folder()));
    };
    let stem = format!("{of_benchmark}/{}", module.replace('.', "/"));
    let [file, package] = [format!("{stem}.py"), format!("{stem}/__init__.py")];
    let read = |files: &mut TaskFiles<'_>, path: &str| {
        let mut place = Task::new(id.clone(), path, 0, 0, "", "");
        let text = files.text(&mut place).map(|file| file.text().to_owned());
        text.map(|text| (place, text))
    };
    let of_file = read(files, &file);
    let is_package = of_file.is_err();
    let (place, text) = of_file.or_else(|reason| {
        let none =
            |other: String| format!("{reason}; {other}; does this folder belong to the project?");
        read(files, &package).map_err(|other| refused(none(other).into()))
    })?;
    let lines = Lines::new(&text);
    let syntax = Syntax::of_lines(&lines, Grammar::for_path(Language::Python, &place.path))
        .ok_or_else(|| refused(format!("{}: it cannot be parsed", place.path).into()))?;
    let body = body(&lines, &syntax, name, function)
        .map_err(|what| refused(format!("{}: {what}", place.path).into()))?;
    let target = lines.range(body.start, body.end);
    let prompt = format!("{}\n", lines.range(0, body.start));
    let mut task = Task::new(id.clone(), &place.path, 0, body.start, target, &prompt);
    let mut found: Vec<TargetDefinition> = Vec::new();
    let function = ImportingFunction { name, path: &place.path, file: &syntax, module, is_package };
    function.for_each_dependency(context, &mut |names| {
        found.extend(gold.find(files, &task.repository, root, names));
    });
    task.set_definitions(found);
    let folder = place.file_in_repository().rsplit_once('/').map_or("", |(folder, _)| folder);
    let test_file = format!("{folder}/test_repoexec_{number}.py");
    let test_file = test_file.trim_start_matches('/').to_owned();
    let kept = [
        ("tests", json!([test_file])),
        ("test_files", json!({ test_file: test })),
        ("module", module.into()),
        ("project", project.into()),
    ];
    let mut metadata = task.metadata.to_object();
    for (name, value) in kept {
        metadata.insert(name.into(), value);
    }
    Ok(Task { line: at.line, row: at.row, metadata: metadata.into(), ..task })
}

/// Returns the lines of the body of the function that has this name and text.
fn body(
    lines: &Lines,
    syntax: &Syntax<'_>,
    name: &str,
    text: &str,
) -> std::result::Result<Range<usize>, String> {
    // Decorators are not in the record.
    let is_it = |function: &&Function<'_>| {
        let Range { start, end } = function.span.lines;
        let rest = lines.range(start, end).trim_end().strip_suffix(text.trim());
        rest.is_some_and(|before| {
            before.trim().is_empty() || before.trim_end_matches([' ', '\t']).ends_with('\n')
        })
    };
    let functions = syntax.functions();
    let named: Vec<_> = functions.iter().filter(|function| function.name == name).collect();
    let version = "is this the repository version that the record was made from?";
    if named.is_empty() {
        return Err(format!("it has no function {name}; {version}"));
    }
    let function = match named.iter().copied().filter(is_it).collect::<Vec<_>>()[..] {
        [only] => only,
        [] => return Err(format!("function {name} has different text; {version}")),
        _ => return Err(format!("several functions {name} have this text")),
    };
    match &function.body {
        Some(body) if body.is_whole_lines => Ok(body.span.lines.clone()),
        _ => Err(format!("the body of {name} shares a line with other code")),
    }
}

/// Greatest number of `from … import *` in a file whose names are looked up.
const MOST_STARS: usize = 64;

/// Function that completes a task, in the file that imports its dependencies.
struct ImportingFunction<'a> {
    name: &'a str,
    path: &'a str,
    file: &'a Syntax<'a>,
    module: &'a str,
    is_package: bool,
}

impl ImportingFunction<'_> {
    /// Calls `take` for each definition in `context` that the function's file imports, with the dotted names that it may have.
    fn for_each_dependency(
        &self,
        context: &str,
        take: &mut dyn FnMut(&mut dyn Iterator<Item = String>),
    ) {
        let Some(syntax) = Syntax::parse(context, Language::Python) else { return };
        let own = Names::read(self.path, self.file);
        let imports = self.file.imports();
        let absolute = |from: &str| absolute(from, self.module, self.is_package);
        let (mut named, mut stars) = (HashMap::default(), Vec::new());
        for import in &imports {
            match import.binding {
                Binding::Member { member, local } => {
                    if let Some(module) = absolute(import.from) {
                        named.entry(local).or_insert_with(|| format!("{module}.{member}"));
                    }
                }
                Binding::All => stars.extend(absolute(import.from)),
                _ => {}
            }
        }
        stars.truncate(MOST_STARS);
        let mut known: HashSet<String> = HashSet::default();
        let root = syntax.tree().root_node();
        for defined in root.named_children(&mut root.walk()).filter_map(name_of) {
            let defined = syntax.of(defined);
            if defined == self.name || own.row_of(&[defined]).is_some() {
                continue;
            }
            let mut of_stars = stars.iter().map(|module| format!("{module}.{defined}"));
            match (named.get(defined), &stars[..]) {
                (Some(name), _) => {
                    if known.insert(name.clone()) {
                        take(&mut std::iter::once(name.clone()));
                    }
                }
                (None, []) => {}
                // This name may have been imported by itself, too.
                (None, [module]) => {
                    if known.insert(format!("{module}.{defined}")) {
                        take(&mut of_stars);
                    }
                }
                (None, _) => {
                    if known.insert(defined.to_owned()) {
                        take(&mut of_stars);
                    }
                }
            }
        }
    }
}

/// Returns the name of a definition.
fn name_of(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        "function_definition" | "class_definition" => node.child_by_field_name("name"),
        "decorated_definition" => name_of(node.child_by_field_name("definition")?),
        "expression_statement" => {
            let assignment = node.named_child(0).filter(|child| child.kind() == "assignment")?;
            assignment.child_by_field_name("left").filter(|left| left.kind() == "identifier")
        }
        _ => None,
    }
}

/// Returns the absolute name of a module that another module, or a package, imports: `..a` in `x.y.z` is `x.a`.
fn absolute(from: &str, module: &str, is_package: bool) -> Option<String> {
    let name = from.trim_start_matches('.');
    let dots = from.len() - name.len();
    if dots == 0 {
        return Some(name.to_owned());
    }
    let mut parts: Vec<&str> = module.split('.').collect();
    let up = dots - usize::from(is_package);
    parts.truncate(parts.len().checked_sub(up)?);
    parts.extend(Some(name).filter(|name| !name.is_empty()));
    Some(parts.join("."))
}

#[cfg(test)]
mod tests {
    use super::absolute;

    #[test]
    fn imports_are_relative_to_the_package_of_their_module() {
        for (from, module, is_package, wanted) in [
            ("a.b", "x.y", false, Some("a.b")),
            (".a", "x.y", false, Some("x.a")),
            (".", "x.y", false, Some("x")),
            ("..a", "x.y.z", false, Some("x.a")),
            (".a", "x.y", true, Some("x.y.a")),
            ("..a", "x.y", true, Some("x.a")),
            ("...a", "x.y", false, None),
        ] {
            assert_eq!(absolute(from, module, is_package).as_deref(), wanted, "{from} {module}");
        }
    }
}
