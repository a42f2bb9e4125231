//! `__guard`, which `eval --exec` starts for every run of tests.

use anyhow::Result;

use crate::args::GuardArgs;

#[cfg(target_os = "linux")]
pub(crate) fn run(args: &GuardArgs) -> Result<()> {
    Ok(repoformer::execution::guard::serve(&args.stage)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &GuardArgs) -> Result<()> {
    anyhow::bail!("tests are run on Linux alone")
}
