"""Which of many values is too large to be chance, where the whole fleet has one false-alarm rate.

All values are natural logarithms of ratios: 0.05 is 5 % slower. Arrays are one-dimensional, one element a host.
"""

from __future__ import annotations

from math import comb, sqrt
from statistics import NormalDist
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Number = TypeVar("Number", np.float64, np.bool_)

NORMAL = NormalDist()
MAD_TO_SD = 1.4826
# The error of a median is that of a mean times this, for normal values: sqrt(pi / 2).
MEDIAN_ERROR = 1.2533
FEWEST_HOSTS = 8
FEWEST_OF_A_VALUE = 5


def spread(values: Floats) -> float:
    """The standard deviation by the median absolute deviation: half of the values may be anything."""
    return float(MAD_TO_SD * np.median(np.abs(values - np.median(values)))) if len(values) else 0.0


def scatters(spreads: Floats, counts: Floats, reading: Floats) -> Floats:
    """The standard deviation of each host's figures from day to day.

    `spreads` are the hosts' own scatters, `counts` their days, `reading` the error of one day's figure by the
    program's interval. A host of few days has little to tell its own scatter from: it is drawn towards that of the
    fleet, as if it had five more days of that.
    """
    enough = counts >= 3
    common = float(np.median(spreads[enough] ** 2)) if enough.any() else 0.0
    own = np.where(enough, spreads**2, common)
    variance = (5 * common + np.maximum(counts - 1, 0) * own) / (5 + np.maximum(counts - 1, 0))
    found: Floats = np.sqrt(np.maximum(variance, reading**2))
    return found


def median_errors(spreads: Floats, counts: Floats) -> Floats:
    """The standard error of each host's median over its days."""
    return MEDIAN_ERROR * scatters(spreads, counts, np.zeros(len(counts))) / np.sqrt(counts)


def location(values: Floats, scales: Floats) -> Floats:
    """The middle of each row with what lies far out weighted down (Tukey's biweight, c = 4.685); nan is not there."""
    middle: Floats = np.nanmedian(values, axis=1)
    for _ in range(6):
        apart = (values - middle[:, None]) / (4.685 * scales[:, None])
        weights = np.where(np.abs(apart) < 1, (1 - apart**2) ** 2, 0.0)
        all_weights = weights.sum(axis=1)
        sums = np.nansum(weights * np.where(weights > 0, values, 0.0), axis=1)
        middle = np.where(all_weights > 0, sums / np.maximum(all_weights, 1e-12), middle)
    return middle


def slopes(days: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The trend a day of each row (Theil and Sen: the median of all pairs' slopes) and its standard error."""
    i, j = np.triu_indices(len(days), 1)
    trend = np.concatenate(
        [np.nanmedian((part[:, j] - part[:, i]) / (days[j] - days[i]), axis=1) for part in parts(values, len(i))]
    )
    rest = values - trend[:, None] * days
    there = np.where(np.isnan(values), np.nan, days)
    width = np.nansum((there - np.nanmean(there, axis=1, keepdims=True)) ** 2, axis=1)
    return trend, MEDIAN_ERROR * spreads(rest) / np.sqrt(width)


def parts(values: NDArray[Number], columns: int) -> list[NDArray[Number]]:
    """Rows in parts, so that as many columns of them fit the memory."""
    return np.array_split(values, max(1, len(values) * columns // 4_000_000))


def spreads(values: Floats) -> Floats:
    """`spread` of each row; nan is not there."""
    found: Floats = MAD_TO_SD * np.nanmedian(np.abs(values - np.nanmedian(values, axis=1, keepdims=True)), axis=1)
    return found


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
