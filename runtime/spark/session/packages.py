"""The Python packages that tasks import: what executors have to have, and what an archive for them holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement

from vsc.extras import DISTRIBUTION
from vsc.plan.connectors import FACTS, facts_of
from vsc.plan.nodes import Connector, Plan

__all__ = ["all_packages", "asked_of", "module_of", "packages_of"]

_ALWAYS = ("numpy", "pandas", "pyarrow", "rocksdict", "protobuf")
_MODULES = {"protobuf": "google.protobuf"}


def packages_of(plan: Plan | None) -> tuple[str, ...]:
    """What the tasks of a plan import, by their names for pip; None: those of every plan."""
    return tuple(dict.fromkeys((*_ALWAYS, *(() if plan is None else _of_connectors(plan)))))


def all_packages() -> tuple[str, ...]:
    """What the tasks of any plan may import."""
    every: tuple[dict[str, str], ...] = ({}, {"format": "avro"})
    found = (name for facts in FACTS.values() for role in facts.roles for options in every
             for name in facts.packages(role, options))  # fmt: skip
    return tuple(dict.fromkeys((*_ALWAYS, *found)))


def module_of(package: str) -> str:
    """What is imported of a package."""
    return _MODULES.get(package, package.replace("-", "_"))


def asked_of(packages: Sequence[str]) -> dict[str, Requirement]:
    """What this installation asks of packages: their releases, and their own extras."""
    found = {name: Requirement(name) for name in packages}
    try:
        own = requires(DISTRIBUTION) or ()
    except PackageNotFoundError:  # a checkout that is only on the path
        own = ()
    return found | {one.name: one for one in map(Requirement, own) if one.name in found}


def _of_connectors(plan: Plan) -> Iterator[str]:
    for node in plan.sources:
        yield from facts_of(node.source.connector.kind).packages("source", _options(node.source.connector))
    for sink in plan.sinks:
        yield from facts_of(sink.connector.kind).packages("sink", _options(sink.connector))


def _options(connector: Connector) -> dict[str, str | int | float | bool]:
    return dict(connector.options)
