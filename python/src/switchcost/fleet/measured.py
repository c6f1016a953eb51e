"""What a dataset has of each host: its facts, and its figures by day as ratios to its group's.

Ratios are natural logarithms, of clocks those of the period (docs/fleet.md, "How hosts are judged", points 1 to 4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date
from math import exp
from typing import Any, NamedTuple

import duckdb
import numpy as np

from .dataset import Dataset
from .findings import words
from .statistics import FEWEST_HOSTS, Floats, Mask, median_errors, slope, spread
from .submission import FleetError

# What a host is: hosts that have all of these in common are a group.
GROUP = ["cpu_model", "cpu_stepping", "cpus_online", "numa_nodes", "hypervisor"]
# What may make it slow, the likeliest first.
_FACTS = """kernel_release microcode mitigations frequency_governor boost smt_control frequency_driver idle_driver
    idle_governor preemption clock_source thp_enabled kernel_version build_version build_commit build_target
    memory_bytes"""
FACTS = _FACTS.split()
FEWEST_DAYS_OF_A_TREND = 7
# A launch reads its clock no better than this.
CLOCK_ERROR = 0.001

# To the group's median of the same day, where enough hosts were measured on it: what all hosts have that day is out.
# What bringing figures to one clock leaves open does not get smaller by days, and is no part of their `error`.
RATIOS = """
CREATE TEMP TABLE ratios AS
WITH daily AS (
    SELECT host, hash(grp) AS grp, date, experiment, label,
           avg(ln(estimate)) AS y, avg((high * exp(-abs(open)) - low * exp(abs(open))) / 3.92 / estimate) AS error,
           avg(open) AS open, avg(-ln(clock_ghz)) AS period
    FROM figures JOIN current USING (host, run) GROUP BY ALL
), days AS (
    SELECT grp, label, date, median(y) AS y, median(open) AS open, median(period) AS period
    FROM daily GROUP BY ALL HAVING count(*) >= $fewest
), all_days AS (
    SELECT grp, label, median(y) AS y, median(open) AS open, median(period) AS period FROM daily GROUP BY ALL
)
SELECT host, date, experiment, label, error, daily.y - coalesce(days.y, all_days.y) AS ratio,
       daily.open - coalesce(days.open, all_days.open) AS open,
       daily.period - coalesce(days.period, all_days.period) AS period
FROM daily JOIN all_days USING (grp, label) LEFT JOIN days USING (grp, label, date)
"""
# Over the cases of all experiments (''), and of each.
BY_DAY = """
SELECT host, coalesce(experiment, '') AS experiment, epoch(date) / 86400 AS days, median(ratio) AS ratio,
       coalesce(median(error), 0) AS error, median(open) AS open, coalesce(median(period), 'nan') AS period
FROM ratios GROUP BY GROUPING SETS ((host, date), (host, date, experiment)) ORDER BY host, date
"""


class Course(NamedTuple):
    """A host's ratios by day: `error` is that of a day's figure, `open` what bringing it to one clock leaves open."""

    days: Floats
    ratio: Floats
    error: Floats
    open: Floats


class Level(NamedTuple):
    """Of each host the median over days (or the change over all), its standard error, what is open, and its days."""

    value: Floats
    error: Floats
    open: Floats
    days: Floats


Courses = dict[int, Course]


class Fleet:
    """Hosts by number, in the order of their names. Raises FleetError, with code 2 where the days have no runs."""

    def __init__(
        self,
        dataset: Dataset,
        connection: duckdb.DuckDBPyConnection,
        labels: dict[str, dict[str, str]],
        group_by: list[str],
        days: tuple[date, date],
    ) -> None:
        self.dataset, self.connection, self.group_by = dataset, connection, group_by
        self._read_facts(days)
        named = sorted({k for of in labels.values() for k in of})
        self.labels_of = {k: np.array([labels.get(n, {}).get(k) for n in self.names], dtype=object) for k in named}
        self._read_figures()

    def _read_facts(self, days: tuple[date, date]) -> None:
        """Each host as its last run found it; runs before it was what it is now do not count for it."""
        execute = self.connection.execute
        columns = [c[0] for c in execute("DESCRIBE machines").fetchall()]
        unknown = [c for c in self.group_by if c not in columns]
        if unknown:
            raise FleetError(f"--group-by {unknown[0]}: no such column of `machines`; there are: {', '.join(columns)}")
        key = " || chr(31) || ".join(f"coalesce(CAST({c} AS VARCHAR), '?')" for c in self.group_by)
        execute(
            f"""CREATE TEMP TABLE current AS SELECT host, run, started, noise, {", ".join(FACTS)}, {key} AS grp
            FROM machines WHERE date BETWEEN ? AND ? QUALIFY grp = arg_max(grp, started) OVER (PARTITION BY host)""",
            days,
        )
        last = ", ".join(f"CAST(arg_max({f}, started) AS VARCHAR)" for f in FACTS)
        query = f"SELECT host, any_value(grp), mode(noise), {last} FROM current GROUP BY host ORDER BY host"
        rows = execute(query).fetchall()
        if not rows:
            said = f"{self.dataset.path} has no runs in these days; `switchcost fleet collect` brings them"
            raise FleetError(said, 2)
        self.names, groups, self.noise, *facts = (list(column) for column in zip(*rows))
        self.index = {name: i for i, name in enumerate(self.names)}
        self.keys, self.group = np.unique(groups, return_inverse=True)
        self.facts_of = {f: np.array(v, dtype=object) for f, v in zip(FACTS, facts) if f not in self.group_by}

    def _read_figures(self) -> None:
        self.connection.execute(RATIOS, {"fewest": FEWEST_HOSTS})
        rows = self.connection.execute(BY_DAY).fetchnumpy()
        experiment = rows.pop("experiment").astype(str)
        self.experiments = [e for e in np.unique(experiment).tolist() if e]
        self.series = {e: self._courses(rows, experiment == e) for e in ["", *self.experiments]}
        period = rows["period"]
        of_clock = {"ratio": period, "error": np.full(len(period), CLOCK_ERROR), "open": np.zeros(len(period))}
        self.clocks = self._courses({**rows, **of_clock}, (experiment == "") & ~np.isnan(period))

    def _courses(self, rows: Mapping[str, Any], of: Mask) -> Courses:
        """The rows `of` by host; they are in the order of hosts and days."""
        host = rows["host"][of].astype(str)
        first = np.flatnonzero(np.append(True, host[1:] != host[:-1])[: len(host)])
        columns = (np.split(rows[name][of], first[1:]) for name in Course._fields)
        return {self.index[host[at]]: Course(*course) for at, *course in zip(first, *columns)}

    def levels(self, courses: Courses) -> Level:
        value, own, reading, errors, left = np.full((5, len(self.names)), np.nan)
        count = np.zeros(len(self.names))
        for i, (days, ratio, error, open_) in courses.items():
            value[i], own[i], reading[i], count[i] = np.median(ratio), spread(ratio), np.median(error), len(days)
            left[i] = np.median(open_)
        there = count > 0
        # What is open is the same on all days of one clock.
        errors[there] = np.hypot(median_errors(own[there], count[there], reading[there]), left[there] / 1.96)
        return Level(value, errors, left, count)

    def trends(self, courses: Courses) -> Level:
        """Of each host the change over all days by its trend."""
        change, error, left = np.full((3, len(self.names)), np.nan)
        all_days = {d for course in courses.values() for d in course.days}
        span = max(all_days) - min(all_days) if all_days else 0.0
        for i, (days, ratio, _, open_) in courses.items():
            if len(days) >= FEWEST_DAYS_OF_A_TREND and days[-1] - days[0] >= span / 2:
                trend, deviation = slope(days, ratio)
                change[i], left[i] = trend * span, slope(days, open_)[0] * span if open_.any() else 0.0
                error[i] = np.hypot(deviation * span, left[i] / 1.96)
        return Level(change, error, left, np.full(len(self.names), float(len(all_days))))

    def daily(self, members: list[str], clock: bool) -> tuple[list[str], Floats]:
        """The days, and of each the median ratio of these hosts, of costs or of the clock's period."""
        series = self.clocks if clock else self.series[""]
        courses = [series[i] for name in members if (i := self.index[name]) in series]
        if not courses:
            return [], np.array([])
        days, ratios = (np.concatenate([course[at] for course in courses]) for at in (0, 1))
        there = np.unique(days)
        medians = np.array([np.median(ratios[days == day]) for day in there])
        return [str(day) for day in there.astype("datetime64[D]")], medians

    def by_case(self) -> tuple[list[str], Floats]:
        """Labels of cases, and of each host (row) and case the ratio."""
        query = "SELECT host, label, median(ratio) AS ratio FROM ratios GROUP BY host, label ORDER BY label"
        rows = self.connection.execute(query).fetchnumpy()
        labels, column = np.unique(rows["label"].astype(str), return_inverse=True)
        found = np.full((len(self.names), len(labels)), np.nan)
        found[[self.index[h] for h in rows["host"].astype(str)], column] = rows["ratio"]
        return list(labels), found

    def varied(self, level: Level, clock: Level) -> list[dict[str, Any]]:
        """Facts that have several values in a group, each with its hosts and their middle."""
        found = []
        for fact, of_hosts in self.facts_of.items():
            for g in range(len(self.keys)):
                inside = self.group == g
                values = Counter(of_hosts[inside]).most_common(7)
                for value, hosts in values[:6] if 1 < len(values) < 0.5 * inside.sum() else []:
                    of = inside & (of_hosts == value)
                    middles = {"ratio": _middle(level.value[of]), "clock": _middle(-clock.value[of])}
                    found.append({"group": g, "fact": fact, "value": value, "hosts": hosts, **middles})
        return found

    def unlike(self, i: int) -> list[str]:
        """What the host has that at least four of five hosts of its group have otherwise."""
        group, found = np.flatnonzero(self.group == self.group[i]), list[str]()
        for fact, of_hosts in {**self.facts_of, **self.labels_of}.items():
            (usual, count), mine = Counter(of_hosts[group]).most_common(1)[0], of_hosts[i]
            if mine != usual and mine is not None and usual is not None and count >= 0.8 * len(group):
                found.append(f"{words(fact, str(mine))}, the others {words('', str(usual)).strip()}")
        return found


def _middle(logarithms: Floats) -> float | None:
    known = logarithms[~np.isnan(logarithms)]
    return exp(float(np.median(known))) if len(known) else None
