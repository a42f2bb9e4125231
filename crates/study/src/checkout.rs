//! Handling of a single repository that is given as the folder of repositories.

use std::path::{Path, PathBuf};

use repoformer_core::repository::corpus::Checkout;
use repoformer_core::task::{Task, TaskSet};
use repoformer_pipeline::Messages;
use repoformer_text::message;

use crate::settings::{DECLARED, Settings};

/// Folder of repositories, and the repositories in use. If none is named, all are used, or the repositories that the tasks
/// name.
pub struct ChosenRepositories {
    /// Folder that contains the repositories.
    pub dir: PathBuf,
    /// Names of the repositories in use; none means all, or the repositories that the tasks name.
    pub named: Vec<String>,
}

/// Returns the parent folder and name of a repository, if `dir` is one repository, and prints a note. The named repositories,
/// or the locations of the tasks' files, may show that `dir` is a folder of repositories after all.
pub fn one_repository<P: AsRef<Path>>(
    dir: &Path,
    named: &[String],
    tasks: &[P],
    messages: &dyn Messages,
) -> Option<ChosenRepositories> {
    let checkout = Checkout::find(dir)?;
    let is_itself = *named == [checkout.name.as_str()];
    let has_others = match (named, tasks) {
        ([_, ..], _) if !is_itself => return None,
        ([_, ..], _) | (_, []) => false,
        (_, tasks) => {
            let owners: Vec<Owners> =
                tasks.iter().map(|file| owners(&checkout, dir, file.as_ref())).collect();
            if !owners.iter().any(|owners| owners.has_own) {
                return None;
            }
            owners.iter().any(|owners| owners.has_others)
        }
    };
    let Checkout { parent, name, signs } = checkout;
    let (shown, signs) = (dir.display(), signs.join(", "));
    let text = if has_others {
        message![
            format!(
                "{shown}: this is one repository, '{name}' (it has {signs}), but tasks name others too, so {} is used as the folder \
                 of repositories; ",
                parent.display()
            ),
            &DECLARED.repo,
            format!(" {name} uses only this one")
        ]
    } else {
        message![
            format!("{shown}: used as one repository, '{name}', since it has {signs}; "),
            &DECLARED.repo,
            " NAME uses its subfolders as repositories"
        ]
    };
    messages.note(text);
    let named = if tasks.is_empty() { vec![name] } else { named.to_vec() };
    Some(ChosenRepositories { dir: parent, named })
}

/// Returns the folder of repositories for these task files; `dir` may be a single repository.
pub fn folder_for<P: AsRef<Path>>(
    dir: Option<&Path>,
    tasks: &[P],
    messages: &dyn Messages,
) -> Option<PathBuf> {
    let dir = dir?;
    Some(
        one_repository(dir, &[], tasks, messages).map_or_else(|| dir.to_owned(), |found| found.dir),
    )
}

/// Repositories that the tasks of a file belong to, compared with one repository.
struct Owners {
    /// True if files of tasks are in this repository, and none in a repository below it.
    has_own: bool,
    /// True if tasks belong to other repositories.
    has_others: bool,
}

fn owners(checkout: &Checkout, dir: &Path, file: &Path) -> Owners {
    // Standard input and pipes cannot be read twice.
    if file == Path::new("-") || file.exists() && !file.is_file() {
        return Owners { has_own: true, has_others: false };
    }
    let tasks = TaskSet::read(file).map(|reading| reading.set.into_tasks()).unwrap_or_default();
    let is_own = |task: &Task| {
        task.repository == checkout.name && checkout.parent.join(&task.path).is_file()
    };
    let is_other = |task: &Task| task.repository.replace("--", "_") != checkout.name;
    Owners {
        has_own: tasks.iter().any(is_own)
            && !tasks.iter().any(|task| dir.join(&task.path).is_file()),
        has_others: tasks.iter().any(is_other),
    }
}

/// Adjusts settings whose folder of repositories is a single repository, as if they named its parent folder and it.
pub fn settle(settings: &mut Settings) {
    let Some(dir) = settings.repos_dir.as_deref() else {
        return;
    };
    let found = one_repository(dir, &settings.repo, &settings.tasks, &*settings.messages);
    if let Some(ChosenRepositories { dir, named }) = found {
        settings.change(|values| values.use_repositories(&dir, &named));
    }
}
