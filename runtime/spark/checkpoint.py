"""The identity of a checkpoint: which plan it belongs to, how many partitions, and its id.

Layout, beside Spark's own folders in the checkpoint:

    vsc/identity.json      {"format": 2, "id": ..., "partitions": ..., "plan": name of the topology,
                            "plan_check": CRC-32 of plan.json}
    vsc/plan.json          the plan, unresolved: variables stay variables, so no secrets
    vsc/control/*.txt      the control source
    vsc/epochs/N.json      what epoch N did (the newest few)
    vsc/inputs/N.json      for which sources epoch N waits, from before it runs (the newest few)

The JSON files other than the plan end with a member "check", the CRC-32 of those before it.

Guarantees: a changed plan, another number of partitions, another format version and a folder that is not vsc's are
refused before anything is written, with what differs.
"""

from __future__ import annotations

import json
import logging
import uuid
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from vsc.plan import Plan, dump
from vsc.runtime.errors import CheckpointError
from vsc.runtime.spark.control import DRAIN, START, WAKE
from vsc.runtime.spark.counters import EpochReport
from vsc.runtime.spark.hadoop import Files, usable

__all__ = ["Checkpoint", "differences"]

FORMAT = 2
KEPT_EPOCHS = 100
_log = logging.getLogger(__name__)
_SPARK_NAMES = {"offsets", "commits", "sources", "state", "metadata"}
_IMMATERIAL = {"line", "text", "reason", "decided_by", "format_version"}
"""Members of the plan's JSON that only messages see."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An opened checkpoint: see `open`."""

    files: Files
    id: str
    partitions: int
    fresh: bool

    @classmethod
    def open(cls, spark: SparkSession, path: str, plan: Plan, partitions: int | None) -> Checkpoint:
        """Opens the checkpoint, or a `fresh` one, which `create` writes. CheckpointError if it is refused.

        `partitions` None: what the checkpoint has, else 4.
        """
        if partitions is not None and partitions < 1:
            raise CheckpointError(f"there cannot be {partitions} partitions", "give a number from 1 on")
        if not path.strip():
            raise CheckpointError("the checkpoint has no name", "give the path of a folder of its own")
        with _usable(path):
            return cls._open(Files(spark, path), path, plan, partitions)

    @classmethod
    def _open(cls, files: Files, path: str, plan: Plan, partitions: int | None) -> Checkpoint:
        if files.exists("vsc/identity.json"):
            return cls._existing(files, plan, partitions)
        found = [name for name in files.names() if not name.startswith(".") and name != "vsc"]
        if found:
            kind = "a checkpoint of another Spark query" if _SPARK_NAMES & set(found) else f"not empty ({found[0]})"
            raise CheckpointError(f"the checkpoint folder {path} is {kind}", "give a folder of its own")
        return cls(files, uuid.uuid4().hex, partitions or 4, True)

    @classmethod
    def _existing(cls, files: Files, plan: Plan, partitions: int | None) -> Checkpoint:
        version = _json(files, "vsc/identity.json").get("format")
        if type(version) is int and version != FORMAT:
            raise CheckpointError(
                f"the checkpoint {files.root} has format version {version}, this vsc writes {FORMAT}",
                "run it with the version of vsc that made it, or start with a new checkpoint",
            )
        identity = _unsealed(files, "vsc/identity.json")
        id_, kept = identity["id"], identity["partitions"]
        if identity.get("plan_check") != _check(_read(files, "vsc/plan.json")):
            raise _damaged(files, "vsc/plan.json", "its checksum is wrong")
        found = list(differences(_json(files, "vsc/plan.json"), json.loads(dump(plan))))
        if found:
            shown = "; ".join(found[:5]) + (f"; and {len(found) - 5} more" if len(found) > 5 else "")
            raise CheckpointError(
                f"the topology has changed since the checkpoint {files.root} was made: {shown}",
                "run the old topology, or start the new one with a checkpoint of its own",
            )
        if partitions is not None and partitions != kept:
            raise CheckpointError(
                f"the checkpoint {files.root} has {kept} partitions, not {partitions}",
                f"run it with --partitions {kept}, or start with a new checkpoint",
            )
        return cls(files, id_, kept, False)

    def create(self, plan: Plan) -> None:
        """Writes a fresh checkpoint: from now on it is for `plan` alone. CheckpointError if the folder is unusable.

        Whoever calls this has claimed the folder.
        """
        with _usable(self.files.root):
            if self.files.exists("vsc/identity.json"):
                raise CheckpointError(
                    f"another query has made the checkpoint {self.files.root} just now",
                    "give one of them another folder",
                )
            self.files.make("vsc/control")
            self.files.make("vsc/epochs")
            self.files.make("vsc/inputs")
            self.files.write("vsc/control/0-start.txt", START + "\n")
            text = dump(plan)
            self.files.write("vsc/plan.json", text)
            identity: dict[str, Any] = {"format": FORMAT, "id": self.id, "partitions": self.partitions}
            identity |= {"plan": plan.name, "plan_check": _check(text)}
            self.files.write("vsc/identity.json", _sealed(identity, indent=2))

    @property
    def control(self) -> str:
        """The folder of the control source."""
        return self.files.path("vsc/control")

    def request_drain(self) -> None:
        """Asks every partition, in an epoch to come, to move its clocks to the end."""
        self.files.write(f"vsc/control/{uuid.uuid4().hex}-{DRAIN}.txt", DRAIN + "\n")

    def request_wake(self) -> None:
        """Asks for an epoch, even if there is nothing to read, in which every partition is called."""
        self.files.write(f"vsc/control/{uuid.uuid4().hex}-{WAKE}.txt", WAKE + "\n")

    def keep(self, report: EpochReport) -> None:
        """Keeps what an epoch did; forgets the oldest."""
        self.files.write(f"vsc/epochs/{report.epoch}.json", _sealed(report.as_dict()))
        old = report.epoch - KEPT_EPOCHS
        if old >= 0:
            self.files.delete(f"vsc/epochs/{old}.json")

    def reports(self) -> Iterator[EpochReport]:
        """What is known of the newest epochs, oldest first."""
        for epoch in self._epochs():
            try:
                yield self._report(epoch)
            except CheckpointError as error:
                _log.warning("%s: that epoch is left out of what is shown", error.message)

    def report(self, epoch: int) -> EpochReport | None:
        """What `epoch` did; None if that is not known."""
        return self._report(epoch) if self.files.exists(f"vsc/epochs/{epoch}.json") else None

    def newest(self) -> EpochReport | None:
        """What the newest epoch of which anything is known did."""
        epochs = self._epochs()
        return self.report(epochs[-1]) if epochs else None

    def keep_pace(self, epoch: int, pace: str) -> None:
        """Keeps the pace of an epoch (`vsc.runtime.spark.pace`) before it runs; forgets the oldest."""
        self.files.write(f"vsc/inputs/{epoch}.json", _sealed({"pace": pace}))
        if epoch >= KEPT_EPOCHS:
            self.files.delete(f"vsc/inputs/{epoch - KEPT_EPOCHS}.json")

    def pace(self, epoch: int) -> str | None:
        """The pace that was kept for `epoch`; None if there is none. CheckpointError if it is damaged."""
        name = f"vsc/inputs/{epoch}.json"
        return str(_unsealed(self.files, name)["pace"]) if self.files.exists(name) else None

    def forget_after(self, epoch: int) -> None:
        """Forgets the reports and paces of later epochs."""
        for folder in ("vsc/epochs", "vsc/inputs"):
            for number in reversed(self._numbers(folder)):
                if number > epoch:
                    self.files.delete(f"{folder}/{number}.json")

    def _report(self, epoch: int) -> EpochReport:
        return EpochReport.from_dict(_unsealed(self.files, f"vsc/epochs/{epoch}.json"))

    def _epochs(self) -> list[int]:
        return self._numbers("vsc/epochs")

    def _numbers(self, folder: str) -> list[int]:
        names = [n.removesuffix(".json") for n in self.files.names(folder) if not n.startswith(("_", "."))]
        return sorted(int(n) for n in names if n.isdigit())


def _check(text: str) -> int:
    return zlib.crc32(text.encode())


def _read(files: Files, name: str) -> str:
    try:
        return files.read(name)
    except (Py4JJavaError, OSError) as error:
        java = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
        raise _damaged(files, name, java.partition("\n")[0]) from error


def _json(files: Files, name: str) -> dict[str, Any]:
    try:
        found = json.loads(_read(files, name))
    except (ValueError, RecursionError) as error:
        raise _damaged(files, name, "it is cut or no JSON") from error
    if not isinstance(found, dict):
        raise _damaged(files, name, "it is no JSON object")
    return found


def _sealed(data: dict[str, Any], indent: int | None = None) -> str:
    """The text of a JSON file that ends with the checksum of what stands before it."""
    return json.dumps({**data, "check": _check(json.dumps(data))}, indent=indent) + "\n"


def _unsealed(files: Files, name: str) -> dict[str, Any]:
    """What `_sealed` wrote. CheckpointError that names the file if it is damaged."""
    data = _json(files, name)
    check = data.pop("check", None)
    if check != _check(json.dumps(data)):
        raise _damaged(files, name, "its checksum is wrong")
    return data


def _damaged(files: Files, name: str, why: str) -> CheckpointError:
    return CheckpointError(f"{files.path(name)} is damaged: {why}", "restore it from a copy of the checkpoint's folder")


def _usable(path: str) -> AbstractContextManager[None]:
    return usable(CheckpointError, f"the checkpoint folder {path}", "give a folder that can be made and written")


def differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """How two plans, as JSON, differ in what matters: one phrase a difference, nodes by their name."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            if name in _IMMATERIAL:
                continue
            here = f"{place}.{name}" if place else name
            if name not in old:
                yield f"{here} is new"
            elif name not in new:
                yield f"{here} is gone"
            else:
                yield from differences(old[name], new[name], here)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_differences(old, new, place)
    elif old != new:
        yield f"{place} was {_shown(old)}, is {_shown(new)}"


def _list_differences(old: list[Any], new: list[Any], place: str) -> Iterator[str]:
    if not all(_names(side) for side in (old, new)):
        if len(old) != len(new):
            yield f"{place} was {_shown(old)}, is {_shown(new)}"
            return
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            label = a.get("name", i) if isinstance(a, dict) else i
            yield from differences(a, b, f"{place}[{label}]")
        return
    before, after = ({x["name"]: x for x in side} for side in (old, new))
    label = "node '{}'" if place == "nodes" else place + "[{}]"
    for name in after:
        if name not in before:
            yield f"{label.format(name)} is new"
    for name in before:
        if name not in after:
            yield f"{label.format(name)} is gone"
        else:
            yield from differences(before[name], after[name], label.format(name))
    if list(before) != list(after) and before.keys() == after.keys():
        yield f"the order of {place} has changed"


def _names(items: list[Any]) -> bool:
    """Whether every item has a name of its own."""
    found = [x["name"] for x in items if isinstance(x, dict) and "name" in x]
    return len(found) == len(items) == len(set(found))


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
