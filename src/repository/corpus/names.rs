//! Names of folders and files, and paths in records.

use std::borrow::Cow;
use std::path::{Component, Path};

/// Reason why a path cannot name a file in a repository. Completes a sentence that begins with the path's field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    /// It is absolute, or a `..` in it leaves the repository's folder.
    #[error("leads out of the repository: {0:?}")]
    LeadsOut(String),
    /// It has a backslash, which separates folders on Windows and can be part of a name on other systems.
    #[error("contains a backslash: {0:?}; separate its folders with '/'")]
    Backslash(String),
    /// No file system has such a name.
    #[error("contains a NUL character: {0:?}")]
    Nul(String),
    /// It is empty, or `.`.
    #[error("is not the name of a file or folder: {0:?}")]
    NoName(String),
}

impl PathError {
    /// Checks one name of a path.
    pub(crate) fn check(name: &str) -> Result<(), Self> {
        let error = |variant: fn(String) -> Self| Err(variant(name.to_owned()));
        match name {
            "" | "." => error(Self::NoName),
            _ if name.contains('\0') => error(Self::Nul),
            _ if name.contains('\\') => error(Self::Backslash),
            _ if is_component(name) => Ok(()),
            _ => error(Self::LeadsOut),
        }
    }
}

/// True if the system reads a name as one component of a path that leads nowhere else.
fn is_component(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(only)), None) if only == name)
}

/// True if `name` can be a repository's folder: one path component that leads nowhere else.
pub fn is_folder_name(name: &str) -> bool {
    PathError::check(name).is_ok()
}

/// Returns the names on the path of a file below its repository's folder, which leads nowhere else: `./a//b/../c.py` is `a/c.py`.
pub(crate) fn path_names(path: &str) -> Result<Vec<&str>, PathError> {
    names_behind(path, 0)
}

/// Returns the names on a path whose first name is the repository's folder.
pub(crate) fn path_names_with_repository(path: &str) -> Result<Vec<&str>, PathError> {
    names_behind(path, 1)
}

/// Returns the names on a path; `..` removes the name before it, but for the first `kept` names.
fn names_behind(path: &str, kept: usize) -> Result<Vec<&str>, PathError> {
    if path.starts_with('/') {
        return Err(PathError::LeadsOut(path.to_owned()));
    }
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." if names.len() > kept => drop(names.pop()),
            name => {
                PathError::check(name)?;
                names.push(name);
            }
        }
    }
    if names.is_empty() {
        return Err(PathError::NoName(path.to_owned()));
    }
    Ok(names)
}

/// A name for messages, without the middle if it is long.
pub(crate) fn abbreviated(name: &str) -> Cow<'_, str> {
    const SHOWN: usize = 40;
    let ends = name.char_indices().nth(SHOWN).zip(name.char_indices().rev().nth(SHOWN - 1));
    match ends {
        Some(((head, _), (tail, _))) if head < tail => {
            format!("{}…{}", &name[..head], &name[tail..]).into()
        }
        _ => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shown_by_their_ends() {
        let [short, long] = [80, 81].map(|length| "é".repeat(length));
        assert_eq!(abbreviated(&short), short);
        assert_eq!(abbreviated(&long), format!("{}…{}", "é".repeat(40), "é".repeat(40)));
    }

    #[test]
    fn paths_are_normalised_or_say_why_not() {
        for (path, names) in [
            ("a.py", "a.py"),
            ("./dot.py", "dot.py"),
            ("a//b.py", "a/b.py"),
            ("a/./b.py/", "a/b.py"),
            ("a/../c.py", "c.py"),
            ("a/b/../../c/./d/../e.py", "c/e.py"),
            (".hidden/..a/x y.py.", ".hidden/..a/x y.py."),
        ] {
            assert_eq!(path_names(path).unwrap().join("/"), names, "{path}");
        }
        for (path, reason) in [
            ("../x.py", "leads out of the repository: \"..\""),
            ("a/../../x.py", "leads out of the repository: \"..\""),
            ("a/..", "is not the name of a file or folder: \"a/..\""),
            ("/etc/x.py", "leads out of the repository: \"/etc/x.py\""),
            (
                "pkg\\win.py",
                "contains a backslash: \"pkg\\\\win.py\"; separate its folders with '/'",
            ),
            ("a\0.py", "contains a NUL character: \"a\\0.py\""),
            ("./", "is not the name of a file or folder: \"./\""),
            ("", "is not the name of a file or folder: \"\""),
        ] {
            assert_eq!(path_names(path).unwrap_err().to_string(), reason, "{path}");
        }
        let joined = |path| path_names_with_repository(path).map(|names| names.join("/"));
        assert_eq!(joined("r/a/../c.py").unwrap(), "r/c.py");
        assert_eq!(joined("r/../other/c.py"), Err(PathError::LeadsOut("..".into())));
    }
}
