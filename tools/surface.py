"""What 1.x keeps of the language, the command line and Python's API, one name a line: ``python -m tools.surface``.

It writes ``tests/api/stable.txt``, from which a test lets nothing vanish within 1.x. Run it before each minor release,
so that what is new is kept as well. What the names mean is held by all the other tests.
"""

from __future__ import annotations

import argparse
import enum
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from vsc.cli import whole_parser
from vsc.compiler.diagnostics.codes import CODES
from vsc.plan.connectors import FACTS
from vsc.plan.functions import AGGREGATES, FUNCTIONS

__all__ = ["KEPT", "MODULES", "reserved_words", "surface"]

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests/api/stable.txt"
MODULES = ("vsc", "vsc.testing", "vsc.runtime.spark")
"""The Python API: what these export."""


def surface() -> set[str]:
    """All names that there are now."""
    return {*_python(), *_commands(whole_parser()), *_language()}


def reserved_words() -> set[str]:
    """The words that need backticks as names: 1.x adds none, as that would break topologies that have such a name."""
    grammar = (ROOT / "grammar/vsc.lark").read_text(encoding="utf-8")
    return set(re.findall(r'^\w+\.2 *: *"(\w+)"i?$', grammar, re.MULTILINE))


def _python() -> Iterator[str]:
    for name in MODULES:
        module = import_module(name)
        for exported in module.__all__:
            yield from _value(f"{name}.{exported}", getattr(module, exported))


def _value(name: str, value: object) -> Iterator[str]:
    yield f"python {name}"
    if inspect.isclass(value) and not issubclass(value, enum.Enum):
        for member, found in vars(value).items():
            if not member.startswith("_"):
                yield from _value(f"{name}.{member}", found)
        if value.__bases__ == (tuple,) or value.__name__ == "TopologyTestDriver":  # vsc itself makes all others
            yield from _parameters(name, value)
    elif inspect.isfunction(value):
        yield from _parameters(name, value)


def _parameters(name: str, value: object) -> Iterator[str]:
    assert callable(value)
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:  # a class that Python's own C code makes
        return
    for one in (one for one in parameters if one.name != "self"):
        default = "" if one.default is one.empty else f"={one.default!r}"
        yield f"python {name}({one.name}{default})"


def _commands(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in dict.fromkeys(action.choices.values()):
                yield f"command {inner.prog}"
                yield from _commands(inner)
        elif action.help != argparse.SUPPRESS:
            for name in action.option_strings or [action.dest]:
                yield f"command {parser.prog} {name}"
                yield from (f"command {parser.prog} {name} {choice}" for choice in action.choices or ())


def _language() -> Iterator[str]:
    yield from (f"function {name}" for name in FUNCTIONS)
    yield from (f"aggregate {name}" for name in AGGREGATES)
    yield from (f"code {code}" for code in CODES)
    for kind, facts in FACTS.items():
        yield from (f"connector {kind} {role}" for role in facts.roles)
        for option, spec in facts.options.items():
            yield f"connector {kind} option {option}"
            yield from (f"connector {kind} option {option} {choice}" for choice in spec.choices)


def main() -> int:
    """Writes the file: what is kept, and below it the reserved words."""
    lines = sorted(surface()) + sorted(f"reserved {word}" for word in reserved_words())
    KEPT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
