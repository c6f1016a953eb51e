"""No file of the package needs itself through others."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def modules() -> dict[str, Path]:
    """The files by the name that they are imported by."""
    found = {".".join(file.relative_to(SOURCE).with_suffix("").parts): file for file in SOURCE.rglob("*.py")}
    return {name.removesuffix(".__init__"): file for name, file in found.items()}


def imported(name: str, file: Path, known: dict[str, Path]) -> set[str]:
    """Files that a file names in imports, also in functions and for types alone; not the packages that they are in."""
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*parts, *filter(None, [node.module])])
            of = {f"{source}.{alias.name}" for alias in node.names}
            found |= (of & known.keys()) | ({source} if of - known.keys() else set())
    return found & known.keys()


def circle(imports: dict[str, set[str]]) -> list[str]:
    """The names of what imports itself through others, and of what is on a way between two such."""
    left = dict(imports)
    while ends := [name for name in left if not left[name] & left.keys() or name not in set().union(*left.values())]:
        for name in ends:
            del left[name]
    return sorted(left)


def test_files_do_not_import_each_other_in_a_circle() -> None:
    known = modules()
    imports = {name: imported(name, file, known) for name, file in known.items()}
    assert len(imports) > 20 and "switchcost.tables" in imports["switchcost.runs"]
    assert circle(imports) == []


def test_a_circle_is_seen() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c"]
