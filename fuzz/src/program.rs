//! Files of settings, which the program reads beside the library. Its modules stand here as they are.

#![allow(dead_code, unused_imports)] // most of them is for commands

#[path = "../../src/bin/repoformer/bars.rs"]
pub(crate) mod bars;
#[path = "../../src/bin/repoformer/commands/paper/names.rs"]
pub(crate) mod names;
#[path = "../../src/bin/repoformer/near_files.rs"]
pub(crate) mod near_files;
#[path = "../../src/bin/repoformer/output.rs"]
pub(crate) mod output;
#[path = "../../src/bin/repoformer/settings/mod.rs"]
pub(crate) mod settings;

/// Where the settings look for the names of the paper's tables.
pub(crate) mod commands {
    pub(crate) mod paper {
        pub(crate) use super::super::names;
    }
}
