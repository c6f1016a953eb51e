//! Weighted least squares for a handful of coefficients.
//!
//! The fit of y = a + b x to the points (0, 3), (1, 5), (2, 7) has two basis functions, 1 and x. Each
//! is a column, (1, 1, 1) and (0, 1, 2), and what is asked for is the combination of columns that
//! lies nearest to the y. The columns are made orthogonal one after another, and the part of y along
//! each is taken off: what is left of y at the end are the residuals, here zero, and a = 3, b = 2
//! follow from those parts.

/// A point of a fit. `T` is the most coefficients that the caller's models have.
#[derive(Clone, Copy, Debug)]
pub struct FitRow<const T: usize> {
    /// Value of each basis function.
    pub basis: [f64; T],
    /// Measured value.
    pub y: f64,
    /// 1 / standard error.
    pub precision: f64,
}

/// Coefficients and their covariance; coefficients that a model does not use are 0.
#[derive(Clone, Copy, Debug)]
pub struct LeastSquaresFit<const T: usize> {
    /// Coefficients, one for each basis function.
    pub coefficients: [f64; T],
    /// Weighted sum of squared residuals.
    pub chi2: f64,
    /// Inverse of R in the QR decomposition; times its transpose it is the covariance of the
    /// coefficients for the standard errors as given.
    inverse: [[f64; T]; T],
}

impl<const T: usize> LeastSquaresFit<T> {
    /// Returns the variance of a linear combination of the coefficients, for standard errors as
    /// given.
    pub fn variance_of(&self, combination: [f64; T]) -> f64 {
        let mut variance = 0.0;
        for column in 0..T {
            let mut projected = 0.0;
            for (weight, row) in combination.iter().zip(&self.inverse) {
                projected += weight * row[column];
            }
            variance += projected.powi(2);
        }
        variance
    }

    /// Returns the standard error of a coefficient, for standard errors as given. None for one that
    /// is not used.
    pub fn deviation(&self, which: usize) -> Option<f64> {
        let variance = self.variance_of(std::array::from_fn(|i| f64::from(i == which)));
        if variance > 0.0 && variance.is_finite() { Some(variance.sqrt()) } else { None }
    }
}

/// Fits the first `terms` basis functions, by a QR decomposition by modified Gram-Schmidt (Bjorck
/// 1967): stable enough for a quadratic where the normal equations are not. None where the points
/// cannot separate the basis functions.
pub fn least_squares<const T: usize>(
    rows: impl Iterator<Item = FitRow<T>>,
    terms: usize,
) -> Option<LeastSquaresFit<T>> {
    fit(rows, &(0..terms).collect::<Vec<_>>())
}

/// Fits coefficients of which only the first may be below zero. With so few, every set of those
/// above zero can be tried, and the best sound one is the answer exactly (Lawson and Hanson 1974,
/// chapter 23: the answer is the least squares of some such set). None without one.
pub fn nonnegative_least_squares<const T: usize>(
    rows: impl Iterator<Item = FitRow<T>> + Clone,
) -> Option<LeastSquaresFit<T>> {
    let mut best: Option<LeastSquaresFit<T>> = None;
    // Each bit of a set is a basis function; the first is in every one.
    for set in (1..1_usize << T).step_by(2) {
        let used: Vec<usize> = (0..T).filter(|i| set >> i & 1 == 1).collect();
        let Some(found) = fit(rows.clone(), &used) else { continue };
        let is_sound = found.coefficients[1..].iter().all(|c| *c >= 0.0);
        let is_better = match &best {
            Some(best) => found.chi2.total_cmp(&best.chi2).is_lt(),
            None => true,
        };
        if is_sound && is_better {
            best = Some(found);
        }
    }
    best
}

/// Fits the basis functions of these indices only.
fn fit<const T: usize>(
    rows: impl Iterator<Item = FitRow<T>>,
    used: &[usize],
) -> Option<LeastSquaresFit<T>> {
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); used.len()];
    let mut rest = Vec::new();
    for FitRow { basis, y, precision } in rows {
        for (column, &which) in columns.iter_mut().zip(used) {
            column.push(basis[which] * precision);
        }
        rest.push(y * precision);
    }
    let mut upper = [[0.0; T]; T];
    let mut right = [0.0; T];
    for j in 0..used.len() {
        let (done, open) = columns.split_at_mut(j);
        let column = &mut open[0];
        let before = dot(column, column).sqrt();
        for (k, earlier) in done.iter().enumerate() {
            upper[k][j] = dot(earlier, column);
            subtract(column, upper[k][j], earlier);
        }
        let norm = dot(column, column).sqrt();
        if !norm.is_finite() || norm <= 1e-9 * before {
            return None;
        }
        upper[j][j] = norm;
        for value in column.iter_mut() {
            *value /= norm;
        }
        right[j] = dot(column, &rest);
        subtract(&mut rest, right[j], column);
    }
    let packed = invert_upper(&upper, used.len());
    let (mut coefficients, mut inverse) = ([0.0; T], [[0.0; T]; T]);
    for (row, &which) in packed.iter().zip(used) {
        coefficients[which] = dot(row, &right);
        inverse[which] = *row;
    }
    let chi2 = dot(&rest, &rest);
    if chi2.is_finite() && coefficients.iter().all(|c| c.is_finite()) {
        Some(LeastSquaresFit { coefficients, chi2, inverse })
    } else {
        None
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Subtracts a multiple of one column from another.
fn subtract(column: &mut [f64], times: f64, other: &[f64]) {
    for (value, subtracted) in column.iter_mut().zip(other) {
        *value -= times * subtracted;
    }
}

fn invert_upper<const T: usize>(upper: &[[f64; T]; T], terms: usize) -> [[f64; T]; T] {
    let mut inverse = [[0.0; T]; T];
    for j in 0..terms {
        inverse[j][j] = 1.0 / upper[j][j];
        for i in (0..j).rev() {
            let sum: f64 = (i + 1..=j).map(|k| upper[i][k] * inverse[k][j]).sum();
            inverse[i][j] = -sum / upper[i][i];
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ys: &[f64]) -> Vec<FitRow<3>> {
        let row = |(i, y): (usize, &f64)| FitRow {
            basis: [1.0, i as f64, (i * i) as f64],
            y: *y,
            precision: 2.0,
        };
        ys.iter().enumerate().map(row).collect()
    }

    #[test]
    fn an_exact_curve_is_found_again() {
        let found =
            nonnegative_least_squares(rows(&[3.0, 5.5, 9.0, 13.5, 19.0]).into_iter()).unwrap();
        for (coefficient, wanted) in found.coefficients.iter().zip([3.0, 2.0, 0.5]) {
            assert!((coefficient - wanted).abs() < 1e-9, "{found:?}");
        }
        assert!(found.chi2 < 1e-15);
    }

    #[test]
    fn what_would_be_below_zero_is_zero_and_the_rest_the_best_without_it() {
        // The free fit of these has a quadratic term of -1: the best line is 8 - x / 2... at least
        // flat.
        let found = nonnegative_least_squares(rows(&[6.0, 7.0, 6.0]).into_iter()).unwrap();
        assert_eq!(found.coefficients[1..], [0.0, 0.0]);
        assert!((found.coefficients[0] - 19.0 / 3.0).abs() < 1e-12);
        assert!((found.chi2 - 4.0 * 2.0 / 3.0).abs() < 1e-12, "{found:?}");
        assert_eq!(found.deviation(1), None);
        // A mean of three with standard error 1/2 each.
        assert!((found.deviation(0).unwrap() - 0.5 / 3.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn columns_of_zeros_and_columns_alike_are_not_both_used() {
        let row = |basis: [f64; 3], y: f64| FitRow { basis, y, precision: 1.0 };
        let same = |x: f64| row([1.0, x, x], 1.0 + 4.0 * x);
        let found = nonnegative_least_squares([1.0, 2.0, 5.0].map(same).into_iter()).unwrap();
        assert!(found.chi2 < 1e-15 && found.coefficients[1..].contains(&0.0), "{found:?}");
        let none = nonnegative_least_squares([row([1.0, 0.0, 0.0], 3.0); 2].into_iter()).unwrap();
        assert!((none.coefficients[0] - 3.0).abs() < 1e-12 && none.coefficients[1] == 0.0);
        assert!(nonnegative_least_squares([row([f64::NAN; 3], 3.0)].into_iter()).is_none());
    }
}
