#!/usr/bin/env python3
"""Lines of Rust code without tests, and files, by crate.

A line counts if it is neither blank nor a comment. Tests are the folders tests, benches and examples,
files named tests.rs or *_tests.rs, and modules behind #[cfg(test)]; their lines are listed apart. Files are all .rs files, tests included.

    bench/lines.py [COMMIT]     of a commit (default: the work tree's files that git knows)
    bench/lines.py A B          of both, side by side
"""

import collections
import re
import subprocess
import sys

TEST_FOLDERS = {"tests", "benches", "examples"}


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
    for path, text in sources(commit):
        room = rooms["/".join(path.split("/")[:2])]
        room[0] += 1
        code, tests = (0, count(text)[0] + count(text)[1]) if is_test(path) else count(text)
        room[1] += code
        room[2] += tests
    rooms["all"] = [sum(column) for column in zip(*rooms.values())]
    return rooms


def main():
    commits = sys.argv[1:3] or [None]
    tables = [table(commit) for commit in commits]
    names = sorted({room for one in tables for room in one} - {"all"}) + ["all"]
    head = "".join(f"{commit or 'work tree':>27}" for commit in commits)
    print(f"{'':24}{head}\n{'crate':24}" + f"{'files':>9}{'code':>9}{'tests':>9}" * len(tables))
    for name in names:
        print(f"{name:24}" + "".join(f"{value:9}" for one in tables for value in one.get(name, [0, 0, 0])))


main()
