//! Gold dependencies of benchmarks: the definitions in other files that a function uses, by the names in its record.

use foldhash::HashMap;
use repoformer_core::repository::definitions::Names;
use repoformer_core::task::{TargetDefinition, Task, TaskFiles};
use repoformer_text::language::syntax::Syntax;
use repoformer_text::language::{Grammar, Language};
use repoformer_text::lines::{Lines, strip};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};

/// Greatest number of parts and of bytes of a dotted name that is looked up: each part may be a folder.
const MOST_PARTS: usize = 64;
const LONGEST_NAME: usize = 1024;

/// Dependencies of the functions in a file of records: their counts, and the modules that define them.
#[derive(Debug, Default)]
pub(super) struct Gold {
    /// Number of dependencies in other files.
    named: usize,
    /// Number of dependencies whose definition was found.
    found: usize,
    /// Names in each module that was looked up, by path; `None` without a file that can be parsed.
    modules: HashMap<String, ModuleNames>,
}

/// Names in a module.
#[derive(Debug)]
enum ModuleNames {
    NoFile,
    Unparsed,
    Known(Names),
}

impl Gold {
    /// Returns the place that defines a dependency of a function, if it is found. The dependency has one of these dotted names,
    /// relative to the folder `root` of the repository.
    pub(super) fn find(
        &mut self,
        files: &mut TaskFiles<'_>,
        repository: &str,
        root: &str,
        names: impl IntoIterator<Item = String>,
    ) -> Option<TargetDefinition> {
        let folder =
            if root.is_empty() { repository.to_owned() } else { format!("{repository}/{root}") };
        let found = names.into_iter().find_map(|name| self.definition(files, &folder, &name));
        self.named += 1;
        self.found += usize::from(found.is_some());
        found
    }

    /// Returns the place of the definition that a dotted name refers to.
    fn definition(
        &mut self,
        files: &mut TaskFiles<'_>,
        folder: &str,
        name: &str,
    ) -> Option<TargetDefinition> {
        let parts: Vec<&str> = name.split('.').collect();
        if parts.len() > MOST_PARTS || name.len() > LONGEST_NAME {
            return None;
        }
        for length in (1..parts.len()).rev() {
            let module = format!("{folder}/{}", parts[..length].join("/"));
            for path in [format!("{module}.py"), format!("{module}/__init__.py")] {
                if !self.modules.contains_key(&path) {
                    self.modules.insert(path.clone(), ModuleNames::read(files, &path));
                }
                let line = match &self.modules[&path] {
                    ModuleNames::NoFile => continue,
                    ModuleNames::Unparsed => return None,
                    ModuleNames::Known(names) => names.row_of(&parts[length..]),
                };
                let Some(line) = line else { continue };
                let file = files.text(&mut place_of(&path)).ok()?;
                let lines = Lines::new(file.text());
                return Some(TargetDefinition {
                    path,
                    line,
                    code_line: (0..line).filter(|row| !strip(lines.line(*row)).is_empty()).count(),
                    text: lines.line(line).to_owned(),
                });
            }
        }
        None
    }

    /// Returns a note on the dependencies.
    pub(super) fn note(&self) -> Option<Message> {
        (self.named > 0).then(|| {
            message![
                format!(
                    "{} of {} dependencies in other files were found as functions, classes, \
                     methods or variables; these definitions are the ones that ",
                    self.found, self.named
                ),
                UserChoice::RetrievalScores,
                " look for"
            ]
        })
    }
}

impl ModuleNames {
    fn read(files: &mut TaskFiles<'_>, path: &str) -> Self {
        let Ok(file) = files.text(&mut place_of(path)) else { return Self::NoFile };
        let lines = Lines::new(file.text());
        let grammar = Grammar::for_path(Language::Python, path);
        let syntax = Syntax::of_lines(&lines, grammar);
        syntax.map_or(Self::Unparsed, |syntax| Self::Known(Names::read(path, &syntax)))
    }
}

/// Returns a task in a file, to read the file.
fn place_of(path: &str) -> Task {
    Task::new(String::new(), path, 0, 0, "", "")
}
