"""Which of many values is too large to be chance, where the whole fleet has one false-alarm rate.

All values are natural logarithms of ratios: 0.05 is 5 % slower. Arrays are one-dimensional, one element a host.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

NORMAL = NormalDist()
MAD_TO_SD = 1.4826
# The error of a median is that of a mean times this, for normal values: sqrt(pi / 2).
MEDIAN_ERROR = 1.2533
# Of an exponential's excesses the median has this share of the mean's information: ln(2)^2.
MEDIAN_INFORMATION = 0.48
FEWEST_HOSTS = 8
FEWEST_OF_A_VALUE = 5


def spread(values: Floats) -> float:
    """The standard deviation by the median absolute deviation: half of the values may be anything."""
    return float(MAD_TO_SD * np.median(np.abs(values - np.median(values)))) if len(values) else 0.0


def median_errors(spreads: Floats, counts: Floats, reading: Floats) -> Floats:
    """The standard error of each host's median over its days.

    `spreads` are the hosts' own scatters from day to day, `counts` their days, `reading` the error of one day's
    figure by the program's interval. A host of few days has little to tell its own scatter from: it is drawn
    towards that of the fleet, as if it had five more days of that.
    """
    enough = counts >= 3
    common = float(np.median(spreads[enough] ** 2)) if enough.any() else 0.0
    own = np.where(enough, spreads**2, common)
    variance = (5 * common + np.maximum(counts - 1, 0) * own) / (5 + np.maximum(counts - 1, 0))
    errors: Floats = MEDIAN_ERROR * np.sqrt(np.maximum(variance, reading**2) / counts)
    return errors


@dataclass(frozen=True)
class Tail:
    """How likely a standardised value of one sound host is above x: P(x) = share (1 + (x - start) / (n scale))^-n.

    Above its `start` the tail is taken for exponential, as heavy as a power law of the ratios themselves: lighter
    tails only lose some power. `n` is what is known of `scale`; a small group has a heavier tail for it.
    """

    share: float
    start: float
    scale: float
    n: float

    def probability(self, x: Floats) -> Floats:
        above = 1 + np.maximum(x - self.start, 0) / (self.n * self.scale)
        chance: Floats = self.share * above**-self.n
        return np.where(x < self.start, 1.0, chance)

    def threshold(self, probability: float) -> float:
        """The x that a sound host exceeds with this probability."""
        ratio: float = max(self.share / probability, 1.0) ** (1 / self.n)
        return self.start + self.n * self.scale * (ratio - 1)


@dataclass(frozen=True)
class Excess:
    """Of each host: `value` above the group's median, the scale it is seen against, and the probability of as much."""

    value: Floats
    scale: Floats
    probability: Floats
    tail: Tail


def tail_of(standardised: Floats) -> Tail:
    """The upper tail of a group, by its largest tenth; half of these may be faulty. Small groups have more in it."""
    count = len(standardised)
    top = max(count // 10, min(count // 4, 40), min(count // 2, 10))
    ordered = np.sort(standardised)
    start, share = float(ordered[count - top - 1]), top / count
    scale = float(np.median(ordered[count - top :] - start)) / log(2)
    # Never below a normal tail's: a gap among the largest values is chance, not knowledge.
    normal = (NORMAL.inv_cdf(1 - share / 2) - NORMAL.inv_cdf(1 - share)) / log(2)
    return Tail(share, max(start, NORMAL.inv_cdf(1 - share)), max(scale, normal), MEDIAN_INFORMATION * top)


def excess(values: Floats, errors: Floats) -> Excess | None:
    """How far each host of a group is above it; None below FEWEST_HOSTS hosts, which cannot tell who is odd."""
    if len(values) < FEWEST_HOSTS:
        return None
    between = sqrt(max(spread(values) ** 2 - float(np.median(errors**2)), 0.0))
    scale = np.maximum(np.sqrt(between**2 + errors**2), 1e-4)
    above = values - np.median(values)
    tail = tail_of(above / scale)
    return Excess(above, scale, tail.probability(above / scale), tail)


def slope(days: Floats, values: Floats) -> tuple[float, float]:
    """The trend a day (Theil and Sen: the median of all pairs' slopes) and its standard error; at least 3 days."""
    i, j = np.triu_indices(len(days), 1)
    trend = float(np.median((values[j] - values[i]) / (days[j] - days[i])))
    rest = spread(values - trend * days)
    return trend, MEDIAN_ERROR * rest / sqrt(float(np.sum((days - days.mean()) ** 2)))


def slower(values: Floats, of: Mask) -> tuple[float, float]:
    """By how much hosts `of` are above the others in the median, and how probable their ranks are by chance.

    One-sided rank-sum test (Wilcoxon), normal approximation.
    """
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(1, len(values) + 1)
    n, m = int(of.sum()), int((~of).sum())
    z = (float(ranks[of].sum()) - n * (n + m + 1) / 2 - 0.5) / sqrt(n * m * (n + m + 1) / 12)
    return float(np.median(values[of]) - np.median(values[~of])), NORMAL.cdf(-z)


def median_interval(values: Floats, confidence: float) -> tuple[float, float]:
    """An interval of the median that holds whatever the distribution is: two order statistics (binomial).

    Infinite where there are too few values for this confidence.
    """
    ordered, count = np.sort(values), len(values)
    tail, below = 0.0, 0
    if count > 1000:
        below = int(count / 2 - NORMAL.inv_cdf((1 + confidence) / 2) * sqrt(count) / 2)
    else:
        while below < count // 2 and (tail := tail + comb(count, below) / 2.0**count) <= (1 - confidence) / 2:
            below += 1
    if below == 0:
        return -np.inf, np.inf
    return float(ordered[below - 1]), float(ordered[count - below])
