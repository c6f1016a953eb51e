"""What a dataset has of each host: its facts, and its figures by day as ratios to its group's.

Ratios are natural logarithms, of clocks those of the period (docs/fleet.md, "How hosts are judged", points 1 to 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date
from math import exp
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..declared import FACTS
from .dataset import Dataset
from .findings import FutureRun, LevelChange, words
from .statistics import FEWEST_HOSTS, Floats, location, scatters, slopes, spreads
from .steps import Step, find_steps
from .submission import FleetError
from .tails import Noise

# What a host is: hosts that have all of these in common are a group.
GROUP = [fact.name for fact in FACTS if fact.identifies]
# What may make it slow, the likeliest first.
CAUSES = [name for _, name in sorted((fact.cause_rank, fact.name) for fact in FACTS if fact.cause_rank)]
FEWEST_DAYS_OF_A_TREND = 7
# In a fleet of fewer days each of a host's runs of a day counts by itself, so many of them.
RUNS_A_DAY = 8
# Figures of a fleet that are read at once: more would need more memory.
AT_ONCE = 1_500_000
# A launch reads its clock no better than this.
CLOCK_ERROR = 0.001
# Simulated hosts of a kind, of which the rest of the scatter from day to day is learned.
DRAWN = 10_000
# The error of `location` is that of a mean times this.
LOCATION_ERROR = 1.1

# To the group's median of the same time, where enough hosts were measured then: what all hosts have that day is out.
# What bringing figures to one clock leaves open does not get smaller by days, and is no part of their `error`.
# `day` is a date, or of few dates the number of the host's run on it: in days since 1970, a thousandth for each run.
# Numbers in place of texts, and some hosts at a time: millions of figures would take gigabytes.
TIMES = """
CREATE TEMP TABLE titles AS SELECT DISTINCT hash(label) AS title, label, experiment FROM figures;
CREATE TEMP TABLE daily
    (number INTEGER, grp UBIGINT, day DOUBLE, title UBIGINT, y DOUBLE, error FLOAT, open DOUBLE, period DOUBLE);
CREATE TEMP TABLE times AS
WITH numbered AS (
    SELECT host, run, date, grp, number,
           least(row_number() OVER (PARTITION BY host, experiment, date ORDER BY started), $most) - 1 AS again
    FROM current
)
SELECT host, run, number, hash(grp) AS grp, epoch(date) / 86400
       + CASE WHEN (SELECT count(DISTINCT date) FROM current) < $trend THEN again / 1000 ELSE 0 END AS day
FROM numbered
"""
DAILY = """
INSERT INTO daily
SELECT number, grp, day, hash(label), avg(ln(estimate)),
       avg((high * exp(-abs(open)) - low * exp(abs(open))) / 3.92 / estimate), avg(open), avg(-ln(clock_ghz))
FROM figures JOIN times USING (host, run) WHERE number % $parts = $part GROUP BY ALL
"""
RATIOS = """
CREATE TEMP TABLE ratios AS
WITH days AS (
    SELECT grp, title, day, median(y) AS y, median(open) AS open, median(period) AS period
    FROM daily GROUP BY ALL HAVING count(*) >= $fewest
), all_days AS (
    SELECT grp, title, median(y) AS y, median(open) AS open, median(period) AS period FROM daily GROUP BY ALL
)
SELECT number, day, title, error, daily.y - coalesce(days.y, all_days.y) AS ratio,
       daily.open - coalesce(days.open, all_days.open) AS open,
       daily.period - coalesce(days.period, all_days.period) AS period
FROM daily JOIN all_days USING (grp, title) LEFT JOIN days USING (grp, title, day)
"""
# Over the cases of an experiment: unlike things have no median.
BY_DAY = """
SELECT number, day, median(ratio) AS ratio, coalesce(median(error), 0) AS error, median(open) AS open
FROM ratios SEMI JOIN (FROM titles WHERE experiment = $experiment) USING (title) GROUP BY number, day
"""
CLOCKS = """
SELECT number, day, median(period) AS ratio FROM ratios WHERE period IS NOT NULL GROUP BY number, day
"""


class Course(NamedTuple):
    """Of an experiment or the clock: a row a host, a column a day; nan where it was not measured.

    `error` is that of a day's figure, `open` what bringing it to one clock leaves open.
    """

    days: Floats
    ratio: Floats
    error: Floats
    open: Floats


class Level(NamedTuple):
    """Of each host its middle over days (or the change over all), its standard error, what is open, and its days.

    What is open is the same on all days of one clock: it is no part of the error. `scatter` is that of a day; `rest`
    are all hosts' distances from their own middle.
    """

    value: Floats
    error: Floats
    open: Floats
    days: Floats
    scatter: Floats
    rest: Floats


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
        named = sorted({k for of in labels.values() for k in of})
        columns = pa.table({"host": list(labels), **{k: [of.get(k) for of in labels.values()] for k in named}})
        connection.register("labels", columns.cast(pa.schema([(name, pa.string()) for name in columns.column_names])))
        self._read_facts(days, named)
        self.labels_of = {k: np.array([labels.get(n, {}).get(k) for n in self.names], dtype=object) for k in named}
        self._read_figures()

    def _read_facts(self, days: tuple[date, date], labels: list[str]) -> None:
        """Each host as its last run found it; runs before it was what it is now do not count for it."""
        execute = self.connection.execute
        late = "SELECT host, run, started::DATE::VARCHAR FROM machines WHERE in_future(started) ORDER BY ALL"
        self.in_future = [FutureRun(*row) for row in execute(late).fetchall()]
        columns = [c[0] for c in execute("DESCRIBE machines").fetchall()]
        unknown = [c for c in self.group_by if c not in columns and c not in labels]
        if unknown:
            there = ", ".join([*columns, *labels])
            said = f"no such column of `machines` and no such label; there are: {there}"
            raise FleetError(f"--group-by {unknown[0]}: {said}", 2)
        of = [f'{"machines" if c in columns else "labels"}."{c}"' for c in self.group_by]
        key = " || chr(31) || ".join(f"coalesce(CAST({c} AS VARCHAR), '?')" for c in of)
        kept = ["date", "started", "experiment", "noise", *CAUSES]
        execute(
            f"""CREATE TEMP TABLE current AS
            WITH kept AS (
                SELECT host, machines.run, {", ".join(f"machines.{fact}" for fact in kept)}, {key} AS grp
                FROM machines LEFT JOIN labels USING (host)
                WHERE machines.date BETWEEN ? AND ? AND NOT in_future(started)
            ), last AS (SELECT host, arg_max(grp, started) AS grp FROM kept GROUP BY host)
            SELECT * FROM kept SEMI JOIN last USING (host, grp)""",
            days,
        )
        last = ", ".join(f"CAST(arg_max({f}, started) AS VARCHAR)" for f in CAUSES)
        query = f"SELECT host, any_value(grp), mode(noise), {last} FROM current GROUP BY host ORDER BY host"
        rows = execute(query).fetchall()
        if not rows:
            said = f"{self.dataset.path} has no runs in these days; `switchcost fleet collect` brings them"
            raise FleetError(said, 2)
        self.names, groups, self.noises, *facts = (list(column) for column in zip(*rows, strict=True))
        execute("""CREATE OR REPLACE TEMP TABLE current AS
            SELECT host, run, date, started, experiment, grp, number FROM current JOIN
            (SELECT host, row_number() OVER (ORDER BY host) - 1 AS number FROM (SELECT DISTINCT host FROM current))
            USING (host)""")
        self.index = {name: i for i, name in enumerate(self.names)}
        self.keys, self.group = np.unique(groups, return_inverse=True)
        self.facts_of = {
            f: np.array(v, dtype=object) for f, v in zip(CAUSES, facts, strict=True) if f not in self.group_by
        }

    def _read_figures(self) -> None:
        execute = self.connection.execute
        before, _, times = TIMES.rpartition(";")
        execute(before)
        execute(times, {"trend": FEWEST_DAYS_OF_A_TREND, "most": RUNS_A_DAY})
        ((cases,),) = execute("SELECT count(*) FROM cases SEMI JOIN times USING (host, run)").fetchall()
        parts = 1 + cases // AT_ONCE
        for part in range(parts):
            execute(DAILY, {"parts": parts, "part": part})
        execute(RATIOS, {"fewest": FEWEST_HOSTS})
        execute("DROP TABLE daily")
        rows = execute("SELECT DISTINCT experiment FROM titles SEMI JOIN ratios USING (title) ORDER BY ALL").fetchall()
        self.experiments = [str(experiment) for (experiment,) in rows]
        self.courses = {e: self._course(execute(BY_DAY, {"experiment": e}).fetchnumpy()) for e in self.experiments}
        clocks = execute(CLOCKS).fetchnumpy()
        same = {"error": np.full(len(clocks["day"]), CLOCK_ERROR), "open": np.zeros(len(clocks["day"]))}
        self.clocks = self._course({**clocks, **same})

    def _course(self, rows: Mapping[str, Any]) -> Course:
        days, column = np.unique(np.asarray(rows["day"], float), return_inverse=True)
        tables = np.full((3, len(self.names), len(days)), np.nan)
        for table, name in zip(tables, ("ratio", "error", "open"), strict=True):
            table[np.asarray(rows["number"], int), column] = rows[name]
        return Course(days, *tables)

    def level(self, course: Course) -> Level:
        value, error, left, scatter = np.full((4, len(self.names)), np.nan)
        count = (~np.isnan(course.ratio)).sum(axis=1)
        there = count > 0
        if not there.any():
            return Level(value, error, left, count.astype(float), scatter, np.zeros(1))
        rows = course.ratio[there]
        scatter[there] = scatters(spreads(rows), count[there], np.nanmedian(course.error[there], axis=1))
        value[there] = location(rows, np.maximum(scatter[there], 1e-6))
        left[there] = np.nanmedian(course.open[there], axis=1)
        error[there] = LOCATION_ERROR * scatter[there] / np.sqrt(count[there])
        enough = count >= 3
        rest = (course.ratio[enough] - value[enough, None]) * np.sqrt(count / np.maximum(count - 1, 1))[enough, None]
        rest = rest[~np.isnan(rest)]
        return Level(value, error, left, count.astype(float), scatter, rest if len(rest) else np.zeros(1))

    def noise(self, level: Level, of: NDArray[np.int64], widths: Floats, limit: float) -> Noise:
        """What is left of the scatter in the values of these hosts, in units of their groups' widths.

        Hosts of as many days as others have what others' days give at random, times their own scatter.
        """
        usual = float(np.median(level.scatter[of]))
        if not level.rest.any():
            return Noise.normal(level.error[of] / widths)
        by_days = np.array([1, 2, 3, 4, 5, 7, 14, 30, 60, 120, 240])
        days = by_days[np.searchsorted(by_days, level.days[of], side="right") - 1]
        expected = LOCATION_ERROR * usual / np.sqrt(days)
        factor = np.maximum(np.round(np.log(level.error[of] / widths / expected) / np.log(1.5)), -1)
        keys, kind, counts = np.unique([days, factor], axis=1, return_inverse=True, return_counts=True)
        random, drawn = np.random.default_rng(1), dict[float, Floats]()
        for n in np.unique(days):
            sample = random.choice(level.rest, (DRAWN, n))
            # Hosts that are slow by chance on half of their days and more are counted by `days_needed`.
            sample = sample[(sample > limit).sum(axis=1) < n / 2]
            drawn[n] = location(sample, np.full(len(sample), usual)) if len(sample) else np.zeros(1)
        first = np.argsort(-counts)
        place = np.argsort(first)
        return Noise([drawn[keys[0, k]] * 1.5 ** keys[1, k] for k in first], place[kind.ravel()])

    def trend(self, course: Course) -> Level:
        """Of each host the change over all days by its trend."""
        change, error, left = np.full((3, len(self.names)), np.nan)
        first, last = (course.days[0], course.days[-1]) if len(course.days) else (0.0, 0.0)
        there = ~np.isnan(course.ratio)
        count = there.sum(axis=1).astype(float)
        if count.max(initial=0) >= FEWEST_DAYS_OF_A_TREND:
            of_days = np.where(there, course.days, np.nan)
            long = np.nanmax(of_days, axis=1, initial=first) - np.nanmin(of_days, axis=1, initial=last)
            of = (count >= FEWEST_DAYS_OF_A_TREND) & (long >= (last - first) / 2)
            trend, deviation = slopes(course.days, course.ratio[of])
            change[of], left[of] = trend * (last - first), 0.0
            if np.nan_to_num(course.open).any():
                left[of] = slopes(course.days, course.open[of])[0] * (last - first)
            error[of] = deviation * (last - first)
        return Level(change, error, left, count, error, np.zeros(1))

    def steps(self, course: Course, false_alarms: float) -> list[list[Step]]:
        """Returns the changes of level of each host's own figures."""
        return find_steps(course.ratio, course.error, false_alarms)

    def level_change(self, i: int, course: Course, step: Step, experiment: str) -> LevelChange:
        """Builds what is told of a step: since when, by how much, and which facts changed with it."""
        dates = [_date_of(course.days[column]) for column in (step.column, step.second_before, step.second_after)]
        ratio = exp(step.after - step.before)
        changed = self._changed_facts(self.names[i], *dates[1:])
        in_words = [f"{words(fact, old)} -> {words('', new).strip()}" for fact, (old, new) in changed.items()]
        return LevelChange(dates[0], ratio, experiment, in_words, {fact: new for fact, (_, new) in changed.items()})

    def _changed_facts(self, host: str, before: str, after: str) -> dict[str, tuple[str, str]]:
        """Facts that differ between the first run of a day and the last of another, the likeliest cause first."""
        query = f"""SELECT {", ".join(f"CAST({fact} AS VARCHAR)" for fact in CAUSES)} FROM machines
            WHERE host = ? AND date = CAST(? AS DATE) ORDER BY started {{}} LIMIT 1"""
        old = self.connection.execute(query.format("ASC"), [host, before]).fetchall()
        new = self.connection.execute(query.format("DESC"), [host, after]).fetchall()
        if not old or not new:
            return {}
        changed = {f: (a, b) for f, a, b in zip(CAUSES, old[0], new[0], strict=True) if None not in (a, b) and a != b}
        if "kernel_release" in changed:
            changed.pop("kernel_version", None)
        return changed

    def days_above(self, course: Course, taken_out: Floats, limits: Floats) -> Floats:
        """On how many days each host was above its limit, without what is taken out of it."""
        with np.errstate(invalid="ignore"):
            found: Floats = (course.ratio - (taken_out + limits)[:, None] > 0).sum(axis=1).astype(float)
        return found

    def daily(self, members: list[str], course: Course) -> tuple[list[str], Floats]:
        """The days, and of each the median ratio of these hosts."""
        rows = course.ratio[[self.index[name] for name in members]]
        there = ~np.isnan(rows).all(axis=0)
        dates = np.floor(course.days[there]).astype(int)
        medians = np.nanmedian(rows[:, there], axis=0) if there.any() else np.array([])
        found = {_date_of(day): value for day, value in zip(dates, medians, strict=True)}
        return list(found), np.array(list(found.values()))

    def by_case(self) -> tuple[list[str], Floats]:
        """Labels of cases, and of each host (row) and case the ratio."""
        query = """SELECT number, label, ratio
            FROM (SELECT number, title, median(ratio) AS ratio FROM ratios GROUP BY ALL) JOIN titles USING (title)"""
        rows = self.connection.execute(query).fetchnumpy()
        labels, column = np.unique(rows["label"].astype(str), return_inverse=True)
        found = np.full((len(self.names), len(labels)), np.nan)
        found[np.asarray(rows["number"], int), column] = rows["ratio"]
        return list(labels), found

    def period(self) -> tuple[str, str]:
        """The first and the last day that has runs."""
        (days,) = self.connection.execute("SELECT min(date)::VARCHAR, max(date)::VARCHAR FROM current").fetchall()
        return str(days[0]), str(days[1])

    def varied(self, levels: Mapping[str, Level], clock: Level) -> list[dict[str, Any]]:
        """Facts that have several values in a group, each with its hosts and their middle by experiment."""
        found = []
        for fact, of_hosts in self.facts_of.items():
            for g in range(len(self.keys)):
                inside = self.group == g
                values = Counter(of_hosts[inside]).most_common(7)
                for value, hosts in values[:6] if 1 < len(values) < 0.5 * inside.sum() else []:
                    of = inside & (of_hosts == value)
                    ratios = {e: _middle(level.value[of]) for e, level in levels.items()}
                    middles = {"ratios": ratios, "clock": _middle(-clock.value[of])}
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


def _date_of(day: float) -> str:
    return str(np.datetime64(int(day), "D"))


def _middle(logarithms: Floats) -> float | None:
    known = logarithms[~np.isnan(logarithms)]
    return exp(float(np.median(known))) if len(known) else None
