"""The join of two streams: the key that both have, and how far apart in time records meet."""

from __future__ import annotations

from collections.abc import Mapping

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.keys import JoinKey, different_keys
from vsc.compiler.passes.options import CLAUSE, lacking, read_options, to_add, too_long
from vsc.plan import Schema
from vsc.plan.connectors.facts import OptionSpec
from vsc.plan.record import record

__all__ = ["WITHIN_OPTIONS", "Bounds", "equal_keys_of_streams", "read_bounds"]

WITHIN_OPTIONS = {"before": OptionSpec("duration", "10 minutes"), "after": OptionSpec("duration", "1 hour")}
"""The options of ``within``: both or one; a side that is left out is 0 ms."""


@record
class Bounds:
    """How much earlier (`before`) and later (`after`) the right record of a pair may be, and the `grace`, in ms."""

    before: int
    after: int
    grace: int


def read_bounds(join: syntax.Join, has_calls: bool) -> tuple[Bounds | None, list[Finding]]:
    """What `within` and `grace` say; None if they are wrong. Where a join `has_calls`, these say what is too short."""
    within = join.within
    assert within is not None
    if within.duration is not None:
        sides: Mapping[str, syntax.Duration] = {"before": within.duration, "after": within.duration}
        findings = [problem] if (problem := too_long(within.duration, "VSC125")) is not None else []
    else:
        options, findings = read_options(within.sides, WITHIN_OPTIONS, "`within`", CLAUSE)
        if len(lacking(WITHIN_OPTIONS, within.sides, WITHIN_OPTIONS)) == len(WITHIN_OPTIONS):
            needed = "`within` needs the option `before` or `after`"
            findings.append(Finding("VSC128", within.span, needed, (), to_add("before", WITHIN_OPTIONS["before"])))
        sides = {name: option.value for name, option in options.items() if isinstance(option.value, syntax.Duration)}
        findings += [
            Finding("VSC125", length.span, f"the `{name}` of `within` cannot be negative", (), "make it zero or more")
            for name, length in sides.items() if length.milliseconds < 0
        ]  # fmt: skip
    grace = 0
    if join.grace is not None and isinstance(join.grace.duration, syntax.Duration):
        findings += [problem] if (problem := too_long(join.grace.duration, "VSC125")) is not None else []
        grace = join.grace.duration.milliseconds
    if findings or not all(isinstance(option.value, syntax.Duration) for option in within.sides):
        return None, findings
    before, after = (sides[name].milliseconds if name in sides else 0 for name in WITHIN_OPTIONS)
    bounds = Bounds(before, after, grace)
    if not has_calls and not bounds.before + bounds.after + bounds.grace:
        message = "nothing is ever joined: with neither length nor grace, the join keeps no record for any time"
        help = f"make `within` longer than zero, or add a grace: {code('within 0 ms grace 1 ms')}"
        return None, [Finding("VSC125", within.span, message, (), help)]
    return bounds, []


def equal_keys_of_streams(join: syntax.Join, left: Schema, right: Schema) -> tuple[JoinKey | None, list[Finding]]:
    """The key of both streams, under the names of the left one."""
    keyless = [
        Finding("VSC210", read.span, f"`{read.name.text}` has no key to join by", (), _rekey(read))
        for read, schema in ((join.left, left), (join.right, right)) if not schema.key
    ]  # fmt: skip
    if keyless:
        return None, keyless
    if [c.type for c in left.key] == [c.type for c in right.key]:
        return JoinKey(left.key), []
    return None, [different_keys(join, left, right, _rekey(join.right))]


def _rekey(read: syntax.Input) -> str:
    return f"give it the key of the other one first: {code(f'rekey {named(read.name.text)} by ...')}"
