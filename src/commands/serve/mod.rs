//! `serve` and `lsp`: completions for editors, with selective retrieval.

mod policy;
mod start;

use std::io;
use std::sync::Arc;

use anyhow::Result;
use repoformer_serve::ServeError;
use repoformer_serve::http::{self, RequestGuard, TOKEN_VARIABLE};
use repoformer_serve::lsp::{self, SessionEnd};

use super::serve_args::{LspArgs, ServeArgs};
use crate::output;
use start::open;

pub(crate) fn serve(args: &ServeArgs) -> Result<()> {
    let guard =
        RequestGuard::new(args.listen, std::env::var(TOKEN_VARIABLE).ok()).map_err(explain)?;
    let (service, watcher) = open(&args.flags, args.flags.settings_in(None, "serve")?)?;
    http::serve(Arc::new(service), guard).map_err(explain)?;
    drop(watcher);
    Ok(())
}

pub(crate) fn lsp(args: &LspArgs) -> Result<()> {
    let open = |folder: Option<&str>| open(&args.flags, args.flags.settings_in(folder, "lsp")?);
    match lsp::run(&mut io::stdin().lock(), io::stdout(), open)? {
        SessionEnd::Closed => Ok(()),
        // The protocol requires this status.
        SessionEnd::ExitBeforeShutdown => std::process::exit(1),
    }
}

/// Explains a failure with the flags of the program.
fn explain(error: ServeError) -> anyhow::Error {
    match error {
        ServeError::Store(error) => error.into(),
        ServeError::OpenToAll { listen } => output::add_hint(
            anyhow::anyhow!(
                "--listen {listen}: other machines can reach this address, but {TOKEN_VARIABLE} is not set"
            ),
            format!(
                "set {TOKEN_VARIABLE} to a secret that clients send as their API key, or listen on 127.0.0.1"
            ),
        ),
        ServeError::NoPlaceToDecide { .. } => output::add_hint(
            error,
            "choose the model's prompt style with --prompt-style, such as repoformer",
        ),
        ServeError::OtherFragments { .. } => output::add_hint(
            error,
            "name another file with --learn, or choose the fragments of this file with --unit",
        ),
        error => error.into(),
    }
}
