"""What a checkpoint says that it is: its id, its number of partitions and the plan that it belongs to; and whether it
goes on with a plan that is not the one that it was made with.

Of a plan, comments, layout and the like do not count. Where all state lies where the new one looks for it
(`vsc.changes.in_place`: names, retention and grace, sinks and their options), the checkpoint goes on, and its plan is
replaced. Anything else is refused, with the verdicts of ``vsc diff`` and the command that makes a checkpoint for the
new plan.

Guarantees: what `read_identity` returns has the form that vsc writes, also where somebody else wrote it: the id becomes
part of paths (local folders, sinks' files), so it is 32 hexadecimal digits, and the plan is one that can be loaded.
Works without Spark.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from vsc.changes import Change, Verdict, compare, decision, in_place, in_words, renames_what_waits
from vsc.plan import Clock, Plan, PlanError, dump, load
from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.base.checksummed import (
    ReadableFiles,
    checksum,
    damaged,
    epochs_in,
    parsed,
    read_checksummed,
    read_json,
    read_text,
    verified,
    with_checksum,
)

__all__ = ["IDENTITY", "PLAN", "REPLACED", "Identity", "changes_in_place", "check_whole", "read_identity"]

FORMAT = 5
"""Of everything in the checkpoint. It goes up with every change after which an older vsc must not read it."""
OLDEST = 2
"""The oldest format that this vsc reads: `vsc.runtime.operators.migrations` has what brings it to the present one."""
IDENTITY = "vsc/identity.json"
PLAN = "vsc/plan.json"
REPLACED = "vsc/purge.json"
"""It is there while a checkpoint is replaced by one from which keys were purged (`replacing`)."""
_ID = re.compile(r"[0-9a-f]{32}")
_IMMATERIAL = {"line", "text", "reason", "decided_by", "format_version", "max_ahead", "depth", "clock_implied"}
"""Members of the plan's JSON that may change: those that only messages see, what rows are taken from now on,
and how deep the paths of records are, which older ones do not have to equal."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A checkpoint's identity; `plan_text` is the plan as it was written.

    `ancestors`: the ids of the checkpoints that it goes on from (`vsc upgrade`), oldest first. `format`: the one in
    which it was read; it is written in the present one.
    """

    id: str
    partitions: int
    plan_text: str
    ancestors: tuple[str, ...] = ()
    format: int = FORMAT

    @property
    def clock(self) -> Clock:
        """The clock of the plan, also of one that this vsc cannot run."""
        return "input" if json.loads(self.plan_text).get("clock") == "input" else "records"

    def dump(self, name: str, before: str | None = None) -> str:
        """The text of its file; `name` is the topology's, for people. `before`: the plan that is there still."""
        data: dict[str, Any] = {"format": FORMAT, "id": self.id, "partitions": self.partitions, "plan": name}
        if self.ancestors:
            data["ancestors"] = list(self.ancestors)
        if before is not None:
            data["plan_check_before"] = checksum(before)
        return with_checksum({**data, "plan_check": checksum(self.plan_text)}, indent=2)

    def plan(self, files: ReadableFiles) -> Plan:
        """The plan. CheckpointError if this vsc cannot run it."""
        try:
            return load(self.plan_text)
        except PlanError as error:
            place = f"{files.root.rstrip('/')}/{PLAN}"
            raise CheckpointError(f"{place} is not a plan that this vsc can run: {error}") from error


def check_whole(files: ReadableFiles) -> None:
    """CheckpointError for a checkpoint that is being replaced."""
    if files.exists(REPLACED):
        raise CheckpointError(
            f"keys are being purged from the checkpoint {files.root}, or that was interrupted",
            "repeat that `vsc store purge`, which finishes it",
        )


def read_identity(files: ReadableFiles) -> Identity:
    """The identity of a checkpoint; CheckpointError if it is not one, is damaged, or has another format version."""
    check_whole(files)
    if not files.exists(IDENTITY):
        raise CheckpointError(
            f"{files.root} is not a checkpoint of vsc", "give the folder that vsc run has as --checkpoint"
        )
    written = read_json(files, IDENTITY)
    version = written.get("format")
    if type(version) is int and not OLDEST <= version <= FORMAT:
        raise CheckpointError(
            f"the checkpoint {files.root} has format version {version}, this vsc reads {OLDEST} to {FORMAT}",
            "run it with the version of vsc that made it, or start with a new checkpoint",
        )
    data = verified(files, IDENTITY, written)
    id_, partitions = data.get("id"), data.get("partitions")
    if type(version) is not int or not isinstance(id_, str) or not _ID.fullmatch(id_):
        raise damaged(files, IDENTITY, "it has no format version, or an id that vsc does not give")
    if type(partitions) is not int or partitions < 1:
        raise damaged(files, IDENTITY, "its number of partitions is not valid")
    ancestors = data.get("ancestors", [])
    if not isinstance(ancestors, list) or not all(isinstance(one, str) and _ID.fullmatch(one) for one in ancestors):
        raise damaged(files, IDENTITY, "an ancestor has an id that vsc does not give")
    text = read_text(files, PLAN)
    if checksum(text) not in (data.get("plan_check"), data.get("plan_check_before")):
        raise damaged(files, PLAN, "its checksum is wrong")
    return Identity(id_, partitions, text, tuple(ancestors), version)


def changes_in_place(files: ReadableFiles, identity: Identity, plan: Plan, topology: str) -> tuple[Change, ...] | None:
    """What changes as the checkpoint goes on with `plan`, which has its clock; None if that is the plan that it has.

    CheckpointError if it cannot go on with it. `topology` is the text of `plan`, as a command names it.
    """
    written, plan = parsed(files, PLAN, identity.plan_text), plan.after(identity.clock)
    if _material(written) == _material(json.loads(dump(plan))):
        return None
    old = identity.plan(files)
    changes = in_place(old, plan)
    if changes is None:
        raise _refused(files, old, plan, topology)
    if any(change.verdict is Verdict.LIMITS and change.kind != "sink" for change in changes):
        _check_finished(files)
    if renames_what_waits(old, plan) and _waiting(files):
        raise CheckpointError(
            f"records wait in the checkpoint {files.root} for other sources, under names that the topology has changed",
            f"run the topology as it was until it has read all of its sources; or {_upgrade(files, topology)}",
        )
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
    told = "\n  ".join(["", *map(in_words, changes)]) if changes else " what it keeps belongs to other places now"
    placed = "".join(f" --position {c.name}=..." for c in changes if c.verdict is Verdict.MOVED)
    decide = decision(changes)
    return CheckpointError(
        f"the topology has changed since the checkpoint {files.root} was made:{told}",
        f"carry it over: {_upgrade(files, topology)}{placed}" + (f" with a decision: {decide}" if decide else ""),
    )


def _upgrade(files: ReadableFiles, topology: str) -> str:
    return f"vsc upgrade {topology} --from {files.root} --checkpoint NEW_FOLDER"


def _waiting(files: ReadableFiles) -> bool:
    """Whether records may wait for other sources, after the newest epoch that is done."""
    done = max(epochs_in(files, "commits"), default=-1)
    pace, report = f"vsc/inputs/{done}.json", f"vsc/epochs/{done}.json"
    if not files.exists(pace):
        return False
    if not files.exists(report):
        return True
    try:
        waiting = json.loads(read_checksummed(files, pace)["pace"])["waiting"]
        states = read_checksummed(files, report)["state"]
        return any({**waiting, **{place: size["waiting"] for place, size in states.items()}}.values())
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(files, pace, "it does not say how many records wait") from error


def _material(plan: Any) -> Any:
    """A plan's JSON without its name and what may change."""
    return {name: _without(part) for name, part in plan.items() if name not in _IMMATERIAL | {"name"}}


def _without(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _without(value) for name, value in part.items() if name not in _IMMATERIAL}
    return [_without(value) for value in part] if isinstance(part, list) else part
