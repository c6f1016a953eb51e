"""The dataset: idempotent, atomic, and not harmed by what a node may send."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb")
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from skips import skip

from switchcost import _program
from switchcost.fleet import dataset as module
from switchcost.fleet.columns import SCHEMAS
from switchcost.fleet.dataset import Dataset, IncomingFile, SetAside
from switchcost.fleet.rows import exports, rows_of_all
from switchcost.fleet.submission import FleetError, Submission, Unreadable
from switchcost.tables import of_csv

ROOT = Path(__file__).parents[2]
RING = ROOT / "crates/rundata/tests/fixtures/run-v1.jsonl"
TRIALS = ROOT / "crates/rundata/tests/fixtures/trials-v1.jsonl"
RUN = "20261121T222105Z-ring-26550"

try:
    _program.find()
except FileNotFoundError as error:
    skip("program:switchcost", str(error), whole_module=True)


def changed(path: Path, **header: object) -> Path:
    """The ring's run file with these fields in its header."""
    first, rest = RING.read_text().split("\n", 1)
    value = json.loads(first)
    value["header"].update(header)
    path.write_text(json.dumps(value) + "\n" + rest)
    return path


def add(dataset: Dataset, *files: Path, host: str | None = "n1") -> list[str]:
    """Gives these files to the dataset; what it says: "new", "there", or why a file was set aside."""
    with tempfile.TemporaryDirectory() as folder:
        copies = [Path(folder, f"{number}-{file.name}") for number, file in enumerate(files)]
        for file, copy in zip(files, copies, strict=True):
            shutil.copy(file, copy)
        results = dataset.add_all([IncomingFile(copy, host) for copy in copies])
    return [one.reason if isinstance(one, SetAside) else ["there", "new"][one.is_new] for one in results]


def rows(dataset: Dataset, table: str) -> int:
    with dataset.connect() as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


def test_a_run_collected_twice_is_one(dataset: Dataset) -> None:
    assert add(dataset, RING, RING, TRIALS) == ["new", "there", "new"]
    assert add(dataset, RING, host="n2") == ["new"]
    assert dataset.compact() == (3, [])
    before = {f: f.read_bytes() for f in dataset.path.rglob("*.parquet")}
    assert add(dataset, RING, host="n2") == ["there"]
    assert dataset.compact() == (0, [])
    assert before == {f: f.read_bytes() for f in dataset.path.rglob("*.parquet")}
    assert rows(dataset, "machines") == 3
    assert (dataset.path / f"runs/n1/{RUN}.jsonl").read_bytes() == RING.read_bytes()


def test_estimates_are_those_of_the_program(dataset: Dataset) -> None:
    add(dataset, RING)
    dataset.compact()
    (told,) = exports([RING])
    assert isinstance(told, dict)
    summary = of_csv(told["summary"])
    with dataset.connect() as connection:
        found = connection.execute('SELECT title, quantity, estimate, low, high FROM cases ORDER BY "case"').fetchall()
        assert found
        assert found == list(
            zip(*(summary[name] for name in ("title", "quantity", "estimate", "low", "high")), strict=True)
        )
        kinds = connection.execute("SELECT DISTINCT elapsed_ns > 0, hops > 0 FROM samples").fetchall()
    assert kinds == [(True, True)]


def test_files_read_together_have_the_rows_of_each_alone(tmp_path: Path) -> None:
    odd = tmp_path / "odd.jsonl"
    odd.write_text(RING.read_text().replace('"link":"pipe"', '"link":"a,\\"b"'))
    too_large = tmp_path / "large.jsonl"
    too_large.write_text(re.sub(r'"hops":\d+', f'"hops":{2**63}', RING.read_text()))
    shorter = tmp_path / "shorter.jsonl"
    lines = RING.read_text().splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if line.startswith('{"sample"'))
    shorter.write_text("".join(lines[:first] + lines[first + 1 :]))
    for files in ([RING, TRIALS, shorter, TRIALS, RING], [RING, odd, shorter, TRIALS], [RING, too_large, shorter]):
        named = [("n1", f"r{number}", file) for number, file in enumerate(files)]
        together, alone = rows_of_all(named), [rows_of_all([one])[0] for one in named]
        assert [str(one) if isinstance(one, Unreadable) else one for one in together] == [
            str(one) if isinstance(one, Unreadable) else one for one in alone
        ]
        assert [isinstance(one, Unreadable) for one in together] == [file == too_large for file in files]


def test_what_is_broken_is_set_aside_and_the_rest_goes_on(dataset: Dataset, tmp_path: Path) -> None:
    files = tmp_path / "in"
    files.mkdir()
    (files / "garbage.jsonl").write_bytes(b"\x1b]0;owned\x07 \xff\xfe not a run\n")
    (files / "empty.jsonl").touch()
    (files / "deep.jsonl").write_text("[" * 100_000)
    (files / "cut.jsonl").write_text(RING.read_text().replace('"sample":{"case":0', '"sample":{"case":"x"'))
    changed(files / "newer.jsonl", host="n1", schema=99)
    changed(files / "path.jsonl", host="n1", run="../../../tmp/x")
    changed(files / "host.jsonl", host="../../x")
    changed(files / "escape.jsonl", host="n\x1b[31m1")
    changed(files / "late.jsonl", run="late", host="n1", started="9999-12-31T23:59:59Z")
    changed(files / "early.jsonl", run="early", host="n1", started="2099-11-21T22:21:05Z")
    changed(files / "x\x1b[2Jx.jsonl", host="<script>alert(1)</script>")
    sent = sorted(files.iterdir())
    reasons = dict(zip([file.name for file in sent], add(dataset, *sent, host=None), strict=True))
    assert not {"new", "there"} & set(reasons.values())
    kept = {file.name for file in (dataset.path / "set-aside").iterdir()}
    assert kept == {name + end for name in kept for end in ("", ".reason") if not name.endswith(".reason")}
    assert len(kept) == 2 * len(sent)
    assert all(f.read_text().rstrip("\n").isprintable() for f in (dataset.path / "set-aside").glob("*.reason"))
    assert reasons["late.jsonl"] == "its start is in the year 9999"
    assert reasons["early.jsonl"] == "its start is 2099-11-21, more than a day from now: set the host's clock"
    assert "schema" in reasons["newer.jsonl"]
    assert "not a run id" in reasons["path.jsonl"] and "not a host name" in reasons["host.jsonl"]
    add(dataset, RING)
    (dataset.path / "runs/n1/late.jsonl").write_bytes((files / "late.jsonl").read_bytes())
    runs, set_aside = dataset.compact()
    assert runs == 1 and [one.reason for one in set_aside] == ["its start is in the year 9999"]
    assert rows(dataset, "machines") == 1
    shown = "".join(f.name for f in dataset.path.rglob("*")) + "".join(reasons.values())
    assert shown.isprintable()
    assert {p.name for p in tmp_path.iterdir()} == {"fleet", "in"}


def test_a_run_that_is_refused_is_kept_whole(dataset: Dataset, tmp_path: Path) -> None:
    early = tmp_path / "early.jsonl"
    changed(early, run="early", host="n1", started="2099-11-21T22:21:05Z")
    with open(early, "ab") as file:
        file.write(b" " * (2 << 20) + b"\n")
    whole = early.read_bytes()
    (reason,) = add(dataset, early)
    assert "more than a day from now" in reason
    (kept,) = (file for file in (dataset.path / "set-aside").iterdir() if file.suffix != ".reason")
    assert kept.read_bytes() == whole


def test_of_a_file_that_is_too_long_the_start_is_kept(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = tmp_path / "big.jsonl"
    with open(big, "wb") as file:
        file.truncate(3 << 20)
    monkeypatch.setattr(module, "MAX_BYTES", 20_000)
    monkeypatch.setattr(module, "MAX_ROWS", 3)
    assert add(dataset, big, RING) == ["longer than 20000 bytes", "more than 3 lines"]
    assert max(f.stat().st_size for f in dataset.path.glob("set-aside/*")) == 1 << 20


def test_many_files_at_once_are_as_one_after_the_other(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 4)
    lines = RING.read_text().splitlines(keepends=True)
    start, broken, other = tmp_path / "start.jsonl", tmp_path / "broken.jsonl", tmp_path / "other.jsonl"
    start.write_text("".join(lines[:-6]))
    broken.touch()
    changed(other, name="another")
    new, longer, shorter, *aside, same = add(dataset, start, RING, start, other, broken, RING)
    assert [new, longer, shorter, same] == ["new", "new", "there", "there"] and not {"new", "there"} & {*aside}
    # The longer file came in a batch of its own here: the rows of the shorter one were there by then.
    assert add(dataset, start, TRIALS, TRIALS, TRIALS, RING, host="n2")[-1] == "new"
    assert dataset.compact()[1] == []
    with dataset.connect() as connection:
        counts = connection.execute("SELECT host, run, count(*) FROM samples GROUP BY ALL ORDER BY ALL").fetchall()
    alone = Dataset(tmp_path / "alone")
    add(alone, RING)
    alone.compact()
    assert [n for host, run, n in counts if run == RUN] == [rows(alone, "samples")] * 2
    # Killed before the rows were written: the next compaction reads the file.
    monkeypatch.setattr(Dataset, "_write_new", lambda *_: None)
    add(dataset, RING, host="n3")
    monkeypatch.undo()
    assert dataset.compact() == (1, []) and rows(dataset, "machines") == 4
    assert sorted(p.name for p in dataset.path.iterdir()) == [".lock", "parquet", "runs", "set-aside"]


def test_parts_of_a_day_are_merged_and_one_part_is_the_day(dataset: Dataset) -> None:
    add(dataset, RING)
    assert dataset.compact() == (1, [])
    alone = rows(dataset, "samples")
    for host in ("n2", "n3"):
        add(dataset, RING, host=host)
    assert len(list(dataset.parquet.glob("new/samples/*/*.parquet"))) == 2
    assert dataset.compact() == (2, []) and rows(dataset, "samples") == 3 * alone
    fresh = Dataset(dataset.path.parent / "fresh")
    for host in ("n1", "n2", "n3"):
        add(fresh, RING, host=host)
    assert fresh.compact() == (3, []) and rows(fresh, "samples") == 3 * alone


def test_someone_elses_run_id_replaces_nothing(dataset: Dataset, tmp_path: Path) -> None:
    add(dataset, RING)
    other = changed(tmp_path / "other.jsonl", name="mine")
    assert add(dataset, other) == [f"another run with the id {RUN} of host n1 is in the dataset"]
    assert (dataset.path / f"runs/n1/{RUN}.jsonl").read_bytes() == RING.read_bytes()


def test_a_run_that_was_resumed_takes_the_place_of_its_start(dataset: Dataset, tmp_path: Path) -> None:
    lines = RING.read_text().splitlines(keepends=True)
    start = tmp_path / "start.jsonl"
    start.write_text("".join(lines[:-6]))
    assert add(dataset, start) == ["new"]
    dataset.compact()
    few = rows(dataset, "samples")
    assert add(dataset, RING, start) == ["new", "there"]
    assert dataset.compact() == (1, [])
    assert rows(dataset, "samples") == few + 5 and rows(dataset, "machines") == 1


def test_compaction_that_fails_leaves_what_was_there(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    add(dataset, RING)
    dataset.compact()
    before = {t: rows(dataset, t) for t in SCHEMAS}
    add(dataset, RING, host="n2")
    settle = module._settle

    def full(beside: Path, target: Path) -> None:
        if target.name == "data.parquet" and target.parent.parent.name == "cases":
            raise OSError(28, "No space left on device")
        settle(beside, target)

    monkeypatch.setattr(module, "_settle", full)
    with pytest.raises(FleetError, match="No space left"):
        dataset.compact()
    assert {t: rows(dataset, t) for t in ("cases", "machines")} == {t: before[t] for t in ("cases", "machines")}
    monkeypatch.undo()
    (dataset.path / ".work-left").mkdir()
    assert dataset.compact() == (1, [])
    assert {t: rows(dataset, t) for t in SCHEMAS} == {t: 2 * n for t, n in before.items()}
    assert not list(dataset.path.glob(".work-*"))


def test_columns_of_older_versions_have_todays_names(dataset: Dataset) -> None:
    """Alone, beside files of this version, and merged with them."""
    start = datetime(2026, 11, 21, tzinfo=timezone.utc)
    old = {"host": "old", "run": "r", "started": start, "program": "0.1.0 543983 None", "ended": "precise"}
    old |= {"kernel": "5.10", "command_line": "quiet", "cpus": 4, "smt": "on", "governor": "performance"}
    old |= {"boost": "true", "transparent_huge_pages": "never", "microcode": "0x1"}
    columns = """build_version, build_commit, build_target, end_reason, kernel_release, kernel_command_line,
        cpus_online, smt_control, frequency_governor, boost, thp_enabled, microcode"""
    today = ("0.1.0", "543983", None, "precise", "5.10", "quiet", 4, "on", "performance", True, "never", "0x1")

    def found() -> tuple[object, ...]:
        with dataset.connect() as connection:
            return tuple(connection.execute(f"SELECT {columns} FROM machines WHERE host = 'old'").fetchall()[0])

    file = dataset.parquet / "machines/date=2026-11-21/data.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([old]), file)
    assert found() == today
    add(dataset, TRIALS)
    dataset.compact()
    assert rows(dataset, "machines") == 2 and found() == today
    add(dataset, RING)
    dataset.compact()
    assert rows(dataset, "machines") == 3 and found() == today
    assert pq.read_schema(file).names == SCHEMAS["machines"].names
    # An older version was killed before it merged them.
    left = dataset.parquet / "new/machines/2026-11-22/part.parquet"
    left.parent.mkdir(parents=True)
    file.unlink()
    pq.write_table(pa.Table.from_pylist([old]), left)
    dataset.compact()
    assert found() == today


def test_who_never_answered(dataset: Dataset) -> None:
    add(dataset, RING)
    dataset.compact()
    asked = Submission.new(dataset.path, "slurm", ["measure"], "switchcost")
    asked.make_folder()
    asked.hosts, asked.time = ["n1", "n2"], "2026-11-21T22:00:00Z"
    asked.save()
    assert dataset.never_answered() == ["n2"]
    asked.time = "2026-11-22T00:00:00Z"
    asked.save()
    assert dataset.never_answered() == ["n1", "n2"]
    record = asked.folder.with_suffix(".json")
    record.write_text("{")
    with pytest.raises(FleetError, match=re.escape(str(record))):
        dataset.never_answered()


def test_a_folder_that_cannot_be_a_dataset(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="DuckDB"):
        Dataset(tmp_path / "a*")
    (tmp_path / "file").touch()
    with pytest.raises(FleetError, match="no folder"):
        add(Dataset(tmp_path / "file"), RING)


def test_the_same_files_by_others(dataset: Dataset) -> None:
    pa = pytest.importorskip("pyarrow.dataset")
    polars = pytest.importorskip("polars")
    add(dataset, RING)
    add(dataset, TRIALS, host="n2")
    dataset.compact()
    for table, schema in SCHEMAS.items():
        folder = dataset.path / "parquet" / table
        arrow = pa.dataset(folder, partitioning="hive")
        frame = polars.scan_parquet(folder / "**/*.parquet", hive_partitioning=True).collect()
        assert arrow.count_rows() == len(frame) == rows(dataset, table)
        assert arrow.schema.names == frame.columns == [*schema.names, "date"]


def test_spark_reads_it(dataset: Dataset) -> None:
    sql = pytest.importorskip("pyspark.sql")
    if not shutil.which("java"):
        skip("program:java", "Spark needs it")
    add(dataset, RING)
    add(dataset, TRIALS, host="n2")
    dataset.compact()
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        for table, schema in SCHEMAS.items():
            frame = spark.read.parquet(str(dataset.path / "parquet" / table))
            assert frame.columns == [*schema.names, "date"] and frame.count() == rows(dataset, table)
        samples = spark.read.parquet(str(dataset.path / "parquet/samples"))
        (total,) = samples.selectExpr("sum(elapsed_ns)").first()
    finally:
        spark.stop()
    with dataset.connect() as connection:
        assert connection.execute("SELECT sum(elapsed_ns) FROM samples").fetchall() == [(total,)]


MEASURED = ROOT / "crates/switchcost/tests/fixtures/measure.jsonl"


def test_cases_are_told_apart_by_columns_and_a_unique_key(dataset: Dataset) -> None:
    assert add(dataset, MEASURED) == ["new"]
    dataset.compact()
    with dataset.connect() as connection:
        ((cases, keys),) = connection.execute("SELECT count(*), count(DISTINCT key) FROM cases").fetchall()
        assert cases == keys > 10
        walks = connection.execute("SELECT DISTINCT walk, huge_pages FROM cases WHERE work_bytes > 0 ORDER BY ALL")
        assert walks.fetchall() == [("chase", True), ("whole", True)]
        in_samples = connection.execute("SELECT DISTINCT walk FROM samples WHERE work_bytes > 0 ORDER BY ALL")
        assert in_samples.fetchall() == [("whole",)]
        assert connection.execute("SELECT DISTINCT load FROM cases WHERE load IS NOT NULL ORDER BY 1").fetchall() == [
            ("busy",),
            ("idle",),
        ]
        quotable = connection.execute(
            "SELECT count(*), bool_and(quotable), count(estimate) FROM quotable_cases"
        ).fetchall()
        ((count, all_quotable, estimates),) = quotable
        assert 0 < count == estimates < cases and all_quotable


def test_the_columns_are_described_beside_the_files(dataset: Dataset) -> None:
    add(dataset, MEASURED)
    dataset.compact()
    tables = json.loads((dataset.parquet / "schema.json").read_text())["tables"]
    assert {table: [*columns] for table, columns in tables.items()} == {t: s.names for t, s in SCHEMAS.items()}
    assert tables["samples"]["elapsed_ns"] == {
        "type": "int64",
        "unit": "ns",
        "meaning": "time of the timed laps, or of a trial's measurement",
    }
    unsaid = {name for columns in tables.values() for name, column in columns.items() if not column["meaning"]}
    assert unsaid <= {"idle_driver", "idle_governor"}
    with duckdb.connect() as connection, dataset.connect() as ours:
        connection.execute((dataset.parquet / "views.sql").read_text())
        for table in (*SCHEMAS, "quotable_cases"):
            query = f"SELECT count(*) FROM {table}"
            assert connection.execute(query).fetchall() == ours.execute(query).fetchall()


def test_files_of_all_kinds_of_runs_have_the_same_columns(dataset: Dataset) -> None:
    """Readers that take the columns of the first file, as polars does, read the others."""
    for number, file in enumerate(sorted((ROOT / "crates/switchcost/tests/fixtures").glob("*.jsonl"))):
        assert add(dataset, file, host=f"n{number}") == ["new"], file
    dataset.compact()
    for table, schema in SCHEMAS.items():
        for file in (dataset.parquet / table).rglob("*.parquet"):
            assert pq.read_schema(file).names == schema.names


def test_columns_that_nobody_knows_here_are_kept(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a newer program, and of a newer version of the package that wrote the files of the same day."""

    def newer(paths: list[Path]) -> list[dict[str, Any] | Unreadable]:
        told = exports(paths)
        for one in told:
            assert isinstance(one, dict)
            for table in ("summary", "samples"):
                head, *lines = one[table].splitlines()
                one[table] = "\n".join([f"{head},flavour_ns", *(f"{line},1.5" for line in lines), ""])
        return told

    add(dataset, TRIALS)
    with monkeypatch.context() as patch:
        patch.setattr("switchcost.fleet.rows.exports", newer)
        add(dataset, RING)
    dataset.compact()
    add(dataset, RING, host="n2")
    dataset.compact()
    with dataset.connect() as connection:
        for table in ("cases", "samples"):
            found = connection.execute(
                f"SELECT DISTINCT host, flavour_ns FROM {table} WHERE run = ? ORDER BY ALL", [RUN]
            )
            assert found.fetchall() == [("n1", "1.5"), ("n2", None)]


def test_the_guide_has_every_column() -> None:
    guide = "".join((ROOT / "docs" / page).read_text() for page in ("fleet.md", "python.md", "columns.md"))
    described = set(re.findall(r"`([A-Za-z0-9_-]+)`", guide))
    missing = {t: [c for c in s.names if c not in described] for t, s in SCHEMAS.items()}
    assert missing == {t: [] for t in SCHEMAS}


def test_a_run_of_the_future_is_not_a_hosts_last_and_has_no_figure(dataset: Dataset) -> None:
    """A host whose clock was wrong once would never be silent again."""
    for run, day in (("a", "2026-11-01"), ("b", "2099-01-01")):
        key = {"host": "n1", "run": run, "started": datetime.fromisoformat(f"{day}T00:00:00+00:00")}
        case = {"experiment": "ring", "case": 0, "title": "ring of 2", "estimate": 100.0, "low": 99.0, "high": 101.0}
        dataset.write("machines", day, pa.Table.from_pylist([{**key, "file_bytes": 1}], schema=SCHEMAS["machines"]))
        dataset.write("cases", day, pa.Table.from_pylist([{**key, **case}], schema=SCHEMAS["cases"]))
    assert dataset.last_runs() == {"n1": datetime(2026, 11, 1, tzinfo=timezone.utc).timestamp()}
    with dataset.connect() as connection:
        assert connection.execute("SELECT run FROM figures").fetchall() == [("a",)]


def labels_of(dataset: Dataset, *runs: list[dict[str, str]]) -> list[list[str]]:
    """Stores runs of these cases, and returns the labels of each run's figures in the order of its cases."""
    for number, cases in enumerate(runs):
        day = f"2026-11-{number + 1:02}"
        key = {"host": "n1", "run": f"r{number}", "started": datetime.fromisoformat(f"{day}T00:00:00+00:00")}
        figure = {"experiment": "ring", "title": "ring of 2", "low": 99.0, "high": 101.0}
        rows = [{**key, **figure, "case": at, "estimate": 100.0 + at, **case} for at, case in enumerate(cases)]
        dataset.write("machines", day, pa.Table.from_pylist([{**key, "file_bytes": 1}], schema=SCHEMAS["machines"]))
        dataset.write("cases", day, pa.Table.from_pylist(rows, schema=SCHEMAS["cases"]))
    with dataset.connect() as connection:
        found = connection.execute("SELECT run, label FROM figures ORDER BY run, as_measured").fetchall()
    return [[label for run, label in found if run == f"r{number}"] for number in range(len(runs))]


def test_cases_of_one_title_are_told_apart_by_their_settings(dataset: Dataset) -> None:
    """A file of before keys has the title alone."""
    keys = ["ring bytes=1 walk=random", "ring bytes=1 walk=linear huge_pages=yes", "ring bytes=1"]
    cases = [{"key": key} for key in keys]
    cases.append({})
    cases.append({"title": "ring of 4", "key": "ring members=4"})
    title = "ring: ring of 2"
    told_apart = [f"{title}, walk=random", f"{title}, huge_pages=yes walk=linear", title, title]
    assert labels_of(dataset, cases) == [[*told_apart, "ring: ring of 4"]]


def test_a_setting_that_only_a_newer_version_writes_does_not_end_a_case(dataset: Dataset) -> None:
    old, new = "ring members=2 policy=other", "ring members=2 state=none policy=other"
    both = [{"key": f"{old} load=idle"}, {"key": f"{old} load=busy"}]
    assert (
        labels_of(
            dataset,
            [{"key": old}, *({"title": "ring of 4", **case} for case in both)],
            [{"key": new}, *({"title": "ring of 4", "key": f"{case['key']} state=none"} for case in both)],
        )
        == [["ring: ring of 2", "ring: ring of 4, load=idle", "ring: ring of 4, load=busy"]] * 2
    )


def test_values_of_a_setting_are_told_apart_across_runs(dataset: Dataset) -> None:
    keys = [f"ring members=2 policy=fifo priority={priority}" for priority in (50, 99)]
    found = labels_of(dataset, *([{"key": key, "policy": "fifo"}] for key in keys))
    assert found == [[f"ring: ring of 2, fifo, priority={priority}"] for priority in (50, 99)]


def test_labels_have_cpus_only_where_cases_of_one_run_differ_in_nothing_else(dataset: Dataset) -> None:
    """CPU numbers and those of cases differ from host to host, and people compare hosts."""
    key = "ring members=2 placement={} CPU={} real-time priority={} case={}"

    def case(placement: str, cpu: int, priority: int, number: int, title: str = "ring of 2") -> dict[str, str]:
        return {"title": title, "placement": placement, "key": key.format(placement, cpu, priority, number)}

    sweep = [
        {
            "title": f"ring of 3 on shared-cache:{cpus}",
            "placement": "shared-cache",
            "key": "ring placement=shared-cache",
        }
        for cpus in ("0,1", "2,5")
    ]
    found = labels_of(
        dataset,
        [case("same", 3, 1, 0), case("same", 4, 2, 1), sweep[0], case("0,1", 0, 1, 0, "ring of 4")],
        [case("same", 5, 1, 2), case("same", 6, 2, 3), sweep[1], case("0,2", 0, 1, 1, "ring of 4")],
    )
    priorities = [f"ring: ring of 2, priority={priority}" for priority in (1, 2)]
    assert found == [[*priorities, "ring: ring of 3, shared-cache", "ring: ring of 4, pinned"]] * 2
    only_cpus = labels_of(Dataset(dataset.path.parent / "b"), [case("same", 3, 1, 0), case("same", 4, 1, 1)])
    assert only_cpus == [["ring: ring of 2, CPU=3", "ring: ring of 2, CPU=4"]]
    only_numbers = labels_of(Dataset(dataset.path.parent / "c"), [case("same", 3, 1, 0), case("same", 3, 1, 1)])
    assert only_numbers == [["ring: ring of 2, case=0", "ring: ring of 2, case=1"]]
