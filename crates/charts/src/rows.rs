//! Labels above a place each, in as many rows as they need not to touch.

/// Where a label went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Placed {
    /// Its row, 0 being the one next to the plot.
    pub(crate) row: usize,
    /// Where it begins.
    pub(crate) start: f64,
}

/// Puts labels, each given as the middle where it should be and its width, between 0 and `room`, at least
/// `gap` apart. None for what `most` rows have no place for.
pub(crate) fn rows(labels: &[(f64, f64)], room: f64, gap: f64, most: usize) -> Vec<Option<Placed>> {
    let mut taken: Vec<Vec<(f64, f64)>> = vec![Vec::new(); most];
    let mut place = |(middle, width): &(f64, f64)| {
        if !middle.is_finite() || *width > room {
            return None;
        }
        let start = (middle - width / 2.0).clamp(0.0, room - width);
        let free = |row: &&mut Vec<(f64, f64)>| {
            row.iter().all(|(from, to)| start >= to + gap || start + width + gap <= *from)
        };
        let (row, spans) = taken.iter_mut().enumerate().find(|(_, row)| free(row))?;
        spans.push((start, start + width));
        Some(Placed { row, start })
    };
    labels.iter().map(&mut place).collect()
}

/// How many rows are in use.
pub(crate) fn used(placed: &[Option<Placed>]) -> usize {
    placed.iter().flatten().map(|placed| placed.row + 1).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_touch_and_stay_inside() {
        let labels =
            [(0.0, 10.0), (8.0, 10.0), (50.0, 10.0), (99.0, 20.0), (95.0, 4.0), (9.0, 200.0)];
        let placed = rows(&labels, 100.0, 1.0, 2);
        let at = |row, start| Some(Placed { row, start });
        assert_eq!(placed, [at(0, 0.0), at(1, 3.0), at(0, 45.0), at(0, 80.0), at(1, 93.0), None]);
        assert_eq!(used(&placed), 2);
        assert_eq!(rows(&[(1.0, 5.0), (2.0, 5.0)], 100.0, 1.0, 1)[1], None, "no third row");
        assert_eq!(rows(&[(f64::NAN, 5.0)], 100.0, 1.0, 1), [None]);
    }
}
