"""OpenLineage's schema: events read with the classes of its own client, which are generated from that."""

from __future__ import annotations

from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import attr
from openlineage.client import event_v2, facet_v2, serde

__all__ = ["check"]

_FACETS: dict[str, type[Any]] = {
    "columnLineage": facet_v2.column_lineage_dataset.ColumnLineageDatasetFacet,
    "errorMessage": facet_v2.error_message_run.ErrorMessageRunFacet,
    "inputStatistics": facet_v2.input_statistics_input_dataset.InputStatisticsInputDatasetFacet,
    "jobType": facet_v2.job_type_job.JobTypeJobFacet,
    "outputStatistics": facet_v2.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet,
    "processing_engine": facet_v2.processing_engine_run.ProcessingEngineRunFacet,
    "schema": facet_v2.schema_dataset.SchemaDatasetFacet,
}
_KINDS = {"RunEvent": event_v2.RunEvent, "JobEvent": event_v2.JobEvent}


def check(event: dict[str, Any]) -> None:
    """Fails for an event with a member missing, one that the schema does not have, or one of the wrong type or version:
    OpenLineage's client would write something else."""
    kind = _KINDS[event["schemaURL"].rpartition("/")[2]]
    assert _without_empty(serde.Serde.to_dict(_made(kind, event))) == _without_empty(event)


def _made(hint: Any, value: Any) -> Any:
    """A value of a type, made of JSON."""
    if get_origin(hint) in (Union, UnionType):
        [hint] = [one for one in get_args(hint) if one is not type(None)]
    if get_origin(hint) is list:
        assert isinstance(value, list)
        return [_made(get_args(hint)[0], one) for one in value]
    if get_origin(hint) is dict:
        of = get_args(hint)[1]
        is_facet = isinstance(of, type) and issubclass(of, facet_v2.BaseFacet)
        return {name: _made(_FACETS[name] if is_facet else of, one) for name, one in value.items()}
    if attr.has(hint):
        return _object(hint, value)
    if issubclass(hint, Enum):
        return hint(value)
    assert type(value) is hint, f"{value!r} is no {hint}"
    return value


def _object(kind: type[Any], members: dict[str, Any]) -> Any:
    hints = get_type_hints(kind)
    fixed = {one.name for one in attr.fields(kind) if not one.init}  # the class says it: compared with ours afterwards
    given = {name: value for name, value in members.items() if name not in fixed}
    names = {one.name: one.alias for one in attr.fields(kind)}
    return kind(**{names[name]: _made(hints[name], value) for name, value in given.items()})


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        inner = {name: _without_empty(one) for name, one in value.items()}
        return {name: one for name, one in inner.items() if one not in ({}, [], None)}
    return [_without_empty(one) for one in value] if isinstance(value, list) else value
