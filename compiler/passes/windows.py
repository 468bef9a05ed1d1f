"""Which tables are windowed, and by which window; what is wrong with windows, and with joins of them.

An aggregate begins a window; operations that keep the key pass it on: those marked `keeps_windows`, and joins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal as Choice

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.suggest import likely, renamed
from vsc.compiler.diagnostics.zone_names import zone_finding
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.passes.options import CLAUSE, LONGEST, lacking, read_options, to_add
from vsc.compiler.topology import Topology
from vsc.plan import Window
from vsc.plan.connectors.facts import OptionSpec
from vsc.plan.record import record
from vsc.plan.words import MONDAY, WEEK

__all__ = ["WINDOW_OPTIONS", "Windows", "check_windows"]

_MANY = 1_000
"""In so many windows a record may be without a warning."""
_DAY, _MONTH = 86_400_000, 31 * 86_400_000
_SHORTEST_MONTH = 28 * _DAY
_GRACE = OptionSpec("duration", "10 minutes")
_OFFSET = OptionSpec("duration", "6 hours")
WINDOW_OPTIONS: dict[str, dict[str, OptionSpec]] = {
    "tumbling": {
        "size": OptionSpec("duration or weeks or months", "1 hour"), "offset": _OFFSET,
        "zone": OptionSpec("string", "'Europe/Berlin'"), "grace": _GRACE,
    },
    "hopping": {
        "size": OptionSpec("duration", "1 hour"), "advance": OptionSpec("duration", "10 minutes"), "offset": _OFFSET,
        "grace": _GRACE,
    },
    "sliding": {"difference": OptionSpec("duration", "10 minutes"), "grace": _GRACE},
    "session": {"gap": OptionSpec("duration", "10 minutes"), "grace": _GRACE},
}  # fmt: skip
"""The kinds of windows, each with its options."""
_OPTIONAL = ("grace", "offset", "zone")
_NAMES: dict[str, Choice["tumbling", "hopping", "sliding", "session"]] = {
    "tumbling": "tumbling", "hopping": "hopping", "sliding": "sliding", "session": "session",
}  # fmt: skip


@record
class Windows:
    """The windows of a topology.

    `begun` has the aggregate where the windows of each windowed table come from, `tables` the window itself if it is
    valid. `doubtful` are the tables whose window is wrong, or unknown since an input's is wrong.
    """

    begun: Mapping[str, str]
    tables: Mapping[str, Window]
    doubtful: frozenset[str]


def check_windows(topology: Topology, order: tuple[str, ...], kinds: Kinds) -> tuple[Windows, tuple[Finding, ...]]:
    """The windows, and what is wrong with their options and with joins of windows."""
    pass_ = _Windows(kinds, {}, {}, set(), [])
    for name in order:
        declaration = topology.nodes[name]
        if not isinstance(declaration, syntax.SourceDecl) and name in kinds:
            pass_.node(name, declaration.operation)
    return Windows(pass_.begun, pass_.tables, frozenset(pass_.doubtful)), tuple(pass_.findings)


@record
class _Windows:
    """What has been found so far; `node` adds the next."""

    kinds: Kinds
    begun: dict[str, str]
    tables: dict[str, Window]
    doubtful: set[str]
    findings: list[Finding]

    def node(self, name: str, operation: syntax.Operation) -> None:
        """Examines one node; its inputs come before it."""
        if isinstance(operation, syntax.Aggregate):
            if operation.window is not None:
                self.begun[name] = name
                found, wrong = _read(operation.window)
                self.findings.extend(wrong)
                self._keep(name, found, found is None)
        elif isinstance(operation, syntax.Join):
            if join_form(self.kinds, operation) == "table-table":
                self._join(name, operation)
        elif operation.keeps_windows:
            self._begun_by(name, operation.inputs[0])
            self._keep(name, *self._of(operation.inputs[0]))

    def _of(self, read: syntax.Input) -> tuple[Window | None, bool]:
        name = read.name.text
        return self.tables.get(name), name in self.doubtful or name not in self.kinds

    def _begun_by(self, name: str, read: syntax.Input) -> None:
        if (begun := self.begun.get(read.name.text)) is not None:
            self.begun[name] = begun

    def _keep(self, name: str, window: Window | None, doubtful: bool) -> None:
        if doubtful:
            self.doubtful.add(name)
        elif window is not None:
            self.tables[name] = window

    def _join(self, name: str, join: syntax.Join) -> None:
        left, left_doubtful = self._of(join.left)
        right, right_doubtful = self._of(join.right)
        if join.on or join.right.name.text in self.begun:
            self._begun_by(name, join.left)
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


_ELSEWHERE = {"hop": "hopping", "tumble": "tumbling", "session_window": "session", "fixed": "tumbling"}
"""What other systems call windows."""


def _read(window: syntax.Window) -> tuple[Window | None, list[Finding]]:
    kind = window.kind.text
    specs = WINDOW_OPTIONS.get(kind)
    if specs is None:
        near = likely(kind, WINDOW_OPTIONS, _ELSEWHERE)
        known = ", ".join(f"`{name}`" for name in WINDOW_OPTIONS)
        action = f"write `{near}`" if near is not None else f"use one of {known}"
        fix = renamed(window.kind.span, kind, WINDOW_OPTIONS)
        return None, [Finding("VSC127", window.kind.span, f"there is no window `{kind}`", (), action, fix)]
    options, wrong = read_options(window.options, specs, f"`{kind}`", CLAUSE)
    wrong += [
        Finding("VSC128", window.span, f"a `{kind}` window needs the option `{name}`", (),
                to_add(name, specs[name]))
        for name in lacking([name for name in specs if name not in _OPTIONAL], window.options, specs)
    ]  # fmt: skip
    lengths = {name: length for name, option in options.items() if (length := _length(option.value)) is not None}
    for name, length in lengths.items():
        wrong += _bad_length(kind, name, options[name], length)
    wrong += [*_gaps(options, lengths), *_bad_offset(options, lengths), *_bad_zone(options, lengths)]
    measure = {"sliding": "difference", "session": "gap"}.get(kind, "size")
    if wrong or measure not in lengths:
        return None, wrong
    size, written = lengths[measure], options[measure].value
    advance = size if kind == "tumbling" else lengths.get("advance", 0)
    offset, months = lengths.get("offset", 0), 0
    if isinstance(written, syntax.CalendarLength):
        months = written.months
        offset = (offset + MONDAY) % size if written.weeks else offset
    found = Window(_NAMES[kind], size, advance, lengths.get("grace", 0), offset, _text(options.get("zone")), months)
    return found, _too_many(options, size, advance)


def _length(value: object) -> int | None:
    """A length in ms: of months, what the longest ones have."""
    match value:
        case syntax.Duration(milliseconds=length):
            return length
        case syntax.CalendarLength(weeks=weeks, months=months):
            return weeks * WEEK + months * _MONTH
    return None


def _text(option: syntax.Option | None) -> str | None:
    if option is None or not isinstance(option.value, syntax.Literal):
        return None
    return str(option.value.value)


def _bad_offset(options: Mapping[str, syntax.Option], lengths: Mapping[str, int]) -> list[Finding]:
    """Refuses an offset by which windows would begin where others do, or that some months do not have."""
    size = options.get("size")
    if "offset" not in lengths or size is None:
        return []
    of = "advance" if "advance" in lengths else "size"
    limit = lengths.get(of, 0)
    if isinstance(size.value, syntax.CalendarLength) and size.value.months:
        message, limit = "not every month has a day for this `offset`", _SHORTEST_MONTH
        help = "make it shorter than 28 days"
    else:
        message = f"`offset` is not shorter than the `{of}`"
        help = f"make it shorter than the `{of}`"
    if lengths["offset"] < limit or limit <= 0:
        return []
    label = Label(options[of].value.span, f"the {of}")
    return [Finding("VSC125", options["offset"].value.span, message, (label,), help)]


def _bad_zone(options: Mapping[str, syntax.Option], lengths: Mapping[str, int]) -> list[Finding]:
    """Refuses a zone that does not exist, and one for windows that are shorter than the days in it, or longer by some
    hours."""
    zone = options.get("zone")
    name = _text(zone)
    if zone is None or name is None:
        return []
    if (wrong := zone_finding("VSC125", name, zone.value.span)) is not None:
        return [wrong]
    if lengths.get("size", 0) % _DAY == 0:
        return []
    label = Label(options["size"].value.span, "the size")
    help = "give a size in days, weeks or months, or remove the `zone`; `offset` moves the windows"
    return [Finding("VSC125", zone.span, "a `zone` is for windows of whole days", (label,), help)]


def _bad_length(kind: str, name: str, option: syntax.Option, length: int) -> list[Finding]:
    if length > LONGEST:
        return [Finding("VSC125", option.value.span, "this is longer than event time can hold", (), "make it shorter")]
    least = 0 if name in ("grace", "difference", "offset") else 1
    if length >= least:
        return []
    wrong, action = ("negative", "zero or more") if least == 0 else ("zero or negative", "at least one millisecond")
    message = f"the `{name}` of a `{kind}` window cannot be {wrong}"
    return [Finding("VSC125", option.value.span, message, (), f"make it {action}")]


def _gaps(options: Mapping[str, syntax.Option], lengths: Mapping[str, int]) -> list[Finding]:
    """Refuses a hopping window that advances by more than its size: records would be left out."""
    if lengths.get("advance", 0) <= lengths.get("size", 0) or lengths.get("size", 0) <= 0:
        return []
    return [
        Finding("VSC125", options["advance"].value.span, "`advance` is longer than `size`: records between two windows "
                "would be lost", (Label(options["size"].value.span, "the size"),),
                "make `advance` no longer than `size`")
    ]  # fmt: skip


def _too_many(options: Mapping[str, syntax.Option], size: int, advance: int) -> list[Finding]:
    """Warns of a hopping window that advances so little that each record is in thousands of windows."""
    if not advance or size // advance <= _MANY:
        return []
    message = f"each record is in {size // advance:,} windows, and changes a row of each"
    label = Label(options["size"].value.span, "the size")
    help = "make `advance` longer; a `sliding` window has a row only where the records in it change"
    return [Finding("VSC344", options["advance"].value.span, message, (label,), help)]


def _shape(window: Window | None) -> tuple[object, ...] | None:
    """What must be equal for two tables to have the same windows."""
    return None if window is None else window.shape


def _words(window: Window | None) -> str:
    return "no windows" if window is None else f"{window.kind} windows"
