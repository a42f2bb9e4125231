//! Which type a name means where it stands.

use super::exports::Export;
use super::resolve::{Program, TypeId};
use super::unit::Unit;
use crate::text::language::Language;

impl Program<'_> {
    /// The types that a dotted name means within a scope of a file; several for the parts of a partial class.
    pub(super) fn types_named(&self, file: usize, scope: usize, name: &str) -> Vec<TypeId> {
        let Some(unit) = &self.units[file] else {
            return Vec::new();
        };
        let own = self.nested_or_around(file, unit, scope, name);
        if !own.is_empty() {
            return own;
        }
        match self.language {
            Language::TypeScript => self.typescript_type(file, unit, name),
            Language::Java => self.first_of(java_paths(unit, name).into_iter()),
            _ => self.first_of(self.csharp_paths(unit, scope, name).into_iter()),
        }
    }

    /// A type around the scope, or one within a type around it.
    fn nested_or_around(&self, file: usize, unit: &Unit, scope: usize, name: &str) -> Vec<TypeId> {
        let (first, rest) = name
            .split_once('.')
            .map_or((name, None), |(first, rest)| (first, Some(rest)));
        for number in unit.types_around(scope) {
            let around = &unit.types[number];
            let path = match (around.name == first, rest) {
                (true, None) => return self.parts(file, number),
                (true, Some(rest)) => format!("{}.{rest}", around.path),
                (false, _) => format!("{}.{name}", around.path),
            };
            let found = self.at_path(file, &path);
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// The types with this path; TypeScript's files know nothing of each other's.
    fn at_path(&self, file: usize, path: &str) -> Vec<TypeId> {
        let known = self.by_path.get(path).map_or(&[][..], Vec::as_slice);
        let is_seen = |id: &&TypeId| self.language != Language::TypeScript || id.file == file;
        known.iter().filter(is_seen).copied().collect()
    }

    /// A type and, where it is partial, its other parts.
    pub(super) fn parts(&self, file: usize, number: usize) -> Vec<TypeId> {
        let path = self.units[file]
            .as_ref()
            .map(|unit| &unit.types[number].path);
        match (self.language, path) {
            (Language::CSharp, Some(path)) => self.at_path(file, path),
            _ => vec![TypeId { file, number }],
        }
    }

    fn first_of(&self, mut paths: impl Iterator<Item = String>) -> Vec<TypeId> {
        let found = paths.find_map(|path| self.by_path.get(path.as_str()));
        found.cloned().unwrap_or_default()
    }

    fn typescript_type(&self, file: usize, unit: &Unit, name: &str) -> Vec<TypeId> {
        let own = self.at_path(file, name);
        if !own.is_empty() {
            return own;
        }
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        if unit.scopes[0].variables.contains_key(first) {
            return Vec::new();
        }
        let export = match self.modules.brought_in(file, first) {
            Some(Export::Module(module)) if !rest.is_empty() => {
                let (member, _) = rest.split_once('.').unwrap_or((rest, ""));
                let export = self.modules.exported(module, member);
                return self.exported_types(export, rest.strip_prefix(member).unwrap_or_default());
            }
            export => export,
        };
        let rest = name.strip_prefix(first).unwrap_or_default();
        self.exported_types(export, rest)
    }

    fn exported_types(&self, export: Option<Export>, rest: &str) -> Vec<TypeId> {
        match export {
            Some(Export::Declared { file, name }) => self.at_path(file, &format!("{name}{rest}")),
            _ => Vec::new(),
        }
    }

    /// Full names that a name may be short for in C#, in the order in which the language looks for them.
    fn csharp_paths(&self, unit: &Unit, scope: usize, name: &str) -> Vec<String> {
        let around = unit.types_around(scope).next();
        let namespaces = match around {
            Some(number) => vec![unit.types[number].namespace.as_str()],
            None => unit.namespaces.iter().map(String::as_str).collect(),
        };
        let mut paths = Vec::new();
        for namespace in namespaces {
            let mut outer = namespace;
            while !outer.is_empty() {
                paths.push(format!("{outer}.{name}"));
                outer = outer.rsplit_once('.').map_or("", |(outer, _)| outer);
            }
        }
        paths.push(name.to_owned());
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        for import in unit
            .imports
            .iter()
            .chain(self.global_imports.iter().copied())
        {
            if import.local == first {
                let separator = if rest.is_empty() { "" } else { "." };
                paths.push(format!("{}{separator}{rest}", import.from));
            } else if import.local.is_empty() {
                paths.push(format!("{}.{name}", import.from));
            }
        }
        paths
    }
}

/// Full names that a name may be short for in Java, in the order in which the language looks for them.
fn java_paths(unit: &Unit, name: &str) -> Vec<String> {
    let (first, rest) = name.split_once('.').unwrap_or((name, ""));
    let member = |import: &&super::unit::Import| import.member.as_deref() == Some(first);
    let single = unit.imports.iter().filter(member);
    let separator = if rest.is_empty() { "" } else { "." };
    let mut paths: Vec<String> = single
        .map(|import| format!("{}.{first}{separator}{rest}", import.from))
        .collect();
    match unit.namespaces.first() {
        Some(package) => paths.push(format!("{package}.{name}")),
        None => paths.push(name.to_owned()),
    }
    let all = unit
        .imports
        .iter()
        .filter(|import| import.member.as_deref() == Some("*"));
    paths.extend(all.map(|import| format!("{}.{name}", import.from)));
    paths.push(name.to_owned());
    paths
}
