"""What sleeping and sorting take, by switchcost.threadclock; sees that it agrees with the kernel's clock.

python thread_time.py       # exits 0 if it does
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable

from switchcost import threadclock


def cost_ns(call: Callable[[], int]) -> float:
    """Median over batches of a call's CPU time, less that of the loop."""

    def batch(calls: int = 20_000) -> float:
        start = threadclock.now_ns()
        for _ in range(calls):
            pass
        loop = threadclock.now_ns()
        for _ in range(calls):
            call()
        return (threadclock.now_ns() - loop - (loop - start)) / calls

    return statistics.median(batch() for _ in range(51))


def main() -> None:
    print(f"tier {threadclock.tier()}, bound {threadclock.error_bound_ns() / 1e3:g} us")
    if threadclock.tier() == "kernel":
        print("no fast tier here: each reading asks the kernel")

    wall, start = time.perf_counter_ns(), threadclock.now_ns()
    time.sleep(0.05)
    slept, wall = threadclock.now_ns() - start, time.perf_counter_ns() - wall
    print(f"sleep: {slept / 1e6:.3f} ms of CPU time in {wall / 1e6:.3f} ms")
    if slept >= wall / 2:
        sys.exit("not so: a sleep takes no CPU time")

    numbers = [random.random() for _ in range(300_000)]
    kernel, start = time.thread_time_ns(), threadclock.now_ns()
    numbers.sort()
    taken, kernel = threadclock.now_ns() - start, time.thread_time_ns() - kernel
    print(f"sort: {taken / 1e6:.3f} ms of CPU time, {kernel / 1e6:.3f} ms by the kernel's clock")
    if not kernel / 2 < taken < kernel * 2:
        sys.exit("not so: it agrees with the kernel's clock")

    own, kernels = cost_ns(threadclock.now_ns), cost_ns(time.thread_time_ns)
    print(f"a reading: {own:.1f} ns; of the kernel's clock: {kernels:.1f} ns")


main()
