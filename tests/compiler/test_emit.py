"""Pictures and listings: whatever a name holds, it stays a label, and the picture stays a picture."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

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


SVG = "{http://www.w3.org/2000/svg}"


def test_the_svg_is_well_formed_and_shows_every_node_in_each_of_its_stages(plan: Plan) -> None:
    root = ElementTree.fromstring(EMITTERS["svg"](plan))
    names = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "name"]
    assert sorted(n for n in names if n) == sorted([*(n for s in plan.stages for n in s.nodes), "console"])
    assert [t.text for t in root.iter(f"{SVG}text") if t.get("class") == "head"] == ["stage 0", "stage 1"]
    assert "it is materialized versioned" in [title.text for title in root.iter(f"{SVG}title")]
    assert not [e for e in root.iter() if e.tag not in {SVG + t for t in SHAPES}]


SHAPES = ("svg", "title", "style", "defs", "marker", "path", "rect", "text", "g")


def test_the_boxes_of_an_svg_do_not_overlap_and_lie_inside_of_it() -> None:
    text = (Path(__file__).parents[1] / "golden" / "shop.vdsl").read_text(encoding="utf-8")
    root = ElementTree.fromstring(EMITTERS["svg"](compile_topology(text)))
    boxes = [
        tuple(float(box.get(side, "nan")) for side in ("x", "y", "width", "height"))
        for box in root.iter(f"{SVG}rect")
        if box.get("class") == "box"
    ]
    assert len(boxes) > 30
    labels = [
        tuple(float(tag.get(side, "nan")) for side in ("x", "y", "width", "height"))
        for tag in root.iter(f"{SVG}rect")
        if tag.get("class") == "tag"
    ]
    assert len(labels) == 11
    boxes += labels  # on which nothing else may stand either
    for index, (x, y, width, height) in enumerate(boxes):
        assert 0 < x < x + width < float(root.get("width", "0"))
        assert 0 < y < y + height < float(root.get("height", "0"))
        for x2, y2, width2, height2 in boxes[index + 1 :]:
            assert x + width <= x2 or x2 + width2 <= x or y + height <= y2 or y2 + height2 <= y


def test_an_svg_without_a_sink_or_of_one_node_can_be_drawn() -> None:
    one = compile_topology("stream s (k string) from memory () key k;")
    assert ElementTree.fromstring(EMITTERS["svg"](one)).tag == f"{SVG}svg"


def test_pictures_show_windows_waits_and_what_every_partition_gets() -> None:
    shop = compile_topology((Path(__file__).parents[1] / "golden" / "shop.vdsl").read_text(encoding="utf-8"))
    for form in ("dot", "svg"):
        text = EMITTERS[form](shop)
        for shown in ("hopping (size = 1 hour, advance = 15 minutes, grace = 5 minutes)", "wait 10 seconds"):
            assert shown in text
        assert text.count("broadcast") == 1 and "global table" in text and "retention 7 days" in text


def test_a_box_is_as_wide_as_its_text_and_a_sink_shows_where_it_writes() -> None:
    text = "stream `漢漢漢漢漢漢漢漢漢漢` (k string) from memory () key k;\n"
    text += (
        "sink `漢漢漢漢漢漢漢漢漢漢` to files (path = '/a/very/long/path/to/what/is/written/by/it', format = 'json');\n"
    )
    text += "sink `漢漢漢漢漢漢漢漢漢漢` to kafka (bootstrap_servers = 'b', topic = 'changes', format = 'json');"
    plan = compile_topology(text)
    root = ElementTree.fromstring(EMITTERS["svg"](plan))
    wide = next(box for box in root.iter(f"{SVG}rect") if box.get("class") == "box")
    assert float(wide.get("width", "0")) > 20 * 7.2
    for form in ("dot", "mermaid", "svg"):
        assert "...ry/long/path/to/what/is/written/by/it" in EMITTERS[form](plan)
        assert "changes" in EMITTERS[form](plan)
