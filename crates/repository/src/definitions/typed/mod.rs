//! Definitions by declared types: Java, C#, TypeScript and Go. JavaScript's are found by its modules and by the types after
//! `new`.
//!
//! A call counts if its callee is defined in another file of the repository and not in its own. The callee is derived only from
//! names, as far as single files show them; overloads count as one name.
//!
//! - **`new T()`**, and `T.m()` of a static method: `T` is the type that the language sees under that name. Java: an enclosing
//!   type or a type of the same file, a single import, the same package, an import on demand, a full name. C#: an enclosing
//!   type, the enclosing namespaces from the inside out, an alias, the `using`s of the file and the global ones, a full name.
//!   TypeScript: the file's own types, then an import, followed through `export … from` to the file that declares the type.
//!   `./x` refers to `x.ts`, `x.tsx`, `x.d.ts`, `x/index.ts` or `x/index.tsx`, with `.js` and similar extensions dropped;
//!   `./x.mjs` refers to `x.mts` or `x.d.mts` first, and `./x.cjs` the same with `c`. Another path starts at the repository's
//!   folder or its `src`, and packages do not count. JavaScript: the same with its own extensions, and with `require` and
//!   `module.exports` as well as `import` and `export`; only paths that begin with a dot count.
//! - **`m()`**: a method of an enclosing type, including inherited methods and methods of other parts of a partial class; or a
//!   method that `import static`, `using static` or a TypeScript import brings in.
//! - **`x.m()`**: the declared type of the variable, parameter or field `x` determines the type of `m`. Fields of fields are
//!   followed, as are `new`, casts, `this` and `super`. If a type of the repository lacks `m`, the search continues in its
//!   supertypes, and in C# in extension methods. A type from elsewhere has none of the repository's methods.
//! - **`(…).m()`**, and any call whose receiver type is not visible (`var x = f()`): a single file has a class or interface
//!   with a method of that name, and the platform's objects have no such method.

mod exports;
mod folders;
mod full_name;
mod read;
mod resolve;
mod sets;
mod unit;
mod visible;

pub(crate) use unit::Unit;

use std::sync::Arc;

use repoformer_text::language::{Language, TypeRules};
use resolve::{FilePosition, Program};

use super::found::FoundDefinitions;
use super::rows::{Definition, DefinitionKind, Rows, SourcePaths};

/// Files of a repository, ready for look-ups.
pub(super) struct Types<'a> {
    program: Program<'a>,
    units: &'a [Arc<Unit>],
}

impl<'a> Types<'a> {
    /// Prepares look-ups; `units` has an entry for each file.
    pub(super) fn new(
        files: &'a SourcePaths<'a>,
        language: Language,
        rules: &'a TypeRules,
        units: &'a [Arc<Unit>],
    ) -> Self {
        Self { program: Program::new(files, language, rules, units), units }
    }

    /// Returns the calls of one file, with their definitions in other files.
    pub(super) fn calls(&self, file: usize) -> Vec<(Rows, FoundDefinitions)> {
        let calls = self.units[file].calls.iter();
        let of_call = |call: &unit::Call| {
            let place = FilePosition { file, scope: call.scope };
            (call.rows, self.program.resolve_callee(place, &call.callee))
        };
        calls.map(of_call).filter(|(_, found)| !found.is_empty()).collect()
    }

    /// Returns the types of one file, with their methods.
    pub(super) fn types(&self, file: usize) -> Vec<(Definition, Vec<Rows>)> {
        let types = self.units[file].types.iter();
        let of_type = |found: &unit::Type| {
            let definition = Definition::new(file, found.rows, DefinitionKind::Type);
            (definition, found.methods.values().copied().collect())
        };
        types.map(of_type).collect()
    }

    /// Returns a function that looks up chains of names before a row of a file, whose current names are `unit`.
    pub(crate) fn within<'n>(
        &'n self,
        file: usize,
        unit: &'n Unit,
        row: u32,
    ) -> impl Fn(&[&str]) -> FoundDefinitions + 'n {
        let program = self.program.with(file, unit);
        let place = FilePosition { file: program.own_file(), scope: unit.scope_before(row) };
        move |chain| program.resolve_chain(place, chain)
    }
}
