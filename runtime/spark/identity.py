"""What a checkpoint says that it is: its id, its number of partitions and the plan that it belongs to.

Guarantees: what `read_identity` returns has the form that vsc writes, also where somebody else wrote it: the id becomes
part of paths (local folders, sinks' files), so it is 32 hexadecimal digits, and the plan is one that can be loaded.
Works without Spark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from vsc.plan import Plan, PlanError, load
from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.sealed import ReadableFiles, checksum, damaged, read_json, read_text, sealed, verified

__all__ = ["IDENTITY", "PLAN", "Identity", "read_identity"]

FORMAT = 3
"""Of everything in the checkpoint. It goes up with every change after which an older vsc must not read it."""
OLDEST = 2
"""The oldest format that this vsc reads: `vsc.runtime.operators.former` has what brings it to the present one."""
IDENTITY = "vsc/identity.json"
PLAN = "vsc/plan.json"
_ID = re.compile(r"[0-9a-f]{32}")


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

    def dump(self, name: str, before: str | None = None) -> str:
        """The text of its file; `name` is the topology's, for people. `before`: the plan that is there still."""
        data: dict[str, Any] = {"format": FORMAT, "id": self.id, "partitions": self.partitions, "plan": name}
        if self.ancestors:
            data["ancestors"] = list(self.ancestors)
        if before is not None:
            data["plan_check_before"] = checksum(before)
        return sealed({**data, "plan_check": checksum(self.plan_text)}, indent=2)

    def plan(self, files: ReadableFiles) -> Plan:
        """The plan. CheckpointError if this vsc cannot run it."""
        try:
            return load(self.plan_text)
        except PlanError as error:
            place = f"{files.root.rstrip('/')}/{PLAN}"
            raise CheckpointError(f"{place} is not a plan that this vsc can run: {error}") from error


def read_identity(files: ReadableFiles) -> Identity:
    """The identity of a checkpoint, which has one. CheckpointError if it is damaged or has another format version."""
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
