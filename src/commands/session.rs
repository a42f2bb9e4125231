//! Start of a command: its settings and threads.

use std::path::Path;

use anyhow::Result;
use repoformer_pipeline::remove_abandoned;
use repoformer_study::checkout;
use repoformer_study::choices::warn_of_some_departures;

use crate::output::{check_output, fail, screen, write_data};
use crate::settings::{DECLARED, Declarations, Setting, SettingFlags, Settings};

/// Resolves a command's settings. If they are only to be shown, the program ends here.
pub(super) fn open(flags: &SettingFlags) -> Result<Settings> {
    begin(Settings::resolve(flags, screen())?, flags)
}

/// Begins a command with these settings. If they are only to be shown, the program ends here.
pub(super) fn begin(mut settings: Settings, flags: &SettingFlags) -> Result<Settings> {
    checkout::settle(&mut settings);
    if flags.show_settings {
        write_data(Path::new("-"), settings.lines().join("\n") + "\n")?;
        std::process::exit(0);
    }
    settings.check_shard(flags)?;
    use_threads(*settings.threads)?;
    remove_abandoned(&settings.cache_dir);
    Ok(settings)
}

/// Sets the number of threads; 0 stands for the number of cores.
pub(super) fn use_threads(threads: usize) -> Result<()> {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    Ok(())
}

/// Source that tasks or instances are drawn from.
#[derive(Debug, Clone, Copy)]
pub(super) enum DrawnFrom {
    Folders,
    RawRecords,
    Commits,
}

impl DrawnFrom {
    fn name(self) -> &'static str {
        match self {
            Self::Folders => "--repos-dir",
            Self::RawRecords => "--raw",
            Self::Commits => "the commits of --from-commits",
        }
    }

    /// True if sampling uses a setting.
    fn uses(self, setting: &Setting) -> bool {
        let Declarations { language, profile, threads, seed, config, .. } = &DECLARED;
        let Declarations { shard, repo, repos_dir, walk, .. } = &DECLARED;
        match setting {
            one if [language, profile, threads, seed, config].contains(&one) => true,
            one if [shard, repo].contains(&one) => !matches!(self, Self::Commits),
            one if [repos_dir, walk].contains(&one) => matches!(self, Self::Folders),
            _ => false,
        }
    }
}

/// Rejects flags that a sampling command does not use, and warns of departures among the flags that it uses.
pub(super) fn check_drawing(settings: &Settings, command: &str, from: DrawnFrom) -> Result<()> {
    if let Some(Setting { key, .. }) = settings.unused_flag(|setting| from.uses(setting)) {
        return fail(
            format!("--{key} is not used by {command}, which draws from {}", from.name()),
            "leave it out; only later stages use it",
        );
    }
    warn_of_some_departures(settings, &settings.departures_among(|setting| from.uses(setting)));
    Ok(())
}

/// Checks that `-o` is not a task file.
pub(super) fn check_not_tasks(settings: &Settings, output: Option<&Path>) -> Result<()> {
    check_output(output, settings.tasks.get())
}
