"""The plan's JSON: nothing is lost, nothing unknown is taken, the place of a mistake is named."""

from __future__ import annotations

import dataclasses
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from vsc.compiler import compile_topology
from vsc.plan import (
    Call,
    Cast,
    Column,
    Connector,
    Filter,
    Item,
    Map,
    Materialize,
    Node,
    Plan,
    PlanError,
    Rekey,
    Schema,
    Sink,
    Source,
    Stage,
    StageInput,
    Status,
    Store,
    StreamTableJoin,
    ToTable,
    dump,
    expressions,
    load,
)
from vsc.plan.types import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, DecimalType, Field, StructType

CHECKPOINTS = Path(__file__).parents[1] / "runtime/spark/checkpoints"
N = expressions.Column(0, "n", BIGINT)
S = StructType((Field("a b", STRING), Field("c", DecimalType(12, 2))))


def _source(name: str, kind: Any, rank: int, **more: Any) -> Node:
    connector = Connector("files", (("path", 'data/${day}/ü"'), ("rows", 1), ("with", True)), (("x.y", "1"),))
    columns = (Column("k", STRING), Column("n", BIGINT), Column("at", TIMESTAMP), Column("s", S))
    at = Item("timestamp", expressions.Column(0, "at", TIMESTAMP), "at")
    gone = Item("delete when", Call("lt", (N, expressions.Literal(0, BIGINT)), BOOLEAN), "n < 0")
    source = Source(connector, columns, at, gone if kind == "table" else None, rank, max_ahead=7)
    return Node(name, kind, Schema(columns[:1], columns[1:]), source, (), 1, **more)


def _plan() -> Plan:
    literals = tuple(
        Item(f"c{i}", expressions.Literal(value, type_), str(value))
        for i, (value, type_) in enumerate(
            [
                (None, STRING),
                (True, BOOLEAN),
                (2**62, BIGINT),
                (1e300, DOUBLE),
                ("ü'\n", STRING),
                ("1.50", S.fields[1].type),
            ]
        )
    )
    n_item = Item("n", N, "n")
    cast = Item("m", Cast(N, DOUBLE, safe=True), "try_cast(n as double)")
    versioned = Store("t", "versioned", 10, 20, 30)
    status = Status(True, "it is materialized versioned", "t")
    event = _source("ev", "stream", 1)
    key = event.schema.key
    mapped = Schema(key, tuple(Column(item.name, item.expr.type) for item in (*literals, n_item, cast)))
    keyed = Schema((Column("j", DOUBLE),), (Column("k", STRING), *mapped.value))
    joined = Schema(keyed.key, (Column("d", DOUBLE),))
    items = (Item("d", Cast(expressions.Column(1, "n", BIGINT), DOUBLE), "t.n"),)
    nodes = (
        event,
        _source("t", "table", 0, store=versioned, status=status),
        Node("f", "stream", event.schema, Filter(Item("where", literals[1].expr, "true")), ("ev",), 3),
        Node("m", "stream", mapped, Map((*literals, n_item, cast)), ("f",), 4),
        Node("j#rekey", "stream", keyed, Rekey((dataclasses.replace(cast, name="j"),)), ("m",), 5),
        Node("j", "stream", joined, StreamTableJoin(True, True, 5, items), ("j#rekey", "t"), 5),
        Node("u", "table", joined, ToTable(None), ("j",), 6, Store("u", "unversioned", implied=True), status),
        Node("v", "table", joined, Materialize(), ("u",), 7, Store("w", "unversioned"), status),
    )
    stages = (
        Stage(0, ("ev", "t", "f", "m", "j#rekey"), (), ("ev", "f", "m", "j#rekey")),
        Stage(1, ("t", "j", "u", "v"), (StageInput("j#rekey"),), ("t", "j", "u", "v")),
    )
    return Plan("p", nodes, (Sink("sink-0", "v", Connector("console"), 9),), stages, ("day",))


def _changed(path: str, value: object) -> str:
    """The sample plan's JSON with one place changed; `value` ``...`` removes it."""
    document = json.loads(dump(_plan()))
    *way, last = [int(p) if p.isdigit() else p for p in path.strip("/").split("/")]
    at: Any = document
    for part in way:
        at = at[part]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return json.dumps(document)


def test_what_was_dumped_loads_as_the_same_plan() -> None:
    assert load(dump(_plan())) == _plan()
    assert dump(load(dump(_plan()))) == dump(_plan())


def test_a_plan_without_a_clock_is_one_of_before_and_goes_by_records() -> None:
    plan = _plan()
    assert plan.clock == "records" and "clock" not in json.loads(dump(plan))
    of_input = dataclasses.replace(plan, clock="input")
    assert json.loads(dump(of_input))["clock"] == "input" and load(dump(of_input)) == of_input
    assert load(_changed("/clock", "records")) == plan


@pytest.mark.parametrize("kept", sorted(CHECKPOINTS.glob("*.tar.gz")), ids=lambda path: path.name)
def test_the_plan_of_a_kept_checkpoint_is_read_and_written_as_it_is(kept: Path) -> None:
    with tarfile.open(kept) as archive:
        (name,) = (name for name in archive.getnames() if name.endswith("vsc/plan.json"))
        file = archive.extractfile(name)
        assert file is not None
        text = file.read().decode()
    assert dump(load(text)) == text


def test_a_store_whose_rows_stay_is_written_as_before() -> None:
    plan = _plan()
    assert "expire" not in dump(plan)
    table = next(node for node in plan.nodes if node.store is not None)
    forgets = dataclasses.replace(table, store=Store("t", "unversioned", expire=7))
    changed = dataclasses.replace(plan, nodes=tuple(forgets if n is table else n for n in plan.nodes))
    assert '"expire": 7' in dump(changed) and load(dump(changed)) == changed


def test_a_join_without_max_age_is_written_as_before() -> None:
    plan = _plan()
    join = plan.node("j")
    assert isinstance(join.operation, StreamTableJoin) and "max_age" not in dump(plan)
    assert "strictly_before" not in dump(plan) and "drop_older" not in dump(plan)
    aged = dataclasses.replace(join, operation=dataclasses.replace(join.operation, max_age=7, drop_older=True))
    changed = dataclasses.replace(plan, nodes=tuple(aged if node is join else node for node in plan.nodes))
    assert '"max_age": 7' in dump(changed) and load(dump(changed)) == changed


def test_a_window_without_a_calendar_is_written_as_before() -> None:
    text = "stream s (k string) from memory () key k; table w = aggregate s group by k window {} select count(*) as n;"
    plain, daily = (
        compile_topology(text.format(f"tumbling (size = 1 day{zone})")) for zone in ("", ", zone = 'Asia/Tokyo'")
    )
    window = {"kind": "tumbling", "size": 86_400_000, "advance": 86_400_000, "grace": 0}
    found = [json.loads(dump(plan))["nodes"][1]["operation"]["window"] for plan in (plain, daily)]
    assert found == [window, {**window, "zone": "Asia/Tokyo"}]
    assert load(dump(daily)) == daily


def test_the_text_is_json_with_the_format_version_first_and_expressions_tagged() -> None:
    text = dump(_plan())
    document = json.loads(text)
    assert text.endswith("}\n") and not text.endswith("\n\n")
    assert next(iter(document)) == "format_version" and document["format_version"] == 2
    assert document["nodes"][2]["operation"] == {
        "op": "filter",
        "predicate": {"name": "where", "expr": {"literal": True, "type": "boolean"}, "text": "true"},
        "dedupe": False,
    }
    assert document["nodes"][4]["operation"]["items"][0]["expr"] == {
        "cast": {"column": "n", "input": 0, "type": "bigint"},
        "type": "double",
        "safe": True,
    }
    assert max(len(line) for line in text.splitlines()) <= 160


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("/format_version", 1, "at /format_version: expected 2, found 1"),
        ("/format_version", True, "at /format_version: expected 2, found True"),
        ("/format_version", ..., "at /format_version: expected 2, found null"),
        ("/extra", 1, "at /extra: no such member"),
        ("/nodes/0/a~b", 1, "at /nodes/0/a~0b: no such member"),
        ("/name", ..., "at the top: member 'name' is missing"),
        ("/clock", "wall", "at /clock: expected one of 'input', 'records', found 'wall'"),
        ("/name", 3, "at /name: expected str, found 3"),
        ("/nodes", {}, "at /nodes: expected a list, found an object"),
        ("/nodes/0", None, "at /nodes/0: expected an object, found null"),
        ("/nodes/0/kind", "view", "at /nodes/0/kind: expected one of 'stream', 'table', found 'view'"),
        ("/nodes/0/line", True, "at /nodes/0/line: expected int, found True"),
        ("/nodes/0/line", 1.0, "at /nodes/0/line: expected int, found 1.0"),
        ("/nodes/1/store/retention", "7 days", "at /nodes/1/store/retention: expected int, found '7 days'"),
        ("/nodes/0/schema/key/0/type", "strong", "at /nodes/0/schema/key/0/type: not a type: 'strong'"),
        ("/nodes/0/schema/key/0/type", "decimal(3,4)", "at /nodes/0/schema/key/0/type: not a type"),
        ("/nodes/1/store/expire", 5, "at /nodes/1/store/expire: the rows of node 't' cannot expire after 5 ms"),
        ("/nodes/0/operation/max_ahead", -1, "at /nodes/0/operation/max_ahead: -1 is negative"),
        ("/nodes/0/operation/max_ahead", "1 day", "at /nodes/0/operation/max_ahead: expected int, found '1 day'"),
        ("/nodes/0/operation/op", "eval", "at /nodes/0/operation/op: expected one of"),
        ("/nodes/0/operation/connector/options/0", ["path"], "options/0: expected a list of 2, found a list of 1"),
        ("/nodes/0/operation/connector/options/0/1", None, "options/0/1: expected str or int or float or bool"),
        ("/nodes/2/operation/predicate/expr", {"eval": "1"}, "at /nodes/2/operation/predicate/expr: expected an expr"),
        ("/nodes/2/inputs/0", "t2", "at /nodes/2/inputs/0: 't2' is not an earlier node"),
        ("/nodes/2/inputs/0", "v", "at /nodes/2/inputs/0: 'v' is not an earlier node"),
        ("/nodes/2/name", "ev", "at /nodes/2/name: node 'ev' occurs twice"),
        ("/sinks/0/node", "nobody", "at /sinks/0/node/0: 'nobody' is not a node"),
        ("/stages/1/id", 2, "at /stages/1/id: expected 1, found 2"),
        ("/stages/1/inputs/0/node", "v", "at /stages/1/inputs/0: 'v' is not a node of an earlier stage"),
        ("/stages/0/moved", ["v"], "at /stages/0/moved/0: 'v' is not a node of this stage"),
        ("/stages/1/old", ["m"], "at /stages/1/old/0: 'm' is not a node of this stage"),
        (
            "/stages/0/hands_on",
            [{"node": "ev", "stages": [0]}],
            "at /stages/0/hands_on/0/stages/0: 0 is not a later stage",
        ),
        ("/nodes/0/bounds", 2, "at /nodes/0/bounds: 2 is not a number of key columns"),
        ("/stages/1/emits", ["t", "j", "u"], "at /stages: no stage emits node 'v'"),
        ("/stages/1/emits/0", "ev", "at /stages/1/emits/0: 'ev' is not a node of this stage alone"),
        ("/stages/1/inputs", [], "at /stages/1/nodes/1: 'j' reads 'j#rekey', which does not enter the stage"),
        ("/nodes/5/inputs/1", "j#rekey", "at /nodes/5/inputs: stream_table_join reads a stream and a table, not"),
        ("/nodes/2/inputs", [], "at /nodes/2/inputs: filter reads a stream, not 0 inputs"),
        ("/nodes/0/schema/value/0/name", "k", "at /nodes/0/schema: two columns of node 'ev' have one name"),
        ("/nodes/3/schema/value/0/type", "int", "at /nodes/3/schema: the columns of node 'm' are not those that its"),
        ("/nodes/2/schema/value/0/name", "x", "at /nodes/2/schema: the columns of node 'f' are not those that its"),
        ("/nodes/0/operation/columns/0/name", "x", "at /nodes/0/schema: the columns of node 'ev' are not those that"),
        ("/nodes/5/operation/items/0/expr/cast/input", 2, "operation/items/0/expr/cast: input 2 has no column 'n'"),
        ("/nodes/5/operation/items/0/expr/cast/type", "int", "column 'n' of input 1 is bigint, not int"),
        ("/nodes/1/operation/delete_when/expr/call", "rm", "delete_when/expr/call: there is no function 'rm'"),
        ("/nodes/1/operation/delete_when/expr/args", [], "delete_when/expr/args: lt does not take 0 arguments"),
        ("/nodes/2/operation/predicate/expr/literal", "1", "predicate/expr/literal: '1' is not a literal of boolean"),
    ],
)
def test_a_wrong_plan_is_refused_with_the_place(path: str, value: object, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        load(_changed(path, value))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "expected an object"),
        ('{"name": NaN}', "NaN is not a number"),
        ('{"name": "a", "name": "b"}', "member 'name' occurs twice"),
        ("[" * 100_000, "nested deeper than"),
        ('{"name": ' + "1" * 5000 + "}", "not JSON"),
    ],
)
def test_a_text_that_is_no_plan_is_refused(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        load(text)


def test_an_expression_that_is_nested_too_deeply_is_refused() -> None:
    expr: Any = {"literal": True, "type": "boolean"}
    for _ in range(610):
        expr = {"cast": expr, "type": "boolean", "safe": False}
    with pytest.raises(PlanError, match="nested deeper than 600"):
        load(_changed("/nodes/2/operation/predicate/expr", expr))


def test_the_deepest_expression_that_the_parser_takes_is_written_and_read() -> None:
    expr: Any = N
    for _ in range(128):
        expr = Call("add", (Cast(expr, BIGINT), N), BIGINT)
    plan = dataclasses.replace(_plan(), sinks=())
    schema = Schema(plan.nodes[3].schema.key, (Column("n", BIGINT),))
    node = dataclasses.replace(plan.nodes[3], schema=schema, operation=Map((Item("n", expr, "n + n"),)))
    plan = dataclasses.replace(plan, nodes=(*plan.nodes[:3], node, *plan.nodes[4:]))
    assert load(dump(plan)) == plan


def test_a_text_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vsc.plan.codec.MAX_BYTES", 100)
    with pytest.raises(PlanError, match="longer than 100 characters"):
        load(dump(_plan()))


def test_every_class_of_the_plan_is_covered_by_the_sample() -> None:
    text = dump(_plan())
    for cls in (Source, Filter, Map, Rekey, ToTable, Materialize, StreamTableJoin):
        assert f'"op": "{cls.__dataclass_fields__["op"].default}"' in text
    assert dataclasses.is_dataclass(Plan)
