//! Go.

use tree_sitter::Node;

use super::import::{Binding, ImportReader};
use super::spec::{
    BlockMarks, Call, Definition, DefinitionName, Keywords, LanguageSpec, NameVisibility, NodeRole,
    NodeStep, Prose, Resolution, ScopeKind, Steps, TypeRules, Variable, VariableType,
};

/// Go.
pub(crate) static GO: LanguageSpec = LanguageSpec {
    name: "go",
    title: "Go",
    extensions: &[".go"],
    grammars: &[|| tree_sitter_go::LANGUAGE.into()],
    comment: "//",
    comment_begins: &["/*"],
    comment_ends: &["*/"],
    has_hash_lines: false,
    needs_last_newline: false,
    keywords: Keywords::from_sorted(KEYWORDS),
    codebleu_keywords: "break case chan const continue default defer else fallthrough false for func go goto if \
        import interface map package range return select struct switch true type var",
    layout: BlockMarks::Braces,
    statement_list: Some("statement_list"),
    prose: &[Prose::Long("raw_string_literal")],
    collections: &["literal_value"],
    literals: &[
        "int_literal",
        "float_literal",
        "imaginary_literal",
        "rune_literal",
        "interpreted_string_literal",
        "raw_string_literal",
        "true",
        "false",
        "nil",
    ],
    is_placeholder: |kind, text| {
        let message = text.strip_prefix("panic(").unwrap_or("").to_ascii_lowercase();
        let words = ["not implemented", "unimplemented", "todo"];
        kind == "expression_statement" && words.iter().any(|word| message.contains(word))
    },
    definitions: &[
        Definition::with_scope(ScopeKind::Class, "struct_type").with_name(DefinitionName::Bound),
        Definition::with_scope(ScopeKind::Interface, "interface_type")
            .with_name(DefinitionName::Bound),
        Definition::with_scope(ScopeKind::Function, "function_declaration"),
        Definition::with_scope(ScopeKind::Function, "method_declaration"),
        Definition::with_scope(ScopeKind::Function, "method_elem"),
        Definition::with_scope(ScopeKind::Function, "func_literal")
            .with_name(DefinitionName::Bound),
    ],
    bound_name,
    is_part,
    decorators_in: None,
    calls: &[("call_expression", Call::Function("function"))],
    expressions: &[
        ("identifier", NodeRole::Name),
        ("field_identifier", NodeRole::Name),
        (
            "selector_expression",
            NodeRole::Member(NodeStep::Field("operand"), NodeStep::Field("field")),
        ),
        ("parenthesized_expression", NodeRole::Group(NodeStep::Nth(0))),
        ("unary_expression", NodeRole::Inside(NodeStep::Field("operand"))),
        ("type_assertion_expression", NodeRole::Typed(NodeStep::Field("type"))),
        ("type_conversion_expression", NodeRole::Typed(NodeStep::Field("type"))),
        ("composite_literal", NodeRole::New(NodeStep::Field("type"))),
        ("interpreted_string_literal", NodeRole::Literal),
        ("raw_string_literal", NodeRole::Literal),
    ],
    types: &[
        ("type_identifier", NodeRole::Name),
        ("package_identifier", NodeRole::Name),
        ("pointer_type", NodeRole::Inside(NodeStep::Nth(0))),
        ("parenthesized_type", NodeRole::Inside(NodeStep::Nth(0))),
        ("generic_type", NodeRole::Inside(NodeStep::Field("type"))),
        ("qualified_type", NodeRole::Member(NodeStep::Field("package"), NodeStep::Field("name"))),
        // An embedded type; the first child of a field is its name.
        ("field_declaration", NodeRole::Inside(NodeStep::Nth(0))),
    ],
    untyped: &[],
    imports: &[("import_spec", import)],
    resolution: Resolution::Types(&TYPES),
    common_methods: COMMON_METHODS,
    builtins: BUILTINS,
    import_line,
    is_local_import,
    blocks: &["block", "statement_list"],
    bodies: &["function_declaration", "method_declaration", "func_literal"],
    failure: "panic(\"planted failure\");",
    is_constructor_call: |_, _| false,
    has_pytest: false,
};

const NAMES: &[Steps] = &[Steps::Field("name")];
const LEFT: &[Steps] = &[Steps::One(NodeStep::Field("left")), Steps::Named];
const VALUES: &[Steps] = &[Steps::One(NodeStep::Field("value")), Steps::Named];

static TYPES: TypeRules = TypeRules {
    namespaces: &[],
    types: &["type_spec", "type_alias"],
    supers: &["struct_type", "field_declaration_list", "interface_type", "type_elem"],
    constructors: &[],
    members: &[],
    scopes: &["function_type"],
    receiver: &[
        NodeStep::Field("receiver"),
        NodeStep::Child("parameter_declaration"),
        NodeStep::Field("type"),
    ],
    extension: &[],
    variables: &[
        Variable { values: VALUES, ..Variable::with_type("var_spec", NAMES) },
        Variable { values: VALUES, ..Variable::with_type("const_spec", NAMES) },
        Variable {
            values: &[Steps::One(NodeStep::Field("right")), Steps::Named],
            ..Variable::new("short_var_declaration", LEFT)
        },
        Variable::new("range_clause", LEFT),
        Variable::new("receive_statement", LEFT),
        Variable::new(
            "type_switch_statement",
            &[Steps::One(NodeStep::Field("alias")), Steps::Named],
        ),
        Variable::with_type("parameter_declaration", NAMES),
        Variable {
            declared: VariableType::Array,
            ..Variable::new("variadic_parameter_declaration", NAMES)
        },
        Variable {
            values: &[Steps::One(NodeStep::Field("type"))],
            ..Variable::with_type("field_declaration", NAMES)
        },
    ],
    function_values: &["func_literal", "function_type"],
    exports: |_, _| Vec::new(),
    visibility: NameVisibility::Folders,
    has_parts: true,
    fields_need_this: false,
    imports_from_root: false,
};

/// Handles `type T struct { … }`, `f := func() { … }` and `f: func() { … }`.
fn bound_name<'tree>(parent: Node<'tree>, node: Node<'tree>) -> Option<Node<'tree>> {
    let around = parent.parent()?;
    let name = match (parent.kind(), around.kind()) {
        ("type_spec", _) if parent.child_by_field_name("type") == Some(node) => {
            parent.child_by_field_name("name")?
        }
        ("expression_list", "var_spec") if parent.named_child_count() == 1 => {
            around.child_by_field_name("name")?
        }
        ("expression_list", "short_var_declaration" | "assignment_statement")
            if parent.named_child_count() == 1 =>
        {
            around.child_by_field_name("left")?.named_child(0)?
        }
        ("literal_element", "keyed_element") => {
            around.child_by_field_name("key")?.named_child(0)?
        }
        _ => return None,
    };
    match name.kind() {
        "identifier" | "type_identifier" => Some(name),
        "selector_expression" => name.child_by_field_name("field"),
        _ => None,
    }
}

fn is_part(around: Node<'_>, outer: Node<'_>, definition: Node<'_>) -> bool {
    match around.kind() {
        "type_spec" | "expression_list" | "literal_element" => outer == definition,
        "var_spec" | "short_var_declaration" | "assignment_statement" => {
            outer.kind() == "expression_list"
        }
        "keyed_element" => outer.kind() == "literal_element",
        // `var ( f = …; g = … )` does not belong to f alone.
        "type_declaration" | "var_declaration" => around.named_child_count() == 1,
        _ => false,
    }
}

/// Reads `"a/b"`, `c "a/b"`, `. "a/b"` and `_ "a/b"`.
fn import(reader: &mut ImportReader<'_, '_, '_>) {
    let statement = reader.statement;
    let Some(path) = reader.field(statement, "path") else {
        return;
    };
    let from = path.trim_matches(['"', '`']);
    let binding = match reader.field(statement, "name") {
        Some(".") => Binding::All,
        Some("_") => Binding::Nothing,
        Some(local) => Binding::Whole { local },
        None => Binding::Whole { local: package_name(from) },
    };
    reader.push(from, binding);
}

/// Returns the conventional package name: `b` for `a/b`, `a/b/v2` and `a/b.v2`.
fn package_name(path: &str) -> &str {
    let is_version = |part: &str| {
        let number = part.strip_prefix('v').unwrap_or("");
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut parts = path.rsplit('/').filter(|part| !is_version(part));
    let last = parts.next().unwrap_or(path);
    match last.rsplit_once('.') {
        Some((name, version)) if is_version(version) => name,
        _ => last,
    }
}

/// Reads a line of `import "a/b"`, or a line inside `import ( … )`.
fn import_line(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("import ").unwrap_or(line).trim_end();
    let (name, path) = line.strip_suffix('"')?.split_once('"')?;
    let name = name.trim_end();
    let is_name = |c: char| c == '_' || c == '.' || c.is_alphanumeric();
    let is_import = name.chars().all(is_name) && !path.contains(['"', ' ']);
    let local = if name.is_empty() { package_name(path) } else { name };
    is_import.then_some((path, local))
}

/// Returns true if a part of a module's path is the repository's name, with or without the owner's name before it.
fn is_local_import(module: &str, path: &str) -> bool {
    let repository = path.split('/').next().unwrap_or("");
    module.split('/').any(|part| {
        let owner = repository.strip_suffix(part);
        owner.is_some_and(|owner| owner.is_empty() || owner.ends_with(['_', '-']))
    })
}

/// Keywords of the language.
#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "break", "case", "chan", "const", "continue", "default", "defer", "else", "fallthrough", "for", "func", "go",
    "goto", "if", "import", "interface", "map", "package", "range", "return", "select", "struct", "switch", "type",
    "var",
];

/// Method names of the standard library's types, and of types that read, write, log or run something.
const COMMON_METHODS: &str = "\
    Abs Add Addr After All Any Append As Base Begin Bool Build Bytes Call Cancel Cap Clear Clone Close Code \
    Commit Compare Connect Contains Copy Count Create Current Debug Decode Delete Dial Done Elem Empty Encode End \
    Equal Err Error Errorf Exec Execute Exists Exit Fatal Fatalf Field Find Finish First Flush Format Get Handle \
    Has Head Header Host ID Index Info Infof Init Insert Int Interface Is IsEmpty IsNil IsZero Items Join Key \
    Keys Kind Last Len Less Line List Listen Load Lock Log Logf Lookup Map Marshal MarshalJSON Match Max Merge \
    Message Method Min Mode Move Name New Next Now Open Parse Path Peek Ping Pop Pos Post Prev Print Printf \
    Println Push Put Query RLock RUnlock Range Read ReadAll ReadAt ReadByte ReadFile ReadFrom ReadRune ReadString \
    Register Release Remove Render Replace Report Reset Resolve Result Reverse Rollback Root Round Run Save Scan \
    Seek Select Send Serve ServeHTTP Set Setup Shutdown Size Skip Sleep Slice Sort Split Start Stat State Status \
    Stop Store String Sub Submit Sum Swap Sync Test Time Trim Truncate Type Unlock Unmarshal UnmarshalJSON Unwrap \
    Update Upper Validate Value Values Verify Wait Walk Warn Warnf With Write WriteByte WriteHeader WriteRune \
    WriteString WriteTo";

/// Names of the universe block, and the blank name.
const BUILTINS: &str = "\
    _ any append bool byte cap clear close comparable complex complex128 complex64 copy delete error false \
    float32 float64 imag int int16 int32 int64 int8 iota len make max min new nil panic print println real \
    recover rune string true uint uint16 uint32 uint64 uint8 uintptr";
