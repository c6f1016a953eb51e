#!/usr/bin/env python3
"""The estimate of `switchcost cost -- CMD` against the truth: programs whose loss to context switches is known.

bench/switch-loss.c works in periods on an array of each thread, with one thread and with many, the same work in all. What many take
more CPU time is the real loss, of a program that is not watched. Of the *pairs* another such process, which is not watched, yields on the same
CPU, and each walks its array once before it yields. Runs alone, with others, and with others and watched alternate; the medians are
compared. Prints a table in Markdown: real loss, predicted
range, whether the real loss lies in it (with what the real loss itself is uncertain by, half the distance of its quartiles), and what share of
all cases does. Then the same of the rules in deploy/prometheus/switches.yml, which know the rate of switches alone, and which of their alerts a
real loss of 5 % raises. Fails if fewer than 33 of 36 ranges of the rules hold the real loss.
    bench/switch-loss.py PROGRAM [CPU [REPEATS [threads|pairs]]]     PROGRAM: the switchcost to test, with a stored profile, for example of
        switchcost cost --members 2,8,64 --array 8K,16K,24K,32K,48K,64K,96K,128K,192K,256K,384K,512K,768K,1M --huge-pages off --placement CPU --budget 5m
"""

import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

THREADS = [2, 8, 64]
PERIODS_US = [50, 200, 1000]
BYTES = [0, 64 << 10, 256 << 10, 1 << 20]
PAIRS = [64 << 10, 256 << 10, 512 << 10]
LINE_BYTES = 64
WORK_US = 1_000_000
# Of the cases of threads, those whose range by the rules has to hold the real loss.
LEAST_HELD = 33 / 36
ALERT_PERCENT = 5


class Rules:
    """The shares that deploy/prometheus/switches.yml has for a CPU which does nothing else."""

    def __init__(self, metrics):
        def values(name):
            return [float(value) for value in re.findall(rf"^{name}{{.*}} (\S+)$", metrics, re.M)]

        # Prices that are upper estimates have no least.
        self.low_s = min(values("switchcost_price_low_seconds"), default=0)
        self.direct_s = max(values("switchcost_price_high_seconds"))
        self.refill_s = max(values("switchcost_refill_high_seconds"))
        self.refill_ratio = max(values("switchcost_refill_high_ratio"))

    def shares(self, rate):
        """In percent, for so many switches a second of CPU time: at least, at most of the switch itself, at most."""
        refill = min(rate * self.refill_s, self.refill_ratio)
        return 100 * rate * self.low_s, 100 * rate * self.direct_s, min(100 * (rate * self.direct_s + refill), 100)


class Bench:
    def __init__(self, program, cpu, repeats, folder):
        self.program, self.cpu, self.repeats = program, cpu, repeats
        self.loss, self.record = f"{folder}/switch-loss", f"{folder}/record.json"
        source = f"{os.path.dirname(os.path.abspath(__file__))}/switch-loss.c"
        subprocess.run(["gcc", "-O2", "-pthread", "-o", self.loss, source], check=True)
        self.told, self.held, self.all, self.widths = 0, 0, 0, []
        self.rules, self.rule_cases, self.rule_held, self.rule_widths = None, 0, 0, []
        self.losing, self.takes, self.may_take = 0, 0, 0

    def run(self, *words, watched=False):
        watch = [self.program, "cost", "--quiet", "--json", self.record, "--"] if watched else []
        words = [*watch, self.loss, self.cpu, *map(str, words)]
        return subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split()

    @contextlib.contextmanager
    def neighbour(self, size, steps):
        """Another process that does the same without an end."""
        words = [self.loss, self.cpu, "1", "0", str(size), str(steps), str(10**12)]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
            time.sleep(0.1)
            try:
                yield
            finally:
                process.kill()

    def case(self, titles, alone, many, beside=contextlib.nullcontext):
        losses, ranges, rate = [], [], []
        for _ in range(self.repeats):
            alone_ns = int(self.run(*alone)[0])
            with beside():
                many_ns, switches = map(int, self.run(*many))
            losses.append(100 * (1 - alone_ns / many_ns))
            rate.append(switches / many_ns * 1e9)
            with beside():
                self.run(*many, watched=True)
            record = json.load(open(self.record))
            self.read_prices(record)
            cost = record["cost"]
            if cost["answer"] == "estimated":
                ranges.append((100 * cost["share"]["low"], 100 * cost["share"]["high"]))
        real = statistics.median(losses)
        quarters = statistics.quantiles(losses, n=4)
        slack = (quarters[2] - quarters[0]) / 2
        words, inside = "not known", "-"
        self.all += 1
        if ranges:
            low, high = (statistics.median(end) for end in zip(*ranges))
            self.told += 1
            inside = low - slack <= real <= high + slack
            self.held += inside
            # A range from zero is as wide as one can be.
            self.widths.append(high / low if low > 0 else float("inf"))
            words = f"{low:.1f} to {high:.1f}"
            inside = "yes" if inside else "no"
        by_rules, holds = self.check_rules(statistics.median(rate), real, slack, is_pair=beside is not contextlib.nullcontext)
        figures = f"{statistics.median(rate):.0f} | {real:.1f} ± {slack:.1f} | {words} | {inside} | {by_rules} | {holds}"
        print(f"| {titles} | {figures} |", flush=True)

    def read_prices(self, record):
        """Those of the profile that the program was priced by."""
        run = record["surface"].get("run")
        if self.rules is None and run is not None:
            words = [self.program, "runs", "export", run, "--format", "openmetrics"]
            self.rules = Rules(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)

    def check_rules(self, rate, real, slack, is_pair):
        """The range by the rules in words, and whether it holds the real loss. Of a pair they see both processes."""
        if self.rules is None or is_pair:
            return "-", "-"
        low, direct, high = self.rules.shares(rate)
        self.rule_cases += 1
        holds = low - slack <= real <= high + slack
        self.rule_held += holds
        self.rule_widths.append(high / low if low > 0 else float("inf"))
        if real >= ALERT_PERCENT:
            self.losing += 1
            self.takes += direct >= ALERT_PERCENT
            self.may_take += direct < ALERT_PERCENT <= high
        return f"{low:.2f} to {high:.1f}, itself {direct:.2f}", "yes" if holds else "no"

    def told_of_rules(self):
        """Says what the rules held; whether that is enough."""
        if not self.rule_cases:
            return True
        width = statistics.median(self.rule_widths)
        print(f"\n{self.rule_held} of {self.rule_cases} ranges by the rules hold the real loss; median width (high / low) {width:.0f}")
        alerts = f"SwitchingTakesCpu in {self.takes}, SwitchingMayTakeCpu in {self.may_take}"
        print(f"{self.losing} cases lose {ALERT_PERCENT} % or more: {alerts}")
        return self.rule_held >= LEAST_HELD * self.rule_cases

    def threads(self, threads, period, size):
        steps = self.run(1, period, size, 0, 0)[0]
        periods = max(WORK_US // (period * threads), 4)
        alone, many = (1, period, size, steps, periods * threads), (threads, period, size, steps, periods)
        self.case(f"{threads} | {period} | {size >> 10}", alone, many)

    def pair(self, size):
        steps = size // LINE_BYTES
        began = time.monotonic()
        self.run(1, 0, size, steps, 1000)
        periods = max(int(1000 * WORK_US / 1e6 / (time.monotonic() - began)), 1000)
        words = (1, 0, size, steps, periods)
        self.case(f"pair | one walk | {size >> 10}", words, words, lambda: self.neighbour(size, steps))


def main():
    program, cpu = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "0"
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    which = sys.argv[4] if len(sys.argv) > 4 else None
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(program, cpu, repeats, folder)
        print("| threads | period us | array KiB | switches/s | real loss % | predicted % | in the range | by the rules % | in it |")
        print("|--:|--:|--:|--:|--:|--:|:--|--:|:--|")
        if which != "threads":
            for size in PAIRS:
                bench.pair(size)
        if which != "pairs":
            for size in BYTES:
                for period in PERIODS_US:
                    for threads in THREADS:
                        bench.threads(threads, period, size)
        width = f"{statistics.median(bench.widths):.1f}" if bench.widths else "-"
        print(f"\n{bench.held} of {bench.told} predicted ranges hold the real loss; {bench.all - bench.told} had no prediction; median width (high / low) {width}")
        sys.exit(0 if bench.told_of_rules() else "fewer than 33 of 36 ranges by the rules hold the real loss")


main()
