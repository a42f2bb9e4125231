//! The fuzzer: libFuzzer, which counts the edges that an input takes, on the group of readers that the variable `READERS` names.

#![no_main]

mod budget;
mod readers;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;


static GROUP: LazyLock<&readers::Group> = LazyLock::new(|| {
    let name = std::env::var("READERS").unwrap_or_default();
    readers::end_at_panics();
    let group = readers::GROUPS.iter().find(|group| group.name == name);
    group.expect("READERS is the name of a group")
});

fuzz_target!(|bytes: &[u8]| {
    if bytes.len() <= GROUP.longest {
        budget::read(&GROUP, bytes);
    }
});
