//! Calls of what another file defines, in languages that declare types: Java, C# and TypeScript.
//!
//! A call counts where what it calls is defined in another file of the repository and not in its own. What that is goes
//! by the names alone, as far as one file at a time shows them; overloads are one name.
//!
//! - **`new T()`**, and `T.m()` of a static method: `T` is what the language sees under that name. Java: a type around
//!   or in the same file, a single import, the same package, an import on demand, a full name. C#: a type around, the
//!   namespaces around from the inside out, an alias, the `using`s of the file and the global ones, a full name.
//!   TypeScript: the file's own, then an import, followed through `export … from` to the file that declares it; `./x`
//!   means `x.ts`, `x.tsx`, `x.d.ts`, `x/index.ts` or `x/index.tsx`, with `.js` and the like dropped; another path counts
//!   from the repository's folder or its `src`, and packages do not count.
//! - **`m()`**: a method of a type around that it inherits, or that another part of a partial class has; one that
//!   `import static`, `using static` or a TypeScript import brings in.
//! - **`x.m()`**: the declared type of the variable, parameter or field `x` says whose `m` it is; fields of fields are
//!   followed, `new`, casts, `this` and `super` too. A type of the repository without an `m` is asked for those that it
//!   extends, and in C# for an extension method. A type from elsewhere has none of the repository's methods.
//! - **`(…).m()`**, and where the type shows nowhere (`var x = f()`): a single file has a class or interface with a method
//!   of that name, and the name is none that the platform's objects have too.

mod exports;
mod folders;
mod read;
mod resolve;
mod unit;
mod visible;

pub(super) use unit::Unit;

use std::ops::Range;

use crate::repository::corpus::Repository;
use crate::repository::parallel;
use crate::text::language::{Language, TypeRules};
use resolve::Program;

/// Per file the lines of the calls that count, ordered by their first line.
pub(super) fn calls_of_others(
    repository: &Repository,
    language: Language,
    rules: &TypeRules,
    units: &[Unit],
) -> Vec<Vec<Range<usize>>> {
    let program = Program::new(repository, language, rules, units);
    let of_file = |(file, unit): (usize, &Unit)| {
        let counting = unit.calls.iter().filter(|call| program.is_in_another_file(file, call));
        counting.map(|call| call.lines.clone()).collect()
    };
    parallel::map(units.iter().enumerate(), of_file)
}

#[cfg(test)]
mod tests;
