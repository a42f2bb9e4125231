//! Fields of records, as tables that the readers of records and the validation of files share.

use std::borrow::Cow;
use std::path::Path;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

use super::jsonl::{self, Object};
use super::literal::literal;
use crate::error::{Error, Result};

/// Type of a field.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    /// A text.
    Text,
    /// A whole number from 0.
    Count,
    /// A finite number.
    Number,
    /// A number within these bounds, which may be infinite.
    Between(f64, f64),
    /// `true` or `false`.
    Flag,
    /// A text or a whole number.
    Id,
    /// Any value.
    Any,
    /// A list whose values all have this type.
    List(&'static Type),
    /// An object whose values all have this type.
    Map(&'static Type),
    /// An object with these fields; other fields are reported.
    Object(&'static [Field]),
    /// An object with these and any other fields.
    Open(&'static [Field]),
    /// One of several types, with a description of all of them.
    Either(&'static [Type], &'static str),
    /// An object with these fields, or an empty object, which represents a missing one.
    MaybeEmpty(&'static [Field]),
    /// A type, or `null`.
    OrNull(&'static Type),
}

/// Fields of the same type that are required under the same condition.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Names, separated by blanks.
    names: &'static str,
    holds: Type,
    needed: Need,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Need {
    Always,
    /// May be missing or `null`.
    Never,
    /// May be missing or `null` if the named field is present.
    Unless(&'static str),
}

/// Returns fields that a record must have.
pub const fn must(names: &'static str, holds: Type) -> Field {
    Field { names, holds, needed: Need::Always }
}

/// Returns fields that a record may have.
pub const fn may(names: &'static str, holds: Type) -> Field {
    Field { names, holds, needed: Need::Never }
}

/// Returns fields that a record must have unless it has another field.
pub const fn unless(names: &'static str, other: &'static str, holds: Type) -> Field {
    Field { names, holds, needed: Need::Unless(other) }
}

use Type::{
    Any, Between, Count, Either, Flag, Id, List, Map, MaybeEmpty, Number, Open, OrNull, Text,
};

impl Field {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.split(' ')
    }

    fn has(&self, name: &str) -> bool {
        self.names().any(|own| own == name)
    }

    fn is_needed(&self, is_there: impl Fn(&str) -> bool) -> bool {
        match self.needed {
            Need::Always => true,
            Need::Never => false,
            Need::Unless(other) => !is_there(other),
        }
    }

    fn is_needed_in(&self, object: &Object) -> bool {
        self.is_needed(|name| object.get(name).is_some_and(|value| !value.is_null()))
    }
}

/// Returns the type of one of the fields.
pub fn type_of(fields: &'static [Field], name: &str) -> Option<&'static Type> {
    fields.iter().find(|field| field.has(name)).map(|field| &field.holds)
}

/// Checks that a record at a line of a file has these fields with their types.
///
/// # Errors
/// A field is missing, of another type, or out of its range.
pub fn require(path: &Path, line: usize, fields: &'static [Field], record: &Object) -> Result<()> {
    match first_wrong(fields, record) {
        None => Ok(()),
        Some(reason) => Err(Error::record(path, line, reason)),
    }
}

/// Describes the first field of a record that is missing, of another type or out of its range.
pub fn first_wrong(fields: &[Field], record: &Object) -> Option<String> {
    if has_all(fields, record) { None } else { check(fields, record).wrong.into_iter().next() }
}

/// Returns true if a record has these fields with their types: the result of [`check`] without messages.
fn has_all(fields: &[Field], object: &Object) -> bool {
    let is_right = |field: &Field, name: &str| match object.get(name) {
        None => !field.is_needed_in(object),
        Some(Value::Null) if !field.is_needed_in(object) => true,
        Some(value) => has_type(&field.holds, value),
    };
    fields.iter().all(|field| field.names().all(|name| is_right(field, name)))
}

/// Returns true if a value and all its parts have their types.
pub fn has_type(wanted: &Type, value: &Value) -> bool {
    fits(wanted, value)
        && match (wanted, value) {
            (List(element), Value::Array(list)) => list.iter().all(|item| has_type(element, item)),
            (Map(element), Value::Object(object)) => {
                object.values().all(|item| has_type(element, item))
            }
            (MaybeEmpty(_), Value::Object(object)) if object.is_empty() => true,
            (Type::Object(fields) | Open(fields) | MaybeEmpty(fields), Value::Object(object)) => {
                has_all(fields, object)
            }
            (OrNull(_), Value::Null) => true,
            (OrNull(inner), _) => has_type(inner, value),
            (Either(types, _), _) => {
                types.iter().find(|one| fits(one, value)).is_some_and(|one| has_type(one, value))
            }
            _ => true,
        }
}

/// Compares a record with the fields of its kind.
pub fn check(fields: &[Field], record: &Object) -> RecordProblems {
    let mut checked = RecordProblems::default();
    checked.object("", fields, true, record);
    checked
}

/// Problems of a record.
#[derive(Default)]
pub struct RecordProblems {
    /// Descriptions of fields that are missing, of a wrong type or out of their range.
    pub wrong: Vec<String>,
    /// Names of unknown fields.
    pub unknown: Vec<String>,
}

impl RecordProblems {
    fn object(&mut self, prefix: &str, fields: &[Field], is_closed: bool, object: &Object) {
        for (field, own) in
            fields.iter().flat_map(|field| field.names().map(move |own| (field, own)))
        {
            let name = format!("{prefix}{own}");
            match object.get(own) {
                Some(Value::Null) if !field.is_needed_in(object) => {}
                Some(value) => self.value(&name, &field.holds, value),
                None if field.is_needed_in(object) => {
                    self.wrong.push(format!("field '{name}' is missing"));
                }
                None => {}
            }
        }
        if is_closed {
            let unknown = object.keys().filter(|name| !fields.iter().any(|field| field.has(name)));
            // Elements of lists are named without their index, so that each kind is reported once.
            self.unknown.extend(unknown.map(|name| without_numbers(&format!("{prefix}{name}"))));
        }
    }

    fn value(&mut self, name: &str, wanted: &Type, value: &Value) {
        if !fits(wanted, value) {
            let reason = match (wanted, value) {
                (Count, Value::Number(_)) => jsonl::not_a_count(value),
                (Between(least, most), Value::Number(number)) => {
                    format!("must be {}, not {number}", jsonl::range(*least, *most))
                }
                _ => format!("must be {}, not {}", words(wanted), jsonl::kind(value)),
            };
            self.wrong.push(format!("field '{name}' {reason}"));
            return;
        }
        match (wanted, value) {
            (List(element), Value::Array(list)) => {
                for (number, item) in list.iter().enumerate() {
                    self.value(&format!("{name}[{number}]"), element, item);
                }
            }
            (Map(element), Value::Object(object)) => {
                for (own, item) in object {
                    self.value(&format!("{name}.{own}"), element, item);
                }
            }
            (MaybeEmpty(_), Value::Object(object)) if object.is_empty() => {}
            (Type::Object(fields) | MaybeEmpty(fields), Value::Object(object)) => {
                self.object(&format!("{name}."), fields, true, object);
            }
            (Open(fields), Value::Object(object)) => {
                self.object(&format!("{name}."), fields, false, object);
            }
            (OrNull(inner), value) if !value.is_null() => self.value(name, inner, value),
            (Either(types, _), _) => {
                if let Some(one) = types.iter().find(|one| fits(one, value)) {
                    self.value(name, one, value);
                }
            }
            _ => {}
        }
    }
}

/// Returns true if a value has a type, without looking at its parts.
fn fits(wanted: &Type, value: &Value) -> bool {
    match wanted {
        Any => true,
        Text => value.is_string(),
        Count => jsonl::count(value).is_some(),
        Number => value.is_number(),
        Between(least, most) => {
            value.as_f64().is_some_and(|number| (*least..=*most).contains(&number))
        }
        Flag => value.is_boolean(),
        Id => jsonl::is_id(value),
        List(_) => value.is_array(),
        Map(_) | Type::Object(_) | Open(_) | MaybeEmpty(_) => {
            value.is_object() && literal(value).is_none()
        }
        OrNull(inner) => value.is_null() || fits(inner, value),
        Either(types, _) => types.iter().any(|one| fits(one, value)),
    }
}

fn words(wanted: &Type) -> &'static str {
    match wanted {
        Text | Id => "a string",
        Count => "a whole number",
        Number | Between(..) => "a number",
        Flag => "a boolean",
        List(_) => "a list",
        Map(_) | Type::Object(_) | Open(_) | MaybeEmpty(_) => "an object",
        OrNull(inner) => words(inner),
        Any => "a value",
        Either(_, words) => words,
    }
}

/// Removes indexes: `files[3].x` → `files[].x`.
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

/// Skips a JSON value that has a type, or else fails without a message: building the value would take most of the time.
pub struct SkippedValue {
    /// Type that the value must have.
    pub holds: &'static Type,
    /// Whether the value may be `null`.
    pub or_null: bool,
}

impl SkippedValue {
    fn is<E: serde::de::Error>(&self, value: &Value) -> Result<bool, E> {
        let is_right = fits(self.holds, value) || self.or_null && value.is_null();
        is_right.then(|| value.is_null()).ok_or_else(|| E::custom("another type"))
    }

    /// Returns the alternative for which `is_it` returns true.
    fn one_of(&self, is_it: impl Fn(&Type) -> bool) -> Option<&'static Type> {
        match self.holds {
            OrNull(inner) => Self { holds: inner, or_null: true }.one_of(is_it),
            Either(types, _) => types.iter().find(|one| is_it(one)),
            one => Some(one).filter(|one| is_it(one)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for SkippedValue {
    /// Whether the value is null.
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        match self.holds {
            Any => deserializer.deserialize_ignored_any(IgnoredAny).map(|_| false),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for SkippedValue {
    type Value = bool;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(words(self.holds))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<bool, E> {
        self.is(&Value::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<bool, E> {
        self.is(&value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<bool, E> {
        self.is(&value.into())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<bool, E> {
        self.is(&value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<bool, E> {
        self.is(&value.into())
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<bool, E> {
        // Only the type of a text matters here.
        self.is(&Value::String(String::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let Some(List(holds)) = self.one_of(|one| matches!(one, List(_))) else {
            return Err(A::Error::custom("a list"));
        };
        while list.next_element_seed(Self { holds, or_null: false })?.is_some() {}
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<bool, A::Error> {
        let is_object = |one: &Type| fits(one, &Value::Object(Object::new()));
        let fields = match self.one_of(is_object) {
            Some(Map(holds)) => {
                while object.next_key::<IgnoredAny>()?.is_some() {
                    object.next_value_seed(Self { holds, or_null: false })?;
                }
                return Ok(false);
            }
            Some(Type::Object(fields) | Open(fields) | MaybeEmpty(fields)) => *fields,
            _ => return Err(A::Error::custom("an object")),
        };
        let (mut there, mut is_empty) = (Vec::new(), true);
        while let Some(name) = object.next_key::<Cow<'de, str>>()? {
            is_empty = false;
            match fields.iter().find(|field| field.has(&name)) {
                None => drop(object.next_value::<IgnoredAny>()?),
                Some(field) => {
                    let or_null = field.needed == Need::Never;
                    if !object.next_value_seed(Self { holds: &field.holds, or_null })? {
                        there.extend(field.names().find(|own| *own == name));
                    }
                }
            }
        }
        let is_there = |name: &str| there.contains(&name);
        let is_missing = |field: &Field| field.is_needed(is_there) && !field.names().all(is_there);
        let may_be_empty = is_empty && matches!(self.one_of(is_object), Some(MaybeEmpty(_)));
        if !may_be_empty && fields.iter().any(is_missing) {
            Err(A::Error::custom("a field is missing"))
        } else {
            Ok(false)
        }
    }
}
