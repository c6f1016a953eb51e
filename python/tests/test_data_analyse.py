"""What is found of planted faults, in words, HTML and metrics; and what a hostile name does to them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from html.parser import HTMLParser
from math import exp
from pathlib import Path

import pytest

pytest.importorskip("duckdb")
import numpy as np
import pyarrow as pa

from switchcost.fleet import metrics, report, rollout
from switchcost.fleet.analyse import read_labels, share
from switchcost.fleet.dataset import Dataset
from switchcost.fleet.findings import Analysis
from switchcost.fleet.judge import analyse
from switchcost.fleet.rows import SCHEMAS
from switchcost.fleet.submission import FleetError

ROOT = Path(__file__).parents[2]
START = date(2026, 11, 1)
Level = Callable[[int, int], float]


def fill(
    dataset: Dataset,
    hosts: int,
    days: int,
    level: Level = lambda host, day: 0.0,
    facts: Callable[[int, int], dict[str, object]] = lambda host, day: {},
    scatter: float = 0.004,
    names: str = "n{:03}",
    figure: dict[str, object] | None = None,
    clock: Level | None = None,
    elasticity: float = 1.0,
) -> Dataset:
    """Hosts that are alike but for `level`, the natural logarithm of how slow host and day are at one clock.

    `clock` is that of their cores in GHz, and costs go with its period by the power `elasticity`.
    """
    random = np.random.default_rng(5)
    own = random.normal(0, 0.004, hosts)
    for day in range(days):
        at = datetime.combine(START + timedelta(day), datetime.min.time(), timezone.utc)
        machines, cases = [], []
        for i in range(hosts):
            key = {"host": names.format(i), "run": f"r{day}-{i}", "started": at, "experiment": "ring"}
            alike = {"cpu_model": "EPYC", "cpus_online": 64, "kernel_release": "6.1", "noise": "quiet", "file_bytes": 1}
            machines.append({**key, **alike, **facts(i, day)})
            factor = exp(own[i] + level(i, day) + random.normal(0, scatter))
            at_clock: dict[str, object] = {}
            if clock:
                factor *= (3 / clock(i, day)) ** elasticity
                at_clock = {"clock_ghz": clock(i, day), "elasticity": elasticity, "elasticity_error": 0.02}
            for case, ns in enumerate((500.0, 1500.0, 2300.0)):
                ring = {"case": case, "title": f"ring of {2**case}", "quantity": "switch", "unit": "ns"}
                value = ns * factor * exp(random.normal(0, 0.002))
                found = {
                    **ring,
                    **at_clock,
                    "speed": "full",
                    "estimate": value,
                    "low": value * 0.98,
                    "high": value * 1.02,
                }
                cases.append({**key, **found, **(figure or {})})
        for table, rows in (("machines", machines), ("cases", cases)):
            assert {name for row in rows for name in row} <= {*SCHEMAS[table].names}
            dataset.write(table, str(START + timedelta(day)), pa.Table.from_pylist(rows, schema=SCHEMAS[table]))
    return dataset


def test_a_sound_fleet_has_nobody(dataset: Dataset) -> None:
    found = analyse(fill(dataset, 60, 8))
    assert found.answer() == "60 hosts in 1 group: 0 are slow, 0 never answered, 0 too noisy to say."
    assert not found.effects and not found.drifts


def test_a_slow_host_is_named_with_what_goes_with_it(dataset: Dataset) -> None:
    kernels = {True: "5.10.0-8", False: "5.10.0-28"}
    found = analyse(
        fill(dataset, 40, 6, lambda i, _: 0.32 * (i == 7), lambda i, _: {"kernel_release": kernels[i == 7]})
    )
    assert [h.name for h in found.slow] == ["n007"]
    assert found.answer().startswith(
        "40 hosts in 1 group: 1 is slow (n007: +38 %, kernel release 5.10.0-8, the others 5.10.0-28)"
    )
    assert json.loads(json.dumps(found.value()))["groups"][0]["hosts"] == 40


def test_a_host_measured_on_one_day_only_looks_slow(dataset: Dataset) -> None:
    found = analyse(fill(dataset, 40, 1, lambda i, _: 0.3 * (i == 7)))
    assert not found.slow and [h.name for h in found.suspects] == ["n007"]


def test_a_fast_host_is_told(dataset: Dataset) -> None:
    facts: dict[bool, dict[str, object]] = {True: {"microcode": "0x1"}, False: {"microcode": "0x2"}}
    found = analyse(fill(dataset, 40, 6, lambda i, _: -0.3 * (i == 7), lambda i, _: facts[i == 7]))
    assert [(h.name, h.verdict) for h in found.faster] == [("n007", "faster")] and not found.slow
    assert "1 is faster than the others (n007: -26 %, microcode 0x1, the others 0x2)" in found.answer()
    assert "n007" in report.page(found, "fast")


def test_slow_kernels_are_one_finding_each_and_hide_no_host(dataset: Dataset) -> None:
    kernels = ["6.1", "6.6", "6.12"]
    slow = {"6.6": 0.05, "6.12": 0.12}

    def level(i: int, _: int) -> float:
        return slow.get(kernels[i % 3], 0.0) + 0.1 * (i == 30)

    found = analyse(
        fill(dataset, 90, 6, level, lambda i, _: {"kernel_release": kernels[i % 3], "microcode": f"m{i % 3}"})
    )
    assert {(e.fact, e.value, e.hosts) for e in found.effects} == {
        ("kernel_release", "6.6", 30),
        ("kernel_release", "6.12", 30),
    }
    assert [e.together_with for e in found.effects] == [["microcode m2"], ["microcode m1"]]
    assert {e.value: round(e.ratio, 2) for e in found.effects} == {"6.6": 1.05, "6.12": 1.13}
    assert [h.name for h in found.slow] == ["n030"]


def test_a_rack_that_becomes_slower(dataset: Dataset) -> None:
    fill(dataset, 60, 20, lambda i, day: 0.1 * day / 19 * (i // 10 == 3))
    labels = {f"n{i:03}": {"rack": f"r{i // 10}"} for i in range(60)}
    found = analyse(dataset, labels=labels)
    assert [(e.fact, e.value, e.hosts) for e in found.drifts] == [("rack", "r3", 10)]
    assert found.drifts[0].ratio == pytest.approx(1.105, abs=0.02)
    assert not found.slow and not found.effects
    assert "becoming slower: rack r3 (10 hosts): +1" in found.answer()
    alone = analyse(fill(Dataset(dataset.path.parent / "b"), 60, 20, lambda i, day: 0.1 * day / 19 * (i == 4)))
    assert [h.name for h in alone.drifting] == ["n004"] or [h.name for h in alone.slow] == ["n004"]


def test_groups_that_are_too_small_and_hosts_that_are_too_noisy(dataset: Dataset) -> None:
    fill(dataset, 30, 4, facts=lambda i, _: {"cpu_model": "Grace" if i < 4 else "EPYC"})
    found = analyse(dataset)
    assert [g["judged"] for g in found.groups] == [True, False]
    assert "4 in groups below 8 hosts" in found.answer() and not found.slow
    for speed in ("contended", "not_alone"):
        figure: dict[str, object] = {"speed": speed, "low": None, "high": None}
        found = analyse(fill(Dataset(dataset.path.parent / speed), 20, 4, figure=figure))
        assert len(found.noisy) == 20 and "20 too noisy to say" in found.answer()
    wild = analyse(fill(Dataset(dataset.path.parent / "c"), 20, 4, scatter=0.5))
    assert len(wild.noisy) == 20


@pytest.mark.parametrize(("ended", "slow"), [("interrupted", 0), ("failed", 0), ("killed", 0), ("precise", 1)])
def test_runs_that_did_not_end_are_no_evidence(dataset: Dataset, ended: str, slow: int) -> None:
    def facts(i: int, day: int) -> dict[str, object]:
        return {"end_reason": ended if i == 7 and day < 8 else "budget_spent"}

    found = analyse(fill(dataset, 40, 12, lambda i, day: 0.3 * (i == 7 and day < 8), facts))
    assert len(found.slow) == slow and not found.suspects and not found.drifting and not found.noisy


def test_what_a_host_was_before_does_not_count(dataset: Dataset) -> None:
    """A machine that got another CPU is of its new group, by its runs since."""
    old: Level = lambda i, d: i == 3 and d < 4  # noqa: E731
    models = ["EPYC", "old"]
    found = analyse(
        fill(dataset, 30, 8, lambda i, d: 0.5 * old(i, d), lambda i, d: {"cpu_model": models[int(old(i, d))]})
    )
    assert len(found.groups) == 1 and not found.slow and found.hosts[3].days == 4


def test_no_runs(dataset: Dataset) -> None:
    dataset.path.mkdir()
    with pytest.raises(FleetError) as error:
        analyse(dataset)
    assert error.value.exit_code == 2
    fill(dataset, 10, 2)
    with pytest.raises(FleetError):
        analyse(dataset, since=date(2027, 1, 1))
    with pytest.raises(FleetError, match="no such column"):
        analyse(dataset, group_by=["cpu_model; DROP TABLE x"])


@pytest.mark.parametrize(
    ("change", "scatter", "verdict"), [(0.0, 0.004, "PASS"), (0.06, 0.004, "FAIL"), (0.03, 0.1, "UNDECIDED")]
)
def test_a_rollout(dataset: Dataset, change: float, scatter: float, verdict: str) -> None:
    new: dict[bool, dict[str, object]] = {True: {"kernel_release": "6.6"}, False: {}}
    fill(dataset, 40, 6, lambda _, d: change * (d >= 3), lambda _, d: new[d >= 3], scatter)
    by_kernel = rollout.compare(dataset, "kernel_release=6.1", "kernel_release=6.6")
    by_day = rollout.compare(dataset, "..2026-11-03", "2026-11-04..")
    assert by_kernel.changes == by_day.changes and by_kernel.verdict == verdict
    assert by_kernel.answer().startswith(f"{verdict}: 40 hosts before and after, 3 cases")
    for wrong in ("kernel", "a..b", "nothing=1", "kernel_release=none"):
        with pytest.raises(FleetError) as error:
            rollout.compare(dataset, "kernel_release=6.1", wrong)
        assert error.value.exit_code == 2


def test_a_rollout_that_harms_one_host_names_it(dataset: Dataset) -> None:
    fill(dataset, 40, 6, lambda i, d: 0.3 * (d >= 3 and i == 9))
    found = rollout.compare(dataset, "..2026-11-03", "2026-11-04..")
    assert found.verdict == "PASS" and [name for name, _ in found.odd] == ["n009"]
    assert "1 perhaps slower than the others (n009: +3" in found.answer()


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}


HOSTILE = '</title></svg><script>alert("1")</script><img src=x onerror=alert(1)>&\'"'


def hostile(dataset: Dataset) -> Analysis:
    def facts(i: int, _: int) -> dict[str, object]:
        return {"kernel_release": HOSTILE if i % 3 else "6.1", "cpu_model": HOSTILE, "noise_reasons": HOSTILE}

    def level(i: int, day: int) -> float:
        return 0.3 * (i == 7) + 0.1 * bool(i % 3) + day / 70 * (i % 4 == 0)

    fill(dataset, 40, 8, level, facts, names="n{:03}" + HOSTILE)
    labels = {f"n{i:03}{HOSTILE}": {"rack": f"{i % 4}{HOSTILE}"} for i in range(40)}
    found = analyse(dataset, labels=labels)
    assert found.slow and found.effects and found.drifts
    return found


def test_html_in_names_stays_text(dataset: Dataset) -> None:
    page = report.page(hostile(dataset), HOSTILE)
    tags = Tags()
    tags.feed(page)
    assert not tags.found & {"script", "img", "iframe", "link", "object"}
    assert not {a for a in tags.attributes if a.startswith("on")} | tags.attributes & {"src", "href"}
    assert "http" not in re.sub("http-equiv", "", page)


def test_metrics_are_openmetrics(dataset: Dataset) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    text = metrics.text(hostile(dataset), dataset.last_runs())
    families = {f.name: f for f in parser.text_string_to_metric_families(text)}
    slow = [s.labels["fleet_host"] for s in families["switchcost_fleet_host_slow"].samples if s.value == 1]
    assert slow == [f"n007{HOSTILE}"]
    assert {f.type for f in families.values()} == {"gauge"}
    last = families["switchcost_fleet_host_last_run_timestamp_seconds"].samples[0].value
    assert last == datetime(2026, 11, 8, tzinfo=timezone.utc).timestamp()


def test_dashboard_and_rules_ask_for_metrics_that_exist(dataset: Dataset) -> None:
    written = set(re.findall(r"# TYPE (\S+)", metrics.text(analyse(fill(dataset, 10, 3)), {})))
    for file in ("fleet.json", "alerts.yml"):
        text = (ROOT / "deploy/grafana" / file).read_text()
        asked = set(re.findall(r"switchcost_fleet_\w+", text))
        assert asked and asked <= written
    json.loads((ROOT / "deploy/grafana/fleet.json").read_text())


def test_a_report_of_many_hosts_stays_small(dataset: Dataset) -> None:
    found = analyse(fill(dataset, 3000, 3, lambda i, _: 0.5 * (i % 60 == 0)))
    page = report.page(found, "many")
    assert len(page) < 500_000 and page.count("<tr>") < 600


def test_labels(tmp_path: Path) -> None:
    path = tmp_path / "hosts.csv"
    path.write_text("host,rack,row\nn1,r1,\nn2,r2\x1b,a\n")
    assert read_labels(path) == {"n1": {"rack": "r1"}, "n2": {"rack": "r2", "row": "a"}}
    path.write_text("name,rack\nn1,r1\n")
    with pytest.raises(FleetError, match="host"):
        read_labels(path)
    with pytest.raises(FleetError, match="cannot be read"):
        read_labels(tmp_path / "none")


def test_shares() -> None:
    assert (share("3%"), share("0.03")) == (0.03, 0.03)
