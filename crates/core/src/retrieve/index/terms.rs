//! Mapping between token ids and terms: the tokens that occur, numbered from the most frequent on.
//!
//! This numbering stores the data of frequent tokens close together in every block, makes "rarest first" a plain sort, and maps
//! any vocabulary to small numbers.

use foldhash::HashMap;

use crate::retrieve::vector::{TokenSet, TokenSets};

/// Term of each token.
#[derive(Debug)]
pub(super) enum Terms {
    /// By token id below 65,535: the term plus one, 0 if the token does not occur.
    Direct(Vec<u16>),
    /// For any ids.
    Map(HashMap<u32, u32>),
}

impl Terms {
    /// Appends the terms of a query, the rarest first; tokens that do not occur have no term.
    pub(super) fn of_query(&self, query: TokenSet<'_>, terms: &mut Vec<u32>) {
        let from = terms.len();
        match (self, query) {
            (Self::Direct(table), TokenSet::Narrow(ids)) => {
                for id in ids {
                    push_direct(table, usize::from(*id), terms);
                }
            }
            (Self::Direct(table), TokenSet::Wide(ids)) => {
                for id in ids {
                    push_direct(table, *id as usize, terms);
                }
            }
            (Self::Map(map), query) => {
                terms.extend(query.iter().filter_map(|id| map.get(&id).copied()));
            }
        }
        terms[from..].sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Returns the bytes held on the heap.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Direct(table) => size_of_val(&table[..]),
            Self::Map(map) => map.capacity() * (size_of::<(u32, u32)>() + 1),
        }
    }
}

#[inline]
fn push_direct(table: &[u16], id: usize, terms: &mut Vec<u32>) {
    if let Some(next) = table.get(id)
        && *next > 0
    {
        terms.push(u32::from(*next) - 1);
    }
}

/// All sets, with their tokens as numbers small enough to be counted in an array: the ids themselves if they are small.
pub(super) enum TokenNumbers<'a> {
    Narrow(&'a [u16]),
    Wide(Vec<u32>),
}

/// Range of the token numbers, and the number of each term.
pub(super) struct Census {
    /// Exclusive maximum of the numbers.
    pub(super) numbers: usize,
    /// Number of each term.
    pub(super) number_of_term: Vec<u32>,
}

/// Numbers and counts the tokens, and gives each a term.
pub(super) fn census(sets: &TokenSets) -> (Terms, TokenNumbers<'_>, Census) {
    let largest = sets.iter().filter_map(|set| match set {
        TokenSet::Narrow(ids) => ids.last().map(|id| u32::from(*id)),
        TokenSet::Wide(ids) => ids.last().copied(),
    });
    let numbers = largest.max().map_or(0, |id| id as usize + 1);
    match sets.tokens() {
        TokenSet::Narrow(ids) if numbers < usize::from(u16::MAX) => {
            let number_of_term = by_frequency(&frequencies(ids, numbers));
            let mut table = vec![0; numbers];
            for (term, number) in (1..).zip(&number_of_term) {
                table[*number as usize] = term;
            }
            let census = Census { numbers, number_of_term };
            (Terms::Direct(table), TokenNumbers::Narrow(ids), census)
        }
        tokens => wide(tokens),
    }
}

fn wide(tokens: TokenSet<'_>) -> (Terms, TokenNumbers<'static>, Census) {
    let mut map: HashMap<u32, u32> = HashMap::default();
    let mut number = |token| {
        let next = map.len() as u32;
        *map.entry(token).or_insert(next)
    };
    let tokens: Vec<u32> = tokens.iter().map(&mut number).collect();
    let numbers = map.len();
    let number_of_term = by_frequency(&frequencies(&tokens, numbers));
    let mut term_of_number = vec![0; numbers];
    for (term, number) in (0..).zip(&number_of_term) {
        term_of_number[*number as usize] = term;
    }
    map.values_mut().for_each(|number| *number = term_of_number[*number as usize]);
    let census = Census { numbers, number_of_term };
    (Terms::Map(map), TokenNumbers::Wide(tokens), census)
}

fn frequencies<N: Copy + Into<u32>>(tokens: &[N], numbers: usize) -> Vec<u32> {
    let mut counts = vec![0; numbers];
    for token in tokens {
        counts[(*token).into() as usize] += 1;
    }
    counts
}

/// Returns the numbers that occur, the most frequent first; equally frequent ones in ascending order.
fn by_frequency(counts: &[u32]) -> Vec<u32> {
    let mut keys = Vec::new();
    for (number, count) in counts.iter().enumerate() {
        if *count > 0 {
            keys.push(u64::from(u32::MAX - count) << 32 | number as u64);
        }
    }
    keys.sort_unstable();
    keys.into_iter().map(|key| key as u32).collect()
}
