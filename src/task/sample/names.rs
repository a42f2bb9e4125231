//! Definitions, imports and calls of one Python file.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use tree_sitter::Node;

use super::source::{LONGEST_CALL, LineClass, Source};
use crate::repository::corpus::SourceFile;
use crate::text::language::syntax::{Syntax, preorder, rows};

/// Longer chains of attributes are not followed.
const LONGEST_CHAIN: usize = 16;

/// A definition at the top level of a file, in an `if` or a `try` too.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Definition {
    Function,
    /// With the names of its methods.
    Class(FxHashSet<String>),
}

/// Target of an import: `from ..module import member`, or a module alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Number of leading dots.
    pub(super) level: usize,
    /// `a.b`; empty in `from . import member`.
    pub(super) module: String,
    pub(super) member: Option<String>,
}

/// A call in whole lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Index of its callee in [`Names::callees`].
    pub(super) callee: usize,
    pub(super) lines: Range<usize>,
}

/// Definitions, imports and calls of one file.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) defined: FxHashMap<String, Definition>,
    /// Functions and classes at any level, methods excepted.
    pub(super) local: FxHashSet<String>,
    /// Methods of all classes, in the order of the file.
    pub(super) methods: Vec<String>,
    /// An import within a function counts for the whole file; a name can be imported twice (`try`, `except ImportError`).
    pub(super) imports: FxHashMap<String, Vec<Target>>,
    /// `from module import *`.
    pub(super) stars: Vec<Target>,
    /// `a.b.c` for the call `a.b.c()`; `.c` where something else than a name stands before it. Each once.
    pub(super) callees: Vec<String>,
    /// Ordered by first line.
    pub(super) calls: Vec<Call>,
}

/// Scope of a definition, innermost last.
enum Scope {
    /// With its name where it is at the top level.
    Class(Option<String>),
    Function,
}

impl Names {
    /// Reads a file's names off its tree.
    pub(super) fn read(_: &SourceFile, source: &Source, syntax: &Syntax<'_>) -> Self {
        let text = source.lines.text();
        let mut names = Self::default();
        let mut scopes: Vec<(usize, Scope)> = Vec::new();
        let mut known: FxHashMap<String, usize> = FxHashMap::default();
        preorder(syntax.tree(), |node, depth| {
            if node.is_error() {
                return false;
            }
            while scopes.last().is_some_and(|&(outer, _)| outer >= depth) {
                scopes.pop();
            }
            match node.kind() {
                "function_definition" | "class_definition" => {
                    let scope = names.define(text, node, scopes.last().map(|(_, scope)| scope));
                    scopes.push((depth, scope));
                }
                "import_statement" => names.import(text, node),
                "import_from_statement" => names.import_from(text, node),
                "call" => names.call(source, node, &mut known),
                _ => {}
            }
            true
        });
        names
    }

    fn define(&mut self, text: &str, node: Node<'_>, within: Option<&Scope>) -> Scope {
        let is_class = node.kind() == "class_definition";
        let name = node.child_by_field_name("name");
        let name = name.map_or("", |name| &text[name.byte_range()]).to_owned();
        if let (Some(Scope::Class(class)), false) = (within, is_class) {
            if let Some(Definition::Class(methods)) =
                class.as_ref().and_then(|class| self.defined.get_mut(class))
            {
                methods.insert(name.clone());
            }
            self.methods.push(name);
            return Scope::Function;
        }
        self.local.insert(name.clone());
        let at_top = within.is_none().then_some(name);
        if is_class {
            if let Some(name) = &at_top {
                let empty = || Definition::Class(FxHashSet::default());
                self.defined.entry(name.clone()).or_insert_with(empty);
            }
            return Scope::Class(at_top);
        }
        if let Some(name) = at_top {
            self.defined.insert(name, Definition::Function);
        }
        Scope::Function
    }

    fn import(&mut self, text: &str, statement: Node<'_>) {
        let mut cursor = statement.walk();
        for node in statement.children_by_field_name("name", &mut cursor) {
            let (mut module, alias) = imported(text, node);
            // `import a.b` binds `a`; the `.b` stands at the place of use again.
            if alias.is_none() {
                module.truncate(module.find('.').unwrap_or(module.len()));
            }
            let name = alias.unwrap_or_else(|| module.clone());
            let target = Target { level: 0, module, member: None };
            self.bind(name, target);
        }
    }

    fn import_from(&mut self, text: &str, statement: Node<'_>) {
        let Some(module) = statement.child_by_field_name("module_name") else {
            return;
        };
        let module = without_space(&text[module.byte_range()]);
        let level = module.len() - module.trim_start_matches('.').len();
        let from = |member| Target { level, module: module[level..].to_owned(), member };
        let mut cursor = statement.walk();
        for node in statement.children_by_field_name("name", &mut cursor) {
            let (member, alias) = imported(text, node);
            let name = alias.unwrap_or_else(|| member.clone());
            self.bind(name, from(Some(member)));
        }
        let mut cursor = statement.walk();
        if statement.children(&mut cursor).any(|node| node.kind() == "wildcard_import") {
            self.stars.push(from(None));
        }
    }

    /// A name that many functions import means the same in all of them, as a rule.
    fn bind(&mut self, name: String, target: Target) {
        let targets = self.imports.entry(name).or_default();
        if !targets.contains(&target) {
            targets.push(target);
        }
    }

    fn call(&mut self, source: &Source, node: Node<'_>, known: &mut FxHashMap<String, usize>) {
        let lines = rows(node);
        let starts_in_code = source.classes[lines.start] == LineClass::Code;
        if node.has_error() || lines.len() > LONGEST_CALL || !starts_in_code {
            return;
        }
        let function = node.child_by_field_name("function");
        let Some(name) = function.and_then(|f| callee(source.lines.text(), f)) else {
            return;
        };
        let callee = *known.entry(name).or_insert_with_key(|name| {
            self.callees.push(name.clone());
            self.callees.len() - 1
        });
        self.calls.push(Call { callee, lines });
    }
}

/// The dotted name, and the alias, of one name in an import statement.
fn imported(text: &str, node: Node<'_>) -> (String, Option<String>) {
    let field = |field| node.child_by_field_name(field).map(|n| &text[n.byte_range()]);
    match (node.kind(), field("name"), field("alias")) {
        ("aliased_import", Some(name), Some(alias)) => {
            (without_space(name), Some(alias.to_owned()))
        }
        _ => (without_space(&text[node.byte_range()]), None),
    }
}

/// Python allows `a . b` and `. . a`.
fn without_space(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c == '\\').collect()
}

/// Callee as a chain of attributes; none where the callee is neither a name nor an attribute.
fn callee(text: &str, function: Node<'_>) -> Option<String> {
    let mut parts = Vec::new();
    let mut node = function;
    while node.kind() == "attribute" && parts.len() < LONGEST_CHAIN {
        parts.push(&text[node.child_by_field_name("attribute")?.byte_range()]);
        node = node.child_by_field_name("object")?;
    }
    match node.kind() {
        "identifier" => parts.push(&text[node.byte_range()]),
        _ if parts.is_empty() => return None,
        _ => {
            parts.truncate(1);
            parts.push("");
        }
    }
    parts.reverse();
    Some(parts.join("."))
}
