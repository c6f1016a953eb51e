"""Start the program, wait for it, give the runs that it stored."""

from __future__ import annotations

import difflib
import inspect
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from switchcost import _program, tables
from switchcost.runs import Run, Runs, Tables, machine_row
from switchcost.tables import Table

if TYPE_CHECKING:
    from typing_extensions import Unpack

_Function = TypeVar("_Function", bound=Callable[..., Runs])
#: Numbers as the program takes them: 4, "2,4,8", "2..64:x2", or a list of numbers.
Numbers = int | str | Iterable[int | str]
Kind = Literal["process", "thread"]
Op = Literal["read", "write", "rmw"]
Policy = Literal["other", "fifo", "rr", "batch"]
Walk = Literal["whole", "chase"]
#: Bytes, or as the program takes it ("64K").
Bytes = int | str
#: Time: seconds, or as the program takes it ("90s", "2m").
Time = int | float | str


class Options(TypedDict, total=False):
    """What every experiment takes; `extra` are further arguments of the program."""

    budget: Time | None
    seed: int | None
    name: str | None
    anonymous: bool
    extra: Sequence[str]


class RingOptions(Options, total=False):
    """What experiments on rings take besides; `precision` is a share (0.025) or "2.5%"."""

    kind: Kind | None
    placement: Numbers | None
    policy: Policy | None
    precision: float | str | None
    rounds: int | None


def _has(options: type) -> Callable[[_Function], _Function]:
    """The function's `**options` are in its signature by name: notebooks complete and show them."""

    def with_signature(function: _Function) -> _Function:
        signature, keyword = inspect.signature(function), inspect.Parameter.KEYWORD_ONLY
        parameters = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        for name, of in options.__annotations__.items():
            annotation = getattr(of, "__forward_arg__", of)
            parameters.append(inspect.Parameter(name, keyword, default=None, annotation=annotation))
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return with_signature


@_has(Options)
def measure(**options: Unpack[Options]) -> Runs:
    """What matters in one go (`switchcost measure`): rings, working sets, response, clocks; one run.

    `budget` is 60 s by default. Raises ProgramError.
    """
    return _stored("measure", **options)


@_has(RingOptions)
def ring(
    members: Numbers | None = None,
    *,
    link: Numbers | None = None,
    work: Bytes | None = None,
    stride: Bytes | None = None,
    op: Op | None = None,
    state: Numbers | None = None,
    launches: int | None = None,
    **options: Unpack[RingOptions],
) -> Runs:
    """Cost of a switch by size of a ring (`switchcost ring --help`); a run for each launch.

    `work` and `stride` are in bytes, `budget` is 20 s by default. Raises ProgramError.
    """
    own = {"work": work, "stride": stride, "op": op, "state": state, "launches": launches}
    return _stored("ring", members=members, link=link, **own, **options)


@_has(RingOptions)
def cost(
    array: Numbers | None = None,
    *,
    stride: Numbers | None = None,
    op: Op | Sequence[Op] | None = None,
    walk: Walk | Literal["both"] | Sequence[Walk] | None = None,
    members: Numbers | None = None,
    **options: Unpack[RingOptions],
) -> Runs:
    """Cost of a switch by working set (`switchcost cost --help`); one run.

    `array` and `stride` are in bytes, `walk` is "both" by default, `budget` 55 s. Raises ProgramError.
    """
    walks = "whole,chase" if walk == "both" else walk
    return _stored("cost", array=array, stride=stride, op=op, walk=walks, members=members, **options)


def run(
    command: str | Sequence[str],
    *,
    runs: int | None = None,
    warmup: int | None = None,
    vs: Sequence[str] = (),
    parameters: Mapping[str, Iterable[object]] | None = None,
    tree: bool = False,
    estimate: bool = True,
    seed: int | None = None,
    anonymous: bool = False,
    extra: Sequence[str] = (),
) -> CommandUse:
    """What a command uses (`switchcost run --help`): a list of `command` and its arguments, or a line for the shell.

    Others to compare it with are in `vs`, a line each.

    `record` has all words of the commands, unless `anonymous`. The standard output of one run is Python's, its standard
    error is written to `sys.stderr` at the end; of several runs both are discarded. A command that fails is no
    error: `exit_code` tells. `estimate=False` leaves out
    what its switches cost. Raises ProgramError where nothing was measured.
    """
    if not command or (isinstance(command, str) and command.startswith("-")):
        raise ValueError(f"command={command!r}: a command with its arguments as a list, or a line for the shell")
    if not isinstance(command, str) and (wrong := [word for word in command if not isinstance(word, str)]):
        raise TypeError(f"command: {wrong[0]!r} is no text; write {str(wrong[0])!r}")
    given = [f"--vs={other}" for other in vs]
    for name, values in (parameters or {}).items():
        given += ["--parameter", name, ",".join(map(str, values))]
    options = _options(runs=runs, warmup=warmup, tree=tree, no_estimate=not estimate, seed=seed, anonymous=anonymous)
    with tempfile.TemporaryDirectory(prefix="switchcost-") as folder:
        record, samples = Path(folder, "record.json"), Path(folder, "samples.csv")
        files = [
            f"--json={record}",
            f"--csv={samples}",
            *([] if {"--anonymous", "--store-command"} & {*options, *extra} else ["--store-command"]),
        ]
        # A line stands before `--`: the program gives it to the shell.
        words = [command] if isinstance(command, str) else ["--", *command]
        done = _program.run(["run", "--quiet", *options, *given, *files, *extra, *words], shows_output=True)
        if not samples.exists():
            raise done.error()
        sys.stderr.write(done.errors)
        return CommandUse(json.loads(record.read_bytes()), samples.read_text(errors="replace"), done.exit_code)


class CommandUse(Tables):
    """What commands used. It is not stored: keep `record` where you need it.

    `samples` has one row a run of a command, `cases` one row a command and figure.
    """

    def __init__(self, record: dict[str, Any], samples: str, exit_code: int) -> None:
        #: As `switchcost run --json` wrote it (`switchcost help schema command-use`).
        self.record = record
        #: The command's own; of several runs the first that is not 0.
        self.exit_code = exit_code
        self._samples = samples

    @cached_property
    def samples(self) -> Table:
        """One row a run of a command."""
        return tables.of_csv(self._samples, {"host": self.record["host"]})

    @cached_property
    def cases(self) -> Table:
        """One row a command and figure: `estimate`, `low`, `high`, in `unit`."""
        rows = [_row(command, figure) for command in self.record["commands"] for figure in command["figures"]]
        return Table({name: [row[name] for row in rows] for name in rows[0]} if rows else {})

    @cached_property
    def machine(self) -> Table:
        """One row: the machine, the program and the conditions."""
        return machine_row({"header": self.record, "end": {}}, None)

    @property
    def answer(self) -> str:
        """The real time of each command."""
        real = [row for row in self.cases.rows() if row["quantity"] == "real_ns"]
        return "; ".join(f"{row['title']}: {row['estimate'] / 1e6:.4g} ms" for row in real)

    def __repr__(self) -> str:
        return f"<switchcost.CommandUse {_program.printable(self.answer)}>"


def _row(command: Mapping[str, Any], figure: Mapping[str, Any]) -> dict[str, Any]:
    estimate = figure["estimate"]
    return {
        "command": command["number"],
        "title": shlex.join(command["command"]),
        "quantity": figure["name"],
        "quotable": estimate["value"] is not None,
        "estimate": estimate["value"],
        "low": estimate["low"],
        "high": estimate["high"],
        "unit": tables.unit(figure["name"]) or "count",
        **{name: figure[name] for name in ("spread", "min", "max")},
    }


def _stored(command: str, extra: Sequence[str] | None = None, **given: object) -> Runs:
    """Runs the program; the runs that it stored. A run file's name has the id of the process that wrote it."""
    known = inspect.signature(_EXPERIMENTS[command]).parameters
    if wrong := [name for name in given if name not in known]:
        near = difflib.get_close_matches(wrong[0], known, 1)
        hint = (
            f"; meant {near[0]}?" if near else f"; extra=['--{wrong[0].replace('_', '-')}=...'] gives it to the program"
        )
        raise TypeError(f"{command}() has no argument {wrong[0]!r}{hint}")
    arguments = [command, *_options(**given), *(extra or ())]
    before = set(_store().glob("*.jsonl"))
    done = _program.run([*arguments, "--quiet"])
    new = re.compile(rf".*-{done.process_id}(-\d+)?\.jsonl")
    runs = Runs(Run(str(file)) for file in sorted(set(_store().glob("*.jsonl")) - before) if new.fullmatch(file.name))
    if done.exit_code != 0:
        error = done.error()
        error.runs = runs
        raise error
    if not runs:
        raise ValueError(f"{_program.printable(shlex.join(arguments))}: it stored no run, so there is none to read")
    return runs


_EXPERIMENTS: dict[str, Callable[..., Runs]] = {"measure": measure, "ring": ring, "cost": cost}


def _store() -> Path:
    """The folder of stored runs (XDG base directories; a path that is not absolute does not count)."""
    chosen = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (chosen if chosen.is_absolute() else Path.home() / ".local/share") / "switchcost/runs"


#: Options without a value.
_FLAGS = {"tree", "no_estimate", "anonymous"}


def _options(**given: object) -> list[str]:
    """`--name=value` of each that was given; `--name` of True."""
    words = []
    for name, value in given.items():
        if value is True and name not in _FLAGS:
            raise TypeError(f"{name}=True: accepted are numbers and text")
        if value is not None and value is not False:
            words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f"={_text(name, value)}"))
    return words


def _text(name: str, value: object) -> str:
    """As the program takes it."""
    if name == "budget" and isinstance(value, (int, float)):
        if not value > 0:
            raise ValueError(f"budget={value}: seconds above zero, or text such as '2m'")
        return f"{round(value * 1000)}ms"
    if name == "precision" and isinstance(value, float):
        return f"{value * 100:g}%"
    if isinstance(value, float):
        if not value.is_integer():
            text = f", or text such as '{value:g}M'" if name in ("work", "stride", "array") else ""
            raise ValueError(f"{name}={value}: a whole number{text}")
        return str(int(value))
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(_text(name, one) for one in value)
    return str(value)
