"""Runs the nodes of one stage on one batch in columns: each node runs once, then each store is written once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from vsc.plan.nodes import Node, Plan, Stage
from vsc.runtime.operators.columns.failures import Failures
from vsc.runtime.operators.columns.flow import Flow
from vsc.runtime.operators.columns.keyspace import KeySpaces
from vsc.runtime.operators.columns.moments import Routes
from vsc.runtime.operators.operator import Step, operator_of
from vsc.runtime.operators.site import Site
from vsc.runtime.operators.tables.store import open_columns
from vsc.runtime.records import Int64s
from vsc.runtime.state.kv import OrderedKV

__all__ = ["StageBatch"]


class StageBatch:
    """One batch: the flows of the nodes, and what it changes in the stores.

    `spaces` hold the batch's keys. `roots` gives for each cause the number of its source record.
    """

    def __init__(
        self,
        plan: Plan,
        stage: Stage,
        kv: OrderedKV,
        routes: Routes,
        spaces: KeySpaces,
        roots: Callable[[], Int64s],
        failures: Failures,
    ) -> None:
        self._routes = routes
        self._nodes = {name: plan.node(name) for name in stage.nodes}
        self.flows: dict[str, Flow] = {}
        stored = [n for n in self._nodes.values() if n.store is not None and stage.id]  # stage 0 keeps nothing
        self._tables = {n.name: open_columns(kv, stage, n, spaces.of(n.schema)) for n in stored}
        self._steps: dict[str, Step] = {}
        self._sites = {
            name: Site(plan, stage, node, kv, routes, spaces, roots, failures, self._tables, self._step)
            for name, node in self._nodes.items()
        }

    def process(self, entering: Mapping[str, Flow]) -> None:
        """Runs every node that records reach."""
        self.flows.update((name, flow) for name, flow in entering.items() if name not in self._nodes)
        for name, node in self._nodes.items():
            if name in self.flows:
                continue
            feeding = [entering[name]] if name in entering else self._feeding(node)
            if any(flow is not None for flow in feeding):
                self.flows[name] = self._step(name).fed(feeding)

    def waiting(self, name: str) -> tuple[Step, list[tuple[int, Any]]]:
        """Takes out what node `name` holds."""
        step = self._step(name)
        return step, step.waiting()

    def release(self, name: str, step: Step, waiting: list[tuple[int, Any]]) -> None:
        """Emits what node `name` held, each as its own cause, and runs the nodes that this reaches."""
        cause = np.arange(len(waiting), dtype=np.int64)
        self.flows[name] = step.release(waiting, self._routes.released(cause))
        self.process({})

    def commit(self) -> None:
        """Writes all stores. Nothing more can be run."""
        for table in self._tables.values():
            table.commit()
        for step in self._steps.values():
            step.commit()
        # They refer back to the batch: the cycle would keep all of its records until the garbage collector runs.
        self._steps.clear()
        self._sites.clear()

    def _step(self, name: str) -> Step:
        """The operator of node `name`, the same for the whole batch."""
        if name not in self._steps:
            operation = self._nodes[name].operation
            self._steps[name] = operator_of(operation).build(self._sites[name], operation)
        return self._steps[name]

    def _feeding(self, node: Node) -> list[Flow | None]:
        """The records that reach each input of the node; none at an input that is only looked into."""
        taken = len(node.taken)
        found: list[Flow | None] = []
        for port, name in enumerate(node.inputs):
            flow = self.flows.get(name) if port < taken else None
            found.append(None if flow is None else replace(flow, at=self._routes.reach(flow.at, node.name, port)))
        return found
