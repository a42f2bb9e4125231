//! Columns of numbers and texts as single runs of bytes, for `#[serde(with = …)]`: reading an artifact is then
//! a few large copies, not a call per number.

/// `Vec<u16>` or `Vec<u32>` ⇄ little-endian bytes.
pub(crate) mod numbers {
    use std::marker::PhantomData;

    use serde::{Deserializer, Serializer, de};
    use zerocopy::{Immutable, IntoBytes};

    /// A number that has a column.
    pub(crate) trait Number: IntoBytes + Immutable + Copy {
        fn to_little_endian(self) -> Self;

        /// As many numbers as there are bytes for, and how many bytes are left over.
        fn all(bytes: &[u8]) -> (Vec<Self>, usize);
    }

    impl Number for u16 {
        fn to_little_endian(self) -> Self {
            self.to_le()
        }

        fn all(bytes: &[u8]) -> (Vec<Self>, usize) {
            let (numbers, rest) = bytes.as_chunks();
            let numbers = numbers.iter().map(|n| Self::from_le_bytes(*n)).collect();
            (numbers, rest.len())
        }
    }

    impl Number for u32 {
        fn to_little_endian(self) -> Self {
            self.to_le()
        }

        fn all(bytes: &[u8]) -> (Vec<Self>, usize) {
            let (numbers, rest) = bytes.as_chunks();
            let numbers = numbers.iter().map(|n| Self::from_le_bytes(*n)).collect();
            (numbers, rest.len())
        }
    }

    pub(crate) fn serialize<N: Number, S: Serializer>(
        numbers: &[N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if cfg!(target_endian = "little") {
            return serializer.serialize_bytes(numbers.as_bytes());
        }
        let swapped: Vec<N> = numbers.iter().map(|n| n.to_little_endian()).collect();
        serializer.serialize_bytes(swapped.as_bytes())
    }

    pub(crate) fn deserialize<'de, N: Number, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<N>, D::Error> {
        deserializer.deserialize_bytes(Visitor(PhantomData))
    }

    struct Visitor<N>(PhantomData<N>);

    impl<N: Number> de::Visitor<'_> for Visitor<N> {
        type Value = Vec<N>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "a run of {}-bit numbers", 8 * size_of::<N>())
        }

        fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<N>, E> {
            match N::all(bytes) {
                (numbers, 0) => Ok(numbers),
                _ => Err(E::invalid_length(bytes.len(), &self)),
            }
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
