"""What can be written at the cursor: keywords that fit, nodes, columns, functions, types, connectors, options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lsprotocol.types import (
    CompletionItem,
    CompletionItemKind,
    MarkupContent,
    MarkupKind,
    TextEdit,
)

from vsc.compiler import syntax
from vsc.compiler.diagnostics.wording import named
from vsc.compiler.parser.expect import Expected, expected_at
from vsc.compiler.parser.types import TYPE_NAMES
from vsc.compiler.passes.connectors import connector_kinds
from vsc.compiler.passes.windows import WINDOW_OPTIONS
from vsc.compiler.source import Span
from vsc.lsp.document import Document
from vsc.lsp.hover import node_text
from vsc.lsp.keywords import form_of_keyword
from vsc.lsp.unfinished import Unfinished, read_unfinished
from vsc.plan.connectors.facts import OptionSpec
from vsc.plan.functions import AGGREGATES, FUNCTIONS, Function
from vsc.plan.types import StructType

__all__ = ["completions"]

_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_READS = {operation.word: operation.reads for operation in syntax.Operation.__args__}
_LATER = "~"
"""Sorts after all names."""


def completions(document: Document, offset: int) -> list[CompletionItem]:
    """The items for the cursor at `offset`. They replace the part of the word that is already written."""
    prefix = _PREFIX.search(document.text, 0, offset)
    start = prefix.start() if prefix else offset
    expected = expected_at(document.text, start)
    if expected is None:
        return []
    place = document.positions.range(Span(start, offset))
    items = list(_Completer(document, expected).items())
    for item in items:
        item.text_edit = TextEdit(place, item.insert_text or item.label)
        item.insert_text = None
    return items


class _Completer:
    def __init__(self, document: Document, expected: Expected) -> None:
        self.document, self.expected = document, expected
        survey = document.known.survey
        self.kinds: Mapping[str, str] = {name: declared.kind for name, declared in survey.topology.nodes.items()}
        self.unfinished: Unfinished = read_unfinished(expected.before, self.kinds)
        self.last = expected.before[-1] if expected.before else ""

    def items(self) -> Iterator[CompletionItem]:
        """All items for this place: those specific to it first, then keywords."""
        names, last = self.expected.names, self.last
        if last == ".":
            yield from self._members()
            return
        if last == "=" and len(self.expected.before) > 1 and (spec := self._option(self.expected.before[-2])):
            yield from _values(spec)
            yield from self._constants()
            return
        if last in ("from", "to") and self.unfinished.kind:
            role = connector_kinds("source" if last == "from" else "sink")
            yield from (CompletionItem(kind, kind=CompletionItemKind.Module) for kind in role)
        elif last == "window":
            yield from (CompletionItem(kind, kind=CompletionItemKind.Enum) for kind in WINDOW_OPTIONS)
        elif last in ("sink", "of") and self.unfinished.kind == "sink":
            yield from self._nodes()
            if last == "sink":
                yield from (CompletionItem(word, kind=CompletionItemKind.Event) for word in syntax.LOST)
        elif names & {"node", "input"}:
            yield from self._nodes()
        elif "option_name" in names:
            yield from _options(self.unfinished.options)
        elif "plain_type" in names:
            yield from (CompletionItem(name, kind=CompletionItemKind.TypeParameter) for name in TYPE_NAMES)
        elif names & {"column_name", "*"}:
            yield from self._columns()
        if "column_name" in names:
            yield from self._constants()
            yield from self._functions()
        for word in self.expected.keywords:
            yield CompletionItem(word, kind=CompletionItemKind.Keyword, sort_text=_LATER + word,
                                 detail=form_of_keyword(word, self.expected.before, self.unfinished))  # fmt: skip

    def _option(self, name: str) -> OptionSpec | None:
        """The option whose value comes next."""
        before = self.expected.before[:-2]
        return read_unfinished(before, self.kinds).options.get(name)

    def _nodes(self) -> Iterator[CompletionItem]:
        reads = _READS.get(self.unfinished.word)
        tables = reads == "table" or (self.unfinished.word == "join" and self.last == "with")
        for name, kind in self.kinds.items():
            fits = "table" in kind if tables else kind == reads if reads else True
            if fits and name != self.unfinished.name:
                text = node_text(self.document, name)
                about = None if text is None else MarkupContent(MarkupKind.Markdown, text)
                yield CompletionItem(
                    name, kind=CompletionItemKind.Class, detail=kind, documentation=about, insert_text=named(name)
                )

    def _columns(self) -> Iterator[CompletionItem]:
        found = dict(self.unfinished.columns)
        for read in self.unfinished.inputs.values():
            for name, type_ in self._of(read).items():
                found.setdefault(name, type_)
        if self.unfinished.word == "aggregate" and "window" in self.expected.before:
            found |= {"window_start": "timestamp", "window_end": "timestamp"}
        yield from (_column(name, type_) for name, type_ in found.items())
        if "column_name" in self.expected.names and len(self.unfinished.inputs) > 1:
            for visible, read in self.unfinished.inputs.items():
                yield CompletionItem(
                    visible, kind=CompletionItemKind.Class, detail=self.kinds.get(read), insert_text=named(visible)
                )

    def _constants(self) -> Iterator[CompletionItem]:
        known = self.document.known
        for one in known.survey.topology.constants:
            text = known.source.slice(one.value.span)
            yield CompletionItem(
                one.name.text, kind=CompletionItemKind.Constant, detail=text, insert_text=named(one.name.text)
            )

    def _members(self) -> Iterator[CompletionItem]:
        """The columns of an input, or the fields of a struct."""
        owner = self.expected.before[-2] if len(self.expected.before) > 1 else ""
        read = self.unfinished.inputs.get(owner)
        if read is not None:
            yield from (_column(name, type_) for name, type_ in self._of(read).items())
            return
        for shape in map(self.document.known.survey.shapes.get, self.unfinished.inputs.values()):
            for column in () if shape is None else (*shape.schema.key, *shape.schema.value):
                if column.name == owner and isinstance(column.type, StructType):
                    yield from (_column(field.name, str(field.type)) for field in column.type.fields)

    def _functions(self) -> Iterator[CompletionItem]:
        for own in self.document.known.survey.topology.functions.values():
            name, form = named(own.name.text), self.document.known.source.slice(own.span)
            yield CompletionItem(own.name.text, kind=CompletionItemKind.Function, detail=form, insert_text=f"{name}(")
        yield from map(_function, FUNCTIONS.values())
        if self.unfinished.word == "aggregate" and "select" in self.expected.before:
            yield from map(_function, AGGREGATES.values())

    def _of(self, node: str) -> dict[str, str]:
        shape = self.document.known.survey.shapes.get(node)
        return {} if shape is None else {c.name: str(c.type) for c in (*shape.schema.key, *shape.schema.value)}


def _column(name: str, type_: str) -> CompletionItem:
    return CompletionItem(name, kind=CompletionItemKind.Field, detail=type_, insert_text=named(name))


def _function(function: Function) -> CompletionItem:
    return CompletionItem(
        function.name, kind=CompletionItemKind.Function, detail=function.signature, documentation=function.about,
        sort_text=_LATER + function.name, insert_text=f"{function.name}(",
    )  # fmt: skip


def _options(options: Mapping[str, OptionSpec]) -> Iterator[CompletionItem]:
    for name, spec in options.items():
        yield CompletionItem(
            name, kind=CompletionItemKind.Property, detail=f"{spec.type}, as in {spec.example}",
            insert_text=f"{name} = ",
        )  # fmt: skip


def _values(spec: OptionSpec) -> Iterator[CompletionItem]:
    values = [f"'{choice}'" for choice in spec.choices] or [spec.example]
    if spec.type == "true or false":
        values = ["true", "false"]
    if spec.type == "duration or none":
        values.append("none")
    yield from (CompletionItem(value, kind=CompletionItemKind.Value) for value in values)
