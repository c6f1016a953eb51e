#!/usr/bin/env python3
"""What other tools print of a context switch beside the same figure of ours: the table of docs/from-your-tool.md.

    bench/against_tools.py [--rounds 20] [--folder DIR] [--only WORD] [--wake-up-pairs 10] [--cpu N]
                           [--policy other|fifo] [--switchcost target/release/switchcost]

A round runs each tool and `switchcost ring` once, in random order, all on one CPU. Of each tool is printed:

- its unit, in nanoseconds, as it prints it, and the switches that the kernel counted in one;
- the ratio to the same unit by our rings: hops, switches above a ring of one, or items of a stream;
- the ratio with the returns added: tools call the kernel through the C library, and on some CPUs the return out of
  such a function costs time after each system call (bench/against_pipes.py): the difference of two bare rings.

cyclictest and schbench print wake-ups: their p50 is set beside ours by bench/against_wakeups.py, in pairs (0: none).

A tool is looked for in DIR and then on PATH; one that is not there is skipped. perf, hackbench, cyclictest and
stress-ng are packages of Debian (linux-perf, rt-tests, stress-ng), lat_ctx is in lmbench; context1 is of UnixBench,
timectxsw and timetctxsw are of tsuna/contextswitch. Needs a C compiler and a quiet machine; 20 rounds take some eight
minutes.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import against_wakeups
from against_pipes import IN_TURN, bare_ring, build_ring, has_perf
from side_by_side import (
    add_arguments,
    counted_run,
    interval,
    median,
    our_rings,
    pinned,
    print_table,
    run_rounds,
    show_interval,
    under_policy,
)

# What each sender of `hackbench` and `perf bench sched messaging` sends to each receiver of its group.
MESSAGE_LOOPS = 300
# Senders, and receivers, of a group; hackbench takes another number.
GROUP = 20


@dataclass
class ToolFigure:
    """What a tool printed in one run: nanoseconds of its unit, and the counted switches in one (None: not known)."""

    unit_ns: float
    switches: float | None


@dataclass
class OurFigures:
    """Our rings of one round, and what returns out of functions add to a hop of bare rings."""

    rings: dict
    returns_ns: dict
    slot_returns_ns: float

    def hop_ns(self, link="pipe", kind="process", members=2):
        return self.rings[kind][(link, members)].hop_ns

    def above_solo_ns(self, link="pipe", kind="process"):
        return self.hop_ns(link, kind) - self.hop_ns(link, kind, 1)


@dataclass
class Tool:
    """A tool: its program, the unit that it prints, how it is run, and the same unit by our rings."""

    name: str
    program: str
    unit: str
    run: Callable[[argparse.Namespace, str], ToolFigure]
    # The unit by our rings in nanoseconds, and what returns out of functions add to it.
    ours: Callable[[OurFigures, ToolFigure], tuple[float, float]]
    ours_by: str


def run_perf_pipe(options):
    def run(args, program):
        command = [program, "bench", "sched", "pipe", *options, "-l", str(args.laps)]
        text, switches, _ = counted_run(pinned(args, command))
        return ToolFigure(1000 * found(r"([\d.]+) usecs/op", text), switches / args.laps)

    return run


def run_perf_messaging(args, program):
    command = [program, "bench", "sched", "messaging", "-g", "1", "-l", str(MESSAGE_LOOPS)]
    text, switches, _ = counted_run(pinned(args, command))
    messages = GROUP * GROUP * MESSAGE_LOOPS
    return ToolFigure(1e9 * found(r"Total time: ([\d.]+)", text) / messages, switches / messages)


def run_hackbench(senders):
    def run(args, program):
        messages = GROUP * GROUP * MESSAGE_LOOPS
        loops = messages // (senders * senders)
        command = [program, "-g", "1", "-f", str(senders), "-l", str(loops)]
        text, switches, _ = counted_run(pinned(args, command))
        return ToolFigure(1e9 * found(r"Time: ([\d.]+)", text) / messages, switches / messages)

    return run


def run_lat_ctx(args, program):
    # It pins its ring itself: its parent, for which the ring polls, must run elsewhere. Without ENOUGH it first
    # calibrates its clock, for ever where other tasks run.
    environment = {**os.environ, "ENOUGH": "5000", "LMBENCH_SCHED": f"CUSTOM {args.cpu}"}
    text, _, _ = counted_run(under_policy(args, [program, "-N", "3", "-s", "0", "2"]), environment)
    return ToolFigure(1000 * found(r"^2 ([\d.]+)", text), None)


def run_context1(args, program):
    text, switches, _ = counted_run(pinned(args, [program, "1"]))
    # The other process prints a count, too: 0.
    loops = max(float(count) for count in re.findall(r"COUNT\|(\d+)\|", text))
    # It ends without waiting for its other process, whose switches are not counted then: as many.
    return ToolFigure(1e9 / loops, 2 * switches / loops)


def run_stress_ng(args, program):
    options = ["--switch", "1", "--timeout", "1", "--metrics"]
    text, switches, _ = counted_run(pinned(args, [program, *options]))
    unit_ns = found(r"([\d.]+) nanosec\w* per context switch", text)
    operations = found(r"metrc?:.*\bswitch +(\d+)", text)
    return ToolFigure(unit_ns, switches / operations)


def run_timectxsw(args, program):
    # It leaves its shared memory behind: in a namespace that ends with it.
    namespace = ["unshare", "--ipc"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--ipc"]
    text, switches, _ = counted_run(pinned(args, [*namespace, program]))
    claimed = found(r"(\d+) +\w+ context switches", text)
    return ToolFigure(found(r"\(([\d.]+)ns/ctxsw\)", text), switches / claimed)


def found(pattern, text):
    match = re.search(pattern, text, re.MULTILINE)
    if not match:
        sys.exit(f"no {pattern!r} in: {text.strip()[-400:]}")
    return float(match.group(1))


def two_hops(kind):
    return lambda ours, _: (2 * ours.hop_ns(kind=kind), 2 * ours.returns_ns["pipe", 2])


def switch_of_one(ours, _):
    return ours.above_solo_ns(), ours.returns_ns["pipe", 2] - ours.returns_ns["pipe", 1]


def item_of_one_slot(ours, _):
    """No ring of ours has an item of one write, one read and two switches: a bare loop in C."""
    return ours.rings["slot"].hop_ns, ours.slot_returns_ns


def message(ours, _):
    return ours.rings["stream"]["socket-stream", 2].hop_ns, ours.returns_ns["socket-stream", 1]


def message_of_group(ours, _):
    return ours.rings["streams"], ours.returns_ns["socket-stream", 1]


def quarter_of_futex_loop(kind):
    """A loop of timectxsw has two waits that sleep, two wakes that wake, two that wake nobody, and four yields."""

    def ours(figures, figure):
        hops_ns = 2 * figures.hop_ns("futex", kind) + 4 * figures.hop_ns("yield", kind)
        # Six switches and ten calls, as if they were those of pipes: a hop has one switch and two calls.
        returns_ns = 6 * figures.returns_ns["pipe", 2] - figures.returns_ns["pipe", 1]
        return (hops_ns + 2 * figures.hop_ns("futex", kind, 1)) / 4, returns_ns / 4

    return ours


PIPE = "ring --members 2"
STREAM = "ring --flight full --link unix"
STREAMS = "ring --rings 20 --placement same --flight full --link unix"
YIELD = "ring --members 2 --link futex,yield"
SLOT = "bench/bare-ring.c with one slot"
TOOLS = [
    Tool("perf bench sched pipe", "perf", "operation", run_perf_pipe([]), two_hops("process"), PIPE),
    Tool(
        "perf bench sched pipe -T",
        "perf",
        "operation",
        run_perf_pipe(["-T"]),
        two_hops("thread"),
        PIPE + " --kind thread",
    ),
    Tool("perf bench sched messaging", "perf", "message", run_perf_messaging, message_of_group, STREAMS),
    Tool("lat_ctx -s 0 2", "lat_ctx", "context switch", run_lat_ctx, switch_of_one, PIPE),
    Tool("context1", "context1", "loop", run_context1, two_hops("process"), PIPE),
    Tool("stress-ng --switch 1", "stress-ng", "context switch", run_stress_ng, item_of_one_slot, SLOT),
    Tool("timectxsw", "timectxsw", "ctxsw", run_timectxsw, quarter_of_futex_loop("process"), YIELD),
    Tool("timetctxsw", "timetctxsw", "ctxsw", run_timectxsw, quarter_of_futex_loop("thread"), YIELD + " --kind thread"),
    Tool("hackbench -g 1 -f 1", "hackbench", "message", run_hackbench(1), message, STREAM),
    Tool("hackbench -g 1", "hackbench", "message", run_hackbench(GROUP), message_of_group, STREAMS),
]


def find_program(args, name):
    return shutil.which(name, path=args.folder) or shutil.which(name)


def our_streams(args):
    """Returns the time of an item in nanoseconds where as many streams as a group has share the CPU."""
    command = [args.switchcost, "ring", "--rings", str(GROUP), "--placement", "same", "--flight", "full"]
    command += ["--link", "socket-stream", "--policy", args.policy, "--rounds", "1", "--quiet", "--json", "-"]
    with tempfile.TemporaryDirectory() as store:
        environment = {**os.environ, "XDG_DATA_HOME": store, "XDG_STATE_HOME": store, "SWITCHCOST_IGNORE_BUSY": "1"}
        text, _, _ = counted_run(pinned(args, command), environment)
    cases = [case.get("rings_at_once") for case in json.loads(text[text.index("{") :])["cases"]]
    return next(1e9 / rings["hops_per_second"]["value"] for rings in cases if rings and rings["rings"] == GROUP)


def our_figures(args, options):
    return our_rings(args, ["--members", "2", "--laps", str(args.laps), *options])


def returns_of_rings(bare, args):
    """Returns what returns out of functions add to a hop of a bare ring, in nanoseconds, by channel and members."""
    returns_ns = {}
    for channel, members in [("pipe", 2), ("pipe", 1), ("socket-stream", 1)]:
        returns_ns[channel, members] = bare_ring(bare, args, IN_TURN, members, channel).difference_ns
    return returns_ns


def programs_of(args, bare, slot):
    """Returns what measures once, by name: the tools that are here, our rings and the bare rings."""
    processes = ["--link", "pipe,futex,yield"]
    programs = {
        "ours, processes": lambda: our_figures(args, processes),
        "ours, threads": lambda: our_figures(args, [*processes, "--kind", "thread"]),
        "slot": lambda: [bare_ring(slot, args, calls, has_slices=False) for calls in ("inline", "function")],
        "ours, streams": lambda: our_streams(args),
        "ours, stream": lambda: our_figures(args, ["--link", "socket-stream", "--flight", "full"]),
        "returns": lambda: returns_of_rings(bare, args),
    }
    for tool in TOOLS:
        program = find_program(args, tool.program)
        if args.only and args.only not in tool.name:
            continue
        if program and (tool.program != "perf" or has_perf()):
            programs[tool.name] = lambda tool=tool, program=program: tool.run(args, program)
        else:
            print(f"{tool.name}: skipped: not installed")
    return programs


def print_tools(rounds):
    # What returns cost is the same in all rounds.
    channels = rounds[0]["returns"]
    returns_ns = {channel: median([measured["returns"][channel] for measured in rounds]) for channel in channels}
    slot_returns_ns = median([called.hop_ns - bare.hop_ns for bare, called in (measured["slot"] for measured in rounds)])
    words = [f"{channel} of {members}: {time:.0f}" for (channel, members), time in returns_ns.items()]
    print(f"Returns out of functions, ns a hop: {', '.join(words)}\n")
    rows = []
    for tool in TOOLS:
        if tool.name not in rounds[0]:
            continue
        figures, ratios, explained = [], [], []
        for measured in rounds:
            figure = measured[tool.name]
            rings = {
                "process": measured["ours, processes"],
                "thread": measured["ours, threads"],
                "stream": measured["ours, stream"],
                "streams": measured["ours, streams"],
                "slot": measured["slot"][0],
            }
            unit_ns, added_ns = tool.ours(OurFigures(rings, returns_ns, slot_returns_ns), figure)
            figures.append(figure)
            ratios.append(figure.unit_ns / unit_ns)
            explained.append(figure.unit_ns / (unit_ns + added_ns))
        row = [f"`{tool.name}`", f"{tool.unit}: {median([figure.unit_ns for figure in figures]):.0f}"]
        counts = [figure.switches for figure in figures if figure.switches is not None]
        row.append(f"{median(counts):.2f}" if counts else "-")
        row += [f"`{tool.ours_by}`", show_interval(ratios), show_interval(explained)]
        rest, low, high = interval(explained)
        row.append("yes" if abs(rest - 1) <= 0.03 else "interval" if low and low < 1.03 and high > 0.97 else "no")
        rows.append(row)
    head = ["tool", "its unit, ns", "switches in it", "ours", "ratio", "ratio with returns", "within 3 %"]
    print_table(head, rows)


def print_wakeups(args):
    """Prints the ratios of the wake-ups' medians of cyclictest and schbench to ours."""
    tools = [
        ("cyclictest", against_wakeups.cyclictest, against_wakeups.sleeper),
        ("schbench", against_wakeups.schbench, against_wakeups.loads),
    ]
    for name, tool, ours in tools:
        if args.only and args.only not in name:
            continue
        if not shutil.which(name):
            print(f"{name}: skipped: not installed")
            continue
        ratios = []
        for _ in range(args.wake_up_pairs):
            own = ours(args, args.seconds)["p50"][1]
            theirs = tool(args, args.seconds)
            if theirs:
                # They print whole microseconds.
                ratios.append(theirs["p50"] / own)
        print(f"{name}: p50 of a wake-up, ratio to ours: {show_interval(ratios)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser, 20)
    parser.add_argument("--folder", help="where tools are that are not on PATH")
    parser.add_argument("--only", help="only tools whose name has this word")
    parser.add_argument("--wake-up-pairs", type=int, default=10)
    args = parser.parse_args()
    # As against_wakeups.py has them by default.
    args.seconds, args.rate, args.think = 10, 1000, "20us"
    with tempfile.TemporaryDirectory() as folder:
        bare, slot = build_ring(Path(folder)), build_ring(Path(folder), "one-slot", "-DONE_SLOT=1")
        programs = programs_of(args, bare, slot)
        if len(programs) > 6:
            print_tools(run_rounds(programs, args.rounds))
    if args.wake_up_pairs:
        print_wakeups(args)


if __name__ == "__main__":
    main()
