//! Current commit of a repository. Git receives its id, and reads none of the files that lead to it.

use std::path::Path;

use repoformer_store::error::{Error, Result};
use repoformer_store::files;

use super::links::{HistoryPath, MOST_NAME, NamedFolder};

/// Greatest number of names that lead from `HEAD` to a commit.
const MOST_NAMES: usize = 5;
/// Greatest number of bytes of a list of commits.
const MOST_IDS: u64 = 64 << 20;

/// Current commit of a repository, and the end of its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tip {
    /// Id of the commit that `HEAD` leads to: 40 hexadecimal digits, or 64 for SHA-256.
    pub(super) id: String,
    /// Ids of the commits whose parents a shallow clone lacks, one per line; `None` if it has all.
    pub(super) shallow: Option<String>,
}

impl Tip {
    /// # Errors
    /// `HEAD` leads to no commit, or a file has an unsupported form.
    pub(super) fn read(named: NamedFolder<'_>, place: &HistoryPath) -> Result<Self> {
        if [&place.git_dir, &place.common].iter().any(|folder| folder.join("reftable").exists()) {
            return Err(named.refusal(
                "stores its branches as a reftable, which is not supported; clone it with `git \
                 clone --no-local --ref-format=files`, \
                 or, if it is your own, run `git refs migrate --ref-format=files`",
            ));
        }
        let id = commit(named, place)?;
        let shallow = shallow(named, place, id.len())?;
        Ok(Self { id, shallow })
    }
}

/// Content of a branch's file, or of `HEAD`.
enum Ref {
    Id(String),
    /// Name of another ref.
    Name(String),
}

/// Follows `HEAD` to a commit.
fn commit(named: NamedFolder<'_>, place: &HistoryPath) -> Result<String> {
    let mut name = "HEAD".to_owned();
    for _ in 0..=MOST_NAMES {
        match read(named, place, &name)? {
            Some(Ref::Id(id)) => return Ok(id),
            Some(Ref::Name(next)) => name = next,
            None => {
                return Err(named.refusal(format!(
                    "has no commits on {name}, the branch of its HEAD; check out a branch with commits"
                )));
            }
        }
    }
    Err(named.refusal(format!("its HEAD points to a commit through more than {MOST_NAMES} names")))
}

fn read(named: NamedFolder<'_>, place: &HistoryPath, name: &str) -> Result<Option<Ref>> {
    let of_worktree = ["refs/bisect/", "refs/worktree/", "refs/rewritten/"];
    let is_own = name == "HEAD" || of_worktree.iter().any(|start| name.starts_with(start));
    let path = if is_own { &place.git_dir } else { &place.common }.join(name);
    let other_form =
        |path: &Path| named.refusal(format!("{} does not name a commit", named.name(path)));
    let followed = |name: &str| {
        if is_ref_name(name) {
            Ok(Some(Ref::Name(name.to_owned())))
        } else {
            Err(other_form(&path))
        }
    };
    // Old versions of git write HEAD as a link.
    if name == "HEAD"
        && let Ok(target) = files::read_link(&path)
        && let Some(target) = target.to_str().filter(|target| target.starts_with("refs/"))
    {
        return followed(target);
    }
    if let Some(text) = named.read(&path, MOST_NAME)? {
        let text = str::from_utf8(&text).map_err(|_| other_form(&path))?.trim_ascii_end();
        return match text.strip_prefix("ref:") {
            Some(name) => followed(name.trim_ascii_start()),
            None if is_id(text.as_bytes()) => Ok(Some(Ref::Id(text.to_ascii_lowercase()))),
            None => Err(other_form(&path)),
        };
    }
    let path = place.common.join("packed-refs");
    let packed = named.read(&path, MOST_IDS)?.unwrap_or_default();
    let wanted = |line: &[u8]| -> Option<String> {
        let (id, rest) = line.split_at_checked(memchr::memchr(b' ', line)?)?;
        let is_wanted = rest[1..].trim_ascii_end() == name.as_bytes() && is_id(id);
        is_wanted.then(|| String::from_utf8_lossy(id).to_ascii_lowercase())
    };
    Ok(packed.split(|byte| *byte == b'\n').find_map(wanted).map(Ref::Id))
}

/// Returns true if a name is a ref, such as a branch, and therefore leads to a file in `refs`.
fn is_ref_name(name: &str) -> bool {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\0', '\\']);
    name.strip_prefix("refs/").is_some_and(|rest| rest.split('/').all(is_plain))
}

/// Returns true if bytes are the id of an object, in hexadecimal.
fn is_id(bytes: &[u8]) -> bool {
    matches!(bytes.len(), 40 | 64) && bytes.iter().all(u8::is_ascii_hexdigit)
}

/// Reads the list of a shallow clone, whose ids have this number of digits.
fn shallow(named: NamedFolder<'_>, place: &HistoryPath, digits: usize) -> Result<Option<String>> {
    let path = place.common.join("shallow");
    // A message must not show another file's content either.
    let other_form = || {
        let name = named.name(&path);
        named.refusal(format!("{name} is not a list of commits; clone the repository again"))
    };
    match files::symlink_metadata(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::reading(&path, "open this file", e)),
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(other_form()),
    }
    let list = named.read(&path, MOST_IDS)?.unwrap_or_default();
    let is_listed = |line: &str| line.len() == digits && is_id(line.as_bytes());
    match String::from_utf8(list).ok().filter(|list| list.lines().all(is_listed)) {
        Some(list) => Ok(Some(list)),
        None => Err(other_form()),
    }
}
