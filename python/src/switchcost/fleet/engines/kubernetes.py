"""Kubernetes: an indexed Job with a pod on each node. Answers are the pods' logs: no storage has to be shared.

Everything goes through kubectl, with its current context and namespace.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
from typing import Any

from ..._program import printable
from ..engine import Selection, State, call
from ..submission import LARGEST_ANSWER, FleetError, Submission, checked_hosts
from . import ssh

LABEL = "switchcost/submission"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def add(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--image", help="the image (deploy/Dockerfile)")
    group.add_argument("--selector", metavar="LABELS", help="the nodes that have these labels [all]")
    group.add_argument("--unprivileged", action="store_true", help="no root, no capability, no host PIDs")


def hosts(arguments: argparse.Namespace) -> Selection:
    if arguments.hosts or arguments.hosts_file:
        return ssh.hosts(arguments)
    nodes = all_nodes([f"--selector={arguments.selector}"] if arguments.selector else [])
    if arguments.selector and not nodes:
        raise FleetError(f"--selector {arguments.selector}: no node has these labels", 2)
    left_out = {name: "not ready" for name, is_ready in nodes.items() if not is_ready}
    return Selection([name for name in nodes if name not in left_out], left_out)


def all_nodes(options: list[str]) -> dict[str, bool]:
    """The nodes, and whether each is ready. One that is cordoned is: a drained node is measured again."""
    nodes = {}
    for node in items(["nodes", *options]):
        conditions = node.get("status", {}).get("conditions", [])
        ready = [condition.get("status") for condition in conditions if condition.get("type") == "Ready"]
        nodes[node["metadata"]["name"]] = ready in ([], ["True"])
    return nodes


def items(what: list[str]) -> list[Any]:
    try:
        return list(json.loads(call(["kubectl", "get", *what, "--output=json"]))["items"])
    except (ValueError, KeyError, TypeError) as error:
        raise FleetError(f"kubectl get {what[0]}: not understood: {printable(str(error))}") from None


def text(submission: Submission, hosts: list[str], arguments: argparse.Namespace) -> str:
    return json.dumps(manifest(submission, hosts, arguments), indent=2) + "\n"


def manifest(submission: Submission, hosts: list[str], arguments: argparse.Namespace) -> dict[str, Any]:
    """The Job; deploy/kubernetes/job has the same without a node list, and says why it is as it is."""
    if not arguments.image:
        raise FleetError("--image is missing: the image that deploy/Dockerfile builds, where the cluster finds it", 2)
    # All pods take their node at once, else a second one could come to a node that is done; they wait in it.
    turn_s = max(arguments.staggered_s, 1.5 * arguments.budget_s / arguments.parallel if arguments.parallel else 0)
    name = {"app.kubernetes.io/name": "switchcost", LABEL: submission.id}
    lost = [{"type": "DisruptionTarget", "status": "True"}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(submission), "labels": name},
        "spec": {
            "completionMode": "Indexed",
            "completions": len(hosts),
            "parallelism": len(hosts),
            "backoffLimitPerIndex": 2,
            "activeDeadlineSeconds": math.ceil(600 + 4 * arguments.budget_s + len(hosts) * turn_s),
            "ttlSecondsAfterFinished": 86400,
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": lost}]},
            "template": {"metadata": {"labels": name}, "spec": pod(submission, hosts, arguments, turn_s)},
        },
    }


def pod(submission: Submission, hosts: list[str], arguments: argparse.Namespace, turn_s: float) -> dict[str, Any]:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [host]}]} for host in hosts]
    alike = {"matchLabels": {"app.kubernetes.io/name": "switchcost"}}
    apart = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": alike}]
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        **({} if arguments.unprivileged else {"hostPID": True}),
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 5,
        "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}, "podAntiAffinity": {REQUIRED: apart}},
        "containers": [container(submission, arguments, turn_s)],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }


def container(submission: Submission, arguments: argparse.Namespace, turn_s: float) -> dict[str, Any]:
    wait = f'sleep "$((JOB_COMPLETION_INDEX * {round(turn_s * 1000)} / 1000))"\n' if turn_s else ""
    privileged = {"runAsUser": 0, "capabilities": {"drop": ["ALL"], "add": ["SYS_NICE"]}}
    unprivileged = {"runAsUser": 65532, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}}
    return {
        "name": "measure",
        "image": arguments.image,
        # "$(" and "$$" are kubernetes' own: of two "$" it leaves one, whatever follows.
        "command": ["sh", "-c", (wait + submission.job_text()).replace("$", "$$"), "job", "$(NODE)"],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"requests": {"cpu": "1", "memory": "256Mi"}},
        "securityContext": {
            **(unprivileged if arguments.unprivileged else privileged),
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }


def job_name(submission: Submission) -> str:
    return f"switchcost-{submission.id}-{len(submission.jobs) + 1}"


def submit(submission: Submission, hosts: list[str], arguments: argparse.Namespace) -> None:
    name = job_name(submission)
    # `create`: `apply` keeps a copy in an annotation, which a long list of nodes does not fit in.
    call(["kubectl", "create", "--filename=-"], text(submission, hosts, arguments))
    submission.jobs.append(name)


def pods(submission: Submission) -> list[Any]:
    return items(["pods", f"--selector={LABEL}={submission.id}"])


def states(submission: Submission) -> dict[str, State]:
    found, unplaced = {}, None
    for pod in pods(submission):
        status, host = pod.get("status", {}), pod["spec"].get("nodeName")
        phase = status.get("phase", "Unknown")
        reasons = [status.get("reason"), status.get("message")]
        reasons += [condition.get("message") for condition in status.get("conditions", []) if phase == "Pending"]
        why = f"pod {pod['metadata']['name']} {phase.lower()}: {', '.join(filter(None, reasons))}"
        one = State(phase in ("Pending", "Running", "Unknown"), printable(why).rstrip(": "))
        if not host:
            unplaced = one
        elif host not in found or one.waiting:
            found[host] = one
    if unplaced:
        # Which node a pod waits for is known only once it has one.
        found = {**{host: unplaced for host in submission.hosts}, **found}
    return found


def fetch(submission: Submission) -> None:
    missing = set(submission.hosts) - submission.answered()
    if not missing:
        return
    for pod in pods(submission):
        host = pod["spec"].get("nodeName", "")
        if host not in missing or pod.get("status", {}).get("phase") != "Succeeded":
            continue
        checked_hosts([pod["metadata"]["name"]])
        part = submission.folder / f"{host}.part"
        with open(part, "wb") as file:
            log = ["kubectl", "logs", pod["metadata"]["name"], "--container=measure", f"--limit-bytes={LARGEST_ANSWER}"]
            done = subprocess.run(log, stdout=file, stderr=subprocess.PIPE)
        if done.returncode == 0:
            os.replace(part, submission.result(host))
        else:
            part.unlink()
            submission.note(host, [f"kubectl logs: {printable(done.stderr.decode(errors='replace'))}"])
