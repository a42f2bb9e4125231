//! Java.

use super::import::{Binding, ImportReader};
use super::spec::{
    BlockMarks, Call, Definition, Keywords, LanguageSpec, NameScope, NameVisibility, Namespace,
    NodeRole, NodeStep, Prose, Resolution, ScopeKind, Steps, TypeRules, Variable, VariableType,
};
use super::walk::child;

/// Java.
pub(crate) static JAVA: LanguageSpec = LanguageSpec {
    name: "java",
    title: "Java",
    extensions: &[".java"],
    grammars: &[|| tree_sitter_java::LANGUAGE.into()],
    comment: "//",
    comment_begins: &["/*"],
    comment_ends: &["*/"],
    has_hash_lines: false,
    needs_last_newline: false,
    keywords: Keywords::from_sorted(KEYWORDS),
    codebleu_keywords: CODEBLEU_KEYWORDS,
    layout: BlockMarks::Braces,
    statement_list: None,
    prose: &[Prose::Long("string_literal")],
    collections: &["array_initializer"],
    literals: &[
        "decimal_integer_literal",
        "hex_integer_literal",
        "octal_integer_literal",
        "binary_integer_literal",
        "decimal_floating_point_literal",
        "hex_floating_point_literal",
        "string_literal",
        "character_literal",
        "true",
        "false",
        "null_literal",
    ],
    is_placeholder: |kind, text| {
        let errors = ["UnsupportedOperationException", "NotImplementedException"];
        kind == "throw_statement" && errors.contains(&thrown_class(text))
    },
    definitions: &[
        Definition::with_scope(ScopeKind::Class, "class_declaration"),
        Definition::with_scope(ScopeKind::Class, "record_declaration"),
        Definition::with_scope(ScopeKind::Interface, "interface_declaration"),
        Definition::with_scope(ScopeKind::Interface, "annotation_type_declaration"),
        Definition::with_scope(ScopeKind::Enum, "enum_declaration"),
        Definition::with_scope(ScopeKind::Function, "method_declaration"),
        Definition::with_scope(ScopeKind::Function, "constructor_declaration"),
        Definition::with_scope(ScopeKind::Function, "compact_constructor_declaration"),
    ],
    bound_name: |_, _| None,
    is_part: |_, _, _| false,
    decorators_in: None,
    calls: &[
        ("method_invocation", Call::Method("object", "name")),
        ("object_creation_expression", Call::New("type")),
    ],
    expressions: &[
        ("identifier", NodeRole::Name),
        ("this", NodeRole::Object("this")),
        ("super", NodeRole::Object("super")),
        ("field_access", NodeRole::Member(NodeStep::Field("object"), NodeStep::Field("field"))),
        ("parenthesized_expression", NodeRole::Group(NodeStep::Nth(0))),
        ("cast_expression", NodeRole::Typed(NodeStep::Field("type"))),
        ("object_creation_expression", NodeRole::New(NodeStep::Field("type"))),
        ("string_literal", NodeRole::Literal),
        ("class_literal", NodeRole::Literal),
        ("array_creation_expression", NodeRole::Literal),
    ],
    types: &[
        ("identifier", NodeRole::Name),
        ("type_identifier", NodeRole::Name),
        ("integral_type", NodeRole::Name),
        ("floating_point_type", NodeRole::Name),
        ("boolean_type", NodeRole::Name),
        ("void_type", NodeRole::Name),
        ("generic_type", NodeRole::Inside(NodeStep::Nth(0))),
        ("annotated_type", NodeRole::Inside(NodeStep::Last)),
        ("catch_type", NodeRole::Inside(NodeStep::Nth(0))),
        ("scoped_type_identifier", NodeRole::Member(NodeStep::Nth(0), NodeStep::Last)),
        ("scoped_identifier", NodeRole::Member(NodeStep::Field("scope"), NodeStep::Field("name"))),
    ],
    untyped: &["var"],
    imports: &[("import_declaration", import)],
    resolution: Resolution::Types(&TYPES),
    common_methods: COMMON_METHODS,
    builtins: BUILTINS,
    import_line: |line| {
        let module = line.strip_prefix("import ")?;
        let module = module.strip_prefix("static ").unwrap_or(module);
        Some((module, module.rsplit('.').next().unwrap_or(module)))
    },
    is_local_import: has_two_folders,
    blocks: &["block", "constructor_body", "switch_block_statement_group"],
    bodies: &["method_declaration", "constructor_declaration"],
    failure: "if (true) throw new AssertionError(\"planted failure\");",
    is_constructor_call: |kind, _| kind == "explicit_constructor_invocation",
    has_pytest: false,
};

const DECLARATORS: Variable = Variable {
    each: &[Steps::Field("declarator")],
    values: &[Steps::One(NodeStep::Field("value"))],
    ..Variable::with_type("", NAME)
};

const NAME: &[Steps] = &[Steps::One(NodeStep::Field("name"))];

static TYPES: TypeRules = TypeRules {
    namespaces: &[Namespace {
        kind: "package_declaration",
        name: NodeStep::Last,
        is_whole_file: true,
    }],
    types: &[],
    supers: &["superclass", "super_interfaces", "extends_interfaces", "type_list"],
    constructors: &["constructor_declaration", "compact_constructor_declaration"],
    members: &[],
    scopes: &["lambda_expression"],
    receiver: &[],
    extension: &[],
    variables: &[
        Variable { kind: "local_variable_declaration", ..DECLARATORS },
        Variable { kind: "field_declaration", ..DECLARATORS },
        Variable { kind: "constant_declaration", ..DECLARATORS },
        Variable { is_method: true, ..Variable::with_type("formal_parameter", NAME) },
        Variable {
            each: &[Steps::One(NodeStep::Child("variable_declarator"))],
            declared: VariableType::Array,
            ..Variable::new("spread_parameter", NAME)
        },
        Variable::with_type("enhanced_for_statement", NAME),
        Variable::with_type("resource", NAME),
        Variable::with_type("record_pattern_component", NAME),
        Variable {
            declared: VariableType::Type(&[NodeStep::Child("catch_type")]),
            ..Variable::new("catch_formal_parameter", NAME)
        },
        Variable {
            declared: VariableType::Type(&[NodeStep::Field("right")]),
            ..Variable::new("instanceof_expression", NAME)
        },
        Variable {
            declared: VariableType::Type(&[NodeStep::Nth(0)]),
            ..Variable::new("type_pattern", &[Steps::One(NodeStep::Child("identifier"))])
        },
        Variable { declared: VariableType::Around, ..Variable::new("enum_constant", NAME) },
        Variable::new("lambda_expression", &[Steps::One(NodeStep::Field("parameters"))]),
        Variable::new("inferred_parameters", &[Steps::Named]),
    ],
    function_values: &[],
    exports: |_, _| Vec::new(),
    visibility: NameVisibility::FullNames(&[
        NameScope::Imported,
        NameScope::Namespace,
        NameScope::OnDemand,
        NameScope::Full,
    ]),
    has_parts: false,
    fields_need_this: false,
    imports_from_root: false,
};

/// Returns the last name of the class that a `throw` statement instantiates.
pub(super) fn thrown_class(text: &str) -> &str {
    let thrown = text.strip_prefix("throw").map_or("", str::trim_start);
    let thrown = thrown.strip_prefix("new").map_or("", str::trim_start);
    let name = thrown.split('(').next().unwrap_or_default().trim_end();
    name.rsplit('.').next().unwrap_or_default()
}

fn import(reader: &mut ImportReader<'_, '_, '_>) {
    let statement = reader.statement;
    let name = child(statement, "scoped_identifier").or_else(|| child(statement, "identifier"));
    let Some(name) = name else {
        return;
    };
    let is_static = child(statement, "static").is_some();
    if child(statement, "asterisk").is_some() {
        reader.push_as(reader.of(name), Binding::All, is_static, false);
        return;
    }
    let member = reader.field(name, "name").unwrap_or_else(|| reader.of(name));
    let from = reader.field(name, "scope").unwrap_or("");
    let local = member;
    reader.push_as(from, Binding::Member { member, local }, is_static, false);
}

/// Returns true if a module is relative, or if its first two names are a folder and its subfolder on the path.
pub(super) fn has_two_folders(module: &str, path: &str) -> bool {
    let mut parts = module.split(['.', ' ', ';', ',']);
    let (Some(first), Some(second)) = (parts.next(), parts.next()) else {
        return module.starts_with('.');
    };
    let path = path.replace('/', ".");
    module.starts_with('.') || path.contains(&format!(".{first}.{second}."))
}

/// Reserved words of the language and `var`, without `true` and `null`.
#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "abstract", "assert", "boolean", "break", "byte", "case", "catch", "char", "class", "const", "continue",
    "default", "do", "double", "else", "enum", "extends", "final", "finally", "float", "for", "goto", "if",
    "implements", "import", "instanceof", "int", "interface", "long", "native", "new", "package", "private",
    "protected", "public", "return", "short", "static", "strictfp", "super", "switch", "synchronized", "this",
    "throw", "throws", "transient", "try", "var", "void", "volatile", "while",
];

/// Keywords of CodeBLEU.
const CODEBLEU_KEYWORDS: &str = "abstract assert boolean break byte case catch char class const continue default do double else \
    enum extends final finally float for goto if implements import instanceof int interface long native new package \
    private protected public return short static strictfp super switch synchronized this throw throws transient try \
    void volatile while";

/// Method names of `java.lang`, `java.util`, streams, files, loggers and tests.
const COMMON_METHODS: &str = "\
    accept add addAll addFirst addLast all and andThen any append apply applyAsInt applyAsLong asList atomic \
    await build builder call canRead cancel charAt chars check clear clone close closest codePointAt collect \
    compare compareTo compareToIgnoreCase complete compute computeIfAbsent computeIfPresent configure connect \
    contains containsAll containsKey containsValue copy copyOf count countDown create createNewFile current debug \
    decrementAndGet delete digest distinct divide encode endsWith entrySet equals equalsIgnoreCase error execute \
    exists exit filter find findAny findFirst finish flatMap flush forEach format fromString get getAndIncrement \
    getAndSet getAsInt getBoolean getByteArray getBytes getCanonicalName getCause getClass getDeclaredField \
    getDeclaredMethod getDouble getFirst getFloat getHost getId getInputStream getInstance getInt getKey getLast \
    getLength getLocalizedMessage getLong getMessage getMethod getModifiers getName getOrDefault getOutputStream \
    getPackage getParameterTypes getParent getPath getPort getProperty getResource getResult getReturnType \
    getSimpleName getSize getStackTrace getString getSuperclass getTime getType getValue getVersion group handle \
    hasMoreElements hasNext hashCode header headers id identity ifPresent ignore incrementAndGet indexOf info \
    init initialize insert intValue intern interrupt invoke isAlive isArray isAssignableFrom isBlank isDirectory \
    isDone isEmpty isEnabled isEqual isFile isInstance isInterface isNull isPresent isPrimitive isValid iterator \
    join keySet keys lastIndexOf length limit lines list listIterator load lock log longValue lookup map mapToInt \
    mapToObj match matcher matches max merge min multiply name negate newInstance next nextElement nextInt \
    nextLine noneMatch notify notifyAll now of ofNullable offer open or orElse orElseGet orElseThrow ordinal \
    parse parseInt path peek poll pop post previous print printStackTrace printf println process push put putAll \
    putIfAbsent query range read readLine readObject recv reduce register release remove removeAll removeIf \
    repeat replace replaceAll replaceFirst request reset resolve result retainAll reverse round run schedule \
    search seek select send set setAccessible setBoolean setCharAt setInt setLength setName setProperty setString \
    setTime setType setValue shutdown signal size skip sleep sort sorted split start startsWith state status stop \
    store stream strip stripTrailing subList subSequence submit substring subtract sum supply supplyAsync test \
    then thenApply thenReturn throwIfNull time toArray toByteArray toCharArray toList toLowerCase toMap toString \
    toUpperCase trim trimToSize tryLock type unlock update updateAndGet url value valueOf values verify visit \
    wait warn warning when write writeTo";

/// Names of `java.lang`, and of the methods that every object has.
const BUILTINS: &str = "\
    AbstractMethodError Appendable ArithmeticException ArrayIndexOutOfBoundsException ArrayStoreException \
    AssertionError AutoCloseable Boolean Byte CharSequence Character Class ClassCastException ClassLoader \
    ClassNotFoundException CloneNotSupportedException Cloneable Comparable Deprecated Double Enum Error \
    Exception ExceptionInInitializerError Float FunctionalInterface IllegalAccessException \
    IllegalArgumentException IllegalMonitorStateException IllegalStateException IllegalThreadStateException \
    IndexOutOfBoundsException InheritableThreadLocal InstantiationException Integer InternalError \
    InterruptedException Iterable LinkageError Long Math Module NegativeArraySizeException NoClassDefFoundError \
    NoSuchFieldException NoSuchMethodException NullPointerException Number NumberFormatException Object \
    OutOfMemoryError Override Package Process ProcessBuilder ProcessHandle Readable Record \
    ReflectiveOperationException Runnable Runtime RuntimeException SafeVarargs SecurityException Short \
    StackOverflowError StackTraceElement StackWalker StrictMath String StringBuffer StringBuilder \
    StringIndexOutOfBoundsException SuppressWarnings System Thread ThreadGroup ThreadLocal Throwable \
    UnsupportedOperationException Void clone equals finalize getClass hashCode length name notify notifyAll \
    ordinal toString valueOf values wait var";
