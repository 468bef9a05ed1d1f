"""What the passes find out about a topology, which the checks of it ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vsc.compiler.passes.clock import DEFAULT_CLOCK
from vsc.compiler.passes.connectors import Connectors
from vsc.compiler.passes.kinds import Kinds
from vsc.compiler.passes.shapes import Shapes
from vsc.compiler.passes.stores import Stores
from vsc.compiler.passes.versioning import Statuses
from vsc.compiler.passes.windows import Windows
from vsc.compiler.source import SourceFile
from vsc.compiler.topology import Topology
from vsc.plan import Clock, Suppress

__all__ = ["Survey"]


@dataclass(frozen=True, slots=True)
class Survey:
    """A topology with everything that the passes found out about it. Nodes with an error have no facts."""

    source: SourceFile
    topology: Topology
    clock: Clock | None
    quiet: int | None
    order: tuple[str, ...]
    kinds: Kinds
    shapes: Shapes
    stores: Stores
    statuses: Statuses
    connectors: Connectors
    windows: Windows
    suppressed: Mapping[str, Suppress]

    @property
    def settled_clock(self) -> Clock:
        """The clock, or the default one if what is written is none."""
        return self.clock or DEFAULT_CLOCK
