//! Labelled instances, as the subcommands of `policy` read them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use repoformer::selective::policy::Examples;

use crate::args::LabelFlags;
use crate::output::{self, check_output, fail, group};

/// Reads labelled instances, and reports those that are left out.
pub(super) fn read_labels(flags: &LabelFlags, output: &Path) -> Result<Examples> {
    let inputs: Vec<&Path> = flags.labels.iter().map(PathBuf::as_path).collect();
    check_output(Some(output), &inputs)?;
    let mut examples = Examples::read(&flags.labels)?;
    output::problems(&examples.problems);
    for (missing, count) in &examples.unjudged {
        output::failed(&format!(
            "{} instances are left out: not labelled (no {missing})",
            group(*count as u64)
        ));
    }
    if examples.repeated > 0 {
        output::warning(format!(
            "{} instances repeat an id of their repository; each counts",
            group(examples.repeated as u64)
        ));
    }
    let knowing = examples.all.iter().filter(|e| e.query_has_target).count();
    if knowing > 0 {
        let them = "instances whose query contained the target";
        output::note(if flags.no_target_queries {
            format!("{} {them} are left out", group(knowing as u64))
        } else {
            format!(
                "{} {them} are included (--no-target-queries leaves them out)",
                group(knowing as u64)
            )
        });
    }
    if flags.no_target_queries {
        examples.all.retain(|example| !example.query_has_target);
    }
    if examples.all.is_empty() {
        return fail(
            "these files hold no labelled instance",
            "make labels with `repoformer label judge`",
        );
    }
    Ok(examples)
}
