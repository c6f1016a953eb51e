#!/usr/bin/env python3
"""Items under way: `--flight 1` beside the ring of two, and a sweep of flights.

    bench/streams.py ratio REPEATS [OPTIONS...]    `ring --members 2` and `ring --flight 1` in turn, in random order; prints the ratio of
                                                   each pair, and exits with 1 if a median leaves 0.99 to 1.01
    bench/streams.py sweep [BUDGET [OPTIONS...]]   time, switches and wake-ups of an item for 1, 2, 4, 16, 64, 256 and a full pipe: on one
                                                   CPU, free, and (where there are two CPUs) on a pair

SWITCHCOST is the program (default: target/release/switchcost). OPTIONS are of `ring`. Run files go to a folder that is removed.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

PROGRAM = os.environ.get("SWITCHCOST", "target/release/switchcost")
FLIGHTS = "1,2,4,16,64,256,full"
LIMIT = 0.01


def measure(folder, options):
    """Returns the cases of a run of `ring`."""
    environment = dict(os.environ, XDG_DATA_HOME=folder)
    command = [PROGRAM, "ring", "--quiet", "--json", "-", *options]
    output = subprocess.run(command, stdout=subprocess.PIPE, env=environment)
    if output.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: exit code {output.returncode}")
    return json.loads(output.stdout)["cases"]


def hop_of_two(cases):
    """Returns the time of a hop of the ring of two in nanoseconds, and whether it may be quoted."""
    for case in cases:
        if case["case"]["members"] == 2:
            hop = case["ns_per_hop"]
            return hop["value"], "not_quotable" not in hop
    sys.exit("no ring of two was measured")


def ratio(folder, repeats, options):
    """Measures both in turn; returns the exit code."""
    sides = {"two": ["--members", "2"], "flight": ["--members", "2", "--flight", "1"]}
    ratios = []
    for number in range(repeats):
        order = random.Random(number).sample(sorted(sides), 2)
        hops = {side: hop_of_two(measure(folder, [*sides[side], *options])) for side in order}
        ratios.append(hops["flight"][0] / hops["two"][0])
        marks = {side: "" if hops[side][1] else "~" for side in hops}
        print(f"{marks['two']}{hops['two'][0]:.1f} ns, {marks['flight']}{hops['flight'][0]:.1f} ns: {ratios[-1]:.4f}", flush=True)
    median = statistics.median(ratios)
    within = sum(abs(one - 1) <= LIMIT for one in ratios)
    print(f"median {median:.4f}, {within} of {repeats} within {LIMIT:.0%}")
    return 0 if abs(median - 1) <= LIMIT else 1


def sweep(folder, budget, options):
    """Prints a table in Markdown."""
    cpus = sorted(os.sched_getaffinity(0))
    placements = ["same", "free"] + ([f"{cpus[0]},{cpus[1]}"] if len(cpus) > 1 else [])
    print("| placement | under way | ns an item | switches | wake-ups |\n|---|---|---|---|---|")
    for placement in placements:
        cases = measure(folder, ["--flight", FLIGHTS, "--placement", placement, "--budget", budget, *options])
        for case in cases:
            if case["case"]["members"] == 1:
                continue
            flight = case["case"].get("flight") or 1
            flight = flight["items"] if isinstance(flight, dict) else flight
            hop = case["ns_per_hop"]
            mark = "~" if "not_quotable" in hop else ""
            counts = [case[name]["value"] for name in ("switches_per_hop", "wakeups_per_hop")]
            print(f"| {placement} | {flight} | {mark}{hop['value']:.1f} | {counts[0]:.4f} | {counts[1]:.4f} |", flush=True)
    return 0


def main():
    """Returns the exit code."""
    words = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        if len(words) >= 2 and words[0] == "ratio" and words[1].isdigit() and int(words[1]) > 0:
            return ratio(folder, int(words[1]), words[2:])
        if words and words[0] == "sweep":
            return sweep(folder, words[1] if len(words) > 1 else "20s", words[2:])
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
