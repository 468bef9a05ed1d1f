"""Converts state in former layouts to the present one.

`MIGRATIONS` registers the conversions by kind of store (`StoreInfo.kind`): functions that rewrite rows of a former
layout below a store's root, which they recognize by the version in the store's meta row. They leave rows of the present
layout alone. They are called wherever a partition's state is opened: by a run, within a call, which commits what they
write; and by a reader (`vsc store`, `vsc upgrade`), on its own copy.

If you change a layout, add a migration here and follow "Changing the layout of the state" in CONTRIBUTING.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from vsc.plan.nodes import Plan
from vsc.runtime.operators.aggregate.groups import state as aggregate
from vsc.runtime.operators.views.catalog import stores_of
from vsc.runtime.state import passed
from vsc.runtime.state.kv_base import OrderedKV, store_root

__all__ = ["MIGRATIONS", "migrate"]

MIGRATIONS: Final[Mapping[str, Callable[[OrderedKV, bytes], None]]] = {
    "groups": aggregate.migrate, "windows": aggregate.migrate, "sessions": aggregate.migrate, "passed": passed.migrate,
}  # fmt: skip


def migrate(plan: Plan, stage: int, kv: OrderedKV) -> None:
    """Converts the state of a stage and partition of `plan` to the present layout."""
    for store in stores_of(plan):
        if store.stage == stage and store.kind in MIGRATIONS:
            MIGRATIONS[store.kind](kv, store_root(store.prefix))
