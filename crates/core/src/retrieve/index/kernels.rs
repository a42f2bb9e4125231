//! Bit-sliced addition: counts how many of a query's rows have a bit in each of 512 lanes.
//!
//! A [`Line`] is one row of one chunk, with one bit per lane. A tree of carry-save adders adds eight rows at a time to
//! *planes*; plane p has bit p of all 512 counts of a chunk. Chunks are processed one after another. The rows come rarest
//! first, so that a chunk in which no lane can reach the needed count is dropped before its fullest rows are read.
//!
//! The lines of a row are stored consecutively, because the search for one query among many windows is limited by how fast
//! lines come from memory: read in order, they come several times as fast as from all over the block.
//!
//! One source text of the kernel is compiled once per instruction level; the levels differ only in the vector type. Its loops
//! use indices, because iterators from another code unit are function calls.

/// One row of one chunk. Lane `64 j + i` of the chunk is bit j of byte i, so that counts given as bytes become planes with
/// shifts alone.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Line(pub(super) [u64; 8]);

/// Number of lanes in a chunk.
pub(super) const LANES: usize = 512;

/// Returns the bit of a line that stands for a lane: its word, and its position in the word.
#[inline]
pub(super) fn bit_of_lane(lane: usize) -> (usize, usize) {
    let (byte, bit) = (lane % 64, lane / 64 % 8);
    (byte / 8, 8 * (byte % 8) + bit)
}

/// Returns the lane of a bit: the inverse of [`bit_of_lane`].
#[inline]
pub(super) fn lane_of_bit(word: usize, bit: usize) -> usize {
    64 * (bit % 8) + 8 * word + bit / 8
}

/// Returns the planes of known counts, lane by lane.
pub(super) fn planes_of_counts(counts: &[u32; LANES]) -> [Line; 32] {
    let mut planes = [Line::default(); 32];
    for (lane, count) in counts.iter().enumerate() {
        let (word, bit) = bit_of_lane(lane);
        for (p, plane) in planes.iter_mut().enumerate() {
            plane.0[word] |= u64::from(count >> p & 1) << bit;
        }
    }
    planes
}

/// A chunk that may have a hit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) chunk: u32,
    /// Count that a lane must reach to be of interest; at least 1.
    pub(super) need: u32,
}

/// Rows of a query in a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sweep<'a> {
    /// Lines of the block, row by row.
    pub(super) lines: &'a [Line],
    /// Number of lines per row.
    pub(super) chunks: usize,
    /// Rows of the query in groups of eight, rarest first; empty rows fill up a group.
    pub(super) rows: &'a [[u32; 8]],
    /// Initial counts of each chunk, one per lane; if empty, counts start from 0.
    pub(super) counts: &'a [[u8; LANES]],
}

impl<'a> Sweep<'a> {
    /// Returns the lines of a row.
    #[inline]
    fn row(&self, row: u32) -> &'a [Line] {
        &self.lines[row as usize * self.chunks..][..self.chunks]
    }
}

/// Source text of the kernel, for a vector type `V` of `WORDS` 64-bit words with the operations used below in scope.
macro_rules! kernel {
    ($(#[$features:meta])?) => {
        /// Counts the lanes of the candidates into `planes`, in order, and keeps the candidates in which a lane reaches the
        /// need. Returns the number of these candidates. The counts of lanes that do not reach the need may be too small. `P`
        /// planes must be able to hold the largest count.
        $(#[$features])?
        pub(in super::super) fn sweep<const P: usize>(sweep: &Sweep<'_>, candidates: &mut [Candidate], planes: &mut [[Line; P]]) -> usize {
            for at in 0..candidates.len() {
                let chunk = candidates[at].chunk as usize;
                for part in 0..8 / WORDS {
                    let mut counted = [zero(); P];
                    if !sweep.counts.is_empty() {
                        planes_of_bytes(&sweep.counts[chunk], part, &mut counted);
                    }
                    store_all(&mut planes[at], part, &counted);
                }
            }
            let (mut count, mut left) = (candidates.len(), 8 * sweep.rows.len() as u32);
            for rows in sweep.rows {
                left -= 8;
                count = add_rows(sweep, rows, left, &mut candidates[..count], planes);
            }
            count
        }

        /// Adds eight rows; `left` is the number of rows that follow.
        #[inline]
        $(#[$features])?
        fn add_rows<const P: usize>(sweep: &Sweep<'_>, rows: &[u32; 8], left: u32, candidates: &mut [Candidate], planes: &mut [[Line; P]]) -> usize {
            let [a, b, c, d, e, f, g, h] = rows;
            let (a, b, c, d) = (sweep.row(*a), sweep.row(*b), sweep.row(*c), sweep.row(*d));
            let (e, f, g, h) = (sweep.row(*e), sweep.row(*f), sweep.row(*g), sweep.row(*h));
            let mut kept = 0;
            for at in 0..candidates.len() {
                let candidate = candidates[at];
                let (chunk, need) = (candidate.chunk as usize, candidate.need);
                let mut may_reach = need <= left;
                for part in 0..8 / WORDS {
                    let mut counts = [zero(); P];
                    for p in 0..P {
                        counts[p] = load(&planes[at][p], part);
                    }
                    let line = |row: &[Line]| load(&row[chunk], part);
                    add_eight(&mut counts, [line(a), line(b), line(c), line(d), line(e), line(f), line(g), line(h)]);
                    may_reach = may_reach || any(at_least(&counts, need - left));
                    store_all(&mut planes[kept], part, &counts);
                }
                if may_reach {
                    candidates[kept] = candidate;
                    kept += 1;
                }
            }
            kept
        }

        #[inline]
        $(#[$features])?
        fn store_all<const P: usize>(planes: &mut [Line; P], part: usize, counts: &[V; P]) {
            for p in 0..P {
                store(&mut planes[p], part, counts[p]);
            }
        }

        /// Returns the sum and the carries of three bits per lane.
        #[inline]
        $(#[$features])?
        fn full_add(a: V, b: V, c: V) -> (V, V) {
            (xor3(a, b, c), majority(a, b, c))
        }

        #[inline]
        $(#[$features])?
        fn add_eight<const P: usize>(planes: &mut [V; P], x: [V; 8]) {
            let [ones, twos, fours, more @ ..] = &mut planes[..] else {
                return;
            };
            let (one, a) = full_add(*ones, x[0], x[1]);
            let (one, b) = full_add(one, x[2], x[3]);
            let (two, c) = full_add(*twos, a, b);
            let (one, a) = full_add(one, x[4], x[5]);
            let (one, b) = full_add(one, x[6], x[7]);
            let (two, d) = full_add(two, a, b);
            let (four, mut carry) = full_add(*fours, c, d);
            (*ones, *twos, *fours) = (one, two, four);
            for plane in more {
                (*plane, carry) = (xor(*plane, carry), and(*plane, carry));
            }
        }

        /// Returns the lanes whose count is at least `need`, by comparing bits from the lowest up.
        #[inline]
        $(#[$features])?
        fn at_least<const P: usize>(planes: &[V; P], need: u32) -> V {
            if P < 32 && need >> P != 0 {
                return zero();
            }
            let mut reached = all();
            for p in 0..P {
                let clear = splat(u64::from(need >> p & 1).wrapping_sub(1));
                reached = majority(planes[p], reached, clear);
            }
            reached
        }

        /// Converts counts given as bytes, lane by lane, to planes; only as many planes as the largest count needs are written.
        #[inline]
        $(#[$features])?
        fn planes_of_bytes<const P: usize>(counts: &[u8; LANES], part: usize, planes: &mut [V; P]) {
            let (counts, _) = counts.as_chunks::<64>();
            let mut bytes = [zero(); 8];
            let mut either = zero();
            for i in 0..8 {
                bytes[i] = load_bytes(&counts[i], part);
                either = or(either, bytes[i]);
            }
            let low = splat(0x0101_0101_0101_0101);
            for p in 0..P.min(8) {
                if !any(and(either, splat(0x0101_0101_0101_0101 * (0xff << p & 0xff)))) {
                    break;
                }
                for i in 0..8 {
                    let byte = bytes[7 - i];
                    planes[p] = or(double(planes[p]), and(byte, low));
                    bytes[7 - i] = half(byte);
                }
            }
        }
    };
}

/// Kernel for every target: plain words, which compilers turn into whatever vectors the target always has.
pub(super) mod portable {
    use super::{Candidate, LANES, Line, Sweep};

    const WORDS: usize = 2;
    type V = [u64; WORDS];

    #[inline(always)]
    fn zero() -> V {
        [0; WORDS]
    }
    #[inline(always)]
    fn all() -> V {
        [u64::MAX; WORDS]
    }
    #[inline(always)]
    fn splat(word: u64) -> V {
        [word; WORDS]
    }
    #[inline(always)]
    fn load(line: &Line, part: usize) -> V {
        [line.0[WORDS * part], line.0[WORDS * part + 1]]
    }
    #[inline(always)]
    fn load_bytes(bytes: &[u8; 64], part: usize) -> V {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |i: usize| u64::from_le_bytes(words[WORDS * part + i]);
        [word(0), word(1)]
    }
    #[inline(always)]
    fn store(line: &mut Line, part: usize, v: V) {
        (line.0[WORDS * part], line.0[WORDS * part + 1]) = (v[0], v[1]);
    }
    #[inline(always)]
    fn and(a: V, b: V) -> V {
        [a[0] & b[0], a[1] & b[1]]
    }
    #[inline(always)]
    fn or(a: V, b: V) -> V {
        [a[0] | b[0], a[1] | b[1]]
    }
    #[inline(always)]
    fn xor(a: V, b: V) -> V {
        [a[0] ^ b[0], a[1] ^ b[1]]
    }
    #[inline(always)]
    fn xor3(a: V, b: V, c: V) -> V {
        xor(xor(a, b), c)
    }
    #[inline(always)]
    fn majority(a: V, b: V, c: V) -> V {
        or(and(a, b), and(c, xor(a, b)))
    }
    #[inline(always)]
    fn double(a: V) -> V {
        [a[0] << 1, a[1] << 1]
    }
    #[inline(always)]
    fn half(a: V) -> V {
        [a[0] >> 1, a[1] >> 1]
    }
    #[inline(always)]
    fn any(a: V) -> bool {
        a[0] | a[1] != 0
    }

    kernel!();
}

#[cfg(target_arch = "x86_64")]
macro_rules! vectors {
    ($features:literal, $V:ident, $words:literal, $splat:ident, $and:ident, $or:ident, $xor:ident, $double:ident, $half:ident) => {
        use super::{Candidate, LANES, Line, Sweep};
        use bytemuck::must_cast;
        use std::arch::x86_64::*;

        const WORDS: usize = $words;
        type V = $V;

        #[inline]
        #[target_feature(enable = $features)]
        fn zero() -> V {
            splat(0)
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn all() -> V {
            splat(u64::MAX)
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn splat(word: u64) -> V {
            $splat(word.cast_signed())
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn load(line: &Line, part: usize) -> V {
            must_cast(line.0.as_chunks::<WORDS>().0[part])
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn load_bytes(bytes: &[u8; 64], part: usize) -> V {
            must_cast(bytes.as_chunks::<{ 8 * WORDS }>().0[part])
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn store(line: &mut Line, part: usize, v: V) {
            line.0.as_chunks_mut::<WORDS>().0[part] = must_cast(v);
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn and(a: V, b: V) -> V {
            $and(a, b)
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn or(a: V, b: V) -> V {
            $or(a, b)
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn xor(a: V, b: V) -> V {
            $xor(a, b)
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn double(a: V) -> V {
            $double(a, a)
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn half(a: V) -> V {
            $half::<1>(a)
        }
    };
}

/// Kernel for 256 bits, on machines since about 2013.
#[cfg(target_arch = "x86_64")]
pub(super) mod avx2 {
    vectors!(
        "avx2", __m256i, 4, _mm256_set1_epi64x, _mm256_and_si256, _mm256_or_si256,
        _mm256_xor_si256, _mm256_add_epi8, _mm256_srli_epi64
    );

    #[inline]
    #[target_feature(enable = "avx2")]
    fn xor3(a: V, b: V, c: V) -> V {
        xor(xor(a, b), c)
    }
    #[inline]
    #[target_feature(enable = "avx2")]
    fn majority(a: V, b: V, c: V) -> V {
        or(and(a, b), and(c, xor(a, b)))
    }
    #[inline]
    #[target_feature(enable = "avx2")]
    fn any(a: V) -> bool {
        _mm256_testz_si256(a, a) == 0
    }

    kernel!(#[target_feature(enable = "avx2")]);
}

/// Kernel for 512 bits, with any function of three bits in one instruction.
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512 {
    vectors!(
        "avx512f,avx512bw,avx512vl",
        __m512i,
        8,
        _mm512_set1_epi64,
        _mm512_and_si512,
        _mm512_or_si512,
        _mm512_xor_si512,
        _mm512_add_epi8,
        _mm512_srli_epi64
    );

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn xor3(a: V, b: V, c: V) -> V {
        _mm512_ternarylogic_epi64::<0x96>(a, b, c)
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn majority(a: V, b: V, c: V) -> V {
        _mm512_ternarylogic_epi64::<0xe8>(a, b, c)
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn any(a: V) -> bool {
        _mm512_test_epi64_mask(a, a) != 0
    }

    kernel!(#[target_feature(enable = "avx512f,avx512bw,avx512vl")]);
}
