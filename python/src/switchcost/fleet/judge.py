"""Who is slow, and what goes with it (docs/fleet.md, "How hosts are judged")."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date
from math import exp, log
from typing import Any, NamedTuple

import duckdb
import numpy as np

from .dataset import Dataset
from .findings import ALL, FEWEST_DAYS, Analysis, Effect, Host, apart, percent, words
from .statistics import (
    FEWEST_HOSTS,
    FEWEST_OF_A_VALUE,
    Floats,
    Mask,
    excess,
    median_errors,
    slope,
    slower,
    spread,
)
from .submission import FleetError

# What a host is: hosts that have all of these in common are a group.
GROUP = ["cpu_model", "cpu_stepping", "cpus_online", "numa_nodes", "hypervisor"]
# What may make it slow, the likeliest first.
FACTS = [
    "kernel_release",
    "microcode",
    "mitigations",
    "frequency_governor",
    "boost",
    "smt_control",
    "frequency_driver",
    "idle_driver",
    "idle_governor",
    "preemption",
    "clock_source",
    "thp_enabled",
    "kernel_version",
    "build_version",
    "build_commit",
    "build_target",
    "memory_bytes",
]
FEWEST_DAYS_OF_A_TREND = 7
TOO_NOISY = log(1.2)
# The share of a group's hosts from which a value is common enough to hold others against.
COMMON = 0.1
# A launch reads its clock no better than this.
CLOCK_ERROR = 0.001

# To the group's median of the same day, where enough hosts were measured on it: what all hosts have that day is out.
# What bringing figures to one clock leaves open does not get smaller by days, and is no part of their `error`.
RATIOS = [
    """CREATE TEMP TABLE daily AS
    SELECT host, grp, date, experiment, label,
           avg(ln(estimate)) AS y, avg((high * exp(-abs(open)) - low * exp(abs(open))) / 3.92 / estimate) AS error,
           avg(open) AS open, avg(-ln(clock_ghz)) AS period
    FROM figures JOIN current USING (host, run) GROUP BY ALL""",
    """CREATE TEMP TABLE ratios AS
    WITH days AS (
        SELECT grp, label, date, median(y) AS y, median(open) AS open, median(period) AS period
        FROM daily GROUP BY ALL HAVING count(*) >= $fewest
    ), all_days AS (
        SELECT grp, label, median(y) AS y, median(open) AS open, median(period) AS period FROM daily GROUP BY ALL
    )
    SELECT host, date, experiment, label, error, daily.y - coalesce(days.y, all_days.y) AS ratio,
           daily.open - coalesce(days.open, all_days.open) AS open,
           daily.period - coalesce(days.period, all_days.period) AS period
    FROM daily JOIN all_days USING (grp, label) LEFT JOIN days USING (grp, label, date)""",
]


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


def analyse(
    dataset: Dataset,
    *,
    labels: dict[str, dict[str, str]] | None = None,
    group_by: list[str] | None = None,
    since: date = date.min,
    until: date = date.max,
    limit: float = 0.03,
    false_alarms: float = 0.05,
) -> Analysis:
    """Judge every host within its group. Raises FleetError, with code 2 where the days asked for have no runs.

    `limit`: no host is called slow below this share. `false_alarms`: the probability that one or more sound hosts
    of the whole fleet are called slow or becoming slower.
    """
    with dataset.connect() as connection:
        return _Analyst(
            dataset, connection, labels or {}, group_by or GROUP, since, until, log(1 + limit), false_alarms
        ).run()


class _Analyst:
    def __init__(
        self,
        dataset: Dataset,
        connection: duckdb.DuckDBPyConnection,
        labels: dict[str, dict[str, str]],
        group_by: list[str],
        since: date,
        until: date,
        limit: float,
        false_alarms: float,
    ) -> None:
        self.dataset, self.connection, self.labels, self.group_by = dataset, connection, labels, group_by
        self.since, self.until, self.limit, self.false_alarms = since, until, limit, false_alarms

    def run(self) -> Analysis:
        self._facts()
        self._figures()
        self.hosts = [Host(n, int(self.group[i]), 0, noise=self.noise[i]) for i, n in enumerate(self.names)]
        self.level, self.clock = self._levels(self.series[""]), self._levels(self.clocks)
        for i, host in enumerate(self.hosts):
            host.days = int(self.level.days[i])
            host.ratio = None if np.isnan(self.level.value[i]) else exp(self.level.value[i])
            host.clock = None if np.isnan(self.clock.value[i]) else exp(-self.clock.value[i])
        kinds = [""] + (self.experiments if len(self.experiments) > 1 else [])
        self.by_experiment = {e: self._levels(self.series[e]) for e in kinds[1:]}
        # Besides the experiments the trend and faster hosts; of clocks all three.
        self.tests = len(self.names) * (len(kinds) + 2 + 3 * bool(self.clocks))
        effects, drifts = self._judge_costs()
        of_clocks, clock_drifts = self._judge_clocks()
        drifts += clock_drifts
        return Analysis(
            groups=self._groups(),
            hosts=self.hosts,
            slow=self._with("slow"),
            suspects=self._with("looks slow"),
            drifting=sorted((h for h in self.hosts if h.verdict == "becomes slower"), key=lambda h: -h.slowness()),
            faster=self._with("faster")[::-1],
            noisy=self._with("too noisy to say"),
            effects=sorted(effects + of_clocks, key=lambda e: -e.ratio),
            drifts=drifts,
            never_answered=self.dataset.never_answered(),
            days=len({d for course in self.series[""].values() for d in course.days}),
            limit=exp(self.limit) - 1,
            false_alarms=self.false_alarms,
            **self._pictures(drifts),
        )

    def _judge_costs(self) -> tuple[list[Effect], list[Effect]]:
        # A group's slow part is told of as a whole; its hosts are held against each other.
        effects, adjusted = self._effects(self.level)
        self.adjusted = adjusted
        change = self._trends(self.series[""])
        drifts, steady = self._effects(change)
        self._judge(adjusted, {m for e in drifts for m in e.members})
        for host, by in zip(self.hosts, change.value):
            host.change = None if np.isnan(by) else exp(by)
        self._judge_trends(change, steady, drifts)
        return _without(effects, drifts), drifts

    def _judge_clocks(self) -> tuple[list[Effect], list[Effect]]:
        """The clock by its period, as costs are; a host that is slow per cycle remains so."""
        effects, adjusted = self._effects(self.clock, clock=True)
        for effect in effects:
            effect.per_cycle_as_others = self._is_alike(effect)
        change = self._trends(self.clocks)
        drifts, steady = self._effects(change, clock=True)
        in_drift = {m for e in drifts for m in e.members}
        for host, by in zip(self.hosts, change.value):
            host.clock_change = None if np.isnan(by) else exp(-by)
        for sign, verdict in ((1, "slow"), (-1, "faster")):
            for i, above, chance in self._found(sign * adjusted, self.clock.error):
                host = self.hosts[i]
                if host.name in in_drift:
                    continue
                host.clock = exp(-sign * above)
                said = f"its clock is {apart(host.clock)}"
                if host.verdict in ("slow", "looks slow") or (sign < 0 and host.verdict == "faster"):
                    host.reason = "; ".join(filter(None, [said, host.reason]))
                elif not host.verdict.startswith("becomes slower"):
                    parts = [said, self._per_cycle(i), *self._unlike(i)]
                    host.verdict = "looks slow" if sign > 0 and self.clock.days[i] < FEWEST_DAYS else verdict
                    host.by_clock, host.chance, host.reason = True, chance, "; ".join(parts[:4])
        self._judge_trends(change, steady, drifts, clock=True)
        return _without(effects, drifts), drifts

    def _is_alike(self, effect: Effect) -> bool:
        """Whether costs at one clock are those of the others, whatever bringing them there leaves open."""
        of = np.isin(self.names, effect.members)
        others = ~of & (self.group == effect.group if effect.group != ALL else self.group >= 0)
        shift, left = (np.nanmedian(v[of]) - np.nanmedian(v[others]) for v in (self.level.value, self.level.open))
        return bool(abs(shift) + abs(left) < self.limit)

    def _per_cycle(self, i: int) -> str:
        """What the host's costs are at one clock."""
        value, error = self.adjusted[i], 1.96 * self.level.error[i]
        alike = self.hosts[i].verdict == "as the others" and abs(value) + error < self.limit
        how = "as the others" if alike else "faster" if self.hosts[i].verdict == "faster" else "inconclusive"
        of = f"{percent(exp(value))}, {percent(exp(value - error))} to {percent(exp(value + error))}"
        return f"per cycle {how} ({of})"

    def _found(self, values: Floats, errors: Floats) -> Iterator[tuple[int, float, float]]:
        """Hosts that are above their group beyond chance and the limit: which, by how much, how probable that is."""
        for group in range(len(self.keys)):
            of = np.flatnonzero((self.group == group) & ~np.isnan(values))
            seen = excess(values[of], errors[of])
            if seen is not None:
                odd = (seen.value >= self.limit) & (seen.probability * self.tests <= self.false_alarms)
                for at in np.flatnonzero(odd):
                    yield int(of[at]), float(seen.value[at]), float(seen.probability[at])

    def _with(self, verdict: str) -> list[Host]:
        return sorted((h for h in self.hosts if h.verdict == verdict), key=lambda h: -h.slowness())

    def _facts(self) -> None:
        """Each host as its last run found it; runs before it was what it is now do not count for it."""
        columns = [c[0] for c in self.connection.execute("DESCRIBE machines").fetchall()]
        unknown = [c for c in self.group_by if c not in columns]
        if unknown:
            raise FleetError(f"--group-by {unknown[0]}: no such column of `machines`; there are: {', '.join(columns)}")
        key = " || chr(31) || ".join(f"coalesce(CAST({c} AS VARCHAR), '?')" for c in self.group_by)
        span = {"since": self.since, "until": self.until}
        execute = self.connection.execute
        execute(
            f"CREATE TEMP TABLE runs AS SELECT *, {key} AS grp FROM machines WHERE date BETWEEN $since AND $until", span
        )
        execute("CREATE TEMP TABLE last AS SELECT host, arg_max(grp, started) AS grp FROM runs GROUP BY host")
        execute("CREATE TEMP TABLE current AS SELECT host, run, hash(grp) AS grp FROM runs JOIN last USING (host, grp)")
        chosen = ", ".join(f"CAST(arg_max({f}, started) AS VARCHAR) AS {f}" for f in FACTS)
        rows: dict[str, Any] = self.connection.execute(
            f"""SELECT host, any_value(grp) AS grp, mode(noise) AS noise, {chosen}
            FROM runs JOIN last USING (host, grp) GROUP BY host ORDER BY host"""
        ).fetchnumpy()
        self.names = [str(h) for h in rows["host"]]
        if not self.names:
            raise FleetError(
                f"{self.dataset.path} has no runs in these days; `switchcost fleet collect` brings them", 2
            )
        self.index = {name: i for i, name in enumerate(self.names)}
        self.keys, self.group = np.unique(rows["grp"].astype(str), return_inverse=True)
        self.noise = _texts(rows["noise"])
        self.facts_of = {f: np.array(_texts(rows[f]), dtype=object) for f in FACTS if f not in self.group_by}
        labels = sorted({k for of in self.labels.values() for k in of})
        self.labels_of = {
            k: np.array([self.labels.get(n, {}).get(k) for n in self.names], dtype=object) for k in labels
        }

    def _figures(self) -> None:
        self.connection.execute(RATIOS[0])
        self.connection.execute(RATIOS[1], {"fewest": FEWEST_HOSTS})
        self.experiments = [
            e for (e,) in self.connection.execute("SELECT DISTINCT experiment FROM ratios ORDER BY 1").fetchall()
        ]
        rows: dict[str, Any] = self.connection.execute(
            """SELECT host, date, coalesce(experiment, '') AS experiment, median(ratio) AS ratio,
            median(error) AS error, median(open) AS open, median(period) AS period
            FROM ratios GROUP BY GROUPING SETS ((host, date), (host, date, experiment)) ORDER BY host, date"""
        ).fetchnumpy()
        experiment, period = rows["experiment"].astype(str), _numbers(rows["period"])
        self.series: dict[str, Courses] = {
            e: self._courses(rows, np.flatnonzero(experiment == e)) for e in ["", *self.experiments]
        }
        of_clock = {"ratio": period, "error": np.full(len(period), CLOCK_ERROR), "open": np.zeros(len(period))}
        self.clocks = self._courses({**rows, **of_clock}, np.flatnonzero((experiment == "") & ~np.isnan(period)))

    def _courses(self, rows: dict[str, Any], of: Any) -> Courses:
        """The rows `of` by host; they are in the order of hosts and days."""
        hosts, days = rows["host"].astype(str), rows["date"].astype("datetime64[D]").astype(np.int64).astype(np.float64)
        ratio, error, open_ = _numbers(rows["ratio"]), np.nan_to_num(_numbers(rows["error"])), _numbers(rows["open"])
        parts = np.split(of, np.flatnonzero(hosts[of][1:] != hosts[of][:-1]) + 1)
        return {self.index[hosts[p[0]]]: Course(days[p], ratio[p], error[p], open_[p]) for p in parts if len(p)}

    def _levels(self, courses: Courses) -> Level:
        value, own, reading, errors, left = (np.full(len(self.names), np.nan) for _ in range(5))
        count = np.zeros(len(self.names))
        for i, (days, ratio, error, open_) in courses.items():
            value[i], own[i], reading[i], count[i] = np.median(ratio), spread(ratio), np.median(error), len(days)
            left[i] = np.median(open_)
        there = count > 0
        # What is open is the same on all days of one clock.
        errors[there] = np.hypot(median_errors(own[there], count[there], reading[there]), left[there] / 1.96)
        return Level(value, errors, left, count)

    def _effects(self, level: Level, clock: bool = False) -> tuple[list[Effect], Floats]:
        """Values of facts whose hosts are slower as a whole; and all values with these, and the groups, taken out."""
        values = level.value
        passes = [(g, self.group == g, self.facts_of) for g in range(len(self.keys))]
        passes.append((ALL, self.group >= 0, self.labels_of))
        tests = max(1, sum(len(set(v[of])) for _, of, facts in passes for v in facts.values()))
        chance = self.false_alarms / tests / (1 + bool(self.clocks))
        rest, found = values.copy(), list[Effect]()
        for group, inside, facts in passes:
            inside = inside & ~np.isnan(values)
            if not inside.any():
                continue
            rest[inside] -= np.median(rest[inside])
            left = dict(facts)
            while left:
                # The fact that explains most goes first: what merely goes with it has nothing left to explain.
                explained = {
                    f: self._slow_values(rest, level.open, inside, group, f, v, chance) for f, v in left.items()
                }
                gains = {f: _explained(rest, inside, effects) for f, effects in explained.items()}
                best = max(gains, key=lambda f: gains[f])
                if gains[best] <= 0:
                    break
                for effect, of in explained[best]:
                    effect.clock = clock
                    rest[of] -= log(effect.ratio)
                    effect.together_with = self._same_hosts(of, inside, {f: v for f, v in facts.items() if f != best})
                    found.append(effect)
                del left[best]
        return sorted(found, key=lambda e: -e.ratio), rest

    def _slow_values(
        self, rest: Floats, left_open: Floats, inside: Mask, group: int, fact: str, of_hosts: Any, chance: float
    ) -> list[tuple[Effect, Mask]]:
        """The values of a fact that are slower than its fastest common one, or than all others where none is common."""
        counts = {v: n for v, n in Counter(of_hosts[inside]).items() if v is not None and n >= FEWEST_OF_A_VALUE}
        masks = {v: (of_hosts == v) & inside for v in counts}
        common = [v for v, n in counts.items() if n >= COMMON * inside.sum()]
        fastest = min(common, key=lambda v: float(np.median(rest[masks[v]]))) if common else None
        found = []
        for value, of in masks.items():
            against = masks[fastest] if common else inside & ~of
            if value == fastest or against.sum() < FEWEST_OF_A_VALUE:
                continue
            both = of | against
            shift, p = slower(rest[both], of[both])
            unsure = abs(float(np.median(left_open[of]) - np.median(left_open[against])))
            if shift - unsure >= self.limit and p <= chance:
                others = words(fact, str(fastest)) if common else "the others"
                members = [self.names[i] for i in np.flatnonzero(of)]
                found.append((Effect(group, fact, str(value), len(members), exp(shift), others, p, [], members), of))
        return found

    def _same_hosts(self, of: Mask, inside: Mask, facts: dict[str, Any]) -> list[str]:
        found = []
        for fact, of_hosts in facts.items():
            (value, count), *_ = Counter(of_hosts[of]).most_common(1)
            if value is not None and count >= 0.95 * ((of_hosts == value) & inside | of).sum():
                found.append(words(fact, str(value)))
        return found

    def _judge(self, adjusted: Floats, in_drift: set[str]) -> None:
        """The verdict of each host: over all experiments together, and in each alone where there are several."""
        days, tests = self.level.days, self.tests
        for experiment, level in {"": self.level, **self.by_experiment}.items():
            value, error = level.value - (self.level.value - adjusted), level.error
            for group in range(len(self.keys)):
                of = np.flatnonzero((self.group == group) & ~np.isnan(value))
                seen = excess(value[of], error[of])
                # Far below its group is odd, too, but only of all experiments together.
                below = excess(-value[of], error[of])
                if seen is None or below is None:
                    continue
                needed = seen.tail.threshold(self.false_alarms / tests) * seen.scale
                for at, i in enumerate(of):
                    host = self.hosts[i]
                    slow = seen.value[at] >= self.limit and seen.probability[at] * tests <= self.false_alarms
                    if not experiment:
                        host.would_be_found = exp(max(needed[at], self.limit))
                        host.verdict = "too noisy to say" if needed[at] > TOO_NOISY else "as the others"
                        if below.value[at] >= self.limit and below.probability[at] * tests <= self.false_alarms:
                            host.verdict, host.chance = "faster", float(below.probability[at])
                            host.ratio, host.reason = exp(-below.value[at]), self._reason(int(i), -1)
                    if slow and host.name not in in_drift and host.verdict not in ("slow", "looks slow"):
                        host.verdict = "slow" if days[i] >= FEWEST_DAYS else "looks slow"
                        host.chance, host.ratio = float(seen.probability[at]), exp(seen.value[at])
                        host.experiment = experiment or None
                        host.reason = self._reason(int(i))
        for host in self.hosts:
            if host.verdict == "not judged" and self.groups_judged(host.group):
                host.verdict, host.reason = "too noisy to say", "no figure at full speed"
            elif host.verdict == "as the others" and host.noise == "unusable":
                host.verdict, host.reason = "too noisy to say", "most runs found the machine unusable"

    def groups_judged(self, group: int) -> bool:
        return int((self.group == group).sum()) >= FEWEST_HOSTS

    def _reason(self, i: int, sign: int = 1) -> str:
        """In what alone the host is slow, and what it has that others have not; `sign` is -1 of faster."""
        slow = [e for e, level in self.by_experiment.items() if sign * level.value[i] >= self.limit]
        found = [f"in {slow[0]} alone"] if len(slow) == 1 and len(self.by_experiment) > 1 else []
        return "; ".join([*found, *self._unlike(i)][:3])

    def _unlike(self, i: int) -> list[str]:
        """What the host has that at least four of five hosts of its group have otherwise."""
        group, found = np.flatnonzero(self.group == self.group[i]), list[str]()
        for fact, of_hosts in {**self.facts_of, **self.labels_of}.items():
            (usual, count), mine = Counter(of_hosts[group]).most_common(1)[0], of_hosts[i]
            if mine != usual and mine is not None and usual is not None and count >= 0.8 * len(group):
                found.append(f"{words(fact, str(mine))}, the others {words('', str(usual)).strip()}")
        return found

    def _trends(self, courses: Courses) -> Level:
        """Of each host the change over all days by its trend."""
        change, error, left = (np.full(len(self.names), np.nan) for _ in range(3))
        all_days = {d for course in courses.values() for d in course.days}
        span = max(all_days) - min(all_days) if all_days else 0.0
        for i, (days, ratio, _, open_) in courses.items():
            if len(days) >= FEWEST_DAYS_OF_A_TREND and days[-1] - days[0] >= span / 2:
                trend, deviation = slope(days, ratio)
                change[i], left[i] = trend * span, slope(days, open_)[0] * span if open_.any() else 0.0
                error[i] = np.hypot(deviation * span, left[i] / 1.96)
        return Level(change, error, left, np.full(len(self.names), float(len(all_days))))

    def _judge_trends(self, change: Level, steady: Floats, drifts: list[Effect], clock: bool = False) -> None:
        for effect in drifts:
            for name in effect.members:
                host = self.hosts[self.index[name]]
                if host.verdict not in ("slow", "looks slow"):
                    host.verdict, host.by_clock = f"becomes slower with {words(effect.fact, effect.value)}", clock
        for i, _, chance in self._found(steady, change.error):
            host = self.hosts[i]
            if host.verdict in ("as the others", "faster", "too noisy to say"):
                host.verdict, host.chance, host.by_clock = "becomes slower", chance, clock
                if clock:
                    host.reason = f"its clock becomes {apart(host.clock_change)}"

    def _groups(self) -> list[dict[str, Any]]:
        groups = []
        for g, key in enumerate(self.keys):
            of = np.flatnonzero(self.group == g)
            found = [found for i in of if (found := self.hosts[i].would_be_found)]
            known = [words(c, v) for c, v in zip(self.group_by, key.split("\x1f")) if v != "?"]
            said = {"hosts": len(of), "in_words": ", ".join(known), "judged": bool(found)}
            groups.append({**said, "would_be_found": float(np.median(found)) if found else None})
        return groups

    def _pictures(self, drifts: list[Effect]) -> dict[str, Any]:
        """What the report draws: ratios by host and case, daily courses, and facts that differ within a group."""
        rows: dict[str, Any] = self.connection.execute(
            "SELECT host, label, median(ratio) AS ratio FROM ratios GROUP BY host, label ORDER BY label"
        ).fetchnumpy()
        labels, column = np.unique(rows["label"].astype(str), return_inverse=True)
        heat = np.full((len(self.names), len(labels)), np.nan)
        heat[[self.index[h] for h in rows["host"].astype(str)], column] = _numbers(rows["ratio"])
        all_hosts = list(range(len(self.names)))
        courses = {"all hosts (median)": (all_hosts, False)}
        for e in drifts[:6]:
            of_what = ", period of the clock" if e.clock else ""
            courses[f"{words(e.fact, e.value)}{of_what} (median)"] = ([self.index[m] for m in e.members], e.clock)
        for host in [h for h in self.hosts if h.verdict == "becomes slower"][:6]:
            courses[host.name + (", period of the clock" if host.by_clock else "")] = (
                [self.index[host.name]],
                host.by_clock,
            )
        daily = {}
        for name, (members, clock) in courses.items():
            by_day = defaultdict(list)
            series = self.clocks if clock else self.series[""]
            for course in (series[i] for i in members if i in series):
                for day, ratio in zip(course.days, course.ratio):
                    by_day[day].append(ratio)
            dates = [str(np.datetime64(int(d), "D")) for d in sorted(by_day)]
            daily[name] = (dates, np.array([np.median(by_day[d]) for d in sorted(by_day)]))
        varied = []
        for fact, of_hosts in self.facts_of.items():
            for g in range(len(self.keys)):
                inside = self.group == g
                values = Counter(of_hosts[inside]).most_common(7)
                if 1 < len(values) < 0.5 * inside.sum():
                    for value, hosts in values[:6]:
                        of = inside & (of_hosts == value)
                        middles = {"ratio": _middle(self.level.value[of]), "clock": _middle(-self.clock.value[of])}
                        varied.append({"group": g, "fact": fact, "value": value, "hosts": hosts, **middles})
        return {"labels": list(labels), "heat": heat, "daily": daily, "varied": varied}


def _without(effects: list[Effect], drifts: list[Effect]) -> list[Effect]:
    """Without those that are told as becoming slower."""
    known = {(e.fact, e.value) for e in drifts}
    return [e for e in effects if (e.fact, e.value) not in known]


def _middle(logarithms: Floats) -> float | None:
    known = logarithms[~np.isnan(logarithms)]
    return exp(float(np.median(known))) if len(known) else None


def _explained(values: Floats, inside: Mask, effects: list[tuple[Effect, Mask]]) -> float:
    """By how much the sum of absolute deviations shrinks when these effects are taken out."""
    rest = values.copy()
    for effect, of in effects:
        rest[of] -= log(effect.ratio)
    before, after = (float(np.abs(v[inside] - np.median(v[inside])).sum()) for v in (values, rest))
    return before - after


def _texts(column: Any) -> list[str | None]:
    mask = np.ma.getmaskarray(column) if isinstance(column, np.ma.MaskedArray) else [False] * len(column)
    return [None if hidden or value is None else str(value) for value, hidden in zip(np.ma.getdata(column), mask)]


def _numbers(column: Any) -> Floats:
    values: Floats = np.ma.filled(np.ma.asarray(column, dtype=np.float64), np.nan)
    return values
