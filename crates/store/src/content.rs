//! Digests of content, independent of the names of files and folders.

use std::fmt;

/// Digest of texts in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentDigest([u8; 32]);

impl ContentDigest {
    /// Computes the digest of texts. The same characters divided differently into texts have another digest.
    ///
    /// ```
    /// use repoformer_store::content::ContentDigest;
    /// assert_ne!(ContentDigest::from_texts(["ab", "c"]), ContentDigest::from_texts(["a", "bc"]));
    /// ```
    pub fn from_texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for text in texts {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// Returns the bytes of the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Writes hexadecimal digits, as many as the precision requests: `{:.12}` writes 12, `{}` all 64.
impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}
