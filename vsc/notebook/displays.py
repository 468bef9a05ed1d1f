"""How IPython displays plans (a picture with a table of types) and queries (a table that stays current).

Guarantees: IPython is used only if it is already running; elsewhere nothing happens.
"""

from __future__ import annotations

import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING

from vsc.plan import Plan
from vsc.plan.nodes import Node

if TYPE_CHECKING:
    from IPython.core.display_functions import DisplayHandle

    from vsc.runtime.spark.query.running_query import QueryStatus, RunningQuery

__all__ = ["follow", "keep_current", "plan_html", "show_in_ipython"]

_SECONDS = 1
"""Seconds between two updates of a query's status."""
_LEFT = ' style="text-align:left"'


def show_in_ipython() -> None:
    """In IPython, displays plans as pictures, and keeps the displayed status of a query current."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return
    formatters = shell.display_formatter.formatters
    formatters["image/svg+xml"].for_type(Plan, lambda plan: _emit(plan, "svg"))
    formatters["text/html"].for_type(Plan, plan_html)
    formatters["text/plain"].for_type(Plan, lambda plan, printer, cycle: printer.text(_emit(plan, "topology")))
    if hasattr(shell, "kernel"):  # a terminal cannot update what it has shown
        shell.display_formatter.ipython_display_formatter.for_type_by_name(
            "vsc.runtime.spark.query.running_query", "QueryStatus", _stay_current
        )


def plan_html(plan: Plan) -> str:
    """The picture of a plan; below it, the columns of its nodes with their types, and the versioned status."""
    picture = b64encode(_emit(plan, "svg").encode()).decode()  # as an image, so that its styles are its own
    head = "".join(f"<th{_LEFT}>{title}</th>" for title in ("", "kind", "key", "columns", "versioned"))
    rows = "".join(f"<tr>{''.join(_cells(node))}</tr>" for node in plan.nodes if node.part_of is None)
    return (
        f'<img alt="{escape(plan.name)}" src="data:image/svg+xml;base64,{picture}"/>'
        f"<details><summary>columns and types</summary><table><tr>{head}</tr>{rows}</table></details>"
    )


def _emit(plan: Plan, form: str) -> str:
    from vsc.compiler.emit import emit  # only where a plan is shown

    return emit(plan, form)


def _cells(node: Node) -> Iterator[str]:
    key, value = (
        ", ".join(f"{column.name} {column.type}" for column in columns)
        for columns in (node.schema.key, node.schema.value)
    )
    yield f"<th{_LEFT}>{escape(node.name)}</th>"
    for text in (node.kind, key, value, _versioned(node)):
        yield f"<td{_LEFT}>{escape(text)}</td>"


def _versioned(node: Node) -> str:
    if node.status is None:
        return ""
    return f"{'yes' if node.status.versioned else 'no'}: {node.status.reason}"


def _stay_current(status: QueryStatus) -> None:
    """Shows a status and keeps it current until the query has ended."""
    handle = _shown(status)
    if status.query.isActive:
        threading.Thread(target=keep_current, args=(status.query, handle), daemon=True).start()


def follow(query: RunningQuery) -> None:
    """Shows the status of a query until it ends. Raises the query's error."""
    handle = _shown(query.status)
    try:
        while not query.awaitTermination(_SECONDS):
            _update(handle, query)
    finally:
        _update(handle, query)


def keep_current(query: RunningQuery, handle: DisplayHandle) -> None:
    """Updates the display until the query has ended; does not raise the query's error."""
    from pyspark.errors import StreamingQueryException

    while query.isActive:
        with suppress(StreamingQueryException):  # the status shows it
            query.awaitTermination(_SECONDS)
        _update(handle, query)


def _shown(status: QueryStatus) -> DisplayHandle:
    from IPython.display import display

    handle: DisplayHandle = display(_bundle(status), raw=True, display_id=True)
    return handle


def _update(handle: DisplayHandle, query: RunningQuery) -> None:
    handle.update(_bundle(query.status), raw=True)


def _bundle(status: QueryStatus) -> dict[str, str]:
    return {"text/plain": repr(status), "text/html": status._repr_html_()}
