"""Compares two plans by meaning: what a change of a topology does to the rows in its stores and sinks.

`nodes` matches nodes and says whether they mean the same; `compare` gives a verdict for every source, store and sink;
`in_place` decides whether a checkpoint can continue unchanged with the new plan; `render` shows the changes. Names of
nodes, comments, the order of statements and derived facts are not part of a meaning.
"""

from vsc.changes.compare import compare
from vsc.changes.in_place import in_place, renames_what_waits
from vsc.changes.model import Change, Verdict
from vsc.changes.render import decision, in_words, render

__all__ = ["Change", "Verdict", "compare", "decision", "in_place", "in_words", "renames_what_waits", "render"]
