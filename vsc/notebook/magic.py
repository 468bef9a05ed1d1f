"""``%%vsdl``: a cell that holds a topology. It is compiled and shown; ``--run`` runs it.

Guarantees: an error stops the cell and shows the findings as ``vsc check`` does, with the line numbers of the cell.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import display

from vsc.compiler import TopologyError
from vsc.compiler.diagnostics.render import render_text
from vsc.compiler.driver import compile_source
from vsc.compiler.parser import variables_in
from vsc.notebook.displays import follow
from vsc.plan import Plan

if TYPE_CHECKING:
    from vsc.runtime.spark import RunningQuery

__all__ = ["TopologyMagics"]

_CELL = "cell"
"""The name, in messages, of a topology without a name."""


@magics_class
class TopologyMagics(Magics):  # type: ignore[misc]
    """The magics of vsc."""

    @magic_arguments()
    @argument("--name", metavar="NAME", help="bind the plan to this variable")
    @argument("--var", metavar="NAME=VALUE", action="append", default=[], help="a value for ${NAME}; can be repeated")
    @argument("--run", action="store_true", help="run it on the active Spark session, or on a local one")
    @argument("--query", metavar="NAME", help="with --run: bind the query to this variable")
    @argument("--checkpoint", metavar="DIR", help="with --run: where the query keeps its state (default: a new folder)")
    @argument("--trigger", metavar="TRIGGER", help="with --run: available-now (default), once, or a duration")
    @cell_magic
    def vsdl(self, line: str, cell: str) -> None:
        """Compiles the topology in the cell and shows its picture; with --run, runs it and shows its status."""
        args = self.vsdl.parser.parse_args(_words(line))
        text = f"\n{cell}"  # lines count as in the notebook, where the line with %%vsdl is the first
        given = _checked(args, text)
        plan = _compiled(text, args.name or _CELL, given)
        if args.name is not None:
            self.shell.user_ns[args.name] = plan
        display(plan)
        if args.run:
            self._run(args, plan, given)

    def _run(self, args: argparse.Namespace, plan: Plan, given: Mapping[str, str]) -> None:
        """Shows the query until it ends; one that does not end by itself continues in the background."""
        trigger = args.trigger or "available-now"
        query = _started(plan, args.checkpoint, trigger, given)
        if args.query is not None:
            self.shell.user_ns[args.query] = query
        from vsc.runtime.spark.base.job import is_bounded

        if not is_bounded(trigger):
            display(query.status)
            return
        try:
            follow(query)
        except KeyboardInterrupt:
            query.stop()
            raise


def _words(line: str) -> list[str]:
    """The words of a line, without quotes (IPython would leave them in)."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%vsdl {line}: {error}") from None


def _checked(args: argparse.Namespace, text: str) -> dict[str, str]:
    """Checks the arguments and returns the variables."""
    for option in ("query", "checkpoint", "trigger"):
        if getattr(args, option) is not None and not args.run:
            raise UsageError(f"--{option} is for --run")
    for name in (args.name, args.query):
        if name is not None and not name.isidentifier():
            raise UsageError(f"{name!r} is not a valid name for a variable")
    given = dict(pair.split("=", 1) for pair in args.var if "=" in pair)
    for pair in args.var:
        name, equals, _ = pair.partition("=")
        if not equals:
            raise UsageError("--var takes NAME=VALUE: a `=` is missing")
        if name not in variables_in(text):
            raise UsageError(f"--var {name}: nothing refers to ${{{name}}}")
    return given


def _compiled(text: str, path: str, given: Mapping[str, str]) -> Plan:
    """The plan. Shows warnings and raises errors."""
    result = compile_source(text, path, given)
    if result.plan is None:
        raise TopologyError(result.diagnostics, result.source)
    sys.stderr.write(render_text(result.diagnostics, result.source.files(), color=True))
    return result.plan


def _started(plan: Plan, checkpoint: str | None, trigger: str, given: Mapping[str, str]) -> RunningQuery:
    from vsc.runtime.spark import start
    from vsc.runtime.spark.query.launch import local_session

    session = local_session(plan)
    if checkpoint is None:
        folder = TemporaryDirectory(prefix="vsc-", ignore_cleanup_errors=True)
        _folders.append(folder)
        checkpoint = folder.name
    return start(plan, session, checkpoint=checkpoint, variables=given, trigger=trigger)


_folders: list[TemporaryDirectory[str]] = []
"""Checkpoints to remove when the kernel ends."""
