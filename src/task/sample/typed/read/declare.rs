//! Variables, parameters and fields, with the types that they are declared with.

use tree_sitter::Node;

use super::Reader;
use crate::task::sample::typed::unit::Declared;
use crate::text::language::Language;
use crate::text::language::syntax::child;

impl Reader<'_, '_> {
    /// Enters what this node declares into the scope that the walk is in.
    pub(super) fn declare(&mut self, node: Node<'_>) {
        match self.language {
            Language::Java => self.declare_java(node),
            Language::CSharp => self.declare_csharp(node),
            Language::TypeScript => self.declare_typescript(node),
            Language::Python => {}
        }
    }

    fn declare_java(&mut self, node: Node<'_>) {
        let (kind, name) = (
            self.typed(node.child_by_field_name("type")),
            node.child_by_field_name("name"),
        );
        match node.kind() {
            "local_variable_declaration" | "field_declaration" | "constant_declaration" => {
                let mut cursor = node.walk();
                for declarator in node.children_by_field_name("declarator", &mut cursor) {
                    self.declarator(declarator, &kind);
                }
            }
            "formal_parameter" => {
                let Some(name) = name else { return };
                // A component of a record is a field that can be called.
                if let Some(number) = self.type_here() {
                    let accessor = self.text(name);
                    self.unit.types[number].methods.insert(accessor);
                }
                self.bind(name, kind);
            }
            "spread_parameter" => {
                if let Some(declarator) = child(node, "variable_declarator") {
                    self.declarator(declarator, &Declared::Type("[]".into()));
                }
            }
            "enhanced_for_statement" | "resource" | "record_pattern_component" => {
                if let Some(name) = name {
                    self.bind(name, kind);
                }
            }
            "catch_formal_parameter" => {
                let caught = self.typed(child(node, "catch_type"));
                if let Some(name) = name {
                    self.bind(name, caught);
                }
            }
            "instanceof_expression" => {
                let kind = self.typed(node.child_by_field_name("right"));
                if let Some(name) = name {
                    self.bind(name, kind);
                }
            }
            "type_pattern" => {
                let kind = self.typed(node.named_child(0));
                if let Some(name) = child(node, "identifier") {
                    self.bind(name, kind);
                }
            }
            "enum_constant" => {
                let number = self.type_here();
                let of_enum = number.map(|number| self.unit.types[number].name.clone());
                if let (Some(of_enum), Some(name)) = (of_enum, name) {
                    self.bind(name, Declared::Type(of_enum));
                }
            }
            "lambda_expression" => self.untyped_parameters(node),
            _ => {}
        }
    }

    /// `name = value`; the type is that of a `new` where none is declared.
    fn declarator(&mut self, declarator: Node<'_>, declared: &Declared) {
        let Some(name) = declarator.child_by_field_name("name") else {
            return;
        };
        let declared = match declared {
            Declared::Unknown => self.made(declarator),
            known => known.clone(),
        };
        if name.kind() == "identifier" {
            self.bind(name, declared);
        }
    }

    /// The type of the `new` expression that a declaration begins with.
    fn made(&self, declaration: Node<'_>) -> Declared {
        let mut cursor = declaration.walk();
        let made = declaration.named_children(&mut cursor).find_map(|value| {
            let class = match value.kind() {
                "object_creation_expression" => value.child_by_field_name("type"),
                "new_expression" => value.child_by_field_name("constructor"),
                _ => None,
            };
            class.and_then(|class| self.dotted(class))
        });
        made.map_or(Declared::Unknown, Declared::Type)
    }

    /// `(a, b) -> …`, `a => …`
    fn untyped_parameters(&mut self, lambda: Node<'_>) {
        let Some(parameters) = lambda.child_by_field_name("parameters") else {
            return;
        };
        match parameters.kind() {
            "identifier" | "implicit_parameter" => self.bind(parameters, Declared::Unknown),
            "inferred_parameters" => {
                let mut cursor = parameters.walk();
                for name in parameters.named_children(&mut cursor) {
                    self.bind(name, Declared::Unknown);
                }
            }
            _ => {}
        }
    }

    fn declare_csharp(&mut self, node: Node<'_>) {
        let (kind, name) = (
            node.child_by_field_name("type"),
            node.child_by_field_name("name"),
        );
        match node.kind() {
            "variable_declaration" => {
                let declared = self.typed(kind);
                let mut cursor = node.walk();
                for declarator in node.named_children(&mut cursor) {
                    if declarator.kind() == "variable_declarator" {
                        self.declarator(declarator, &declared);
                    }
                }
            }
            "parameter"
            | "catch_declaration"
            | "declaration_expression"
            | "declaration_pattern"
            | "recursive_pattern"
            | "property_declaration"
            | "event_declaration" => {
                let declared = self.typed(kind);
                if let Some(name) = name {
                    self.bind(name, declared);
                }
            }
            "foreach_statement" => {
                let declared = self.typed(kind);
                let left = node.child_by_field_name("left");
                if let Some(name) = left.filter(|left| left.kind() == "identifier") {
                    self.bind(name, declared);
                }
            }
            "enum_member_declaration" => {
                let number = self.type_here();
                let of_enum = number.map(|number| self.unit.types[number].name.clone());
                if let (Some(of_enum), Some(name)) = (of_enum, name) {
                    self.bind(name, Declared::Type(of_enum));
                }
            }
            "var_pattern" => {
                if let Some(name) = name {
                    self.bind(name, Declared::Unknown);
                }
            }
            "lambda_expression" => self.untyped_parameters(node),
            _ => {}
        }
    }

    fn declare_typescript(&mut self, node: Node<'_>) {
        let (kind, name) = (
            node.child_by_field_name("type"),
            node.child_by_field_name("name"),
        );
        match node.kind() {
            "variable_declarator" => {
                let declared = self.typed(kind);
                self.declarator(node, &declared);
                self.bound_function(node, name);
            }
            "required_parameter" | "optional_parameter" => self.parameter(node, kind),
            "public_field_definition" | "property_signature" => {
                let declared = match self.typed(kind) {
                    Declared::Unknown => self.made(node),
                    known => known,
                };
                if let Some(name) = name {
                    self.bind(name, declared);
                }
                self.bound_function(node, name);
            }
            "arrow_function" => {
                if let Some(name) = node.child_by_field_name("parameter") {
                    self.bind(name, Declared::Unknown);
                }
            }
            "catch_clause" => {
                let parameter = node.child_by_field_name("parameter");
                if let Some(name) = parameter.filter(|name| name.kind() == "identifier") {
                    self.bind(name, Declared::Unknown);
                }
            }
            "for_in_statement" => {
                let left = node.child_by_field_name("left");
                if let Some(name) = left.filter(|left| left.kind() == "identifier") {
                    self.bind(name, Declared::Unknown);
                }
            }
            "shorthand_property_identifier_pattern" => self.bind(node, Declared::Unknown),
            "array_pattern" | "rest_pattern" => {
                let mut cursor = node.walk();
                let names = node.named_children(&mut cursor);
                for name in names.filter(|name| name.kind() == "identifier") {
                    self.bind(name, Declared::Unknown);
                }
            }
            "pair_pattern" => {
                let value = node.child_by_field_name("value");
                if let Some(name) = value.filter(|value| value.kind() == "identifier") {
                    self.bind(name, Declared::Unknown);
                }
            }
            _ => {}
        }
    }

    /// A parameter; with `private`, `readonly` and the like a field of its class too.
    fn parameter(&mut self, node: Node<'_>, kind: Option<Node<'_>>) {
        let name = node.child_by_field_name("pattern");
        let Some(name) = name.filter(|name| name.kind() == "identifier") else {
            return;
        };
        let declared = self.typed(kind);
        if child(node, "accessibility_modifier").is_some() || child(node, "readonly").is_some() {
            let class = self.unit.types_around(self.scope()).next();
            if let Some(class) = class {
                let name = self.text(name);
                self.unit.types[class].fields.insert(name, declared.clone());
            }
        }
        self.bind(name, declared);
    }

    /// A field, or a constant outside functions, that a function is given to, is called as one.
    fn bound_function(&mut self, node: Node<'_>, name: Option<Node<'_>>) {
        let value = node.child_by_field_name("value");
        let annotation = node
            .child_by_field_name("type")
            .and_then(|kind| kind.named_child(0));
        let is_function = value.is_some_and(|value| {
            matches!(
                value.kind(),
                "arrow_function" | "function_expression" | "generator_function"
            )
        }) || annotation.is_some_and(|kind| kind.kind() == "function_type");
        let Some(name) = name.filter(|_| is_function).map(|name| self.text(name)) else {
            return;
        };
        match self.type_here() {
            Some(number) => {
                self.unit.types[number].methods.insert(name);
            }
            None if self.scope() == 0 => {
                self.unit.functions.insert(name);
            }
            None => {}
        }
    }
}
