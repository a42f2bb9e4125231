//! One repository in the place of the folder that holds repositories.

use std::path::{Path, PathBuf};

use repoformer::repository::corpus::Checkout;
use repoformer::task::{Task, TaskSet};

use crate::output;
use crate::settings::Settings;

/// Folder of repositories, and those of it that are used; none named: all, or those that the tasks name.
pub(super) struct Repositories {
    pub(super) dir: PathBuf,
    pub(super) named: Vec<String>,
}

/// Returns the folder that holds a repository, and its name, where `dir` is that repository; a note says so. What is named, or
/// where the tasks' files lie, says that `dir` holds repositories all the same.
pub(super) fn one_repository<P: AsRef<Path>>(
    dir: &Path,
    named: &[String],
    tasks: &[P],
) -> Option<Repositories> {
    let checkout = Checkout::of(dir)?;
    let is_itself = *named == [checkout.name.as_str()];
    let is_one = match (named, tasks) {
        ([_, ..], _) => is_itself,
        (_, []) => true,
        (_, tasks) => tasks.iter().any(|file| lie_in(&checkout, dir, file.as_ref())),
    };
    if !is_one {
        return None;
    }
    let has_others =
        named.is_empty() && tasks.iter().any(|file| have_others(&checkout, file.as_ref()));
    let Checkout { parent, name, signs } = checkout;
    let (shown, signs) = (dir.display(), signs.join(", "));
    output::note(match has_others {
        false => format!(
            "{shown}: used as one repository, '{name}', for it has {signs}; --repo NAME uses folders of it as repositories"
        ),
        true => format!(
            "{shown}: one repository, '{name}', for it has {signs}, and tasks are of others, too: {} is used as the folder of \
             repositories; --repo {name} uses this one alone",
            parent.display()
        ),
    });
    let named = if tasks.is_empty() { vec![name] } else { named.to_vec() };
    Some(Repositories { dir: parent, named })
}

/// Returns the folder of repositories for these files of tasks, where `dir` may be one repository.
pub(super) fn folder_for<P: AsRef<Path>>(dir: Option<&Path>, tasks: &[P]) -> Option<PathBuf> {
    let dir = dir?;
    Some(one_repository(dir, &[], tasks).map_or_else(|| dir.to_owned(), |found| found.dir))
}

/// Whether files of tasks lie in this repository, and none in a repository below it.
fn lie_in(checkout: &Checkout, dir: &Path, file: &Path) -> bool {
    if is_read_once(file) {
        return true;
    }
    let Ok(reading) = TaskSet::read(file) else {
        return false;
    };
    let tasks = || reading.set.tasks.iter();
    let is_own = |task: &Task| {
        task.repository == checkout.name && checkout.parent.join(&task.path).is_file()
    };
    tasks().any(is_own) && !tasks().any(|task| dir.join(&task.path).is_file())
}

/// Whether a file is standard input or a pipe, which cannot be read twice.
fn is_read_once(file: &Path) -> bool {
    file == Path::new("-") || file.exists() && !file.is_file()
}

/// Whether tasks of a file belong to other repositories than this one.
fn have_others(checkout: &Checkout, file: &Path) -> bool {
    let reading = (!is_read_once(file)).then(|| TaskSet::read(file).ok()).flatten();
    reading.is_some_and(|reading| {
        let is_own = |name: &str| name == checkout.name || name.replace("--", "_") == checkout.name;
        reading.set.tasks.iter().any(|task| !is_own(&task.repository))
    })
}

/// Settings whose folder of repositories is one repository, as if they named its parent and it.
pub(super) fn settle(settings: &mut Settings) {
    let Some(dir) = settings.text("repos-dir").map(PathBuf::from) else {
        return;
    };
    let found = one_repository(&dir, settings.list("repo"), settings.list("tasks"));
    if let Some(Repositories { dir, named }) = found {
        settings.use_repositories(&dir, named);
    }
}
