//! Resolution of callees and names to definitions.

use std::sync::{Arc, Mutex, PoisonError};

use foldhash::{HashMap, HashSet};
use repoformer_text::language::{Language, LanguageSpec, NameVisibility, TypeRules};

use super::exports::{Export, Modules};
use super::folders::Folders;
use super::full_name::FullName;
use super::sets::TypeSet;
use super::unit::{Callee, DeclaredType, Import, Imports, Receiver, Type, Unit};
use crate::definitions::found::FoundDefinitions;
use crate::definitions::rows::{Definition, DefinitionKind, SourcePaths};

/// Greatest number of types in which one method is looked up: in broken code, types extend each other in circles.
const MOST_TYPES: usize = 64;

/// Greatest number of supertypes of one level in which a method is looked up.
const MOST_SUPERS: usize = 256;

/// Greatest number of types that a look-up visits, including outer types and their supertypes.
const MOST_VISITS: usize = 256;

/// Greatest number of names in a chain that may refer to one type.
const MOST_PARTS: usize = 64;

/// Type of the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TypeId {
    pub(super) file: usize,
    /// Number of the type in the file.
    pub(super) number: usize,
}

/// Files of a repository and the names that can be looked up in them.
pub(super) struct Program<'a> {
    pub(super) rules: &'a TypeRules,
    spec: &'static LanguageSpec,
    units: &'a [Arc<Unit>],
    own: Option<Own<'a>>,
    pub(super) modules: Arc<Modules<'a>>,
    pub(super) folders: Arc<Folders<'a>>,
    pub(super) maps: Arc<Maps<'a>>,
    supers: Arc<Mutex<HashMap<TypeId, Supers<'a>>>>,
}

/// Supertypes of a type, if the repository has them.
type Supers<'a> = Arc<[Arc<TypeSet<'a>>]>;

/// Unit that replaces a file's unit.
struct Own<'a> {
    file: usize,
    unit: &'a Unit,
    /// Types of the paths that the unit or the file defines.
    types: Arc<HashMap<TypePath, Option<Arc<TypeSet<'a>>>>>,
}

/// Path of a type, `org.example.Outer.Inner`; in TypeScript also the only file that can see the type.
type TypePath = (Option<usize>, FullName);

/// Types, methods and imports of a repository by their names.
#[derive(Default)]
pub(super) struct Maps<'a> {
    by_path: HashMap<TypePath, Arc<TypeSet<'a>>>,
    /// C#'s `global using`s of all files.
    pub(super) global_imports: Imports,
    /// Maps a method to its definition in the only file with a type that has it; none if several files do.
    methods: Homes<'a>,
    /// Maps a C# extension method to its definition in the only file that has it; none if several files do.
    extensions: Homes<'a>,
}

type Homes<'a> = HashMap<&'a str, Option<Definition>>;

/// Position in a file.
#[derive(Clone, Copy)]
pub(super) struct FilePosition {
    pub(super) file: usize,
    /// Scope that contains it.
    pub(super) scope: usize,
}

/// Knowledge about an object.
enum Object<'a> {
    /// Object of these types; none if the repository does not define its type.
    Of(Vec<Arc<TypeSet<'a>>>),
    /// TypeScript's `import * as m`.
    Module(usize),
    /// Package in this folder.
    Folder(String),
    Unknown,
}

/// Number of types that a look-up may still visit.
struct Visits(usize);

impl Default for Visits {
    fn default() -> Self {
        Self(MOST_VISITS)
    }
}

impl Visits {
    /// Counts the visit of some types; returns false if they may no longer be visited.
    fn begin(&mut self, types: &[Arc<TypeSet<'_>>]) -> bool {
        let is_left = self.0 > 0;
        let count = types.iter().map(|types| types.work()).sum();
        self.0 = self.0.saturating_sub(count);
        is_left
    }
}

impl<'a> Object<'a> {
    /// Returns an object with the types of one path.
    fn from_types(types: Option<Arc<TypeSet<'a>>>) -> Self {
        Self::Of(types.into_iter().collect())
    }
}

impl<'a> Program<'a> {
    /// Prepares look-ups; `units` has an entry for each file of the repository.
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
        let mut by_path: HashMap<_, Vec<_>> = HashMap::default();
        for (file, unit) in units.iter().enumerate() {
            for (number, declared) in unit.types.iter().enumerate() {
                let path = type_path(rules, file, declared.path);
                by_path.entry(path).or_default().push((TypeId { file, number }, declared));
                for (name, rows) in &declared.methods {
                    let here = Definition::new(file, *rows, DefinitionKind::Function);
                    enter(&mut maps.methods, name, here);
                    if declared.extensions.contains(name) {
                        enter(&mut maps.extensions, name, here);
                    }
                }
            }
        }
        let sets = by_path.into_iter();
        maps.by_path =
            sets.filter_map(|(path, types)| Some((path, TypeSet::new(types)?))).collect();
        Self {
            rules,
            spec: language.spec(),
            units,
            own: None,
            modules: Arc::new(Modules::new(files, rules, units)),
            folders: Arc::new(Folders::new(files, rules, units)),
            maps: Arc::new(maps),
            supers: Arc::default(),
        }
    }

    /// Returns this program with a unit in place of a file; positions in the unit have the file number [`Self::own_file`].
    pub(super) fn with<'n>(&self, file: usize, unit: &'n Unit) -> Program<'n>
    where
        'a: 'n,
    {
        let own_file = self.own_file();
        let mut types: HashMap<_, Vec<_>> = HashMap::default();
        let others = |path: &TypePath| {
            let known = self.maps.by_path.get(path).map_or(&[][..], |known| known.types());
            known.iter().copied().filter(|(id, _)| id.file != file).collect()
        };
        for declared in self.units.get(file).into_iter().flat_map(|replaced| &replaced.types) {
            let path = type_path(self.rules, file, declared.path);
            types.entry(path).or_insert_with_key(others);
        }
        for (number, declared) in unit.types.iter().enumerate() {
            let path = type_path(self.rules, own_file, declared.path);
            let id = TypeId { file: own_file, number };
            types.entry(path).or_insert_with_key(others).push((id, declared));
        }
        let types = types.into_iter().map(|(path, types)| (path, TypeSet::new(types)));
        let own = Own { file, unit, types: Arc::new(types.collect()) };
        Program {
            rules: self.rules,
            spec: self.spec,
            units: self.units,
            own: Some(own),
            modules: self.modules.clone(),
            folders: self.folders.clone(),
            maps: self.maps.clone(),
            supers: Arc::default(),
        }
    }

    /// Returns the number of the file that replaces another.
    pub(super) fn own_file(&self) -> usize {
        self.units.len()
    }

    pub(super) fn unit(&self, file: usize) -> &'a Unit {
        match (self.units.get(file).map(Arc::as_ref), &self.own) {
            (Some(unit), _) => unit,
            (None, Some(own)) => own.unit,
            (None, None) => unreachable!("a file of the repository"),
        }
    }

    /// Returns the original number of a file in the repository.
    fn original(&self, file: usize) -> usize {
        let own = self.own.as_ref().filter(|_| file == self.own_file());
        own.map_or(file, |own| own.file)
    }

    /// Returns the types of this path that a file sees.
    pub(super) fn with_path(&self, file: usize, path: FullName) -> Option<Arc<TypeSet<'a>>> {
        let path = type_path(self.rules, file, path);
        match self.own.as_ref().and_then(|own| own.types.get(&path)) {
            Some(types) => types.clone(),
            None => self.maps.by_path.get(&path).cloned(),
        }
    }

    /// Returns the target of a name that a TypeScript file imports.
    pub(super) fn brought_in(&self, file: usize, name: &str) -> Option<Export> {
        self.modules.brought_in(self.original(file), self.unit(file), name)
    }

    /// Returns the definitions of a callee, if they are in other files of the repository and not in its own.
    pub(super) fn resolve_callee(&self, place: FilePosition, callee: &Callee) -> FoundDefinitions {
        let found = match callee {
            Callee::New(name) => {
                let types = self.types_named(place, name);
                types.map(|types| types.heads()).unwrap_or_default()
            }
            Callee::Bare(name) => self.bare(place, name),
            Callee::Member(receiver, name) => match self.object(place, receiver) {
                Object::Of(types) => self
                    .method(&types, name, &mut Visits::default())
                    .unwrap_or_else(|| self.extension(name)),
                Object::Module(module) => self.callable(self.modules.resolve_export(module, name)),
                Object::Folder(folder) => self.folders.find_called(&folder, name),
                Object::Unknown => return self.method_of_another_file(place.file, name),
            },
        };
        self.of_others(place.file, found)
    }

    /// Returns the definitions of a chain of names, if they are in other files of the repository and not in its own: types,
    /// functions, methods, and variables outside them.
    pub(super) fn resolve_chain(&self, place: FilePosition, chain: &[&str]) -> FoundDefinitions {
        let Some((name, receiver)) = chain.split_last() else { return FoundDefinitions::default() };
        if let Some(types) = self.types_named(place, &chain.join(".")) {
            return self.of_others(place.file, types.heads());
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
        let called = self.resolve_callee(place, &callee);
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
                    self.exported_value(self.modules.resolve_export(module, &name))
                }
                _ => None,
            },
            _ => None,
        };
        self.of_others(place.file, value.into_iter().collect())
    }

    /// Returns these definitions, unless one is in the file itself.
    fn of_others(&self, file: usize, found: FoundDefinitions) -> FoundDefinitions {
        let is_own = found.is_in(file) || found.is_in(self.original(file));
        if is_own { FoundDefinitions::default() } else { found }
    }

    fn exported_value(&self, export: Option<Export>) -> Option<Definition> {
        let Some(Export::Declared { file, name }) = export else { return None };
        let rows = self.unit(file).values.get(&name)?;
        Some(Definition::new(file, *rows, DefinitionKind::Value))
    }

    fn method_of_another_file(&self, file: usize, name: &str) -> FoundDefinitions {
        let home = self.maps.methods.get(name).copied().flatten();
        let home = home.filter(|home| {
            home.file as usize != self.original(file)
                && !self.unit(file).defines(name)
                && !self.spec.is_common_method(name)
        });
        home.into_iter().collect()
    }

    /// Returns the definitions of `m` in `m()`.
    fn bare(&self, place: FilePosition, name: &str) -> FoundDefinitions {
        let unit = self.unit(place.file);
        let is_own = match self.rules.visibility {
            NameVisibility::FullNames(_) => unit.defines(name),
            _ => unit.functions.contains_key(name),
        };
        if is_own || unit.outwards(place.scope).any(|scope| scope.variables.contains_key(name)) {
            return FoundDefinitions::default();
        }
        match self.rules.visibility {
            NameVisibility::FullNames(_) => {}
            NameVisibility::Exports => return self.callable(self.brought_in(place.file, name)),
            NameVisibility::Folders => {
                return self.folders.find_called(&unit.folder, name);
            }
        }
        let mut around = unit.types_around(place.scope);
        let mut visits = Visits::default();
        let mut of_types = |types: Option<_>| self.method(types.as_slice(), name, &mut visits);
        let inherited = around.find_map(|number| of_types(self.parts(place.file, number)));
        let brought_in = || {
            let all = [&unit.imports, &self.maps.global_imports];
            let members = all.into_iter().flat_map(|imports| {
                let is_of_name = |import: &&Import| import.member.as_deref() == Some(name);
                imports.imports_of(name).filter(is_of_name).chain(imports.stars())
            });
            let mut members = members.filter(|import| import.is_static);
            members.find_map(|import| of_types(self.with_path(place.file, import.path)))
        };
        inherited.or_else(brought_in).unwrap_or_default()
    }

    /// Returns the definition of a TypeScript file's export, if it can be called.
    fn callable(&self, export: Option<Export>) -> FoundDefinitions {
        let Some(Export::Declared { file, name }) = export else {
            return FoundDefinitions::default();
        };
        let unit = self.unit(file);
        let of_type = || Some((unit.outer_type(&name)?.rows, DefinitionKind::Type));
        let found = unit.find_called(&name).or_else(of_type);
        found.map(|(rows, kind)| Definition::new(file, rows, kind)).into_iter().collect()
    }

    /// Returns the object in a variable that a folder's files declare outside functions.
    fn variable_of_folder(&self, folder: &str, name: &str) -> Option<Object<'a>> {
        let file = self.folders.with_variable(folder, name)?;
        let declared = self.unit(file).variable(name)?;
        Some(self.of_declared(FilePosition { file, scope: 0 }, declared))
    }

    /// Returns the definitions of a method in some types, or else in their supertypes.
    fn method(
        &self,
        types: &[Arc<TypeSet<'a>>],
        name: &str,
        visits: &mut Visits,
    ) -> Option<FoundDefinitions> {
        self.upwards(types, visits, |level| {
            let found = FoundDefinitions::from_lists(level.iter().map(|types| types.methods(name)));
            (!found.is_empty()).then_some(found)
        })
    }

    /// Returns the object in a field of some types, or of their supertypes.
    fn field(
        &self,
        types: &[Arc<TypeSet<'a>>],
        name: &str,
        visits: &mut Visits,
    ) -> Option<Object<'a>> {
        self.upwards(types, visits, |level| {
            let id = level.iter().find_map(|types| types.with_field(name))?;
            let found = self.type_of(id);
            let declared = found.fields.get(name)?;
            Some(self.of_declared(FilePosition { file: id.file, scope: found.inside }, declared))
        })
    }

    /// Returns the first result in some types, or else in their supertypes, and so on.
    fn upwards<T>(
        &self,
        types: &[Arc<TypeSet<'a>>],
        visits: &mut Visits,
        find: impl Fn(&[Arc<TypeSet<'a>>]) -> Option<T>,
    ) -> Option<T> {
        let (mut level, mut visited, mut count) = (types.to_vec(), HashSet::default(), 0);
        while !level.is_empty() && visits.begin(&level) {
            if let Some(found) = find(&level) {
                return Some(found);
            }
            count += level.iter().map(|types| types.len()).sum::<usize>();
            if count >= MOST_TYPES {
                break;
            }
            visited.extend(level.iter().flat_map(|types| types.types()).map(|(id, _)| *id));
            let is_new = |types: &Arc<TypeSet<'_>>| {
                types.types().iter().any(|(id, _)| !visited.contains(id))
            };
            level = self.supers(&level).map(|(_, types)| types).filter(is_new).collect();
        }
        None
    }

    /// Returns the definition of an extension method that C# calls on an object whose type has no such method; the platform's
    /// methods of this name take precedence.
    fn extension(&self, name: &str) -> FoundDefinitions {
        let home = self.maps.extensions.get(name).copied().flatten();
        home.filter(|_| !self.spec.is_common_method(name)).into_iter().collect()
    }

    fn type_of(&self, id: TypeId) -> &'a Type {
        &self.unit(id.file).types[id.number]
    }

    /// Returns the supertypes of these types, each with the type that extends it.
    fn supers(
        &self,
        types: &[Arc<TypeSet<'a>>],
    ) -> impl Iterator<Item = (TypeId, Arc<TypeSet<'a>>)> {
        let heirs = types.iter().flat_map(|types| types.heirs()).take(MOST_TYPES);
        let supers = heirs.flat_map(|(id, found)| {
            let supers = self.supers_of(id, found);
            (0..supers.len()).map(move |number| (id, Arc::clone(&supers[number])))
        });
        let mut visits = Visits(MOST_SUPERS);
        supers.take_while(move |(_, types)| visits.begin(std::slice::from_ref(types)))
    }

    /// Returns the supertypes of one type, which are looked up only once.
    fn supers_of(&self, id: TypeId, found: &Type) -> Supers<'a> {
        let known = || self.supers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(supers) = known().get(&id) {
            return Arc::clone(supers);
        }
        // Names are looked up in the scope around the type, not inside it.
        let scope = self.unit(id.file).scopes[found.inside].parent.unwrap_or(0);
        let place = FilePosition { file: id.file, scope };
        let named = found.supers.iter().filter_map(|name| self.types_named(place, name));
        let supers: Supers<'_> = named.collect();
        known().insert(id, Arc::clone(&supers));
        supers
    }

    /// Returns the knowledge about the object that a method is called on.
    fn object(&self, place: FilePosition, receiver: &Receiver) -> Object<'a> {
        let chain = match receiver {
            Receiver::Unknown => return Object::Unknown,
            Receiver::Typed(name) => return Object::from_types(self.types_named(place, name)),
            Receiver::Chain(chain) => chain,
        };
        let around = || {
            let number = self.unit(place.file).types_around(place.scope).next()?;
            Some(self.parts(place.file, number))
        };
        let root = match chain[0].as_str() {
            "this" => around().map(Object::from_types),
            "super" => around().map(|types| {
                let supers = self.supers(types.as_slice());
                Object::Of(supers.filter_map(|(heir, types)| types.without(heir)).collect())
            }),
            name => self.variable(place, name),
        };
        match root {
            Some(root) => self.fields(root, &chain[1..]),
            None => self.type_or_module(place, chain),
        }
    }

    fn of_declared(&self, place: FilePosition, declared: &DeclaredType) -> Object<'a> {
        match declared {
            DeclaredType::Type(name) => Object::from_types(self.types_named(place, name)),
            DeclaredType::Unknown => Object::Unknown,
        }
    }

    /// Returns the object in a variable, or in a field of an enclosing type; `None` if no such name exists.
    fn variable(&self, place: FilePosition, name: &str) -> Option<Object<'a>> {
        let mut visits = Visits::default();
        self.unit(place.file).outwards(place.scope).find_map(|outer| {
            if let Some(declared) = outer.variables.get(name) {
                return Some(self.of_declared(place, declared));
            }
            // TypeScript's fields need `this`.
            let number = outer.of_type.filter(|_| !self.rules.fields_need_this)?;
            self.field(self.parts(place.file, number).as_slice(), name, &mut visits)
        })
    }

    /// Returns the object at the end of a chain of fields.
    fn fields(&self, mut object: Object<'a>, chain: &[String]) -> Object<'a> {
        for name in chain {
            let field = match object {
                Object::Of(types) if !types.is_empty() => {
                    self.field(&types, name, &mut Visits::default())
                }
                Object::Module(module) => {
                    Some(self.exported_object(self.modules.resolve_export(module, name)))
                }
                Object::Folder(folder) => self.variable_of_folder(&folder, name),
                other => return other,
            };
            object = field.unwrap_or(Object::Unknown);
        }
        object
    }

    /// Resolves a chain that does not begin with a variable: a type with static members, or a module.
    fn type_or_module(&self, place: FilePosition, chain: &[String]) -> Object<'a> {
        for length in (1..=chain.len().min(MOST_PARTS)).rev() {
            if let Some(types) = self.types_named(place, &chain[..length].join(".")) {
                return self.fields(Object::Of(vec![types]), &chain[length..]);
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
        // By convention, types begin with a capital; other names begin a package.
        let is_name_of_type = chain.iter().any(|name| name.starts_with(char::is_uppercase));
        if is_name_of_type { Object::Of(Vec::new()) } else { Object::Unknown }
    }

    /// Resolves a chain that begins with an imported package, or with a variable of another file of its own package.
    fn in_package(&self, unit: &Unit, chain: &[String]) -> Object<'a> {
        let mut imports = unit.imports.imports_of(&chain[0]);
        let root = match imports.find(|import| import.local == chain[0]) {
            Some(import) => {
                let folder = self.folders.imported_folder(&import.from);
                Some(match folder {
                    Some(folder) => Object::Folder(folder.to_owned()),
                    None => Object::Of(Vec::new()),
                })
            }
            None => self.variable_of_folder(&unit.folder, &chain[0]),
        };
        root.map_or(Object::Unknown, |root| self.fields(root, &chain[1..]))
    }

    fn exported_object(&self, export: Option<Export>) -> Object<'a> {
        let (file, name) = match export {
            None => return Object::Of(Vec::new()),
            Some(Export::Module(module)) => return Object::Module(module),
            Some(Export::Declared { file, name }) => (file, name),
        };
        let place = FilePosition { file, scope: 0 };
        let types = self.types_named(place, &name);
        match self.unit(file).variable(&name) {
            Some(declared) if types.is_none() => self.of_declared(place, declared),
            _ => Object::from_types(types),
        }
    }
}

/// Returns the path of a type as a file sees it: TypeScript files do not see each other's types.
fn type_path(rules: &TypeRules, file: usize, path: FullName) -> TypePath {
    (matches!(rules.visibility, NameVisibility::Exports).then_some(file), path)
}

/// Adds the only file that defines a name, or none if several files do; of the definitions in one file, the first counts.
fn enter<'a>(homes: &mut Homes<'a>, name: &'a str, here: Definition) {
    let home = homes.entry(name).or_insert(Some(here));
    *home = home.filter(|home| home.file == here.file).map(|home| home.min(here));
}
