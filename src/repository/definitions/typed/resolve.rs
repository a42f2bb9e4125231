//! Which file defines what a call calls.

use rustc_hash::{FxHashMap, FxHashSet};

use super::exports::{Export, Modules};
use super::folders::Folders;
use super::unit::{Call, Callee, Declared, Import, Receiver, Type, Unit};
use crate::repository::corpus::Repository;
use crate::text::language::{Language, LanguageSpec, TypeRules, Visibility};

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
    spec: &'static LanguageSpec,
    pub(super) units: &'a [Unit],
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

/// A place in a file.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) file: usize,
    /// The scope that it stands in.
    pub(super) scope: usize,
}

/// Knowledge about an object.
enum Object<'a> {
    /// It is of these types; none where the repository does not define its type.
    Of(Vec<TypeId>),
    /// TypeScript's `import * as m`.
    Module(usize),
    /// A package that is this folder.
    Folder(&'a str),
    Unknown,
}

impl<'a> Program<'a> {
    /// `units` has an entry for each file of the repository.
    pub(super) fn new(
        repository: &'a Repository,
        language: Language,
        rules: &'a TypeRules,
        units: &'a [Unit],
    ) -> Self {
        let mut program = Self {
            rules,
            spec: language.spec(),
            units,
            by_path: FxHashMap::default(),
            modules: Modules::new(repository, rules, units),
            folders: Folders::new(repository, units),
            global_imports: Vec::new(),
            methods: FxHashMap::default(),
            extensions: FxHashMap::default(),
        };
        for (file, unit) in units.iter().enumerate() {
            if let Visibility::FullNames(_) = rules.visibility {
                let passed_on = unit.imports.iter().filter(|import| import.is_passed_on);
                program.global_imports.extend(passed_on);
            }
            for (number, declared) in unit.types.iter().enumerate() {
                let types = program.by_path.entry(&declared.path).or_default();
                types.push(TypeId { file, number });
                enter(&mut program.methods, &declared.methods, file);
                enter(&mut program.extensions, &declared.extensions, file);
            }
        }
        program
    }

    /// Whether what is called is defined in another file of the repository, and not in its own.
    pub(super) fn is_in_another_file(&self, file: usize, call: &Call) -> bool {
        let place = Place { file, scope: call.scope };
        let files = match &call.callee {
            Callee::New(name) => {
                self.types_named(place, name).into_iter().map(|id| id.file).collect()
            }
            Callee::Bare(name) => self.bare(place, name),
            Callee::Member(receiver, name) => match self.object(place, receiver) {
                Object::Of(types) => {
                    self.method(&types, name).unwrap_or_else(|| self.extension(name))
                }
                Object::Module(module) => self.callable(self.modules.exported(module, name)),
                Object::Folder(folder) => self.in_folder(folder, name),
                Object::Unknown => return self.is_method_of_another_file(file, name),
            },
        };
        !files.is_empty() && !files.contains(&file)
    }

    fn is_method_of_another_file(&self, file: usize, name: &str) -> bool {
        let home = self.methods.get(name).copied().flatten();
        home.is_some_and(|home| home != file)
            && !self.units[file].defines(name)
            && !self.spec.is_common_method(name)
    }

    /// The files that define `m` of `m()`.
    fn bare(&self, place: Place, name: &str) -> Vec<usize> {
        let unit = &self.units[place.file];
        let is_own = match self.rules.visibility {
            Visibility::Folders => unit.functions.contains(name),
            _ => unit.defines(name),
        };
        if is_own || unit.outwards(place.scope).any(|scope| scope.variables.contains_key(name)) {
            return Vec::new();
        }
        match self.rules.visibility {
            Visibility::FullNames(_) => {}
            Visibility::Exports => return self.callable(self.modules.brought_in(place.file, name)),
            Visibility::Folders => {
                let folder = unit.namespaces.first();
                return folder.map_or(Vec::new(), |folder| self.in_folder(folder, name));
            }
        }
        let mut around = unit.types_around(place.scope);
        let inherited = around.find_map(|t| self.method(&self.parts(place.file, t), name));
        let brought_in = || {
            let members = unit.imports.iter().chain(self.global_imports.iter().copied());
            let mut members = members.filter(|import| {
                import.is_static && matches!(&import.member, Some(m) if m == "*" || m == name)
            });
            members.find_map(|import| self.method(self.by_path.get(&*import.from)?, name))
        };
        inherited.or_else(brought_in).unwrap_or_default()
    }

    /// The file of what a TypeScript file exports, if it can be called.
    fn callable(&self, export: Option<Export>) -> Vec<usize> {
        match export {
            Some(Export::Declared { file, name })
                if self.units[file].functions.contains(&name)
                    || self.units[file].has_outer_type(&name) =>
            {
                vec![file]
            }
            _ => Vec::new(),
        }
    }

    /// The files of a folder that declare a function.
    fn in_folder(&self, folder: &str, name: &str) -> Vec<usize> {
        let files = self.folders.files(folder).iter().copied();
        files.filter(|file| self.units[*file].functions.contains(name)).collect()
    }

    /// The object that a folder's files declare outside functions.
    fn variable_of_folder(&self, folder: &str, name: &str) -> Option<Object<'a>> {
        self.folders.files(folder).iter().find_map(|&file| {
            let declared = self.units[file].variable(name)?;
            Some(self.of_declared(Place { file, scope: 0 }, declared))
        })
    }

    /// The files in which some types, or those that they extend, define a method.
    fn method(&self, types: &[TypeId], name: &str) -> Option<Vec<usize>> {
        self.upwards(types, |level| {
            let defining = level.iter().filter(|id| self.type_of(**id).methods.contains(name));
            let files: Vec<usize> = defining.map(|id| id.file).collect();
            (!files.is_empty()).then_some(files)
        })
    }

    /// The object in a field of some types, or of those that they extend.
    fn field(&self, types: &[TypeId], name: &str) -> Option<Object<'a>> {
        self.upwards(types, |level| {
            level.iter().find_map(|&id| {
                let found = self.type_of(id);
                let declared = found.fields.get(name)?;
                Some(self.of_declared(Place { file: id.file, scope: found.inside }, declared))
            })
        })
    }

    /// The first thing that is found in some types, or else in those that they extend, and so on.
    fn upwards<T>(&self, types: &[TypeId], find: impl Fn(&[TypeId]) -> Option<T>) -> Option<T> {
        let (mut level, mut visited) = (types.to_vec(), Vec::new());
        while !level.is_empty() && visited.len() < MOST_TYPES {
            if let Some(found) = find(&level) {
                return Some(found);
            }
            visited.extend_from_slice(&level);
            level = self.supers(&level);
            level.retain(|id| !visited.contains(id));
        }
        None
    }

    /// The file of an extension method that C# calls on an object whose type has no such method: any that the platform
    /// has by this name comes first.
    fn extension(&self, name: &str) -> Vec<usize> {
        let home = self.extensions.get(name).copied().flatten();
        home.filter(|_| !self.spec.is_common_method(name)).into_iter().collect()
    }

    fn type_of(&self, id: TypeId) -> &'a Type {
        &self.units[id.file].types[id.number]
    }

    /// Types that these extend and implement, as far as the repository has them.
    fn supers(&self, types: &[TypeId]) -> Vec<TypeId> {
        let of_one = |&id: &TypeId| {
            let found = self.type_of(id);
            // Their names are looked up where the type stands, not within it.
            let scope = self.units[id.file].scopes[found.inside].parent.unwrap_or(0);
            let named = move |name: &String| self.types_named(Place { file: id.file, scope }, name);
            found.supers.iter().flat_map(named).filter(move |found| *found != id)
        };
        types.iter().flat_map(of_one).collect()
    }

    /// Knowledge about the object that a method is called on.
    fn object(&self, place: Place, receiver: &Receiver) -> Object<'a> {
        let chain = match receiver {
            Receiver::Unknown => return Object::Unknown,
            Receiver::Typed(name) => return Object::Of(self.types_named(place, name)),
            Receiver::Chain(chain) => chain,
        };
        let around = || {
            let number = self.units[place.file].types_around(place.scope).next()?;
            Some(self.parts(place.file, number))
        };
        let root = match chain[0].as_str() {
            "this" => around().map(Object::Of),
            "super" => around().map(|parts| Object::Of(self.supers(&parts))),
            name => self.variable(place, name),
        };
        match root {
            Some(root) => self.fields(root, &chain[1..]),
            None => self.type_or_module(place, chain),
        }
    }

    fn of_declared(&self, place: Place, declared: &Declared) -> Object<'a> {
        match declared {
            Declared::Type(name) => Object::Of(self.types_named(place, name)),
            Declared::Unknown => Object::Unknown,
        }
    }

    /// The object that a variable or a field of a type around holds; `None` where there is none of this name.
    fn variable(&self, place: Place, name: &str) -> Option<Object<'a>> {
        self.units[place.file].outwards(place.scope).find_map(|outer| {
            if let Some(declared) = outer.variables.get(name) {
                return Some(self.of_declared(place, declared));
            }
            // TypeScript's fields are reached through `this` alone.
            let number = outer.of_type.filter(|_| !self.rules.fields_need_this)?;
            self.field(&self.parts(place.file, number), name)
        })
    }

    /// The object at the end of a chain of fields.
    fn fields(&self, mut object: Object<'a>, chain: &[String]) -> Object<'a> {
        for name in chain {
            let field = match object {
                Object::Of(types) if !types.is_empty() => self.field(&types, name),
                Object::Module(module) => {
                    Some(self.exported_object(self.modules.exported(module, name)))
                }
                Object::Folder(folder) => self.variable_of_folder(folder, name),
                other => return other,
            };
            object = field.unwrap_or(Object::Unknown);
        }
        object
    }

    /// A chain that begins with no variable: a type with static members, or a module.
    fn type_or_module(&self, place: Place, chain: &[String]) -> Object<'a> {
        for length in (1..=chain.len()).rev() {
            let types = self.types_named(place, &chain[..length].join("."));
            if !types.is_empty() {
                return self.fields(Object::Of(types), &chain[length..]);
            }
        }
        match self.rules.visibility {
            Visibility::FullNames(_) => {}
            Visibility::Exports => {
                let export = self.modules.brought_in(place.file, &chain[0]);
                return self.fields(self.exported_object(export), &chain[1..]);
            }
            Visibility::Folders => return self.in_package(&self.units[place.file], chain),
        }
        // By custom, types begin with a capital, and what has a name begins a package otherwise.
        let is_name_of_type = chain.iter().any(|name| name.starts_with(char::is_uppercase));
        if is_name_of_type { Object::Of(Vec::new()) } else { Object::Unknown }
    }

    /// A chain that begins with an imported package, or with a variable of another file of its own.
    fn in_package(&self, unit: &Unit, chain: &[String]) -> Object<'a> {
        let mut imports = unit.imports.iter();
        let root = match imports.find(|import| import.local == chain[0]) {
            Some(import) => {
                let folder = self.folders.imported(&import.from);
                Some(folder.map_or(Object::Of(Vec::new()), Object::Folder))
            }
            None => {
                let folder = unit.namespaces.first();
                folder.and_then(|folder| self.variable_of_folder(folder, &chain[0]))
            }
        };
        root.map_or(Object::Unknown, |root| self.fields(root, &chain[1..]))
    }

    fn exported_object(&self, export: Option<Export>) -> Object<'a> {
        let (file, name) = match export {
            None => return Object::Of(Vec::new()),
            Some(Export::Module(module)) => return Object::Module(module),
            Some(Export::Declared { file, name }) => (file, name),
        };
        let place = Place { file, scope: 0 };
        let types = self.types_named(place, &name);
        match self.units[file].variable(&name) {
            Some(declared) if types.is_empty() => self.of_declared(place, declared),
            _ => Object::Of(types),
        }
    }
}

/// Enters a file as the home of these names, or no file where there are several.
fn enter<'a>(
    homes: &mut FxHashMap<&'a str, Option<usize>>,
    names: &'a FxHashSet<String>,
    file: usize,
) {
    for name in names {
        let home = homes.entry(name).or_insert(Some(file));
        *home = home.filter(|&home| home == file);
    }
}
