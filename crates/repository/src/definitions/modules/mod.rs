//! Definitions through imports, in Python, whose files are modules.

mod names;
mod resolve;

use std::sync::Arc;

use names::ModuleItem;
pub(crate) use names::ModuleNames;

use repoformer_text::language::LanguageSpec;
use resolve::Modules;

use super::found::FoundDefinitions;
use super::rows::{Definition, DefinitionKind, Rows, SourcePaths};

/// Files of a repository, ready for look-ups.
pub(super) struct Imports<'a> {
    modules: Modules<'a>,
    names: &'a [Arc<ModuleNames>],
}

impl<'a> Imports<'a> {
    /// Prepares look-ups; `names` has an entry for each file.
    pub(super) fn new(
        files: &SourcePaths<'a>,
        spec: &'static LanguageSpec,
        names: &'a [Arc<ModuleNames>],
    ) -> Self {
        Self { modules: Modules::new(files, spec, names), names }
    }

    /// Returns the calls of one file, with their definitions in other files.
    pub(super) fn calls(&self, file: usize) -> Vec<(Rows, FoundDefinitions)> {
        let names = &self.names[file];
        let definition = |callee: &String| {
            let chain: Vec<&str> = callee.split('.').collect();
            let found = self.modules.in_another_file(file, names, &chain);
            let found = found.filter(|found| found.kind != DefinitionKind::Value);
            found.into_iter().collect()
        };
        let definitions: Vec<FoundDefinitions> = names.callees.iter().map(definition).collect();
        let calls = names.calls.iter();
        let calls = calls.map(|call| (call.rows, definitions[call.callee].clone()));
        calls.filter(|(_, found)| !found.is_empty()).collect()
    }

    /// Returns the classes of one file, with their methods.
    pub(super) fn types(&self, file: usize) -> Vec<(Definition, Vec<Rows>)> {
        let defined = self.names[file].defined.values();
        let classes = defined.filter_map(|defined| match defined {
            ModuleItem::Class(rows, methods) => {
                let class = Definition::new(file, *rows, DefinitionKind::Type);
                Some((class, methods.values().copied().collect()))
            }
            ModuleItem::Function(_) => None,
        });
        classes.collect()
    }

    /// Returns the definition that a chain of names refers to in a file with these `names`, if it is in another file.
    pub(super) fn resolve_chain(
        &self,
        file: usize,
        names: &ModuleNames,
        chain: &[&str],
    ) -> Option<Definition> {
        self.modules.in_another_file(file, names, chain)
    }
}
