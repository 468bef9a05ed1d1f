"""Where nodes run: the stages of small topologies, written as the nodes, inputs and emitted nodes of each."""

from __future__ import annotations

import pytest

from vsc.compiler import compile_topology

SOURCES = """
stream s (k string, g string, h string, n bigint) from memory () key k;
stream s2 (k string, g string, h string, n bigint) from memory () key k;
table t (k string, m bigint) from memory () key k;
table u (k string, m bigint) from memory () key k;
"""

Stages = list[tuple[str, str, str]]


def stages(text: str) -> Stages:
    plan = compile_topology(SOURCES + text)
    assert [stage.id for stage in plan.stages] == list(range(len(plan.stages)))
    return [
        (" ".join(stage.nodes), " ".join(entry.node for entry in stage.inputs), " ".join(stage.emits))
        for stage in plan.stages
    ]


CASES: dict[str, tuple[str, Stages]] = {
    "sources alone: a table that nothing joins is kept in stage 1": (
        "",
        [("s s2 t u", "", "s s2"), ("t u", "t u", "t u")],
    ),
    "stateless nodes before a join run in stage 0, those behind it in its stage": (
        "stream f = filter s where n > 0; stream j = join f with t select n, m; stream g = map j select m;",
        [("s s2 t u f", "", "s s2 f"), ("t u j g", "t u f", "t u j g")],
    ),
    "two joins by different keys share a stage": (
        "stream a = join s with t on g select m; stream b = join s with u on h select m;",
        [("s s2 t u a#rekey b#rekey", "", "s s2 a#rekey b#rekey"), ("t u a b", "t u a#rekey b#rekey", "t u a b")],
    ),
    "two joins in a row by one key share a stage": (
        "stream a = join s with t select n, m; stream b = join a with u select n, u.m as o;",
        [("s s2 t u", "", "s s2"), ("t u a b", "s t u", "t u a b")],
    ),
    "two joins in a row by different keys: the re-key ends the first stage": (
        "stream a = join s with t on g select h, n; stream b = join a with u on h select n;",
        [
            ("s s2 t u a#rekey", "", "s s2 a#rekey"),
            ("t a b#rekey", "t a#rekey", "t a b#rekey"),
            ("u b", "u b#rekey", "u b"),
        ],
    ),
    "a table that is joined in two stages is in both, and handed on by the first": (
        "stream a = join s with t on g select h, n; stream b = join a with t on h select n;"
        "table f = filter t where m > 0;",
        [
            ("s s2 t u a#rekey", "", "s s2 a#rekey"),
            ("t u a b#rekey f", "t u a#rekey", "t u a b#rekey f"),
            ("t b", "t b#rekey", "b"),
        ],
    ),
    "filters and maps of a table go where it is joined": (
        "stream a = join s with t on g select h, n; table f = filter u where m > 0; table x = map f select m + 1 as m;"
        "stream b = join a with x on h select m;",
        [
            ("s s2 t u a#rekey", "", "s s2 a#rekey"),
            ("t a b#rekey", "t a#rekey", "t a b#rekey"),
            ("u f x b", "u b#rekey", "u f x b"),
        ],
    ),
    "a table of a stream, joined by that stream": (
        "table c = to_table s; stream j = join s with c select c.n as m;",
        [("s s2 t u", "", "s s2"), ("t u c j", "s t u", "t u c j")],
    ),
    "a table of a join's result, joined where it is made": (
        "stream a = join s with t on g select h, n; table c = to_table a; stream j = join a with c select c.n as m;",
        [("s s2 t u a#rekey", "", "s s2 a#rekey"), ("t u a c j", "t u a#rekey", "t u a c j")],
    ),
    "a table of a join's result, joined by a stream of stage 0": (
        "stream a = join s with t on g select h, n; table c = to_table a; stream j = join s2 with c select c.n as m;",
        [("s s2 t u a#rekey", "", "s s2 a#rekey"), ("t u a c j", "s2 t u a#rekey", "t u a c j")],
    ),
    "a table of a join's result, joined one stage later": (
        "stream a = join s with t on g select h, n; table c = to_table a;"
        "stream j = join a with c on h select c.n as m;",
        [
            ("s s2 t u a#rekey", "", "s s2 a#rekey"),
            ("t u a j#rekey", "t u a#rekey", "t u a j#rekey"),
            ("c j", "a j#rekey", "c j"),
        ],
    ),
    "`on` the key itself needs no re-key": (
        "stream a = join s with t on k select n, m;",
        [("s s2 t u", "", "s s2"), ("t u a", "s t u", "t u a")],
    ),
    "a filter that is read by key together with its input runs with their readers": (
        "stream f = filter s where n > 0; table c = to_table f; stream j = join s with c select c.n as m;",
        [("s s2 t u", "", "s s2"), ("t u f c j", "s t u", "t u f c j")],
    ),
    "a filter that is read by another key may run where the source is read": (
        "stream f = filter s where n > 0; stream i = join f with t on g select m; stream j = join s with u select m;",
        [("s s2 t u f i#rekey", "", "s s2 f i#rekey"), ("t u i j", "s t u i#rekey", "t u i j")],
    ),
    "merged streams of two sources stay in stage 0": (
        "stream m = merge s, s2; stream r = rekey m by g; stream e = explode r by array(n) as x;",
        [("s s2 t u m r e", "", "s s2 m r e"), ("t u", "t u", "t u")],
    ),
    "two ways from one source meet in a stage": (
        "stream f = filter s where n > 0; stream m = merge s, f;",
        [("s s2 t u", "", "s s2"), ("t u f m", "s t u", "t u f m")],
    ),
    "a table's changes as a stream, in the table's stage": (
        "stream o = to_stream t; stream r = rekey o by m; stream f = filter r where k is not null;",
        [("s s2 t u", "", "s s2"), ("t u o r f", "t u", "t u o r f")],
    ),
    "what goes by the new key of a stream is one stage later": (
        "stream r = rekey s by g; stream q = rekey r by h; table a = to_table q;"
        "stream o = to_stream a; stream w = rekey o by n; table b = to_table w;",
        [("s s2 t u r q", "", "s s2 r q"), ("t u a o w", "t u q", "t u a o w"), ("b", "w", "b")],
    ),
    "tables of one key are joined where both are": (
        "table j = outer join t with u select m2 as m; ".replace("m2", "t.m") + "table f = filter j where m > 0;",
        [("s s2 t u", "", "s s2"), ("t u j f", "t u", "t u j f")],
    ),
    "a table is joined with an aggregate of another key's changes": (
        "table a = aggregate t group by m select count(*) as c; table b = to_table q;"
        "stream q = rekey s by n; table j = join a with b select c;",
        [
            ("s s2 t u q", "", "s s2 q"),
            ("t u a#changes", "t u", "t u a#changes"),
            ("a b j", "a#changes q", "a b j"),
        ],
    ),
    "an aggregate of a table is behind a repartition, by the table's own key too": (
        "table a = aggregate t group by k select sum(m) as c;",
        [("s s2 t u", "", "s s2"), ("t u a#changes", "t u", "t u a#changes"), ("a", "a#changes", "a")],
    ),
    "a foreign-key join: subscriptions, answers, result": (
        "table f (f string, r string) from memory () key f; table j = join f with t on r select m;",
        [
            ("s s2 t u f", "", "s s2"),
            ("u f j#subscribe", "u f", "u f j#subscribe"),
            ("t j#answer", "t j#subscribe", "t j#answer"),
            ("j", "j#answer", "j"),
        ],
    ),
    "an aggregate behind a repartition is kept again where it is read later": (
        "table a = aggregate s group by g select count(*) as c; stream j = join s2 with a on g select h, c;"
        "stream i = join j with a on h select a.c as d;",
        [
            ("s s2 t u a#rekey j#rekey", "", "s s2 a#rekey j#rekey"),
            ("t u a j i#rekey", "t u a#rekey j#rekey", "t u a j i#rekey"),
            ("a i", "a#rekey i#rekey", "i"),
        ],
    ),
    "a join with a global table runs behind stage 0, its result is where the stream is": (
        "global table w (k string, x bigint) from memory () key k;"
        "stream j = join s with w on g select x, n; table c = aggregate j group by k select sum(x) as y;",
        [("s s2 t u w", "", "s s2 w"), ("t u w j c", "s t u w", "t u j c")],
    ),
    "declared after its use": (
        "stream j = join f with c select c.n as m; table c = to_table f; stream f = filter s where n > 0;",
        [("s s2 t u f", "", "s s2 f"), ("t u c j", "t u f", "t u c j")],
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_stages(title: str) -> None:
    text, expected = CASES[title]
    assert stages(text) == expected


@pytest.mark.parametrize(
    ("sink", "expected"),
    [
        ("jdbc (url = 'jdbc:postgresql:u', table = 't')", ("v", "f")),
        ("delta (path = 'p')", ("v", "f")),
        ("files (path = 'p', format = 'json')", ()),
    ],
)
def test_a_sink_of_the_newest_changes_is_told_which_these_are(sink: str, expected: tuple[str, ...]) -> None:
    """A filter passes the question on to the store that knows; an unversioned table has no older changes."""
    plan = compile_topology(
        SOURCES
        + "table v (k string, m bigint, at timestamp) from memory () key k timestamp at "
        + "materialize versioned (retention = 1 day); table f = filter v where m > 0; "
        + f"sink f to {sink}; sink u to {sink};"
    )
    assert [stage.latest for stage in plan.stages] == [(), expected]
