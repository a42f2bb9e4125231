//! C#.

use super::import::{Binding, ImportReader};
use super::java::{has_two_folders, thrown_class};
use super::spec::{
    BlockMarks, Call, Definition, DefinitionName, Keywords, LanguageSpec, NameScope,
    NameVisibility, Namespace, NodeRole, NodeStep, Prose, Resolution, ScopeKind, Steps, TypeRules,
    Variable, VariableType,
};
use super::walk::child;

/// C#.
pub(crate) static CSHARP: LanguageSpec = LanguageSpec {
    name: "csharp",
    title: "C#",
    extensions: &[".cs"],
    grammars: &[|| tree_sitter_c_sharp::LANGUAGE.into()],
    comment: "//",
    comment_begins: &["/*"],
    comment_ends: &["*/"],
    has_hash_lines: true,
    needs_last_newline: true,
    keywords: Keywords::from_sorted(KEYWORDS),
    codebleu_keywords: CODEBLEU_KEYWORDS,
    layout: BlockMarks::Braces,
    statement_list: None,
    prose: &[
        Prose::Long("verbatim_string_literal"),
        Prose::Long("raw_string_literal"),
        Prose::Long("string_content"),
    ],
    collections: &["initializer_expression", "array_initializer", "collection_expression"],
    literals: &[
        "integer_literal",
        "real_literal",
        "string_literal",
        "verbatim_string_literal",
        "raw_string_literal",
        "character_literal",
        "boolean_literal",
        "null_literal",
    ],
    is_placeholder: |kind, text| {
        let errors = ["NotImplementedException", "NotSupportedException"];
        matches!(kind, "throw_statement" | "throw_expression")
            && errors.contains(&thrown_class(text))
    },
    definitions: &[
        Definition::with_scope(ScopeKind::Namespace, "namespace_declaration"),
        Definition {
            to_end: true,
            ..Definition::with_scope(ScopeKind::Namespace, "file_scoped_namespace_declaration")
        },
        Definition::with_scope(ScopeKind::Class, "class_declaration"),
        Definition::with_scope(ScopeKind::Class, "struct_declaration"),
        Definition::with_scope(ScopeKind::Class, "record_declaration"),
        Definition::with_scope(ScopeKind::Interface, "interface_declaration"),
        Definition::with_scope(ScopeKind::Enum, "enum_declaration"),
        Definition::with_scope(ScopeKind::Property, "property_declaration"),
        Definition::with_scope(ScopeKind::Property, "indexer_declaration")
            .with_name(DefinitionName::Word("this")),
        Definition::with_scope(ScopeKind::Property, "event_declaration"),
        Definition::with_scope(ScopeKind::Function, "method_declaration"),
        Definition::with_scope(ScopeKind::Function, "constructor_declaration"),
        Definition::with_scope(ScopeKind::Function, "destructor_declaration"),
        Definition::with_scope(ScopeKind::Function, "operator_declaration")
            .with_name(DefinitionName::Field("operator")),
        Definition::with_scope(ScopeKind::Function, "conversion_operator_declaration")
            .with_name(DefinitionName::Field("type")),
        Definition::with_scope(ScopeKind::Function, "local_function_statement"),
    ],
    bound_name: |_, _| None,
    is_part: |_, _, _| false,
    decorators_in: None,
    calls: &[
        ("invocation_expression", Call::Function("function")),
        ("object_creation_expression", Call::New("type")),
    ],
    expressions: &[
        ("identifier", NodeRole::Name),
        ("generic_name", NodeRole::Inside(NodeStep::Child("identifier"))),
        ("this", NodeRole::Object("this")),
        ("base", NodeRole::Object("super")),
        ("predefined_type", NodeRole::Typed(NodeStep::Itself)),
        (
            "member_access_expression",
            NodeRole::Member(NodeStep::Field("expression"), NodeStep::Field("name")),
        ),
        ("member_binding_expression", NodeRole::Partial(NodeStep::Field("name"))),
        (
            "conditional_access_expression",
            NodeRole::Member(NodeStep::Field("condition"), NodeStep::Last),
        ),
        ("qualified_name", NodeRole::Member(NodeStep::Field("qualifier"), NodeStep::Field("name"))),
        ("alias_qualified_name", NodeRole::Inside(NodeStep::Field("name"))),
        ("parenthesized_expression", NodeRole::Group(NodeStep::Nth(0))),
        ("cast_expression", NodeRole::Typed(NodeStep::Field("type"))),
        ("as_expression", NodeRole::Typed(NodeStep::Field("right"))),
        ("object_creation_expression", NodeRole::New(NodeStep::Field("type"))),
        ("string_literal", NodeRole::Literal),
        ("interpolated_string_expression", NodeRole::Literal),
        ("verbatim_string_literal", NodeRole::Literal),
        ("raw_string_literal", NodeRole::Literal),
        ("typeof_expression", NodeRole::Literal),
        ("array_creation_expression", NodeRole::Literal),
    ],
    types: &[
        ("identifier", NodeRole::Name),
        ("predefined_type", NodeRole::Name),
        ("generic_name", NodeRole::Inside(NodeStep::Child("identifier"))),
        ("qualified_name", NodeRole::Member(NodeStep::Field("qualifier"), NodeStep::Field("name"))),
        // `global::A.B` is a full name.
        ("alias_qualified_name", NodeRole::Inside(NodeStep::Field("name"))),
        ("nullable_type", NodeRole::Inside(NodeStep::Nth(0))),
        ("ref_type", NodeRole::Inside(NodeStep::Nth(0))),
        ("scoped_type", NodeRole::Inside(NodeStep::Nth(0))),
        ("primary_constructor_base_type", NodeRole::Inside(NodeStep::Field("type"))),
        ("implicit_type", NodeRole::Unknown),
    ],
    untyped: &[],
    imports: &[("using_directive", using)],
    resolution: Resolution::Types(&TYPES),
    common_methods: COMMON_METHODS,
    builtins: BUILTINS,
    import_line: |line| {
        let module = line.strip_prefix("using ")?;
        // `using (` declares a resource.
        let is_import =
            line.trim_end().ends_with(';') && !module.starts_with('(') && !module.contains(" = ");
        is_import.then_some((module, ""))
    },
    is_local_import: has_two_folders,
    blocks: &["block", "switch_section"],
    bodies: &["method_declaration", "constructor_declaration", "local_function_statement"],
    failure: "if (System.DateTime.UtcNow.Ticks > 0) throw new System.Exception(\"planted failure\");",
    is_constructor_call: |_, _| false,
    has_pytest: false,
};

const NAME: &[Steps] = &[Steps::One(NodeStep::Field("name"))];

static TYPES: TypeRules = TypeRules {
    namespaces: &[
        Namespace {
            kind: "namespace_declaration",
            name: NodeStep::Field("name"),
            is_whole_file: false,
        },
        Namespace {
            kind: "file_scoped_namespace_declaration",
            name: NodeStep::Field("name"),
            is_whole_file: true,
        },
    ],
    types: &[],
    supers: &["base_list"],
    constructors: &["constructor_declaration", "destructor_declaration"],
    members: &[],
    scopes: &[
        "delegate_declaration",
        "indexer_declaration",
        "accessor_declaration",
        "lambda_expression",
        "anonymous_method_expression",
    ],
    receiver: &[],
    extension: &[
        NodeStep::Field("parameters"),
        NodeStep::Child("parameter"),
        NodeStep::Child("modifier"),
    ],
    variables: &[
        Variable {
            each: &[Steps::Children("variable_declarator")],
            values: &[Steps::One(NodeStep::Last)],
            ..Variable::with_type("variable_declaration", NAME)
        },
        Variable::with_type("parameter", NAME),
        Variable::with_type("catch_declaration", NAME),
        Variable::with_type("declaration_expression", NAME),
        Variable::with_type("declaration_pattern", NAME),
        Variable::with_type("recursive_pattern", NAME),
        Variable::with_type("property_declaration", NAME),
        Variable::with_type("event_declaration", NAME),
        Variable::with_type("foreach_statement", &[Steps::One(NodeStep::Field("left"))]),
        Variable {
            declared: VariableType::Around,
            ..Variable::new("enum_member_declaration", NAME)
        },
        Variable::new("var_pattern", NAME),
        Variable::new("lambda_expression", &[Steps::One(NodeStep::Field("parameters"))]),
    ],
    function_values: &[],
    exports: |_, _| Vec::new(),
    visibility: NameVisibility::FullNames(&[
        NameScope::Namespaces,
        NameScope::Full,
        NameScope::Imported,
        NameScope::OnDemand,
    ]),
    has_parts: true,
    fields_need_this: false,
    imports_from_root: false,
};

fn using(reader: &mut ImportReader<'_, '_, '_>) {
    let statement = reader.statement;
    let alias = statement.child_by_field_name("name");
    let Some(name) = NodeStep::Last.from(statement) else {
        return;
    };
    let is = |word| child(statement, word).is_some();
    let binding = alias.map_or(Binding::All, |alias| Binding::Whole { local: reader.of(alias) });
    reader.push_as(reader.of(name), binding, is("static"), is("global"));
}

/// Reserved words of the language without `true` and `false`.
#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "abstract", "as", "base", "bool", "break", "byte", "case", "catch", "char", "checked", "class", "const",
    "continue", "decimal", "default", "delegate", "do", "double", "else", "enum", "event", "explicit", "extern",
    "finally", "fixed", "float", "for", "foreach", "goto", "if", "implicit", "in", "int", "interface",
    "internal", "is", "lock", "long", "namespace", "new", "null", "object", "operator", "out", "override",
    "params", "private", "protected", "public", "readonly", "ref", "return", "sbyte", "sealed", "short",
    "sizeof", "stackalloc", "static", "string", "struct", "switch", "this", "throw", "try", "typeof", "uint",
    "ulong", "unchecked", "unsafe", "ushort", "using", "virtual", "void", "volatile", "while",
];

/// Keywords of CodeBLEU.
const CODEBLEU_KEYWORDS: &str = "abstract add alias as ascending async await base bool break by byte case catch char checked \
    class const continue decimal default delegate descending do double dynamic else enum equals event explicit extern \
    false finally fixed float for foreach from get global goto group if implicit in int interface internal into is \
    join let lock long nameof namespace new notnull null object on operator orderby out override params partial \
    private protected public readonly ref remove return sbyte sealed select set short sizeof stackalloc static string \
    struct switch this throw true try typeof uint ulong unchecked unmanaged unsafe ushort using value var virtual void \
    volatile when where while yield";

/// Method names of `System`, collections, LINQ, streams, tasks, windows and tests.
const COMMON_METHODS: &str = "\
    Abort Abs Accept Acquire Add AddDays AddOrUpdate AddRange Aggregate All Any Append AppendFormat AppendLine \
    Apply Area As AsEnumerable AsList AsReadOnly AsSpan Assert Average Await Begin BeginInvoke BinarySearch Bind \
    Build Call Cancel Cast Check Clear Clone Close Combine Commit Compare CompareTo Complete Concat Configure \
    ConfigureAwait Connect Contains ContainsKey ContainsValue Convert ConvertAll Copy CopyTo Count Create \
    CreateInstance Debug Decode DefaultIfEmpty Delete Dequeue Deserialize Dispose DisposeAsync Distinct Draw \
    ElementAt Encode End EndInvoke EndsWith Enqueue EnsureCapacity Equals Error Except Execute ExecuteAsync \
    Exists Exit Fill Find FindAll FindIndex FindLast First FirstOrDefault Flush FlushAsync Focus ForEach Format \
    FromBase64String FromResult Get GetAsync GetAttribute GetAwaiter GetBytes GetChild GetCustomAttributes \
    GetData GetEnumerator GetField GetFields GetHashCode GetItem GetKey GetLength GetMethod GetMethods GetName \
    GetObject GetOrAdd GetParent GetProperties GetProperty GetRange GetResult GetService GetString GetType \
    GetValue GetValueOrDefault GroupBy Handle HasFlag Hide IndexOf Info Init Initialize Insert InsertRange \
    Intersect Invalidate Invoke InvokeAsync Is IsDefined IsInstanceOfType IsMatch IsNullOrEmpty Join Last \
    LastIndexOf LastOrDefault Load Lock Log Log10 LogError LogInformation LogWarning MakeGenericType Map Match \
    Matches Max MemberwiseClone Min Move MoveNext Next Normalize NotNull OfType Ok OnClick OnError OnLoad OnNext \
    Open OrderBy OrderByDescending PadLeft PadRight Parse Peek Pop Post PostAsync Prepend Print Process Publish \
    Pulse Push Raise Range Read ReadAllText ReadAsync ReadByte ReadLine ReadToEnd Receive Refresh Register \
    Release Remove RemoveAll RemoveAt RemoveRange Render Repeat Replace Report Reset Resize Resolve ResumeLayout \
    Return Returns Reverse Rollback Round Run Save SaveChanges SaveChangesAsync Search Seek Select SelectMany \
    Send SendAsync SequenceEqual Serialize Set SetLength SetResult SetValue Setup Show ShowDialog Shutdown Signal \
    Single SingleOrDefault Skip SkipWhile Sleep Slice Sort Split Start StartsWith Stop Submit Subscribe Substring \
    Sum SuspendLayout Take TakeWhile Test Then ThenBy Throw ToArray ToCharArray ToDictionary ToHashSet ToInt32 \
    ToList ToLower ToLowerInvariant ToString ToUpper ToUpperInvariant Trace Transform Trim TrimEnd TrimStart \
    Truncate TryAdd TryDequeue TryGetValue TryParse TryRemove Union Unlock Unsubscribe Update Validate Verify \
    Visit Wait WaitAsync WaitOne Warn When WhenAll Where With Write WriteAsync WriteByte WriteLine Zip";

/// Names of `System` and of the namespaces that projects import implicitly, and contextual keywords.
const BUILTINS: &str = "\
    Action Activator AppContext AppDomain ArgumentException ArgumentNullException ArgumentOutOfRangeException \
    ArithmeticException Array ArrayList ArraySegment Attribute BitConverter Boolean Buffer Byte \
    CancellationToken Char Console Convert DateTime DateTimeOffset Decimal Delegate Dictionary \
    DivideByZeroException Double Enum Environment Equals EventArgs EventHandler Exception Func GC GetHashCode \
    GetType Guid HashSet IAsyncDisposable ICollection IComparable IDictionary IDisposable IEnumerable \
    IEnumerator IEquatable IList IReadOnlyCollection IReadOnlyDictionary IReadOnlyList IndexOutOfRangeException \
    Int16 Int32 Int64 IntPtr InvalidCastException InvalidOperationException KeyNotFoundException KeyValuePair \
    Lazy List Math MemberwiseClone Memory NotImplementedException NotSupportedException NullReferenceException \
    Nullable Object ObjectDisposedException ObsoleteAttribute OperationCanceledException OverflowException \
    Predicate Queue Random ReadOnlySpan ReferenceEquals SByte Single Span Stack String StringBuilder \
    StringComparer StringComparison Task Thread TimeSpan TimeoutException ToString Tuple Type UInt16 UInt32 \
    UInt64 Uri ValueTask Version WeakReference _ dynamic field nameof nint notnull unmanaged value var";
