#!/usr/bin/env python3
"""Which share of a command's time is spent in timed laps: the rest is starting workers, setting up rings, warming up, reading counters.

    bench/timed-share.py BEFORE AFTER [LAUNCHES [COMMAND...]]     two programs, alternating; default: 5 launches of `ring`, `cost` and `response`

Default plans with a budget of 10 s. Prints a table in Markdown: medians (least to greatest) of timed laps over elapsed time, of the reference quanta
and the waits for an unshared core between them, and workers (one a case and round) in that time.
"""

import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def slices_ns(slices):
    """Quanta and waits of a batch."""
    waits = sum(wait["elapsed_ns"] for wait in slices.get("waits") or [])
    return waits + sum(slices["latency_ns"]) + sum(slices["throughput_ns"])


def timed_ns(sample):
    """Of a sample: timed laps, and what is between them."""
    sample = next(iter(sample.values())) if list(sample) in (["ring"], ["trial"]) else sample
    between = [slices_ns(sample["slices"])] if sample.get("slices") else []
    between += [slices_ns(one["slices"]) for one in sample.get("sliced", [])]
    laps = sample["elapsed_ns"]
    for triple in (sample.get("triples") or {}).get("all", []):
        laps += sum(triple["ring_ns"]) + sum(triple["solos_ns"])
        between.append(sum(triple["latency_ns"]) + sum(triple["throughput_ns"]))
    # A trial's time has its quanta in it.
    laps -= sum(between) if "tallies" in sample else 0
    return laps, sum(between), (sample["case"], sample["round"])


def once(program, command):
    """Shares of the elapsed time, and workers a second."""
    with tempfile.TemporaryDirectory() as work:
        places = {"XDG_DATA_HOME": f"{work}/data", "XDG_STATE_HOME": f"{work}/state"}
        began = time.monotonic_ns()
        words = [program, command, "--budget", "10s", "--quiet"]
        done = subprocess.run(words, env=os.environ | places, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        elapsed = time.monotonic_ns() - began
        assert done.returncode in (0, 1), words
        [file] = glob.glob(f"{work}/data/switchcost/runs/*.jsonl")
        with open(file) as lines:
            samples = [json.loads(line)["sample"] for line in lines if line.startswith('{"sample"')]
    laps, between, workers = zip(*map(timed_ns, samples))
    return 100 * sum(laps) / elapsed, 100 * sum(between) / elapsed, len(set(workers)) / (elapsed / 1e9)


def main():
    programs, launches = sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 5
    print("| command | build | timed laps % | quanta and waits % | workers/s |\n|---|---|--:|--:|--:|")
    for command in sys.argv[4:] or ["ring", "cost", "response"]:
        found = [[], []]
        for _ in range(launches):
            for runs, program in zip(found, programs):
                runs.append(once(program, command))
        for runs, build in zip(found, ["before", "after"]):
            cells = [f"{statistics.median(all):.1f} ({min(all):.1f} to {max(all):.1f})" for all in zip(*runs)]
            print(f"| `{command}` | {build} |", " | ".join(cells), "|", flush=True)


main()
