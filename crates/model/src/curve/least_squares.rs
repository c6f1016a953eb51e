//! Weighted least squares for a handful of coefficients.

/// Coefficients and what they rest on. `T` is the most coefficients that the caller's models have;
/// those that a model does not use are 0.
#[derive(Debug, Clone)]
pub(crate) struct Solution<const T: usize> {
    pub(crate) coefficients: [f64; T],
    /// Inverse of R in the QR decomposition; times its transpose it is the covariance of the
    /// coefficients for the standard errors as given.
    pub(crate) inverse: [[f64; T]; T],
    /// Weighted sum of squared residuals.
    pub(crate) chi2: f64,
}

/// One point: basis functions, cost, 1 / standard error.
pub(crate) type Row<const T: usize> = ([f64; T], f64, f64);

/// QR decomposition by modified Gram-Schmidt (Bjorck 1967): stable enough for a quadratic in N
/// where the normal equations are not. `None` where the points cannot separate the first `terms`
/// basis functions.
pub(crate) fn least_squares<const T: usize>(
    rows: impl ExactSizeIterator<Item = Row<T>>,
    terms: usize,
) -> Option<Solution<T>> {
    let mut columns = vec![Vec::with_capacity(rows.len()); terms];
    let mut rest = Vec::with_capacity(rows.len());
    for (basis, cost, precision) in rows {
        for (column, value) in columns.iter_mut().zip(basis) {
            column.push(value * precision);
        }
        rest.push(cost * precision);
    }
    let mut upper = [[0.0; T]; T];
    let mut right = [0.0; T];
    for j in 0..terms {
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
        column.iter_mut().for_each(|value| *value /= norm);
        right[j] = dot(column, &rest);
        subtract(&mut rest, right[j], column);
    }
    let inverse = invert_upper(&upper, terms);
    let coefficients = inverse.map(|row| dot(&row, &right));
    let chi2 = dot(&rest, &rest);
    let sound = chi2.is_finite() && coefficients.iter().all(|c| c.is_finite());
    sound.then_some(Solution { coefficients, inverse, chi2 })
}

/// Variance of a linear combination of the coefficients, for standard errors as given.
pub(crate) fn variance_of<const T: usize>(inverse: &[[f64; T]; T], combination: [f64; T]) -> f64 {
    let mut projected = [0.0; T];
    for (weight, row) in combination.iter().zip(inverse) {
        for (sum, value) in projected.iter_mut().zip(row) {
            *sum += weight * value;
        }
    }
    projected.iter().map(|value| value * value).sum()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn subtract(from: &mut [f64], times: f64, what: &[f64]) {
    for (value, other) in from.iter_mut().zip(what) {
        *value -= times * other;
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
