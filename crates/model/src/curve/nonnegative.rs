//! Weighted least squares with coefficients that may not be below zero, except for the first.

/// The best coefficients and what they rest on.
#[derive(Clone, Debug)]
pub(crate) struct Fit<const T: usize> {
    /// Unused ones are 0.
    pub(crate) coefficients: [f64; T],
    /// Weighted sum of squared residuals.
    pub(crate) chi2: f64,
    /// Variances of the coefficients for the standard errors as given, with those at zero held there.
    variances: [f64; T],
}

impl<const T: usize> Fit<T> {
    /// Standard error of a coefficient; none of one that is held at zero.
    pub(crate) fn deviation(&self, which: usize) -> Option<f64> {
        let variance = self.variances[which];
        (variance > 0.0 && variance.is_finite()).then(|| variance.sqrt())
    }
}

/// Fits rows of basis functions, cost and 1 / standard error. Columns of zeros stay unused. With so few
/// coefficients every set of those above zero can be tried, and the best sound one is the answer exactly (Lawson
/// and Hanson 1974, chapter 23, says when it is: the least squares of some such set). `None` without one.
pub(crate) fn fit<const T: usize>(
    rows: impl Iterator<Item = ([f64; T], f64, f64)> + Clone,
) -> Option<Fit<T>> {
    let mut scale = [0.0_f64; T];
    for (basis, _, precision) in rows.clone() {
        for (norm, value) in scale.iter_mut().zip(basis) {
            *norm += (value * precision).powi(2);
        }
    }
    let scale = scale.map(f64::sqrt);
    let (mut gram, mut right) = ([[0.0; T]; T], [0.0; T]);
    for (basis, cost, precision) in rows.clone() {
        let scaled: [f64; T] =
            std::array::from_fn(
                |i| if scale[i] > 0.0 { basis[i] * precision / scale[i] } else { 0.0 },
            );
        for i in 0..T {
            right[i] += scaled[i] * cost * precision;
            for j in 0..T {
                gram[i][j] += scaled[i] * scaled[j];
            }
        }
    }
    let usable = (0..T).filter(|i| scale[*i] > 0.0 && scale[*i].is_finite());
    let usable = usable.fold(0_usize, |mask, i| mask | 1 << i);
    let mut best: Option<Fit<T>> = None;
    for mask in (1..1_usize << T).filter(|mask| mask & 1 == 1 && mask & !usable == 0) {
        let Some((solution, variances)) = solve(&gram, &right, mask) else { continue };
        if (1..T).any(|i| solution[i] < 0.0) {
            continue;
        }
        let coefficients: [f64; T] =
            std::array::from_fn(|i| if mask >> i & 1 == 1 { solution[i] / scale[i] } else { 0.0 });
        let residual = |(basis, cost, precision): ([f64; T], f64, f64)| {
            let fitted: f64 = basis.iter().zip(&coefficients).map(|(b, c)| b * c).sum();
            ((cost - fitted) * precision).powi(2)
        };
        let chi2: f64 = rows.clone().map(residual).sum();
        if chi2.is_finite() && best.as_ref().is_none_or(|best| chi2 < best.chi2) {
            let variances = std::array::from_fn(|i| match mask >> i & 1 {
                1 => variances[i] / (scale[i] * scale[i]),
                _ => 0.0,
            });
            best = Some(Fit { coefficients, chi2, variances });
        }
    }
    best
}

/// Solves the normal equations of the columns in `mask`, and gives the diagonal of their inverse. `None`
/// where the points cannot separate them.
fn solve<const T: usize>(
    gram: &[[f64; T]; T],
    right: &[f64; T],
    mask: usize,
) -> Option<([f64; T], [f64; T])> {
    let used: Vec<usize> = (0..T).filter(|i| mask >> i & 1 == 1).collect();
    let mut lower = [[0.0; T]; T];
    for (row, &i) in used.iter().enumerate() {
        for (column, &j) in used.iter().enumerate().take(row + 1) {
            let done: f64 = (0..column).map(|k| lower[row][k] * lower[column][k]).sum();
            let rest = gram[i][j] - done;
            if row == column {
                // Columns have norm 1: what is left of one that the others explain is rounding.
                if rest <= 1e-10 {
                    return None;
                }
                lower[row][row] = rest.sqrt();
            } else {
                lower[row][column] = rest / lower[column][column];
            }
        }
    }
    let size = used.len();
    let back = |wanted: &[f64]| -> Vec<f64> {
        let mut half = vec![0.0; size];
        for row in 0..size {
            let done: f64 = (0..row).map(|k| lower[row][k] * half[k]).sum();
            half[row] = (wanted[row] - done) / lower[row][row];
        }
        for row in (0..size).rev() {
            let done: f64 = (row + 1..size).map(|k| lower[k][row] * half[k]).sum();
            half[row] = (half[row] - done) / lower[row][row];
        }
        half
    };
    let wanted: Vec<f64> = used.iter().map(|i| right[*i]).collect();
    let (mut solution, mut variances) = ([0.0; T], [0.0; T]);
    for (place, value) in back(&wanted).into_iter().enumerate() {
        solution[used[place]] = value;
        let unit: Vec<f64> = (0..size).map(|k| if k == place { 1.0 } else { 0.0 }).collect();
        variances[used[place]] = back(&unit)[place];
    }
    Some((solution, variances))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(costs: &[f64]) -> Vec<([f64; 3], f64, f64)> {
        let row = |(i, cost): (usize, &f64)| ([1.0, i as f64, (i * i) as f64], *cost, 2.0);
        costs.iter().enumerate().map(row).collect()
    }

    #[test]
    fn an_exact_curve_is_found_again() {
        let found = fit(rows(&[3.0, 5.5, 9.0, 13.5, 19.0]).into_iter()).unwrap();
        for (coefficient, wanted) in found.coefficients.iter().zip([3.0, 2.0, 0.5]) {
            assert!((coefficient - wanted).abs() < 1e-9, "{found:?}");
        }
        assert!(found.chi2 < 1e-15);
    }

    #[test]
    fn what_would_be_below_zero_is_zero_and_the_rest_the_best_without_it() {
        // The free fit of these has a quadratic term of -1: the best line is 8 - x / 2... at least flat.
        let found = fit(rows(&[6.0, 7.0, 6.0]).into_iter()).unwrap();
        assert_eq!(found.coefficients[1..], [0.0, 0.0]);
        assert!((found.coefficients[0] - 19.0 / 3.0).abs() < 1e-12);
        assert!((found.chi2 - 4.0 * 2.0 / 3.0).abs() < 1e-12, "{found:?}");
        assert_eq!(found.deviation(1), None);
        // A mean of three with standard error 1/2 each.
        assert!((found.deviation(0).unwrap() - 0.5 / 3.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn columns_of_zeros_and_columns_alike_are_not_both_used() {
        let same = |x: f64| ([1.0, x, x], 1.0 + 4.0 * x, 1.0);
        let found = fit([1.0, 2.0, 5.0].map(same).into_iter()).unwrap();
        assert!(found.chi2 < 1e-15 && found.coefficients[1..].contains(&0.0), "{found:?}");
        let none = fit([([1.0, 0.0], 3.0, 1.0), ([1.0, 0.0], 3.0, 1.0)].into_iter()).unwrap();
        assert!((none.coefficients[0] - 3.0).abs() < 1e-12 && none.coefficients[1] == 0.0);
        assert!(fit([([f64::NAN], 3.0, 1.0)].into_iter()).is_none());
    }
}
