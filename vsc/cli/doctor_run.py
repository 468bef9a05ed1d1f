"""What ``vsc doctor`` asks of a topology and a master: what ``vsc run`` asks before the first row.

A run ends at the first problem; here each question is a check of its own, as far as earlier answers allow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from vsc.cli.checks import Check, asked, tried
from vsc.cli.doctor_spark import checks_on_spark, found_text, sink_name, source_name
from vsc.cli.errors import Refused
from vsc.cli.messages import Messages
from vsc.cli.on_spark import SparkOptions
from vsc.cli.plans import plan_of
from vsc.cli.problems import Problem
from vsc.cli.run_checks import check_checkpoint, check_functions
from vsc.plan.words import counted

if TYPE_CHECKING:
    from vsc.plan.nodes import Plan
    from vsc.runtime.spark.connectors.registry import Ends
    from vsc.runtime.spark.connectors.sink import OpenSink
    from vsc.runtime.spark.connectors.source import OpenSource

__all__ = ["RunChecks"]


@dataclass(frozen=True, slots=True)
class RunChecks:
    """The checks of a run: its topology or plan in `file`, its folders, variables, modules and settings.

    Without a file only Spark is asked; without a checkpoint, nothing about one.
    """

    file: str | None
    checkpoint: str | None
    local_dir: str | None
    variables: Mapping[str, str]
    modules: tuple[str, ...]
    options: SparkOptions
    messages: Messages

    def all(self) -> Iterator[Check]:
        """All checks, in the order in which a user would fix them."""
        plan: Plan | None = None
        ends: Ends | None = None
        fresh: bool | None = None
        if self.file is not None:
            check, plan = asked("topology", partial(self._plan, self.file))
            yield check
            if plan is None:
                return
            check, ends = asked("variables", partial(self._opened, plan))
            yield check
            if ends is None:
                return
            if plan.functions:
                yield tried("functions", partial(self._functions, plan))
            if self.checkpoint is not None:
                check, fresh = asked("checkpoint", partial(self._checkpoint, self.checkpoint, plan, self.file))
                yield check
        systems = [] if ends is None else list(self._systems(ends, fresh))
        yield from (check for check in systems if check.fix is not None)
        check, settings = asked("connector jars", partial(self._settings, plan))
        yield check
        if settings is not None:
            unusable = frozenset(check.name for check in systems if check.fix is not None)
            yield from self._on_spark(settings, plan, ends, unusable, fresh)

    def _plan(self, file: str) -> tuple[str, Plan]:
        try:
            plan = plan_of(file, self.variables, self.messages, warns=True)
        except Refused as refused:
            if isinstance(refused.problem, str):  # the compiler's findings
                self.messages.say("error", refused.problem)
                raise Refused(Problem(f"{file} has errors", "fix them: `vsc check` shows them as well"), 1) from refused
            raise
        return f"{file}: {counted(len(plan.sources), 'source')}, {counted(len(plan.sinks), 'sink')}", plan

    def _opened(self, plan: Plan) -> tuple[str, Ends]:
        from vsc.runtime.spark.base.options import resolve_plan
        from vsc.runtime.spark.connectors.registry import Ends

        return ", ".join(plan.variables) or "none", Ends(resolve_plan(plan, self.variables))

    def _functions(self, plan: Plan) -> str:
        from vsc.runtime.expressions import check_allowed

        check_allowed(plan, self.modules)
        check_functions(plan, self.options)
        return ", ".join(function.reference for function in plan.functions)

    def _checkpoint(self, path: str, plan: Plan, file: str) -> tuple[str, bool | None]:
        fresh = check_checkpoint(path, plan, file, self.options.default_is_local)
        return f"{path}, on a file system that Spark is asked for" if fresh is None else found_text(path, fresh), fresh

    def _systems(self, ends: Ends, fresh: bool | None) -> Iterator[Check]:
        """A check of each source and each sink: what it says without Spark; `fresh`: None if nobody knows."""
        local = self.options.default_is_local
        for source in ends.sources:

            def read(source: OpenSource = source) -> str:
                source.check(local)
                if fresh is not False:
                    source.reach()
                return source.options.connector.kind

            yield tried(source_name(source), read)
        for sink in ends.sinks:

            def written(sink: OpenSink = sink) -> str:
                sink.check()
                sink.reach(bool(fresh), local)
                if fresh is None:
                    sink.reach_schemas()
                return sink.options.connector.kind

            yield tried(sink_name(sink), written)

    def _settings(self, plan: Plan | None) -> tuple[str, Mapping[str, str]]:
        settings = self.options.conf if plan is None else self.options.for_plan(plan)
        fetched = self.options.fetched(settings)
        return f"to fetch: {fetched}" if fetched else "nothing to fetch", settings

    def _on_spark(
        self,
        settings: Mapping[str, str],
        plan: Plan | None,
        ends: Ends | None,
        unusable: Collection[str],
        fresh: bool | None,
    ) -> Iterator[Check]:
        def looked(spark: Any) -> list[Check]:
            return list(checks_on_spark(spark, plan, ends, self.checkpoint, self.local_dir, unusable, fresh))

        from vsc.runtime.spark.query.launch import ASK_DOCTOR

        check, found = asked("Spark", lambda: (f"starts on {self.options.master}", self._run(settings, looked)))
        yield from [replace(check, fix=(check.fix or "").removeprefix(ASK_DOCTOR))] if found is None else found

    def _run(self, settings: Mapping[str, str], work: Callable[[Any], list[Check]]) -> list[Check]:
        return self.options.run("vsc doctor", settings, work)
