"""Who is slow, and what goes with it (docs/fleet.md, "How hosts are judged")."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dataset import Dataset
from .effects import effects
from .findings import ALL, FEWEST_DAYS, Analysis, Effect, Host, apart, percent, words
from .measured import GROUP, Fleet, Level
from .statistics import FEWEST_HOSTS, Excess, Floats, excess

TOO_NOISY = log(1.2)
SLOW = ("slow", "looks slow")


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
        fleet = Fleet(dataset, connection, labels or {}, group_by or GROUP, (since, until))
        return _Judge(fleet, log(1 + limit), false_alarms).analysis()


class _Judge:
    def __init__(self, fleet: Fleet, limit: float, false_alarms: float) -> None:
        self.fleet, self.limit, self.false_alarms = fleet, limit, false_alarms
        self.level, self.clock = fleet.levels(fleet.series[""]), fleet.levels(fleet.clocks)
        self.change, self.clock_change = fleet.trends(fleet.series[""]), fleet.trends(fleet.clocks)
        several = fleet.experiments if len(fleet.experiments) > 1 else []
        self.by_experiment = {e: fleet.levels(fleet.series[e]) for e in several}
        # All experiments together and each, the trend and faster hosts; of clocks the first, the trend and faster ones.
        self.tests = len(fleet.names) * (1 + len(several) + 2 + 3 * bool(fleet.clocks))
        self.hosts = [Host(n, int(fleet.group[i]), int(self.level.days[i])) for i, n in enumerate(fleet.names)]
        for i, host in enumerate(self.hosts):
            host.noise = fleet.noise[i]
            host.ratio, host.change = _ratio(self.level.value[i]), _ratio(self.change.value[i])
            host.clock, host.clock_change = _ratio(-self.clock.value[i]), _ratio(-self.clock_change.value[i])

    def analysis(self) -> Analysis:
        parts, drifts = self._judge(self.level, self.change, False)
        of_clocks, clock_drifts = self._judge(self.clock, self.clock_change, True)
        found = Analysis(
            groups=self._groups(),
            hosts=self.hosts,
            effects=sorted(parts + of_clocks, key=lambda e: -e.ratio),
            drifts=drifts + clock_drifts,
            never_answered=self.fleet.dataset.never_answered(),
            days=len({d for course in self.fleet.series[""].values() for d in course.days}),
            limit=exp(self.limit) - 1,
            false_alarms=self.false_alarms,
            varied=self.fleet.varied(self.level, self.clock),
        )
        found.labels, found.heat = self.fleet.by_case()
        of_what = {False: "", True: ", period of the clock"}
        courses = [("all hosts (median)", self.fleet.names, False)]
        for e in found.drifts[:6]:
            courses.append((f"{words(e.fact, e.value)}{of_what[e.clock]} (median)", e.members, e.clock))
        courses += [(h.name + of_what[h.by_clock], [h.name], h.by_clock) for h in found.drifting[:6]]
        found.daily = {name: self.fleet.daily(members, clock) for name, members, clock in courses}
        return found

    def _judge(self, level: Level, change: Level, clock: bool) -> tuple[list[Effect], list[Effect]]:
        """Of costs, or of clocks by their period, what is slow as a whole, and what becomes slower as a whole."""
        # A group's slow part is told of as a whole; its hosts are held against each other.
        found, adjusted = effects(self.fleet, level, self.limit, self.false_alarms, clock)
        drifts, steady = effects(self.fleet, change, self.limit, self.false_alarms, clock)
        in_drift = {m for e in drifts for m in e.members}
        judges = self._judge_clocks if clock else self._judge_levels
        judges(adjusted, in_drift)
        self._judge_trends(change, steady, drifts, clock)
        for effect in found:
            effect.per_cycle_as_others = clock and self._is_alike(effect)
        known = {(e.fact, e.value) for e in drifts}
        return [e for e in found if (e.fact, e.value) not in known], drifts

    def _judge_levels(self, adjusted: Floats, in_drift: set[str]) -> None:
        """The verdict of each host: over all experiments together, and in each alone where there are several."""
        self.adjusted = adjusted
        for experiment, level in {"": self.level, **self.by_experiment}.items():
            value = level.value - (self.level.value - adjusted)
            if not experiment:
                self._judge_together(value, level.error)
            for i, above, chance in self._found(value, level.error):
                host = self.hosts[i]
                if host.name not in in_drift and host.verdict not in SLOW:
                    host.verdict = "slow" if self.level.days[i] >= FEWEST_DAYS else "looks slow"
                    host.chance, host.ratio = chance, exp(above)
                    host.experiment, host.reason = experiment or None, self._reason(i)
        for host in self.hosts:
            if host.verdict == "not judged" and (self.fleet.group == host.group).sum() >= FEWEST_HOSTS:
                host.verdict, host.reason = "too noisy to say", "no figure at full speed"
            elif host.verdict == "as the others" and host.noise == "unusable":
                host.verdict, host.reason = "too noisy to say", "most runs found the machine unusable"

    def _judge_together(self, values: Floats, errors: Floats) -> None:
        """Over all experiments: which hosts could not be found if they were slow, and which are faster."""
        for of, seen in self._seen(values, errors):
            needed = seen.tail.threshold(self.false_alarms / self.tests) * seen.scale
            for i, by in zip(of, needed):
                self.hosts[i].would_be_found = exp(max(by, self.limit))
                self.hosts[i].verdict = "too noisy to say" if by > TOO_NOISY else "as the others"
        for i, under, chance in self._found(-values, errors):
            host = self.hosts[i]
            host.verdict, host.chance = "faster", chance
            host.ratio, host.reason = exp(-under), self._reason(i, -1)

    def _seen(self, values: Floats, errors: Floats) -> Iterator[tuple[NDArray[np.int64], Excess]]:
        """Of each group that is large enough the hosts that have a value, and how far above the group they are."""
        for group in range(len(self.fleet.keys)):
            of = np.flatnonzero((self.fleet.group == group) & ~np.isnan(values))
            if seen := excess(values[of], errors[of]):
                yield of, seen

    def _found(self, values: Floats, errors: Floats) -> Iterator[tuple[int, float, float]]:
        """Hosts that are above their group beyond chance and the limit: which, by how much, how probable that is."""
        for of, seen in self._seen(values, errors):
            odd = (seen.value >= self.limit) & (seen.probability * self.tests <= self.false_alarms)
            for at in np.flatnonzero(odd):
                yield int(of[at]), float(seen.value[at]), float(seen.probability[at])

    def _reason(self, i: int, sign: int = 1) -> str:
        """In what alone the host is slow, and what it has that others have not; `sign` is -1 of faster."""
        slow = [e for e, level in self.by_experiment.items() if sign * level.value[i] >= self.limit]
        found = [f"in {slow[0]} alone"] if len(slow) == 1 else []
        return "; ".join([*found, *self.fleet.unlike(i)][:3])

    def _judge_clocks(self, adjusted: Floats, in_drift: set[str]) -> None:
        """As costs are judged; a host that is slow per cycle remains so."""
        for sign, verdict in ((1, "slow"), (-1, "faster")):
            for i, above, chance in self._found(sign * adjusted, self.clock.error):
                if self.hosts[i].name not in in_drift:
                    self._judge_clock(i, sign * above, verdict, chance)

    def _judge_clock(self, i: int, period: float, verdict: str, chance: float) -> None:
        host = self.hosts[i]
        host.clock = exp(-period)
        said = f"its clock is {apart(host.clock)}"
        if host.verdict in SLOW or (verdict == "faster" and host.verdict == "faster"):
            host.reason = "; ".join(filter(None, [said, host.reason]))
        elif not host.verdict.startswith("becomes slower"):
            parts = [said, self._per_cycle(i), *self.fleet.unlike(i)]
            host.verdict = "looks slow" if verdict == "slow" and self.clock.days[i] < FEWEST_DAYS else verdict
            host.by_clock, host.chance, host.reason = True, chance, "; ".join(parts[:4])

    def _is_alike(self, effect: Effect) -> bool:
        """Whether costs at one clock are those of the others, whatever bringing them there leaves open."""
        of, group = np.isin(self.fleet.names, effect.members), self.fleet.group
        others = ~of & (group == effect.group if effect.group != ALL else group >= 0)
        shift, left = (np.nanmedian(v[of]) - np.nanmedian(v[others]) for v in (self.level.value, self.level.open))
        return bool(abs(shift) + abs(left) < self.limit)

    def _per_cycle(self, i: int) -> str:
        """What the host's costs are at one clock."""
        value, error = self.adjusted[i], 1.96 * self.level.error[i]
        alike = self.hosts[i].verdict == "as the others" and abs(value) + error < self.limit
        how = "as the others" if alike else "faster" if self.hosts[i].verdict == "faster" else "inconclusive"
        of = f"{percent(exp(value))}, {percent(exp(value - error))} to {percent(exp(value + error))}"
        return f"per cycle {how} ({of})"

    def _judge_trends(self, change: Level, steady: Floats, drifts: list[Effect], clock: bool) -> None:
        for effect in drifts:
            for name in effect.members:
                host = self.hosts[self.fleet.index[name]]
                if host.verdict not in SLOW:
                    host.verdict, host.by_clock = f"becomes slower with {words(effect.fact, effect.value)}", clock
        for i, _, chance in self._found(steady, change.error):
            host = self.hosts[i]
            if host.verdict in ("as the others", "faster", "too noisy to say"):
                host.verdict, host.chance, host.by_clock = "becomes slower", chance, clock
                if clock:
                    host.reason = f"its clock becomes {apart(host.clock_change)}"

    def _groups(self) -> list[dict[str, Any]]:
        groups = []
        for g, key in enumerate(self.fleet.keys):
            of = np.flatnonzero(self.fleet.group == g)
            found = [found for i in of if (found := self.hosts[i].would_be_found)]
            known = [words(c, v) for c, v in zip(self.fleet.group_by, key.split("\x1f")) if v != "?"]
            said = {"hosts": len(of), "in_words": ", ".join(known), "judged": bool(found)}
            groups.append({**said, "would_be_found": float(np.median(found)) if found else None})
        return groups


def _ratio(logarithm: float) -> float | None:
    return None if np.isnan(logarithm) else exp(logarithm)
