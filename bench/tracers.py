#!/usr/bin/env python3
"""What tracing every switch of the machine costs a ring of two, by switchtrace and by others, and what each of them lost.

    bench/tracers.py [LAUNCHES]     default 12, some 15 s each; as root, on a quiet machine

A launch of a ring (120,000 switches on CPU 1) goes untraced and traced in turn, the ways in turn too. Tracers run on CPU 0 and see the whole
machine. Prints a table in Markdown: ns a switch above the mean of the untraced launches before and after, median (least to greatest).
"""

import contextlib
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

INSTANCE = "/sys/kernel/tracing/instances/switchcost"


def said(*words):
    """Standard output and error of a command, which runs on CPU 0."""
    done = subprocess.run(["taskset", "-c", "0", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words[:2])}: {done.stderr.strip() or done.returncode}")
    return done.stdout, done.stderr


def bench():
    words = "cargo bench --quiet -p switchtrace --bench cost --no-run --message-format json".split()
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    return next(program for line in lines if (program := json.loads(line).get("executable")))


def ring(program, laps=60_000):
    return program, "once", str(laps)


def ours(program, way):
    ns, lost = said(program, "around", way, *ring(program))[0].split()
    return float(ns), int(lost)


def perf_sched(program, work):
    file = f"{work}/perf.data"
    ns = said("perf", "sched", "record", "-a", "-o", file, "--", *ring(program))[0]
    stats = said("perf", "report", "--stats", "-i", file)[0]
    os.remove(file)
    return float(ns.split()[0]), sum(map(int, re.findall(r"sched_switch stats:\n.*\n *LOST_SAMPLES events: *(\d+)", stats)))


def perf_trace(program, work):
    # Some 100 us a switch.
    ns, errors = said("perf", "trace", "-s", "-a", "-o", f"{work}/trace.txt", "--", *ring(program, 2_000))
    with open(f"{work}/trace.txt") as text:
        return float(ns.split()[0]), sum(map(int, re.findall(r"LOST (\d+) events", errors + text.read())))


def trace_cmd(program, work):
    """What it does on each CPU, and no more: it wants to write ftrace_enabled first, which some kernels refuse."""
    os.mkdir(INSTANCE)
    try:
        with contextlib.ExitStack() as ends:
            for cpu in glob.glob(f"{INSTANCE}/per_cpu/cpu*"):
                file = ends.enter_context(open(f"{work}/{os.path.basename(cpu)}", "wb"))
                reader = subprocess.Popen(["taskset", "-c", "0", "cat", f"{cpu}/trace_pipe_raw"], stdout=file)
                ends.callback(reader.wait)
                ends.callback(reader.kill)
            enable(1)
            ns = said(*ring(program))[0]
            enable(0)
        lost = 0
        for stats in glob.glob(f"{INSTANCE}/per_cpu/cpu*/stats"):
            with open(stats) as text:
                lost += sum(map(int, re.findall(r"(?:overrun|dropped events): (\d+)", text.read())))
        return float(ns), lost
    finally:
        enable(0)
        os.rmdir(INSTANCE)


def enable(value):
    with open(f"{INSTANCE}/events/sched/sched_switch/enable", "w") as file:
        file.write(str(value))


def main():
    launches = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    program = bench()
    with tempfile.TemporaryDirectory() as work:
        ways = {
            "an empty probe": lambda: ours(program, "empty"),
            "switchtrace, times only": lambda: ours(program, "times"),
            "switchtrace, with activity": lambda: ours(program, "activity"),
            "switchtrace, recording": lambda: ours(program, "recording"),
            "`sched_switch` by tracefs, as `trace-cmd record`": lambda: trace_cmd(program, work),
            "`perf sched record -a`": lambda: perf_sched(program, work),
            "`perf trace -s -a` (system calls, no switches)": lambda: perf_trace(program, work),
        }
        untraced, above, lost = [], {name: [] for name in ways}, dict.fromkeys(ways, 0)
        before = float(said(*ring(program))[0])
        for launch in range(launches):
            names = list(ways)
            for name in names[launch % len(names):] + names[: launch % len(names)]:
                try:
                    traced, missing = ways[name]()
                except (OSError, ValueError) as why:
                    print(f"skipped: {name}: {why}", file=sys.stderr)
                    del ways[name]
                    continue
                after = float(said(*ring(program))[0])
                above[name].append(traced - (before + after) / 2)
                lost[name] += missing
                untraced.append(before := after)
    print(f"untraced: {statistics.median(untraced):.0f} ({min(untraced):.0f} to {max(untraced):.0f}) ns a switch, {len(untraced)} launches\n")
    print("| | ns a switch above untraced | launches | lost events |\n|---|--:|--:|--:|")
    for name in ways:
        of = above[name]
        print(f"| {name} | {statistics.median(of):.0f} ({min(of):.0f} to {max(of):.0f}) | {len(of)} | {lost[name]:,} |")


if __name__ == "__main__":
    main()
