"""The thread clock, by the library that the wheel has brought."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from skips import skip

import switchcost
from switchcost import threadclock


def test_the_library_is_the_wheels() -> None:
    of_wheel = Path(switchcost.__file__).with_name("libthreadclock.so.0")
    assert threadclock._library._name == str(of_wheel)


def test_it_agrees_with_the_kernels_clock() -> None:
    bound, last = threadclock.error_bound_ns(), 0
    for _ in range(10_000):
        low, now, high = time.thread_time_ns(), threadclock.now_ns(), time.thread_time_ns()
        assert low - bound <= now <= high + bound
        assert now >= last
        last = now
    assert threadclock.tier() in {"rseq", "perf-page", "system-call", "kernel"}


def test_a_sleep_is_not_counted() -> None:
    wall, start = time.perf_counter_ns(), threadclock.now_ns()
    time.sleep(0.05)
    slept = threadclock.now_ns() - start
    assert slept < (time.perf_counter_ns() - wall) / 2


def test_each_thread_has_a_clock_of_its_own() -> None:
    readings: list[int] = []
    thread = threading.Thread(target=lambda: readings.append(threadclock.now_ns()))
    thread.start()
    thread.join()
    process = threadclock.getpinfo_process()
    assert readings[0] < process.ns
    assert threadclock.getpinfo().ns < process.ns


def test_errors_have_their_errno() -> None:
    assert threadclock.getpinfo(os.getpid()).ns > 0
    with pytest.raises(ProcessLookupError, match="4194304"):
        threadclock.getpinfo(4194304)
    with pytest.raises(OSError, match="-1") as error:
        threadclock.getpinfo(-1)
    assert error.value.errno == errno.EINVAL
    # Not the calling thread's, which ctypes would make of it.
    with pytest.raises(OverflowError, match="4294967296"):
        threadclock.getpinfo(1 << 32)


def test_without_a_library_the_error_says_where_to_get_it(tmp_path: Path) -> None:
    here = Path(threadclock.__file__)
    (tmp_path / "copied.py").write_bytes(here.read_bytes())
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}
    code = "import ctypes\ntry: ctypes.CDLL('libthreadclock.so.0')\nexcept OSError: import copied"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    if done.returncode == 0:
        skip("hardware:no-libthreadclock", "the system has a libthreadclock.so.0")
    assert "ImportError" in done.stderr and "libthreadclock0" in done.stderr
