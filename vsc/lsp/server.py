"""The server: passes each request of an editor to the module that answers it. It holds only the open documents."""

from __future__ import annotations

import asyncio
import os
import sys

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from vsc import __version__
from vsc.compiler.source import Span
from vsc.lsp.colors import TOKEN_TYPES, colors
from vsc.lsp.completion import completions
from vsc.lsp.diagnostics import diagnostic, diagnostics
from vsc.lsp.document import Document
from vsc.lsp.fixes import offers
from vsc.lsp.formatting import formatted
from vsc.lsp.hover import hover
from vsc.lsp.navigation import definition, outline, references
from vsc.lsp.renaming import RenameRefused, rename, renamed
from vsc.lsp.wire import input_of

__all__ = ["serve"]

_PAUSE = 0.2
"""How many seconds nothing must be typed until a changed text is checked."""


class _Server(LanguageServer):
    """Editors send whole documents: these are small, and an edit at a wrong place would go unnoticed."""

    def __init__(self) -> None:
        super().__init__("vsc", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.documents: dict[str, Document] = {}
        self._checks: dict[str, asyncio.TimerHandle] = {}

    def put(self, uri: str, text: str, version: int | None, pause: float = 0) -> None:
        """Takes a new text, and publishes its findings if none follows within `pause` seconds."""
        self._forget(uri)
        encoding = types.PositionEncodingKind(self.workspace.position_encoding or "utf-16").value
        document = self.documents[uri] = Document(uri, text, encoding)
        self._checks[uri] = asyncio.get_running_loop().call_later(pause, self._check, document, version)

    def close(self, uri: str) -> None:
        """Forgets a document, and takes its findings back."""
        self._forget(uri)
        self.documents.pop(uri, None)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def _forget(self, uri: str) -> None:
        """Cancels the check of an earlier text."""
        if (check := self._checks.pop(uri, None)) is not None:
            check.cancel()

    def _check(self, document: Document, version: int | None) -> None:
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(document.uri, diagnostics(document), version=version)
        )

    def at(self, params: _Place) -> tuple[Document, int]:
        """The document and the offset that an editor asks about."""
        document = self.documents[params.text_document.uri]
        return document, document.positions.offset(params.position)


_Place = (
    types.HoverParams | types.DefinitionParams | types.ReferenceParams | types.CompletionParams | types.RenameParams
    | types.PrepareRenameParams
)  # fmt: skip


def serve() -> None:
    """Answers an editor on standard input and output until it ends the connection."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")  # a copy, since it is closed at the end
    made = server()

    def refuse(reason: str) -> None:
        made.window_show_message(types.ShowMessageParams(types.MessageType.Error, reason))

    made.start_io(stdin=input_of(sys.stdin.buffer, refuse), stdout=output)


def server() -> LanguageServer:
    """A server with all its features registered."""
    made = _Server()
    _follow(made)
    _navigate(made)
    _edit(made)
    return made


def _follow(server: _Server) -> None:
    """Keeps track of the open documents."""

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(ls: _Server, params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        ls.put(document.uri, document.text, document.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(ls: _Server, params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        ls.put(document.uri, params.content_changes[-1].text, document.version, _PAUSE)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(ls: _Server, params: types.DidCloseTextDocumentParams) -> None:
        ls.close(params.text_document.uri)


def _navigate(server: _Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def on_hover(ls: _Server, params: types.HoverParams) -> types.Hover | None:
        return hover(*ls.at(params))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def on_definition(ls: _Server, params: types.DefinitionParams) -> list[types.Location]:
        return definition(*ls.at(params))

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def on_references(ls: _Server, params: types.ReferenceParams) -> list[types.Location]:
        return references(*ls.at(params), params.context.include_declaration)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def on_symbols(ls: _Server, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        return outline(ls.documents[params.text_document.uri])

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, types.SemanticTokensLegend(list(TOKEN_TYPES), []))
    def on_colors(ls: _Server, params: types.SemanticTokensParams) -> types.SemanticTokens:
        return types.SemanticTokens(colors(ls.documents[params.text_document.uri]))


def _edit(server: _Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", "("]))
    def on_completion(ls: _Server, params: types.CompletionParams) -> list[types.CompletionItem]:
        return completions(*ls.at(params))

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def on_prepare(ls: _Server, params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        document, offset = ls.at(params)
        found = renamed(document, offset)
        return None if found is None else types.PrepareRenamePlaceholder(document.positions.range(found[0]), found[1])

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def on_rename(ls: _Server, params: types.RenameParams) -> types.WorkspaceEdit:
        document, offset = ls.at(params)
        try:
            edits = rename(document, offset, params.new_name)
        except RenameRefused as refused:
            raise JsonRpcException(str(refused), types.LSPErrorCodes.RequestFailed) from refused
        return _changes(document, edits)

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def on_formatting(ls: _Server, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        return formatted(ls.documents[params.text_document.uri])

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    )
    def on_code_action(ls: _Server, params: types.CodeActionParams) -> list[types.CodeAction]:
        document = ls.documents[params.text_document.uri]
        place = document.positions.offset
        return [
            types.CodeAction(
                offer.title, types.CodeActionKind.QuickFix, [diagnostic(document, offer.finding)],
                edit=_changes(document, [(offer.fix.span, offer.fix.new)]),
            )
            for offer in offers(document, Span(place(params.range.start), place(params.range.end)))
        ]  # fmt: skip


def _changes(document: Document, edits: list[tuple[Span, str]]) -> types.WorkspaceEdit:
    found = [types.TextEdit(document.positions.range(span), new) for span, new in edits]
    return types.WorkspaceEdit(changes={document.uri: found})
