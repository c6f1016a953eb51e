"""`switchcost fleet report`: one HTML file that needs no network and runs no script."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from html import escape
from math import exp, log
from typing import Any, NamedTuple

import numpy as np

from .analyse import analysed, common, write
from .findings import Analysis, Host, Verdict, merged, number, percent, power, words
from .statistics import Floats

ROWS = 200
ROWS_OF_THE_MAP = 80
NAMED_IN_THE_MAP = 40
GROUPS = 12
WIDTH = 900
# Colours of the map end at this ratio; beyond it all are the same.
DARKEST = log(1.25)

STYLE = """
:root { --paper: #fff; --ink: #1a1a1a; --faint: #767676; --line: #ddd; --mark: #c0392b; --bar: #4a7aa7 }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181b; --ink: #e6e6e6; --faint: #9a9a9a; --line: #333; --mark: #ff7b6b; --bar: #6fa3d4 }
}
html { color-scheme: light dark; background: var(--paper); color: var(--ink) }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 960px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.25em; line-height: 1.4 }
h2 { font-size: 1.05em; margin-top: 2.2em }
p, figcaption { color: var(--faint) }
figure { margin: 1em 0 }
table { border-collapse: collapse; width: 100%; font-size: 14px }
td, th { text-align: left; padding: 3px 10px 3px 0; border-bottom: 1px solid var(--line); vertical-align: top }
td { overflow-wrap: anywhere }
td:first-child { min-width: 5em }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
svg { width: 100%; height: auto }
svg text { font: 11px system-ui, sans-serif; fill: var(--faint) }
ol { columns: 2; column-gap: 3em; font-size: 13px; color: var(--faint); padding-left: 2em }
"""


def page(analysis: Analysis, title: str) -> str:
    """The whole file. Whatever comes from a run file is escaped."""
    whole = [(e, "slow") for e in merged(analysis.effects)]
    whole += [(e, "becoming slower") for e in merged(analysis.drifts)]
    parts = [
        f"<h1>{escape(analysis.answer())}</h1>",
        f"<p>{escape(title)}; {escape(span(analysis))}. A ratio is to the median of the host's group. "
        f"{analysis.terms()}</p>",
        table("Odd hosts", ODD, [host for hosts in analysis.odd.values() for host in hosts]),
        table("Known to be slow", KNOWN, analysis.acknowledged),
        table("Slow as a whole", WHOLE, whole),
        distributions(analysis),
        heat_map(analysis),
        courses(analysis),
        table("What differs within a group", VARIED, analysis.varied, f"<p>{VARIED_SAID}</p>"),
        names("Cannot be judged", [h.name + (f" ({h.reason})" if h.reason else "") for h in analysis.cannot_be_judged]),
        names("Never answered", analysis.never_answered),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        # Should an escape be missing one day: nothing is fetched and no script runs.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def span(analysis: Analysis) -> str:
    first, last = analysis.period
    days = f"runs of {first}" if first == last else f"runs of {first} to {last} ({number(analysis.days, 'day')})"
    return f"{days}; written {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"


class Column(NamedTuple):
    title: str
    is_number: bool
    text: Callable[[Any], str]


ODD = (
    Column("host", False, lambda h: h.name),
    Column("by", True, lambda h: percent(h.change if h.verdict == Verdict.BECOMING_SLOWER else h.ratio)),
    Column("in", False, lambda h: h.experiment or ""),
    Column("clock", True, lambda h: percent(h.clock) if h.clock else ""),
    Column("verdict", False, lambda h: h.verdict),
    Column("what goes with it", False, lambda h: h.reason),
    Column("group", True, lambda h: f"{h.group + 1}"),
    Column("runs", True, lambda h: f"{h.days}"),
    Column("noise", False, lambda h: h.noise or ""),
)
KNOWN = (*ODD[:3], Column("why", False, lambda h: h.acknowledged))
# Of an effect with its verdict.
WHOLE = (
    Column("what the hosts have in common", False, lambda e: words(e[0].fact, e[0].value)),
    Column("verdict", False, lambda e: e[1]),
    Column("by", True, lambda e: e[0].by()),
    Column("in", False, lambda e: e[0].experiment),
    Column("hosts", True, lambda e: f"{e[0].hosts:,}"),
    Column("the same hosts have", False, lambda e: "; ".join(e[0].together_with)),
)
VARIED_SAID = "Ratio and clock are those of the median host, all other differences included."
VARIED = (
    Column("group", True, lambda v: f"{v['group'] + 1}"),
    Column("value", False, lambda v: words(v["fact"], v["value"] or "unknown")),
    Column("hosts", True, lambda v: f"{v['hosts']:,}"),
    Column("ratio", True, lambda v: ", ".join(f"{e} {percent(r)}" for e, r in v["ratios"].items())),
    Column("clock", True, lambda v: percent(v["clock"]) if v["clock"] else ""),
)


def table(title: str, columns: Sequence[Column], rows: Sequence[object], said: str = "") -> str:
    """Nothing without rows; of those beyond ROWS it is said how many they are."""
    if not rows:
        return ""
    texts = {column: [column.text(row) for row in rows[:ROWS]] for column in columns}
    # A column that says nothing of anybody is left out.
    columns = [column for column in columns if any(texts[column])]
    kind = [' class="n"' if column.is_number else "" for column in columns]
    lines = zip(*([escape(text) for text in texts[column]] for column in columns))
    head = "".join(f"<th{k}>{column.title}</th>" for k, column in zip(kind, columns))
    body = "".join("<tr>" + "".join(f"<td{k}>{c}</td>" for k, c in zip(kind, line)) + "</tr>" for line in lines)
    left = len(rows) - ROWS
    more = f"<p>{left:,} more; <code>switchcost fleet analyse --json</code> has all.</p>" if left > 0 else ""
    return f"<h2>{title}</h2>{said}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def distributions(analysis: Analysis) -> str:
    """A histogram for each group: hosts by ratio, and a mark for each slow one."""
    said = "Hosts by the ratio of each one's slowest experiment; upwards by the square root."
    text = f"<h2>Distribution by group</h2><p>{said}</p>"
    values = [log(h.ratio) for h in analysis.hosts if h.ratio]
    if not values:
        return ""
    slow = [log(h.ratio) for h in analysis.slow[:ROWS] if h.ratio]
    low, high = min(-0.05, np.quantile(values, 0.001)), max(0.1, np.quantile(values, 0.999), *slow)
    edges = np.linspace(low * 1.1, high * 1.1, 91)
    largest = sorted(enumerate(analysis.groups), key=lambda group: -group[1]["hosts"])
    for g, group in largest[:GROUPS]:
        hosts = [h for h in analysis.hosts if h.group == g]
        counts, _ = np.histogram(np.clip([log(h.ratio) for h in hosts if h.ratio], low, high), edges)
        caption = f"Group {g + 1}: {group['hosts']:,} hosts, {group['in_words']}; {power(group)}"
        text += f"<figure><figcaption>{escape(caption)}</figcaption>{_histogram(counts, edges, hosts)}</figure>"
    if len(largest) > GROUPS:
        text += f"<p>{len(largest) - GROUPS} smaller groups are not drawn.</p>"
    return text


def _histogram(counts: Any, edges: Floats, hosts: list[Host]) -> str:
    height, foot, step = 90, 18, WIDTH / len(counts)

    def across(value: float) -> float:
        return WIDTH * float((value - edges[0]) / (edges[-1] - edges[0]))

    # By the square root, so that one host is seen beside ten thousand.
    tall = height * np.sqrt(counts / max(1, counts.max()))
    drawn = []
    for i in np.flatnonzero(counts):
        title = f"{percent(exp(edges[i]))}: {counts[i]:,} hosts"
        drawn.append(_rect(i * step, height - tall[i], step - 1, tall[i], "var(--bar)", title))
    for h in [h for h in hosts if h.is_slow() and h.ratio and not h.by_clock][:ROWS]:
        mark = f'<circle cx="{across(log(h.ratio or 1)):.1f}" cy="{height - 5}" r="4" fill="var(--mark)">'
        drawn.append(f"{mark}<title>{escape(h.name)}: {percent(h.ratio)}</title></circle>")
    drawn.append(_line(0, WIDTH, height, height, "var(--line)"))
    most = max(1, int(counts.max()))
    for count in sorted({1, most // 10, most} - {0}):
        y = height * (1 - np.sqrt(count / most))
        drawn += [_line(0, WIDTH, y, y, "var(--line)"), _text(2, y + 11, number(count, "host"))]
    for value in _ticks(edges[0], edges[-1]):
        x = across(log(1 + value))
        drawn += [_line(x, x, height, height + 4, "var(--faint)"), _text(x, height + 15, f"{value:+.0%}", "middle")]
    return _svg(height + foot, drawn)


def _svg(height: float, drawn: list[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{"".join(drawn)}</svg>'


def _rect(x: float, y: float, width: float, height: float, fill: str, title: str) -> str:
    box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {box} fill="{fill}"><title>{escape(title)}</title></rect>'


def _line(x1: float, x2: float, y1: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, said: str, anchor: str = "start", longest: int = 34) -> str:
    """Text at a place; of a long one the start, and all of it where the mouse is."""
    title = f"<title>{escape(said)}</title>" if len(said) > longest else ""
    shown = escape(said if len(said) <= longest else said[: longest - 1] + "…")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{title}{shown}</text>'


def _ticks(low: float, high: float) -> list[float]:
    step = next((s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10) if (exp(high) - exp(low)) / s <= 10), 100.0)
    first = int(np.ceil((exp(low) - 1) / step))
    return [i * step for i in range(first, first + 11) if log(1 + max(i * step, -0.99)) <= high]


def heat_map(analysis: Analysis) -> str:
    """Host by experiment: the slowest by name, the others together in rows of equally many."""
    if not analysis.heat.size:
        return ""
    rows = _rows_of_the_map(analysis)
    left, row, wide = 150, 13 if len(rows) > 20 else 20, (WIDTH - 150) / len(analysis.labels)
    numbered = [j for j in range(len(analysis.labels)) if wide >= 12 or j % 5 == 4]
    drawn = [_text(left + (j + 0.5) * wide, 10, f"{j + 1}", "middle") for j in numbered]
    for i, (name, ratios) in enumerate(rows):
        y = 16 + i * row
        drawn.append(_text(left - 6, y + row - 3, name, "end", 22))
        for j in np.flatnonzero(~np.isnan(ratios)):
            title = f"{name}, {j + 1}: {percent(exp(ratios[j]))}"
            drawn.append(_rect(left + j * wide, y, wide - 0.5, row - 1, _colour(ratios[j]), title))
    legend = "".join(f"<li>{escape(label)}</li>" for label in analysis.labels)
    several = len(rows) < len(analysis.hosts)
    together = " Rows of several hosts show their median, the slower hosts first." if several else ""
    return (
        "<h2>Host by experiment</h2><figure><figcaption>Blue is faster than the group, red slower; the darkest is "
        f"{exp(DARKEST) - 1:.0%} and more.{together}</figcaption>{_svg(20 + len(rows) * row, drawn)}</figure>"
        f"<ol>{legend}</ol>"
    )


def _rows_of_the_map(analysis: Analysis) -> list[tuple[str, Floats]]:
    # What is slow goes first; what has no figure goes last.
    first = {h.name: rank for rank, h in enumerate([h for hosts in analysis.odd.values() for h in hosts])}
    score = [(first.get(h.name, len(first)), -(h.ratio or 0)) for h in analysis.hosts]
    order = sorted(range(len(score)), key=lambda i: score[i])
    single = len(order) if len(order) <= ROWS_OF_THE_MAP else min(len(first), NAMED_IN_THE_MAP)
    rows = [(analysis.hosts[i].name, analysis.heat[i]) for i in order[:single]]
    rest = order[single:]
    for part in np.array_split(rest, min(len(rest), ROWS_OF_THE_MAP - single)) if rest else []:
        known = (column[~np.isnan(column)] for column in analysis.heat[part].T)
        middle = np.array([np.median(column) if len(column) else np.nan for column in known])
        rows.append((number(len(part), "host"), middle))
    return rows


def _colour(ratio: float) -> str:
    share = min(abs(ratio) / DARKEST, 1)
    strong = (178, 24, 43) if ratio > 0 else (33, 102, 172)
    return "#" + "".join(f"{round(240 + (c - 240) * share):02x}" for c in strong)


def courses(analysis: Analysis) -> str:
    """Ratios by day: all hosts, and what becomes slower."""
    dates = sorted({d for days, _ in analysis.daily.values() for d in days})
    if len(dates) < 2 or len(analysis.daily) < 2:
        return ""
    height, left, right = 220, 50, 200
    values = np.concatenate([v for _, v in analysis.daily.values()])
    low, high = min(-0.03, float(values.min())), max(0.05, float(values.max()))
    at = {d: left + (WIDTH - left - right) * i / (len(dates) - 1) for i, d in enumerate(dates)}

    def up(value: float) -> float:
        return height * (high - value) / (high - low) + 5

    drawn = []
    for tick in _ticks(low, high):
        y = up(log(1 + tick))
        drawn += [_line(left, WIDTH - right, y, y, "var(--line)"), _text(left - 6, y + 4, f"{tick:+.0%}", "end")]
    ends: list[float] = []
    for name, (days, ratios) in sorted(analysis.daily.items(), key=lambda c: -c[1][1][-1]):
        colour = "var(--faint)" if name.startswith("all hosts") else "var(--mark)"
        points = " ".join(f"{at[d]:.1f},{up(r):.1f}" for d, r in zip(days, ratios))
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        # Names below each other, however near their lines end.
        ends.append(max(up(float(ratios[-1])), ends[-1] + 13 if ends else 0))
        drawn.append(_text(WIDTH - right + 6, ends[-1] + 4, name))
    drawn += [_text(left, height + 22, dates[0]), _text(WIDTH - right, height + 22, dates[-1], "end")]
    return f"<h2>Drift</h2><figure>{_svg(height + 28, drawn)}</figure>"


def names(title: str, of: list[str]) -> str:
    if not of:
        return ""
    more = f" and {len(of) - ROWS:,} more" if len(of) > ROWS else ""
    return f"<h2>{title}</h2><p>{escape(', '.join(of[:ROWS]))}{more}</p>"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    said = "draw what was found in one HTML file"
    parser = common(subparsers.add_parser("report", help=said, description=f"D{said[1:]}."))
    said = "where to; - is standard output [default: %(default)s]"
    parser.add_argument("-o", "--output", default="fleet.html", metavar="FILE", help=said)


def run(arguments: argparse.Namespace) -> int:
    analysis = analysed(arguments)
    write(arguments.output, page(analysis, f"Fleet {arguments.dataset.resolve().name}"))
    if arguments.output != "-":
        print(f"{analysis.answer()}\nwritten: {arguments.output}")
    return 0
