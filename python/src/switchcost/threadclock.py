"""The CPU time of the calling thread, for a ninth of what `time.thread_time_ns()` costs (docs/threadclock.md).

start = threadclock.now_ns()
work()
print(threadclock.now_ns() - start, "ns of CPU time, by", threadclock.tier())

A reading takes 66 ns, where `time.thread_time_ns()` takes 620. The clock takes 10 of them, the call by ctypes the rest:
it is for stretches of a microsecond and more. Where `tier()` is "kernel" each reading asks the kernel and takes 730 ns.

Each thread has a clock of its own: never subtract readings of different threads. All coroutines of an event loop run on
one thread, whose clock counts what others of them do while one awaits.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

__all__ = ["CpuTime", "error_bound_ns", "getpinfo", "getpinfo_process", "now_ns", "tier"]

_NAME = "libthreadclock.so.0"


class CpuTime(NamedTuple):
    """CPU time of a thread or process."""

    ns: int
    #: The same in ticks of the time-stamp counter; 0 if there is none.
    cycles: int


class _Time(ctypes.Structure):
    _fields_ = (("ns", ctypes.c_uint64), ("cycles", ctypes.c_uint64))


def _load() -> ctypes.PyDLL:
    """The library of the wheel, else the system's."""
    of_wheel = Path(__file__).with_name(_NAME)
    path = str(of_wheel) if of_wheel.exists() else _NAME
    try:
        # Not CDLL: letting go of the GIL would take longer than the call.
        return ctypes.PyDLL(path)
    except OSError as error:
        raise ImportError(
            f"{error}; the wheel of switchcost brings the library along (pip install switchcost), so does the Debian "
            "package libthreadclock0; crates/threadclock/c/install.sh builds it from source"
        ) from error


_library = _load()
_Getpinfo = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(_Time), use_errno=True)


def _getter(name: str, result: type) -> Callable[[], object]:
    # No Python around it: that would take as long as the call.
    return cast("Callable[[], object]", ctypes.PYFUNCTYPE(result)((name, _library)))


#: The calling thread's CPU time in nanoseconds. Never goes backwards within a thread.
now_ns = cast("Callable[[], int]", _getter("threadclock_now_ns", ctypes.c_uint64))

#: How far `now_ns()` can be from `time.thread_time_ns()` read around it.
error_bound_ns = cast("Callable[[], int]", _getter("threadclock_error_bound_ns", ctypes.c_uint64))

_tier = cast("Callable[[], bytes]", _getter("threadclock_tier", ctypes.c_char_p))
_getpinfo = _Getpinfo(("getpinfo", _library))
_getpinfo_process = _Getpinfo(("getpinfo_process", _library))


def tier() -> str:
    """How the calling thread's time is read: "rseq", "perf-page", "system-call" or "kernel"."""
    return _tier().decode()


def getpinfo(id: int = 0) -> CpuTime:
    """The CPU time of one thread; 0 is the calling thread, a process's id its first thread.

    Raises OSError: ProcessLookupError (no such task), PermissionError (hidden), or EINVAL (negative id).
    """
    return _cpu_time(_getpinfo, id)


def getpinfo_process(pid: int = 0) -> CpuTime:
    """The CPU time of all threads of a process, ended ones included; 0 is the calling process.

    Raises OSError as `getpinfo`; EINVAL also if `pid` is a thread but not its process's first.
    """
    return _cpu_time(_getpinfo_process, pid)


def _cpu_time(function: Callable[..., int], id: int) -> CpuTime:
    if ctypes.c_int(id).value != id:
        # ctypes would cut it off.
        raise OverflowError(f"{id} is no id of a thread or process")
    time = _Time()
    if function(id, ctypes.byref(time)) != 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{os.strerror(errno)}: thread or process {id}")
    return CpuTime(time.ns, time.cycles)
