"""`fleet labels`: what the scheduler knows of its nodes, as the labels of a dataset (hosts.csv)."""

from __future__ import annotations

import argparse
import csv
import re
import sys
from typing import Any

from .engine import call
from .engines.kubernetes import items

# Columns by the labels that clusters have.
OF_KUBERNETES = {
    "zone": "topology.kubernetes.io/zone",
    "instance_type": "node.kubernetes.io/instance-type",
    "gpu": "nvidia.com/gpu.product",
}


def add(subparsers: Any) -> None:
    said = "print labels of hosts (partition, features, GPUs, reservation; zone, instance type) as CSV, for hosts.csv"
    parser = subparsers.add_parser("labels", help=said, description=f"P{said[1:]}.")
    parser.add_argument("--engine", choices=["slurm", "kubernetes"], required=True, help="who knows the hosts")


def run(arguments: argparse.Namespace) -> int:
    columns, rows = of_slurm() if arguments.engine == "slurm" else of_kubernetes()
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow(["host", *columns])
    lines.writerows([host, *(row[column] for column in columns)] for host, row in sorted(rows.items()))
    return 0


def of_slurm() -> tuple[list[str], dict[str, dict[str, str]]]:
    rows: dict[str, dict[str, str]] = {}
    for line in call(["sinfo", "--noheader", "--Node", "--format=%N|%R|%f|%G"]).splitlines():
        host, partition, features, gpus = (word.replace("(null)", "").strip() for word in line.split("|"))
        row = rows.setdefault(host, {"partition": partition, "features": features, "gpus": gpus, "reservation": ""})
        if partition not in row["partition"].split("+"):
            row["partition"] += f"+{partition}"
    for line in call(["scontrol", "show", "reservation", "--oneliner"]).splitlines():
        found = re.search(r"\bReservationName=(\S+).*?\bNodes=(\S+)", line)
        if not found or found[2] == "(null)":
            continue
        for host in call(["scontrol", "show", "hostnames", found[2]]).split():
            if host in rows:
                before = rows[host]["reservation"]
                rows[host]["reservation"] = f"{before}+{found[1]}" if before else found[1]
    return ["partition", "features", "gpus", "reservation"], rows


def of_kubernetes() -> tuple[list[str], dict[str, dict[str, str]]]:
    nodes = {node["metadata"]["name"]: node["metadata"].get("labels", {}) for node in items(["nodes"])}
    rows = {name: {column: of.get(label, "") for column, label in OF_KUBERNETES.items()} for name, of in nodes.items()}
    return list(OF_KUBERNETES), rows
