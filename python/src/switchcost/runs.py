"""Runs that are stored, and their tables."""

from __future__ import annotations

import glob
import html
import json
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, overload

from switchcost import tables
from switchcost._program import ProgramError, call, printable
from switchcost.machine import facts_of
from switchcost.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Source = Union[str, "os.PathLike[str]"]

#: Columns of cases that `_repr_html_` shows.
_SHOWN = ("title", "command", "quantity", "estimate", "low", "high", "unit")


class Tables:
    """What a run and several runs have in common. It has the rows of its parts, or tables of its own."""

    _parts: Sequence[Tables] = ()

    @property
    def samples(self) -> Table:
        """One row a sample as it was measured (docs/record-format.md), with `run` and `host`."""
        return self._joined("samples")

    @property
    def cases(self) -> Table:
        """One row a case and quantity: `estimate`, `low`, `high`, in `unit`. They are the program's."""
        return self._joined("cases")

    @property
    def machine(self) -> Table:
        """One row a run: the machine, the program and the conditions of the run."""
        return self._joined("machine")

    @property
    def answer(self) -> str:
        """What it says, as the program puts it."""
        return " ".join(part.answer for part in self._parts[:4]) + (" ..." if len(self._parts) > 4 else "")

    def _joined(self, table: str) -> Table:
        # Each is a process of its own, which this one waits for.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return tables.joined(pool.map(attrgetter(table), self._parts))

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
        """The record: estimates, scaling, verdicts, machine (`switchcost help schema record`)."""
        record: dict[str, Any] = json.loads(self._export("json"))
        return record

    @property
    def name(self) -> str:
        """Name of the run; its file is called so."""
        return str(self.record["header"]["run"])

    @property
    def host(self) -> str | None:
        """Name of the host; None if it was left out (`anonymous`)."""
        host: str | None = self.record["header"].get("host")
        return host

    @property
    def experiment(self) -> str:
        """`measure`, `ring`, `cost`, `response`, `clock-overhead`, ..."""
        return str(self.record["header"]["plan"]["experiment"])

    @cached_property
    def samples(self) -> Table:
        """One row a sample as it was measured (docs/record-format.md), with `run` and `host`."""
        return tables.of_csv(self._export("csv"), {"run": self.name, "host": self.host})

    @cached_property
    def cases(self) -> Table:
        """One row a case: `estimate`, `low`, `high`, in `unit`, and what tells it from others (docs/python.md).

        `key` is unique in the run, and the same on all hosts. Filter by `quotable` and `speed`.
        """
        return tables.of_csv(self._export("summary-csv"))

    @cached_property
    def machine(self) -> Table:
        """One row: the machine, the program and the conditions of the run."""
        return machine_row(self.record, self.name)

    @cached_property
    def answer(self) -> str:
        """What it says, as the program puts it."""
        shown = call("runs", "show", "--", self.source)
        return " ".join(shown.split("\n\n", 1)[0].split())

    def __repr__(self) -> str:
        return f"<switchcost.Run {printable(self.source)}>"


class Runs(Tables, Sequence[Run]):
    """Several runs, in order. Its tables have the rows of all."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._parts = self._runs = tuple(runs)

    @overload
    def __getitem__(self, at: int) -> Run: ...
    @overload
    def __getitem__(self, at: slice) -> Runs: ...
    def __getitem__(self, at: int | slice) -> Run | Runs:
        return Runs(self._runs[at]) if isinstance(at, slice) else self._runs[at]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        return f"<switchcost.Runs: {len(self)} runs>"


def read(*sources: Source) -> Runs:
    """Runs by file, folder, pattern (`runs/*.jsonl`), dataset folder, or name as the program takes it (`last`, `base`).

    As in the program, a word is a file if it has a slash or ends in `.jsonl`, and otherwise the name of a stored run.
    Files are read when a table is asked for. Raises FileNotFoundError where there is no run file, and for a
    name that no run has.
    """
    return Runs(run for source in sources for run in _runs_of(source))


def _runs_of(source: Source) -> list[Run]:
    text = os.fspath(source)
    found: Sequence[str | Path]
    if os.path.isdir(text):
        # A dataset has them by host.
        found = sorted(Path(text).glob("runs/*/*.jsonl")) or sorted(Path(text).glob("*.jsonl"))
        missing = "no run file (*.jsonl) is in it, or in its runs/HOST/"
    elif "/" in text or text.endswith(".jsonl") or isinstance(source, os.PathLike):
        found = [text] if os.path.exists(text) else sorted(glob.glob(text, recursive=True))
        missing = "no such run file"
    else:
        # Another run may be the `last` one by the time that a table is asked for.
        try:
            return [Run(Run(text).name)]
        except ProgramError as error:
            if "no stored run" in str(error) or "no run is stored" in str(error):
                raise FileNotFoundError(str(error)) from error
            raise
    if not found:
        raise FileNotFoundError(f"{printable(text)}: {missing}")
    return [Run(os.path.abspath(file)) for file in found]


def machine_row(record: dict[str, Any], name: str | None) -> Table:
    """The facts of a record; one row."""
    header = record["header"]
    # As in the run's other tables, which are joined by these.
    key = {"run": name, "host": header.get("host"), "started": tables.parse_time(header["started"])}
    return Table({column: [value] for column, value in {**facts_of(record), **key}.items()})
