"""Random valid topologies over the whole language.

`generate(rng, sizes)` grows a topology node by node: each step picks an operation that the nodes there are allow,
writes its statement, and knows the columns, key, window and versioned status of what it makes, by the rules of the
language. So every topology compiles, by construction: none is ever discarded, and the tests assert that of many.
The same rng gives the same topology.

Guarantees: no wall clock, names in the order of their making, times in milliseconds around 0 to 200, keys from a pool
of few. Not for records: see `records`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.random_topologies.expressions import ORDERED, TYPES, Scope, expression
from tests.random_topologies.growing import ALWAYS, Growing, Sizes, both, copied, scope_of, valid
from tests.random_topologies.shapes import BOUNDS, VALUE_NAMES, Column, Generated, Shape, SourceShape

__all__ = ["Sizes", "generate"]


def generate(rng: random.Random, sizes: Sizes | None = None) -> Generated:
    """A random topology."""
    sizes = sizes or Sizes()
    grown = _Operations(rng, sizes)
    for kind, many in (("table", sizes.tables), ("stream", sizes.streams), ("global table", sizes.globals)):
        for _ in range(rng.randint(*many)):
            grown.source(kind)
    wanted = rng.randint(*sizes.derived)
    operations = list(grown.operations())
    for _ in range(40 * wanted):
        if len(grown.statements) >= wanted:
            break
        rng.choice(operations)()
    return grown.result()


class _Operations(Growing):
    """The operations. One that finds no input that it can read does nothing."""

    def operations(self) -> Sequence[Callable[[], None]]:
        """What can be done next, the more interesting of it more often."""
        return (
            self.filter, self.map, self.rekey, self.merge, self.explode, self.explode_table, self.distinct,
            self.to_stream, self.to_table, self.materialize, self.join_table, self.join_table, self.join_table,
            self.join_global,
            self.join_by_key, self.join_by_key, self.join_by_foreign_key, self.join_by_foreign_key,
            self.aggregate_stream, self.aggregate_stream, self.aggregate_stream, self.aggregate_table,
            self.suppress, self.suppress,
            *self.sizes.timed * (self.behind,),
            *self.sizes.paired * (self.join_streams, self.join_before),
            *self.sizes.ordered * (self.reorder,),
            *self.sizes.corrected * (self.join_corrected,),
            *self.sizes.complete * (self.join_by_key, self.join_by_foreign_key, self.aggregate_table),
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------------------- sources

    def source(self, kind: str) -> None:
        """A source with a column ``at``, its event time."""
        rng = self.rng
        name = f"{kind[0]}{sum(s.kind == kind for s in self.sources)}"
        key = rng.choice(self.sizes.keys)
        value = (("n", "bigint"), ("s", "string"), *self._extra_columns())
        tombstones = kind != "stream" and rng.random() < 0.7
        columns = [*key, *value, ("at", "bigint"), *([("gone", "boolean")] if tombstones else [])]
        keyless = kind == "stream" and rng.random() < 0.15
        clauses = [] if keyless else ["key " + ", ".join(n for n, _ in key)]
        clauses.append(rng.choice(("timestamp at", "timestamp timestamp_millis(at)")))
        if kind == "stream" and self.sizes.ordered and rng.random() < 0.3:
            clauses.append(f"reorder within {rng.choice((0, 3, 10, 30))} ms")
        if tombstones:
            clauses.append("delete when gone")
        clause, history = ("", None) if kind != "table" else self._clause(expires=True)
        clauses.append(clause)
        rest = tuple(c for c in columns if keyless or c not in key)
        self.sources.append(
            SourceShape(name, kind, tuple(columns), () if keyless else tuple(n for n, _ in key),
                        " ".join(filter(None, clauses)), tombstones)
        )  # fmt: skip
        rows = None if history is None else ALWAYS
        self.nodes.append(Shape(name, kind, () if keyless else key, rest, history=history, right=history, rows=rows))

    def _extra_columns(self) -> list[Column]:
        chosen = self.rng.sample(TYPES[2:], self.rng.choice((0, 0, 1, 2)))
        return [(VALUE_NAMES[type_][0], type_) for type_ in chosen]

    # -------------------------------------------------------------------------------------------------- one node reads

    def filter(self) -> None:
        """A filter of a stream or a table."""
        node = self._any("stream", "table")
        predicate = self._expression(scope_of(node), "boolean")
        clause, history = self._own_clause(node)
        self._add(node, node.kind, f"filter {node.name} where {predicate}{clause}", node.key, node.value,
                  window=node.window, history=history, final=node.final,
                  right=valid(node, clause, history))  # fmt: skip
        if node.name in self.corrected and not clause:
            self.corrected.add(self.nodes[-1].name)

    def map(self) -> None:
        """A map of a stream or a table."""
        node = self._any("stream", "table")
        key = node.key
        if self.rng.random() < 0.2:
            items, value = "*", node.value
        else:
            items, key, value = self._items(scope_of(node), node.key)
        clause, history = self._own_clause(node)
        if node.kind == "stream" and self.rng.random() < 0.3:
            number = expression(self.rng, scope_of(node), "bigint")
            times = ("event_time() - 3 ms", "date_trunc('second', event_time())", f"abs({number})", number)
            clause = f" timestamp {self.rng.choice(times)}"
        self._add(node, node.kind, f"map {node.name} select {items}{clause}", key, value, window=node.window,
                  history=history, final=node.final,
                  right=valid(node, clause, history))  # fmt: skip
        if node.name in self.corrected and not clause:
            self.corrected.add(self.nodes[-1].name)

    def rekey(self) -> None:
        """A stream under another key."""
        node = self._any("stream")
        key = self.rng.choice(self.sizes.keys)
        by = ", ".join(
            f"{text} as {n}" for (n, _), text in zip(key, self._key_values(scope_of(node), key), strict=True)
        )
        names = {name for name, _ in key}
        value = tuple(c for c in node.columns if c[0] not in names)
        self._add(node, "stream", f"rekey {node.name} by {by}", key, value)

    def distinct(self) -> None:
        """A stream without repeats of its key, or of a value."""
        node = self._any("stream")
        by = (
            ""
            if node.key and self.rng.random() < 0.5
            else f" by {self._key_values(scope_of(node), (('x', 'string'),))[0]}"
        )
        times = f"within {self.rng.choice((1, 5, 20))} ms{self.rng.choice(('', ' grace 3 ms', ' grace 30 ms'))}"
        self._add(node, "stream", f"distinct {node.name}{by} {times}", node.key, node.value)

    def reorder(self) -> None:
        """A stream in the order of its times."""
        node = self._any("stream")
        text = f"reorder {node.name} within {self.rng.choice((0, 4, 15, 40))} ms"
        self._add(node, "stream", text, node.key, node.value)
        if self.rng.random() < 0.5:
            self.rng.choice((self.to_table, self.aggregate_stream, self.distinct, self.join_table, self.merge))()

    def explode(self) -> None:
        """A record for each element of an array."""
        node = self._any("stream")
        name = self.rng.choice([n for n in VALUE_NAMES["string"] if n not in dict(node.key)] or ["element"])
        array = expression(self.rng, scope_of(node), "array<string>")
        value = tuple((n, "string") if n == name else (n, t) for n, t in node.value)
        names = name
        if name not in dict(value):
            position = () if "nth" in dict(node.key + node.value) else (("nth", "int"),)
            names, value = f"(nth, {name})" if position else name, (*value, *position, (name, "string"))
        self._add(node, "stream", f"explode {node.name} by {array} as {names}", node.key, value)

    def explode_table(self) -> None:
        """A row for each element of an array in a table; the array stays, or the elements take its column."""
        if (node := self._pick("table")) is None:
            return
        array = expression(self.rng, scope_of(node, event_time=self.rng.random() < 0.2), "array<string>")
        own = tuple(column for column in node.key if column not in BOUNDS)
        position = next(n for n in ("nth", "n", "row", "place", "spot") if n not in dict(node.key))
        names = [n for n in (*VALUE_NAMES["array<string>"], *VALUE_NAMES["string"]) if n not in dict(node.key)]
        name = self.rng.choice(names or ["element"])
        value = tuple((n, "string") if n == name else (n, t) for n, t in node.value if n != position)
        value = value if name in dict(value) else (*value, (name, "string"))
        clause, history = self._clause(versioned=node.window is None)
        statement = f"explode {node.name} by {array} as ({position}, {name}) {clause}"
        self._add(node, "table", statement, (*own, (position, "int"), *node.key[len(own):]), value,
                  window=node.window, history=history)  # fmt: skip

    def to_stream(self) -> None:
        """The changes of a table."""
        if (node := self._pick("table")) is not None:
            self._add(node, "stream", f"to_stream {node.name}", node.key, node.value)

    def to_table(self) -> None:
        """A stream with a key, read as a table."""
        node = self._pick("stream", keyed=True)
        if node is None:
            return
        when = f" delete when {self._expression(scope_of(node), 'boolean', 1)}" if self.rng.random() < 0.4 else ""
        clause, history = self._clause(expires=True)
        right = (history, None if history is None else ALWAYS)
        self._add(node, "table", f"to_table {node.name}{when} {clause}", node.key, node.value, history=history,
                  right=right)  # fmt: skip

    def materialize(self) -> None:
        """A table in a store of its own."""
        if (node := self._pick("table")) is None:
            return
        clause, history = self._clause(versioned=node.window is None, expires=True)
        self._add(node, "table", f"materialize {node.name} {clause.removeprefix('materialize ')}", node.key, node.value,
                  window=node.window, history=history, final=node.final,
                  right=valid(node, clause or "materialize", history))  # fmt: skip

    def suppress(self) -> None:
        """An unversioned table, held back."""
        node = self._pick("table", having=lambda n: n.history is None)
        if node is None:
            return
        if node.window is not None and self.rng.random() < 0.7:
            bound = self.rng.choice(("", " (max_records = 1000)", " (max_bytes = 1000000, when_full = 'fail')"))
            text = f"suppress {node.name} until window closes{bound}"
        else:
            bound = self.rng.choice(("", "", " (max_records = 2)", " (max_bytes = 60, when_full = 'emit')"))
            bound = bound if self.sizes.bounded else ""
            text = f"suppress {node.name} until time limit {self.rng.choice((0, 3, 12))} ms{bound}"
        self._add(node, "table", text, node.key, node.value, window=node.window)

    def behind(self) -> None:
        """What goes by the clock, behind a node whose records time has held back."""
        while not self.held:
            self.rng.choice((self.join_table, self.suppress, self.aggregate_stream))()
        held = [n for n in self.nodes if n.name in self.held]
        self.wanted = self.rng.choice(held)
        if self.wanted.kind == "table":
            self.to_stream()
            self.wanted = self.nodes[-1]
        self.rng.choice((self.aggregate_stream, self.aggregate_stream, self.distinct, self.join_table, self.merge))()
        self.wanted = None

    def merge(self) -> None:
        """Two or three streams of one key; what has other columns is mapped to the same first."""
        first = self._any("stream")
        rest = [n for n in self._of("stream") if n.key == first.key and n != first]
        chosen = [first, *self.rng.sample(rest, min(len(rest), self.rng.randint(1, 2)))]
        if len(chosen) < 2 or not _same_columns(chosen):
            while len(chosen) < 2:
                chosen.append(first)
            value = self._names(dict(first.key))
            chosen = [self._mapped(node, value) for node in chosen]
        names = ", ".join(node.name for node in chosen)
        for node in chosen:
            self.read.add(node.name)
        self._add(chosen[0], "stream", f"merge {names}", chosen[0].key, chosen[0].value)

    def _mapped(self, node: Shape, value: Sequence[Column]) -> Shape:
        scope = scope_of(node)
        items = ", ".join(f"{copied(expression(self.rng, scope, t, 1), node.key)} as {n}" for n, t in value)
        self._add(node, "stream", f"map {node.name} select {items}", node.key, tuple(value))
        return self.nodes[-1]

    # ---------------------------------------------------------------------------------------------------- joins

    def join_table(self) -> None:
        """A stream with a table, as of or with the newest; with or without ``on``, with grace."""
        rng = self.rng
        stream, table = self._any("stream"), self._pick("table")
        if table is None:
            return
        on, key = "", stream.key
        if stream.key_types != table.key_types or rng.random() < 0.4:
            parts = self._key_values(scope_of(stream, "l"), table.key)
            if rng.random() < 0.4:
                parts[0] = f"nullif({parts[0]}, {self._key_values(scope_of(stream, 'l'), table.key)[0]})"
            on, key = " on " + ", ".join(parts), table.key
        grace = ""
        if table.history is not None and rng.random() < 0.5:
            grace = f" grace {rng.randint(0, min(table.history, 30))} ms"
        items, key, value = self._items(both(stream, table), key)
        left = self._left()
        before = " strictly before" if table.history is not None and rng.random() < 0.3 else ""
        older = " drop older_than_retention" if table.history is not None and left and rng.random() < 0.3 else ""
        clauses = f"{on}{grace}{before}{self._max_age(table, 1 if before else 0)}{older}"
        text = f"{left}join {stream.name} as l with {table.name} as r{clauses} select {items}"
        self.read.add(table.name)
        self._add(stream, "stream", text, key, value)
        if self.nodes[-1].name in self.keyless and rng.random() < 0.7:
            rng.choice((self.to_table, self.distinct, self.aggregate_stream, self.join_table, self.merge))()

    def join_corrected(self) -> None:
        """A stream with a versioned table, whose late versions correct the results."""
        rng = self.rng
        table = self._pick("table", having=lambda n: bool(n.history))
        if table is None or not table.history:
            return
        corrected = self._pick("table", having=lambda n: n.name in self.corrected)
        stream = corrected if corrected is not None and rng.random() < 0.6 else self._any("stream")
        on = ""
        if stream.key_types != table.key_types or rng.random() < 0.4:
            on = " on " + ", ".join(self._key_values(scope_of(stream, "l"), table.key))
        before = rng.random() < 0.3
        within = rng.choice((0, 3, 10, 30, 100, 1000))
        within = max(min(within, table.history - before), 0)
        grace = f" grace {rng.randint(0, min(within, 30))} ms" if rng.random() < 0.3 else ""
        if stream is corrected:
            key, by, grace = stream.key, "", ""
        else:
            key = rng.choice(self.sizes.keys)
            values = self._key_values(scope_of(stream, "l"), key)
            by = "by " + ", ".join(f"{text} as {n}" for (n, _), text in zip(key, values, strict=True)) + " "
        correct = f"{grace} correct {by}within {within} ms"
        items, key, value = self._items(both(stream, table), key)
        if rng.random() < 0.4:
            items, value = f"{items}, cast(revision() as bigint) as rev", (*value, ("rev", "bigint"))
        left = self._left()
        older = " drop older_than_retention" if left and rng.random() < 0.2 else ""
        clauses = f"{on}{correct}{' strictly before' if before else ''}{self._max_age(table, int(before))}{older}"
        text = f"{left}join {stream.name} as l with {table.name} as r{clauses} select {items}"
        self.read.add(table.name)
        self._add(stream, "table", text, key, value)
        self.corrected.add(self.nodes[-1].name)
        if rng.random() < 0.3:
            self.wanted = self.nodes[-1]
            rng.choice((self.map, self.filter))()
            self.wanted = None
        if rng.random() < 0.3:
            return
        if self.nodes[-1].name in self.corrected and rng.random() < 0.4:
            window, text = self._window(rng.choice((("tumbling", "hopping"), ("sliding", "session"))))
            final = rng.random() < 0.6
            self._aggregate(self.nodes[-1], window, text + (" emit final" if final else ""), final)
        elif rng.random() < 0.7:
            self.wanted = self.nodes[-1]
            rng.choice((self.aggregate_table, self.suppress, self.map, self.filter, self.to_stream, self.materialize))()
            self.wanted = None

    def join_streams(self) -> None:
        """Two streams of one key, or one with itself; far or close, on both sides or on one, with and without grace."""
        rng = self.rng
        left = self._pick("stream", keyed=True)
        if left is None or sum(" within " in made for made in self.statements) == self.sizes.pairs:
            return
        right = self._any("stream", having=lambda n: n.key_types == left.key_types)
        mode, grace = rng.choice(("", "left ", "outer ")), rng.choice(("", "", " grace 4 ms", " grace 25 ms"))
        within = rng.choice(
            ("3 ms", "10 ms", "40 ms", "(before = 12 ms, after = 0 ms)", "(before = 2 ms, after = 9 ms)")
        )
        if grace:
            within = rng.choice((within, "0 ms"))
        items, key, value = self._items(both(left, right), left.key)
        text = f"{mode}join {left.name} as l with {right.name} as r within {within}{grace} select {items}"
        self.read.add(right.name)
        self._add(left, "stream", text, key, value)
        if left.name != right.name and rng.random() < 0.3:
            rng.choice((self.aggregate_stream, self.distinct, self.join_table, self.merge, self.to_table))()

    def join_before(self) -> None:
        """A stream with aggregates of what came before each record, and also after it if records can wait."""
        rng = self.rng
        left = self._pick("stream", keyed=True)
        if left is None:
            return
        right = self._any("stream", having=lambda n: n.key_types == left.key_types)
        ends = ["", "", " strictly before"]
        if self.sizes.ordered:
            ends += [" grace 4 ms", " grace 25 ms", " grace 9 ms strictly before"]
        within, end = rng.choice(("3 ms", "10 ms", "40 ms")), rng.choice(ends)
        within = f"(before = {within})"
        if self.sizes.ordered and "strictly" not in end and rng.random() < 0.4:
            within = rng.choice(("(before = 2 ms, after = 9 ms)", "10 ms", "(after = 7 ms)"))
        calls, value = self._calls(scope_of(right, "r"), left.key)
        if within == "(before = 10 ms)":
            calls = calls.replace("count(*) as", "count(*) over 4 ms as")
        column = rng.choice(left.columns)
        text = f"{rng.choice(('', 'left '))}join {left.name} as l with {right.name} as r within {within}{end}"
        self.read.add(right.name)
        items = f"{calls}, {copied(f'l.{column[0]}', ())} as own" if column not in left.key else calls
        own = () if column in left.key else (("own", column[1]),)
        self._add(left, "stream", f"{text} select {items}", left.key, (*value, *own))

    def join_global(self) -> None:
        """A stream with a global table."""
        stream, table = self._any("stream"), self._pick("global table")
        if table is None:
            return
        on = ", ".join(self._key_values(scope_of(stream, "l"), table.key))
        items, key, value = self._items(both(stream, table), stream.key)
        clauses = f" on {on}{self._max_age(table)}"
        text = f"{self._left()}join {stream.name} as l with {table.name} as r{clauses} select {items}"
        self.read.add(table.name)
        self._add(stream, "stream", text, key, value)

    def _max_age(self, table: Shape, least: int = 0) -> str:
        """How old its rows may be, if their times are known."""
        if table.name in self.hiding or self.rng.random() < 0.6:
            return ""
        return f" max_age {self.rng.choice((least, 5, 20, 60))} ms"

    def join_by_key(self) -> None:
        """Two tables of one key."""
        left = self._table()
        if left is None:
            return
        right = self._table(lambda n: n.key_types == left.key_types and n.window == left.window) or left
        mode = self.rng.choice(("", "left ", "outer "))
        items, key, value = self._items(both(left, right), left.key)
        complete = self._complete(left, right)
        clause, history = complete or self._clause(versioned=left.window is None)
        self.read.add(right.name)
        self._add(left, "table", f"{mode}join {left.name} as l with {right.name} as r select {items} {clause}", key,
                  value, window=left.window, history=history,
                  right=(None, None) if complete is None else (history, history))  # fmt: skip

    def join_by_foreign_key(self) -> None:
        """Two tables, by what the left one refers to."""
        left, right = self._table(), self._table(lambda n: n.window is None)
        if left is None or right is None:
            return
        on = ", ".join(self._key_values(scope_of(left, "l", event_time=False), right.key))
        items, key, value = self._items(both(left, right, event_time=False), left.key)
        complete = self._complete(left, right)
        clause, history = complete or self._clause(versioned=left.window is None)
        text = f"{self._left()}join {left.name} as l with {right.name} as r on {on} select {items} {clause}"
        self.read.add(right.name)
        self._add(left, "table", text, key, value, window=left.window, history=history,
                  right=(None, None) if complete is None else (history, history))  # fmt: skip

    # ------------------------------------------------------------------------------------------------- aggregates

    def aggregate_stream(self) -> None:
        """A stream in groups, with or without windows."""
        rng = self.rng
        node = self._any("stream")
        window, text, final = None, "", False
        if rng.random() < 0.7:
            window, text = self._window()
            final = rng.random() < 0.4
            text += rng.choice((" emit changes", "")) if not final else " emit final"
        self._aggregate(node, window, text, final)

    def aggregate_table(self) -> None:
        """A table in groups."""
        if (node := self._table()) is not None:
            self._aggregate(node, None, "", False)

    def _aggregate(self, node: Shape, window: tuple[object, ...] | None, text: str, final: bool) -> None:
        rng = self.rng
        scope = scope_of(node, event_time=node.kind == "stream")
        key = rng.choice(self.sizes.keys)
        own = [c for c in node.key if c not in BOUNDS]
        if own and rng.random() < 0.4:
            key = tuple(own)
            group = [name for name, _ in key]
        else:
            group = [f"{e} as {n}" for e, (n, _) in zip(self._key_values(scope, key), key, strict=True)]
        items, value = self._calls(scope, key)
        complete = self._complete(node) if node.kind == "table" and window is None else None
        clause, history = complete or self._clause(versioned=window is None)
        clause = "" if node.kind == "table" and final else clause
        bounds = BOUNDS if window is not None else ()
        statement = f"aggregate {node.name} group by {', '.join(group)}{text} select {items} {clause}"
        self._add(node, "table", statement, (*key, *bounds), value, window=window, history=history, final=final,
                  right=(None, None) if complete is None else (history, history))  # fmt: skip

    def _window(
        self, kinds: Sequence[str] = ("tumbling", "hopping", "sliding", "session")
    ) -> tuple[tuple[object, ...], str]:
        rng = self.rng
        kind = rng.choice(kinds)
        size = rng.choice((5, 10, 20))
        advance = rng.choice((2, 5)) if kind == "hopping" else 0
        offset = ", offset = 1 ms" if size == 10 else ""
        options = {"tumbling": f"size = {size} ms{offset}", "session": f"gap = {size} ms",
                   "hopping": f"size = {size} ms, advance = {advance} ms{offset}",
                   "sliding": f"difference = {size} ms"}[kind]  # fmt: skip
        grace = rng.choice(("", "", ", grace = 3 ms", ", grace = 25 ms"))
        return (kind, size, advance), f" window {kind} ({options}{grace})"

    def _calls(self, scope: Scope, key: Sequence[Column]) -> tuple[str, tuple[Column, ...]]:
        rng = self.rng
        items, value = [], []
        for name, type_ in self._names(dict(key)):
            arg = self._expression(scope, type_, 1) if type_ in ORDERED else ""
            by = expression(rng, scope, rng.choice(ORDERED), 1)
            forms = {
                "bigint": (f"count({by})", "count(*)", f"count(distinct {by})", f"sum({arg}) + 1", f"sum({arg})",
                           f"approx_percentile({arg}, {rng.choice((0, 0.4, 1))})"),
                "double": (f"sum({arg})", f"avg({arg})", f"variance({arg})", f"stddev({arg})"),
                "boolean": (f"bool_and({arg})", f"bool_or({arg})"),
                "array<string>": (
                    *(f"collect_{kind}({expression(rng, scope, 'string', 1)})" for kind in ("list", "set")),
                    f"collect_top({expression(rng, scope, 'string', 1)}, {rng.choice((1, 2, 5))} by {by}"
                    f"{rng.choice(('', ' desc'))})",
                    f"collect_last({expression(rng, scope, 'string', 1)}, {rng.choice((1, 2, 5))})",
                ),
            }.get(type_, ())  # fmt: skip
            general = ("min", "max", "first", "last", "min_by", "max_by")
            ordered = tuple(f"{f}({arg}, {by})" if f.endswith("_by") else f"{f}({arg})" for f in general)
            ordered += (f"first({arg}) ignore nulls", f"last({arg}) ignore nulls")
            items.append(f"{rng.choice(forms + (ordered if arg else ()))} as {name}")
            value.append((name, type_))
        return ", ".join(items), tuple(value)


def _same_columns(nodes: Sequence[Shape]) -> bool:
    return all(dict(n.value) == dict(nodes[0].value) for n in nodes)
