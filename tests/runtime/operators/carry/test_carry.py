"""A state that goes on under a changed text: as if the new text had read all of the input."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.operators.carry.carrying import Changed, changed

STREAM = "stream s (k string, v bigint, at bigint) from memory () key k timestamp at;\n"
OTHER = "stream o (k string, x bigint, at bigint) from memory () key k timestamp at;\n"
TABLE = """table t (k string, w bigint, at bigint) from memory () key k timestamp at
  materialize versioned (retention = 1 hour);\n"""
PLAIN = "table p (k string, w bigint, at bigint) from memory () key k timestamp at materialize unversioned;\n"
GLOBAL = "global table g (k string, name string, at bigint) from memory () key k timestamp at;\n"

SOURCES = STREAM + OTHER + TABLE + PLAIN + GLOBAL

NODES = {
    "counts": "table counts = aggregate s group by k select count(*) as n, sum(v) as total, collect_list(v) as vs;\n",
    "by_v": "table by_v = aggregate s group by v select count(distinct k) as n, min_by(k, v) as first;\n",
    "windows": """table windows = aggregate s group by k
      window tumbling (size = 10 ms, grace = 5 ms) select count(*) as n;\n""",
    "finals": """table finals = aggregate s group by k
      window hopping (size = 10 ms, advance = 5 ms, grace = 2 ms) emit final select sum(v) as total;\n""",
    "sliding": "table sliding = aggregate s group by k window sliding (difference = 7 ms) select sum(v) as total;\n",
    "sessions": "table sessions = aggregate s group by k window session (gap = 4 ms) select count(*) as n;\n",
    "joined": "stream joined = join s with t on k select v, w;\n",
    "waited": "stream waited = left join s with t on k grace 4 ms select v, w;\n",
    "paired": "stream paired = outer join s with o within 6 ms grace 3 ms select v, x;\n",
    "named": "stream named = join s with g on k select v, name;\n",
    "once": "stream once = distinct s by k within 3 ms grace 5 ms;\n",
    "both": "table both = outer join t with p select t.w as tw, p.w as pw;\n",
    "sums": "table sums = aggregate t group by w select count(*) as n, max_by(k, w) as k_max;\n",
    "held": "table held = suppress counts until time limit 5 ms;\n",
    "moved": "stream moved = rekey s by cast(v as string) as k;\ntable last = to_table moved;\n",
    "merged": "stream mapped = map s select v as x, at;\nstream merged = merge mapped, o;\n",
}


def text(*names: str) -> str:
    return SOURCES + "".join(NODES[name] for name in names)


def rows(start: int) -> list[tuple[Any, ...]]:
    """Rows of all sources, in which each of eight keys comes again and again, in step with time."""
    found: list[tuple[Any, ...]] = []
    for turn in range(12):
        for key in "abcdefgh":
            at = start + turn * 3
            number = ord(key) * 7 + turn
            found.append(("s", key, number % 5, at))
            if number % 3 == 0:
                found.append(("t", key, number % 4, at))
            if number % 4 == 0:
                found.append(("p", key, number % 3, at))
                found.append(("g", key, f"{key}{turn}", at))
            if number % 5 == 0:
                found.append(("o", key, number, at))
    return found


FIRST, SECOND = rows(0), rows(36)


def held(old: str, new: str, before: int = 1, after: int = 1, **how: Any) -> Changed:
    return changed(old, new, FIRST, SECOND, before, after, **how)


GIVEN = pytest.mark.parametrize("name", sorted(NODES))


def all_of(name: str) -> tuple[str, ...]:
    return ("counts", "held") if name == "held" else (name,)


@pytest.mark.quick(5)
@pytest.mark.parametrize("name", sorted(set(NODES) - {"held"}))  # when it lets go is up to its partition's clock
@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 8), (8, 1), (3, 5)])
def test_another_number_of_partitions_does_not_show(name: str, before: int, after: int) -> None:
    nodes = text(*all_of(name))
    found = held(nodes, nodes, before, after)
    assert found.sent == found.whole
    if name != "finals" or before == 1:  # partitions that become one keep closed windows longer
        assert found.kept == found.whole_kept


@pytest.mark.quick(2)
@GIVEN
def test_nodes_around_it_come_and_go(name: str) -> None:
    """A node stands elsewhere in its stage, or in another stage, and every other node is gone."""
    own = all_of(name)
    others = [one for one in ("by_v", "once", "joined", "windows") if one not in own]
    found = held(text(*others, *own), text(*own), 2, 2 if name == "held" else 3)
    assert found.sent == found.whole
    found = held(text(*own), text(*others, *own), 2, 2)
    for node in own:
        assert found.sent.get(node) == found.whole.get(node)
        kept, whole = ({n: rows for n, rows in one.items() if n.split()[0].split("#")[0] == node}
                       for one in (found.kept, found.whole_kept))  # fmt: skip
        assert kept == whole


def test_literal_values() -> None:
    counts = STREAM + "table counts = aggregate s group by k select count(*) as n, sum(v) as total;\n"
    renamed = counts.replace("counts", "tallies")
    first, second = [("s", "a", 1, 1), ("s", "b", 2, 2), ("s", "a", 3, 3)], [("s", "a", 5, 4), ("s", "c", 7, 5)]
    found = changed(counts, renamed, first, second, 1, 8)
    assert found.sent["tallies"] == {"('a',)": [(4, "(3, 9)")], "('c',)": [(5, "(1, 7)")]}
    assert [row[2] for row in found.kept["tallies in 1"]] == ["(3, 9)", "(1, 2)", "(1, 7)"]


@pytest.mark.parametrize(("before", "after"), [(1, 8), (8, 1), (3, 5)])
def test_what_a_suppress_holds_comes_out_once(before: int, after: int) -> None:
    nodes = STREAM + NODES["counts"] + NODES["held"].replace("5 ms", "1 hour")
    first = [("s", key, 1, at) for at, key in enumerate("abcdefgh")]
    second = [("s", "a", 2, 20)]
    found = changed(nodes, nodes, first, second, before, after)
    assert found.sent["held"] == found.whole["held"]
    assert found.sent["held"]["('a',)"] == [(20, "(2, 3, [1, 2])")]
    assert found.sent["held"]["('h',)"] == [(7, "(1, 1, [1])")]
