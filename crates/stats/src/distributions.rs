//! The distributions on which intervals and tests rest: quantiles and tails, each to 12 digits of
//! what it should be.
//!
//! They are those of CDFLIB (Brown, Lovato and Russell). Its searches for quantiles end at 8 digits;
//! a step or two of Newton's method on the distribution function give the others.

use cdflib::special::psi;
use cdflib::traits::{Continuous, ContinuousCdf, DiscreteCdf};
use cdflib::{Binomial, ChiSquared, FisherSnedecor, Gamma, Normal, StudentsT};

/// Number of steps of Newton's method. Each doubles the right digits.
const NEWTON_STEPS: u32 = 3;

/// Returns Student's quantile that leaves `confidence` between -t and t; `freedom` degrees. Absent
/// for a confidence outside 0 to 1 (exclusive) or less than one degree.
pub fn student_quantile(confidence: f64, freedom: f64) -> Option<f64> {
    if !(is_share(confidence) && freedom >= 1.0) {
        return None;
    }
    refined_quantile(&StudentsT::try_new(freedom).ok()?, 0.5 + confidence / 2.0)
}

/// Returns the normal quantile that leaves `confidence` between -z and z. Absent for a confidence
/// outside 0 to 1 (exclusive).
pub fn normal_quantile(confidence: f64) -> Option<f64> {
    if !is_share(confidence) {
        return None;
    }
    refined_quantile(&Normal::standard(), 0.5 + confidence / 2.0)
}

/// Returns the share of the standard normal distribution below `z`.
pub(crate) fn normal_share_below(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// Returns the upper quantile of F that, with its counterpart below, leaves `confidence` between
/// them; degrees of freedom above and below the line. Absent for a confidence outside 0 to 1
/// (exclusive) or less than one degree.
pub(crate) fn f_quantile(confidence: f64, above: f64, below: f64) -> Option<f64> {
    if !(is_share(confidence) && above >= 1.0 && below >= 1.0) {
        return None;
    }
    let quantile =
        refined_quantile(&FisherSnedecor::try_new(above, below).ok()?, 0.5 + confidence / 2.0)?;
    if quantile > 0.0 { Some(quantile) } else { None }
}

/// Returns the share of the chi-squared distribution above `chi2`. Absent without degrees of
/// freedom, or if `chi2` is no number.
pub(crate) fn chi_squared_share_above(chi2: f64, freedom: f64) -> Option<f64> {
    let share = ChiSquared::try_new(freedom).ok()?.ccdf(chi2);
    if share.is_finite() { Some(share) } else { None }
}

/// Returns the value below which the share `below` of Gamma(shape, 1) lies. Absent for a shape that
/// is not above 0, or a share outside 0 to 1 (exclusive).
pub(crate) fn gamma_quantile(below: f64, shape: f64) -> Option<f64> {
    if !is_share(below) {
        return None;
    }
    refined_quantile(&Gamma::try_new(shape, 1.0).ok()?, below)
}

/// Returns the least number of successes out of `count`, each with probability `p`, at which the
/// distribution function reaches `level`. Absent for a probability outside 0 to 1.
pub(crate) fn binomial_quantile(level: f64, count: u64, p: f64) -> Option<u64> {
    let distribution = Binomial::try_new(count, p).ok()?;
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if distribution.cdf(middle) >= level {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}

/// Returns the derivative of the logarithm of the gamma function. `x` above 0.
pub(crate) fn digamma(x: f64) -> f64 {
    psi(x)
}

/// Returns whether a number is above 0 and below 1.
fn is_share(number: f64) -> bool {
    number > 0.0 && number < 1.0
}

/// Returns the value below which the share `below` lies. Absent if it is not finite.
fn refined_quantile<D>(distribution: &D, below: f64) -> Option<f64>
where
    D: ContinuousCdf + Continuous,
{
    let mut quantile = distribution.inverse_cdf(below).ok()?;
    for _ in 0..NEWTON_STEPS {
        // Above the middle by the upper tail, which has more digits there.
        let excess = if below > 0.5 {
            (1.0 - below) - distribution.ccdf(quantile)
        } else {
            distribution.cdf(quantile) - below
        };
        let step = excess / distribution.pdf(quantile);
        if !step.is_finite() {
            break;
        }
        quantile -= step;
    }
    if quantile.is_finite() { Some(quantile) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest relative error.
    const TOLERANCE: f64 = 1e-12;

    /// References were computed by mpmath 1.3 with 40 digits, of the shares as they are in binary.
    fn assert_close(found: Option<f64>, wanted: f64, case: &str) {
        let found = found.unwrap_or(f64::NAN);
        assert!(
            (found - wanted).abs() <= TOLERANCE * wanted.abs(),
            "{case}: {found}, not {wanted}"
        );
    }

    #[test]
    fn quantiles_of_student_have_twelve_digits() {
        for (confidence, freedom, t) in STUDENT {
            let case = format!("{confidence} of {freedom} degrees");
            assert_close(student_quantile(confidence, freedom), t, &case);
        }
    }

    #[test]
    fn quantiles_of_the_normal_distribution_have_twelve_digits() {
        for (confidence, z) in NORMAL {
            assert_close(normal_quantile(confidence), z, &confidence.to_string());
        }
    }

    #[test]
    fn shares_of_the_normal_distribution_have_twelve_digits() {
        for (z, share) in NORMAL_SHARES {
            assert_close(Some(normal_share_below(z)), share, &z.to_string());
        }
    }

    #[test]
    fn quantiles_of_f_have_twelve_digits() {
        for (confidence, above, below, f) in FISHER {
            let case = format!("{confidence} of {above} and {below} degrees");
            assert_close(f_quantile(confidence, above, below), f, &case);
        }
    }

    #[test]
    fn tails_of_chi_squared_have_twelve_digits() {
        for (chi2, freedom, share) in CHI_SQUARED {
            let case = format!("{chi2} of {freedom} degrees");
            assert_close(chi_squared_share_above(chi2, freedom), share, &case);
        }
    }

    #[test]
    fn quantiles_of_gamma_have_twelve_digits() {
        for (below, shape, value) in GAMMA {
            assert_close(gamma_quantile(below, shape), value, &format!("{below} of {shape}"));
        }
    }

    /// A level just below and just above the distribution function at a number of successes.
    #[test]
    fn the_binomial_distribution_has_twelve_digits() {
        for (count, p, successes, share) in BINOMIAL {
            let case = format!("{successes} of {count} by {p}");
            let [below, above] = [1.0 - TOLERANCE, 1.0 + TOLERANCE].map(|by| by * share);
            assert_eq!(binomial_quantile(below, count, p), Some(successes), "{case}");
            assert_eq!(binomial_quantile(above, count, p), Some(successes + 1), "{case}");
        }
    }

    #[test]
    fn digamma_has_twelve_digits() {
        for (x, value) in DIGAMMA {
            assert_close(Some(digamma(x)), value, &x.to_string());
        }
    }

    #[test]
    fn what_has_no_quantile_is_absent() {
        for confidence in [-0.1, 0.0, 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(student_quantile(confidence, 5.0), None);
            assert_eq!(normal_quantile(confidence), None);
            assert_eq!(f_quantile(confidence, 5.0, 5.0), None);
            assert_eq!(gamma_quantile(confidence, 5.0), None);
        }
        for freedom in [0.0, 0.5, -1.0, f64::NAN] {
            assert_eq!(student_quantile(0.95, freedom), None);
            assert_eq!(f_quantile(0.95, freedom, 5.0), None);
        }
        assert_eq!(chi_squared_share_above(1.0, 0.0), None);
        assert_eq!(chi_squared_share_above(f64::NAN, 1.0), None);
        assert_eq!(binomial_quantile(0.5, 10, 1.5), None);
    }

    const STUDENT: [(f64, f64, f64); 35] = [
        (0.5, 1.0, 1.0),
        (0.5, 2.0, 0.816496580927726),
        (0.5, 3.0, 0.764892328404345),
        (0.5, 7.0, 0.711141778081786),
        (0.5, 30.0, 0.682755693321293),
        (0.5, 399.0, 0.675105123919781),
        (0.5, 12345.0, 0.674509623939716),
        (0.9, 1.0, 6.31375151467504),
        (0.9, 2.0, 2.91998558035373),
        (0.9, 3.0, 2.35336343480182),
        (0.9, 7.0, 1.89457860509001),
        (0.9, 30.0, 1.69726088659396),
        (0.9, 399.0, 1.64868153355543),
        (0.9, 12345.0, 1.64497706836069),
        (0.95, 1.0, 12.7062047361747),
        (0.95, 2.0, 4.30265272974946),
        (0.95, 3.0, 3.18244630528371),
        (0.95, 7.0, 2.36462425159279),
        (0.95, 30.0, 2.04227245630124),
        (0.95, 399.0, 1.96592729592088),
        (0.95, 12345.0, 1.96015616760057),
        (0.99, 1.0, 63.6567411628716),
        (0.99, 2.0, 9.92484320091829),
        (0.99, 3.0, 5.84090930973336),
        (0.99, 7.0, 3.49948329735049),
        (0.99, 30.0, 2.74999565356723),
        (0.99, 399.0, 2.58820716403098),
        (0.99, 12345.0, 2.57622762378652),
        (0.999, 1.0, 636.61924876872),
        (0.999, 2.0, 31.5990545764436),
        (0.999, 3.0, 12.9239786366875),
        (0.999, 7.0, 5.40788252086173),
        (0.999, 30.0, 3.64595863504202),
        (0.999, 399.0, 3.31507701264513),
        (0.999, 12345.0, 3.29131505452983),
    ];

    const NORMAL: [(f64, f64); 7] = [
        (0.5, 0.674489750196082),
        (0.6827, 1.000021713323),
        (0.9, 1.64485362695147),
        (0.95, 1.95996398454005),
        (0.99, 2.5758293035489),
        (0.999, 3.29052673149189),
        (0.999999, 4.89163847567108),
    ];

    const NORMAL_SHARES: [(f64, f64); 7] = [
        (-8.0, 6.22096057427178e-16),
        (-4.5, 3.39767312473006e-6),
        (-2.0, 0.0227501319481792),
        (-1.0, 0.158655253931457),
        (0.0, 0.5),
        (0.25, 0.598706325682924),
        (3.0, 0.99865010196837),
    ];

    const FISHER: [(f64, f64, f64, f64); 18] = [
        (0.9, 1.0, 1.0, 161.447638797588),
        (0.9, 1.0, 9.0, 5.11735502919923),
        (0.9, 4.0, 4.0, 6.38823290869587),
        (0.9, 9.0, 1.0, 240.543254713263),
        (0.9, 9.0, 29.0, 2.22287383392996),
        (0.9, 99.0, 399.0, 1.28431561628081),
        (0.95, 1.0, 1.0, 647.789011477845),
        (0.95, 1.0, 9.0, 7.20928324752202),
        (0.95, 4.0, 4.0, 9.60452988472286),
        (0.95, 9.0, 1.0, 963.28457894676),
        (0.95, 9.0, 29.0, 2.59194963395551),
        (0.95, 99.0, 399.0, 1.3468423690282),
        (0.99, 1.0, 1.0, 16210.7227202198),
        (0.99, 1.0, 9.0, 13.6136085691842),
        (0.99, 4.0, 4.0, 23.1545014379014),
        (0.99, 9.0, 1.0, 24091.004108921),
        (0.99, 9.0, 29.0, 3.4832162652739),
        (0.99, 99.0, 399.0, 1.47627558952974),
    ];

    const CHI_SQUARED: [(f64, f64, f64); 8] = [
        (0.0, 1.0, 1.0),
        (0.5, 1.0, 0.479500122186953),
        (3.0, 1.0, 0.0832645166635504),
        (5.0, 2.0, 0.0820849986238988),
        (12.0, 7.0, 0.100558868508359),
        (80.0, 60.0, 0.0432286821517356),
        (300.0, 200.0, 5.92454033548392e-6),
        (40.0, 3.0, 1.06550903342559e-8),
    ];

    const GAMMA: [(f64, f64, f64); 20] = [
        (0.5, 1.0, std::f64::consts::LN_2),
        (0.5, 2.0, 1.67834699001666),
        (0.5, 8.0, 7.6692494425008),
        (0.5, 40.0, 39.6671650106891),
        (0.5, 500.0, 499.66670620169),
        (0.9, 1.0, std::f64::consts::LN_10),
        (0.9, 2.0, 3.88972016986743),
        (0.9, 8.0, 11.7709144615481),
        (0.9, 40.0, 48.2891018076335),
        (0.9, 500.0, 528.861950690807),
        (0.999, 1.0, 6.90775527898214),
        (0.999, 2.0, 9.23341347645159),
        (0.999, 8.0, 19.6261773953842),
        (0.999, 40.0, 62.4196120078824),
        (0.999, 500.0, 571.95854630984),
        (0.999999, 1.0, 13.8155105579355),
        (0.999999, 2.0, 16.6884207908294),
        (0.999999, 8.0, 29.1621950071571),
        (0.999999, 40.0, 77.5402611540288),
        (0.999999, 500.0, 613.576210593639),
    ];

    const BINOMIAL: [(u64, f64, u64, f64); 6] = [
        (10, 0.5, 1, 0.0107421875),
        (10, 0.5, 8, 0.9892578125),
        (100, 0.99, 97, 0.0793732022521803),
        (1000, 0.99, 985, 0.0824123195160887),
        (10000, 0.999, 9983, 0.026976517048224),
        (1000000, 0.5, 499000, 0.022804149932691),
    ];

    const DIGAMMA: [(f64, f64); 5] = [
        (0.5, -1.96351002602142),
        (1.0, -0.577215664901533),
        (2.5, 0.703156640645243),
        (10.0, 2.25175258906672),
        (200.0, 5.29581528321991),
    ];
}
