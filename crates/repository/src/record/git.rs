//! Git's name for a file's content, which The Stack gives as `hexsha`.

/// The object id that git gives a blob: SHA-1 of `blob <length>\0` and the content (FIPS 180-4; git's object format),
/// in hexadecimal. The name of a content, no protection against anybody.
///
/// ```
/// // `printf 'x = 1\n' | git hash-object --stdin`
/// assert_eq!(
///     repoformer_repository::record::blob_sha1(b"x = 1\n"),
///     "7d4290a117a4ddcc11daae7ea675841033830c8f",
/// );
/// ```
pub fn blob_sha1(content: &[u8]) -> String {
    let mut message = format!("blob {}\0", content.len()).into_bytes();
    message.extend_from_slice(content);
    let bits = 8 * message.len() as u64;
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend(bits.to_be_bytes());
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in message.as_chunks::<64>().0 {
        add_block(&mut state, block);
    }
    state.map(|word| format!("{word:08x}")).concat()
}

/// Takes one block of SHA-1's message into its state.
fn add_block(state: &mut [u32; 5], block: &[u8; 64]) {
    let mut schedule = [0_u32; 80];
    for (word, bytes) in schedule.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for t in 16..80 {
        let mixed = schedule[t - 3] ^ schedule[t - 8] ^ schedule[t - 14] ^ schedule[t - 16];
        schedule[t] = mixed.rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (t, word) in schedule.into_iter().enumerate() {
        let (choice, constant) = match t / 20 {
            0 => ((b & c) | (!b & d), 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let terms = [a.rotate_left(5), choice, e, constant, word];
        (e, d, c, b, a) =
            (d, c, b.rotate_left(30), a, terms.into_iter().fold(0, u32::wrapping_add));
    }
    for (state, word) in state.iter_mut().zip([a, b, c, d, e]) {
        *state = state.wrapping_add(word);
    }
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
