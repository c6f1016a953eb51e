"""A host's own course: steps are found with their day and their cause, and none where there is none."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from math import log
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("duckdb")
import numpy as np
from test_data_analyse import Level, fill

from switchcost.fleet import metrics, report
from switchcost.fleet.dataset import Dataset
from switchcost.fleet.findings import Effect, Host, LevelChange, Verdict
from switchcost.fleet.judge import _Judge, analyse
from switchcost.fleet.statistics import Floats
from switchcost.fleet.steps import find_steps

STEP = log(1.1)


def noise(days: int, hosts: int = 400, scatter: float = 0.01) -> Floats:
    """Student's t of 3 degrees."""
    values: Floats = scatter * np.random.default_rng(2).standard_t(3, (hosts, days)) / np.sqrt(3)
    return values


@pytest.mark.parametrize("days", [6, 7, 14])
def test_steps_are_found_on_their_day_and_none_in_sound_hosts(days: int) -> None:
    values = noise(days)
    values[:8, 3:] += STEP
    found = find_steps(values, np.full(values.shape, 0.005), 0.05)
    assert [[step.column for step in steps] for steps in found[:8]] == [[3]] * 8
    assert [step.after - step.before for steps in found[:8] for step in steps] == pytest.approx([STEP] * 8, abs=0.03)
    assert sum(bool(steps) for steps in found[8:]) <= 1


@pytest.mark.filterwarnings("error")
def test_a_series_is_too_short_has_gaps_or_takes_a_step_back() -> None:
    assert not any(find_steps(noise(5), np.zeros((400, 5)), 0.05))
    values = noise(14)
    values[0, 4:] += STEP
    values[0, [1, 8]] = np.nan
    values[20, :8] = np.nan
    values[1, 4:9] += STEP
    found = find_steps(values, np.zeros(values.shape), 0.05)
    assert [step.column for step in found[0]] == [4]
    assert (found[0][0].second_before, found[0][0].second_after) == (2, 5)
    assert [step.column for step in found[1]] == [4, 9]


def test_a_steady_trend_and_spikes_are_no_steps() -> None:
    values = noise(20)
    values[0] += np.linspace(0, STEP, 20)
    values[1, [17, 19]] += 2 * STEP
    found = find_steps(values, np.zeros(values.shape), 0.05)
    assert not found[0] and not found[1]


def test_wild_figures_in_a_row_are_no_step() -> None:
    """Two figures of a hundred are 2 to 40 times too high: of thousands of hosts some have three of them together."""
    random = np.random.default_rng(5)
    values = noise(30, 1000)
    is_wild = random.random(values.shape) < 0.02
    values[is_wild] += random.uniform(0.7, 3.7, int(is_wild.sum()))
    values[7, 27:] = [2.0, 2.2, 3.1]
    values[8, 15:] += STEP
    found = find_steps(values, np.zeros(values.shape), 0.05)
    assert not found[7] and [step.column for step in found[8]] == [15]
    assert sum(bool(steps) for steps in found) <= 2


def test_a_host_that_became_slower_is_told_with_day_and_cause(dataset: Dataset) -> None:
    late: Level = lambda i, day: STEP * (i in (7, 8) and day >= 3)  # noqa: E731
    kernels = {True: {"kernel_release": "6.6", "kernel_version": "#2"}, False: {"kernel_release": "6.1"}}
    fill(dataset, 60, 7, late, lambda i, day: {**kernels[i == 8 and day >= 3]})
    found = analyse(dataset)
    assert {h.name: h.step and h.step.since for h in found.slower_since} == dict.fromkeys(
        ("n007", "n008"), "2026-11-04"
    )
    said = found.answer()
    assert "2 became slower (" in said and "slower since 2026-11-04; nothing recorded changed" in said
    assert "slower since 2026-11-04; kernel release 6.1 -> 6.6" in said
    assert not found.slow and not found.probably_slow
    value = found.value()["hosts"][8]
    assert value["verdict"] == "slower since" and value["step"]["changed"] == ["kernel release 6.1 -> 6.6"]
    gauges = metrics.text(found, {})
    assert re.findall(r'host_stepped{fleet_host="(\w+)".*} 1', gauges) == ["n007", "n008"]
    day = datetime(2026, 11, 4, tzinfo=timezone.utc).timestamp()
    assert re.search(rf'host_step_timestamp_seconds{{fleet_host="n007".*}} {day:.0f}', gauges)
    page = report.page(found, "steps")
    assert "slower since 2026-11-04" in page and ">n007</" in page


def test_a_step_that_many_hosts_share_with_its_cause_is_told_once(dataset: Dataset) -> None:
    late: Level = lambda i, day: STEP * (i < 4 and day >= 3)  # noqa: E731
    found = analyse(fill(dataset, 60, 7, late, lambda i, d: {"microcode": "0x2" if i < 4 and d >= 3 else "0x1"}))
    assert len(found.slower_since) == 4
    assert "4 became slower (4 hosts: " in found.answer() and "microcode 0x1 -> 0x2)" in found.answer()


def test_a_group_that_is_too_small_has_no_steps(dataset: Dataset) -> None:
    """What is common to one of its days is no host's own."""
    late: Level = lambda i, day: STEP * (i < 3 and day >= 3)  # noqa: E731
    found = analyse(fill(dataset, 60, 7, late, lambda i, _: {"cpu_model": "rare" if i < 3 else "EPYC"}))
    assert sorted(h.name for h in found.not_compared) == ["n000", "n001", "n002"]
    assert not found.slower_since


def test_a_part_explains_the_steps_of_its_members_that_are_no_larger() -> None:
    value = "x" * 88
    part = Effect(0, "mitigations", value, 30, 1.05, "others", 0.0, members=["n4"], experiment="ring")
    judge: Any = SimpleNamespace(limit=0.03)

    def is_of_part(host: str, step: LevelChange) -> bool:
        return _Judge._is_of_part(judge, Host(host, 0, 7), step, [part])

    joined = LevelChange(
        "2026-11-04", 1.06, "ring", ["mitigations ..."], {"kernel_version": "#2", "mitigations": value}
    )
    assert is_of_part("n4", joined)
    assert not is_of_part("n5", joined), "no member"
    assert not is_of_part("n4", replace(joined, ratio=1.3)), "larger"
    assert not is_of_part("n4", replace(joined, experiment="")), "of the clock"
    assert not is_of_part("n4", replace(joined, new_values={"mitigations": "y"})), "another value"


def test_a_clock_that_fell_on_a_day_is_told(dataset: Dataset) -> None:
    found = analyse(fill(dataset, 60, 7, clock=lambda i, day: 3 * (0.89 if i == 7 and day >= 4 else 1)))
    assert [h.name for h in found.slower_since] == ["n007"] and found.slower_since[0].by_clock
    assert "n007: its clock is 11 % lower since 2026-11-05; nothing recorded changed" in found.answer()


def test_a_run_of_the_future_is_set_aside_and_told(dataset: Dataset) -> None:
    """One such run made the period 73 years long, of which no host has half: nobody had a trend."""
    rising: Level = lambda i, day: 0.1 * day / 19 * (i == 4)  # noqa: E731
    fill(dataset, 40, 20, rising)
    known = analyse(dataset)
    assert known.hosts[4].change == pytest.approx(1.105, abs=0.02)
    fill(dataset, 1, 1, first=9, run=80_000 * 24 // 3)
    found = analyse(dataset)
    assert found.hosts[4].change == known.hosts[4].change and found.period == known.period
    assert [(run.host, run.started[:3]) for run in found.in_future] == [("n009", "209")]
    assert "1 run set aside, dated after tomorrow (n009: 209" in found.answer()
    assert "set aside: run ring" in found.text() and found.value()["in_future"][0]["host"] == "n009"


def test_hosts_that_cannot_be_judged_have_a_reason_and_what_would_stand_out(dataset: Dataset) -> None:
    found = analyse(fill(dataset, 60, 4, spread=0.06))
    assert len(found.cannot_be_judged) > 50
    assert re.search(
        r"cannot be judged: sound hosts of group 1 differ by 7 %, so only one \d+ % slower would stand out",
        found.answer(),
    )
    assert found.groups[0]["named_shares"]["0.05"] < 0.1 < found.groups[0]["would_be_found"] - 1
    quiet = analyse(fill(Dataset(dataset.path.parent / "quiet"), 60, 4))
    assert quiet.groups[0]["named_shares"]["0.05"] > 0.9
    assert "a host is named if it measures 3 % or more above its group; of hosts that are 5 % slower" in quiet.text()


def test_a_rack_that_is_a_kernel_is_one_cause(dataset: Dataset) -> None:
    """Also where two experiments name it by two facts, and from half of a host's limit on: it is many hosts."""
    facts: Callable[[int, int], dict[str, object]] = lambda i, _: (  # noqa: E731
        {"kernel_release": "6.6" if i < 10 else "6.1", "kernel_version": f"#{int(i < 10)}"}
    )
    for experiment in ("ring", "cost"):
        fill(dataset, 100, 6, lambda i, _: log(1.025) * (i < 10), facts, experiment=experiment)
    found = analyse(dataset, labels={f"n{i:03}": {"rack": f"r{i // 10}"} for i in range(100)})
    text = found.text()
    assert found.answer().count("All 10 hosts with") == text.count("all 10 hosts with") == 1
    assert "all 10 hosts with kernel release 6.6 are slower than those with kernel release 6.1: +2." in text
    assert "; the same hosts: kernel version #1, rack r0" in text
    assert {h.verdict for h in found.hosts} == {Verdict.AS_THE_OTHERS}
