//! The architecture holds: chapters import downwards only, no file imports itself in a circle, the library names no flag.
//!
//! Imports are read from the text: `use` trees and paths that begin with `crate`, `super`, `self` or a child module. A plain
//! `pub use` only hands a name on, and counts for those who import it. Test modules may import anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Path of a module within its crate: `["retrieve", "index"]`.
type Module = Vec<String>;

/// The modules of one crate.
struct Crate {
    modules: BTreeMap<Module, Source>,
}

/// A module's file, with its comments, literals and tests blanked out.
struct Source {
    file: PathBuf,
    children: Vec<String>,
    imports: Vec<Import>,
    /// Text without `use` declarations.
    rest: String,
}

/// One path of a `use` declaration.
struct Import {
    is_public: bool,
    path: Vec<String>,
    name: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn library() -> Crate {
    Crate::read(&root().join("src/lib.rs"))
}

fn binary() -> Crate {
    Crate::read(&root().join("src/bin/repoformer/main.rs"))
}

/// Chapters in their order, as `lib.rs` lists them.
fn chapters() -> Vec<String> {
    let text = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let names = text.lines().filter_map(|line| line.strip_prefix("pub mod "));
    names.map(|name| name.trim_end_matches(';').to_owned()).collect()
}

#[test]
fn the_source_folder_holds_few_entries_and_one_for_each_chapter() {
    let entries: Vec<PathBuf> =
        fs::read_dir(root().join("src")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(entries.len() <= 17, "{entries:?}");
    let stems: BTreeSet<String> = entries
        .iter()
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|stem| stem != "lib" && stem != "bin")
        .collect();
    assert_eq!(stems, chapters().into_iter().collect());
}

#[test]
fn a_chapter_imports_only_from_those_before_it() {
    let (library, order) = (library(), chapters());
    let place = |module: &Module| order.iter().position(|name| Some(name) == module.first());
    let mut backwards = Vec::new();
    for (from, to) in library.edges() {
        if place(&from) < place(&to) {
            backwards.push(format!("{} imports {}", library.file(&from), library.file(&to)));
        }
    }
    assert!(backwards.is_empty(), "{}", backwards.join("\n"));
}

/// It is no longer maintained: whoever replaces it touches one folder.
#[test]
fn bincode_stays_behind_its_module() {
    let files = walkdir::WalkDir::new(root().join("src")).into_iter().flatten();
    let named = files
        .filter(|file| fs::read_to_string(file.path()).is_ok_and(|text| text.contains("bincode")));
    let named: Vec<PathBuf> = named.map(walkdir::DirEntry::into_path).collect();
    assert!(!named.is_empty());
    let module = root().join("src/store/artifact");
    assert!(named.iter().all(|file| file.starts_with(&module)), "{named:?}");
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    for of in [library(), binary()] {
        let circles = of.circles();
        assert!(circles.is_empty(), "{}", circles.join("\n"));
    }
}

#[test]
fn circles_and_wrong_directions_would_be_found() {
    let source = |path: &[&str], children: &[&str], text: &str| {
        let module: Module = path.iter().map(|name| (*name).to_owned()).collect();
        let file = PathBuf::from(module.join("/"));
        let children = children.iter().map(|name| (*name).to_owned()).collect();
        (module, Source::of(file, children, text))
    };
    let modules = [
        source(&[], &["a", "b"], ""),
        source(&["a"], &["x"], "mod x; pub use x::Thing; use crate::b::make; fn f() { make() }"),
        source(&["a", "x"], &[], "pub struct Thing; // use crate::b::no;\n"),
        source(&["b"], &[], "use crate::a::{self, Thing as Other}; const S: &str = \"crate::b\";"),
    ];
    let made = Crate { modules: modules.into_iter().collect() };
    let names = |(from, to): (Module, Module)| format!("{}>{}", from.join("::"), to.join("::"));
    let edges: Vec<String> = made.edges().into_iter().map(names).collect();
    assert_eq!(edges, ["a>b", "b>a", "b>a::x"]);
    assert_eq!(made.circles(), ["a, b"]);
}

impl Crate {
    fn read(entry: &Path) -> Self {
        let mut modules = BTreeMap::new();
        let mut waiting = vec![(Vec::new(), entry.to_owned(), entry.parent().unwrap().to_owned())];
        while let Some((module, file, folder)) = waiting.pop() {
            let text = fs::read_to_string(&file).unwrap();
            let blank = lift_inner_modules(without_tests(blank(&text)));
            let mut children = Vec::new();
            for line in blank.lines() {
                let line = line.trim();
                let declared = line.strip_suffix(';').and_then(|line| {
                    let (_, name) = line.rsplit_once("mod ")?;
                    let is_module = line == format!("mod {name}") || line.starts_with("pub");
                    is_module.then(|| name.to_owned())
                });
                let Some(name) = declared else { continue };
                let beside = folder.join(format!("{name}.rs"));
                let inside = folder.join(&name).join("mod.rs");
                let path = if beside.exists() { beside } else { inside };
                let below: Module = [&module[..], std::slice::from_ref(&name)].concat();
                waiting.push((below, path, folder.join(&name)));
                children.push(name);
            }
            modules.insert(module, Source::of(file, children, &blank));
        }
        Self { modules }
    }

    fn file(&self, module: &Module) -> String {
        let file = &self.modules[module].file;
        file.strip_prefix(root()).unwrap_or(file).display().to_string()
    }

    /// Pairs of modules of which the first uses something that the second defines.
    fn edges(&self) -> BTreeSet<(Module, Module)> {
        let mut edges = BTreeSet::new();
        for (module, source) in &self.modules {
            let imported = source
                .imports
                .iter()
                .filter(|import| !import.is_public || words(&source.rest).any(|w| w == import.name))
                .map(|import| import.path.clone());
            for path in imported.chain(source.paths()) {
                let Some(path) = self.absolute(module, &path) else {
                    continue;
                };
                let target = self.defining(&path, 0);
                if target != *module {
                    edges.insert((module.clone(), target));
                }
            }
        }
        edges
    }

    /// A path from the root of the crate; `None` where it leads out of it.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Vec<String>> {
        let (mut base, mut rest) = (module.clone(), path);
        match path.first()?.as_str() {
            "crate" => (base, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            child if self.modules[module].children.iter().any(|name| name == child) => {}
            _ => return None,
        }
        Some([&base[..], rest].concat())
    }

    /// The module that defines what a path names, through all those that hand it on.
    fn defining(&self, path: &[String], depth: usize) -> Module {
        let mut module = Vec::new();
        for (at, name) in path.iter().enumerate() {
            let below: Module = [&module[..], std::slice::from_ref(name)].concat();
            if self.modules.contains_key(&below) {
                module = below;
                continue;
            }
            let imports = self.modules[&module].imports.iter();
            let handed_on = imports.filter(|import| import.name == *name).find_map(|import| {
                let from = self.absolute(&module, &import.path)?;
                (from != path[..=at]).then(|| [&from[..], &path[at + 1..]].concat())
            });
            return match handed_on {
                Some(path) if depth < 20 => self.defining(&path, depth + 1),
                _ => module,
            };
        }
        module
    }

    /// Groups of modules that import each other in a circle.
    fn circles(&self) -> Vec<String> {
        let edges = self.edges();
        let mut reached: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
        for module in self.modules.keys() {
            let (mut seen, mut waiting) = (BTreeSet::new(), vec![module]);
            while let Some(from) = waiting.pop() {
                let next = edges.iter().filter(|(of, _)| of == from).map(|(_, to)| to);
                waiting.extend(next.filter(|to| seen.insert(*to)));
            }
            reached.insert(module, seen);
        }
        let mut circles = BTreeSet::new();
        for (module, seen) in &reached {
            if seen.contains(module) {
                let both = seen.iter().filter(|other| reached[**other].contains(module));
                let files: Vec<String> = both.map(|other| self.file(other)).collect();
                circles.insert(files.join(", "));
            }
        }
        circles.into_iter().collect()
    }
}

impl Source {
    /// `text` may hold comments and literals still.
    fn of(file: PathBuf, children: Vec<String>, text: &str) -> Self {
        let text = blank(text);
        let (mut imports, mut rest, mut left) = (Vec::new(), String::new(), text.as_str());
        while let Some(at) = find_use(left) {
            let (before, from) = left.split_at(at);
            let line = before.rfind(['\n', ';', '}']).map_or(0, |at| at + 1);
            let is_public = before[line..].trim_start().starts_with("pub");
            let end = from.find(';').unwrap_or(from.len());
            expand(&from["use ".len()..end], &[], is_public, &mut imports);
            rest.push_str(before);
            left = &from[end..];
        }
        rest.push_str(left);
        Self { file, children, imports, rest }
    }

    /// Paths in the text that begin with a keyword or a child module.
    fn paths(&self) -> impl Iterator<Item = Vec<String>> + '_ {
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let runs = self.rest.split(move |c| !is_path(c));
        runs.filter(|run| run.contains("::")).filter_map(|run| {
            let names: Vec<String> = run.split("::").map(str::to_owned).collect();
            let first = names.first()?;
            let begins = ["crate", "super", "self"].contains(&first.as_str());
            (begins || self.children.contains(first)).then_some(names)
        })
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Place of the next `use` declaration.
fn find_use(text: &str) -> Option<usize> {
    text.match_indices("use ").map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    })
}

/// The paths of a `use` tree.
fn expand(tree: &str, prefix: &[String], is_public: bool, imports: &mut Vec<Import>) {
    let tree = tree.trim();
    let names = |text: &str| -> Vec<String> {
        let names = text.split("::").map(|name| name.trim().to_owned());
        names.filter(|name| !name.is_empty()).collect()
    };
    if let Some((before, group)) = tree.split_once('{') {
        let prefix = [prefix, &names(before)].concat();
        let group = &group[..group.rfind('}').unwrap_or(group.len())];
        let (mut depth, mut start) = (0, 0);
        for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    if !group[start..at].trim().is_empty() {
                        expand(&group[start..at], &prefix, is_public, imports);
                    }
                    start = (at + 1).min(group.len());
                }
                _ => {}
            }
        }
        return;
    }
    let (path, alias) = match tree.split_once(" as ") {
        Some((path, alias)) => (path, Some(alias.trim().to_owned())),
        None => (tree, None),
    };
    let mut path = [prefix, &names(path)].concat();
    if path.len() > 1 && path.last().is_some_and(|name| name == "self") {
        path.pop();
    }
    if let Some(name) = alias.or_else(|| path.last().cloned()) {
        imports.push(Import { is_public, path, name });
    }
}

/// A text with its comments and the inside of its literals taken out.
fn blank(text: &str) -> String {
    let (mut out, mut left) = (String::with_capacity(text.len()), text);
    while let Some(c) = left.chars().next() {
        let after_name = out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let skipped = if left.starts_with("//") {
            left.find('\n').unwrap_or(left.len())
        } else if left.starts_with("/*") {
            left.find("*/").map_or(left.len(), |at| at + 2)
        } else if let Some(length) = raw_string(left).filter(|_| !after_name) {
            out.push_str("\"\"");
            length
        } else if c == '"' {
            out.push_str("\"\"");
            string(left)
        } else if let Some(length) = character(left) {
            out.push_str("' '");
            length
        } else {
            out.push(c);
            c.len_utf8()
        };
        left = &left[skipped..];
    }
    out
}

/// Length of the string that a text begins with.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of the raw string that a text begins with.
fn raw_string(text: &str) -> Option<usize> {
    let begin = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let hashes = begin.len() - begin.trim_start_matches('#').len();
    let inside = begin[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inside.find(&end)? + end.len();
    Some(text.len() - inside.len() + length)
}

/// Length of the character literal that a text begins with; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    match inside.strip_prefix('\\') {
        Some(escaped) => {
            escaped.char_indices().skip(1).find(|(_, c)| *c == '\'').map(|(at, _)| at + 3)
        }
        None => {
            let first = inside.chars().next()?;
            let end = first.len_utf8();
            inside[end..].starts_with('\'').then_some(end + 2)
        }
    }
}

/// A blanked text without what stands below `#[cfg(test)]`, and without the places that may see an item.
fn without_tests(mut text: String) -> String {
    while let Some(begin) = text.find("#[cfg(test)]") {
        let end = begin + length_of_item(&text[begin..]);
        text.replace_range(begin..end, "");
    }
    while let Some(begin) = text.find("(in ") {
        let end = text[begin..].find(')').map_or(text.len(), |at| begin + at + 1);
        text.replace_range(begin..end, "");
    }
    text
}

/// Files that may name `std::fs` or `tempfile` themselves, and why.
const OWN_CALLS: [(&str, &str); 7] = [
    ("src/store/files.rs", "the place"),
    (
        "src/store/artifact/replace.rs",
        "has names of temporary files chosen, which the place creates",
    ),
    ("src/store/parquet.rs", "hands an open file to a reader of the standard library's files"),
    ("src/execute/guard/", "works within the sandbox, on /proc and on mounts"),
    ("src/bin/repoformer/commands/server.rs", "asks /proc how interruptions are met"),
    ("src/bin/repoformer/commands/doctor.rs", "asks /proc, and writes nothing that is kept"),
    (
        "src/bin/repoformer/commands/demonstration.rs",
        "lays out files for a dry run, outside of any cache",
    ),
];

/// Tests let calls fail in one place (`store::files`), which so must be the only one.
#[test]
fn files_are_read_and_written_in_one_place() {
    let mut elsewhere = Vec::new();
    for of in [library(), binary()] {
        for (module, source) in &of.modules {
            let file = of.file(module);
            let is_test = file.ends_with("tests.rs") || file.ends_with("test_server.rs");
            if is_test || OWN_CALLS.iter().any(|(path, _)| file.starts_with(path)) {
                continue;
            }
            // Options are handed to the place, which opens.
            let rest = source.rest.replace("std::fs::File::options()", "");
            let is_own = |import: &Import| match &import.path[..] {
                [first, second, ..] => first == "std" && second == "fs" || first == "tempfile",
                _ => false,
            };
            if rest.contains("std::fs::")
                || rest.contains("tempfile::")
                || source.imports.iter().any(is_own)
            {
                elsewhere.push(file);
            }
        }
    }
    assert!(elsewhere.is_empty(), "call `store::files`, or say why not here: {elsewhere:?}");
}

/// Packages of a lock file: name and version, with what each depends on.
fn locked(path: &str) -> BTreeMap<(String, String), BTreeSet<String>> {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let lock: toml::Table = text.parse().unwrap();
    let package = |package: &toml::Value| {
        let field = |name: &str| package[name].as_str().unwrap().to_owned();
        let names = package.get("dependencies").and_then(toml::Value::as_array).into_iter();
        let names = names.flatten().map(|name| name.as_str().unwrap().to_owned());
        ((field("name"), field("version")), names.collect())
    };
    lock["package"].as_array().unwrap().iter().map(package).collect()
}

/// Its lock was an older one, with which it was not built (`--locked`), and with other versions.
#[test]
fn the_fuzzer_has_our_packages_in_our_versions() {
    let (ours, fuzzers) = (locked("Cargo.lock"), locked("fuzz/Cargo.lock"));
    let own = ["arbitrary", "libfuzzer-sys", "repoformer-fuzz"];
    let others: Vec<_> = fuzzers.keys().filter(|package| !ours.contains_key(*package)).collect();
    assert!(others.iter().all(|(name, _)| own.contains(&name.as_str())), "{others:?}");
    let this = ("repoformer".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let manifest: toml::Table =
        fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let for_tests = manifest["dev-dependencies"].as_table().unwrap();
    // The fuzzer has the default features.
    let of_servers = manifest["features"]["serve"].as_array().unwrap();
    let is_left_out = |name: &str| {
        let named = toml::Value::from(format!("dep:{name}"));
        for_tests.contains_key(name) || of_servers.contains(&named)
    };
    let missing: Vec<_> = ours[&this].difference(&fuzzers[&this]).collect();
    assert!(missing.iter().all(|name| is_left_out(name)), "{missing:?}");
}

/// Names that a file's inner modules and macros take from `super` belong to the file itself.
fn lift_inner_modules(text: String) -> String {
    let mut lifted = String::with_capacity(text.len());
    let mut left = text.as_str();
    let is_block = |line: &str| {
        let line = line.trim();
        line.ends_with('{') && (line.starts_with("macro_rules!") || words(line).any(|w| w == "mod"))
    };
    while let Some(line) = left.split_inclusive('\n').next() {
        let length = if is_block(line) { length_of_item(left) } else { line.len() };
        let part = &left[..length];
        match is_block(line) {
            true => {
                let inner = part.replace("super::super::", "\0").replace("super::", "self::");
                lifted.push_str(&inner.replace('\0', "super::"));
            }
            false => lifted.push_str(part),
        }
        left = &left[length..];
    }
    lifted
}

/// Length of the item that a text begins with, to its semicolon or closing brace.
fn length_of_item(text: &str) -> usize {
    match text.find([';', '{']) {
        Some(at) if text[at..].starts_with('{') => {
            let mut depth = 0;
            let closed = text[at..].char_indices().find(|(_, c)| {
                depth += i32::from(*c == '{') - i32::from(*c == '}');
                depth == 0
            });
            closed.map_or(text.len(), |(end, _)| at + end + 1)
        }
        Some(at) => at + 1,
        None => text.len(),
    }
}
