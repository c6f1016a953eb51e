"""The figures of a fleet's page, as JSON that the program draws (`switchcost help schema figure`).

Ratios come as natural logarithms; on axes they are changes in percent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date
from math import exp
from typing import Any

import numpy as np

from .._program import run
from .findings import Host, LevelChange
from .statistics import Floats

Figure = dict[str, Any]

# HTML knows it without.
NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
# Colours of the map end at this change; beyond it all are the same.
DARKEST = 25.0
BARS = 80


def drawn(figures: Sequence[Figure], panel: bool = False) -> list[str]:
    """SVG of each figure, to stand within HTML: for 320 pixels (`panel`) or 640. Raises ProgramError."""
    if not figures:
        return []
    given = "".join(json.dumps(figure, allow_nan=False) + "\n" for figure in figures)
    done = run(["chart", *(["--panel"] if panel else []), "-"], given=given.encode())
    if done.exit_code:
        raise done.error()
    return [svg.replace(NAMESPACE, "", 1) for svg in done.output.decode().split("\n")[:-1]]


def step(host: Host, change: LevelChange, days: Sequence[str], ratios: Floats) -> Figure:
    """A host's days, and its levels before and after the day of its step."""
    points = _course(days, ratios)
    series = []
    for level in (
        [p for p, day in zip(points, days, strict=True) if (day >= change.since) is after] for after in (False, True)
    ):
        if level:
            median = float(np.median([point["y"] for point in level]))
            ends = (level[0]["x"] - 0.3, level[-1]["x"] + 0.3)
            series.append(_series("", "law", [{"x": x, "y": median} for x in ends]))
    series.append(_series("", "measured", points))
    return _figure(host.name, str(change), _DAYS, _axis("slower than its group", "change"), {"series": series})


def histogram(title: str, changes: Iterable[float], low: float, high: float, slow: Sequence[Host]) -> Figure:
    """Hosts by how much slower than the median they are; the slow ones are named. Ends are changes in percent."""
    counts, edges = np.histogram(np.clip(list(changes), low, high), np.linspace(low, high, BARS + 1))
    points = [{"x": round(float(x), 4), "y": int(y)} for x, y in zip(edges, [*counts, 0], strict=True)]
    return _figure(
        title,
        "",
        _axis("slower than the median", "change"),
        _axis("hosts", "count", "root"),
        {"series": [_series("hosts", "histogram", points)]},
        marks=[{"x": min(change(host.ratio or 1), high), "label": host.name} for host in slow],
    )


def heat_map(rows: Sequence[tuple[str, Floats]], labels: Sequence[str]) -> Figure:
    """Host by case, from the first row down. Columns have numbers, and their cases where the pointer rests."""
    upwards = rows[::-1]
    cases = {**_axis("case", "names"), "names": [f"{i + 1}" for i in range(len(labels))], "full_names": list(labels)}
    hosts = {**_axis("", "names"), "names": [name for name, _ in upwards]}
    values = [[None if np.isnan(ratio) else change(exp(ratio)) for ratio in ratios] for _, ratios in upwards]
    places = {"xs": list(range(len(labels))), "ys": list(range(len(rows)))}
    contrast = {"middle": 0, "reach": DARKEST}
    return _figure(
        "Host by case", "", cases, hosts, {"map": {"unit": "change", **places, "values": values, "contrast": contrast}}
    )


def courses(daily: dict[str, tuple[list[str], Floats]]) -> Figure:
    """Ratios by day, a line each."""
    series = [_series(name, "measured", _course(days, ratios)) for name, (days, ratios) in daily.items()]
    return _figure("Drift", "", _DAYS, _axis("slower than its group", "change"), {"series": series})


def change(ratio: float) -> float:
    """By how many percent something is more."""
    return round((ratio - 1) * 100, 3)


def _axis(label: str, unit: str, scale: str = "linear") -> Figure:
    return {"label": label, "unit": unit, "scale": scale}


_DAYS = _axis("", "day")


def _course(days: Sequence[str], ratios: Floats) -> list[Figure]:
    first = date(1970, 1, 1)
    return [
        {"x": (date.fromisoformat(day) - first).days, "y": change(exp(y))} for day, y in zip(days, ratios, strict=True)
    ]


def _series(name: str, role: str, points: list[Figure]) -> Figure:
    return {"name": name, "role": role, "points": points}


def _figure(title: str, in_words: str, x: Figure, y: Figure, body: Figure, **more: Any) -> Figure:
    return {"id": "", "title": title, "in_words": in_words, "x": x, "y": y, "body": body, **more}
