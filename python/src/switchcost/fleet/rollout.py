"""Before and after a rollout: the same hosts against themselves, with the answers and exit codes of `compare`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import date
from math import exp, log
from typing import Any

import duckdb
import numpy as np

from .dataset import Dataset
from .statistics import FEWEST_HOSTS, MAD_TO_SD, Floats, excess, median_errors, median_interval
from .submission import FleetError

CONFIDENCE = 0.95
LIMIT = 0.03
EXIT = {"PASS": 0, "FAIL": 1, "UNDECIDED": 3}


@dataclass
class Change:
    """A case: the median over hosts of after / before, with an interval; all intervals hold together."""

    label: str
    hosts: int
    ratio: float
    low: float
    high: float
    answer: str


@dataclass
class Rollout:
    changes: list[Change]
    hosts: int
    only_before: list[str]
    lost_cases: list[str]
    odd: list[tuple[str, float]]
    verdict: str
    limit: float

    def answer(self) -> str:
        worst = max(self.changes, key=lambda c: c.ratio)
        said = f"{self.verdict}: {self.hosts:,} hosts before and after, {len(self.changes)} cases"
        slower, undecided = ([c for c in self.changes if c.answer == a] for a in ("slower", "inconclusive"))
        said += f": {len(slower)} slower by more than {self.limit:.0%}, {len(undecided)} inconclusive"
        said += f"; at most {worst.ratio - 1:+.1%} ({worst.low - 1:+.1%} to {worst.high - 1:+.1%}) in {worst.label}"
        if self.odd:
            slow = [f"{name}: {ratio - 1:+.0%}" for name, ratio in self.odd]
            said += f"; {len(slow)} perhaps slower than the others ({', '.join(slow[:3])}{', ...' * (len(slow) > 3)})"
        if self.only_before:
            gone = self.only_before
            said += f"; {len(gone)} not measured after ({', '.join(gone[:3])}{', ...' * (len(gone) > 3)})"
        return said + "."

    def text(self) -> str:
        lines = [self.answer(), ""]
        for c in sorted(self.changes, key=lambda c: -c.ratio)[:40]:
            interval = f"({c.low - 1:+.1%} to {c.high - 1:+.1%})"
            lines.append(f"{c.ratio - 1:+7.1%}  {interval:20}  {c.answer:12}  {c.label}, {c.hosts} hosts")
        lines += [f"not measured after: {label}" for label in self.lost_cases]
        return "\n".join(lines) + "\n"


def selection(text: str) -> tuple[str, list[Any]]:
    """A condition of SQL for DATE..DATE (either may be left out) or COLUMN=VALUE; raises FleetError with code 2."""
    if ".." in text:
        try:
            first, last = (date.fromisoformat(d) if d else None for d in text.split("..", 1))
        except ValueError as error:
            raise FleetError(f"{text}: not DATE..DATE, such as 2026-11-01..2026-11-14 ({error})", 2) from error
        return "date BETWEEN ? AND ?", [first or date.min, last or date.max]
    column, separator, value = text.partition("=")
    if not separator or not column.isidentifier():
        raise FleetError(f"{text}: neither DATE..DATE nor COLUMN=VALUE", 2)
    return f'CAST("{column}" AS VARCHAR) = ?', [value]


def compare(dataset: Dataset, before: str, after: str, limit: float = LIMIT) -> Rollout:
    """Paired by host and case. Raises FleetError, with code 2 where no host was measured in both."""
    with dataset.connect() as connection:
        for name, text in (("before_runs", before), ("after_runs", after)):
            condition, values = selection(text)
            try:
                connection.execute(
                    f"CREATE TEMP TABLE {name} AS SELECT host, run FROM machines WHERE {condition}", values
                )
            except duckdb.BinderException as error:
                raise FleetError(f"{text}: no such column of `machines` (docs/fleet.md has them)", 2) from error
        for name in ("before", "after"):
            connection.execute(
                f"""CREATE TEMP TABLE {name} AS SELECT host, label, date, avg(ln(estimate)) AS y
                FROM figures JOIN {name}_runs USING (host, run) GROUP BY ALL"""
            )
        side = "SELECT host, label, median(y) AS y FROM {} GROUP BY ALL"
        rows = connection.execute(
            f"""SELECT host, label, a.y - b.y AS change, b.y IS NULL AS is_new, a.y IS NULL AS is_gone
            FROM ({side.format("before")}) b FULL JOIN ({side.format("after")}) a USING (host, label)
            ORDER BY label, host"""
        ).fetchall()
        errors = [_errors(connection, name) for name in ("before", "after")]
    both: dict[str, list[float]] = {}
    by_host: dict[str, list[float]] = {}
    old_hosts = {host for host, _, _, is_new, _ in rows if not is_new}
    old_cases = {label for _, label, _, is_new, _ in rows if not is_new}
    for host, label, change, is_new, is_gone in rows:
        if not is_new and not is_gone:
            both.setdefault(label, []).append(change)
            by_host.setdefault(host, []).append(change)
    if not both:
        raise FleetError(f"no host was measured in both {before} and {after} with a figure at full speed", 2)
    changes = [_change(label, np.array(values), len(both), limit) for label, values in both.items()]
    odd = _odd(by_host, errors, limit)
    answers = {c.answer for c in changes}
    verdict = "FAIL" if "slower" in answers else "UNDECIDED" if "inconclusive" in answers else "PASS"
    gone = sorted(old_hosts - by_host.keys())
    return Rollout(changes, len(by_host), gone, sorted(old_cases - both.keys()), odd, verdict, limit)


def _change(label: str, values: Floats, cases: int, limit: float) -> Change:
    low, high = median_interval(values, 1 - (1 - CONFIDENCE) / cases)
    answer = "slower" if low > log(1 + limit) else "not slower" if high <= log(1 + limit) else "inconclusive"
    return Change(label, len(values), exp(float(np.median(values))), exp(low), exp(high), answer)


def _errors(connection: duckdb.DuckDBPyConnection, side: str) -> dict[str, float]:
    """Each host's standard error by its scatter from day to day."""
    rows = connection.execute(
        f"""WITH levels AS (SELECT host, label, median(y) AS level FROM {side} GROUP BY ALL),
        days AS (SELECT host, date, median(y - level) AS day FROM {side} JOIN levels USING (host, label) GROUP BY ALL)
        SELECT host, {MAD_TO_SD} * mad(day), count(*) FROM days GROUP BY host"""
    ).fetchall()
    spreads, counts = (np.array([row[i] for row in rows], dtype=np.float64) for i in (1, 2))
    return dict(zip([row[0] for row in rows], median_errors(spreads, counts, np.zeros(len(rows)))))


def _odd(by_host: dict[str, list[float]], errors: list[dict[str, float]], limit: float) -> list[tuple[str, float]]:
    """Hosts that became slower than the others did, which a median over all hides. They decide nothing."""
    if len(by_host) < FEWEST_HOSTS:
        return []
    names, values = list(by_host), np.array([float(np.median(v)) for v in by_host.values()])
    seen = excess(values, np.hypot(*(np.array([side[name] for name in names]) for side in errors)))
    assert seen is not None
    found = (seen.probability * len(values) <= 1 - CONFIDENCE) & (values >= log(1 + limit))
    return sorted(((names[i], exp(values[i])) for i in np.flatnonzero(found)), key=lambda h: -h[1])


def run(dataset: Dataset, arguments: argparse.Namespace) -> int:
    found = compare(dataset, arguments.before, arguments.after, arguments.fail_above or LIMIT)
    print(found.text(), end="")
    if arguments.fail_above is None:
        return 0
    if found.lost_cases and found.verdict != "FAIL":
        raise FleetError(f"--fail-above: not measured after, though before: {'; '.join(found.lost_cases[:5])}", 2)
    return 0 if found.verdict == "UNDECIDED" and arguments.allow_undecided else EXIT[found.verdict]
