"""Changes of all kinds: what goes on as if it had always been so, what begins again, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import Stores
from tests.runtime.operators.carry.carrying import Changed, carried, changed, compiled, epoch, run
from tests.runtime.operators.carry.test_carry import (
    FIRST,
    GLOBAL,
    NODES,
    OTHER,
    PLAIN,
    SECOND,
    SOURCES,
    STREAM,
    TABLE,
    text,
)
from vsc.changes import compare
from vsc.runtime.operators.views.catalog import stores_of
from vsc.runtime.state.kv import prefix_end
from vsc.runtime.state.suppressed import Suppressed

WIDE = SOURCES.replace("w bigint, at bigint)", "w bigint, at bigint, z string)").replace(
    "v bigint, at bigint)", "v bigint, at bigint, z string)"
)
ALL = "".join(NODES.values())
CALM = "".join(nodes for name, nodes in NODES.items() if name not in ("held", "finals"))
"""What does not go by the clock of its partition."""
FOREIGN = "table fk = join t with p on cast(w as string) select t.at as tat, p.w as pw, t.w as tw;\n"
LATE = "table late = suppress p until time limit 7 ms;\n"
KEPT = "table kept = to_table moved materialize unversioned;\n"
STORED = "table f = filter t where w > 0 materialize unversioned;\n"
MORE = [("p", str(key), key, key) for key in range(5)]


def verdicts(old: str, new: str) -> dict[str, str]:
    found = compare(compiled(old), compiled(new))
    return {f"{c.kind} {c.name}": c.verdict.value for c in found if c.verdict.value != "keep"}


# Each: the old text, the new one, the verdicts that are not `keep`, of stores alone.
PROMISED: dict[str, tuple[str, str, dict[str, str]]] = {
    "a comment, and another order of statements": (SOURCES + ALL, f"-- again\n{SOURCES}{ALL}", {}),
    "sources in another order": (SOURCES + CALM, OTHER + GLOBAL + STREAM + PLAIN + TABLE + CALM, {}),
    "nodes in another order": (
        SOURCES + CALM, SOURCES + NODES["counts"] + CALM.replace(NODES["counts"], ""), {}
    ),
    "a source more": (STREAM + TABLE + NODES["waited"], SOURCES + NODES["waited"], {"p": "new", "g": "new"}),
    "a source less": (SOURCES + NODES["waited"], STREAM + TABLE + NODES["waited"], {"p": "dropped"}),
    "a sink more": (SOURCES + CALM, SOURCES + CALM + "sink counts to noop ();", {}),
    "a table renamed": (text("counts"), text("counts").replace("counts", "tallies"), {
        "tallies": "renamed", "tallies#groups": "renamed"}),
    "a join with grace renamed": (text("waited"), text("waited").replace("waited", "w8"), {"w8#waiting": "renamed"}),
    "a join of two streams renamed": (
        text("paired"), text("paired").replace("paired", "p2"), {"p2#records": "renamed"}),
    "the grace of a join of two streams longer": (
        text("paired"), text("paired").replace("grace 3", "grace 7"), {"paired#records": "limits"}),
    "a distinct renamed": (text("once"), text("once").replace("once", "o1"), {"o1#passed": "renamed"}),
    "a foreign-key join renamed": (
        SOURCES + FOREIGN, SOURCES + FOREIGN.replace("fk", "f2"), {"f2#subscriptions": "renamed"}),
    "a join renamed": (text("both"), text("both").replace("both", "pair"), {}),
    "a foreign-key join less": (
        SOURCES + FOREIGN + NODES["counts"], SOURCES + NODES["counts"], {"fk#subscriptions": "dropped"}),
    "a table that only a new join reads": (SOURCES + NODES["counts"], SOURCES + NODES["counts"] + NODES["joined"], {}),
    "another stage that reads a global table": (
        text("named", "moved"), text("named", "moved") + "stream gm = join moved with g on k select v, name;\n", {}),
    "a store goes from a filter": (
        SOURCES + "table f = filter t where w > 0 materialize versioned (retention = 1 hour);\n",
        SOURCES + "table f = filter t where w > 0;\nstream fj = join s with f on k select v, w;\n", {"f": "dropped"}),
    "a stored filter renamed, with a column more": (
        SOURCES + STORED, WIDE + STORED.replace("f", "f2", 1), {"f2": "widened", "t": "widened", "p": "widened"}),
    "a to_table renamed": (text("moved") + KEPT, text("moved") + KEPT.replace("kept", "newest"), {"newest": "renamed"}),
    "windows renamed": (text("windows"), text("windows").replace("windows", "tens"), {
        "tens": "renamed", "tens#windows": "renamed"}),
    "sessions renamed": (text("sessions"), text("sessions").replace("sessions", "visits"), {
        "visits": "renamed", "visits#sessions": "renamed"}),
    "an aggregate of a table renamed": (text("sums"), text("sums").replace("sums", "groups"), {
        "groups": "renamed", "groups#groups": "renamed"}),
    "an aggregate less": (text("counts", "by_v"), text("by_v"), {"counts": "dropped"}),
    "a distinct less": (text("once", "windows"), text("windows"), {"once#passed": "dropped"}),
    "another stream-table join beside": (
        text("joined"), text("joined") + "stream j2 = left join s with t on k select w, v;\n", {}),
    "a grace in windows longer": (
        text("windows"), text("windows").replace("grace = 5", "grace = 8"), {"windows#windows": "limits"}),
    "left instead of inner": (text("waited").replace("left ", ""), text("waited"), {}),
    "another column of a join with grace": (text("waited"), text("waited").replace("v, w;", "w, v + 1 as v1;"), {}),
    "retention longer": (text("joined"), text("joined").replace("1 hour", "2 hours"), {"t": "limits"}),
    "retention shorter": (text("joined"), text("joined").replace("1 hour", "1 minute"), {"t": "limits"}),
    "segment": (text("joined"), text("joined").replace("= 1 hour", "= 1 hour, segment = 7 ms"), {"t": "limits"}),
    "a column more in each source": (SOURCES + CALM + FOREIGN, WIDE + CALM + FOREIGN, {
        "t": "widened", "p": "widened", "waited#waiting": "widened"}),
    "a column less in each source": (WIDE + CALM + FOREIGN, SOURCES + CALM + FOREIGN, {
        "t": "widened", "p": "widened", "waited#waiting": "widened"}),
    "a column more in what a suppress holds": (SOURCES + LATE, WIDE + LATE, {"late#suppressed": "widened"}),
    "columns in another order": (
        SOURCES + NODES["waited"] + NODES["sums"],
        SOURCES.replace("w bigint, at bigint", "at bigint, w bigint") + NODES["waited"] + NODES["sums"], {}),
    "int to bigint": (
        SOURCES.replace("w bigint", "w int").replace("v bigint", "v int") + NODES["waited"] + NODES["finals"],
        SOURCES + NODES["waited"] + NODES["finals"], {"t": "widened", "p": "widened", "waited#waiting": "widened"}),
    "int to double": (
        SOURCES.replace("w bigint", "w int") + NODES["joined"] + NODES["both"],
        SOURCES.replace("w bigint", "w double") + NODES["joined"] + NODES["both"], {"t": "widened", "p": "widened"}),
    "int to decimal": (
        SOURCES.replace("w bigint", "w int") + NODES["joined"] + NODES["both"],
        SOURCES.replace("w bigint", "w decimal(14,2)") + NODES["joined"] + NODES["both"],
        {"t": "widened", "p": "widened"}),
}  # fmt: skip


PARTITIONS = [pytest.param(1, 1, marks=pytest.mark.slow), (2, 5), pytest.param(4, 1, marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), PARTITIONS)
@pytest.mark.parametrize("change", sorted(PROMISED))
def test_it_is_as_if_it_had_always_been_so(change: str, before: int, after: int) -> None:
    old, new, expected = PROMISED[change]
    found = verdicts(old, new)
    assert expected.items() <= {k.removeprefix("store "): v for k, v in found.items() if k.startswith("store")}.items()
    assert "rebuild" not in {v for k, v in found.items() if k.startswith("store")}
    if before == after == 1 or ("held" not in new and "late" not in new):
        result = between(old, new, before, after)
        own = [node.name for node in compiled(old).nodes if node.name in {n.name for n in compiled(new).nodes}]
        others = ("tallies", "w8", "o1", "f2", "pair", "fj", "gm", "newest", "tens", "visits", "groups", "j2")
        for name in {*own, *(n for n in result.whole if n in others)}:
            assert result.sent.get(name) == result.whole.get(name), name
        if "dropped" not in found.values() and "new" not in found.values():
            assert result.kept == result.whole_kept or "finals" in new


def between(old: str, new: str, before: int = 1, after: int = 1, **how: Any) -> Changed:
    """Rows have a `z` as soon as the text declares it."""
    first, second = (
        [(*row, "z") if "z string" in text and row[0] in "stp" else row for row in rows]
        for text, rows in ((old, MORE + FIRST), (new, SECOND))
    )
    return changed(old, new, first, second, before, after, **how)


# Each: the old text, the new one, the node whose stores have to be decided on.
RESET: dict[str, tuple[str, str, str]] = {
    "a predicate": (
        STREAM + "stream f = filter s where v > 1;\ntable c = aggregate f group by k select count(*) as n;\n",
        STREAM + "stream f = filter s where v > 2;\ntable c = aggregate f group by k select count(*) as n;\n", "c"),
    "a key": (
        STREAM + "table c = aggregate s group by k select count(*) as n;\n",
        STREAM + "table c = aggregate s group by v select count(*) as n;\n", "c"),
    "another function": (text("counts"), text("counts").replace("sum(v)", "max(v)"), "counts"),
    "another column": (text("counts"), text("counts").replace("sum(v) as total", "sum(v) as total, min(v) as m"),
        "counts"),
    "the size of windows": (text("windows"), text("windows").replace("size = 10", "size = 20"), "windows"),
    "another kind of windows": (text("windows"), text("windows").replace(
        "tumbling (size = 10 ms, grace = 5 ms)", "session (gap = 3 ms)"), "windows"),
    "the gap of sessions": (text("sessions"), text("sessions").replace("4 ms", "5 ms"), "sessions"),
    "a difference": (text("sliding"), text("sliding").replace("7 ms", "6 ms"), "sliding"),
    "how near repeats are": (text("once"), text("once").replace("within 3", "within 4"), "once"),
}  # fmt: skip


@pytest.mark.quick(2)
@pytest.mark.parametrize(("before", "after"), PARTITIONS)
@pytest.mark.parametrize("change", sorted(RESET))
def test_what_is_reset_begins_with_what_comes_from_now_on(change: str, before: int, after: int) -> None:
    old, new, node = RESET[change]
    stores = [c for c in compare(compiled(old), compiled(new)) if c.kind == "store" and c.node == node]
    found = verdicts(old, new)
    rebuilt = [c.name for c in compare(compiled(old), compiled(new)) if found.get(f"store {c.name}") == "rebuild"]
    assert rebuilt and all(name.partition("#")[0] == node for name in rebuilt), stores
    result = between(old, new, before, after, reset=rebuilt)
    assert result.sent[node] == changed(new, new, [], SECOND, after, after).whole[node]


def test_the_matrix_has_thirty_changes_and_more() -> None:
    assert len(PROMISED) >= 30
    assert len(PROMISED) + len(RESET) == 47


@pytest.mark.parametrize("after", [1, 3])
@pytest.mark.parametrize(("was", "now"), [(SOURCES, WIDE), (WIDE, SOURCES), (SOURCES, SOURCES)])
def test_what_a_suppress_holds_is_weighed_anew(was: str, now: str, after: int) -> None:
    late = "table late = suppress p until time limit 1 hour (max_bytes = 100000, when_full = 'emit');\n"
    old, new, stores = compiled(was + late), compiled(now + late), Stores()
    run(old, [epoch(old, [(*row, "zzz") for row in FIRST])], stores)
    state = carried(old, new, stores, 1, after)
    (info,) = (store for store in stores_of(new) if store.name == "late#suppressed")
    keys = set()
    for partition in range(after):
        held = Suppressed(state(info.stage, partition), info.prefix)
        rows = list(held._kv.scan(held._rows, prefix_end(held._rows)))
        assert held.count == len(rows) == len(held.all())
        assert held.bytes == sum(len(key) - len(held._rows) + len(value) for key, value in rows) > 0
        keys |= {row.key for row in held.all()}
    assert len(keys) == 8
