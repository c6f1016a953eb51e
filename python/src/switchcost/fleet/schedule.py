"""`fleet schedule`: prints what measures a fleet again and again: a scrontab line, a CronJob, a systemd timer."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from pathlib import Path

from .engines import ENGINES, kubernetes
from .submission import FleetError, Submission
from .submit import budget_s, check, duration, program

SERVICE = """\
# ~/.config/systemd/user/switchcost-fleet.service
[Unit]
Description=Measure the fleet with switchcost

[Service]
Type=oneshot
ExecStart=/bin/sh -c {command}

# ~/.config/systemd/user/switchcost-fleet.timer
[Unit]
Description=Measure the fleet with switchcost every day

[Timer]
OnCalendar=*-*-* {hour}:{minute}:00
RandomizedDelaySec=10min
Persistent=true

[Install]
WantedBy=timers.target

# then: systemctl --user enable --now switchcost-fleet.timer
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    said = "print what measures the fleet every day: a scrontab line, a CronJob or a systemd timer"
    parser = subparsers.add_parser("schedule", help=said, description=f"P{said[1:]}.")
    parser.add_argument("--engine", choices=ENGINES, required=True, help="what runs it")
    parser.add_argument("--dataset", metavar="DIR", type=Path, required=True, help="folder of the fleet's runs")
    parser.add_argument("--at", metavar="HH:MM", default="03:00", help="when, every day [%(default)s]")
    parser.add_argument("--budget", metavar="TIME", type=duration, default="60s", help="of a measurement [%(default)s]")
    parser.add_argument("--hosts-file", metavar="FILE", help="ssh: a file with a host a line")
    parser.add_argument("--image", help="kubernetes: the image (deploy/Dockerfile)")
    parser.add_argument("--unprivileged", action="store_true", help="kubernetes: no root, no capability, no host PIDs")
    parser.add_argument("--partition", metavar="NAME", help="slurm: the partition")


def run(arguments: argparse.Namespace) -> int:
    time = re.fullmatch(r"([01][0-9]|2[0-3]):([0-5][0-9])", arguments.at)
    if not time:
        raise FleetError(f"--at {arguments.at}: a time of day such as 03:00", 2)
    command = [*(arguments.command or ["measure"]), "--budget", arguments.budget]
    check(command)
    hour, minute = time.groups()
    if arguments.engine == "kubernetes":
        print(cron_job(command, f"{int(minute)} {int(hour)} * * *", arguments))
        return 0
    dataset = shlex.quote(str(arguments.dataset.absolute()))
    fleet = f"{shlex.quote(program(arguments))} fleet"
    submit = f"{fleet} submit --engine {arguments.engine} --dataset {dataset} --again"
    after = [
        f"{fleet} collect --dataset {dataset}",
        f"{fleet} metrics --dataset {dataset} -o {dataset}/switchcost.prom",
    ]
    if arguments.engine == "slurm":
        partition = f" --partition {shlex.quote(arguments.partition)}" if arguments.partition else ""
        print(
            f"# for `scrontab -e`: yesterday's answers are taken, then all nodes are asked anew\n#SCRON --time=60\n"
            f"{int(minute)} {int(hour)} * * * {'; '.join(after)}; {submit}{partition} -- {shlex.join(command)}"
        )
        return 0
    if not arguments.hosts_file:
        raise FleetError("--hosts-file FILE is missing: the hosts that ssh reaches", 2)
    hosts = shlex.quote(str(Path(arguments.hosts_file).absolute()))
    asked = f"{submit} --hosts-file {hosts} -- {shlex.join(command)} | xargs -d '\\n' -n 1 -P 16 sh -c"
    # systemd takes % for its own, and a quoted word as a whole.
    line = '"' + "; ".join([asked, *after]).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'
    print(SERVICE.format(command=line, hour=hour, minute=minute), end="")
    return 0


def cron_job(command: list[str], when: str, arguments: argparse.Namespace) -> str:
    """A pod on each node, as `submit` has it; the logs are collected as those of the DaemonSet are."""
    # One that is not ready today may be so when it is asked.
    hosts = list(kubernetes.all_nodes([]))
    submission = Submission(arguments.dataset, "00000000-000000", "", "kubernetes", hosts, command, program(arguments))
    arguments.budget_s, arguments.parallel, arguments.staggered_s = budget_s(command), None, 0.0
    job = kubernetes.manifest(submission, hosts, arguments)
    job["metadata"]["labels"].pop(kubernetes.LABEL, None)
    job["spec"]["template"]["metadata"]["labels"].pop(kubernetes.LABEL, None)
    name = {"name": "switchcost", "labels": job["metadata"]["labels"]}
    spec = {"schedule": when, "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job["spec"]}}
    return json.dumps({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": name, "spec": spec}, indent=2)
