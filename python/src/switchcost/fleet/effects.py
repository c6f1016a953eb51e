"""Facts whose hosts are slower as a whole, and what they leave (docs/fleet.md, "How hosts are judged", point 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from math import exp, log
from typing import Any

import numpy as np

from .findings import ALL, Effect, words
from .measured import Fleet, Level
from .statistics import FEWEST_OF_A_VALUE, Floats, Mask, slower

# The share of a group's hosts from which a value is common enough to hold others against.
COMMON = 0.1
# Many hosts together are known better than one: from this part of a host's limit on they are told.
PART_OF_LIMIT = 0.5

Facts = dict[str, Any]


def effects(fleet: Fleet, level: Level, limit: float, false_alarms: float) -> tuple[list[Effect], Floats]:
    """Values of facts whose hosts are slower as a whole; and all values with these, and the groups, taken out."""
    groups = [fleet.group == g for g in range(len(fleet.keys))]
    everywhere: Facts = {}
    if len(groups) > 1:
        # Several groups together see what none sees alone; what is slow in one of them is left to it.
        here = [{fact: {*v[of]} - {None} for fact, v in fleet.facts_of.items()} for of in groups]
        shared = {fact for one, other in combinations(here, 2) for fact in one if one[fact] & other[fact]}
        everywhere = {fact: of_hosts for fact, of_hosts in fleet.facts_of.items() if fact in shared}
    passes: list[tuple[int, Mask, Facts]] = [(ALL, fleet.group >= 0, everywhere)]
    passes += [(g, of, fleet.facts_of) for g, of in enumerate(groups)]
    passes.append((ALL, fleet.group >= 0, fleet.labels_of))
    tests = max(1, sum(len(set(v[of])) for _, of, facts in passes for v in facts.values()))
    search = _Search(fleet, level, limit, false_alarms / tests)
    for of in groups:
        search.centre(of)
    found = [effect for one in passes for effect in search.effects(*one)]
    return sorted(found, key=lambda e: -e.ratio), search.rest


class _Search:
    def __init__(self, fleet: Fleet, level: Level, limit: float, chance: float) -> None:
        self.names, self.open, self.limit, self.chance = fleet.names, level.open, limit, chance
        self.rest = level.value.copy()
        self.all_facts: Facts = {**fleet.facts_of, **fleet.labels_of}

    def centre(self, of: Mask) -> None:
        inside = of & ~np.isnan(self.rest)
        if inside.any():
            self.rest[inside] -= np.median(self.rest[inside])

    def effects(self, group: int, inside: Mask, facts: Facts) -> Iterator[Effect]:
        """The fact that explains most goes first: what merely goes with it has nothing left to explain."""
        having_facts, inside = inside, inside & ~np.isnan(self.rest)
        if not inside.any():
            return
        self.centre(inside)
        left = dict(facts)
        while left:
            explained = {fact: self._slow_values(inside, group, fact, of_hosts) for fact, of_hosts in left.items()}
            gains = {fact: _explained(self.rest, inside, found) for fact, found in explained.items()}
            best = max(gains, key=lambda fact: gains[fact])
            if gains[best] <= 0:
                return
            for effect, of in explained[best]:
                self.rest[of] -= log(effect.ratio)
                effect.together_with = _same_hosts(of, inside, {f: v for f, v in self.all_facts.items() if f != best})
                self._note_holders(effect, having_facts)
                yield effect
            del left[best]

    def _note_holders(self, effect: Effect, inside: Mask) -> None:
        """Notes all hosts that have the value, of which those without a figure are not judged."""
        holders = np.array([str(value) == effect.value for value in self.all_facts[effect.fact]])
        effect.holders = [self.names[i] for i in np.flatnonzero(holders & inside)]
        effect.groups = [] if effect.group == ALL else [effect.group]
        effect.holders_in_fleet = int(holders.sum())

    def _slow_values(self, inside: Mask, group: int, fact: str, of_hosts: Any) -> list[tuple[Effect, Mask]]:
        """The values of a fact that are slower than its fastest common one, or than all others where none is common."""
        counts = {v: n for v, n in Counter(of_hosts[inside]).items() if v is not None and n >= FEWEST_OF_A_VALUE}
        masks = {v: (of_hosts == v) & inside for v in counts}
        common = [v for v, n in counts.items() if n >= COMMON * inside.sum()]
        fastest = min(common, key=lambda v: float(np.median(self.rest[masks[v]]))) if common else None
        found = []
        for value, of in masks.items():
            against = masks[fastest] if common else inside & ~of
            if value == fastest or against.sum() < FEWEST_OF_A_VALUE:
                continue
            both = of | against
            shift, p = slower(self.rest[both], of[both])
            unsure = abs(float(np.median(self.open[of]) - np.median(self.open[against])))
            if shift - unsure >= PART_OF_LIMIT * self.limit and p <= self.chance:
                others = words(fact, str(fastest)) if common else "the others"
                members = [self.names[i] for i in np.flatnonzero(of)]
                found.append((Effect(group, fact, str(value), len(members), exp(shift), others, p, [], members), of))
        return found


def _same_hosts(of: Mask, inside: Mask, facts: Facts) -> list[str]:
    found = []
    for fact, of_hosts in facts.items():
        (value, count), *_ = Counter(of_hosts[of]).most_common(1)
        if value is not None and count >= 0.95 * ((of_hosts == value) & inside | of).sum():
            found.append(words(fact, str(value)))
    return found


def _explained(values: Floats, inside: Mask, effects: list[tuple[Effect, Mask]]) -> float:
    """By how much the sum of absolute deviations shrinks when these effects are taken out."""
    rest = values.copy()
    for effect, of in effects:
        rest[of] -= log(effect.ratio)
    before, after = (float(np.abs(v[inside] - np.median(v[inside])).sum()) for v in (values, rest))
    return before - after
