//! `serve` and `lsp`: completions for editors, with selective retrieval.

mod answer;
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
mod withheld;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;

use guard::Guard;
use start::{ServiceFlags, open};

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    flags: ServiceFlags,
    /// Address to listen on; other machines reach any but 127.0.0.1, and need the token of REPOFORMER_SERVE_TOKEN
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8012")]
    listen: SocketAddr,
}

pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    let guard = Guard::new(args.listen)?;
    let (service, watcher) = open(&args.flags, args.flags.settings_in(None, "serve")?)?;
    http::serve(Arc::new(service), guard)?;
    drop(watcher);
    Ok(())
}
