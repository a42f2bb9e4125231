//! Names of folders and files, and paths in records.

use std::borrow::Cow;
use std::path::{Component, Path};

use unicode_normalization::UnicodeNormalization as _;

/// Reason why a path cannot name a file in a repository; completes a sentence that begins with the path's field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path is absolute, or a `..` in it leaves the repository's folder.
    #[error("leads out of the repository: {0:?}")]
    LeadsOut(String),
    /// The path has a backslash, which separates folders on Windows and can be part of a name on other systems.
    #[error("contains a backslash: {0:?}; separate its folders with '/'")]
    Backslash(String),
    /// No file system has such a name.
    #[error("contains a NUL character: {0:?}")]
    Nul(String),
    /// The name is empty, or `.`.
    #[error("is not the name of a file or folder: {0:?}")]
    NoName(String),
    /// The path has too many names or bytes: each name is a folder that must be created and traversed for every file in it.
    #[error("has more than {MOST_NAMES} names or {MOST_BYTES} bytes: {:?}", abbreviate(.0))]
    TooLong(String),
}

/// Greatest number of names in a path below a repository; paths of nested dependencies have fewer than forty.
const MOST_NAMES: usize = 64;
/// Greatest number of bytes in a path: Linux cannot open longer ones.
const MOST_BYTES: usize = 4096;

impl PathError {
    /// Checks one name of a path.
    ///
    /// # Errors
    /// The name cannot be the name of a file or folder, or leads elsewhere.
    pub fn check(name: &str) -> Result<(), Self> {
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

/// Returns true if the system reads a name as one path component that does not lead elsewhere.
fn is_component(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(only)), None) if only == name)
}

/// Returns true if `name` can be a repository's folder: one path component that does not lead elsewhere.
pub fn is_folder_name(name: &str) -> bool {
    PathError::check(name).is_ok()
}

/// Returns the names in the path of a file relative to its repository's folder, with `.` and `..` resolved: `./a//b/../c.py`
/// becomes `a/c.py`.
pub fn path_names(path: &str) -> Result<Vec<&str>, PathError> {
    names_behind(path, 0)
}

/// Returns the names in a path whose first name is the repository's folder.
pub fn path_names_with_repository(path: &str) -> Result<Vec<&str>, PathError> {
    names_behind(path, 1)
}

/// Returns the names in a path; `..` removes the preceding name, except the first `kept` names.
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
                if path.len() > MOST_BYTES || names.len() > MOST_NAMES + kept {
                    return Err(PathError::TooLong(path.to_owned()));
                }
            }
        }
    }
    if names.is_empty() {
        return Err(PathError::NoName(path.to_owned()));
    }
    Ok(names)
}

/// Folders and files of version control. Programs run commands from these: hooks, and programs named in settings.
const VERSION_CONTROL: [&str; 17] = [
    ".git", ".hg", ".svn", ".bzr", ".jj", ".sl", ".pijul", "_darcs", "_fossil_", ".fslckout",
    ".fos", ".repo", "_mtn", ".got", ".bk", "bitkeeper", ".p4config",
];
/// Prefixes of the short names that Windows gives these folders; a number follows.
const SHORT: [&str; 15] = [
    "git~", "hg~", "hg8b6c~", "svn~", "bzr~", "jj~", "sl~", "pijul~", "fslcko~", "repo~", "fos~",
    "got~", "bk~", "bitkee~", "p4conf~",
];

/// Returns a name as the most tolerant file systems see it: two names have the same result if any file system considers them
/// the same.
///
/// NTFS, APFS, HFS+ and ext4 folders with `casefold` ignore case. The last three also ignore how characters are composed, and
/// the last two invisible characters. Windows drops blanks and dots at the end.
fn fold(name: &str) -> String {
    // Full case folding: ẞ, ß and SS become ss.
    let lower = |c: char| c.to_lowercase();
    let folded = name.nfd().filter(|c| !is_unseen(*c)).flat_map(lower).flat_map(char::to_uppercase);
    let mut folded: String = folded.flat_map(lower).nfd().collect();
    folded.truncate(folded.trim_end_matches([' ', '.']).len());
    folded
}

/// Returns true if a character is invisible (Unicode's `Default_Ignorable_Code_Point`).
const fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Returns a name as the most tolerant file systems see it, without the stream that NTFS reads after a colon.
pub fn file_of(name: &str) -> String {
    fold(name.split(':').next().unwrap_or_default())
}

/// Returns true if a program of version control uses a folder or file with this name, on any file system.
pub fn is_version_control(name: &str) -> bool {
    let name = file_of(name);
    let is_short = |begin: &&str| {
        let number = name.strip_prefix(*begin);
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    VERSION_CONTROL.contains(&&*name) || SHORT.iter().any(is_short)
}

/// Returns true if this file would make git treat its folder as a repository, whose settings may name programs: in a
/// repository, `HEAD` names a branch or a commit.
pub fn is_git_head(name: &str, content: &[u8]) -> bool {
    let is_commit = |text: &[u8]| text.len() >= 40 && text[..40].iter().all(u8::is_ascii_hexdigit);
    file_of(name) == "head" && (content.starts_with(b"ref:") || is_commit(content))
}

/// Returns a name for messages; if it is long, the middle is left out.
pub fn abbreviate(name: &str) -> Cow<'_, str> {
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
        assert_eq!(abbreviate(&short), short);
        assert_eq!(abbreviate(&long), format!("{}…{}", "é".repeat(40), "é".repeat(40)));
    }

    #[test]
    fn folders_of_version_control_are_known_by_each_of_their_names() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            ".git.",
            ".git . .",
            ".git::$INDEX_ALLOCATION",
            ".git:x",
            "git~1",
            "GIT~12",
            "GIT~1 .",
            ".g\u{200c}it",
            "\u{feff}.gi\u{206f}T",
            ".hg",
            ".HG ",
            "HG~1",
            "hg8B6C~2",
            ".svn",
            "SVN~1",
            "_MTN",
            "_darcs",
            "_FOSSIL_",
            ".fslckout",
            ".fos",
            ".jj",
            ".sl",
            ".bzr",
            ".repo",
            ".p4config",
            "GOT~1",
        ] {
            assert!(is_version_control(name), "{name:?}");
        }
        for name in [
            "", "git", ".gitmodules", ".gitignore", ".github", ".gitx", "x.git", ". git", "git~",
            "git~x", "git1", ".hgignore", ".hgtags", "..git", " .git", "HEAD",
        ] {
            assert!(!is_version_control(name), "{name:?}");
        }
        let is_head = |text: &str| is_git_head("head", text.as_bytes());
        assert!(is_head("ref: refs/heads/main\n") && is_head(&"0a".repeat(20)));
        assert!(!is_head("# Heading\n") && !is_git_head("HEAD.md", b"ref: x"));
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
        let deep = |names: usize| vec!["d"; names].join("/");
        assert_eq!(path_names(&deep(MOST_NAMES)).unwrap().len(), MOST_NAMES);
        assert_eq!(joined(&deep(MOST_NAMES + 1)).unwrap(), deep(MOST_NAMES + 1));
        for path in [deep(MOST_NAMES + 1), "d".repeat(MOST_BYTES + 1)] {
            let reason = path_names(&path).unwrap_err().to_string();
            assert!(reason.starts_with("has more than 64 names or 4096 bytes: \"d"), "{reason}");
            assert!(reason.len() < 200, "{reason}");
        }
    }
}
