"""The compiler: text to plan, without Spark, JVM or numerical libraries.

`compile_topology` gives a plan or raises `TopologyError`; `check_topology` gives the findings. They are loaded on first
use, so that importing a part of the compiler does not load all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vsc.compiler.diagnostics.model import Diagnostic, TopologyError
    from vsc.compiler.driver import check_topology, compile_topology

__all__ = ["Diagnostic", "TopologyError", "check_topology", "compile_topology"]


def __getattr__(name: str) -> Any:
    if name in ("check_topology", "compile_topology"):
        from vsc.compiler import driver

        return getattr(driver, name)
    if name in ("Diagnostic", "TopologyError"):
        from vsc.compiler.diagnostics import model

        return getattr(model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
