//! Checks that a record has the fields of its kind, each of its type.

use serde_json::Value;

use crate::store::jsonl::{self, Object};
use crate::store::literal::{is_integer, literal};

/// Type of a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Type {
    Text,
    /// A whole number from 0.
    Count,
    Number,
    Flag,
    /// A text or a whole number.
    Id,
    List(&'static Type),
    /// An object with these fields; others are reported.
    Object(&'static [Field]),
    /// An object with any fields.
    Anything,
    /// One of several, with a description of all.
    Either(&'static [Type], &'static str),
    /// An object with these fields, or an empty one, which stands for none.
    MaybeEmpty(&'static [Field]),
}

/// Fields of the same type, each needed alike.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// Separated by blanks.
    names: &'static str,
    holds: Type,
    needed: Need,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Need {
    Always,
    /// May be missing or `null`.
    Never,
    /// May be missing if the named field is present.
    Unless(&'static str),
}

pub(super) const fn must(names: &'static str, holds: Type) -> Field {
    Field { names, holds, needed: Need::Always }
}

pub(super) const fn may(names: &'static str, holds: Type) -> Field {
    Field { names, holds, needed: Need::Never }
}

pub(super) const fn unless(names: &'static str, other: &'static str, holds: Type) -> Field {
    Field { names, holds, needed: Need::Unless(other) }
}

use Type::{Anything, Count, Either, Flag, Id, List, MaybeEmpty, Number, Text};

/// Compares a record with the fields of its kind.
pub(super) fn check(fields: &[Field], record: &Object) -> Checked {
    let mut checked = Checked::default();
    checked.object("", fields, record);
    checked
}

/// Problems of a record.
#[derive(Default)]
pub(super) struct Checked {
    /// Fields that are missing or of a wrong type, in words.
    pub(super) wrong: Vec<String>,
    /// Names of unknown fields.
    pub(super) unknown: Vec<String>,
}

impl Checked {
    fn object(&mut self, prefix: &str, fields: &[Field], object: &Object) {
        let each =
            fields.iter().flat_map(|field| field.names.split(' ').map(move |own| (field, own)));
        for (field, own) in each {
            let name = format!("{prefix}{own}");
            let is_needed = match field.needed {
                Need::Always => true,
                Need::Never => false,
                Need::Unless(other) => !object.contains_key(other),
            };
            match object.get(own) {
                Some(Value::Null) if !is_needed => {}
                Some(value) => self.value(&name, &field.holds, value),
                None if is_needed => self.wrong.push(format!("field '{name}' is missing")),
                None => {}
            }
        }
        let is_known =
            |name: &str| fields.iter().any(|field| field.names.split(' ').any(|own| own == name));
        let unknown = object.keys().filter(|name| !is_known(name));
        // Elements of lists are named without their number: one of a kind is enough.
        self.unknown.extend(unknown.map(|name| without_numbers(&format!("{prefix}{name}"))));
    }

    fn value(&mut self, name: &str, wanted: &Type, value: &Value) {
        if !fits(wanted, value) {
            self.wrong.push(match value {
                Value::Number(number) if matches!(wanted, Count) => {
                    format!("field '{name}' must be a whole number from 0, not {number}")
                }
                _ => {
                    format!("field '{name}' must be {}, not {}", words(wanted), jsonl::kind(value))
                }
            });
            return;
        }
        match (wanted, value) {
            (List(element), Value::Array(list)) => {
                for (number, item) in list.iter().enumerate() {
                    self.value(&format!("{name}[{number}]"), element, item);
                }
            }
            (Type::Object(fields), Value::Object(object)) => {
                self.object(&format!("{name}."), fields, object);
            }
            (MaybeEmpty(fields), Value::Object(object)) if !object.is_empty() => {
                self.object(&format!("{name}."), fields, object);
            }
            (Either(types, _), _) => {
                if let Some(one) = types.iter().find(|one| fits(one, value)) {
                    self.value(name, one, value);
                }
            }
            _ => {}
        }
    }
}

/// Whether a value has a type, not looking at its parts.
fn fits(wanted: &Type, value: &Value) -> bool {
    match wanted {
        Text => value.is_string(),
        Count => value.as_u64().is_some(),
        Number => value.is_number(),
        Flag => value.is_boolean(),
        Id => {
            let is_long = || literal(value).is_some_and(is_integer);
            value.is_string() || value.as_u64().is_some() || is_long()
        }
        List(_) => value.is_array(),
        Type::Object(_) | MaybeEmpty(_) | Anything => {
            let is_object = value.is_object() && literal(value).is_none();
            is_object || (matches!(wanted, Anything) && value.is_null())
        }
        Either(types, _) => types.iter().any(|one| fits(one, value)),
    }
}

fn words(wanted: &Type) -> &'static str {
    match wanted {
        Text | Id => "a string",
        Count => "a whole number",
        Number => "a number",
        Flag => "a boolean",
        List(_) => "a list",
        Type::Object(_) | MaybeEmpty(_) | Anything => "an object",
        Either(_, words) => words,
    }
}

/// `files[3].x` → `files[].x`.
fn without_numbers(name: &str) -> String {
    let mut inside = false;
    let kept = name.chars().filter(|c| {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            _ => return !inside,
        }
        true
    });
    kept.collect()
}
