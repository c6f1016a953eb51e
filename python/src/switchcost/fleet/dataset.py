"""A dataset: run files as the program wrote them, and the same as Parquet (docs/fleet.md, "Dataset").

A run file comes from a machine that may lie: names are checked before they become paths, sizes are limited, and
what the program cannot read is set aside by name.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from itertools import islice
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from .._program import printable
from ..tables import parse_time
from .columns import BELOW_FULL_SPEED, QUOTABLE_CASES, SCHEMAS, described, with_others
from .rows import RUN, Rows, first_line, header_of, names_of, rows_of_all
from .submission import HOST, FleetError, Unreadable, submissions, written

# A longer run file is set aside.
MAX_BYTES, MAX_ROWS = 256 << 20, 1_000_000
# Run files that are read before their rows are written: more would need more memory.
AT_ONCE = 500
# Of these so many go to one process of the program.
IN_ONE = 25
# Twice the CPUs: half of the threads wait for the disk.
THREADS = 2 * (os.cpu_count() or 1)

# Columns of `machines` that had another name or kind in Parquet files of older versions, and these.
OLDER = """* REPLACE (
    coalesce(build_version, nullif(split_part(program, ' ', 1), 'None')) AS build_version,
    coalesce(build_commit, nullif(split_part(program, ' ', 2), 'None')) AS build_commit,
    coalesce(build_target, nullif(split_part(program, ' ', 3), 'None')) AS build_target,
    coalesce(end_reason, ended) AS end_reason, coalesce(kernel_release, kernel) AS kernel_release,
    coalesce(kernel_command_line, command_line) AS kernel_command_line, coalesce(smt_control, smt) AS smt_control,
    coalesce(cpus_online, CAST(cpus AS BIGINT)) AS cpus_online, CAST(boost AS BOOLEAN) AS boost,
    coalesce(frequency_governor, governor) AS frequency_governor,
    coalesce(thp_enabled, transparent_huge_pages) AS thp_enabled)"""
OLD = ["program", "ended", "kernel", "command_line", "cpus", "smt", "governor", "transparent_huge_pages"]

# A figure that can be compared: of a run that went to its end, found at full speed with nobody else on the CPU (or of a
# kind where speed is not judged), with an interval of at most half of itself. Of placements only the relation counts:
# the CPUs' numbers differ from host to host. A trace is of what ran there, and says nothing of the host.
# Cases are alike by their title. Where it has several keys, a setting tells its cases apart if it differs between keys
# of one run, or has several values. One that only some versions of the program write does not. The CPU and the number
# of the case do only where cases of one run differ in nothing else.
# It is brought to the median clock of like figures by its own elasticity, else by theirs, else by the middle between
# 0 and 1. `open` is what that leaves open, as the half-width of 95 %, with the sign of the clock's deviation.
FIGURES = f"""
CREATE MACRO in_future(started) AS started > now() + INTERVAL 1 DAY;
CREATE MACRO relation_of(placement) AS CASE
    WHEN regexp_matches(placement, '^[0-9]') THEN 'pinned' ELSE split_part(placement, ':', 1) END;
CREATE VIEW measured AS
    SELECT host, run, cases.date, cases.experiment, cpu_model, estimate, low, high, key,
           cases.experiment || ': ' ||
           concat_ws(', ', regexp_replace(title, ' on [a-z-]+:[0-9,-]+', ''), nullif(kind, 'process'),
                     nullif(quantity, 'switch'), nullif(policy, 'other'),
                     nullif(relation_of(placement), 'same')) AS title,
           CASE WHEN cases.clock_ghz BETWEEN 0.01 AND 100 THEN cases.clock_ghz END AS clock_ghz,
           CASE WHEN elasticity_error BETWEEN 0 AND 0.1 AND abs(elasticity) <= 5 THEN elasticity END AS own,
           elasticity_error
    FROM cases JOIN machines USING (host, run)
    WHERE NOT in_future(machines.started) AND coalesce(end_reason, '') NOT IN ('interrupted', 'failed', 'killed')
      AND estimate > 0 AND coalesce(speed, '') NOT IN {BELOW_FULL_SPEED} AND cases.experiment IS DISTINCT FROM 'trace'
      AND coalesce(high - low <= estimate / 2, true);
CREATE VIEW case_settings AS
WITH keys AS (
    SELECT title, key FROM measured WHERE key IS NOT NULL GROUP BY ALL
), several AS (
    FROM keys SEMI JOIN (SELECT title FROM keys GROUP BY title HAVING count(*) > 1) USING (title)
), settings AS (
    SELECT title, key, setting, split_part(setting, '=', 1) AS name
    FROM (SELECT title, key, unnest(string_split(key, ' ')) AS setting FROM several)
), in_one_run AS (
    SELECT DISTINCT title, keys FROM (
        SELECT title, list_sort(list(DISTINCT key)) AS keys
        FROM measured SEMI JOIN several USING (title) WHERE key IS NOT NULL GROUP BY title, host, run
    ) WHERE len(keys) > 1
), keys_in_one_run AS (
    SELECT title, keys, unnest(keys) AS key FROM in_one_run
), distinctive AS (
    SELECT title, name FROM keys_in_one_run JOIN settings USING (title, key)
    GROUP BY title, keys, name, setting HAVING count(*) < len(keys)
    UNION SELECT title, name FROM settings GROUP BY title, name HAVING count(DISTINCT setting) > 1
), least AS (
    SELECT title, keys, count(*) AS count, count(DISTINCT regexp_replace(key, ' case=[^ ]*', '')) AS without_number,
           count(DISTINCT regexp_replace(key, ' (case|CPU|placement)=[^ ]*', '', 'g')) AS without_cpus
    FROM keys_in_one_run GROUP BY title, keys
), told AS (
    FROM distinctive WHERE name NOT IN ('case', 'CPU', 'placement')
    UNION FROM distinctive SEMI JOIN (FROM least WHERE without_number > without_cpus) USING (title)
          WHERE name IN ('CPU', 'placement')
    UNION FROM distinctive SEMI JOIN (FROM least WHERE count > without_number) USING (title) WHERE name = 'case'
)
SELECT title, key, string_agg(setting, ' ' ORDER BY setting) AS own_settings
FROM settings SEMI JOIN told USING (title, name) GROUP BY title, key;
CREATE VIEW figures AS
WITH labelled AS (
    SELECT measured.*, concat_ws(', ', measured.title, own_settings) AS label
    FROM measured LEFT JOIN case_settings USING (title, key)
), alike AS (
    SELECT label, cpu_model, median(clock_ghz) AS clock, median(own) AS usual FROM labelled GROUP BY ALL
), clocks AS (
    SELECT labelled.*, ln(clock_ghz / clock) AS apart, usual
    FROM labelled JOIN alike
        ON labelled.label = alike.label AND labelled.cpu_model IS NOT DISTINCT FROM alike.cpu_model
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
class IncomingFile:
    """A run file that is to be moved into the dataset."""

    path: Path
    #: The host that sent it, which goes before what the file says of itself.
    host: str | None = None
    #: What people know it by, if not by its path: the file that it is a part of.
    source: str | None = None

    def name(self) -> str:
        return self.source or str(self.path)


@dataclass(frozen=True)
class Kept:
    host: str
    run: str
    #: It was not in the dataset before.
    is_new: bool


@dataclass(frozen=True)
class SetAside:
    #: Its name in the dataset's folder set-aside/.
    name: str
    #: What it was called where it came from.
    source: str
    reason: str


class Dataset:
    """The folder of a dataset. Any number of programs may read it; `add_all` and `compact` wait for each other."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.runs, self.parquet = self.path / "runs", self.path / "parquet"
        if re.search(r"[*?\[\]{}]", str(self.path)):
            why = "the path of a dataset cannot have any of *?[]{} in it (DuckDB's patterns)"
            raise FleetError(f"{self.path}: {why}")

    def add_all(self, files: list[IncomingFile]) -> list[Kept | SetAside]:
        """Move run files in. Nobody else may write to them.

        A run is known by host and run id. A file that was resumed since takes the place
        of the shorter one. Raises FleetError where the dataset cannot be written.
        """
        with self._at_work("cannot take files") as work, ThreadPoolExecutor(THREADS) as pool:
            left, results = iter(files), list[Kept | SetAside]()
            while part := list(islice(left, AT_ONCE)):
                results += self._add(part, work, pool)
            return results

    def _add(self, files: list[IncomingFile], work: Path, pool: ThreadPoolExecutor) -> Iterator[Kept | SetAside]:
        new: dict[tuple[str, str], Rows] = {}
        moves = [(file, work / f"{number}.jsonl") for number, file in enumerate(files)]
        parts = [moves[first : first + IN_ONE] for first in range(0, len(moves), IN_ONE)]
        read = (one for reading in [pool.submit(self._read, part) for part in parts] for one in reading.result())
        for (file, to), one in zip(moves, read, strict=True):
            try:
                if isinstance(one, Unreadable):
                    raise one
                yield self._keep(to, one, new, work)
            except Unreadable as error:
                yield self._set_aside(file, to, str(error))
        if new:
            list(pool.map(_sync, [self.runs, *{self.runs / host for host, _ in new}]))
            self._write_new(list(new.values()), work)

    def _read(self, moves: list[tuple[IncomingFile, Path]]) -> list[Rows | Kept | Unreadable]:
        """Moves files, which are on the disk when this returns, and reads those that are new."""
        found: dict[Path, Rows | Kept | Unreadable] = {}
        new: list[tuple[str, str, Path]] = []
        for file, to in moves:
            try:
                known = self._take(file, to)
            except Unreadable as error:
                found[to] = error
                continue
            if isinstance(known, tuple):
                new.append((*known, to))
            else:
                found[to] = known
        found |= zip((to for _, _, to in new), rows_of_all(new), strict=True)
        return [found[to] for _, to in moves]

    def _take(self, file: IncomingFile, to: Path) -> tuple[str, str] | Kept:
        """Moves a file and looks at its beginning: host and run, if the dataset has not as much of it."""
        shutil.move(file.path, to)
        _sync(to)
        if to.stat().st_size > MAX_BYTES:
            raise Unreadable(f"longer than {MAX_BYTES} bytes")
        with open(to, "rb") as source:
            if sum(block.count(b"\n") for block in iter(lambda: source.read(1 << 20), b"")) > MAX_ROWS:
                raise Unreadable(f"more than {MAX_ROWS} lines")
        host, run = names_of(file.host, header_of(to))
        return self._there(to, host, run) or (host, run)

    def _there(self, file: Path, host: str, run: str) -> Kept | None:
        """The run, if the dataset has as much of it; raises Unreadable where it has another one with its id."""
        target = self._file(host, run)
        if not target.exists():
            return None
        if first_line(target) != first_line(file):
            raise Unreadable(f"another run with the id {run} of host {host} is in the dataset")
        return Kept(host, run, False) if target.stat().st_size >= file.stat().st_size else None

    def _keep(self, file: Path, read: Rows | Kept, new: dict[tuple[str, str], Rows], work: Path) -> Kept:
        if not isinstance(read, Kept):
            read = self._there(file, read.host, read.run) or read
        if isinstance(read, Kept):
            file.unlink()
            return read
        target = self._file(read.host, read.run)
        if target.exists():
            # Its shorter rows must be where these can take their place.
            self._merge(work)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, target)
        new[read.host, read.run] = read
        return Kept(read.host, read.run, True)

    def _file(self, host: str, run: str) -> Path:
        return self.runs / host / f"{run}.jsonl"

    def compact(self) -> tuple[int, list[SetAside]]:
        """Write what is new among the run files to Parquet, a whole day at a time; gives the number of runs.

        A day's file is written beside, handed to the disk and renamed: a reader has the old file or the new
        one. `machines` is last, and says which runs are in: after a crash the next call does the rest.
        """
        failed = "cannot be compacted; what was there before is kept"
        with self._at_work(failed) as work, ThreadPoolExecutor(THREADS) as pool:
            runs, aside = self._merge(work), []
            # What `add_all` could not finish.
            left = iter(self._left())
            while part := list(islice(left, AT_ONCE)):
                new = []
                named = [(path.parent.name, path.stem, path) for path in part]
                parts = [named[first : first + IN_ONE] for first in range(0, len(named), IN_ONE)]
                read = (one for rows in pool.map(rows_of_all, parts) for one in rows)
                for path, one in zip(part, read, strict=True):
                    try:
                        if isinstance(one, Unreadable):
                            raise one
                        new.append(one)
                    except Unreadable as error:
                        aside.append(self._set_aside(IncomingFile(path, path.parent.name), path, str(error)))
                self._write_new(new, work)
            runs += self._merge(work)
            self._describe()
            return runs, aside

    def _left(self) -> list[Path]:
        """Run files that are not in Parquet, or not with this length."""
        with self.connect() as connection:
            rows = connection.execute("SELECT host, run, file_bytes FROM machines").fetchall()
        known = {(host, run): size for host, run, size in rows}
        return [
            path
            for path in sorted(self.runs.glob("*/*.jsonl"))
            if HOST.fullmatch(path.parent.name) and RUN.fullmatch(path.stem)
            if path.is_file() and not path.is_symlink()
            if known.get((path.parent.name, path.stem)) != path.stat().st_size
        ]

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection in memory with the views `samples`, `cases` and `machines`, with `date` in each.

        `quotable_cases` has the cases that may be quoted, `figures` those that can be compared between hosts, by
        `label` and at one clock; runs that start later than a day from now (`in_future`) are not in `figures`.
        """
        connection = _duckdb()
        for table in SCHEMAS:
            files = sorted((self.parquet / table).glob("date=*/*.parquet"))
            connection.execute(f"CREATE VIEW {table} AS {_rows_in(connection, table, files, True)}")
        connection.execute(QUOTABLE_CASES)
        connection.execute(FIGURES)
        return connection

    def _describe(self) -> None:
        """Writes what the columns are, and the views for DuckDB's own shell, beside the files."""
        tables = [table for table in SCHEMAS if any((self.parquet / table).glob("date=*/*.parquet"))]
        if "cases" not in tables:
            return
        lines = ["-- duckdb -init FILE; the folder may have moved since: docs/fleet.md"]
        for table in tables:
            files = quoted(self.parquet / table / "*/*.parquet")
            options = "hive_partitioning = true, union_by_name = true"
            lines.append(f"CREATE VIEW {table} AS FROM read_parquet({files}, {options});")
        for name, text in (("schema.json", described()), ("views.sql", "\n".join([*lines, QUOTABLE_CASES, ""]))):
            file = self.parquet / name
            if not file.exists() or file.read_text() != text:
                written(file, text)

    def before(self, day: date, samples_only: bool) -> list[Path]:
        """The files of runs before a day: of Parquet, and the run files unless `samples_only`."""
        tables = ["samples"] if samples_only else list(SCHEMAS)
        folders = [folder for table in tables for folder in (self.parquet / table).glob("date=*")]
        files = [folder / "data.parquet" for folder in folders if folder.name.removeprefix("date=") < day.isoformat()]
        if not samples_only:
            with self.connect() as connection:
                runs = connection.execute("SELECT host, run FROM machines WHERE date < ?", [day]).fetchall()
            files += [self._file(host, run) for host, run in runs]
        return [file for file in files if file.exists()]

    def remove(self, files: list[Path]) -> None:
        """Run files go first: what is left of a removal that was interrupted is found by its rows again."""
        with self._at_work("cannot be pruned"):
            for file in sorted(files, key=lambda file: file.suffix == ".parquet"):
                file.unlink(missing_ok=True)
            for folder in {file.parent for file in files}:
                if not any(folder.iterdir()):
                    folder.rmdir()

    def last_runs(self) -> dict[str, float]:
        """The start of each host's last run (Unix); one that starts later than a day from now is no run of today's."""
        with self.connect() as connection:
            last = "SELECT host, epoch(max(started)) FROM machines WHERE NOT in_future(started) GROUP BY host"
            return dict(connection.execute(last).fetchall())

    def never_answered(self) -> list[str]:
        """Hosts that were asked and of which no run began since (their clock may be a minute slow), by name."""
        asked: dict[str, float] = {}
        for submission in submissions(self.path):
            for host in submission.hosts:
                asked.setdefault(host, parse_time(submission.time).timestamp())
        last = self.last_runs()
        return sorted(host for host, time in asked.items() if last.get(host, 0.0) < time - 60)

    def write(self, table: str, day: str, rows: pa.Table) -> None:
        """Add rows of one day to Parquet as they are: for generators; runs come by `add_all` and `compact`."""
        with self._at_work("cannot be written") as work:
            self._write_part(table, day, rows, work)
            self._merge(work)

    def _write_new(self, runs: list[Rows], work: Path) -> None:
        """Rows of new runs go into files of their own below parquet/new, until they are merged."""
        for day in {rows.day for rows in runs}:
            for table in SCHEMAS:
                tables = [rows.tables[table] for rows in runs if rows.day == day]
                self._write_part(table, day, pa.concat_tables(tables, promote_options="default"), work)

    def _write_part(self, table: str, day: str, rows: pa.Table, work: Path) -> None:
        folder = self.parquet / "new" / table / day
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(suffix=".parquet", dir=work, delete=False) as beside:
            schema = with_others(table, rows.column_names)
            rows = rows.select(schema.names).cast(schema)
            # In the way that is written and read fastest: it is soon merged.
            texts = [field.name for field in rows.schema if field.type == pa.string()]
            pq.write_table(rows, beside, compression="lz4", use_dictionary=texts, write_statistics=False)
        _settle(Path(beside.name), folder / Path(beside.name).name)

    def _merge(self, work: Path) -> int:
        """Merges the rows of new runs into the days' files; returns how many runs these were."""
        new = self.parquet / "new"
        if not new.is_dir():
            return 0
        runs: int = sum(pq.read_metadata(part).num_rows for part in new.glob("machines/*/*.parquet"))
        with _duckdb() as connection:
            connection.execute(f"SET temp_directory = {quoted(work / 'spill')}")
            connection.execute("SET preserve_insertion_order = false")
            for day in sorted({folder.name for folder in new.glob("*/*")}):
                for table in SCHEMAS:
                    if parts := sorted((new / table / day).glob("*.parquet")):
                        self._merge_day(connection, table, day, parts, work / "merged")
        shutil.rmtree(new)
        self._describe()
        return runs

    def _merge_day(
        self, connection: duckdb.DuckDBPyConnection, table: str, day: str, parts: list[Path], beside: Path
    ) -> None:
        target = self.parquet / table / f"date={day}" / "data.parquet"
        rows = _rows_in(connection, table, parts)
        if target.exists():
            old = _rows_in(connection, table, [target])
            new = f"SELECT (host, run) FROM read_parquet({quoted(parts[0].parent / '*.parquet')})"
            rows += f" UNION ALL BY NAME FROM ({old}) o WHERE (o.host, o.run) NOT IN ({new})"
        # Not sorted: that would take as long again, and make no file smaller. A part has its hosts together as it is.
        how = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1"
        connection.execute(f"COPY ({rows}) TO {quoted(beside)} ({how})")
        target.parent.mkdir(parents=True, exist_ok=True)
        _settle(beside, target)

    def _set_aside(self, file: IncomingFile, now: Path, reason: str) -> SetAside:
        """Keep a file that is refused, which is at `now`, by name, with the reason beside it; of one that is longer
        than any run the start."""
        with open(now, "rb") as source:
            start = source.read(1 << 20)
        is_cut = now.stat().st_size > MAX_BYTES
        known = file.host if file.host and HOST.fullmatch(file.host) else "unknown"
        name = re.sub(r"[^A-Za-z0-9._+-]", "_", Path(file.name()).name)[:100].lstrip(".") or "file"
        name = f"{known[:80]}-{hashlib.sha256(start).hexdigest()[:8]}-{name}"
        folder = self.path / "set-aside"
        folder.mkdir(parents=True, exist_ok=True)
        if is_cut:
            (folder / name).write_bytes(start)
            now.unlink()
        else:
            shutil.move(now, folder / name)
        reason = printable(reason, 300)
        cut = f"; only its first {len(start)} bytes are kept" if is_cut else ""
        (folder / f"{name}.reason").write_text(f"{printable(file.name())}: {reason}{cut}\n")
        return SetAside(name, file.name(), reason)

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


def _rows_in(connection: duckdb.DuckDBPyConnection, table: str, files: list[Path], dated: bool = False) -> str:
    """A query for the rows of Parquet files in today's columns, of which older files lack some and name some otherwise.

    Columns that only a newer version knows follow. `dated`: with the date of the folders' names.
    """
    folder = [pa.field("date", pa.date32())] if dated else []
    fields, older = [*SCHEMAS[table], *folder], OLD if table == "machines" else []
    connection.register(f"no_{table}", pa.schema([*fields, *((name, pa.string()) for name in older)]).empty_table())
    rows = f"FROM no_{table}"
    if files:
        of = f"[{', '.join(map(quoted, files))}], hive_partitioning = {dated}, union_by_name = true"
        rows += f" UNION ALL BY NAME FROM read_parquet({of})"
    names = ", ".join(f'"{field.name}"' for field in fields)
    known = ", ".join(f'"{name}"' for name in [*(field.name for field in fields), *older])
    return f"SELECT {names}, * EXCLUDE ({known}) FROM (SELECT {OLDER if older else '*'} FROM ({rows}))"


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
