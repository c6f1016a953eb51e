#!/usr/bin/env python3
"""Lines of Rust code without tests, and files, by room: a crate, and within `switchcost` a folder.

A line counts if it is neither blank nor a comment. Tests are the folders tests, benches and examples, files named
tests.rs or *_tests.rs, and modules behind #[cfg(test)]; their lines are listed apart. Files are all .rs files.

    bench/lines.py [COMMIT]     of a commit (default: the work tree's files that git knows)
    bench/lines.py A B          of both, side by side
    bench/lines.py --check      fails if a room of the work tree has more lines than its cap
"""

import argparse
import collections
import re
import subprocess
import sys

TEST_FOLDERS = {"tests", "benches", "examples", "fuzz"}

# Most lines of code of each room, and what they are for. A commit that raises one says why.
CAPS = {
    "charts": (2620, "a figure as SVG, PNG, HTML and text; all that a page of it says when it is zoomed, published figures are shown or values are relative to a point that holds"),
    "classic": (700, "nine programs of the documents"),
    "launcher": (1100, "a command started and accounted, and what runs around it; a launcher that stands is told"),
    "model": (17500, "the nouns and all arithmetic, that of programs and commands too; what a preemption costs one; machines of today"),
    "preload": (1100, "what `profile` puts into a command"),
    "probe": (10800, "all that touches the kernel: rings by 25 links, their burdens, trials, machine; a program beside a neighbour"),
    "stats": (1800, "resampling, change points, ratios, scatters"),
    "switchcost": (120, "main and the build script"),
    "switchcost/base": (560, "errors and exit codes, lines that fit a terminal, typed values, secrets; what is kept of command lines"),
    "switchcost/engine": (3100, "schedule, workers and those that stand, run files without words of commands"),
    "switchcost/experiments": (7400, "seven experiments: arguments, plans, tables, charts, tiles"),
    "switchcost/observe": (5200, "programs that run: live, watch, trace with its charts and page, top; those that were measured themselves"),
    "switchcost/present": (2700, "outputs, what datasets and machines of today take of a run, tables that fit a terminal, charts of rounds, tiles, what every page of charts has"),
    "switchcost/program": (4000, "the commands, and what others call what they do; the questions of a report, what differs between its runs"),
    "switchcost/usage": (3420, "run, with command lines as hyperfine has them, of which records keep hashes, and profile, whose counts are checked; the pages of both"),
    "switchtrace": (2350, "eBPF programs and their tables"),
    "testing": (130, "what tests share; no program depends on it"),
    "threadclock": (2200, "a thread's CPU time for the price of a time stamp"),
}

# Lines below the rooms: of the program's, and of all of them.
SUMS = ["switchcost together", "all"]


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def sources(commit):
    """Pairs of path and text of all .rs files."""
    if commit is None:
        for path in git("ls-files", "*.rs").split("\n"):
            try:
                yield path, open(path).read()
            except FileNotFoundError:
                pass
        return
    for path in git("ls-tree", "-r", "--name-only", commit).split("\n"):
        if path.endswith(".rs"):
            yield path, git("show", f"{commit}:{path}")


def is_test(path):
    *folders, name = path.split("/")
    return bool(TEST_FOLDERS.intersection(folders)) or name == "tests.rs" or name.endswith("_tests.rs")


def test_modules(files):
    """Where files lie that their parent declares behind #[cfg(test)], without the end of their names."""
    found = set()
    for path, text in files:
        own = re.sub(r"(/(mod|lib|main))?\.rs$", "", path)
        for name in re.findall(r"#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))? )?mod (\w+);", text):
            found.add(f"{own}/{name}")
    return found


def room_of(path):
    """The crate; within the program the folder."""
    _, crate, *inner = path.split("/")
    return f"{crate}/{inner[1]}" if crate == "switchcost" and inner[0] == "src" and len(inner) > 2 else crate


def counted(text):
    """The lines that count: their numbers, what stands in them, and whether a test module has them."""
    lines = text.split("\n")
    end = None  # the line that closes a test module
    for number, line in enumerate(lines):
        bare = line.strip()
        if end is None and bare == "#[cfg(test)]" and re.match(r"\s*(pub(\(\w+\))? )?mod \w+ \{", lines[number + 1]):
            end = line[: len(line) - len(line.lstrip())] + "}"
        if bare != "" and not bare.startswith("//"):
            yield number + 1, bare, end is not None
        if line == end:
            end = None


def split(files):
    """Each file's path, its lines of code and those of tests, as numbers and what stands in them."""
    tested = test_modules(files)
    for path, text in files:
        inside = any(path.startswith((f"{module}.rs", f"{module}/")) for module in tested)
        only_tests = is_test(path) or inside
        code, tests = [], []
        for number, line, of_test in counted(text):
            (tests if of_test or only_tests else code).append((number, line))
        yield path, code, tests


def table(commit):
    rooms = collections.defaultdict(lambda: [0, 0, 0])
    for path, code, tests in split(list(sources(commit))):
        room = rooms[room_of(path)]
        for column, value in enumerate([1, len(code), len(tests)]):
            room[column] += value
    program = [values for room, values in rooms.items() if room.split("/")[0] == "switchcost"]
    sums = [[sum(column) for column in zip(*parts)] for parts in (program, list(rooms.values()))]
    return rooms | dict(zip(SUMS, sums))


def check():
    """Names each room that has more lines than its cap, or none."""
    for room, (_, code, _) in sorted(table(None).items()):
        most = CAPS.get(room, (0,))[0]
        if room not in SUMS and code > most:
            yield f"{room} has {code} lines of code, its cap is {most} (CAPS in bench/lines.py)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", metavar="COMMIT", nargs="*")
    parser.add_argument("--check", action="store_true", help="fail if a room has more lines than its cap")
    args = parser.parse_args()
    if len(args.commits) > 2 or args.check and args.commits:
        parser.error("accepted: at most two commits, and none with --check")
    if args.check:
        sys.exit("\n".join(check()) or None)
    commits = args.commits or [None]
    tables = [table(commit) for commit in commits]
    names = sorted({room for one in tables for room in one} - set(SUMS)) + SUMS
    head = "".join(f"{commit or 'work tree':>27}" for commit in commits)
    print(f"{'':24}{head}\n{'room':24}" + f"{'files':>9}{'code':>9}{'tests':>9}" * len(tables))
    for name in names:
        print(f"{name:24}" + "".join(f"{value:9}" for one in tables for value in one.get(name, [0, 0, 0])))


if __name__ == "__main__":
    main()
