"""A server on loopback that takes OpenLineage's events, or does not."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["LineageServer", "lineage_server"]


class LineageServer:
    """What it was sent: the `events`, and the `requests` with path and headers. It answers with `status`, after
    `delay` seconds."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.status = 201
        self.delay = 0.0
        self.events: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []


@contextmanager
def lineage_server() -> Iterator[LineageServer]:
    """The server, for the length of the context."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body, status = self.rfile.read(int(self.headers["Content-Length"])), found.status
            found.requests.append((self.command, self.path, dict(self.headers)))
            time.sleep(found.delay)
            if status < 300:
                found.events.append(json.loads(body))
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            found.requests.append((self.command, self.path, dict(self.headers)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Not on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found = LineageServer(server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
