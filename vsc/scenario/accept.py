"""Writes into a scenario file what a run of it gave.

Guarantees: nothing else in the text changes, comments and layout included, and the new text holds: it has been loaded
and played. What cannot be written that way is refused with its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Any

import yaml

from vsc.runtime.times import LAST
from vsc.scenario.document import Document, ScenarioError
from vsc.scenario.loader import load
from vsc.scenario.model import Delete, Drain, Expected, Pipe, Quiet, Read, Scenario
from vsc.scenario.player import Outcome, WrongAnswer, WrongCount, WrongRecords, fields_of, is_met, play
from vsc.scenario.values import asked
from vsc.scenario.written import fields_written, record_written
from vsc.testing import Record, VersionedRecord

__all__ = ["accepted"]

_WIDTH = 120
_TIMES = ("timestamp", "valid_from", "valid_to")
_A_YEAR = 31_536_000_000
_Edit = tuple[int, int, str]


def accepted(text: str, outcomes: Sequence[Outcome], variables: Mapping[str, str]) -> str:
    """The text of a file with what its `outcomes` gave instead of what was expected or missing.

    `variables` are those it was loaded with. Raises ScenarioError.
    """
    path = outcomes[0].scenario.path
    document = Document(path, text)
    edits = [edit for outcome in outcomes for edit in _Edits(document, text, outcome).all()]
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    before = [outcome.scenario for outcome in outcomes]
    if not _holds(path, text, before, variables):
        line = next(wrong.position.line for outcome in outcomes for wrong in outcome.wrong)
        raise ScenarioError(path, line, 1, "this cannot be written into the file", "write the expectation by hand")
    return text


def _holds(path: str, text: str, before: Sequence[Scenario], variables: Mapping[str, str]) -> bool:
    """Whether the scenarios do what they did, and nothing is wrong any more."""
    try:
        after = load(path, text, variables, before[0].functions).scenarios
    except ScenarioError:
        return False
    return list(map(_done, after)) == list(map(_done, before)) and not any(play(one).wrong for one in after)


def _done(scenario: Scenario) -> Any:
    steps = [
        (
            _input(step.action),
            [one.node for one in step.expect],
            [(one.store, one.key, one.as_of) for one in step.stores],
            [one.path for one in step.metrics],
        )
        for step in scenario.steps
    ]
    return scenario.name, scenario.variables, scenario.partitions, scenario.now, steps


def _input(action: Pipe | Read | Delete | Drain | Quiet) -> object:
    """What is equal for equal input: NaN is not equal to itself, but it is written the same."""
    return action if isinstance(action, Read) else repr(action)


class _Edits:
    """The edits that one scenario needs."""

    def __init__(self, document: Document, text: str, outcome: Outcome) -> None:
        self._document, self._text, self._outcome = document, text, outcome
        self._newline = "\r\n" if "\r\n" in text else "\n"
        fields = document.mapping(document.root, "the file")
        place = (outcome.scenario.position.line, outcome.scenario.position.column)
        found = next(one for one in document.sequence(fields["scenarios"][1], "") if document.place(one) == place)
        self._steps = document.sequence(document.mapping(found, "")["steps"][1], "")

    def all(self) -> Iterator[_Edit]:
        """The edits, each with its start, its end and the new text."""
        whole: dict[int, list[WrongRecords]] = {}
        for wrong in self._outcome.wrong:
            assert isinstance(wrong, WrongRecords | WrongAnswer | WrongCount)
            step = self._document.mapping(self._steps[wrong.step - 1], "")
            if isinstance(wrong, WrongCount):
                yield self._count(step["metrics"][1], wrong)
            elif isinstance(wrong, WrongAnswer):
                yield self._answer(step["stores"][1], wrong)
            elif self._document.is_null(step["expect"][1]):
                whole.setdefault(wrong.step, []).append(wrong)
            else:
                yield from self._records(step["expect"][1], wrong)
        for number, found in whole.items():
            yield self._whole(number, found)

    def _whole(self, number: int, found: list[WrongRecords]) -> _Edit:
        """An `expect` that says nothing yet."""
        step = self._steps[number - 1]
        key, value = self._document.mapping(step, "")["expect"]
        if _in_braces(step):
            entries = (f"{wrong.node}: {_in_flow(wrong.seen)}" for wrong in found)
            return self._after_key(value, f"{{{', '.join(entries)}}}")
        indent = key.start_mark.column + 2
        entries = (self._line(indent) + f"{wrong.node}:" + self._listed(wrong.seen, indent) for wrong in found)
        return self._below_key(value, "".join(entries))

    def _records(self, expect: yaml.Node, wrong: WrongRecords) -> Iterator[_Edit]:
        key, value = self._document.mapping(expect, "")[wrong.node]
        if wrong.expected is None and (_in_braces(expect) or not wrong.seen):
            yield self._after_key(value, _in_flow(wrong.seen))
        elif wrong.expected is None:
            yield self._below_key(value, self._listed(wrong.seen, key.start_mark.column))
        elif len(wrong.expected) == len(wrong.seen):
            nodes = self._document.sequence(value, "")
            for node, one, seen in zip(nodes, wrong.expected, wrong.seen, strict=True):
                if not is_met(one, seen):
                    yield self._instead(value, node, f"{{{fields_written(_fields(one, seen))}}}")
        else:
            yield self._instead(expect, value, _in_flow(wrong.seen, wrong.expected))

    def _count(self, metrics: yaml.Node, wrong: WrongCount) -> _Edit:
        parent = node = metrics
        for name in wrong.expected.path:
            parent, node = node, self._document.mapping(node, "")[name][1]
        return self._instead(parent, node, str(wrong.seen))

    def _answer(self, stores: yaml.Node, wrong: WrongAnswer) -> _Edit:
        place = (wrong.position.line, wrong.position.column)
        node = next(one for one in self._document.sequence(stores, "") if self._document.place(one) == place)
        text = "null" if wrong.seen is None else f"{{{fields_written(_fields(wrong.question.answer, wrong.seen))}}}"
        if not wrong.missing:
            return self._instead(node, self._document.mapping(node, "")["expect"][1], text)
        end = self._end(node, list(self._document.mapping(node, "").values())[-1][1])
        if _in_braces(node):
            return end, end, f", expect: {text}"
        end = self._line_end(end)
        return end, end, f"{self._line(node.start_mark.column)}expect: {text}"

    # ------------------------------------------------------------------------------------------------------ places

    def _instead(self, parent: yaml.Node, node: yaml.Node, new: str) -> _Edit:
        return node.start_mark.index, self._end(parent, node), new

    def _after_key(self, value: yaml.Node, new: str) -> _Edit:
        start = value.start_mark.index
        before = self._text[:start].rstrip()
        colon = "" if before.endswith(":") else ":"
        blank = "" if self._text[start - 1].isspace() and not colon else " "
        return start, value.end_mark.index, f"{colon}{blank}{new}"

    def _below_key(self, value: yaml.Node, new: str) -> _Edit:
        """A comment behind the key stays there."""
        start, end = len(self._text[: value.start_mark.index].rstrip()), self._line_end(value.end_mark.index)
        return start, end, self._text[value.end_mark.index : end].rstrip() + new

    def _end(self, parent: yaml.Node, node: yaml.Node) -> int:
        """Where a node ends; YAML counts blanks and comments behind a block to it."""
        if node.start_mark.index < parent.start_mark.index:
            raise self._document.error(parent, "an alias (`*name`) is in the way", "write the expectation by hand")
        if isinstance(node, yaml.ScalarNode) or _in_braces(node) or not node.value:
            return int(node.end_mark.index)
        last = node.value[-1]
        return self._end(node, last[1] if isinstance(node, yaml.MappingNode) else last)

    def _line_end(self, start: int) -> int:
        end = self._text.find(self._newline, start)
        return len(self._text) if end < 0 else end

    def _line(self, indent: int) -> str:
        return self._newline + " " * indent

    def _listed(self, seen: Sequence[Record], indent: int) -> str:
        """Records below the name of their node, which stands at `indent`."""
        if not seen:
            return " []"
        line = self._line(indent + 2)
        return "".join(line + "- " + record_written(_fields(None, one), line + "  ", _WIDTH) for one in seen)


def _in_braces(node: yaml.Node) -> bool:
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style)


def _time(milliseconds: int) -> int | datetime:
    """A time as people write it: a small number as it is, as in tests that count from 0."""
    if not _A_YEAR <= milliseconds <= LAST:
        return milliseconds
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def _in_flow(seen: Sequence[Record], expected: Sequence[Expected] = ()) -> str:
    both = zip_longest(expected[: len(seen)], seen)
    return f"[{', '.join(f'{{{fields_written(_fields(one, record))}}}' for one, record in both)}]"


def _fields(expected: Expected | None, seen: Record | VersionedRecord) -> dict[str, Any]:
    """The fields that the file asked for, if it did."""
    found = fields_of(seen)
    timed = found if expected is None else asked(expected.fields, found)
    timed.update({name: _time(timed[name]) for name in _TIMES if timed.get(name) is not None})
    return timed
