"""A checkpoint that goes on from another one: its state, its pace and its identity. Where its sources go on is in
`positions`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping

from vsc.plan import Plan
from vsc.plan.words import bytes_text
from vsc.runtime.errors import UpgradeError
from vsc.runtime.operators.steps import stages_in_step, steps_to
from vsc.runtime.spark.base.disks import disk_of
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
from vsc.runtime.spark.checkpoint.epoch_state import EpochState
from vsc.runtime.spark.checkpoint.identity import Identity
from vsc.runtime.spark.exchange.pace import Pace, Wait
from vsc.runtime.spark.upgrade.carried import CarriedOver, State
from vsc.runtime.spark.upgrade.positions import Position

__all__ = ["check_space", "make_successor"]

_BEFORE = -1
"""The epoch before the first."""


def make_successor(
    state: EpochState, was: Identity, new: Files, plan: Plan, partitions: int | None, going_on: list[Position],
    whole: State, tell: Callable[[str], None],
) -> tuple[str, CarriedOver]:  # fmt: skip
    """Makes the checkpoint in `new`, which goes on from `state`; returns its id. Its identity is written last.

    `partitions` None: as before.
    """
    target = Checkpoint(new, uuid.uuid4().hex, partitions or was.partitions, True, ancestors=(*was.ancestors, was.id))
    new.make("vsc/control")
    _write_pace(state.kept, state.epoch, target, plan, going_on)
    carried = whole.write(new, tell)
    target.create(plan)
    return target.id, carried


def _write_pace(old: Checkpoint, epoch: int, new: Checkpoint, plan: Plan, going_on: list[Position]) -> None:
    """Writes how far the sources had come as the pace of the epoch before the first: held records stay in step, and
    topics are known."""
    kept, report = old.pace(epoch), old.report(epoch)
    if kept is None or report is None:
        return
    pace = Pace.load(kept)
    clocks = {name: max(wait.clock, report.clocks.get(name, wait.clock)) for name, wait in pace.waits.items()}
    stood = [(one, one.before.name) for one in going_on if one.given is None and one.before is not None]
    waits = {one.node.name: Wait(clocks[was]) for one, was in stood if was in clocks}
    gone_on, of_input = pace.clocks_after(report), steps_to(plan)
    starts = {one.node.name: gone_on[was] for one, was in stood if was in gone_on and one.node.name in of_input}
    topics = _renamed(old.identities(epoch), {str(one.was): one.source.name for one, _ in stood})
    left = sum(pace.left(report).values())
    stages = stages_in_step(plan)
    # Every partition is called in the first epoch, and reports what it holds.
    waiting = {f"{stages[0]}-0": left} if left and stages else {}
    new.keep_pace(_BEFORE, Pace(waits, waiting, topics=topics, starts=starts).dump())


def _renamed(identities: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """The identities of sources that go on, by their new `names`, and those of all sinks."""
    return {names.get(name, name): id for name, id in identities.items() if name in names or not name.isdigit()}


def check_space(size: int, new: Files, help: str) -> None:
    """Raises UpgradeError if the local disk of the new checkpoint cannot take the state; `help`: what to do then."""
    disk = disk_of(new.local()) if new.is_local else None
    if disk is not None and disk.free < size:
        raise UpgradeError(
            f"the state has {bytes_text(size)}, {bytes_text(disk.free)} are free on the disk of {new.root}",
            help,
        )
