//! Flags of `serve` and `lsp`. A program without feature `serve` has them, too, and reports the missing feature.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use clap::Args;

use crate::settings::SettingFlags;

/// Flags of both servers.
#[derive(Debug, Args)]
pub(crate) struct ServiceFlags {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Reuse the start of the prompt and its fragments until other fragments are this much more similar on average, so that the
    /// model's server can reuse its cache: from 0 (each prompt is built as by the stages) to 1
    #[arg(long, value_name = "GAIN", default_value_t = 0.0)]
    pub(crate) stability: f64,
    /// Collect labels: add to FILE whether retrieval helped, for each line that you accept, or type while a completion is shown;
    /// the completion that was not shown is requested while you pause; `policy train --labels FILE` learns from the labels
    #[arg(long, value_name = "FILE")]
    pub(crate) learn: Option<PathBuf>,
    /// Do not watch the repository for changes
    #[arg(long)]
    pub(crate) no_watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) flags: ServiceFlags,
    /// Address to listen on; if other machines can reach it, such as 0.0.0.0:8012, set a token in REPOFORMER_SERVE_TOKEN
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8012", value_parser = address)]
    pub(crate) listen: SocketAddr,
}

#[derive(Debug, Args)]
pub(crate) struct LspArgs {
    #[command(flatten)]
    pub(crate) flags: ServiceFlags,
}

/// Returns the address for a host and a port; if there are several, the first, IPv4 before IPv6.
fn address(text: &str) -> Result<SocketAddr, String> {
    let found =
        text.to_socket_addrs().map_err(|error| format!("not an address with a port: {error}"))?;
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| "the host has no address".into())
}

/// Fails if the program was compiled without the servers.
#[cfg(not(feature = "serve"))]
pub(crate) fn refuse_servers() -> anyhow::Result<()> {
    crate::output::fail(
        "this program was built without `serve` and `lsp`",
        "install a wheel, the static program or the container, or build it in a clone with `pip install .` or \
         `cargo install --locked --path . --features serve`",
    )
}
