//! Names of closed sets: enumerations that are written and read by name, with suggestions for misspelled names.

use std::fmt;

/// Error for a name that is not in a closed set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// Kind of thing named, such as "runner".
    pub what: &'static str,
    /// Name that was given.
    pub given: String,
    /// Known names, separated by commas.
    pub known: String,
}

impl UnknownName {
    /// Creates the error for a name that is not among the known names.
    pub fn new(
        what: &'static str,
        given: &str,
        known: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        Self { what, given: given.to_owned(), known }
    }

    /// Returns a hint with the names that were probably meant.
    pub fn hint(&self) -> Option<String> {
        did_you_mean(&self.given, self.known.split(", "))
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, given, known } = self;
        write!(f, "unknown {what} '{given}'; known: {known}")
    }
}

impl std::error::Error for UnknownName {}

/// Returns the known name that differs least from a given name. Each letter that is added, missing, changed or swapped counts
/// as one difference; case is ignored.
///
/// ```
/// use repoformer_text::names::nearest;
///
/// assert_eq!(nearest("rg2", ["none", "rg1", "gt"]), Some("rg1"));
/// assert_eq!(nearest("BM25", ["jaccard", "bm25"]), Some("bm25"));
/// ```
pub fn nearest<'n>(given: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    known.into_iter().min_by_key(|name| distance(given, name))
}

fn distance(given: &str, name: &str) -> usize {
    strsim::damerau_levenshtein(&given.to_lowercase(), &name.to_lowercase())
}

/// Returns the known name that was probably meant: a name that differs in few letters, or of which the given name is a prefix.
///
/// ```
/// use repoformer_text::names::suggest;
///
/// let profiles = ["demo", "repocoder", "repoformer-paper"];
/// assert_eq!(suggest("repocodre", profiles), Some("repocoder"));
/// assert_eq!(suggest("repoformer", profiles), Some("repoformer-paper"));
/// assert_eq!(suggest("mine", profiles), None);
/// ```
pub fn suggest<'n>(given: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    all_meant(given, known).into_iter().next()
}

/// Greatest length in bytes of a name that is compared: the time grows with the product of two lengths.
const LONGEST: usize = 256;

/// Returns the known names that were probably meant, the likeliest first. A second name is included if it is equally near, or
/// if the given name is a prefix of the second but not of the first.
fn all_meant<'n>(given: &str, known: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    if given.len() > LONGEST {
        return Vec::new();
    }
    let known = known.into_iter().filter(|name| name.len() <= LONGEST);
    let letters = |text: &str| text.chars().count();
    let is_near = |name: &str| {
        let (given_count, count) = (letters(given), letters(name));
        let most = (given_count.max(count) / 3).max(1);
        given_count.abs_diff(count) <= most
            && given_count.min(count) > 1
            && distance(given, name) <= most
    };
    let begins = |name: &str| letters(given) > 2 && name.starts_with(given);
    let rank = |name: &&str| {
        let distance = distance(given, name);
        (distance > 1 && !begins(name), distance)
    };
    let mut found: Vec<&str> = known.filter(|name| is_near(name) || begins(name)).collect();
    found.sort_by_key(rank);
    found.dedup();
    if let [first, rest @ ..] = &found[..] {
        let is_second = |name: &&&str| rank(name) == rank(first) || begins(name) && !begins(first);
        let second = rest.iter().find(is_second).copied();
        found = std::iter::once(*first).chain(second).collect();
    }
    found
}

/// Returns a hint with the known names that were probably meant (see [`suggest`]).
///
/// ```
/// use repoformer_text::names::did_you_mean;
///
/// let flags = ["--repo", "--report", "--repos-dir"];
/// assert_eq!(did_you_mean("--repot", flags).unwrap(), "did you mean '--repo' or '--report'?");
/// assert_eq!(did_you_mean("--repos", flags).unwrap(), "did you mean '--repo' or '--repos-dir'?");
/// assert_eq!(did_you_mean("--reportt", flags).unwrap(), "did you mean '--report'?");
/// ```
pub fn did_you_mean<'n>(given: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let names = all_meant(given, known);
    (!names.is_empty()).then(|| format!("did you mean '{}'?", names.join("' or '")))
}

/// Implements `ALL`, `name()`, `Display` and `FromStr` for an enumeration; the error of `FromStr` lists the known names.
/// Aliases follow `also`.
#[macro_export]
macro_rules! named {
    (
        $type:ident, $what:literal: $($value:ident = $name:literal),+ $(,)?
        $(; also $($alias:literal => $of:ident),+ $(,)?)?
    ) => {
        impl $type {
            /// Every value.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// Returns the value's name in settings and files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        $crate::parse_by_name!($type, $what $($(, $alias => $of)+)?);
    };
}

/// Implements `FromStr` for a type with `ALL` and `name()`, with other names for some values; its error lists the known names.
#[macro_export]
macro_rules! parse_by_name {
    ($type:ty, $what:literal $(, $alias:literal => $value:ident)* $(,)?) => {
        impl std::str::FromStr for $type {
            type Err = $crate::names::UnknownName;

            fn from_str(name: &str) -> Result<Self, $crate::names::UnknownName> {
                $(if name == $alias {
                    return Ok(Self::$value);
                })*
                let found = Self::ALL.into_iter().find(|value| value.name() == name);
                let unknown =
                    || $crate::names::UnknownName::new($what, name, Self::ALL.map(Self::name));
                found.ok_or_else(unknown)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::suggest;

    #[test]
    fn long_names_are_not_compared() {
        let [near, long] = [256, 257].map(|length| "a".repeat(length));
        assert_eq!(suggest(&near[1..], [&*near, &*long]), Some(&*near));
        assert_eq!(suggest(&long, [&*near, &*long]), None);
    }
}
