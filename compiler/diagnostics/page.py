"""The pages of the codes, as they stand in ``docs/diagnostics``: the folder ``pages`` is a link to it."""

from __future__ import annotations

import pkgutil

__all__ = ["read_page"]


def read_page(code: str) -> str:
    """The page of `code` as Markdown. Raises FileNotFoundError if it has none."""
    data = pkgutil.get_data("vsc.compiler.diagnostics", f"pages/{code}.md")
    if data is None:
        raise FileNotFoundError(code)
    return data.decode("utf-8")
