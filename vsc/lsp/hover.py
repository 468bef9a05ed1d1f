"""Describes a name: a node's kind, columns, key, retention, and versioned status with its reason; a column's type.

A keyword shows the form of the operation or the clause that it begins.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol.types import Hover, MarkupContent, MarkupKind

from vsc.lsp.document import Document
from vsc.lsp.keywords import form_at
from vsc.lsp.symbols import Symbol
from vsc.plan import Column, Schema, Store
from vsc.plan.functions import AGGREGATES, FUNCTIONS
from vsc.plan.words import duration, window

__all__ = ["column_of", "hover", "node_text"]


def hover(document: Document, offset: int) -> Hover | None:
    """What to show at an offset; None for nothing."""
    found = document.names.at(offset)
    if found is not None:
        text = _of_symbol(document, found.symbol)
        span = found.span
    else:
        call = document.names.call_at(offset)
        if call is not None:
            span, text = call[0], _of_function(call[1])
        elif (keyword := form_at(document.text, offset)) is not None:
            span, text = keyword[0], f"```vdsl\n{keyword[1]}\n```"
        else:
            return None
    if text is None:
        return None
    return Hover(MarkupContent(MarkupKind.Markdown, text), document.positions.range(span))


def node_text(document: Document, name: str) -> str | None:
    """A node in Markdown; None if it is not declared."""
    survey = document.known.survey
    if name not in survey.topology.nodes:
        return None
    kind, shape = survey.kinds.get(name), survey.shapes.get(name)
    facts = list(_facts(document, name))
    if kind is None:
        kind = survey.topology.nodes[name].kind
    columns = None if shape is None else _columns(shape.schema)
    head = f"{kind} {name}" + ("" if columns is None else f" (\n{columns}\n)")
    return "\n\n".join([f"```vdsl\n{head}\n```", *facts])


def _of_symbol(document: Document, symbol: Symbol) -> str | None:
    if symbol.kind == "node":
        return node_text(document, symbol.name)
    if symbol.kind == "alias":
        declaration = document.known.survey.topology.nodes[symbol.node]
        inputs = document.known.survey.topology.inputs(declaration.name.text)
        read = next(r.name.text for r in inputs if r.alias is not None and r.alias.text == symbol.name)
        return node_text(document, read)
    if symbol.kind in ("constant", "function"):
        return _declared(document, symbol.name)
    column = column_of(document, symbol)
    return None if column is None else f"```vdsl\n{column.name} {column.type}\n```\n\ncolumn of `{symbol.node}`"


def _declared(document: Document, name: str) -> str | None:
    """The declaration of a constant or a function, which never have the same name."""
    topology = document.known.survey.topology
    constants = {one.name.text: one for one in topology.constants}
    declared = topology.functions.get(name) or constants.get(name)
    return None if declared is None else f"```vdsl\n{document.known.source.slice(declared.span)}\n```"


def column_of(document: Document, symbol: Symbol) -> Column | None:
    """The column with its type; None if the type is not known."""
    shape = document.known.survey.shapes.get(symbol.node)
    if shape is None:
        return None
    every = (*shape.schema.key, *shape.schema.value)
    return next((column for column in every if column.name == symbol.name), None)


def _of_function(name: str) -> str | None:
    function = FUNCTIONS.get(name) or AGGREGATES.get(name)
    if function is None:
        return None
    fails = f"\n\nFails on: {function.fails}." if function.fails else ""
    return f"```vdsl\n{function.signature}\n```\n\n{function.about}{fails}"


def _columns(schema: Schema) -> str:
    key = [f"  {column.name} {column.type}  -- key" for column in schema.key]
    return "\n".join([*key, *(f"  {column.name} {column.type}" for column in schema.value)])


def _facts(document: Document, name: str) -> Iterator[str]:
    survey = document.known.survey
    shape, status, store = survey.shapes.get(name), survey.statuses.get(name), survey.stores.of(name)
    if shape is not None:
        yield f"key: {', '.join(f'`{column.name}`' for column in shape.schema.key) or 'none'}"
    if (found := survey.windows.tables.get(name)) is not None:
        yield f"window: {window(found)}"
    if status is not None:
        decided = f" (decided by `{status.decided_by}`)" if status.decided_by != name else ""
        yield f"**{'versioned' if status.versioned else 'unversioned'}**: {status.reason}{decided}"
    if store is not None:
        yield from _store(store)


def _store(store: Store) -> Iterator[str]:
    if store.retention is not None and store.grace is not None and store.segment is not None:
        yield (
            f"retention {duration(store.retention)}, grace {duration(store.grace)}, segment {duration(store.segment)}"
        )
        if store.history == "complete":
            yield "its history is complete: right as of every time"
    elif store.expire is not None:
        yield f"rows expire {duration(store.expire)} behind the clock"
    elif store.implied:
        yield "keeps its newest rows in a store, for look-ups"
