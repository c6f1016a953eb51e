"""A dataset: run files as the program wrote them, and the same as Parquet (docs/fleet.md, "Dataset").

A run file comes from a machine that may lie: names are checked before they become paths, sizes are limited, and
what the program cannot read is set aside by name.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, Union

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from .._program import printable
from ..tables import kind
from .rows import RUN, SCHEMAS, Rows, Unreadable, first_line, header_of, host_of, rows_of, run_of
from .submission import HOST, FleetError, moment, submissions

MAX_BYTES = 256 << 20
MAX_ROWS = 1_000_000
# Run files that are read before their rows are written: more would need more memory.
AT_ONCE = 500
# Twice the CPUs: half of the threads wait for the disk.
THREADS = 2 * (os.cpu_count() or 1)

# Columns of `machines` in Parquet files of older versions, with what has taken their place, word by word.
RENAMED = {
    "program": ["build_version", "build_commit", "build_target"],
    "ended": ["end_reason"],
    "kernel": ["kernel_release"],
    "command_line": ["kernel_command_line"],
    "cpus": ["cpus_online"],
    "boost": ["boost"],  # was text
    "smt": ["smt_control"],
    "governor": ["frequency_governor"],
    "transparent_huge_pages": ["thp_enabled"],
}
_SQL = {"int": "BIGINT", "bool": "BOOLEAN", "str": "VARCHAR"}

# A figure that can be compared: of a run that went to its end, found at full speed with nobody else on the CPU (or of a
# kind where speed is not judged), with an interval of at most half of itself. Of placements only the relation counts:
# the CPUs' numbers differ from host to host.
# It is brought to the median clock of like figures by its own elasticity, else by theirs, else by the middle between
# 0 and 1. `open` is what that leaves open, as the half-width of 95 %, with the sign of the clock's deviation.
FIGURES = """
CREATE VIEW figures AS
WITH measured AS (
    SELECT host, run, cases.date, cases.experiment, cpu_model, estimate, low, high,
           cases.experiment || ': ' || concat_ws(', ', title, nullif(kind, 'process'), nullif(quantity, 'switch'),
                                 nullif(policy, 'other'), nullif(split_part(placement, ':', 1), 'same')) AS label,
           CASE WHEN cases.clock_ghz BETWEEN 0.01 AND 100 THEN cases.clock_ghz END AS clock_ghz,
           CASE WHEN elasticity_error BETWEEN 0 AND 0.1 AND abs(elasticity) <= 5 THEN elasticity END AS own,
           elasticity_error
    FROM cases JOIN machines USING (host, run)
    WHERE coalesce(end_reason, '') NOT IN ('interrupted', 'failed', 'killed')
      AND estimate > 0 AND coalesce(speed, '') NOT IN ('contended', 'not_alone')
      AND coalesce(high - low <= estimate / 2, true)
), clocks AS (
    SELECT *, ln(clock_ghz / median(clock_ghz) OVER alike) AS apart, median(own) OVER alike AS usual
    FROM measured WINDOW alike AS (PARTITION BY label, cpu_model)
), brought AS (
    SELECT *, coalesce(exp(apart * coalesce(own, usual, 0.5)), 1) AS factor,
           coalesce(apart * CASE WHEN own IS NOT NULL THEN 1.96 * elasticity_error
                                 WHEN usual IS NOT NULL THEN 1.96 * 0.1 ELSE 0.5 END, 0) AS open
    FROM clocks
)
SELECT host, run, date, experiment, label, estimate * factor AS estimate, low * factor * exp(-abs(open)) AS low,
       high * factor * exp(abs(open)) AS high, estimate AS as_measured, clock_ghz, open
FROM brought
"""


@dataclass(frozen=True)
class Added:
    host: str
    run: str


@dataclass(frozen=True)
class Already:
    host: str
    run: str


@dataclass(frozen=True)
class SetAside:
    name: str
    reason: str


Result = Union[Added, Already, SetAside]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Compacted:
    runs: int
    set_aside: list[SetAside]


@dataclass(frozen=True)
class _New:
    """A run that has been read and is not in the dataset yet."""

    host: str
    run: str
    rows: Rows


class Dataset:
    """The folder of a dataset. Any number of programs may read it; `add` and `compact` wait for each other."""

    def __init__(self, path: str | Path, max_bytes: int = MAX_BYTES, max_rows: int = MAX_ROWS) -> None:
        """`max_bytes` and `max_rows` (lines) limit a run file; a longer one is set aside."""
        self.path = Path(path).absolute()
        self.runs, self.parquet = self.path / "runs", self.path / "parquet"
        self.max_bytes = max_bytes
        self.max_rows = max_rows
        if re.search(r"[*?\[\]{}]", str(self.path)):
            raise FleetError(
                f"{self.path}: the path of a dataset cannot have any of *?[]{{}} in it (DuckDB's patterns)"
            )

    def add(self, file: str | Path, host: str | None = None) -> Result:
        """Take a run file in, as `add_all` does."""
        return self.add_all([(Path(file), host)])[0]

    def add_all(self, files: list[tuple[Path, str | None]]) -> list[Result]:
        """Take run files in, each with the host that sent it, which goes before what the file says of itself.

        A run is known by host and run id. A file that was resumed since takes the place of the shorter one.
        Raises FleetError where the dataset cannot be written, or a file cannot be read here.
        """
        with self._at_work("cannot take files") as work, ThreadPoolExecutor(THREADS) as pool:
            return [result for part in _parts(files) for result in self._add(part, work, pool)]

    def _add(self, files: list[tuple[Path, str | None]], work: Path, pool: ThreadPoolExecutor) -> list[Result]:
        copies = [work / f"{number}.jsonl" for number in range(len(files))]
        read = pool.map(self._read, (file for file, _ in files), copies, (host for _, host in files))
        results: list[Result] = []
        new: dict[tuple[str, str], Rows] = {}
        for (file, host), copy, found in zip(files, copies, list(read)):
            try:
                results.append(self._take(copy, found, new, work) if isinstance(found, _New) else found)
            except Unreadable as error:
                results.append(self._set_aside(file, copy, host, str(error)))
            copy.unlink(missing_ok=True)
        if new:
            list(pool.map(_sync, [self.runs, *{self.runs / host for host, _ in new}]))
            self._write_new(list(new.values()), work)
        return results

    def _read(self, file: Path, copy: Path, host: str | None) -> _New | Result:
        """Looks at a copy, which the sender cannot change; it is on the disk when this returns."""
        try:
            self._copy(file, copy)
            header = header_of(copy)
            host, run = host_of(host, header), run_of(header)
            if self._is_there(copy, host, run):
                return Already(host, run)
            return _New(host, run, rows_of(host, run, copy, self.max_bytes))
        except Unreadable as error:
            return self._set_aside(file, copy, host, str(error))

    def _is_there(self, copy: Path, host: str, run: str) -> bool:
        """Whether the dataset has as much of this run; raises Unreadable where it has another one with its id."""
        target = self._file(host, run)
        if not target.exists():
            return False
        if first_line(target) != first_line(copy):
            raise Unreadable(f"another run with the id {run} of host {host} is in the dataset")
        return target.stat().st_size >= copy.stat().st_size

    def _take(self, copy: Path, read: _New, new: dict[tuple[str, str], Rows], work: Path) -> Result:
        if self._is_there(copy, read.host, read.run):
            return Already(read.host, read.run)
        target = self._file(read.host, read.run)
        if target.exists():
            # Its shorter rows must be where these can take their place.
            self._merge(work)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(copy, target)
        new[read.host, read.run] = read.rows
        return Added(read.host, read.run)

    def _file(self, host: str, run: str) -> Path:
        return self.runs / host / f"{run}.jsonl"

    def compact(self) -> Compacted:
        """Write what is new among the run files to Parquet, a whole day at a time.

        A day's file is written beside, handed to the disk and renamed: a reader has the old file or the new
        one. `machines` is last, and says which runs are in: after a crash the next call does the rest.
        """
        with self._at_work("cannot be compacted; what was there before is kept") as work:
            runs = self._merge(work)
            # What `add` could not finish.
            known = {(host, run): size for host, run, size in self._known()}
            left = [(h, r, p) for h, r, p, size in self._files() if known.get((h, r)) != size]
            aside: list[SetAside] = []

            def read(item: tuple[str, str, Path]) -> Rows | None:
                host, _, path = item
                try:
                    return rows_of(*item, self.max_bytes)
                except Unreadable as error:
                    aside.append(self._set_aside(path, path, host, str(error)))
                    path.unlink()
                    return None

            with ThreadPoolExecutor(THREADS) as pool:
                for part in _parts(left):
                    self._write_new([rows for rows in pool.map(read, part) if rows], work)
            return Compacted(runs + self._merge(work), aside)

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection in memory with the views `samples`, `cases` and `machines`, with `date` in each.

        A fourth, `figures`, has those cases that can be compared between hosts, by `label` and at one clock.
        """
        connection = _duckdb()
        for table in SCHEMAS:
            files = sorted((self.parquet / table).glob("date=*/*.parquet"))
            connection.execute(f"CREATE VIEW {table} AS {_rows_in(connection, table, files, ['date'])}")
        connection.execute(FIGURES)
        return connection

    def never_answered(self) -> list[str]:
        """Hosts that were asked and of which no run began since (their clock may be a minute slow), by name."""
        asked: dict[str, float] = {}
        for submission in submissions(self.path):
            for host in submission.hosts:
                asked.setdefault(host, moment(submission.time).timestamp())
        with self.connect() as connection:
            last = dict(connection.execute("SELECT host, epoch(max(started)) FROM machines GROUP BY host").fetchall())
        return sorted(host for host, time in asked.items() if last.get(host, 0.0) < time - 60)

    def write(self, table: str, date: str, rows: pa.Table) -> None:
        """Add rows of one day to Parquet as they are: for generators; runs come by `add` and `compact`."""
        with self._at_work("cannot be written") as work:
            self._write_part(table, date, rows, work)
            self._merge(work)

    def _known(self) -> list[tuple[str, str, int]]:
        with self.connect() as connection:
            return connection.execute("SELECT host, run, file_bytes FROM machines").fetchall()

    def _files(self) -> Iterator[tuple[str, str, Path, int]]:
        runs = self.runs
        for host in sorted(os.listdir(runs)) if runs.is_dir() else []:
            if not HOST.fullmatch(host) or not (runs / host).is_dir():
                continue
            for entry in sorted(os.scandir(runs / host), key=lambda e: e.name):
                run = entry.name[: -len(".jsonl")]
                if entry.name.endswith(".jsonl") and RUN.fullmatch(run) and entry.is_file(follow_symlinks=False):
                    yield host, run, Path(entry.path), entry.stat().st_size

    def _write_new(self, runs: list[Rows], work: Path) -> None:
        """Rows of new runs go into files of their own below parquet/new, until they are merged."""
        for day in {rows.day for rows in runs}:
            for table in SCHEMAS:
                tables = [rows.tables[table] for rows in runs if rows.day == day]
                self._write_part(table, day, pa.concat_tables(tables), work)

    def _write_part(self, table: str, day: str, rows: pa.Table, work: Path) -> None:
        folder = self.parquet / "new" / table / day
        folder.mkdir(parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(suffix=".parquet", dir=work)
        os.close(handle)
        pq.write_table(rows.select(SCHEMAS[table].names).cast(SCHEMAS[table]), beside)
        _settle(Path(beside), folder / Path(beside).name)

    def _merge(self, work: Path) -> int:
        """Merges the rows of new runs into the days' files; returns how many runs these were."""
        new, runs = self.parquet / "new", 0
        if not new.is_dir():
            return 0
        with _duckdb() as connection:
            connection.execute(f"SET temp_directory = {quoted(work / 'spill')}")
            connection.execute("SET preserve_insertion_order = false")
            for day in sorted({folder.name for folder in new.glob("*/*")}):
                for table in SCHEMAS:
                    if (new / table / day).is_dir():
                        merged = self._merge_day(connection, new / table / day, work / "merged")
                        runs += merged if table == "machines" else 0
        shutil.rmtree(new)
        return runs

    def _merge_day(self, connection: duckdb.DuckDBPyConnection, parts: Path, beside: Path) -> int:
        """Returns the number of new rows."""
        table, day = parts.parent.name, parts.name
        target = self.parquet / table / f"date={day}" / "data.parquet"
        new = f"read_parquet({quoted(parts / '*.parquet')})"
        rows = _rows_in(connection, table, sorted(parts.glob("*.parquet")))
        if target.exists():
            old = _rows_in(connection, table, [target])
            rows += f" UNION ALL BY NAME FROM ({old}) o WHERE (o.host, o.run) NOT IN (SELECT (host, run) FROM {new})"
        order = "host, run" + ("" if table == "machines" else ', experiment, "case"')
        connection.execute(f"COPY ({rows} ORDER BY {order}) TO {quoted(beside)} (FORMAT parquet, COMPRESSION zstd)")
        target.parent.mkdir(parents=True, exist_ok=True)
        _settle(beside, target)
        return int(connection.execute(f"SELECT count(*) FROM {new}").fetchall()[0][0])

    def _copy(self, file: Path, copy: Path) -> None:
        """A copy of a regular file within the limits."""
        try:
            # A link could name any file of this machine; opening a FIFO would wait for ever.
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
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
            target.flush()
            os.fsync(target.fileno())

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
        reason = printable(reason, 300)
        (folder / f"{name}.reason").write_text(f"{printable(str(file))}: {reason}\n")
        return SetAside(name, reason)

    @contextmanager
    def _at_work(self, failed: str) -> Iterator[Path]:
        """A scratch folder while nobody else writes; what goes wrong is a FleetError that says `failed`."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = open(self.path / ".lock", "w")  # noqa: SIM115
        except OSError as error:
            raise FleetError(f"{self.path} is no folder that can be written: {error}") from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # What a killed program left behind: nobody else can be at work now.
            for left in self.path.glob(".work-*"):
                shutil.rmtree(left, ignore_errors=True)
            try:
                with tempfile.TemporaryDirectory(prefix=".work-", dir=self.path) as work:
                    yield Path(work)
            except OSError as error:
                raise FleetError(f"{self.path} {failed}: {error}") from error
            except duckdb.Error as error:
                raise FleetError(f"{self.parquet}: {failed}: {printable(str(error))}") from error


def _parts(items: list[_T]) -> Iterator[list[_T]]:
    return (items[start : start + AT_ONCE] for start in range(0, len(items), AT_ONCE))


def _rows_in(connection: duckdb.DuckDBPyConnection, table: str, files: list[Path], more: Sequence[str] = ()) -> str:
    """A query for the rows of Parquet files in today's columns, of which older files lack some and name some otherwise.

    `more` are columns of the folders' names.
    """
    names = [*SCHEMAS[table].names, *more]
    values = {name: f'"{name}"' for name in names}
    old = RENAMED if table == "machines" else {}
    for was, now in old.items():
        for at, name in enumerate(now, 1):
            word = f"nullif(split_part({was}, ' ', {at}), 'None')" if len(now) > 1 else was
            values[name] = f"coalesce({', '.join(f'CAST({value} AS {_SQL[kind(name)]})' for value in (name, word))})"
    lacking = SCHEMAS[table].empty_table()
    for name in [*more, *(old.keys() - {*names})]:
        lacking = lacking.append_column(name, pa.array([], pa.date32() if name in more else pa.string()))
    connection.register(f"no_{table}", lacking)
    rows = f"FROM no_{table}"
    if files:
        of = f"[{', '.join(map(quoted, files))}], hive_partitioning = {bool(more)}, union_by_name = true"
        rows += f" UNION ALL BY NAME FROM read_parquet({of})"
    chosen = ", ".join(f'{value} AS "{name}"' for name, value in values.items())
    return f"SELECT {chosen} FROM ({rows})"


def quoted(text: str | Path) -> str:
    """A string of SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def _duckdb() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    return connection


def _settle(beside: Path, target: Path) -> None:
    """Moves a file to its place, for ever."""
    _sync(beside)
    os.replace(beside, target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
