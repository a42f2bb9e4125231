//! Definitions of what a call calls, and of what a name means.

use std::sync::Arc;

use repoformer_text::language::{Language, LanguageSpec, NameVisibility, TypeRules};
use rustc_hash::FxHashMap;

use super::exports::{Export, Modules};
use super::folders::Folders;
use super::unit::{Callee, Declared, Import, Imports, Receiver, Type, Unit};
use crate::repository::definitions::rows::{Definition, Kind, SourcePaths};

/// How many types one method is looked for in: they extend each other in circles where code is broken.
const MOST_TYPES: usize = 64;

/// A type of the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TypeId {
    pub(super) file: usize,
    /// Its number in the file.
    pub(super) number: usize,
}

/// The files of a repository and what can be looked up in them; cheap to clone.
#[derive(Clone)]
pub(super) struct Program<'a> {
    pub(super) rules: &'a TypeRules,
    spec: &'static LanguageSpec,
    units: &'a [Arc<Unit>],
    /// Number of a file, and what is looked at in its place.
    own: Option<(usize, &'a Unit)>,
    pub(super) modules: Arc<Modules<'a>>,
    pub(super) folders: Arc<Folders<'a>>,
    pub(super) maps: Arc<Maps<'a>>,
}

/// Types, methods and imports of a repository by their names.
#[derive(Default)]
pub(super) struct Maps<'a> {
    /// `org.example.Outer.Inner` → the types of that name.
    by_path: FxHashMap<&'a str, Vec<TypeId>>,
    /// C#'s `global using`s of all files.
    pub(super) global_imports: Imports,
    /// Method → its definition in the one file with a type that has any; none where there are several files.
    methods: Homes<'a>,
    /// Extension method of C# → its definition in the one file that has any; none where there are several files.
    extensions: Homes<'a>,
}

type Homes<'a> = FxHashMap<&'a str, Option<Definition>>;

/// A place in a file.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) file: usize,
    /// The scope that it stands in.
    pub(super) scope: usize,
}

/// Knowledge about an object.
enum Object {
    /// It is of these types; none where the repository does not define its type.
    Of(Vec<TypeId>),
    /// TypeScript's `import * as m`.
    Module(usize),
    /// A package that is this folder.
    Folder(String),
    Unknown,
}

impl<'a> Program<'a> {
    /// `units` has an entry for each file of the repository.
    pub(super) fn new(
        files: &'a SourcePaths<'a>,
        language: Language,
        rules: &'a TypeRules,
        units: &'a [Arc<Unit>],
    ) -> Self {
        let mut maps = Maps::default();
        if let NameVisibility::FullNames(_) = rules.visibility {
            let imports = units.iter().flat_map(|unit| unit.imports.iter());
            maps.global_imports = imports.filter(|import| import.is_passed_on).cloned().collect();
        }
        for (file, unit) in units.iter().enumerate() {
            for (number, declared) in unit.types.iter().enumerate() {
                maps.by_path.entry(&declared.path).or_default().push(TypeId { file, number });
                for (name, rows) in &declared.methods {
                    let here = Definition::new(file, *rows, Kind::Function);
                    enter(&mut maps.methods, name, here);
                    if declared.extensions.contains(name) {
                        enter(&mut maps.extensions, name, here);
                    }
                }
            }
        }
        Self {
            rules,
            spec: language.spec(),
            units,
            own: None,
            modules: Arc::new(Modules::new(files, rules, units)),
            folders: Arc::new(Folders::new(files, units)),
            maps: Arc::new(maps),
        }
    }

    /// This program with a unit in place of a file; places in the unit have the file number [`Self::own_file`].
    pub(super) fn with(&self, file: usize, unit: &'a Unit) -> Self {
        Self { own: Some((file, unit)), ..self.clone() }
    }

    /// Number of the file that stands in place of another.
    pub(super) fn own_file(&self) -> usize {
        self.units.len()
    }

    pub(super) fn unit(&self, file: usize) -> &'a Unit {
        match (self.units.get(file).map(Arc::as_ref), self.own) {
            (Some(unit), _) | (None, Some((_, unit))) => unit,
            (None, None) => unreachable!("a file of the repository"),
        }
    }

    /// Number of a file in the repository.
    fn original(&self, file: usize) -> usize {
        self.own.filter(|_| file == self.own_file()).map_or(file, |(original, _)| original)
    }

    /// The types of this path.
    pub(super) fn with_path(&self, path: &str) -> Vec<TypeId> {
        let known = self.maps.by_path.get(path).map_or(&[][..], Vec::as_slice);
        let Some((replaced, unit)) = self.own else { return known.to_vec() };
        let file = self.own_file();
        let types = unit.types.iter().enumerate();
        let own = types.filter(|(_, t)| t.path == path).map(|(number, _)| TypeId { file, number });
        known.iter().copied().filter(|id| id.file != replaced).chain(own).collect()
    }

    /// Target of a name that a TypeScript file imports.
    pub(super) fn brought_in(&self, file: usize, name: &str) -> Option<Export> {
        self.modules.brought_in(self.original(file), self.unit(file), name)
    }

    /// Definitions of what is called, if they are in other files of the repository and not in its own.
    pub(super) fn called(&self, place: Place, callee: &Callee) -> Vec<Definition> {
        let found = match callee {
            Callee::New(name) => self.heads(&self.types_named(place, name)),
            Callee::Bare(name) => self.bare(place, name),
            Callee::Member(receiver, name) => match self.object(place, receiver) {
                Object::Of(types) => {
                    self.method(&types, name).unwrap_or_else(|| self.extension(name))
                }
                Object::Module(module) => self.callable(self.modules.exported(module, name)),
                Object::Folder(folder) => self.in_folder(&folder, name),
                Object::Unknown => return self.method_of_another_file(place.file, name),
            },
        };
        self.of_others(place.file, found)
    }

    /// Definitions of what a chain of names means, if they are in other files of the repository and not in its own: types,
    /// functions, methods, and variables outside them.
    pub(super) fn named(&self, place: Place, chain: &[&str]) -> Vec<Definition> {
        let Some((name, receiver)) = chain.split_last() else { return Vec::new() };
        let types = self.types_named(place, &chain.join("."));
        if !types.is_empty() {
            let types = self.heads(&types);
            return self.of_others(place.file, types);
        }
        let name = (*name).to_owned();
        let callee = match receiver {
            [] => Callee::Bare(name.clone()),
            [""] => Callee::Member(Receiver::Unknown, name.clone()),
            chain => {
                let chain = chain.iter().map(|name| (*name).to_owned()).collect();
                Callee::Member(Receiver::Chain(chain), name.clone())
            }
        };
        let called = self.called(place, &callee);
        if !called.is_empty() {
            return called;
        }
        let value = match (self.rules.visibility, receiver) {
            (NameVisibility::Exports, []) => {
                let is_own = self.unit(place.file).declares(&name);
                let export = self.brought_in(place.file, &name).filter(|_| !is_own);
                self.exported_value(export)
            }
            (NameVisibility::Exports, [module]) => match self.brought_in(place.file, module) {
                Some(Export::Module(module)) => {
                    self.exported_value(self.modules.exported(module, &name))
                }
                _ => None,
            },
            _ => None,
        };
        self.of_others(place.file, value.into_iter().collect())
    }

    /// These definitions, unless one is in the file itself.
    fn of_others(&self, file: usize, found: Vec<Definition>) -> Vec<Definition> {
        let own = self.original(file);
        let is_own = |found: &Definition| [own, file].contains(&(found.file as usize));
        if found.iter().any(is_own) { Vec::new() } else { found }
    }

    /// Definitions of types.
    fn heads(&self, types: &[TypeId]) -> Vec<Definition> {
        let head = |id: &TypeId| Definition::new(id.file, self.type_of(*id).rows, Kind::Type);
        types.iter().map(head).collect()
    }

    fn exported_value(&self, export: Option<Export>) -> Option<Definition> {
        let Some(Export::Declared { file, name }) = export else { return None };
        let rows = self.unit(file).values.get(&name)?;
        Some(Definition::new(file, *rows, Kind::Value))
    }

    fn method_of_another_file(&self, file: usize, name: &str) -> Vec<Definition> {
        let home = self.maps.methods.get(name).copied().flatten();
        let home = home.filter(|home| {
            home.file as usize != self.original(file)
                && !self.unit(file).defines(name)
                && !self.spec.is_common_method(name)
        });
        home.into_iter().collect()
    }

    /// Definitions of `m` of `m()`.
    fn bare(&self, place: Place, name: &str) -> Vec<Definition> {
        let unit = self.unit(place.file);
        let is_own = match self.rules.visibility {
            NameVisibility::FullNames(_) => unit.defines(name),
            _ => unit.functions.contains_key(name),
        };
        if is_own || unit.outwards(place.scope).any(|scope| scope.variables.contains_key(name)) {
            return Vec::new();
        }
        match self.rules.visibility {
            NameVisibility::FullNames(_) => {}
            NameVisibility::Exports => return self.callable(self.brought_in(place.file, name)),
            NameVisibility::Folders => {
                let folder = unit.namespaces.first();
                return folder.map_or(Vec::new(), |folder| self.in_folder(folder, name));
            }
        }
        let mut around = unit.types_around(place.scope);
        let inherited = around.find_map(|t| self.method(&self.parts(place.file, t), name));
        let brought_in = || {
            let all = [&unit.imports, &self.maps.global_imports];
            let members = all.into_iter().flat_map(|imports| {
                let is_of_name = |import: &&Import| import.member.as_deref() == Some(name);
                imports.named(name).filter(is_of_name).chain(imports.stars())
            });
            let mut members = members.filter(|import| import.is_static);
            members.find_map(|import| self.method(&self.with_path(&import.from), name))
        };
        inherited.or_else(brought_in).unwrap_or_default()
    }

    /// Definition of what a TypeScript file exports, if it can be called.
    fn callable(&self, export: Option<Export>) -> Vec<Definition> {
        let Some(Export::Declared { file, name }) = export else { return Vec::new() };
        let unit = self.unit(file);
        let of_type = || Some((unit.outer_type(&name)?.rows, Kind::Type));
        let found = unit.called(&name).or_else(of_type);
        found.map(|(rows, kind)| Definition::new(file, rows, kind)).into_iter().collect()
    }

    /// Definitions of a function in the files of a folder.
    fn in_folder(&self, folder: &str, name: &str) -> Vec<Definition> {
        let files = self.folders.files(folder).iter().copied();
        let found = files.filter_map(|file| {
            let (rows, kind) = self.unit(file).called(name)?;
            Some(Definition::new(file, rows, kind))
        });
        found.collect()
    }

    /// The object that a folder's files declare outside functions.
    fn variable_of_folder(&self, folder: &str, name: &str) -> Option<Object> {
        self.folders.files(folder).iter().find_map(|&file| {
            let declared = self.unit(file).variable(name)?;
            Some(self.of_declared(Place { file, scope: 0 }, declared))
        })
    }

    /// Definitions of a method in some types, or else in those that they extend.
    fn method(&self, types: &[TypeId], name: &str) -> Option<Vec<Definition>> {
        self.upwards(types, |level| {
            let defining = level.iter().filter_map(|id| {
                let rows = self.type_of(*id).methods.get(name)?;
                Some(Definition::new(id.file, *rows, Kind::Function))
            });
            let found: Vec<Definition> = defining.collect();
            (!found.is_empty()).then_some(found)
        })
    }

    /// The object in a field of some types, or of those that they extend.
    fn field(&self, types: &[TypeId], name: &str) -> Option<Object> {
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

    /// Definition of an extension method that C# calls on an object whose type has no such method: any that the platform
    /// has by this name comes first.
    fn extension(&self, name: &str) -> Vec<Definition> {
        let home = self.maps.extensions.get(name).copied().flatten();
        home.filter(|_| !self.spec.is_common_method(name)).into_iter().collect()
    }

    fn type_of(&self, id: TypeId) -> &'a Type {
        &self.unit(id.file).types[id.number]
    }

    /// Types that these extend and implement, as far as the repository has them.
    fn supers(&self, types: &[TypeId]) -> Vec<TypeId> {
        let of_one = |&id: &TypeId| {
            let found = self.type_of(id);
            // Their names are looked up where the type stands, not within it.
            let scope = self.unit(id.file).scopes[found.inside].parent.unwrap_or(0);
            let named = move |name: &String| self.types_named(Place { file: id.file, scope }, name);
            found.supers.iter().flat_map(named).filter(move |found| *found != id)
        };
        types.iter().flat_map(of_one).collect()
    }

    /// Knowledge about the object that a method is called on.
    fn object(&self, place: Place, receiver: &Receiver) -> Object {
        let chain = match receiver {
            Receiver::Unknown => return Object::Unknown,
            Receiver::Typed(name) => return Object::Of(self.types_named(place, name)),
            Receiver::Chain(chain) => chain,
        };
        let around = || {
            let number = self.unit(place.file).types_around(place.scope).next()?;
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

    fn of_declared(&self, place: Place, declared: &Declared) -> Object {
        match declared {
            Declared::Type(name) => Object::Of(self.types_named(place, name)),
            Declared::Unknown => Object::Unknown,
        }
    }

    /// The object that a variable or a field of a type around holds; `None` where there is none of this name.
    fn variable(&self, place: Place, name: &str) -> Option<Object> {
        self.unit(place.file).outwards(place.scope).find_map(|outer| {
            if let Some(declared) = outer.variables.get(name) {
                return Some(self.of_declared(place, declared));
            }
            // TypeScript's fields are reached through `this` alone.
            let number = outer.of_type.filter(|_| !self.rules.fields_need_this)?;
            self.field(&self.parts(place.file, number), name)
        })
    }

    /// The object at the end of a chain of fields.
    fn fields(&self, mut object: Object, chain: &[String]) -> Object {
        for name in chain {
            let field = match object {
                Object::Of(types) if !types.is_empty() => self.field(&types, name),
                Object::Module(module) => {
                    Some(self.exported_object(self.modules.exported(module, name)))
                }
                Object::Folder(folder) => self.variable_of_folder(&folder, name),
                other => return other,
            };
            object = field.unwrap_or(Object::Unknown);
        }
        object
    }

    /// A chain that begins with no variable: a type with static members, or a module.
    fn type_or_module(&self, place: Place, chain: &[String]) -> Object {
        for length in (1..=chain.len()).rev() {
            let types = self.types_named(place, &chain[..length].join("."));
            if !types.is_empty() {
                return self.fields(Object::Of(types), &chain[length..]);
            }
        }
        match self.rules.visibility {
            NameVisibility::FullNames(_) => {}
            NameVisibility::Exports => {
                let export = self.brought_in(place.file, &chain[0]);
                return self.fields(self.exported_object(export), &chain[1..]);
            }
            NameVisibility::Folders => return self.in_package(self.unit(place.file), chain),
        }
        // By custom, types begin with a capital, and what has a name begins a package otherwise.
        let is_name_of_type = chain.iter().any(|name| name.starts_with(char::is_uppercase));
        if is_name_of_type { Object::Of(Vec::new()) } else { Object::Unknown }
    }

    /// A chain that begins with an imported package, or with a variable of another file of its own.
    fn in_package(&self, unit: &Unit, chain: &[String]) -> Object {
        let mut imports = unit.imports.named(&chain[0]);
        let root = match imports.find(|import| import.local == chain[0]) {
            Some(import) => {
                let folder = self.folders.imported(&import.from);
                Some(match folder {
                    Some(folder) => Object::Folder(folder.to_owned()),
                    None => Object::Of(Vec::new()),
                })
            }
            None => {
                let folder = unit.namespaces.first();
                folder.and_then(|folder| self.variable_of_folder(folder, &chain[0]))
            }
        };
        root.map_or(Object::Unknown, |root| self.fields(root, &chain[1..]))
    }

    fn exported_object(&self, export: Option<Export>) -> Object {
        let (file, name) = match export {
            None => return Object::Of(Vec::new()),
            Some(Export::Module(module)) => return Object::Module(module),
            Some(Export::Declared { file, name }) => (file, name),
        };
        let place = Place { file, scope: 0 };
        let types = self.types_named(place, &name);
        match self.unit(file).variable(&name) {
            Some(declared) if types.is_empty() => self.of_declared(place, declared),
            _ => Object::Of(types),
        }
    }
}

/// Enters the home of a name, or none where several files have it; of definitions in one file the first.
fn enter<'a>(homes: &mut Homes<'a>, name: &'a str, here: Definition) {
    let home = homes.entry(name).or_insert(Some(here));
    *home = home.filter(|home| home.file == here.file).map(|home| home.min(here));
}
