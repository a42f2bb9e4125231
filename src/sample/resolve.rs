//! Which file a callee is defined in: imports followed through the repository as Python follows them.

use rustc_hash::{FxHashMap, FxHashSet};

use super::names::{Definition, Names, Target};
use super::source::canonical;
use crate::corpus::Repository;

/// How many files one look-up may visit, so that imports in a circle and stars upon stars come to an end.
const MOST_STEPS: u32 = 256;

/// Methods that much else has too: of Python's own types, of the usual libraries, and of everything
/// that runs, opens or trains. A call of one tells nothing about whose it is. Sorted.
#[rustfmt::skip]
const COMMON_METHODS: [&str; 369] = [
    "T", "abs", "absolute", "acquire", "add", "addHandler", "add_", "add_argument", "add_module", "add_subparsers",
    "agg", "all", "any", "append", "appendleft", "apply", "argmax", "argmin", "args", "as_posix", "as_tensor",
    "assign", "astype", "backward", "batch_decode", "bit_length", "bool", "build", "call", "cancel", "capitalize",
    "casefold", "cast", "center", "check", "children", "choice", "chunk", "clamp", "clear", "clip", "clone",
    "clone_", "close", "columns", "commit", "compile", "compute", "conjugate", "connect", "contiguous", "convert",
    "copy", "copy_", "cos", "count", "cpu", "create", "critical", "cuda", "cumsum", "cursor", "data", "date",
    "debug", "decode", "delete", "describe", "det", "detach", "device", "diag", "diff", "difference", "dim",
    "discard", "dispatch", "div", "done", "dot", "double", "draw", "drop", "dropna", "dtype", "dump", "dumps",
    "elements", "emit", "encode", "encode_plus", "end", "endswith", "error", "eval", "evaluate", "exception",
    "exec", "execute", "exists", "exit", "exp", "expand", "expanduser", "extend", "extendleft", "extract", "eye",
    "fetch", "fetchall", "fetchone", "fill", "fill_", "fillna", "filter", "find", "findall", "fit", "flatten",
    "flip", "float", "flush", "format", "forward", "from_bytes", "from_dict", "from_pretrained", "fromkeys",
    "gather", "generate", "get", "getLogger", "glob", "group", "groupby", "groups", "half", "handle", "head", "hex",
    "iloc", "index", "info", "init", "insert", "int", "intersection", "inv", "inverse", "is_alive", "is_dir",
    "is_file", "is_set", "isalnum", "isalpha", "isdigit", "isinstance", "islower", "isnull", "isnumeric",
    "isoformat", "isspace", "isupper", "item", "items", "iter", "iterrows", "join", "keys", "kill", "kwargs",
    "ljust", "load", "load_state_dict", "loads", "loc", "lock", "log", "log_prob", "long", "lower", "lstrip",
    "main", "map", "masked_fill", "match", "matmul", "max", "mean", "melt", "merge", "min", "mkdir", "modules",
    "most_common", "move_to_end", "mul", "mul_", "name", "named_modules", "named_parameters", "narrow", "ndim",
    "next", "no_grad", "norm", "normal", "notify", "now", "numel", "numpy", "ones", "open", "parameters", "parent",
    "parse", "parse_args", "partition", "permutation", "permute", "pivot", "plot", "poll", "pop", "popitem",
    "popleft", "post", "pow", "predict", "print_help", "process", "prod", "publish", "push", "put", "query", "rand",
    "randint", "randn", "read", "read_bytes", "read_text", "readline", "readlines", "register", "register_buffer",
    "register_parameter", "relative_to", "release", "remove", "rename", "rename_axis", "render", "repeat",
    "replace", "replace_all", "request", "requires_grad_", "reset", "reset_index", "reshape", "resize", "resolve",
    "result", "reverse", "rfind", "rglob", "rindex", "rjust", "rmdir", "rollback", "rotate", "round", "rpartition",
    "rsplit", "rstrip", "run", "sample", "save", "scatter", "search", "seed", "seek", "select", "send", "set",
    "setLevel", "setUp", "set_defaults", "set_index", "set_result", "setdefault", "shape", "show", "shuffle",
    "shutdown", "sin", "size", "sort", "sort_values", "split", "splitlines", "sqrt", "squeeze", "stack", "start",
    "startswith", "stat", "state_dict", "std", "step", "stop", "strftime", "strip", "strptime", "sub", "sub_",
    "submit", "subscribe", "subtract", "sum", "swapcase", "symmetric_difference", "tail", "tan", "tanh", "tearDown",
    "tell", "terminate", "test", "tile", "time", "timestamp", "title", "to", "to_bytes", "to_csv", "to_dict",
    "today", "tolist", "touch", "train", "transform", "translate", "transpose", "type", "uniform", "union",
    "unlink", "unlock", "unsqueeze", "update", "upper", "validate", "values", "var", "view", "wait", "warn",
    "warning", "with_suffix", "write", "write_bytes", "write_text", "writelines", "zero_", "zero_grad", "zeros",
    "zfill",
];

/// Where a module found by its absolute name lies.
struct Place<'a> {
    /// The folder that its import starts from.
    root: &'a str,
    file: usize,
}

/// The modules of a repository and what they define.
pub(super) struct Modules<'a> {
    names: &'a [Option<Names>],
    /// Folder and module of each file: `repo/a/b` of `repo/a/b.py` and of `repo/a/b/__init__.py`.
    paths: Vec<ModulePath<'a>>,
    by_path: FxHashMap<&'a str, usize>,
    /// Absolute dotted name → the modules that it can mean, those nearest the repository's folder first.
    absolute: FxHashMap<String, Vec<Place<'a>>>,
    /// Method → the one file with a class that defines it; none where there are several.
    methods: FxHashMap<&'a str, Option<usize>>,
}

#[derive(Clone, Copy)]
struct ModulePath<'a> {
    /// The folder that the file stands in, which relative imports start from.
    folder: &'a str,
    module: &'a str,
}

/// What a chain of attributes leads to.
enum Found {
    /// A function, a class or a class's method of this file.
    Definition(usize),
    /// An attribute of something that the repository has, though it's not known what.
    Attribute,
    Nothing,
}

impl<'a> Modules<'a> {
    /// `names` has an entry for each file of the repository.
    pub(super) fn new(repository: &'a Repository, names: &'a [Option<Names>]) -> Self {
        let paths: Vec<_> = repository
            .files
            .iter()
            .map(|file| module_path(&file.path))
            .collect();
        let packages: FxHashSet<&str> = paths
            .iter()
            .filter(|path| path.folder == path.module)
            .map(|path| path.module)
            .collect();
        let mut modules = Self {
            names,
            by_path: FxHashMap::default(),
            absolute: FxHashMap::default(),
            methods: FxHashMap::default(),
            paths,
        };
        for (index, path) in modules.paths.iter().enumerate() {
            let file = canonical(index, &repository.files[index]);
            // A package hides a module of the same name.
            let hides = path.folder == path.module;
            if hides || !modules.by_path.contains_key(path.module) {
                modules.by_path.insert(path.module, file);
            }
            for (at, _) in path.module.match_indices('/') {
                // What can be imported from is no package itself, else each `logging.py` would pass for Python's.
                let root = &path.module[..at];
                if root == repository.name || !packages.contains(root) {
                    let name = path.module[at + 1..].replace('/', ".");
                    modules
                        .absolute
                        .entry(name)
                        .or_default()
                        .push(Place { root, file });
                }
            }
            for method in names[file].iter().flat_map(|names| &names.methods) {
                let home = modules.methods.entry(method).or_insert(Some(file));
                *home = home.filter(|&home| home == file);
            }
        }
        for places in modules.absolute.values_mut() {
            places.sort_by_key(|place| place.root.matches('/').count());
        }
        modules
    }

    /// Whether `callee`, called in `file`, is defined in another file of the repository.
    ///
    /// Names go by the imports. A method of an object of unknown class counts where a single file defines
    /// a method of that name, and where the name is none that other libraries' objects have too.
    pub(super) fn is_in_another_file(&self, file: usize, callee: &str) -> bool {
        let Some(names) = &self.names[file] else {
            return false;
        };
        let chain: Vec<&str> = callee.split('.').collect();
        let (first, rest) = (chain[0], &chain[1..]);
        let steps = &mut { MOST_STEPS };
        let found = if names.local.contains(first) {
            Found::Attribute
        } else if let Some(targets) = names.imports.get(first) {
            self.any(file, targets, rest, steps)
        } else {
            match self.any(file, &names.stars, &chain, steps) {
                Found::Nothing => Found::Attribute,
                found => found,
            }
        };
        match (found, rest.last()) {
            (Found::Definition(home), _) => home != file,
            (Found::Attribute, Some(method)) => self.is_method_of_another_file(file, names, method),
            _ => false,
        }
    }

    fn is_method_of_another_file(&self, file: usize, names: &Names, method: &str) -> bool {
        let home = self.methods.get(method).copied().flatten();
        home.is_some_and(|home| home != file)
            && !names.local.contains(method)
            && !method.starts_with("__")
            && COMMON_METHODS.binary_search(&method).is_err()
    }

    /// The first of the targets that leads to a definition.
    fn any(&self, from: usize, targets: &[Target], rest: &[&str], steps: &mut u32) -> Found {
        let mut best = Found::Nothing;
        for target in targets {
            match self.follow(from, target, rest, steps) {
                Found::Nothing => {}
                Found::Attribute => best = Found::Attribute,
                found => return found,
            }
        }
        best
    }

    /// `rest` of what an import in file `from` binds. How much of the dotted name is the module shows in the files alone.
    fn follow(&self, from: usize, target: &Target, rest: &[&str], steps: &mut u32) -> Found {
        let module = target.module.split('.').filter(|part| !part.is_empty());
        let mut chain: Vec<&str> = module.chain(target.member.as_deref()).collect();
        chain.extend_from_slice(rest);
        let mut best = Found::Nothing;
        let shortest = usize::from(target.level == 0);
        for cut in (shortest..=chain.len()).rev() {
            let Some(file) = self.module(from, target.level, &chain[..cut]) else {
                continue;
            };
            match self.within(file, &chain[cut..], steps) {
                Found::Nothing => {}
                Found::Attribute => best = Found::Attribute,
                found => return found,
            }
        }
        best
    }

    /// What a chain of names means inside a module.
    fn within(&self, file: usize, chain: &[&str], steps: &mut u32) -> Found {
        let ([first, rest @ ..], Some(names)) = (chain, &self.names[file]) else {
            return Found::Nothing;
        };
        if *steps == 0 {
            return Found::Nothing;
        }
        *steps -= 1;
        match (names.defined.get(*first), rest) {
            (Some(_), []) => return Found::Definition(file),
            (Some(Definition::Class(methods)), [method]) if methods.contains(*method) => {
                return Found::Definition(file);
            }
            (Some(Definition::Class(_)), [_]) => return Found::Attribute,
            (Some(_), _) => return Found::Nothing,
            (None, _) => {}
        }
        if let Some(targets) = names.imports.get(*first) {
            return self.any(file, targets, rest, steps);
        }
        match self.any(file, &names.stars, chain, steps) {
            // An object at the top level of the module, of a class that isn't known.
            Found::Nothing if !rest.is_empty() => Found::Attribute,
            found => found,
        }
    }

    /// The file of a module as it is named in file `from`; with level 0 from anywhere, else from that many folders up.
    fn module(&self, from: usize, level: usize, parts: &[&str]) -> Option<usize> {
        let mut folder = self.paths[from].folder;
        if level == 0 {
            let places = self.absolute.get(&parts.join("."))?;
            // A script finds its neighbours before all else.
            let beside = places.iter().find(|place| place.root == folder);
            return beside.or(places.first()).map(|place| place.file);
        }
        for _ in 1..level {
            folder = folder.rsplit_once('/')?.0;
        }
        let mut path = folder.to_owned();
        for part in parts {
            path.push('/');
            path.push_str(part);
        }
        self.by_path.get(path.as_str()).copied()
    }
}

fn module_path(path: &str) -> ModulePath<'_> {
    let module = path.strip_suffix(".py").unwrap_or(path);
    let folder = module.rsplit_once('/').map_or("", |(folder, _)| folder);
    let module = module.strip_suffix("/__init__").unwrap_or(module);
    ModulePath { folder, module }
}
