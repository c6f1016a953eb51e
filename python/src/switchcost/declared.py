"""What the program declares: the columns of tables, and the facts of runs (`switchcost help schema columns`).

Nothing is listed here: `columns.json` is what the program prints, and a test of the program keeps it so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple


class Column(NamedTuple):
    """A column of samples, cases or commands."""

    name: str
    #: text, integer, float, boolean, time or integers (a list).
    kind: str
    #: Empty without one.
    unit: str
    #: Of samples, cases and commands, those that have it.
    tables: list[str]
    meaning: str


class Fact(NamedTuple):
    """A fact of a run: a column of `machine` or, in a fleet's dataset, of `machines`."""

    name: str
    kind: str
    unit: str
    #: machine, machines or both.
    tables: list[str]
    #: Where the record has it; `[]` is each item of a list. Empty for a fact of the file.
    path: str
    #: How its value is made of what lies there (`machine.READINGS`).
    reading: str
    #: Whether it says what kind of machine a host is.
    identifies: bool
    #: Rank among the facts that may make a host slow, 1 being the likeliest; None for what is no cause.
    cause_rank: int | None
    meaning: str


_DECLARED: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_name("columns.json").read_text())
#: In the order of the program.
COLUMNS = tuple(Column(**column) for column in _DECLARED["columns"])
FACTS = tuple(Fact(**fact) for fact in _DECLARED["facts"])
