"""Where a host's own figures change their level: the statistics of the program's `trend` (docs/method.md).

Rows are hosts, columns days, values natural logarithms; nan is not there. A level has three figures or more. A step
must be better than no step by 4 ln n + 4 in chi2, and by more than the steps that a sound fleet shows by chance.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .statistics import Floats, parts, scatters

FEWEST_OF_A_LEVEL = 3
FEWEST_OF_A_SERIES = 2 * FEWEST_OF_A_LEVEL
#: No figure is known better than this.
LEAST_ERROR = 0.001
# What a step costs in chi2, in ln n; by how much more it must be better.
_CHARGE, _CLEARLY_BETTER = 4.0, 4.0
# Errors from the median of its neighbourhood above which a figure stands alone, and hardly counts.
_FAR = 5.0
_MOST_DEPENDENCE = 0.8
# Simulated figures are at most so many deviations from their level.
_WILD = 10.0
# Simulated hosts without a step: at least so many, so many for each host, and at most so many figures.
_SIMULATED, _SIMULATED_A_HOST, _SIMULATED_FIGURES = 40_000, 100, 2_000_000
# Where simulated hosts are too few for the rate, deviations beyond them are taken for a power law of this degree.
_FAR_DEGREE = 5


class Step(NamedTuple):
    """A change of level: the first column after it, and the levels.

    As its place may be one off, what changed with it lies between the second column before and the second after.
    """

    column: int
    second_before: int
    second_after: int
    before: float
    after: float


class _Series(NamedTuple):
    """Figures without gaps, at the left of each row, with the weight of each."""

    values: Floats
    weights: Floats
    lengths: NDArray[np.int64]
    columns: NDArray[np.int64]
    scatter: Floats


class _Splits(NamedTuple):
    """The best single step of each row: how many figures are before it, by how much chi2 falls, and its kind.

    By chance a few figures together are high more often than many, and more often than a few are low: a step is held
    against chance steps of its kind.
    """

    at: NDArray[np.int64]
    gain: Floats
    kind: NDArray[np.int64]


_KINDS = 4
# A level of so few figures is one that chance may make.
_SHORT = 4


def _kind(at: int, lengths: NDArray[np.int64], is_up: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Up or down, and whether the high level is short."""
    high: NDArray[np.int64] = np.where(is_up, lengths - at, at)
    return 2 * is_up + (high <= _SHORT)


def find_steps(values: Floats, errors: Floats, false_alarms: float) -> list[list[Step]]:
    """Returns the steps of each host, in their order.

    `errors` are those of the figures by the program's intervals. `false_alarms`: the share of hosts without a step
    among those that show one (Benjamini and Hochberg 1995); where no host has one, the probability that any shows it.
    """
    hosts = len(values)
    found: list[list[Step]] = [[] for _ in range(hosts)]
    long = np.flatnonzero((~np.isnan(values)).sum(axis=1) >= FEWEST_OF_A_SERIES)
    if not len(long):
        return found
    series = _series(values[long], errors[long])
    splits = _best_splits(series.values, series.weights, series.lengths)
    quiet = _criterion(splits.gain, series.lengths) < _CLEARLY_BETTER
    dependence = _dependence(series, quiet)
    known_less = (1 + dependence) / (1 - dependence)
    criteria = _criterion(splits.gain / known_less, series.lengths)
    sound = _SoundCriteria(series, quiet)
    thresholds = np.array(
        [_discovered(criteria[splits.kind == k], sound, k, false_alarms / hosts / 2) for k in range(_KINDS)]
    )
    wild = np.sort(_distances(series, quiet))
    for row in np.flatnonzero(criteria >= thresholds[splits.kind]):
        count = int(series.lengths[row])
        own, weights = series.values[row, :count], series.weights[row, :count] / known_less
        starts = _settled(own, weights, _starts(own, weights, thresholds), thresholds)
        if not starts or _is_line(own, weights, starts):
            continue
        if hosts * _chance_of_wild_figures(own, weights, starts, wild) <= false_alarms:
            found[long[row]] = _steps(own, weights, starts, series.columns[row])
    return found


def _series(values: Floats, errors: Floats) -> _Series:
    there = ~np.isnan(values)
    columns = np.argsort(~there, axis=1, kind="stable")
    count = there.sum(axis=1)
    packed = np.take_along_axis(values, columns, axis=1)
    reading = np.nan_to_num(np.nanmedian(np.where(there, errors, np.nan), axis=1))
    scatter = np.maximum(scatters(_neighbour_spreads(packed), count.astype(float), reading), LEAST_ERROR)
    return _Series(packed, _weights(packed, scatter), count, columns, scatter)


def _neighbour_spreads(values: Floats) -> Floats:
    """The standard deviation of each row by differences of neighbours, of which a step is but one."""
    differences = np.diff(values, axis=1)
    found: Floats = 1.4826 * np.nanmedian(np.abs(differences), axis=1) / np.sqrt(2)
    return found


def _weights(values: Floats, scatter: Floats) -> Floats:
    """1 / error^2 of each figure, 0 where there is none; one far from those on both sides hardly counts."""
    padded = np.pad(values, ((0, 0), (2, 2)), constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 5, axis=1)
    with np.errstate(all="ignore"):
        there = ~np.isnan(values)
        columns = 5 * values.shape[1]
        middles = np.concatenate(
            [_middles(*one) for one in zip(parts(windows, columns), parts(there, columns), strict=True)]
        )
        far = np.abs(values - middles)
        error = np.where(far > _FAR * scatter[:, None], np.hypot(scatter[:, None], far), scatter[:, None])
    return np.where(there, error**-2, 0.0)


def _middles(windows: Floats, there: NDArray[np.bool_]) -> Floats:
    found = np.full(there.shape, np.nan)
    found[there] = np.nanmedian(windows[there], axis=1)
    return found


def _best_splits(values: Floats, weights: Floats, count: NDArray[np.int64]) -> _Splits:
    best_at, best_kind, best_gain = np.zeros(len(values), int), np.zeros(len(values), int), np.zeros(len(values))
    filled = np.where(weights > 0, values, 0.0)
    weight, total = np.cumsum(weights, axis=1), np.cumsum(weights * filled, axis=1)
    for at in range(FEWEST_OF_A_LEVEL, values.shape[1] - FEWEST_OF_A_LEVEL + 1):
        with np.errstate(all="ignore"):
            before, after = weight[:, at - 1], weight[:, -1] - weight[:, at - 1]
            low, high = total[:, at - 1] / before, (total[:, -1] - total[:, at - 1]) / after
            gain = (high - low) ** 2 * before * after / (before + after)
        is_better = (gain > best_gain) & (at <= count - FEWEST_OF_A_LEVEL)
        for row in np.flatnonzero(is_better & (_criterion(gain, count) >= _CLEARLY_BETTER)):
            is_better[row] = _are_apart(values[row, : count[row]], at, low[row], high[row])
        best_at[is_better], best_gain[is_better] = at, gain[is_better]
        best_kind[is_better] = _kind(at, count, high > low)[is_better]
    return _Splits(best_at, best_gain, best_kind)


def _are_apart(values: Floats, at: int, low: float, high: float) -> bool:
    """Whether each level has enough figures that are nearer to it than to the other: two far ones are no level."""
    is_after = np.abs(values - high) < np.abs(values - low)
    enough: bool = (~is_after[:at]).sum() >= FEWEST_OF_A_LEVEL and is_after[at:].sum() >= FEWEST_OF_A_LEVEL
    return enough


def _criterion(gain: Floats, count: NDArray[np.int64]) -> Floats:
    found: Floats = gain - _CHARGE * np.log(np.maximum(count, 2))
    return found


def _residuals(series: _Series, rows: NDArray[np.bool_]) -> Floats:
    """Distances from their host's median, in its scatter."""
    middle = np.nanmedian(series.values[rows], axis=1, keepdims=True)
    factor = np.sqrt(series.lengths[rows] / np.maximum(series.lengths[rows] - 1, 1))
    found: Floats = (series.values[rows] - middle) / series.scatter[rows, None] * factor[:, None]
    return found


def _dependence(series: _Series, quiet: NDArray[np.bool_]) -> float:
    """Correlation of neighbours, from 0 to 0.8, of the hosts without a step."""
    if not quiet.any():
        return 0.0
    residuals = np.clip(_residuals(series, quiet), -3, 3)
    squares, products = np.nansum(residuals**2), np.nansum(residuals[:, 1:] * residuals[:, :-1])
    found = float(products / squares) if squares > 0 else 0.0
    # About their own middle a few seem to depend on each other less than they do (Kendall 1954).
    hidden = (1 + 3 * found) / float(np.median(series.lengths))
    return min(max(found + hidden, 0.0), _MOST_DEPENDENCE)


class _SoundCriteria:
    """The criterion of hosts without a step, simulated by the fleet's own scatter."""

    def __init__(self, series: _Series, quiet: NDArray[np.bool_]) -> None:
        columns = series.values.shape[1]
        many = max(_SIMULATED, _SIMULATED_A_HOST * len(series.lengths))
        self.many = max(1000, min(many, _SIMULATED_FIGURES // columns))
        self.charge = _CHARGE * float(np.log(np.median(series.lengths)))
        pool = _residuals(series, quiet)
        # Wilder figures are counted by `_chance_of_wild_figures`.
        pool = np.clip(pool[~np.isnan(pool)], -_WILD, _WILD)
        random = np.random.default_rng(1)
        count = random.choice(series.lengths, self.many)
        values = random.choice(pool if len(pool) else np.zeros(1), (self.many, columns))
        values[np.arange(columns) >= count[:, None]] = np.nan
        scatter = scatters(_neighbour_spreads(values), count.astype(float), np.zeros(self.many))
        scatter = np.maximum(scatter, LEAST_ERROR)
        splits = _best_splits(values, _weights(values, scatter), count)
        criteria = _criterion(splits.gain, count)
        self.ranked = [np.sort(criteria[splits.kind == kind])[::-1] for kind in range(_KINDS)]

    def exceeded(self, kind: int, chance: float) -> float:
        """Returns what a chance step of this kind exceeds with this chance."""
        expected, ranked = chance * self.many, self.ranked[kind]
        if len(ranked) < 5:
            return 0.0
        if expected >= 5:
            return float(ranked[min(int(expected), len(ranked) - 1)])
        deviations = np.sqrt(max(float(ranked[4]) + self.charge, 0.0)) * (5 / expected) ** (1 / _FAR_DEGREE)
        return float(deviations**2 - self.charge)


def _discovered(criteria: Floats, sound: _SoundCriteria, kind: int, chance: float) -> float:
    """The least criterion of a step of a kind, by how many hosts reach it: `chance` is that of the first."""
    ranked = np.sort(criteria)[::-1]
    for number in range(int((ranked >= _CLEARLY_BETTER).sum()), 0, -1):
        threshold = max(sound.exceeded(kind, chance * number), _CLEARLY_BETTER)
        if ranked[number - 1] >= threshold:
            return threshold
    return max(sound.exceeded(kind, chance), _CLEARLY_BETTER)


def _starts(values: Floats, weights: Floats, thresholds: Floats) -> list[int]:
    """The first figure of each level but the first: steps, and the steps between them."""
    start = _best_start(values, weights, thresholds)
    if start is None:
        return []
    further = [start + one for one in _starts(values[start:], weights[start:], thresholds)]
    return [*_starts(values[:start], weights[:start], thresholds), start, *further]


def _best_start(values: Floats, weights: Floats, thresholds: Floats) -> int | None:
    count = np.array([len(values)])
    if len(values) < FEWEST_OF_A_SERIES:
        return None
    split = _best_splits(values[None, :], weights[None, :], count)
    return int(split.at[0]) if _criterion(split.gain, count)[0] >= thresholds[split.kind[0]] else None


def _settled(values: Floats, weights: Floats, starts: list[int], thresholds: Floats) -> list[int]:
    """Each start looked for again between its neighbours; one that is not found again is none."""
    at = 0
    while at < len(starts):
        first = starts[at - 1] if at else 0
        end = starts[at + 1] if at + 1 < len(starts) else len(values)
        start = _best_start(values[first:end], weights[first:end], thresholds)
        if start is None:
            del starts[at]
        else:
            starts[at] = first + start
            at += 1
    return starts


def _levels(values: Floats, weights: Floats, starts: list[int]) -> Floats:
    edges = [0, *starts, len(values)]
    return np.array([np.average(values[a:b], weights=weights[a:b]) for a, b in itertools.pairwise(edges)])


def _distances(series: _Series, quiet: NDArray[np.bool_]) -> Floats:
    """All distances of figures from their host's median, of hosts without a step."""
    values = series.values[quiet]
    if not len(values):
        return np.zeros(0)
    found = values - np.nanmedian(values, axis=1, keepdims=True)
    return np.asarray(found[~np.isnan(found)], float)


def _chance_of_wild_figures(values: Floats, weights: Floats, starts: list[int], wild: Floats) -> float:
    """How probable it is that one of the steps is made by figures that are each so far by chance, one after the other.

    `wild` are the fleet's distances in ascending order. A simulation of some ten thousand hosts has none of these.
    """
    levels, edges = _levels(values, weights, starts), [0, *starts, len(values)]
    most = 0.0
    for i, (before, after) in enumerate(itertools.pairwise(levels)):
        half = abs(after - before) / 2
        above = len(wild) - np.searchsorted(wild, half) + 1
        below = np.searchsorted(wild, -half, side="right") + 1
        lengths = edges[i + 1] - edges[i], edges[i + 2] - edges[i + 1]
        low, high = lengths if after > before else lengths[::-1]
        chance = (above / (len(wild) + 2)) ** high + (below / (len(wild) + 2)) ** low
        most = max(most, float(len(values) * chance))
    return most


def _is_line(values: Floats, weights: Floats, starts: list[int]) -> bool:
    """Whether a steady trend explains the figures clearly better than these steps."""
    at = np.arange(len(values))
    levels = _levels(values, weights, starts)[np.searchsorted(starts, at, side="right")]
    slope, middle = np.polyfit(at, values, 1, w=np.sqrt(weights))
    of_steps, of_line = (float(np.sum(weights * (values - fit) ** 2)) for fit in (levels, slope * at + middle))
    more = _CHARGE * (len(starts) - 1) * float(np.log(len(values)))
    return of_line + _CLEARLY_BETTER < of_steps + more


def _steps(values: Floats, weights: Floats, starts: list[int], columns: NDArray[np.int64]) -> list[Step]:
    levels = _levels(values, weights, starts)
    edges = [0, *starts, len(values)]
    found = []
    for i, start in enumerate(starts):
        second_before, second_after = max(start - 2, edges[i]), min(start + 1, edges[i + 2] - 1)
        place, old, new = (int(columns[at]) for at in (start, second_before, second_after))
        found.append(Step(place, old, new, float(levels[i]), float(levels[i + 1])))
    return found
