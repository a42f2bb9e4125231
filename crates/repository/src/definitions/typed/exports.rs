//! Modules of TypeScript and JavaScript: resolves paths to files, and exports to the files that declare them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::{HashMap, HashSet};
use repoformer_text::language::{NameVisibility, TypeRules, WHOLE};

use super::unit::{Import, Unit};
use crate::definitions::rows::SourcePaths;

/// Greatest number of files that a name passes through: modules export each other's names in circles.
const MOST_FILES: usize = 64;

/// Greatest number of imports that one look-up follows.
const MOST_FOLLOWED: usize = 1024;

/// Extensions of imports that specify a module's kind, and the extensions of the files that TypeScript reads for them.
const MODULE_SOURCES: [(&str, [&str; 2]); 2] =
    [(".mjs", [".mts", ".d.mts"]), (".cjs", [".cts", ".d.cts"])];

/// Modules of a repository by their paths.
pub(super) struct Modules<'a> {
    files: &'a SourcePaths<'a>,
    units: &'a [Arc<Unit>],
    /// `repo/a/b.ts`.
    by_name: HashMap<&'a str, usize>,
    /// Files by module path: `repo/a/b` for `repo/a/b.ts` and for `repo/a/b/index.ts`, which the former hides.
    by_path: HashMap<&'a str, usize>,
    imports_from_root: bool,
    /// Modules that each file re-exports completely.
    passed_on: Vec<Vec<usize>>,
    /// Paths that were looked up, by the importing file.
    paths: Mutex<HashMap<usize, HashMap<String, Option<usize>>>>,
    /// Exports that were looked up, by file and name.
    known: Mutex<HashMap<(usize, String), Option<Export>>>,
}

/// Target of an imported name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Export {
    /// Declaration of a file.
    Declared { file: usize, name: String },
    /// Whole file.
    Module(usize),
}

impl<'a> Modules<'a> {
    /// Prepares look-ups; contains no files if the language has no such modules.
    pub(super) fn new(
        files: &'a SourcePaths<'a>,
        rules: &TypeRules,
        units: &'a [Arc<Unit>],
    ) -> Self {
        let mut by_path = HashMap::default();
        let are_modules = matches!(rules.visibility, NameVisibility::Exports);
        let sources = || files.files.iter().filter(|_| are_modules);
        for path in sources() {
            let (module, rank) = module_path(path.path);
            let folder = module.strip_suffix("/index").map(|folder| (folder, rank + 3));
            for (module, rank) in [(module, rank)].into_iter().chain(folder) {
                let entry = by_path.entry(module).or_insert((rank, path.file));
                if rank < entry.0 {
                    *entry = (rank, path.file);
                }
            }
        }
        let by_path = by_path.into_iter();
        let mut modules = Self {
            files,
            units,
            by_name: sources().map(|path| (path.path, path.file)).collect(),
            by_path: by_path.map(|(path, (_, file))| (path, file)).collect(),
            imports_from_root: rules.imports_from_root,
            passed_on: Vec::new(),
            paths: Mutex::default(),
            known: Mutex::default(),
        };
        if are_modules {
            let files = units.iter().enumerate();
            modules.passed_on = files.map(|(file, unit)| modules.stars(file, unit)).collect();
        }
        modules
    }

    /// Returns the modules that a file re-exports completely.
    fn stars(&self, file: usize, unit: &Unit) -> Vec<usize> {
        let passed_on = unit.imports.stars().filter(|import| import.is_passed_on);
        let mut seen = HashSet::default();
        let modules = passed_on.filter_map(|import| self.module(file, &import.from));
        modules.filter(|module| seen.insert(*module)).collect()
    }

    /// Returns the file that a path in an import of file `from` refers to.
    fn module(&self, from: usize, path: &str) -> Option<usize> {
        let known = || self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&from).and_then(|paths| paths.get(path)) {
            return *found;
        }
        let found = self.resolve(from, path);
        known().entry(from).or_default().insert(path.to_owned(), found);
        found
    }

    fn resolve(&self, from: usize, path: &str) -> Option<usize> {
        let importing = self.files.files[from].path;
        if path.starts_with('.') {
            let folder = importing.rsplit_once('/').map_or("", |(folder, _)| folder);
            return self.at(folder, path);
        }
        if !self.imports_from_root {
            return None;
        }
        let name = self.files.repository;
        self.at(name, path).or_else(|| self.at(&format!("{name}/src"), path))
    }

    fn at(&self, folder: &str, path: &str) -> Option<usize> {
        let mut parts: Vec<&str> = folder.split('/').collect();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop()?;
                }
                part => parts.push(part),
            }
        }
        // `.` is a folder, and so is `./a/`.
        let is_folder = path.ends_with(['.', '/']);
        let path = parts.join("/");
        let in_folder = || self.by_path.get(format!("{path}/index").as_str());
        let find = |path: &str| self.by_path.get(path);
        // ECMAScript modules write `./a.js` for `./a`, since `a.ts` is compiled to it.
        let endings = [".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx"];
        let found = is_folder.then(in_folder).flatten().or_else(|| self.by_name.get(path.as_str()));
        // TypeScript reads `./a.mts` for `./a.mjs`, and for no other path.
        let source = |(end, sources): &(&str, [&str; 2])| {
            let module = path.strip_suffix(end)?;
            sources.iter().find_map(|end| self.by_name.get(format!("{module}{end}").as_str()))
        };
        let found = found.or_else(|| MODULE_SOURCES.iter().find_map(source));
        let found = found.or_else(|| find(&path));
        found.or_else(|| endings.iter().find_map(|end| find(path.strip_suffix(end)?))).copied()
    }

    /// Returns the target of an import of file `from`.
    pub(super) fn resolve_import(&self, from: usize, import: &Import) -> Option<Export> {
        let file = self.module(from, &import.from)?;
        match import.member.as_deref() {
            // `module.exports = f` makes f the module.
            None if self.has_whole(file) => self.resolve_export(file, WHOLE),
            None => Some(Export::Module(file)),
            Some(member) => {
                // ECMAScript imports a CommonJS module as the default.
                let is_whole = member == "default" && self.has_whole(file);
                let whole = || is_whole.then(|| self.resolve_export(file, WHOLE)).flatten();
                self.resolve_export(file, member).or_else(whole)
            }
        }
    }

    /// Returns true if a file exports something as the module itself.
    fn has_whole(&self, file: usize) -> bool {
        let unit = &self.units[file];
        let passes_on = |import: &Import| import.is_passed_on && import.local == WHOLE;
        unit.exports.contains_key(WHOLE) || unit.imports.imports_of(WHOLE).any(passes_on)
    }

    /// Returns the target of a name that a file imports; `unit` has the file's names. Returns `None` if several imports bind
    /// the name, as inside functions: it is unknown which one counts.
    pub(super) fn brought_in(&self, file: usize, unit: &Unit, name: &str) -> Option<Export> {
        let mut imports = unit.imports.imports_of(name);
        let import = imports.find(|import| import.local == name && !import.is_passed_on)?;
        let is_other = |other: &Import| {
            other.local == name
                && !other.is_passed_on
                && (&other.from, &other.member) != (&import.from, &import.member)
        };
        if imports.any(is_other) { None } else { self.resolve_import(file, import) }
    }

    /// Returns the target of a name that a file exports, whether the file's own or re-exported.
    pub(super) fn resolve_export(&self, file: usize, name: &str) -> Option<Export> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (file, name.to_owned());
        if let Some(export) = known().get(&key) {
            return export.clone();
        }
        let export = self.sought(file, name);
        known().insert(key, export.clone());
        export
    }

    fn sought(&self, file: usize, name: &str) -> Option<Export> {
        let mut open = VecDeque::from([(file, name.to_owned())]);
        let (mut visited, mut by_stars, mut followed) = (HashSet::default(), 0, 0);
        while let Some((file, name)) = open.pop_back() {
            let unit = &self.units[file];
            if visited.len() >= MOST_FILES {
                break;
            }
            if !visited.insert((file, name.clone())) {
                continue;
            }
            let own = unit.exports.get(&name).unwrap_or(&name);
            if unit.declares(own) {
                return Some(Export::Declared { file, name: own.clone() });
            }
            // The last one pushed is searched first: named exports precede everything that a star brings in.
            if name != "default" {
                for &module in self.passed_on[file].iter().take(MOST_FILES - by_stars) {
                    open.push_front((module, name.clone()));
                    by_stars += 1;
                }
            }
            let other = Some(&name).filter(|name| *name != own);
            for name in [Some(own), other].into_iter().flatten() {
                let bound = unit.imports.imports_of(name).filter(|import| import.local == *name);
                for import in bound.filter(|import| import.member.as_deref() != Some("*")) {
                    followed += 1;
                    if followed > MOST_FOLLOWED {
                        return None;
                    }
                    let Some(module) = self.module(file, &import.from) else {
                        continue;
                    };
                    match &import.member {
                        None if self.has_whole(module) => {
                            open.push_back((module, WHOLE.to_owned()))
                        }
                        None => return Some(Export::Module(module)),
                        Some(member) => open.push_back((module, member.clone())),
                    }
                }
            }
        }
        None
    }
}

/// Returns the path by which imports refer to a file, and the file's rank among files of that path: the lowest wins.
fn module_path(path: &str) -> (&str, usize) {
    let endings = [".d.ts", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs"];
    let ending = endings.iter().find(|end| path.ends_with(**end));
    let module = ending.map_or(path, |end| &path[..path.len() - end.len()]);
    // `a.ts` before `a.tsx` before `a.d.ts` before `a/index.ts`: TypeScript's order.
    let rank = match ending {
        Some(&(".ts" | ".js")) => 0,
        Some(&(".tsx" | ".jsx")) => 1,
        _ => 2,
    };
    (module, rank)
}
