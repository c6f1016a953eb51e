"""`switchcost fleet metrics`: what was found as OpenMetrics, for the textfile collector of node_exporter."""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone

from .analyse import analysed, common, write
from .dataset import Dataset
from .findings import ALL, Analysis, Host, Verdict

# The label is `fleet_host`, as Prometheus itself labels the machine that a file was collected on.
HOST = "fleet_host"
BECOMING_SLOWER = (Verdict.BECOMING_SLOWER, Verdict.PART_BECOMING_SLOWER)


def text(analysis: Analysis, last: dict[str, float]) -> str:
    """Gauges without time stamps, which the collector refuses; `last` has the start of each host's last run (Unix)."""
    counts: dict[str, int] = {verdict.value: 0 for verdict in Verdict}
    for host in analysis.hosts:
        counts[host.verdict.value] += 1
    counts["never answered"] = len(analysis.never_answered)
    lines = gauge("switchcost_fleet_hosts", "Hosts by verdict", [({"verdict": v}, n) for v, n in counts.items()])
    # By what they are: a number would belong to another group once there are others.
    groups = {ALL: "all", **{i: identity(g["in_words"]) for i, g in enumerate(analysis.groups)}}
    info = [({"group": groups[i], "in_words": g["in_words"]}, 1.0) for i, g in enumerate(analysis.groups)]
    lines += gauge("switchcost_fleet_group_info", "What the hosts of a group have in common", info)
    lines += gauge("switchcost_fleet_written_timestamp_seconds", "When this was written", [({}, time.time())])
    hosts = [({HOST: h.name, "group": groups[h.group]}, h) for h in analysis.hosts]
    gauges: tuple[tuple[str, str, Callable[[Host], float | None]], ...] = (
        ("host_clock_ratio", "Clock of its core, compared with the host's group (0.93: 7 % lower)", lambda h: h.clock),
        (
            "host_change_ratio",
            "Cost on the last day / cost on the first, by the trend (1.10: 10 % slower)",
            lambda h: h.change,
        ),
        ("host_slow", "1 where the host is called slow", lambda h: shown(h, Verdict.SLOW)),
        ("host_probably_slow", "1 where it is probably slow", lambda h: shown(h, Verdict.PROBABLY_SLOW)),
        ("host_stepped", "1 where it is slower since a day", lambda h: shown(h, Verdict.SLOWER_SINCE)),
        (
            "host_step_ratio",
            "Cost (or clock period) since that day / before it",
            lambda h: h.step.ratio if h.step else None,
        ),
        (
            "host_step_timestamp_seconds",
            "The day since which the host is slower (Unix time)",
            lambda h: start_of_day(h.step.since) if h.step else None,
        ),
        ("host_drifts", "1 where it becomes slower", lambda h: h.verdict in BECOMING_SLOWER),
        ("host_last_run_timestamp_seconds", "Start of its last run", lambda h: last.get(h.name)),
    )
    meaning = "Cost in an experiment, corrected to one clock, compared with the host's group"
    ratios = [({**of, "experiment": e}, ratio) for of, h in hosts for e, ratio in h.ratios.items()]
    lines += gauge("switchcost_fleet_host_ratio", meaning, ratios)
    for name, meaning, value in gauges:
        lines += gauge(f"switchcost_fleet_{name}", meaning, [(labels, value(h)) for labels, h in hosts])
    meaning = "Hosts with this in common, compared with the others of their group: cost at one clock, or clock period"
    for name, effects in (("slow_part_ratio", analysis.effects), ("drifting_part_ratio", analysis.drifts)):
        values = []
        for e in effects:
            of = {"fact": e.fact, "value": e.value[:40], "group": groups[e.group], "of": e.experiment or "clock"}
            values.append((of, e.ratio))
        lines += gauge(f"switchcost_fleet_{name}", meaning, values)
    return "\n".join([*lines, "# EOF"]) + "\n"


def identity(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:6]


def start_of_day(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=timezone.utc).timestamp()


def shown(host: Host, verdict: Verdict) -> bool:
    """A host that is known to be slow raises no alert."""
    return host.verdict == verdict and not host.acknowledged


def gauge(name: str, meaning: str, values: Sequence[tuple[dict[str, str], float | None]]) -> list[str]:
    """The lines of a metric; a value that is not known has none."""
    lines = [f"# TYPE {name} gauge", f"# HELP {name} {meaning}."]
    for labels, value in values:
        if value is not None:
            shown = ",".join(f'{k}="{escaped(v)}"' for k, v in labels.items())
            of = f"{{{shown}}}" if shown else ""
            lines.append(f"{name}{of} {value:.6g}" if value < 1e6 else f"{name}{of} {value:.0f}")
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
