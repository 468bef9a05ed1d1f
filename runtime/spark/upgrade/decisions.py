"""What an upgrade does with each source, store and sink, and when it has to be asked. Works without Spark."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from vsc.changes import Change, Verdict
from vsc.runtime.errors import ConfigurationError, UpgradeError

__all__ = ["check_decided", "covered", "remarks"]


def check_decided(changes: Sequence[Change], reset: Collection[str], accept: Collection[str]) -> None:
    """UpgradeError if a change cannot be made, or a store needs a decision that was not given; ConfigurationError for a
    name in `reset` or `accept` that is not a store in need of a decision."""
    stores = {change.name: change.verdict for change in changes if change.kind == "store"}
    for option, names in (("--reset", reset), ("--accept", accept)):
        for name in names:
            if name not in stores:
                there = f"there are {', '.join(sorted(stores))}" if stores else "neither topology keeps a store"
                raise ConfigurationError(f"{option} {name}: there is no such store", there)
            if stores[name] is not Verdict.REBUILD:
                raise ConfigurationError(
                    f"{option} {name}: the verdict on this store is `{stores[name].value}`, there is nothing to decide",
                    f"remove `{option} {name}`",
                )
    for name in sorted(covered(reset, changes) & covered(accept, changes)):
        raise ConfigurationError(f"the store {name} is in --reset and in --accept", "decide for one of them")
    _check_stores(changes, covered(reset, changes) | covered(accept, changes))


def covered(names: Collection[str], changes: Sequence[Change]) -> frozenset[str]:
    """The stores in need of a decision that `names` mean. A node's store stands for all stores of that node."""
    asked = [c.name for c in changes if c.kind == "store" and c.verdict is Verdict.REBUILD]
    return frozenset(name for name in asked if name in names or _owner(name) in names)


def _owner(store: str) -> str:
    return store.partition("#")[0]


def _check_stores(changes: Sequence[Change], decided: Collection[str]) -> None:
    open_ = [c for c in changes if c.kind == "store" and c.verdict is Verdict.REBUILD and c.name not in decided]
    if open_:
        found = "".join(f"\n  {c.name}: {c.reason} (line {c.line})" for c in open_)
        known = {c.name for c in open_}
        names = " ".join(c.name for c in open_ if c.name == _owner(c.name) or _owner(c.name) not in known)
        raise UpgradeError(
            f"decide what becomes of these stores:{found}",
            f"`--reset {names}` begins with them empty, `--accept {names}` keeps what is in them; "
            "or start the new topology with a new checkpoint, which reads everything again",
        )


def remarks(changes: Sequence[Change], placed: Collection[str] = ()) -> list[str]:
    """What to know of sources and sinks whose verdict asks for more than the stores do; `placed` are the sources that
    have been given a position."""
    found = []
    for change in changes:
        if change.kind == "sink" and change.verdict is Verdict.REBUILD:
            found.append(f"sink {change.name}: what it holds stays as the old text computed it; new results follow")
        if change.kind == "source" and change.verdict is Verdict.REBUILD:
            found.append(f"source {change.name}: what has been read is not read again; the new text reads the rest")
        if change.kind == "source" and change.verdict is Verdict.NEW and change.name not in placed:
            found.append(f"source {change.name}: begins at its beginning")
        if change.kind == "store" and change.verdict is Verdict.NEW:
            found.append(f"store {change.name}: {change.reason or 'begins empty, with what comes from now on'}")
    return found
