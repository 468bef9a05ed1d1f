"""The documentation pages of the codes. The folder ``pages`` is a link to ``docs/diagnostics``."""

from __future__ import annotations

import pkgutil

__all__ = ["read_page"]


def read_page(code: str) -> str:
    """The page of `code` as Markdown. Raises FileNotFoundError if the code has no page."""
    data = pkgutil.get_data("vsc.compiler.diagnostics", f"pages/{code}.md")
    if data is None:
        raise FileNotFoundError(code)
    return data.decode("utf-8")
