//! Which file defines what a call calls.

use rustc_hash::FxHashMap;

use super::exports::{Export, Modules};
use super::folders::Folders;
use super::unit::{Call, Callee, Declared, Import, Receiver, Type, Unit};
use crate::repository::corpus::Repository;
use crate::text::language::{Language, TypeRules, Visibility};

/// How many types one method is looked for in: they extend each other in circles where code is broken.
const MOST_TYPES: usize = 64;

/// A type of the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TypeId {
    pub(super) file: usize,
    /// Its number in the file.
    pub(super) number: usize,
}

/// The files of a repository and what can be looked up in them.
pub(super) struct Program<'a> {
    pub(super) rules: &'a TypeRules,
    /// Methods whose names say nothing about their class, sorted.
    common: &'static [&'static str],
    pub(super) units: &'a [Option<Unit>],
    /// `org.example.Outer.Inner` → the types of that name.
    pub(super) by_path: FxHashMap<&'a str, Vec<TypeId>>,
    pub(super) modules: Modules<'a>,
    pub(super) folders: Folders<'a>,
    /// C#'s `global using`s of all files.
    pub(super) global_imports: Vec<&'a Import>,
    /// Method → the one file with a type that defines it; none where there are several.
    methods: FxHashMap<&'a str, Option<usize>>,
    /// Extension method of C# → the one file that defines it; none where there are several.
    extensions: FxHashMap<&'a str, Option<usize>>,
}

/// Target of a call's name.
enum Found {
    /// Definitions in these files.
    Files(Vec<usize>),
    /// Something that the repository does not define.
    Foreign,
    /// A method of an object of which nothing is known.
    AnyMethod,
}

/// Knowledge about an object.
enum Object<'a> {
    Of(Vec<TypeId>),
    /// TypeScript's `import * as m`.
    Module(usize),
    /// A package that is this folder.
    Folder(&'a str),
    Foreign,
    Unknown,
}

impl<'a> Program<'a> {
    /// `units` has an entry for each file of the repository.
    pub(super) fn new(
        repository: &'a Repository,
        language: Language,
        rules: &'a TypeRules,
        units: &'a [Option<Unit>],
    ) -> Self {
        let mut program = Self {
            rules,
            common: language.spec().common_methods,
            units,
            by_path: FxHashMap::default(),
            modules: Modules::new(repository, rules, units),
            folders: Folders::new(repository, units),
            global_imports: Vec::new(),
            methods: FxHashMap::default(),
            extensions: FxHashMap::default(),
        };
        for (file, unit) in units.iter().enumerate() {
            let Some(unit) = unit else {
                continue;
            };
            if let Visibility::FullNames(_) = rules.visibility {
                let passed_on = unit.imports.iter().filter(|import| import.is_passed_on);
                program.global_imports.extend(passed_on);
            }
            for (number, declared) in unit.types.iter().enumerate() {
                let types = program.by_path.entry(&declared.path).or_default();
                types.push(TypeId { file, number });
                enter(&mut program.methods, declared.methods.iter(), file);
                enter(&mut program.extensions, declared.extensions.iter(), file);
            }
        }
        program
    }

    /// Whether what is called is defined in another file of the repository, and not in its own.
    pub(super) fn is_in_another_file(&self, file: usize, call: &Call) -> bool {
        let Some(unit) = &self.units[file] else {
            return false;
        };
        match self.find(file, unit, call) {
            Found::Files(files) => !files.is_empty() && !files.contains(&file),
            Found::Foreign => false,
            Found::AnyMethod => match &call.callee {
                Callee::Member(_, name) => self.is_method_of_another_file(file, unit, name),
                Callee::New(_) | Callee::Bare(_) => false,
            },
        }
    }

    fn is_method_of_another_file(&self, file: usize, unit: &Unit, name: &str) -> bool {
        let home = self.methods.get(name).copied().flatten();
        home.is_some_and(|home| home != file)
            && !unit.defines(name)
            && self.common.binary_search(&name).is_err()
    }

    fn find(&self, file: usize, unit: &Unit, call: &Call) -> Found {
        match &call.callee {
            Callee::New(name) => files_of(&self.types_named(file, call.scope, name)),
            Callee::Bare(name) => self.bare(file, unit, call.scope, name),
            Callee::Member(receiver, name) => match self.object(file, unit, call.scope, receiver) {
                Object::Of(types) => match self.method(&types, name) {
                    Some(files) => Found::Files(files),
                    None => self.extension(name),
                },
                Object::Module(module) => self.exported(module, name),
                Object::Folder(folder) => self.in_folder(folder, name),
                Object::Foreign => self.extension(name),
                Object::Unknown => Found::AnyMethod,
            },
        }
    }

    /// `m()`
    fn bare(&self, file: usize, unit: &Unit, scope: usize, name: &str) -> Found {
        let is_variable = unit.outwards(scope).any(|scope| scope.variables.contains_key(name));
        let is_own = if let Visibility::Folders = self.rules.visibility {
            unit.functions.contains(name)
        } else {
            unit.defines(name)
        };
        if is_own || is_variable {
            return Found::Foreign;
        }
        match self.rules.visibility {
            Visibility::FullNames(_) => {}
            Visibility::Exports => {
                return match self.modules.brought_in(file, name) {
                    Some(Export::Declared { file, name }) => self.declared(file, &name),
                    _ => Found::Foreign,
                };
            }
            Visibility::Folders => {
                let folders = unit.namespaces.first();
                return folders.map_or(Found::Foreign, |folder| self.in_folder(folder, name));
            }
        }
        for number in unit.types_around(scope) {
            if let Some(files) = self.method(&self.parts(file, number), name) {
                return Found::Files(files);
            }
        }
        let global = self.global_imports.iter().copied();
        let mut brought_in = unit.imports.iter().chain(global).filter(|import| {
            import.is_static
                && import.member.as_deref().is_some_and(|member| member == "*" || member == name)
        });
        let found = brought_in.find_map(|import| {
            let types = self.by_path.get(import.from.as_str())?;
            self.method(types, name)
        });
        found.map_or(Found::Foreign, Found::Files)
    }

    /// Target of a name that a TypeScript file declares, if it can be called.
    fn declared(&self, file: usize, name: &str) -> Found {
        let unit = self.units[file].as_ref();
        let is_callable = unit.is_some_and(|unit| {
            unit.functions.contains(name)
                || unit.types.iter().any(|t| t.outer.is_none() && t.name == name)
        });
        if is_callable { Found::Files(vec![file]) } else { Found::Foreign }
    }

    /// The files of a folder that declare a function.
    fn in_folder(&self, folder: &str, name: &str) -> Found {
        let files = self.folders.files(folder).iter().copied();
        let declares = |file: &usize| {
            let unit = self.units[*file].as_ref();
            unit.is_some_and(|unit| unit.functions.contains(name))
        };
        Found::Files(files.filter(declares).collect())
    }

    /// The object that a folder's files declare outside functions.
    fn variable_of_folder(&self, folder: &str, name: &str) -> Option<Object<'a>> {
        self.folders.files(folder).iter().find_map(|&file| {
            let unit = self.units[file].as_ref()?;
            let declared = unit.scopes[0].variables.get(name)?;
            Some(self.of_declared(file, 0, declared))
        })
    }

    fn exported(&self, module: usize, name: &str) -> Found {
        match self.modules.exported(module, name) {
            Some(Export::Declared { file, name }) => self.declared(file, &name),
            _ => Found::Foreign,
        }
    }

    /// Where some types, or those that they extend, define a method.
    fn method(&self, types: &[TypeId], name: &str) -> Option<Vec<usize>> {
        let mut level = types.to_vec();
        let mut visited = Vec::new();
        while !level.is_empty() && visited.len() < MOST_TYPES {
            let defining = level
                .iter()
                .filter(|id| self.type_of(**id).is_some_and(|found| found.methods.contains(name)));
            let files: Vec<usize> = defining.map(|id| id.file).collect();
            if !files.is_empty() {
                return Some(files);
            }
            visited.extend_from_slice(&level);
            level = level.iter().flat_map(|id| self.supers(*id)).collect();
            level.retain(|id| !visited.contains(id));
        }
        None
    }

    /// Extension method that C# calls on an object whose type has no such method: any that the platform has by this name comes first.
    fn extension(&self, name: &str) -> Found {
        let home = self.extensions.get(name).copied().flatten();
        let home = home.filter(|_| self.common.binary_search(&name).is_err());
        home.map_or(Found::Foreign, |file| Found::Files(vec![file]))
    }

    pub(super) fn type_of(&self, id: TypeId) -> Option<&Type> {
        self.units[id.file].as_ref()?.types.get(id.number)
    }

    /// Types that a type extends and implements, as far as the repository has them.
    fn supers(&self, id: TypeId) -> Vec<TypeId> {
        let (Some(unit), Some(found)) = (&self.units[id.file], self.type_of(id)) else {
            return Vec::new();
        };
        // Their names are looked up where the type stands, not within it.
        let around = unit.scopes[found.inside].parent.unwrap_or(0);
        let named = |name: &String| self.types_named(id.file, around, name);
        found.supers.iter().flat_map(named).filter(|found| *found != id).collect()
    }

    /// Knowledge about the object that a method is called on.
    fn object(&self, file: usize, unit: &Unit, scope: usize, receiver: &Receiver) -> Object<'a> {
        let chain = match receiver {
            Receiver::Unknown => return Object::Unknown,
            Receiver::Typed(name) => return self.of_type_named(file, scope, name),
            Receiver::Chain(chain) => chain,
        };
        let (first, rest) = (chain[0].as_str(), &chain[1..]);
        let around = || unit.types_around(scope).next();
        let root = match first {
            "this" => around().map(|number| Object::Of(self.parts(file, number))),
            "super" => around().map(|number| {
                let parts = self.parts(file, number);
                let supers: Vec<TypeId> = parts.iter().flat_map(|id| self.supers(*id)).collect();
                if supers.is_empty() { Object::Foreign } else { Object::Of(supers) }
            }),
            _ => self.variable(file, unit, scope, first),
        };
        match root {
            Some(root) => self.fields(root, rest),
            None => self.type_or_module(file, unit, scope, chain),
        }
    }

    fn of_type_named(&self, file: usize, scope: usize, name: &str) -> Object<'a> {
        let types = self.types_named(file, scope, name);
        if types.is_empty() { Object::Foreign } else { Object::Of(types) }
    }

    fn of_declared(&self, file: usize, scope: usize, declared: &Declared) -> Object<'a> {
        match declared {
            Declared::Type(name) => self.of_type_named(file, scope, name),
            Declared::Unknown => Object::Unknown,
        }
    }

    /// The object that a variable or a field of a type around holds; `None` where there is none of this name.
    fn variable(&self, file: usize, unit: &Unit, scope: usize, name: &str) -> Option<Object<'a>> {
        for outer in unit.outwards(scope) {
            if let Some(declared) = outer.variables.get(name) {
                return Some(self.of_declared(file, scope, declared));
            }
            // TypeScript's fields are reached through `this` alone.
            let number = outer.of_type.filter(|_| !self.rules.fields_need_this);
            let found = number.and_then(|number| self.field(&self.parts(file, number), name));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The object in a field of some types, or of those that they extend.
    fn field(&self, types: &[TypeId], name: &str) -> Option<Object<'a>> {
        let mut level = types.to_vec();
        let mut visited = Vec::new();
        while !level.is_empty() && visited.len() < MOST_TYPES {
            for &id in &level {
                let found = self.type_of(id)?;
                if let Some(declared) = found.fields.get(name) {
                    return Some(self.of_declared(id.file, found.inside, declared));
                }
            }
            visited.extend_from_slice(&level);
            level = level.iter().flat_map(|id| self.supers(*id)).collect();
            level.retain(|id| !visited.contains(id));
        }
        None
    }

    /// The object at the end of a chain of fields.
    fn fields(&self, mut object: Object<'a>, chain: &[String]) -> Object<'a> {
        for name in chain {
            object = match object {
                Object::Of(types) => self.field(&types, name).unwrap_or(Object::Unknown),
                Object::Module(module) => self.exported_object(self.modules.exported(module, name)),
                Object::Folder(folder) => {
                    let variable = self.variable_of_folder(folder, name);
                    variable.unwrap_or(Object::Unknown)
                }
                other => return other,
            };
        }
        object
    }

    /// A chain that begins with no variable: a type with static members, or a module.
    fn type_or_module(
        &self,
        file: usize,
        unit: &Unit,
        scope: usize,
        chain: &[String],
    ) -> Object<'a> {
        for length in (1..=chain.len()).rev() {
            let types = self.types_named(file, scope, &chain[..length].join("."));
            if !types.is_empty() {
                return self.fields(Object::Of(types), &chain[length..]);
            }
        }
        match self.rules.visibility {
            Visibility::FullNames(_) => {}
            Visibility::Exports => {
                let export = self.modules.brought_in(file, &chain[0]);
                return self.fields(self.exported_object(export), &chain[1..]);
            }
            Visibility::Folders => return self.in_package(unit, chain),
        }
        // By custom, types begin with a capital, and what has a name begins a package otherwise.
        let is_name_of_type = chain.iter().any(|name| name.starts_with(char::is_uppercase));
        if is_name_of_type { Object::Foreign } else { Object::Unknown }
    }

    /// A chain that begins with an imported package, or with a variable of another file of its own.
    fn in_package(&self, unit: &Unit, chain: &[String]) -> Object<'a> {
        let mut imports = unit.imports.iter();
        if let Some(import) = imports.find(|import| import.local == chain[0]) {
            return match self.folders.imported(&import.from) {
                Some(folder) => self.fields(Object::Folder(folder), &chain[1..]),
                None => Object::Foreign,
            };
        }
        let folder = unit.namespaces.first();
        let variable = folder.and_then(|folder| self.variable_of_folder(folder, &chain[0]));
        variable.map_or(Object::Unknown, |variable| self.fields(variable, &chain[1..]))
    }

    fn exported_object(&self, export: Option<Export>) -> Object<'a> {
        let (file, name) = match export {
            None => return Object::Foreign,
            Some(Export::Module(module)) => return Object::Module(module),
            Some(Export::Declared { file, name }) => (file, name),
        };
        let types = self.types_named(file, 0, &name);
        if !types.is_empty() {
            return Object::Of(types);
        }
        let unit = self.units[file].as_ref();
        let declared = unit.and_then(|unit| unit.scopes[0].variables.get(&name));
        declared.map_or(Object::Foreign, |declared| self.of_declared(file, 0, declared))
    }
}

fn files_of(types: &[TypeId]) -> Found {
    Found::Files(types.iter().map(|id| id.file).collect())
}

fn enter<'a>(
    homes: &mut FxHashMap<&'a str, Option<usize>>,
    names: impl Iterator<Item = &'a String>,
    file: usize,
) {
    for name in names {
        let home = homes.entry(name).or_insert(Some(file));
        *home = home.filter(|&home| home == file);
    }
}
