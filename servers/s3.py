"""A store of objects on loopback that speaks S3: what is asked of it, and a fault in the middle of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote

import boto3  # type: ignore[import-untyped]
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from servers.ports import free_port

__all__ = ["ObjectStore", "Request"]

_KEY, _SECRET, _REGION = "key", "hush", "us-east-1"
_REFUSED = b"<Error><Code>AccessDenied</Code><Message>the store is gone</Message></Error>"


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked: LIST with the beginning of names, COPY with the new name, else HTTP's method with the name."""

    kind: str
    name: str

    @property
    def changes(self) -> bool:
        """Whether it changes what the store holds."""
        return self.kind in ("PUT", "POST", "COPY", "DELETE")


class ObjectStore:
    """The server, with one bucket after the other: Hadoop keeps its client of a bucket for good.

    `requests` are those of the bucket that came last. A store that is `gone` refuses everything, so that what it holds
    is what a killed process would leave.
    """

    def __init__(self) -> None:
        self._port = free_port()
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", self._port, self._asked, threaded=True, request_handler=_Handler)
        self._lock = threading.Lock()
        self._refuse: Callable[[Request], bool] = _nothing
        self._buckets = 0
        self.requests: list[Request] = []
        self.gone = False

    @property
    def settings(self) -> dict[str, str]:
        """What Hadoop needs to know of it."""
        return {
            "fs.s3a.endpoint": f"http://127.0.0.1:{self._port}",
            "fs.s3a.endpoint.region": _REGION,
            "fs.s3a.access.key": _KEY,
            "fs.s3a.secret.key": _SECRET,
            "fs.s3a.path.style.access": "true",
        }

    def start(self) -> None:
        """Starts the server; returns once it answers."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Stops the server."""
        self._server.shutdown()
        self._server.server_close()

    def new_bucket(self) -> str:
        """Makes an empty bucket, whose requests are counted from now on; returns its name."""
        self._buckets += 1
        name = f"lake-{self._buckets}"
        self.come_back()
        self.client.create_bucket(Bucket=name)
        self.requests = []
        return name

    def go_after(self, changes: int) -> None:
        """Refuses everything once it has made that many more changes."""
        left = changes + 1

        def refuse(request: Request) -> bool:
            nonlocal left
            left -= request.changes
            self.gone |= left == 0
            return self.gone

        self._refuse = refuse

    def refuse(self, which: Callable[[Request], bool]) -> None:
        """Refuses such requests."""
        self._refuse = which

    def come_back(self) -> None:
        """Answers again, and forgets what it was asked."""
        self.gone, self._refuse, self.requests = False, _nothing, []

    @property
    def client(self) -> Any:
        """A client of this store."""
        return boto3.client(
            "s3",
            endpoint_url=self.settings["fs.s3a.endpoint"],
            aws_access_key_id=_KEY,
            aws_secret_access_key=_SECRET,
            region_name=_REGION,
        )

    def _asked(self, environment: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = _request(environment)
        with self._lock:
            self.requests.append(request)
            refused = self._refuse(request)
        if refused:
            start_response(
                "403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(_REFUSED)))]
            )
            return [_REFUSED]
        return self._app(environment, start_response)  # type: ignore[no-any-return]


class _Handler(WSGIRequestHandler):
    """HTTP/1.1, for Hadoop asks before it sends what is long, and waits for the answer."""

    protocol_version = "HTTP/1.1"

    def handle_expect_100(self) -> bool:
        """Leaves the answer to the server, which gives it when the application reads on."""
        return True

    def log(self, type: str, message: str, *args: Any) -> None:
        """Logs nothing: see `ObjectStore.requests`."""


def _nothing(request: Request) -> bool:
    return False


def _request(environment: dict[str, Any]) -> Request:
    method, name = environment["REQUEST_METHOD"], unquote(environment["PATH_INFO"]).lstrip("/").partition("/")[2]
    query = parse_qs(environment.get("QUERY_STRING", ""))
    if method == "GET" and not name:
        return Request("LIST", query.get("prefix", [""])[0])
    if "HTTP_X_AMZ_COPY_SOURCE" in environment:
        return Request("COPY", name)
    return Request(method, name)
