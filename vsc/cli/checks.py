"""What ``vsc doctor`` finds, check by check."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from vsc.cli.errors import Refused
from vsc.cli.problems import Problem, of_disk
from vsc.extras import MissingExtra
from vsc.plan.secrets import masked
from vsc.runtime.errors import VscRuntimeError

__all__ = ["Check", "as_json", "as_text", "asked", "tried"]

_WIDTH = 18
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what was found, and what to do about it (None: nothing). `fails`: until then, a run does."""

    name: str
    found: str
    fix: str | None = None
    fails: bool = True

    @property
    def status(self) -> str:
        """``ok``, ``warning`` or ``bad``."""
        return "ok" if self.fix is None else "bad" if self.fails else "warning"

    @classmethod
    def of(cls, name: str, problem: Problem | VscRuntimeError) -> Check:
        """The check that has met a problem."""
        code = f" [{problem.code}]" if problem.code else ""
        return cls(name, f"{problem.message}{code}", problem.help or "see docs/running.md")


def asked(name: str, work: Callable[[], tuple[str, T]]) -> tuple[Check, T | None]:
    """The check of what `work` finds, and what it returns beside; the problem that it meets, and None."""
    try:
        found, value = work()
    except VscRuntimeError as error:
        return Check.of(name, error), None
    except Refused as refused:
        problem = refused.problem if isinstance(refused.problem, Problem) else Problem(refused.problem)
        return Check.of(name, problem), None
    except MissingExtra as error:
        return Check(name, error.message, error.help), None
    except Exception as error:  # of Spark, Java, a file system: the other checks are worth having
        if isinstance(error, OSError) and (full := of_disk(error)) is not None:
            return Check.of(name, full), None
        said = str(error).strip().partition("\n")[0]
        return Check(name, f"{type(error).__name__}: {masked(said)[:300]}", "see docs/running.md"), None
    return Check(name, found), value


def tried(name: str, work: Callable[[], str]) -> Check:
    """The check of what `work` finds."""
    return asked(name, lambda: (work(), None))[0]


def as_text(check: Check) -> str:
    """A line for what was found, and one for what to do."""
    sign = {"ok": "ok  ", "warning": "warn", "bad": "BAD "}[check.status]
    fix = "" if check.fix is None else f"      {' ' * _WIDTH}  -> {check.fix}\n"
    return f"{sign}  {check.name.ljust(_WIDTH)}  {check.found}\n{fix}"


def as_json(checks: Iterable[Check]) -> str:
    """One array: ``name``, ``status`` (``ok``, ``warning``, ``bad``), ``found`` and ``fix`` of each check."""
    found = [{"name": one.name, "status": one.status, "found": one.found, "fix": one.fix} for one in checks]
    return f"{json.dumps(found, indent=2)}\n"
