"""A schema registry in this process, for tests without Java: what Confluent documents of its interface, as far as its
client asks for it. It counts what it is asked for."""

from __future__ import annotations

import base64
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

__all__ = ["Double", "running"]


class Double:
    """`asked` counts the requests by their paths. `incompatible` decides whether a schema is refused, given the newest
    one. `login`: the user and the password that it wants."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: Counter[str] = Counter()
        self.incompatible: Callable[[str, str], bool] = lambda old, new: False
        self.login: str | None = None
        self._schemas: list[dict[str, Any]] = []
        self._subjects: dict[str, list[int]] = {}

    def add(self, subject: str, text: Any, kind: str = "AVRO", references: list[dict[str, Any]] | None = None) -> int:
        """Registers a schema; its id."""
        text = text if isinstance(text, str) else json.dumps(text)
        schema = {"schema": text, "schemaType": kind, "references": references or []}
        if schema not in self._schemas:
            self._schemas.append(schema)
        id = self._schemas.index(schema) + 1
        versions = self._subjects.setdefault(subject, [])
        if id not in versions:
            versions.append(id)
        return id

    def guid(self, id: int) -> str:
        """The GUID of a schema."""
        return str(UUID(int=id << 64 | 7))

    def subjects(self) -> dict[str, list[int]]:
        """The ids of each subject's versions."""
        return self._subjects

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """The status and the body of an answer."""
        self.asked[f"{method} {path}"] += 1
        match [unquote(one) for one in path.strip("/").split("/")]:
            case ["schemas", "ids", id]:
                known = int(id) <= len(self._schemas)
                return (200, self._schemas[int(id) - 1]) if known else (404, _error(40403, "Schema not found"))
            case ["schemas", "guids", guid]:
                found = next((i for i in range(1, len(self._schemas) + 1) if self.guid(i) == guid), None)
                return (404, _error(40403, "Schema not found")) if found is None else (200, self._schemas[found - 1])
            case ["subjects", subject, *rest] if rest and rest[0] == "versions" and method == "GET":
                versions = self._subjects.get(subject)
                if versions is None:
                    return 404, _error(40401, f"Subject '{subject}' not found.")
                if rest == ["versions"]:
                    return 200, list(range(1, len(versions) + 1))
                number = len(versions) if rest[1] == "latest" else int(rest[1])
                of = versions[number - 1]
                return 200, {"subject": subject, "version": number, "id": of, **self._schemas[of - 1]}
            case ["subjects", subject, "versions"]:
                if not self._compatible(subject, body["schema"]):
                    return 409, _error(409, "Schema being registered is incompatible with an earlier schema")
                new = self.add(subject, body["schema"], body.get("schemaType", "AVRO"), body.get("references"))
                return 200, {"id": new}
            case ["subjects", subject]:
                wanted = body["schema"]
                versions = self._subjects.get(subject, [])
                there = [one for one in versions if self._schemas[one - 1]["schema"] == wanted]
                if not there:
                    return 404, _error(40403, "Schema not found")
                return 200, {"subject": subject, "version": 1, "id": there[0], **self._schemas[there[0] - 1]}
            case ["compatibility", "subjects", subject, "versions", "latest"]:
                if subject not in self._subjects:
                    return 404, _error(40401, f"Subject '{subject}' not found.")
                return 200, {"is_compatible": self._compatible(subject, body["schema"])}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _compatible(self, subject: str, text: str) -> bool:
        versions = self._subjects.get(subject)
        return versions is None or not self.incompatible(self._schemas[versions[-1] - 1]["schema"], text)


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error_code": code, "message": message}


@contextmanager
def running() -> Iterator[Double]:
    """A registry that answers on loopback."""
    double = Double()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET", None)

        def do_POST(self) -> None:
            self._answer("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, method: str, body: Any) -> None:
            wanted = None if double.login is None else "Basic " + base64.b64encode(double.login.encode()).decode()
            if wanted is not None and self.headers.get("Authorization") != wanted:
                status, found = 401, _error(401, "Unauthorized")
            else:
                status, found = double.answer(method, urlsplit(self.path).path, body)
            data = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    double.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
