//! Tables with right-aligned columns, separated by blanks: scripts read them by the names in the header.

/// A table.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these columns.
    pub(super) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|name| (*name).to_owned()).collect()] }
    }

    /// Adds a row, with a cell for each column.
    pub(super) fn add(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// Its lines.
    pub(super) fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let line = |row: &Vec<String>| {
            let cells =
                row.iter().enumerate().map(|(column, cell)| format!("{cell:>0$}", width(column)));
            cells.collect::<Vec<_>>().join(" ")
        };
        self.rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

const BINARY: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const DECIMAL: [&str; 7] = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];

/// A size in the largest unit that leaves a whole part, with two decimals if they are not zero.
pub(super) fn size(bytes: u64, is_decimal: bool) -> String {
    let (units, base) = if is_decimal { (DECIMAL, 1000) } else { (BINARY, 1024) };
    let (mut unit, mut factor) = (0, 1_u64);
    while unit + 1 < units.len() && bytes / factor >= base {
        unit += 1;
        factor *= base;
    }
    let whole = bytes / factor;
    let hundredths = u128::from(bytes % factor) * 100 / u128::from(factor);
    match (bytes, hundredths) {
        (0, _) => "0".to_owned(),
        (_, 0) => format!("{whole}{}", units[unit]),
        (_, part) => format!("{whole}.{part:02}{}", units[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_right_aligned_below_their_names() {
        let mut table = Table::new(&["pool", "gran"]);
        assert!(table.is_empty());
        table.add(["wlm_pool".to_owned(), "16GiB".to_owned()]);
        table.add(["é".to_owned(), "1".to_owned()]);
        assert_eq!(table.text(), "    pool  gran\nwlm_pool 16GiB\n       é     1");
    }

    #[test]
    fn sizes_have_the_largest_unit_that_leaves_a_whole_part() {
        for (bytes, binary, decimal) in [
            (0, "0", "0"),
            (999, "999B", "999B"),
            (1 << 30, "1GiB", "1.07GB"),
            (16_000_000_000, "14.90GiB", "16GB"),
            (6_400_000_000_000, "5.82TiB", "6.40TB"),
            (u64::MAX, "15.99EiB", "18.44EB"),
        ] {
            assert_eq!(
                (size(bytes, false).as_str(), size(bytes, true).as_str()),
                (binary, decimal)
            );
        }
    }
}
