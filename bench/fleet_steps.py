#!/usr/bin/env python3
"""What `switchcost fleet analyse` finds of steps, slow hosts, a slow kernel and low clocks in simulated fleets.

    bench/fleet_steps.py faults              six kinds of fleet with all faults: found of what was planted, memory, time
    bench/fleet_steps.py power --seeds 5     hosts that are 5 % slow, by scatter: found, beside what the report promised
    bench/fleet_steps.py clocks              all clocks equal and one 11 % lower: memory and time

Hosts differ by a factor with the tail and standard deviation that are named; days by Student's t of 3 degrees with a
deviation of 0.8 %, unless named otherwise. 3 % of hosts are 5 % slow, 2 % become 10 % slower on day 4, the kernel of one
rack of 20 is 3 % slower, two hosts have clocks that are 11 and 7 % lower, and one run is dated 2099. Each fleet is
analysed by a process of its own, so that its memory can be told.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from math import log, sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "python/src"))
sys.path.insert(0, str(HERE))
from fleet_power import TAILS, table  # noqa: E402
from switchcost.fleet.dataset import Dataset  # noqa: E402
from switchcost.fleet.findings import Verdict, merged  # noqa: E402
from switchcost.fleet.judge import analyse  # noqa: E402

START = date(2026, 10, 1)
STEP_DAY = 3  # day 4
RACK = 20
SLOW_KERNEL = "6.1.0-99"


@dataclass
class FleetKind:
    hosts: int
    days: int
    tail: str
    scatter: float
    day_scatter: float = 0.008
    missing: float = 0.0
    spiked: float = 0.0
    cpu_models: int = 1

    def __str__(self) -> str:
        said = f"{self.hosts} hosts, {self.days} days, {self.tail} {self.scatter:.1%}"
        said += f", days {self.day_scatter:.1%}" if self.day_scatter != 0.008 else ""
        said += f", {self.missing:.0%} of runs missing" if self.missing else ""
        said += f", {self.spiked:.0%} of runs 15 % slower" if self.spiked else ""
        return said + (f", {self.cpu_models} kinds of CPU" if self.cpu_models > 1 else "")


FAULTS = [
    FleetKind(400, 7, "lognormal", 0.008),
    FleetKind(300, 6, "t3", 0.010),
    FleetKind(300, 7, "lognormal", 0.020),
    FleetKind(200, 6, "t3", 0.030),
    # Of our own.
    FleetKind(400, 14, "t3", 0.015, missing=0.1, spiked=0.03),
    FleetKind(400, 7, "lognormal", 0.010, day_scatter=0.015, cpu_models=3),
]


class SimulatedFleet:
    def __init__(self, kind: FleetKind, seed: int, only_slow: bool = False, only_clocks: bool = False) -> None:
        self.kind = kind
        self.random = random = np.random.default_rng([seed, kind.hosts, kind.days, round(1e4 * kind.scatter)])
        hosts, days = kind.hosts, kind.days
        self.names = [f"n{i:04}" for i in range(hosts)]
        order = RACK + random.permutation(hosts - RACK)
        slow, step = round(0.03 * hosts), round(0.02 * hosts)
        self.slow = {self.names[i] for i in order[:slow]} if not only_clocks else set()
        self.stepped = {self.names[i] for i in order[slow : slow + step]} if not (only_slow or only_clocks) else set()
        lower = order[slow + step : slow + step + 2]
        self.low_clocks = {} if only_slow else {self.names[lower[0]]: 0.89, self.names[lower[1]]: 0.93}
        if only_clocks:
            self.low_clocks = {self.names[lower[0]]: 0.89}
        self.has_rack = not (only_slow or only_clocks)
        level = kind.scatter * TAILS[kind.tail](random, hosts)
        level += log(1.05) * np.isin(self.names, [*self.slow])
        level += log(1.03) * (np.arange(hosts) < RACK) * self.has_rack
        self.values = level[:, None] + kind.day_scatter * random.standard_t(3, (hosts, days)) / sqrt(3)
        self.values[:, STEP_DAY:] += log(1.1) * np.isin(self.names, [*self.stepped])[:, None]
        self.values += log(1.15) * (random.random((hosts, days)) < kind.spiked)
        self.clock = 3.0 * np.array([self.low_clocks.get(name, 1.0) for name in self.names])
        self.is_there = random.random((hosts, days)) >= kind.missing

    def labels(self) -> dict[str, dict[str, str]]:
        return {name: {"rack": f"r{i // RACK:02}"} for i, name in enumerate(self.names)}

    def write(self, folder: Path) -> Dataset:
        dataset = Dataset(folder)
        for day in range(self.kind.days):
            self._write_day(dataset, START + timedelta(day), np.flatnonzero(self.is_there[:, day]), day)
        if self.has_rack:
            self._write_day(dataset, date(2099, 1, 1), np.array([50]), 0)
        return dataset

    def _write_day(self, dataset: Dataset, day: date, hosts: np.ndarray, column: int) -> None:  # type: ignore[type-arg]
        at, rows = datetime.combine(day, datetime.min.time(), timezone.utc), len(hosts)
        key = {"host": [self.names[i] for i in hosts], "run": [f"r{day}-{i}" for i in hosts], "started": [at] * rows}
        is_slow_kernel = self.has_rack & (hosts < RACK)
        facts = {"kernel_release": [SLOW_KERNEL if slow else "6.1.0-28" for slow in is_slow_kernel]}
        facts["kernel_version"] = [f"#1 of {kernel}" for kernel in facts["kernel_release"]]
        facts["cpu_model"] = [f"CPU {i // RACK % self.kind.cpu_models}" for i in hosts]
        same = {"experiment": "ring", "noise": "quiet", "end_reason": "precise", "file_bytes": 1}
        dataset.write("machines", str(day), table("machines", {**key, **facts, **same}, rows))
        cases = []
        for case, ns in enumerate((1500.0, 2300.0)):
            value = ns * np.exp(self.values[hosts, column] + self.random.normal(0, 0.001, rows)) * 3 / self.clock[hosts]
            ring = {"experiment": "ring", "case": case, "title": f"ring of {2 + 62 * case}", "speed": "full"}
            figure = {"quantity": "switch", "unit": "ns", "estimate": value, "low": value * 0.98, "high": value * 1.02}
            figure |= {"clock_ghz": self.clock[hosts], "elasticity": np.ones(rows), "elasticity_error": np.full(rows, 0.02)}
            cases.append(table("cases", {**key, **ring, **figure}, rows))
        # Rows of a run that come later would take the place of these.
        dataset.write("cases", str(day), pa.concat_tables(cases))


def counts(fleet: SimulatedFleet) -> dict[str, Any]:
    """What was found, and what it took."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = fleet.write(Path(folder) / "d")
        began = time.monotonic()
        found = analyse(dataset, labels=fleet.labels())
        seconds = time.monotonic() - began
    stepped = {h.name: h.step.since for h in found.slower_since if h.step and h.step.experiment}
    day = str(START + timedelta(STEP_DAY))
    named = {h.name for h in [*found.slow, *found.probably_slow]}
    planted = fleet.slow | fleet.stepped | {*fleet.low_clocks}
    causes = [e for e in merged(found.effects) if set(e.members) & {*fleet.names[:RACK]}]
    is_one = len(causes) == 1 and causes[0].value == SLOW_KERNEL
    hosts = sum(group["hosts"] for group in found.groups)
    return {
        "steps": len(stepped.keys() & fleet.stepped),
        "planted steps": len(fleet.stepped),
        "with day": sum(since == day for name, since in stepped.items() if name in fleet.stepped),
        "false steps": len(stepped.keys() - fleet.stepped),
        "sound": len(fleet.names) - len(planted),
        "5 %": len(named & fleet.slow),
        "planted 5 %": len(fleet.slow),
        "promised": sum(g["hosts"] * g["named_shares"]["0.05"] for g in found.groups) / hosts,
        "false slow": len({h.name for h in found.slow} - planted),
        "false probably": len({h.name for h in found.probably_slow} - planted),
        "kernel": is_one,
        "other causes": len(merged(found.effects)) - len(causes),
        "clocks": len({h.name for h in found.hosts if h.by_clock and h.verdict == Verdict.SLOW} & {*fleet.low_clocks}),
        "planted clocks": len(fleet.low_clocks),
        "future": len(found.in_future),
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "seconds": seconds,
        "answer": found.answer(),
    }


def analysed(fleets: list[SimulatedFleet], processes: int) -> list[dict[str, Any]]:
    with get_context("fork").Pool(processes, maxtasksperchild=1) as pool:
        return pool.map(counts, fleets, chunksize=1)


def faults(arguments: argparse.Namespace) -> None:
    print("| fleet | steps found | with day | false | 5 % slow found | promised | sound: slow, probably | kernel one cause | low clocks | MB | s |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    fleets = [SimulatedFleet(kind, seed) for kind in FAULTS for seed in range(arguments.first, arguments.first + arguments.seeds)]
    results = analysed(fleets, arguments.processes)
    for number, kind in enumerate(FAULTS):
        own = results[number * arguments.seeds : (number + 1) * arguments.seeds]
        total = {key: sum(one[key] for one in own) for key in own[0] if key != "answer"}
        cells = [f"{total['steps']} of {total['planted steps']}", total["with day"], f"{total['false steps']} of {total['sound']}"]
        cells += [f"{total['5 %']} of {total['planted 5 %']}", f"{total['promised'] / len(own):.0%}"]
        cells += [f"{total['false slow']}, {total['false probably']}", f"{total['kernel']} of {len(own)}"]
        cells += [f"{total['clocks']} of {total['planted clocks']}", max(one["MB"] for one in own)]
        print(f"| {kind} | {' | '.join(map(str, cells))} | {max(one['seconds'] for one in own):.1f} |", flush=True)
        print(own[0]["answer"], file=sys.stderr, flush=True)


def power(arguments: argparse.Namespace) -> None:
    print("| scatter of hosts | tail | 5 % slow found | promised | sound: slow, probably |\n|--:|---|--:|--:|--:|")
    for scatter in (0.006, 0.01, 0.02, 0.03):
        for tail in ("normal", "lognormal", "t3"):
            kind = FleetKind(400, 7, tail, scatter)
            seeds = range(arguments.first, arguments.first + arguments.seeds)
            results = analysed([SimulatedFleet(kind, seed, only_slow=True) for seed in seeds], arguments.processes)
            found, planted = (sum(one[key] for one in results) for key in ("5 %", "planted 5 %"))
            false = [sum(one[key] for one in results) for key in ("false slow", "false probably")]
            promised = sum(one["promised"] for one in results) / len(results)
            cells = [f"{found} of {planted} ({found / planted:.0%})", f"{promised:.0%}", f"{false[0]}, {false[1]}"]
            print(f"| {scatter:.1%} | {tail} | {' | '.join(cells)} |", flush=True)


def clocks(arguments: argparse.Namespace) -> None:
    print("| hosts | MB | s | low clock found |\n|--:|--:|--:|--:|")
    for hosts in (40, 200, 2000):
        (found,) = analysed([SimulatedFleet(FleetKind(hosts, 7, "normal", 0.006), 1, only_clocks=True)], 1)
        print(f"| {hosts:,} | {found['MB']} | {found['seconds']:.1f} | {found['clocks']} of 1 |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["faults", "power", "clocks"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    {"faults": faults, "power": power, "clocks": clocks}[arguments.what](arguments)


if __name__ == "__main__":
    main()
