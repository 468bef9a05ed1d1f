"""Reads what a scenario expects: the records of nodes, and what stores answer.

Guarantees: it names only nodes, columns and stores of the topology, and values of their types. Where a mapping has no
`...`, a column that it leaves out is expected to be null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from vsc.compiler.source import Position
from vsc.plan.nodes import Node, Plan
from vsc.runtime.metrics import (
    GRACE_NEEDED,
    HELD_RECORDS,
    LATE_VERSIONS,
    LONGEST_SESSION,
    RETENTION_NEEDED,
    Dropped,
    Group,
    Missed,
)
from vsc.scenario.document import Document
from vsc.scenario.model import Count, Expectation, Expected, Question
from vsc.scenario.values import EXPECTED, EXPECTED_KEY, KEY, Partial, read_columns, read_time

__all__ = ["Expectations"]

_REASONS = {
    Group.DROPPED_RECORDS.value: tuple(reason.value for reason in Dropped),
    Group.MISSED_LOOKUPS.value: tuple(reason.value for reason in Missed),
}
_COUNTS = (*_REASONS, LATE_VERSIONS, GRACE_NEEDED, RETENTION_NEEDED, HELD_RECORDS, LONGEST_SESSION)
"""What the test driver counts by node: the first two also by reason."""


class Expectations:
    """Reads them against one plan. All methods raise ScenarioError."""

    def __init__(self, document: Document, plan: Plan) -> None:
        self._document = document
        self._nodes = {n.name: n for n in plan.nodes if n.part_of is None}
        self._written = tuple(dict.fromkeys(sink.owner for sink in plan.sinks))
        stored = [n for n in plan.nodes if n.store is not None]
        self._stores = {n.name: n for n in stored} | {n.store.name: n for n in stored if n.store is not None}

    def records(self, node: yaml.Node) -> tuple[Expectation, ...]:
        """What `expect` of a step says."""
        document = self._document
        found = []
        if document.is_null(node):
            return tuple(Expectation(Position(*document.place(node)), name, None) for name in self._written)
        for name, (key, records) in document.mapping(node, "`expect`").items():
            if name not in self._nodes:
                raise document.unknown(key, "node", name, self._nodes)
            read = None
            if not document.is_null(records):
                listed = document.sequence(records, f"what `{name}` gives")
                read = tuple(self._record(one, self._nodes[name]) for one in listed)
            found.append(Expectation(Position(*document.place(key)), name, read))
        return tuple(found)

    def answers(self, node: yaml.Node) -> tuple[Question, ...]:
        """What `stores` of a step says."""
        return tuple(self._question(one) for one in self._document.sequence(node, "`stores`"))

    def counts(self, node: yaml.Node) -> tuple[Count, ...]:
        """What `metrics` of a step says."""
        return tuple(self._counts(node, "`metrics`", ()))

    def _counts(self, node: yaml.Node, what: str, path: tuple[str, ...]) -> Iterator[Count]:
        """The numbers of a group, of its nodes, and of their reasons."""
        document = self._document
        for name, (key, value) in document.mapping(node, what).items():
            known = (_COUNTS, tuple(self._nodes), _REASONS.get(path[0], ()) if path else ())[len(path)]
            if name not in known:
                raise document.unknown(key, ("number", "node", "reason")[len(path)], name, known)
            inside = (*path, name)
            if len(inside) == 1 or (len(inside) == 2 and inside[0] in _REASONS):
                yield from self._counts(value, f"what is counted of `{name}`", inside)
            else:
                yield Count(
                    Position(*document.place(value)), inside, document.integer(value, f"the number of `{name}`")
                )

    def _record(self, node: yaml.Node, of: Node) -> Expected:
        document, what = self._document, f"a record of `{of.name}`"
        needed = ("key", "value", "timestamp") if of.schema.key else ("value", "timestamp")
        nodes = document.fields(node, what, needed, ("key",), partial=True)
        fields: dict[str, Any] = {}
        if "key" in nodes:
            fields["key"] = read_columns(document, nodes["key"], of.schema.key, f"the key of {what}", EXPECTED_KEY)
        elif not document.is_partial(node):
            fields["key"] = {}
        if "value" in nodes:
            fields["value"] = self._value(nodes["value"], of, what)
        if "timestamp" in nodes:
            fields["timestamp"] = read_time(document, nodes["timestamp"], "`timestamp`")
        return self._expected(node, fields)

    def _question(self, node: yaml.Node) -> Question:
        document = self._document
        fields = document.fields(node, "a question to a store", ("store", "key"), ("as_of", "expect"))
        name = document.text(fields["store"], "`store`")
        stored = self._stores.get(name)
        if stored is None:
            raise document.unknown(fields["store"], "store", name, self._stores)
        assert stored.store is not None
        as_of = None
        if "as_of" in fields and not document.is_null(fields["as_of"]):
            as_of = read_time(document, fields["as_of"], "`as_of`")
            if stored.store.kind != "versioned":
                raise document.error(fields["as_of"], f"`{name}` is unversioned: it cannot be read as of a time")
        key = read_columns(document, fields["key"], stored.schema.key, f"the key of `{name}`", KEY)
        expect = fields.get("expect")
        answer = None if expect is None or document.is_null(expect) else self._answer(expect, stored)
        return Question(Position(*document.place(node)), name, key, as_of, answer, missing=expect is None)

    def _answer(self, node: yaml.Node, stored: Node) -> Expected:
        document, what = self._document, f"an answer of `{stored.name}`"
        nodes = document.fields(node, what, ("value", "valid_from", "valid_to"), partial=True)
        fields: dict[str, Any] = {}
        if "value" in nodes:
            fields["value"] = self._value(nodes["value"], stored, what)
        if "valid_from" in nodes:
            fields["valid_from"] = read_time(document, nodes["valid_from"], "`valid_from`")
        if "valid_to" in nodes:
            to = nodes["valid_to"]
            fields["valid_to"] = None if document.is_null(to) else read_time(document, to, "`valid_to`")
        return self._expected(node, fields)

    def _expected(self, node: yaml.Node, fields: dict[str, Any]) -> Expected:
        partial = self._document.is_partial(node)
        return Expected(Position(*self._document.place(node)), Partial(fields) if partial else fields)

    def _value(self, node: yaml.Node, of: Node, what: str) -> Mapping[str, Any] | None:
        if self._document.is_null(node):
            return None
        written = read_columns(self._document, node, of.schema.value, f"the value of {what}", EXPECTED)
        if isinstance(written, Partial):
            return written
        return {column.name: written.get(column.name) for column in of.schema.value}
