"""`switchcost fleet report`: one HTML file that needs no network and runs no script."""

from __future__ import annotations

import argparse
from html import escape
from math import exp, log
from typing import Any

import numpy as np

from .analyse import analysed, common, write
from .findings import Analysis, Host, merged, percent, power, words
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
    parts = [
        f"<h1>{escape(analysis.answer())}</h1>",
        f"<p>{escape(title)}; {analysis.days} days. A ratio is to the median of the host's group. "
        f"{analysis.terms()}</p>",
        ranked(analysis),
        whole(analysis),
        distributions(analysis),
        heat_map(analysis),
        courses(analysis),
        facts(analysis),
        names("Too noisy to say", [h.name + (f" ({h.reason})" if h.reason else "") for h in analysis.noisy]),
        names("Never answered", analysis.never_answered),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        # Should an escape be missing one day: nothing is fetched and no script runs.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def table(columns: list[str], rows: list[list[str]], numeric: set[int], total: int) -> str:
    """Rows of text; of those beyond ROWS it is said how many they are."""
    kind = [' class="n"' if i in numeric else "" for i in range(len(columns))]
    head = "".join(f"<th{k}>{escape(c)}</th>" for k, c in zip(kind, columns))
    body = "".join(
        "<tr>" + "".join(f"<td{k}>{escape(c)}</td>" for k, c in zip(kind, row)) + "</tr>" for row in rows[:ROWS]
    )
    left = (
        f"<p>{total - ROWS:,} more; <code>switchcost fleet analyse --json</code> has all.</p>" if total > ROWS else ""
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{left}"


def ranked(analysis: Analysis) -> str:
    odd = [*analysis.slow, *analysis.suspects, *analysis.drifting, *analysis.faster]
    if not odd:
        return ""
    rows = [
        [
            h.name,
            percent(h.change if h.verdict == "becomes slower" else h.ratio),
            percent(h.clock) if h.clock else "",
            h.verdict,
            h.reason,
            str(h.group + 1),
            str(h.days),
            h.noise or "",
        ]
        for h in odd
    ]
    columns = ["host", "by", "clock", "verdict", "what goes with it", "group", "days", "noise"]
    return "<h2>Odd hosts</h2>" + table(columns, rows, {1, 2, 5, 6}, len(rows))


def whole(analysis: Analysis) -> str:
    rows = [
        [words(e.fact, e.value), verdict, e.by(), f"{e.hosts:,}", "; ".join(e.together_with)]
        for verdict, effects in (("slow", analysis.effects), ("becoming slower", analysis.drifts))
        for e in merged(effects)
    ]
    columns = ["what the hosts have in common", "verdict", "by", "hosts", "the same hosts have"]
    return "<h2>Slow as a whole</h2>" + table(columns, rows, {2, 3}, len(rows)) if rows else ""


def distributions(analysis: Analysis) -> str:
    """A histogram for each group: hosts by ratio, and a mark for each slow one."""
    text = "<h2>Distribution by group</h2>"
    values = [log(h.ratio) for h in analysis.hosts if h.ratio]
    if not values:
        return text + "<p>No host has a figure at full speed.</p>"
    low, high = min(-0.05, *np.quantile(values, [0.001])), max(0.1, *np.quantile(values, [0.999]), *_marked(analysis))
    edges = np.linspace(low * 1.1, high * 1.1, 91)
    of_group: dict[int, list[Host]] = {}
    for host in analysis.hosts:
        of_group.setdefault(host.group, []).append(host)
    largest = sorted(of_group, key=lambda g: -len(of_group[g]))
    for g in largest[:GROUPS]:
        group = analysis.groups[g]
        counts, _ = np.histogram(np.clip([log(h.ratio) for h in of_group[g] if h.ratio], low, high), edges)
        caption = f"Group {g + 1}: {group['hosts']:,} hosts, {group['in_words']}; {power(group)}"
        text += f"<figure><figcaption>{escape(caption)}</figcaption>{_histogram(counts, edges, of_group[g])}</figure>"
    if len(largest) > GROUPS:
        text += f"<p>{len(largest) - GROUPS} smaller groups are not drawn.</p>"
    return text


def _marked(analysis: Analysis) -> list[float]:
    return [log(h.ratio) for h in analysis.slow[:ROWS] if h.ratio]


def _histogram(counts: Any, edges: Floats, hosts: list[Host]) -> str:
    height, foot, tallest = 90, 18, max(1, int(counts.max()))
    step = WIDTH / len(counts)

    def across(value: float) -> float:
        return WIDTH * float((value - edges[0]) / (edges[-1] - edges[0]))

    # By the square root, so that one host is seen beside ten thousand.
    tall = height * np.sqrt(counts / tallest)
    bars = "".join(
        f'<rect x="{i * step:.1f}" y="{height - tall[i]:.1f}" width="{step - 1:.1f}" height="{tall[i]:.1f}" '
        f'fill="var(--bar)"><title>{percent(exp(edges[i]))}: {c:,} hosts</title></rect>'
        for i, c in enumerate(counts)
        if c
    )
    slow = [h for h in hosts if h.verdict in ("slow", "looks slow") and h.ratio and not h.by_clock]
    marks = "".join(
        f'<circle cx="{across(log(h.ratio or 1)):.1f}" cy="{height - 5}" r="4" fill="var(--mark)">'
        f"<title>{escape(h.name)}: {percent(h.ratio)}</title></circle>"
        for h in slow[:ROWS]
    )
    ticks = ""
    for value in _ticks(edges[0], edges[-1]):
        x = across(log(1 + value))
        ticks += f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{height}" y2="{height + 4}" stroke="var(--faint)"/>'
        ticks += f'<text x="{x:.1f}" y="{height + 15}" text-anchor="middle">{value:+.0%}</text>'
    base = f'<line x1="0" x2="{WIDTH}" y1="{height}" y2="{height}" stroke="var(--line)"/>'
    return f'<svg viewBox="0 0 {WIDTH} {height + foot}" role="img">{bars}{marks}{base}{ticks}</svg>'


def _ticks(low: float, high: float) -> list[float]:
    step = next((s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10) if (exp(high) - exp(low)) / s <= 10), 100.0)
    first = int(np.ceil((exp(low) - 1) / step))
    return [i * step for i in range(first, first + 11) if log(1 + max(i * step, -0.99)) <= high]


def heat_map(analysis: Analysis) -> str:
    """Host by experiment: the slowest by name, the others together in rows of equally many."""
    heat = analysis.heat
    if not heat.size:
        return ""
    # What is slow goes first; what has no figure goes last.
    first = {h.name: rank for rank, h in enumerate([*analysis.slow, *analysis.suspects, *analysis.drifting])}
    names = [h.name for h in analysis.hosts]
    score = [(first.get(h.name, len(first)), -(h.ratio or 0)) for h in analysis.hosts]
    order = sorted(range(len(names)), key=lambda i: score[i])
    single = len(order) if len(order) <= ROWS_OF_THE_MAP else min(len(first), NAMED_IN_THE_MAP)
    rows = [(names[i], heat[i]) for i in order[:single]]
    rest = order[single:]
    for part in np.array_split(rest, min(len(rest), ROWS_OF_THE_MAP - single)) if rest else []:
        shown = heat[part]
        with np.errstate(all="ignore"):
            middle = np.array([np.nanmedian(c) if not np.isnan(c).all() else np.nan for c in shown.T])
        rows.append((f"{len(part):,} hosts", middle))
    left, row, wide = 150, 13 if len(rows) > 20 else 20, (WIDTH - 150) / len(analysis.labels)
    cells = ""
    for j in range(len(analysis.labels)):
        if wide >= 12 or j % 5 == 4:
            cells += f'<text x="{left + (j + 0.5) * wide:.1f}" y="10" text-anchor="middle">{j + 1}</text>'
    for i, (name, ratios) in enumerate(rows):
        y = 16 + i * row
        shown_name = name if len(name) <= 22 else name[:21] + "…"
        tip = f"<title>{escape(name)}</title>"
        cells += f'<text x="{left - 6}" y="{y + row - 3}" text-anchor="end">{tip}{escape(shown_name)}</text>'
        cells += "".join(
            f'<rect x="{left + j * wide:.1f}" y="{y}" width="{wide - 0.5:.1f}" height="{row - 1}" fill="{_colour(r)}">'
            f"<title>{escape(name)}, {j + 1}: {percent(exp(r))}</title></rect>"
            for j, r in enumerate(ratios)
            if not np.isnan(r)
        )
    legend = "".join(f"<li>{escape(label)}</li>" for label in analysis.labels)
    together = "" if len(order) == single else " Rows of several hosts show their median, the slower hosts first."
    return (
        "<h2>Host by experiment</h2><figure><figcaption>Blue is faster than the group, red slower; the darkest is "
        f"{exp(DARKEST) - 1:.0%} and more.{together}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {20 + len(rows) * row}" role="img">{cells}</svg></figure><ol>{legend}</ol>'
    )


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

    lines = ""
    for tick in _ticks(low, high):
        y = up(log(1 + tick))
        lines += f'<line x1="{left}" x2="{WIDTH - right}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--line)"/>'
        lines += f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:+.0%}</text>'
    ends: list[float] = []
    for name, (days, ratios) in sorted(analysis.daily.items(), key=lambda c: -c[1][1][-1]):
        colour = "var(--faint)" if name.startswith("all hosts") else "var(--mark)"
        points = " ".join(f"{at[d]:.1f},{up(r):.1f}" for d, r in zip(days, ratios))
        lines += f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        # Names below each other, however near their lines end.
        ends.append(max(up(float(ratios[-1])), ends[-1] + 13 if ends else 0))
        lines += f'<text x="{WIDTH - right + 6}" y="{ends[-1] + 4:.1f}">{escape(name[:34])}</text>'
    lines += f'<text x="{left}" y="{height + 22}">{dates[0]}</text>'
    lines += f'<text x="{WIDTH - right}" y="{height + 22}" text-anchor="end">{dates[-1]}</text>'
    return f'<h2>Drift</h2><figure><svg viewBox="0 0 {WIDTH} {height + 28}" role="img">{lines}</svg></figure>'


def facts(analysis: Analysis) -> str:
    if not analysis.varied:
        return ""
    rows = [
        [
            str(v["group"] + 1),
            words(v["fact"], str(v["value"] or "unknown")),
            f"{v['hosts']:,}",
            percent(v["ratio"]),
            percent(v["clock"]) if v["clock"] else "",
        ]
        for v in analysis.varied
    ]
    said = "Ratio and clock are those of the median host, all other differences included."
    head = f"<h2>What differs within a group</h2><p>{said}</p>"
    return head + table(["group", "value", "hosts", "ratio", "clock"], rows, {0, 2, 3, 4}, len(rows))


def names(title: str, of: list[str]) -> str:
    if not of:
        return ""
    more = f" and {len(of) - ROWS:,} more" if len(of) > ROWS else ""
    return f"<h2>{title}</h2><p>{escape(', '.join(of[:ROWS]))}{more}</p>"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "report", help="draw what was found in one HTML file", description="Draw what was found in one HTML file."
    )
    common(parser)
    parser.add_argument(
        "-o",
        "--output",
        default="fleet.html",
        metavar="FILE",
        help="where to; - is standard output [default: %(default)s]",
    )


def run(arguments: argparse.Namespace) -> int:
    analysis = analysed(arguments)
    write(arguments.output, page(analysis, f"Fleet {arguments.dataset.resolve().name}"))
    if arguments.output != "-":
        print(f"{analysis.answer()}\nwritten: {arguments.output}")
    return 0
