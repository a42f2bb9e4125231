//! `serve` and `lsp`: completions for editors, with selective retrieval.

mod answer;
mod body;
mod connections;
mod decide;
mod document;
mod guard;
mod http;
mod learn;
pub(crate) mod lsp;
mod metrics;
mod page;
mod request;
mod service;
mod session;
mod start;
mod upstream;
mod watch;

use std::sync::Arc;

use anyhow::Result;

use super::serve_args::ServeArgs;
use guard::Guard;
use start::open;

pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    let guard = Guard::new(args.listen)?;
    let (service, watcher) = open(&args.flags, args.flags.settings_in(None, "serve")?)?;
    http::serve(Arc::new(service), guard)?;
    drop(watcher);
    Ok(())
}
