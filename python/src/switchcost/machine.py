"""The facts of a run, read from its record: columns of `machine`, and of `machines` in a fleet's dataset.

Which there are, and where the record has them, the program declares (docs/columns.md, "Facts").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from switchcost._program import printable
from switchcost.declared import FACTS, Fact

_LONGEST = 4096


def _value(value: Any) -> Any:
    return value


def _distinct(values: Any) -> str | None:
    return None if values is None else ", ".join(sorted({str(value) for value in values if value is not None}))


def _pairs(values: Any) -> str | None:
    if values is None:
        return None
    return "; ".join(f"{name}: {known}" for name in sorted(values) if (known := _at(values, name)) is not None)


def _first(values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _count(items: Any) -> int | None:
    return len(items) if items else None


def _reasons(texts: Any) -> str:
    return "; ".join(texts or [])


def _steppings(models: Any) -> str | None:
    keys = ("family", "model", "stepping")
    return _distinct(["-".join(str(_at(model, key)) for key in keys) for model in models or []])


def _hypervisor(facts: Any) -> str | None:
    """Its name where one is known, else whether CPUID says that there is one."""
    flag = _at(facts, "cpu_flag")
    if flag is False:
        return "none"
    names = ("hypervisor_type", "dmi_vendor", "dmi_product", "device_tree_hypervisor")
    return " ".join(name for key in names if (name := _at(facts, key))) or ("yes" if flag else None)


def _end_reason(end: Any) -> str | None:
    return "killed" if end is None else _at(end, "reason")


#: What makes a fact of what lies at its path, None where that is not known; by the name that the program declares.
READINGS: dict[str, Callable[[Any], Any]] = {
    "value": _value,
    "distinct": _distinct,
    "pairs": _pairs,
    "first": _first,
    "count": _count,
    "reasons": _reasons,
    "steppings": _steppings,
    "hypervisor": _hypervisor,
    "end_reason": _end_reason,
}


def facts_of(record: dict[str, Any], table: str = "machine") -> dict[str, Any]:
    """The facts of a record that a table has, by column, without those of the file; None where one is not known."""
    return {fact.name: _read(fact, record) for fact in FACTS if table in fact.tables and fact.path}


def _read(fact: Fact, record: dict[str, Any]) -> Any:
    value = READINGS[fact.reading](_at(record, fact.path))
    return printable(str(value), _LONGEST) or None if fact.kind == "text" and value is not None else value


def _at(value: Any, path: str) -> Any:
    """What lies at a path; None where it is absent or `{"unknown": why}`, of a list what each item has there."""
    path, _, of_each = path.partition("[].")
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, dict) and "unknown" in value:
        return None
    return [_at(item, of_each) for item in value or []] if of_each else value
