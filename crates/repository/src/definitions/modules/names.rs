//! Definitions, imports and calls of one Python file.

use foldhash::{HashMap, HashSet};
use repoformer_text::language::syntax::{Binding, Callee, Import, Receiver, Syntax, preorder};
use tree_sitter::Node;

use crate::definitions::is_short;
use crate::definitions::rows::{NameRows, Rows};

/// Greatest number of targets of one name, and of `*`, that a file imports.
const MOST_TARGETS: usize = 32;
const MOST_STARS: usize = 256;

/// Definition at the top level of a file, including those in an `if` or a `try`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ModuleItem {
    Function(Rows),
    /// Class with its methods.
    Class(Rows, NameRows),
}

/// Target of an import: `from ..module import member`, or only a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Number of leading dots.
    pub(super) level: usize,
    /// `a.b`; empty in `from . import member`.
    pub(super) module: String,
    pub(super) member: Option<String>,
}

/// Call without a syntax error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Index of its callee in [`ModuleNames::callees`].
    pub(super) callee: usize,
    pub(super) rows: Rows,
}

/// Definitions, imports and calls of one file.
#[derive(Debug, Default)]
pub struct ModuleNames {
    /// Whether the file could be read.
    pub(super) is_read: bool,
    pub(super) defined: HashMap<String, ModuleItem>,
    /// Variables at the top level, at the place of their first assignment.
    pub(super) values: NameRows,
    /// Functions and classes at any level, except methods.
    pub(super) local: HashSet<String>,
    /// Methods of all classes, in the order of the file.
    pub(super) methods: Vec<(String, Rows)>,
    /// Imports by name. An import inside a function counts for the whole file; a name can be imported twice (`try`, `except
    /// ImportError`).
    pub(super) imports: HashMap<String, Vec<Target>>,
    /// Targets of `from module import *`.
    pub(super) stars: Vec<Target>,
    /// Distinct callees: `a.b.c` for the call `a.b.c()`, or `.c` if something other than a name precedes it.
    pub(super) callees: Vec<String>,
    /// Calls, ordered by first line.
    pub(super) calls: Vec<Call>,
}

/// Scope of a definition, innermost last.
enum Scope {
    /// Class, with its name if it is at the top level.
    Class(Option<String>),
    Function,
}

impl ModuleNames {
    /// Reads a file's names from its tree, and only the imports before a row.
    pub(crate) fn read(syntax: &Syntax<'_>, before: usize) -> Self {
        let text = syntax.text();
        let mut names = Self { is_read: true, ..Self::default() };
        let mut scopes: Vec<(usize, Scope)> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::default();
        preorder(syntax.tree(), |node, depth| {
            // If a file cannot be parsed as a whole, read its parsable parts.
            if node.is_error() && depth > 0 {
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
                "import_statement" | "import_from_statement"
                    if node.start_position().row < before =>
                {
                    let imports = syntax.imports_of(node);
                    imports
                        .iter()
                        .filter(|import| is_short(import))
                        .for_each(|import| names.import(import));
                }
                "call" => names.call(syntax, node, &mut known),
                "assignment" if scopes.is_empty() => names.set(text, node),
                _ => {}
            }
            true
        });
        names
    }

    /// Returns the rows of a function, a class, a method or a variable at the top level.
    pub(crate) fn rows_of(&self, chain: &[&str]) -> Option<Rows> {
        match *chain {
            [name] => match self.defined.get(name) {
                Some(ModuleItem::Function(rows) | ModuleItem::Class(rows, _)) => Some(*rows),
                None => self.values.get(name).copied(),
            },
            [class, method] => match self.defined.get(class)? {
                ModuleItem::Class(_, methods) => methods.get(method).copied(),
                ModuleItem::Function(_) => None,
            },
            _ => None,
        }
    }

    /// Returns the names that the file's imports bind.
    pub(crate) fn imported_names(&self) -> impl Iterator<Item = &str> {
        self.imports.keys().map(String::as_str)
    }

    fn define(&mut self, text: &str, node: Node<'_>, within: Option<&Scope>) -> Scope {
        let is_class = node.kind() == "class_definition";
        let name = node.child_by_field_name("name");
        let name = name.map_or("", |name| &text[name.byte_range()]).to_owned();
        let rows = Rows::from_node(node);
        if let (Some(Scope::Class(class)), false) = (within, is_class) {
            if let Some(ModuleItem::Class(_, methods)) =
                class.as_ref().and_then(|class| self.defined.get_mut(class))
            {
                // The last overload is the one that is called.
                methods.insert(name.clone(), rows);
            }
            self.methods.push((name, rows));
            return Scope::Function;
        }
        self.local.insert(name.clone());
        let at_top = within.is_none().then_some(name);
        if is_class {
            if let Some(name) = &at_top {
                let empty = || ModuleItem::Class(rows, NameRows::default());
                self.defined.entry(name.clone()).or_insert_with(empty);
            }
            return Scope::Class(at_top);
        }
        if let Some(name) = at_top {
            self.defined.insert(name, ModuleItem::Function(rows));
        }
        Scope::Function
    }

    /// Adds the variable that an assignment sets.
    fn set(&mut self, text: &str, assignment: Node<'_>) {
        let left = assignment.child_by_field_name("left");
        if let Some(name) = left.filter(|left| left.kind() == "identifier") {
            let name = text[name.byte_range()].to_owned();
            self.values.entry(name).or_insert(Rows::from_node(assignment));
        }
    }

    fn import(&mut self, import: &Import<'_>) {
        let from = without_space(import.from);
        let level = from.len() - from.trim_start_matches('.').len();
        let target = |module: &str, member| Target { level, module: module.to_owned(), member };
        match import.binding {
            // `import a.b` binds `a`; the `.b` is repeated at each use.
            Binding::Whole { local } if local == import.from => {
                let first = from.split('.').next().unwrap_or_default();
                self.bind(first, target(first, None));
            }
            Binding::Whole { local } => self.bind(local, target(&from, None)),
            Binding::Member { member, local } => {
                let target = target(&from[level..], Some(without_space(member)));
                self.bind(&without_space(local), target);
            }
            Binding::All => {
                let target = target(&from[level..], None);
                if self.stars.len() < MOST_STARS && !self.stars.contains(&target) {
                    self.stars.push(target);
                }
            }
            Binding::Nothing => {}
        }
    }

    /// Binds a name to a target. A name that many functions import usually means the same in all of them.
    fn bind(&mut self, name: &str, target: Target) {
        let targets = self.imports.entry(name.to_owned()).or_default();
        if targets.len() < MOST_TARGETS && !targets.contains(&target) {
            targets.push(target);
        }
    }

    fn call(&mut self, syntax: &Syntax<'_>, node: Node<'_>, known: &mut HashMap<String, usize>) {
        if node.has_error() {
            return;
        }
        let name = match syntax.callee(node) {
            Some(Callee::Bare(name)) => name,
            Some(Callee::Member(Receiver::Chain(object), name)) => {
                format!("{}.{name}", object.join("."))
            }
            Some(Callee::Member(_, name)) => format!(".{name}"),
            Some(Callee::New(_)) | None => return,
        };
        let callee = *known.entry(name).or_insert_with_key(|name| {
            self.callees.push(name.clone());
            self.callees.len() - 1
        });
        self.calls.push(Call { callee, rows: Rows::from_node(node) });
    }
}

/// Removes white space: Python allows `a . b` and `. . a`.
fn without_space(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c == '\\').collect()
}
