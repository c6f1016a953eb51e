"""A run file as rows of the tables `samples`, `cases` and `machines` (docs/fleet.md, "Columns").

Estimates are the program's; nothing is computed here. A file may say anything: what cannot be a row is `Unreadable`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from .._program import printable
from .._program import run as run_program
from ..machine import facts_of
from ..tables import Table, of_csv, parse_time
from .columns import KEY, NAME, with_others
from .columns import SCHEMAS as SCHEMAS
from .submission import HOST, YEARS, Unreadable

# A header is one line: the machine of a host with thousands of CPUs has below 4 MB.
MAX_HEADER_BYTES = 16 << 20
MAX_EXPORT_BYTES = 1 << 30
# A clock that is further ahead is wrong; a day is what time zones may differ by.
MOST_AHEAD = timedelta(days=1)
# Tables of more bytes than this are not read as one.
TOGETHER_BYTES = 32 << 20
RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}", re.ASCII)


@dataclass(frozen=True)
class Rows:
    """A run's rows by table; `day` is that of its start, in UTC."""

    host: str
    run: str
    day: str
    tables: dict[str, pa.Table]


def rows_of_all(files: list[tuple[str, str, Path]]) -> list[Rows | Unreadable]:
    """Of several files, which one process reads; Unreadable with the program's message where it cannot read one."""
    all_told = exports([path for _, _, path in files])
    read = _samples([told.pop("samples").encode() for told in all_told if not isinstance(told, Unreadable)])
    found: list[Rows | Unreadable] = []
    for (host, run, path), told in zip(files, all_told, strict=True):
        try:
            if isinstance(told, Unreadable):
                raise told
            samples = next(read)
            if isinstance(samples, Unreadable):
                raise samples
            found.append(_rows(host, run, path, told, samples))
        except Unreadable as error:
            found.append(error)
    return found


def _rows(host: str, run: str, path: Path, told: dict[str, Any], samples: pa.Table) -> Rows:
    try:
        started = parse_time(told["header"].get("started"), YEARS)
    except ValueError as error:
        raise Unreadable(f"its start is {error}") from error
    if started > datetime.now(timezone.utc) + MOST_AHEAD:
        # It would be its host's newest run for as long, and the end of every period that is looked at.
        raise Unreadable(f"its start is {started:%Y-%m-%d}, more than a day from now: set the host's clock")
    key = {"host": host, "run": run, "started": started}
    of_file = {"file_bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    machine = {**facts_of(told, "machines"), **key, **of_file}
    names = [name for name in _header(told["summary"].encode()) if name != NAME]
    schema = with_others("cases", names)
    unknown = [name for name in names if name not in SCHEMAS["cases"].names]
    cases = [{**row, **key} for row in _cases(of_csv(told["summary"], text_columns=unknown))]
    try:
        tables = {
            "samples": _with_key(samples, key),
            "cases": pa.Table.from_pylist(cases, schema=schema),
            "machines": pa.Table.from_pylist([machine], schema=SCHEMAS["machines"]),
        }
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise Unreadable(f"its rows cannot be a table: {error}") from error
    return Rows(host, run, started.date().isoformat(), tables)


def exports(paths: list[Path]) -> list[dict[str, Any] | Unreadable]:
    """What the program says of run files: facts, summary and samples. One that it dies of costs the others nothing."""
    if not paths:
        return []
    arguments = ["runs", "export", "--format=rows", "--", *(str(path.absolute()) for path in paths)]
    done = run_program(arguments, most_bytes=MAX_EXPORT_BYTES + 1)
    lines = done.output.split(b"\n")[:-1]
    if len(lines) == len(paths) and not done.exit_code:
        return [_told(line, path) for line, path in zip(lines, paths, strict=True)]
    if len(paths) > 1:
        return [one for path in paths for one in exports([path])]
    if len(done.output) > MAX_EXPORT_BYTES:
        return [Unreadable(f"more than {MAX_EXPORT_BYTES} bytes when exported")]
    return [Unreadable(printable(done.errors) or f"switchcost ended with {done.exit_code}")]


def _told(line: bytes, path: Path) -> dict[str, Any] | Unreadable:
    told: dict[str, Any] = json.loads(line)
    why = told.get("error")
    return told if why is None else Unreadable(printable(why.replace(str(path.absolute()), "the file")))


def first_line(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.readline(MAX_HEADER_BYTES)


def header_of(path: Path) -> dict[str, Any]:
    try:
        return {**json.loads(first_line(path))["header"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreadable("its first line is no header of a run file") from error


def names_of(host: str | None, header: dict[str, Any]) -> tuple[str, str]:
    """The names of the host, which is the one that sent the file if that is known, and of the run."""
    host = header.get("host") if host is None else host
    if host is None:
        raise Unreadable("it does not say of which host it is (--anonymous); name the host when it is collected")
    return _matching(HOST, host, "host name"), _matching(RUN, header.get("run"), "run id")


def _matching(pattern: re.Pattern[str], name: object, what: str) -> str:
    if not isinstance(name, str) or not pattern.fullmatch(name):
        raise Unreadable(f"not a {what}: {printable(str(name), 60)!r}")
    return name


def _samples(texts: list[bytes]) -> Iterator[pa.Table | Unreadable]:
    """The rows of each text, without a run's key. Those with the same columns are read as one, which takes a tenth of
    the time."""
    by_head: dict[tuple[bytes, int], list[int]] = {}
    bytes_of: dict[bytes, int] = {}
    for number, text in enumerate(texts):
        head = text[: text.find(b"\n")]
        bytes_of[head] = bytes_of.get(head, 0) + len(text)
        # Several long ones are not copied at once.
        by_head.setdefault((head, bytes_of[head] // TOGETHER_BYTES), []).append(number)
    found: dict[int, pa.Table | Unreadable] = {}
    for (head, _), numbers in by_head.items():
        rows = [texts[number][len(head) + 1 :] for number in numbers]
        # An end of a line within quotes is no end of a row.
        counts = [of_run.count(b"\n") for of_run in rows]
        quotes = any(b'"' in of_run for of_run in rows)
        together = None if quotes else _read(head + b"\n" + b"".join(rows))
        if isinstance(together, pa.Table) and len(together) == sum(counts):
            starts = accumulate(counts, initial=0)
            found |= {
                number: together.slice(at, count) for number, at, count in zip(numbers, starts, counts, strict=False)
            }
        else:
            found |= {number: _read(texts[number]) for number in numbers}
    return (found[number] for number in range(len(texts)))


def _read(text: bytes) -> pa.Table | Unreadable:
    schema = with_others("samples", [name for name in _header(text) if name not in KEY])
    types = {name: schema.field(name).type for name in schema.names if name not in KEY}
    options = pa.csv.ConvertOptions(
        include_columns=list(types), include_missing_columns=True, column_types=types, strings_can_be_null=True
    )
    block = pa.csv.ReadOptions(use_threads=False, block_size=max(1 << 20, min(len(text), 1 << 30)))
    try:
        return pa.csv.read_csv(io.BytesIO(text), block, convert_options=options)
    except pa.ArrowInvalid as error:
        return Unreadable(f"its rows cannot be a table: {error}")


def _header(text: bytes) -> list[str]:
    """The names of the columns of CSV."""
    return next(csv.reader([text[: text.find(b"\n")].decode(errors="replace")]), [])


def _with_key(samples: pa.Table, key: dict[str, Any]) -> pa.Table:
    schema = with_others("samples", samples.column_names)
    same = {name: pa.repeat(pa.scalar(value, schema.field(name).type), len(samples)) for name, value in key.items()}
    return pa.table({**same, **{name: samples[name] for name in samples.column_names}}, schema=schema)


def _cases(summary: Table) -> Iterator[dict[str, Any]]:
    """Rows of `cases`. What may not be quoted has no interval."""
    for row in summary.rows():
        if not row["quotable"]:
            row["estimate"] = row["low"] = row["high"] = None
        yield {name: printable(value) if isinstance(value, str) else value for name, value in row.items()}
