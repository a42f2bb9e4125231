//! Reading a file's declarations and calls off its tree.

mod declare;
mod names;
mod receiver;

use rustc_hash::FxHashMap;
use tree_sitter::Node;

use super::unit::{Call, Callee, Declared, Import, Scope, Type, Unit};
use crate::task::sample::calls::LONGEST_CALL;
use crate::task::sample::source::{LineClass, Source};
use crate::text::language::Language;
use crate::text::language::syntax::{self, Binding, Syntax, child, preorder, rows};
use names::{dotted, type_path};

impl Unit {
    /// Reads a file's names off its tree.
    pub(in crate::task::sample) fn read(source: &Source, syntax: &Syntax<'_>) -> Self {
        let mut reader = Reader {
            syntax,
            language: syntax.grammar().language(),
            open: vec![(0, 0)],
            namespaces: Vec::new(),
            unit: Unit {
                imports: syntax.imports().into_iter().map(import).collect(),
                scopes: vec![Scope::default()],
                ..Unit::default()
            },
        };
        preorder(syntax.tree(), |node, depth| {
            if node.is_error() {
                return false;
            }
            reader.close(depth);
            if node.is_named() {
                reader.visit(source, node, depth);
            }
            true
        });
        reader.unit
    }
}

/// C#'s generic types are known by their names alone, whatever they are filled with.
fn import(import: syntax::Import<'_>) -> Import {
    let (member, local) = match import.binding {
        Binding::Member { member, local } => (Some(member.to_owned()), local),
        Binding::Whole { local } => (None, local),
        Binding::All => (Some("*".to_owned()), ""),
        Binding::Nothing => (Some(String::new()), ""),
    };
    let from = import.from.split('<').next().unwrap_or_default();
    // `a . b` is `a.b`, and `global::a` is `a`; a path is what it is.
    let from = match from.contains('/') {
        true => from.to_owned(),
        false => from.chars().filter(|c| !c.is_whitespace()).collect(),
    };
    Import {
        from: from
            .rsplit_once("::")
            .map_or(from.as_str(), |(_, name)| name)
            .to_owned(),
        member,
        local: local.to_owned(),
        is_static: import.is_static,
        is_passed_on: import.is_passed_on,
    }
}

/// Where the walk is.
struct Reader<'r, 'a> {
    syntax: &'r Syntax<'a>,
    language: Language,
    /// Depth of a node, and the scope that it opened; innermost last.
    open: Vec<(usize, usize)>,
    /// Depth and name of the namespaces around, innermost last.
    namespaces: Vec<(usize, String)>,
    unit: Unit,
}

impl Reader<'_, '_> {
    fn text(&self, node: Node<'_>) -> String {
        self.syntax.of(node).to_owned()
    }

    fn scope(&self) -> usize {
        self.open.last().map_or(0, |(_, scope)| *scope)
    }

    /// The type whose inside the walk is in, not within one of its functions.
    fn type_here(&self) -> Option<usize> {
        self.unit.scopes[self.scope()].of_type
    }

    /// Leaves what a node at this depth cannot lie in.
    fn close(&mut self, depth: usize) {
        while self.open.len() > 1 && self.open.last().is_some_and(|(outer, _)| *outer >= depth) {
            self.open.pop();
        }
        while self
            .namespaces
            .last()
            .is_some_and(|(outer, _)| *outer >= depth)
        {
            self.namespaces.pop();
        }
    }

    fn open(&mut self, depth: usize, of_type: Option<usize>) {
        let scope = Scope {
            parent: Some(self.scope()),
            of_type,
            variables: FxHashMap::default(),
        };
        self.unit.scopes.push(scope);
        self.open.push((depth, self.unit.scopes.len() - 1));
    }

    fn visit(&mut self, source: &Source, node: Node<'_>, depth: usize) {
        match node.kind() {
            "package_declaration" => {
                let name = child(node, "scoped_identifier").or_else(|| child(node, "identifier"));
                self.namespace(name, 0);
            }
            "namespace_declaration" => self.namespace(node.child_by_field_name("name"), depth),
            "file_scoped_namespace_declaration" => {
                self.namespace(node.child_by_field_name("name"), 0);
            }
            "class_declaration"
            | "abstract_class_declaration"
            | "class"
            | "struct_declaration"
            | "record_declaration"
            | "interface_declaration"
            | "annotation_type_declaration"
            | "enum_declaration"
            | "type_alias_declaration"
            | "internal_module"
            | "module" => self.open_type(node, depth),
            "export_statement" => self.export(node),
            // What these declare is theirs, though they are no functions.
            "delegate_declaration"
            | "indexer_declaration"
            | "accessor_declaration"
            | "function_type"
            | "constructor_type"
            | "call_signature"
            | "construct_signature" => {
                self.open(depth, None);
            }
            kind if names::is_function(kind) => {
                self.function(node);
                self.open(depth, None);
                self.declare(node);
            }
            _ => {
                self.declare(node);
                self.call(source, node);
            }
        }
    }

    /// Namespaces nest; that of a whole file is around everything behind it.
    fn namespace(&mut self, name: Option<Node<'_>>, depth: usize) {
        let Some(name) = name.and_then(|name| dotted(self.syntax, name)) else {
            return;
        };
        let outer = self.namespaces.last().map(|(_, outer)| outer.as_str());
        let name = outer.map_or_else(|| name.clone(), |outer| format!("{outer}.{name}"));
        self.namespaces.push((depth, name.clone()));
        self.unit.namespaces.push(name);
    }

    fn open_type(&mut self, node: Node<'_>, depth: usize) {
        let name = node
            .child_by_field_name("name")
            .or_else(|| match node.parent()? {
                binding if binding.kind() == "variable_declarator" => {
                    binding.child_by_field_name("name")
                }
                export if export.kind() == "export_statement" => child(export, "default"),
                _ => None,
            });
        let name = name.map_or(String::new(), |name| self.text(name));
        let outer = self.unit.types_around(self.scope()).next();
        let around = match outer {
            Some(outer) => self.unit.types[outer].path.clone(),
            None => self
                .namespaces
                .last()
                .map_or(String::new(), |(_, name)| name.clone()),
        };
        let separator = if around.is_empty() { "" } else { "." };
        let number = self.unit.types.len();
        self.unit.types.push(Type {
            path: format!("{around}{separator}{name}"),
            name,
            namespace: self
                .namespaces
                .last()
                .map_or(String::new(), |(_, name)| name.clone()),
            supers: self.supers(node),
            outer,
            inside: self.unit.scopes.len(),
            ..Type::default()
        });
        self.open(depth, Some(number));
    }

    /// What a type extends and implements.
    fn supers(&self, node: Node<'_>) -> Vec<String> {
        let mut found = Vec::new();
        let mut cursor = node.walk();
        for clause in node.named_children(&mut cursor) {
            let is_list = matches!(
                clause.kind(),
                "superclass"
                    | "super_interfaces"
                    | "extends_interfaces"
                    | "base_list"
                    | "class_heritage"
                    | "extends_type_clause"
            );
            // The types lie one or two levels below: in a list of types, in `extends …` and `implements …`.
            let mut lists = if is_list { vec![clause] } else { Vec::new() };
            while let Some(list) = lists.pop() {
                let mut cursor = list.walk();
                for part in list.named_children(&mut cursor) {
                    match part.kind() {
                        "type_list" | "extends_clause" | "implements_clause" => lists.push(part),
                        "type_arguments" | "argument_list" => {}
                        "primary_constructor_base_type" => found.extend(
                            part.child_by_field_name("type")
                                .and_then(|t| dotted(self.syntax, t)),
                        ),
                        _ => found.extend(dotted(self.syntax, part)),
                    }
                }
            }
        }
        found
    }

    /// Enters a function, method or signature under its name.
    fn function(&mut self, node: Node<'_>) {
        let Some(name) = node.child_by_field_name("name").map(|name| self.text(name)) else {
            return;
        };
        let is_constructor = matches!(
            node.kind(),
            "constructor_declaration"
                | "compact_constructor_declaration"
                | "destructor_declaration"
        ) || name == "constructor";
        match self.type_here() {
            Some(_) if is_constructor => {}
            Some(number) => {
                if self.is_extension(node) {
                    self.unit.types[number].extensions.insert(name.clone());
                }
                self.unit.types[number].methods.insert(name);
            }
            // A method of an object literal is no one's.
            None if node.kind() == "method_definition" => {}
            None => {
                self.unit.functions.insert(name);
            }
        }
    }

    /// `static … m(this T x, …)`
    fn is_extension(&self, method: Node<'_>) -> bool {
        let parameters = method.child_by_field_name("parameters");
        let first = parameters.and_then(|parameters| child(parameters, "parameter"));
        let modifier = first.and_then(|parameter| child(parameter, "modifier"));
        self.language == Language::CSharp && modifier.is_some_and(|m| self.syntax.of(m) == "this")
    }

    /// `export default name`, `export default class { … }`, `export { name as other }`.
    fn export(&mut self, node: Node<'_>) {
        if node.child_by_field_name("source").is_some() {
            return;
        }
        if child(node, "default").is_some() {
            let value = node
                .child_by_field_name("value")
                .or_else(|| node.child_by_field_name("declaration"));
            let named = value.and_then(|value| match value.kind() {
                "identifier" => Some(value),
                _ => value.child_by_field_name("name"),
            });
            // What has no name of its own is known as `default`.
            let name = named.map_or_else(|| "default".to_owned(), |name| self.text(name));
            if named.is_none() && value.is_some_and(|value| names::is_function(value.kind())) {
                self.unit.functions.insert(name.clone());
            }
            self.unit.exports.insert("default".to_owned(), name);
        }
        let Some(clause) = child(node, "export_clause") else {
            return;
        };
        let mut cursor = clause.walk();
        for specifier in clause.named_children(&mut cursor) {
            let field = |field| specifier.child_by_field_name(field).map(|n| self.text(n));
            if let (Some(name), Some(alias)) = (field("name"), field("alias")) {
                self.unit.exports.insert(alias, name);
            }
        }
    }

    fn call(&mut self, source: &Source, node: Node<'_>) {
        let Some(callee) = self.callee(node) else {
            return;
        };
        let lines = rows(node);
        let starts_in_code = source.classes[lines.start] == LineClass::Code;
        if !node.has_error() && lines.len() <= LONGEST_CALL && starts_in_code {
            let scope = self.scope();
            self.unit.calls.push(Call {
                lines,
                scope,
                callee,
            });
        }
    }

    fn callee(&self, node: Node<'_>) -> Option<Callee> {
        let field = |field| node.child_by_field_name(field);
        match (self.language, node.kind()) {
            (Language::Java | Language::CSharp, "object_creation_expression") => {
                Some(Callee::New(dotted(self.syntax, field("type")?)?))
            }
            (Language::TypeScript, "new_expression") => {
                Some(Callee::New(dotted(self.syntax, field("constructor")?)?))
            }
            (Language::Java, "method_invocation") => {
                let name = self.text(field("name")?);
                Some(match field("object") {
                    Some(object) => Callee::Member(receiver::of(self.syntax, object), name),
                    None => Callee::Bare(name),
                })
            }
            (Language::CSharp, "invocation_expression")
            | (Language::TypeScript, "call_expression") => {
                receiver::callee(self.syntax, field("function")?)
            }
            _ => None,
        }
    }

    fn bind(&mut self, name: Node<'_>, declared: Declared) {
        let name = self.text(name);
        let scope = self.scope();
        let variables = match self.unit.scopes[scope].of_type {
            Some(number) => &mut self.unit.types[number].fields,
            None => &mut self.unit.scopes[scope].variables,
        };
        variables
            .entry(name)
            .and_modify(|known| {
                if *known != declared {
                    *known = Declared::Unknown;
                }
            })
            .or_insert(declared);
    }

    fn typed(&self, node: Option<Node<'_>>) -> Declared {
        node.map_or(Declared::Unknown, |node| type_path(self.syntax, node))
    }

    fn dotted(&self, node: Node<'_>) -> Option<String> {
        dotted(self.syntax, node)
    }
}
