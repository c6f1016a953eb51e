"""A dataset: run files as the program wrote them, and the same as Parquet (docs/fleet.md, "Dataset").

A run file comes from a machine that may lie: names are checked before they become paths, sizes are limited, and
what the program cannot read is set aside by name. Estimates are the program's; nothing is computed here.
"""

from __future__ import annotations

import csv
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from switchcost import _program

MAX_BYTES = 256 << 20
MAX_ROWS = 1_000_000
# A header is one line: the machine of a host with thousands of CPUs has below 4 MB.
MAX_HEADER_BYTES = 16 << 20
EXPORT_SECONDS = 120
RUNS_AT_ONCE = 500

HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?", re.ASCII)
RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}", re.ASCII)

_Column = tuple[str, pa.DataType]
_KEY: list[_Column] = [("host", pa.string()), ("run", pa.string()), ("started", pa.timestamp("us", "UTC"))]
_CASE: list[_Column] = [
    ("experiment", pa.string()),
    ("case", pa.int64()),
    ("members", pa.int64()),
    ("kind", pa.string()),
    ("link", pa.string()),
    ("work_bytes", pa.int64()),
    ("stride_bytes", pa.int64()),
    ("op", pa.string()),
    ("placement", pa.string()),
    ("policy", pa.string()),
    ("state", pa.string()),
]


def _columns(kind: pa.DataType, names: str) -> list[_Column]:
    return [(name, kind) for name in names.split()]


SCHEMAS: dict[str, pa.Schema] = {
    "samples": pa.schema(
        _KEY
        + _CASE
        + _columns(pa.int64(), "round sample hops elapsed_ns user_ns system_ns voluntary involuntary migrations")
        + _columns(pa.int64(), "minor_faults major_faults steal_ns laps cpu_ns setup_ns waited_ns")
        + _columns(pa.string(), "disturbed call quantity")
        + _columns(pa.int64(), "values")
        + _columns(pa.float64(), "total mean sd min p50 p99 max")
    ),
    "cases": pa.schema(
        _KEY
        + _CASE
        + _columns(pa.string(), "title quantity unit speed")
        + _columns(pa.float64(), "estimate low high")
        + _columns(pa.int64(), "rounds")
    ),
    "machines": pa.schema(
        _KEY
        + _columns(pa.string(), "recorded_host name experiment program ended noise noise_reasons")
        + _columns(pa.float64(), "clean_share")
        + _columns(pa.int64(), "file_bytes cpus numa_nodes memory_bytes")
        + _columns(pa.string(), "sha256 cpu_vendor cpu_model cpu_stepping microcode smt hypervisor")
        + _columns(pa.string(), "kernel kernel_version command_line preemption clock_source frequency_driver governor")
        + _columns(pa.string(), "boost idle_driver idle_governor transparent_huge_pages mitigations")
    ),
}


# A figure that can be compared: found at full speed (or of a kind where speed is not judged), with an interval of
# at most half of itself. Of placements only the relation counts: the CPUs' numbers differ from host to host.
FIGURES = """
CREATE VIEW figures AS
SELECT host, run, date, experiment, estimate, low, high,
       experiment || ': ' || concat_ws(', ', title, nullif(kind, 'process'), nullif(quantity, 'switch'),
                                       nullif(policy, 'other'), nullif(split_part(placement, ':', 1), 'same')) AS label
FROM cases
WHERE estimate > 0 AND coalesce(speed, '') != 'contended' AND coalesce(high - low <= estimate / 2, true)
"""


class DatasetError(Exception):
    """What a person can act on; `code` is the program's exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class Unreadable(Exception):
    """Why a file cannot be a run of the dataset."""


@dataclass(frozen=True)
class Added:
    host: str
    run: str
    path: Path


@dataclass(frozen=True)
class Already:
    host: str
    run: str


@dataclass(frozen=True)
class SetAside:
    name: str
    reason: str


@dataclass(frozen=True)
class Compacted:
    runs: int
    set_aside: list[SetAside]


@dataclass(frozen=True)
class Submission:
    """Who was asked: `time` is when, in UTC."""

    id: str
    time: datetime
    engine: str
    hosts: list[str]
    command: list[str]


def clean(text: str, limit: int = 300) -> str:
    """The text without control characters and marks of direction, at most `limit` characters."""
    shown = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in text[: 4 * limit])
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def moment(text: object) -> datetime:
    """A time such as 2026-11-24T03:36:56Z, in UTC; raises Unreadable."""
    try:
        time = datetime.fromisoformat(str(text).replace("Z", "+00:00")).astimezone(timezone.utc)
    except (ValueError, OverflowError) as error:
        raise Unreadable(f"its start is no time: {clean(str(text), 40)!r}") from error
    if not 2000 <= time.year < 2100:
        raise Unreadable(f"its start is in the year {time.year}")
    return time


class Dataset:
    """The folder of a dataset. Any number of programs may read it; `add` and `compact` wait for each other."""

    def __init__(self, path: str | Path, max_bytes: int = MAX_BYTES, max_rows: int = MAX_ROWS) -> None:
        """`max_bytes` and `max_rows` (lines) limit a run file; a longer one is set aside."""
        self.path = Path(path).absolute()
        self.max_bytes = max_bytes
        self.max_rows = max_rows
        if re.search(r"[*?\[\]{}]", str(self.path)):
            raise DatasetError(
                f"{self.path}: the path of a dataset cannot have any of *?[]{{}} in it (DuckDB's patterns)"
            )

    def add(self, file: str | Path, host: str | None = None) -> Added | Already | SetAside:
        """Take a run file in. `host` is who sent it, and goes before what the file says of itself.

        A run is known by host and run id. A file that was resumed since takes the place of the shorter one.
        Raises DatasetError where the dataset cannot be written, or `file` cannot be read here.
        """
        file = Path(file)
        with self._locked():
            work = self._scratch()
            copy = work / "run.jsonl"
            try:
                try:
                    self._copy(file, copy)
                    header = _header(copy)
                    host, run = _host(host, header), _run(header)
                    _export(copy, "summary-csv", self.max_bytes)
                    return self._take(copy, host, run)
                except Unreadable as error:
                    return self._set_aside(file, copy, host, str(error))
            except OSError as error:
                raise DatasetError(f"{file} cannot be taken into {self.path}: {error}") from error
            finally:
                shutil.rmtree(work, ignore_errors=True)

    def compact(self) -> Compacted:
        """Write what is new among the run files to Parquet, a whole day at a time.

        A day's file is written beside, handed to the disk and renamed: a reader has the old file or the new
        one. `machines` is last, and says which runs are in: after a crash the next call does the rest.
        """
        with self._locked():
            known = {(host, run): size for host, run, size in self._known()}
            new = [(h, r, p) for h, r, p, size in self._files() if known.get((h, r)) != size]
            aside: list[SetAside] = []
            work = self._scratch()
            try:
                days: set[str] = set()
                for start in range(0, len(new), RUNS_AT_ONCE):
                    days |= self._extract(new[start : start + RUNS_AT_ONCE], work, f"{start:09}", aside)
                self._merge(work, days)
            except OSError as error:
                raise DatasetError(
                    f"{self.path} cannot be compacted: {error}; what was there before is kept"
                ) from error
            except duckdb.Error as error:
                raise DatasetError(f"{self.path}/parquet cannot be compacted: {clean(str(error))}") from error
            finally:
                shutil.rmtree(work, ignore_errors=True)
            return Compacted(len(new) - len(aside), aside)

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection in memory with the views `samples`, `cases` and `machines`, with `date` in each.

        A fourth, `figures`, has those cases that can be compared between hosts, by `label`.
        """
        connection = _duckdb()
        for table, schema in SCHEMAS.items():
            files = sorted(str(f) for f in (self.path / "parquet" / table).glob("date=*/*.parquet"))
            if files:
                of = f"read_parquet([{', '.join(map(quoted, files))}], hive_partitioning = true, union_by_name = true)"
                connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {of}")
            else:
                connection.register(f"no_{table}", schema.append(pa.field("date", pa.date32())).empty_table())
                connection.execute(f"CREATE VIEW {table} AS SELECT * FROM no_{table}")
        connection.execute(FIGURES)
        return connection

    def submissions(self) -> list[Submission]:
        """Who was asked, oldest first; raises DatasetError with the path of a broken file."""
        found = []
        for path in sorted((self.path / "submissions").glob("*.json")):
            try:
                value = json.loads(path.read_text())
                hosts, command = [str(h) for h in value["hosts"]], [str(w) for w in value["command"]]
                found.append(Submission(str(value["id"]), moment(value["time"]), str(value["engine"]), hosts, command))
            except (OSError, ValueError, KeyError, TypeError, Unreadable) as error:
                raise DatasetError(f"{path} is no record of a submission: {error!r}; remove or mend it") from error
        return sorted(found, key=lambda s: s.time)

    def never_answered(self) -> list[str]:
        """Hosts that were asked and of which no run began since (their clock may be a minute slow), by name."""
        asked: dict[str, datetime] = {}
        for submission in self.submissions():
            for host in submission.hosts:
                asked.setdefault(host, submission.time)
        with self.connect() as connection:
            last = dict(connection.execute("SELECT host, epoch(max(started)) FROM machines GROUP BY host").fetchall())
        return sorted(host for host, time in asked.items() if last.get(host, 0.0) < time.timestamp() - 60)

    def write(self, table: str, date: str, rows: pa.Table) -> None:
        """Add rows of one day to Parquet as they are: for generators; runs come by `add` and `compact`."""
        with self._locked():
            work = self._scratch()
            try:
                _part(work, table, date, "rows", rows)
                self._merge(work, {date})
            finally:
                shutil.rmtree(work, ignore_errors=True)

    def _known(self) -> list[tuple[str, str, int]]:
        with self.connect() as connection:
            return connection.execute("SELECT host, run, file_bytes FROM machines").fetchall()

    def _files(self) -> Iterator[tuple[str, str, Path, int]]:
        runs = self.path / "runs"
        for host in sorted(os.listdir(runs)) if runs.is_dir() else []:
            if not HOST.fullmatch(host) or not (runs / host).is_dir():
                continue
            for entry in sorted(os.scandir(runs / host), key=lambda e: e.name):
                run = entry.name[: -len(".jsonl")]
                if entry.name.endswith(".jsonl") and RUN.fullmatch(run) and entry.is_file(follow_symlinks=False):
                    yield host, run, Path(entry.path), entry.stat().st_size

    def _extract(self, runs: list[tuple[str, str, Path]], work: Path, part: str, aside: list[SetAside]) -> set[str]:
        """The rows of these runs, as a part of each day and table in `work`; broken ones are moved aside."""
        rows: dict[tuple[str, str], list[pa.Table]] = defaultdict(list)

        def read(item: tuple[str, str, Path]) -> tuple[str, dict[str, pa.Table]] | Unreadable:
            try:
                return _tables(*item, self.max_bytes)
            except Unreadable as error:
                return error

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for (host, _, path), result in zip(runs, pool.map(read, runs)):
                if isinstance(result, Unreadable):
                    aside.append(self._set_aside(path, path, host, str(result)))
                    path.unlink()
                    continue
                for table, found in result[1].items():
                    rows[table, result[0]].append(found)
        for (table, day), tables in rows.items():
            _part(work, table, day, part, pa.concat_tables(tables))
        return {day for _, day in rows}

    def _merge(self, work: Path, days: set[str]) -> None:
        with _duckdb() as connection:
            connection.execute(f"SET temp_directory = {quoted(work / 'spill')}")
            connection.execute("SET preserve_insertion_order = false")
            for day in sorted(days):
                for table in SCHEMAS:
                    parts = work / table / day
                    if parts.is_dir():
                        self._merge_day(
                            connection, parts, self.path / "parquet" / table / f"date={day}" / "data.parquet"
                        )

    def _merge_day(self, connection: duckdb.DuckDBPyConnection, parts: Path, target: Path) -> None:
        new = f"read_parquet({quoted(parts / '*.parquet')})"
        rows = f"SELECT * FROM {new}"
        if target.exists():
            old = f"read_parquet({quoted(target)}, hive_partitioning = false)"
            rows += (
                f" UNION ALL BY NAME SELECT * FROM {old} o WHERE (o.host, o.run) NOT IN (SELECT (host, run) FROM {new})"
            )
        beside = parts / "merged"
        order = "host, run" + ("" if parts.parent.name == "machines" else ', experiment, "case"')
        connection.execute(f"COPY ({rows} ORDER BY {order}) TO {quoted(beside)} (FORMAT parquet, COMPRESSION zstd)")
        target.parent.mkdir(parents=True, exist_ok=True)
        _settle(beside, target)

    def _take(self, copy: Path, host: str, run: str) -> Added | Already:
        target = self.path / "runs" / host / f"{run}.jsonl"
        if target.exists():
            if _first_line(target) != _first_line(copy):
                raise Unreadable(f"another run with the id {run} of host {host} is in the dataset")
            if target.stat().st_size >= copy.stat().st_size:
                return Already(host, run)
        target.parent.mkdir(parents=True, exist_ok=True)
        _settle(copy, target)
        return Added(host, run, target)

    def _copy(self, file: Path, copy: Path) -> None:
        """A copy of a regular file within the limits."""
        try:
            # A link could name any file of this machine; opening a FIFO would wait for ever.
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (40, 6):  # ELOOP of a link, ENXIO of a socket
                raise Unreadable("not a regular file") from error
            raise
        with os.fdopen(descriptor, "rb") as source, open(copy, "xb") as target:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Unreadable("not a regular file")
            size = lines = 0
            while block := source.read(1 << 20):
                size, lines = size + len(block), lines + block.count(b"\n")
                if size > self.max_bytes:
                    raise Unreadable(f"longer than {self.max_bytes} bytes")
                if lines > self.max_rows:
                    raise Unreadable(f"more than {self.max_rows} lines")
                target.write(block)

    def _set_aside(self, file: Path, copy: Path, host: str | None, reason: str) -> SetAside:
        """Keep a broken file by name, with the reason beside it; the start of one that is too long."""
        start = b""
        if copy.exists():
            with open(copy, "rb") as source:
                start = source.read(1 << 20)
        known = host if host and HOST.fullmatch(host) else "unknown"
        name = re.sub(r"[^A-Za-z0-9._+-]", "_", file.name)[:100].lstrip(".") or "file"
        name = f"{known[:80]}-{hashlib.sha256(start).hexdigest()[:8]}-{name}"
        folder = self.path / "set-aside"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(start)
        reason = clean(reason)
        (folder / f"{name}.reason").write_text(f"{clean(str(file))}: {reason}\n")
        return SetAside(name, reason)

    def _scratch(self) -> Path:
        return Path(tempfile.mkdtemp(prefix=".work-", dir=self.path))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with open(self.path / ".lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                # What a killed program left behind: nobody else can be at work now.
                for left in self.path.glob(".work-*"):
                    shutil.rmtree(left, ignore_errors=True)
                yield
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise DatasetError(f"{self.path} is no folder that can be written: {error}") from error


def quoted(text: str | Path) -> str:
    """A string of SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def _duckdb() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    return connection


def _settle(beside: Path, target: Path) -> None:
    with open(beside, "rb") as file:
        os.fsync(file.fileno())
    os.replace(beside, target)
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _part(work: Path, table: str, day: str, part: str, rows: pa.Table) -> None:
    folder = work / table / day
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows.select(SCHEMAS[table].names).cast(SCHEMAS[table]), folder / f"{part}.parquet")


def _first_line(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.readline(MAX_HEADER_BYTES)


def _header(path: Path) -> dict[str, Any]:
    try:
        header = json.loads(_first_line(path))["header"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreadable("its first line is no header of a run file") from error
    if not isinstance(header, dict):
        raise Unreadable("its first line is no header of a run file")
    return header


def _run(header: dict[str, Any]) -> str:
    run = header.get("run")
    if not isinstance(run, str) or not RUN.fullmatch(run):
        raise Unreadable(f"not a run id: {clean(str(run), 60)!r}")
    return run


def _host(host: str | None, header: dict[str, Any]) -> str:
    host = header.get("host") if host is None else host
    if host is None:
        raise Unreadable("it does not say of which host it is (--anonymous); name the host when it is collected")
    if not isinstance(host, str) or not HOST.fullmatch(host):
        raise Unreadable(f"not a host name: {clean(str(host), 60)!r}")
    return host


def _export(path: Path, form: str, max_bytes: int) -> bytes:
    """What the program says of a run file; raises Unreadable with its message."""
    # By an empty state: what this machine knows of its own CPU has no part in another's figures.
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryFile() as errors:
        environment = {**os.environ, "XDG_DATA_HOME": empty, "XDG_STATE_HOME": empty, "HOME": empty}
        command = [_program.find(), "runs", "export", "--format", form, str(path.absolute())]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment) as process:
            assert process.stdout
            output = process.stdout.read(4 * max_bytes)
            if process.stdout.read(1):
                process.kill()
                raise Unreadable(f"more than {4 * max_bytes} bytes when exported")
        if process.returncode:
            errors.seek(0)
            said = clean(errors.read(4096).decode(errors="replace").strip().replace(str(path), "the file"))
            raise Unreadable(said or f"switchcost ended with {process.returncode}")
    return output


def _tables(host: str, run: str, path: Path, max_bytes: int) -> tuple[str, dict[str, pa.Table]]:
    """The day of a run and its rows by table."""
    header = _header(path)
    started = moment(header.get("started"))
    record = json.loads(_export(path, "json", max_bytes))
    summary = list(csv.DictReader(io.StringIO(_export(path, "summary-csv", max_bytes).decode())))
    samples = _export(path, "csv", max_bytes)
    key = {"host": host, "run": run, "started": started}
    machine = {**key, **machine_row(header, record), "file_bytes": path.stat().st_size}
    machine["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    tables = {
        "samples": _samples(samples, key),
        "cases": _rows("cases", [{**key, **row} for row in _cases(summary, record)]),
        "machines": _rows("machines", [machine]),
    }
    return started.date().isoformat(), tables


def _samples(text: bytes, key: dict[str, Any]) -> pa.Table:
    schema = SCHEMAS["samples"]
    names = [name for name in schema.names if name not in key]
    options = pa.csv.ConvertOptions(
        include_columns=names,
        include_missing_columns=True,
        column_types={name: schema.field(name).type for name in names},
        strings_can_be_null=True,
    )
    try:
        read = pa.csv.read_csv(
            io.BytesIO(text),
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=max(1 << 20, min(len(text), 1 << 30))),
            convert_options=options,
        )
    except pa.ArrowInvalid as error:
        raise Unreadable(f"its samples cannot be a table: {error}") from error
    for i, name in enumerate(key):
        read = read.add_column(
            i, schema.field(name), pa.repeat(pa.scalar(key[name], schema.field(name).type), len(read))
        )
    return read.select(schema.names).cast(schema)


def _rows(table: str, rows: list[dict[str, Any]]) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows, schema=SCHEMAS[table])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise Unreadable(f"its {table} cannot be a table: {error}") from error


_ESTIMATES = {"switch": "ns_per_switch_above_solo", "hop": "ns_per_hop"}


def _cases(summary: list[dict[str, str]], record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of `cases` without their key: the program's summary, and of rings at which speed the figure is."""
    kinds: dict[str, Callable[[str], Any]] = {"int64": int, "double": float, "string": clean}
    for row in summary:
        typed: dict[str, Any] = {}
        for field in SCHEMAS["cases"]:
            text = row.get(field.name)
            typed[field.name] = kinds[str(field.type)](text) if text and str(field.type) in kinds else None
        case = _at(record, "cases", typed["case"]) or {}
        case = case.get("ring") or case.get("trial") or case
        estimate = case.get(_ESTIMATES.get(row["quantity"], "")) or {}
        typed["speed"], typed["rounds"] = estimate.get("speed"), estimate.get("rounds") or case.get("rounds")
        for name in ("low", "high"):
            if typed["estimate"] is None:
                typed[name] = None
        yield {name: value for name, value in typed.items() if name not in ("host", "run", "started")}


def _at(value: Any, *keys: Any) -> Any:
    """What lies at these keys; None where it is absent or {"unknown": why}."""
    for key in keys:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return None if isinstance(value, dict) and "unknown" in value else value


def machine_row(header: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """What `machines` has of a header and its record, without key, size and checksum."""
    machine = header.get("machine")

    def text(*keys: Any) -> str | None:
        value = _at(machine, *keys)
        return None if value is None else clean(str(value).lower() if isinstance(value, bool) else str(value), 1000)

    def each(items: Any, key: str) -> str | None:
        """The different values among CPUs, of which a machine may have several kinds."""
        found = {str(_at(item, key)) for item in items or [] if _at(item, key) is not None}
        return clean(", ".join(sorted(found)), 300) or None

    models, policies = _at(machine, "cpu", "models"), _at(machine, "frequency", "policies")
    nodes, mitigations = _at(machine, "numa", "nodes"), _at(machine, "mitigations")
    stepping = [f"{_at(m, 'family')}-{_at(m, 'model')}-{_at(m, 'stepping')}" for m in models or []]
    virtual = _at(machine, "virtualization", "cpu_flag")
    product = [
        text("virtualization", k) for k in ("hypervisor_type", "dmi_vendor", "dmi_product", "device_tree_hypervisor")
    ]
    named = " ".join(word for word in product if word)
    build = header.get("build")
    return {
        "recorded_host": clean(str(_at(header, "host") or "")) or None,
        "name": clean(str(_at(header, "name") or "")) or None,
        "experiment": clean(str(_at(header, "plan", "experiment") or "")) or None,
        "program": clean(f"{_at(build, 'version')} {_at(build, 'commit')} {_at(build, 'target')}"),
        "ended": clean(str(_at(record, "end", "reason") or "killed")),
        "noise": _at(record, "noise", "level"),
        "noise_reasons": clean("; ".join(map(str, _at(record, "noise", "reasons") or [])), 1000) or None,
        "clean_share": _at(record, "noise", "clean_share"),
        "cpu_vendor": each(models, "vendor"),
        "cpu_model": each(models, "name"),
        "cpu_stepping": clean(", ".join(sorted(set(stepping)))) or None,
        "microcode": each(models, "microcode"),
        "smt": text("cpu", "smt_control"),
        "hypervisor": None if virtual is None and not named else (named or "yes") if virtual is not False else "none",
        "cpus": len(_at(machine, "cpu", "topology") or []) or None,
        "numa_nodes": len(nodes) if isinstance(nodes, list) else None,
        "memory_bytes": _at(machine, "memory", "total_bytes"),
        "kernel": text("kernel", "release"),
        "kernel_version": text("kernel", "version"),
        "command_line": text("kernel", "command_line"),
        "preemption": text("kernel", "preemption", "model"),
        "clock_source": text("kernel", "clock_source", "current"),
        "frequency_driver": each(policies, "driver"),
        "governor": each(policies, "governor"),
        "boost": text("frequency", "boost"),
        "idle_driver": text("frequency", "idle_driver"),
        "idle_governor": text("frequency", "idle_governor"),
        "transparent_huge_pages": text("memory", "thp_enabled"),
        "mitigations": clean("; ".join(f"{k}: {v}" for k, v in sorted(mitigations.items())), 4000)
        if isinstance(mitigations, dict)
        else None,
    }
