//! JavaScript, with JSX and without: TypeScript's tables, and modules of CommonJS beside those of ECMAScript.

use tree_sitter::Node;

use super::import::{Binding, ImportReader};
use super::spec::{Export, LanguageSpec, Resolution, TypeRules};
use super::typescript::{self, ECMASCRIPT, RULES};
use super::walk::child;

/// JavaScript, read by TypeScript's grammar with JSX.
pub(crate) static JAVASCRIPT: LanguageSpec = LanguageSpec {
    name: "javascript",
    title: "JavaScript",
    extensions: &[".js", ".jsx", ".mjs", ".cjs"],
    grammars: &[grammar, grammar, grammar, grammar],
    imports: &[
        ("import_statement", typescript::import),
        ("export_statement", typescript::export_from),
        ("variable_declarator", require),
    ],
    resolution: Resolution::Types(&TYPES),
    import_line: |line| {
        (ECMASCRIPT.import_line)(line).or_else(|| {
            let (names, module) = line.split_once("require(")?;
            Some((module.trim_start_matches(['\'', '"', '`']), names))
        })
    },
    ..ECMASCRIPT
};

static TYPES: TypeRules = TypeRules { exports, ..RULES };

/// What `module.exports = …` exports: the module itself.
pub(crate) const WHOLE: &str = "=";

fn grammar() -> tree_sitter::Language {
    tree_sitter_typescript::LANGUAGE_TSX.into()
}

/// `const a = require('m')`, `const { a, b: c } = require('m')`, `const a = require('m').b`.
fn require(reader: &mut ImportReader<'_, '_, '_>) {
    let declarator = reader.statement;
    let value = declarator.child_by_field_name("value");
    let Some((value, name)) = value.zip(declarator.child_by_field_name("name")) else { return };
    let member =
        (value.kind() == "member_expression").then(|| reader.field(value, "property")).flatten();
    let call = match member {
        Some(_) => value.child_by_field_name("object"),
        None => Some(value),
    };
    let Some(from) = call.and_then(|call| required(reader, call)) else { return };
    match (name.kind(), member) {
        ("identifier", Some(member)) => {
            let local = reader.of(name);
            reader.push(from, Binding::Member { member, local });
        }
        ("identifier", None) => {
            let local = reader.of(name);
            reader.push(from, Binding::Whole { local });
        }
        ("object_pattern", None) => {
            let mut cursor = name.walk();
            for part in name.named_children(&mut cursor) {
                let (member, local) = match part.kind() {
                    "shorthand_property_identifier_pattern" => {
                        (Some(reader.of(part)), Some(reader.of(part)))
                    }
                    "pair_pattern" => (reader.field(part, "key"), reader.field(part, "value")),
                    _ => continue,
                };
                if let (Some(member), Some(local)) = (member, local) {
                    reader.push(from, Binding::Member { member, local });
                }
            }
        }
        _ => {}
    }
}

/// The module that `require('m')` names.
fn required<'a>(reader: &ImportReader<'_, 'a, '_>, call: Node<'_>) -> Option<&'a str> {
    let is_require = call.kind() == "call_expression"
        && reader.field(call, "function").is_some_and(|function| function == "require");
    let arguments = call.child_by_field_name("arguments").filter(|_| is_require)?;
    let quoted = child(arguments, "string").map(|string| reader.of(string))?;
    Some(quoted.trim_matches(['"', '\'']))
}

/// TypeScript's, and `module.exports = …`, `exports.name = …`, and the properties of `module.exports = { … }`.
fn exports(node: Node<'_>, text: &str) -> Vec<Export> {
    let of = |node: Node<'_>| &text[node.byte_range()];
    match node.kind() {
        "assignment_expression" => {
            let fields = ["left", "right"].map(|field| node.child_by_field_name(field));
            let [Some(left), Some(right)] = fields else { return Vec::new() };
            let name = match of(left) {
                "module.exports" if right.kind() == "object" => return Vec::new(),
                "module.exports" => WHOLE,
                left => match left.strip_prefix("module.").unwrap_or(left).strip_prefix("exports.")
                {
                    Some(name) if !name.contains('.') => name,
                    _ => return Vec::new(),
                },
            };
            exported(name, right, text).into_iter().collect()
        }
        "pair" | "method_definition" if is_exported(node, text) => {
            let is_method = node.kind() == "method_definition";
            let name = node.child_by_field_name(if is_method { "name" } else { "key" });
            let value = if is_method { Some(node) } else { node.child_by_field_name("value") };
            let export = name.zip(value).and_then(|(name, value)| exported(of(name), value, text));
            export.into_iter().collect()
        }
        _ => typescript::exports(node, text),
    }
}

/// Whether a property is one of `module.exports = { … }`.
fn is_exported(property: Node<'_>, text: &str) -> bool {
    let assignment = property.parent().and_then(|object| object.parent());
    assignment.is_some_and(|assignment| {
        let left = assignment.child_by_field_name("left");
        assignment.kind() == "assignment_expression"
            && left.is_some_and(|left| &text[left.byte_range()] == "module.exports")
    })
}

/// An export of a value under a name; `None` where it is neither a function, a class nor a name.
fn exported(name: &str, value: Node<'_>, text: &str) -> Option<Export> {
    let own = value.child_by_field_name("name").map(|name| &text[name.byte_range()]);
    let (local, is_function) = match value.kind() {
        "identifier" => (&text[value.byte_range()], false),
        "class" => (own?, false),
        "method_definition" => (name, true),
        kind if RULES.function_values.contains(&kind) => (name, true),
        _ => return None,
    };
    Some(Export { name: name.to_owned(), local: local.to_owned(), is_function })
}
