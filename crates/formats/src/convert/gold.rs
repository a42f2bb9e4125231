//! Gold dependencies of benchmarks: the definitions in other files that a function uses, by the names in its record.

use repoformer_core::repository::definitions::Names;
use repoformer_core::task::{TargetDefinition, Task, TaskFiles};
use repoformer_text::language::syntax::Syntax;
use repoformer_text::language::{Grammar, Language};
use repoformer_text::lines::{Lines, strip};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};

/// Counts of the dependencies in a file of records.
#[derive(Debug, Default)]
pub(super) struct Gold {
    /// Number of dependencies in other files.
    named: usize,
    /// Number of dependencies whose definition was found.
    found: usize,
}

impl Gold {
    /// Records in a task the places that define the dependencies of its function, if they are found. Each dependency has the
    /// dotted names that it may have, relative to the folder `root` of the task's repository.
    pub(super) fn find(
        &mut self,
        files: &mut TaskFiles<'_>,
        task: &mut Task,
        root: &str,
        dependencies: &[Vec<String>],
    ) {
        let mut find = |name: &String| definition(files, &task.repository, root, name);
        let found: Vec<TargetDefinition> =
            dependencies.iter().filter_map(|names| names.iter().find_map(&mut find)).collect();
        self.named += dependencies.len();
        self.found += found.len();
        task.set_definitions(found);
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

/// Returns the place of the definition that a dotted name refers to.
fn definition(
    files: &mut TaskFiles<'_>,
    repository: &str,
    root: &str,
    name: &str,
) -> Option<TargetDefinition> {
    let parts: Vec<&str> = name.split('.').collect();
    let folder =
        if root.is_empty() { repository.to_owned() } else { format!("{repository}/{root}") };
    for length in (1..parts.len()).rev() {
        let module = format!("{folder}/{}", parts[..length].join("/"));
        for path in [format!("{module}.py"), format!("{module}/__init__.py")] {
            let mut place = Task::new(name.to_owned(), &path, 0, 0, "", "");
            let Ok(file) = files.text(&mut place) else { continue };
            let lines = Lines::new(file.text());
            let grammar = Grammar::for_path(Language::Python, &path);
            let names = Names::read(&path, &Syntax::of_lines(&lines, grammar)?);
            let Some(line) = names.row_of(&parts[length..]) else { continue };
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
