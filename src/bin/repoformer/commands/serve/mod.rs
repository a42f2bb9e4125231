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

use std::net::{SocketAddr, ToSocketAddrs as _};
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
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8012", value_parser = address)]
    listen: SocketAddr,
}

/// The address that a host and a port name; of several the first, IPv4 before IPv6.
fn address(text: &str) -> Result<SocketAddr, String> {
    let found =
        text.to_socket_addrs().map_err(|error| format!("not an address with a port: {error}"))?;
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| "the host has no address".into())
}

pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    let guard = Guard::new(args.listen)?;
    let (service, watcher) = open(&args.flags, args.flags.settings_in(None, "serve")?)?;
    http::serve(Arc::new(service), guard)?;
    drop(watcher);
    Ok(())
}
