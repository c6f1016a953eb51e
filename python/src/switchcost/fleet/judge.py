"""Who is slow, and what goes with it (docs/fleet.md, "How hosts are judged")."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date
from math import exp, log
from typing import Any

import duckdb
import numpy as np

from .dataset import Dataset
from .findings import ALL, FEWEST_DAYS, Analysis, Effect, Host, words
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
GROUP = ["cpu_model", "cpu_stepping", "cpus", "numa_nodes", "hypervisor"]
# What may make it slow, the likeliest first.
FACTS = [
    "kernel",
    "microcode",
    "mitigations",
    "governor",
    "boost",
    "smt",
    "frequency_driver",
    "idle_driver",
    "idle_governor",
    "preemption",
    "clock_source",
    "transparent_huge_pages",
    "kernel_version",
    "program",
    "memory_bytes",
]
FEWEST_DAYS_OF_A_TREND = 7
TOO_NOISY = log(1.2)
# The share of a group's hosts from which a value is common enough to hold others against.
COMMON = 0.1
NO_DAYS = (np.empty(0), np.empty(0), np.empty(0))

# To the group's median of the same day, where enough hosts were measured on it: what all hosts have that day is out.
RATIOS = [
    """CREATE TEMP TABLE daily AS
    SELECT host, grp, date, experiment, label,
           avg(ln(estimate)) AS y, avg((high - low) / 3.92 / estimate) AS error
    FROM figures JOIN current USING (host, run) GROUP BY ALL""",
    """CREATE TEMP TABLE ratios AS
    WITH days AS (
        SELECT grp, label, date, median(y) AS middle FROM daily GROUP BY ALL HAVING count(*) >= $fewest
    ), all_days AS (SELECT grp, label, median(y) AS middle FROM daily GROUP BY ALL)
    SELECT host, date, experiment, label, error, y - coalesce(days.middle, all_days.middle) AS ratio
    FROM daily JOIN all_days USING (grp, label) LEFT JOIN days USING (grp, label, date)""",
]


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
        self.value, self.error, days = self._host_values("")
        for i, host in enumerate(self.hosts):
            host.days = int(days[i])
            host.ratio = None if np.isnan(self.value[i]) else exp(self.value[i])
        # A group's slow part is told of as a whole; its hosts are held against each other.
        effects, adjusted = self._effects(self.value)
        change, change_error, span = self._trends()
        drifts, steady = self._effects(change)
        in_drift = {m for e in drifts for m in e.members}
        known = {(e.fact, e.value) for e in drifts}
        effects = [e for e in effects if (e.fact, e.value) not in known]
        self._judge(adjusted, days, in_drift)
        self._judge_trends(change, steady, change_error, drifts)
        return Analysis(
            groups=self._groups(),
            hosts=self.hosts,
            slow=self._with("slow"),
            suspects=self._with("looks slow"),
            drifting=sorted((h for h in self.hosts if h.verdict == "becomes slower"), key=lambda h: -(h.change or 0)),
            faster=self._with("faster")[::-1],
            noisy=self._with("too noisy to say"),
            effects=effects,
            drifts=drifts,
            never_answered=self.dataset.never_answered(),
            days=span,
            limit=exp(self.limit) - 1,
            false_alarms=self.false_alarms,
            **self._pictures(drifts),
        )

    def _with(self, verdict: str) -> list[Host]:
        return sorted((h for h in self.hosts if h.verdict == verdict), key=lambda h: -(h.ratio or 0))

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
        facts = [f for f in FACTS if f in columns]
        chosen = ", ".join(f"CAST(arg_max({f}, started) AS VARCHAR) AS {f}" for f in facts)
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
        self.facts_of = {f: np.array(_texts(rows[f]), dtype=object) for f in facts if f not in self.group_by}
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
            """SELECT host, date, coalesce(experiment, '') AS experiment, median(ratio) AS ratio, median(error) AS error
            FROM ratios GROUP BY GROUPING SETS ((host, date), (host, date, experiment)) ORDER BY host, date"""
        ).fetchnumpy()
        self.series: dict[str, dict[int, tuple[Floats, Floats, Floats]]] = {}
        hosts, days = rows["host"].astype(str), rows["date"].astype("datetime64[D]").astype(np.int64).astype(np.float64)
        ratio, error = _numbers(rows["ratio"]), np.nan_to_num(_numbers(rows["error"]))
        for experiment in ["", *self.experiments]:
            of = np.flatnonzero(rows["experiment"].astype(str) == experiment)
            parts = np.split(of, np.flatnonzero(hosts[of][1:] != hosts[of][:-1]) + 1)
            self.series[experiment] = {
                self.index[hosts[part[0]]]: (days[part], ratio[part], error[part]) for part in parts if len(part)
            }

    def _host_values(self, experiment: str) -> tuple[Floats, Floats, Floats]:
        """Of each host the median over days, its standard error, and the number of days."""
        value, own, reading = (np.full(len(self.names), np.nan) for _ in range(3))
        count = np.zeros(len(self.names))
        for i, (days, ratio, error) in self.series[experiment].items():
            value[i], own[i], reading[i], count[i] = np.median(ratio), spread(ratio), np.median(error), len(days)
        there = count > 0
        errors = np.full(len(self.names), np.nan)
        errors[there] = median_errors(own[there], count[there], reading[there])
        return value, errors, count

    def _effects(self, values: Floats) -> tuple[list[Effect], Floats]:
        """Values of facts whose hosts are slower as a whole; and all values with these, and the groups, taken out."""
        passes = [(g, self.group == g, self.facts_of) for g in range(len(self.keys))]
        passes.append((ALL, self.group >= 0, self.labels_of))
        tests = max(1, sum(len(set(v[of])) for _, of, facts in passes for v in facts.values()))
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
                    f: self._slow_values(rest, inside, group, f, v, self.false_alarms / tests) for f, v in left.items()
                }
                gains = {f: _explained(rest, inside, effects) for f, effects in explained.items()}
                best = max(gains, key=lambda f: gains[f])
                if gains[best] <= 0:
                    break
                for effect, of in explained[best]:
                    rest[of] -= log(effect.ratio)
                    effect.together_with = self._same_hosts(of, inside, {f: v for f, v in facts.items() if f != best})
                    found.append(effect)
                del left[best]
        return sorted(found, key=lambda e: -e.ratio), rest

    def _slow_values(
        self, rest: Floats, inside: Mask, group: int, fact: str, of_hosts: Any, chance: float
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
            if shift >= self.limit and p <= chance:
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

    def _judge(self, adjusted: Floats, days: Floats, in_drift: set[str]) -> None:
        """The verdict of each host: over all experiments together, and in each alone where there are several."""
        kinds = [""] + (self.experiments if len(self.experiments) > 1 else [])
        self.by_experiment = {e: self._host_values(e) for e in kinds[1:]}
        tests = self.tests = len(self.names) * (len(kinds) + 2)  # one more for the trend, one for faster hosts
        for experiment in kinds:
            value, error = adjusted, self.error
            if experiment:
                value, error, _ = self.by_experiment[experiment]
                value = value - (self.value - adjusted)
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
        """What the host has that at least four of five hosts of its group have otherwise; `sign` is -1 of faster."""
        group = np.flatnonzero(self.group == self.group[i])
        slow = [e for e, (value, _, _) in self.by_experiment.items() if sign * value[i] >= self.limit]
        found = [f"in {slow[0]} alone"] if len(slow) == 1 and len(self.by_experiment) > 1 else []
        for fact, of_hosts in {**self.facts_of, **self.labels_of}.items():
            (usual, count), mine = Counter(of_hosts[group]).most_common(1)[0], of_hosts[i]
            if mine != usual and mine is not None and usual is not None and count >= 0.8 * len(group):
                found.append(f"{words(fact, str(mine))}, the others {words('', str(usual)).strip()}")
        return "; ".join(found[:3])

    def _trends(self) -> tuple[Floats, Floats, int]:
        """Of each host the change over all days by its trend, its standard error, and the number of days."""
        change, error = np.full(len(self.names), np.nan), np.full(len(self.names), np.nan)
        all_days = sorted({d for days, _, _ in self.series[""].values() for d in days})
        span = all_days[-1] - all_days[0] if all_days else 0.0
        for i, (days, ratio, _) in self.series[""].items():
            if len(days) >= FEWEST_DAYS_OF_A_TREND and days[-1] - days[0] >= span / 2:
                trend, deviation = slope(days, ratio)
                change[i], error[i] = trend * span, deviation * span
        return change, error, len(all_days)

    def _judge_trends(self, change: Floats, steady: Floats, error: Floats, drifts: list[Effect]) -> None:
        for effect in drifts:
            for name in effect.members:
                self.hosts[self.index[name]].verdict = f"becomes slower with {words(effect.fact, effect.value)}"
        for group in range(len(self.keys)):
            of = np.flatnonzero((self.group == group) & ~np.isnan(change))
            seen = excess(steady[of], error[of])
            for at, i in enumerate(of):
                host = self.hosts[i]
                host.change = exp(change[i])
                if seen is None or host.verdict not in ("as the others", "faster", "too noisy to say"):
                    continue
                if seen.value[at] >= self.limit and seen.probability[at] * self.tests <= self.false_alarms:
                    host.verdict, host.chance = "becomes slower", float(seen.probability[at])

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
        courses = {f"{words(e.fact, e.value)} (median)": [self.index[m] for m in e.members] for e in drifts[:6]}
        for host in [h for h in self.hosts if h.verdict == "becomes slower"][:6]:
            courses[host.name] = [self.index[host.name]]
        daily = {}
        for name, members in {"all hosts (median)": list(range(len(self.names))), **courses}.items():
            by_day = defaultdict(list)
            for i in members:
                days, ratios, _ = self.series[""].get(i, NO_DAYS)
                for day, ratio in zip(days, ratios):
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
                        ratios = self.value[inside & (of_hosts == value)]
                        ratios = ratios[~np.isnan(ratios)]
                        middle = exp(float(np.median(ratios))) if len(ratios) else None
                        varied.append({"group": g, "fact": fact, "value": value, "hosts": hosts, "ratio": middle})
        return {"labels": list(labels), "heat": heat, "daily": daily, "varied": varied}


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
