"""Carries the state of a topology over to a changed one, or to another number of partitions.

Takes rows of old stores, returns rows of new stores. The caller reads and writes the checkpoints: it opens the old
stores and fills the new ones.
"""

from vsc.runtime.operators.carry.carry import Carried, Carry
from vsc.runtime.operators.carry.purged import Purged, computed_from, purged, unbounded
from vsc.runtime.operators.carry.stores import Told

__all__ = ["Carried", "Carry", "Purged", "Told", "computed_from", "purged", "unbounded"]
