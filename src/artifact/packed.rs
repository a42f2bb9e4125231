//! Columns of numbers and texts as single runs of bytes, for `#[serde(with = …)]`: reading an artifact is then
//! a few large copies, not a call per number.

/// `Vec<u32>` ⇄ little-endian bytes.
pub(crate) mod numbers {
    use serde::{Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(
        numbers: &[u32],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        serializer.serialize_bytes(&bytes)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u32>, D::Error> {
        deserializer.deserialize_bytes(Visitor)
    }

    struct Visitor;

    impl de::Visitor<'_> for Visitor {
        type Value = Vec<u32>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a run of 32-bit numbers")
        }

        fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u32>, E> {
            let (numbers, rest) = bytes.as_chunks::<4>();
            if !rest.is_empty() {
                return Err(E::invalid_length(bytes.len(), &self));
            }
            Ok(numbers.iter().map(|n| u32::from_le_bytes(*n)).collect())
        }
    }
}

/// [`Lines`](crate::lines::Lines) ⇄ their joined text and count.
pub(crate) mod lines {
    use crate::lines::Lines;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(
        lines: &Lines,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        (lines.text(), lines.count() as u64).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Lines, D::Error> {
        let (text, count) = <(String, u64)>::deserialize(deserializer)?;
        let lines = Lines::from_joined(text, count as usize);
        if lines.count() as u64 == count {
            Ok(lines)
        } else {
            Err(D::Error::custom("a text has another number of lines"))
        }
    }
}

/// Whether `offsets` cut `total` items into `offsets.len() - 1` runs.
pub(crate) fn check_offsets(offsets: &[u32], total: usize) -> Result<(), String> {
    let ordered = offsets.first() == Some(&0)
        && offsets.is_sorted()
        && offsets.last().map(|n| *n as usize) == Some(total);
    if ordered {
        Ok(())
    } else {
        Err("its offsets are out of order".into())
    }
}
