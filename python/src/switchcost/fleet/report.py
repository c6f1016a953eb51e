"""`switchcost fleet report`: one HTML file that needs no network and runs no script."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from html import escape
from typing import Any, Literal, NamedTuple

import numpy as np

from . import figures
from .analyse import analysed, common, write
from .findings import Analysis, Effect, Host, Verdict, merged, number, percent, power, whole_percent, words
from .statistics import Floats

ROWS = 200
NAMED_IN_THE_MAP = 40
PARTS_OF_THE_REST = 10
GROUPS = 12
STEPS_DRAWN = 12

# Colours and forms are those of the program's own pages (crates/charts/src/html/charts.css, report/page.css).
STYLE = """
:root {
  --paper: #ffffff; --ink: #1c2127; --muted: #59636e; --line: #d3d9de; --panel: #f5f7f8; --link: #0a5c99;
  --grid: #e3e7ea; --warn: #8a4b00; --good: #17693a; --bad: #a3231f;
  --s0: #0072b2; --s1: #d55e00; --s2: #00805d; --s3: #b3589a; --s4: #a06a00; --s5: #3d8fc4; --s6: #5a5a5a;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #14181c; --ink: #e4e9ed; --muted: #a3aeb8; --line: #353d45; --panel: #1c2228; --link: #7cc0f5;
    --grid: #2c343b; --warn: #f2b45c; --good: #6fcf97; --bad: #ff8f87;
    --s0: #56b4e9; --s1: #ff9e4a; --s2: #3ed6a8; --s3: #f0a6cf; --s4: #e6c229; --s5: #9adcf5; --s6: #b8b8b8;
  }
}
* { box-sizing: border-box; }
html { color-scheme: light dark; }
body {
  margin: 0 auto; padding: 0.6rem 1rem 1rem; max-width: 76rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif; overflow-wrap: break-word;
}
h1 { font-size: 1rem; line-height: 1.3; font-weight: 500; color: var(--muted); margin: 0 0 0.2rem; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 1.6rem 0 0.4rem; }
p { margin: 0.3rem 0; }
.lead { font-size: 1.2rem; font-weight: 500; line-height: 1.35; margin: 0 0 0.3rem; max-width: 68rem; }
.more { margin: 0.1rem 0; max-width: 68rem; }
.setting { color: var(--muted); font-size: 0.9rem; margin: 0.3rem 0 0.6rem; }
.words { color: var(--muted); font-size: 0.95rem; max-width: 68rem; }
.tiles { display: flex; flex-wrap: wrap; gap: 0.5rem; margin: 0.6rem 0; padding: 0; list-style: none; }
.tile {
  display: flex; flex-direction: column; flex: 1 1 8.2rem; min-width: 0; max-width: 13rem; background: var(--panel);
  padding: 0.35rem 0.6rem 0.4rem; border-radius: 0.4rem; border-top: 3px solid var(--line);
}
.tile .of { font-size: 0.8rem; line-height: 1.25; color: var(--muted); flex: 1; }
.tile .figure { font-size: 1.35rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.tile.bad { border-color: var(--bad); } .tile.bad .figure { color: var(--bad); }
.tile.warn { border-color: var(--warn); } .tile.warn .figure { color: var(--warn); }
.tile.good { border-color: var(--good); } .tile.good .figure { color: var(--good); }
figure { margin: 0 0 1.2rem; min-width: 0; }
figcaption { font-size: 0.95rem; }
.scroll { overflow-x: auto; }
.chart { overflow-x: auto; max-width: 60rem; }
/* Drawings have a pixel for each of their units at least: a narrow screen scrolls, and text has 11 pixels. */
.chart > svg { display: block; width: 100%; min-width: 640px; height: auto; }
.steps { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); gap: 0.5rem 1rem; }
.steps svg { display: block; width: 100%; min-width: 320px; height: auto; }
svg { font-family: inherit; }
svg text { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
svg .black { color: var(--ink); }
svg .soft { color: var(--muted); }
svg .grid { color: var(--grid); }
svg .s0 { color: var(--s0); }
svg .s1 { color: var(--s1); }
svg .s2 { color: var(--s2); }
svg .s3 { color: var(--s3); }
svg .s4 { color: var(--s4); }
svg .s5 { color: var(--s5); }
svg .s6 { color: var(--s6); }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td {
  padding: 0.2rem 0.9rem 0.2rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top;
  font-weight: normal; white-space: nowrap;
}
td.long { white-space: normal; min-width: 16rem; }
td.n, th.n { text-align: right; }
thead th { color: var(--muted); }
tr.bad td:first-child { border-left: 3px solid var(--bad); padding-left: 0.5rem; }
tr.warn td:first-child { border-left: 3px solid var(--warn); padding-left: 0.5rem; }
ol { columns: 2; column-gap: 3em; font-size: 0.85rem; color: var(--muted); padding-left: 2em; }
@media (max-width: 40rem) {
  .lead { font-size: 1.05rem; }
  .tile { flex-basis: 28%; max-width: none; }
  ol { columns: 1; }
  thead { display: none; }
  tr { display: block; padding: 0.3rem 0; border-bottom: 1px solid var(--line); }
  td, td.n, td.long { display: inline; white-space: normal; border: 0; padding: 0 0.6rem 0 0; text-align: left; }
  td:first-child { font-weight: 600; }
  td[data-of]:not(:first-child):not(.long)::before { content: attr(data-of) " "; color: var(--muted); }
  td.long { display: block; }
  td:empty { display: none; }
}
@media print { .chart > svg { min-width: 0; } figure, tr, .tiles { break-inside: avoid; } }
"""


def page(analysis: Analysis, title: str) -> str:
    """The whole file. Whatever comes from a run file is escaped."""
    whole = [(e, "slow") for e in merged(analysis.effects)]
    whole += [(e, "becoming slower") for e in merged(analysis.drifts)]
    parts = [
        header(analysis, title),
        table("Odd hosts", ODD, [host for hosts in analysis.odd.values() for host in hosts]),
        table("Slow as a whole", WHOLE, whole),
        steps(analysis),
        distributions(analysis),
        heat_map(analysis),
        courses(analysis),
        table("Acknowledged", KNOWN, analysis.acknowledged),
        table("What differs within a group", VARIED, analysis.varied, f'<p class="words">{VARIED_SAID}</p>'),
        reasons(analysis.cannot_be_judged),
        names("Not compared: in groups of too few hosts", [h.name for h in analysis.not_compared]),
        names("Never answered", analysis.never_answered),
        names("Set aside: dated after tomorrow", [f"{r.host}: {r.run} ({r.started})" for r in analysis.in_future]),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="generator" content="switchcost">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # Should an escape be missing one day: nothing is fetched and no script runs.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>\n"
    )


def header(analysis: Analysis, title: str) -> str:
    """What was found, in a sentence, in others and in tiles."""
    first, *others = analysis.sentences()
    lines = "".join(f'<p class="more">{escape(line)}</p>' for line in others)
    tiles = "".join(
        f'<li class="tile {kind if count else plain}"><span class="of">{what}</span>'
        f'<span class="figure">{count:,}</span></li>'
        for what, count, kind, plain in (
            ("hosts", len(analysis.hosts), "", ""),
            ("slow", len(analysis.slow), "bad", "good"),
            ("became slower", len(analysis.slower_since), "bad", "good"),
            ("probably slow", len(analysis.probably_slow), "warn", "good"),
            ("slow as a whole", len(merged(analysis.effects)), "warn", "good"),
            ("cannot be judged", len(analysis.cannot_be_judged), "warn", "good"),
            ("never answered", len(analysis.never_answered), "warn", "good"),
        )
    )
    setting = (
        f"{escape(span(analysis))}. Ratios compare a host with the median of its group. {escape(analysis.terms())}"
    )
    return (
        f'<header><h1>{escape(title)}</h1><p class="lead">{escape(first)}</p>{lines}'
        f'<ul class="tiles">{tiles}</ul><p class="setting">{setting}</p></header>'
    )


def span(analysis: Analysis) -> str:
    first, last = analysis.period
    days = f"runs of {first}" if first == last else f"runs of {first} to {last} ({number(analysis.days, 'day')})"
    return f"{days}; written {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"


class Column(NamedTuple):
    title: str
    #: How it is set: a number, a short text, or one that may need several lines.
    kind: Literal["number", "short", "long"]
    text: Callable[[Any], str]


CLASSES = {"number": ' class="n"', "short": "", "long": ' class="long"'}
ROW_CLASSES = {
    Verdict.SLOW: "bad",
    Verdict.SLOWER_SINCE: "bad",
    Verdict.PROBABLY_SLOW: "warn",
    Verdict.MEASURE_AGAIN: "warn",
    Verdict.BECOMING_SLOWER: "warn",
}


# A clock that differs by less is as the others'.
CLOCK_TOLD = 0.005


def how_much(host: Host) -> str:
    if host.by_clock:
        return ""
    return percent(host.change if host.verdict == Verdict.BECOMING_SLOWER else host.slowness())


ODD = (
    Column("host", "short", lambda h: h.name),
    Column("verdict", "short", lambda h: str(h.verdict) + (f" {h.step.since}" if h.step else "")),
    Column("by", "number", how_much),
    Column("in", "short", lambda h: h.experiment or ("clock" if h.by_clock else "")),
    Column("clock", "number", lambda h: percent(h.clock) if h.clock and abs(h.clock - 1) >= CLOCK_TOLD else ""),
    Column("what goes with it", "long", lambda h: h.step.cause() if h.step else h.reason),
    Column("group", "number", lambda h: f"{h.group + 1}"),
    Column("runs", "number", lambda h: f"{h.days}"),
    Column("noise", "short", lambda h: h.noise or ""),
)


def judged_hosts(effect: Effect) -> str:
    unjudged = len(effect.holders) > effect.hosts
    return f"{effect.hosts:,} of {len(effect.holders):,}" if unjudged else f"{effect.hosts:,}"


KNOWN = (*ODD[:4], Column("why", "long", lambda h: h.acknowledged))
# Of an effect with its verdict.
WHOLE = (
    Column("what the hosts have in common", "short", lambda e: words(e[0].fact, e[0].value)),
    Column("verdict", "short", lambda e: e[1]),
    Column("by", "number", lambda e: e[0].by()),
    Column("in", "short", lambda e: e[0].experiment),
    Column("hosts", "number", lambda e: judged_hosts(e[0])),
    Column("the same hosts have", "long", lambda e: "; ".join(e[0].together_with)),
)
VARIED_SAID = "Ratio and clock are the median host's. Other differences are not taken out."
VARIED = (
    Column("value", "long", lambda v: words(v["fact"], v["value"] or "unknown")),
    Column("group", "number", lambda v: f"{v['group'] + 1}"),
    Column("hosts", "number", lambda v: f"{v['hosts']:,}"),
    Column("ratio", "number", lambda v: ", ".join(f"{e} {percent(r)}" for e, r in v["ratios"].items())),
    Column("clock", "number", lambda v: percent(v["clock"]) if v["clock"] else ""),
)


def table(title: str, columns: Sequence[Column], rows: Sequence[object], said: str = "") -> str:
    """Nothing without rows; of those beyond ROWS it is said how many they are."""
    if not rows:
        return ""
    shown = rows[:ROWS]
    texts = {column: [escape(column.text(row)) for row in shown] for column in columns}
    # A column that says nothing of anybody is left out.
    columns = [column for column in columns if any(texts[column])]
    head = "".join(f"<th{CLASSES['number'] if c.kind == 'number' else ''}>{c.title}</th>" for c in columns)
    body = ""
    for number_of, row in enumerate(shown):
        mark = ROW_CLASSES.get(row.verdict, "") if isinstance(row, Host) else ""
        cells = ((column, texts[column][number_of]) for column in columns)
        line = "".join(f'<td{CLASSES[c.kind]} data-of="{c.title}">{text}</td>' for c, text in cells)
        body += f'<tr class="{mark}">{line}</tr>' if mark else f"<tr>{line}</tr>"
    left = len(rows) - ROWS
    more = f"<p>{left:,} more; <code>switchcost fleet analyse --json</code> has all.</p>" if left > 0 else ""
    lines = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return f"<section><h2>{title}</h2>{said}{lines}{more}</section>"


def steps(analysis: Analysis) -> str:
    """The days of each host that became slower, with its levels before and after."""
    hosts = analysis.slower_since[:STEPS_DRAWN]
    courses = [(host, host.step, *analysis.step_courses[host.name]) for host in hosts if host.step]
    courses = [course for course in courses if len(course[2]) > 1]
    if not courses:
        return ""
    drawn = [
        f"<figure><figcaption><b>{escape(host.name)}</b>: {escape(str(step))}</figcaption>{svg}</figure>"
        for (host, step, *_), svg in zip(
            courses, figures.drawn([figures.step(*c) for c in courses], panel=True), strict=True
        )
    ]
    left = len(analysis.slower_since) - STEPS_DRAWN
    more = f"<p>{left:,} more are in the table.</p>" if left > 0 else ""
    said = "Each host's cost by day, compared with its group. The lines are its levels before and after."
    return (
        f'<section><h2>Became slower</h2><p class="words">{said}</p><div class="steps">{"".join(drawn)}</div>{more}'
        "</section>"
    )


def distributions(analysis: Analysis) -> str:
    """A histogram for each group: hosts by ratio, and a mark for each slow one."""
    said = "How much slower than the median each host is, in its slowest experiment (square-root scale)."
    ratios = [h.ratio for h in analysis.hosts if h.ratio]
    if not ratios:
        return ""
    odd = [h.ratio for h in analysis.hosts if h.is_alarming() and h.ratio]
    low = figures.change(min(0.95, float(np.quantile(ratios, 0.001))))
    high = figures.change(max(1.1, float(np.quantile(ratios, 0.999)), *odd))
    largest = sorted(enumerate(analysis.groups), key=lambda group: -group[1]["hosts"])
    captions, drawn = [], []
    for g, group in largest[:GROUPS]:
        hosts = [h for h in analysis.hosts if h.group == g and h.ratio]
        if hosts:
            caption = f"Group {g + 1}: {number(group['hosts'], 'host')}, {group['in_words']}; {power(group)}"
            slow = sorted((h for h in hosts if h.is_alarming() and not h.by_clock), key=lambda h: -(h.ratio or 0))
            changes = [figures.change(h.ratio or 1) for h in hosts]
            captions.append(caption)
            drawn.append(figures.histogram(caption, changes, low * 1.05, high * 1.05, slow[:ROWS]))
    text = f'<h2>Distribution by group</h2><p class="words">{said}</p>'
    for caption, svg in zip(captions, figures.drawn(drawn), strict=True):
        text += f"<figure><figcaption>{escape(caption)}</figcaption>{_chart(svg)}</figure>"
    if len(largest) > GROUPS:
        text += f"<p>{len(largest) - GROUPS} smaller groups are not drawn.</p>"
    return f"<section>{text}</section>"


def _chart(svg: str) -> str:
    return f'<div class="chart">{svg}</div>'


def heat_map(analysis: Analysis) -> str:
    """Host by case: the slowest by name, the others together in tenths."""
    if not analysis.heat.size:
        return ""
    rows = _rows_of_the_map(analysis)
    (svg,) = figures.drawn([figures.heat_map(rows, analysis.labels)])
    legend = "".join(f"<li>{escape(label)}</li>" for label in analysis.labels)
    several = len(rows) < len(analysis.hosts)
    together = " Tenths of the other hosts show their median, the slower ones first." if several else ""
    return (
        '<section><h2>Host by case</h2><figure><figcaption class="words">Orange is slower than the group, blue faster; '
        f"the strongest colour is {whole_percent(figures.DARKEST / 100)} and more.{together}</figcaption>"
        f"{_chart(svg)}</figure><ol>{legend}</ol></section>"
    )


def _rows_of_the_map(analysis: Analysis) -> list[tuple[str, Floats]]:
    # What is odd goes first; what has no figure goes last.
    odd = [h for verdict, hosts in analysis.odd.items() for h in hosts if verdict != Verdict.FASTER]
    first = {h.name: rank for rank, h in enumerate(odd)}
    score = [(first.get(h.name, len(first)), -(h.ratio or 0)) for h in analysis.hosts]
    order = sorted(range(len(score)), key=lambda i: score[i])
    single = len(order) if len(order) <= NAMED_IN_THE_MAP else min(max(len(first), 10), NAMED_IN_THE_MAP)
    rows = [(analysis.hosts[i].name, analysis.heat[i]) for i in order[:single]]
    rest = order[single:]
    parts = np.array_split(rest, min(len(rest), PARTS_OF_THE_REST)) if rest else []
    for at, part in enumerate(parts):
        known = (column[~np.isnan(column)] for column in analysis.heat[part].T)
        middle = np.array([np.median(column) if len(column) else np.nan for column in known])
        rows.append((f"{at * 10}-{at * 10 + 10} % of the others ({len(part):,})", middle))
    return rows


def courses(analysis: Analysis) -> str:
    """Ratios by day: all hosts, and what becomes slower."""
    dates = {d for days, _ in analysis.daily.values() for d in days}
    if len(dates) < 2 or len(analysis.daily) < 2:
        return ""
    (svg,) = figures.drawn([figures.courses(analysis.daily)])
    return f"<section><h2>Drift</h2><figure>{_chart(svg)}</figure></section>"


def reasons(hosts: list[Host]) -> str:
    """Who cannot be judged, by reason."""
    by_reason: dict[str, list[str]] = {}
    for host in hosts:
        by_reason.setdefault(host.reason, []).append(host.name)
    text = ""
    for reason, named in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        more = f" and {len(named) - ROWS:,} more" if len(named) > ROWS else ""
        listed = (
            f"<details><summary>{number(len(named), 'host')}</summary><p>{escape(', '.join(named[:ROWS]))}{more}</p>"
        )
        text += f"<p>{escape(reason[:1].upper() + reason[1:])}.</p>{listed}</details>"
    return f"<section><h2>Cannot be judged</h2>{text}</section>" if text else ""


def names(title: str, of: list[str]) -> str:
    if not of:
        return ""
    more = f" and {len(of) - ROWS:,} more" if len(of) > ROWS else ""
    return f"<section><h2>{title}</h2><p>{escape(', '.join(of[:ROWS]))}{more}</p></section>"


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
