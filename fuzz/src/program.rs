//! Files of settings, which the program reads beside the library. Its modules stand here as they are.

#![allow(dead_code, unused_imports)] // most of them is for commands

#[path = "../../src/bars.rs"]
pub(crate) mod bars;
#[path = "../../src/choices.rs"]
pub(crate) mod choices;
#[path = "../../src/commands/paper/names.rs"]
pub(crate) mod names;
#[path = "../../src/near_files.rs"]
pub(crate) mod near_files;
#[path = "../../src/output.rs"]
pub(crate) mod output;
#[path = "../../src/settings/mod.rs"]
pub(crate) mod settings;

/// Where the settings look for the names of the paper's tables.
pub(crate) mod commands {
    pub(crate) mod paper {
        pub(crate) use super::super::names;
    }
}
