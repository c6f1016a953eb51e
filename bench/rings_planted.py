#!/usr/bin/env python3
"""Two faults that are planted in rings at the same time: does `ring --rings` find them, and none where there is none?

    bench/rings_planted.py [--pairs 50] [--seconds 4] [--rings N] [--instructions 1700] [--writes 8] [--watchers 16]
                           [--switchcost target/release/switchcost]

Each pair measures `ring --rings N --placement spread --link sysv-sem` (N: a ring for each CPU) four times, in random order:

- *base*, *same*: nothing is planted.
- *filtered*: half of the rings, chosen at random, have a filter of so many instructions before each system call (seccomp(2)):
  1700 make a hop some 40 % longer on an EPYC.
- *contended*: before a member passes its token on, it writes so many times to one eventfd that all rings share. Epoll instances watch it,
  which each write calls under the eventfd's lock: rings wait for each other there. The single ring does the same, without anybody else.

`filtered` is found if the record names these rings and no others as held back. `contended` is found if the record says from how many
rings on they are held back, and the efficiency's interval lies below that of *base*. Each must be so in 45 of 50. False alarms, each in
at most 3 of 50: *same* names a ring; the efficiencies of *same* and *base* have intervals apart. Exits with 1 if it is not so.

A library does it (bench/planted-rings.c, LD_PRELOAD), which is there in all four: the program must be linked dynamically, and forks and
semop(2) go through the C library. Needs a C compiler, two CPUs, the privilege of --link sysv-sem and a quiet machine.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

LIBRARY = Path(__file__).with_name("planted-rings.c")
KINDS = ["base", "same", "filtered", "contended"]
# Shares of the pairs: 45 of 50, 3 of 50.
LEAST_FOUND = 0.9
MOST_ALARMS = 0.06


def build_library(folder):
    library = folder / "planted-rings.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O2", "-Wall", "-shared", "-fPIC", "-o", library, LIBRARY, "-ldl"], check=True)
    return library


def environment_of(kind, args, folder, filtered):
    """Returns the environment that plants one kind of fault."""
    # Stored launches of a plan show their scatter: a planted fault is none.
    store = str(folder / kind)
    environment = {**os.environ, "XDG_DATA_HOME": store, "XDG_STATE_HOME": store}
    environment |= {"LD_PRELOAD": str(folder / "planted-rings.so"), "PLANTED_MARK": str(folder / "mark")}
    if kind == "filtered":
        rings = ",".join(map(str, filtered))
        environment |= {"PLANTED_FILTERS": rings, "PLANTED_INSTRUCTIONS": str(args.instructions)}
    if kind == "contended":
        environment |= {"PLANTED_WRITES": str(args.writes), "PLANTED_WATCHERS": str(args.watchers)}
    return environment


def measure(kind, args, folder, filtered):
    """Measures with one kind of fault; returns the record."""
    command = [args.switchcost, "ring", "--rings", str(args.rings), "--placement", "spread", "--link", "sysv-sem"]
    command += ["--members", "2", "--budget", f"{args.seconds:g}s", "--precision", "0.1%", "--quiet", "--json", "-"]
    environment = environment_of(kind, args, folder, filtered)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{kind}: exit code {done.returncode}: {done.stderr}")
    mark = folder / "mark"
    if mark.exists() != (kind in ("filtered", "contended")):
        sys.exit(f"{kind}: the library did not act as it should: is {args.switchcost} linked dynamically? {done.stderr}")
    mark.unlink(missing_ok=True)
    return json.loads(done.stdout)


def most_rings(record):
    """Returns the figures of all rings together."""
    return max((case["rings_at_once"] for case in record["cases"] if case.get("rings_at_once")), key=lambda rings: rings["rings"])


def named(record):
    """Returns the rings that the record calls held back."""
    return [ring["ring"] for ring in most_rings(record)["each"] if ring["held_back"]]


def efficiency(record):
    """Returns the interval of the efficiency, or None where it may not be quoted."""
    estimate = most_rings(record)["efficiency"]
    if not estimate or estimate.get("not_quotable") or estimate["low"] is None:
        return None
    return estimate["low"], estimate["high"]


def is_below(one, other):
    return bool(one and other) and one[1] < other[0]


def is_held_back(record):
    return any(series.get("held_back_from") for series in record["rings_at_once"])


def in_words(record):
    """Returns the efficiency, and the hop of the slowest ring over the fastest's."""
    rings = most_rings(record)
    slowest = next((ring for ring in rings["each"] if ring["ring"] == rings["slowest"]), {})
    words = []
    for name, estimate in (("efficiency", rings["efficiency"]), ("slowest", slowest.get("over_fastest"))):
        if not estimate:
            words.append(f"{name} unknown")
        elif estimate["low"] is None or estimate.get("not_quotable"):
            words.append(f"{name} {estimate['value']:.2f} ({estimate['speed']})")
        else:
            words.append(f"{name} {estimate['value']:.2f} ({estimate['low']:.2f} to {estimate['high']:.2f})")
    return f"{', '.join(words)}, named {named(record)}{', held back' if is_held_back(record) else ''}"


def count(counts, records, filtered):
    """Adds one pair to the counts."""
    base, same = efficiency(records["base"]), efficiency(records["same"])
    contended = efficiency(records["contended"])
    counts["filtered"] += named(records["filtered"]) == filtered
    counts["named"] += bool(named(records["same"]))
    counts["contended"] += is_held_back(records["contended"]) and is_below(contended, base)
    counts["apart"] += is_below(same, base) or is_below(base, same)
    counts["unanswered"] += None in (base, same, contended)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rings", type=int, default=len(os.sched_getaffinity(0)), help="at most one for each CPU")
    parser.add_argument("--instructions", type=int, default=1700, choices=range(2, 4097), metavar="2..4096")
    parser.add_argument("--writes", type=int, default=8)
    parser.add_argument("--watchers", type=int, default=16)
    parser.add_argument("--switchcost", default="target/release/switchcost")
    args = parser.parse_args()
    if args.rings < 2:
        sys.exit("skipped: it needs two CPUs, one for each ring")
    counts = dict.fromkeys(["filtered", "named", "contended", "apart", "unanswered"], 0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_library(folder)
        for pair in range(args.pairs):
            filtered = sorted(random.sample(range(1, args.rings + 1), args.rings // 2))
            kinds = random.sample(KINDS, len(KINDS))
            records = {kind: measure(kind, args, folder, filtered) for kind in kinds}
            count(counts, records, filtered)
            print(f"{pair}: filter on {filtered}", flush=True)
            for kind in KINDS:
                print(f"    {kind}: {in_words(records[kind])}", flush=True)
    pairs = args.pairs
    print(f"{args.rings} rings: the filtered ones named in {counts['filtered']} of {pairs}, a plain one in {counts['named']} of {pairs}")
    print(f"contention found in {counts['contended']} of {pairs}, the same twice apart in {counts['apart']} of {pairs}; "
          f"without a quotable efficiency {counts['unanswered']}")
    found = min(counts["filtered"], counts["contended"]) >= LEAST_FOUND * pairs
    return 0 if found and max(counts["named"], counts["apart"]) <= MOST_ALARMS * pairs else 1


if __name__ == "__main__":
    sys.exit(main())
