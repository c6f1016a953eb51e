"""Estimates and their intervals, by matplotlib."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from switchcost.tables import Table, needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

#: What tells lines of one chart apart, where it differs.
_TELLING = (
    *("run", "host", "kind", "link", "stride_bytes", "op", "walk", "huge_pages", "placement", "policy", "priority"),
    *("state", "burden", "flight"),
)
#: Estimates of which one is so many times another are drawn on a logarithmic axis.
_SPAN = 30
_ROW_INCHES = 0.2
_MOST_TICKS = 10
_LABELS = {"work_bytes": "working set of each member", "members": "members of the ring"}
_QUANTITIES = {"switch": "cost of a switch", "hop": "time of a hop", "trial": "time"}


def plot(cases: Table, ax: Axes | None = None) -> Axes:
    """Draws the rows of `cases`: lines over the working set or the ring's size, whichever varies, else a row a case."""
    rows = [row for row in cases.rows() if row["estimate"] is not None]
    is_new = ax is None
    if ax is None:
        matplotlib = needed("matplotlib.pyplot", "plot")
        ax = matplotlib.figure(layout="constrained").add_subplot()
    switches = [row for row in rows if row["quantity"] == "switch"]
    for x in ("work_bytes", "members"):
        # A case without a working set has no place on a logarithmic axis.
        placed = [row for row in switches if row.get(x)]
        if len({row[x] for row in placed}) > 1:
            return _lines(ax, placed, x)
    if not rows:
        ax.set_xlabel(_why_nothing(cases))
    if is_new and (figure := ax.get_figure(root=True)):
        figure.set_figheight(max(figure.get_figheight(), 1 + _ROW_INCHES * len(rows)))
    return _points(ax, rows)


def _lines(ax: Axes, rows: list[dict[str, Any]], x: str) -> Axes:
    telling = _differing(rows, [*_TELLING, *({"members"} - {x})])
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: int(row[x])):
        lines.setdefault(_label(row, telling), []).append(row)
    for label, line in lines.items():
        values = [row["estimate"] for row in line]
        ax.errorbar([row[x] for row in line], values, yerr=_errors(line), marker="o", capsize=3, label=label)
    ax.set_xscale("log", base=2)
    places = sorted({row[x] for row in rows})
    # As many as fit beside each other.
    places = places[:: -(-len(places) // _MOST_TICKS)]
    ax.set_xticks(places, [_size(place) if x == "work_bytes" else f"{place:,}" for place in places])
    ax.minorticks_off()
    ax.set_xlabel(_LABELS[x])
    ax.set_ylabel(f"cost of a switch ({rows[0]['unit']})")
    ax.set_title(_title(rows))
    if _spans(rows):
        ax.set_yscale("log")
        _plain(ax.yaxis)
    else:
        ax.set_ylim(bottom=min(0, *ax.get_ylim()))
    if len(lines) > 1:
        ax.legend()
    return ax


def _points(ax: Axes, rows: list[dict[str, Any]]) -> Axes:
    """A row a case. One unit only: that of the first row."""
    rows = [row for row in rows if row["unit"] == rows[0]["unit"]]
    titles = ["title", "quantity"] if rows and "command" in rows[0] else ["title"]
    telling = _differing(rows, ["run", "host", *titles]) or ["title"]
    at = range(len(rows))
    ax.errorbar([row["estimate"] for row in rows], at, xerr=_errors(rows), linestyle="none", marker="o", capsize=3)
    ax.set_yticks(at, [_label(row, telling) for row in rows])
    ax.invert_yaxis()
    ax.set_title(_title(rows))
    if _spans(rows):
        ax.set_xscale("log")
        _plain(ax.xaxis)
    named = {_QUANTITIES.get(row["quantity"], row["quantity"]) for row in rows}
    if rows:
        ax.set_xlabel(f"{', '.join(sorted(named))} ({rows[0]['unit']})")
    return ax


def _why_nothing(cases: Table) -> str:
    """Why there is no estimate to draw; with the reason that most cases have."""
    reasons = Counter(row["not_quotable"] for row in cases.rows() if row.get("not_quotable"))
    if not reasons:
        return "nothing was measured"
    ((reason, _),) = reasons.most_common(1)
    return _safe(f"no figure of {len(cases)} may be quoted: {reason}")


def _title(rows: list[dict[str, Any]]) -> str:
    """What was measured where, as far as it is one thing."""
    said = [{row.get(name) for row in rows} - {None} for name in ("experiment", "host")]
    return _safe(" on ".join(str(one.pop()) if len(one) == 1 else f"{len(one)} hosts" for one in said if one))


def _plain(axis: Axis) -> None:
    """Numbers in place of powers."""
    ticker = needed("matplotlib.ticker", "plot")
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def _size(count: int) -> str:
    """Bytes in the largest unit of which they are a whole number."""
    power = next(power for power in (3, 2, 1, 0) if count % 1024**power == 0)
    return f"{count // 1024**power:,} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def _spans(rows: list[dict[str, Any]]) -> bool:
    """Whether the smaller ones could not be told apart on a linear axis."""
    values = [row["estimate"] for row in rows]
    return bool(values) and min(values) > 0 and max(values) > _SPAN * min(values)


def _differing(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    return [column for column in columns if len({row.get(column) for row in rows}) > 1]


def _label(row: Mapping[str, Any], telling: list[str]) -> str:
    known = [(name, row[name]) for name in telling if row.get(name) is not None]
    label = ", ".join(f"{name}={value}" if isinstance(value, int) else str(value) for name, value in known)
    # matplotlib leaves labels with an underscore out of legends.
    return _safe(label).lstrip("_")


def _safe(text: str) -> str:
    """matplotlib takes dollars for formulas."""
    return text.replace("$", r"\$")


def _errors(rows: list[dict[str, Any]]) -> list[list[float]]:
    """Distances to both ends of the interval; 0 where there is none."""

    ends = [[row["estimate"] if row[end] is None else row[end] for row in rows] for end in ("low", "high")]
    return [[abs(end - row["estimate"]) for end, row in zip(of, rows, strict=True)] for of in ends]
