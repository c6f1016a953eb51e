"""Files of deploy/ that other programs read: they are given to those programs, or to the parser of their format."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from skips import skip

yaml = pytest.importorskip("yaml")

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "grafana/alerts.yml"
SWITCHES = DEPLOY / "prometheus/switches.yml"
if not DEPLOY.is_dir():
    skip("hardware:docs", "deploy/ is not beside the tests", whole_module=True)


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return list(group["rules"])


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.y*ml")), ids=lambda path: str(path.relative_to(DEPLOY)))
def test_each_yaml_file_is_one_document(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_each_alert_has_a_condition_a_severity_and_a_summary() -> None:
    assert rules()
    for rule in rules():
        assert {"alert", "expr", "labels", "annotations"} <= rule.keys()
        assert rule["labels"]["severity"] in ("info", "warning")
        assert isinstance(rule["annotations"]["summary"], str)
        labels = re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"]))
        grouped = re.search(r"by \(([\w, ]+)\)", rule["expr"])
        assert set(labels) <= set(grouped[1].split(", ") if grouped else []), rule["alert"]


def test_the_dashboard_shows_what_is_recorded_and_the_rules_read_what_is_written() -> None:
    """That of switches; the series of the rules are tested by .ci/prometheus."""
    groups = yaml.safe_load(SWITCHES.read_text())["groups"]
    recorded = {rule["record"] for group in groups for rule in group["rules"] if "record" in rule}
    shown = set(re.findall(r"\b(?:instance|group|host):\w+:\w+", (DEPLOY / "grafana/switches.json").read_text()))
    assert shown and shown <= recorded
    program = DEPLOY.parent / "crates/switchcost/src"
    sources = [program / "report/output/exports.rs", *(program / "switches/top/exporter").glob("*.rs")]
    written = "".join(source.read_text() for source in sources)
    read = set(re.findall(r"\bswitchcost_\w+", SWITCHES.read_text()))
    assert read and all(f'"{name.removesuffix("_total")}"' in written for name in read), read


def promtool(*words: str | Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        skip("program:promtool", "apt-get install prometheus: the alerts are not given to Prometheus' own check")
    done = subprocess.run([program, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_alerts() -> None:
    promtool("check", "rules", RULES)


def test_an_alert_fires_after_a_day(tmp_path: Path) -> None:
    """By promtool's simulation: a slow host, hosts that never answered, and a file that nobody writes any more."""
    series = {
        'switchcost_fleet_host_slow{fleet_host="n5",group="g"}': "1x80",
        'switchcost_fleet_host_slow{fleet_host="n6",group="g"}': "0x80",
        'switchcost_fleet_hosts{verdict="never answered"}': "2x80",
        "switchcost_fleet_written_timestamp_seconds": "0x80",
    }
    text = {rule["alert"]: rule["annotations"]["summary"] for rule in rules()}
    fired = [
        ("30h", "SwitchCostSlowHost", {"severity": "warning", "fleet_host": "n5", "group": "g"}),
        ("30h", "SwitchCostNeverAnswered", {"severity": "warning"}),
        ("50h", "SwitchCostAbsent", {"severity": "warning"}),
    ]
    alerts = []
    for time, name, labels in fired:
        summary = text[name].replace("{{ $labels.fleet_host }}", "n5").replace("{{ $value }}", "2")
        expected = {"exp_labels": labels, "exp_annotations": {"summary": summary}}
        alerts.append({"eval_time": time, "alertname": name, "exp_alerts": [expected]})
    alerts.append({"eval_time": "20h", "alertname": "SwitchCostSlowHost", "exp_alerts": []})
    test = {
        "interval": "1h",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": alerts,
    }
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1h", "tests": [test]}))
    promtool("test", "rules", file)
