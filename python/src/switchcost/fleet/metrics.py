"""`switchcost fleet metrics`: what was found as OpenMetrics, for the textfile collector of node_exporter."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .analyse import analysed, common, write
from .dataset import Dataset
from .findings import ALL, Analysis

# The label is `fleet_host`, as Prometheus itself labels the machine that a file was collected on.
HOST = "fleet_host"


def text(analysis: Analysis, last: dict[str, float]) -> str:
    """Gauges without time stamps, which the collector refuses; `last` has the start of each host's last run (Unix)."""
    states = ["as the others", "slow", "looks slow", "becomes slower", "faster", "too noisy to say", "not judged"]
    counts = dict.fromkeys(states, 0)
    for host in analysis.hosts:
        counts[next((s for s in states if host.verdict.startswith(s)), "not judged")] += 1
    counts["never answered"] = len(analysis.never_answered)
    lines = gauge("switchcost_fleet_hosts", "Hosts by verdict", [({"verdict": v}, n) for v, n in counts.items()])
    # In words: a number would belong to another group once there are others.
    groups = {ALL: "all", **{i: g["in_words"] for i, g in enumerate(analysis.groups)}}
    of = [({HOST: h.name, "group": groups[h.group]}, h) for h in analysis.hosts]
    for name, meaning, values in (
        ("host_ratio", "Cost of a switch, at one clock, to that of the host's group", [(k, h.ratio) for k, h in of]),
        ("host_clock_ratio", "Clock of its core to that of the host's group", [(k, h.clock) for k, h in of]),
        ("host_change_ratio", "Change of it over all days, by its trend", [(k, h.change) for k, h in of]),
        ("host_slow", "1 where the host is called slow", [(k, float(h.verdict == "slow")) for k, h in of]),
        ("host_drifts", "1 where it becomes slower", [(k, float(h.verdict.startswith("becomes"))) for k, h in of]),
        ("host_last_run_timestamp_seconds", "Start of its last run", [(k, last.get(h.name)) for k, h in of]),
    ):
        lines += gauge(f"switchcost_fleet_{name}", meaning, values)
    for name, effects in (("slow_part_ratio", analysis.effects), ("drifting_part_ratio", analysis.drifts)):
        meaning = "Hosts with this in common, to the others of their group: costs at one clock, or the clock's period"
        labels = [
            (
                {"fact": e.fact, "value": e.value[:100], "group": groups[e.group], "of": ["cost", "clock"][e.clock]},
                e.ratio,
            )
            for e in effects
        ]
        lines += gauge(f"switchcost_fleet_{name}", meaning, labels)
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
    parser = subparsers.add_parser("metrics", help=said, description=f"{said[0].upper()}{said[1:]}.")
    common(parser)
    said = "where to, whole or not at all; - is standard output [default: -]"
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help=said)


def run(arguments: argparse.Namespace) -> int:
    write(arguments.output, text(analysed(arguments), Dataset(arguments.dataset).last_runs()))
    return 0
