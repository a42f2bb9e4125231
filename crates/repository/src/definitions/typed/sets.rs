//! Types of one name: the parts of a partial class, or the parts that Go methods contribute to their receiver's type.

use std::sync::Arc;

use foldhash::HashMap;

use super::resolve::TypeId;
use super::unit::Type;
use crate::definitions::found::FoundDefinitions;
use crate::definitions::rows::{Definition, DefinitionKind};

/// Greatest number of types that are searched one by one.
const FEW: usize = 8;

/// Greatest number of types that are copied to leave one out.
const MANY: usize = 64;

/// Types that are searched together, at least one, ordered by file.
#[derive(Debug)]
pub(super) struct TypeSet<'a> {
    types: Vec<(TypeId, &'a Type)>,
    /// Index of their contents, if there are more than a few types.
    index: Option<Index<'a>>,
}

/// Index of the contents of types.
#[derive(Debug)]
struct Index<'a> {
    heads: FoundDefinitions,
    methods: HashMap<&'a str, FoundDefinitions>,
    /// First type with a field of each name.
    fields: HashMap<&'a str, TypeId>,
    /// Types that extend others.
    heirs: Vec<(TypeId, &'a Type)>,
}

impl<'a> TypeSet<'a> {
    /// Creates a set; `None` without types.
    pub(super) fn new(types: Vec<(TypeId, &'a Type)>) -> Option<Arc<Self>> {
        let index = (types.len() > FEW).then(|| Index::new(&types));
        (!types.is_empty()).then(|| Arc::new(Self { types, index }))
    }

    pub(super) fn len(&self) -> usize {
        self.types.len()
    }

    pub(super) fn types(&self) -> &[(TypeId, &'a Type)] {
        &self.types
    }

    /// Returns the number of types that a search checks one by one.
    pub(super) fn work(&self) -> usize {
        self.index.as_ref().map_or(self.types.len(), |_| 1)
    }

    /// Returns these types without one; `None` if no other is left. If there are very many, none is left out.
    pub(super) fn without(self: &Arc<Self>, other: TypeId) -> Option<Arc<Self>> {
        if self.len() > MANY || self.types.binary_search_by_key(&other, |t| t.0).is_err() {
            return Some(Arc::clone(self));
        }
        let left: Vec<_> = self.types.iter().filter(|(id, _)| *id != other).copied().collect();
        (!left.is_empty()).then(|| Arc::new(Self { types: left, index: None }))
    }

    /// Returns the definitions of the types themselves.
    pub(super) fn heads(&self) -> FoundDefinitions {
        self.index.as_ref().map_or_else(|| heads(&self.types), |index| index.heads.clone())
    }

    /// Returns the definitions of a method.
    pub(super) fn methods(&self, name: &str) -> FoundDefinitions {
        if let Some(index) = &self.index {
            return index.methods.get(name).cloned().unwrap_or_default();
        }
        let defining = self.types.iter().filter_map(|(id, found)| {
            let rows = found.methods.get(name)?;
            Some(Definition::new(id.file, *rows, DefinitionKind::Function))
        });
        defining.collect()
    }

    /// Returns the first type that has a field of this name.
    pub(super) fn with_field(&self, name: &str) -> Option<TypeId> {
        if let Some(index) = &self.index {
            return index.fields.get(name).copied();
        }
        let mut types = self.types.iter();
        types.find(|(_, found)| found.fields.contains_key(name)).map(|(id, _)| *id)
    }

    /// Returns the types that extend others.
    pub(super) fn heirs(&self) -> impl Iterator<Item = (TypeId, &'a Type)> {
        let types = self.index.as_ref().map_or(&self.types, |index| &index.heirs);
        types.iter().copied().filter(|(_, found)| !found.supers.is_empty())
    }
}

impl<'a> Index<'a> {
    fn new(types: &[(TypeId, &'a Type)]) -> Self {
        let mut methods: HashMap<&str, Vec<Definition>> = HashMap::default();
        let mut fields = HashMap::default();
        for (id, found) in types {
            for (name, rows) in &found.methods {
                let here = Definition::new(id.file, *rows, DefinitionKind::Function);
                methods.entry(name).or_default().push(here);
            }
            for name in found.fields.keys() {
                fields.entry(name.as_str()).or_insert(*id);
            }
        }
        let methods = methods.into_iter();
        let heirs = types.iter().filter(|(_, found)| !found.supers.is_empty());
        Self {
            heads: heads(types),
            methods: methods.map(|(name, found)| (name, found.into_iter().collect())).collect(),
            fields,
            heirs: heirs.copied().collect(),
        }
    }
}

fn heads(types: &[(TypeId, &Type)]) -> FoundDefinitions {
    let head =
        |(id, found): &(TypeId, &Type)| Definition::new(id.file, found.rows, DefinitionKind::Type);
    types.iter().map(head).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::rows::Rows;
    use crate::definitions::typed::unit::DeclaredType;

    /// Types in three files: every third has method `m` and field `f`, each has a method of its own, and every fifth extends a
    /// type.
    fn types(count: usize) -> Vec<Type> {
        let one = |number: usize| {
            let rows = Rows { start: number as u32, end: number as u32 + 1 };
            let mut one = Type { rows, ..Type::default() };
            one.methods.insert(format!("own{number}"), rows);
            if number % 3 == 1 {
                one.methods.insert("m".into(), rows);
                one.fields.insert("f".into(), DeclaredType::Unknown);
            }
            if number.is_multiple_of(5) {
                one.supers.push("S".into());
            }
            one
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn many_types_are_found_as_few_are() {
        for count in [1, FEW, FEW + 1, 40] {
            let types = types(count);
            let id = |number| TypeId { file: number / 14, number };
            let types: Vec<_> = types.iter().enumerate().map(|(n, one)| (id(n), one)).collect();
            let set = TypeSet::new(types.clone()).unwrap();
            let slow = TypeSet { types, index: None };
            assert_eq!(set.index.is_some(), count > FEW);
            assert_eq!(set.heads().to_vec(), slow.heads().to_vec());
            for name in ["m", "own0", "own39", "none"] {
                assert_eq!(set.methods(name).to_vec(), slow.methods(name).to_vec(), "{name}");
            }
            assert_eq!(set.methods("m").len(), (count + 1) / 3);
            assert_eq!(set.with_field("f"), slow.with_field("f"));
            let heirs = |set: &TypeSet<'_>| set.heirs().map(|(id, _)| id).collect::<Vec<_>>();
            assert_eq!(heirs(&set), heirs(&slow));
            let left = set.without(id(0));
            assert_eq!(left.map_or(0, |left| left.len()), count - 1);
            assert!(Arc::ptr_eq(&set, &set.without(id(100)).unwrap()));
        }
        assert!(TypeSet::new(Vec::new()).is_none());
    }
}
