"""What every `suppress` waits for and holds, and what is wrong with it.

`until window closes` reaches as far as windows do (see `windows`).
"""

from __future__ import annotations

from collections.abc import Mapping

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.kinds import Kinds
from vsc.compiler.passes.options import CLAUSE, read_options, too_long
from vsc.compiler.passes.versioning import Statuses
from vsc.compiler.passes.windows import Windows
from vsc.compiler.topology import Topology
from vsc.plan import Clock, Suppress
from vsc.plan.connectors.facts import OptionSpec
from vsc.plan.record import record

__all__ = ["check_suppress", "suppress_options"]

_COUNT = OptionSpec("whole number", "10000")


def check_suppress(
    topology: Topology, order: tuple[str, ...], clock: Clock, kinds: Kinds, statuses: Statuses, windows: Windows
) -> tuple[Mapping[str, Suppress], tuple[Finding, ...]]:
    """What every valid `suppress` does, and what is wrong with the others."""
    pass_ = _Suppressing(clock, kinds, statuses, windows, {}, [])
    for name in (name for name in order if name in kinds):
        declaration = topology.nodes[name]
        if isinstance(declaration, syntax.DerivedDecl) and isinstance(declaration.operation, syntax.Suppress):
            pass_.node(name, declaration.operation)
    return pass_.suppressed, tuple(pass_.findings)


def suppress_options(windowed: bool) -> Mapping[str, OptionSpec]:
    """The options of a `suppress` until windows close, or of one with a time limit."""
    full = OptionSpec("string", "'fail'", ("fail",) if windowed else ("emit", "fail"))
    return {"max_records": _COUNT, "max_bytes": _COUNT, "when_full": full}


@record
class _Suppressing:
    """What has been found so far; `node` adds the next."""

    clock: Clock
    kinds: Kinds
    statuses: Statuses
    windows: Windows
    suppressed: dict[str, Suppress]
    findings: list[Finding]

    def node(self, name: str, operation: syntax.Suppress) -> None:
        """Examines one node."""
        specs = suppress_options(operation.limit is None)
        options, wrong = read_options(operation.options, specs, "`suppress`", CLAUSE)
        wrong += [finding for n in ("max_records", "max_bytes") if n in options for finding in _too_few(options[n])]
        given = {option.name.text for option in operation.options}
        if "when_full" in options and not given & {"max_records", "max_bytes"}:
            wrong.append(
                Finding("VSC128", options["when_full"].span, "`when_full` needs a bound", (),
                        "add `max_records = N` or `max_bytes = N`, or remove it")
            )  # fmt: skip
        wait = self._wait(operation, wrong)
        self.findings.extend(wrong)
        if wrong or wait is None:
            return
        records, size = (_number(options.get(n)) for n in ("max_records", "max_bytes"))
        bounded = records is not None or size is not None
        full = options["when_full"].value if "when_full" in options else None
        text = full.value if isinstance(full, syntax.Literal) else "fail" if operation.limit is None else "emit"
        self.suppressed[name] = Suppress(
            "window_closes" if operation.limit is None else "time_limit", wait, records, size,
            None if not bounded else "fail" if text == "fail" else "emit",
        )  # fmt: skip

    def _wait(self, operation: syntax.Suppress, wrong: list[Finding]) -> int | None:
        if operation.limit is not None:
            if isinstance(operation.limit, syntax.Variable):
                return None
            if (finding := too_long(operation.limit, "VSC125")) is not None:
                wrong.append(finding)
            elif operation.limit.milliseconds < 0:
                wrong.append(Finding("VSC125", operation.limit.span, "a time limit cannot be negative", (),
                                     "make it zero or more"))  # fmt: skip
            return operation.limit.milliseconds
        name = operation.input.name.text
        window = self.windows.tables.get(name)
        if window is None:
            doubtful = name in self.windows.doubtful or name not in self.kinds
            status = self.statuses.get(name)
            if not doubtful and not (status is not None and status.versioned):  # a versioned table is refused as such
                wrong.append(
                    Finding("VSC130", operation.input.span, f"`{name}` has no windows to close", (),
                            "aggregate with a `window`, or write "
                            + code(f"suppress {named(name)} until time limit ..."))
                )  # fmt: skip
            return None
        if self.clock == "input":
            return window.lingers
        return window.grace + (window.size if window.kind == "session" else 0)  # Kafka's, 1 ms too early (D31)


def _too_few(option: syntax.Option) -> list[Finding]:
    number = _number(option)
    if number is None or number > 0:
        return []
    return [Finding("VSC125", option.value.span, f"`{option.name.text}` must be at least 1", (),
                    "write a larger number, or remove the option")]  # fmt: skip


def _number(option: syntax.Option | None) -> int | None:
    if option is None or not isinstance(option.value, syntax.Literal) or not isinstance(option.value.value, int):
        return None
    return option.value.value
