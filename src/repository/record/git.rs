//! Git's name for a file's content, which The Stack gives as `hexsha`.

/// The object id that git gives a blob: SHA-1 of `blob <length>\0` and the content (FIPS 180-4; git's object format),
/// in hexadecimal. The name of a content, no protection against anybody.
///
/// ```
/// // `printf 'x = 1\n' | git hash-object --stdin`
/// assert_eq!(
///     repoformer::repository::record::blob_sha1(b"x = 1\n"),
///     "7d4290a117a4ddcc11daae7ea675841033830c8f",
/// );
/// ```
pub fn blob_sha1(content: &[u8]) -> String {
    let head = format!("blob {}\0", content.len());
    let mut sha1 = Sha1::new();
    sha1.update(head.as_bytes());
    sha1.update(content);
    sha1.finish().iter().map(|word| format!("{word:08x}")).collect()
}

/// SHA-1 over a message that comes in parts.
struct Sha1 {
    state: [u32; 5],
    /// Bytes of the current block.
    bytes: [u8; 64],
    filled: usize,
    length: u64,
}

impl Sha1 {
    fn new() -> Self {
        Self {
            state: [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0],
            bytes: [0; 64],
            filled: 0,
            length: 0,
        }
    }

    fn update(&mut self, mut part: &[u8]) {
        self.length += part.len() as u64;
        while !part.is_empty() {
            let taken = part.len().min(64 - self.filled);
            self.bytes[self.filled..self.filled + taken].copy_from_slice(&part[..taken]);
            self.filled += taken;
            part = &part[taken..];
            if self.filled == 64 {
                self.block();
            }
        }
    }

    fn finish(mut self) -> [u32; 5] {
        let bits = self.length * 8;
        self.update(&[0x80]);
        while self.filled != 56 {
            self.update(&[0]);
        }
        self.update(&bits.to_be_bytes());
        self.state
    }

    fn block(&mut self) {
        let mut schedule = [0_u32; 80];
        for (word, bytes) in schedule.iter_mut().zip(self.bytes.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        for t in 16..80 {
            let mixed = schedule[t - 3] ^ schedule[t - 8] ^ schedule[t - 14] ^ schedule[t - 16];
            schedule[t] = mixed.rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = self.state;
        for (t, word) in schedule.into_iter().enumerate() {
            let (choice, constant) = match t / 20 {
                0 => ((b & c) | (!b & d), 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let sum = a
                .rotate_left(5)
                .wrapping_add(choice)
                .wrapping_add(e)
                .wrapping_add(constant)
                .wrapping_add(word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, sum);
        }
        for (state, word) in self.state.iter_mut().zip([a, b, c, d, e]) {
            *state = state.wrapping_add(word);
        }
        self.filled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Python: `hashlib.sha1(b'blob %d\0' % n + b'a' * n).hexdigest()`; the empty blob's id is git's well-known one.
    #[test]
    fn ids_are_gits() {
        for (length, wanted) in GIT {
            assert_eq!(blob_sha1(&vec![b'a'; length]), wanted, "{length}");
        }
    }
    const GIT: [(usize, &str); 10] = [
        (0, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
        (1, "2e65efe2a145dda7ee51d1741299f848e5bf752e"),
        (45, "69ce1347bb079586eb6ea14ab5116f835ef29639"),
        (46, "50b3bbe915fe104dbbb6786fdcfa310bcfc25d4e"),
        (47, "5e3bf7e629b4908cce461530c17a64365cb47303"),
        (48, "12d42395b020f44bb7710113b31f688d0ebeda7c"),
        (56, "1f973e890f52da1f22fa7e5620a628bc4ee74cb3"),
        (64, "71b7a71962774fa5c721e1163f935cb61a0e09e6"),
        (119, "1325c3d76ea6a66e75dce490a0b8cb8b12233ee0"),
        (1000000, "de1fbf0c2f34f67f01f355f31ed0cf7319643c5e"),
    ];
}
