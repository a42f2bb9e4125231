//! Full names of types and namespaces, in a few bytes each.

/// Full name such as `org.example.Outer.Inner`, represented by the value of its bytes in two large bases: the texts of nested
/// types would repeat the names of the enclosing types. Joining two names takes constant time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct FullName([u64; 2]);

/// Dotted name that may follow others.
#[derive(Clone, Copy)]
pub(super) struct DottedName {
    alone: FullName,
    /// Power of each base by which the preceding name is multiplied.
    shift: [u64; 2],
}

/// Prime modulus of the values.
const PRIME: u64 = (1 << 61) - 1;
const BASES: [u64; 2] = [0x0123_4567_89ab_cdef, 0x1edc_ba98_7654_3210];

impl FullName {
    /// Empty full name.
    pub(super) const EMPTY: Self = Self([0; 2]);

    pub(super) fn new(name: &str) -> Self {
        name.bytes().fold(Self::EMPTY, Self::push)
    }

    /// Returns the full name of a dotted name inside this one.
    pub(super) fn join(self, name: DottedName) -> Self {
        if self == Self::EMPTY {
            return name.alone;
        }
        let Self(outer) = self.push(b'.');
        let moved = |lane: usize| sum(product(outer[lane], name.shift[lane]), name.alone.0[lane]);
        Self([moved(0), moved(1)])
    }

    /// Returns the full names of the prefixes of a dotted name inside this one: for `a.b`, the full names of `a` and `a.b`.
    pub(super) fn parts(self, name: &str) -> Vec<Self> {
        let mut here = if self == Self::EMPTY { self } else { self.push(b'.') };
        let mut parts = Vec::new();
        for byte in name.bytes() {
            if byte == b'.' {
                parts.push(here);
            }
            here = here.push(byte);
        }
        parts.push(here);
        parts
    }

    fn push(self, byte: u8) -> Self {
        let pushed = |lane: usize| sum(product(self.0[lane], BASES[lane]), u64::from(byte) + 1);
        Self([pushed(0), pushed(1)])
    }
}

impl DottedName {
    pub(super) fn new(name: &str) -> Self {
        let mut shift = [1; 2];
        for _ in name.bytes() {
            shift = [product(shift[0], BASES[0]), product(shift[1], BASES[1])];
        }
        Self { alone: FullName::new(name), shift }
    }
}

fn sum(a: u64, b: u64) -> u64 {
    (a + b) % PRIME
}

fn product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    // 2^61 is 1 modulo the prime.
    sum((product >> 61) as u64, product as u64 & PRIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_equal_full_names() {
        let join = |outer: &str, name: &str| FullName::new(outer).join(DottedName::new(name));
        let whole = FullName::new("a.b.C");
        for (outer, name) in [("a", "b.C"), ("a.b", "C"), ("", "a.b.C")] {
            assert_eq!(join(outer, name), whole);
        }
        assert_eq!(FullName::new("a").parts("b.C"), [FullName::new("a.b"), whole]);
        assert_eq!(FullName::EMPTY.parts("a.b"), [FullName::new("a"), FullName::new("a.b")]);
        assert_eq!(join("", ""), FullName::EMPTY);
        for other in ["", "a", "a.b", "b.C", "a.bC", "ab.C", "a.b.C.", ".a.b.C", "\0a.b.C"] {
            assert_ne!(FullName::new(other), whole, "{other:?}");
        }
        assert_ne!(FullName::new("\0"), FullName::EMPTY);
    }

    #[test]
    fn products_are_those_of_whole_numbers() {
        for (a, b) in [(PRIME - 1, PRIME - 1), (BASES[0], BASES[1]), (0, 5), (1 << 60, 4)] {
            let whole = u128::from(a) * u128::from(b) % u128::from(PRIME);
            assert_eq!(u128::from(product(a, b)), whole);
        }
    }
}
