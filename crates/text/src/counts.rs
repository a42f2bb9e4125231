//! Formats numbers with their nouns for use in sentences.

/// Groups digits: 14457 → `14,457`.
pub fn group(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", group(number / 1000), number % 1000),
    }
}

/// Returns the form of a noun that follows a number: `1 repository`, `2 repositories`.
pub fn plural(number: usize, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if number == 1 => noun.to_owned(),
        Some(stem) => format!("{stem}ies"),
        None => format!("{noun}s"),
    }
}

/// Formats a number with its noun: `1 repository`, `1,200 repositories`.
pub fn format_count(count: u64, noun: &str) -> String {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    format!("{} {}", group(count), plural(count, noun))
}

/// Formats a number with its noun and the singular or plural verb: `1 task is`, `2 tasks are`.
pub fn subject(count: usize, noun: &str, [of_one, of_several]: [&str; 2]) -> String {
    let verb = if count == 1 { of_one } else { of_several };
    format!("{} {} {verb}", group(count), plural(count, noun))
}

/// Formats part of a total with its noun and the singular or plural verb: `1 of 3 tasks is`, `2 of 3 tasks are`.
pub fn part(count: usize, all: usize, noun: &str, [of_one, of_several]: [&str; 2]) -> String {
    let verb = if count == 1 { of_one } else { of_several };
    format!("{} of {} {} {verb}", group(count), group(all), plural(all, noun))
}

/// Lists the first `most` names, and says whether there are more.
///
/// ```
/// use repoformer_text::counts::list_first;
///
/// assert_eq!(list_first(["a", "b"], 2), "a, b");
/// assert_eq!(list_first(["a", "b", "c"], 2), "a, b, …");
/// ```
pub fn list_first(names: impl IntoIterator<Item: AsRef<str>>, most: usize) -> String {
    let mut listed = String::new();
    for (number, name) in names.into_iter().enumerate() {
        if number > 0 {
            listed += ", ";
        }
        if number == most {
            listed += "…";
            break;
        }
        listed += name.as_ref();
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_with_their_nouns() {
        assert_eq!(group(999), "999");
        assert_eq!(group(14_457), "14,457");
        assert_eq!(group(1_000_007), "1,000,007");
        assert_eq!(format_count(1, "repository"), "1 repository");
        assert_eq!(format_count(1200, "repository"), "1,200 repositories");
        assert_eq!(plural(0, "record"), "records");
        assert_eq!(part(1, 3, "task", ["has", "have"]), "1 of 3 tasks has");
        assert_eq!(part(1, 1, "task", ["has", "have"]), "1 of 1 task has");
    }
}
