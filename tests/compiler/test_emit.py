"""Pictures and listings: whatever a name holds, it stays a label, and the picture stays a picture."""

from __future__ import annotations

import json
import re

import pytest

from vsc.compiler import compile_topology
from vsc.compiler.emit import EMITTERS
from vsc.plan import Plan

NASTY = 'a"];x[b --> "\\`<script>#;|{}'
QUOTED = "`" + NASTY.replace("`", "``") + "`"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return compile_topology(
        f"""
        topology {QUOTED};
        stream s ({QUOTED} string, n int) from files (path = 'it''s', format = 'json') key {QUOTED};
        table t (k string, m int) from memory () key k materialize versioned (retention = 1 day);
        stream {QUOTED} = join s with t on s.{QUOTED} || '' select m as {QUOTED};
        sink {QUOTED} to console ();
        """
    )


def test_the_mermaid_text_has_only_the_lines_that_a_flowchart_has(plan: Plan) -> None:
    lines = EMITTERS["mermaid"](plan).splitlines()
    label = r'"(?:[\w .,:()/#;-]|<br/>)*"'
    shapes = [
        r"flowchart LR",
        rf"  subgraph stage\d \[{label}\]",
        r"  end",
        rf"    n\d+_\d(?:\(\[{label}\]\)|\[\({label}\)\])",
        rf"  s\d\[/{label}/\]",
        r"  \w+ (?:-->|== repartition ==>) \w+",
        rf'  click n\d+_\d href "#" {label}',
    ]
    assert [line for line in lines if not any(re.fullmatch(shape, line) for shape in shapes)] == []


def test_the_dot_text_quotes_every_name(plan: Plan) -> None:
    text = EMITTERS["dot"](plan)
    without = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    assert "script" in text and "script" not in without
    assert without.count("{") == without.count("}") == 1 + len(plan.stages)


def test_the_graph_is_json_with_names_as_they_are(plan: Plan) -> None:
    graph = json.loads(EMITTERS["graph"](plan))
    assert graph["name"] == NASTY
    assert [node["name"] for node in graph["nodes"]] == ["s", "t", f"{NASTY}#rekey", NASTY]
    assert {"from": f"{NASTY}#rekey", "to": NASTY, "repartition": True} in graph["edges"]
    assert {"from": "t", "to": NASTY, "repartition": False} in graph["edges"]
    table = graph["nodes"][1]
    assert (table["versioned"], table["decided_by"], table["stages"]) == (True, "t", [0, 1])
    assert table["store"]["segment_ms"] == 3_600_000


def test_the_listing_says_why_a_table_is_versioned(plan: Plan) -> None:
    listing = EMITTERS["topology"](plan)
    assert "  status    versioned: it is materialized versioned (decided by t)\n" in listing
    assert "  from      files (path = 'it''s', format = 'json')\n" in listing


def test_every_form_ends_with_one_line_feed(plan: Plan) -> None:
    for emit in EMITTERS.values():
        text = emit(plan)
        assert text.endswith("\n") and not text.endswith("\n\n")
