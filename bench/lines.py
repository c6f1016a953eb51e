#!/usr/bin/env python3
"""Lines of Rust code without tests, and files, by room: a crate, and within `switchcost` a folder.

A line counts if it is neither blank nor a comment. Tests are the folders tests, benches and examples, files named
tests.rs or *_tests.rs, and modules behind #[cfg(test)]; their lines are listed apart. Files are all .rs files.

    bench/lines.py [COMMIT]     of a commit (default: the work tree's files that git knows)
    bench/lines.py A B          of both, side by side
"""

import argparse
import collections
import re
import subprocess
import sys

TEST_FOLDERS = {"tests", "benches", "examples", "fuzz"}

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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", metavar="COMMIT", nargs="*")
    args = parser.parse_args()
    if len(args.commits) > 2:
        parser.error("accepted: at most two commits")
    commits = args.commits or [None]
    tables = [table(commit) for commit in commits]
    names = sorted({room for one in tables for room in one} - set(SUMS)) + SUMS
    head = "".join(f"{commit or 'work tree':>27}" for commit in commits)
    print(f"{'':24}{head}\n{'room':24}" + f"{'files':>9}{'code':>9}{'tests':>9}" * len(tables))
    for name in names:
        print(f"{name:24}" + "".join(f"{value:9}" for one in tables for value in one.get(name, [0, 0, 0])))


if __name__ == "__main__":
    main()
