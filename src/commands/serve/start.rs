//! Start of a server: its settings, the repository, and the model's server.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use repoformer_core::completion::Api;
use repoformer_core::repository::corpus::{Checkout, Walk, is_link_out, languages};
use repoformer_core::retrieve::Mode;
use repoformer_models::endpoint::{ConnectionSettings, Endpoint};
use repoformer_pipeline::{Experiment, IN_CONTEXT};
use repoformer_serve::{Decider, Learner, LiveRepository, Model, Service, Session, Watch, Watcher};
use repoformer_study::choices::{repos_dir, repositories_in};
use repoformer_study::experiments::single;
use repoformer_study::server::check_model;

use super::explain;
use super::policy::{check_fragments, chosen_policy};
use crate::commands::serve_args::ServiceFlags;
use crate::commands::session::begin;
use crate::output::{self, Screen, announce, fail, format_count, note, screen};
use crate::settings::Settings;

/// Number of tokens in a completion if neither the editor nor the settings choose one.
const TOKENS: u64 = 128;

impl ServiceFlags {
    /// Returns the settings; `folder` is the repository if they name none.
    pub(super) fn settings_in(
        &self,
        folder: Option<&str>,
        command: &'static str,
    ) -> Result<Settings> {
        // Files that git ignores, such as dependencies and build outputs, are not edited.
        let mut settings = Settings::with_presets(&self.settings, screen(), |preset| {
            preset.walk.fix(Walk::Git, command)
        })?;
        if let Some(folder) = folder {
            // A folder without the marks of a repository counts as one, since the editor opened it.
            let path = Path::new(folder);
            let parts = path.parent().zip(path.file_name());
            let parts = parts.filter(|_| Checkout::find(path).is_none());
            let dir = parts.map_or(path, |(parent, _)| parent);
            settings.change(|values| {
                values.repos_dir.fix_unset(Some(dir.to_owned()), command);
                if let Some((_, name)) = parts {
                    values.repo.fix_unset(vec![name.to_string_lossy().into_owned()], command);
                }
            });
        }
        begin(settings, &self.settings)
    }
}

/// Opens the repository and the model's server.
pub(super) fn open(flags: &ServiceFlags, settings: Settings) -> Result<(Service, Option<Watcher>)> {
    if !(0.0..=1.0).contains(&flags.stability) {
        return fail(
            format!("invalid --stability {}: expected a gain in similarity", flags.stability),
            "give a number from 0 to 1, such as 0.1",
        );
    }
    let form = *settings.query.get();
    if form.mode() != Mode::LeftContext {
        return fail(
            format!(
                "--query {form} works only in mode {}, whose text is not known at a cursor",
                form.mode()
            ),
            "leave --query out, or choose a query from the left context",
        );
    }
    let (model, endpoint) = model(&settings)?;
    // The embedded model cannot complete here, so this is the name of the server's model.
    let settings = settings.with(|values| values.model.replace(model.name.clone()));
    let policy = chosen_policy(&settings)?;
    check_cache(&settings)?;
    let (experiment, _) = single(&of_language(settings)?)?;
    if let names @ [_, _, ..] = &experiment.repositories[..] {
        return fail(
            format!("several repositories: {}; only one can be served at a time", names.join(", ")),
            "choose one with --repo NAME",
        );
    }
    check_links(&experiment)?;
    check_fragments(&policy, &experiment)?;
    let decider = Decider::new(policy, &experiment.prompts).map_err(explain)?;
    let messages = screen();
    let begun = Instant::now();
    // Changes made while the repository is opened are read afterwards.
    let watch = |experiment: &Experiment| match (&experiment.repositories[..], flags.no_watch) {
        ([name], false) => {
            let folder = experiment.repos_dir.join(name);
            Watch::begin(&folder, experiment.walk, Arc::clone(&messages)).map(Some)
        }
        _ => Ok(None),
    };
    let fragments = experiment.fragments_name();
    let remarks = &mut |report| output::remarks(&report);
    let (live, watch) = LiveRepository::open(experiment, watch, remarks)?;
    let (live, watch) = (Arc::new(live), watch.map_err(explain)?);
    announce(&format!(
        "{}: {} of {}, ready in {:.2} s",
        live.name(),
        format_count(live.snapshot().fragments() as u64, "fragment"),
        format_count(live.snapshot().files().count() as u64, "file"),
        begun.elapsed().as_secs_f64()
    ));
    let watcher = watch.map(|watch| watch.follow(Arc::clone(&live))).transpose();
    let watcher = watcher.map_err(explain)?;
    greet(&endpoint, &model);
    let session = Session::new(flags.stability);
    let learner = flags.learn.as_ref();
    let learner =
        learner.map(|path| Learner::open(path, &endpoint, fragments, Arc::clone(&messages)));
    let learner = learner.transpose().map_err(explain)?;
    Ok((Service::new(live, decider, model, endpoint, session, learner, messages), watcher))
}

/// Refuses a repository that is a link out of the folder of repositories: somebody else may have made it.
fn check_links(Experiment { repos_dir: dir, repositories, .. }: &Experiment) -> Result<()> {
    match repositories.iter().find(|name| is_link_out(dir, name)) {
        Some(name) => fail(
            format!("{}: a link that leads out of its folder", dir.join(name).display()),
            "name the folder that it leads to with --repos-dir",
        ),
        None => Ok(()),
    }
}

/// Refuses a default cache that is a link: an editor may have opened a stranger's repository as the working folder.
fn check_cache(settings: &Settings) -> Result<()> {
    let cache = &*settings.cache_dir;
    let is_chosen = settings.chosen_keys().contains(&"cache-dir");
    // `data` and `data/cache`.
    match cache.ancestors().take(2).find(|folder| !is_chosen && folder.is_symlink()) {
        Some(link) => fail(
            format!("{}: the cache would be written where this link leads", link.display()),
            "name a folder for the cache with --cache-dir",
        ),
        None => Ok(()),
    }
}

/// Returns the settings with the language of most files, unless a language was chosen.
fn of_language(settings: Settings) -> Result<Settings> {
    if settings.language.is_some() {
        return Ok(settings);
    }
    let dir = repos_dir(&settings)?;
    let names = repositories_in(&dir, &settings.repo, &Screen)?;
    let Some((language, _)) = languages(&dir, &names, *settings.walk).into_iter().next() else {
        return Ok(settings);
    };
    Ok(settings.with(|values| values.language.fix_unset(Some(language), "serve")))
}

/// Returns the model that completes, and its server.
fn model(settings: &Settings) -> Result<(Model, Endpoint)> {
    let Some(url) = settings.endpoint.as_deref() else {
        return fail(
            "--endpoint is not set",
            "name the completion server, such as --endpoint http://localhost:8080, and its model with --model",
        );
    };
    if *settings.api.get() == Api::Chat {
        return fail(
            "api chat cannot serve editors, which need /v1/completions",
            "remove api from the settings",
        );
    }
    let name = settings.model.own().cloned().unwrap_or_default();
    if name == IN_CONTEXT {
        return fail(
            "the embedded model cannot complete for editors",
            "name a model on the server at --endpoint with --model, or leave --model out if the server has only one",
        );
    }
    let timeout = Duration::from_secs_f64(*settings.request_timeout);
    let connection = ConnectionSettings {
        timeout,
        connect_timeout: Duration::from_secs(5),
        retries: 0,
        ..ConnectionSettings::default()
    };
    let endpoint = Endpoint::new(url, connection)?;
    let max_tokens = *settings.max_tokens as u64;
    let model = Model {
        name,
        max_tokens,
        usual_tokens: settings.max_tokens.own().map_or(TOKENS, |_| max_tokens),
        temperature: *settings.temperature,
        top_p: *settings.top_p,
        stop: settings.stop.to_vec(),
        ending: *settings.prompt_end,
    };
    Ok((model, endpoint))
}

/// Reports whether the server answers; it may start later.
fn greet(endpoint: &Endpoint, model: &Model) {
    match endpoint.greet() {
        Ok(models) => {
            if !model.name.is_empty() {
                check_model(endpoint, (&model.name, Api::Completions), &models, &Screen);
            }
        }
        Err(error) => note(format!("{error}; completions fail until the server answers")),
    }
}
