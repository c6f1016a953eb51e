#!/usr/bin/env python3
"""What `switchcost top --openmetrics` takes of a CPU, and what it adds to each switch.

Two threads yield to each other on each CPU that is given to them (bench/switch-loss.c), and work in between so long that
the machine makes about RATE switches a second; beside them 200 threads a second begin and end. Seconds without the exporter and
with it alternate. Prints the CPU time of the
exporter as a share of one CPU (limit: 0.3 %), the rate, and the ratio of the time that the same work took with and without
it, with the quartiles over pairs: what it takes inside the kernel would be in there, and what its looks take from the CPUs is.
    bench/exporter.py PROGRAM [RATE [SECONDS [PAIRS]]]     100,000 a second, 20 s, 3 pairs; as root
"""

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

LIMIT_PERCENT = 0.3
INTERVAL_S = 15
ENDS_A_SECOND = 200


def compile_load(folder):
    load = f"{folder}/switch-loss"
    source = f"{os.path.dirname(os.path.abspath(__file__))}/switch-loss.c"
    subprocess.run(["gcc", "-O2", "-pthread", "-o", load, source], check=True)
    return load


def all_switches():
    with open("/proc/stat") as stat:
        return next(int(line.split()[1]) for line in stat if line.startswith("ctxt "))


@contextlib.contextmanager
def ending_threads():
    """Threads that begin and end, one after the other."""
    stop = threading.Event()

    def run():
        while not stop.wait(1 / ENDS_A_SECOND):
            thread = threading.Thread(target=int)
            thread.start()
            thread.join()

    maker = threading.Thread(target=run)
    maker.start()
    try:
        yield
    finally:
        stop.set()
        maker.join()


class Load:
    """Threads that yield on each CPU, and work in between."""

    def __init__(self, program, cpus):
        self.program, self.cpus, self.steps, self.periods = program, cpus, 1, 1

    def calibrate(self, rate, seconds):
        """Works so long between two yields that all CPUs together make so many switches a second."""
        us = 1e6 * len(self.cpus) / rate
        measured = subprocess.run([self.program, str(self.cpus[0]), "1", f"{max(round(us), 1)}", "0", "0", "0"], check=True, stdout=subprocess.PIPE)
        per_us = int(measured.stdout) / max(round(us), 1)
        # A yield itself takes about a microsecond.
        self.steps = max(round(per_us * max(us - 1, 0.1)), 1)
        self.periods = max(round(seconds * rate / len(self.cpus) / 2), 1)

    def run(self):
        """Its CPU seconds, and the machine's switches a second meanwhile."""
        before, begun = all_switches(), time.monotonic()
        words = [[self.program, str(cpu), "2", "0", "0", str(self.steps), str(self.periods)] for cpu in self.cpus]
        running = []
        try:
            with ending_threads():
                for line in words:
                    running.append(subprocess.Popen(line, stdout=subprocess.PIPE, text=True))
                cpu_s = sum(int(process.communicate()[0].split()[0]) for process in running) / 1e9
                return cpu_s, (all_switches() - before) / (time.monotonic() - begun)
        finally:
            for process in running:
                end(process)


def exported(program, path, load):
    """The load beside the exporter: its figures, and the exporter's share of a CPU in percent."""
    words = [program, "top", "--openmetrics", path, "--interval", str(INTERVAL_S)]
    begun = time.monotonic()
    exporter = subprocess.Popen(words)
    try:
        while not os.path.exists(path):
            if exporter.poll() is not None:
                sys.exit(f"{' '.join(words)} ended with {exporter.returncode}")
            time.sleep(0.01)
        # Opening is done once.
        opened, opened_s = time.monotonic(), cpu_seconds(exporter.pid)
        cpu_s, rate = load.run()
        # To the end of an interval, so that no fewer looks than usual are in the time.
        time.sleep(INTERVAL_S - (time.monotonic() - opened) % INTERVAL_S + 0.5)
        used, passed = cpu_seconds(exporter.pid) - opened_s, time.monotonic() - opened
    finally:
        end(exporter)
    return cpu_s, rate, 100 * used / passed, opened - begun


def end(process):
    """Ends a process of ours, if it has not ended."""
    if process.poll() is None:
        process.terminate()
    process.wait()


def cpu_seconds(pid):
    """Of all its threads; their looks at other threads are system calls of theirs."""
    used = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as schedstat:
            used += int(schedstat.read().split()[0])
    return used / 1e9


def main():
    program = sys.argv[1]
    given = [int(word) for word in sys.argv[2:5]]
    rate, seconds, pairs = given + [100_000, 20, 3][len(given) :]
    with tempfile.TemporaryDirectory() as folder:
        load = Load(compile_load(folder), sorted(os.sched_getaffinity(0)))
        load.calibrate(rate, seconds)
        ratios, shares, rates = [], [], []
        for number in range(pairs):
            alone, _ = load.run()
            beside, seen, share, opening = exported(program, f"{folder}/{number}.prom", load)
            ratios.append(beside / alone)
            shares.append(share)
            rates.append(seen)
            print(f"{seen:,.0f} switches a second: exporter {share:.3f} % of a CPU, the same work {beside / alone:.4f} times the CPU time; opening took {opening:.2f} s", flush=True)
        with open(f"{folder}/0.prom") as written:
            text = written.read()
        series = text.count("\nswitchcost_cgroup_switches_total{")
        lost = float(text.split("\nswitchcost_lost_threads_total{} ")[1].split()[0])
        print(f"{series} series of switches in the file, {lost:.0f} threads lost")
        if lost:
            sys.exit("threads were lost")
        quarters = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
        worst = max(shares)
        print(f"{statistics.median(rates):,.0f} switches a second: at most {worst:.3f} % of a CPU (limit {LIMIT_PERCENT}), ratio {quarters[1]:.4f} ({quarters[0]:.4f} to {quarters[2]:.4f})")
    sys.exit(0 if worst <= LIMIT_PERCENT else f"over {LIMIT_PERCENT} % of a CPU")


main()
