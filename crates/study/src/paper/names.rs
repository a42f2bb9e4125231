//! Names of the paper's tables, figures and data sets.

/// Tables that a run fills, with the paper's numbers.
pub const TABLES: [(&str, &str); 7] = [
    ("table-1", include_str!("../../data/paper/table-1.toml")),
    ("table-2", include_str!("../../data/paper/table-2.toml")),
    ("table-3", include_str!("../../data/paper/table-3.toml")),
    ("table-4", include_str!("../../data/paper/table-4.toml")),
    ("table-5", include_str!("../../data/paper/table-5.toml")),
    ("table-7", include_str!("../../data/paper/table-7.toml")),
    ("table-8", include_str!("../../data/paper/table-8.toml")),
];

/// Table of the benchmarks' sizes, for which nothing is completed.
pub const SIZES: &str = "table-6";

/// Numbers and titles of the figures with data; figure 2 is a drawing.
pub const FIGURES: [(u8, &str); 10] = [
    (1, "The framework at work"),
    (3, "Gains by retrieval"),
    (4, "Quality and latency by threshold"),
    (5, "Instances that a policy does not retrieve for"),
    (6, "Gains by retrieval if a policy retrieves"),
    (7, "Left (L), right (R) and cross-file (CC) contexts"),
    (8, "Trial retrieval: quality by retrieval budget"),
    (9, "Trial generation: quality by retrieval budget"),
    (10, "Gains by retrieval on training data"),
    (11, "Calibration of decisions"),
];

/// Data sets of the paper.
pub const DATASETS: [&str; 3] = ["RepoEval", "CrossCodeLongEval", "CrossCodeEval"];

/// Returns the names of the tables and figures.
pub fn names() -> Vec<String> {
    let tables = TABLES.iter().map(|(name, _)| (*name).to_owned());
    let mut tables: Vec<String> = tables.chain([SIZES.to_owned()]).collect();
    tables.sort_unstable();
    let figures = FIGURES.iter().map(|(number, _)| format!("figure-{number}"));
    tables.into_iter().chain(figures).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_and_figure_has_a_name() {
        let names = names();
        assert_eq!(names.len(), 8 + 10);
        let some = [0, 7, 8, 17].map(|place| &*names[place]);
        assert_eq!(some, ["table-1", "table-8", "figure-1", "figure-11"]);
    }
}
