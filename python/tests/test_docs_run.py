"""What docs/python.md tells to type, and the queries of docs/fleet.md; its commands are in test_docs_fleet.py."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("duckdb")
import duckdb
import matplotlib
import polars as pl
import pyarrow as pa
from skips import skip
from test_data_analyse import fill

import switchcost
from switchcost.fleet.dataset import Dataset
from switchcost.fleet.rows import SCHEMAS

matplotlib.use("Agg")
DOCS = Path(__file__).parents[2] / "docs"
if not DOCS.is_dir():
    skip("hardware:docs", "docs/ is not beside the tests", whole_module=True)


def blocks(page: str) -> list[list[str]]:
    """The lines of each indented block."""
    found = re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", (DOCS / page).read_text(), re.M)
    return [[line[4:] for line in block.splitlines() if line.strip()] for block in found]


def block_with(page: str, word: str) -> list[str]:
    (found,) = [block for block in blocks(page) if any(word in line for line in block)]
    return found


@pytest.fixture
def queried(dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """A dataset with figures that no query may count: contended, of other quantities, and not quotable."""
    fill(dataset, 3, 2, figure={"quotable": True, "title": "ring of 2"})
    bad: list[dict[str, object]] = [
        {"speed": "contended"},
        {"quantity": "hop"},
        {"quotable": False},
        {"quotable": None},
    ]
    rows = []
    for case, one in enumerate(bad):
        key = {"host": "n000", "run": "bad", "experiment": "ring", "case": case, "title": "ring of 2", "unit": "ns"}
        rows.append({**key, "quantity": "switch", "speed": "full", "quotable": True, "estimate": -894.0, **one})
    dataset.write("cases", "2026-11-09", pa.Table.from_pylist(rows, schema=SCHEMAS["cases"]))
    monkeypatch.chdir(tmp_path)
    return dataset


def expected(dataset: Dataset) -> dict[str, float]:
    with dataset.connect() as connection:
        query = "SELECT host, median(estimate) FROM cases WHERE estimate > 0 GROUP BY host"
        return dict(connection.execute(query).fetchall())


def test_the_queries_give_no_figure_that_may_not_be_quoted(queried: Dataset) -> None:
    by_duckdb, by_polars, by_spark = block_with("fleet.md", "duckdb -c")
    query = shlex.split(by_duckdb)[2]
    with duckdb.connect() as connection:
        assert dict(connection.execute(query).fetchall()) == pytest.approx(expected(queried))
    frame = eval(by_polars, {"pl": pl}).filter(pl.col("quantity") == "switch").collect()
    found = dict(frame.group_by("host").agg(pl.col("estimate").median()).iter_rows())
    assert found == pytest.approx(expected(queried))
    assert re.search(r"quotable AND speed = 'full'", by_spark)


def test_every_query_of_the_pages_asks_what_may_be_quoted() -> None:
    for page in ("fleet.md", "python.md"):
        for line in (DOCS / page).read_text().splitlines():
            if re.search(r"parquet/cases|FROM cases", line) and "estimate" in line and line.startswith("    "):
                assert "quotable" in line and "full" in line, line


def test_the_first_example_of_python_runs_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    example = block_with("python.md", "import switchcost")
    names: dict[str, object] = {}
    exec("\n".join(example), names)
    runs = names["runs"]
    assert isinstance(runs, switchcost.Runs) and runs.answer
    extras = re.search(r"switchcost\[([a-z,]+)\]", (DOCS / "python.md").read_text())
    assert extras
    used = {"pandas": "to_pandas", "polars": "to_polars", "arrow": "to_arrow", "plot": "plot("}
    assert {extra for extra, call in used.items() if call in "\n".join(example)} <= set(extras[1].split(","))
