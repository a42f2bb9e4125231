//! JavaScript, with and without JSX: TypeScript's tables, plus CommonJS modules.

use tree_sitter::Node;

use super::import::{Binding, ImportReader};
use super::spec::{Export, LanguageSpec, Resolution, TypeRules};
use super::typescript::{self, ECMASCRIPT, RULES};
use super::walk::child;

/// JavaScript, parsed with TypeScript's JSX grammar.
pub(crate) static JAVASCRIPT: LanguageSpec = LanguageSpec {
    name: "javascript",
    title: "JavaScript",
    extensions: &[".js", ".jsx", ".mjs", ".cjs"],
    grammars: &[grammar, grammar, grammar, grammar],
    imports: &[
        ("import_statement", typescript::import),
        ("export_statement", typescript::export_from),
        ("variable_declarator", require),
        ("assignment_expression", pass_on),
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

// An import that does not begin with a dot refers to a package or to Node.
static TYPES: TypeRules = TypeRules { exports, imports_from_root: false, ..RULES };

/// Name of the export of `module.exports = …`: the module itself.
pub const WHOLE: &str = "=";

fn grammar() -> tree_sitter::Language {
    tree_sitter_typescript::LANGUAGE_TSX.into()
}

/// Reads `const a = require('m')`, `const { a, b: c } = require('m')` and `const a = require('m').b`.
fn require(reader: &mut ImportReader<'_, '_, '_>) {
    let declarator = reader.statement;
    let value = declarator.child_by_field_name("value");
    let Some((value, name)) = value.zip(declarator.child_by_field_name("name")) else { return };
    let Some((from, member)) = required_module(reader, value) else { return };
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

/// Reads `exports.a = require('m')`, `exports.a = require('m').b` and `module.exports = require('m')`.
fn pass_on(reader: &mut ImportReader<'_, '_, '_>) {
    let assignment = reader.statement;
    let fields = ["left", "right"].map(|field| assignment.child_by_field_name(field));
    let [Some(left), Some(right)] = fields else { return };
    let Some(local) = exported_name(reader.of(left)) else { return };
    let Some((from, member)) = required_module(reader, right) else { return };
    let binding = match member {
        Some(member) => Binding::Member { member, local },
        None => Binding::Whole { local },
    };
    reader.push_as(from, binding, false, true);
}

/// Returns the name under which an assignment exports: `a` for `exports.a` and `module.exports.a`, [`WHOLE`] for
/// `module.exports`.
fn exported_name(left: &str) -> Option<&str> {
    if left == "module.exports" {
        return Some(WHOLE);
    }
    let name = left.strip_prefix("module.").unwrap_or(left).strip_prefix("exports.")?;
    (!name.contains('.')).then_some(name)
}

/// Returns the module that `require('m')` names, and `b` if the expression is `require('m').b`.
fn required_module<'a>(
    reader: &ImportReader<'_, 'a, '_>,
    value: Node<'_>,
) -> Option<(&'a str, Option<&'a str>)> {
    if value.kind() == "member_expression" {
        let (module, _) = required_module(reader, value.child_by_field_name("object")?)?;
        return Some((module, reader.field(value, "property")));
    }
    let is_require = value.kind() == "call_expression"
        && reader.field(value, "function").is_some_and(|function| function == "require");
    let arguments = value.child_by_field_name("arguments").filter(|_| is_require)?;
    let quoted = child(arguments, "string").map(|string| reader.of(string))?;
    Some((quoted.trim_matches(['"', '\'']), None))
}

/// Returns TypeScript's exports, and those from `module.exports = …`, `exports.name = …` and the properties of `module.exports
/// = { … }`.
fn exports(node: Node<'_>, text: &str) -> Vec<Export> {
    let of = |node: Node<'_>| &text[node.byte_range()];
    match node.kind() {
        "assignment_expression" => {
            let fields = ["left", "right"].map(|field| node.child_by_field_name(field));
            let [Some(left), Some(right)] = fields else { return Vec::new() };
            match exported_name(of(left)) {
                Some(WHOLE) if right.kind() == "object" => Vec::new(),
                Some(name) => read_export(name, right, text).into_iter().collect(),
                None => Vec::new(),
            }
        }
        "pair" | "method_definition" if is_exported(node, text) => {
            let is_method = node.kind() == "method_definition";
            let name = node.child_by_field_name(if is_method { "name" } else { "key" });
            let value = if is_method { Some(node) } else { node.child_by_field_name("value") };
            let export = name.zip(value).and_then(|(name, value)| {
                read_export(of(name).trim_matches(['"', '\'']), value, text)
            });
            export.into_iter().collect()
        }
        _ => typescript::exports(node, text),
    }
}

/// Returns true if a property belongs to `module.exports = { … }`.
fn is_exported(property: Node<'_>, text: &str) -> bool {
    let assignment = property.parent().and_then(|object| object.parent());
    assignment.is_some_and(|assignment| {
        let left = assignment.child_by_field_name("left");
        assignment.kind() == "assignment_expression"
            && left.is_some_and(|left| &text[left.byte_range()] == "module.exports")
    })
}

/// Returns the export of a value under a name; `None` if the value is not a function, a class or a name.
fn read_export(name: &str, value: Node<'_>, text: &str) -> Option<Export> {
    let own = value.child_by_field_name("name").map(|name| &text[name.byte_range()]);
    // The file itself does not call a function by a name that only other files see.
    let of_exports = || format!("exports.{name}");
    let (local, is_function) = match value.kind() {
        "identifier" => (text[value.byte_range()].to_owned(), false),
        "class" => (own?.to_owned(), false),
        "method_definition" => (of_exports(), true),
        kind if RULES.function_values.contains(&kind) => (of_exports(), true),
        _ => return None,
    };
    Some(Export { name: name.to_owned(), local, is_function })
}
