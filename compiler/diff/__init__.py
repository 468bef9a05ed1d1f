"""What a change of a topology does to what stands in its stores and sinks: two plans, compared by what they mean.

`nodes` finds which node is which, and whether it means the same; `compare` gives a verdict for every source, store and
sink; `render` shows them. Names of nodes, comments, the order of statements and derived facts are no part of a meaning.
"""

from vsc.compiler.diff.compare import compare
from vsc.compiler.diff.model import Change, Verdict
from vsc.compiler.diff.render import render

__all__ = ["Change", "Verdict", "compare", "render"]
