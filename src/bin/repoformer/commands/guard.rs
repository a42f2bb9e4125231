//! `__guard`, which `eval --exec` starts for every run of tests.

use anyhow::Result;

use crate::args::GuardArgs;

pub(crate) fn run(args: &GuardArgs) -> Result<()> {
    Ok(repoformer::execute::guard::serve(&args.stage)?)
}
