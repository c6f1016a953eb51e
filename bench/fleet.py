#!/usr/bin/env python3
"""Simulated fleets: what `switchcost fleet analyse` finds of planted faults, and what it takes at 50 million rows.

    bench/fleet.py fit RUNS...                      residuals of real launches, to bench/fleet-residuals.json
    bench/fleet.py faults --seeds 10                10,000 hosts, 30 days: found of what was planted
    bench/fleet.py sound --seeds 100 --hosts 1000   no faults: hosts that are called slow
    bench/fleet.py size FOLDER --rows 50e6          time, memory and size of compaction, analyse and report

Each day of each host takes the residuals of one real launch of `ring` and one of `cost`, with their intervals and
whether they were at full speed: the machine that they are of is a virtual one, its neighbours and other programs make
the tail. Hosts differ by a normal deviation of 0.4 % and an exponential one of 0.3 % (assumed), and wander by 0.2 %.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "python/src"))
from switchcost import _program  # noqa: E402
from switchcost.fleet.judge import analyse  # noqa: E402
from switchcost.fleet.dataset import AT_ONCE, Dataset  # noqa: E402
from switchcost.fleet.rows import SCHEMAS  # noqa: E402

START = date(2026, 10, 1)
MODELS = [("AMD EPYC 7763", "25-1-1", 128), ("Intel Xeon 8480+", "6-143-8", 112), ("AMD EPYC 9654", "25-17-1", 192)]
KERNELS = ["5.10.0-8", "5.10.0-28", "6.1.0-18", "6.1.0-28", "6.6.60", "6.12.30"]
HOSTS_A_RACK = 40


def fit(files: list[str]) -> None:
    """Log residuals to the median of each case, launch by launch."""
    launches: dict[str, list[dict[str, list[float | str | None]]]] = defaultdict(list)
    for file in sorted(files):
        export = [_program.find(), "runs", "export", "--format", "json", file]
        record = json.loads(subprocess.run(export, capture_output=True, check=True).stdout)
        summary = subprocess.run([*export[:4], "summary-csv", file], capture_output=True, check=True, text=True).stdout
        launch: dict[str, list[float | str | None]] = {}
        for row in csv.DictReader(io.StringIO(summary)):
            name = {"switch": "ns_per_switch_above_solo", "hop": "ns_per_hop"}[row["quantity"]]
            speed = record["cases"][int(row["case"])][name]["speed"]
            value, low, high = (float(row[k]) if row[k] else math.nan for k in ("estimate", "low", "high"))
            if value > 0:
                key = f"{row['title']}, {row['kind']}|{row['quantity']}"
                launch[key] = [math.log(value), low / value, high / value, speed]
        launches[record["header"]["plan"]["experiment"]].append(launch)
    centres: dict[str, float] = {}
    for of in launches.values():
        for key in {k for launch in of for k in launch}:
            centres[key] = median(launch[key][0] for launch in of if key in launch)  # type: ignore[type-var]
        for launch in of:
            for key, entry in launch.items():
                entry[0] = round(entry[0] - centres[key], 5)  # type: ignore[operator]
                entry[1:3] = [None if math.isnan(x) else round(x, 4) for x in entry[1:3]]  # type: ignore[arg-type]
    value = {"centres": {k: round(math.exp(v), 3) for k, v in sorted(centres.items())}, "launches": launches}
    text = json.dumps(value, separators=(",", ":")).replace("{", "\n{")
    (HERE / "fleet-residuals.json").write_text(text + "\n")


class Fleet:
    """Who the hosts are, and what is planted among them."""

    def __init__(self, seed: int, hosts: int, days: int, faults: bool) -> None:
        self.random = random = np.random.default_rng(seed)
        self.hosts, self.days = hosts, days
        self.names = np.array([f"node{i:05}" for i in range(hosts)])
        self.racks = np.array([f"r{i // HOSTS_A_RACK:03}" for i in range(hosts)])
        self.model = random.choice(3, hosts, p=[0.6, 0.3, 0.1])
        self.kernel = random.choice(6, hosts, p=[0.1, 0.3, 0.2, 0.2, 0.1, 0.1])
        self.level = random.normal(0, 0.004, hosts) + random.exponential(0.003, hosts)
        self.cost_level = np.zeros(hosts)
        self.trend = np.zeros(hosts)
        self.wander = np.zeros(hosts)
        self.slow: dict[str, float] = {}
        self.bad_kernels: dict[str, float] = {}
        self.bad_rack = ""
        if faults:
            for i, kernel in enumerate(random.choice(6, 3, replace=False)):
                self.bad_kernels[KERNELS[kernel]] = shift = [0.05, 0.08, 0.15][i]
                self.level[self.kernel == kernel] += math.log1p(shift)
            self.bad_rack = f"r{random.integers(hosts // HOSTS_A_RACK):03}"
            self.trend[self.racks == self.bad_rack] = math.log(1.10) / (days - 1)
            healthy = np.flatnonzero(self.racks != self.bad_rack)
            for rank, i in enumerate(random.choice(healthy, 20, replace=False)):
                self.slow[str(self.names[i])] = share = 0.05 + 0.35 * rank / 19
                # Every fourth is slow with working sets alone.
                (self.cost_level if rank % 4 == 3 else self.level)[i] += math.log1p(share)
        fitted = json.loads((HERE / "fleet-residuals.json").read_text())
        self.centres, self.launches = fitted["centres"], fitted["launches"]

    def labels(self) -> dict[str, dict[str, str]]:
        return {str(n): {"rack": str(r)} for n, r in zip(self.names, self.racks)}

    def day(self, number: int, samples: int) -> dict[str, pa.Table]:
        """One day's rows by table; `samples` of each case."""
        random, n = self.random, self.hosts
        self.wander = 0.8 * self.wander + random.normal(0, 0.0012, n)
        level = self.level + self.wander + self.trend * number + random.normal(0, 0.005)
        parts: dict[str, list[pa.Table]] = {table: [] for table in SCHEMAS}
        for experiment in ("ring", "cost"):
            launches = self.launches[experiment]
            drawn = random.integers(len(launches), size=n)
            at = datetime.combine(START + timedelta(number), datetime.min.time(), timezone.utc) + timedelta(hours=3)
            stamp = f"{at:%Y%m%dT%H%M%S}000Z-{experiment}-"
            key = {
                "host": pa.array(self.names),
                "run": pa.array([f"{stamp}{p}" for p in random.integers(1000, 32768, n)]),
                "started": pa.array(np.full(n, at.replace(tzinfo=None), "datetime64[us]"), pa.timestamp("us", "UTC")),
            }
            parts["machines"].append(self._machines(key, experiment))
            for case, name in enumerate(sorted({k for launch in launches for k in launch})):
                rows = self._case(name, experiment, case, launches, drawn, level + (experiment == "cost") * self.cost_level)
                there = pa.array(~np.isnan(rows["estimate"]))
                table = _table("cases", n, {**key, **rows}).filter(there)
                parts["cases"].append(table)
                if samples:
                    parts["samples"].append(self._samples(table, samples))
        return {table: pa.concat_tables(found) for table, found in parts.items() if found}

    def _case(self, name, experiment, case, launches, drawn, level):  # type: ignore[no-untyped-def]
        title, quantity = name.split("|")
        missing = [math.nan, None, None, None]
        entries = [launch.get(name, missing) for launch in launches]
        residual, low, high = (np.array([math.nan if e[i] is None else e[i] for e in entries])[drawn] for i in range(3))
        estimate = self.centres[name] * np.exp(residual + level)
        speeds = pa.array([e[3] for e in entries]).take(pa.array(drawn))
        members = int(title.split("of ")[1].split(",")[0].split(" ")[0])
        texts = {"experiment": experiment, "title": title.rsplit(", ", 1)[0], "quantity": quantity, "unit": "ns"}
        texts |= {"kind": title.rsplit(", ", 1)[1], "link": "pipe", "placement": "same", "policy": "other"}
        figures = {"estimate": estimate, "low": _or_null(low * estimate), "high": _or_null(high * estimate)}
        return {**texts, "case": case, "members": members, "speed": speeds, "rounds": 10, "quotable": True, **figures}

    def _samples(self, cases: pa.Table, samples: int) -> pa.Table:
        rows = len(cases) * samples
        taken = {name: cases[name].take(pa.array(np.repeat(np.arange(len(cases)), samples))) for name in SCHEMAS["samples"].names if name in cases.column_names}
        hops = self.random.integers(9000, 11000, rows)
        estimate = np.repeat(cases["estimate"].to_numpy(), samples)
        elapsed = (hops * estimate * np.exp(self.random.normal(0, 0.02, rows))).astype(np.int64)
        number = np.tile(np.arange(samples), len(cases))
        counts = {"hops": hops, "elapsed_ns": elapsed, "cpu_ns": elapsed, "laps": hops // 2, "voluntary": hops}
        counts |= {"system_ns": elapsed * 4 // 5, "user_ns": elapsed // 5, "setup_ns": self.random.integers(1e6, 9e6, rows)}
        zero = dict.fromkeys(["involuntary", "migrations", "minor_faults", "major_faults", "steal_ns"], 0)
        return _table("samples", rows, {**taken, **counts, **zero, "round": number // 3, "sample": number % 3})

    def _machines(self, key: dict[str, pa.Array], experiment: str) -> pa.Table:
        def of(values: list[str], index: np.ndarray) -> pa.Array:  # type: ignore[type-arg]
            return pa.array(values).take(pa.array(index))

        facts = {
            "cpu_model": of([m[0] for m in MODELS], self.model),
            "cpu_stepping": of([m[1] for m in MODELS], self.model),
            "cpus_online": pa.array([m[2] for m in MODELS]).take(pa.array(self.model)),
            "kernel_release": of(KERNELS, self.kernel),
            "microcode": of(["0xa0011d5", "0x2b000603", "0xa101148"], self.model),
            "numa_nodes": 2,
            "memory_bytes": 512 << 30,
            "file_bytes": 200_000,
        }
        texts = {"hypervisor": "none", "frequency_governor": "performance", "smt_control": "on", "noise": "quiet"}
        texts |= {"clock_source": "tsc", "build_version": "0.1.0", "experiment": experiment, "end_reason": "precise"}
        return _table("machines", self.hosts, {**key, **facts, **texts})


def _or_null(values: np.ndarray) -> pa.Array:  # type: ignore[type-arg]
    return pa.array(values, from_pandas=True)


def _table(table: str, rows: int, columns: dict[str, object]) -> pa.Table:
    arrays = []
    for field in SCHEMAS[table]:
        value = columns.get(field.name)
        if value is None or isinstance(value, (str, int, float)):
            value = pa.repeat(pa.scalar(value, field.type), rows)
        arrays.append(value if isinstance(value, pa.ChunkedArray) else pa.array(value, field.type))
    return pa.table(arrays, schema=SCHEMAS[table])


def simulate(fleet: Fleet, folder: Path, samples: int = 0) -> Dataset:
    """With samples as `compact` does it: in parts of as many runs as it reads at once, which are merged by day."""
    dataset, compacting = Dataset(folder), 0.0
    for number in range(fleet.days):
        day = (START + timedelta(number)).isoformat()
        for table, rows in fleet.day(number, samples).items():
            begun = time.monotonic()
            if samples:
                size = -(-len(rows) * AT_ONCE // (2 * fleet.hosts))
                with dataset._at_work("cannot be written") as work:
                    for first in range(0, len(rows), size):
                        dataset._write_part(table, day, rows.slice(first, size), work)
                    dataset._merge(work)
            else:
                dataset.write(table, day, rows)
            compacting += time.monotonic() - begun
    if samples:
        print(f"compaction: {compacting:.1f} s", flush=True)
    return dataset


def faults(arguments: argparse.Namespace) -> None:
    print("| seed | slow hosts found of 20 | smallest found | largest missed | bad kernels of 3 | drifting rack | false hosts | false kernels, racks |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        fleet = Fleet(seed, arguments.hosts, arguments.days, faults=True)
        with tempfile.TemporaryDirectory() as folder:
            found = analyse(simulate(fleet, Path(folder) / "d"), labels=fleet.labels())
        named = {h.name for h in [*found.slow, *found.to_measure_again]}
        rack = set(fleet.names[fleet.racks == fleet.bad_rack])
        false = (named | {h.name for h in [*found.becoming_slower, *found.faster]}) - fleet.slow.keys() - rack
        hit, missed = ([s for n, s in fleet.slow.items() if (n in named) == there] for there in (True, False))
        kernels = {e.value for e in found.effects if e.fact == "kernel_release"}
        racks = {e.value for e in found.drifts if e.fact == "rack"}
        wrong = len(kernels - fleet.bad_kernels.keys()) + len(racks - {fleet.bad_rack})
        wrong += sum(e.fact not in ("kernel_release", "rack") for e in [*found.effects, *found.drifts])
        smallest, largest = (f"{min(hit):.0%}" if hit else "-"), (f"{max(missed):.0%}" if missed else "-")
        cells = [seed, len(hit), smallest, largest, len(kernels & fleet.bad_kernels.keys())]
        print("|", " | ".join(map(str, [*cells, int(fleet.bad_rack in racks), len(false), wrong])), "|", flush=True)
        print(found.answer(), file=sys.stderr, flush=True)


def sound(arguments: argparse.Namespace) -> None:
    fleets = hosts = others = 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        fleet = Fleet(seed, arguments.hosts, arguments.days, faults=False)
        with tempfile.TemporaryDirectory() as folder:
            found = analyse(simulate(fleet, Path(folder) / "d"), labels=fleet.labels())
        named = [*found.slow, *found.to_measure_again, *found.becoming_slower, *found.faster]
        hosts, fleets, others = hosts + len(named), fleets + bool(named), others + len(found.effects) + len(found.drifts)
        if named or found.effects or found.drifts:
            print(f"seed {seed}: {found.answer()}", file=sys.stderr, flush=True)
    print(f"{arguments.seeds} sound fleets of {arguments.hosts} hosts, {arguments.days} days: {fleets} with a false host ({hosts} hosts), {others} false kernels or racks")


def size(arguments: argparse.Namespace) -> None:
    """Each step in a process of its own, so that its memory can be told."""
    folder = Path(arguments.folder)
    hosts = arguments.hosts
    fleet = Fleet(1, hosts, arguments.days, faults=hosts >= 1000)
    cases = sum(len({k for launch in of for k in launch}) for of in fleet.launches.values())
    samples = max(1, round(arguments.rows / hosts / arguments.days / cases))
    started = time.monotonic()
    child = os.fork()
    if not child:
        simulate(fleet, folder, samples)
        (folder / "hosts.csv").write_text("host,rack\n" + "".join(f"{n},{r}\n" for n, r in zip(fleet.names, fleet.racks)))
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    print(f"generation and compaction: {time.monotonic() - started:.0f} s, {used.ru_maxrss >> 10} MiB, status {status}", flush=True)
    for step in (["analyse", "--dataset", str(folder)], ["report", "--dataset", str(folder), "-o", str(folder / "report.html")]):
        started = time.monotonic()
        command = [sys.executable, "-c", "import sys; from switchcost.fleet.cli import main; sys.exit(main())", *step]
        child = os.fork()
        if not child:
            os.environ["PYTHONPATH"] = str(HERE.parent / "python/src")
            os.execv(sys.executable, command)
        _, status, used = os.wait4(child, 0)
        print(f"{step[0]}: {time.monotonic() - started:.1f} s, {used.ru_maxrss >> 10} MiB, status {status}", flush=True)
    bytes_of = {t: sum(f.stat().st_size for f in (folder / "parquet" / t).rglob("*.parquet")) for t in SCHEMAS}
    with Dataset(folder).connect() as connection:
        rows = {t: connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in SCHEMAS}  # type: ignore[index]
    print({t: f"{rows[t]:,} rows, {bytes_of[t] / 1e6:.1f} MB, {bytes_of[t] / max(rows[t], 1):.1f} B a row" for t in SCHEMAS})
    if (folder / "report.html").exists():
        print(f"report.html: {(folder / 'report.html').stat().st_size / 1e6:.2f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["fit", "faults", "sound", "size"])
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--rows", type=float, default=0.5e6)
    arguments = parser.parse_args()
    if arguments.what == "fit":
        return fit(arguments.rest)
    arguments.folder = arguments.rest[0] if arguments.rest else None
    {"faults": faults, "sound": sound, "size": size}[arguments.what](arguments)


if __name__ == "__main__":
    main()
