"""Where a name is declared and used, and the outline of a file."""

from __future__ import annotations

from lsprotocol import types

from vsc.compiler import syntax
from vsc.lsp.document import Document
from vsc.lsp.symbols import Occurrence

__all__ = ["definition", "outline", "references"]


def definition(document: Document, offset: int) -> list[types.Location]:
    """Where the name at an offset is declared."""
    found = document.names.at(offset)
    if found is None:
        return []
    every = document.names.same(found.symbol)
    own = [one for one in every if one.definition and one.symbol == found.symbol]
    return _locations(document, own or [one for one in every if one.definition])


def references(document: Document, offset: int, declarations: bool) -> list[types.Location]:
    """The uses of what the name at an offset stands for, with or without its `declarations`."""
    found = document.names.at(offset)
    if found is None:
        return []
    every = document.names.same(found.symbol)
    return _locations(document, [one for one in every if declarations or not one.definition])


def outline(document: Document) -> list[types.DocumentSymbol]:
    """The statements, with the columns that they declare."""
    own = (statement for statement in document.known.file.statements if document.is_own(statement.span))
    return [_statement(document, statement) for statement in own]


def _locations(document: Document, occurrences: list[Occurrence]) -> list[types.Location]:
    return [document.location(one.span) for one in occurrences]


def _statement(document: Document, statement: syntax.Statement) -> types.DocumentSymbol:
    place = document.positions.range
    kind, detail, children = types.SymbolKind.Namespace, "topology", []
    match statement:
        case syntax.SourceDecl():
            kind, detail = types.SymbolKind.Struct, f"{statement.kind} from {statement.connector.kind.text}"
            children = [
                types.DocumentSymbol(
                    column.name.text, types.SymbolKind.Field, place(column.span), place(column.name.span),
                    detail=str(column.type.type),
                )
                for column in statement.columns
            ]  # fmt: skip
        case syntax.DerivedDecl():
            kind, detail = types.SymbolKind.Function, f"{statement.kind} = {statement.operation.word}"
        case syntax.ConstantDecl():
            kind, detail = types.SymbolKind.Constant, "constant"
        case syntax.FunctionDecl():
            kind, detail = types.SymbolKind.Function, f"function from '{statement.reference}'"
        case syntax.SinkDecl():
            kind, of = types.SymbolKind.Event, "" if statement.of is None else f"of {statement.of.text} "
            detail = f"sink {of}to {statement.connector.kind.text}"
        case _:
            pass
    name = statement.name
    return types.DocumentSymbol(
        name.text, kind, place(statement.span), place(name.span), detail=detail, children=children
    )
