//! Search for the file that defines a callee: imports are followed through the repository as Python follows them.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use repoformer_text::language::LanguageSpec;

use super::names::{ModuleItem, ModuleNames, Target};
use crate::definitions::rows::{Definition, DefinitionKind, Rows, SourcePaths};

/// Greatest number of modules that one look-up visits, and of imports followed in a row: nested stars must end.
const MOST_VISITS: usize = 512;
const MOST_IMPORTS: usize = 64;

/// Greatest number of imports that one look-up follows, including imports that lead out of the repository.
const MOST_FOLLOWED: usize = 1024;

/// Greatest number of names by which a module is found from everywhere: each file has a name for each of its folders.
const DEEPEST_NAME: usize = 64;

/// Modules of a repository and their definitions.
pub(super) struct Modules<'a> {
    names: &'a [Arc<ModuleNames>],
    spec: &'static LanguageSpec,
    /// Folder and module of each file: `repo/a/b` for `repo/a/b.py` and for `repo/a/b/__init__.py`.
    paths: Vec<ModulePath<'a>>,
    by_path: HashMap<&'a str, usize>,
    /// Greatest number of names in the path of a module.
    deepest: usize,
    /// Folders with an `__init__.py`. Modules in them are not imported by their own name; otherwise, each `logging.py` would
    /// pass for Python's.
    packages: HashSet<&'a str>,
    /// Maps an absolute dotted name to its module as seen from most places: the one nearest to the repository's folder.
    absolute: HashMap<String, Nearest>,
    /// Names that some file defines or imports; a star import can lead to no other name.
    bound: HashSet<&'a str>,
    /// Maps a method to its last definition in the only file that defines it; none if several files do.
    methods: HashMap<&'a str, Option<Definition>>,
}

#[derive(Clone, Copy)]
struct ModulePath<'a> {
    /// Folder of the file, from which relative imports start.
    folder: &'a str,
    module: &'a str,
}

struct Nearest {
    /// Number of folders above the import's start.
    depth: usize,
    file: usize,
}

/// Target of a chain of attributes.
enum ChainTarget {
    /// Function, class or method of a class.
    Definition(Definition),
    /// Variable of a module.
    Value(Definition),
    /// Unknown attribute of something in the repository.
    Attribute,
    Nothing,
}

/// Modules that one look-up has visited. Modules import each other in circles, and star imports lead to one module in many
/// ways.
#[derive(Default)]
struct Search {
    /// Module and the name looked up in it.
    visited: HashSet<(usize, String)>,
    imports: usize,
    followed: usize,
}

impl<'a> Modules<'a> {
    /// Prepares look-ups; `names` has an entry for each file of the repository.
    pub(super) fn new(
        files: &SourcePaths<'a>,
        spec: &'static LanguageSpec,
        names: &'a [Arc<ModuleNames>],
    ) -> Self {
        let paths: Vec<_> = files.files.iter().map(|file| module_path(file.path)).collect();
        let is_package = |path: &&ModulePath<'a>| path.folder == path.module;
        let mut modules = Self {
            names,
            spec,
            by_path: HashMap::default(),
            deepest: paths
                .iter()
                .map(|path| path.module.split(['/', '.']).count())
                .max()
                .unwrap_or(0),
            packages: paths.iter().filter(is_package).map(|path| path.module).collect(),
            absolute: HashMap::default(),
            bound: HashSet::default(),
            methods: HashMap::default(),
            paths,
        };
        for (index, path) in files.files.iter().enumerate() {
            modules.add(index, path.file);
        }
        modules
    }

    /// Adds file `file` under the name that path `index` gives it.
    fn add(&mut self, index: usize, file: usize) {
        let ModulePath { folder, module } = self.paths[index];
        // A package hides a module of the same name.
        if folder == module || !self.by_path.contains_key(module) {
            self.by_path.insert(module, file);
        }
        let count = module.matches('/').count();
        for (depth, (at, _)) in module.match_indices('/').enumerate() {
            let is_too_deep = count - depth > DEEPEST_NAME;
            if is_too_deep || depth > 0 && self.packages.contains(&module[..at]) {
                continue;
            }
            let name = module[at + 1..].replace('/', ".");
            let nearest = self.absolute.entry(name).or_insert(Nearest { depth, file });
            if depth < nearest.depth {
                *nearest = Nearest { depth, file };
            }
        }
        let names = &self.names[file];
        self.bound.extend(names.defined.keys().map(String::as_str));
        self.bound.extend(names.imports.keys().map(String::as_str));
        for (method, rows) in &names.methods {
            let here = Definition::new(file, *rows, DefinitionKind::Function);
            let home = self.methods.entry(method).or_insert(Some(here));
            *home = home.filter(|home| home.file == here.file).map(|_| here);
        }
    }

    /// Returns the definition that a chain of names, such as `["a", "f"]` for `a.f`, refers to in `file`, if the definition is
    /// in another file. `names` are the file's names.
    ///
    /// Names are resolved through imports. A method of an object of unknown class counts if only a single file defines a method
    /// of that name, and if objects of other libraries have no such method.
    pub(super) fn in_another_file(
        &self,
        file: usize,
        names: &ModuleNames,
        chain: &[&str],
    ) -> Option<Definition> {
        let (first, rest) = chain.split_first()?;
        let search = &mut Search::default();
        let found = if names.local.contains(*first) {
            ChainTarget::Attribute
        } else if let Some(targets) = names.imports.get(*first) {
            self.any(file, targets, rest, search)
        } else {
            match self.resolve_starred(file, names, chain, search) {
                ChainTarget::Nothing => ChainTarget::Attribute,
                found => found,
            }
        };
        match (found, rest.last()) {
            (ChainTarget::Definition(found) | ChainTarget::Value(found), _) => {
                (found.file as usize != file).then_some(found)
            }
            (ChainTarget::Attribute, Some(method)) => {
                self.method_of_another_file(file, names, method)
            }
            _ => None,
        }
    }

    fn method_of_another_file(
        &self,
        file: usize,
        names: &ModuleNames,
        method: &str,
    ) -> Option<Definition> {
        let home = self.methods.get(method).copied().flatten();
        home.filter(|home| {
            home.file as usize != file
                && !names.local.contains(method)
                && !method.starts_with("__")
                && !self.spec.is_common_method(method)
        })
    }

    /// Returns the target of a name that only `from module import *` can bind in file `from`.
    fn resolve_starred(
        &self,
        from: usize,
        names: &ModuleNames,
        chain: &[&str],
        search: &mut Search,
    ) -> ChainTarget {
        let stars = if self.bound.contains(chain[0]) { &names.stars[..] } else { &[] };
        self.any(from, stars, chain, search)
    }

    /// Returns the first target that leads to a definition.
    fn any(
        &self,
        from: usize,
        targets: &[Target],
        rest: &[&str],
        search: &mut Search,
    ) -> ChainTarget {
        first_definition(targets.iter().map_while(|target| {
            search.followed += 1;
            let goes_on = search.visited.len() < MOST_VISITS && search.followed <= MOST_FOLLOWED;
            goes_on.then(|| self.follow(from, target, rest, search))
        }))
    }

    /// Resolves `rest` in the target that an import in file `from` binds. Only the files show how much of the dotted name is
    /// the module.
    fn follow(
        &self,
        from: usize,
        target: &Target,
        rest: &[&str],
        search: &mut Search,
    ) -> ChainTarget {
        let module = target.module.split('.').filter(|part| !part.is_empty());
        let mut chain: Vec<&str> = module.take(self.deepest + 1).collect();
        // The name after `from` is a complete module; otherwise the import fails, as for a compiled module.
        let shortest = chain.len();
        if shortest > self.deepest {
            return ChainTarget::Nothing;
        }
        chain.extend(target.member.as_deref());
        chain.extend_from_slice(rest);
        first_definition((shortest..=chain.len().min(self.deepest)).rev().filter_map(|cut| {
            let file = self.module(from, target.level, &chain[..cut])?;
            search.imports += 1;
            let found = self.within(file, &chain[cut..], search);
            search.imports -= 1;
            Some(found)
        }))
    }

    /// Returns the target of a chain of names inside a module.
    fn within(&self, file: usize, chain: &[&str], search: &mut Search) -> ChainTarget {
        let ([first, rest @ ..], names) = (chain, &self.names[file]) else {
            return ChainTarget::Nothing;
        };
        if !names.is_read
            || search.imports > MOST_IMPORTS
            || search.visited.len() >= MOST_VISITS
            || !search.visited.insert((file, chain.join(".")))
        {
            return ChainTarget::Nothing;
        }
        let found = |rows: &Rows, kind| ChainTarget::Definition(Definition::new(file, *rows, kind));
        match (names.defined.get(*first), rest) {
            (Some(ModuleItem::Function(rows)), []) => return found(rows, DefinitionKind::Function),
            (Some(ModuleItem::Class(rows, _)), []) => return found(rows, DefinitionKind::Type),
            (Some(ModuleItem::Class(_, methods)), [method]) => {
                let rows = methods.get(*method);
                return rows
                    .map_or(ChainTarget::Attribute, |rows| found(rows, DefinitionKind::Function));
            }
            (Some(_), _) => return ChainTarget::Nothing,
            (None, _) => {}
        }
        if let Some(targets) = names.imports.get(*first) {
            return self.any(file, targets, rest, search);
        }
        match (self.resolve_starred(file, names, chain, search), names.values.get(*first)) {
            // Object of unknown class at a module's top level.
            (ChainTarget::Nothing, _) if !rest.is_empty() => ChainTarget::Attribute,
            (ChainTarget::Nothing, Some(rows)) => {
                ChainTarget::Value(Definition::new(file, *rows, DefinitionKind::Value))
            }
            (found, _) => found,
        }
    }

    /// Returns the file of a module as named in file `from`: with level 0 from anywhere, else relative to the folder that many
    /// levels up.
    fn module(&self, from: usize, level: usize, parts: &[&str]) -> Option<usize> {
        let mut folder = self.paths[from].folder;
        for _ in 1..level {
            folder = folder.rsplit_once('/')?.0;
        }
        // A script finds its neighbours first.
        if level > 0 || !self.packages.contains(folder) {
            let path = [&[folder], parts].concat().join("/");
            if let Some(&file) = self.by_path.get(path.as_str()) {
                return Some(file);
            }
        }
        let nearest = (level == 0).then(|| self.absolute.get(&parts.join(".")))?;
        nearest.map(|nearest| nearest.file)
    }
}

/// Returns the first definition, or else the first attribute, or else the first value.
fn first_definition(all: impl Iterator<Item = ChainTarget>) -> ChainTarget {
    let mut best = ChainTarget::Nothing;
    for found in all {
        match (&found, &best) {
            (ChainTarget::Definition(_), _) => return found,
            (ChainTarget::Attribute, _) | (ChainTarget::Value(_), ChainTarget::Nothing) => {
                best = found
            }
            _ => {}
        }
    }
    best
}

fn module_path(path: &str) -> ModulePath<'_> {
    let module = path.strip_suffix(".py").unwrap_or(path);
    let folder = module.rsplit_once('/').map_or("", |(folder, _)| folder);
    let module = module.strip_suffix("/__init__").unwrap_or(module);
    ModulePath { folder, module }
}
