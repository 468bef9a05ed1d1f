"""A real editor's side of the protocol: `vsc lsp` as a process, and a client on its standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

URI = "file:///project/topology.vdsl"


class Editor:
    """An editor with one open file. Places are written as a text with the cursor: ``on |curr``."""

    def __init__(self, client: LanguageClient, encoding: str) -> None:
        self.client, self.text, self.version = client, "", 0
        self.shown_messages: list[str] = []
        self.encoding = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(encoding, encoding)
        self.unit = {"utf-16": 2, "utf-32": 4}.get(encoding, 1)
        self._told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

        def tell(params: types.PublishDiagnosticsParams) -> None:
            self._told.put_nowait(params)

        def show(params: types.ShowMessageParams) -> None:
            self.shown_messages.append(params.message)

        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(tell)
        client.feature(types.WINDOW_SHOW_MESSAGE)(show)

    async def open(self, text: str) -> list[types.Diagnostic]:
        """Opens the file, and gives what is wrong with it."""
        self.text = text
        item = types.TextDocumentItem(URI, "vdsl", self.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return list((await self._told.get()).diagnostics)

    def type(self, text: str) -> None:
        """Changes the text, and waits for nothing."""
        self.text, self.version = text, self.version + 1
        change = types.TextDocumentContentChangeWholeDocument(text)
        document = types.VersionedTextDocumentIdentifier(self.version, URI)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def send(self, raw: bytes) -> None:
        """Sends bytes that need not be a message."""
        assert self.client._server is not None and self.client._server.stdin is not None
        self.client._server.stdin.write(raw)

    async def write(self, text: str) -> list[types.Diagnostic]:
        """Changes the text, and gives what is wrong with the new one, which has to come first."""
        self.type(text)
        told = await self._told.get()
        assert told.version == self.version
        return list(told.diagnostics)

    async def settled(self) -> list[types.Diagnostic]:
        """What is wrong with the text that was typed last; those of earlier ones may come before."""
        while (told := await self._told.get()).version != self.version:
            assert told.version is not None and told.version < self.version
        return list(told.diagnostics)

    async def close(self) -> list[types.Diagnostic]:
        """Closes the file: nothing is wrong with it any more."""
        document = types.TextDocumentIdentifier(URI)
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(document))
        return list((await self._told.get()).diagnostics)

    def at(self, place: str) -> dict[str, Any]:
        """The place of the cursor in the text, which has the words around it once."""
        before, after = place.split("|")
        assert self.text.count(before + after) == 1, place
        offset = self.text.index(before + after) + len(before)
        lines = self.text[:offset].split("\n")
        position = types.Position(len(lines) - 1, len(lines[-1].encode(self.encoding)) // self.unit)
        return {"text_document": types.TextDocumentIdentifier(URI), "position": position}

    def shown(self, place: types.Range) -> str:
        """The text of a range, and its line: ``3: rates``."""
        return f"{place.start.line + 1}: {self.text[self.offset(place.start) : self.offset(place.end)]}"

    def offset(self, position: types.Position) -> int:
        """The offset of a position."""
        lines = self.text.split("\n")
        units = lines[position.line].encode(self.encoding)[: self.unit * position.character]
        return sum(len(line) + 1 for line in lines[: position.line]) + len(units.decode(self.encoding))

    def edited(self, edits: list[types.TextEdit]) -> str:
        """The text with edits."""
        text = self.text
        for edit in sorted(edits, key=lambda e: self.offset(e.range.start), reverse=True):
            text = text[: self.offset(edit.range.start)] + edit.new_text + text[self.offset(edit.range.end) :]
        return text


def session(
    play: Callable[[Editor], Awaitable[None]], encoding: str = "utf-16", *, known: list[str] | None = None
) -> None:
    """Plays a session with a server of its own, and expects it to end well.

    `encoding` is how places are counted; `known` are the encodings that the editor names, by default this one. An empty
    list stands for an editor that says nothing about them.
    """
    asyncio.run(_played(play, encoding, [encoding] if known is None else known))


async def _played(play: Callable[[Editor], Awaitable[None]], encoding: str, known: list[str]) -> None:
    async with _editor(encoding, known) as editor:
        await asyncio.wait_for(play(editor), 60)


@asynccontextmanager
async def _editor(encoding: str, known: list[str]) -> AsyncIterator[Editor]:
    client = LanguageClient("an editor", "1")
    await client.start_io(sys.executable, "-m", "vsc", "lsp")
    process = client._server
    assert process is not None
    try:
        general = types.GeneralClientCapabilities(position_encodings=known or None)
        capabilities = types.ClientCapabilities(general=general)
        await client.initialize_async(types.InitializeParams(capabilities))
        client.initialized(types.InitializedParams())
        yield Editor(client, encoding)
        await client.shutdown_async(None)
        client.exit(None)
        assert await asyncio.wait_for(process.wait(), 30) == 0
    finally:
        if process.returncode is None:
            process.kill()
        await client.stop()
