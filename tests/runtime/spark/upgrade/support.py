"""An old checkpoint as an upgrade sees it before Spark starts."""

from __future__ import annotations

from pathlib import Path

from vsc.compiler import compile_topology
from vsc.plan import dump
from vsc.runtime.spark.checkpoint.identity import Identity

__all__ = ["ID", "OLD", "checkpoint"]

ID = "0123456789abcdef" * 2
OLD = """
stream s (k string, n bigint, at timestamp) from files (path = '${in}', format = 'json') key k timestamp at;
table t = aggregate s group by k select sum(n) as total;
sink t to noop ();
"""


def checkpoint(folder: Path) -> None:
    """A checkpoint as far as names and small files go: one epoch has ended."""
    for name in ("vsc", "offsets", "commits"):
        (folder / name).mkdir(parents=True)
    identity = Identity(ID, 2, dump(compile_topology(OLD)))
    (folder / "vsc/identity.json").write_text(identity.dump("t"))
    (folder / "vsc/plan.json").write_text(identity.plan_text)
    for name in ("offsets/0", "commits/0"):
        (folder / name).write_text("v1\n")
