#!/usr/bin/env python3
"""A delay that is planted on some 2 % of the wake-ups: is it found at p99, and none where there is none?

    bench/planted_wakeups.py [--pairs 50] [--seconds 10] [--cpu N] [--switchcost target/release/switchcost]

Each pair measures `response --only load --rate 2000` three times, in random order: twice plain, once
beside a task under SCHED_FIFO that takes the workers' CPU for 200 us of every 10 ms. 2 % of the wakes
then meet it, and half of these wait for more than 100 us. Launches with the task have a store of their
own: what earlier launches differed by is no scatter of the same command. `compare --cost p99` must find the planted one
worse than a plain one (45 of 50), and the two plain ones changed in at most 3 of 50. Needs root or a
limit of real-time priority, two CPUs and a quiet machine.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PERIOD_NS = 10_000_000
BURST_NS = 200_000


def disturb(cpu):
    """Takes a CPU for a while of every period, until it is killed."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    due = time.monotonic_ns()
    while True:
        end = time.monotonic_ns() + BURST_NS
        while time.monotonic_ns() < end:
            pass
        due += PERIOD_NS
        time.sleep(max(0, due - time.monotonic_ns()) / 1e9)


def measure(args, name, store):
    """Measures once, and returns the path of the run file."""
    command = [args.switchcost, "response", "--only", "load", "--rate", "2000", "--cpu", str(args.cpu)]
    command += ["--budget", f"{args.seconds}s", "--precision", "0.1%", "--quiet", "--name", name]
    environment = {**os.environ, "XDG_DATA_HOME": store, "XDG_STATE_HOME": store}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return max(Path(store).rglob("runs/*.jsonl"), key=lambda file: file.stat().st_mtime_ns)


def measure_planted(args, name, store):
    task = os.fork()
    if task == 0:
        try:
            disturb(args.cpu)
        finally:
            os._exit(1)
    try:
        run = measure(args, name, store)
        if os.waitpid(task, os.WNOHANG) != (0, 0):
            sys.exit("the task that disturbs has ended: SCHED_FIFO was not granted?")
        return run
    finally:
        os.kill(task, 9)
        os.waitpid(task, 0)


def change(args, base, new):
    """Returns the answer on the rate's case."""
    command = [args.switchcost, "compare", base, new, "--cost", "p99", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for one in json.loads(done.stdout)["changes"]:
        if one["labels"].get("rate-per-s"):
            return one
    sys.exit(f"no case of a rate: {done.stderr}")


def in_words(ratio):
    if not ratio or ratio["value"] is None:
        return "no ratio"
    return f"{ratio['value']:.2f} ({ratio['low'] or 0:.2f} to {ratio['high'] or float('inf'):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--switchcost", default="target/release/switchcost")
    args = parser.parse_args()
    found = alarms = 0
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as disturbed:
        for pair in range(args.pairs):
            launches = [("base", measure, plain), ("same", measure, plain), ("planted", measure_planted, disturbed)]
            random.shuffle(launches)
            runs = {name: launch(args, f"{name}-{pair}", store) for name, launch, store in launches}
            planted = change(args, runs["base"], runs["planted"])
            same = change(args, runs["base"], runs["same"])
            found += planted["answer"] == "changed" and planted["worse"]
            alarms += same["answer"] == "changed"
            ratios = [one["ratio"] for one in (planted, same)]
            words = [in_words(ratio) for ratio in ratios]
            print(f"{pair}: planted {words[0]}, the same {words[1]}", flush=True)
    print(f"planted found in {found} of {args.pairs}, the same changed in {alarms} of {args.pairs}")


if __name__ == "__main__":
    main()
