//! The data of a language: each language fills in one [`LanguageSpec`] in a file of its own.
//!
//! Kinds and fields of nodes are those of the language's tree-sitter grammar. Most rules are tables that name kinds of
//! nodes; they are read by walking the tree once, so that nothing has to be compiled when a program starts.

use tree_sitter::Node;

use super::import::ImportReader;
use super::walk::child;

/// Everything in which a language differs from the others.
pub struct LanguageSpec {
    /// Name in settings and files, CrossCodeEval's.
    pub(crate) name: &'static str,
    /// Name in a sentence, The Stack's.
    pub(crate) title: &'static str,
    /// Endings of the source files, with their dot; case-sensitive.
    pub(crate) extensions: &'static [&'static str],
    /// Grammar of the files with each of these endings.
    pub(crate) grammars: &'static [fn() -> tree_sitter::Language],

    /// Sign that begins a line comment.
    pub comment: &'static str,
    /// Signs that begin a comment of several lines, or a docstring.
    pub comment_begins: &'static [&'static str],
    /// Signs that end one.
    pub comment_ends: &'static [&'static str],
    /// Whether a line that begins with `#` is no code: a comment, or a line for the preprocessor.
    pub has_hash_lines: bool,
    /// Whether the grammar needs a newline after the last line, as the preprocessor's lines do.
    pub(crate) needs_last_newline: bool,
    /// Keywords of CrossCodeEval (its `scripts/keywords`, after dpu-utils).
    pub(crate) keywords: Keywords,
    /// Keywords of CodeBLEU's weighted n-gram match (its `keywords/*.txt`, version 0.7.0), separated by blanks.
    pub(crate) codebleu_keywords: &'static str,

    /// How blocks are marked.
    pub layout: BlockMarks,
    /// Node in a block that holds its statements, where they are not the block's own children.
    pub(crate) statement_list: Option<&'static str>,
    /// Nodes that are text for people, or data.
    pub prose: &'static [Prose],
    /// Nodes that hold a list of values: lists, tuples, sets, maps and arrays.
    pub collections: &'static [&'static str],
    /// Nodes that are values written out, keys of maps included.
    pub literals: &'static [&'static str],
    /// Whether a statement, by its kind and text, stands for code that is still to be written.
    pub(crate) is_placeholder: fn(kind: &str, text: &str) -> bool,

    /// Nodes that define something.
    pub(crate) definitions: &'static [Definition],
    /// The name that a node's parent gives it, as in `name = function …`.
    pub bound_name: for<'t> fn(parent: Node<'t>, node: Node<'t>) -> Option<Node<'t>>,
    /// Whether `around` is part of a definition: a decorator's statement, `export`, the statement that binds its name.
    /// `outer` is what was found so far, the definition itself at first.
    pub(crate) is_part: fn(around: Node<'_>, outer: Node<'_>, definition: Node<'_>) -> bool,
    /// Kind of a node in which decorators stand beside what they decorate.
    pub(crate) decorators_in: Option<&'static str>,

    /// Nodes that call something.
    pub(crate) calls: &'static [(&'static str, Call)],
    /// Parts of expressions: what is called, and on what.
    pub(crate) expressions: &'static [(&'static str, NodeRole)],
    /// Parts of types.
    pub(crate) types: &'static [(&'static str, NodeRole)],
    /// Types that say nothing: `var`, `any`.
    pub(crate) untyped: &'static [&'static str],
    /// Statements that import, and how their names are taken.
    pub(crate) imports: &'static [(&'static str, ReadImport)],
    /// How a call's name leads to the file that defines it.
    pub resolution: Resolution,
    /// Methods that much else has too: of the platform's own types, of the usual libraries, and of everything that runs,
    /// opens or visits, separated by blanks. A call of one on an object of unknown class tells nothing about whose it is.
    pub(crate) common_methods: &'static str,

    /// Module and names of a line that imports, read without a parser.
    pub import_line: fn(line: &str) -> Option<(&str, &str)>,
    /// Whether a module that such a line names is one of the repository that a file of this path is in.
    pub is_local_import: fn(module: &str, path: &str) -> bool,

    /// Kinds of nodes whose named children are statements.
    pub blocks: &'static [&'static str],
    /// Kinds of functions whose body holds statements.
    pub bodies: &'static [&'static str],
    /// Statement that fails when it is reached, though a compiler must not see that it always does: compilers refuse code
    /// that is never reached.
    pub failure: &'static str,
    /// Whether a statement, by its kind and text, calls another constructor, before which nothing may stand.
    pub is_constructor_call: fn(kind: &str, text: &str) -> bool,
    /// Whether pytest runs its tests.
    pub has_pytest: bool,
}

impl LanguageSpec {
    /// Whether much else has a method of this name too.
    pub fn is_common_method(&self, name: &str) -> bool {
        self.common_methods.split_ascii_whitespace().any(|word| word == name)
    }

    /// Whether this kind of node is a function that can have a name.
    pub fn is_function(&self, kind: &str) -> bool {
        let found = self.definitions.iter().find(|found| found.kind == kind);
        found.is_some_and(|found| found.scope == ScopeKind::Function)
    }

    /// Whether this kind of node is a type with a name of its own.
    pub fn is_named_type(&self, kind: &str) -> bool {
        use ScopeKind::{Class, Enum, Interface};
        self.definitions.iter().find(|found| found.kind == kind).is_some_and(|found| {
            matches!(found.scope, Class | Interface | Enum)
                && matches!(found.name, DefinitionName::Field(_))
        })
    }
}

/// Takes the names from a statement that imports.
pub(crate) type ReadImport = fn(&mut ImportReader<'_, '_, '_>);

/// How blocks are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockMarks {
    /// By their indentation. Functions begin with a docstring, and a line holds at most one definition.
    Indentation,
    /// By `{` and `}`.
    Braces,
}

/// A kind of node that is text for people, or data.
#[derive(Debug, Clone, Copy)]
pub enum Prose {
    /// Wherever it stands.
    Always(&'static str),
    /// Where it stands on several lines.
    Long(&'static str),
}

/// Sorted keywords, and for each first letter a bit for each length: nearly no word has the first letter and the length
/// of a keyword.
#[derive(Debug)]
pub(crate) struct Keywords {
    words: &'static [&'static str],
    lengths: [u32; 128],
}

impl Keywords {
    /// Keywords that are sorted.
    pub(crate) const fn from_sorted(words: &'static [&'static str]) -> Self {
        let mut lengths = [0; 128];
        let mut at = 0;
        while at < words.len() {
            let word = words[at].as_bytes();
            lengths[word[0] as usize] |= 1 << word.len();
            at += 1;
        }
        Self { words, lengths }
    }

    /// All of them.
    #[cfg(test)]
    pub(crate) fn words(&self) -> &'static [&'static str] {
        self.words
    }

    /// Whether a word is one of them.
    pub(crate) fn has(&self, word: &str) -> bool {
        let first = word.as_bytes().first().copied().unwrap_or_default();
        let lengths = self.lengths.get(usize::from(first));
        let possible = lengths.copied().unwrap_or_default();
        word.len() < 32
            && possible >> word.len() & 1 == 1
            && self.words.binary_search(&word).is_ok()
    }
}

/// Kind of a scope that lines can stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScopeKind {
    /// A namespace of C# or TypeScript (`namespace`, `module`); that of a whole file (`namespace A;`) reaches to its end.
    Namespace,
    /// Classes, structs and records.
    Class,
    /// Interfaces and annotation types.
    Interface,
    /// Enums.
    Enum,
    /// A C# property, indexer or event.
    Property,
    /// Functions, methods and constructors.
    Function,
}

/// A kind of node that defines something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definition {
    /// Kind of the node.
    pub(crate) kind: &'static str,
    /// Kind of the scope that it opens.
    pub(crate) scope: ScopeKind,
    /// How its name is found.
    pub(crate) name: DefinitionName,
    /// Whether it reaches to the end of its file.
    pub(crate) to_end: bool,
}

impl Definition {
    /// A definition whose name is in the field `name`.
    pub(crate) const fn with_scope(scope: ScopeKind, kind: &'static str) -> Self {
        Self { kind, scope, name: DefinitionName::Field("name"), to_end: false }
    }

    /// Sets how the name is found.
    pub(crate) const fn with_name(self, name: DefinitionName) -> Self {
        Self { name, ..self }
    }
}

/// How the name of a definition is found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DefinitionName {
    /// Text of a field.
    Field(&'static str),
    /// Always this word.
    Word(&'static str),
    /// The name that it is bound to, or else its own; one without either is no definition.
    Bound,
}

/// A step from a node to another.
#[derive(Debug, Clone, Copy)]
pub enum NodeStep {
    /// The node itself.
    Itself,
    /// The child in a field.
    Field(&'static str),
    /// The first child of a kind.
    Child(&'static str),
    /// The named child of this number.
    Nth(u32),
    /// The last named child.
    Last,
}

impl NodeStep {
    /// The node that it leads to.
    pub fn from(self, node: Node<'_>) -> Option<Node<'_>> {
        match self {
            Self::Itself => Some(node),
            Self::Field(field) => node.child_by_field_name(field),
            Self::Child(kind) => child(node, kind),
            Self::Nth(number) => node.named_child(number),
            Self::Last => node.named_child(node.named_child_count().checked_sub(1)? as u32),
        }
    }
}

/// Where a node that calls something says what it calls.
#[derive(Debug, Clone, Copy)]
pub enum Call {
    /// The expression in a field.
    Function(&'static str),
    /// The method in the second field, of the object in the first where there is one.
    Method(&'static str, &'static str),
    /// The type in a field: `new T()`.
    New(&'static str),
}

/// Role of a kind of node in a dotted name, an expression or a type.
#[derive(Debug, Clone, Copy)]
pub enum NodeRole {
    /// It is a name.
    Name,
    /// It stands for an object: `this` or `super`.
    Object(&'static str),
    /// A name of something else: what stands before the dot, and the name behind it.
    Member(NodeStep, NodeStep),
    /// A name of something else that stands further out in the tree, as `.b` of `a?.b`.
    Partial(NodeStep),
    /// It is no more than what is within.
    Inside(NodeStep),
    /// It is what is within, in brackets.
    Group(NodeStep),
    /// A value of a type: a cast.
    Typed(NodeStep),
    /// A new object of a type.
    New(NodeStep),
    /// A value of a type that no repository defines.
    Literal,
    /// A type of `T | null` and the like: the only one that is not nothing.
    Union,
    /// A type that is no single one.
    Unknown,
}

/// How a call's name leads to the file that defines it.
#[derive(Clone, Copy)]
pub enum Resolution {
    /// Through imports: every file is a module with a dotted path, and types are not declared.
    Modules,
    /// By declared types.
    Types(&'static TypeRules),
}

/// How a language declares types, and how it sees those of other files.
#[derive(Debug)]
pub struct TypeRules {
    /// Statements that say to which namespace or package code belongs.
    pub namespaces: &'static [Namespace],
    /// Nodes that declare a type, besides the definitions of types with a name of their own.
    pub types: &'static [&'static str],
    /// Nodes in a type's declaration that list, on any level, the types that it extends.
    pub supers: &'static [&'static str],
    /// Functions that are not called by their names.
    pub constructors: &'static [&'static str],
    /// Functions that are nobody's outside types: methods of object literals.
    pub members: &'static [&'static str],
    /// Nodes that are no functions with a name and have a scope of their own, with their parameters in it.
    pub scopes: &'static [&'static str],
    /// Steps from a function outside types to the type whose method it is.
    pub receiver: &'static [NodeStep],
    /// Steps from a method to the word `this` by which it is called on objects of another type.
    pub extension: &'static [NodeStep],
    /// Nodes that declare variables, parameters and fields.
    pub variables: &'static [Variable],
    /// Values and types of variables that are called as functions.
    pub function_values: &'static [&'static str],
    /// Names that a statement exports.
    pub exports: fn(statement: Node<'_>, text: &str) -> Vec<Export>,
    /// How names of other files are seen.
    pub visibility: NameVisibility,
    /// Whether an import of a path without a dot may be of the repository, from its folder or its `src`.
    pub imports_from_root: bool,
    /// Whether a type can be declared in several parts.
    pub has_parts: bool,
    /// Whether fields are reached through `this` alone.
    pub fields_need_this: bool,
}

/// A statement that says to which namespace code belongs.
#[derive(Debug)]
pub struct Namespace {
    /// Kind of the node.
    pub kind: &'static str,
    /// Step to its name.
    pub name: NodeStep,
    /// Whether it is around everything behind it in the file.
    pub is_whole_file: bool,
}

/// A name that a statement exports.
pub struct Export {
    /// Its name for others.
    pub name: String,
    /// Its name in the file; the same where it has no other.
    pub local: String,
    /// Whether it is a function without a name of its own.
    pub is_function: bool,
}

/// How names of other files are seen.
#[derive(Debug, Clone, Copy)]
pub enum NameVisibility {
    /// By full names; a shorter name is looked up in this order.
    FullNames(&'static [NameScope]),
    /// Through imports of files, and what these export.
    Exports,
    /// A folder is a package: its files see all of each other, and those of other folders through imports of paths that
    /// end in the folder's.
    Folders,
}

/// Where a name is looked for that is not a full one.
#[derive(Debug, Clone, Copy)]
pub enum NameScope {
    /// Among the names that imports bind.
    Imported,
    /// In the namespace around.
    Namespace,
    /// In the namespaces around, from the inside out.
    Namespaces,
    /// In what is imported as a whole.
    OnDemand,
    /// It is a full name.
    Full,
}

/// A kind of node that declares variables, parameters or fields.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Kind of the node.
    pub kind: &'static str,
    /// Steps to what declares one variable each.
    pub each: &'static [Steps],
    /// Steps from there to the names; what is no plain name declares nothing.
    pub names: &'static [Steps],
    /// The type that is declared.
    pub declared: VariableType,
    /// Steps to the values, one for each name; the type is that of a new object where none is declared.
    pub values: &'static [Steps],
    /// Children by which a parameter becomes a field of its class too.
    pub field_if: &'static [&'static str],
    /// Whether in a type it is a method too, as a component of a Java record is.
    pub is_method: bool,
}

impl Variable {
    /// A variable without a type.
    pub(crate) const fn new(kind: &'static str, names: &'static [Steps]) -> Self {
        Self {
            kind,
            each: &[],
            names,
            declared: VariableType::Nothing,
            values: &[],
            field_if: &[],
            is_method: false,
        }
    }

    /// One whose type stands in the field `type`.
    pub(crate) const fn with_type(kind: &'static str, names: &'static [Steps]) -> Self {
        Self { declared: VariableType::Type(&[NodeStep::Field("type")]), ..Self::new(kind, names) }
    }
}

/// Steps from a node to several others.
#[derive(Debug, Clone, Copy)]
pub enum Steps {
    /// To one.
    One(NodeStep),
    /// To all children in a field.
    Field(&'static str),
    /// To all named children.
    Named,
    /// To all children of a kind.
    Children(&'static str),
}

/// The type that a variable is declared with.
#[derive(Debug, Clone, Copy)]
pub enum VariableType {
    /// None.
    Nothing,
    /// The type at the end of these steps from the node.
    Type(&'static [NodeStep]),
    /// A type that no repository defines.
    Array,
    /// The type that it stands in, as a constant of an enum has.
    Around,
}

/// The value of a kind of node in a table.
pub fn find<T: Copy>(table: &[(&str, T)], kind: &str) -> Option<T> {
    let found = table.iter().find(|(listed, _)| *listed == kind);
    found.map(|(_, value)| *value)
}
