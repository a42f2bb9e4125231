//! Lays out the tokenizer's tables, so that the program starts with them ready: the vocabulary as a perfect hash and the
//! Unicode classes of its pattern.
//!
//! The ranks come from `data/p50k_base.tiktoken` and the classes from `data/classes.txt`. All numbers are written
//! little-endian, whatever machine builds.

#![forbid(unsafe_code)]

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

#[path = "src/tokenize/key.rs"]
mod key;
use key::{HEAD, Key};

/// Number of ids of p50k_base, including the unused 50,256 (end of text).
const VOCABULARY: u16 = 50_281;
/// Id that represents no text and is therefore in no lookup table.
const END_OF_TEXT: u16 = 50_256;
/// Slots of the perfect hash: a power of two, and as many as a `u16` can number.
const SLOTS: usize = 1 << 16;
/// Base-2 logarithm of the number of groups, whose keys are displaced together.
const PILOT_BITS: u32 = 13;
/// Slots of the open table of the few tokens longer than a key.
const LONG_SLOTS: usize = 1 << 10;
/// Number of code points in a block of the class table.
const BLOCK: usize = 256;

/// Ranks of p50k_base: one line per token, with its bytes in base64 and its id.
const RANKS: &str = "data/p50k_base.tiktoken";

/// Classes of code points: one line per range, with its first and last code point in hexadecimal digits and the number of its
/// class. A test compares them with the classes of `regex-syntax`, which tiktoken's own pattern uses.
const CLASSES: &str = "data/classes.txt";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={RANKS}");
    println!("cargo::rerun-if-changed={CLASSES}");
    println!("cargo::rerun-if-changed=src/tokenize/key.rs");
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let write = |name: &str, content: &[u8]| fs::write(folder.join(name), content);

    let tokens = tokens()?;
    let (seed, pilots, slots) = (0x243F_6A88_85A3_08D3_u64..)
        .step_by(0x1357_9BDF)
        .take(10_000)
        .find_map(|seed| place(&tokens, seed).map(|(pilots, slots)| (seed, pilots, slots)))
        .ok_or("no seed gives a perfect hash")?;
    write("pilots.bin", &bytes_of(&pilots))?;
    write("slots.bin", &slots)?;
    write("long_slots.bin", &bytes_of(&place_long(&tokens, seed)))?;
    let longest = tokens.iter().map(Vec::len).max().unwrap_or(0);
    let mut ends = Vec::with_capacity(4 * tokens.len());
    let mut text = Vec::new();
    for token in &tokens {
        text.extend_from_slice(token);
        ends.extend_from_slice(&u32::try_from(text.len())?.to_le_bytes());
    }
    write("token_ends.bin", &ends)?;
    write("token_bytes.bin", &text)?;

    let (index, blocks) = classes()?;
    write("class_index.bin", &index)?;
    write("class_blocks.bin", &blocks)?;

    let constants = format!(
        "const VOCABULARY: usize = {VOCABULARY};\n\
         const SEED: u64 = {seed:#018x};\n\
         const SLOTS: usize = {SLOTS};\n\
         const PILOT_BITS: u32 = {PILOT_BITS};\n\
         const LONG_SLOTS: usize = {LONG_SLOTS};\n\
         const LONGEST: usize = {longest};\n\
         const TEXT: usize = {};\n",
        text.len()
    );
    write("vocabulary.rs", constants.as_bytes())?;
    let constants =
        format!("const INDEX: usize = {};\nconst BLOCKS: usize = {};\n", index.len(), blocks.len());
    write("classes.rs", constants.as_bytes())?;
    Ok(())
}

/// Returns the bytes of every id.
fn tokens() -> Outcome<Vec<Vec<u8>>> {
    let mut tokens = vec![Vec::new(); usize::from(VOCABULARY)];
    tokens[usize::from(END_OF_TEXT)] = b"<|endoftext|>".to_vec();
    for line in fs::read_to_string(RANKS)?.lines() {
        let (token, id) = line.split_once(' ').ok_or("a line of ranks without an id")?;
        let place = tokens.get_mut(id.parse::<usize>()?).ok_or("a rank beyond the vocabulary")?;
        *place = from_base64(token).ok_or("a token that is not base64")?;
    }
    match tokens.iter().position(Vec::is_empty) {
        Some(id) => Err(format!("{RANKS} has no token {id}").into()),
        None => Ok(tokens),
    }
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for c in text.trim_end_matches('=').bytes() {
        bits = bits << 6 | DIGITS.iter().position(|digit| *digit == c)? as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// Returns the ids that a text can contain, with their bytes.
fn findable(tokens: &[Vec<u8>]) -> impl Iterator<Item = (u16, &[u8])> {
    (0..VOCABULARY)
        .zip(tokens)
        .filter(|&(id, _)| id != END_OF_TEXT)
        .map(|(id, token)| (id, token.as_slice()))
}

/// Gives every token of at most [`HEAD`] bytes a slot of its own: the low
/// half-word of its hash, displaced by the pilot of its group. Returns `None`
/// if no choice of pilots works with this seed.
fn place(tokens: &[Vec<u8>], seed: u64) -> Option<(Vec<u16>, Vec<u8>)> {
    let mut groups = vec![Vec::new(); 1 << PILOT_BITS];
    for (id, token) in findable(tokens).filter(|(_, token)| token.len() <= HEAD) {
        let key = Key::from_bytes(token, 0, token.len());
        let hash = key.hash(seed);
        groups[(hash >> (64 - PILOT_BITS)) as usize].push((hash as u16, key, id));
    }
    for group in &mut groups {
        group.sort_unstable_by_key(|&(low, _, id)| (low, id));
        if group.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return None;
        }
    }
    // Large groups first, while there is room for them.
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&group| std::cmp::Reverse(groups[group].len()));

    let mut pilots = vec![0_u16; groups.len()];
    let mut taken = vec![false; SLOTS];
    // No piece has the key of the empty piece, whose bits are all ones.
    let mut slots = vec![0xFF; 16 * SLOTS];
    for number in order {
        let group = &groups[number];
        let free = |pilot: &u16| group.iter().all(|&(low, ..)| !taken[usize::from(low ^ pilot)]);
        let pilot = (0..=u16::MAX).find(free)?;
        pilots[number] = pilot;
        for &(low, key, id) in group {
            let slot = usize::from(low ^ pilot);
            taken[slot] = true;
            let (head, tail) = (&key.0.to_le_bytes()[..HEAD], id.to_le_bytes());
            slots[16 * slot..][..HEAD].copy_from_slice(head);
            slots[16 * slot + HEAD..][..2].copy_from_slice(&tail);
        }
    }
    Some((pilots, slots))
}

/// Returns an open table, probed in order, of the ids whose tokens are longer
/// than [`HEAD`]; an empty slot has `u16::MAX`.
fn place_long(tokens: &[Vec<u8>], seed: u64) -> Vec<u16> {
    let mut slots = vec![u16::MAX; LONG_SLOTS];
    for (id, token) in findable(tokens).filter(|(_, token)| token.len() > HEAD) {
        let mut slot = key::hash_long(token, seed) as usize % LONG_SLOTS;
        while slots[slot] != u16::MAX {
            slot = (slot + 1) % LONG_SLOTS;
        }
        slots[slot] = id;
    }
    slots
}

/// Returns the class of every code point, in two levels: the block of `code / BLOCK`,
/// and in a block one byte for each code point (0 other, 1 letter, 2 number,
/// 3 whitespace; 4 a number that is a decimal digit, 5 a nonspacing mark, which is other).
fn classes() -> Outcome<(Vec<u8>, Vec<u8>)> {
    let mut class = vec![0_u8; 0x11_0000];
    for line in fs::read_to_string(CLASSES)?.lines() {
        let [first, last, value] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("{CLASSES}: not a range and its class: {line}").into());
        };
        let code = |text| usize::from_str_radix(text, 16);
        class[code(first)?..=code(last)?].fill(value.parse()?);
    }
    let mut blocks: Vec<&[u8]> = Vec::new();
    let mut index = Vec::new();
    for block in class.chunks(BLOCK) {
        let number = blocks.iter().position(|&known| known == block);
        index.push(u8::try_from(number.unwrap_or(blocks.len()))?);
        if number.is_none() {
            blocks.push(block);
        }
    }
    Ok((index, blocks.concat()))
}

/// Returns half-words as little-endian bytes.
fn bytes_of(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
