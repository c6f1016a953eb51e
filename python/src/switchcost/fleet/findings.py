"""What an analysis found, in words and for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from .acknowledged import Acknowledged, common_span
from .statistics import FEWEST_HOSTS, Floats

# Below so many runs no host is called slow.
FEWEST_DAYS = 3
# Labels such as racks go across the groups.
ALL = -1
ANSWERED_BY_NAME = 3
# Of hosts that are probably slow so many are sound where sound hosts have long tails, measured at one rate only
# (docs/validation.md, of all named in fleets with lognormal tails and those of Student's t).
MEASURED_FDR, LONG_TAILS_FDR = 0.05, "up to 11 %"


class Verdict(str, Enum):
    """What is said of a host. Each value is the only name of that verdict: in text, JSON, metrics and the report."""

    SLOW = "slow"
    PROBABLY_SLOW = "probably slow"
    SLOWER_SINCE = "slower since"
    MEASURE_AGAIN = "to measure again"
    BECOMING_SLOWER = "becoming slower"
    #: With all hosts of a rack or another part.
    PART_BECOMING_SLOWER = "becoming slower with its part"
    FASTER = "faster"
    AS_THE_OTHERS = "as the others"
    CANNOT_BE_JUDGED = "cannot be judged"
    #: Its group has too few hosts.
    NOT_COMPARED = "not compared"

    def __str__(self) -> str:
        return self.value


SLOW = (Verdict.SLOW, Verdict.PROBABLY_SLOW)
ODD = (
    *SLOW,
    Verdict.SLOWER_SINCE,
    Verdict.MEASURE_AGAIN,
    Verdict.BECOMING_SLOWER,
    Verdict.FASTER,
)


class FutureRun(NamedTuple):
    """A run that starts later than a day from now: its host's clock was wrong."""

    host: str
    run: str
    started: str


@dataclass
class LevelChange:
    """A step in a host's own figures, from a day on. `ratio` is after / before of costs, or of the clock's period.

    `experiment` is empty for the clock. `changed` are the facts that changed with it, `new_values` what they are since.
    """

    since: str
    ratio: float
    experiment: str
    changed: list[str] = field(default_factory=list)
    new_values: dict[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        """By how much, since when, and with what."""
        return f"{self.by()} since {self.since}; {self.cause()}"

    def cause(self) -> str:
        return ", ".join(self.changed[:2]) or "nothing recorded changed"

    def by(self) -> str:
        if not self.experiment:
            return f"its clock is {apart(1 / self.ratio)}"
        return f"{percent(self.ratio).lstrip('+-')} {'slower' if self.ratio > 1 else 'faster'}"


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
    verdict: Verdict = Verdict.NOT_COMPARED
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
    acknowledgement: Acknowledged | None = None
    #: The steps of its own figures, in their order.
    steps: list[LevelChange] = field(default_factory=list)
    #: That of the verdict "slower since".
    step: LevelChange | None = None

    @property
    def acknowledged(self) -> str:
        return self.acknowledgement.in_words() if self.acknowledgement else ""

    def is_slow(self) -> bool:
        return self.verdict in SLOW

    def is_alarming(self) -> bool:
        return self.is_slow() or self.verdict == Verdict.SLOWER_SINCE

    def slowness(self) -> float:
        """The ratio that the verdict is of."""
        if self.step:
            return self.step.ratio
        drifts = self.verdict == Verdict.BECOMING_SLOWER
        if self.by_clock:
            return 1 / ((self.clock_change if drifts else self.clock) or 1)
        return (self.change if drifts else self.ratio) or 0

    def __str__(self) -> str:
        """By how much, and what goes with it."""
        how_much = [] if self.by_clock or self.step else [percent(self.slowness())]
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
    #: Hosts that have the value, judged or not: in these groups (of none: in the fleet), and in the whole fleet.
    holders: list[str] = field(default_factory=list, repr=False)
    groups: list[int] = field(default_factory=list)
    holders_in_fleet: int = 0

    def subject(self) -> str:
        """Returns whom it is said of: hosts without a figure are counted, and other groups left out."""
        unjudged = len(self.holders) > self.hosts
        count = (
            f"{self.hosts:,} judged {'host' if self.hosts == 1 else 'hosts'}"
            if unjudged
            else number(self.hosts, "host")
        )
        is_part = self.groups and len(self.holders) < self.holders_in_fleet
        within = f" of group {', '.join(str(group + 1) for group in self.groups)}" if is_part else ""
        total = f" (of {len(self.holders):,})" if unjudged else ""
        return f"all {count}{within} with {words(self.fact, self.value)}{total}"

    def brief_sentence(self, verb: str) -> str:
        return f"{self.subject()} {verb}: {self.by()}"

    def sentence(self, verb: str, all_effects: list[Effect]) -> str:
        others = "the others" if self.others == "the others" else f"those with {self.others}"
        cost = "" if self.clock else f" in cost{alone(self, all_effects)}"
        with_it = f"; the same hosts: {', '.join(self.together_with)}" if self.together_with else ""
        return f"{self.subject()} {verb} than {others}: {self.by()}{cost}{with_it}"

    def by(self) -> str:
        per_cycle = ", at equal clock as the others" if self.per_cycle_as_others else ""
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
    in_future: list[FutureRun] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    heat: Floats = field(default_factory=lambda: np.empty((0, 0)))
    daily: dict[str, tuple[list[str], Floats]] = field(default_factory=dict)
    #: The days and ratios of hosts that became slower, in the experiment (or clock) of their step.
    step_courses: dict[str, tuple[list[str], Floats]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        #: Odd hosts by verdict, those that are furthest from the others first.
        self.odd = {verdict: self._having(verdict) for verdict in ODD}
        self.odd[Verdict.FASTER].reverse()
        self.slow, self.probably_slow = self.odd[Verdict.SLOW], self.odd[Verdict.PROBABLY_SLOW]
        self.slower_since, self.to_measure_again = self.odd[Verdict.SLOWER_SINCE], self.odd[Verdict.MEASURE_AGAIN]
        self.becoming_slower, self.faster = self.odd[Verdict.BECOMING_SLOWER], self.odd[Verdict.FASTER]
        self.acknowledged = sorted((h for h in self.hosts if h.acknowledged), key=lambda h: -h.slowness())
        self.cannot_be_judged = self._having(Verdict.CANNOT_BE_JUDGED)
        self.not_compared = sorted(self._having(Verdict.NOT_COMPARED), key=lambda h: h.name)

    def _having(self, verdict: Verdict) -> list[Host]:
        found = (h for h in self.hosts if h.verdict == verdict and not h.acknowledged)
        return sorted(found, key=lambda h: -h.slowness())

    def answer(self) -> str:
        """The first line."""
        return " ".join(self.sentences())

    def sentences(self) -> list[str]:
        """Returns a sentence for each finding."""
        hosts = f"{number(len(self.hosts), 'host')} in {number(len(self.groups), 'group')}"
        first, *others = self._parts()
        return [f"{hosts}: {first}.", *(f"{part[:1].upper()}{part[1:]}." for part in others)]

    def _parts(self) -> list[str]:
        slow = number(len(self.slow), "is", "are") if self.slow else "none is"
        parts = [f"{slow} slow{brackets(self.slow)}"]
        if self.probably_slow:
            parts.append(f"{number(len(self.probably_slow), 'is', 'are')} probably slow{brackets(self.probably_slow)}")
        if self.slower_since:
            became = number(len(self.slower_since), "became", "became")
            parts.append(f"{became} slower ({'; '.join(self.steps_in_words())})")
        if self.to_measure_again:
            few = f"on fewer than {FEWEST_DAYS} runs"
            parts.append(f"{len(self.to_measure_again)} to measure again (slow {few}: {listed(self.to_measure_again)})")
        for verb, effects in (("are slower", merged(self.effects)), ("become slower", merged(self.drifts))):
            parts += [effect.brief_sentence(verb) for effect in effects[:ANSWERED_BY_NAME]]
            if len(effects) > ANSWERED_BY_NAME:
                parts.append(f"{len(effects) - ANSWERED_BY_NAME} more parts of the fleet {verb}")
        if self.becoming_slower:
            becomes = number(len(self.becoming_slower), "becomes", "become")
            parts.append(f"{becomes} slower{brackets(self.becoming_slower)}")
        if self.faster:
            parts.append(f"{number(len(self.faster), 'is', 'are')} faster than the others{brackets(self.faster)}")
        if self.acknowledged:
            parts.append(f"{len(self.acknowledged)} acknowledged ({listed(self._acknowledged_by_reason())})")
        if self.never_answered:
            parts.append(f"{len(self.never_answered)} never answered{brackets(self.never_answered)}")
        if self.cannot_be_judged:
            parts.append(f"{len(self.cannot_be_judged)} cannot be judged{self._why_not_judged()}")
        if self.not_compared:
            names = brackets([h.name for h in self.not_compared])
            parts.append(f"{len(self.not_compared)} not compared, in groups below {FEWEST_HOSTS} hosts{names}")
        if self.in_future:
            runs = "; ".join(f"{run.host}: {run.started}" for run in self.in_future[:ANSWERED_BY_NAME])
            count = number(len(self.in_future), "run", "runs")
            parts.append(f"{count} set aside, dated after tomorrow ({runs}{more(self.in_future)})")
        return parts

    def _acknowledged_by_reason(self) -> list[str]:
        """Returns each reason with its hosts and how long it holds, those of most hosts first."""
        by_reason: dict[str, list[Host]] = {}
        for host in self.acknowledged:
            if host.acknowledgement:
                by_reason.setdefault(host.acknowledgement.reason, []).append(host)
        said = []
        for reason, hosts in sorted(by_reason.items(), key=lambda item: -len(item[1])):
            names = ", ".join(host.name for host in hosts[:ANSWERED_BY_NAME])
            holds = common_span([host.acknowledgement for host in hosts if host.acknowledgement])
            said.append(f"{names}{left(hosts, ANSWERED_BY_NAME)}: {reason}, {holds}")
        return said

    def steps_in_words(self, most: int = ANSWERED_BY_NAME) -> list[str]:
        """Hosts that became slower, the worst first; several with one recorded cause and day are told once."""
        by_cause: dict[tuple[object, ...], list[Host]] = {}
        for host in self.slower_since:
            step = host.step or LevelChange("", 1.0, "")
            alone = () if step.changed else (host.name,)
            by_cause.setdefault((step.since, *step.changed, *alone), []).append(host)
        told = []
        for hosts in by_cause.values():
            if len(hosts) == 1 or hosts[0].step is None:
                told.append(str(hosts[0]))
                continue
            ratio = float(np.median([h.slowness() for h in hosts]))
            same = replace(hosts[0].step, ratio=ratio)
            told.append(f"{len(hosts)} hosts: {same}")
        return [*told[:most], *(["..."] if len(told) > most else [])]

    def _why_not_judged(self) -> str:
        """The commonest reasons, each with its hosts where there are several."""
        reasons = Counter(host.reason for host in self.cannot_be_judged).most_common()
        said = [reason if len(reasons) == 1 else f"{count}: {reason}" for reason, count in reasons[:ANSWERED_BY_NAME]]
        return f": {'; '.join(said)}{more(reasons)}"

    def text(self, rows: int = 20) -> str:
        lines = [self.answer(), ""]
        for i, group in enumerate(self.groups):
            lines.append(f"group {i + 1}: {number(group['hosts'], 'host')}, {group['in_words']}; {power(group)}")
        for title, hosts in self.odd.items():
            for h in hosts[:rows]:
                lines.append(f"{title}: {h} ({number(h.days, 'run')}, group {h.group + 1})")
            if len(hosts) > rows:
                lines.append(f"{title}: {len(hosts) - rows} more (--json has all)")
        for effect in merged(self.effects):
            lines.append(effect.sentence("are slower", self.effects + self.drifts))
        for effect in merged(self.drifts):
            lines.append(effect.sentence("become slower", self.effects + self.drifts))
        lines += [f"never answered: {', '.join(self.never_answered[:rows])}"] if self.never_answered else []
        unjudged = self.cannot_be_judged
        lines += (
            [f"cannot be judged: {', '.join(h.name for h in unjudged[:rows])}{left(unjudged, rows)}"]
            if unjudged
            else []
        )
        lines += [f"set aside: run {run.run} of {run.host}, dated {run.started}" for run in self.in_future[:rows]]
        lines += ["", self.terms()]
        return "\n".join(lines) + "\n"

    def terms(self) -> str:
        said = f'A host is called "slow" by chance in at most {whole_percent(self.false_alarms)} of sound fleets.'
        said += f" Hosts less than {whole_percent(self.limit)} above their group are never named."
        long_tails = LONG_TAILS_FDR if self.fdr == MEASURED_FDR else "more"
        said += f' Of the hosts called "probably slow" about {whole_percent(self.fdr)} are sound,'
        said += f" {long_tails} where sound hosts have long tails."
        if known := sum(h.clock is not None for h in self.hosts):
            hosts = number(len(self.hosts), "host")
            said += f" Costs are corrected to the same clock, which is known of {known:,} of {hosts}."
        return said

    def value(self) -> dict[str, Any]:
        """For JSON; `chance` is the probability of a sound host to look as bad, before the fleet's size is counted."""
        lists = {name: [asdict(x) for x in getattr(self, name)] for name in ("hosts", "effects", "drifts")}
        for host, row in zip(self.hosts, lists["hosts"], strict=True):
            del row["acknowledgement"]
            row["acknowledged"] = host.acknowledged
        for effect in [*lists["effects"], *lists["drifts"]]:
            effect["members"] = effect["members"][:1000]
            effect["holders"] = len(effect["holders"])
        rates = {"false_alarms": self.false_alarms, "fdr": self.fdr}
        period = {"days": self.days, "first_day": self.period[0], "last_day": self.period[1]}
        future = [run._asdict() for run in self.in_future]
        terms = {"limit": self.limit, **rates, **period, "groups": self.groups}
        return {
            "schema": 4,
            "in_words": self.answer(),
            **terms,
            **lists,
            "never_answered": self.never_answered,
            "in_future": future,
        }


def merged(effects: list[Effect]) -> list[Effect]:
    """One cause as one effect, the slowest first: a fact in several groups and experiments, and facts of like hosts.

    Its ratio is that of the group with most hosts, in the experiment that is slowest there. A rack that is a kernel is
    the kernel, together with the rack.
    """
    by_value: dict[tuple[str, str, bool], Effect] = {}
    for effect in sorted(effects, key=lambda e: (-e.hosts, -e.ratio)):
        first = by_value.setdefault((effect.fact, effect.value, effect.clock), replace(effect, members=[], holders=[]))
        first.members = sorted({*first.members, *effect.members})
        first.holders = sorted({*first.holders, *effect.holders})
        first.groups = sorted({*first.groups, *effect.groups})
        first.hosts = len(first.members)
    causes: list[Effect] = []
    for effect in by_value.values():
        same = next((c for c in causes if c.clock == effect.clock and have_same_hosts(c, effect)), None)
        if same is None:
            causes.append(effect)
            continue
        name = words(effect.fact, effect.value)
        same.together_with = list(dict.fromkeys([*same.together_with, name, *effect.together_with]))
        same.together_with = [one for one in same.together_with if one != words(same.fact, same.value)]
        same.ratio = max(same.ratio, effect.ratio)
    return sorted(causes, key=lambda e: -e.ratio)


def have_same_hosts(one: Effect, other: Effect) -> bool:
    common = len({*one.members} & {*other.members})
    return common >= 0.9 * len({*one.members} | {*other.members})


def alone(effect: Effect, all_of: list[Effect]) -> str:
    """The experiment, where there are several."""
    return f" in {effect.experiment}" if effect.experiment and len({e.experiment for e in all_of} - {""}) > 1 else ""


def power(group: dict[str, Any]) -> str:
    """What would be named in a group, and how many of the hosts that are 5 % slower."""
    by = group["would_be_found"]
    if not by:
        return "too few hosts to compare" if group["hosts"] < FEWEST_HOSTS else "no figures to compare"
    share = group["named_shares"]["0.05"]
    named = f"a host is named if it measures {whole_percent(by - 1)} or more above its group"
    return f"{named}; of hosts that are 5 % slower {whole_percent(share)} are"


def left(items: Sequence[object], shown: int) -> str:
    return f" and {len(items) - shown:,} more" if len(items) > shown else ""


def whole_percent(share: float) -> str:
    return f"{100 * share:.0f} %"


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
