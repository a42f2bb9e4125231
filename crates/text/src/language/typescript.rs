//! TypeScript, with and without JSX.

use tree_sitter::Node;

use super::import::{Binding, ImportReader};
use super::spec::{
    BlockMarks, Call, Definition, DefinitionName, Export, Keywords, LanguageSpec, NameVisibility,
    NodeRole, NodeStep, Prose, Resolution, ScopeKind, Steps, TypeRules, Variable,
};
use super::walk::child;

/// TypeScript. Two grammars are needed: without JSX, `<T>x` is a type assertion; with JSX, `<T>` begins an element.
pub(crate) static TYPESCRIPT: LanguageSpec = ECMASCRIPT;

pub(super) const ECMASCRIPT: LanguageSpec = LanguageSpec {
    name: "typescript",
    title: "TypeScript",
    extensions: &[".ts", ".tsx", ".mts", ".cts"],
    grammars: &[grammar, || tree_sitter_typescript::LANGUAGE_TSX.into(), grammar, grammar],
    comment: "//",
    comment_begins: &["/*"],
    comment_ends: &["*/"],
    has_hash_lines: false,
    needs_last_newline: false,
    keywords: Keywords::from_sorted(KEYWORDS),
    codebleu_keywords: CODEBLEU_KEYWORDS,
    layout: BlockMarks::Braces,
    statement_list: None,
    // The `${…}` parts of a template are code; the text between two elements is not, even on one line.
    prose: &[Prose::Always("jsx_text"), Prose::Long("string_fragment")],
    collections: &["array", "object"],
    literals: &[
        "number", "string", "template_string", "regex", "property_identifier", "true", "false",
        "null", "undefined",
    ],
    is_placeholder: |kind, text| {
        kind == "throw_statement" && text.to_ascii_lowercase().contains("not implemented")
    },
    definitions: &[
        Definition::with_scope(ScopeKind::Namespace, "internal_module"),
        Definition::with_scope(ScopeKind::Namespace, "module"),
        Definition::with_scope(ScopeKind::Class, "class_declaration"),
        Definition::with_scope(ScopeKind::Class, "abstract_class_declaration"),
        Definition::with_scope(ScopeKind::Class, "class").with_name(DefinitionName::Bound),
        Definition::with_scope(ScopeKind::Interface, "interface_declaration"),
        Definition::with_scope(ScopeKind::Enum, "enum_declaration"),
        Definition::with_scope(ScopeKind::Function, "function_declaration"),
        Definition::with_scope(ScopeKind::Function, "generator_function_declaration"),
        Definition::with_scope(ScopeKind::Function, "function_signature"),
        Definition::with_scope(ScopeKind::Function, "method_definition"),
        Definition::with_scope(ScopeKind::Function, "method_signature"),
        Definition::with_scope(ScopeKind::Function, "abstract_method_signature"),
        Definition::with_scope(ScopeKind::Function, "function_expression")
            .with_name(DefinitionName::Bound),
        Definition::with_scope(ScopeKind::Function, "generator_function")
            .with_name(DefinitionName::Bound),
        Definition::with_scope(ScopeKind::Function, "arrow_function")
            .with_name(DefinitionName::Bound),
    ],
    bound_name,
    is_part,
    decorators_in: Some("class_body"),
    calls: &[
        ("call_expression", Call::Function("function")),
        ("new_expression", Call::New("constructor")),
    ],
    expressions: &[
        ("identifier", NodeRole::Name),
        ("property_identifier", NodeRole::Name),
        ("private_property_identifier", NodeRole::Name),
        ("this", NodeRole::Object("this")),
        ("super", NodeRole::Name),
        ("import", NodeRole::Name),
        (
            "member_expression",
            NodeRole::Member(NodeStep::Field("object"), NodeStep::Field("property")),
        ),
        ("non_null_expression", NodeRole::Inside(NodeStep::Nth(0))),
        ("instantiation_expression", NodeRole::Inside(NodeStep::Nth(0))),
        ("parenthesized_expression", NodeRole::Group(NodeStep::Nth(0))),
        ("as_expression", NodeRole::Typed(NodeStep::Nth(1))),
        ("new_expression", NodeRole::New(NodeStep::Field("constructor"))),
        ("string", NodeRole::Literal),
        ("template_string", NodeRole::Literal),
        ("array", NodeRole::Literal),
        ("number", NodeRole::Literal),
        ("regex", NodeRole::Literal),
    ],
    types: &[
        ("identifier", NodeRole::Name),
        ("type_identifier", NodeRole::Name),
        ("property_identifier", NodeRole::Name),
        ("private_property_identifier", NodeRole::Name),
        ("predefined_type", NodeRole::Name),
        ("generic_type", NodeRole::Inside(NodeStep::Field("name"))),
        (
            "nested_type_identifier",
            NodeRole::Member(NodeStep::Field("module"), NodeStep::Field("name")),
        ),
        (
            "nested_identifier",
            NodeRole::Member(NodeStep::Field("object"), NodeStep::Field("property")),
        ),
        (
            "member_expression",
            NodeRole::Member(NodeStep::Field("object"), NodeStep::Field("property")),
        ),
        ("type_annotation", NodeRole::Inside(NodeStep::Nth(0))),
        ("parenthesized_type", NodeRole::Inside(NodeStep::Nth(0))),
        ("union_type", NodeRole::Union),
        ("intersection_type", NodeRole::Unknown),
        ("function_type", NodeRole::Unknown),
        ("conditional_type", NodeRole::Unknown),
        ("infer_type", NodeRole::Unknown),
        ("type_query", NodeRole::Unknown),
        ("lookup_type", NodeRole::Unknown),
        ("this_type", NodeRole::Unknown),
        ("object_type", NodeRole::Unknown),
    ],
    untyped: &["any", "unknown"],
    imports: &[("import_statement", import), ("export_statement", export_from)],
    resolution: Resolution::Types(&TYPES),
    common_methods: COMMON_METHODS,
    builtins: BUILTINS,
    import_line: |line| {
        let rest = line.strip_prefix("import ").or_else(|| line.strip_prefix("} "))?;
        let (names, module) = rest.rsplit_once("from ").unwrap_or(("", rest));
        Some((module.trim_start_matches(['\'', '"', '`']), names))
    },
    is_local_import: |module, _| module.starts_with('.'),
    blocks: &["program", "module", "statement_block", "switch_case", "switch_default"],
    bodies: &[
        "function_declaration",
        "method_definition",
        "function_expression",
        "arrow_function",
        "generator_function_declaration",
    ],
    failure: "if (Date.now() > 0) throw new Error(\"planted failure\");",
    is_constructor_call: |_, text| text.starts_with("super("),
    has_pytest: false,
};

/// Returns the grammar without JSX.
fn grammar() -> tree_sitter::Language {
    tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into()
}

const NAME: &[Steps] = &[Steps::One(NodeStep::Field("name"))];
const VALUE: &[Steps] = &[Steps::One(NodeStep::Field("value"))];

const PARAMETER: Variable = Variable {
    field_if: &["accessibility_modifier", "readonly"],
    ..Variable::with_type("", &[Steps::One(NodeStep::Field("pattern"))])
};

static TYPES: TypeRules = RULES;

pub(super) const RULES: TypeRules = TypeRules {
    namespaces: &[],
    types: &["class", "type_alias_declaration", "internal_module", "module"],
    supers: &["class_heritage", "extends_type_clause", "extends_clause", "implements_clause"],
    constructors: &[],
    members: &["method_definition"],
    scopes: &["function_type", "constructor_type", "call_signature", "construct_signature"],
    receiver: &[],
    extension: &[],
    variables: &[
        Variable { values: VALUE, ..Variable::with_type("variable_declarator", NAME) },
        Variable { kind: "required_parameter", ..PARAMETER },
        Variable { kind: "optional_parameter", ..PARAMETER },
        Variable { values: VALUE, ..Variable::with_type("public_field_definition", NAME) },
        Variable { values: VALUE, ..Variable::with_type("property_signature", NAME) },
        Variable::new("arrow_function", &[Steps::One(NodeStep::Field("parameter"))]),
        Variable::new("catch_clause", &[Steps::One(NodeStep::Field("parameter"))]),
        Variable::new("for_in_statement", &[Steps::One(NodeStep::Field("left"))]),
        Variable::new("shorthand_property_identifier_pattern", &[Steps::One(NodeStep::Itself)]),
        Variable::new("array_pattern", &[Steps::Named]),
        Variable::new("rest_pattern", &[Steps::Named]),
        Variable::new("pair_pattern", VALUE),
    ],
    function_values: &[
        "arrow_function", "function_expression", "generator_function", "function_type",
    ],
    exports,
    visibility: NameVisibility::Exports,
    has_parts: false,
    fields_need_this: true,
    imports_from_root: true,
};

/// Returns the name of a function or class expression in `name = …`, `name: …` or `export default …`.
fn bound_name<'tree>(parent: Node<'tree>, node: Node<'tree>) -> Option<Node<'tree>> {
    let (name, value) = match parent.kind() {
        "variable_declarator" | "public_field_definition" => ("name", "value"),
        "pair" => ("key", "value"),
        "assignment_expression" => ("left", "right"),
        "export_statement" => return child(parent, "default"),
        _ => return None,
    };
    if parent.child_by_field_name(value) != Some(node) {
        return None;
    }
    let name = parent.child_by_field_name(name)?;
    match name.kind() {
        "member_expression" => name.child_by_field_name("property"),
        "object_pattern" | "array_pattern" | "subscript_expression" => None,
        _ => Some(name),
    }
}

fn is_part(around: Node<'_>, outer: Node<'_>, definition: Node<'_>) -> bool {
    match around.kind() {
        "export_statement" | "ambient_declaration" => true,
        "variable_declarator" | "public_field_definition" | "pair" | "assignment_expression" => {
            outer == definition
        }
        // `const f = …, g = …` does not belong to f alone.
        "lexical_declaration" | "variable_declaration" => around.named_child_count() == 1,
        "expression_statement" => {
            matches!(outer.kind(), "assignment_expression" | "internal_module")
        }
        _ => false,
    }
}

fn source<'a>(reader: &ImportReader<'_, 'a, '_>, node: Node<'_>) -> Option<&'a str> {
    let quoted = reader.field(node, "source")?;
    Some(quoted.trim_matches(['"', '\'']))
}

pub(super) fn import(reader: &mut ImportReader<'_, '_, '_>) {
    let statement = reader.statement;
    if let Some(require) = child(statement, "import_require_clause") {
        let local = child(require, "identifier").map(|name| reader.of(name));
        if let (Some(from), Some(local)) = (source(reader, require), local) {
            reader.push(from, Binding::Whole { local });
        }
        return;
    }
    let Some(from) = source(reader, statement) else {
        return;
    };
    let Some(clause) = child(statement, "import_clause") else {
        reader.push(from, Binding::Nothing);
        return;
    };
    let mut cursor = clause.walk();
    for part in clause.named_children(&mut cursor) {
        match part.kind() {
            "identifier" => {
                let (member, local) = ("default", reader.of(part));
                reader.push(from, Binding::Member { member, local });
            }
            "namespace_import" => {
                if let Some(local) = part.named_child(0).map(|name| reader.of(name)) {
                    reader.push(from, Binding::Whole { local });
                }
            }
            "named_imports" => members(reader, from, part, false),
            _ => {}
        }
    }
}

/// Reads `export { a as b } from 'm'`, `export * from 'm'` and `export * as a from 'm'`.
pub(super) fn export_from(reader: &mut ImportReader<'_, '_, '_>) {
    let statement = reader.statement;
    let Some(from) = source(reader, statement) else {
        return;
    };
    let namespace = child(statement, "namespace_export").and_then(|node| node.named_child(0));
    if let Some(clause) = child(statement, "export_clause") {
        members(reader, from, clause, true);
    } else if let Some(name) = namespace {
        let local = reader.of(name);
        reader.push_as(from, Binding::Whole { local }, false, true);
    } else if child(statement, "*").is_some() {
        reader.push_as(from, Binding::All, false, true);
    }
}

fn members<'a>(
    reader: &mut ImportReader<'_, 'a, '_>,
    from: &'a str,
    list: Node<'_>,
    is_passed_on: bool,
) {
    let mut cursor = list.walk();
    for node in list.named_children(&mut cursor) {
        if let Some(member) = reader.field(node, "name") {
            let local = reader.field(node, "alias").unwrap_or(member);
            reader.push_as(from, Binding::Member { member, local }, false, is_passed_on);
        }
    }
}

/// Returns the exports of `export default name`, `export default class { … }` and `export { name as other }`.
pub(super) fn exports(statement: Node<'_>, text: &str) -> Vec<Export> {
    let mut found = Vec::new();
    let is_export = statement.kind() == "export_statement";
    if !is_export || statement.child_by_field_name("source").is_some() {
        return found;
    }
    let of = |node: Node<'_>| text[node.byte_range()].to_owned();
    if child(statement, "default").is_some() {
        let value = statement
            .child_by_field_name("value")
            .or_else(|| statement.child_by_field_name("declaration"));
        let named = value.and_then(|value| match value.kind() {
            "identifier" => Some(value),
            _ => value.child_by_field_name("name"),
        });
        let is_function = |value: Node<'_>| TYPESCRIPT.is_function(value.kind());
        found.push(Export {
            name: "default".to_owned(),
            // An export without a name of its own is known as `default`.
            local: named.map_or_else(|| "default".to_owned(), of),
            is_function: named.is_none() && value.is_some_and(is_function),
        });
    }
    let Some(clause) = child(statement, "export_clause") else {
        return found;
    };
    let mut cursor = clause.walk();
    for specifier in clause.named_children(&mut cursor) {
        let field = |field| specifier.child_by_field_name(field).map(of);
        if let (Some(local), Some(name)) = (field("name"), field("alias")) {
            found.push(Export { name, local, is_function: false });
        }
    }
    found
}

/// Reserved words of ECMAScript, including the ones of strict mode, but without `true`, `null` and TypeScript's additions.
#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete", "do", "else",
    "enum", "export", "extends", "finally", "for", "function", "if", "implements", "import", "in", "instanceof",
    "interface", "let", "new", "package", "private", "protected", "public", "return", "static", "super",
    "switch", "this", "throw", "try", "typeof", "var", "void", "while", "with", "yield",
];

/// CodeBLEU's keywords of JavaScript: CodeBLEU has no list for TypeScript.
const CODEBLEU_KEYWORDS: &str = "await break case catch class const continue debugger default delete do else enum export \
    extends false finally for function if implements import in instanceof interface let new null package private \
    protected public return super switch static this throw try True typeof var void while with yield";

/// Method names of ECMAScript's objects, browsers, Node, promises, observables and tests.
const COMMON_METHODS: &str = "\
    abort abs accept add addClass addEventListener addListener after all allSettled any append appendChild apply \
    assert assign at attr attributes before begin bind blur bubble build call callback cancel catch ceil charAt \
    charCodeAt check clear clearTimeout click clone cloneNode close closest codePointAt commit compare complete \
    concat config connect contains copy count create createElement css cut data debug decode defer delete \
    describe destroy detach disconnect dispatch dispatchEvent dispose done draw each emit empty encode end \
    endsWith entries eq equal error every exec execute exists exit expect extend fetch fill filter final finalize \
    find findIndex findLast first flat flatMap floor flush focus forEach format freeze from fromEntries get \
    getAll getAttribute getBoundingClientRect getContext getElementById getItem getTime getValue group groupBy \
    handle has hasAttribute hasClass hasOwnProperty head header hide html id includes indexOf info init insert \
    insertBefore invoke isArray item items join json keys last lastIndexOf length lift link listen load \
    localeCompare lock log map match matchAll max merge message min mount move next nextTick normalize notify now \
    observe of off on once open or padEnd padStart parse parseInt patch path pause pick pipe play pop post pow \
    preventDefault previous print process publish push put query querySelector querySelectorAll race random read \
    readFile ready reduce reduceRight register reject release reload remove removeAttribute removeChild \
    removeEventListener removeItem render repeat replace replaceAll request reset resize resolve respond result \
    resume return reverse round route run save schedule scroll search select send serialize set setAttribute \
    setItem setState setTimeout setValue shift show shuffle size slice some sort splice split sqrt start \
    startsWith state status stop stopPropagation store stringify subscribe substr substring success sum swap tap \
    test text then throw time to toArray toBe toEqual toFixed toISOString toJSON toLocaleString toLowerCase \
    toPromise toString toUpperCase toggle transform trigger trim trimEnd trimStart type unmount unshift \
    unsubscribe update url use validate value valueOf values verbose visit wait walk warn watch with write";

/// Names of JavaScript, browsers, Node.js and test runners, and types of TypeScript.
const BUILTINS: &str = "\
    AbortController AbortSignal AggregateError Array ArrayBuffer ArrayLike AsyncGenerator AsyncIterable \
    AsyncIterator Atomics Awaited BigInt BigInt64Array BigUint64Array Blob Boolean Buffer Capitalize \
    ConstructorParameters Crypto CustomEvent DOMException DataView Date Document Element Error EvalError Event \
    EventTarget Exclude Extract File FileReader FinalizationRegistry Float32Array Float64Array FormData Function \
    Generator HTMLElement Headers Infinity InstanceType Int16Array Int32Array Int8Array Intl Iterable \
    IterableIterator Iterator JSON JSX Lowercase Map Math MessageChannel NaN Node NodeJS NonNullable Number \
    Object Omit OmitThisParameter Parameters Partial Pick Promise PromiseLike PropertyKey Proxy RangeError React \
    ReadableStream Readonly ReadonlyArray ReadonlyMap ReadonlySet Record ReferenceError Reflect RegExp Request \
    Required Response ReturnType Set SharedArrayBuffer String Symbol SyntaxError TextDecoder TextEncoder \
    ThisType TypeError URIError URL URLSearchParams Uint16Array Uint32Array Uint8Array Uint8ClampedArray \
    Uncapitalize Uppercase WeakMap WeakRef WeakSet WebAssembly WebSocket Window Worker XMLHttpRequest __dirname \
    __filename addEventListener after afterAll afterEach alert any arguments atob before beforeAll beforeEach \
    bigint boolean btoa cancelAnimationFrame clearImmediate clearInterval clearTimeout console crypto \
    customElements decodeURI decodeURIComponent describe document encodeURI encodeURIComponent escape eval \
    expect exports fetch global globalThis history isFinite isNaN it jest localStorage location module navigator \
    never number object parseFloat parseInt performance process queueMicrotask removeEventListener \
    requestAnimationFrame require screen self sessionStorage setImmediate setInterval setTimeout string \
    structuredClone symbol test undefined unescape unknown vi void window";
