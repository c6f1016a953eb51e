#!/usr/bin/env python3
"""Why a hop of `perf bench sched pipe` takes longer than one of `switchcost ring --members 2`: the difference in parts.

    bench/against_pipes.py [--rounds 40] [--laps 40000] [--cpu N] [--policy other|fifo]
                           [--switchcost target/release/switchcost]

A round measures in random order, all on one CPU under the policy of this script:

- *ours*: a hop of our ring of two and of one.
- *perf*: half of the time that perf prints for an operation, which is there and back.
- bench/bare-ring.c: a ring with nothing else in it, which makes its system calls by the C library (*library*), by
  instructions in the loop (*inline*, as ours), or by these in a function of its own (*function*), which returns as
  usual or by a jump (*function-jump*).
- *inline, not cut*: without the pauses between slices in which the core's speed is looked at.
- *library* and *inline* without the area of restartable sequences, which glibc registers and the kernel then writes
  after each switch (GLIBC_TUNABLES=glibc.pthread.rseq=0, glibc 2.35 and later).

Printed are hop, counted switches of a hop, and the ratio to ours, by all slices and by those that had the core for
themselves. Then perf's hop as a sum: ours, what the returns out of functions add (*function* less
*inline*, which take turns in one process), and the
rest. Exits with 1 if the rest is above 3 % of perf's hop. Where other tasks run, `--policy fifo` makes them wait. Needs
a C compiler; without perf its rows are missing. 40 rounds take some three minutes.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from side_by_side import (
    Ring,
    add_arguments,
    counted_run,
    idle_ratio,
    interval,
    median,
    our_rings,
    pinned,
    print_table,
    run_rounds,
    show_interval,
)

SOURCE = Path(__file__).with_name("bare-ring.c")
IN_TURN = "function,inline"
CALLS = ["library", "inline", "function", "function-read", "function-write", "function-jump"]
# Laps of a slice of a ring of so many members: 0.25 ms.
SLICE_LAPS = {1: 500, 2: 60}
# What may remain unexplained, as a share of perf's hop.
MOST_REST = 0.03


def build_ring(folder, name="bare-ring", *options):
    program = str(folder / name)
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O2", "-Wall", *options, "-o", program, SOURCE], check=True)
    return program


def bare_ring(program, args, calls, members=2, channel="pipe", has_rseq=True, has_slices=True):
    environment = dict(os.environ)
    if not has_rseq:
        environment["GLIBC_TUNABLES"] = "glibc.pthread.rseq=0"
    slice_laps = SLICE_LAPS[members] if has_slices else 0
    command = [program, calls, channel, str(members), str(args.cpu), str(args.laps), str(slice_laps)]
    result = json.loads(counted_run(pinned(args, command), environment)[0])
    ring = Ring()
    ring.hops, ring.elapsed_ns, ring.switches = result["hops"], result["elapsed_ns"], result["switches"]
    hops_ns = [time / result["slice_hops"] for time in result["slices_ns"]]
    ring.add_slices(hops_ns, result["latency_quanta_ns"], result["throughput_quanta_ns"])
    return ring


def perf_ring(args):
    command = ["perf", "bench", "sched", "pipe", "-l", str(args.laps)]
    text, switches, _ = counted_run(pinned(args, command))
    ring = Ring()
    ring.hops, ring.switches = 2 * args.laps, switches
    ring.elapsed_ns = float(re.search(r"([\d.]+) usecs/op", text).group(1)) * 1000 * args.laps
    return ring


def has_perf():
    if not shutil.which("perf"):
        return False
    return (
        subprocess.run(["perf", "bench", "sched", "pipe", "-l", "10"], capture_output=True, check=False).returncode == 0
    )


def programs_of(args, folder):
    """Returns what measures rings of two and of one, by name; each returns a Ring by number of members."""
    bare = build_ring(folder)

    def ours():
        rings = our_rings(args, ["--members", "2", "--laps", str(args.laps)])
        return {members: ring for (_, members), ring in rings.items()}

    def bare_rings(calls, has_rseq=True, has_slices=True):
        return lambda: {
            members: bare_ring(bare, args, calls, members, has_rseq=has_rseq, has_slices=has_slices)
            for members in (2, 1)
        }

    programs = {"ours": ours}
    if has_perf():
        programs["perf"] = lambda: {2: perf_ring(args)}
    else:
        print("perf: skipped: it is missing (Debian: linux-perf) or cannot run its benchmark")
    for calls in CALLS:
        programs[calls] = bare_rings(calls)
    for calls in ("library", "inline"):
        programs[f"{calls}, no rseq"] = bare_rings(calls, has_rseq=False)
    programs["inline, not cut"] = bare_rings("inline", has_slices=False)
    programs[IN_TURN] = lambda: {IN_TURN: bare_ring(bare, args, IN_TURN)}
    return programs


def print_rings(rounds, idle, members):
    """Prints a row a program: hop, counted switches, ratio to ours by all slices and by clean ones."""
    rows = []
    for name in rounds[0]:
        if members not in rounds[0][name]:
            continue
        ratios, clean = [], []
        for measured in rounds:
            theirs, ours = measured[name][members], measured["ours"][members]
            ratios.append(theirs.hop_ns / ours.hop_ns)
            clean_ns = [ring.clean_hop_ns(idle) for ring in (theirs, ours)]
            if all(clean_ns):
                clean.append((clean_ns[0], clean_ns[0] / clean_ns[1]))
        rings = [measured[name][members] for measured in rounds]
        row = [name, f"{median([ring.hop_ns for ring in rings]):.0f}"]
        row += [f"{median([ring.switches_per_hop for ring in rings]):.3f}", show_interval(ratios)]
        row.append(f"{median([hop for hop, _ in clean]):.0f}" if clean else "-")
        row.append(f"{show_interval([ratio for _, ratio in clean])}, {len(clean)} rounds" if clean else "-")
        rows.append(row)
    head = [f"ring of {members}", "ns/hop", "switches/hop", "ratio to ours", "clean slices", "ratio to ours, clean"]
    print_table(head, rows)


def print_parts(rounds):
    """Prints perf's hop as a sum of parts; returns whether the rest is small enough."""
    if "perf" not in rounds[0]:
        return True
    rings = {name: [measured[name][2] for measured in rounds] for name in ("ours", "perf")}
    returns_ns = median([measured[IN_TURN][IN_TURN].difference_ns for measured in rounds])
    parts = {"ours": [], "returns out of functions": [], "rest": []}
    for ours, perf in zip(rings["ours"], rings["perf"]):
        parts["ours"].append(100 * ours.hop_ns / perf.hop_ns)
        parts["returns out of functions"].append(100 * returns_ns / perf.hop_ns)
        parts["rest"].append(100 * (perf.hop_ns - ours.hop_ns - returns_ns) / perf.hop_ns)
    print("\nA hop of perf's loop, in % of it, medians over rounds:")
    for name, shares in parts.items():
        print(f"  {name:26} {show_interval(shares, 1)}")
    rest, low, high = interval(parts["rest"])
    is_explained = abs(rest) <= 100 * MOST_REST
    print(f"explained to within 3 %: {'yes' if is_explained else 'NO'}", end="")
    is_certain = low is not None and max(abs(low), abs(high)) <= 100 * MOST_REST
    print("" if is_certain else ", but the interval of the rest reaches beyond: more --rounds, or a quiet machine")
    return is_explained


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser, 40)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rounds = run_rounds(programs_of(args, Path(folder)), args.rounds)
    idle = idle_ratio(ring for measured in rounds for rings in measured.values() for ring in rings.values())
    print_rings(rounds, idle, 2)
    print()
    print_rings(rounds, idle, 1)
    sys.exit(0 if print_parts(rounds) else 1)


if __name__ == "__main__":
    main()
