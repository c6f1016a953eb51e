"""Charts by matplotlib: what they show, not how they look."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot
import pytest
from skips import skip

import switchcost
from switchcost.plot import plot
from switchcost.tables import Table

matplotlib.use("Agg")


def cases(**columns: list[object]) -> Table:
    """Rows of `cases`; every estimate is 10 ns, 9 to 12."""
    rows = len(next(iter(columns.values())))
    same: dict[str, object] = {
        "quantity": "switch",
        "estimate": 10.0,
        "low": 9.0,
        "high": 12.0,
        "unit": "ns",
        "title": "t",
    }
    return Table({**{name: [value] * rows for name, value in same.items()}, **columns})


def test_a_ring_is_drawn_over_its_size(ring: switchcost.Run, tmp_path: Path) -> None:
    estimates = [row["estimate"] for row in ring.cases.rows() if row["quantity"] == "switch"]
    if None in estimates:
        skip("quiet", "this machine was too busy for costs that may be quoted")
    axes = ring.plot()
    (line,) = axes.containers
    assert list(line[0].get_xdata()) == [2, 4] and list(line[0].get_ydata()) == estimates
    matplotlib.pyplot.savefig(tmp_path / "ring.svg")


def test_a_line_for_each_link_and_intervals_as_they_are() -> None:
    axes = plot(cases(members=[2, 4, 2, 4], link=["pipe", "pipe", "$x$", "$x$"]))
    assert [line.get_label() for line in axes.containers] == ["pipe", r"\$x\$"]
    (segments,) = (collection.get_segments() for collection in axes.containers[0][2])
    assert [float(end) for end in segments[0][:, 1]] == [9.0, 12.0]


def test_lines_are_named_by_the_walk_and_huge_pages_where_these_differ() -> None:
    same: dict[str, list[object]] = {"work_bytes": [4096, 8192] * 3, "stride_bytes": [64] * 6}
    walks: list[object] = ["whole", "whole", "chase", "chase", "chase", "chase"]
    axes = plot(cases(**same, walk=walks, huge_pages=[True, True, True, True, False, False]))
    labels = [line.get_label() for line in axes.containers]
    assert labels == ["whole, huge_pages=True", "chase, huge_pages=True", "chase, huge_pages=False"]


def test_a_chart_of_nothing_says_why() -> None:
    none: dict[str, list[object]] = {"estimate": [None] * 3, "not_quotable": ["few rounds", "busy $1", "busy $1"]}
    assert plot(cases(**none)).get_xlabel() == r"no figure of 3 may be quoted: busy \$1"
    assert plot(cases(estimate=[None])).get_xlabel() == "nothing was measured"


def test_a_chart_says_what_it_is_of_in_plain_numbers() -> None:
    sizes = [4096, 65536, 1 << 20, 3 << 20]
    same: dict[str, list[object]] = {"experiment": ["cost"] * 4, "host": ["n$1"] * 4}
    axes = plot(cases(work_bytes=[*sizes], estimate=[100.0, 1000.0, 5000.0, 9000.0], **same))
    axes.figure.canvas.draw()
    assert axes.get_title() == r"cost on n\$1"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["4 KiB", "64 KiB", "1 MiB", "3 MiB"]
    assert {"100", "1,000"} <= {text.get_text() for text in axes.get_yticklabels()}
    axes = plot(cases(members=[2, 2000], host=["a", "b"], experiment=["ring"] * 2))
    assert axes.get_title() == "ring on 2 hosts"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["2", "2,000"]


def test_working_sets_come_before_sizes() -> None:
    axes = plot(cases(members=[2, 2, 4], work_bytes=[None, 1024, 4096]))
    assert axes.get_xlabel().startswith("working set")
    assert [line.get_label() for line in axes.containers] == ["members=2", "members=4"]


@pytest.mark.parametrize(("most", "scale"), [(299.0, "linear"), (301.0, "log")])
def test_what_spans_far_is_on_a_logarithmic_axis(most: float, scale: str) -> None:
    assert plot(cases(members=[2, 4], estimate=[10.0, most])).get_yscale() == scale
    assert plot(cases(title=["a", "b"], estimate=[10.0, most])).get_xscale() == scale
    assert plot(cases(title=["a", "b"], estimate=[-10.0, most])).get_xscale() == "linear"


@pytest.mark.parametrize("low", [9.0, None])
def test_other_cases_are_rows(low: float | None) -> None:
    axes = plot(cases(title=["getuid", "read"], quantity=["trial", "trial"], low=[low, low], high=[low, low]))
    assert [text.get_text() for text in axes.get_yticklabels()] == ["getuid", "read"]


def test_nothing_measured_is_an_empty_chart() -> None:
    assert plot(cases(estimate=[None, None])).get_xlabel() == "nothing was measured"
    assert plot(Table({})).get_xlabel() == "nothing was measured"
