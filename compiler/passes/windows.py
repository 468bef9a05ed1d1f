"""Which tables are windowed, and by which window; what is wrong with windows and with what is asked of them.

An aggregate begins a window, whatever keeps its key hands it on: filters, maps, stores, `suppress`, and joins. That is
as far as `suppress ... until window closes` reaches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal as Choice

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.suggest import nearest
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.passes.options import OptionCodes, OptionSpec, read_options, too_long
from vsc.compiler.passes.versioning import Statuses
from vsc.compiler.topology import Topology
from vsc.plan import Suppress, Window
from vsc.plan.record import record

__all__ = ["Windows", "check_windows"]

_CODES = OptionCodes(unknown="VSC124", value="VSC125", twice="VSC126")
_GRACE = OptionSpec("duration", "10 minutes")
_KINDS: dict[str, dict[str, OptionSpec]] = {
    "tumbling": {"size": OptionSpec("duration", "1 hour"), "grace": _GRACE},
    "hopping": {
        "size": OptionSpec("duration", "1 hour"), "advance": OptionSpec("duration", "10 minutes"), "grace": _GRACE,
    },
    "sliding": {"difference": OptionSpec("duration", "10 minutes"), "grace": _GRACE},
    "session": {"gap": OptionSpec("duration", "10 minutes"), "grace": _GRACE},
}  # fmt: skip
_NAMES: dict[str, Choice["tumbling", "hopping", "sliding", "session"]] = {
    "tumbling": "tumbling", "hopping": "hopping", "sliding": "sliding", "session": "session",
}  # fmt: skip
_COUNT = OptionSpec("whole number", "10000")


@record
class Windows:
    """The windows of a topology.

    `tables` holds the window of every windowed table. `doubtful` are the tables whose window is wrong, or cannot be
    known since that of an input is. `suppressed` is what every right `suppress` does.
    """

    tables: Mapping[str, Window]
    doubtful: frozenset[str]
    suppressed: Mapping[str, Suppress]


def check_windows(
    topology: Topology, order: tuple[str, ...], kinds: Kinds, statuses: Statuses
) -> tuple[Windows, tuple[Finding, ...]]:
    """The windows, and what is wrong with their options, with joins of windows, with `suppress`."""
    pass_ = _Windows(topology, kinds, statuses, {}, set(), {}, [])
    for name in order:
        declaration = topology.nodes[name]
        if not isinstance(declaration, syntax.SourceDecl) and name in kinds:
            pass_.node(name, declaration.operation)
    return Windows(pass_.tables, frozenset(pass_.doubtful), pass_.suppressed), tuple(pass_.findings)


@record
class _Windows:
    """What has been found so far, and how to find the next."""

    topology: Topology
    kinds: Kinds
    statuses: Statuses
    tables: dict[str, Window]
    doubtful: set[str]
    suppressed: dict[str, Suppress]
    findings: list[Finding]

    def node(self, name: str, operation: syntax.Operation) -> None:
        """Finds out about one node; its inputs come before it."""
        match operation:
            case syntax.Aggregate(window=None):
                return
            case syntax.Aggregate(window=window):
                assert window is not None
                found, wrong = _read(window)
                self.findings.extend(wrong)
                self._keep(name, found, found is None)
            case syntax.Filter(input=read) | syntax.Map(input=read) | syntax.Materialize(input=read):
                self._keep(name, *self._of(read))
            case syntax.Suppress(input=read):
                self._keep(name, *self._of(read))
                self._suppress(name, operation)
            case syntax.Join() if join_form(self.kinds, operation) == "table-table":
                self._join(name, operation)
            case _:
                return

    def _of(self, read: syntax.Input) -> tuple[Window | None, bool]:
        name = read.name.text
        return self.tables.get(name), name in self.doubtful or name not in self.kinds

    def _keep(self, name: str, window: Window | None, doubtful: bool) -> None:
        if doubtful:
            self.doubtful.add(name)
        elif window is not None:
            self.tables[name] = window

    def _join(self, name: str, join: syntax.Join) -> None:
        left, left_doubtful = self._of(join.left)
        right, right_doubtful = self._of(join.right)
        if join.on:
            self._keep(name, left, left_doubtful)
            return
        doubtful = left_doubtful or right_doubtful
        if not doubtful and _shape(left) != _shape(right):
            self.findings.append(self._differ(join, left, right))
            doubtful = True
        longest = max((w for w in (left, right) if w is not None), key=lambda w: w.grace, default=None)
        self._keep(name, longest, doubtful)

    def _differ(self, join: syntax.Join, left: Window | None, right: Window | None) -> Finding:
        labels = tuple(
            Label(read.span, f"`{read.name.text}` has {_words(window)}")
            for read, window in ((join.left, left), (join.right, right))
        )
        return Finding(
            "VSC131", join.right.span,
            f"`{join.left.name.text}` and `{join.right.name.text}` do not have the same windows", labels,
            "give both aggregates the same window, or group one of them without it",
        )  # fmt: skip

    def _suppress(self, name: str, operation: syntax.Suppress) -> None:
        specs = {
            "max_records": _COUNT,
            "max_bytes": _COUNT,
            "when_full": OptionSpec("string", "'fail'", ("fail",) if operation.limit is None else ("emit", "fail")),
        }
        options, wrong = read_options(operation.options, specs, "`suppress`", _CODES)
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
                                     "let it be zero or more"))  # fmt: skip
            return operation.limit.milliseconds
        window, doubtful = self._of(operation.input)
        if window is None:
            name = operation.input.name.text
            status = self.statuses.get(name)
            if not doubtful and not (status is not None and status.versioned):  # a versioned table is refused as such
                wrong.append(
                    Finding("VSC130", operation.input.span, f"`{name}` has no windows to close", (),
                            f"aggregate with a `window`, or write `suppress {name} until time limit 1 minute`")
                )  # fmt: skip
            return None
        return window.grace + (window.size if window.kind == "session" else 0)


def _read(window: syntax.Window) -> tuple[Window | None, list[Finding]]:
    kind = window.kind.text
    specs = _KINDS.get(kind)
    if specs is None:
        near = nearest(kind, _KINDS)
        known = ", ".join(f"`{name}`" for name in _KINDS)
        action = f"write `{near}`" if near is not None else f"use one of {known}"
        return None, [Finding("VSC127", window.kind.span, f"there is no window `{kind}`", (), action)]
    options, wrong = read_options(window.options, specs, f"`{kind}`", _CODES)
    given = {option.name.text for option in window.options}
    wrong += [
        Finding("VSC128", window.span, f"a `{kind}` window needs the option `{name}`", (),
                f"add `{name} = {spec.example}`")
        for name, spec in specs.items() if name != "grace" and name not in given
    ]  # fmt: skip
    lengths: dict[str, int] = {}
    for name, option in options.items():
        if isinstance(option.value, syntax.Duration):
            lengths[name] = option.value.milliseconds
            wrong += _bad_length(kind, name, option)
    wrong += _gaps(options, lengths)
    measure = {"sliding": "difference", "session": "gap"}.get(kind, "size")
    if wrong or measure not in lengths:
        return None, wrong
    size = lengths[measure]
    advance = size if kind == "tumbling" else lengths.get("advance", 0)
    return Window(_NAMES[kind], size, advance, lengths.get("grace", 0)), []


def _bad_length(kind: str, name: str, option: syntax.Option) -> list[Finding]:
    assert isinstance(option.value, syntax.Duration)
    least = 0 if name in ("grace", "difference") else 1
    if option.value.milliseconds >= least:
        return []
    wrong, action = ("negative", "zero or more") if least == 0 else ("zero or negative", "at least one millisecond")
    message = f"the `{name}` of a `{kind}` window cannot be {wrong}"
    return [Finding("VSC125", option.value.span, message, (), f"let it be {action}")]


def _gaps(options: Mapping[str, syntax.Option], lengths: Mapping[str, int]) -> list[Finding]:
    """A hopping window that advances by more than its size would leave records out."""
    if lengths.get("advance", 0) <= lengths.get("size", 0) or lengths.get("size", 0) <= 0:
        return []
    return [
        Finding("VSC125", options["advance"].value.span, "`advance` is longer than `size`: records between two windows "
                "would be lost", (Label(options["size"].value.span, "the size"),),
                "let `advance` be `size` at most")
    ]  # fmt: skip


def _too_few(option: syntax.Option) -> list[Finding]:
    number = _number(option)
    if number is None or number > 0:
        return []
    return [Finding("VSC125", option.value.span, f"`{option.name.text}` is at least 1", (),
                    f"write `{option.name.text} = {_COUNT.example}`, or remove it")]  # fmt: skip


def _number(option: syntax.Option | None) -> int | None:
    if option is None or not isinstance(option.value, syntax.Literal) or not isinstance(option.value.value, int):
        return None
    return option.value.value


def _shape(window: Window | None) -> tuple[object, ...] | None:
    """What has to be equal for two tables to have the same windows."""
    return None if window is None else (window.kind, window.size, window.advance)


def _words(window: Window | None) -> str:
    return "no windows" if window is None else f"{window.kind} windows"
