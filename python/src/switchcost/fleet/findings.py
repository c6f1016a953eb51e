"""What an analysis found, in words and for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from .statistics import FEWEST_HOSTS, Floats

# Below so many runs no host is called slow.
FEWEST_DAYS = 3
SLOW = ("slow", "probably slow")
# Labels such as racks go across the groups.
ALL = -1
ANSWERED_BY_NAME = 3


@dataclass
class Host:
    """A host's place in its group. Ratios are to the group's median: 1.38 is 38 % slower, at one clock of the core.

    `ratio` is that of `experiment`, the host's worst; `ratios` has all. `days` are the times that it was measured on,
    of fewer than seven dates runs. `clock` is that clock to the group's: 0.93 is 7 % lower. `by_clock`: the verdict is
    of the clock.
    """

    name: str
    group: int
    days: int
    ratio: float | None = None
    verdict: str = "not judged"
    reason: str = ""
    chance: float | None = None
    would_be_found: float | None = None
    change: float | None = None
    noise: str | None = None
    experiment: str | None = None
    clock: float | None = None
    clock_change: float | None = None
    by_clock: bool = False
    ratios: dict[str, float] = field(default_factory=dict)
    acknowledged: str = ""

    def is_slow(self) -> bool:
        return self.verdict in SLOW

    def slowness(self) -> float:
        """The ratio that the verdict is of."""
        drifts = self.verdict == "becomes slower"
        if self.by_clock:
            return 1 / ((self.clock_change if drifts else self.clock) or 1)
        return (self.change if drifts else self.ratio) or 0

    def __str__(self) -> str:
        """By how much, and what goes with it."""
        how_much = [] if self.by_clock else [percent(self.slowness())]
        return f"{self.name}: {', '.join([*how_much, *filter(None, [self.acknowledged or self.reason])])}"


@dataclass
class Effect:
    """A value of a fact that goes with being slow (or, of a drift, with becoming slower).

    `ratio` is of costs at one clock or, if `clock`, of the clock's period.
    """

    group: int
    fact: str
    value: str
    hosts: int
    ratio: float
    others: str
    chance: float
    together_with: list[str] = field(default_factory=list)
    members: list[str] = field(default_factory=list, repr=False)
    clock: bool = False
    per_cycle_as_others: bool = False
    experiment: str = ""

    def __str__(self) -> str:
        return f"{words(self.fact, self.value)} ({number(self.hosts, 'host')}): {self.by()}"

    def by(self) -> str:
        per_cycle = ", per cycle as the others" if self.per_cycle_as_others else ""
        return f"clock {apart(1 / self.ratio)}{per_cycle}" if self.clock else percent(self.ratio)


@dataclass
class Analysis:
    groups: list[dict[str, Any]]
    hosts: list[Host]
    effects: list[Effect]
    drifts: list[Effect]
    never_answered: list[str]
    days: int
    limit: float
    false_alarms: float
    fdr: float
    varied: list[dict[str, Any]]
    period: tuple[str, str] = ("", "")
    labels: list[str] = field(default_factory=list)
    heat: Floats = field(default_factory=lambda: np.empty((0, 0)))
    daily: dict[str, tuple[list[str], Floats]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        #: Odd hosts by verdict, those that are furthest from the others first.
        self.odd = {verdict: self._having(verdict) for verdict in (*SLOW, "measure again", "becomes slower", "faster")}
        self.odd["faster"].reverse()
        self.slow, self.candidates, self.suspects, self.drifting, self.faster = self.odd.values()
        self.acknowledged = sorted((h for h in self.hosts if h.acknowledged), key=lambda h: -h.slowness())
        self.noisy = self._having("too noisy to say")

    def _having(self, verdict: str) -> list[Host]:
        found = (h for h in self.hosts if h.verdict == verdict and not h.acknowledged)
        return sorted(found, key=lambda h: -h.slowness())

    def answer(self) -> str:
        """The first line."""
        parts = [f"{number(len(self.slow), 'is', 'are')} slow" + brackets(self.slow)]
        if self.candidates:
            probably = f"{number(len(self.candidates), 'is', 'are')} probably slow{brackets(self.candidates)}"
            parts.append(f"{probably}, about {self.fdr:.0%} of these by chance")
        if self.suspects:
            few = f"on fewer than {FEWEST_DAYS} runs"
            parts.append(f"{len(self.suspects)} to measure again (slow {few}: {listed(self.suspects)})")
        for title, effects in (("slow as a whole", merged(self.effects)), ("becoming slower", merged(self.drifts))):
            if effects:
                parts.append(f"{title}: {'; '.join(map(str, effects[:ANSWERED_BY_NAME]))}{more(effects)}")
        if self.drifting:
            parts.append(f"{number(len(self.drifting), 'becomes', 'become')} slower{brackets(self.drifting)}")
        if self.faster:
            parts.append(f"{number(len(self.faster), 'is', 'are')} faster than the others{brackets(self.faster)}")
        if self.acknowledged:
            parts.append(f"{len(self.acknowledged)} known to be slow{brackets(self.acknowledged)}")
        parts.append(f"{len(self.never_answered)} never answered" + brackets(self.never_answered))
        parts.append(f"{len(self.noisy)} too noisy to say")
        small = sum(g["hosts"] for g in self.groups if not g["judged"])
        if small:
            parts.append(f"{small} in groups below {FEWEST_HOSTS} hosts, where nobody can be called odd")
        return f"{number(len(self.hosts), 'host')} in {number(len(self.groups), 'group')}: {', '.join(parts)}."

    def text(self, rows: int = 20) -> str:
        lines = [self.answer(), ""]
        for i, group in enumerate(self.groups):
            lines.append(f"group {i + 1}: {number(group['hosts'], 'host')}, {group['in_words']}; {power(group)}")
        for title, hosts in self.odd.items():
            for h in hosts[:rows]:
                lines.append(f"{title}: {h} ({number(h.days, 'run')}, group {h.group + 1})")
            if len(hosts) > rows:
                lines.append(f"{title}: {len(hosts) - rows} more (--json has all)")
        for title, effects in (("slow as a whole", self.effects), ("becoming slower", self.drifts)):
            for e in effects:
                within = "" if e.group == ALL else f" of group {e.group + 1}"
                with_it = f"; the same hosts: {', '.join(e.together_with)}" if e.together_with else ""
                lines.append(f"{title}: {e}{alone(e, self.effects + self.drifts)}, against {e.others}{within}{with_it}")
        lines += [f"never answered: {', '.join(self.never_answered[:rows])}"] if self.never_answered else []
        lines += [f"too noisy to say: {', '.join(h.name for h in self.noisy[:rows])}"] if self.noisy else []
        lines += ["", self.terms()]
        return "\n".join(lines) + "\n"

    def terms(self) -> str:
        said = f"Slow: in at most {self.false_alarms:.0%} of sound fleets one host is; below {self.limit:.0%} none."
        said += " That is of fleets simulated with the tails that this one's sound hosts have."
        said += f" Probably slow: about {self.fdr:.0%} of these are by chance, more where sound hosts have long tails."
        if told := sum(h.clock is not None for h in self.hosts):
            said += f" Costs are compared at one clock; {number(told, 'host tells its', 'hosts tell theirs')}."
        return said

    def value(self) -> dict[str, Any]:
        """For JSON; `chance` is the probability of a sound host to look as bad, before the fleet's size is counted."""
        lists = {name: [asdict(x) for x in getattr(self, name)] for name in ("hosts", "effects", "drifts")}
        for effect in [*lists["effects"], *lists["drifts"]]:
            effect["members"] = effect["members"][:1000]
        rates = {"false_alarms": self.false_alarms, "fdr": self.fdr}
        period = {"days": self.days, "first_day": self.period[0], "last_day": self.period[1]}
        terms = {"limit": self.limit, **rates, **period, "groups": self.groups}
        return {"schema": 3, "in_words": self.answer(), **terms, **lists, "never_answered": self.never_answered}


def merged(effects: list[Effect]) -> list[Effect]:
    """The same value in several groups and experiments as one, the slowest first.

    Its ratio is that of the group with most hosts, in the experiment that is slowest there.
    """
    of: dict[tuple[str, str, bool], Effect] = {}
    members: dict[tuple[str, str, bool], set[str]] = {}
    for effect in sorted(effects, key=lambda e: (-e.hosts, -e.ratio)):
        key = (effect.fact, effect.value, effect.clock)
        first = of.setdefault(key, replace(effect))
        members[key] = members.get(key, set()) | set(effect.members)
        first.hosts = len(members[key])
    return sorted(of.values(), key=lambda e: -e.ratio)


def alone(effect: Effect, all_of: list[Effect]) -> str:
    """The experiment, where there are several."""
    return f" in {effect.experiment}" if effect.experiment and len({e.experiment for e in all_of} - {""}) > 1 else ""


def power(group: dict[str, Any]) -> str:
    """What would be found in a group."""
    by = group["would_be_found"]
    return f"slower by {by - 1:.0%} would be found" if by else "too few hosts to judge"


def percent(ratio: float | None) -> str:
    return "?" if ratio is None else f"{100 * (ratio - 1):+.{0 if abs(ratio - 1) >= 0.1 else 1}f} %"


def apart(clock: float | None) -> str:
    """How far a clock is from the others'."""
    return "?" if clock is None else f"{percent(clock).lstrip('+-')} {'lower' if clock < 1 else 'higher'}"


def number(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(items: Sequence[object]) -> str:
    return "; ".join(map(str, items[:ANSWERED_BY_NAME])) + ("; ..." if len(items) > ANSWERED_BY_NAME else "")


def brackets(items: Sequence[object]) -> str:
    return f" ({listed(items)})" if items else ""


def more(items: list[Any]) -> str:
    return f"; {len(items) - ANSWERED_BY_NAME} more" if len(items) > ANSWERED_BY_NAME else ""


def words(fact: str, value: str) -> str:
    return f"{fact.replace('_', ' ')} {value if len(value) <= 60 else value[:57] + '...'}"
