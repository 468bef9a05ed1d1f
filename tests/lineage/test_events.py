"""Events are what OpenLineage's schema asks for: its own client's classes hold the same."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.lineage.standard import check
from vsc.compiler import compile_topology
from vsc.lineage.events import job_event, run_event
from vsc.lineage.job import Job, given_namespace, job_of

EXAMPLES = Path(__file__).parents[2] / "examples"
RUN = "0190a1b2-c3d4-4e5f-8a6b-7c8d9e0f1a2b"
TEXT = """
topology shop;
stream orders (id bigint, lines array<struct<product: string, amount: int>>, tags map<string, double>, at bigint)
from files (path = '/data/orders/*.json', format = 'json') key id timestamp at;
stream again (id bigint, note string, at bigint)
from files (path = 'file:///data/orders', format = 'json') key id timestamp at;
stream numbers (value bigint, at timestamp) from rate (rows_per_second = 1) key value timestamp at;
stream long = filter orders where size(lines) > 1;
stream noted = join long with again within 1 hour select lines, note;
stream more = map numbers select cast(value as string) as note, unix_millis(at) as at;
sink noted to files (path = '/out/noted', format = 'json');
sink numbers to files (path = '/out/numbers', format = 'json');
sink dropped to files (path = '/out/lost', format = 'json');
sink missed to files (path = '/out/lost', format = 'json');
sink more to noop ();
"""


def job(text: str = TEXT, **given: Any) -> Job:
    plan = compile_topology(text, path="t.vdsl", variables={})
    return job_of(plan, "test", **{"variables": {}, **given})


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/topology.vdsl")), ids=lambda path: path.parent.name)
def test_the_events_of_every_example_are_as_the_schema_says(path: Path) -> None:
    found = job_of(compile_topology(path.read_text(), path=path.name, variables={}), "test", {})
    event = job_event(found)
    check(event)
    for kind in ("START", "RUNNING", "COMPLETE", "ABORT"):
        check(run_event(found, kind, RUN, "4.1.0", {}, {}))
    event = run_event(found, "FAIL", RUN, "4.1.0", {}, {}, "the disk is full")
    check(event)
    assert event["run"]["facets"]["errorMessage"]["message"] == "the disk is full"


@pytest.mark.parametrize(
    "wrong",
    [
        {"eventTime": "yesterday"},
        {"eventType": "BEGIN"},
        {"job": {"name": "shop"}},
        {"run": {"runId": "7"}},
        {"more": 1},
        {"inputs": [{"namespace": "file", "name": "/a", "facets": {"schema": {"fields": [{"type": "int"}]}}}]},
        {"outputs": [{"namespace": "file", "name": "/a", "outputFacets": {"outputStatistics": {"rowCount": "1"}}}]},
    ],
    ids=str,
)
def test_the_schema_is_checked(wrong: dict[str, Any]) -> None:
    event = run_event(job(), "START", RUN, "4.1.0", {}, {}) | wrong
    with pytest.raises((AssertionError, KeyError, TypeError, ValueError)):
        check(event)


def test_a_dataset_is_told_once_with_all_that_is_known_of_it() -> None:
    event = run_event(
        job(), "RUNNING", RUN, "4.1.0", {"orders": 3, "again": 4, "numbers": 9}, {"sink-0": 2, "sink-2": 5}
    )
    [orders] = event["inputs"]
    assert (orders["namespace"], orders["name"]) == ("file", "/data/orders")
    assert [field["name"] for field in orders["facets"]["schema"]["fields"]] == ["id", "lines", "tags", "at", "note"]
    assert orders["inputFacets"]["inputStatistics"]["rowCount"] == 7
    written = {one["name"]: one["outputFacets"]["outputStatistics"]["rowCount"] for one in event["outputs"]}
    assert written == {"/out/noted": 2, "/out/numbers": 0, "/out/lost": 5}


def test_columns_depend_on_columns_of_datasets() -> None:
    [noted, numbers, lost] = job_event(job())["outputs"]
    orders = {"namespace": "file", "name": "/data/orders"}
    same = [{"type": "DIRECT", "subtype": "IDENTITY", "masking": False}]
    lineage = noted["facets"]["columnLineage"]
    assert lineage["fields"] == {
        "id": {"inputFields": [{**orders, "field": "id", "transformations": same}]},
        "lines": {"inputFields": [{**orders, "field": "lines", "transformations": same}]},
        "note": {"inputFields": [{**orders, "field": "note", "transformations": same}]},
    }
    found = {one["field"]: [how["subtype"] for how in one["transformations"]] for one in lineage["dataset"]}
    assert found == {"at": ["JOIN"], "id": ["JOIN"], "lines": ["FILTER"]}
    # Nobody else knows the source `rate`.
    assert numbers["facets"]["columnLineage"]["fields"] == {"value": {"inputFields": []}, "at": {"inputFields": []}}
    assert [field["name"] for field in lost["facets"]["schema"]["fields"]][:3] == ["node", "reason", "source"]


def test_what_is_inside_of_a_column_is_told() -> None:
    [orders] = job_event(job())["inputs"]
    fields = {field["name"]: field for field in orders["facets"]["schema"]["fields"]}
    element = {"name": "_element", "type": "struct", "fields": [
        {"name": "product", "type": "string"}, {"name": "amount", "type": "int"}]}  # fmt: skip
    assert fields["lines"] == {"name": "lines", "type": "array", "fields": [element]}
    parts = [{"name": "key", "type": "string"}, {"name": "value", "type": "double"}]
    assert fields["tags"] == {"name": "tags", "type": "map", "fields": parts}


def test_an_event_has_its_time_job_and_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "bank")
    plan = compile_topology(TEXT, path="t.vdsl", variables={})
    event = job_event(job_of(plan, given_namespace(), {}), datetime(2026, 1, 2, 3, 4, 5, 6000, UTC))
    assert (event["eventTime"], event["job"]["namespace"], event["job"]["name"]) == (
        "2026-01-02T03:04:05.006+00:00", "bank", "shop",
    )  # fmt: skip
    monkeypatch.delenv("OPENLINEAGE_NAMESPACE")
    assert given_namespace() == "vsc"
