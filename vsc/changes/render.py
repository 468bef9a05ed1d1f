"""Renders changes as text, as JSON, or as annotations of a GitHub workflow."""

from __future__ import annotations

import json
from collections.abc import Sequence

from vsc.changes.model import Change, Verdict

__all__ = ["decision", "in_words", "render"]

_LEVELS = {Verdict.REBUILD: "error", Verdict.MOVED: "error", Verdict.DROPPED: "warning"}


def render(changes: Sequence[Change], form: str, path: str) -> str:
    """The changes in the given form. `path` is the new topology's, for annotations."""
    if form == "json":
        return json.dumps({"changes": [_as_dict(change) for change in changes]}, indent=2) + "\n"
    if form == "github":
        return "".join(_annotation(change, path) for change in changes if change.verdict is not Verdict.KEEP)
    return _table(changes)


def in_words(change: Change) -> str:
    """A change on one line."""
    return f"{change.kind} {change.name}: {change.verdict.value} {_why(change)}".rstrip()


def decision(changes: Sequence[Change]) -> str:
    """The options of `vsc upgrade` that decide about the stores among `changes` to rebuild, and what each one loses."""
    rebuilt = [change for change in changes if change.kind == "store" and change.verdict is Verdict.REBUILD]
    known = {change.name for change in rebuilt}
    shown = [c for c in rebuilt if c.name == c.owner or c.owner not in known]  # a table stands for all of its stores
    lost = {change.owner for change in rebuilt if not change.acceptable}
    kept, held = [c.name for c in shown if c.owner not in lost], [c.name for c in shown if c.gone]
    emptied = [c.name for c in shown if not c.gone]
    options = []
    if kept:
        options.append(f"`--accept {' '.join(kept)}` keeps what the old topology computed, and goes on from it")
    if emptied:
        options.append(
            f"`--reset {' '.join(emptied)}` empties it: what is in there is lost, unless a table can fill it again"
        )
    if held:
        options.append(f"`--reset {' '.join(held)}` drops what it holds back")
    return "; ".join(options)


def _table(changes: Sequence[Change]) -> str:
    rows = [(change.kind, change.name, change.verdict.value, _why(change)) for change in changes]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _why(change: Change) -> str:
    was = f"was `{change.was}`" if change.was is not None else ""
    place = f"(line {change.line})" if change.reason and change.line else ""
    return " ".join(filter(None, [f"{was};" if was and change.reason else was, change.reason, place]))


def _as_dict(change: Change) -> dict[str, object]:
    return {
        "kind": change.kind, "name": change.name, "verdict": change.verdict.value, "reason": change.reason,
        "node": change.node, "line": change.line or None, "was": change.was,
    }  # fmt: skip


def _annotation(change: Change, path: str) -> str:
    level = _LEVELS.get(change.verdict, "notice")
    line = "" if change.verdict is Verdict.DROPPED or change.gone or not change.line else f",line={change.line}"
    escaped = in_words(change).replace("%", "%25").replace("\n", "%0A")
    return f"::{level} file={path}{line}::{escaped}\n"
