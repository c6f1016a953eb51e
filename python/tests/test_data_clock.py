"""A slower kernel is told from a slower machine: costs at one clock, and the clock as a figure of its own."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("duckdb")
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from test_data_analyse import START, Level, fill

from switchcost.fleet import metrics, report, rollout
from switchcost.fleet.dataset import Dataset
from switchcost.fleet.judge import analyse
from switchcost.fleet.rows import SCHEMAS

UNKNOWN: dict[str, object] = {"elasticity": None, "elasticity_error": None}


RACKS = {f"n{i:03}": {"rack": f"r{i // 10}"} for i in range(60)}


def clock(share: Level) -> Level:
    """Of 3 GHz this share."""
    return lambda i, day: 3 * share(i, day) * float(np.random.default_rng([i, day]).normal(1, 0.001))


def low(host: int, by: float = 0.93) -> Level:
    return clock(lambda i, _: by if i == host else 1)


def wandering(i: int, day: int) -> float:
    """By 5 % around 3 GHz, from host to host and day to day."""
    return float(3 * np.random.default_rng([i, day]).uniform(0.95, 1.05))


def figures(dataset: Dataset, rows: list[dict[str, object]], columns: str) -> list[tuple[float, ...]]:
    """Cases of hosts h0, h1, ... as the view has them."""
    key = [{"host": f"h{i}", "run": "r", "started": 0} for i in range(len(rows))]
    machines = [{**k, "cpu_model": r.pop("cpu_model", "EPYC")} for k, r in zip(key, rows, strict=True)]
    case = {"case": 0, "experiment": "ring", "estimate": 100.0, "low": 99.0, "high": 101.0}
    cases = [{**k, **case, **r} for k, r in zip(key, rows, strict=True)]
    for table, of in (("machines", machines), ("cases", cases)):
        dataset.write(table, str(START), pa.Table.from_pylist(of, schema=SCHEMAS[table]))
    with dataset.connect() as connection:
        return connection.execute(f"SELECT {columns} FROM figures ORDER BY host").fetchall()


def test_a_figure_is_brought_to_the_median_clock_by_its_own_elasticity(dataset: Dataset) -> None:
    known = {"elasticity_error": 0.05}
    rows: list[dict[str, object]] = [
        {"clock_ghz": 3.0, "elasticity": 1.0, **known},
        {"clock_ghz": 2.7, "elasticity": 1.0, **known},
        {"clock_ghz": 3.3, "elasticity": 0.5, **known},
        {"clock_ghz": None, "elasticity": 1.0, **known},
        {"clock_ghz": 1.0, "elasticity": 1.0, **known, "cpu_model": "Grace"},
    ]
    found = figures(dataset, rows, "estimate, low, high, as_measured")
    assert [f[0] for f in found] == pytest.approx([100, 90, 100 * 1.1**0.5, 100, 100])
    # The error of the elasticity is added outward.
    assert found[1][1:] == pytest.approx((99 * 0.9 * 0.9**0.098, 101 * 0.9 * 0.9**-0.098, 100))
    assert found[0][1:3] == found[3][1:3] == found[4][1:3] == (99, 101)


def test_without_an_elasticity_of_its_own_that_of_like_figures_counts_else_any_from_0_to_1(dataset: Dataset) -> None:
    middle: dict[str, object] = {"clock_ghz": 3.0, "elasticity": 0.8, "elasticity_error": 0.01}
    poor = {"elasticity": -2.0, "elasticity_error": 0.5}
    wild = {"elasticity": 9.0, "elasticity_error": 0.01}
    rows: list[dict[str, object]] = [middle, {**middle}, {"clock_ghz": 2.7, **poor}, {"clock_ghz": 3.3, **wild}]
    found = figures(dataset, rows, "estimate, low, high")
    assert [f[0] for f in found] == pytest.approx([100, 100, 100 * 0.9**0.8, 100 * 1.1**0.8])
    assert found[2][1] == pytest.approx(99 * 0.9**0.8 * 0.9**0.196)
    other = Dataset(dataset.path.parent / "unknown")
    found = figures(other, [{"clock_ghz": c} for c in (3.0, 2.7, 3.3)], "estimate, low, high")
    assert found[1] == pytest.approx((100 * 0.9**0.5, 99 * 0.9, 101))
    assert found[2] == pytest.approx((100 * 1.1**0.5, 99, 101 * 1.1))


@pytest.mark.parametrize("clock", [float("nan"), float("inf"), -3.0, 0.0])
def test_a_clock_that_cannot_be_brings_nothing(dataset: Dataset, clock: float) -> None:
    known = {"elasticity": 1.0, "elasticity_error": 0.01}
    found = figures(dataset, [{"clock_ghz": 3.0, **known}, {"clock_ghz": clock, **known}], "estimate, clock_ghz")
    assert found == [(100, 3), (100, None)]


def test_a_host_with_a_lower_clock_is_slow_by_its_clock(dataset: Dataset) -> None:
    governors = {True: {"frequency_governor": "powersave"}, False: {"frequency_governor": "performance"}}
    found = analyse(fill(dataset, 40, 6, facts=lambda i, _: dict(governors[i == 7]), clock=low(7)))
    assert [(h.name, h.verdict, h.by_clock) for h in found.slow] == [("n007", "slow", True)]
    said = found.answer()
    below = "its clock is 7.0 % below its group's (power, cooling, governor?)"
    assert f"1 is slow (n007: {below}; at equal clock as the others: " in said
    assert "frequency governor powersave, the others performance" in said
    assert not found.effects and not found.drifts and not found.faster and not found.cannot_be_judged
    assert found.hosts[7].clock == pytest.approx(0.93, abs=0.002) and found.hosts[7].ratio == pytest.approx(1, abs=0.02)
    assert "Costs are corrected to the same clock, which is known of 40 of 40 hosts." in found.text()
    value = json.loads(json.dumps(found.value()))
    assert value["schema"] == 4 and value["hosts"][7]["by_clock"] is True
    page, gauges = report.page(found, "clock"), metrics.text(found, {})
    assert (
        '<td class="n" data-of="clock">-7.0 %</td><td class="long" data-of="what goes with it">its clock is 7.0 % below'
        in page
    )
    assert 'switchcost_fleet_host_slow{fleet_host="n007",' in gauges and "host_clock_ratio" in gauges
    once = analyse(fill(Dataset(dataset.path.parent / "once"), 40, 1, clock=low(7)))
    assert [h.name for h in once.to_measure_again] == ["n007"] and "runs: n007: its clock is 7" in once.answer()


def test_a_host_with_a_higher_clock_is_faster_by_its_clock(dataset: Dataset) -> None:
    found = analyse(fill(dataset, 40, 6, clock=low(7, 1.12)))
    assert [(h.name, h.by_clock) for h in found.faster] == [("n007", True)] and not found.slow
    assert (
        "1 is faster than the others (n007: its clock is 12 % above its group's; at equal clock as the others: "
        in found.answer()
    )


def test_clocks_that_wander_hide_nobody_and_accuse_nobody(dataset: Dataset) -> None:
    found = analyse(fill(dataset, 60, 8, lambda i, _: np.log(1.2) * (i == 7), clock=wandering))
    assert [(h.name, h.by_clock) for h in found.slow] == [("n007", False)]
    assert found.slow[0].ratio == pytest.approx(1.2, abs=0.02)
    assert not (
        found.to_measure_again
        or found.becoming_slower
        or found.faster
        or found.cannot_be_judged
        or found.effects
        or found.drifts
    )


def test_a_host_that_is_slow_per_cycle_and_has_a_lower_clock(dataset: Dataset) -> None:
    found = analyse(fill(dataset, 40, 6, lambda i, _: 0.2 * (i == 7), clock=low(7)))
    assert [(h.name, h.by_clock) for h in found.slow] == [("n007", False)]
    assert "n007: +22 %, its clock is 7.0 % below its group's (power, cooling, governor?))" in found.answer()
    little = analyse(fill(Dataset(dataset.path / "little"), 40, 6, lambda i, _: 0.025 * (i == 7), clock=low(7)))
    assert "; at equal clock it may be slower too: +2." in little.answer()


def test_a_host_with_a_lower_clock_is_held_against_its_kernel(dataset: Dataset) -> None:
    fill(dataset, 40, 6, lambda i, _: 0.06 * (i % 2), lambda i, _: {"kernel_release": f"6.{i % 2}"}, clock=low(7))
    found = analyse(dataset)
    assert "at equal clock as the others: " in found.answer()


def test_a_slower_kernel_is_told_from_one_with_a_lower_clock(dataset: Dataset) -> None:
    kernels = [{"kernel_release": release} for release in ("6.1", "6.6", "6.12")]
    slow: Level = lambda i, _: 0.06 * (i % 3 == 1)  # noqa: E731
    lower = clock(lambda i, _: 0.94 if i % 3 == 2 else 1)
    found = analyse(fill(dataset, 90, 6, slow, lambda i, _: {**kernels[i % 3]}, clock=lower))
    assert {(e.value, e.clock, e.hosts) for e in found.effects} == {("6.6", False, 30), ("6.12", True, 30)}
    said = found.answer()
    assert (
        "All 30 hosts with kernel release 6.12 are slower: clock 6.0 % lower" in said
        and "All 30 hosts with kernel release 6.6 are slower: +6." in said
    )
    assert not found.slow and not found.faster
    gauges = metrics.text(found, {})
    (group,) = re.findall(r'group_info{group="(\w+)",in_words="cpu model EPYC, cpus online 64"} 1', gauges)
    assert f'value="6.12",group="{group}",of="clock"}} 1.06' in gauges


def test_a_kernel_that_is_slower_per_cycle_and_at_a_lower_clock_is_told_of_both(dataset: Dataset) -> None:
    lower = clock(lambda i, _: 0.94 if i % 2 else 1)
    fill(dataset, 40, 6, lambda i, _: 0.06 * (i % 2), lambda i, _: {"kernel_release": f"6.{i % 2}"}, clock=lower)
    said = analyse(dataset).answer()
    assert (
        "All 20 hosts with kernel release 6.1 are slower: clock 6." in said
        and "All 20 hosts with kernel release 6.1 are slower: +6." in said
    )
    assert "at equal clock as the others" not in said


def test_a_lower_clock_alone_is_said_to_be_per_cycle_as_the_others(dataset: Dataset) -> None:
    found = analyse(fill(dataset, 60, 6, clock=clock(lambda i, _: 0.94 if i // 10 == 3 else 1)), labels=RACKS)
    assert [e.brief_sentence("are slower") for e in found.effects] == [
        "all 10 hosts with rack r3 are slower: clock 6.0 % lower, at equal clock as the others"
    ]
    assert "clock 6.0 % lower, at equal clock as the others</td>" in report.page(found, "rack")


def test_a_clock_that_falls_day_by_day(dataset: Dataset) -> None:
    falling = clock(lambda i, day: 1 - 0.1 * day / 19 * (i // 10 == 3))
    found = analyse(fill(dataset, 60, 20, clock=falling), labels=RACKS)
    assert [(e.fact, e.value, e.clock) for e in found.drifts] == [("rack", "r3", True)]
    assert "All 10 hosts with rack r3 become slower: clock " in found.answer() and not found.slow and not found.effects
    assert "rack r3, period of the clock" in report.page(found, "rack")
    alone = clock(lambda i, day: 1 - 0.05 * day / 19 * (i == 4))
    found = analyse(fill(Dataset(dataset.path.parent / "alone"), 60, 20, clock=alone))
    assert [(h.name, h.by_clock) for h in found.becoming_slower] == [("n004", True)] and not found.slow
    assert "1 becomes slower (n004: its clock becomes 4.9 % lower)" in found.answer()


@pytest.mark.parametrize("elasticity", [0.0, 1.0])
def test_where_no_elasticity_is_known_a_clock_accuses_nobody_per_cycle(dataset: Dataset, elasticity: float) -> None:
    """Not its host, and not its kernel."""
    known = {"elasticity": elasticity, "figure": UNKNOWN}
    for by in (0.85, 0.95):
        one = Dataset(dataset.path / str(by))
        found = analyse(fill(one, 40, 12, clock=low(7, by), **known))  # type: ignore[arg-type]
        assert [(h.name, h.by_clock) for h in found.slow] == [("n007", True)] and not found.faster
        assert "; at equal clock it may be " in found.slow[0].reason
    low_kernel = clock(lambda i, _: 0.93 if i % 2 else 1)
    kernels = Dataset(dataset.path.parent / "kernels")
    facts = lambda i, _: {"kernel_release": "6.6" if i % 2 else "6.1"}  # noqa: E731
    found = analyse(fill(kernels, 40, 6, facts=facts, clock=low_kernel, **known))  # type: ignore[arg-type]
    assert [(e.value, e.clock, e.per_cycle_as_others) for e in found.effects] == [("6.6", True, False)]


def test_datasets_without_clocks_are_judged_as_before(dataset: Dataset) -> None:
    fill(dataset, 40, 6, lambda i, _: 0.32 * (i == 7))
    known = analyse(dataset)
    for file in dataset.path.glob("parquet/cases/*/*.parquet"):
        rows = pq.ParquetFile(file).read()
        pq.write_table(rows.drop_columns(["cycles", "clock_ghz", "elasticity", "elasticity_error"]), file)
    found = analyse(dataset)
    assert found.value() == known.value() and "same clock" not in found.text()
    assert [h.name for h in found.slow] == ["n007"] and found.answer().endswith("(n007: +38 %).")


def test_a_rollout_is_compared_at_one_clock(dataset: Dataset) -> None:
    fill(dataset, 40, 6, clock=clock(lambda i, day: (0.93 * 0.9 if i == 9 else 0.93) if day >= 3 else 1))
    found = rollout.compare(dataset, "..2026-11-03", "2026-11-04..")
    assert found.verdict == "PASS" and not found.odd
    assert "; the clock was 7.0% lower after (-7.0% to -7.0%): cases are compared at one clock" in found.answer()
    assert "; 1 with a clock that fell against the others' (n009: 9.9% lower)" in found.answer()
    assert all(abs(c.ratio - 1) < 0.01 for c in found.changes)


@pytest.mark.parametrize(("elasticity", "verdict"), [(0.0, "PASS"), (1.0, "UNDECIDED")])
def test_a_rollout_at_a_lower_clock_of_unknown_effect(dataset: Dataset, elasticity: float, verdict: str) -> None:
    """Costs that are as before are not dearer per cycle, whatever the clock does to them."""
    lower = clock(lambda _, day: 0.9 if day >= 3 else 1)
    fill(dataset, 40, 6, clock=lower, elasticity=elasticity, figure=UNKNOWN)
    found = rollout.compare(dataset, "..2026-11-03", "2026-11-04..")
    assert found.verdict == verdict and all(c.low < 1 < c.high for c in found.changes)
