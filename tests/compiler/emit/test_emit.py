"""Pictures and listings: whatever a name holds, it stays a label, and the picture stays a picture."""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.random_topologies.topology import Sizes, generate
from vsc.compiler import compile_topology
from vsc.compiler.emit import PICTURES, TEXTS, emit
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


SVG = "{http://www.w3.org/2000/svg}"
SHAPES = ("svg", "title", "style", "defs", "marker", "path", "rect", "text", "g")


def shop() -> Plan:
    return compile_topology((Path(__file__).parents[2] / "golden" / "shop.vdsl").read_text(encoding="utf-8"))


def drawn(plan: Plan, as_it_runs: bool = False) -> ElementTree.Element:
    return ElementTree.fromstring(emit(plan, "svg", as_it_runs))


def boxes_of(root: ElementTree.Element) -> list[list[str]]:
    """The lines of each box."""
    found = (group.iter(f"{SVG}text") for group in root.iter(f"{SVG}g"))
    return [[text.text or "" for text in texts] for texts in found]


def rectangles(root: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """The edges of each box: left, top, right, bottom."""
    found = []
    for box in root.iter(f"{SVG}rect"):
        if box.get("class") == "box":
            x, y, width, height = (float(box.get(side, "nan")) for side in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


# -------------------------------------------------------------------------------------------------- what is shown


def test_a_picture_has_one_box_for_each_statement_under_the_users_names() -> None:
    names = [lines[0] for lines in boxes_of(drawn(shop()))]
    assert " ".join(sorted(names)) == (
        "both busy by_part calm changes console countries customers enriched files final hourly known made makers "
        "named noop noop orders parts per_city per_part products returns sold taken_back"
    )


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("customers", ["table", "from files ${data}/customers", "key customer", "versioned: it is materialized",
                       "  versioned", "retention 7 days", "store grace 1 day"]),
        ("countries", ["global table", "from files ${data}/countries", "key code",
                       "unversioned: it is a global table,", "  which is never versioned"]),
        ("enriched", ["left join (stream)", "with customers on customer", "as of the record's time", "key customer",
                      "grace 5 minutes"]),
        ("named", ["left join (stream)", "with countries on country", "key customer"]),
        ("made", ["inner join (table)", "with makers on maker", "key product",
                  "unversioned: it is the result of a", "  join without `materialize", "  versioned`"]),
        ("known", ["outer join (table)", "with made", "key product", "unversioned: it is the result of a",
                   "  join without `materialize", "  versioned`"]),
        ("hourly", ["aggregate (table)", "key product, window_start,", "  window_end",
                    "hopping (size = 1 hour, advance = 15", "  minutes, grace = 5 minutes)",
                    "unversioned: it is a windowed table,", "  which is never versioned"]),
        ("busy", ["filter (table)", "where total > 100", "key product, window_start,", "  window_end",
                  "unversioned: it has the status of", "  `hourly`: it is a windowed table,",
                  "  which is never versioned"]),
        ("parts", ["explode (stream)", "by parts as part", "key id"]),
        ("calm", ["suppress (table)", "until time limit 10 seconds", "key city", "unversioned: it is the result of",
                  "  `suppress`, which is never", "  versioned"]),
    ],
)  # fmt: skip
def test_a_box_says_what_its_node_is(name: str, lines: list[str]) -> None:
    [found] = [lines for lines in boxes_of(drawn(shop())) if lines[0] == name]
    assert [line.replace("\N{NO-BREAK SPACE}", " ") for line in found[1:]] == lines


def test_arrows_go_from_node_to_node_and_look_ups_are_dashed() -> None:
    text = emit(shop(), "mermaid")
    ids = {name: id_ for id_, name in re.findall(r'^  (\w+)[\[(/]+"([^"<]*)', text, re.MULTILINE)}
    arrows = set(re.findall(r"^  (\w+) (-->|-\.->) (\w+)$", text, re.MULTILINE))
    for start, arrow, end in [
        ("both", "-->", "enriched"), ("customers", "-.->", "enriched"), ("countries", "-.->", "named"),
        ("products", "-->", "made"), ("makers", "-->", "made"), ("made", "-->", "known"), ("named", "-->", "hourly"),
        ("by_part", "-->", "per_part"), ("final", "-->", "console"),
    ]:  # fmt: skip
        assert (ids[start], arrow, ids[end]) in arrows
    assert len(arrows) == 25
    assert "broadcast" not in text and "repartition" not in text


def test_distinct_shows_what_tells_records_apart() -> None:
    text = "stream s (k string, n int) from memory () key k;\nstream t = distinct s by n within 1 hour grace 5 ms;"
    [_, lines] = boxes_of(drawn(compile_topology(text)))
    assert lines == ["t", "distinct (stream)", "by n", "within 1 hour", "key k", "grace 5 ms"]


def test_a_picture_of_the_plan_as_it_runs_shows_every_node_in_each_of_its_stages() -> None:
    plan = shop()
    root = drawn(plan, as_it_runs=True)
    names = [lines[0] for lines in boxes_of(root)]
    sinks = [sink.connector.kind for sink in plan.sinks]
    assert sorted(names) == sorted([*(n for s in plan.stages for n in s.nodes), *sinks])
    heads = [t.text for t in root.iter(f"{SVG}text") if t.get("class") == "head"]
    assert heads == ["stage 0", "stage 1", "stage 2", "stage 3", "stage 4"]
    assert "it is materialized versioned" in [title.text for title in root.iter(f"{SVG}title")]
    looks = [path.get("class") for path in root.iter(f"{SVG}path") if "url" in path.get("marker-end", "")]
    assert (looks.count("way repartition"), looks.count("way broadcast")) == (11, 2)  # one of each in the legend


def test_pictures_of_the_plan_as_it_runs_show_windows_and_waits() -> None:
    for form in ("dot", "mermaid"):
        text = emit(shop(), form, as_it_runs=True)
        for shown in ("wait 10 seconds", "global table", "retention 7 days", "broadcast"):
            assert shown in text


def test_every_form_shows_when_rows_expire() -> None:
    text = "table t (k string) from memory () key k materialize unversioned (expire = 30 days); sink t to noop ();"
    plan = compile_topology(text)
    assert "store     t unversioned (expire = 30 days)" in emit(plan, "topology")
    for form in ("dot", "mermaid", "svg"):
        assert ["expire 30 days" in emit(plan, form, as_it_runs) for as_it_runs in (False, True)] == [True, True]
    assert '"expire_ms": 2592000000' in emit(plan, "graph")


# ------------------------------------------------------------------------------------------------------ the layout


@pytest.mark.quick(8)
@pytest.mark.parametrize("as_it_runs", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_twenty_nodes_are_at_most_1400_pixels_wide_and_no_two_boxes_touch(seed: int, as_it_runs: bool) -> None:
    sizes = Sizes(tables=(3, 4), streams=(3, 4), globals=(1, 1), derived=(12, 12))
    plan = compile_topology(generate(random.Random(seed), sizes).text())
    root = drawn(plan, as_it_runs)
    assert float(root.get("width", "nan")) <= 1400
    boxes = rectangles(root)
    assert len(boxes) > 20
    for index, (left, top, right, bottom) in enumerate(boxes):
        assert 0 < left < right < float(root.get("width", "0"))
        assert 0 < top < bottom < float(root.get("height", "0"))
        for left2, top2, right2, bottom2 in boxes[index + 1 :]:
            assert right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top


@pytest.mark.parametrize("as_it_runs", [False, True])
def test_no_arrow_crosses_a_box(as_it_runs: bool) -> None:
    root = drawn(shop(), as_it_runs)
    boxes = rectangles(root)
    ways = [path.get("d", "") for path in root.iter(f"{SVG}path") if (path.get("class") or "").startswith("way")]
    assert len(ways) > 20
    for way in ways:
        points = [tuple(map(float, point.split(","))) for point in re.findall(r"[\d.]+,[\d.]+", way)]
        for (x0, y0), (x1, y1) in pairwise(points):
            if x0 == x1:  # bends are between rows, where no box is
                inside = [b for b in boxes if b[0] < x0 < b[2] and b[1] < (y0 + y1) / 2 < b[3]]
                assert inside == []


def test_many_sources_stand_in_several_rows() -> None:
    sources = [f"table a_table_with_quite_a_long_name_{n} (k string) from memory () key k;" for n in range(20)]
    root = drawn(compile_topology("\n".join(sources)))
    assert float(root.get("width", "nan")) <= 1400
    assert len({top for _, top, _, _ in rectangles(root)}) == 5


def test_an_svg_without_a_sink_or_of_one_node_can_be_drawn() -> None:
    one = compile_topology("stream s (k string) from memory () key k;")
    assert boxes_of(drawn(one)) == [["s", "stream", "from memory", "key k"]]


def test_long_lines_are_wrapped_and_boxes_are_as_wide_as_their_text() -> None:
    text = "stream `漢漢漢漢漢漢漢漢漢漢` (k string) from memory () key k;\n"
    text += f"stream `{'x' * 80}` = filter `漢漢漢漢漢漢漢漢漢漢` where k = '{'a ' * 30}';\n"
    text += (
        "sink `漢漢漢漢漢漢漢漢漢漢` to files (path = '/a/very/long/path/to/what/is/written/by/it', format = 'json');\n"
    )
    text += "sink `漢漢漢漢漢漢漢漢漢漢` to kafka (bootstrap_servers = 'b', topic = 'changes', format = 'json');"
    plan = compile_topology(text)
    widths = [right - left for left, _, right, _ in rectangles(drawn(plan))]
    assert 20 * 7.2 < widths[0] < 20 * 7.3 + 21 and max(widths) < 36 * 7.3 + 21
    [long] = [lines for lines in boxes_of(drawn(plan)) if lines[0].startswith("x")]
    assert "".join(line.strip() for line in long[:3]) == "x" * 80
    assert "...ry/long/path/to/what/is/written/by/it" in emit(plan, "mermaid")
    assert all("changes" in emit(plan, form) for form in PICTURES)


# ------------------------------------------------------------------------------------------- names stay labels


@pytest.mark.parametrize("as_it_runs", [False, True])
def test_the_mermaid_text_has_only_the_lines_that_a_flowchart_has(plan: Plan, as_it_runs: bool) -> None:
    lines = emit(plan, "mermaid", as_it_runs).splitlines()
    label = r'"(?:[\w .,:()/#;-]|<br/>)*"'
    shapes = [
        r"flowchart TD",
        rf"  subgraph band\d \[{label}\]",
        r"  end",
        rf" +n\d+(?:_\d)?(?:\(\[{label}\]\)|\[\({label}\)\])",
        rf"  s\d\[/{label}/\]",
        r"  \w+ (?:-->|-\.->|== repartition ==>) \w+",
        rf'  click n\d+_\d href "#" {label}',
    ]
    assert [line for line in lines if not any(re.fullmatch(shape, line) for shape in shapes)] == []


@pytest.mark.parametrize("as_it_runs", [False, True])
def test_the_dot_text_quotes_every_name(plan: Plan, as_it_runs: bool) -> None:
    text = emit(plan, "dot", as_it_runs)
    without = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    assert "script" in text and "script" not in without
    assert without.count("{") == without.count("}") == 1 + (len(plan.stages) if as_it_runs else 0)


def test_the_graph_is_json_with_names_as_they_are(plan: Plan) -> None:
    graph = json.loads(emit(plan, "graph"))
    assert graph["name"] == NASTY
    assert [node["name"] for node in graph["nodes"]] == ["s", "t", f"{NASTY}#rekey", NASTY]
    assert {"from": f"{NASTY}#rekey", "to": NASTY, "repartition": True} in graph["edges"]
    assert {"from": "t", "to": NASTY, "repartition": False} in graph["edges"]
    table = graph["nodes"][1]
    assert (table["versioned"], table["decided_by"], table["stages"]) == (True, "t", [0, 1])
    assert table["store"]["segment_ms"] == 3_600_000


def test_the_listing_says_why_a_table_is_versioned(plan: Plan) -> None:
    listing = emit(plan, "topology")
    assert "  status    versioned: it is materialized versioned (decided by t)\n" in listing
    assert "  from      files (path = 'it''s', format = 'json')\n" in listing


def test_every_form_ends_with_one_line_feed(plan: Plan) -> None:
    forms = [(form, False) for form in (*TEXTS, *PICTURES)] + [(form, True) for form in PICTURES]
    for form, as_it_runs in forms:
        text = emit(plan, form, as_it_runs)
        assert text.endswith("\n") and not text.endswith("\n\n")


def test_an_svg_has_only_shapes_and_texts(plan: Plan) -> None:
    root = drawn(plan)
    assert not [e for e in root.iter() if e.tag not in {SVG + t for t in SHAPES}]


HELD = """
topology held (clock = '{clock}');
stream sales (sku string, country string, n int) from memory () key sku;
stream returns (sku string, country string, n int) from memory () key sku;
table prices (sku string, price double) from memory () key sku materialize versioned (retention = 7 days);
stream priced = left join sales with prices grace 6 hours select country, n;
stream all_lines = merge priced, returns;
table days = aggregate all_lines group by country window tumbling (size = 1 day, grace = 1 hour) emit final
  select count(*) as n;
stream changes = to_stream days;
sink changes to console ();
"""


def test_what_holds_a_node_back_is_said_with_the_clock_of_the_input() -> None:
    plan = compile_topology(HELD.format(clock="input"))
    text = emit(plan, "topology")
    assert text.startswith("topology held (clock = 'input')\n")
    blocks = [block.split("\n") for block in text.split("\n\n")]
    behind = {lines[0]: line for lines in blocks for line in lines if line.startswith("  clock")}
    assert behind == {
        "stream all_lines": "  clock     6 hours behind sales (held back by priced 6 hours)",
        "stream `days#rekey`": "  clock     6 hours behind sales (held back by priced 6 hours)",
        "table days": "  clock     6 hours behind sales (held back by priced 6 hours)",
        "stream changes": "  clock     1 day 7 hours behind sales (held back by priced 6 hours, days 1 day 1 hour)",
    }
    graph = json.loads(emit(plan, "graph"))
    clocks = {node["name"]: node["clock"] for node in graph["nodes"]}
    assert graph["clock"] == "input"
    assert clocks["days"] == {
        "sources": ["returns", "sales"],
        "hold_ms": 21_600_000,
        "holds_ms": 90_000_000,
        "branches": [{"sources": ["sales"], "hold_ms": 21_600_000, "held_back_by": ["priced"]}],
    }
    assert "clock 1 day 7 hours behind" in emit(plan, "mermaid", as_it_runs=True)


def test_of_several_clocks_that_hold_records_back_the_lowest_is_said_to_count() -> None:
    text = HELD.format(clock="input").replace("priced, returns;", "priced, sorted;")
    text += "stream sorted = reorder returns within 5 ms;"
    blocks = emit(compile_topology(text), "topology").split("\n\n")
    (all_lines,) = (block for block in blocks if block.startswith("stream all_lines\n"))
    assert all_lines.split("\n")[-1] == (
        "  clock     the lowest: 5 ms behind returns (held back by sorted 5 ms); "
        "6 hours behind sales (held back by priced 6 hours)"
    )


def test_the_clock_of_records_says_nothing_of_holds() -> None:
    plan = compile_topology(HELD.format(clock="records"))
    assert emit(plan, "topology").startswith("topology held\n")
    assert "behind" not in emit(plan, "topology") + emit(plan, "mermaid", as_it_runs=True)
    assert json.loads(emit(plan, "graph"))["clock"] == "records"
