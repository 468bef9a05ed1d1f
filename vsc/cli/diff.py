"""``vsc diff``: what a change of a topology does to its stores, sources and sinks. No Spark, no Java."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from vsc.cli.common import add_variables, print_payload, read_text, variables, warn_unknown
from vsc.cli.errors import UsageError
from vsc.cli.problems import tell_findings

if TYPE_CHECKING:
    from vsc.plan.nodes import Plan

__all__ = ["add_arguments", "execute"]

_FORMATS = ("text", "json", "github")
_PLAN = "vsc/plan.json"
"""The path of the plan in a checkpoint."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument("old", metavar="OLD", help="a topology (.vdsl), a plan (.json), or the folder of a checkpoint")
    parser.add_argument("new", metavar="NEW", help="a topology or a plan")
    parser.add_argument("--format", choices=_FORMATS, default="text", help="(default: text)")
    add_variables(parser)


def execute(args: argparse.Namespace) -> int:
    """Compares. Returns 0 if nothing needs a decision, 1 if something does, or if a topology has errors."""
    from vsc.changes import Verdict, compare, render

    given = variables(args)
    texts: list[str] = []
    plans = [_plan(path, given, texts) for path in (args.old, args.new)]
    warn_unknown(given, texts)
    old, new = plans
    if old is None or new is None:
        return 1
    changes = compare(old, new)
    print_payload(render(changes, args.format, args.new))
    return int(any(change.verdict in (Verdict.REBUILD, Verdict.MOVED) for change in changes))


def _plan(path: str, given: Mapping[str, str], texts: list[str]) -> Plan | None:
    """The plan that `path` means. None for a topology with errors, which are reported."""
    if os.path.isdir(path):
        inside = os.path.join(path, _PLAN)
        if not os.path.exists(inside):
            raise UsageError(f"{path} is not a checkpoint: it has no {_PLAN}", "name the folder given to --checkpoint")
        return _loaded(inside)
    if path.endswith(".json"):
        return _loaded(path)
    text = read_text(path)
    from vsc.compiler.driver import compile_source

    result = compile_source(text, path, given)
    texts.append(result.source.text)
    errors = [found for found in result.diagnostics if found.severity == "error"]
    if errors:
        tell_findings(errors, result.source)
    return result.plan


def _loaded(path: str) -> Plan:
    from vsc.plan.codec import PlanError, load

    try:
        return load(read_text(path))
    except PlanError as error:
        help = "compile the topology with this vsc, or compare it with the version of vsc that wrote the plan"
        raise UsageError(f"{path} is not a plan that this vsc can read: {error}", help) from error
