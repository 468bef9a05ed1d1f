"""A plan that is not the one that a checkpoint was made with: whether the checkpoint goes on with it, and how.

Comments, layout and the like do not count. Where all state lies where the new plan looks for it
(`vsc.changes.in_place`: names, retention and grace, sinks and their options), the checkpoint goes on, and its plan is
replaced. Anything else is refused, with the verdicts of ``vsc diff`` and the command that makes a checkpoint for the
new plan. Works without Spark.
"""

from __future__ import annotations

import json
from typing import Any

from vsc.changes import Change, Verdict, compare, in_place, in_words
from vsc.plan import Plan, dump
from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.identity import PLAN, Identity
from vsc.runtime.spark.kept_epochs import epochs_in
from vsc.runtime.spark.sealed import ReadableFiles, parsed

__all__ = ["changes_in_place"]

_IMMATERIAL = {"line", "text", "reason", "decided_by", "format_version", "max_ahead", "depth"}
"""Members of the plan's JSON that may change: those that only messages see, what rows are taken from now on,
and how deep the paths of records are, which older ones do not have to equal."""


def changes_in_place(files: ReadableFiles, identity: Identity, plan: Plan, topology: str) -> tuple[Change, ...] | None:
    """What changes as the checkpoint goes on with `plan`; None if that is the plan that it has.

    CheckpointError if it cannot go on with it. `topology` is the text of `plan`, as a command names it.
    """
    if _material(parsed(files, PLAN, identity.plan_text)) == _material(json.loads(dump(plan))):
        return None
    old = identity.plan(files)
    changes = in_place(old, plan)
    if changes is None:
        raise _refused(files, old, plan, topology)
    if any(change.verdict is Verdict.LIMITS and change.kind != "sink" for change in changes):
        _check_finished(files)
    return changes


def _check_finished(files: ReadableFiles) -> None:
    """An epoch that is repeated has to give what it gave: its sinks may have taken some of it."""
    begun, done = (max(epochs_in(files, folder), default=-1) for folder in ("offsets", "commits"))
    if begun > done:
        raise CheckpointError(
            f"the topology has changed since the checkpoint {files.root} was made, in the middle of epoch {begun}",
            "run the topology as it was until that epoch is done, and stop it",
        )


def _refused(files: ReadableFiles, old: Plan, new: Plan, topology: str) -> CheckpointError:
    changes = [change for change in compare(old, new) if change.verdict is not Verdict.KEEP]
    told = "\n  ".join(["", *map(in_words, changes)]) if changes else " its statements stand in another order"
    command = f"vsc upgrade {topology} --from {files.root} --checkpoint NEW_FOLDER"
    rebuilt = [c.name for c in changes if c.kind == "store" and c.verdict is Verdict.REBUILD]
    decide = "".join(f" --reset {name}" for name in rebuilt)
    decide += "".join(f" --position {c.name}=..." for c in changes if c.verdict is Verdict.MOVED)
    return CheckpointError(
        f"the topology has changed since the checkpoint {files.root} was made:{told}",
        f"carry it over: {command}{decide}" + (" (or --accept, to keep what is in a store)" if rebuilt else ""),
    )


def _material(plan: Any) -> Any:
    """A plan's JSON without its name and what may change."""
    return {name: _without(part) for name, part in plan.items() if name not in _IMMATERIAL | {"name"}}


def _without(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _without(value) for name, value in part.items() if name not in _IMMATERIAL}
    return [_without(value) for value in part] if isinstance(part, list) else part
