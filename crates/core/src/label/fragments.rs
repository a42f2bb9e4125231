//! Gains of an instance's fragments: each alone, and of the set that greedy addition finds.

use std::collections::BTreeMap;

use repoformer_store::error::Result;
use repoformer_store::jsonl::{Fields, Object};
use serde_json::{Value, json};

use super::record::Label;
use crate::task::cross_file::CrossFile;

/// Set of an instance's fragments, by their indices in retrieval order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FragmentSet(u64);

impl FragmentSet {
    /// Greatest number of fragments of an instance; later fragments are in no set.
    pub const MOST: usize = u64::BITS as usize;

    /// Reads a list of indices; `None` if an index is not below [`Self::MOST`] or occurs twice, or if there is none.
    pub fn from_value(value: &Value) -> Option<Self> {
        let mut set = Self::default();
        for index in value.as_array()? {
            let index = usize::try_from(index.as_u64()?).ok()?;
            if index >= Self::MOST || set.contains(index) {
                return None;
            }
            set = set.with(index);
        }
        (!set.is_empty()).then_some(set)
    }

    /// Returns the list of indices.
    pub fn to_value(self) -> Value {
        self.indices().collect()
    }

    /// Returns the set with one more fragment.
    ///
    /// # Panics
    /// The index is not below [`Self::MOST`].
    #[must_use]
    pub fn with(self, index: usize) -> Self {
        assert!(index < Self::MOST);
        Self(self.0 | 1 << index)
    }

    /// Returns true if the fragment is in the set.
    pub fn contains(self, index: usize) -> bool {
        index < Self::MOST && self.0 & 1 << index != 0
    }

    /// Returns the number of fragments.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns true if there is no fragment.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the indices in retrieval order.
    pub fn indices(self) -> impl Iterator<Item = usize> {
        (0..Self::MOST).filter(move |&index| self.contains(index))
    }
}

/// Gains of showing sets of an instance's fragments instead of none: score with the set minus score without retrieval; `None` if
/// the set does not fit into a prompt.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FragmentGains(BTreeMap<FragmentSet, Option<f64>>);

/// Best set that greedy addition finds, as far as the gains are known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GreedySet {
    /// The set; empty if no fragment has a positive gain alone.
    pub set: FragmentSet,
    /// Gain of the set; 0 for the empty set.
    pub gain: f64,
    /// True if no addition raises the gain; false if an addition was not tried.
    pub is_final: bool,
}

impl FragmentGains {
    /// Name of the field of a label.
    pub(super) const FIELD: &str = "fragment_gains";

    /// Adds the gain of a set, `None` if it does not fit. Returns false, and changes nothing, if the set was added before.
    pub fn insert(&mut self, set: FragmentSet, gain: Option<f64>) -> bool {
        if self.has(set) {
            return false;
        }
        self.0.insert(set, gain);
        true
    }

    /// Returns true if no set was tried.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the set was tried.
    pub fn has(&self, set: FragmentSet) -> bool {
        self.0.contains_key(&set)
    }

    /// Returns the gain of a set, if it is known.
    pub fn get(&self, set: FragmentSet) -> Option<f64> {
        self.0.get(&set).copied().flatten()
    }

    /// Returns the gain of a fragment alone, if it is known.
    pub fn alone(&self, index: usize) -> Option<f64> {
        self.get(FragmentSet::default().with(index))
    }

    /// Returns the sets that were tried, and their gains.
    pub fn iter(&self) -> impl Iterator<Item = (FragmentSet, Option<f64>)> {
        self.0.iter().map(|(&set, &gain)| (set, gain))
    }

    /// Adds one fragment after another, each time the one that raises the gain most (of equals, the first), until none of the
    /// `count` fragments raises it or an addition was not tried.
    pub fn greedy(&self, count: usize) -> GreedySet {
        let mut best = GreedySet::default();
        loop {
            let mut next: Option<(FragmentSet, f64)> = None;
            for set in additions(best.set, count) {
                if !self.has(set) {
                    return best;
                }
                if let Some(gain) = self.get(set)
                    && next.is_none_or(|(_, most)| gain > most)
                {
                    next = Some((set, gain));
                }
            }
            match next {
                Some((set, gain)) if gain > best.gain => best = GreedySet { set, gain, ..best },
                _ => return GreedySet { is_final: true, ..best },
            }
        }
    }

    /// Returns the sets whose gains [`Self::greedy`] needs to add another of the `count` fragments.
    pub fn wanted(&self, count: usize) -> Vec<FragmentSet> {
        let greedy = self.greedy(count);
        let unknown = |set: &FragmentSet| !self.has(*set);
        if greedy.is_final {
            Vec::new()
        } else {
            additions(greedy.set, count).filter(unknown).collect()
        }
    }

    /// Reads the gains of a label's record; empty if it has none.
    pub(super) fn read(top: &Fields<'_>, record: &Object) -> Result<Self> {
        let mut gains = Self::default();
        let Some(value) = record.get(Self::FIELD).filter(|value| !value.is_null()) else {
            return Ok(gains);
        };
        for (number, one) in value.as_array().into_iter().flatten().enumerate() {
            let wrong = |what: &str| top.error(format!("field '{}[{number}]' {what}", Self::FIELD));
            let set = FragmentSet::from_value(&one["shown"]);
            let set = set.ok_or_else(|| wrong("lacks a list of different fragments in 'shown'"))?;
            if !gains.insert(set, one["gain"].as_f64()) {
                return Err(wrong("shows the same fragments as an earlier one"));
            }
        }
        Ok(gains)
    }

    /// Returns the value of a label's field; `None` if no gain is known.
    pub(super) fn to_value(&self) -> Option<Value> {
        let one = |(set, gain): (FragmentSet, Option<f64>)| json!({"shown": set.to_value(), "gain": gain});
        (!self.is_empty()).then(|| self.iter().map(one).collect())
    }
}

/// Returns the sets with one more of the `count` fragments.
fn additions(set: FragmentSet, count: usize) -> impl Iterator<Item = FragmentSet> {
    let others = (0..count.min(FragmentSet::MOST)).filter(move |&index| !set.contains(index));
    others.map(move |index| set.with(index))
}

/// Task that shows some fragments of an instance: a trial of their gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial<'a> {
    /// Id of the instance.
    pub instance: &'a str,
    /// Row of the instance in its file.
    pub row: usize,
    /// Fragments that the task shows.
    pub shown: FragmentSet,
}

impl<'a> Trial<'a> {
    /// Names of the metadata fields.
    const FIELDS: [&'static str; 3] = ["instance", "instance_row", "shown"];

    /// Reads the trial that an instance's record stands for; `None` if it is not a trial.
    pub fn of_label(label: &'a Label) -> Option<Self> {
        let [instance, row, shown] =
            Self::FIELDS.map(|name| label.record.get("metadata")?.get(name));
        let row = usize::try_from(row?.as_u64()?).ok()?;
        Some(Self { instance: instance?.as_str()?, row, shown: FragmentSet::from_value(shown?)? })
    }
}

impl Label {
    /// Returns a record of the task that shows these fragments of the instance and no others. `row` is the instance's row.
    pub fn trial(&self, row: usize, shown: FragmentSet) -> Value {
        let mut metadata = self.record.get("metadata").cloned().unwrap_or_default();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.shift_remove("row");
        }
        let names: Vec<String> = shown.indices().map(|index| index.to_string()).collect();
        // Completions of other text under the same numbers have another id.
        let content = self.content(shown) >> 32;
        metadata["task_id"] = format!("{}#{}-{content:08x}", self.id, names.join("+")).into();
        let values = [self.id.clone().into(), row.into(), shown.to_value()];
        for (name, value) in Trial::FIELDS.into_iter().zip(values) {
            metadata[name] = value;
        }
        let mut label = Self {
            record: Object::from_iter([
                ("metadata".to_owned(), metadata),
                ("prompt".to_owned(), self.prompt.clone().into()),
                ("groundtruth".to_owned(), self.ground_truth.clone().into()),
                ("right_context".to_owned(), self.right_context.clone().into()),
            ]),
            ..Self::default()
        };
        label.show(self.shown(shown), None);
        Value::Object(label.record)
    }

    /// Returns a digest of the texts of the task that shows these fragments.
    pub fn content(&self, shown: FragmentSet) -> u64 {
        let mut hasher = blake3::Hasher::new();
        let shown = self.shown(shown).text;
        for text in [&self.prompt, &self.ground_truth, &self.right_context, &shown] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        let mut first = [0; 8];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        u64::from_be_bytes(first)
    }

    /// Returns the context that shows these fragments and no others.
    pub fn shown(&self, shown: FragmentSet) -> CrossFile {
        let fragments = shown.indices().filter_map(|index| self.cross_file.fragments.get(index));
        CrossFile::new(fragments.cloned().collect(), self.language())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn set(indices: &[usize]) -> FragmentSet {
        indices.iter().fold(FragmentSet::default(), |set, &index| set.with(index))
    }

    fn gains(known: &[(&[usize], f64)]) -> FragmentGains {
        let mut gains = FragmentGains::default();
        assert!(known.iter().all(|(indices, gain)| gains.insert(set(indices), Some(*gain))));
        gains
    }

    #[test]
    fn greedy_addition_asks_for_what_it_needs() {
        let mut known = gains(&[]);
        assert_eq!(known.wanted(3), [set(&[0]), set(&[1]), set(&[2])]);
        assert_eq!(known.greedy(3), GreedySet::default());
        // A missing trial is asked for again.
        known = gains(&[(&[0], 0.1), (&[1], 0.3)]);
        assert_eq!(known.wanted(3), [set(&[2])]);
        known.insert(set(&[2]), Some(0.3));
        // Of equals, the first.
        let first = GreedySet { set: set(&[1]), gain: 0.3, is_final: false };
        assert_eq!(known.greedy(3), first);
        assert_eq!(known.wanted(3), [set(&[0, 1]), set(&[1, 2])]);
        known.insert(set(&[0, 1]), Some(0.3));
        known.insert(set(&[1, 2]), None);
        assert_eq!(
            known.greedy(3),
            GreedySet { is_final: true, ..first },
            "nothing is added for no gain"
        );
        assert!(known.wanted(3).is_empty());
        assert!(!known.insert(set(&[2]), Some(0.4)) && known.alone(2) == Some(0.3));
        // What does not fit is not asked for again.
        assert!(known.has(set(&[1, 2])) && known.get(set(&[1, 2])).is_none());
    }

    #[test]
    fn no_fragment_may_be_best() {
        let known = gains(&[(&[0], 0.0), (&[1], -0.2)]);
        assert_eq!(known.greedy(2), GreedySet { is_final: true, ..GreedySet::default() });
        assert!(gains(&[]).greedy(0).is_final && gains(&[]).wanted(0).is_empty());
        // More fragments than a set can have.
        assert_eq!(gains(&[]).wanted(100).len(), FragmentSet::MOST);
    }

    /// Every subset of four fragments has a gain; greedy addition equals a loop over plain lists.
    #[test]
    fn greedy_addition_equals_a_plain_loop() {
        for seed in 0..200u64 {
            let gain = |bits: u64| {
                let mixed = (bits + 31 * seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                (mixed % 21) as f64 / 10.0 - 1.0
            };
            let mut known = FragmentGains::default();
            (1..16u64).for_each(|bits| assert!(known.insert(FragmentSet(bits), Some(gain(bits)))));
            let (mut chosen, mut most) = (0u64, 0.0);
            loop {
                let free = (0..4).filter(|index| chosen >> index & 1 == 0);
                let all: Vec<(u64, f64)> =
                    free.map(|index| (chosen | 1 << index, gain(chosen | 1 << index))).collect();
                let best = all.iter().map(|one| one.1).fold(f64::MIN, f64::max);
                if best <= most {
                    break;
                }
                (chosen, most) = *all.iter().find(|one| one.1 == best).unwrap();
            }
            let found = known.greedy(4);
            assert_eq!((found.set.0, found.gain, found.is_final), (chosen, most, true));
        }
    }

    #[test]
    fn gains_and_trials_come_back() {
        let record = json!({
            "metadata": {"task_id": "r/a.py/3_5", "filename": "r/a.py", "start_i": 3, "end_i": 5, "row": 7},
            "prompt": "p", "groundtruth": "g", "right_context": "r", "es_infile": 0.5,
            "crossfile_context": {"text": "# x", "list": [
                {"retrieved_chunk": "one", "filename": "b.py", "score": 0.5},
                {"retrieved_chunk": "two", "filename": "c.py", "score": 0.25},
                {"retrieved_chunk": "three", "filename": "d.py", "score": null},
            ]},
            "fragment_gains": [
                {"shown": [1], "gain": -0.5}, {"shown": [0, 2], "gain": 0.25}, {"shown": [0, 1, 2], "gain": null},
            ],
        });
        let read = |record: &Value| {
            Label::read(Path::new("l.jsonl"), 2, record.as_object().unwrap().clone())
        };
        let label = read(&record).unwrap();
        let mut known = gains(&[(&[1], -0.5), (&[0, 2], 0.25)]);
        known.insert(set(&[0, 1, 2]), None);
        assert_eq!(label.gains, known);
        assert_eq!(label.to_record().to_string(), record.to_string());
        let trial = read(&label.trial(4, set(&[0, 2]))).unwrap();
        let said = Trial { instance: "r/a.py/3_5", row: 4, shown: set(&[0, 2]) };
        assert_eq!(Trial::of_label(&trial), Some(said));
        assert!(trial.id.starts_with("r/a.py/3_5#0+2-") && trial.es_infile.is_none());
        let mut other = label.clone();
        other.cross_file.fragments.reverse();
        assert_ne!(other.trial(4, set(&[0, 2]))["metadata"]["task_id"], *trial.id);
        other.cross_file.fragments.reverse();
        assert_eq!(other.trial(4, set(&[0, 2]))["metadata"]["task_id"], *trial.id);
        assert_eq!(trial.cross_file, label.shown(set(&[0, 2])));
        let texts: Vec<&str> = trial.cross_file.fragments.iter().map(|one| &*one.text).collect();
        assert_eq!(texts, ["one", "three"]);
        assert!(trial.record["metadata"].get("row").is_none());
        assert_eq!(Trial::of_label(&label), None);
        for (wrong, reason) in [
            (
                json!([{"shown": [1, 1], "gain": 0}]),
                "[0]' lacks a list of different fragments in 'shown'",
            ),
            (
                json!([{"shown": [64], "gain": 0}]),
                "[0]' lacks a list of different fragments in 'shown'",
            ),
            (
                json!([{"shown": [1], "gain": 0}, {"shown": [1], "gain": 0}]),
                "[1]' shows the same fragments as an earlier one",
            ),
            (json!({}), "field 'fragment_gains' must be a list, not an object"),
        ] {
            let mut record = record.clone();
            record["fragment_gains"] = wrong;
            let error = read(&record).unwrap_err().to_string();
            assert!(error.starts_with("l.jsonl:2: ") && error.ends_with(reason), "{error}");
        }
    }
}
