//! Resolution of a name to the type that it refers to at a position.

use std::sync::Arc;

use repoformer_text::language::{NameScope, NameVisibility};

use super::exports::Export;
use super::full_name::{DottedName, FullName};
use super::resolve::{FilePosition, Program, TypeId};
use super::sets::TypeSet;
use super::unit::{Import, MOST_NAMESPACES};
use crate::definitions::LONGEST_NAME;

impl<'a> Program<'a> {
    /// Returns the types that a dotted name refers to inside a scope of a file; several for the parts of a partial class.
    pub(super) fn types_named(&self, place: FilePosition, name: &str) -> Option<Arc<TypeSet<'a>>> {
        if name.len() > LONGEST_NAME {
            return None;
        }
        let own = self.nested_or_around(place, name);
        if own.is_some() {
            return own;
        }
        match self.rules.visibility {
            NameVisibility::FullNames(order) => self.first_seen(place, name, order),
            NameVisibility::Exports => self.typescript_type(place.file, name),
            NameVisibility::Folders => {
                self.first_seen(place, name, &[NameScope::Namespace, NameScope::Imported])
            }
        }
    }

    /// Returns a type around the scope, or a type nested in one of these.
    fn nested_or_around(
        &self,
        FilePosition { file, scope }: FilePosition,
        name: &str,
    ) -> Option<Arc<TypeSet<'a>>> {
        let unit = self.unit(file);
        let (first, rest) =
            name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
        let (whole, rest) = (DottedName::new(name), rest.map(DottedName::new));
        for number in unit.types_around(scope) {
            let around = &unit.types[number];
            let within = match (&*around.name == first, rest) {
                (true, None) => return self.parts(file, number),
                (true, Some(rest)) => rest,
                (false, _) => whole,
            };
            // The whole file sees the content of a class without a name.
            if around.path == FullName::EMPTY {
                continue;
            }
            let found = self.with_path(file, around.path.join(within));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Returns a type and its other parts, if it is partial.
    pub(super) fn parts(&self, file: usize, number: usize) -> Option<Arc<TypeSet<'a>>> {
        let found = &self.unit(file).types[number];
        if self.rules.has_parts {
            return self.with_path(file, found.path);
        }
        TypeSet::new(vec![(TypeId { file, number }, found)])
    }

    fn typescript_type(&self, file: usize, name: &str) -> Option<Arc<TypeSet<'a>>> {
        let own = self.with_path(file, FullName::new(name));
        if own.is_some() {
            return own;
        }
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        if self.unit(file).variable(first).is_some() {
            return None;
        }
        let export = match self.brought_in(file, first) {
            Some(Export::Module(module)) if !rest.is_empty() => {
                let (member, _) = rest.split_once('.').unwrap_or((rest, ""));
                let export = self.modules.resolve_export(module, member);
                return self.exported_types(export, rest.strip_prefix(member).unwrap_or_default());
            }
            export => export,
        };
        let rest = name.strip_prefix(first).unwrap_or_default();
        self.exported_types(export, rest)
    }

    fn exported_types(&self, export: Option<Export>, rest: &str) -> Option<Arc<TypeSet<'a>>> {
        match export {
            Some(Export::Declared { file, name }) => {
                self.with_path(file, FullName::new(&format!("{name}{rest}")))
            }
            _ => None,
        }
    }

    /// Returns the first type among the full names that a name may be short for.
    fn first_seen(
        &self,
        FilePosition { file, scope }: FilePosition,
        name: &str,
        order: &[NameScope],
    ) -> Option<Arc<TypeSet<'a>>> {
        let unit = self.unit(file);
        let (first, _) = name.split_once('.').unwrap_or((name, ""));
        let around = unit.types_around(scope).next();
        let namespaces = match around {
            Some(number) => unit.types[number].namespace.map_or(0..0, |one| one..one + 1),
            None => 0..unit.namespaces.len().min(MOST_NAMESPACES),
        };
        let global = &self.maps.global_imports;
        let whole = DottedName::new(name);
        let below = |outer: FullName, name| self.with_path(file, outer.join(name));
        order.iter().find_map(|seen| match seen {
            NameScope::Imported => {
                unit.imports.imports_of(first).chain(global.imports_of(first)).find_map(|import| {
                    let from = self.home(import)?;
                    match import.member.as_deref() {
                        Some(member) if member == first => below(from, whole),
                        None if import.local == first => {
                            let rest = name.strip_prefix(first)?;
                            match rest.strip_prefix('.') {
                                Some(rest) => below(from, DottedName::new(rest)),
                                None => self.with_path(file, from),
                            }
                        }
                        _ => None,
                    }
                })
            }
            NameScope::Namespace if namespaces.is_empty() => below(FullName::EMPTY, whole),
            NameScope::Namespace => {
                namespaces.clone().find_map(|outer| below(unit.namespaces[outer].path(), whole))
            }
            NameScope::Namespaces => {
                let all = namespaces.clone().flat_map(|inner| unit.namespaces_around(inner));
                all.take(MOST_NAMESPACES).find_map(|outer| below(outer, whole))
            }
            NameScope::OnDemand => {
                let mut all = unit.imports.stars().chain(global.stars());
                all.find_map(|import| below(self.home(import)?, whole))
            }
            NameScope::Full => below(FullName::EMPTY, whole),
        })
    }

    /// Returns the namespace, or the package's folder, from which an import brings something in.
    fn home(&self, import: &Import) -> Option<FullName> {
        match self.rules.visibility {
            NameVisibility::Folders => {
                self.folders.imported_folder(&import.from).map(FullName::new)
            }
            _ => Some(import.path),
        }
    }
}
