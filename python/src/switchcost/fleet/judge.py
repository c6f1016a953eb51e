"""Who is slow, and what goes with it (docs/fleet.md, "How hosts are judged")."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from math import exp, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .acknowledged import Acknowledged
from .dataset import Dataset
from .effects import effects
from .findings import (
    ALL,
    FEWEST_DAYS,
    Analysis,
    Effect,
    Host,
    LevelChange,
    Verdict,
    apart,
    percent,
    whole_percent,
    words,
)
from .measured import GROUP, Fleet, Level
from .statistics import FEWEST_HOSTS, Floats, Mask, spread
from .tails import Noise, Tail, certainty, days_needed, discoveries, tail_of

TOO_NOISY = log(1.2)
# A host of too few runs to be judged is measured again from here on, in deviations of its group.
MEASURED_AGAIN = 5
# Of hosts that are slower by these shares the report says how many would be named.
POWER_OF = (0.05, 0.1, 0.2)
# As if a group knew its own width from so many hosts less.
WIDTH_OF = 50


def analyse(
    dataset: Dataset,
    *,
    labels: dict[str, dict[str, str]] | None = None,
    group_by: list[str] | None = None,
    since: date = date.min,
    until: date = date.max,
    limit: float = 0.03,
    false_alarms: float = 0.05,
    fdr: float = 0.05,
    acknowledged: dict[str, Acknowledged] | None = None,
) -> Analysis:
    """Judge every host within its group. Raises FleetError, with code 2 where the days asked for have no runs.

    `limit`: no host is called slow below this share. `false_alarms`: the probability that one or more sound hosts
    of the whole fleet are called slow for certain. `fdr`: the share of sound hosts among those that are called
    probably slow.
    """
    with dataset.connect() as connection:
        fleet = Fleet(dataset, connection, labels or {}, group_by or GROUP, (since, until))
        return _Judge(fleet, log(1 + limit), false_alarms, fdr).analysis(acknowledged or {})


class _Seen(NamedTuple):
    """Of one experiment, the clock or a trend: hosts by number, how far each is above its group, and how improbable."""

    hosts: NDArray[np.int64]
    above: Floats
    #: Of a sound host to be as far above: probably, and at most.
    chance: Floats
    safe: Floats
    certain_below: float
    #: By how much each would have to be above to be as improbable as this.
    tail: Tail
    noise: Noise
    widths: Floats


class _Judge:
    def __init__(self, fleet: Fleet, limit: float, false_alarms: float, fdr: float) -> None:
        self.fleet, self.limit, self.false_alarms, self.fdr = fleet, limit, false_alarms, fdr
        self.levels = {e: fleet.level(course) for e, course in fleet.courses.items()}
        self.clock = fleet.level(fleet.clocks)
        self.changes = {e: fleet.trend(course) for e, course in fleet.courses.items()}
        self.clock_change = fleet.trend(fleet.clocks)
        has_clock = not np.isnan(self.clock.value).all()
        # Each experiment, the clock, and the trends of both.
        self.tests = 2 * max(1, len(self.levels) + has_clock)
        days = self._worst(self.levels, "days")
        self.hosts = [Host(n, int(fleet.group[i]), int(days[i])) for i, n in enumerate(fleet.names)]
        ratio, change = self._worst(self.levels, "value"), self._worst(self.changes, "value")
        for i, host in enumerate(self.hosts):
            host.noise = fleet.noises[i]
            host.ratios = {e: exp(v) for e, level in self.levels.items() if not np.isnan(v := level.value[i])}
            host.ratio, host.change = _ratio(ratio[i]), _ratio(change[i])
            host.clock, host.clock_change = _ratio(-self.clock.value[i]), _ratio(-self.clock_change.value[i])
        #: Values with what parts have in common taken out, by experiment.
        self.rest: dict[str, Floats] = {}
        #: How far sound hosts of each group differ (standard deviation).
        self.group_scatter = np.full(len(fleet.keys), np.nan)
        #: Of each host, were it slower by POWER_OF, how probably it would be named.
        self.named_shares = np.zeros((len(self.hosts), len(POWER_OF)))

    def _worst(self, levels: dict[str, Level], field: str) -> Floats:
        """Of each host the largest over experiments."""
        with np.errstate(all="ignore"):
            columns = [np.where(np.isnan(one), -np.inf, one) for one in (getattr(v, field) for v in levels.values())]
        found = np.max(columns, axis=0) if columns else np.full(len(self.fleet.names), -np.inf)
        return np.where(np.isfinite(found), found, 0.0 if field == "days" else np.nan)

    def analysis(self, acknowledged: dict[str, Acknowledged]) -> Analysis:
        parts, drifts = [], list[Effect]()
        in_drift: set[str] = set()
        for experiment, level in [*self.levels.items(), ("", self.clock)]:
            change = self.changes.get(experiment, self.clock_change)
            found, self.rest[experiment] = self._effects(level, experiment)
            becoming, steady = self._effects(change, experiment)
            known = {(e.fact, e.value) for e in becoming}
            parts += [e for e in found if (e.fact, e.value) not in known]
            drifts += becoming
            in_drift |= {m for e in becoming for m in e.members}
            self.rest[f"trend {experiment}"] = steady
        for effect in parts:
            effect.per_cycle_as_others = effect.clock and self._is_alike(effect)
        self._find_steps(in_drift, parts)
        self._judge_levels(in_drift)
        self._judge_clocks(in_drift)
        self._judge_trends(drifts)
        self._judge_steps()
        for host in self.hosts:
            if host.name in acknowledged and host.is_alarming():
                host.acknowledgement = acknowledged[host.name]
        courses = self.fleet.courses.values()
        analysis = Analysis(
            groups=self._groups(),
            hosts=self.hosts,
            effects=sorted(parts, key=lambda e: -e.ratio),
            drifts=sorted(drifts, key=lambda e: -e.ratio),
            never_answered=self.fleet.dataset.never_answered(),
            days=len({int(d) for course in courses for d in course.days}),
            limit=exp(self.limit) - 1,
            false_alarms=self.false_alarms,
            fdr=self.fdr,
            varied=self.fleet.varied(self.levels, self.clock),
            period=self.fleet.period(),
            in_future=self.fleet.in_future,
        )
        analysis.labels, analysis.heat = self.fleet.by_case()
        self._draw_courses(analysis)
        return analysis

    def _draw_courses(self, analysis: Analysis) -> None:
        of = dict(self.fleet.courses, **{"": self.fleet.clocks})
        named = [(words(e.fact, e.value), e.members, e.experiment) for e in analysis.drifts[:6]]
        named += [(h.name, [h.name], "" if h.by_clock else h.experiment or "") for h in analysis.becoming_slower[:6]]
        for h in analysis.slower_since:
            analysis.step_courses[h.name] = self.fleet.daily([h.name], of[h.experiment or ""])
        first = next(iter(self.fleet.courses), "")
        for name, members, experiment in [("all hosts", self.fleet.names, named[0][2] if named else first), *named]:
            said = "" if len(self.levels) < 2 and experiment else f", {experiment or 'period of the clock'}"
            median = " (median)" if len(members) > 1 else ""
            analysis.daily[f"{name}{said}{median}"] = self.fleet.daily(members, of[experiment])

    def _effects(self, level: Level, experiment: str) -> tuple[list[Effect], Floats]:
        """A group's slow part is told of as a whole; its hosts are held against each other."""
        found, rest = effects(self.fleet, level, self.limit, self.false_alarms / (self.tests / 2))
        for effect in found:
            effect.experiment, effect.clock = experiment, not experiment
        return found, rest

    def _seen(self, values: Floats, level: Level, sign: int = 1, simulated: bool = True) -> _Seen | None:
        """Hosts of groups that are large enough, by one distribution of all sound hosts."""
        fleet, widths = self.fleet, np.full(len(values), np.nan)
        above = np.full(len(values), np.nan)
        judged: list[Mask] = []
        for group in range(len(fleet.keys)):
            of = (fleet.group == group) & ~np.isnan(values)
            if of.sum() >= FEWEST_HOSTS:
                apart, open_ = (v[of] - np.median(v[of]) for v in (values, level.open))
                # What bringing it to one clock leaves open is taken off: the host has the benefit of the doubt.
                above[of] = sign * np.sign(apart) * np.maximum(np.abs(apart) - np.abs(open_), 0)
                judged.append(of)
        if not judged:
            return None
        usual = max(spread(above[~np.isnan(above)]), 1e-4)
        for of in judged:
            widths[of] = sqrt((of.sum() * spread(above[of]) ** 2 + WIDTH_OF * usual**2) / (of.sum() + WIDTH_OF)) / usual
        hosts = np.flatnonzero(~np.isnan(above))
        width = widths[hosts]
        limit = self.limit / float(width.max())
        noise = fleet.noise(level, hosts, width, self.limit)
        scaled = above[hosts] / width
        tail = tail_of(scaled, noise, limit)
        chance, safe = tail.expected_probability(scaled, noise.kind), tail.safe_probability(scaled, noise.kind)
        alarms = self.false_alarms / self.tests
        below = certainty(tail, noise, limit, alarms) if simulated else alarms / len(hosts)
        return _Seen(hosts, above[hosts], chance, safe, below, tail, noise, width)

    def _judge_levels(self, in_drift: set[str]) -> None:
        """Each experiment apart; the host's worst is told."""
        count = len(self.fleet.names)
        chance, named_by = np.ones(count), np.full(count, "", dtype=object)
        above, certain, needed = np.zeros(count), np.zeros(count, bool), np.full(count, np.inf)
        seen_of = {e: seen for e, level in self.levels.items() if (seen := self._seen(self.rest[e], level))}
        # Hosts with a verdict that goes before: were they counted as found, more of the others could be sound.
        told_apart = np.array([host.step is not None or host.name in in_drift for host in self.hosts])
        for experiment, seen in seen_of.items():
            level, course = self.levels[experiment], self.fleet.courses[experiment]
            # A host is slow on a day that is half as far as the host itself; so far some runs are by chance.
            half = np.full(count, self.limit)
            half[seen.hosts] = np.maximum(seen.above / 2, self.limit)
            days = self.fleet.days_above(course, level.value - self.rest[experiment], half)[seen.hosts]
            rest = np.sort(level.rest)
            shares = (len(rest) - np.searchsorted(rest, half[seen.hosts], side="right") + 1) / (len(rest) + 2)
            far = seen.above >= self.limit
            open_ = far & (seen.safe > seen.certain_below) & ~told_apart[seen.hosts]
            likely = discoveries(seen.chance[open_] * len(seen_of), count, self.fdr) if open_.any() else 0
            thresholds = self._thresholds(seen, likely)
            self._note_power(seen, thresholds)
            for i, at in zip(seen.hosts, range(len(seen.hosts)), strict=True):
                needed[i] = min(needed[i], thresholds[at])
                if not far[at]:
                    continue
                measured = int(level.days[i])
                if measured < FEWEST_DAYS:
                    self._measured_again(i, seen, at, experiment)
                    continue
                allowed = [self.fdr / 2 * max(1, likely), self.false_alarms / self.tests]
                enough = [days[at] >= days_needed(measured, float(shares[at]), count, by) for by in allowed]
                if enough[0] and seen.chance[at] * len(seen_of) < chance[i]:
                    chance[i], above[i], named_by[i] = seen.chance[at] * len(seen_of), seen.above[at], experiment
                certain[i] |= enough[1] and seen.safe[at] <= seen.certain_below
        order = np.argsort(np.where(certain | told_apart, np.inf, chance), kind="stable")
        found = order[: discoveries(chance[(chance < 1) & ~certain & ~told_apart], count, self.fdr)]
        judged = {int(i) for seen in seen_of.values() for i in seen.hosts}
        for i in sorted(judged):
            self.hosts[i].would_be_found = exp(max(needed[i], self.limit))
            if self.hosts[i].verdict == Verdict.NOT_COMPARED:
                self.hosts[i].verdict = Verdict.AS_THE_OTHERS
        for i in {*np.flatnonzero(certain).tolist(), *found.tolist()}:
            host = self.hosts[i]
            if host.name not in in_drift and named_by[i]:
                host.verdict = Verdict.SLOW if certain[i] else Verdict.PROBABLY_SLOW
                host.chance, host.ratio = float(chance[i]), exp(above[i])
                host.experiment = str(named_by[i])
                host.reason = self._reason(i, host.experiment)
        self._judge_faster(seen_of)
        for i, host in enumerate(self.hosts):
            if host.verdict == Verdict.NOT_COMPARED and (self.fleet.group == host.group).sum() >= FEWEST_HOSTS:
                host.verdict, host.reason = Verdict.CANNOT_BE_JUDGED, "no figure at full speed"
            elif host.verdict == Verdict.AS_THE_OTHERS and host.noise == "unusable":
                host.verdict, host.reason = Verdict.CANNOT_BE_JUDGED, "most runs found the machine unusable"
            elif host.verdict == Verdict.AS_THE_OTHERS and needed[i] > TOO_NOISY:
                host.verdict, host.reason = Verdict.CANNOT_BE_JUDGED, self._why_not_judged(host, i)

    def _why_not_judged(self, host: Host, i: int) -> str:
        """Whether its group scatters too much, or it alone."""
        group = self.fleet.group == host.group
        usual = float(np.median([h.would_be_found for h in self.hosts if h.group == host.group and h.would_be_found]))
        scatter = self.group_scatter[host.group]
        if log(usual) > TOO_NOISY:
            only = f"only one {whole_percent(usual - 1)} slower would stand out"
            differ = f"sound hosts of group {host.group + 1} differ by {whole_percent(exp(scatter) - 1)}"
            return f"{differ}, so {only}"
        days = np.nanmedian([level.days[group].max() for level in self.levels.values()])
        if host.days < days / 2:
            return f"{host.days} runs, where others have {days:.0f}"
        return "its own figures differ too much from day to day"

    def _note_power(self, seen: _Seen, thresholds: Floats) -> None:
        """Notes by how much sound hosts differ, and which share of slower ones would be named."""
        for group in range(len(self.group_scatter)):
            inside = self.fleet.group[seen.hosts] == group
            if inside.any():
                self.group_scatter[group] = np.fmin(self.group_scatter[group], spread(seen.above[inside]))
        for column, slower in enumerate(POWER_OF):
            sound = (thresholds - log(1 + slower)) / seen.widths
            shares = seen.tail.share_above(sound, seen.noise.kind)
            named = self.named_shares[seen.hosts, column]
            self.named_shares[seen.hosts, column] = np.maximum(named, shares)

    def _thresholds(self, seen: _Seen, likely: int) -> Floats:
        """Returns how far each host would have to be above its group to be named."""
        chance = self.fdr * max(1, likely) / len(self.fleet.names) / len(self.levels)
        thresholds: Floats = seen.tail.values(chance)[seen.noise.kind] * seen.widths
        return np.maximum(thresholds, self.limit)

    def _measured_again(self, i: int, seen: _Seen, at: int, experiment: str) -> None:
        host = self.hosts[i]
        if seen.above[at] > MEASURED_AGAIN * spread(seen.above):
            host.verdict, host.experiment, host.ratio = Verdict.MEASURE_AGAIN, experiment, exp(seen.above[at])

    def _judge_faster(self, seen_of: dict[str, _Seen]) -> None:
        for experiment in seen_of:
            seen = self._seen(self.rest[experiment], self.levels[experiment], -1, simulated=False)
            for i, above, chance in self._certain(seen):
                host = self.hosts[i]
                if host.verdict == Verdict.AS_THE_OTHERS and self.levels[experiment].days[i] >= FEWEST_DAYS:
                    host.verdict, host.chance, host.experiment = Verdict.FASTER, chance, experiment
                    host.ratio, host.reason = exp(-above), self._reason(i, experiment, -1)

    def _certain(self, seen: _Seen | None) -> Iterator[tuple[int, float, float]]:
        """Hosts that are above their group for certain: which, by how much, how probable that is."""
        if seen:
            for at in np.flatnonzero((seen.above >= self.limit) & (seen.safe <= seen.certain_below)):
                yield int(seen.hosts[at]), float(seen.above[at]), float(seen.safe[at])

    def _reason(self, i: int, experiment: str, sign: int = 1) -> str:
        """In what alone the host is slow, and what it has that others have not; `sign` is -1 of faster."""
        slow = [e for e, level in self.levels.items() if sign * level.value[i] >= self.limit]
        found = [f"in {experiment} alone"] if len(self.levels) > 1 and slow == [experiment] else []
        found += [f"most in {experiment}"] if len(slow) > 1 else []
        return "; ".join([*found, *self.fleet.unlike(i)][:3])

    def _judge_clocks(self, in_drift: set[str]) -> None:
        """The clock's period in place of a cost; a host that is slow per cycle remains so."""
        for sign, verdict in ((1, Verdict.SLOW), (-1, Verdict.FASTER)):
            for i, above, chance in self._certain(self._seen(self.rest[""], self.clock, sign, simulated=False)):
                if self.hosts[i].name not in in_drift:
                    self._judge_clock(i, sign * above, verdict, chance)

    def _judge_clock(self, i: int, period: float, verdict: Verdict, chance: float) -> None:
        host = self.hosts[i]
        host.clock = exp(-period)
        said = f"its clock is {percent(host.clock).lstrip('+-')} {'below' if period > 0 else 'above'} its group's"
        if verdict == Verdict.SLOW:
            said += " (power, cooling, governor?)"
        if host.is_slow() or (verdict == host.verdict == Verdict.FASTER):
            host.reason = "; ".join(filter(None, [said, host.reason]))
        elif host.verdict != Verdict.PART_BECOMING_SLOWER:
            parts = [said, self._at_equal_clock(i), *self.fleet.unlike(i)]
            few = verdict == Verdict.SLOW and self.clock.days[i] < FEWEST_DAYS
            host.verdict = Verdict.MEASURE_AGAIN if few else verdict
            host.by_clock, host.chance, host.reason = True, chance, "; ".join(parts[:4])

    def _is_alike(self, effect: Effect) -> bool:
        """Whether costs at one clock are those of the others, whatever bringing them there leaves open."""
        of, group = np.isin(self.fleet.names, effect.members), self.fleet.group
        others = ~of & (group == effect.group if effect.group != ALL else group >= 0)
        apart = [
            sum(abs(np.nanmedian(v[of]) - np.nanmedian(v[others])) for v in (level.value, level.open))
            for level in self.levels.values()
        ]
        return bool(max(apart) < self.limit)

    def _at_equal_clock(self, i: int) -> str:
        """What the host's costs are at one clock: of the experiment that is furthest from the others."""
        there = [e for e in self.levels if not np.isnan(self.rest[e][i])]
        if not there:
            return "at equal clock its costs are not known"
        furthest = max(there, key=lambda e: abs(self.rest[e][i]))
        level = self.levels[furthest]
        value, error = self.rest[furthest][i], float(np.hypot(1.96 * level.error[i], level.open[i]))
        low, high = percent(exp(value - error)), percent(exp(value + error))
        interval = f"{percent(exp(value))} ({low} to {high})"
        verdict = self.hosts[i].verdict
        if verdict == Verdict.AS_THE_OTHERS and abs(value) + error < self.limit:
            return f"at equal clock as the others: {interval}"
        if verdict == Verdict.FASTER:
            return f"at equal clock faster: {interval}"
        return f"at equal clock it may be {'slower too' if value > 0 else 'as the others'}: {interval}"

    def _judge_trends(self, drifts: list[Effect]) -> None:
        for effect in drifts:
            for name in effect.members:
                host = self.hosts[self.fleet.index[name]]
                if not host.is_slow():
                    host.verdict, host.by_clock = Verdict.PART_BECOMING_SLOWER, effect.clock
                    host.reason = f"with {words(effect.fact, effect.value)}"
        replaced = (Verdict.AS_THE_OTHERS, Verdict.FASTER, Verdict.CANNOT_BE_JUDGED)
        for experiment, change in [*self.changes.items(), ("", self.clock_change)]:
            seen = self._seen(self.rest[f"trend {experiment}"], change, simulated=False)
            for i, above, chance in self._certain(seen):
                host = self.hosts[i]
                if host.verdict in replaced:
                    host.verdict, host.chance, host.by_clock = Verdict.BECOMING_SLOWER, chance, not experiment
                    if experiment:
                        host.experiment, host.change, host.reason = experiment, exp(above), ""
                    else:
                        host.reason = f"its clock becomes {apart(host.clock_change)}"

    def _find_steps(self, in_drift: set[str], parts: list[Effect]) -> None:
        """A host's own course: the last step says more than the level over all days, which lies between both."""
        rate = self.false_alarms / (self.tests / 2)
        for experiment, course in [*self.fleet.courses.items(), ("", self.fleet.clocks)]:
            for i, steps in enumerate(self.fleet.steps(course, rate)):
                host = self.hosts[i]
                large = [step for step in steps if abs(step.after - step.before) >= self.limit]
                changes = [self.fleet.level_change(i, course, step, experiment) for step in large]
                host.steps += changes
                # A step that a part explains, or that was taken back, is none of the host's own today.
                if not changes or changes[-1].ratio <= 1 or self._is_of_part(host, changes[-1], parts):
                    continue
                if host.name not in in_drift and (host.step is None or host.step.ratio < changes[-1].ratio):
                    host.step = changes[-1]

    def _judge_steps(self) -> None:
        for host in self.hosts:
            # In a group that is too small what is common to a day is not taken out.
            if host.verdict == Verdict.NOT_COMPARED:
                host.step = None
            if host.step:
                host.verdict, host.by_clock = Verdict.SLOWER_SINCE, not host.step.experiment
                host.experiment, host.reason = host.step.experiment or None, str(host.step)

    def _is_of_part(self, host: Host, step: LevelChange, parts: list[Effect]) -> bool:
        """Whether a part that is slow as a whole explains the step: one that the host joined then, and as large."""
        return any(
            host.name in e.members
            and e.clock == (not step.experiment)
            and step.new_values.get(e.fact) == e.value
            and log(step.ratio) - log(e.ratio) < self.limit
            for e in parts
        )

    def _groups(self) -> list[dict[str, Any]]:
        groups = []
        for g, key in enumerate(self.fleet.keys):
            of = np.flatnonzero(self.fleet.group == g)
            found = [found for i in of if (found := self.hosts[i].would_be_found)]
            known = [words(c, v) for c, v in zip(self.fleet.group_by, key.split("\x1f"), strict=True) if v != "?"]
            said = {"hosts": len(of), "in_words": ", ".join(known), "judged": bool(found)}
            shares = dict(zip(map(str, POWER_OF), self.named_shares[of].mean(axis=0).tolist(), strict=True))
            scatter = exp(self.group_scatter[g]) - 1 if found else None
            power = {"would_be_found": float(np.median(found)) if found else None, "scatter": scatter}
            groups.append({**said, **power, "named_shares": shares})
        return groups


def _ratio(logarithm: float) -> float | None:
    return None if np.isnan(logarithm) else exp(logarithm)
