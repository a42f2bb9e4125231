//! Reader of a file's declarations and calls from its tree, by the tables of its language.

use foldhash::HashMap;
use repoformer_text::language::syntax::{self, Binding, Syntax, child, preorder};
use repoformer_text::language::{
    NameVisibility, NodeStep, Steps, TypeRules, Variable, VariableType,
};
use tree_sitter::Node;

use super::full_name::{DottedName, FullName};
use super::unit::{Call, DeclaredType, Import, Namespace, Scope, Type, Unit};
use crate::definitions::rows::{Rows, folder};
use crate::definitions::{LONGEST_NAME, is_short};

impl Unit {
    /// Reads a file's names from its tree, and only the imports before a row.
    pub(crate) fn read(rules: &TypeRules, path: &str, syntax: &Syntax<'_>, before: usize) -> Self {
        let imports = syntax.imports().into_iter();
        let imports = imports.filter(|import| import.span.lines.start < before && is_short(import));
        let mut reader = Reader {
            rules,
            syntax,
            open: vec![(0, 0)],
            namespaces: Vec::new(),
            unit: Unit {
                imports: imports.map(import).collect(),
                scopes: vec![Scope {
                    rows: Rows::from_node(syntax.tree().root_node()),
                    ..Scope::default()
                }],
                ..Unit::default()
            },
        };
        if let NameVisibility::Folders = rules.visibility {
            reader.unit.folder = folder(path);
            reader.open_namespace(&folder(path), 0);
            let clause = child(syntax.tree().root_node(), "package_clause");
            let name = clause.and_then(|clause| clause.named_child(0));
            reader.unit.package = name.map_or(String::new(), |name| reader.text(name));
        }
        preorder(syntax.tree(), |node, depth| {
            // If a file cannot be parsed as a whole, read its parsable parts.
            if node.is_error() && depth > 0 {
                return false;
            }
            // Imported names are not declared here.
            if !syntax.imports_of(node).is_empty() {
                return false;
            }
            reader.close(depth);
            if node.is_named() {
                reader.visit(node, depth);
            }
            true
        });
        let types = reader.unit.types.iter();
        reader.unit.methods = types.flat_map(|t| t.methods.keys().cloned()).collect();
        for (number, outer) in reader.unit.types.iter().enumerate() {
            if outer.outer.is_none() && !reader.unit.outer_types.contains_key(&*outer.name) {
                reader.unit.outer_types.insert(outer.name.to_string(), number);
            }
        }
        reader.unit
    }
}

/// Converts an import. C#'s generic types are identified by name only, whatever their arguments.
fn import(import: syntax::Import<'_>) -> Import {
    let (member, local) = match import.binding {
        Binding::Member { member, local } => (Some(member.to_owned()), local),
        Binding::Whole { local } => (None, local),
        Binding::All => (Some("*".to_owned()), ""),
        Binding::Nothing => (Some(String::new()), ""),
    };
    let from = import.from.split('<').next().unwrap_or_default();
    // `a . b` becomes `a.b`, and `global::a` becomes `a`; a path is kept.
    let from = if from.contains('/') {
        from.to_owned()
    } else {
        from.chars().filter(|c| !c.is_whitespace()).collect()
    };
    let from = from.rsplit_once("::").map_or(from.as_str(), |(_, name)| name);
    Import {
        from: from.to_owned(),
        path: FullName::new(from),
        member,
        local: local.to_owned(),
        is_static: import.is_static,
        is_passed_on: import.is_passed_on,
    }
}

/// Position of the walk.
struct Reader<'r, 'a> {
    rules: &'r TypeRules,
    syntax: &'r Syntax<'a>,
    /// Depth of a node, and the scope that it opened; innermost last.
    open: Vec<(usize, usize)>,
    /// Depth and number of the enclosing namespaces, innermost last.
    namespaces: Vec<(usize, usize)>,
    unit: Unit,
}

impl Reader<'_, '_> {
    fn text(&self, node: Node<'_>) -> String {
        self.syntax.of(node).to_owned()
    }

    fn scope(&self) -> usize {
        self.open.last().map_or(0, |(_, scope)| *scope)
    }

    /// Returns the type that directly contains the current position, outside its functions.
    fn type_here(&self) -> Option<usize> {
        self.unit.scopes[self.scope()].of_type
    }

    /// Returns the innermost type that contains the current position.
    fn type_around(&self) -> Option<usize> {
        self.unit.scopes[self.scope()].in_type
    }

    /// Leaves the scopes and namespaces that cannot contain a node at this depth.
    fn close(&mut self, depth: usize) {
        // Scopes of the whole file were opened at depth 0.
        let is_left = |outer: usize| outer >= depth.max(1);
        while self.open.last().is_some_and(|open| is_left(open.0)) {
            self.open.pop();
        }
        while self.namespaces.last().is_some_and(|open| is_left(open.0)) {
            self.namespaces.pop();
        }
    }

    fn open(&mut self, node: Node<'_>, depth: usize, of_type: Option<usize>) {
        let in_type = of_type.or_else(|| self.type_around());
        let (parent, rows) = (Some(self.scope()), Rows::from_node(node));
        let scope = Scope { parent, of_type, in_type, rows, variables: HashMap::default() };
        self.unit.scopes.push(scope);
        self.open.push((depth, self.unit.scopes.len() - 1));
    }

    fn visit(&mut self, node: Node<'_>, depth: usize) {
        let (rules, kind) = (self.rules, node.kind());
        if let Some(namespace) = rules.namespaces.iter().find(|n| n.kind == kind) {
            let name = namespace.name.from(node);
            if let Some(name) = name.and_then(|name| self.syntax.dotted_name(name)) {
                let depth = if namespace.is_whole_file { 0 } else { depth };
                self.open_namespace(&name, depth);
            }
            return;
        }
        for export in (rules.exports)(node, self.syntax.text()) {
            if export.is_function {
                self.add_outer(export.local.clone(), Rows::from_node(node));
            }
            if export.name.len().max(export.local.len()) <= LONGEST_NAME {
                self.unit.exports.insert(export.name, export.local);
            }
        }
        if self.syntax.spec().is_named_type(kind) || rules.types.contains(&kind) {
            self.open_type(node, depth);
        } else if self.syntax.spec().is_function(kind) || rules.scopes.contains(&kind) {
            // The name of a function value is visible only inside it.
            if !rules.scopes.contains(&kind) && !rules.function_values.contains(&kind) {
                self.function(node);
            }
            self.open(node, depth, None);
            let own = node.child_by_field_name("name");
            if let Some(name) = own.filter(|_| rules.function_values.contains(&kind)) {
                self.bind(self.text(name), DeclaredType::Unknown);
            }
            self.declare(node);
        } else {
            self.declare(node);
            self.call(node);
        }
    }

    /// Opens a namespace. Namespaces nest; a file-scoped namespace contains everything after it.
    fn open_namespace(&mut self, name: &str, depth: usize) {
        let outer = self.namespace();
        let parts = self.path_of(outer).parts(name);
        self.namespaces.push((depth, self.unit.namespaces.len()));
        self.unit.namespaces.push(Namespace { outer, parts });
    }

    /// Returns the number of the namespace that contains the current position.
    fn namespace(&self) -> Option<usize> {
        self.namespaces.last().map(|(_, number)| *number)
    }

    /// Returns the full name of a namespace.
    fn path_of(&self, namespace: Option<usize>) -> FullName {
        namespace.map_or(FullName::EMPTY, |number| self.unit.namespaces[number].path())
    }

    fn open_type(&mut self, node: Node<'_>, depth: usize) {
        let bound = || (self.syntax.spec().bound_name)(node.parent()?, node);
        let name = node.child_by_field_name("name").or_else(bound);
        let rows = Rows::from_name(node, name);
        let name = name.map_or(String::new(), |name| self.text(name));
        // A class inside a function hides imports of its name.
        let is_module = matches!(self.rules.visibility, NameVisibility::Exports);
        if is_module && self.scope() != 0 && self.type_here().is_none() {
            self.bind(name.clone(), DeclaredType::Unknown);
        }
        let supers = self.supers(node);
        let inside = self.unit.scopes.len();
        let number = self.add_type(name, inside, rows);
        self.unit.types[number].supers = supers;
        self.open(node, depth, Some(number));
    }

    /// Adds a type that is declared here.
    fn add_type(&mut self, name: String, inside: usize, rows: Rows) -> usize {
        let (outer, namespace) = (self.type_around(), self.namespace());
        let around = match outer {
            Some(outer) => self.unit.types[outer].path,
            None => self.path_of(namespace),
        };
        self.unit.types.push(Type {
            path: around.join(DottedName::new(&name)),
            name: name.into(),
            namespace,
            outer,
            inside,
            rows,
            ..Type::default()
        });
        self.unit.types.len() - 1
    }

    /// Returns the supertypes of a type.
    fn supers(&self, node: Node<'_>) -> Vec<String> {
        let mut found = Vec::new();
        let mut lists = vec![node];
        while let Some(list) = lists.pop() {
            let mut cursor = list.walk();
            for part in list.named_children(&mut cursor) {
                if self.rules.supers.contains(&part.kind()) {
                    lists.push(part);
                } else if list != node {
                    found.extend(self.syntax.dotted_name(part));
                }
            }
        }
        found
    }

    /// Adds a function, method or signature under its name.
    fn function(&mut self, node: Node<'_>) {
        let (rules, kind) = (self.rules, node.kind());
        let Some(name) = node.child_by_field_name("name").map(|name| self.text(name)) else {
            return;
        };
        let rows = Rows::from_name(node, node.child_by_field_name("name"));
        let is_constructor = rules.constructors.contains(&kind) || name == "constructor";
        let owner = self.type_here().or_else(|| {
            let receiver = self.syntax.dotted_name(follow(node, rules.receiver)?)?;
            Some(self.add_type(receiver, 0, rows))
        });
        match owner {
            Some(_) if is_constructor => {}
            Some(number) => {
                let modifier = follow(node, rules.extension);
                if modifier.is_some_and(|modifier| self.syntax.of(modifier) == "this") {
                    self.unit.types[number].extensions.insert(name.clone());
                }
                self.add_method(number, name, rows);
            }
            None if rules.members.contains(&kind) => {}
            // Names inside a function are visible only there.
            None if matches!(rules.visibility, NameVisibility::Exports) && self.scope() != 0 => {
                self.bind(name, DeclaredType::Unknown);
            }
            None => self.add_outer(name, rows),
        }
    }

    /// Adds a type's method; only the first overload is kept.
    fn add_method(&mut self, number: usize, name: String, rows: Rows) {
        self.unit.types[number].methods.entry(name).or_insert(rows);
    }

    /// Adds a function outside types.
    fn add_outer(&mut self, name: String, rows: Rows) {
        self.unit.functions.entry(name).or_insert(rows);
    }

    fn call(&mut self, node: Node<'_>) {
        if let Some(callee) = self.syntax.callee(node).filter(|_| !node.has_error()) {
            let (rows, scope) = (Rows::from_node(node), self.scope());
            self.unit.calls.push(Call { rows, scope, callee });
        }
    }

    /// Adds the variables, parameters and fields that a node declares to the current scope.
    fn declare(&mut self, node: Node<'_>) {
        let variables = self.rules.variables.iter();
        for variable in variables.filter(|variable| variable.kind == node.kind()) {
            let declared = match variable.declared {
                VariableType::Nothing => DeclaredType::Unknown,
                VariableType::Type(steps) => {
                    let found = follow(node, steps);
                    found.map_or(DeclaredType::Unknown, |found| {
                        self.syntax.declared_type(found).into()
                    })
                }
                VariableType::Array => DeclaredType::Type("[]".into()),
                VariableType::Around => {
                    let Some(number) = self.type_here() else {
                        continue;
                    };
                    DeclaredType::Type(self.unit.types[number].name.clone())
                }
            };
            for declaration in all(node, variable.each) {
                self.declare_names(variable, declaration, &declared);
            }
        }
    }

    fn declare_names(
        &mut self,
        variable: &Variable,
        declaration: Node<'_>,
        declared: &DeclaredType,
    ) {
        let has_values = !variable.values.is_empty();
        let values = if has_values { all(declaration, variable.values) } else { Vec::new() };
        let annotation = declaration.child_by_field_name("type");
        let annotation = annotation.and_then(|annotation| annotation.named_child(0));
        for (number, name) in all(declaration, variable.names).into_iter().enumerate() {
            let (value, rows) = (values.get(number), Rows::from_name(declaration, Some(name)));
            let is_function = |node: &Node<'_>| self.rules.function_values.contains(&node.kind());
            let is_called = value.is_some_and(is_function)
                || (has_values && annotation.as_ref().is_some_and(is_function));
            if is_called {
                self.add_function(self.text(name), rows);
            }
            // Patterns and similar nodes declare their names themselves.
            if name.child_count() > 0 {
                continue;
            }
            let declared = match (declared, value) {
                (DeclaredType::Unknown, Some(value)) => self.syntax.constructed_type(*value).into(),
                _ => declared.clone(),
            };
            let text = self.text(name);
            if let Some(number) = self.type_here().filter(|_| variable.is_method) {
                self.add_method(number, text.clone(), rows);
            }
            let is_field = |kind: &&str| child(declaration, kind).is_some();
            let class = self.type_around();
            if let Some(class) = class.filter(|_| variable.field_if.iter().any(is_field)) {
                let fields = &mut self.unit.types[class].fields;
                fields.insert(text.clone(), declared.clone());
            }
            if self.scope() == 0 {
                self.unit.values.entry(text.clone()).or_insert(rows);
            }
            self.bind(text, declared);
        }
    }

    /// Adds a field, or a variable outside functions, that is called like a function.
    fn add_function(&mut self, name: String, rows: Rows) {
        match self.type_here() {
            Some(number) => self.add_method(number, name, rows),
            None if self.scope() == 0 => self.add_outer(name, rows),
            None => {}
        }
    }

    fn bind(&mut self, name: String, declared: DeclaredType) {
        let scope = self.scope();
        let variables = match self.unit.scopes[scope].of_type {
            Some(number) => &mut self.unit.types[number].fields,
            None => &mut self.unit.scopes[scope].variables,
        };
        variables
            .entry(name)
            .and_modify(|known| {
                if *known != declared {
                    *known = DeclaredType::Unknown;
                }
            })
            .or_insert(declared);
    }
}

/// Returns the node at the end of some steps; `None` without steps.
fn follow<'tree>(node: Node<'tree>, steps: &[NodeStep]) -> Option<Node<'tree>> {
    let first = steps.first()?.from(node);
    steps[1..].iter().fold(first, |node, step| step.from(node?))
}

/// Returns the nodes at the end of some steps; the node itself without steps.
fn all<'tree>(node: Node<'tree>, steps: &[Steps]) -> Vec<Node<'tree>> {
    steps.iter().fold(vec![node], |nodes, steps| {
        let mut found = Vec::new();
        for node in nodes {
            let mut cursor = node.walk();
            match steps {
                Steps::One(step) => found.extend(step.from(node)),
                Steps::Field(field) => {
                    found.extend(node.children_by_field_name(field, &mut cursor))
                }
                Steps::Named => found.extend(node.named_children(&mut cursor)),
                Steps::Children(kind) => {
                    let children = node.children(&mut cursor);
                    found.extend(children.filter(|child| child.kind() == *kind));
                }
            }
        }
        found
    })
}
