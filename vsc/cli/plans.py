"""The plan of the file that a command runs: a topology, or a plan that ``vsc compile`` has written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from vsc.cli.common import read_text, unknown_variables
from vsc.cli.errors import Refused
from vsc.cli.messages import Messages
from vsc.cli.problems import Problem
from vsc.compiler.files import holds_plan

if TYPE_CHECKING:
    from vsc.plan.nodes import Plan

__all__ = ["plan_of"]


def plan_of(file: str, given: Mapping[str, str], messages: Messages, warns: bool, silent: Collection[str] = ()) -> Plan:
    """The plan in `file`, compiled if it is a topology. With `warns`, the compiler's warnings go to `messages`, but for
    those whose codes are `silent`.

    Raises `Refused`.
    """
    text = read_text(file)
    if holds_plan(file, text):
        _warn_unknown(given, text, messages, warns)
        from vsc.plan import PlanError, load

        try:
            return load(text)
        except PlanError as error:
            message = f"{file} is not a plan that this vsc can run: {error}"
            raise Refused(Problem(message, "create it with `vsc compile`", "VSC907"), 1) from error
    from vsc.compiler.diagnostics.render import render_text
    from vsc.compiler.driver import compile_source

    result = compile_source(text, file, given)
    _warn_unknown(given, result.source.text, messages, warns)
    found = [one for one in result.diagnostics if one.code not in silent]
    shown = render_text(found, result.source.files(), messages.color)
    if result.plan is None:
        raise Refused(shown.rstrip("\n"), 1)
    if found and warns:
        messages.say("warning", shown.rstrip("\n"))
    return result.plan


def _warn_unknown(given: Mapping[str, str], text: str, messages: Messages, warns: bool) -> None:
    for unknown in unknown_variables(given, [text]) if warns else ():
        messages.problem(unknown)
