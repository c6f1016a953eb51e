"""What the report draws: ratios by host and case, daily courses, and facts that differ within a group."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import exp
from typing import Any

import numpy as np

from .findings import Effect, Host, words
from .measured import Fleet, Level
from .statistics import Floats


def heat_map(fleet: Fleet) -> tuple[list[str], Floats]:
    """Labels of cases, and of each host (row) and case the logarithm of the ratio."""
    query = "SELECT host, label, median(ratio) AS ratio FROM ratios GROUP BY host, label ORDER BY label"
    rows = fleet.connection.execute(query).fetchnumpy()
    labels, column = np.unique(rows["label"].astype(str), return_inverse=True)
    heat = np.full((len(fleet.names), len(labels)), np.nan)
    heat[[fleet.index[h] for h in rows["host"].astype(str)], column] = rows["ratio"]
    return list(labels), heat


def daily(fleet: Fleet, drifts: list[Effect], hosts: list[Host]) -> dict[str, tuple[list[str], Floats]]:
    """By name the days and ratios of all hosts, of drifts, and of hosts that become slower."""
    of_what = {False: "", True: ", period of the clock"}
    courses = {"all hosts (median)": _daily(fleet, fleet.names, False)}
    for e in drifts[:6]:
        courses[f"{words(e.fact, e.value)}{of_what[e.clock]} (median)"] = _daily(fleet, e.members, e.clock)
    for host in hosts[:6]:
        courses[host.name + of_what[host.by_clock]] = _daily(fleet, [host.name], host.by_clock)
    return courses


def _daily(fleet: Fleet, members: list[str], clock: bool) -> tuple[list[str], Floats]:
    by_day = defaultdict(list)
    series = fleet.clocks if clock else fleet.series[""]
    for course in (series[i] for name in members if (i := fleet.index[name]) in series):
        for day, ratio in zip(course.days, course.ratio):
            by_day[day].append(ratio)
    dates = [str(np.datetime64(int(d), "D")) for d in sorted(by_day)]
    return dates, np.array([np.median(by_day[d]) for d in sorted(by_day)])


def varied(fleet: Fleet, level: Level, clock: Level) -> list[dict[str, Any]]:
    """Facts that have several values in a group, each with its hosts and their middle."""
    found = []
    for fact, of_hosts in fleet.facts_of.items():
        for g in range(len(fleet.keys)):
            inside = fleet.group == g
            values = Counter(of_hosts[inside]).most_common(7)
            for value, hosts in values[:6] if 1 < len(values) < 0.5 * inside.sum() else []:
                of = inside & (of_hosts == value)
                middles = {"ratio": _middle(level.value[of]), "clock": _middle(-clock.value[of])}
                found.append({"group": g, "fact": fact, "value": value, "hosts": hosts, **middles})
    return found


def _middle(logarithms: Floats) -> float | None:
    known = logarithms[~np.isnan(logarithms)]
    return exp(float(np.median(known))) if len(known) else None
