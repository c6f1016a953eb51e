#!/usr/bin/env python3
"""Measures the links of today's runtimes in turn and judges what was claimed about their order.

    bench/runtime_links.py [--rough] PROGRAM [LAUNCHES [SECONDS]]    default: 10 launches of 20 s each and placement

Each launch measures all these links in the same rounds, as rings of two threads: on one CPU, and on a
pair of CPUs if there is one. A ratio is that of two times per hop of the same launch; its 95 % interval
is that of the launches' geometric mean (Student). A hop is all that passing the token takes: send,
wake-up, switch, receive. A claim is confirmed or refuted if the whole interval is, else undecided.
Times that are not at full speed are left out and counted; --rough takes them, to try this program out.
Links that are not here are told with their reason, and claims about them are not judged.
"""

import dataclasses
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile

LINKS = "eventfd epoll-eventfd epoll-socket socket-stream futex futex-waitv io-uring io-uring-msg io-uring-futex io-uring-poll".split()

# Two times that differ by less are called equal.
EQUAL = 0.10

# 97.5 % quantiles of Student's t by degrees of freedom; beyond the last, that of the normal distribution is close.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086]


@dataclasses.dataclass
class Claim:
    """That a hop by `link` takes `least` to `most` times as long as one by `other`."""

    source: str
    text: str
    link: str
    other: str
    least: float
    most: float


CLAIMS = [
    Claim("axboe/liburing#1150", "an eventfd polled on the ring is faster than a message ring", "io-uring-msg", "io-uring-poll", 1, math.inf),
    Claim("axboe/liburing#1150", "... by a factor of 3", "io-uring-msg", "io-uring-poll", 3 / (1 + EQUAL), 3 * (1 + EQUAL)),
    Claim("axboe/liburing#1105", "io_uring polls an eventfd later than epoll", "io-uring-poll", "epoll-eventfd", 1, math.inf),
    Claim("axboe/liburing#1105", "... 1,700 to 2,100 ns against 650 to 670", "io-uring-poll", "epoll-eventfd", 1700 / 670, 2100 / 650),
    Claim("axboe/liburing#1105, as edited", "no difference between both", "io-uring-poll", "epoll-eventfd", 1 / (1 + EQUAL), 1 + EQUAL),
]


def measure(program, links, placement, seconds, home, is_rough):
    """Returns the nanoseconds per hop of each link in a ring of two, as far as they can be used."""
    command = [program, "ring", "--link", ",".join(links), "--members", "2", "--kind", "thread", "--placement", placement]
    run = subprocess.run(
        [*command, "--budget", f"{seconds}s", "--json", "-"],
        env={**os.environ, "XDG_DATA_HOME": home, "XDG_STATE_HOME": home},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if run.returncode:
        sys.exit(f"{' '.join(command)}: {run.stderr.strip()}")
    hops = {}
    for case in json.loads(run.stdout)["cases"]:
        hop = case["ns_per_hop"]
        can_be_used = hop and hop["value"] > 0 and (is_rough or not hop.get("not_quotable"))
        if case["case"]["members"] == 2 and can_be_used:
            hops[case["case"]["link"]] = hop["value"]
    return hops


def interval(values):
    """Returns the geometric mean of positive values and its 95 % interval; without an interval of one value."""
    logs = [math.log(value) for value in values]
    middle = statistics.mean(logs)
    if len(logs) < 2:
        return math.exp(middle), 0.0, math.inf
    degrees = len(logs) - 1
    half = STUDENT[min(degrees, len(STUDENT)) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def ratios(launches, link, other):
    """Returns the ratios of launches that have both links."""
    return [hops[link] / hops[other] for hops in launches if link in hops and other in hops]


def judge(claim, launches):
    """Returns the verdict on a claim and what it rests on."""
    values = ratios(launches, claim.link, claim.other)
    if not values:
        return "not measured", ""
    middle, low, high = interval(values)
    shown = f"{claim.link} / {claim.other} = {middle:.2f} ({low:.2f} to {high:.2f}), {len(values)} launches"
    if low >= claim.least and high <= claim.most:
        return "CONFIRMED", shown
    if high < claim.least or low > claim.most:
        return "REFUTED", shown
    return "undecided", shown


def placements():
    """Returns one CPU, and a pair if there is one."""
    cpus = sorted(os.sched_getaffinity(0))
    return ["same"] + [f"{cpus[0]},{cpus[1]}"] * (len(cpus) > 1)


def available(program):
    """Returns the links that are here; prints the reasons of the others."""
    listed = json.loads(subprocess.run([program, "ring", "--link", "help", "--json", "-"], stdout=subprocess.PIPE, check=True).stdout)
    reasons = {link["name"]: link["why_not"] for link in listed}
    for name in LINKS:
        if name not in reasons or reasons[name]:
            print(f"{name}: not here: {reasons.get(name, 'this program does not know it')}")
    return [name for name in LINKS if name in reasons and not reasons[name]]


def report(placement, launches, links):
    print(f"\n{'on one CPU' if placement == 'same' else f'on CPUs {placement}'}, {len(launches)} launches")
    print(f"  {'link':15} {'ns per hop':>10}  {'95 %':18}  {'/ eventfd':>9}  95 %")
    for link in links:
        values = [hops[link] for hops in launches if link in hops]
        if not values:
            print(f"  {link:15} not measured")
            continue
        middle, low, high = interval(values)
        line = f"  {link:15} {middle:10.0f}  {f'{low:.0f} to {high:.0f}':18}"
        if shared := ratios(launches, link, "eventfd"):
            ratio, least, most = interval(shared)
            line += f"  {ratio:9.2f}  {least:.2f} to {most:.2f}"
        if len(values) < len(launches):
            line += f"  (of {len(values)} launches)"
        print(line)
    for claim in CLAIMS:
        verdict, shown = judge(claim, launches)
        print(f"  {verdict:12} {claim.source}: {claim.text}; {shown}")


def main():
    is_rough = "--rough" in sys.argv
    words = [word for word in sys.argv[1:] if word != "--rough"]
    if not words:
        sys.exit(__doc__)
    program = os.path.abspath(words[0])
    count = int(words[1]) if len(words) > 1 else 10
    seconds = float(words[2]) if len(words) > 2 else 20.0
    print(f"Linux {platform.release()}, {os.cpu_count()} CPUs; {count} launches of {seconds:g} s for each placement")
    links = available(program)
    launches = {placement: [] for placement in placements()}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(count):
            for placement, measured in launches.items():
                measured.append(measure(program, links, placement, seconds, home, is_rough))
    for placement, measured in launches.items():
        report(placement, measured, links)


if __name__ == "__main__":
    main()
