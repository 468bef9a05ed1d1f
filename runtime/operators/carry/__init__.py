"""Carrying the state of a topology over to a changed one, or to another number of partitions: rows of old stores in,
rows of new stores out. Not for reading or writing checkpoints: the caller opens the old stores and fills the new ones.
"""

from vsc.runtime.operators.carry.carry import Carried, Carry
from vsc.runtime.operators.carry.told import Told

__all__ = ["Carried", "Carry", "Told"]
