//! Finds the names in predictions that nothing defines: a sign of a wrong prediction that needs no tests.
//!
//! A prediction is inserted into its file and parsed. A bare name resolves if a scope around it binds the name, in the prediction or in
//! the rest of the file, or if it is built into the language. If the file sees names of other files without importing them by name
//! (packages, namespaces, inheritance, `*`), a mention anywhere in the repository is enough.
//!
//! A member, or the name of an argument, is checked only if its expression begins with a name of the repository: an import of one of its
//! modules, something that the file defines, or `self`. It resolves if the repository mentions it outside the hole, or if the prediction
//! assigns it. The types of other objects are not known.

use std::borrow::Cow;

use foldhash::{HashMap, HashSet};
use repoformer_core::repository::corpus::Repository;
use repoformer_core::task::Task;
use repoformer_text::language::syntax::{Binding, NameUse, NameUses, Syntax, UseRole};
use repoformer_text::language::{Grammar, Language, Resolution, identifiers};
use repoformer_text::lines::Lines;
use serde_json::{Value, json};

use super::score::target_digest;

/// Names of one prediction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedNames {
    /// Number of names that were checked, without duplicates.
    pub checked: usize,
    /// Those that resolve nowhere, in order.
    pub unresolved: Vec<String>,
}

/// Names of the predictions for one task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskNames {
    /// 0-based position in the task file.
    pub row: usize,
    /// Id of the task.
    pub task_id: String,
    /// Name of the task's repository.
    pub repository: String,
    /// Names of each sample.
    pub samples: Vec<CheckedNames>,
    /// Names of the target.
    pub reference: CheckedNames,
    target: u64,
}

impl TaskNames {
    /// Returns the proportion of samples whose names all resolve, among the samples that use any; `None` if no sample does.
    pub fn resolved(&self) -> Option<f64> {
        let of = self.samples.iter().filter(|one| one.checked > 0);
        let (mut resolved, mut all) = (0, 0_usize);
        for one in of {
            all += 1;
            resolved += usize::from(one.unresolved.is_empty());
        }
        (all > 0).then(|| resolved as f64 / all as f64)
    }

    /// Returns a line of scores: `{"task_id", "row", "repository", "names": {"resolved"}, "unresolved", "checked", "target_unresolved",
    /// "target_digest"}`. `names` is null if no sample uses a name that can be checked.
    pub fn to_record(&self) -> Value {
        let of = |of: fn(&CheckedNames) -> Value| self.samples.iter().map(of).collect::<Value>();
        json!({
            "task_id": self.task_id, "row": self.row, "repository": self.repository,
            "names": self.resolved().map(|resolved| json!({"resolved": resolved})),
            "unresolved": of(|one| json!(one.unresolved)), "checked": of(|one| json!(one.checked)),
            "target_unresolved": self.reference.unresolved,
            "target_digest": format!("{:016x}", self.target),
        })
    }
}

/// Folders at a repository's root that contain packages without being one.
const SOURCE_FOLDERS: [&str; 3] = ["lib", "python", "src"];

/// Names that the files of a repository mention outside strings.
pub struct MentionedNames<'a> {
    repository: &'a Repository,
    language: Language,
    /// For each name, the first file that mentions it, and whether others do.
    files: HashMap<&'a str, (usize, bool)>,
    /// Names of the modules and packages at the repository's root.
    roots: HashSet<&'a str>,
}

impl<'a> MentionedNames<'a> {
    /// Reads the files.
    pub fn new(repository: &'a Repository, language: Language) -> Self {
        let mut files: HashMap<&str, (usize, bool)> = HashMap::default();
        let mut roots = HashSet::default();
        for (number, file) in repository.files.iter().enumerate() {
            let path =
                file.path.split('/').skip(1).skip_while(|part| SOURCE_FOLDERS.contains(part));
            roots.extend(path.take(1).map(|part| part.strip_suffix(".py").unwrap_or(part)));
            if (file.same_as as usize) < number {
                continue;
            }
            for name in identifiers(&file.text, language) {
                let place = files.entry(name).or_insert((number, false));
                place.1 |= place.0 != number;
            }
        }
        Self { repository, language, files, roots }
    }

    /// Checks the names of each sample for a task, and of its target.
    ///
    /// # Errors
    /// The task does not fit its repository; the message gives the reason.
    pub fn check(&self, task: &Task, samples: &[&str]) -> Result<TaskNames, String> {
        let files = &self.repository.files;
        let own = files.iter().position(|file| file.path == task.path);
        let own = own.ok_or_else(|| format!("its file {} is not in the repository", task.path))?;
        let text = &files[own].text;
        let hole = task.hole(text)?;
        let (left, right) = (&text[..hole.start], &text[hole.end..]);
        let first = own.min(files[own].same_as as usize);
        let around =
            identifiers(left, self.language).into_iter().chain(identifiers(right, self.language));
        let file = OwnFile { all: self, own: first, path: &task.path, around: around.collect() };
        let target = &text[hole.start..hole.end];
        let check = |prediction: &str| file.check(left, &laid_out(prediction, left, target), right);
        Ok(TaskNames {
            row: task.row,
            task_id: task.id.clone(),
            repository: task.repository.clone(),
            samples: samples.iter().map(|sample| check(sample)).collect(),
            reference: check(target),
            target: target_digest(&task.ground_truth),
        })
    }
}

/// Returns a prediction with the target's indentation and line end, which cuts remove.
fn laid_out<'p>(prediction: &'p str, left: &str, target: &str) -> Cow<'p, str> {
    let first = target.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let indentation = &first[..first.len() - first.trim_start().len()];
    let is_at_start = left.is_empty() || left.ends_with('\n');
    let lacks_start = is_at_start && prediction.starts_with(|c: char| !c.is_whitespace());
    let lacks_end = target.ends_with('\n') && !prediction.ends_with('\n');
    let start = if lacks_start { indentation } else { "" };
    let end = if lacks_end { "\n" } else { "" };
    match (start, end) {
        ("", "") => prediction.into(),
        _ => format!("{start}{prediction}{end}").into(),
    }
}

/// File of a hole.
struct OwnFile<'a> {
    all: &'a MentionedNames<'a>,
    own: usize,
    path: &'a str,
    /// Names that the file mentions around the hole.
    around: HashSet<&'a str>,
}

impl OwnFile<'_> {
    fn check(&self, left: &str, prediction: &str, right: &str) -> CheckedNames {
        let whole = [left, prediction, right].concat();
        let lines = Lines::new(&whole);
        let grammar = Grammar::for_path(self.all.language, self.path);
        // The positions are those of the joined text, which has other line ends. The sign at the end keeps the last one.
        let length =
            |texts: &[&str]| Lines::new(&[texts, &["x"]].concat().concat()).text().len() - 1;
        let hole = length(&[left])..length(&[left, prediction]);
        let Some(syntax) = Syntax::of_lines(&lines, grammar) else {
            return CheckedNames::default();
        };
        let names = NameUses::new(&syntax);
        let imports = Imports::new(self.all, self.path, &syntax);
        // A name may be bound for one of its uses only.
        let mut found: Vec<(&str, bool)> = Vec::new();
        let mut places = HashMap::default();
        for one in names.uses() {
            let is_outside = one.bytes.end <= hole.start || one.bytes.start >= hole.end;
            if is_outside || !imports.can_check(&names, one) {
                continue;
            }
            let place = *places.entry(one.name).or_insert_with(|| {
                found.push((one.name, true));
                found.len() - 1
            });
            found[place].1 &= self.resolves(&names, &imports, one);
        }
        let unresolved = found.iter().filter(|(_, resolves)| !resolves);
        CheckedNames {
            checked: found.len(),
            unresolved: unresolved.map(|(name, _)| (*name).to_owned()).collect(),
        }
    }

    fn resolves(&self, names: &NameUses<'_>, imports: &Imports<'_>, one: &NameUse<'_>) -> bool {
        let spec = self.all.language.spec();
        let is_special = || one.name.starts_with("__") && one.name.ends_with("__");
        match one.role {
            UseRole::Bare => {
                names.is_bound(one)
                    || spec.is_builtin(one.name)
                    || imports.others.contains(one.name)
                    || imports.sees_others && self.is_mentioned(one.name)
                    || imports.have_unknown_stars
            }
            UseRole::Member(_) => {
                is_special() || names.binds(one.name) || self.is_mentioned(one.name)
            }
        }
    }

    /// Returns true if the repository mentions a name outside the hole.
    fn is_mentioned(&self, name: &str) -> bool {
        let elsewhere = self.all.files.get(name);
        elsewhere.is_some_and(|&(file, is_in_others)| is_in_others || file != self.own)
            || self.around.contains(name)
    }
}

/// Names of the object that a method is called on.
const SELF: [&str; 3] = ["cls", "self", "this"];

/// Imports of a file, as far as names depend on them.
struct Imports<'a> {
    /// Names bound to modules and members of the repository.
    own: HashSet<&'a str>,
    /// Names bound to modules and members of other libraries.
    others: HashSet<&'a str>,
    /// Whether the file sees names of other files without importing them by name.
    sees_others: bool,
    /// Whether the file imports all names of another library.
    have_unknown_stars: bool,
}

impl<'a> Imports<'a> {
    fn new(all: &MentionedNames<'_>, path: &str, syntax: &Syntax<'a>) -> Self {
        let spec = syntax.spec();
        let types = match spec.resolution {
            Resolution::Modules => None,
            Resolution::Types(rules) => Some(rules),
        };
        let mut found = Self {
            own: HashSet::default(),
            others: HashSet::default(),
            sees_others: types.is_some_and(|rules| !rules.are_files_modules()),
            have_unknown_stars: false,
        };
        for import in syntax.imports() {
            let from = import.from;
            let first = from.split('.').next().unwrap_or_default();
            let is_own = from.starts_with('.')
                || (spec.is_local_import)(from, path)
                || types.is_none() && all.roots.contains(first);
            let names = if is_own { &mut found.own } else { &mut found.others };
            match import.binding {
                Binding::All if is_own => found.sees_others = true,
                Binding::All => found.have_unknown_stars = true,
                Binding::Member { local, .. } | Binding::Whole { local } => {
                    names.insert(local.split('.').next().unwrap_or(local));
                }
                Binding::Nothing => {}
            }
            // A Go package may have the name of any part of its path: `github.com/go-redis/v9`.
            if !is_own && types.is_some() {
                let parts = from.split('/').flat_map(|part| part.split('-'));
                found.others.extend(parts);
            }
        }
        found
    }

    /// Returns true if a name is bare, or the member of something that is known to be the repository's.
    fn can_check(&self, names: &NameUses<'_>, one: &NameUse<'_>) -> bool {
        match one.role {
            UseRole::Bare => true,
            UseRole::Member(None) => false,
            UseRole::Member(Some(first)) => {
                let is_known = |name: &str| self.own.contains(name) || names.defines(name);
                // An object has the members of its supertypes, too.
                let is_own_object = || {
                    SELF.contains(&first)
                        && names.supertypes().all(|name| is_known(name) || name == "object")
                };
                !self.others.contains(first) && (is_known(first) || is_own_object())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use repoformer_core::repository::corpus::SourceFile;

    use super::*;

    fn repository(files: &[(&str, &str)]) -> Repository {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: format!("r/{path}"),
            text: (*text).into(),
            same_as: u32::MAX,
        };
        Repository { name: "r".into(), files: files.iter().map(file).collect() }
    }

    /// Returns the unresolved names of predictions for the line `HOLE` of the first file.
    fn unresolved(language: Language, files: &[(&str, &str)], predictions: &[&str]) -> Vec<String> {
        let repository = repository(files);
        let text = &repository.files[0].text;
        let row = text.lines().position(|line| line.contains("HOLE")).unwrap();
        let line = text.lines().nth(row).unwrap();
        let mut task = Task::new("t".into(), &repository.files[0].path, 0, row, line, "");
        task.prompt = text[..text.find(line).unwrap()].into();
        let names = MentionedNames::new(&repository, language).check(&task, predictions).unwrap();
        names.samples.iter().map(|one| one.unresolved.join(" ")).collect()
    }

    #[test]
    fn names_of_a_prediction_in_python() {
        let files = [
            (
                "main.py",
                "import numpy as np\nfrom tools import turn\nimport tools\n\nclass A:\n    def f(self, x):\n        HOLE = 1\n",
            ),
            ("tools.py", "def turn(shape, angle=0):\n    return shape\n\ndef other():\n    pass\n"),
        ];
        for (prediction, wanted) in [
            ("        return turn(x, angle=1)\n", ""),
            // Cuts of bodies begin without the indentation, and end without a line end.
            ("y = self.f(x)\n        return y", ""),
            ("        return self.turned(x)\n", "turned"),
            ("        return other()\n", "other"),
            ("        return tools.other()\n", ""),
            ("        return tools.others()\n", "others"),
            ("        return turn(x, angel=1)\n", "angel"),
            ("        return missing\n", "missing"),
            ("        # Ends.\n        missing = 1\n        return missing\n", ""),
            ("        out = [row for row in x]\n        return row\n", "row"),
            ("        self.fresh = 1\n        return self.fresh\n", ""),
            ("        names = x + (\n", ""),
            ("        frame = np.load(x)\n        return frame.pivot(index=1)\n", ""),
            ("        return any((hit := i) for i in x), hit\n", ""),
            ("        return np.linalg.norm(x, ord=2)\n", ""),
            ("        print(x, sep='')\n", ""),
            ("        x.append(HOLE)\n", "HOLE"),
            ("        for i in range(9): missing(i)\n", "missing"),
            ("        def missing(): missing()\n", ""),
            ("        'other' # missing\n", ""),
        ] {
            assert_eq!(
                unresolved(Language::Python, &files, &[prediction]),
                [wanted],
                "{prediction}"
            );
        }
    }

    #[test]
    fn stars_bring_names_of_the_repository_or_any() {
        let tools = ("tools.py", "def turn():\n    pass\n");
        let of = |star: &str| {
            let text = format!("from {star} import *\nHOLE\n");
            unresolved(Language::Python, &[("main.py", &text), tools], &["turn()\n", "missing()\n"])
        };
        assert_eq!(of("tools"), ["", "missing"]);
        assert_eq!(of("numpy"), ["", ""]);
    }

    #[test]
    fn packages_share_their_names() {
        let files = [
            ("p/a.go", "package p\n\nimport \"fmt\"\n\nfunc f(x T) {\n\tHOLE()\n}\n"),
            ("p/b.go", "package p\n\ntype T struct{ size int }\n\nfunc g() {}\n"),
        ];
        let found = unresolved(
            Language::Go,
            &files,
            &["\tg()\n", "\tx.size = len(h)\n", "\tx.length++\n", "\tfmt.Sprint(x)\n"],
        );
        // The type of `x` is not known.
        assert_eq!(found, ["", "h", "", ""]);
        let files = [
            ("a.ts", "import { g } from './b';\nfunction f(x) {\n  HOLE();\n}\n"),
            ("b.ts", "export function g() {}\nexport function h() {}\n"),
        ];
        let found = unresolved(Language::TypeScript, &files, &["  g(x);\n", "  h(x);\n"]);
        assert_eq!(found, ["", "h"]);
    }

    #[test]
    fn samples_without_a_name_do_not_count() {
        let of = |unresolved: &[&[&str]]| {
            let samples = unresolved.iter().map(|names| CheckedNames {
                checked: 2 * names.len(),
                unresolved: names
                    .iter()
                    .filter(|name| **name != "x")
                    .map(|name| (*name).into())
                    .collect(),
            });
            let task = TaskNames {
                row: 0,
                task_id: "t".into(),
                repository: "r".into(),
                samples: samples.collect(),
                reference: CheckedNames::default(),
                target: 0,
            };
            task.resolved()
        };
        assert_eq!(of(&[&[], &[]]), None);
        assert_eq!(of(&[&["x"], &[]]), Some(1.0));
        assert_eq!(of(&[&["x"], &["y"], &[]]), Some(0.5));
    }

    #[test]
    fn a_task_of_another_text_is_an_error() {
        let repository = repository(&[("a.py", "x = 1\ny = 2\n")]);
        let names = MentionedNames::new(&repository, Language::Python);
        let task = Task::new("t".into(), "r/a.py", 0, 1, "z = 3", "");
        assert!(names.check(&task, &[""]).is_err());
        let task = Task::new("t".into(), "r/b.py", 0, 1, "y = 2", "");
        assert!(names.check(&task, &[""]).is_err());
    }
}
