"""``parse_url``: the parts of a URL as Java's ``java.net.URI`` finds them, which Spark asks."""

from __future__ import annotations

import re
from typing import NoReturn

from vsc.runtime.expressions.failure import fail, short

__all__ = ["part_of_url"]

_WHOLE = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_ESCAPED = r"%[0-9A-Fa-f]{2}"
_OTHER = r"[^\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000!-~]"
"""Characters beyond ASCII that Java lets through: neither controls nor spaces."""
_UNRESERVED = r"A-Za-z0-9_\-!.~'()*"
_PATH = re.compile(rf"(?:[{_UNRESERVED}:@&=+$,;/]|{_ESCAPED}|{_OTHER})*")
_URIC = re.compile(rf"(?:[{_UNRESERVED};/?:@&=+$,\[\]]|{_ESCAPED}|{_OTHER})*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+\-.]*")
_AUTHORITY = re.compile(rf"(?:[{_UNRESERVED}$,;:@&=+\[\]]|{_ESCAPED}|{_OTHER})*")
_SERVER = re.compile(
    rf"(?:((?:[{_UNRESERVED};:&=+$,]|{_ESCAPED}|{_OTHER})*)@)?"
    r"((?:(?:[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?\.)*[A-Za-z](?:[A-Za-z0-9\-]*[A-Za-z0-9])?\.?)"
    r"|(?:\d{1,3}\.){3}\d{1,3}|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.\-]+)?\])"
    r"(?::(\d*))?"
)


def part_of_url(url: str, part: str, key: str | None = None) -> str | None:
    """The `part` of `url`, or the value of `key` in its query; null if it has none. Fails for what is not a URL."""
    found = _WHOLE.fullmatch(url)
    if found is None:
        _refuse(url)
    scheme, authority, path, query, reference = found.groups()
    opaque = scheme is not None and authority is None and not path.startswith("/")
    _check(url, scheme, authority, path, query, reference, opaque)
    if opaque:
        return {"PROTOCOL": scheme, "REF": reference}.get(part)
    if key is not None:
        return _value(query, key) if part == "QUERY" and query is not None else None
    server = _SERVER.fullmatch(authority) if authority else None
    user, host = (server[1], server[2]) if server else (None, None)
    return {
        "AUTHORITY": authority or None,
        "FILE": path if query is None else f"{path}?{query}",
        "HOST": host,
        "PATH": path,
        "PROTOCOL": scheme,
        "QUERY": query,
        "REF": reference,
        "USERINFO": user,
    }.get(part)


def _check(
    url: str, scheme: str | None, authority: str | None, path: str, query: str | None, reference: str | None,
    opaque: bool,
) -> None:  # fmt: skip
    fine = (
        (scheme is None or _SCHEME.fullmatch(scheme))
        and (authority is None or _AUTHORITY.fullmatch(authority))
        and (authority != "" or bool(path) or query is not None)
        and (not opaque or bool(path))
        and (_URIC if opaque else _PATH).fullmatch(path)
        and (query is None or _URIC.fullmatch(query))
        and (reference is None or _URIC.fullmatch(reference))
    )
    if not fine:
        _refuse(url)


def _refuse(url: str) -> NoReturn:
    fail("INVALID_URL", f"the text '{short(url)}' is not a URL")


def _value(query: str, key: str) -> str | None:
    return next((pair.partition("=")[2] for pair in query.split("&") if pair.startswith(f"{key}=")), None)
