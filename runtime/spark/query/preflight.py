"""What can be refused of a run before Spark starts, which takes seconds.

Imports little, so that a refusal is quick: nothing of what runs a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from vsc.plan.nodes import Plan
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.expressions import check_allowed
from vsc.runtime.spark.base.job import Run, idle_ms, is_bounded, spark_trigger
from vsc.runtime.spark.base.lineage_target import check_target
from vsc.runtime.spark.base.options import resolve_plan
from vsc.runtime.spark.connectors.registry import Ends
from vsc.runtime.spark.report.bad_rows import MaxBad

__all__ = ["PreparedRun", "check", "prepare"]


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that `prepare` has checked: its sources and sinks are open.

    `local`: paths without a scheme were taken to be on this machine. `reached`: the systems that it reads from and
    writes to have been asked, so that nobody asks them again.
    """

    job: Run
    ends: Ends
    local: bool
    reached: bool = False

    def reach(self, fresh: bool | None) -> PreparedRun:
        """Refuses what is seen of the systems by asking them; `fresh`: the checkpoint is new, None if only Spark can
        tell, which will ask them again then."""
        self.ends.reach(bool(fresh), self.local)
        return replace(self, reached=fresh is not None)


def prepare(job: Run, local: bool = True) -> PreparedRun:
    """Refuses what can be refused without Spark, and without asking another system for it."""
    check_allowed(job.plan, job.options.functions)
    if job.lineage is not None:
        check_target(job.lineage)
    ends = check(job.plan, job.variables, job.trigger, job.max_idle, job.max_bad, local)
    return PreparedRun(job, ends, local)


def check(
    plan: Plan,
    variables: Mapping[str, str],
    trigger: str,
    max_idle: str | None = None,
    max_bad: str | None = None,
    default_local: bool = True,
) -> Ends:
    """Refuses what can be refused without Spark; opens the sources and sinks.

    `default_local`: paths without a scheme are on this machine.
    """
    if max_bad is not None:
        MaxBad.of(max_bad)
    spark_trigger(trigger)
    if max_idle is not None and idle_ms(max_idle) and is_bounded(trigger):
        raise ConfigurationError(
            f"--max-idle {max_idle}: with the trigger {trigger} there is no waiting for new input",
            "use it with a duration as trigger, such as --trigger '10 seconds'",
        )
    if max_idle is not None and plan.quiet is not None:
        raise ConfigurationError(
            f"--max-idle {max_idle}: the topology has a `quiet`, for which sources wait for one that has nothing new",
            "leave --max-idle out, or remove `quiet` from the topology",
        )
    ends = Ends(resolve_plan(plan, variables))
    ends.check(default_local)
    return ends
