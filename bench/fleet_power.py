#!/usr/bin/env python3
"""What `switchcost fleet analyse` finds of slow hosts, beside a plain rule, in simulated fleets.

    bench/fleet_power.py --hosts 2000 --days 7 --seeds 20            all tails, faulty and sound fleets
    bench/fleet_power.py --hosts 2000 --days 1 --tails t4 --fdr 10%
    bench/fleet_power.py levels --hosts 300 --seeds 10               hosts that scatter by 0.6, 1, 2 and 3 %

`levels` judges figures of days without a dataset: 3 % of hosts are 5 % slow, 2 % become 10 % slower on day 4. Days scatter
by 0.8 %. Odd seeds have 2/3, even ones 4/3 of the hosts.

Without `levels`, a fleet: 3 kinds of CPU, 3 kernels of which one is 6 % slower, racks of 20 of which one is 8 % slower. Hosts scatter by
0.6 % (standard deviation, with the tail that is named), days by 0.8 % times Student's t of 3 degrees. 3 % of runs are
spiked by 15 %. 3 % of hosts are slow, half by 5 %, half by 20 %. `t4-wide` is 0.6 % times Student's t of 4 degrees.

The plain rule: a host's median ratio over days, to the median of its group, effects that were planted out, above five
robust deviations and 3 %. It is told the effects; `analyse` has to find them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from math import exp, log, log1p, sqrt
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import pyarrow as pa

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "python/src"))
from switchcost.fleet.analyse import share  # noqa: E402
from switchcost.fleet.dataset import Dataset  # noqa: E402
from switchcost.fleet.findings import SLOW, Verdict  # noqa: E402
from switchcost.fleet.judge import _Judge, analyse  # noqa: E402
from switchcost.fleet.measured import Course, Fleet  # noqa: E402
from switchcost.fleet.rows import SCHEMAS  # noqa: E402

START = date(2026, 10, 1)
CPUS = [("AMD EPYC 7763", 128), ("Intel Xeon 8480+", 112), ("AMD EPYC 9654", 192)]
KERNELS = {"5.14.0-427": 0.0, "6.1.0-28": 0.0, "6.6.60": 0.06}
HOSTS_A_RACK = 20
SPIKED, SPIKE = 0.03, 0.15


def lognormal(random: np.random.Generator, size: int) -> np.ndarray:  # type: ignore[type-arg]
    """Of a sigma of 0.5, with mean 0 and deviation 1."""
    return (np.exp(0.5 * random.normal(size=size)) - exp(0.125)) / sqrt((exp(0.25) - 1) * exp(0.25))


TAILS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {  # type: ignore[type-arg]
    "normal": lambda random, size: random.normal(size=size),
    "t4": lambda random, size: random.standard_t(4, size) / sqrt(2),
    "t3": lambda random, size: random.standard_t(3, size) / sqrt(3),
    "lognormal": lognormal,
    "t4-wide": lambda random, size: random.standard_t(4, size),
}


class SimulatedFleet:
    def __init__(self, seed: int, hosts: int, days: int, tail: str, faulty: bool) -> None:
        self.random = random = np.random.default_rng([seed, hosts, days, faulty])
        self.hosts, self.days = hosts, days
        self.names = [f"node{i:05}" for i in range(hosts)]
        self.cpu, self.kernel = random.choice(3, hosts), random.choice(3, hosts, p=[0.4, 0.4, 0.2])
        self.rack = np.arange(hosts) // HOSTS_A_RACK
        self.slow = np.zeros(hosts)
        self.parts = np.zeros(hosts)
        if faulty:
            self.parts = np.log1p(np.array([*KERNELS.values()])[self.kernel])
            self.parts[self.rack == random.integers(max(1, hosts // HOSTS_A_RACK))] += log(1.08)
            chosen = random.choice(hosts, round(0.03 * hosts), replace=False)
            self.slow[chosen[: len(chosen) // 2]], self.slow[chosen[len(chosen) // 2 :]] = 0.05, 0.20
        level = self.parts + np.log1p(self.slow) + 0.006 * TAILS[tail](random, hosts)
        by_day = level[:, None] + 0.008 * random.standard_t(3, (hosts, days))
        self.values = by_day + log1p(SPIKE) * (random.random((hosts, days)) < SPIKED)

    def write(self, folder: Path) -> Dataset:
        dataset, hosts = Dataset(folder), self.hosts
        for day in range(self.days):
            at = datetime.combine(START + timedelta(day), datetime.min.time(), timezone.utc)
            key = {"host": self.names, "run": [f"r{day}-{i}" for i in range(hosts)], "started": [at] * hosts}
            facts = {"cpu_model": [CPUS[k][0] for k in self.cpu], "cpus_online": [CPUS[k][1] for k in self.cpu]}
            facts["kernel_release"] = [[*KERNELS][k] for k in self.kernel]
            same = {"experiment": "ring", "noise": "quiet", "end_reason": "precise", "file_bytes": 1}
            dataset.write("machines", str(START + timedelta(day)), table("machines", {**key, **facts, **same}, hosts))
            cases = []
            for case, ns in enumerate((1500.0, 2300.0)):
                value = ns * np.exp(self.values[:, day] + self.random.normal(0, 0.001, hosts))
                ring = {"experiment": "ring", "case": case, "title": f"ring of {2 + 62 * case}", "speed": "full"}
                figure = {"quantity": "switch", "unit": "ns", "estimate": value, "low": value * 0.98, "high": value * 1.02}
                cases.append(table("cases", {**key, **ring, **figure}, hosts))
            # Rows of a run that come later would take the place of these.
            dataset.write("cases", str(START + timedelta(day)), pa.concat_tables(cases))
        return dataset

    def labels(self) -> dict[str, dict[str, str]]:
        return {name: {"rack": f"r{rack:03}"} for name, rack in zip(self.names, self.rack)}

    def plain(self) -> set[str]:
        rest = self.values - self.parts[:, None]
        for cpu in range(3):
            rest[self.cpu == cpu] -= np.median(rest[self.cpu == cpu], axis=0)
        level = np.median(rest, axis=1)
        robust = 1.4826 * np.median(np.abs(level - np.median(level)))
        return {self.names[i] for i in np.flatnonzero((level > 5 * robust) & (level > log(1.03)))}


def table(name: str, columns: dict[str, object], rows: int) -> pa.Table:
    arrays = []
    for field in SCHEMAS[name]:
        value = columns.get(field.name)
        whole = value is None or isinstance(value, (str, int))
        arrays.append(pa.repeat(pa.scalar(value, field.type), rows) if whole else pa.array(value, field.type))
    return pa.table(arrays, schema=SCHEMAS[name])


def one(of: tuple[int, int, int, str, bool, float]) -> dict[str, float]:
    seed, hosts, days, tail, faulty, fdr = of
    fleet = SimulatedFleet(seed, hosts, days, tail, faulty)
    with tempfile.TemporaryDirectory() as folder:
        dataset = fleet.write(Path(folder) / "d")
        begun = time.monotonic()
        found = analyse(dataset, labels=fleet.labels(), fdr=fdr)
        seconds = time.monotonic() - begun
    certain, candidates = {h.name for h in found.slow}, {h.name for h in found.probably_slow}
    again = {h.name for h in found.to_measure_again}
    by = {share: {fleet.names[i] for i in np.flatnonzero(fleet.slow == share)} for share in (0.05, 0.20)}
    slow, plain = by[0.05] | by[0.20], fleet.plain()
    wrong = [e for e in found.effects if (e.fact, e.value) != ("kernel_release", "6.6.60") and e.fact != "rack"]
    counts = {"hosts": len(by[0.05]), "hosts 20": len(by[0.20]), "seconds": seconds, "wrong effects": len(wrong)}
    for name, named in (("certain", certain), ("found", certain | candidates), ("plain", plain), ("again", again)):
        counts |= {f"{name} 5": len(named & by[0.05]), f"{name} 20": len(named & by[0.20]), f"{name} false": len(named - slow)}
    return counts | {"candidates": len(candidates), "candidates false": len(candidates - slow)}


class LevelFleet(Fleet):
    """Hosts of one group whose figures are those of days, for the judge alone."""

    def __init__(self, seed: int, hosts: int, days: int, tail: str, scatter: float) -> None:
        random = np.random.default_rng([seed, hosts, days, round(1e4 * scatter)])
        self.names = [f"n{i}" for i in range(hosts)]
        self.index = {name: i for i, name in enumerate(self.names)}
        self.group_by, self.keys, self.group = ["cpu_model"], np.array(["x"]), np.zeros(hosts, int)
        self.facts_of, self.labels_of, self.noises = {}, {}, ["quiet"] * hosts
        order = random.permutation(hosts)
        slow, stepped = round(0.03 * hosts), round(0.02 * hosts)
        self.slow, self.stepped = {*order[:slow].tolist()}, {*order[slow : slow + stepped].tolist()}
        level = scatter * TAILS[tail](random, hosts)
        level[order[:slow]] += log(1.05)
        values = level[:, None] + 0.008 * random.standard_t(3, (hosts, days)) / sqrt(3)
        values[order[slow : slow + stepped], 3:] += log(1.1)
        values -= np.median(values, axis=0)
        none, dates = np.empty((hosts, 0)), np.arange(days) + 20000.0
        self.courses = {"ring": Course(dates, values, np.full(values.shape, 0.01), np.zeros(values.shape))}
        self.clocks = Course(np.array([]), none, none, none)

    def _changed_facts(self, host: str, before: str, after: str) -> dict[str, tuple[str, str]]:
        return {}

    def counts(self, fdr: float) -> dict[str, float]:
        judge = _Judge(self, log(1.03), 0.05, fdr)
        for experiment, level in judge.levels.items():
            _, judge.rest[experiment] = judge._effects(level, experiment)
        judge._find_steps(set(), [])
        judge._judge_levels(set())
        judge._judge_steps()
        hosts = {verdict: {i for i, host in enumerate(judge.hosts) if host.verdict == verdict} for verdict in SLOW}
        probably, certain, sound = hosts[Verdict.PROBABLY_SLOW], hosts[Verdict.SLOW], {*range(len(self.names))} - self.slow - self.stepped
        false = len(probably & sound)
        counts = {"probably": len(probably), "false": false, "share": false / max(1, len(probably)), "certain false": len(certain & sound)}
        return {**counts, "found": len((probably | certain) & self.slow), "slow": len(self.slow)}


def level_counts(case: tuple[int, int, int, str, float, float]) -> dict[str, float]:
    *fleet, fdr = case
    return LevelFleet(*fleet).counts(fdr)  # type: ignore[arg-type]


def levels(arguments: argparse.Namespace, pool: Pool) -> None:  # type: ignore[valid-type]
    print("| tail | hosts scatter by | slow, found | probably slow | of these sound | mean share of a fleet | sound called slow |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for tail in arguments.tails.split(","):
        all_counts: list[dict[str, float]] = []
        for scatter in (0.006, 0.01, 0.02, 0.03, None):
            if scatter is None:
                counts = all_counts
            else:
                seeds = range(arguments.first, arguments.first + arguments.seeds)
                sizes = {0: arguments.hosts * 4 // 3, 1: arguments.hosts * 2 // 3}
                cases = [(seed, sizes[seed % 2], arguments.days, tail, scatter, arguments.fdr) for seed in seeds]
                counts = pool.map(level_counts, cases, chunksize=2)  # type: ignore[attr-defined]
                all_counts += counts
            total = {name: int(sum(fleet[name] for fleet in counts)) for name in counts[0]}
            shares = [fleet["share"] for fleet in counts]
            error = 1.96 * float(np.std(shares)) / sqrt(len(shares))
            cells = [tail, f"{scatter:.1%}" if scatter else "all", f"{total['found']} of {total['slow']}", total["probably"]]
            cells += [total["false"], f"{np.mean(shares):.1%} ± {error:.1%}", total["certain false"]]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


def row(tail: str, arguments: argparse.Namespace, pool: Pool) -> str:  # type: ignore[valid-type]
    def fleets(faulty: bool) -> list[dict[str, float]]:
        seeds = range(arguments.first, arguments.first + arguments.seeds)
        of = [(s, arguments.hosts, arguments.days, tail, faulty, arguments.fdr) for s in seeds]
        return pool.map(one, of, chunksize=1)  # type: ignore[attr-defined,no-any-return]

    faulty, sound = fleets(True), fleets(False)

    def total(name: str) -> int:
        return int(sum(fleet[name] for fleet in faulty))

    def with_any(name: str) -> str:
        return f"{sum(fleet[name] > 0 for fleet in sound)} of {len(sound)}"

    named = total("found 5") + total("found 20") + total("found false")
    shares = np.array([fleet["candidates false"] / max(fleet["candidates"], 1) for fleet in faulty])
    error = np.std(shares) / sqrt(len(shares))
    candidates = f"{total('candidates false')} of {total('candidates')}; {np.mean(shares):.1%} ± {error:.1%}"
    cells = [tail, f"{total('found 5')} of {total('hosts')}", f"{total('found 20')} of {total('hosts 20')}"]
    cells += [f"{total('certain 20')}, {total('certain 5')}", f"{total('certain false')}"]
    cells += [f"{total('found false')} of {named} ({total('found false') / max(named, 1):.1%})", candidates]
    cells += [with_any("certain false"), with_any("found false"), f"{total('again 5') + total('again 20')}, {total('again false')}"]
    cells += [f"{total('plain 5')}, {total('plain 20')}, {total('plain false')}", with_any("plain false")]
    cells += [f"{total('wrong effects')}", f"{np.median([fleet['seconds'] for fleet in faulty]):.1f}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["fleets", "levels"], default="fleets")
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--tails", default=",".join(TAILS))
    parser.add_argument("--fdr", type=share, default=0.05)
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.what == "levels":
        with Pool(arguments.processes) as pool:
            levels(arguments, pool)
        return
    head = ["tail", "5 % found", "20 % found", "certain: 20 %, 5 %", "certain, false", "false of named"]
    head += ["false of candidates; mean share of a fleet", "sound fleets with a false certain host", "with any", "to measure again: slow, sound"]
    head += ["plain rule: 5 %, 20 %, false", "sound fleets with a false host", "wrong effects", "s a fleet"]
    print(f"{arguments.hosts} hosts, {arguments.days} days, {arguments.seeds} seeds from {arguments.first}, --fdr {arguments.fdr:.0%}\n")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    with Pool(arguments.processes) as pool:
        for tail in arguments.tails.split(","):
            print(row(tail, arguments, pool), flush=True)


if __name__ == "__main__":
    main()
