#!/usr/bin/env python3
"""Code that stands twice: six lines or more in a row that are the same to the letter, outside tests, in Rust.

What counts as a line and what as a test is as in bench/lines.py; indentation does not count, nor do imports. Four of
six lines must have words, `#[inline]` and the like aside: the end of a function and the start of the next are none.

    bench/duplicates.py             lists them, the longest first
    bench/duplicates.py --check     fails if there are any
"""

import argparse
import collections
import re
import sys

import lines

# Lines in a row that make a duplicate, and how many of them must have words.
LEAST = 6
WITH_WORDS = 4


def without_imports(code):
    is_import = False
    for number, line in code:
        is_import = is_import or re.match(r"(pub(\(\w+\))? )?use ", line) is not None
        if not is_import:
            yield number, line
        is_import = is_import and not line.endswith(";")


def has_words(line):
    return re.search(r"\w", line) is not None and not re.fullmatch(r"#\[\w+(\(\w+\))?\]", line)


def windows(files):
    """Each LEAST lines in a row, and where they stand: a file and the place of the first of them in it."""
    places = collections.defaultdict(list)
    for path, code in files.items():
        for start in range(len(code) - LEAST + 1):
            window = tuple(line for _, line in code[start : start + LEAST])
            if sum(map(has_words, window)) >= WITH_WORDS:
                places[window].append((path, start))
    return places


def duplicates(files):
    """Pairs of places with how many lines are the same from there on."""
    lengths = {}
    for places in windows(files).values():
        for index, one in enumerate(places):
            for other in places[index + 1 :]:
                lengths[one, other] = LEAST
    # From the last to the first: a pair takes over what the one a line further down has.
    for (first, at), (second, then) in sorted(lengths, reverse=True):
        below = lengths.pop(((first, at + 1), (second, then + 1)), LEAST - 1)
        lengths[(first, at), (second, then)] = below + 1
    return sorted(((count, one, other) for (one, other), count in lengths.items()), reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if there are any")
    args = parser.parse_args()
    files = {path: list(without_imports(code)) for path, code, _ in lines.split(list(lines.sources(None)))}
    found = duplicates(files)

    def place(path, start, count):
        return f"{path}:{files[path][start][0]}-{files[path][start + count - 1][0]}"

    for count, one, other in found:
        print(f"{count} lines: {place(*one, count)} and {place(*other, count)}")
    if args.check and found:
        sys.exit("Code that stands twice (bench/duplicates.py): make it one.")


if __name__ == "__main__":
    main()
