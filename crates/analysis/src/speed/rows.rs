//! Clean slices that come in rows: they tell an unshared core from a shared one that let single
//! slices pass by luck.

/// Clean slices in a row, 2 ms of them, that make a round count where few rounds have any. Shared
/// cores let up to five pass by luck (docs/validation.md).
pub(crate) const LEAST_ROW: usize = 8;

/// Returns those of these ascending numbers that stand in a row of [`LEAST_ROW`] or more without a
/// gap.
pub(crate) fn in_rows(numbers: &[usize]) -> Vec<usize> {
    let mut in_rows = Vec::new();
    for row in numbers.chunk_by(|one, next| one + 1 == *next) {
        if row.len() >= LEAST_ROW {
            in_rows.extend_from_slice(row);
        }
    }
    in_rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_without_a_gap_count() {
        let luck: Vec<usize> = (0..7).chain([9, 11, 12]).collect();
        assert!(in_rows(&luck).is_empty());
        let row: Vec<usize> = (20..28).collect();
        assert_eq!(in_rows(&[luck, row.clone()].concat()), row);
        assert!(in_rows(&[]).is_empty());
    }
}
