#!/usr/bin/env python3
"""A ring of two beside each of seven neighbours: does every figure that is given lie near the quiet one?

    bench/neighbours/run.py [--launches 25] [--budget 2s+] [--cpu 1] [--only busy,hog] [--program PATH]

Neighbours run on the ring's CPU or (memory hogs) on all CPUs, started from the session of the ring's program or from
one of their own. Launches of all settings take turns, so that what the machine does meets all alike. Prints a table:
launches that gave a figure at full speed, their median, the farthest from the median of the quiet ones, how many lie
within 3 % of it, the same with each figure brought to one clock by its launch's latency quantum, how many intervals
hold the quiet median, how often the neighbour was named, and perf's pipe benchmark beside the same neighbour, where
there is perf. Needs cc; nothing else may run.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
KINDS = ["none", "busy", "bursts", "pingpong", "yielders", "server", "hog"]


def start(program, kind, cpu, sessions):
    """The neighbours of a kind; on the ring's CPU, memory hogs on all."""
    if kind == "none":
        return []
    cpus = sorted(os.sched_getaffinity(0)) if kind == "hog" else [cpu]
    options = {"start_new_session": True} if sessions == "another" else {"process_group": 0}
    return [subprocess.Popen([program, kind, str(one)], **options) for one in cpus]


def stop(neighbours):
    for one in neighbours:
        os.killpg(one.pid, signal.SIGKILL)
        one.wait()


def ring(program, cpu, budget, home):
    """Cost of a switch with its interval and the clock's quantum, if it may be quoted; whether the neighbour was named."""
    environment = {**os.environ, "XDG_DATA_HOME": home + "/data", "XDG_STATE_HOME": home + "/state"}
    command = [program, "ring", "--members", "2", "--placement", str(cpu), "--budget", budget, "-q"]
    done = subprocess.run([*command, "--json", "-"], capture_output=True, text=True, env=environment)
    record = json.loads(done.stdout)
    cost = next(of for of in record["cases"] if of["case"]["members"] == 2)["ns_per_switch_above_solo"]
    competing = record.get("competing_tasks") or {"tasks": []}
    named = any(task["name"] == "neighbour" for task in competing["tasks"])
    quotable = cost and cost["speed"] == "full" and cost["resolved"]
    quantum_ns = record["speed"][0]["level"]["latency_ns"] if record["speed"] else float("nan")
    figure = (cost["value"], cost["low"], cost["high"], quantum_ns) if quotable else None
    return figure, named, (cost or {}).get("speed")


def perf(cpu):
    """Microseconds an operation of perf's pipe benchmark."""
    if not shutil.which("perf"):
        return None
    command = ["taskset", "-c", str(cpu), "perf", "bench", "sched", "pipe", "-l", "200000"]
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"([0-9.]+) usecs/op", done.stdout)
    return float(found[1]) if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=25)
    parser.add_argument("--perf", type=int, default=5, help="launches of perf's benchmark in each setting")
    parser.add_argument("--budget", default="2s+")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--program", default="target/release/switchcost")
    parser.add_argument("--csv", help="every launch, a line each")
    args = parser.parse_args()
    settings = [(kind, of) for kind in args.only.split(",") for of in ("own", "another")]
    launches = {setting: [] for setting in settings}
    perfs = {setting: [] for setting in settings}
    with tempfile.TemporaryDirectory() as home:
        neighbour = home + "/neighbour"
        subprocess.run(["cc", "-O1", "-pthread", "-o", neighbour, HERE / "neighbour.c"], check=True)
        for number in range(args.launches):
            for setting in settings:
                running = start(neighbour, setting[0], args.cpu, setting[1])
                time.sleep(0.1)
                try:
                    launches[setting].append(ring(args.program, args.cpu, args.budget, home))
                    if number < args.perf:
                        perfs[setting].append(perf(args.cpu))
                finally:
                    stop(running)
            print(f"launch {number + 1} of {args.launches}", file=sys.stderr)
    report(settings, launches, perfs)
    if args.csv:
        with open(args.csv, "w") as out:
            for setting, all in launches.items():
                for figure, named, speed in all:
                    print(*setting, *(figure or ("", "", "", "")), named, speed, sep=",", file=out)


def report(settings, launches, perfs):
    quiet = [of[0] for setting in settings if setting[0] == "none" for of in launches[setting] if of[0]]
    if not quiet:
        sys.exit("no quiet launch gave a figure")
    truth = statistics.median(of[0] for of in quiet)
    clock = statistics.median(of[3] for of in quiet)
    print(f"quiet: {truth:.1f} ns a switch, median of {len(quiet)} launches\n")
    head = ["neighbour", "session", "figures", "median ns", "farthest", "within 3 %", "at one clock", "within 3 %"]
    widths = [10, 8, 8, 10, 9, 11, 13, 11, 8, 8, 0]
    print(*(name.ljust(width) for name, width in zip([*head, "covered", "named", "perf us (min to max)"], widths)))
    given, outside = 0, [0, 0]
    for setting in settings:
        all = launches[setting]
        figures = [of for of, *_ in all if of]
        off = [[of[0] / truth - 1, of[0] / truth * clock / of[3] - 1] for of in figures]
        given += len(figures)
        cells = [*setting, f"{len(figures)}/{len(all)}"]
        cells.append(f"{statistics.median([of[0] for of in figures]):.1f}" if figures else "-")
        for which in (0, 1):
            near = sum(abs(of[which]) <= 0.03 for of in off)
            outside[which] += len(figures) - near
            farthest = max((of[which] for of in off), key=abs, default=None)
            cells.extend(["-" if farthest is None else f"{farthest:+.1%}", f"{near}/{len(figures)}"])
        covered = sum(low <= truth <= high for _, low, high, _ in figures)
        cells.extend([f"{covered}/{len(figures)}", f"{sum(named for _, named, _ in all)}/{len(all)}"])
        of_perf = [of for of in perfs[setting] if of]
        cells.append(f"{min(of_perf):.2f} to {max(of_perf):.2f}" if of_perf else "-")
        print(*(cell.ljust(width) for cell, width in zip(cells, widths)))
    print(f"\n{given} figures given, {outside[0]} of them outside 3 %, {outside[1]} brought to one clock")


if __name__ == "__main__":
    main()
