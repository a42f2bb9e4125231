//! Finds the names in predictions that nothing defines: a sign of a wrong prediction that needs no tests.
//!
//! A prediction is inserted into its file and parsed. A bare name resolves if a scope around it binds the name, in the prediction or in
//! the rest of the file, or if the language does. Where a file sees names of other files without importing them by name (packages,
//! namespaces, inheritance, `*`), it also resolves if the repository mentions it anywhere else. A member or an argument's name resolves if
//! the repository mentions it outside the hole; types are not known, so that is all that is asked. Members of objects from other
//! libraries are not checked.

use std::borrow::Cow;

use foldhash::{HashMap, HashSet};
use repoformer_core::repository::corpus::Repository;
use repoformer_core::task::Task;
use repoformer_text::language::syntax::{Binding, NameUse, NameUses, Syntax, UseRole};
use repoformer_text::language::{Grammar, Language, LanguageSpec, Resolution, identifiers};
use repoformer_text::lines::Lines;
use serde_json::{Value, json};

use super::score::target_digest;

/// Names of one prediction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedNames {
    /// Names that were checked, in order, without duplicates.
    pub checked: usize,
    /// Those that resolve nowhere.
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
    /// Returns the proportion of samples whose names all resolve.
    pub fn resolved(&self) -> f64 {
        let resolved = self.samples.iter().filter(|one| one.unresolved.is_empty()).count();
        resolved as f64 / self.samples.len().max(1) as f64
    }

    /// Returns a line of scores: `{"task_id", "row", "repository", "names": {"resolved"}, "unresolved", "checked", "target_digest"}`.
    pub fn to_record(&self) -> Value {
        let of = |of: fn(&CheckedNames) -> Value| self.samples.iter().map(of).collect::<Value>();
        json!({
            "task_id": self.task_id, "row": self.row, "repository": self.repository,
            "names": {"resolved": self.resolved()},
            "unresolved": of(|one| json!(one.unresolved)), "checked": of(|one| json!(one.checked)),
            "target_unresolved": self.reference.unresolved,
            "target_digest": format!("{:016x}", self.target),
        })
    }
}

/// Names that the files of a repository mention outside strings.
pub struct MentionedNames<'a> {
    repository: &'a Repository,
    language: Language,
    /// For each name, the first file that mentions it, and whether others do.
    files: HashMap<&'a str, (usize, bool)>,
    /// Names of the repository's folders and files, without extensions: modules that begin with another name belong to other libraries.
    parts: HashSet<&'a str>,
}

impl<'a> MentionedNames<'a> {
    /// Reads the files.
    pub fn new(repository: &'a Repository, language: Language) -> Self {
        let mut files: HashMap<&str, (usize, bool)> = HashMap::default();
        let mut parts = HashSet::default();
        for (number, file) in repository.files.iter().enumerate() {
            let path = file.path.split('/').skip(1);
            parts.extend(path.map(|part| part.split_once('.').map_or(part, |(stem, _)| stem)));
            if (file.same_as as usize) < number {
                continue;
            }
            for name in identifiers(&file.text, language) {
                let place = files.entry(name).or_insert((number, false));
                place.1 |= place.0 != number;
            }
        }
        Self { repository, language, files, parts }
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
        // Rows of a tree end at `\n` only; the positions are those of the joined text.
        let start = Lines::new(left).text().len();
        let end = start + Lines::new(prediction).text().len();
        let Some(syntax) = Syntax::of_lines(&lines, grammar) else {
            return CheckedNames::default();
        };
        let names = NameUses::new(&syntax);
        let imports = Imports::new(self.all, self.path, &syntax);
        let mut seen = HashSet::default();
        let mut found = CheckedNames::default();
        for one in names.uses() {
            let is_inside = one.bytes.start >= start && one.bytes.end <= end;
            if !is_inside
                || imports.are_others(syntax.spec(), one)
                || !seen.insert((one.name, one.role == UseRole::Bare))
            {
                continue;
            }
            found.checked += 1;
            if !self.resolves(&names, &imports, one) {
                found.unresolved.push(one.name.to_owned());
            }
        }
        found
    }

    fn resolves(&self, names: &NameUses<'_>, imports: &Imports<'_>, one: &NameUse<'_>) -> bool {
        let spec = self.all.language.spec();
        match one.role {
            UseRole::Bare => {
                names.is_bound(one)
                    || spec.is_builtin(one.name)
                    || imports.sees_others && self.is_mentioned(one.name)
                    || imports.have_unknown_stars
            }
            UseRole::Member(_) => {
                let is_special = one.name.starts_with("__") && one.name.ends_with("__");
                is_special
                    || self.is_mentioned(one.name)
                    || spec.is_common_method(one.name)
                    || spec.is_builtin(one.name)
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

/// Imports of a file, as far as names depend on them.
struct Imports<'a> {
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
        let mut found = Self {
            others: HashSet::default(),
            sees_others: matches!(spec.resolution, Resolution::Types(rules) if !rules.are_files_modules()),
            have_unknown_stars: false,
        };
        for import in syntax.imports() {
            let from = import.from;
            let first = from.split(['.', '/']).find(|part| !part.is_empty()).unwrap_or_default();
            let is_own = from.starts_with('.')
                || (spec.is_local_import)(from, path)
                || all.parts.contains(first);
            match import.binding {
                Binding::All if is_own => found.sees_others = true,
                Binding::All => found.have_unknown_stars = true,
                Binding::Member { local, .. } | Binding::Whole { local } if !is_own => {
                    found.others.insert(local.split('.').next().unwrap_or(local));
                }
                _ => {}
            }
        }
        found
    }

    /// Returns true if a name is a member of an object of another library or of the language.
    fn are_others(&self, spec: &LanguageSpec, one: &NameUse<'_>) -> bool {
        let UseRole::Member(Some(first)) = one.role else { return false };
        self.others.contains(first) || spec.is_builtin(first)
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
        assert_eq!(found, ["", "h", "length", ""]);
        let files = [
            ("a.ts", "import { g } from './b';\nfunction f(x) {\n  HOLE();\n}\n"),
            ("b.ts", "export function g() {}\nexport function h() {}\n"),
        ];
        let found = unresolved(Language::TypeScript, &files, &["  g(x);\n", "  h(x);\n"]);
        assert_eq!(found, ["", "h"]);
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
