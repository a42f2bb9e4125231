//! Python.

use tree_sitter::Node;

use super::import::{Binding, ImportReader};
use super::spec::{
    BlockMarks, Call, Definition, Keywords, LanguageSpec, NodeRole, NodeStep, Prose, Resolution,
    ScopeKind,
};
use super::walk::child;

/// Python 3, and the parts of Python 2 that the grammar also accepts.
pub(crate) static PYTHON: LanguageSpec = LanguageSpec {
    name: "python",
    title: "Python",
    extensions: &[".py"],
    grammars: &[|| tree_sitter_python::LANGUAGE.into()],
    comment: "#",
    comment_begins: &["\"\"\"", "'''"],
    comment_ends: &["\"\"\"", "'''"],
    has_hash_lines: true,
    needs_last_newline: false,
    keywords: Keywords::from_sorted(KEYWORDS),
    codebleu_keywords: CODEBLEU_KEYWORDS,
    layout: BlockMarks::Indentation,
    statement_list: None,
    prose: &[Prose::Long("string")],
    collections: &["list", "tuple", "set", "dictionary"],
    literals: &["integer", "float", "string", "true", "false", "none"],
    is_placeholder,
    definitions: &[
        Definition::with_scope(ScopeKind::Function, "function_definition"),
        Definition::with_scope(ScopeKind::Class, "class_definition"),
    ],
    bound_name: |_, _| None,
    is_part: |around, _, _| around.kind() == "decorated_definition",
    decorators_in: None,
    calls: &[("call", Call::Function("function"))],
    expressions: &[
        ("identifier", NodeRole::Name),
        ("attribute", NodeRole::Member(NodeStep::Field("object"), NodeStep::Field("attribute"))),
    ],
    types: &[],
    untyped: &[],
    imports: &[
        ("import_statement", import),
        ("import_from_statement", |reader| {
            let module = reader.statement.child_by_field_name("module_name");
            import_from(reader, module.map(|module| reader.of(module)));
        }),
        ("future_import_statement", |reader| {
            import_from(reader, Some("__future__"));
        }),
    ],
    resolution: Resolution::Modules,
    common_methods: COMMON_METHODS,
    builtins: BUILTINS,
    import_line,
    is_local_import,
    blocks: &["module", "block"],
    bodies: &["function_definition"],
    failure: "raise AssertionError(\"planted failure\")",
    is_constructor_call: |_, _| false,
    has_pytest: true,
};

/// Returns true for `pass`, `...` and raising an error such as `NotImplementedError`. A bare string is recognised as a
/// placeholder by the layout.
fn is_placeholder(kind: &str, text: &str) -> bool {
    match kind {
        "pass_statement" => true,
        "expression_statement" => text == "...",
        "raise_statement" => text
            .strip_prefix("raise")
            .is_some_and(|raised| raised.trim_start().starts_with("NotImplementedError")),
        _ => false,
    }
}

/// Reads `import a.b` and `import a as b`.
fn import(reader: &mut ImportReader<'_, '_, '_>) {
    let statement = reader.statement;
    let mut cursor = statement.walk();
    for node in statement.children_by_field_name("name", &mut cursor) {
        let from = imported_name(reader, node);
        let local = reader.field(node, "alias").unwrap_or(from);
        reader.push(from, Binding::Whole { local });
    }
}

/// Reads `from m import a as b` and `from m import *`.
fn import_from<'a>(reader: &mut ImportReader<'_, 'a, '_>, module: Option<&'a str>) {
    let (Some(from), statement) = (module, reader.statement) else {
        return;
    };
    let mut cursor = statement.walk();
    for node in statement.children_by_field_name("name", &mut cursor) {
        let member = imported_name(reader, node);
        let local = reader.field(node, "alias").unwrap_or(member);
        reader.push(from, Binding::Member { member, local });
    }
    if child(statement, "wildcard_import").is_some() {
        reader.push(from, Binding::All);
    }
}

/// Returns the name of one element, without its alias.
fn imported_name<'a>(reader: &ImportReader<'_, 'a, '_>, node: Node<'_>) -> &'a str {
    let name = reader.field(node, "name");
    let name = name.filter(|_| node.kind() == "aliased_import");
    name.unwrap_or_else(|| reader.of(node))
}

fn import_line(line: &str) -> Option<(&str, &str)> {
    if let Some(rest) = line.strip_prefix("from ") {
        return rest.split_once(" import ");
    }
    let module = line.strip_prefix("import ")?;
    Some((module, module))
}

/// Returns true if a module is relative, or if its first name is a folder on the path below the repository's own folder.
fn is_local_import(module: &str, path: &str) -> bool {
    let first = module.split(['.', ' ', ';', ',']).next();
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    module.starts_with('.') || folders.split('/').skip(1).any(|folder| Some(folder) == first)
}

/// `keyword.kwlist` of Python 3.7 to 3.13 without `True` and `False`.
#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "None", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or",
    "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Keywords of CodeBLEU.
const CODEBLEU_KEYWORDS: &str = "False None True and as assert async await break case class continue def del elif else except \
    finally for from global if import in is lambda match nonlocal not or pass raise return try type while with yield";

/// Method names of Python's own types, of common libraries, and of types that run, open or train something.
const COMMON_METHODS: &str = "\
    T abs absolute accept acquire add addHandler add_ add_argument add_module add_subparsers agg all any append \
    appendleft apply argmax argmin args as_posix as_tensor assign astype backward batch_decode bind bit_length \
    bool broadcast_to build call cancel capitalize casefold cast center check children choice chunk clamp clear \
    clip clone clone_ close columns commit compile compute conjugate connect contiguous convert copy copy_ cos \
    count cpu create critical cuda cumsum cursor data date debug decode delete describe det detach device diag \
    diff difference dim discard dispatch div done dot double draw drop dropna dtype dump dumps elements emit \
    encode encode_plus end endswith error eval evaluate exception exec execute exists exit exp expand expanduser \
    extend extendleft extract eye fetch fetchall fetchone fileno fill fill_ fillna filter find findall fit \
    flatten flip float flush format forward from_bytes from_dict from_pretrained fromkeys gather generate get \
    getLogger getvalue glob group groupby groups half handle head hex iloc index info init insert int \
    intersection inv inverse is_alive is_dir is_file is_set isalnum isalpha isdigit isinstance islower isnull \
    isnumeric isoformat isspace isupper item items iter iterrows join keys kill kwargs listen ljust load \
    load_state_dict loads loc lock log log_prob long lower lstrip main makefile map masked_fill match matmul max \
    mean melt merge min mkdir modules most_common move_to_end mul mul_ name named_modules named_parameters narrow \
    ndim next no_grad norm normal notify now numel numpy ones open parameters parent parse parse_args partition \
    permutation permute pivot plot poll pop popitem popleft post pow predict print_help process prod publish push \
    put query rand randint randn read read_bytes read_text readline readlines recv register register_buffer \
    register_parameter relative_to release remove rename rename_axis render repeat replace replace_all request \
    requires_grad_ reset reset_index reshape resize resolve result reverse rfind rglob rindex rjust rmdir \
    rollback rotate round rpartition rsplit rstrip run sample save scatter search seed seek select send sendall \
    set setLevel setUp set_defaults set_index set_result setdefault settimeout shape show shuffle shutdown sin \
    size sort sort_values split splitlines sqrt squeeze stack start startswith stat state_dict std step stop \
    strftime strip strptime sub sub_ submit subscribe subtract sum swapcase symmetric_difference tail tan tanh \
    tearDown tell terminate test tile time timestamp title to to_bytes to_csv to_dict tobytes today tolist touch \
    train transform translate transpose truncate type uniform union unlink unlock unsqueeze update upper validate \
    values var view wait warn warning with_suffix write write_bytes write_text writelines zero_ zero_grad zeros \
    zfill";

/// Names that Python binds in every module, and those of Python 2.
const BUILTINS: &str = "\
    ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError \
    BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError \
    ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning \
    EnvironmentError Exception ExceptionGroup False FileExistsError FileNotFoundError FloatingPointError \
    FutureWarning GeneratorExit IOError ImportError ImportWarning IndentationError IndexError InterruptedError \
    IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError None \
    NotADirectoryError NotImplemented NotImplementedError OSError OverflowError PendingDeprecationWarning \
    PermissionError ProcessLookupError RecursionError ReferenceError ResourceWarning RuntimeError RuntimeWarning \
    StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError True \
    TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError \
    UnicodeWarning UserWarning ValueError Warning WindowsError ZeroDivisionError __annotations__ __build_class__ \
    __builtins__ __class__ __debug__ __doc__ __file__ __import__ __name__ __package__ __path__ __spec__ abs \
    aiter all anext any ascii basestring bin bool breakpoint bytearray bytes callable chr classmethod compile \
    complex delattr dict dir divmod enumerate eval exec exit filter float format frozenset getattr globals \
    hasattr hash help hex id input int isinstance issubclass iter len list locals long map max memoryview min \
    next object oct open ord pow print property quit range raw_input repr reveal_type reversed round set setattr \
    slice sorted staticmethod str sum super tuple type unicode vars xrange zip __loader__ __cached__ copyright credits license PythonFinalizationError reduce unichr file cmp apply intern execfile StandardError coerce buffer";
