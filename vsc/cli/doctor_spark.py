"""What ``vsc doctor`` asks in a session of Spark: executors, the checkpoint's storage, sources and sinks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from vsc.cli.checks import Check, asked, tried
from vsc.cli.machine import LEAST_FREE_BYTES
from vsc.plan.words import bytes_text, counted
from vsc.runtime.errors import CheckpointError, SinkError, VscRuntimeError

if TYPE_CHECKING:
    from vsc.plan.nodes import Plan
    from vsc.runtime.spark.base.servers import Servers
    from vsc.runtime.spark.connectors.registry import Ends
    from vsc.runtime.spark.connectors.sink import OpenSink
    from vsc.runtime.spark.connectors.source import OpenSource
    from vsc.runtime.spark.session.on_executor import Answer

__all__ = ["checks_on_spark", "sink_name", "source_name"]

_Looked = list[tuple["Answer", "list[VscRuntimeError]"]]
_OPEN = (
    "open the way to it from there (network policy, security group, firewall); brokers of Kafka are where their "
    "`advertised.listeners` say"
)


def source_name(source: OpenSource) -> str:
    """What the check of a source is called."""
    return f"source {source.node.name}"


def sink_name(sink: OpenSink) -> str:
    """What the check of a sink is called."""
    return f"sink of {sink.sink.owner} (line {sink.sink.line})"


def found_text(checkpoint: str, fresh: bool) -> str:
    """What a checkpoint is for the plan."""
    return f"{checkpoint}, {'new' if fresh else 'the run would go on from it'}"


def checks_on_spark(
    spark: Any,
    plan: Plan | None,
    ends: Ends | None,
    checkpoint: str | None,
    local_dir: str | None,
    unusable: Collection[str],
    fresh: bool | None,
) -> Iterator[Check]:
    """All checks. `plan`: what is to run, with its `ends`; `unusable`: sources and sinks that are known not to be
    usable, by the names of their checks; `fresh`: it has not run yet, None if only Spark can
    tell."""
    servers = {} if ends is None else _servers(ends, unusable)
    check, found = asked("executors", partial(_look, spark, ends, checkpoint, local_dir, tuple(servers)))
    yield Check("Spark", f"{spark.version} runs on {spark.sparkContext.master}")
    yield check
    for answer, problems in found or ():
        yield from _of_executor(answer, problems, servers)
    if checkpoint is not None and plan is not None and fresh is None:
        check, fresh = asked("checkpoint", partial(_opened, spark, plan, checkpoint))
        yield check
    if checkpoint is not None and plan is not None and fresh is False:
        yield from _scale(spark, plan, checkpoint)
    if checkpoint is not None:
        yield tried("storage", partial(_storage, spark, checkpoint, CheckpointError, "the checkpoint"))
    if ends is not None:
        yield from _systems(spark, ends, unusable, fresh is not False)


def _servers(ends: Ends, unusable: Collection[str]) -> dict[Servers, str]:
    """The systems that executors connect to, each with the place of a source or sink that needs it."""
    usable: list[OpenSource | OpenSink] = [one for one in ends.sources if source_name(one) not in unusable]
    usable += [one for one in ends.sinks if sink_name(one) not in unusable]
    found: dict[Servers, str] = {}
    for end in usable:
        for servers in end.servers():
            found.setdefault(servers, end.place)
    return found


def _look(
    spark: Any,
    ends: Ends | None,
    checkpoint: str | None,
    local_dir: str | None,
    servers: tuple[Servers, ...],
) -> tuple[str, _Looked]:
    from vsc.runtime.spark.base.hadoop import default_is_local
    from vsc.runtime.spark.query.shared import shared_by
    from vsc.runtime.spark.session.executors import Executors
    from vsc.runtime.spark.session.packages import packages_of

    shared = () if ends is None else shared_by(spark, ends, checkpoint, default_is_local(spark))
    resolved = None if ends is None else ends.plan
    functions = () if resolved is None else resolved.functions
    found = Executors(spark, shared, packages_of(resolved), local_dir, functions).look(servers)
    return f"{counted(len(found), 'executor')}, {counted(spark.sparkContext.defaultParallelism, 'core')}", found


def _of_executor(answer: Answer, problems: list[VscRuntimeError], servers: dict[Servers, str]) -> Iterator[Check]:
    from vsc.runtime.spark.session.executors import APART_HELP, SECONDS_APART, apart
    from vsc.runtime.spark.session.findings import MEMORY_HELP, short_of_memory

    name = f"executor {answer.host}"
    yield from (Check.of(name, problem) for problem in problems)
    for place, unreached in zip(servers.values(), answer.servers, strict=True):
        if unreached is not None:
            yield Check(name, f"it cannot connect to what {place} needs: {unreached}", _OPEN)
    if abs(answer.ahead) > SECONDS_APART:
        yield Check(name, f"its clock is {apart(answer.ahead)}", APART_HELP, fails=False)
    if (little := short_of_memory(answer)) is not None:
        yield Check(name, little, MEMORY_HELP, fails=False)
    room = f"{bytes_text(answer.free)} free for state"
    if answer.local is None and answer.free < LEAST_FREE_BYTES:
        yield Check(name, room, "free some space, or give --local-dir a bigger disk", fails=False)
    elif not problems:
        yield Check(name, f"{answer.python}, {room} ({answer.folder})")


def _opened(spark: Any, plan: Plan, path: str) -> tuple[str, bool]:
    from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint

    fresh = Checkpoint.open(spark, path, plan, None).fresh
    return found_text(path, fresh), fresh


def _scale(spark: Any, plan: Plan, path: str) -> Iterator[Check]:
    """Whether the state asks for more partitions, by what the newest epochs have said of it."""
    from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
    from vsc.runtime.spark.report.scale import Scale

    def scaled() -> tuple[str, Scale]:
        opened = Checkpoint.open(spark, path, plan, None)
        cores, stages = spark.sparkContext.defaultParallelism, len(plan.stages) - 1
        found = Scale.of(opened.reports(), opened.partitions, stages, cores)
        return str(found), found

    if len(plan.stages) > 1:
        check, found = asked("partitions", scaled)
        yield check if found is None else Check(check.name, check.found, found.advice, fails=False)


def _storage(spark: Any, folder: str, error: type[VscRuntimeError], what: str) -> str:
    from vsc.runtime.spark.base.storage import storage_seconds

    found = storage_seconds(spark, folder, error, what)
    return ", ".join(f"{name} {1000 * took:.0f} ms" for name, took in found.items())


def _systems(spark: Any, ends: Ends, unusable: Collection[str], fresh: bool) -> Iterator[Check]:
    for source in ends.sources:

        def read(source: OpenSource = source) -> str:
            if fresh:
                source.look(spark)
                source.look_at_columns(spark)
            return source.options.connector.kind

        if source_name(source) not in unusable:
            yield tried(source_name(source), read)
    for sink in ends.sinks:

        def into(sink: OpenSink = sink) -> str:
            sink.begin(spark, "")
            kind, folder = sink.options.connector.kind, sink.path()
            return kind if folder is None else f"{kind}: {_storage(spark, folder, SinkError, sink.place)}"

        if sink_name(sink) not in unusable:
            yield tried(sink_name(sink), into)
