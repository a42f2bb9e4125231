//! A task as something that can be run: its file, its command, its planted failure.

use std::fs;
use std::path::Path;

use super::command::{Template, Values, default_test_command};
use super::copies::Copies;
use super::guard::Limits;
use super::site::Site;
use super::test_map::TestMap;
use super::verdict::Runner;
use crate::error::Result;
use crate::task::{Task, TaskSet};

/// A task whose tests can be run.
#[derive(Debug)]
pub struct Subject {
    /// Place of its repository in the list of those that take part.
    pub repository: usize,
    /// Name of its repository.
    pub repository_name: String,
    /// Its file and the hole in it.
    pub site: Site,
    /// The file with a failure before the hole.
    pub planted: String,
    /// What runs its tests.
    pub command: String,
    /// How the end of that is read.
    pub runner: Runner,
}

/// How tests are asked for.
#[derive(Debug, Clone, Default)]
pub struct Commands {
    /// The command given; by default what the repository looks to be made for.
    pub test: Option<Template>,
    /// The tests of each task; all of the repository's where there is no map.
    pub map: Option<TestMap>,
    /// How the command's end is read.
    pub runner: Runner,
}

impl Commands {
    /// The template of a repository, in a folder: the one given, or the default.
    ///
    /// # Errors
    /// None is given, and none is known for such a repository: in words.
    pub fn template(&self, folder: &Path) -> Result<Template, String> {
        match (&self.test, default_test_command(folder)) {
            (Some(template), _) => Ok(template.clone()),
            (None, Some(text)) => Template::parse("test-cmd", text).map_err(|e| e.to_string()),
            (None, None) => {
                Err("how its tests are run is not known; say so with --test-cmd".into())
            }
        }
    }
}

/// Makes a subject of each task, or says why it is none.
pub fn subjects(
    tasks: &TaskSet,
    repositories: &[String],
    repos_dir: &Path,
    commands: &Commands,
) -> Vec<Result<Subject, String>> {
    let templates: Vec<Result<Template, String>> = repositories
        .iter()
        .map(|name| commands.template(&repos_dir.join(name)))
        .collect();
    let of = |task: &Task| -> Result<Subject, String> {
        let repository = repositories
            .iter()
            .position(|name| *name == task.repository)
            .ok_or("its repository takes no part")?;
        let template = templates[repository].clone()?;
        let site = site(task, repos_dir)?;
        let planted = site.planted()?;
        let tests = match &commands.map {
            None => &[][..],
            Some(map) => map
                .of(task)
                .ok_or_else(|| format!("it has no tests in {}", map.path.display()))?,
        };
        let command = template.fill(Values {
            tests,
            repository: &task.repository,
            task_id: &task.id,
            path: task.file_in_repository(),
        });
        Ok(Subject {
            repository,
            repository_name: task.repository.clone(),
            runner: commands.runner.of_command(&command),
            site,
            planted,
            command,
        })
    };
    tasks.tasks.iter().map(of).collect()
}

/// The hole of a task in its file.
///
/// # Errors
/// The file is not there, or is not the task's, in words.
pub fn site(task: &Task, repos_dir: &Path) -> Result<Site, String> {
    if task.file_in_repository().is_empty() {
        return Err("its record names no file".into());
    }
    let inside = Path::new(&task.path)
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)));
    if !inside {
        return Err(format!(
            "its path {:?} leads out of its repository",
            task.path
        ));
    }
    let path = repos_dir.join(&task.path);
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Site::find(task, text)
}

/// Whether a file looks to be test code, by the names that runners look for. A hole in it says little: a test that asserts
/// nothing passes.
///
/// ```
/// use repoformer::execute::is_test_file;
/// assert!(is_test_file("tests/factories.py") && is_test_file("src/cart.spec.ts") && is_test_file("a/CartTest.java"));
/// assert!(!is_test_file("src/contest.py") && !is_test_file("latest/cart.ts"));
/// ```
pub fn is_test_file(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.split('.').next().unwrap_or(name);
    let in_tests = folders
        .split('/')
        .any(|folder| matches!(folder, "test" | "tests" | "__tests__"));
    in_tests
        || stem.starts_with("test_")
        || stem == "conftest"
        || ["_test", "_tests", "Test", "Tests"]
            .iter()
            .any(|end| stem.ends_with(end))
        || [".test.", ".spec."].iter().any(|part| name.contains(part))
}

impl Subject {
    /// A digest of all that a run depends on; `text` is what the file is to hold, if it is not as it is, and `turn` tells
    /// runs of the same text apart.
    ///
    /// # Errors
    /// The repository cannot be read, in words.
    pub(super) fn key(
        &self,
        text: Option<&str>,
        turn: usize,
        with: (&Copies<'_>, &Limits),
    ) -> Result<String, String> {
        self.key_of(&self.command, text, turn, with)
    }

    /// The same under another command.
    ///
    /// # Errors
    /// As [`key`](Self::key).
    pub(super) fn key_of(
        &self,
        command: &str,
        text: Option<&str>,
        turn: usize,
        (copies, limits): (&Copies<'_>, &Limits),
    ) -> Result<String, String> {
        let mut hasher = blake3::Hasher::new();
        let digest = copies.digest(self.repository)?;
        let limits = serde_json::to_string(limits).unwrap_or_default();
        let setup = copies.setup_command(self.repository).unwrap_or_default();
        let runner = serde_json::to_string(&self.runner).unwrap_or_default();
        let surroundings = copies.surroundings();
        let turn = turn.to_string();
        let path = text.map_or("", |_| self.site.path.as_str());
        for part in [
            "execution 2",
            &digest,
            setup,
            command,
            &runner,
            &limits,
            surroundings,
            path,
            text.unwrap_or_default(),
            &turn,
        ] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Ok(hasher.finalize().to_hex().to_string())
    }
}
