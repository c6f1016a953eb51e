"""Stored runs and their tables."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from skips import skip

import switchcost
from switchcost import tables
from switchcost._program import call
from switchcost.declared import FACTS
from switchcost.machine import READINGS, facts_of


def test_no_number_is_computed_twice(ring: switchcost.Run, file: Path) -> None:
    record = json.loads(call("runs", "export", str(file)))
    # Under SCHED_FIFO, too, where that is allowed.
    assert {(row["members"], row["quantity"]) for row in ring.cases.rows()} == {
        (1, "hop"),
        (2, "switch"),
        (4, "switch"),
    }
    for row in ring.cases.rows():
        name = "ns_per_hop" if row["quantity"] == "hop" else "ns_per_switch_above_solo"
        estimate = record["cases"][row["case"]][name]
        # What may not be quoted is no estimate.
        told = None if estimate.get("not_quotable") else estimate["value"]
        assert [row["estimate"], row["low"], row["high"]] == [told, estimate["low"], estimate["high"]]
        assert row["unit"] == "ns"


def test_samples_are_those_of_the_run_file(ring: switchcost.Run, file: Path) -> None:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    stored = [line["sample"] for line in lines if "sample" in line]
    samples = ring.samples
    key = [(s["case"], s["round"], s["sample"], s["elapsed_ns"], s["slices"]["elapsed_ns"]) for s in stored]
    assert sorted(
        zip(*(samples[n] for n in ("case", "round", "sample", "elapsed_ns", "slices_ns")), strict=True)
    ) == sorted(key)
    assert set(samples["run"]) == {ring.name} and set(samples["host"]) == {os.uname().nodename}
    # Pages of a ring without work: could not be read is not 0.
    assert set(samples["huge_page_bytes"]) == {None}


def test_the_machine_is_one_row(ring: switchcost.Run) -> None:
    (row,) = ring.machine.rows()
    assert row["kernel_release"] == os.uname().release
    assert row["cpus_online"] == os.sysconf("SC_NPROCESSORS_ONLN")
    assert row["run"] == ring.name and row["started"].tzinfo
    assert not any(isinstance(value, (dict, list)) for value in row.values())


def test_the_answer_is_the_programs(ring: switchcost.Run) -> None:
    assert call("runs", "show", ring.source).split()[:4] == ring.answer.split()[:4]
    assert "switch" in ring.answer and "\n" not in ring.answer


def test_read_by_file_pattern_folder_dataset_and_name(ring: switchcost.Run, file: Path, tmp_path: Path) -> None:
    for host in ("a", "b"):
        (tmp_path / "runs" / host).mkdir(parents=True)
        shutil.copy(file, tmp_path / "runs" / host)
    dataset = switchcost.read(tmp_path)
    assert [Path(run.source).parent.name for run in dataset] == ["a", "b"]
    assert len(dataset.samples) == 2 * len(ring.samples) and len(dataset.machine) == 2
    assert len(dataset[:1]) == 1
    for source in (file, str(file), f"{file.parent}/*.jsonl", file.parent, "short"):
        assert ring.name in [run.name for run in switchcost.read(source)]
    assert len(switchcost.read(file, tmp_path / "runs" / "a")) == 2


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    for source in (tmp_path, tmp_path / "x.jsonl", f"{tmp_path}/*.jsonl", "x\x1b[2J.jsonl"):
        with pytest.raises(FileNotFoundError, match=r"no (such )?run file") as raised:
            switchcost.read(source)
        assert "\x1b" not in str(raised.value)


def test_a_file_that_is_no_run_is_an_error_that_names_it(tmp_path: Path) -> None:
    broken = tmp_path / "-rf.jsonl"
    broken.write_text("{}\n")
    with pytest.raises(switchcost.ProgramError, match=r"-rf\.jsonl is not a run file") as raised:
        _ = switchcost.read(broken).cases
    assert raised.value.exit_code == 1


def test_names_in_a_run_file_stay_text(ring: switchcost.Run, file: Path, tmp_path: Path) -> None:
    """Of a host that is called like a script: in HTML it is text, and the terminal is not steered."""
    lines = file.read_text().splitlines(keepends=True)
    header = json.loads(lines[0])
    header["header"]["host"] = "<script>alert(1)</script>\x1b[2J"
    header["header"]["run"] = "../../x"
    hostile = tmp_path / "hostile.jsonl"
    hostile.write_text(json.dumps(header) + "\n" + "".join(lines[1:]))
    runs = switchcost.read(hostile)
    assert "\x1b" not in repr(runs) + repr(runs[0])
    for table in (runs.samples, runs.cases, runs.machine):
        assert "<script>" not in table._repr_html_()
        assert "&lt;script&gt;" in table._repr_html_()
    assert "<script>" not in runs._repr_html_()


def test_columns_have_their_kinds_in_all_libraries(ring: switchcost.Run) -> None:
    import pandas
    import polars
    import pyarrow

    for table in (ring.samples, ring.cases, ring.machine):
        arrow = table.to_arrow()
        assert arrow.column_names == table.columns and arrow.num_rows == len(table)
        assert arrow.to_pydict() == table.to_dict()
        assert table.to_polars().to_dict(as_series=False) == table.to_dict()
        assert polars.DataFrame(table).equals(table.to_polars())
        assert pyarrow.table(table).equals(arrow)
        frame = table.to_pandas()
        assert list(frame.columns) == table.columns and len(frame) == len(table)
    samples, frame = ring.samples, ring.samples.to_pandas()
    assert frame.dtypes["elapsed_ns"] == "Int64" and frame.dtypes["link"] == "string"
    assert frame["elapsed_ns"].sum() == sum(samples["elapsed_ns"])
    assert frame["huge_page_bytes"].isna().all()
    assert str(ring.machine.to_pandas().dtypes["started"]) == "datetime64[ns, UTC]"
    assert samples.to_arrow().schema.field("elapsed_ns").metadata == {b"unit": b"ns"}
    assert samples.units["stride_bytes"] == "bytes" and "hops" not in samples.units
    assert pandas.api.types.is_list_like(frame["slices_ns"].iloc[0])


def test_a_frame_says_of_which_runs_it_is(ring: switchcost.Run) -> None:
    attrs = ring.cases.to_pandas().attrs
    assert attrs["runs"] == [ring.name] and attrs["units"] == ring.cases.units


def test_a_package_that_is_missing_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    table = tables.Table({"case": [1]})
    for module, extra in (("pandas", "pandas"), ("polars", "polars"), ("pyarrow", "arrow")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=rf"{module} .*pip install 'switchcost\[{extra}\]'"):
            getattr(table, f"to_{extra}")()


def test_every_estimate_says_whether_it_may_be_quoted_and_at_which_speed(ring: switchcost.Run) -> None:
    for row in ring.cases.rows():
        assert row["quotable"] == (row["estimate"] is not None) == (row["not_quotable"] is None)
        assert row["speed"] in ("full", "few_rounds", "contended", "not_alone", "cpu_time", "not_judged")
        assert row["rounds"] >= (5 if row["speed"] == "full" else 1)


def test_text_of_the_program_becomes_typed_columns() -> None:
    table = tables.of_csv('case,huge_pages,mean,slices_ns,link,new\n1,true,2.5,1 2,"a,b",7\n,,,,,\n', {"run": "r"})
    assert table.rows() == [
        {"run": "r", "case": 1, "huge_pages": True, "mean": 2.5, "slices_ns": [1, 2], "link": "a,b", "new": "7"},
        {"run": "r", "case": None, "huge_pages": None, "mean": None, "slices_ns": None, "link": None, "new": None},
    ]
    assert len(tables.of_csv("")) == 0
    assert tables.of_csv("case,link\n").to_dict() == {"case": [], "link": []}
    for text in ("x", "1.5", str(2**63)):
        with pytest.raises(ValueError, match=r"column case: .* is no integer"):
            tables.of_csv(f"case\n{text}\n")


def test_a_field_longer_than_the_csv_modules_limit() -> None:
    slices = " ".join(["250000"] * 50_000)
    assert len(tables.of_csv(f"slices_ns\n{slices}\n")["slices_ns"][0]) == 50_000


def test_tables_below_each_other_have_all_columns() -> None:
    one, other = tables.Table({"case": [1, 2]}), tables.Table({"case": [3], "link": ["pipe"]})
    assert tables.joined([one, other]).to_dict() == {"case": [1, 2, 3], "link": [None, None, "pipe"]}
    assert tables.joined([]).columns == []


def test_every_fact_that_is_declared_can_be_read() -> None:
    of_records = [fact for fact in FACTS if fact.path]
    assert {fact.reading for fact in of_records} == READINGS.keys()
    for table in ("machine", "machines"):
        assert list(facts_of({}, table)) == [fact.name for fact in of_records if table in fact.tables]


def test_facts_are_found_where_they_are_declared() -> None:
    models = [{"vendor": v, "name": "A", "family": 25, "model": 1, "stepping": v} for v in ("y", "x")]
    virtual = {"cpu_flag": True, "hypervisor_type": {"unknown": "no such file"}, "dmi_vendor": "V", "dmi_product": "P"}
    machine = {
        "kernel": {"release": "6.1", "version": {"unknown": "not read"}},
        "cpu": {"models": models, "topology": [{}, {}]},
        "frequency": {"policies": {"unknown": "no driver"}, "boost": False},
        "mitigations": {"b": "Vulnerable", "a": "Not affected", "c": {"unknown": "x"}},
        "virtualization": virtual,
    }
    noise = {"level": "noisy", "reasons": ["z", "steal, too"], "clean_share": None}
    header = {"name": "x\x1b[2J", "machine": machine}
    found = facts_of({"header": header, "end": None, "noise": noise, "speed": [{"clock_ghz": 3.2}, {"clock_ghz": 1}]})
    assert {name: value for name, value in found.items() if value is not None} == {
        "name": "x [2J",
        "end_reason": "killed",
        "noise": "noisy",
        "noise_reasons": "z; steal, too",
        "clock_ghz": 3.2,
        "kernel_release": "6.1",
        "mitigations": "a: Not affected; b: Vulnerable",
        "cpu_vendor": "x, y",
        "cpu_model": "A",
        "cpu_stepping": "25-1-x, 25-1-y",
        "cpus_online": 2,
        "boost": False,
        "hypervisor": "V P",
        "cpu_flag": True,
        "dmi_vendor": "V",
        "dmi_product": "P",
    }
    assert facts_of({"header": {"machine": {"virtualization": {"cpu_flag": False}}}})["hypervisor"] == "none"
    assert facts_of({"header": {}, "end": {"reason": "precise"}})["end_reason"] == "precise"


def test_every_column_is_in_the_guide(ring: switchcost.Run) -> None:
    docs = Path(__file__).parents[2] / "docs"
    if not docs.is_dir():
        skip("hardware:docs", "docs/ is not beside the tests")
    guide = (docs / "python.md").read_text() + (docs / "columns.md").read_text()
    for table in (ring.machine, ring.cases, ring.samples):
        for column in table.columns:
            assert f"`{column}`" in guide, column


def test_a_clock_that_is_wrong_is_no_reason_not_to_read() -> None:
    time = tables.parse_time("1970-01-01T00:00:07Z")
    assert (time.year, time.second) == (1970, 7)
    with pytest.raises(ValueError, match="in the year 1970"):
        tables.parse_time("1970-01-01T00:00:07Z", range(2000, 2100))
