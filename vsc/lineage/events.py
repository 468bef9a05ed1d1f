"""OpenLineage's events as JSON (https://openlineage.io): what a job is, and what one of its runs does.

Each event has all that is known at its time, so that none depends on another one having arrived. It is plain JSON:
OpenLineage's client would bring an HTTP client, settings from files and retries that a run would wait for. The tests
read events with its classes, which are made from the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from typing import Literal as Choice

from vsc import __version__
from vsc.lineage.inputs import Inputs, Transformation
from vsc.lineage.job import Job, Read, Written
from vsc.plan.connectors.dataset import Dataset
from vsc.plan.parts import Column
from vsc.plan.types import ArrayType, DataType, MapType, StructType

__all__ = ["EventType", "job_event", "run_event"]

EventType = Choice["START", "RUNNING", "COMPLETE", "ABORT", "FAIL"]

_PRODUCER = "https://github.com/vsc-project/vsc"
_SPEC = "https://openlineage.io/spec"
_EVENTS = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs"
_VERSIONS = {
    "ColumnLineageDatasetFacet": "1-2-0", "ErrorMessageRunFacet": "1-0-1", "InputStatisticsInputDatasetFacet": "1-0-0",
    "JobTypeJobFacet": "2-0-4", "OutputStatisticsOutputDatasetFacet": "1-0-2", "ProcessingEngineRunFacet": "1-1-1",
    "SchemaDatasetFacet": "1-2-0",
}  # fmt: skip
Json = dict[str, Any]


def job_event(job: Job, time: datetime | None = None) -> Json:
    """What a topology is, without a run. `time`: by default now."""
    return _event("JobEvent", time) | {"job": _job(job), **_datasets(job, None, None)}


def run_event(
    job: Job,
    kind: EventType,
    run: str,
    engine: str,
    read: Mapping[str, int],
    written: Mapping[str, int],
    failure: str | None = None,
    time: datetime | None = None,
) -> Json:
    """What the run `run` (a UUID) has done until `time` (by default now): the rows `read` by each source, and `written`
    by each sink, by its id. `engine` is the version of Spark; `failure` why it failed."""
    facets = {
        "processing_engine": _facet(
            "ProcessingEngineRunFacet", version=engine, name="spark", openlineageAdapterVersion=__version__
        )
    }
    if failure is not None:
        facets["errorMessage"] = _facet("ErrorMessageRunFacet", message=failure, programmingLanguage="PYTHON")
    return _event("RunEvent", time) | {
        "eventType": kind,
        "run": {"runId": run, "facets": facets},
        "job": _job(job),
        **_datasets(job, read, written),
    }


def _event(kind: str, time: datetime | None) -> Json:
    at = (time or datetime.now(UTC)).isoformat(timespec="milliseconds")
    return {"eventTime": at, "producer": _PRODUCER, "schemaURL": f"{_EVENTS}/{kind}"}


def _facet(kind: str, **members: object) -> Json:
    url = f"{_SPEC}/facets/{_VERSIONS[kind]}/{kind}.json#/$defs/{kind}"
    return {"_producer": _PRODUCER, "_schemaURL": url, **members}


def _job(job: Job) -> Json:
    facet = _facet("JobTypeJobFacet", processingType="STREAMING", integration="VSC", jobType="TOPOLOGY")
    return {"namespace": job.namespace, "name": job.name, "facets": {"jobType": facet}}


def _datasets(job: Job, read: Mapping[str, int] | None, written: Mapping[str, int] | None) -> Json:
    return {
        "inputs": [_input(found, read) for found in job.reads],
        "outputs": [_output(job, found, written) for found in job.writes],
    }


def _input(found: Read, rows: Mapping[str, int] | None) -> Json:
    dataset = {**found.dataset._asdict(), "facets": {"schema": _schema(found.columns.values())}}
    if rows is not None:
        count = sum(rows.get(source, 0) for source in found.sources)
        dataset["inputFacets"] = {"inputStatistics": _facet("InputStatisticsInputDatasetFacet", rowCount=count)}
    return dataset


def _output(job: Job, found: Written, rows: Mapping[str, int] | None) -> Json:
    fields = {name: {"inputFields": _fields(job, [inputs])} for name, inputs in found.fields.items()}
    lineage = _facet("ColumnLineageDatasetFacet", fields=fields, dataset=_fields(job, found.rows))
    facets = {"schema": _schema(found.columns.values()), "columnLineage": lineage}
    dataset = {**found.dataset._asdict(), "facets": facets}
    if rows is not None:
        count = sum(rows.get(sink, 0) for sink in found.sinks)
        dataset["outputFacets"] = {"outputStatistics": _facet("OutputStatisticsOutputDatasetFacet", rowCount=count)}
    return dataset


def _fields(job: Job, inputs: Iterable[Inputs]) -> list[Json]:
    return [_field(*found) for found in job.inputs(inputs)]


def _field(dataset: Dataset, column: str, transformations: frozenset[Transformation]) -> Json:
    how = [transformation._asdict() for transformation in sorted(transformations)]
    return {**dataset._asdict(), "field": column, "transformations": how}


def _schema(columns: Iterable[Column]) -> Json:
    return _facet("SchemaDatasetFacet", fields=[_column(column.name, column.type) for column in columns])


def _column(name: str, type: DataType) -> Json:
    """A column or a field, with the fields inside of it: OpenLineage knows arrays and maps by their names for parts."""
    match type:
        case StructType(fields):
            return {"name": name, "type": "struct", "fields": [_column(field.name, field.type) for field in fields]}
        case ArrayType(element):
            return {"name": name, "type": "array", "fields": [_column("_element", element)]}
        case MapType(key, value):
            return {"name": name, "type": "map", "fields": [_column("key", key), _column("value", value)]}
        case _:
            return {"name": name, "type": str(type)}
