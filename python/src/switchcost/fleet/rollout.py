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
from .statistics import FEWEST_HOSTS, MAD_TO_SD, Floats, median_errors, median_interval
from .submission import FleetError
from .tails import Noise, tail_of

CONFIDENCE = 0.95
LIMIT = 0.03
# A clock that differs by less is not told of.
TOLD = 0.01
# Of each host and case that both have: by how much the figure, what is open, and the period grew.
_SIDE = "SELECT host, label, median(y) AS y, median(open) AS open, median(period) AS period FROM {} GROUP BY ALL"
PAIRS = f"""CREATE TEMP TABLE pairs AS
    SELECT host, label, a.y - b.y AS change, a.open - b.open AS open, a.period - b.period AS period
    FROM ({_SIDE.format("before")}) b JOIN ({_SIDE.format("after")}) a USING (host, label)"""
EXIT = {"PASS": 0, "FAIL": 1, "UNDECIDED": 3}

#: Hosts by name, the slowest first.
Ratios = list[tuple[str, float]]


@dataclass
class Change:
    """A case at one clock: the median over hosts of after / before, with an interval; all intervals hold together."""

    label: str
    hosts: int
    ratio: float
    low: float
    high: float
    answer: str

    def interval(self) -> str:
        return f"({self.low - 1:+.1%} to {self.high - 1:+.1%})"


@dataclass
class Rollout:
    changes: list[Change]
    hosts: int
    only_before: list[str]
    lost_cases: list[str]
    odd: Ratios
    verdict: str
    limit: float
    clock: Change | None
    odd_clocks: Ratios

    def answer(self) -> str:
        worst, clock = max(self.changes, key=lambda c: c.ratio), self.clock
        slower, undecided = (sum(c.answer == a for c in self.changes) for a in ("slower", "inconclusive"))
        said = f"{self.verdict}: {self.hosts:,} hosts before and after, {len(self.changes)} cases"
        said += f": {slower} slower by more than {self.limit:.0%}, {undecided} inconclusive"
        said += f"; at most {worst.ratio - 1:+.1%} {worst.interval()} in {worst.label}"
        if clock and abs(clock.ratio - 1) >= TOLD and not clock.low <= 1 <= clock.high:
            said += f"; the clock was {_apart(clock.ratio)} after {clock.interval()}: cases are compared at one clock"
        slow = [f"{name}: {ratio - 1:+.0%}" for name, ratio in self.odd]
        low = [f"{name}: {_apart(1 / ratio)}" for name, ratio in self.odd_clocks]
        for what, names in (
            ("with a clock that fell against the others'", low),
            ("perhaps slower than the others", slow),
            ("not measured after", self.only_before),
        ):
            if names:
                said += f"; {len(names)} {what} ({', '.join(names[:3])}{', ...' * (len(names) > 3)})"
        return said + "."

    def text(self) -> str:
        lines = [self.answer(), ""]
        for c in sorted(self.changes, key=lambda c: -c.ratio)[:40]:
            lines.append(f"{c.ratio - 1:+7.1%}  {c.interval():20}  {c.answer:12}  {c.label}, {c.hosts} hosts")
        lines += [f"not measured after: {label}" for label in self.lost_cases]
        return "\n".join(lines) + "\n"


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

        def rows(query: str) -> list[Any]:
            return connection.execute(query).fetchall()

        _select(connection, "before", before)
        _select(connection, "after", after)
        connection.execute(PAIRS)
        cases = rows("SELECT label, list(change), list(open) FROM pairs GROUP BY label ORDER BY label")
        hosts = rows("SELECT host, median(change), median(open), median(period) FROM pairs GROUP BY host ORDER BY host")
        lost = "SELECT DISTINCT {0} FROM before ANTI JOIN pairs USING ({0}) ORDER BY {0}"
        only_before, lost_cases = ([name for (name,) in rows(lost.format(of))] for of in ("host", "label"))
        sides = ("before", "after")
        errors, clock_errors = ([_errors(connection, side, of) for side in sides] for of in ("y", "period"))
    if not cases:
        raise FleetError(f"no host was measured in both {before} and {after} with a figure at full speed", 2)
    changes = [_change(label, np.array(by), np.array(left), len(cases), limit) for label, by, left in cases]
    answers = {c.answer for c in changes}
    periods = {host: period for host, *_, period in hosts if period is not None}
    nothing = np.zeros(len(periods))
    clock = _change("clock", -np.array([*periods.values()]), nothing, 1, TOLD) if periods else None
    usual = log(clock.ratio) if clock else 0.0
    return Rollout(
        changes,
        hosts=len(hosts),
        only_before=only_before,
        lost_cases=lost_cases,
        odd=_odd({host: (by, left) for host, by, left, _ in hosts}, errors, limit),
        verdict="FAIL" if "slower" in answers else "UNDECIDED" if "inconclusive" in answers else "PASS",
        limit=limit,
        clock=clock,
        odd_clocks=_odd({host: (period + usual, 0.0) for host, period in periods.items()}, clock_errors, limit),
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


def _change(label: str, ratios: Floats, open_: Floats, cases: int, limit: float) -> Change:
    """Of each host the change, and what bringing both sides to one clock leaves open."""
    low, high = median_interval(ratios, 1 - (1 - CONFIDENCE) / cases)
    left = abs(float(np.median(open_)))
    low, high = low - left, high + left
    answer = "slower" if low > log(1 + limit) else "not slower" if high <= log(1 + limit) else "inconclusive"
    return Change(label, len(ratios), exp(float(np.median(ratios))), exp(low), exp(high), answer)


def _errors(connection: duckdb.DuckDBPyConnection, side: str, of: str) -> dict[str, float]:
    """Each host's standard error by its scatter from day to day."""
    rows = connection.execute(
        f"""WITH levels AS (SELECT host, label, median({of}) AS level FROM {side} GROUP BY ALL),
        days AS (
            SELECT host, date, median({of} - level) AS day FROM {side} JOIN levels USING (host, label) GROUP BY ALL
        )
        SELECT host, {MAD_TO_SD} * mad(day) AS spread, count(*) AS days FROM days WHERE day IS NOT NULL GROUP BY host"""
    ).fetchnumpy()
    return dict(zip(rows["host"], median_errors(rows["spread"], rows["days"]), strict=True))


def _odd(by_host: dict[str, tuple[float, float]], errors: list[dict[str, float]], limit: float) -> Ratios:
    """Hosts that became slower than the others did, which a median over all hides. They decide nothing."""
    if len(by_host) < FEWEST_HOSTS:
        return []
    names, (values, left) = list(by_host), np.array([*by_host.values()]).T
    before, after = (np.array([side[name] for name in names]) for side in errors)
    noise = Noise.normal(np.sqrt(before**2 + after**2 + ((left - np.median(left)) / 1.96) ** 2))
    above = values - np.median(values)
    chance = tail_of(above, noise, log(1 + limit)).safe_probability(above, noise.kind)
    found = (chance * len(values) <= 1 - CONFIDENCE) & (values >= log(1 + limit))
    return sorted(((names[i], exp(values[i])) for i in np.flatnonzero(found)), key=lambda h: -h[1])


def run(dataset: Dataset, arguments: argparse.Namespace) -> int:
    found = compare(dataset, arguments.before, arguments.after, arguments.fail_above or LIMIT)
    print(found.text(), end="")
    if arguments.fail_above is None:
        return 0
    if found.lost_cases and found.verdict != "FAIL":
        raise FleetError(f"--fail-above: not measured after, though before: {'; '.join(found.lost_cases[:5])}", 2)
    return 0 if found.verdict == "UNDECIDED" and arguments.allow_undecided else EXIT[found.verdict]
