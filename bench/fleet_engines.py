#!/usr/bin/env python3
"""The same numbers by other engines over a dataset's Parquet: DuckDB, and ClickHouse (chdb) or Spark where they are.

    bench/fleet_engines.py DATASET

Each answers the queries below with its own reader; what differs from DuckDB's answer in any digit is an error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

# Counts, sums of whole numbers, extremes, and medians as order statistics: they have one answer.
QUERIES = {
    "rows and hosts": "SELECT count(*) AS a, count(DISTINCT host) AS b FROM {cases} WHERE quotable AND speed = 'full'",
    "extremes": "SELECT host, min(estimate) AS a, max(estimate) AS b FROM {cases} WHERE quotable AND speed = 'full' "
    "AND quantity = 'switch' GROUP BY host ORDER BY host",
    "middle": "SELECT host, title, estimate FROM (SELECT host, title, estimate, row_number() OVER (PARTITION BY host, title "
    "ORDER BY estimate, run) AS rank, count(*) OVER (PARTITION BY host, title) AS n FROM {cases} WHERE quotable AND "
    "speed = 'full' AND quantity = 'switch') AS ranked WHERE 2 * rank BETWEEN n AND n + 1 ORDER BY host, title",
    "by kernel": "SELECT kernel_release, count(*) AS a, sum(file_bytes) AS b FROM {machines} GROUP BY kernel_release "
    "ORDER BY kernel_release",
    "samples": "SELECT date, count(*) AS a, sum(elapsed_ns) AS b, sum(voluntary) AS c FROM {samples} GROUP BY date ORDER BY date",
}
Rows = list[tuple[Any, ...]]


def by_duckdb(folder: Path) -> Callable[[str], Rows]:
    of = {t: f"read_parquet('{folder}/parquet/{t}/*/*.parquet', hive_partitioning = true)" for t in TABLES}
    return lambda query: duckdb.sql(query.format(**of)).fetchall()


def by_clickhouse(folder: Path) -> Callable[[str], Rows]:
    from chdb import session

    one = session.Session()
    for t in TABLES:
        file = f"file('{folder}/parquet/{t}/*/*.parquet', Parquet)"
        one.query(f"CREATE VIEW default.{t} AS SELECT * FROM {file}")

    def ask(query: str) -> Rows:
        import pyarrow as pa

        with pa.ipc.open_stream(one.query(query.format(**{t: f"default.{t}" for t in TABLES}), "ArrowStream").bytes()) as found:
            return [tuple(row.values()) for row in found.read_all().to_pylist()]

    return ask


def by_spark(folder: Path) -> Callable[[str], Rows]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    for t in TABLES:
        spark.read.parquet(f"{folder}/parquet/{t}").createOrReplaceTempView(t)
    return lambda query: [tuple(row) for row in spark.sql(query.format(**{t: t for t in TABLES})).collect()]


TABLES = ("samples", "cases", "machines")
ENGINES = {"ClickHouse": by_clickhouse, "Spark": by_spark}


def plain(rows: Rows) -> Rows:
    return [tuple(value.decode() if isinstance(value, bytes) else value for value in row) for row in rows]


def main(folder: Path) -> None:
    ask, differ = by_duckdb(folder), 0
    expected = {name: ask(query) for name, query in QUERIES.items()}
    for engine, opened in ENGINES.items():
        try:
            ask = opened(folder)
        except ImportError as error:
            print(f"{engine}: not here ({error})")
            continue
        for name, query in QUERIES.items():
            begun = time.monotonic()
            found = plain(ask(query))
            same = found == expected[name]
            differ += not same
            verdict = "equal to the digit" if same else f"DIFFERS: {found[:2]}, DuckDB {expected[name][:2]}"
            print(f"{engine}, {name}: {len(found)} rows, {verdict} ({time.monotonic() - begun:.1f} s)", flush=True)
    sys.exit(differ > 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
