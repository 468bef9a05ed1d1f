"""A topology as OpenLineage's job: the datasets that it reads and writes, with their columns and what these depend on.

Guarantees: of a connector's options only those that name its place are looked at, and nothing of these that is a
secret is kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from vsc.lineage.columns import sink_lineages
from vsc.lineage.inputs import Inputs, Transformation, merged
from vsc.plan import Column, Connector, Plan
from vsc.plan.connectors import facts_of
from vsc.plan.connectors.dataset import Dataset
from vsc.plan.connectors.facts import VARIABLE, written
from vsc.plan.secrets import masked

__all__ = ["Job", "Read", "Written", "given_namespace", "job_of"]


def given_namespace() -> str:
    """The namespace of jobs: what the variable ``OPENLINEAGE_NAMESPACE`` says, else ``vsc``."""
    return os.environ.get("OPENLINEAGE_NAMESPACE") or "vsc"


@dataclass(slots=True)
class Read:
    """What is read: the names of the `sources` that read it, and the columns that they take."""

    dataset: Dataset
    sources: list[str] = field(default_factory=list)
    columns: dict[str, Column] = field(default_factory=dict)


@dataclass(slots=True)
class Written:
    """What is written: the ids of the `sinks` that do, the columns, what each depends on (`fields`), and what decides
    which rows there are (`rows`)."""

    dataset: Dataset
    sinks: list[str] = field(default_factory=list)
    columns: dict[str, Column] = field(default_factory=dict)
    fields: dict[str, Inputs] = field(default_factory=dict)
    rows: list[Inputs] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Job:
    """The job. `places` has the dataset of each source that has one: others could not know what is not in it."""

    namespace: str
    name: str
    reads: tuple[Read, ...]
    writes: tuple[Written, ...]
    places: Mapping[str, Dataset]

    def inputs(self, of: Iterable[Inputs]) -> list[tuple[Dataset, str, frozenset[Transformation]]]:
        """What depends on columns of datasets, each with what became of it, in order."""
        found: dict[tuple[Dataset, str], frozenset[Transformation]] = {}
        for (source, column), transformations in merged(*of).items():
            if source in self.places:
                at = self.places[source], column
                found[at] = found.get(at, frozenset()) | transformations
        return [(*at, found[at]) for at in sorted(found)]


def job_of(plan: Plan, namespace: str, variables: Mapping[str, str], files: str = "") -> Job:
    """The job that a topology is, in a `namespace` of jobs.

    `variables` are the values of those that `plan` refers to; one without a value stands in names as it is. `files` is
    the file system of paths without a scheme (empty: this machine's).
    """
    reads: dict[Dataset, Read] = {}
    places: dict[str, Dataset] = {}
    for node in plan.sources:
        dataset = _dataset(node.source.connector, variables, files)
        if dataset is not None:
            places[node.name] = dataset
            read = reads.setdefault(dataset, Read(dataset))
            read.sources.append(node.name)
            read.columns.update((column.name, column) for column in node.source.columns)
    writes: dict[Dataset, Written] = {}
    for lineage in sink_lineages(plan):
        dataset = _dataset(lineage.sink.connector, variables, files)
        if dataset is not None:
            found = writes.setdefault(dataset, Written(dataset))
            found.sinks.append(lineage.sink.id)
            found.columns.update((column.name, column) for column in lineage.columns)
            found.rows.append(lineage.rows)
            for name, inputs in lineage.fields.items():
                found.fields[name] = merged(found.fields.get(name, {}), inputs)
    return Job(namespace, plan.name, tuple(reads.values()), tuple(writes.values()), places)


def _dataset(connector: Connector, variables: Mapping[str, str], files: str) -> Dataset | None:
    options = {
        name: VARIABLE.sub(lambda match: variables.get(match[1], match[0]), written(text))
        for name, text in (*connector.spark_options, *connector.options)
    }
    found = facts_of(connector.kind).dataset(options, files)
    return None if found is None else Dataset(*map(masked, found))
