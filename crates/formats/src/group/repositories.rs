//! Repositories, assembled from the merged rows of a shard, one at a time.

use foldhash::HashSet;
use repoformer_store::error::Result;

use super::spill::Merge;

/// Bytes that a file counts for in addition to its path and text.
const FILE: u64 = 64;

/// Repository with its files in the order of their paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GroupedRepository {
    pub(super) name: String,
    /// Greatest number of stars in any row.
    pub(super) stars: u64,
    /// Paths and texts.
    pub(super) files: Vec<(String, String)>,
    /// Number of repeated files with the same text.
    pub(super) repeated: u64,
    /// Number of repeated files with another text; the first one is kept.
    pub(super) conflicting: u64,
    /// Reason why it is left out; it then has no files.
    pub(super) left_out: Option<String>,
}

impl GroupedRepository {
    /// Returns the digest of the paths and texts.
    pub(super) fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in self.files.iter().flat_map(|(path, text)| [path, text]) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// Repositories of a shard in the order of their names.
pub(super) struct RepositoryStream {
    rows: Merge,
    /// True if the next row has already been read.
    is_ahead: bool,
    most: u64,
    /// Folders of finished repositories.
    folders: HashSet<String>,
}

impl RepositoryStream {
    /// Creates the stream of merged rows; repositories larger than `most` bytes are left out.
    pub(super) fn new(rows: Merge, most: u64) -> Self {
        Self { rows, is_ahead: false, most, folders: HashSet::default() }
    }

    /// Returns the next repository; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<GroupedRepository>> {
        if !std::mem::take(&mut self.is_ahead) && !self.rows.next()? {
            return Ok(None);
        }
        let Some((name, ..)) = self.rows.row() else { return Ok(None) };
        let name = String::from_utf8_lossy(name).into_owned();
        let mut grouped = GroupedRepository { name, ..GroupedRepository::default() };
        let mut bytes = 0;
        while let Some((name, path, stars, length)) = self.rows.row() {
            if name != grouped.name.as_bytes() {
                self.is_ahead = true;
                break;
            }
            grouped.stars = grouped.stars.max(stars);
            let last = grouped.files.last();
            let is_again = last.is_some_and(|(last, _)| last.as_bytes() == path);
            let path = String::from_utf8_lossy(path).into_owned();
            if is_again {
                let text = self.rows.text()?;
                let is_same = grouped.files.last().is_some_and(|(_, last)| last.as_bytes() == text);
                grouped.repeated += u64::from(is_same);
                grouped.conflicting += u64::from(!is_same);
            } else {
                bytes += length + path.len() as u64 + FILE;
                if bytes > self.most {
                    let reason = format!("more than {} MiB", self.most >> 20);
                    grouped.left_out = Some(reason);
                    grouped.files = Vec::new();
                } else {
                    let text = String::from_utf8_lossy(&self.rows.text()?).into_owned();
                    grouped.files.push((path, text));
                }
            }
            if !self.rows.next()? {
                break;
            }
        }
        if !self.folders.insert(grouped.name.replace('/', "_")) {
            let folder = grouped.name.replace('/', "_");
            grouped.left_out = Some(format!("another repository has its folder's name, {folder}"));
            grouped.files = Vec::new();
        }
        Ok(Some(grouped))
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::FileRow;
    use super::super::spill::Spill;
    use super::*;

    fn grouped(rows: &[(&str, &str, &str, u64)], most: u64) -> Vec<GroupedRepository> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows");
        let mut spill = Spill::create(&path, 1, 64).unwrap();
        for (number, (repository, path, text, stars)) in (0..).zip(rows) {
            spill.add(FileRow { repository, path, text, stars: *stars }, 0, number).unwrap();
        }
        let sections = spill.finish().unwrap();
        let sections = sections.into_iter().map(|section| (path.clone(), section)).collect();
        let merge = Merge::open(sections, 64, dir.path()).unwrap();
        let mut stream = RepositoryStream::new(merge, most);
        std::iter::from_fn(|| stream.next().unwrap()).collect()
    }

    #[test]
    fn files_of_a_repository_come_together_and_the_first_of_a_path_stays() {
        let rows = [
            ("b", "y.py", "1", 0),
            ("a/c", "x.py", "first", 3),
            ("b", "x.py", "2", 7),
            ("a/c", "x.py", "second", 9),
            ("a/c", "x.py", "first", 1),
        ];
        let found = grouped(&rows, 1 << 20);
        let names: Vec<_> = found.iter().map(|one| (&*one.name, one.stars)).collect();
        assert_eq!(names, [("a/c", 9), ("b", 7)]);
        assert_eq!(found[0].files, [("x.py".to_owned(), "first".to_owned())]);
        assert_eq!((found[0].repeated, found[0].conflicting), (1, 1));
        assert_eq!(found[1].files.len(), 2);
    }

    #[test]
    fn a_repository_that_is_too_large_or_shares_its_folder_is_left_out_alone() {
        let long = "x".repeat(2000);
        let rows = [("a/b_c", "x.py", "", 0), ("a_b/c", "x.py", "", 0), ("d", "x.py", &*long, 0)];
        let found = grouped(&rows, 1000);
        let reasons: Vec<_> =
            found.iter().map(|one| one.left_out.clone().unwrap_or_default()).collect();
        assert_eq!(reasons[0], "");
        assert!(reasons[1].contains("its folder's name, a_b_c"), "{reasons:?}");
        assert!(reasons[2].starts_with("more than"), "{reasons:?}");
        assert!(found[2].files.is_empty());
    }
}
