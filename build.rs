//! Embeds the demonstration's files in the program, so that it can run the demonstration anywhere.

#![forbid(unsafe_code)]

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Returns the Rust source of a table of the demonstration's files.
fn demo_files() -> Outcome<String> {
    let root =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?);
    let (mut files, mut folders) =
        (Vec::new(), vec![root.join("data/repos"), root.join("data/tasks")]);
    while let Some(folder) = folders.pop() {
        println!("cargo::rerun-if-changed={}", folder.display());
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            // The demonstration does not use the chunk tasks.
            let wanted = path.extension().is_some_and(|end| end == "py" || end == "jsonl")
                && !path.ends_with("chunk.jsonl");
            if path.is_dir() {
                folders.push(path);
            } else if wanted {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut source = String::from(
        "/// Path below the project, and text.\npub(super) static FILES: &[(&str, &str)] = &[\n",
    );
    for file in files {
        let name =
            file.strip_prefix(&root)?.components().map(|part| part.as_os_str().to_string_lossy());
        let name = name.collect::<Vec<_>>().join("/");
        source += &format!("    ({name:?}, include_str!({:?})),\n", file.display().to_string());
    }
    Ok(source + "];\n")
}

fn main() -> Outcome<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    fs::write(folder.join("demo_files.rs"), demo_files()?)?;
    Ok(())
}
