"""The command ``vsc``: chooses the command to run, and the exit status.

Each command is a module here with ``add_arguments(parser)`` and ``execute(args) -> int``; only the requested one is
loaded. Exit status: 0 fine, 1 errors in a topology or a failed scenario, 2 wrong use, 3 the query failed, 70 a bug in
vsc, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from vsc import __version__
from vsc.cli.common import print_payload
from vsc.cli.errors import Refused, UsageError
from vsc.cli.hidden import cover_values, without_secrets, without_values
from vsc.cli.problems import Problem, of_disk, tell
from vsc.extras import MissingExtra, required

__all__ = ["COMMANDS", "main", "whole_parser"]

COMMANDS = {
    "inspect": "write the source statement for existing data files",
    "check": "find what is wrong with topologies",
    "fmt": "format topologies",
    "compile": "turn a topology into its plan, or show it in another form",
    "run": "run a topology on Spark",
    "pack": "pack the Python packages that executors need, for spark.archives",
    "diff": "show what a change of a topology does to its state",
    "upgrade": "carry a checkpoint over to a changed topology",
    "explain": "show the page of a diagnostic code, or list all codes",
    "test": "run scenario files",
    "store": "look into the state of a checkpoint",
    "init": "make a small project that runs",
    "completion": "print the completion script for a shell",
    "lsp": "serve an editor (Language Server Protocol)",
    "doctor": "find what keeps Spark from running here, or a topology from running on a cluster",
}

_JAVA_OPTIONS = "--driver-java-options"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (without the program's name) and returns the exit status. Never raises."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        cover_values()
    try:
        status = _run(arguments)
        print_payload("")  # flushes what is still buffered, while a failure can still be reported
        return status
    except Refused as refused:
        tell(refused)
        return refused.status
    except MissingExtra as error:
        tell(Problem(error.message, error.help))
        return 2
    except KeyboardInterrupt:  # also how --watch ends
        tell("interrupted")
        return 130
    except Exception as error:
        full = of_disk(error) if isinstance(error, OSError) else None
        if full is None:
            return _bug(error, arguments)
        tell(full)
        return 1


def _run(arguments: list[str]) -> int:
    name = next((argument for argument in arguments if not argument.startswith("-")), None)
    module = _load(name) if name in COMMANDS else None
    if name is not None and module is None and arguments[0] == name:
        raise UsageError(f"there is no command `{name}`", _near(name, COMMANDS) or f"there are {', '.join(COMMANDS)}")
    parser, commands = _parser({} if name is None or module is None else {name: module})
    try:
        args, unknown = parser.parse_known_args(arguments)
    except SystemExit:  # --help, --version
        return 0
    if unknown:
        command = " ".join(
            ["vsc", *([name] if name and module else []), *filter(None, [getattr(args, "action", None)])]
        )
        given = without_values(unknown)
        options = commands[name]._option_string_actions if name and module else ()
        near = _near(unknown[0].partition("=")[0], options) if unknown[0].startswith("--") else None
        raise UsageError(f"{command}: unrecognized arguments: {given}", near or f"{command} --help shows what it takes")
    if module is None:
        parser.print_help(sys.stderr)
        return 2
    with required(f"vsc {name}"):
        status: int = module.execute(args)
    return status


def _load(name: str) -> ModuleType:
    return import_module(f"vsc.cli.{name}")


def _near(name: str, known: Iterable[str]) -> str | None:
    from vsc.compiler.diagnostics.suggest import nearest

    found = nearest(name, known)
    return None if found is None else f"did you mean `{found}`?"


def _joined(arguments: Iterable[str]) -> Iterator[str]:
    """The arguments, with ``--driver-java-options`` and its value in one."""
    rest = iter(arguments)
    for argument in rest:
        value = next(rest, None) if argument == _JAVA_OPTIONS else None
        yield argument if value is None else f"{argument}={value}"


class _Parser(argparse.ArgumentParser):
    """Raises `UsageError` for wrong use."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As `ArgumentParser` does, but options of Java may begin with a dash, as spark-submit takes them."""
        return super().parse_known_args(None if args is None else list(_joined(args)), namespace)

    def error(self, message: str) -> NoReturn:
        needed = message.partition(" are required: ")[2].split(", ")
        told = [f"{one}: {action.help}" for action in self._actions for one in needed if one in _names(action)]
        raise UsageError(f"{self.prog}: {message}", "; ".join(told) or f"{self.prog} --help shows what it takes")


def _names(action: argparse.Action) -> tuple[str, ...]:
    """What a message calls an argument."""
    return ("/".join(action.option_strings) or str(action.metavar or action.dest),)


def whole_parser() -> argparse.ArgumentParser:
    """The parser of the command line with the arguments of every command."""
    return _parser({name: _load(name) for name in COMMANDS})[0]


def _parser(modules: Mapping[str, ModuleType]) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser, and the parsers of the commands; only the commands in `modules` have their arguments."""
    parser = _Parser(
        prog="vsc",
        description="Versioned stream topologies, compiled to Apache Spark Structured Streaming.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"vsc {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command")
    parsers: dict[str, argparse.ArgumentParser] = {}
    for name, help in COMMANDS.items():
        command = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".", allow_abbrev=False)
        if name in modules:
            modules[name].add_arguments(command)
        parsers[name] = command
    return parser, parsers


def _bug(error: Exception, arguments: list[str]) -> int:
    if os.environ.get("VSC_DEBUG"):
        import traceback

        tell(without_secrets("".join(traceback.format_exception(error)), arguments))
    message = without_secrets(f"{type(error).__name__}: {error}", arguments)
    help = (
        f"please report it with the topology, this command (vsc {without_values(arguments)}), the versions "
        f"(vsc {__version__}, Python {sys.version.split()[0]}) and what VSC_DEBUG=1 in the environment prints"
    )
    tell(Problem(f"this is a bug in vsc: {message}", help))
    return 70
