//! Tables as aligned text, or with tabs.

/// Rows of cells. The first row is the head; the first column is text, the others are numbers.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(ToString::to_string).collect()] }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table with tabs between cells.
    pub(crate) fn tsv(&self) -> String {
        self.rows.iter().map(|row| row.join("\t") + "\n").collect()
    }

    /// The rows, the head first.
    pub(crate) fn into_rows(self) -> Vec<Vec<String>> {
        self.rows
    }

    /// The table with aligned columns.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["mode", "EM"]);
        table.row(vec!["none".into(), "7.50".into()]);
        table.row(vec!["rg-rg".into(), "12.50".into()]);
        assert_eq!(table.text(), "mode      EM\nnone    7.50\nrg-rg  12.50\n");
        assert_eq!(table.tsv(), "mode\tEM\nnone\t7.50\nrg-rg\t12.50\n");
    }
}
