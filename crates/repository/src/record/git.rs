//! Git's name for a file's content, which The Stack records as `hexsha`.

use sha1_smol::Sha1;

/// Returns the object id that git gives a blob: SHA-1 of `blob <length>\0` and the content (FIPS 180-4; git's object format),
/// in hexadecimal. It names a content and is not a protection against attacks.
///
/// ```
/// // `printf 'x = 1\n' | git hash-object --stdin`
/// assert_eq!(
///     repoformer_repository::record::blob_sha1(b"x = 1\n"),
///     "7d4290a117a4ddcc11daae7ea675841033830c8f",
/// );
/// ```
pub fn blob_sha1(content: &[u8]) -> String {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", content.len()).as_bytes());
    hash.update(content);
    hash.digest().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Python: `hashlib.sha1(b'blob %d\0' % n + b'a' * n).hexdigest()`; the empty blob's id is git's well-known one.
    #[test]
    fn ids_are_gits() {
        for (length, wanted) in [
            (0, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
            (46, "50b3bbe915fe104dbbb6786fdcfa310bcfc25d4e"),
            (47, "5e3bf7e629b4908cce461530c17a64365cb47303"),
            (48, "12d42395b020f44bb7710113b31f688d0ebeda7c"),
            (56, "1f973e890f52da1f22fa7e5620a628bc4ee74cb3"),
            (1000000, "de1fbf0c2f34f67f01f355f31ed0cf7319643c5e"),
        ] {
            assert_eq!(blob_sha1(&vec![b'a'; length]), wanted, "{length}");
        }
    }
}
