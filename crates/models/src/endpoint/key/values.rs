//! A key in the values of JSON: texts, names, numbers and lists, alone or several together.

use std::borrow::Cow;

use serde_json::Value;

use super::Key;
use crate::endpoint::address::MASK;
use crate::endpoint::readings::{FAR, byte_of};

/// A number that no byte of a key has.
const NONE: &str = "999";

impl Key {
    /// Masks long parts of the key in every text, name, number and list of an answer, and what spells them in more of these
    /// together. Returns whether there were any.
    pub(in crate::endpoint) fn mask(&self, answer: &mut Value) -> bool {
        let any = self.mask_each(answer);
        self.mask_nested(answer) | any
    }

    /// Replaces the innermost lists and objects whose texts and numbers, or whose names, spell a long part of the key, however they
    /// nest.
    fn mask_nested(&self, answer: &mut Value) -> bool {
        if self.parts.is_empty() || !self.is_spelled_within(answer) {
            return false;
        }
        let any = match answer {
            Value::Array(values) => {
                values.iter_mut().fold(false, |any, one| self.mask_nested(one) | any)
            }
            Value::Object(fields) => {
                fields.values_mut().fold(false, |any, one| self.mask_nested(one) | any)
            }
            _ => return false,
        };
        if !any || self.is_spelled_within(answer) {
            *answer = MASK.into();
        }
        true
    }

    fn is_spelled_within(&self, answer: &Value) -> bool {
        let mut spelled = Spelling::default();
        spelled.add(answer);
        let apart = " ".repeat(FAR);
        matches!(self.masked_text(&(spelled.values + &apart + &spelled.names)), Cow::Owned(_))
    }

    fn mask_each(&self, answer: &mut Value) -> bool {
        match answer {
            Value::String(text) => match self.masked_text(text) {
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
                let is_named =
                    fields.keys().any(|name| matches!(self.masked_text(name), Cow::Owned(_)));
                if is_named {
                    let named = std::mem::take(fields).into_iter();
                    let named =
                        named.map(|(name, value)| (self.masked_text(&name).into_owned(), value));
                    *fields = named.collect();
                }
                fields.values_mut().fold(is_named, |any, one| self.mask_each(one) | any)
            }
            Value::Number(number) if self.has_numbers => {
                let is_secret = matches!(self.masked_text(&number.to_string()), Cow::Owned(_));
                if is_secret {
                    *answer = Value::Null;
                }
                is_secret
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Whether a list's texts and numbers, each of which may be a list of one, spell a long part of the key.
    fn is_spelled_by(&self, values: &[Value]) -> bool {
        if values.len() < 2 || self.parts.is_empty() {
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
                // Vectors are rounded.
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
        // Most long lists are the fractions of an embedding.
        count > 1 && matches!(self.masked_text(&text), Cow::Owned(_))
    }
}

/// What an answer's texts and numbers spell one after another, and what its names spell.
#[derive(Default)]
struct Spelling {
    values: String,
    names: String,
    /// Whether the last value is a number that no character has: of an embedding, most are.
    is_behind_none: bool,
}

impl Spelling {
    /// Bytes of the beginning and the end of a text, which may go on in another one.
    const END: usize = 64;

    fn add(&mut self, answer: &Value) {
        match answer {
            Value::Array(values) => return values.iter().for_each(|one| self.add(one)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.names += name;
                    self.names.push(',');
                    self.add(value);
                }
                return;
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
                None => {
                    self.values += NONE;
                    self.values.push(',');
                    return;
                }
            },
            Value::Null | Value::Bool(_) => return,
        }
        self.is_behind_none = false;
        self.values.push(',');
    }
}
