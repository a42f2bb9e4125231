//! Checks which of the definitions that tasks name are used by predictions: DevEval's Recall.
//!
//! A prediction is inserted into its file, and the names in its lines are looked up by the rules of their language, just as the
//! ranker `definitions` looks up names near a hole. A definition counts only if the target itself is found to use it, so that
//! the target has a recall of 1.

use std::ops::Range;

use foldhash::HashSet;
use repoformer_core::repository::corpus::Repository;
use repoformer_core::repository::definitions::{
    Definition, Definitions, FoundDefinitions, KnownNames, Names, RepositoryNames, SourcePaths,
};
use repoformer_core::task::Task;
use repoformer_text::language::syntax::Syntax;
use repoformer_text::language::{Grammar, Language, chains};
use repoformer_text::lines::{Lines, line_ends};
use serde_json::{Value, json};

use super::score::target_digest;

/// Definitions that the predictions for one task use.
#[derive(Debug, Clone, PartialEq)]
pub struct Uses {
    /// 0-based position in the task file.
    pub row: usize,
    /// Id of the task.
    pub task_id: String,
    /// Name of the task's repository.
    pub repository: String,
    /// Number of the task's definitions that the target is found to use; greater than 0.
    pub of: usize,
    /// Number of these definitions that each sample uses.
    pub used: Vec<usize>,
    target: u64,
}

impl Uses {
    /// Returns the mean proportion of definitions used, over the samples.
    pub fn recall(&self) -> f64 {
        let used = self.used.iter().sum::<usize>() as f64;
        used / (self.of * self.used.len().max(1)) as f64
    }

    /// Returns a line of scores: `{"task_id", "row", "repository", "definitions": {"recall"}, "of", "used", "target_digest"}`.
    pub fn to_record(&self) -> Value {
        json!({
            "task_id": self.task_id, "row": self.row, "repository": self.repository,
            "definitions": {"recall": self.recall()}, "of": self.of, "used": self.used,
            "target_digest": format!("{:016x}", self.target),
        })
    }
}

/// Names in the files of a repository.
pub struct UsedNames<'a> {
    repository: &'a Repository,
    language: Language,
    paths: SourcePaths<'a>,
    names: RepositoryNames,
}

impl<'a> UsedNames<'a> {
    /// Parses the files.
    pub fn new(repository: &'a Repository, language: Language) -> Self {
        let (paths, names) = KnownNames::default().of_repository(repository, language);
        Self { repository, language, paths, names }
    }

    /// Prepares the names for look-ups.
    pub fn index(&'a self) -> UsedDefinitions<'a> {
        let definitions = Definitions::new(self.language, &self.paths, &self.names);
        UsedDefinitions { repository: self.repository, language: self.language, definitions }
    }
}

/// Definitions in a repository's files.
pub struct UsedDefinitions<'a> {
    repository: &'a Repository,
    language: Language,
    definitions: Definitions<'a>,
}

impl UsedDefinitions<'_> {
    /// Returns the definitions that the samples for one task use; `None` if the task names no definition, or if its target is
    /// not found to use any.
    ///
    /// # Errors
    /// The task does not fit its repository, or its definitions cannot be read; the message gives the reason.
    pub fn uses(&self, task: &Task, samples: &[&str]) -> Result<Option<Uses>, String> {
        let wanted = task.definitions()?.unwrap_or_default();
        if wanted.is_empty() {
            return Ok(None);
        }
        let files = &self.repository.files;
        let number = |path: &str| {
            let file = files.iter().position(|file| file.path == path)?;
            Some(file.min(files[file].same_as as usize))
        };
        let own = number(&task.path)
            .ok_or_else(|| format!("its file {} is not in the repository", task.path))?;
        let text = &files[own].text;
        let hole = task.hole(text)?;
        let wanted: HashSet<(usize, usize)> =
            wanted.iter().filter_map(|one| Some((number(&one.path)?, one.line))).collect();
        let used = |prediction: &str| -> HashSet<(usize, usize)> {
            let first = line_ends(&text[..hole.start]);
            let rows = first..first + line_ends(prediction) + 1;
            let whole = [&text[..hole.start], prediction, &text[hole.end..]].concat();
            let found = self.find_uses(own, &whole, rows);
            found.intersection(&wanted).copied().collect()
        };
        let seen = used(&text[hole.start..hole.end]);
        if seen.is_empty() {
            return Ok(None);
        }
        let count = |sample: &&str| used(sample).intersection(&seen).count();
        Ok(Some(Uses {
            row: task.row,
            task_id: task.id.clone(),
            repository: task.repository.clone(),
            of: seen.len(),
            used: samples.iter().map(count).collect(),
            target: target_digest(&task.ground_truth),
        }))
    }

    /// Returns the definitions in other files that some rows of a file's text use, by file and row.
    fn find_uses(&self, own: usize, text: &str, rows: Range<usize>) -> HashSet<(usize, usize)> {
        let lines = Lines::new(text);
        let path = &self.repository.files[own].path;
        let Some(syntax) = Syntax::of_lines(&lines, Grammar::for_path(self.language, path)) else {
            return HashSet::default();
        };
        let names = Names::read(path, &syntax);
        let look_up = self.definitions.within(own, &names, rows.start as u32);
        let lines = lines.iter().skip(rows.start).take(rows.len());
        let chains = lines.flat_map(|line| chains(line, self.language));
        let found = chains.flat_map(|chain| {
            (1..=chain.len()).map(|length| (look_up(&chain[..length]), ())).collect::<Vec<_>>()
        });
        let place = |one: &Definition| (one.file as usize, one.rows.start as usize);
        let found = FoundDefinitions::distinct(found, |(), ()| ());
        found.flat_map(|(found, ())| found.iter().map(place).collect::<Vec<_>>()).collect()
    }
}

#[cfg(test)]
mod tests {
    use repoformer_core::repository::corpus::SourceFile;
    use repoformer_core::task::TargetDefinition;

    use super::*;

    #[test]
    fn definitions_count_that_the_target_uses() {
        let file = |path: &str, text: &str| SourceFile {
            path: format!("r/{path}"),
            text: text.into(),
            same_as: u32::MAX,
        };
        let repository = Repository {
            name: "r".into(),
            files: vec![
                file(
                    "main.py",
                    "import tools\nfrom shapes import Shape\n\ndef f(x):\n    return tools.turn(Shape(x))\n",
                ),
                file("shapes.py", "class Shape:\n    def area(self):\n        pass\n"),
                file("tools.py", "def turn(x):\n    return x\n\ndef other(x):\n    return x\n"),
            ],
        };
        let mut task =
            Task::new("t".into(), "r/main.py", 0, 4, "    return tools.turn(Shape(x))", "");
        task.prompt =
            repository.files[0].text[..repository.files[0].text.find("    return").unwrap()].into();
        let names = UsedNames::new(&repository, Language::Python);
        let names = names.index();
        assert_eq!(names.uses(&task, &[""]), Ok(None), "it names no definitions");
        let definition = |path: &str, line: usize| TargetDefinition {
            path: format!("r/{path}"),
            line,
            code_line: line,
            text: String::new(),
        };
        // The target does not use the last definition.
        task.set_definitions([
            definition("tools.py", 0),
            definition("shapes.py", 0),
            definition("tools.py", 3),
        ]);
        let uses = |samples: &[&str]| names.uses(&task, samples).unwrap().unwrap();
        let target = task.ground_truth.clone();
        let found = uses(&[
            &target,
            "    return tools.other(x)",
            "    return Shape",
            "    y = 1\n    return tools.turn(x)",
        ]);
        assert_eq!((found.of, &found.used[..]), (2, &[2, 0, 1, 1][..]));
        assert_eq!(found.recall(), 0.5);
        assert_eq!(found.to_record()["definitions"]["recall"], 0.5);
        task.set_definitions([definition("tools.py", 3)]);
        assert_eq!(
            names.uses(&task, &["    return tools.other(x)"]),
            Ok(None),
            "nor is it seen to use it"
        );
        task.line_no = 3;
        assert!(names.uses(&task, &[""]).is_err(), "the hole is elsewhere");
    }
}
