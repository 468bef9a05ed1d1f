"""The rows of old stores as those of new ones, where each stays in its partition and only places and names change."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from vsc.changes.nodes import Nodes
from vsc.plan import Plan, Stage
from vsc.runtime.errors import UpgradeError
from vsc.runtime.state.kv_base import OrderedKV, store_root

__all__ = ["Carried", "Carry"]

Carried = tuple[int, int, bytes, bytes]
_WAITING = b"#waiting"
_PORT = struct.Struct("<H")


@dataclass(frozen=True, slots=True)
class Carry:
    """`places`: the new (stage, place in it) of each old one whose store is kept; `names`: of nodes, by their old one;
    `stages`: the new one of each old one."""

    places: Mapping[tuple[int, int], tuple[int, int]]
    names: Mapping[str, str]
    stages: Mapping[int, int]

    @classmethod
    def of(
        cls, old: Plan, new: Plan, old_partitions: int, partitions: int, reset: frozenset[str], accept: frozenset[str]
    ) -> Carry:
        """See the class."""
        if partitions != old_partitions:
            raise UpgradeError("another number of partitions is not there yet", f"use --partitions {old_partitions}")
        if reset or accept:
            raise UpgradeError("--reset and --accept are not there yet", "start with a new checkpoint")
        names = {name: node.name for name, node in Nodes(old, new).successors.items()}
        places: dict[tuple[int, int], tuple[int, int]] = {}
        stages: dict[int, int] = {}
        for stage in old.stages:
            for place, name in enumerate(stage.nodes):
                there = _home(new, stage, names.get(name))
                if there is not None:
                    stages.setdefault(stage.id, there.id)
                    places[stage.id, place] = there.id, there.nodes.index(names[name])
        return cls(places, names, stages)

    def told(self, stage: int, partition: int, kv: OrderedKV) -> tuple[int, ...]:
        """What other partitions have to know of this one: nothing."""
        return ()

    def common(self, told: Iterable[tuple[int, ...]]) -> Iterator[Carried]:
        """The rows that stand once in a new partition, of several old ones: none."""
        yield from ()

    def rows(self, stage: int, partition: int, kv: OrderedKV) -> Iterator[Carried]:
        """The new rows that come of an old partition."""
        for key, value in kv.scan(b"\0\1", None):
            length = int.from_bytes(key[:2], "big")
            prefix, rest = key[2 : 2 + length], key[2 + length :]
            if prefix == _WAITING:
                yield self.stages[stage], partition, key, value if rest == b"m" else self._renamed(value)
            else:
                place = self.places.get((stage, int.from_bytes(prefix[:2], "big")))
                if place is not None:
                    yield place[0], partition, store_root(struct.pack(">H", place[1]) + prefix[2:]) + rest, value

    def _renamed(self, value: bytes) -> bytes:
        (length,) = _PORT.unpack_from(value)
        port = self.names[value[2 : 2 + length].decode()].encode()
        return _PORT.pack(len(port)) + port + value[2 + length :]


def _home(new: Plan, stage: Stage, name: str | None) -> Stage | None:
    found = [one for one in new.stages if one.id > 0 and name in one.nodes]
    return next((one for one in found if one.id == stage.id), found[0] if found else None)
