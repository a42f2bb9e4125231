//! Definitions by declared types: Java, C#, TypeScript and Go; JavaScript by its modules and by the types after `new`.
//!
//! A call counts if its callee is defined in another file of the repository and not in its own. The callee follows from the
//! names alone, as far as one file at a time shows them; overloads are one name.
//!
//! - **`new T()`**, and `T.m()` of a static method: `T` is what the language sees under that name. Java: a type around
//!   or in the same file, a single import, the same package, an import on demand, a full name. C#: a type around, the
//!   namespaces around from the inside out, an alias, the `using`s of the file and the global ones, a full name.
//!   TypeScript: the file's own, then an import, followed through `export … from` to the file that declares it; `./x`
//!   means `x.ts`, `x.tsx`, `x.d.ts`, `x/index.ts` or `x/index.tsx`, with `.js` and the like dropped; `./x.mjs`
//!   means `x.mts` or `x.d.mts` first, and `./x.cjs` the same with `c`; another path starts at the repository's folder or its
//!   `src`, and packages do not count. JavaScript: the same with its own endings, and `require` and `module.exports` as well as
//!   `import` and `export`; only paths that begin with a dot count.
//! - **`m()`**: a method of a type around that it inherits, or that another part of a partial class has; one that
//!   `import static`, `using static` or a TypeScript import brings in.
//! - **`x.m()`**: the declared type of the variable, parameter or field `x` decides whose `m` it is; fields of fields are
//!   followed, also `new`, casts, `this` and `super`. If a type of the repository lacks `m`, the search goes on in its
//!   supertypes, and in C# in extension methods. A type from elsewhere has none of the repository's methods.
//! - **`(…).m()`**, and if the type shows nowhere (`var x = f()`): a single file has a class or interface with a method
//!   of that name, and the platform's objects have no such method.

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

/// The files of a repository, ready for look-ups.
pub(super) struct Types<'a> {
    program: Program<'a>,
    units: &'a [Arc<Unit>],
}

impl<'a> Types<'a> {
    /// `units` has an entry for each file.
    pub(super) fn new(
        files: &'a SourcePaths<'a>,
        language: Language,
        rules: &'a TypeRules,
        units: &'a [Arc<Unit>],
    ) -> Self {
        Self { program: Program::new(files, language, rules, units), units }
    }

    /// Calls of one file, with the definitions in other files.
    pub(super) fn calls(&self, file: usize) -> Vec<(Rows, FoundDefinitions)> {
        let calls = self.units[file].calls.iter();
        let of_call = |call: &unit::Call| {
            let place = FilePosition { file, scope: call.scope };
            (call.rows, self.program.resolve_callee(place, &call.callee))
        };
        calls.map(of_call).filter(|(_, found)| !found.is_empty()).collect()
    }

    /// Types of one file, with their methods.
    pub(super) fn types(&self, file: usize) -> Vec<(Definition, Vec<Rows>)> {
        let types = self.units[file].types.iter();
        let of_type = |found: &unit::Type| {
            let definition = Definition::new(file, found.rows, DefinitionKind::Type);
            (definition, found.methods.values().copied().collect())
        };
        types.map(of_type).collect()
    }

    /// Looks up chains of names that stand before a row of a file that is `unit`.
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
