"""Known answers, and false alarms counted."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log

import pytest

pytest.importorskip("numpy")
import numpy as np

from switchcost.fleet.statistics import (
    FEWEST_HOSTS,
    Floats,
    Tail,
    excess,
    median_errors,
    median_interval,
    slope,
    slower,
    spread,
    tail_of,
)


def test_spread_is_a_standard_deviation_and_half_of_the_values_may_be_anything() -> None:
    assert spread(np.array([1.0, 2.0, 3.0, 4.0, 5.0])) == pytest.approx(1.4826)
    values = np.random.default_rng(1).normal(0, 2, 10_000)
    assert spread(values) == pytest.approx(2, rel=0.05)
    assert spread(np.concatenate([values, np.full(3_000, 1e9)])) < 4


def test_median_interval_is_two_order_statistics() -> None:
    # Conover, Practical Nonparametric Statistics, binomial table: n = 10, 2nd and 9th have 97.9 %.
    assert median_interval(np.arange(1.0, 11.0), 0.95) == (2.0, 9.0)
    assert median_interval(np.arange(1.0, 17.0), 0.95) == (4.0, 13.0)
    assert median_interval(np.arange(1.0, 6.0), 0.95) == (-np.inf, np.inf)
    low, high = median_interval(np.arange(1.0, 2002.0), 0.95)
    assert (low, high) == (956.0, 1046.0)


def test_slope_of_a_line_with_one_wild_day() -> None:
    days = np.arange(10.0)
    values = 0.5 * days
    values[4] = 100.0
    trend, error = slope(days, values)
    assert trend == pytest.approx(0.5) and error == pytest.approx(0)


def test_ranks() -> None:
    values = np.arange(20.0)
    of = values >= 15
    shift, chance = slower(values, of)
    # Ranks 16 to 20: sum 90, expected 52.5, deviation sqrt(5 * 15 * 21 / 12) = 11.46; z = 37 / 11.46.
    assert shift == 10.0 and chance == pytest.approx(0.000622, rel=0.01)


def test_an_exponential_tail_is_its_own() -> None:
    tail = tail_of(np.random.default_rng(2).exponential(1, 100_000))
    assert tail.probability(np.array([log(1e6)]))[0] == pytest.approx(1e-6, rel=0.6)
    assert tail.probability(np.array([tail.threshold(1e-6)]))[0] == pytest.approx(1e-6)
    assert Tail(0.1, 2, 1, 10).threshold(0.5) == 2


def test_few_days_do_not_make_an_error_small() -> None:
    errors = median_errors(np.array([0.01, 0.01, 0.0, 0.0]), np.array([30.0, 30.0, 3.0, 1.0]), np.zeros(4))
    assert errors[2] > errors[0] and errors[3] > errors[2]


def test_too_few_hosts_have_no_odd_one() -> None:
    values = np.zeros(FEWEST_HOSTS - 1)
    assert excess(values, values) is None


@pytest.mark.parametrize("count", [10, 30, 100, 1000])
@pytest.mark.parametrize("shape", ["normal", "exponential", "student 5"])
def test_false_alarms_of_a_fleet(count: int, shape: str) -> None:
    """In at most one fleet of twenty a sound host is called odd; of tails heavier than exponential in one of four."""
    random = np.random.default_rng(3)
    draw: dict[str, Callable[[], Floats]] = {
        "normal": lambda: random.normal(size=count),
        "exponential": lambda: random.exponential(size=count),
        "student 5": lambda: random.standard_t(5, count),
    }
    alarms = 0
    for _ in range(400):
        seen = excess(0.01 * draw[shape](), np.full(count, 0.001))
        assert seen is not None
        alarms += bool((seen.probability * count <= 0.05).any())
    print(f"{shape}, {count} hosts: {alarms} of 400")
    assert alarms <= (28 if shape != "student 5" else 100)


def test_one_slow_host_among_ten_and_five_percent_among_a_thousand_are_found() -> None:
    random = np.random.default_rng(4)
    for count, slow in ((10, 1), (1000, 40)):
        values = random.normal(0, 0.005, count)
        values[:slow] += log(1.3)
        seen = excess(values, np.full(count, 0.002))
        assert seen is not None
        found = seen.probability * count <= 0.05
        assert found[:slow].all() and not found[slow:].any()
        assert exp(float(np.median(seen.value[:slow]))) == pytest.approx(1.3, rel=0.02)
