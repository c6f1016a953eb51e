"""How far a sound host may be from its group, learned from the fleet itself (docs/fleet.md, "How hosts are judged").

A host's value is its own level and what is left of the scatter from day to day. Levels have Tukey's g-and-h
distribution, with g for skewness and h for tails: (exp(gZ) - 1) / g * exp(h Z^2 / 2) of a normal Z (Tukey 1977;
Hoaglin 1985). It is fitted to hosts below the limit alone, so that slow hosts have no say. All values are logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import comb, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .statistics import NORMAL, Floats, spread

# Of Z; beyond it a normal value is less probable than one in 10^15.
_Z = np.linspace(-8, 8, 801)
_ABOVE_Z = np.array([NORMAL.cdf(-z) for z in _Z])
# What is tried, and how probable it was before: small fleets know little of their tails. t of 4 degrees has h = 0.15.
SKEWS, TAILS = np.linspace(-0.2, 0.8, 6), np.linspace(0, 0.3, 7)
SKEW, TAIL = (0.1, 0.25), (0.12, 0.08)
_SCALES = np.linspace(0.7, 1.12, 8)
_IQR = 1.349  # of a normal distribution, in its standard deviations
# A value is told of by hosts up to this many of the fleet's deviations, or up to the limit.
_REACH = 3.5
FLEETS = 40
_KINDS = 4
# No figure is known better than this: hosts that are nearer to each other are alike.
_LEAST_IQR = 0.001
# Cells of the grid that levels are fitted on. What a fit takes goes with them, whatever hosts measure.
_CELLS = 4096


# Few hosts tell a tail so far out. Beyond what so many hosts should exceed (or this share of a small fleet) a safe tail
# is a power law, or the fitted one where that is longer. Student's t of n degrees has a law of degree n.
FAR_TAIL_HOSTS, FAR_TAIL_SHARE, FAR_TAIL_DEGREE = 5, 1 / 8, 3
# Fits that are less probable than this, beside the best one, are left out of their mean.
LEAST_WEIGHT = 1e-4


class Noise(NamedTuple):
    """What is left of the scatter from day to day in a host's value: a sample of it for each kind of host."""

    samples: list[Floats]
    #: Which of the samples each host has.
    kind: NDArray[np.int64]

    @staticmethod
    def normal(errors: Floats) -> Noise:
        """Of given standard errors, in steps of a half."""
        steps, kind = np.unique(np.round(np.log(np.maximum(errors, 1e-5)) / np.log(1.5)), return_inverse=True)
        z = np.array([NORMAL.inv_cdf((i + 0.5) / 4000) for i in range(4000)])
        return Noise([z * 1.5**step for step in steps], kind)

    def of(self, hosts: NDArray[np.int64]) -> Noise:
        return Noise(self.samples, self.kind[hosts])


class LevelFit(NamedTuple):
    """A g-and-h distribution of levels, and how probable it is by the hosts and by what was expected before."""

    skew: float
    tail: float
    scale: float
    weight: float

    def shares_above(self, values: Floats) -> Floats:
        shares: Floats = np.interp(values / self.scale, _shape(self.skew, self.tail), _ABOVE_Z, left=1, right=0)
        return shares


@dataclass
class Tail:
    """The distribution of sound hosts.

    `grid` has values in steps, `above[k]` the share of sound hosts of kind k above each, by the most probable fit:
    the first of `fits`.
    """

    middle: float
    grid: Floats
    above: list[Floats]
    hosts: int
    fits: list[LevelFit]
    noise: Noise

    @cached_property
    def expected(self) -> list[Floats]:
        """Like `above`, by the mean over all fits.

        That of a named host's probability by chance is then right on average, which is what the rate of false
        discoveries needs. The best fit alone is as often too short as too long, and too short ones name more hosts.
        """
        sound = sum((fit.weight * fit.shares_above(self.grid) for fit in self.fits), np.zeros(len(self.grid)))
        return _with_noise(sound, self.noise, self._step())

    def expected_probability(self, values: Floats, kind: NDArray[np.int64]) -> Floats:
        """Returns how probable it is of a sound host of each kind to be as far above as each value."""
        return self._interpolate(self.expected, values, kind)

    def safe_probability(self, values: Floats, kind: NDArray[np.int64]) -> Floats:
        """Returns how probable that is at most: beyond what the fleet's hosts tell by a law of long tails."""
        return self._interpolate([self._with_far_tail(above) for above in self.above], values, kind)

    def share_above(self, values: Floats, kind: NDArray[np.int64]) -> Floats:
        """Returns the fitted share of sound hosts of each kind that are above each value."""
        return self._interpolate(self.above, values, kind)

    def _step(self) -> float:
        return float(self.grid[1] - self.grid[0])

    def _interpolate(self, shares: list[Floats], values: Floats, kind: NDArray[np.int64]) -> Floats:
        found = np.empty(len(values))
        for k, above in enumerate(shares):
            hosts = kind == k
            found[hosts] = np.interp(values[hosts] - self.middle, self.grid, above)
        return found

    def _with_far_tail(self, above: Floats) -> Floats:
        far = above * self.hosts < min(FAR_TAIL_HOSTS, self.hosts * FAR_TAIL_SHARE)
        if not far.any():
            return above
        first = int(np.argmax(far))
        values = self.grid + self.middle
        edge = max(values[first], self._step())
        power = above[first] * (np.maximum(values, edge) / edge) ** -FAR_TAIL_DEGREE
        return np.where(np.arange(len(above)) >= first, np.maximum(above, power), above)

    def values(self, probability: float) -> Floats:
        """Returns, of each kind, the value that a sound host exceeds with this probability alone."""
        found = []
        for above in self.expected:
            below = above <= probability
            found.append(
                self.middle + self.grid[0] + self._step() * float(np.argmax(below) if below.any() else len(below))
            )
        return np.array(found)

    def drawn(self, random: np.random.Generator, noise: Noise) -> Floats:
        """The values of one simulated fleet without a slow host."""
        best = self.fits[0]
        values: Floats = np.interp(random.normal(size=len(noise.kind)), _Z, _shape(best.skew, best.tail)) * best.scale
        for k, sample in enumerate(noise.samples):
            of = noise.kind == k
            values[of] += random.choice(sample, int(of.sum()))
        return values


@cache
def _shape(skew: float, tail: float) -> Floats:
    """g-and-h at _Z; its far lower end may turn back, and is kept from it."""
    bent = _Z if abs(skew) < 1e-9 else np.expm1(skew * _Z) / skew
    shape: Floats = np.maximum.accumulate(bent * np.exp(tail * _Z * _Z / 2)) + 1e-12 * np.arange(len(_Z))
    return shape


def tail_of(values: Floats, noise: Noise, limit: float) -> Tail:
    """The most probable distribution of sound hosts. `values` are above their group, `limit` is what is called slow."""
    low, middle, high = _quartiles(values, limit)
    iqr = max(high - low, _LEAST_IQR)
    reach = max(limit, _REACH * iqr / _IQR)
    step = max(iqr / 12, 4 * reach / _CELLS)
    # The commonest kinds of hosts tell what levels are like; the others follow.
    common = np.argsort(-np.bincount(noise.kind, minlength=len(noise.samples)), kind="stable")[:_KINDS]
    kernels = [_kernel(np.clip(noise.samples[k], -2 * reach, 2 * reach), step) for k in common]
    # Hosts that are further below than this tell nothing of the upper tail.
    lowest = max(min(values.min() - middle, -4 * iqr), -2 * reach)
    first = int(np.floor(lowest / step)) - 1
    edges = (np.arange(first, int(np.ceil(reach / step)) + 1) - 0.5) * step
    # Where a wide kernel brings hosts back from beyond the edge.
    beyond = edges[-1] + step * np.arange(1, max(len(k) for k in kernels) // 2 + 2)
    wide = np.concatenate([edges, beyond])
    counts = [np.histogram(values[noise.kind == k] - middle, edges)[0] for k in common]
    own = kernels[0]
    spread = float(np.sqrt(np.sum(own * (np.arange(len(own)) - len(own) // 2) ** 2))) * step
    core = sqrt(max(iqr**2 - (_IQR * min(spread, iqr)) ** 2, (0.3 * iqr) ** 2)) / _IQR
    skews, tails, scales = (one.ravel() for one in np.meshgrid(SKEWS, TAILS, _SCALES * core, indexing="ij"))
    likely = -(((skews - SKEW[0]) / SKEW[1]) ** 2 + ((tails - TAIL[0]) / TAIL[1]) ** 2) / 2
    apart = wide / (_SCALES * core)[:, None]
    for at in range(0, len(likely), len(_SCALES)):
        same_shape = slice(at, at + len(_SCALES))
        cumulated = np.interp(apart, _shape(float(skews[at]), float(tails[at])), _ABOVE_Z, left=1, right=0)
        likely[same_shape] += _likelihoods(-np.diff(cumulated), kernels, counts)
    weights = np.exp(likely - likely.max())
    order = np.argsort(-weights, kind="stable")
    order = order[weights[order] >= LEAST_WEIGHT]
    weights /= weights[order].sum()
    fits = [LevelFit(*map(float, (skews[i], tails[i], scales[i], weights[i]))) for i in order]
    most = max(float(values.max()), 1.0)
    step = max(step, (most + 20 * iqr) / (4 * _CELLS))
    grid = (np.arange(int(-20 * iqr / step), int(most / step) + 2) - 0.5) * step
    above = _with_noise(fits[0].shares_above(grid), noise, step)
    return Tail(float(middle), grid, above, len(values), fits, noise)


def _with_noise(sound: Floats, noise: Noise, step: float) -> list[Floats]:
    """Returns, of each kind, the share of hosts above each value of a grid, by that of their levels."""
    above = []
    for sample in noise.samples:
        shares = _smeared(-np.diff(sound)[None, :], _kernel(sample, step))[0]
        above.append(np.append(np.cumsum(shares[::-1])[::-1], 0.0) + sound[-1])
    return above


def _likelihoods(shares: Floats, kernels: list[Floats], counts: list[NDArray[np.int64]]) -> Floats:
    """The logarithm of how probable the counts of hosts are by each row of shares, up to a constant."""
    found = np.zeros(len(shares))
    for count, kernel in zip(counts, kernels, strict=True):
        seen = _smeared(shares, kernel)[:, : len(count)]
        there = count > 0
        found += np.log(np.maximum(seen[:, there] / seen.sum(axis=1, keepdims=True), 1e-9)) @ count[there]
    return found


def _quartiles(values: Floats, limit: float) -> Floats:
    """Of the hosts that are not plainly slow."""
    slow = float(np.mean(values - np.median(values) > max(limit, 5 * spread(values))))
    return np.quantile(values, np.array([0.25, 0.5, 0.75]) * (1 - slow))


def _kernel(sample: Floats, step: float) -> Floats:
    half = int(np.ceil(min(float(np.abs(sample).max()), 0.5) / step))
    counts, _ = np.histogram(sample, (np.arange(-half, half + 2) - 0.5) * step)
    return np.asarray(counts / max(counts.sum(), 1), float)


def _smeared(shares: Floats, kernel: Floats) -> Floats:
    """Shares of values by shares of levels (rows): a convolution, whose memory goes with their length alone."""
    columns, half = shares.shape[1], len(kernel) // 2
    length = 1 << (columns + len(kernel) - 2).bit_length()
    product = np.fft.rfft(shares, length, axis=1) * np.fft.rfft(kernel, length)
    # Rounding leaves less than nothing where there is nothing.
    return np.maximum(np.fft.irfft(product, length, axis=1)[:, half : half + columns], 0.0)


def certainty(tail: Tail, noise: Noise, limit: float, false_alarms: float) -> float:
    """How improbable a host must be to be called slow for certain: below the least probable one of so many fleets.

    They are simulated, with this fleet's hosts and tails and nobody slow, and judged as it is judged.
    """
    random, least = np.random.default_rng(1), []
    for _ in range(FLEETS):
        values = tail.drawn(random, noise)
        far = values > limit
        again = tail_of(values, noise, limit) if far.any() else tail
        chances = again.safe_probability(values[far], noise.kind[far])
        least.append(float(chances.min()) if far.any() else 1.0)
    rank = int(false_alarms * FLEETS)
    return min(sorted(least)[rank], false_alarms / tail.hosts)


def days_needed(days: int, share: float, hosts: int, allowed: float) -> int:
    """On how many days a host must be slow, where a `share` of runs is by chance: at most `allowed` hosts by chance."""
    for needed in range(1, days + 1):
        chance = sum(comb(days, k) * share**k * (1 - share) ** (days - k) for k in range(needed, days + 1))
        if hosts * chance <= allowed:
            return needed
    return days + 1


def discoveries(chances: Floats, hosts: int, rate: float) -> int:
    """How many of the least probable hosts can be named, of which at most a share `rate` by chance.

    Benjamini and Hochberg 1995.
    """
    ranked = np.sort(chances) * hosts / np.arange(1, len(chances) + 1)
    return int(np.flatnonzero(ranked <= rate)[-1]) + 1 if (ranked <= rate).any() else 0
