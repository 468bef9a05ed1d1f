"""What a change of a topology does to what stands in its stores and sinks: two plans, compared by what they mean.

`nodes` finds which node is which, and whether it means the same; `compare` gives a verdict for every source, store and
sink; `in_place` finds whether a checkpoint can go on with the new plan as it is; `render` shows them. Names of nodes,
comments, the order of statements and derived facts are not part of a meaning.
"""

from vsc.changes.compare import compare
from vsc.changes.in_place import in_place
from vsc.changes.model import Change, Verdict
from vsc.changes.render import in_words, render

__all__ = ["Change", "Verdict", "compare", "in_place", "in_words", "render"]
