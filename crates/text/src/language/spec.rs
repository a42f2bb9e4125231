//! Data that defines a language: each language fills in one [`LanguageSpec`] in its own file.
//!
//! Node kinds and fields are taken from the language's tree-sitter grammar. Most rules are tables of node kinds, which one walk
//! of the tree applies, so that nothing has to be compiled when a program starts.

use tree_sitter::Node;

use super::import::ImportReader;
use super::walk::child;

/// Data that defines a language.
pub struct LanguageSpec {
    /// Name in settings and files, which is CrossCodeEval's.
    pub(crate) name: &'static str,
    /// Name in sentences, which is The Stack's.
    pub(crate) title: &'static str,
    /// Extensions of the source files, with the dot; case-sensitive.
    pub(crate) extensions: &'static [&'static str],
    /// Grammar for each extension.
    pub(crate) grammars: &'static [fn() -> tree_sitter::Language],

    /// Sign that begins a line comment.
    pub comment: &'static str,
    /// Signs that begin a multi-line comment or a docstring.
    pub comment_begins: &'static [&'static str],
    /// Signs that end a multi-line comment or a docstring.
    pub comment_ends: &'static [&'static str],
    /// Whether a line that begins with `#` is not code, but a comment or a preprocessor directive.
    pub has_hash_lines: bool,
    /// Whether the grammar needs a newline after the last line, as preprocessor directives do.
    pub(crate) needs_last_newline: bool,
    /// Keywords of CrossCodeEval (its `scripts/keywords`, after dpu-utils).
    pub(crate) keywords: Keywords,
    /// Keywords of CodeBLEU's weighted n-gram match (its `keywords/*.txt`, version 0.7.0), separated by blanks.
    pub(crate) codebleu_keywords: &'static str,

    /// Marks of blocks.
    pub layout: BlockMarks,
    /// Kind of the node in a block that contains its statements, if they are not direct children of the block.
    pub(crate) statement_list: Option<&'static str>,
    /// Kinds of nodes that are natural-language text or data.
    pub prose: &'static [Prose],
    /// Kinds of nodes that hold a list of values: lists, tuples, sets, maps and arrays.
    pub collections: &'static [&'static str],
    /// Kinds of nodes that are literal values, including the keys of maps.
    pub literals: &'static [&'static str],
    /// Returns true if a statement, by its kind and text, is a placeholder for unwritten code.
    pub(crate) is_placeholder: fn(kind: &str, text: &str) -> bool,

    /// Kinds of nodes that define something.
    pub(crate) definitions: &'static [Definition],
    /// Returns the name that a node's parent gives it, as in `name = function …`.
    pub bound_name: for<'t> fn(parent: Node<'t>, node: Node<'t>) -> Option<Node<'t>>,
    /// Returns true if `around` is part of a definition: a statement with decorators, `export`, or the statement that binds the
    /// definition's name. `outer` is the extent found so far, at first the definition itself.
    pub(crate) is_part: fn(around: Node<'_>, outer: Node<'_>, definition: Node<'_>) -> bool,
    /// Kind of a node in which decorators are siblings of what they decorate.
    pub(crate) decorators_in: Option<&'static str>,

    /// Kinds of nodes that call something.
    pub(crate) calls: &'static [(&'static str, Call)],
    /// Roles of nodes in expressions: the callee, and its receiver.
    pub(crate) expressions: &'static [(&'static str, NodeRole)],
    /// Roles of nodes in types.
    pub(crate) types: &'static [(&'static str, NodeRole)],
    /// Types that carry no information: `var`, `any`.
    pub(crate) untyped: &'static [&'static str],
    /// Kinds of import statements, and functions that read their names.
    pub(crate) imports: &'static [(&'static str, ReadImport)],
    /// Resolution of a call's name to the file that defines it.
    pub resolution: Resolution,
    /// Method names that are common elsewhere, separated by spaces: methods of the platform's own types, of common libraries,
    /// and of types that run, open or visit something. If the class of the object is unknown, a call of such a method does not
    /// reveal which type defines the method.
    pub(crate) common_methods: &'static str,
    /// Names that are bound everywhere, separated by spaces.
    pub(crate) builtins: &'static str,

    /// Reads the module and names of an import line without a parser.
    pub import_line: fn(line: &str) -> Option<(&str, &str)>,
    /// Returns true if the module that an import line names belongs to the repository of the file at this path.
    pub is_local_import: fn(module: &str, path: &str) -> bool,

    /// Kinds of nodes whose named children are statements.
    pub blocks: &'static [&'static str],
    /// Kinds of functions whose body contains statements.
    pub bodies: &'static [&'static str],
    /// Statement that fails when it is executed, but not in a way that the compiler can detect: compilers refuse unreachable
    /// code.
    pub failure: &'static str,
    /// Returns true if a statement, by its kind and text, calls another constructor; no statement may precede such a call.
    pub is_constructor_call: fn(kind: &str, text: &str) -> bool,
    /// Whether pytest runs the language's tests.
    pub has_pytest: bool,
}

impl LanguageSpec {
    /// Returns true if methods of this name are common elsewhere.
    pub fn is_common_method(&self, name: &str) -> bool {
        self.common_methods.split_ascii_whitespace().any(|word| word == name)
    }

    /// Returns true if a name is bound everywhere.
    pub fn is_builtin(&self, name: &str) -> bool {
        self.builtins.split_ascii_whitespace().any(|word| word == name)
    }

    /// Returns true if this kind of node is a function that can have a name.
    pub fn is_function(&self, kind: &str) -> bool {
        let found = self.definitions.iter().find(|found| found.kind == kind);
        found.is_some_and(|found| found.scope == ScopeKind::Function)
    }

    /// Returns true if this kind of node is a type with a name of its own.
    pub fn is_named_type(&self, kind: &str) -> bool {
        use ScopeKind::{Class, Enum, Interface};
        self.definitions.iter().find(|found| found.kind == kind).is_some_and(|found| {
            matches!(found.scope, Class | Interface | Enum)
                && matches!(found.name, DefinitionName::Field(_))
        })
    }
}

/// Function that reads the names of an import statement.
pub(crate) type ReadImport = fn(&mut ImportReader<'_, '_, '_>);

/// Marks of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockMarks {
    /// Indentation. Functions begin with a docstring, and a line contains at most one definition.
    Indentation,
    /// `{` and `}`.
    Braces,
}

/// Kind of node that is natural-language text or data.
#[derive(Debug, Clone, Copy)]
pub enum Prose {
    /// Text or data in any position.
    Always(&'static str),
    /// Text or data if it spans several lines.
    Long(&'static str),
}

/// Sorted keywords, and for each first letter a bit for each length: few other words share the first letter and the length of a
/// keyword.
#[derive(Debug)]
pub(crate) struct Keywords {
    words: &'static [&'static str],
    lengths: [u32; 128],
}

impl Keywords {
    /// Creates the set from sorted keywords.
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

    /// Returns all keywords.
    #[cfg(test)]
    pub(crate) fn words(&self) -> &'static [&'static str] {
        self.words
    }

    /// Returns true if a word is a keyword.
    pub(crate) fn has(&self, word: &str) -> bool {
        let first = word.as_bytes().first().copied().unwrap_or_default();
        let lengths = self.lengths.get(usize::from(first));
        let possible = lengths.copied().unwrap_or_default();
        word.len() < 32
            && possible >> word.len() & 1 == 1
            && self.words.binary_search(&word).is_ok()
    }
}

/// Kind of a scope that lines can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScopeKind {
    /// Namespace of C# or TypeScript (`namespace`, `module`). A file-scoped namespace (`namespace A;`) extends to the end of
    /// the file.
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

/// Kind of node that defines something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definition {
    /// Kind of the node.
    pub(crate) kind: &'static str,
    /// Kind of the scope that it opens.
    pub(crate) scope: ScopeKind,
    /// Source of its name.
    pub(crate) name: DefinitionName,
    /// Whether it extends to the end of the file.
    pub(crate) to_end: bool,
}

impl Definition {
    /// Creates a definition whose name is in the field `name`.
    pub(crate) const fn with_scope(scope: ScopeKind, kind: &'static str) -> Self {
        Self { kind, scope, name: DefinitionName::Field("name"), to_end: false }
    }

    /// Sets the source of the name.
    pub(crate) const fn with_name(self, name: DefinitionName) -> Self {
        Self { name, ..self }
    }
}

/// Source of a definition's name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DefinitionName {
    /// Text of a field.
    Field(&'static str),
    /// Always this word.
    Word(&'static str),
    /// Name that the definition is bound to, or else its own name. Without either, the node is not a definition.
    Bound,
}

/// Step from a node to another.
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
    /// Returns the node that the step leads to.
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

/// Location of the callee in a call node.
#[derive(Debug, Clone, Copy)]
pub enum Call {
    /// The expression in a field.
    Function(&'static str),
    /// The method in the second field, called on the object in the first field if there is one.
    Method(&'static str, &'static str),
    /// The type in a field: `new T()`.
    New(&'static str),
}

/// Role of a kind of node in a dotted name, an expression or a type.
#[derive(Debug, Clone, Copy)]
pub enum NodeRole {
    /// A name.
    Name,
    /// An object: `this` or `super`.
    Object(&'static str),
    /// A member of something: the part before the dot, and the name after it.
    Member(NodeStep, NodeStep),
    /// A member of something that is further out in the tree, such as `.b` in `a?.b`.
    Partial(NodeStep),
    /// A wrapper that adds nothing to the node inside.
    Inside(NodeStep),
    /// A wrapper in brackets that adds nothing to the node inside.
    Group(NodeStep),
    /// A value of a type: a cast.
    Typed(NodeStep),
    /// A new object of a type.
    New(NodeStep),
    /// A value of a type that no repository defines.
    Literal,
    /// A union such as `T | null`, which means its only non-null type.
    Union,
    /// A type that is not a single type.
    Unknown,
}

/// Way from a call's name to the file that defines it.
#[derive(Clone, Copy)]
pub enum Resolution {
    /// Imports: every file is a module with a dotted path, and types are not declared.
    Modules,
    /// Declared types.
    Types(&'static TypeRules),
}

/// Rules by which a language declares types and sees types of other files.
#[derive(Debug)]
pub struct TypeRules {
    /// Statements that name the namespace or package of the code.
    pub namespaces: &'static [Namespace],
    /// Kinds of nodes that declare a type, in addition to the definitions of named types.
    pub types: &'static [&'static str],
    /// Kinds of nodes in a type's declaration that list, at any depth, the types that it extends.
    pub supers: &'static [&'static str],
    /// Kinds of functions that are not called by name.
    pub constructors: &'static [&'static str],
    /// Kinds of functions that belong to no type if they are outside types: methods of object literals.
    pub members: &'static [&'static str],
    /// Kinds of nodes that are not named functions but have a scope of their own, which contains their parameters.
    pub scopes: &'static [&'static str],
    /// Steps from a function outside types to the type that it is a method of.
    pub receiver: &'static [NodeStep],
    /// Steps from a method to the word `this`, which makes it callable on objects of another type.
    pub extension: &'static [NodeStep],
    /// Kinds of nodes that declare variables, parameters and fields.
    pub variables: &'static [Variable],
    /// Kinds of values and types of variables that are called like functions.
    pub function_values: &'static [&'static str],
    /// Returns the names that a statement exports.
    pub exports: fn(statement: Node<'_>, text: &str) -> Vec<Export>,
    /// Visibility of names in other files.
    pub visibility: NameVisibility,
    /// Whether an imported path that does not begin with a dot may be relative to the root of the repository or its `src`
    /// folder.
    pub imports_from_root: bool,
    /// Whether a type can be declared in several parts.
    pub has_parts: bool,
    /// Whether fields are accessed only through `this`.
    pub fields_need_this: bool,
}

impl TypeRules {
    /// Returns true if a file sees names of other files only if it imports them by name.
    pub fn are_files_modules(&self) -> bool {
        matches!(self.visibility, NameVisibility::Exports)
    }
}

/// Statement that names the namespace of the code.
#[derive(Debug)]
pub struct Namespace {
    /// Kind of the node.
    pub kind: &'static str,
    /// Step to its name.
    pub name: NodeStep,
    /// Whether it applies to everything after it in the file.
    pub is_whole_file: bool,
}

/// Name that a statement exports.
pub struct Export {
    /// Name that other files see.
    pub name: String,
    /// Name in the file; equal to the exported name unless it was renamed.
    pub local: String,
    /// Whether it is a function without a name of its own.
    pub is_function: bool,
}

/// Visibility of names in other files.
#[derive(Debug, Clone, Copy)]
pub enum NameVisibility {
    /// Full names; a shorter name is looked up in these scopes, in order.
    FullNames(&'static [NameScope]),
    /// Imports of files, and the names that these files export.
    Exports,
    /// Folders as packages: the files of a folder see all of each other's names. Names of other folders are seen through
    /// imports of paths that end in the folder's path.
    Folders,
}

/// Scope in which a name that is not a full name is looked up.
#[derive(Debug, Clone, Copy)]
pub enum NameScope {
    /// The names that imports bind.
    Imported,
    /// The enclosing namespace.
    Namespace,
    /// The enclosing namespaces, from the inside out.
    Namespaces,
    /// The namespaces and modules that are imported as a whole.
    OnDemand,
    /// The global scope, in which the name is already a full name.
    Full,
}

/// Kind of node that declares variables, parameters or fields.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Kind of the node.
    pub kind: &'static str,
    /// Steps to the nodes that declare one variable each.
    pub each: &'static [Steps],
    /// Steps from there to the names; a node that is not a plain name declares nothing.
    pub names: &'static [Steps],
    /// Declared type.
    pub declared: VariableType,
    /// Steps to the values, one for each name; if no type is declared, the type of a new object is used.
    pub values: &'static [Steps],
    /// Kinds of children that turn a parameter into a field of its class.
    pub field_if: &'static [&'static str],
    /// Whether it is also a method of its type, like a component of a Java record.
    pub is_method: bool,
}

impl Variable {
    /// Creates a variable without a type.
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

    /// Creates a variable whose type is in the field `type`.
    pub(crate) const fn with_type(kind: &'static str, names: &'static [Steps]) -> Self {
        Self { declared: VariableType::Type(&[NodeStep::Field("type")]), ..Self::new(kind, names) }
    }
}

/// Steps from a node to several others.
#[derive(Debug, Clone, Copy)]
pub enum Steps {
    /// One node.
    One(NodeStep),
    /// All children in a field.
    Field(&'static str),
    /// All named children.
    Named,
    /// All children of a kind.
    Children(&'static str),
}

/// Source of a variable's declared type.
#[derive(Debug, Clone, Copy)]
pub enum VariableType {
    /// No type.
    Nothing,
    /// The type at the end of these steps from the node.
    Type(&'static [NodeStep]),
    /// A type that no repository defines.
    Array,
    /// The enclosing type, as for a constant of an enum.
    Around,
}

/// Returns the value of a kind of node in a table.
pub fn find<T: Copy>(table: &[(&str, T)], kind: &str) -> Option<T> {
    let found = table.iter().find(|(listed, _)| *listed == kind);
    found.map(|(_, value)| *value)
}
