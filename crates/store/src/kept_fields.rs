//! Fields that are kept to be written again.

use serde_json::Value;

use crate::jsonl::Object;

/// Fields of a JSON object in their order, kept as JSON: a tenth of the memory of an [`Object`], for data that are seldom read
/// but written again.
///
/// ```
/// use repoformer_store::kept_fields::KeptFields;
/// let mut fields = KeptFields::default();
/// fields.insert("kind", "line".into());
/// assert_eq!(fields.get("kind").unwrap(), "line");
/// assert_eq!(fields.as_json(), r#"{"kind":"line"}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptFields(Option<Box<str>>);

impl KeptFields {
    /// Returns the object as JSON.
    pub fn as_json(&self) -> &str {
        self.0.as_deref().unwrap_or("{}")
    }

    /// Returns the fields.
    pub fn to_object(&self) -> Object {
        // An object of JSON values always becomes JSON that can be read again.
        self.0
            .as_deref()
            .map(|json| serde_json::from_str(json).unwrap_or_default())
            .unwrap_or_default()
    }

    /// Returns true if there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns true if there is a field of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the value of a field.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.to_object().shift_remove(name)
    }

    /// Sets a field, which keeps its place if it is there already, and comes last otherwise.
    pub fn insert(&mut self, name: &str, value: Value) {
        let mut object = self.to_object();
        object.insert(name.to_owned(), value);
        *self = object.into();
    }

    /// Removes a field, and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let mut object = self.to_object();
        let value = object.shift_remove(name);
        *self = object.into();
        value
    }
}

impl From<Object> for KeptFields {
    fn from(object: Object) -> Self {
        Self((!object.is_empty()).then(|| Value::Object(object).to_string().into()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_come_back_as_they_were() {
        let object = json!({
            "b": [1, -2.5e-300, 0.1, 1e22, u64::MAX, null, true, {"z": {}, "a": []}],
            "a": "\"\u{0}\u{2028}\u{feff}\u{1f600}", "": -0.0,
        });
        let Value::Object(object) = object else { panic!("no object") };
        let mut kept = KeptFields::from(object.clone());
        assert_eq!(
            kept.to_object().into_iter().collect::<Vec<_>>(),
            object.into_iter().collect::<Vec<_>>()
        );
        kept.insert("a", 1.into());
        kept.insert("c", Value::Null);
        assert_eq!(kept.to_object().keys().collect::<Vec<_>>(), ["b", "a", "", "c"]);
        assert_eq!((kept.remove("b").unwrap()[0].clone(), kept.remove("b")), (1.into(), None));
        assert!(kept.contains("c") && !kept.contains("b"));
        for name in ["a", "", "c"] {
            kept.remove(name);
        }
        assert_eq!(kept, KeptFields::default());
    }
}
