//! Permutations of datatrove's MinHash: `(a, b)` of `(a * hash + b) mod (2^61 - 1)`.
//!
//! datatrove draws them with numpy: `RandomState(1).randint(1, 2**61 - 1, dtype=uint64)` for the factors, and the same from 0
//! for the summands. The result is the 64-bit numbers of the Mersenne Twister of seed 1, reduced to their lowest 61 bits, plus
//! the lower bound. numpy draws again if a number is out of range, which does not happen here.

use super::signature::{BUCKETS, PRIME, ROWS};

/// Number of words in the state of the Mersenne Twister.
const STATE: usize = 624;

/// Factors, then summands.
pub(super) static PERMUTATIONS: [[u64; BUCKETS * ROWS]; 2] = permutations();

const fn permutations() -> [[u64; BUCKETS * ROWS]; 2] {
    let mut state = seed();
    let (mut at, mut drawn) = (STATE, [[0; BUCKETS * ROWS]; 2]);
    let mut part = 0;
    while part < 2 {
        let mut number = 0;
        while number < BUCKETS * ROWS {
            let mut value = 0;
            let mut half = 0;
            while half < 2 {
                if at == STATE {
                    state = twist(state);
                    at = 0;
                }
                value = value << 32 | temper(state[at]) as u64;
                at += 1;
                half += 1;
            }
            drawn[part][number] = (value & PRIME) + 1 - part as u64;
            number += 1;
        }
        part += 1;
    }
    drawn
}

/// Implements `init_genrand(1)` of the Mersenne Twister's authors.
const fn seed() -> [u32; STATE] {
    let mut state = [1_u32; STATE];
    let mut at = 1;
    while at < STATE {
        let last = state[at - 1];
        state[at] = (last ^ last >> 30).wrapping_mul(1_812_433_253).wrapping_add(at as u32);
        at += 1;
    }
    state
}

const fn twist(mut state: [u32; STATE]) -> [u32; STATE] {
    let mut at = 0;
    while at < STATE {
        let joined = state[at] & 0x8000_0000 | state[(at + 1) % STATE] & 0x7FFF_FFFF;
        let odd = if joined & 1 == 1 { 0x9908_B0DF } else { 0 };
        state[at] = state[(at + 397) % STATE] ^ joined >> 1 ^ odd;
        at += 1;
    }
    state
}

const fn temper(mut value: u32) -> u32 {
    value ^= value >> 11;
    value ^= value << 7 & 0x9D2C_5680;
    value ^= value << 15 & 0xEFC6_0000;
    value ^ value >> 18
}
