"""What is found of planted faults, in words, HTML and metrics; and what a hostile name does to them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from html.parser import HTMLParser
from math import exp
from pathlib import Path

import pytest

pytest.importorskip("duckdb")
import numpy as np
import pyarrow as pa

from switchcost._program import ProgramError
from switchcost.fleet import acknowledged, figures, metrics, report, rollout
from switchcost.fleet.analyse import read_labels, share
from switchcost.fleet.cli import main
from switchcost.fleet.dataset import Dataset
from switchcost.fleet.findings import Analysis, Host, Verdict
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
    experiment: str = "ring",
    run: int = 0,
    spread: float = 0.004,
    first: int = 0,
) -> Dataset:
    """Hosts that are alike but for `level`, the natural logarithm of how slow host and day are at one clock.

    `clock` is that of their cores in GHz, and costs go with its period by the power `elasticity`.
    """
    random = np.random.default_rng([5, run])
    own = random.normal(0, spread, hosts)
    for day in range(days):
        at = datetime.combine(START + timedelta(day), datetime.min.time(), timezone.utc) + timedelta(hours=run)
        machines, cases = [], []
        for i in range(hosts):
            key = {
                "host": names.format(i + first),
                "run": f"{experiment}{run}-{day}-{i}",
                "started": at,
                "experiment": experiment,
            }
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
    assert found.answer() == "60 hosts in 1 group: none is slow."
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
    assert not found.slow and not found.probably_slow and [h.name for h in found.to_measure_again] == ["n007"]
    assert "1 to measure again (slow on fewer than 3 runs: n007: +3" in found.answer()


def test_runs_that_are_slow_by_chance_on_one_day_accuse_nobody(dataset: Dataset) -> None:
    """3 % of runs are spiked: of one run each nothing can be told, of five a host has to be slow on most."""
    spiked: Level = lambda i, day: 0.15 * ((i * 7 + day * 13) % 33 == 0)  # noqa: E731
    once = analyse(fill(dataset, 300, 1, spiked))
    assert (
        not once.slow
        and not once.probably_slow
        and len(once.to_measure_again) == sum(spiked(i, 0) > 0 for i in range(300))
    )
    slow: Level = lambda i, day: spiked(i, day) or 0.05 * (i == 8)  # noqa: E731
    often = analyse(fill(Dataset(dataset.path.parent / "b"), 300, 5, slow))
    assert [h.name for h in [*often.slow, *often.probably_slow]] == ["n008"] and not often.to_measure_again


def test_three_runs_of_one_day_are_three_looks(dataset: Dataset) -> None:
    for run in range(3):
        fill(dataset, 40, 1, lambda i, _: 0.3 * (i == 7), run=run)
    found = analyse(dataset)
    assert [(h.name, h.days) for h in found.slow] == [("n007", 3)] and found.days == 1


def test_five_percent_among_many_is_probably_slow_at_the_rate_that_is_asked(dataset: Dataset) -> None:
    """Hosts scatter by 0.4 %, and 20 of 200 by 1.5 %: their tail makes 5 % a matter of the rate."""
    random = np.random.default_rng(2)
    own = random.normal(0, 0.015, 200) * (np.arange(200) % 10 == 0)
    fill(dataset, 200, 7, lambda i, _: own[i] + 0.05 * (i in (3, 73, 143)), scatter=0.008)
    few, many = ({h.name for h in analyse(dataset, fdr=fdr).probably_slow} for fdr in (0.01, 0.4))
    assert few < many and {"n003", "n073", "n143"} <= many
    found = analyse(dataset, fdr=0.4)
    assert "probably slow (n" in found.answer()
    assert '"probably slow" about 40 % are sound, more where sound hosts have long tails.' in found.text()
    said = '"probably slow" about 5 % are sound, up to 11 % where sound hosts have long tails.'
    assert said in replace(found, fdr=0.05).terms()
    by_chance = 'A host is called "slow" by chance in at most 5 % of sound fleets.'
    assert by_chance in found.terms()


def test_experiments_are_judged_apart_and_the_worst_is_told(dataset: Dataset) -> None:
    """Slow with working sets alone, in few cases beside many of clocks: a median over all would be that of clocks."""
    fill(dataset, 40, 6, lambda i, _: 0.02 * (i == 9))
    fill(dataset, 40, 6, lambda i, _: 0.25 * (i == 7) + 0.2 * (i == 9), experiment="cost")
    fill(dataset, 40, 6, experiment="clock-overhead")
    found = analyse(dataset)
    assert [(h.name, h.experiment, h.reason) for h in found.slow] == [
        ("n007", "cost", "in cost alone"),
        ("n009", "cost", "in cost alone"),
    ]
    assert found.slow[0].ratios["ring"] < 1.02 < 1.2 < found.slow[0].ratios["cost"]


def test_a_part_is_slow_in_the_experiment_where_it_is(dataset: Dataset) -> None:
    kernels: list[dict[str, object]] = [{"kernel_release": "6.1"}, {"kernel_release": "6.6"}]
    fill(dataset, 60, 6, facts=lambda i, _: kernels[i % 2])
    fill(dataset, 60, 6, lambda i, _: 0.1 * (i % 2), lambda i, _: kernels[i % 2], experiment="cost")
    found = analyse(dataset)
    assert [(e.value, e.experiment) for e in found.effects] == [("6.6", "cost")] and not found.slow


def test_known_slow_hosts_are_told_with_their_reason_until_they_end(
    dataset: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(dataset, 40, 6, lambda i, _: 0.3 * (i in (7, 8)))
    folder = ["--dataset", str(dataset.path)]
    assert main(["acknowledge", "n007", "--reason", "waits for a fan,\x1b ticket 812", *folder]) == 0
    assert main(["acknowledge", "n008", "n001", "--reason", "x", "--until", "2026-01-01", *folder]) == 0
    known = acknowledged.holding(dataset.path)
    found = analyse(dataset, acknowledged=known)
    assert [h.name for h in found.slow] == ["n008"] and [h.name for h in found.acknowledged] == ["n007"]
    assert re.search(r" 1 acknowledged \(n007: waits for a fan, ticket 812, since [0-9-]{10}\)\.", found.answer())
    slow = re.findall(r'host_slow{fleet_host="(\w+)".*} 1', metrics.text(found, {}))
    assert slow == ["n008"] and "n007" in report.page(found, "known")
    assert main(["acknowledge", "n007", "--forget", *folder]) == 0
    assert list(acknowledged.read(dataset.path)) == ["n001", "n008"] and not acknowledged.holding(dataset.path)
    for wrong in (
        ["n007"],
        ["n007", "--reason", "x", "--forget"],
        ["../x", "--reason", "x"],
        ["n1", "--reason", "x", "--until", "soon"],
    ):
        capsys.readouterr()
        assert main(["acknowledge", *wrong, *folder]) == 2
        assert capsys.readouterr().err.startswith("error: ")
    (dataset.path / acknowledged.FILE).write_text("name\nx\n")
    with pytest.raises(FleetError, match="cannot be read"):
        acknowledged.read(dataset.path)


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


def test_a_kernel_that_no_group_shows_alone_is_found_by_all_together(dataset: Dataset) -> None:
    """Five hosts of each of three kinds of CPU, beside slow hosts of other kernels: no kind decides it alone."""

    def facts(i: int, _: int) -> dict[str, object]:
        return {"cpu_model": f"CPU {i % 3}", "kernel_release": "6.6" if i // 3 < 5 else "6.1"}

    def level(i: int, _: int) -> float:
        return 0.06 * (i // 3 < 5) + 0.2 * (15 <= i // 3 < 18)

    found = analyse(fill(dataset, 60, 6, level, facts))
    assert {(e.fact, e.value) for e in found.effects} == {("kernel_release", "6.6")}
    assert sum(m.startswith("n") for e in found.effects[:1] for m in e.members) == 15
    assert {h.name for h in found.slow} == {f"n{i:03}" for i in range(45, 54)}


def test_a_rack_that_becomes_slower(dataset: Dataset) -> None:
    fill(dataset, 60, 20, lambda i, day: 0.1 * day / 19 * (i // 10 == 3))
    labels = {f"n{i:03}": {"rack": f"r{i // 10}"} for i in range(60)}
    found = analyse(dataset, labels=labels)
    assert [(e.fact, e.value, e.hosts) for e in found.drifts] == [("rack", "r3", 10)]
    assert found.drifts[0].ratio == pytest.approx(1.105, abs=0.02)
    assert not found.slow and not found.effects
    assert "All 10 hosts with rack r3 become slower: +1" in found.answer()
    alone = analyse(fill(Dataset(dataset.path.parent / "b"), 60, 20, lambda i, day: 0.1 * day / 19 * (i == 4)))
    assert [h.name for h in alone.becoming_slower] == ["n004"] or [h.name for h in alone.slow] == ["n004"]


def test_groups_that_are_too_small_and_hosts_that_are_too_noisy(dataset: Dataset) -> None:
    fill(dataset, 30, 4, facts=lambda i, _: {"cpu_model": "Grace" if i < 4 else "EPYC"})
    found = analyse(dataset)
    assert [g["judged"] for g in found.groups] == [True, False]
    assert "4 not compared, in groups below 8 hosts (n000; n001; n002; ...)" in found.answer() and not found.slow
    for speed in ("contended", "not_alone"):
        figure: dict[str, object] = {"speed": speed, "low": None, "high": None}
        found = analyse(fill(Dataset(dataset.path.parent / speed), 20, 4, figure=figure))
        assert len(found.cannot_be_judged) == 20 and "20 cannot be judged: no figure at full speed" in found.answer()
    wild = analyse(fill(Dataset(dataset.path.parent / "c"), 20, 4, scatter=0.5))
    assert len(wild.cannot_be_judged) == 20


@pytest.mark.parametrize(("ended", "slow"), [("interrupted", 0), ("failed", 0), ("killed", 0), ("precise", 1)])
def test_runs_that_did_not_end_are_no_evidence(dataset: Dataset, ended: str, slow: int) -> None:
    def facts(i: int, day: int) -> dict[str, object]:
        return {"end_reason": ended if i == 7 and day < 8 else "budget_spent"}

    found = analyse(fill(dataset, 40, 12, lambda i, day: 0.3 * (i == 7 and day < 8), facts))
    assert (
        len(found.slow) == slow
        and not found.to_measure_again
        and not found.becoming_slower
        and not found.cannot_be_judged
    )


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


def test_labels_stay_short_and_each_experiment_has_its_ratio(dataset: Dataset) -> None:
    models = ["AMD EPYC 7763 64-Core Processor " * 3, "Intel Xeon"]
    fill(dataset, 40, 3, facts=lambda i, _: {"cpu_model": models[i % 2]})
    fill(dataset, 40, 3, facts=lambda i, _: {"cpu_model": models[i % 2]}, experiment="cost")
    text = metrics.text(analyse(dataset), {})
    assert max(len(line) for line in text.splitlines() if line.startswith("switchcost_fleet_host")) < 100
    assert len(re.findall(r'^switchcost_fleet_group_info{group="[0-9a-f]{6}",', text, re.M)) == 2
    assert {*re.findall(r'host_ratio{fleet_host="n007",group="\w+",experiment="(\w+)"}', text)} == {"ring", "cost"}


def test_acknowledged_hosts_share_one_sentence() -> None:
    def host(number: int, reason: str, since: int, until: date = date.max) -> Host:
        known = acknowledged.Acknowledged(date(2026, 11, since), until, reason)
        return Host(f"n{number}", 0, 7, 1.5 - number / 100, Verdict.SLOW, acknowledgement=known)

    hosts = [host(number, "fan", 10 + number) for number in range(5)]
    hosts += [host(5, "memory", 3, date(2026, 12, 24)), host(6, "memory", 4, date(2026, 12, 31))]
    hosts += [host(7, "moved", 1, date(2026, 12, 31)), host(8, "dust", 1)]
    groups = [{"hosts": 9, "in_words": "EPYC", "would_be_found": None}]
    found = Analysis(groups, hosts, [], [], [], 7, 0.03, 0.05, 0.05, [])
    said = "fan, since 2026-11-10; n5, n6: memory, until 2026-12-24 to 2026-12-31; n7: moved, until 2026-12-31; ..."
    assert found.sentences()[1:] == [f"9 acknowledged (n0, n1, n2 and 2 more: {said})."]


def test_hosts_that_were_not_judged_are_not_said_to_be_slow(dataset: Dataset) -> None:
    """Two of 14 hosts with a kernel have no figure at full speed."""
    kernels = {True: "6.9", False: "6.1"}
    fill(dataset, 40, 6, lambda i, _: 0.06 * (i < 12), lambda i, _: {"kernel_release": kernels[i < 12]})
    fill(dataset, 2, 6, facts=lambda *_: {"kernel_release": "6.9"}, figure={"speed": "contended"}, first=40)
    found = analyse(dataset)
    assert "All 12 judged hosts with kernel release 6.9 (of 14) are slower: +6." in found.answer()
    assert re.search(r'data-of="hosts">12 of 14</td>', report.page(found, "kernels"))
    (effect,) = json.loads(json.dumps(found.value()))["effects"]
    assert (effect["hosts"], effect["holders"], effect["holders_in_fleet"]) == (12, 14, 14)


def test_a_value_that_is_slow_in_one_group_is_not_told_of_the_others(dataset: Dataset) -> None:
    def facts(i: int, _: int) -> dict[str, object]:
        return {"cpu_model": "A" if i < 40 else "B", "kernel_release": "6.9" if i < 12 or i >= 56 else "6.1"}

    found = analyse(fill(dataset, 80, 6, lambda i, _: 0.06 * (i < 12), facts))
    assert "All 12 hosts of group 1 with kernel release 6.9 are slower: +6." in found.answer()


def test_a_report_has_its_dates_and_axes_and_nothing_that_is_empty(dataset: Dataset) -> None:
    page = report.page(analyse(fill(dataset, 40, 3, lambda i, _: 0.3 * (i == 7))), "d")
    assert "runs of 2026-11-01 to 2026-11-03 (3 days); written 20" in page
    assert "what goes with it" not in page and "<th>verdict</th>" in page
    # Upwards: none, one host, and nearly as many as there are in the tallest bar.
    (drawing,) = re.findall(r'aria-label="Group 1: 40 hosts.*?</svg>', page)
    ticks = re.findall(r">(\d+)</text>", drawing)
    assert ">hosts</text>" in drawing and {"0", "1"} < {*ticks} and max(map(int, ticks)) >= 5
    empty = report.page(analyse(fill(Dataset(dataset.path / "b"), 3, 1, figure={"speed": "contended"})), "d")
    assert "Distribution" not in empty and "runs of 2026-11-01; written" in empty


def test_dashboard_and_rules_ask_for_metrics_that_exist(dataset: Dataset) -> None:
    rules = (ROOT / "deploy/grafana/alerts.yml").read_text()
    for of in ("slow_part_ratio", "drifting_part_ratio", "absent(", "host_drifts", "host_slow", "never answered"):
        assert of in rules
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


def test_a_figure_that_the_program_refuses_is_its_error() -> None:
    assert figures.drawn([]) == []
    with pytest.raises(ProgramError, match=r"figure 1 cannot be read .*unknown variant `cubic`"):
        figures.drawn([figures.histogram("", [1.0], -5, 10, []) | {"y": figures._axis("hosts", "count", "cubic")}])


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


def test_a_report_names_its_rows_and_fits_its_drawings(dataset: Dataset) -> None:
    """Rows of several hosts were all called "6 hosts", short columns were broken, and labels lay over each other."""
    found = analyse(fill(dataset, 90, 6, lambda i, _: 0.9 * (i == 7) + 0.06 * (i == 8)))
    page = report.page(found, "rows")
    rows = re.findall(r"\d+-\d+ % of the others \(\d+\)</text>", page)
    assert len(rows) == len(set(rows)) == 10 and ">n007</text>" in page
    assert "overflow-wrap: anywhere" not in page and "white-space: nowrap" in page
    # All bars, marks, cells and lines lie within their drawings.
    drawings = re.findall(r"<svg.*?</svg>", page)
    assert len(drawings) >= 2
    for drawing in drawings:
        ((width, height),) = re.findall(r'viewBox="0 0 (\d+) ([\d.]+)"', drawing)
        places = re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", drawing)
        assert len(places) > 10
        assert all(0 <= float(x) <= float(width) and 0 <= float(y) <= float(height) for x, y in places)
        # Labels of ticks at the left are not on each other.
        at = [float(y) for y in re.findall(r'y="([\d.]+)" text-anchor="end">', drawing)]
        assert len(at) >= 2 and min(abs(a - b) for i, a in enumerate(at) for b in at[:i]) >= 11
    # The worst host's bar, and its name.
    worst = re.findall(r"<title>\+(\d+)[\d.]* % to \+[\d.]+ %: 1</title>", page)
    assert max(map(int, worst)) >= 130 and "<title>n007, +1" in page
