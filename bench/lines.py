#!/usr/bin/env python3
"""Lines of Rust code without tests, and files, by room: a crate, and within `switchcost` a folder.

A line counts if it is neither blank nor a comment. Tests are the folders tests, benches and examples, files named
tests.rs or *_tests.rs, and modules behind #[cfg(test)]; their lines are listed apart. Files are all .rs files.

    bench/lines.py [COMMIT]     of a commit (default: the work tree's files that git knows)
    bench/lines.py A B          of both, side by side
    bench/lines.py --check      fails if a room of the work tree has more lines than its cap
"""

import collections
import re
import subprocess
import sys

TEST_FOLDERS = {"tests", "benches", "examples"}

# Most lines of code of each room, and what they are for. A commit that raises one says why.
CAPS = {
    "charts": (2350, "a figure as SVG, PNG, HTML and text; all that a page of it says when it is zoomed"),
    "classic": (700, "nine programs of the documents"),
    "launcher": (950, "a command started and accounted"),
    "model": (13450, "the nouns and all arithmetic, that of programs and commands too"),
    "preload": (1100, "what `profile` puts into a command"),
    "probe": (8850, "all that touches the kernel: rings by 25 links, trials, machine"),
    "stats": (1650, "resampling, change points, ratios, scatters"),
    "switchcost": (120, "main and the build script"),
    "switchcost/base": (250, "errors, typed values, secrets"),
    "switchcost/engine": (1850, "schedule, workers, run files"),
    "switchcost/experiments": (4600, "five experiments: arguments, plans, tables, charts"),
    "switchcost/observe": (3700, "programs that run: live, watch, trace, top"),
    "switchcost/present": (1650, "outputs, terminal tables, charts of rounds"),
    "switchcost/program": (2550, "the commands"),
    "switchcost/usage": (2550, "run and profile"),
    "switchtrace": (2350, "eBPF programs and their tables"),
    "threadclock": (2200, "a thread's CPU time for the price of a time stamp"),
}


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


def count(text):
    """Lines of code, and of tests within them."""
    code = tests = 0
    lines = text.split("\n")
    end = None  # the line that closes a test module
    for number, line in enumerate(lines):
        bare = line.strip()
        if end is None and bare == "#[cfg(test)]" and re.match(r"\s*(pub(\(\w+\))? )?mod \w+ \{", lines[number + 1]):
            end = line[: len(line) - len(line.lstrip())] + "}"
        counts = bare != "" and not bare.startswith("//")
        if end is None:
            code += counts
        else:
            tests += counts
            if line == end:
                end = None
    return code, tests


def table(commit):
    rooms = collections.defaultdict(lambda: [0, 0, 0])
    files = list(sources(commit))
    tested = test_modules(files)
    for path, text in files:
        room = rooms[room_of(path)]
        room[0] += 1
        inside = any(path.startswith((f"{module}.rs", f"{module}/")) for module in tested)
        code, tests = (0, sum(count(text))) if is_test(path) or inside else count(text)
        room[1] += code
        room[2] += tests
    rooms["all"] = [sum(column) for column in zip(*rooms.values())]
    return rooms


def check():
    """Names each room that has more lines than its cap, or none."""
    rooms = table(None)
    del rooms["all"]
    for room, (_, code, _) in sorted(rooms.items()):
        most = CAPS.get(room, (0,))[0]
        if code > most:
            yield f"{room} has {code} lines of code, its cap is {most} (CAPS in bench/lines.py)"


def main():
    if sys.argv[1:] == ["--check"]:
        sys.exit("\n".join(check()) or None)
    commits = sys.argv[1:3] or [None]
    tables = [table(commit) for commit in commits]
    names = sorted({room for one in tables for room in one} - {"all"}) + ["all"]
    head = "".join(f"{commit or 'work tree':>27}" for commit in commits)
    print(f"{'':24}{head}\n{'room':24}" + f"{'files':>9}{'code':>9}{'tests':>9}" * len(tables))
    for name in names:
        print(f"{name:24}" + "".join(f"{value:9}" for one in tables for value in one.get(name, [0, 0, 0])))


main()
