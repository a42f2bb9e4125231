//! Tasks sampled from repositories in folders.

use std::path::Path;

use repoformer_core::repository::corpus::{Repository, Walk};
use repoformer_core::repository::{Shard, parallel};
use repoformer_core::task::Task;
use repoformer_core::task::sample::{Exclusions, Sampling, TaskSample, UnparsedFile, sample};
use repoformer_store::artifact::digest;
use repoformer_store::error::{Error, Result};
use repoformer_store::manifest::Manifest;
use repoformer_store::progress::Work;
use repoformer_text::tokenize::P50k;

use crate::merge::{Positions, write_shard_beside};

/// Settings for sampling tasks from repositories in a folder.
#[derive(Debug, Clone, Copy)]
pub struct FolderSampling<'a> {
    /// Folder that contains a folder for each repository.
    pub dir: &'a Path,
    /// Names of the repositories of all shards.
    pub names: &'a [String],
    /// Way in which their files are listed.
    pub walk: Walk,
    /// Sampling settings for each repository.
    pub sampling: &'a Sampling,
    /// Shard of the repositories; `None` for all.
    pub shard: Option<Shard>,
}

/// Tasks of a repository.
#[derive(Debug)]
pub struct RepositoryTasks {
    /// Name of the repository.
    pub name: String,
    /// Tasks, in the order in which they were sampled.
    pub tasks: Vec<Task>,
    /// Files that could not be read.
    pub skipped: Vec<Error>,
}

/// Tasks of repositories in a folder.
#[derive(Debug, Default)]
pub struct FolderTasks {
    /// Tasks of each of the shard's repositories, or the reason why the repository cannot be read.
    pub repositories: Vec<Result<RepositoryTasks>>,
    /// Whether each pattern of excluded paths matches a file.
    pub matched: Vec<bool>,
    /// Files that could not be parsed completely.
    pub unparsed: Vec<UnparsedFile>,
    positions: Positions,
}

impl FolderSampling<'_> {
    /// Samples the tasks, from as many repositories at once as there are threads.
    pub fn draw(&self) -> FolderTasks {
        let Self { dir, walk, sampling, shard, .. } = *self;
        let is_held = |(_, name): &(u64, &String)| shard.is_none_or(|shard| shard.holds(name));
        let names: Vec<(u64, &String)> = (0..).zip(self.names).filter(is_held).collect();
        let work = Work::new("sample", "repositories", names.len());
        let drawn = parallel::map(&names, |(_, name)| {
            let reading = Repository::read_with(dir, name, sampling.language, walk)?;
            let drawn = sample(&reading.repository, sampling, &|text| P50k.count(text));
            let matched = sampling.exclusions.match_files(&reading.repository);
            work.advance(1);
            Ok((drawn, matched, reading.skipped))
        });
        let mut all = FolderTasks::default();
        for ((position, name), drawn) in names.into_iter().zip(drawn) {
            let tasks = drawn.map(|(drawn, match_files, skipped)| {
                let TaskSample { tasks, unparsed } = drawn;
                all.unparsed.extend(unparsed);
                Exclusions::also_matched(&mut all.matched, &match_files);
                tasks.iter().for_each(|_| all.positions.add(position));
                RepositoryTasks { name: name.clone(), tasks, skipped }
            });
            all.repositories.push(tasks);
        }
        all
    }

    /// Writes a manifest next to a shard's tasks, `output`, that names the shard; writes nothing for the tasks of all
    /// repositories.
    ///
    /// # Errors
    /// The file cannot be read, or the manifest cannot be written.
    pub fn write_manifest(&self, tasks: &FolderTasks, output: &Path) -> Result<()> {
        let Some(shard) = self.shard else { return Ok(()) };
        let mut manifest = Manifest::new("tasks");
        let settings = format!("{:?}{:?}", self.sampling, self.walk);
        manifest.setting("settings", digest(settings.as_bytes()));
        manifest.setting("repositories", digest(self.names.join("\n").as_bytes()));
        write_shard_beside(output, &manifest, shard, &tasks.positions)
    }
}

impl FolderTasks {
    /// Returns the tasks of all repositories.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.repositories.iter().flatten().flat_map(|repository| &repository.tasks)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use repoformer_core::task::sample::Kind;

    use super::*;
    use crate::merge::merge;

    #[test]
    fn tasks_of_shards_are_those_of_all() {
        let place = tempfile::tempdir().unwrap();
        let repos = place.path().join("repos");
        let names = ["one", "two", "three"].map(String::from);
        for name in &names {
            let line = |number| format!("{name}_{number} = call({number}, len({name:?}))\n");
            std::fs::create_dir_all(repos.join(name)).unwrap();
            let text: String = (0..20).map(line).collect();
            std::fs::write(repos.join(name).join("a.py"), text).unwrap();
        }
        let sampling = Sampling { per_repository: 4, ..Sampling::new(Kind::Line) };
        let draw = |names: &[String], shard: Option<Shard>, output: &str| {
            let (dir, sampling, output) = (&*repos, &sampling, place.path().join(output));
            let folders = FolderSampling { dir, names, walk: Walk::default(), sampling, shard };
            let tasks = folders.draw();
            let lines = tasks.tasks().map(|task| format!("{}\n", task.to_record()));
            std::fs::write(&output, lines.collect::<String>()).unwrap();
            folders.write_manifest(&tasks, &output).unwrap();
            (tasks, output)
        };
        let (all, whole) = draw(&names, None, "all");
        assert_eq!((all.repositories.len(), all.tasks().count()), (3, 12));
        let parts: Vec<PathBuf> =
            Shard::all(2).map(|shard| draw(&names, Some(shard), &shard.file_name()).1).collect();
        let merged = place.path().join("merged");
        merge(&parts, &merged).unwrap();
        assert_eq!(std::fs::read(merged).unwrap(), std::fs::read(whole).unwrap());
        // Repositories that cannot be read do not affect the others.
        let (some, _) = draw(&[names[0].clone(), "lost".into()], None, "some");
        assert!(some.repositories[1].is_err());
        assert_eq!(some.tasks().count(), 4);
    }
}
