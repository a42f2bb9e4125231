//! Suggestions for paths that do not exist.

use std::path::{Component, Path, PathBuf};

use repoformer_store::files;
use repoformer_text::names::suggest;

/// Number of a folder's entries that a name is compared with; the names in larger folders, which hold data, make poor suggestions.
const MOST: usize = 2000;

/// Returns an existing file or folder whose path differs from this one by a few letters.
pub(crate) fn near_file(path: &Path) -> Option<PathBuf> {
    let mut there = PathBuf::new();
    for part in path.components() {
        let next = there.join(part);
        if next.exists() {
            there = next;
            continue;
        }
        let Component::Normal(name) = part else { return None };
        let folder = if there.as_os_str().is_empty() { Path::new(".") } else { &there };
        let entries = files::read_dir(folder).ok()?.flatten().take(MOST);
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable(); // the system lists them in any order
        // The part before the extension must be similar: a.json and b.json are different files.
        let stem = |name: &str| {
            Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned())
        };
        let given = stem(name.to_str()?)?;
        names.retain(|name| {
            stem(name).is_some_and(|stem| stem == given || suggest(&given, [&*stem]).is_some())
        });
        there.push(suggest(name.to_str()?, names.iter().map(String::as_str))?);
    }
    (there != path && there.exists()).then_some(there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_of_a_path_may_be_mistyped() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("data/tasks")).unwrap();
        std::fs::write(at("data/tasks/line.jsonl"), "").unwrap();
        std::fs::write(at("data/tasks/api.jsonl"), "").unwrap();
        let near = |path: &str| near_file(&at(path));
        assert_eq!(near("data/tasks/lines.jsonl"), Some(at("data/tasks/line.jsonl")));
        assert_eq!(near("dta/task/apy.jsonl"), Some(at("data/tasks/api.jsonl")));
        assert_eq!(near("data/tasks/function.jsonl"), None);
        assert_eq!(near("data/tasks/api.jsonl"), None, "it is there");
        assert_eq!(near("other/api.jsonl"), None);
        std::fs::write(at("a.jsonl"), "").unwrap();
        assert_eq!(
            (near("b.jsonl"), near("no.jsonl"), near("a.json")),
            (None, None, Some(at("a.jsonl")))
        );
    }
}
