"""`switchcost fleet metrics`: what was found as OpenMetrics, for the textfile collector of node_exporter."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from .analyse import analysed, common, write
from .dataset import Dataset
from .findings import ALL, Analysis, Host

# The label is `fleet_host`, as Prometheus itself labels the machine that a file was collected on.
HOST = "fleet_host"


def text(analysis: Analysis, last: dict[str, float]) -> str:
    """Gauges without time stamps, which the collector refuses; `last` has the start of each host's last run (Unix)."""
    states = [
        "as the others",
        "slow",
        "probably slow",
        "measure again",
        "becomes slower",
        "faster",
        "too noisy to say",
        "not judged",
    ]
    counts = dict.fromkeys(states, 0)
    for host in analysis.hosts:
        counts[next((s for s in states if host.verdict.startswith(s)), "not judged")] += 1
    counts["never answered"] = len(analysis.never_answered)
    lines = gauge("switchcost_fleet_hosts", "Hosts by verdict", [({"verdict": v}, n) for v, n in counts.items()])
    # In words: a number would belong to another group once there are others.
    groups = {ALL: "all", **{i: g["in_words"] for i, g in enumerate(analysis.groups)}}
    hosts = [({HOST: h.name, "group": groups[h.group]}, h) for h in analysis.hosts]
    gauges: tuple[tuple[str, str, Callable[[Host], float | None]], ...] = (
        ("host_ratio", "Cost of a switch, at one clock, to that of the host's group", lambda h: h.ratio),
        ("host_clock_ratio", "Clock of its core to that of the host's group", lambda h: h.clock),
        ("host_change_ratio", "Change of it over all days, by its trend", lambda h: h.change),
        ("host_slow", "1 where the host is called slow", lambda h: h.verdict == "slow" and not h.acknowledged),
        ("host_drifts", "1 where it becomes slower", lambda h: h.verdict.startswith("becomes")),
        ("host_last_run_timestamp_seconds", "Start of its last run", lambda h: last.get(h.name)),
    )
    for name, meaning, value in gauges:
        lines += gauge(f"switchcost_fleet_{name}", meaning, [(labels, value(h)) for labels, h in hosts])
    meaning = "Hosts with this in common, to the others of their group: costs at one clock, or the clock's period"
    for name, effects in (("slow_part_ratio", analysis.effects), ("drifting_part_ratio", analysis.drifts)):
        values = []
        for e in effects:
            of = {"fact": e.fact, "value": e.value[:100], "group": groups[e.group], "of": ["cost", "clock"][e.clock]}
            values.append((of, e.ratio))
        lines += gauge(f"switchcost_fleet_{name}", meaning, values)
    return "\n".join([*lines, "# EOF"]) + "\n"


def gauge(name: str, meaning: str, values: Sequence[tuple[dict[str, str], float | None]]) -> list[str]:
    """The lines of a metric; a value that is not known has none."""
    lines = [f"# TYPE {name} gauge", f"# HELP {name} {meaning}."]
    for labels, value in values:
        if value is not None:
            shown = ",".join(f'{k}="{escaped(v)}"' for k, v in labels.items())
            lines.append(f"{name}{{{shown}}} {value:.6g}" if value < 1e6 else f"{name}{{{shown}}} {value:.0f}")
    return lines


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    said = "write what was found as OpenMetrics, for Prometheus"
    parser = common(subparsers.add_parser("metrics", help=said, description=f"W{said[1:]}."))
    said = "where to, whole or not at all; - is standard output [default: -]"
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help=said)


def run(arguments: argparse.Namespace) -> int:
    write(arguments.output, text(analysed(arguments), Dataset(arguments.dataset).last_runs()))
    return 0
