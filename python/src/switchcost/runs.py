"""Runs that are stored, and their tables."""

from __future__ import annotations

import glob
import html
import json
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, overload

from switchcost import tables
from switchcost._program import call, printable
from switchcost.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Source = Union[str, "os.PathLike[str]"]

#: Columns of cases that `_repr_html_` shows.
_SHOWN = ("title", "command", "quantity", "estimate", "low", "high", "unit")


class Tables:
    """What a run and several runs have in common."""

    @property
    def samples(self) -> Table:
        """One row a sample as it was measured (docs/record-format.md), with `run` and `host`."""
        raise NotImplementedError

    @property
    def cases(self) -> Table:
        """One row a case and quantity: `estimate`, `low`, `high`, in `unit`. They are the program's."""
        raise NotImplementedError

    @property
    def machine(self) -> Table:
        """One row a run: the machine, the program and the conditions of the run."""
        raise NotImplementedError

    @property
    def answer(self) -> str:
        """What it says, as the program puts it."""
        raise NotImplementedError

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the estimates with their intervals, by working set, ring size or case, whichever varies.

        Needs matplotlib. Gives the axes, for titles and scales of your own.
        """
        from switchcost.plot import plot

        return plot(self.cases, ax)

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.answer)}</p>{tables.to_html(self.cases, _SHOWN)}"


class Run(Tables):
    """A stored run. Nothing is read before it is asked for, and then once.

    Reading raises ProgramError where the program cannot read the file.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    def _export(self, format: str) -> str:
        return call("runs", "export", f"--format={format}", "--", self.source)

    @cached_property
    def record(self) -> dict[str, Any]:
        """The record: estimates, scaling, verdicts, machine (`switchcost schema record`)."""
        record: dict[str, Any] = json.loads(self._export("json"))
        return record

    @property
    def name(self) -> str:
        """Name of the run; its file is called so."""
        return str(self.record["header"]["run"])

    @property
    def host(self) -> str | None:
        """Name of the host; None if it was left out (`anonymous`)."""
        host = self.record["header"].get("host")
        return host if isinstance(host, str) else None

    @property
    def experiment(self) -> str:
        """`ring`, `cost`, `response`, `clock-overhead`, ..."""
        return str(self.record["header"]["plan"]["experiment"])

    @cached_property
    def samples(self) -> Table:
        return tables.of_csv(self._export("csv"), {"run": self.name, "host": self.host})

    @cached_property
    def cases(self) -> Table:
        return tables.of_csv(self._export("summary-csv"))

    @cached_property
    def machine(self) -> Table:
        return machine_row(self.record, self.name)

    @cached_property
    def answer(self) -> str:
        shown = call("runs", "show", "--", self.source)
        return " ".join(shown.split("\n\n", 1)[0].split())

    def __repr__(self) -> str:
        return f"<switchcost.Run {printable(self.source)}>"


class Runs(Tables, Sequence[Run]):
    """Several runs, in order. Its tables have the rows of all."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = tuple(runs)

    @overload
    def __getitem__(self, at: int) -> Run: ...
    @overload
    def __getitem__(self, at: slice) -> Runs: ...
    def __getitem__(self, at: int | slice) -> Run | Runs:
        return Runs(self._runs[at]) if isinstance(at, slice) else self._runs[at]

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def samples(self) -> Table:
        return self._joined(lambda run: run.samples)

    @property
    def cases(self) -> Table:
        return self._joined(lambda run: run.cases)

    @property
    def machine(self) -> Table:
        return self._joined(lambda run: run.machine)

    @property
    def answer(self) -> str:
        return " ".join(run.answer for run in self._runs[:4]) + (" ..." if len(self) > 4 else "")

    def _joined(self, of: Callable[[Run], Table]) -> Table:
        # Each is a process of its own, which this one waits for.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return tables.joined(pool.map(of, self._runs))

    def __repr__(self) -> str:
        return f"<switchcost.Runs: {len(self)} runs>"


def read(*sources: Source) -> Runs:
    """Runs by file, folder, pattern (`runs/*.jsonl`), dataset folder, or name as the program takes it (`last`, `base`).

    As in the program, a word is a file if it has a slash or ends in `.jsonl`, and otherwise the name of a stored run.
    Files are read when a table is asked for. Raises FileNotFoundError where there is no run file, ProgramError for a
    name that no run has.
    """
    return Runs(run for source in sources for run in _runs_of(source))


def _runs_of(source: Source) -> list[Run]:
    text = os.fspath(source)
    if os.path.isdir(text):
        folder = Path(text)
        # A dataset has them by host.
        files = sorted(folder.glob("runs/*/*.jsonl")) or sorted(folder.glob("*.jsonl"))
        if not files:
            raise FileNotFoundError(f"{printable(text)}: no run file (*.jsonl) is in it, or in its runs/HOST/")
        return [_of_file(str(file)) for file in files]
    if "/" in text or text.endswith(".jsonl") or isinstance(source, os.PathLike):
        found = [text] if os.path.exists(text) else sorted(glob.glob(text, recursive=True))
        if not found:
            raise FileNotFoundError(f"{printable(text)}: no such run file")
        return [_of_file(file) for file in found]
    # Another run may be the `last` one by the time that a table is asked for.
    return [Run(Run(text).name)]


def _of_file(path: str) -> Run:
    return Run(os.path.abspath(path))


def _known(reading: Any, *keys: str | int) -> Any:
    """What is below the keys; None where it is absent or `{"unknown": why}`."""
    for key in keys:
        if isinstance(reading, list) and isinstance(key, int) and key < len(reading):
            reading = reading[key]
        elif isinstance(reading, dict) and isinstance(key, str):
            reading = reading.get(key)
        else:
            return None
    return None if isinstance(reading, dict) and "unknown" in reading else reading


def _words(reading: Any) -> str | None:
    """`name: value` of a map, in the order of names; without what is unknown."""
    known = {name: _known(value) for name, value in reading.items()} if isinstance(reading, dict) else {}
    return "; ".join(f"{name}: {value}" for name, value in sorted(known.items()) if value is not None) or None


def _count(cpus: Any) -> int | None:
    """Number of CPUs in a list such as `0-3,6`."""
    if not isinstance(cpus, str) or not cpus:
        return None
    ends = [[int(end) for end in part.split("-")] for part in cpus.split(",")]
    return sum(end[-1] - end[0] + 1 for end in ends)


def machine_row(record: dict[str, Any], name: str | None) -> Table:
    """The facts of a record that runs are told apart by; one row. What is unknown is None."""
    header = record["header"]
    facts = header.get("machine")
    row = {
        "run": name,
        "host": header.get("host"),
        "experiment": _known(header, "plan", "experiment"),
        "started": tables.parse_time(header["started"]),
        "program_version": _known(header, "build", "version"),
        "program_commit": _known(header, "build", "commit"),
        "kernel_release": _known(facts, "kernel", "release"),
        "kernel_version": _known(facts, "kernel", "version"),
        "kernel_command_line": _known(facts, "kernel", "command_line"),
        "hz": _known(facts, "kernel", "hz"),
        "preemption": _known(facts, "kernel", "preemption", "model"),
        "realtime_kernel": _known(facts, "kernel", "preemption", "realtime"),
        "clock_source": _known(facts, "kernel", "clock_source", "current"),
        "cpu_vendor": _known(facts, "cpu", "models", 0, "vendor"),
        "cpu_model": _known(facts, "cpu", "models", 0, "name"),
        "microcode": _known(facts, "cpu", "models", 0, "microcode"),
        "cpus_online": _count(_known(facts, "cpu", "online")),
        "smt_control": _known(facts, "cpu", "smt_control"),
        "frequency_governor": _known(facts, "frequency", "policies", 0, "governor"),
        "boost": _known(facts, "frequency", "boost"),
        "idle_driver": _known(facts, "frequency", "idle_driver"),
        "idle_governor": _known(facts, "frequency", "idle_governor"),
        "mitigations": _words(_known(facts, "mitigations")),
        "hypervisor": _known(facts, "virtualization", "cpu_flag"),
        "system_vendor": _known(facts, "virtualization", "dmi_vendor"),
        "system_product": _known(facts, "virtualization", "dmi_product"),
        "memory_bytes": _known(facts, "memory", "total_bytes"),
        "thp_enabled": _known(facts, "memory", "thp_enabled"),
        "load_1_min": _known(facts, "load", "over_1_min"),
        "clock_ghz": _known(record, "speed", 0, "clock_ghz"),
        "clean_share": _known(record, "noise", "clean_share"),
        "noise": _known(record, "noise", "level"),
        "end_reason": _known(record, "end", "reason"),
    }
    return Table({column: [value] for column, value in row.items()})
