#!/usr/bin/env python3
"""The estimate of `switchcost cost -- CMD` against the truth: programs whose loss to context switches is known.

bench/switch-loss.c works in periods on an array of each thread, with one thread and with many, the same work in all. What many take
more CPU time is the real loss, of a program that is not watched. Runs alone, with many, and with many and watched alternate; the medians are
compared. Prints a table in Markdown: real loss, predicted
range, whether the real loss lies in it (with what the real loss itself is uncertain by, half the distance of its quartiles), and what share of
all cases does.
    bench/switch-loss.py PROGRAM [CPU [REPEATS]]     PROGRAM: the switchcost to test, with a stored profile (run `switchcost cost` first)
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

THREADS = [2, 8, 64]
PERIODS_US = [50, 200, 1000]
BYTES = [0, 64 << 10, 256 << 10, 1 << 20]
WORK_US = 1_000_000


def main():
    program, cpu = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "0"
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        loss, record = f"{folder}/switch-loss", f"{folder}/record.json"
        subprocess.run(["gcc", "-O2", "-pthread", "-o", loss, f"{here}/switch-loss.c"], check=True)

        def run(*words, before=()):
            words = [*before, loss, cpu, *map(str, words)]
            return subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split()

        print("| threads | period us | array KiB | switches/s | real loss % | predicted % | in the range |")
        print("|--:|--:|--:|--:|--:|--:|:--|")
        held, widths, told = 0, [], 0
        cases = [(t, p, b) for b in BYTES for p in PERIODS_US for t in THREADS]
        for threads, period, size in cases:
            steps = run(1, period, size, 0, 0)[0]
            periods = max(WORK_US // (period * threads), 4)
            losses, ranges, rate = [], [], []
            for _ in range(repeats):
                alone = int(run(1, period, size, steps, periods * threads)[0])
                watch = [program, "cost", "--quiet", "--json", record, "--"]
                many, switches = map(int, run(threads, period, size, steps, periods))
                losses.append(100 * (1 - alone / many))
                rate.append(switches / many * 1e9)
                run(threads, period, size, steps, periods, before=watch)
                cost = json.load(open(record))["cost"]
                if cost["answer"] == "estimated":
                    ranges.append((100 * cost["share"]["low"], 100 * cost["share"]["high"]))
            real = statistics.median(losses)
            quarters = statistics.quantiles(losses, n=4)
            slack = (quarters[2] - quarters[0]) / 2
            words, inside = "not known", "-"
            if ranges:
                low, high = (statistics.median(end) for end in zip(*ranges))
                told += 1
                inside = low - slack <= real <= high + slack
                held += inside
                if low > 0:
                    widths.append(high / low)
                words = f"{low:.1f} to {high:.1f}"
                inside = "yes" if inside else "no"
            print(f"| {threads} | {period} | {size >> 10} | {statistics.median(rate):.0f} | {real:.1f} ± {slack:.1f} | {words} | {inside} |", flush=True)
        width = f"{statistics.median(widths):.1f}" if widths else "-"
        print(f"\n{held} of {told} predicted ranges hold the real loss; {len(cases) - told} had no prediction; median width (high / low) {width}")


main()
