"""The dashboard and the alerts ask for metrics that the exporter serves, with labels that these have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
import yaml

from tests.runtime.spark.report.test_progress import PLAN, report
from tools import dashboard
from tools.docs.blocks import ROOT
from vsc.runtime.metrics import Dropped
from vsc.runtime.spark.report.exporter import PrometheusDisplay
from vsc.runtime.spark.report.progress import Tracker
from vsc.runtime.spark.state.node_clocks import HeldHistory

ALERTS = yaml.safe_load((ROOT / "docs/monitoring/alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
PAGE = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def served() -> Iterator[dict[str, set[str]]]:
    """What the exporter serves: names, with their labels."""
    show = PrometheusDisplay("127.0.0.1", 0)
    try:
        event = Tracker.after(PLAN, [], 0.0).batch(report(1, {"orders": {"offsets": 4.0}}), 500)
        held = {"rates": HeldHistory("priced", 1)}
        show.batch(replace(event, clocks={"orders": 1}, behind={"rates": 1}, histories=held))
        found = {sample.name: set(sample.labels) for metric in show.collect() for sample in metric.samples}
    finally:
        show.close()
    yield {"up": set(), **found}


def used() -> Iterator[tuple[str, str]]:
    """Every metric in a query, and its legend or text, in which labels are named."""
    for panel in dashboard.PANELS:
        for query, legend in panel.queries:
            yield from ((name, legend) for name in re.findall(r"\bvsc_\w+", query))
    for rule in ALERTS:
        text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"{{\1}}", rule["annotations"]["summary"])
        yield from ((name, text) for name in re.findall(r"\bvsc_\w+|\bup\b", rule["expr"]))


def test_the_file_is_what_the_panels_make() -> None:
    assert json.loads(dashboard.PATH.read_text(encoding="utf-8")) == dashboard.dashboard()


def test_each_metric_is_served_with_the_labels_that_are_shown(served: dict[str, set[str]]) -> None:
    found = list(used())
    assert len(found) > 25
    for name, text in found:
        labels = set(re.findall(r"\{\{(\w+)\}\}", text)) - {"instance", "job"}
        assert labels <= served[name], name


def test_each_metric_is_on_the_dashboard(served: dict[str, set[str]]) -> None:
    assert served.keys() - {name for name, _ in used()} <= {"vsc_epoch", "vsc_stream_time_ms"}


def test_the_reasons_of_alerts_are_ones_that_are_counted() -> None:
    named = {
        reason
        for rule in ALERTS
        for found in re.findall(r'reason=~"([^"]+)"', rule["expr"])
        for reason in found.split("|")
    }
    assert named
    assert named <= set(Dropped)


def test_the_page_explains_each_alert() -> None:
    assert re.findall(r"^\| `(Vsc\w+)` \|", PAGE, re.M) == [rule["alert"] for rule in ALERTS]
