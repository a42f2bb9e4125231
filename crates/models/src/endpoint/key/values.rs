//! Masks a key in JSON values: texts, names, numbers and lists, alone or several together.

use std::borrow::Cow;

use foldhash::HashSet;
use serde_json::Value;

use super::Key;
use crate::endpoint::address::MASK;
use crate::endpoint::readings::{FAR, byte_of};

/// Number that no byte of a key has.
const NONE: &str = "999";

impl Key {
    /// Masks long parts of the key in every text, name, number and list of an answer, and in sequences of them that spell the key together.
    /// Returns whether there were any.
    pub(in crate::endpoint) fn mask(&self, answer: &mut Value) -> bool {
        if self.parts.is_empty() {
            return false;
        }
        let any = self.mask_each(answer);
        self.mask_nested(answer) | any
    }

    /// Replaces the innermost lists and objects whose texts and numbers, or whose names, spell a long part of the key, at any depth.
    fn mask_nested(&self, answer: &mut Value) -> bool {
        /// Maximum number of passes: the values around a mask may spell the key again.
        const MOST: usize = 4;
        for time in 0..MOST {
            if !self.mask_innermost(answer) {
                return time > 0;
            }
        }
        *answer = MASK.into();
        true
    }

    /// Does one pass of [`Self::mask_nested`]. The whole answer is read once, at any depth.
    fn mask_innermost(&self, answer: &mut Value) -> bool {
        if !(answer.is_array() || answer.is_object()) {
            return false;
        }
        let spelled = Spelling::of(answer);
        if spelled.places.is_empty() {
            return false;
        }
        let mut found = HashSet::default();
        self.find_all(spelled.values.as_bytes(), &[], |start, _, end| {
            found.insert(spelled.pieces(start, end));
        });
        let mut found: Vec<_> =
            found.into_iter().map(|pieces| (spelled.holder(pieces), pieces)).collect();
        // Inner ones first: an outer one that contains a mask no longer spells the key.
        found.sort_unstable_by_key(|found| std::cmp::Reverse(*found));
        let mut is_secret = vec![false; spelled.holders.len()];
        for (holder, (first, last)) in &found {
            let pieces = &spelled.places[*first..last + 1];
            if !pieces.iter().any(|(_, holder)| is_secret[*holder]) {
                is_secret[*holder..spelled.holders[*holder].last + 1].fill(true);
            }
        }
        spelled.replace(answer, &is_secret, &mut 0);
        !found.is_empty()
    }

    fn mask_each(&self, answer: &mut Value) -> bool {
        match answer {
            Value::String(text) => match self.mask_text(text) {
                Cow::Owned(masked) => {
                    *text = masked;
                    true
                }
                Cow::Borrowed(_) => false,
            },
            Value::Array(values) => {
                let any = values.iter_mut().fold(false, |any, one| self.mask_each(one) | any);
                if !self.is_spelled_by(values) {
                    return any;
                }
                *answer = MASK.into();
                true
            }
            Value::Object(fields) => {
                let is_named = fields.keys().any(|name| self.is_in_text(name));
                if is_named {
                    let named = std::mem::take(fields).into_iter();
                    let named =
                        named.map(|(name, value)| (self.mask_text(&name).into_owned(), value));
                    *fields = named.collect();
                }
                fields.values_mut().fold(is_named, |any, one| self.mask_each(one) | any)
            }
            Value::Number(number) if self.has_numbers => {
                let is_secret = self.is_in_text(&number.to_string());
                if is_secret {
                    *answer = Value::Null;
                }
                is_secret
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Returns whether the texts and numbers of a list, each of which may be nested in lists of one element, spell a long part of the key.
    fn is_spelled_by(&self, values: &[Value]) -> bool {
        if values.len() < 2 {
            return false;
        }
        let (mut text, mut count) = (String::new(), 0);
        for mut value in values {
            count += 1;
            while let Value::Array(inner) = value
                && let [one] = &inner[..]
            {
                value = one;
            }
            match value {
                Value::String(one) => text += one,
                // Vectors are rounded to 32-bit numbers when they are stored.
                Value::Number(number) => match number.as_f64().and_then(byte_of) {
                    Some(byte) => text += &byte.to_string(),
                    _ if number.is_f64() => {
                        count -= 1;
                        text += NONE;
                    }
                    _ => text += &number.to_string(),
                },
                _ => text += NONE,
            }
            text.push(',');
        }
        // Most long lists are embeddings, whose numbers are fractions.
        count > 1 && self.is_in_text(&text)
    }
}

/// The texts that an answer's values and names form when they are joined.
#[derive(Default)]
struct Spelling {
    /// Texts and numbers, followed by the names.
    values: String,
    /// For each text, number and name, its position in `values` and the index of the list or object that holds it.
    places: Vec<(usize, usize)>,
    names: String,
    places_of_names: Vec<(usize, usize)>,
    /// Lists and objects; each one precedes its contents.
    holders: Vec<Holder>,
    /// Whether the last value is a number that no character has, like most numbers of an embedding.
    is_behind_none: bool,
}

/// List or object of an answer.
struct Holder {
    /// Index of the list or object that holds this one; the outermost one holds itself.
    outer: usize,
    /// Index of the last list or object within this one, or its own.
    last: usize,
}

impl Spelling {
    /// Number of bytes that are read at the beginning and at the end of a text, which may continue in another one.
    const END: usize = 64;

    fn of(answer: &Value) -> Self {
        let mut spelled = Self::default();
        spelled.add(answer, 0);
        spelled.values += &" ".repeat(FAR);
        let before = spelled.values.len();
        spelled.values += &std::mem::take(&mut spelled.names);
        let names = std::mem::take(&mut spelled.places_of_names).into_iter();
        spelled.places.extend(names.map(|(start, holder)| (before + start, holder)));
        spelled
    }

    /// Returns the first and the last value or name of a range.
    fn pieces(&self, start: usize, end: usize) -> (usize, usize) {
        let before =
            |at: usize| self.places.partition_point(|(start, _)| *start < at).saturating_sub(1);
        (before(start + 1), before(end))
    }

    /// Returns the innermost list or object that holds both pieces.
    fn holder(&self, (first, last): (usize, usize)) -> usize {
        let (mut holder, last) = (self.places[first].1, self.places[last].1);
        while !(holder..=self.holders[holder].last).contains(&last) {
            holder = self.holders[holder].outer;
        }
        holder
    }

    /// Replaces the lists and objects marked in `is_secret`, counting from `number`.
    fn replace(&self, answer: &mut Value, is_secret: &[bool], number: &mut usize) {
        if !(answer.is_array() || answer.is_object()) {
            return;
        }
        if is_secret[*number] {
            *number = self.holders[*number].last + 1;
            *answer = MASK.into();
            return;
        }
        *number += 1;
        match answer {
            Value::Array(values) => {
                values.iter_mut().for_each(|one| self.replace(one, is_secret, number));
            }
            Value::Object(fields) => {
                fields.values_mut().for_each(|one| self.replace(one, is_secret, number));
            }
            _ => {}
        }
    }

    fn add(&mut self, answer: &Value, outer: usize) {
        let start = self.values.len();
        match answer {
            Value::Array(values) => {
                return self.hold(outer, |all, holder| {
                    values.iter().for_each(|one| all.add(one, holder));
                });
            }
            Value::Object(fields) => {
                return self.hold(outer, |all, holder| {
                    for (name, value) in fields {
                        all.places_of_names.push((all.names.len(), holder));
                        all.names += name;
                        all.names.push(',');
                        all.add(value, holder);
                    }
                });
            }
            Value::String(text) if text.len() > 2 * Self::END => {
                self.values += &text[..text.floor_char_boundary(Self::END)];
                self.values += NONE;
                self.values += &text[text.ceil_char_boundary(text.len() - Self::END)..];
            }
            Value::String(text) => self.values += text,
            Value::Number(number) => match number.as_f64().and_then(byte_of) {
                Some(byte) => self.values += &byte.to_string(),
                None if std::mem::replace(&mut self.is_behind_none, true) => return,
                None => self.values += NONE,
            },
            Value::Null | Value::Bool(_) => return,
        }
        self.is_behind_none &= answer.is_number() && self.values[start..] == *NONE;
        self.values.push(',');
        self.places.push((start, outer));
    }

    /// Adds a list or an object, with its contents.
    fn hold(&mut self, outer: usize, add: impl FnOnce(&mut Self, usize)) {
        let number = self.holders.len();
        self.holders.push(Holder { outer, last: number });
        add(self, number);
        self.holders[number].last = self.holders.len() - 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns whether the texts, numbers or names of an answer spell a long part of the key.
    fn is_spelled_in(answer: &Value, key: &Key) -> bool {
        key.marks(Spelling::of(answer).values.as_bytes(), &[]).contains(&true)
    }

    /// Returns an answer with pieces of a key in lists and objects, some of which begin or end before a piece.
    fn nested(key: &str, pieces: &[(usize, usize, usize)]) -> Value {
        let mut open = vec![Vec::new()];
        let mut at = 0;
        let close = |open: &mut Vec<Vec<Value>>| {
            let Some(inner) = open.pop() else { return };
            let inner = match inner.len() % 3 {
                0 => inner.into_iter().enumerate().map(|(at, one)| (at.to_string(), one)).collect(),
                _ => Value::Array(inner),
            };
            match open.last_mut() {
                Some(outer) => outer.push(inner),
                None => open.push(vec![inner]),
            }
        };
        for (length, more, fewer) in pieces {
            open.extend((0..*more).map(|_| Vec::new()));
            let piece: String = key.chars().cycle().skip(at).take(*length).collect();
            at = (at + length) % key.len();
            if let Some(last) = open.last_mut() {
                last.push(if *length == 0 { 0.5.into() } else { piece.into() });
            }
            (0..*fewer).for_each(|_| close(&mut open));
        }
        while open.len() > 1 {
            close(&mut open);
        }
        open.pop().unwrap_or_default().into()
    }

    /// Returns whether two answers are equal except for masked lists and objects, each of which alone spelled a long part of the key.
    fn is_masked_where_spelled(masked: &Value, answer: &Value, key: &Key) -> bool {
        match (masked, answer) {
            (Value::Array(masked), Value::Array(answer)) => {
                masked.len() == answer.len()
                    && masked.iter().zip(answer).all(|(a, b)| is_masked_where_spelled(a, b, key))
            }
            (Value::Object(masked), Value::Object(answer)) => {
                masked.keys().eq(answer.keys())
                    && (masked.values().zip(answer.values()))
                        .all(|(a, b)| is_masked_where_spelled(a, b, key))
            }
            _ => masked == answer || (masked == MASK && is_spelled_in(answer, key)),
        }
    }

    proptest! {
        #[test]
        fn what_spells_a_key_is_masked(
            pieces in proptest::collection::vec((0usize..8, 0usize..3, 0usize..3), 1..20),
        ) {
            let secret = "rk-Zq7VxP2mLw9TdKf4HsJy";
            let key = Key::new(secret).unwrap();
            let answer = nested(secret, &pieces);
            let mut masked = answer.clone();
            prop_assert_eq!(key.mask_nested(&mut masked), is_spelled_in(&answer, &key));
            prop_assert!(is_masked_where_spelled(&masked, &answer, &key), "{masked} {answer}");
            prop_assert!(!is_spelled_in(&masked, &key), "{masked}");
        }
    }
}
