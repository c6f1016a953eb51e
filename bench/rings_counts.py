#!/usr/bin/env python3
"""Counts of rings that run at the same time against the kernel's, launch after launch; and one ring against today's figure.

`counts`: each launch measures rings with few laps. A ring on one CPU switches once a hop; the kernel's counts must be that or more (other
tasks preempt too), in each ring, and the sums must be those of the rings. Prints how many samples were exact, had more and had fewer.
`one`: `ring --rings 1` and `ring` in turn; prints how many ratios of their hops are within 1 %.
    bench/rings_counts.py PROGRAM counts [LAUNCHES [RINGS [PLACEMENT]]]      default: 1000 1,2,3 spread
    bench/rings_counts.py PROGRAM one [PAIRS [BUDGET]]                       default: 20 10s; on a quiet machine
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def run(program, home, *words):
    environment = dict(os.environ, XDG_DATA_HOME=home, XDG_STATE_HOME=home, SWITCHCOST_IGNORE_BUSY="1")
    done = subprocess.run([program, "ring", *words], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{program} ring {' '.join(words)}: {done.stderr}")
    return done.stdout


def samples(home):
    for file in Path(home).rglob("runs/*.jsonl"):
        for line in file.read_text().splitlines():
            sample = json.loads(line).get("sample")
            if sample:
                yield sample
        file.unlink()


def switches(sample):
    return sample["counters"]["voluntary"] + sample["counters"]["involuntary"]


def count(program, launches, rings, placement):
    exact, more, fewer, wrong_sums, singles = 0, 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as home:
        for launch in range(launches):
            run(program, home, "--rings", rings, "--placement", placement, "--members", "2", "--laps", "50", "--rounds", "1", "--quiet")
            for sample in samples(home):
                each = sample.get("rings", [])
                for ring in each or [sample]:
                    solo = ring["hops"] == ring["laps"]
                    singles += solo
                    if solo:
                        continue
                    extra = switches(ring) - ring["hops"]
                    exact, more, fewer = exact + (extra == 0), more + (extra > 0), fewer + (extra < 0)
                if each:
                    sums = sum(map(switches, each)) == switches(sample)
                    wrong_sums += not (sums and sum(ring["hops"] for ring in each) == sample["hops"])
            if launch % 100 == 99:
                print(f"{launch + 1} launches: {exact} exact, {more} more, {fewer} fewer, {wrong_sums} wrong sums", flush=True)
    print(f"{launches} launches of {rings} rings, {placement}: of {exact + more + fewer} rings {exact} switched once a hop, "
          f"{more} more often, {fewer} less often; {wrong_sums} wrong sums")
    return fewer == 0 and wrong_sums == 0


def hop(program, *words):
    with tempfile.TemporaryDirectory() as home:
        record = json.loads(run(program, home, "--members", "2", "--placement", "same", "--json", "-", "--quiet", *words))
    case = next(case for case in record["cases"] if case["case"]["members"] == 2)
    return case["ns_per_hop"]["value"]


def compare(program, pairs, budget):
    within = 0
    for number in range(pairs):
        order = [("--rings", "1"), ()]
        figures = {words: hop(program, *words, "--budget", budget) for words in (order if number % 2 else order[::-1])}
        ratio = figures[order[0]] / figures[order[1]]
        within += abs(ratio - 1) < 0.01
        print(f"{ratio:.4f}", flush=True)
    print(f"{within} of {pairs} within 1 %")
    return within == pairs


def main():
    if len(sys.argv) < 3 or sys.argv[2] not in ("counts", "one"):
        sys.exit(__doc__)
    program, what, *rest = sys.argv[1:]
    if what == "counts":
        launches, rings, placement = (rest + ["1000", "1,2,3", "spread"][len(rest):])[:3]
        good = count(program, int(launches), rings, placement)
    else:
        pairs, budget = (rest + ["20", "10s"][len(rest):])[:2]
        good = compare(program, int(pairs), budget)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
