//! Declarations, imports and calls of one file.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use repoformer_text::language::syntax;
pub(super) use repoformer_text::language::syntax::{Callee, Receiver};

use super::full_name::FullName;
use crate::definitions::rows::{DefinitionKind, NameRows, Rows};

/// Declarations, imports and calls of one file.
#[derive(Debug, Default)]
pub struct Unit {
    /// Java's package or C#'s namespaces, which contain the file's types and determine what its code sees without an import.
    pub(super) namespaces: Vec<Namespace>,
    /// Go's package: the file's folder.
    pub(super) folder: String,
    /// Name of the package in Go, as importers write it.
    pub(super) package: String,
    pub(super) types: Vec<Type>,
    /// Numbers of the outermost types; of types with the same name, the first.
    pub(super) outer_types: HashMap<String, usize>,
    /// Names of the methods of all types.
    pub(super) methods: HashSet<String>,
    /// Functions outside types, including C#'s local functions.
    pub(super) functions: NameRows,
    /// Variables outside types and functions, at their first declaration.
    pub(super) values: NameRows,
    /// Names that TypeScript exports under another name: `default`, or `a` for `export { b as a }`.
    pub(super) exports: HashMap<String, String>,
    pub(super) imports: Imports,
    pub(super) scopes: Vec<Scope>,
    /// Calls, ordered by first line.
    pub(super) calls: Vec<Call>,
}

/// Namespace or package.
#[derive(Debug)]
pub(super) struct Namespace {
    /// Number of the enclosing namespace.
    pub(super) outer: Option<usize>,
    /// Full names of the prefixes: for `a.b`, the full names of `a` and `a.b`.
    pub(super) parts: Vec<FullName>,
}

impl Namespace {
    pub(super) fn path(&self) -> FullName {
        self.parts.last().copied().unwrap_or_default()
    }
}

/// Type of a variable or a field as declared; cheap to clone, since one declaration may have many variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeclaredType {
    Type(Arc<str>),
    Unknown,
}

impl From<syntax::DeclaredType> for DeclaredType {
    fn from(declared: syntax::DeclaredType) -> Self {
        match declared {
            syntax::DeclaredType::Type(name) => Self::Type(name.into()),
            syntax::DeclaredType::Unknown => Self::Unknown,
        }
    }
}

/// Class, interface, enum, or namespace of TypeScript.
#[derive(Debug, Default)]
pub(super) struct Type {
    pub(super) name: Arc<str>,
    /// Full name with its namespace and the enclosing types: `org.example.Outer.Inner`.
    pub(super) path: FullName,
    /// Number of its namespace.
    pub(super) namespace: Option<usize>,
    pub(super) methods: NameRows,
    /// Static methods that C# calls on objects of other types.
    pub(super) extensions: HashSet<String>,
    pub(super) fields: HashMap<String, DeclaredType>,
    /// Types that it extends and implements, as written.
    pub(super) supers: Vec<String>,
    /// Number of the enclosing type.
    pub(super) outer: Option<usize>,
    /// Number of the scope inside it.
    pub(super) inside: usize,
    pub(super) rows: Rows,
}

/// Part of a file in which variables are declared: a type, a function, or the file.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) parent: Option<usize>,
    /// Type whose members this scope contains.
    pub(super) of_type: Option<usize>,
    /// Innermost type that contains this scope.
    pub(super) in_type: Option<usize>,
    pub(super) rows: Rows,
    /// Variables of functions and files. A variable declared with two types has an unknown type.
    pub(super) variables: HashMap<String, DeclaredType>,
}

/// Distinct imports in the order of the text, indexed by name: a file may call as many names as it imports.
#[derive(Debug, Default)]
pub(super) struct Imports {
    all: Vec<Import>,
    /// Positions of the imports that bind a name, or bring in a member of that name.
    by_name: HashMap<String, Vec<u32>>,
    /// Positions of the imports that bring in all members of something.
    stars: Vec<u32>,
}

/// Greatest number of imports of one name, or with `*`, that a look-up considers, so that calls times imports stays bounded.
const MOST_ALIKE: usize = 256;

/// Greatest number of scopes, types and namespaces around a position that a look-up considers.
const MOST_SCOPES: usize = 256;
const MOST_OUTER_TYPES: usize = 64;
pub(super) const MOST_NAMESPACES: usize = 64;

impl FromIterator<Import> for Imports {
    fn from_iter<I: IntoIterator<Item = Import>>(imports: I) -> Self {
        let (mut found, mut seen) = (Self::default(), HashSet::default());
        for import in imports.into_iter().filter(|import| seen.insert(import.clone())) {
            let place = found.all.len() as u32;
            let mut enter = |name: &str| {
                let places = found.by_name.entry(name.to_owned()).or_default();
                if places.last() != Some(&place) {
                    places.push(place);
                }
            };
            enter(&import.local);
            match import.member.as_deref() {
                Some("*") => found.stars.push(place),
                Some(member) => enter(member),
                None => {}
            }
            found.all.push(import);
        }
        found
    }
}

impl Imports {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Import> {
        self.all.iter()
    }

    /// Returns the imports that bind a name, or bring in a member of that name.
    pub(super) fn imports_of(&self, name: &str) -> impl DoubleEndedIterator<Item = &Import> {
        self.at(self.by_name.get(name).map_or(&[], Vec::as_slice))
    }

    /// Returns the imports that bring in all members of something.
    pub(super) fn stars(&self) -> impl DoubleEndedIterator<Item = &Import> {
        self.at(&self.stars)
    }

    fn at<'p>(&'p self, places: &'p [u32]) -> impl DoubleEndedIterator<Item = &'p Import> {
        places[..places.len().min(MOST_ALIKE)].iter().map(|place| &self.all[*place as usize])
    }
}

/// Import of one name, or of all members of a package.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Import {
    pub(super) from: String,
    /// Source of the import as the name of a type or a namespace.
    pub(super) path: FullName,
    /// Imported member: `*` for all; none for the source itself.
    pub(super) member: Option<String>,
    /// Local name; empty if no name is bound.
    pub(super) local: String,
    pub(super) is_static: bool,
    pub(super) is_passed_on: bool,
}

/// Call without a syntax error.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) rows: Rows,
    /// Scope that contains it.
    pub(super) scope: usize,
    pub(super) callee: Callee,
}

impl Unit {
    /// Returns the names that the file's imports bind.
    pub(crate) fn imported_names(&self) -> impl Iterator<Item = &str> {
        let named = self.imports.iter().filter(|import| !import.is_passed_on);
        named.map(|import| import.local.as_str()).filter(|local| !local.is_empty())
    }

    /// Returns a scope and the scopes around it, innermost first.
    pub(super) fn outwards(&self, scope: usize) -> impl Iterator<Item = &Scope> {
        let parent = |scope: &&Scope| scope.parent.and_then(|parent| self.scopes.get(parent));
        std::iter::successors(self.scopes.get(scope), parent).take(MOST_SCOPES)
    }

    /// Returns the numbers of the types around a scope, innermost first.
    pub(super) fn types_around(&self, scope: usize) -> impl Iterator<Item = usize> {
        let innermost = self.scopes.get(scope).and_then(|scope| scope.in_type);
        let outwards = std::iter::successors(innermost, |number| self.types[*number].outer);
        outwards.take(MOST_OUTER_TYPES)
    }

    /// Returns the full names of a namespace and of the namespaces around it, innermost first.
    pub(super) fn namespaces_around(&self, number: usize) -> impl Iterator<Item = FullName> {
        let outwards = std::iter::successors(self.namespaces.get(number), |inner| {
            self.namespaces.get(inner.outer?)
        });
        outwards.flat_map(|namespace| namespace.parts.iter().rev().copied())
    }

    /// Returns true if this file defines a function or method of this name.
    pub(super) fn defines(&self, name: &str) -> bool {
        self.functions.contains_key(name) || self.methods.contains(name)
    }

    /// Returns the function or variable outside types that a call of this name refers to.
    pub(super) fn find_called(&self, name: &str) -> Option<(Rows, DefinitionKind)> {
        let function = self.functions.get(name).map(|rows| (*rows, DefinitionKind::Function));
        function.or_else(|| Some((*self.values.get(name)?, DefinitionKind::Value)))
    }

    /// Returns everything that can be called outside types, with its name.
    pub(super) fn all_called(&self) -> impl Iterator<Item = (&str, Rows, DefinitionKind)> {
        let functions = self.functions.keys();
        let values = self.values.keys().filter(|name| !self.functions.contains_key(*name));
        functions.chain(values).filter_map(|name| {
            let (rows, kind) = self.find_called(name)?;
            Some((name.as_str(), rows, kind))
        })
    }

    /// Returns true if the file has an outermost type of this name.
    pub(super) fn has_outer_type(&self, name: &str) -> bool {
        self.outer_types.contains_key(name)
    }

    /// Returns the outermost type of this name.
    pub(super) fn outer_type(&self, name: &str) -> Option<&Type> {
        self.outer_types.get(name).map(|number| &self.types[*number])
    }

    /// Returns the innermost scope that contains the text between a row and the row before.
    pub(super) fn scope_before(&self, row: u32) -> usize {
        let around = |scope: &Scope| scope.rows.start < row && row < scope.rows.end;
        // Inner scopes follow the scopes around them.
        self.scopes.iter().rposition(around).unwrap_or(0)
    }

    /// Returns the names of the variables outside functions and types.
    pub(super) fn variables(&self) -> impl Iterator<Item = &str> {
        self.scopes.first().into_iter().flat_map(|scope| scope.variables.keys().map(String::as_str))
    }

    /// Returns a variable outside functions and types.
    pub(super) fn variable(&self, name: &str) -> Option<&DeclaredType> {
        self.scopes.first()?.variables.get(name)
    }

    /// Returns true if the file has an outermost type, function or constant of this name.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.functions.contains_key(name)
            || self.variable(name).is_some()
            || self.has_outer_type(name)
    }
}
