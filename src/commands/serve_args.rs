//! Flags of `serve` and `lsp`; a program without feature `serve` has them, too, and says what it lacks.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use clap::Args;

use crate::settings::SettingFlags;

/// Flags of both servers.
#[derive(Debug, Args)]
pub(crate) struct ServiceFlags {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Keep the beginning of the prompt and its fragments from request to request, so that the model's server need not read them
    /// again, until others are more similar by this much on average: from 0 (each prompt is that of the stages) to 1
    #[arg(long, value_name = "GAIN", default_value_t = 0.0)]
    pub(crate) stability: f64,
    /// Add a label to FILE for each line that you accept, or type where a completion was shown: whether retrieval helps the model
    /// to write it. The completion that was not shown is asked for while you pause. `policy train --labels FILE` learns from it
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
    /// Address to listen on; one that other machines reach, such as 0.0.0.0:8012, needs a token in REPOFORMER_SERVE_TOKEN
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8012", value_parser = address)]
    pub(crate) listen: SocketAddr,
}

#[derive(Debug, Args)]
pub(crate) struct LspArgs {
    #[command(flatten)]
    pub(crate) flags: ServiceFlags,
}

/// The address that a host and a port name; of several the first, IPv4 before IPv6.
fn address(text: &str) -> Result<SocketAddr, String> {
    let found =
        text.to_socket_addrs().map_err(|error| format!("not an address with a port: {error}"))?;
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| "the host has no address".into())
}

/// Fails where the program was compiled without the servers.
#[cfg(not(feature = "serve"))]
pub(crate) fn refuse_servers() -> anyhow::Result<()> {
    crate::output::fail(
        "this program is compiled without `serve` and `lsp`",
        "in a clone, `pip install .` or `cargo install --locked --path . --features serve` makes one that has them; wheels, the \
         static program and the container have them",
    )
}
