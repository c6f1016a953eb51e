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
# A clock that differs by less is not told of.
TOLD = 0.01
EXIT = {"PASS": 0, "FAIL": 1, "UNDECIDED": 3}


@dataclass
class Change:
    """A case at one clock: the median over hosts of after / before, with an interval; all intervals hold together."""

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
    clock: Change | None
    odd_clocks: list[tuple[str, float]]

    def answer(self) -> str:
        worst = max(self.changes, key=lambda c: c.ratio)
        said = f"{self.verdict}: {self.hosts:,} hosts before and after, {len(self.changes)} cases"
        slower, undecided = ([c for c in self.changes if c.answer == a] for a in ("slower", "inconclusive"))
        said += f": {len(slower)} slower by more than {self.limit:.0%}, {len(undecided)} inconclusive"
        said += f"; at most {worst.ratio - 1:+.1%} ({worst.low - 1:+.1%} to {worst.high - 1:+.1%}) in {worst.label}"
        if (c := self.clock) and abs(c.ratio - 1) >= TOLD and not c.low <= 1 <= c.high:
            said += f"; the clock was {_apart(c.ratio)} after ({c.low - 1:+.1%} to {c.high - 1:+.1%})"
            said += ": cases are compared at one clock"
        if self.odd_clocks:
            low = [f"{name}: {_apart(1 / ratio)}" for name, ratio in self.odd_clocks]
            said += f"; {len(low)} with a clock that fell against the others' ({_first(low)})"
        if self.odd:
            slow = [f"{name}: {ratio - 1:+.0%}" for name, ratio in self.odd]
            said += f"; {len(slow)} perhaps slower than the others ({_first(slow)})"
        if self.only_before:
            said += f"; {len(self.only_before)} not measured after ({_first(self.only_before)})"
        return said + "."

    def text(self) -> str:
        lines = [self.answer(), ""]
        for c in sorted(self.changes, key=lambda c: -c.ratio)[:40]:
            interval = f"({c.low - 1:+.1%} to {c.high - 1:+.1%})"
            lines.append(f"{c.ratio - 1:+7.1%}  {interval:20}  {c.answer:12}  {c.label}, {c.hosts} hosts")
        lines += [f"not measured after: {label}" for label in self.lost_cases]
        return "\n".join(lines) + "\n"


def _first(names: list[str]) -> str:
    return ", ".join(names[:3]) + ", ..." * (len(names) > 3)


def _apart(clock: float) -> str:
    return f"{abs(clock - 1):.1%} {'lower' if clock < 1 else 'higher'}"


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
        _select(connection, "before", before)
        _select(connection, "after", after)
        rows = _pairs(connection)
        errors, clock_errors = (
            [_errors(connection, name, of) for name in ("before", "after")] for of in ("y", "period")
        )
    both: dict[str, list[tuple[float, float]]] = {}
    by_host: dict[str, list[tuple[float, float]]] = {}
    clocks: dict[str, list[tuple[float, float]]] = {}
    old_hosts = {host for host, _, is_new, *_ in rows if not is_new}
    old_cases = {label for _, label, is_new, *_ in rows if not is_new}
    for host, label, is_new, is_gone, change, left, period in rows:
        if not is_new and not is_gone:
            both.setdefault(label, []).append((change, left))
            by_host.setdefault(host, []).append((change, left))
            if period is not None:
                clocks.setdefault(host, []).append((period, 0.0))
    if not both:
        raise FleetError(f"no host was measured in both {before} and {after} with a figure at full speed", 2)
    changes = [_change(label, np.array(values), len(both), limit) for label, values in both.items()]
    answers = {c.answer for c in changes}
    clock = _clock(clocks)
    usual = log(clock.ratio) if clock else 0.0
    against_others = {host: [(period + usual, left) for period, left in of] for host, of in clocks.items()}
    return Rollout(
        changes,
        hosts=len(by_host),
        only_before=sorted(old_hosts - by_host.keys()),
        lost_cases=sorted(old_cases - both.keys()),
        odd=_odd(by_host, errors, limit),
        verdict="FAIL" if "slower" in answers else "UNDECIDED" if "inconclusive" in answers else "PASS",
        limit=limit,
        clock=clock,
        odd_clocks=_odd(against_others, clock_errors, limit),
    )


def _select(connection: duckdb.DuckDBPyConnection, side: str, runs: str) -> None:
    """A table of that name: the figures of these runs."""
    condition, values = selection(runs)
    try:
        connection.execute(f"CREATE TEMP TABLE {side}_runs AS SELECT host, run FROM machines WHERE {condition}", values)
    except duckdb.BinderException as error:
        raise FleetError(f"{runs}: no such column of `machines` (docs/python.md has them)", 2) from error
    connection.execute(
        f"""CREATE TEMP TABLE {side} AS SELECT host, label, date, avg(ln(estimate)) AS y, avg(open) AS open,
        avg(-ln(clock_ghz)) AS period FROM figures JOIN {side}_runs USING (host, run) GROUP BY ALL"""
    )


def _pairs(connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    """Of each host and case whether it is new or gone, and by how much the figure, what is open and the period grew."""
    columns = "median(y) AS y, median(open) AS open, median(period) AS period"
    side = f"SELECT host, label, {columns} FROM {{}} GROUP BY ALL"
    return connection.execute(
        f"""SELECT host, label, b.y IS NULL AS is_new, a.y IS NULL AS is_gone,
        a.y - b.y, a.open - b.open, a.period - b.period
        FROM ({side.format("before")}) b FULL JOIN ({side.format("after")}) a USING (host, label)
        ORDER BY label, host"""
    ).fetchall()


def _change(label: str, values: Floats, cases: int, limit: float) -> Change:
    """Of each host the change, and what bringing both sides to one clock leaves open."""
    ratios, left = values[:, 0], abs(float(np.median(values[:, 1])))
    low, high = median_interval(ratios, 1 - (1 - CONFIDENCE) / cases)
    low, high = low - left, high + left
    answer = "slower" if low > log(1 + limit) else "not slower" if high <= log(1 + limit) else "inconclusive"
    return Change(label, len(values), exp(float(np.median(ratios))), exp(low), exp(high), answer)


def _clock(clocks: dict[str, list[tuple[float, float]]]) -> Change | None:
    """The clock after to that before; None where no host tells it."""
    if not clocks:
        return None
    hosts = -np.array([np.median(np.array(v)[:, 0]) for v in clocks.values()])
    return _change("clock", np.column_stack([hosts, np.zeros(len(hosts))]), 1, TOLD)


def _errors(connection: duckdb.DuckDBPyConnection, side: str, of: str) -> dict[str, float]:
    """Each host's standard error by its scatter from day to day."""
    rows = connection.execute(
        f"""WITH levels AS (SELECT host, label, median({of}) AS level FROM {side} GROUP BY ALL),
        days AS (
            SELECT host, date, median({of} - level) AS day FROM {side} JOIN levels USING (host, label) GROUP BY ALL
        )
        SELECT host, {MAD_TO_SD} * mad(day), count(*) FROM days WHERE day IS NOT NULL GROUP BY host"""
    ).fetchall()
    spreads, counts = (np.array([row[i] for row in rows], dtype=np.float64) for i in (1, 2))
    return dict(zip([row[0] for row in rows], median_errors(spreads, counts, np.zeros(len(rows)))))


def _odd(
    by_host: dict[str, list[tuple[float, float]]], errors: list[dict[str, float]], limit: float
) -> list[tuple[str, float]]:
    """Hosts that became slower than the others did, which a median over all hides. They decide nothing."""
    if len(by_host) < FEWEST_HOSTS:
        return []
    names, (values, left) = list(by_host), np.array([np.median(v, axis=0) for v in by_host.values()]).T
    before, after = (np.array([side[name] for name in names]) for side in errors)
    seen = excess(values, np.sqrt(before**2 + after**2 + ((left - np.median(left)) / 1.96) ** 2))
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
