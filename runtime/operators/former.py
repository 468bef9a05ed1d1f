"""Former layouts of what stages keep, and what brings each to the present one.

`LIFTS` is the one place where they are registered: by the kind of store (`StoreInfo.kind`), a function that finds rows
of a former layout below a store's root, by the version in the store's meta row, and rewrites them; it does nothing to
rows of the present one. It is called wherever a partition's state is opened: by a run, within a call, which commits
what it writes; and by a reader (`vsc store`, `vsc upgrade`), on its own copy.

Whoever changes a layout adds a lift here and goes by "Changing the layout of the state" in CONTRIBUTING.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from vsc.plan.nodes import Plan
from vsc.runtime.operators.aggregate import state as aggregate
from vsc.runtime.operators.views.catalog import stores_of
from vsc.runtime.state import passed
from vsc.runtime.state.kv_base import OrderedKV, store_root

__all__ = ["LIFTS", "lift"]

LIFTS: Final[Mapping[str, Callable[[OrderedKV, bytes], None]]] = {
    "groups": aggregate.lift, "windows": aggregate.lift, "sessions": aggregate.lift, "passed": passed.lift,
}  # fmt: skip


def lift(plan: Plan, stage: int, kv: OrderedKV) -> None:
    """Brings the state of a stage and partition of `plan` to the present layout."""
    for store in stores_of(plan):
        if store.stage == stage and store.kind in LIFTS:
            LIFTS[store.kind](kv, store_root(store.prefix))
